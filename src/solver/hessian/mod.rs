//! Newton's direction: the solution `d` of `H d = -grad F` for
//!
//! ```text
//! H = lambda I + sum_i r_i x_i x_i'
//! ```
//!
//! where the identity leaves out the intercept, `x_i` stands for the centred row with a last entry of 1
//! for the intercept if there is one, and `r_i >= 0`. There are four methods, and the cheapest possible
//! one is used:
//!
//! * **By columns.** `H` itself, for few columns, by Cholesky's method.
//! * **By a sample.** The same for a sample of the rows, which preconditions a few steps of conjugate
//!   gradients on all of them, see [`sample`]. This is for many rows of some hundred columns.
//! * **By rows**, for few rows with `r_i > 0`: a system with one unknown for each of them, see [`by_rows`].
//! * **By conjugate gradients**, for anything else, preconditioned with the diagonal of `H`, until the residual is
//!   small relative to the gradient.

mod by_columns;
mod by_rows;
mod columns;
mod conjugate_gradients;
mod cost;
mod design;
pub(crate) mod sample;

pub(crate) use columns::{Columns, Part};
pub(crate) use cost::{DirectionMethod, cheapest, columns};
pub(crate) use design::Design;

use crate::error::Error;
use crate::linalg::SymmetricSystem;
use crate::loss::blocks::LossBlocks;
use crate::memory::IntoVec as _;
use crate::run::RunContext;
use columns::Gram;
use sample::Sample;

/// What is reused from one direction to the next.
#[derive(Default)]
pub(crate) struct Memory {
    system: SymmetricSystem,
    gram: Gram,
    /// The sample; `None` if samples do not suit the loss, or have been given up.
    pub(crate) sample: Option<Sample>,
}

impl Memory {
    pub(crate) fn new(loss: &dyn LossBlocks) -> Self {
        Self {
            sample: sample::suits(loss).then(Sample::default),
            ..Self::default()
        }
    }
}

/// `H`, given by the weights `r` of its rows.
pub(crate) struct Hessian<'h, 'p, 'a> {
    pub(crate) design: &'h Design<'p, 'a>,
    pub(crate) weights: &'h [f64],
}

impl Hessian<'_, '_, '_> {
    /// The solution of `H d = -gradient`, with a residual of about `precision` times the gradient, or of
    /// [`sample::PRECISION`] times the gradient if it comes from a sample. `memory` is reused from call to call.
    pub(crate) fn direction(
        &self,
        gradient: &[f64],
        precision: f64,
        memory: &mut Memory,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let count = self.weights.iter().filter(|&&r| r > 0.0).count();
        if count == 0 {
            // Nothing limits the intercept: the line search finds how far it should go.
            let (coef, rest) = gradient.split_at(self.design.problem.rows().n_cols());
            let coef = coef
                .iter()
                .map(|g| -g / self.design.problem.penalty().curvature());
            return Ok(coef.chain(rest.iter().map(|g| -g)).into_vec());
        }
        let (rows, columns) = (self.design.problem.rows(), self.design.columns);
        let is_quadratic = self.design.problem.loss().is_quadratic();
        let cheapest = |may_sample| cheapest((rows, is_quadratic), columns, count, may_sample).0;
        let method = match (cheapest(memory.sample.is_some()), memory.sample.take()) {
            (DirectionMethod::Sample, Some(mut sample)) => {
                let found = self.by_sample(gradient, sample::PRECISION, &mut sample, context)?;
                if let Some(direction) = found {
                    memory.sample = Some(sample);
                    return Ok(direction);
                }
                cheapest(false)
            }
            // Another method is cheaper, or samples were given up: the sample is freed, and samples are not used again.
            (method, _) => method,
        };
        match method {
            DirectionMethod::Columns | DirectionMethod::Sample => {
                self.by_columns(gradient, precision, memory, context)
            }
            DirectionMethod::Rows => self.by_rows(gradient, &mut memory.system, context),
            DirectionMethod::ConjugateGradients => {
                self.by_conjugate_gradients(gradient, precision, context)
            }
        }
    }
}

/// `a.b`.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests;
