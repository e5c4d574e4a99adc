//! The algorithms. Each takes the same arguments and returns a
//! [`Fit`] whose certificate is recomputed from scratch.

mod asdca;
mod batch;
mod chooser;
mod driver;
mod dual_gradient;
mod frame;
pub(crate) mod hessian;
mod momentum;
mod newton;
mod newton_phase;
mod outer;
pub(crate) mod output;
pub(crate) mod passes;
mod pegasos;
mod rate;
mod schedule;
pub(crate) mod sdca;
mod spectrum;
mod subgradient;
pub(crate) mod together;

pub use crate::order::Sampling;
pub use asdca::Asdca;
pub use dual_gradient::DualGradient;
pub use output::{AverageFrom, Output};
pub use pegasos::{Model, Pegasos, Scales, Stream};
pub use rate::LearningRate;
pub use sdca::{FirstEpoch, Sdca};
pub use subgradient::Subgradient;
#[doc(hidden)]
pub use together::{CommonStart, GROUP};

use std::ops::Range;

use crate::error::Error;
use crate::memory::IntoVec as _;
use crate::problem::Problem;
use crate::run::{Budget, Fit, Monitor, NoMonitor, parameter};

/// The chooser's estimates of costs, in nanoseconds. For `benches/foreseen.rs`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Costs {
    /// An epoch of coordinate steps.
    pub epoch: f64,
    /// An evaluation.
    pub evaluation: f64,
    /// An iteration of Newton's method with all rows in its systems.
    pub iteration: f64,
    /// The method that solves these systems.
    pub method: String,
}

/// See [`Costs`].
#[doc(hidden)]
pub fn costs(problem: &Problem<'_>) -> Costs {
    let epoch = schedule::epoch_work(problem);
    let (columns, all) = (problem.data().columns(), problem.n_rows());
    let (iteration, method) = newton_phase::NewtonPhase::iteration_work(problem, columns, all);
    Costs {
        epoch,
        evaluation: epoch * schedule::evaluation_cost(problem),
        iteration,
        method: format!("{method:?}"),
    }
}

/// The end of an earlier run, from which another run can continue. Rows, and classes, must be the
/// same; targets, loss and regularisation may differ. Each solver uses the parts that it needs.
///
/// ```
/// use std::sync::Arc;
///
/// use sdca_rs::prelude::*;
///
/// let x = [[0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [3.0, 0.5]];
/// let y = [-1.0, -1.0, 1.0, 1.0];
/// let data = Arc::new(Data::dense(&x)?);
/// let weak = Problem::builder(Arc::clone(&data), &y, Log).c(0.1).build()?;
/// let strong = Problem::builder(data, &y, Log).c(1.0).build()?;
///
/// let sdca = Sdca::default();
/// let before = sdca.fit(&weak)?;
/// let fit = sdca.solve(&strong, &Budget::default(), Some(Start::from(&before)), &mut NoMonitor)?;
/// assert!(fit.certificate.is_within(1e-4));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// See [`Fit::dual`].
    pub dual: &'a [f64],
    /// See [`Fit::coef`].
    pub coef: &'a [f64],
    /// See [`Fit::intercept`].
    pub intercept: f64,
    /// See [`Fit::steps`].
    pub steps: f64,
}

impl<'a> From<&'a Fit> for Start<'a> {
    fn from(fit: &'a Fit) -> Self {
        Self {
            dual: &fit.dual,
            coef: &fit.coef,
            intercept: fit.intercept,
            steps: fit.steps,
        }
    }
}

/// Dual values of this size or more are ignored in a start: their squares overflow, at least when
/// they are added up, and no fit returns such values.
const LARGEST: f64 = 1e150;

impl<'a> Start<'a> {
    /// The dual values, brought into the domain of the problem.
    fn dual_for(&self, problem: &Problem<'_>) -> Result<Vec<f64>, Error> {
        check_length("dual start", self.dual, problem.n_rows())?;
        let finite = self.dual.iter().enumerate().map(|(i, &a)| {
            if a.abs() < LARGEST && problem.weight(i) > 0.0 {
                a
            } else {
                0.0
            }
        });
        Ok(problem.feasible(finite).into_vec())
    }

    /// The steps.
    fn steps(&self) -> Result<f64, Error> {
        if self.steps.is_finite() && self.steps >= 0.0 {
            return Ok(self.steps);
        }
        Err(parameter(
            "steps of the start",
            self.steps,
            "a finite number >= 0",
        ))
    }

    /// The coefficients.
    fn coef_for(&self, problem: &Problem<'_>) -> Result<&'a [f64], Error> {
        check_length("coef start", self.coef, problem.n_cols())?;
        Ok(self.coef)
    }
}

fn check_length(name: &'static str, found: &[f64], expected: usize) -> Result<(), Error> {
    if found.len() == expected {
        return Ok(());
    }
    Err(Error::Length {
        name,
        found: found.len(),
        expected,
        why: "as many as X has now",
    })
}

/// An algorithm that minimises a [`Problem`].
///
/// ```
/// use sdca_rs::prelude::*;
///
/// let x = [[0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [3.0, 0.5]];
/// let y = [-1.0, -1.0, 1.0, 1.0];
/// let problem = Problem::builder(Data::dense(&x)?, &y, Log).build()?;
///
/// let fit = Sdca::default().fit(&problem)?;
/// assert!(fit.certificate.is_within(1e-4));
///
/// let budget = Budget { tol: 1e-8, ..Budget::default() };
/// let closer = Sdca::default().fit_within(&problem, &budget)?;
/// assert!(closer.certificate.is_within(1e-8));
/// # Ok::<(), Error>(())
/// ```
pub trait Solver: Sync {
    /// Runs within the default budget, from 0.
    fn fit(&self, problem: &Problem<'_>) -> Result<Fit, Error> {
        self.fit_within(problem, &Budget::default())
    }

    /// Runs until the budget is used up, from 0.
    fn fit_within(&self, problem: &Problem<'_>, budget: &Budget) -> Result<Fit, Error> {
        self.solve(problem, budget, None, &mut NoMonitor)
    }

    /// Runs until the budget is used up, from `start` if there is one (else from 0).
    fn solve(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        start: Option<Start<'_>>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error>;

    /// Runs the first epochs of the problems "class against the rest" for the classes `group`, up
    /// to [`GROUP`] of them, over rows whose classes are numbered; `problem` is that of any of
    /// them. Returns what [`Self::go_on`] takes, for each class, or nothing where this would not be
    /// faster than class by class. The result depends neither on the clock nor on the number of
    /// threads.
    #[doc(hidden)]
    fn begin_together(
        &self,
        _problem: &Problem<'_>,
        _classes: &[u32],
        _group: Range<u32>,
        _budget: &Budget,
        _monitor: &mut dyn Monitor,
    ) -> Result<Vec<CommonStart>, Error> {
        Ok(Vec::new())
    }

    /// As [`Self::solve`], but continues after the epochs of [`Self::begin_together`], with the
    /// same budget.
    #[doc(hidden)]
    fn go_on(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        _common_start: CommonStart,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        self.solve(problem, budget, None, monitor)
    }
}
