//! A sample of the rows of a Hessian `lambda I + sum_i r_i x_i x_i'`, whose matrix stands for that of all of
//! them as a preconditioner.
//!
//! Row `i` is chosen as often as it has a share in what the columns hold altogether,
//! `r_i sum_j x_ij^2 / D_j` with the diagonal `D` of a Hessian, a stand-in for its leverage. The rows that alone
//! hold a rare column are so chosen for certain. (By weight alone, conjugate gradients do not get there on
//! pictures of digits, at whose edges some pixels are nearly always 0.) A row that is chosen has the weight
//! that makes up for those that are not.
//!
//! No chance is involved: the rows are passed in their order, and one is chosen whenever a portion of the sum
//! has been passed.

use crate::linalg::SymmetricSystem;
use crate::loss::blocks::LossBlocks;
use crate::memory::IntoVec as _;

/// Rows of a sample for each column. From 8 to 16 the time on mnist differs by less than a fifth.
const ROWS_PER_COLUMN: usize = 8;

/// Conjugate gradients end at a residual of this part of the gradient, in the norm of the preconditioner: more
/// steps of Newton's method, each with a direction that is not much better, take longer, and so do fewer with
/// directions that are. (mnist: 0.01 takes a third longer, 0.3 about as long.)
pub(crate) const PRECISION: f64 = 0.15;

/// Most steps of conjugate gradients with a new sample, which is of no use where they do not arrive; with an old
/// one, after which a new one is chosen; and for a sample to serve for the next direction as well.
const MAX_STEPS: usize = 30;
const MAX_STEPS_OLD: usize = 8;
const FEW_STEPS: usize = 4;

/// Steps for a direction, and how often a sample is chosen for one, on average. (mnist, `log` and
/// `squared_hinge`: 3 to 4.3, and a third.)
pub(crate) const EXPECTED_STEPS: f64 = 3.5;
pub(crate) const CHOSEN: f64 = 1.0 / 3.0;

/// It must cost less than this part of what the matrix of all rows does, which is certain to do.
pub(crate) const WORTH: f64 = 0.75;

/// Whether samples may do for the loss: not for a quadratic one, whose one direction is to be exact, nor for
/// kinks, see [`super::newton`].
pub(crate) fn suits(loss: &dyn LossBlocks) -> bool {
    !loss.is_quadratic() && loss.smoothness() > 0.0
}

/// Rows of a sample, about.
pub(crate) fn size(n_cols: usize) -> usize {
    ROWS_PER_COLUMN * n_cols
}

/// A sample that is used for one direction after another.
#[derive(Default)]
pub(crate) struct Sample {
    /// Its system, factored.
    pub(crate) system: SymmetricSystem,
    /// `sum_j x_ij^2 / D_j`.
    pub(crate) importance: Vec<f64>,
    /// Whether it serves for the next direction.
    serves: bool,
}

impl Sample {
    /// Whether it serves for the next direction, or a new one is due.
    pub(crate) fn serves(&self) -> bool {
        self.serves
    }

    /// Most steps for a direction with it: fewer if it has served before.
    pub(crate) fn max_steps(&self) -> usize {
        if self.serves {
            MAX_STEPS_OLD
        } else {
            MAX_STEPS
        }
    }

    /// To be told how many steps it took to a direction; nothing if they did not lead there.
    pub(crate) fn has_taken(&mut self, steps: Option<usize>) {
        self.serves = steps.is_some_and(|steps| steps <= FEW_STEPS);
    }

    /// The weights of the rows in a new sample, 0 for those that are not chosen.
    pub(crate) fn choose(&self, weights: &[f64], n_cols: usize) -> Vec<f64> {
        thin_out(weights, &self.importance, size(n_cols))
    }
}

fn thin_out(weights: &[f64], importance: &[f64], size: usize) -> Vec<f64> {
    // No leverage is above 1. This may be, of a row that had no weight yet when the diagonal was taken.
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
        // Half a portion at the start, so that the sum of what is chosen is as often above as below.
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
        /// Of any rows in a row, those that are chosen stand for all.
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

    /// A row of a column that no other row with weight had before.
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
