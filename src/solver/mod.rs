//! The algorithms. Each is generic over rows and loss, takes the same arguments, and returns a
//! [`Fit`] whose certificate is recomputed from scratch.

mod output;
mod sdca;

pub use output::Output;
pub use sdca::{FirstEpoch, Sdca};

use crate::error::Error;
use crate::loss::Loss;
use crate::problem::Problem;
use crate::rows::Rows;
use crate::run::{Budget, Fit, Monitor};

/// An algorithm that minimises a [`Problem`].
pub trait Solver: Sync {
    /// Runs until the budget is used up, from the dual point `start` if there is one (else from 0).
    fn solve<R: Rows, L: Loss>(
        &self,
        problem: &Problem<'_, R, L>,
        budget: &Budget,
        start: Option<&[f64]>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error>;
}
