//! A sample of the rows of a Hessian `lambda I + sum_i r_i x_i x_i'`. The matrix of the sample, as a
//! preconditioner, takes the place of the matrix of all rows.
//!
//! Rows are chosen in proportion to their share in the contents of the columns,
//! `r_i sum_j x_ij^2 / D_j` with the diagonal `D` of a Hessian, a cheap estimate of the leverage. So rows that
//! alone contain a rare column are always chosen. (If rows are chosen by weight alone, conjugate gradients do not
//! reach their precision on pictures of digits, at whose edges some pixels are nearly always 0.) The weight of a
//! chosen row is increased to make up for the rows that are not chosen.
//!
//! The choice is not random: the rows are passed in their order, and one is chosen each time that a fixed portion
//! of the sum of shares has been passed.

use super::columns::Gram;
use super::{Design, Hessian, dot};
use crate::error::Error;
use crate::linalg::SymmetricSystem;
use crate::loss::blocks::LossBlocks;
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::run::RunContext;

/// Rows of a sample for each column. From 8 to 16 the time on mnist differs by less than a fifth.
const ROWS_PER_COLUMN: usize = 8;

/// Conjugate gradients end at a residual of this fraction of the gradient, in the norm of the preconditioner. With a
/// larger fraction, Newton's method needs more steps; with a smaller one, each direction takes longer. (mnist: 0.01
/// takes a third longer, 0.3 about as long.)
pub(crate) const PRECISION: f64 = 0.15;

/// Limits of the steps of conjugate gradients: with a new sample, after which samples are given up; with a reused
/// sample, after which a new one is chosen; and the number of steps up to which a sample is reused for the next
/// direction.
const MAX_STEPS: usize = 30;
const MAX_STEPS_OLD: usize = 8;
const FEW_STEPS: usize = 4;

/// The expected number of steps for a direction, and the fraction of the directions for which a new sample is chosen.
/// (mnist, `log` and `squared_hinge`: 3 to 4.3, and a third.)
pub(crate) const EXPECTED_STEPS: f64 = 3.5;
pub(crate) const CHOSEN: f64 = 1.0 / 3.0;

/// The sample is used only if its estimated work is less than this fraction of that of the matrix of all rows, which is
/// certain to work.
pub(crate) const WORTH: f64 = 0.75;

/// Whether samples may be used for the loss. They are not for a quadratic loss, whose only direction must be exact, nor
/// for a loss that is not smooth, see [`crate::solver::newton`].
pub(crate) fn suits(loss: &dyn LossBlocks) -> bool {
    !loss.is_quadratic() && loss.smoothness() > 0.0
}

/// The approximate number of rows in a sample.
pub(crate) fn size(n_cols: usize) -> usize {
    ROWS_PER_COLUMN * n_cols
}

/// A sample, which may be reused for several directions.
#[derive(Default)]
pub(crate) struct Sample {
    /// Its system, factored.
    pub(crate) system: SymmetricSystem,
    /// `sum_j x_ij^2 / D_j`.
    pub(crate) importance: Vec<f64>,
    /// Whether it can be reused for the next direction.
    serves: bool,
}

impl Sample {
    /// Whether it can be reused for the next direction; otherwise a new sample must be chosen.
    pub(crate) fn serves(&self) -> bool {
        self.serves
    }

    /// The maximum number of steps for a direction; smaller if the sample is reused.
    pub(crate) fn max_steps(&self) -> usize {
        if self.serves {
            MAX_STEPS_OLD
        } else {
            MAX_STEPS
        }
    }

    /// Takes note of the number of steps for a direction; `None` if they did not reach the precision.
    pub(crate) fn has_taken(&mut self, steps: Option<usize>) {
        self.serves = steps.is_some_and(|steps| steps <= FEW_STEPS);
    }

    /// The weights of the rows in a new sample, 0 for those that are not chosen.
    pub(crate) fn choose(&self, weights: &[f64], n_cols: usize) -> Vec<f64> {
        thin_out(weights, &self.importance, size(n_cols))
    }
}

fn thin_out(weights: &[f64], importance: &[f64], size: usize) -> Vec<f64> {
    // A leverage is at most 1. This estimate may exceed 1 if the row had no weight when the diagonal was computed.
    let share = |(r, s): (&f64, &f64)| (r * s).min(1.0);
    let pairs = || weights.iter().zip(importance);
    let portion = pairs().map(share).sum::<f64>() / size as f64;
    let mut passed = 0.0;
    let choose = |(r, s)| {
        let share = share((r, s));
        if share >= portion {
            return *r;
        }
        passed += share;
        // The first one is chosen after half a portion, so that the sum of the chosen shares is as often too large as
        // too small.
        if passed < 0.5 * portion {
            return 0.0;
        }
        passed -= portion;
        r * (portion / share)
    };
    pairs().map(choose).into_vec()
}

impl Hessian<'_, '_, '_> {
    /// By conjugate gradients, preconditioned with the matrix of a sample of the rows. `None` if they do not reach the
    /// precision even with a new sample.
    pub(super) fn by_sample(
        &self,
        gradient: &[f64],
        precision: f64,
        sample: &mut Sample,
        context: &mut RunContext<'_>,
    ) -> Result<Option<Vec<f64>>, Error> {
        loop {
            let is_new = !sample.serves();
            if is_new {
                let design = self.design;
                if sample.importance.is_empty() {
                    sample.importance = self.importance(context)?;
                }
                let weights = &sample.choose(self.weights, design.problem.rows().n_cols());
                let mut once = Gram::default();
                Hessian { design, weights }.factor(&mut sample.system, &mut once, context)?;
            }
            let room = precision * precision * dot(gradient, gradient);
            let (mut direction, mut steps) = (memory::zeros(gradient.len()), None);
            // Otherwise the part of the gradient along fixed unknowns would count as solved.
            if sample.system.remainder(gradient) <= room {
                let precondition = |v: &[f64]| {
                    let mut v = v.duplicate();
                    sample.system.solve(&mut v);
                    v
                };
                let most = sample.max_steps();
                (direction, steps) =
                    self.conjugate_gradients(gradient, precision, most, &precondition, context)?;
            }
            sample.has_taken(steps);
            if steps.is_some() || context.is_out_of_time() {
                return Ok(Some(direction));
            }
            if is_new {
                return Ok(None);
            }
        }
    }

    /// The importance of each row: `sum_j x_ij^2 / D_j` with the diagonal `D` of `H`, its share in `D` up to its
    /// weight.
    fn importance(&self, context: &mut RunContext<'_>) -> Result<Vec<f64>, Error> {
        let Design { problem, mu, .. } = self.design;
        let (n_cols, diagonal) = (problem.rows().n_cols(), self.diagonal(context)?);
        let of_intercept = diagonal.get(n_cols).map_or(0.0, |total| 1.0 / total);
        let means = mu.iter().zip(&diagonal).map(|(m, d)| m * m / d);
        // The importance of a row without entries: centred, it is not zero.
        let least = of_intercept + means.sum::<f64>();
        let mut importance = memory::zeros(problem.rows().n_rows());
        let twice: Vec<f64> = mu.iter().map(|m| 2.0 * m).into_vec();
        let rows = problem.rows();
        context.fill(
            &mut importance,
            problem.data().block_size(),
            |from, importance| {
                rows.scaled_squares(from, &twice, &diagonal, importance);
                for sum in importance {
                    *sum = (least + *sum).max(0.0);
                }
            },
        )?;
        Ok(importance)
    }
}

#[cfg(test)]
mod tests;
