//! The largest eigenvalue of the data, which bounds the steps of full-batch methods.

use crate::error::Error;
use crate::memory::{self, IntoVec as _};
use crate::problem::Problem;
use crate::run::RunContext;
use crate::solver::frame::Frame;

/// Maximum number of passes of the power iteration. The estimate need not be accurate.
const PASSES: usize = 20;

/// The iteration ends when the estimate grows by less than this fraction of itself.
const PRECISION: f64 = 1e-3;

/// Safety factor on the estimate, which approaches the eigenvalue from below.
const MARGIN: f64 = 1.05;

/// `lambda_max(X' C X) / W` for the rows of positive weight, centred by the frame: estimated by
/// power iteration and increased a little.
///
/// The starting vector depends neither on the order of rows nor on whether they are repeated or
/// weighted. If it is orthogonal to all rows, the result is the trace, which is an upper bound.
pub(super) fn largest_eigenvalue(
    problem: &Problem<'_>,
    frame: &Frame,
    context: &mut RunContext<'_>,
) -> Result<f64, Error> {
    let trace = frame.mean_sq_norm;
    // Data are unlikely to be orthogonal to this direction.
    let start = (0..problem.n_cols()).map(|j| 1.0 + (j % 7) as f64 / 7.0);
    let mut direction: Vec<f64> = start.into_vec();
    let mut shares = memory::zeros(problem.n_rows());
    let mut estimate = 0.0;
    for _ in 0..PASSES {
        let length = norm(&direction);
        for v in &mut direction {
            *v /= length;
        }
        let offset = frame.mu_dot(&direction);
        problem.data().products(&direction, &mut shares, context)?;
        let mass = |i: usize| problem.weight(i) / problem.total_weight();
        // Centring one side is enough: the shares add up to 0.
        direction.fill(0.0);
        let share = |i: usize| mass(i) * (shares[i] - offset);
        problem.data().add_rows(share, &mut direction, context)?;
        let before = estimate;
        estimate = norm(&direction);
        if estimate - before <= PRECISION * estimate || context.is_out_of_time() {
            break;
        }
    }
    let bound = if estimate > 0.0 {
        (MARGIN * estimate).min(trace)
    } else {
        trace
    };
    // Rows without entries: any step will do.
    Ok(if bound > 0.0 { bound } else { 1.0 })
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}
