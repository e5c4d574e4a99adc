//! When a run is evaluated, and what epochs and evaluations cost. This depends on the history of
//! the run alone, never on the clock, so that runs are reproducible.

use crate::problem::Problem;
use crate::run::{Certificate, Record};

/// When a run is evaluated, and how early it may end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Cost of an evaluation in epochs.
    pub(crate) evaluation_cost: f64,
    /// The tolerance cannot end the run before this step.
    pub(crate) least: u64,
    /// See [`Fit::mean_q`].
    pub(crate) mean_q: f64,
}

impl Pace {
    /// For a solver whose epochs visit each row once. On [`SMALL`] problems, a run does at least
    /// `effort` times [`SMALL_WORK`], even after it has reached the tolerance.
    pub(crate) fn new(problem: &Problem<'_>, epoch: u64, effort: f64, mean_q: f64) -> Self {
        let size = Self::size(problem);
        let least = if Self::is_small(problem) {
            epoch * (effort * SMALL_WORK / size).floor() as u64
        } else {
            0
        };
        Self {
            evaluation_cost: evaluation_cost(problem),
            least,
            mean_q,
        }
    }

    fn size(problem: &Problem<'_>) -> f64 {
        let (n_stored, n_rows) = (problem.rows().n_stored(), problem.n_rows());
        3.0 * n_stored as f64 + 30.0 * n_rows as f64
    }

    /// See [`SMALL`].
    pub(crate) fn is_small(problem: &Problem<'_>) -> bool {
        Self::size(problem) <= SMALL
    }
}

/// `P` is minimised over `b` to this fraction of the tolerance, or up to rounding if
/// [`Pace::least`] asks for more than the tolerance.
const INTERCEPT_PRECISION: f64 = 0.01;

/// The precision of the intercept for a tolerance.
pub(crate) fn intercept_precision(tol: f64) -> f64 {
    (INTERCEPT_PRECISION * tol).clamp(1e-14, 1e-4)
}

/// The epoch of the first evaluation after the one at the start.
pub(crate) const FIRST_EVALUATION: f64 = 2.0;

/// Safety factor on the number of epochs that the rate of the gap predicts.
const CAUTION: f64 = 1.25;

/// The next whole epoch at which to evaluate, if an evaluation costs `cost` epochs: the one at
/// which the gap would reach the tolerance if it kept falling at its latest rate, within limits.
/// Evaluations must not be too frequent. With `s` epochs between them, a run of `e` epochs spends
/// `cost e / s` epochs on evaluations and continues for about `s / 2` epochs after it has
/// converged; the sum is least for `s = sqrt(2 cost e)`. An earlier evaluation is only made as a
/// bet that saves more than it costs, with the safety factor [`CAUTION`], and only once there is a
/// rate other than that of the first epochs, in which the gap falls fastest. Evaluations must not
/// be too rare either, because rates change: the next one comes after at most twice the epochs so
/// far (four times up to the eighth).
pub(crate) fn next_epoch_to_evaluate(history: &[Record], tol: f64, cost: f64) -> f64 {
    let [.., before, now] = history else {
        return FIRST_EVALUATION;
    };
    let done = now.epoch.floor();
    let spacing = (2.0 * cost * done).sqrt().round().max(1.0);
    let earliest = done + spacing;
    let latest = earliest.max((4.0 * done).min(32.0)).max(2.0 * done);
    match epochs_to_come(history, tol) {
        // The user wants all epochs.
        _ if tol == 0.0 => latest,
        Some(to_come) if to_come.is_finite() => {
            let surely = now.epoch + (CAUTION * to_come).ceil();
            if before.epoch > 0.0 && surely + cost < earliest {
                surely
            } else {
                (now.epoch + to_come.ceil()).clamp(earliest, latest)
            }
        }
        _ => earliest,
    }
}

/// How many more epochs the gap needs to reach the tolerance if it keeps falling at its latest
/// rate; infinity if it does not fall. The rate is taken over at least the last `sqrt(e)` of `e`
/// epochs, and if possible not from the start, where the gap falls fastest. `None` before the
/// second evaluation.
pub(crate) fn epochs_to_come(history: &[Record], tol: f64) -> Option<f64> {
    let (now, earlier) = history.split_last()?;
    let until = now.epoch - now.epoch.sqrt();
    let is_before = |record: &&Record| record.epoch > 0.0 && record.epoch <= until;
    let before = earlier.iter().rfind(is_before);
    let after_start = earlier.iter().find(|record| record.epoch > 0.0);
    let before = before.or(after_start).or(earlier.first())?;
    let (gap, target) = (now.certificate.gap, tol * now.certificate.primal);
    let rate = (gap / before.certificate.gap).ln() / (now.epoch - before.epoch);
    let epochs = (target / gap).ln() / rate;
    Some(if epochs > 0.0 { epochs } else { f64::INFINITY })
}

/// An upper bound, on average, on the epochs that the gap still needs to reach the tolerance, if
/// the loss is smooth and all rows have the same `q`. `D` is below its maximum by at most the gap,
/// an epoch reduces that distance by the factor `exp(-1 / (1 + q / gamma))`, and the gap is at most
/// `1 + q / gamma` times the distance.
pub(crate) fn epochs_in_theory(last: &Record, tol: f64, q_by_gamma: f64) -> f64 {
    let Certificate { primal, gap, .. } = last.certificate;
    let slowness = 1.0 + q_by_gamma;
    slowness * (slowness * gap / (tol * primal)).ln()
}

/// A problem is small if 3 times its stored entries plus 30 times its rows is at most this. A cold
/// start on a small problem does at least [`SMALL_WORK`], whatever the tolerance. This takes a few
/// milliseconds and usually makes the result exact up to rounding, so that it does not depend on
/// the seed, or on whether a row is repeated or weighted. Runs that are studied (with records or
/// another output) end when the tolerance is reached.
const SMALL: f64 = 8192.0;

/// See [`SMALL`].
const SMALL_WORK: f64 = 512.0 * SMALL;

/// Work of an epoch in approximate nanoseconds: a dot product and an update per stored entry, in
/// random order, and a step per row.
pub(crate) fn epoch_work(problem: &Problem<'_>) -> f64 {
    work(problem, problem.loss().step_work())
}

/// Cost of an evaluation in epochs: two passes in the order of memory, and some evaluations of the
/// loss per row.
pub(crate) fn evaluation_cost(problem: &Problem<'_>) -> f64 {
    let per_row = if problem.fit_intercept() { 15.0 } else { 8.0 };
    work(problem, per_row) / epoch_work(problem)
}

/// Work of a dot product and an update per stored entry, plus `per_row` for each row.
pub(crate) fn work(problem: &Problem<'_>, per_row: f64) -> f64 {
    problem.rows().entry_work() * problem.rows().n_stored() as f64
        + per_row * problem.n_rows() as f64
}

#[cfg(test)]
pub(super) mod tests;
