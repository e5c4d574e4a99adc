//! A sample of the rows of a Hessian `lambda I + sum_i r_i x_i x_i'`, whose matrix stands for that of all of
//! them as a preconditioner.
//!
//! Row `i` is chosen with a probability that is as `r_i sum_j x_ij^2 / D_j`, where `D` is the diagonal of a
//! Hessian: its share in what the columns hold altogether. The rows that alone hold a rare column are so
//! chosen for certain. (Without that, by weight alone, conjugate gradients do not get there on pictures of
//! digits, at whose edges some pixels are nearly always 0.) A row that is chosen has the weight that makes the
//! expectation of the matrix that of all rows.
//!
//! No chance is involved: the rows are passed in their order, and one is chosen whenever a portion of the sum
//! has been passed.

use crate::solver::system::System;

/// Rows of a sample for each column. From 8 to 16 the time on mnist differs by less than a fifth.
const ROWS_PER_COLUMN: usize = 8;

/// Conjugate gradients end at a residual of this part of the gradient, in the norm of the preconditioner: more
/// steps of Newton's method, each with a direction that is not much better, take longer, and so do fewer with
/// directions that are. (mnist: 0.01 takes a third longer, 0.3 about as long.)
pub(crate) const PRECISION: f64 = 0.15;

/// Steps of conjugate gradients with a new sample, at most: it is of no use where they do not arrive. With an
/// old one, after which a new one is chosen; and from which on one is chosen for the next direction.
const MAX_STEPS: usize = 30;
const MAX_STEPS_OLD: usize = 8;
const MANY_STEPS: usize = 5;

/// Steps for a direction, and how often a sample is chosen for one, on average. (mnist, `log` and
/// `squared_hinge`: 3 to 4.3, and a third.)
pub(crate) const EXPECTED_STEPS: f64 = 3.5;
pub(crate) const RENEWED: f64 = 1.0 / 3.0;

/// It must cost less than this part of what the matrix of all rows does, which is certain to do.
pub(crate) const WORTH: f64 = 0.75;

/// Rows of a sample, about.
pub(crate) fn size(n_cols: usize) -> usize {
    ROWS_PER_COLUMN * n_cols
}

/// A sample that is used for one direction after another.
#[derive(Default)]
pub(crate) struct Sample {
    /// Its system, factored.
    pub(crate) system: System,
    /// `sum_j x_ij^2 / D_j`.
    pub(crate) importance: Vec<f64>,
    state: State,
}

#[derive(Default, PartialEq, Eq)]
enum State {
    /// A new sample is due.
    #[default]
    Stale,
    /// It has served for this direction at the most, or for others before.
    New,
    Old,
    Failed,
}

impl Sample {
    /// Whether a new one is due.
    pub(crate) fn is_stale(&self) -> bool {
        self.state == State::Stale
    }

    /// Whether samples are of no use.
    pub(crate) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Most steps for a direction.
    pub(crate) fn patience(&self) -> usize {
        if self.state == State::Old {
            MAX_STEPS_OLD
        } else {
            MAX_STEPS
        }
    }

    /// To be told how many steps it took to a direction; nothing if they did not lead there.
    pub(crate) fn has_taken(&mut self, steps: Option<usize>) {
        let state = match (steps, &self.state) {
            (Some(..MANY_STEPS), _) => State::Old,
            (Some(_), _) | (None, State::Old) => State::Stale,
            (None, _) => State::Failed,
        };
        if state == State::Failed {
            // Its memory is not needed any more.
            *self = Self::default();
        }
        self.state = state;
    }

    /// The weights of the rows in a new sample, 0 for those that are not chosen.
    pub(crate) fn choose(&mut self, weights: &[f64], n_cols: usize) -> Vec<f64> {
        self.state = State::New;
        thin_out(weights, &self.importance, size(n_cols))
    }
}

fn thin_out(weights: &[f64], importance: &[f64], size: usize) -> Vec<f64> {
    let pairs = || weights.iter().zip(importance);
    let portion = pairs().map(|(r, s)| r * s).sum::<f64>() / size as f64;
    let mut passed = 0.0;
    let choose = |(&r, &s): (&f64, &f64)| {
        if r * s >= portion {
            return r;
        }
        passed += r * s;
        // Half a portion at the start, so that the sum of what is chosen is as often above as below.
        if passed < 0.5 * portion {
            return 0.0;
        }
        passed -= portion;
        portion / s
    };
    pairs().map(choose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Of any rows in a row, those that are chosen stand for all.
        #[test]
        fn a_sample_stands_for_all_rows(
            rows in prop::collection::vec((0.0..1.0f64, 0.001..1.0f64), 1..200),
            size in 1usize..50,
        ) {
            let (weights, importance): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            let chosen = thin_out(&weights, &importance, size);
            let shares = weights.iter().zip(&importance).map(|(r, s)| r * s);
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
                ahead += chosen[k] * importance[k] - share;
                prop_assert!(ahead.abs() <= 0.5 * portion + 1e-12 * total, "{ahead} of {portion}");
            }
        }
    }

    #[test]
    fn rows_without_weight_are_not_chosen() {
        let chosen = thin_out(&[0.0, 1.0, 0.0, 3.0], &[1.0, 1.0, 0.0, 0.0], 3);
        assert_eq!(chosen, [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(thin_out(&[0.0; 3], &[0.0; 3], 5), [0.0; 3]);
    }
}
