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

use crate::linalg::SymmetricSystem;
use crate::loss::blocks::LossBlocks;
use crate::memory::IntoVec as _;

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
/// for a loss that is not smooth, see [`super::newton`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In any range of rows, the chosen ones have about the same sum of shares as all of them.
        #[test]
        fn a_sample_stands_for_all_rows(
            rows in prop::collection::vec((0.0..1.0f64, 0.001..3.0f64), 1..200),
            size in 1usize..50,
        ) {
            let (weights, importance): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            let chosen = thin_out(&weights, &importance, size);
            let shares = weights.iter().zip(&importance).map(|(r, s)| (r * s).min(1.0));
            let total: f64 = shares.clone().sum();
            let portion = total / size as f64;
            let count = chosen.iter().filter(|&&r| r > 0.0).count();
            prop_assert!(count <= size + 1);
            let mut ahead = 0.0;
            for (k, share) in shares.enumerate() {
                prop_assert!(chosen[k] == 0.0 || chosen[k] >= weights[k]);
                if share >= portion {
                    prop_assert_eq!(chosen[k], weights[k]);
                }
                if weights[k] > 0.0 {
                    ahead += share * (chosen[k] / weights[k] - 1.0);
                }
                prop_assert!(ahead.abs() <= 0.5 * portion + 1e-12 * total, "{ahead} of {portion}");
            }
        }
    }

    /// A row with an entry in a column in which no row of positive weight had one before.
    #[test]
    fn a_row_that_comes_alive_does_not_crowd_out_the_others() {
        let (mut weights, mut importance) = (vec![1.0; 1000], vec![0.01; 1000]);
        (weights[500], importance[500]) = (1.0, 1e9);
        let chosen = thin_out(&weights, &importance, 80);
        assert_eq!(chosen[500], 1.0);
        let others = chosen.iter().filter(|&&r| r > 0.0).count() - 1;
        assert!((70..=80).contains(&others), "{others}");
    }

    #[test]
    fn a_sample_serves_on_while_it_takes_few_steps() {
        let mut sample = Sample::default();
        assert!(!sample.serves());
        assert_eq!(sample.max_steps(), MAX_STEPS);
        sample.has_taken(Some(FEW_STEPS));
        assert!(sample.serves());
        assert_eq!(sample.max_steps(), MAX_STEPS_OLD);
        for steps in [Some(FEW_STEPS + 1), None] {
            sample.has_taken(Some(1));
            sample.has_taken(steps);
            assert!(!sample.serves());
        }
    }

    #[test]
    fn rows_without_weight_are_not_chosen() {
        let chosen = thin_out(&[0.0, 1.0, 0.0, 3.0], &[1.0, 1.0, 0.0, 0.0], 3);
        assert_eq!(chosen, [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(thin_out(&[0.0; 3], &[0.0; 3], 5), [0.0; 3]);
    }
}
