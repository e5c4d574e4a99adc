//! Newton's direction by conjugate gradients.

use super::{Design, Hessian, dot};
use crate::error::Error;
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::run::RunContext;

/// Steps of conjugate gradients for one direction: the expected number, the maximum, and the maximum for a quadratic
/// loss, for which a single direction is enough. (`nycflights_onehot` takes 46, 246 and 497 for `C` of 0.01, 1 and 100.)
pub(super) const EXPECTED_STEPS: f64 = 50.0;
const MAX_STEPS: usize = 300;
const MAX_STEPS_QUADRATIC: usize = 3000;

impl Hessian<'_, '_, '_> {
    pub(super) fn by_conjugate_gradients(
        &self,
        gradient: &[f64],
        precision: f64,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let diagonal = self.diagonal(context)?;
        let precondition =
            |v: &[f64]| -> Vec<f64> { v.iter().zip(&diagonal).map(|(v, d)| v / d).into_vec() };
        let most = if self.design.problem.loss().is_quadratic() {
            MAX_STEPS_QUADRATIC
        } else {
            MAX_STEPS
        };
        let found = self.conjugate_gradients(gradient, precision, most, &precondition, context)?;
        Ok(found.0)
    }

    /// The direction after at most `max_steps` steps of conjugate gradients, and the number of steps if they were
    /// enough for the precision; otherwise `None`.
    pub(super) fn conjugate_gradients(
        &self,
        gradient: &[f64],
        precision: f64,
        max_steps: usize,
        precondition: &dyn Fn(&[f64]) -> Vec<f64>,
        context: &mut RunContext<'_>,
    ) -> Result<(Vec<f64>, Option<usize>), Error> {
        let (design, problem) = (self.design, self.design.problem);
        let (n_cols, lambda) = (problem.rows().n_cols(), problem.penalty().curvature());
        let mut room = Vec::new();
        let mut direction = memory::zeros(gradient.len());
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).into_vec();
        let mut scaled = precondition(&residual);
        let mut size = dot(&residual, &scaled);
        if size == 0.0 {
            return Ok((direction, Some(0)));
        }
        // For a quadratic loss, the direction leads to the solution, and the residual is measured as the gap
        // measures it, by `|r|^2`. Otherwise what counts is how far the objective falls.
        let measure = |residual: &[f64], size: f64| {
            if self.design.problem.loss().is_quadratic() {
                dot(residual, residual)
            } else {
                size
            }
        };
        let enough = precision * precision * measure(gradient, size);
        let mut way = scaled.duplicate();
        for steps in 1..=max_steps {
            let mut image = design.image(self.weights, &way, &mut room, context)?;
            for (image, v) in image.iter_mut().zip(&way[..n_cols]) {
                *image += lambda * v;
            }
            let step = size / dot(&way, &image);
            if !(step.is_finite() && step > 0.0) {
                break;
            }
            for (d, v) in direction.iter_mut().zip(&way) {
                *d += step * v;
            }
            for (r, v) in residual.iter_mut().zip(&image) {
                *r -= step * v;
            }
            scaled = precondition(&residual);
            let before = size;
            size = dot(&residual, &scaled);
            if measure(&residual, size) <= enough {
                return Ok((direction, Some(steps)));
            }
            if context.is_out_of_time() {
                break;
            }
            for (v, s) in way.iter_mut().zip(&scaled) {
                *v = s + size / before * *v;
            }
        }
        // Wherever the steps end, the objective falls along the direction.
        Ok((direction, None))
    }

    /// The diagonal of `H`.
    pub(super) fn diagonal(&self, context: &mut RunContext<'_>) -> Result<Vec<f64>, Error> {
        let Design { problem, mu, .. } = self.design;
        let n_cols = problem.rows().n_cols();
        let (mut squares, mut sums, mut total) =
            (memory::zeros(n_cols), memory::zeros(mu.len()), 0.0);
        for block in problem.data().blocks() {
            let weights = &self.weights[block.clone()];
            let rows = problem.rows();
            rows.add_squares(block.start, weights, &mut squares, &mut sums);
            total += weights.iter().filter(|&&r| r > 0.0).sum::<f64>();
            context.heartbeat()?;
        }
        for ((square, sum), m) in squares.iter_mut().zip(&sums).zip(mu) {
            // Rounding must not make it negative.
            *square = (*square - 2.0 * m * sum + m * m * total).max(0.0);
        }
        for square in &mut squares {
            *square += problem.penalty().curvature();
        }
        if problem.fit_intercept() {
            memory::push(&mut squares, if total > 0.0 { total } else { 1.0 });
        }
        Ok(squares)
    }
}
