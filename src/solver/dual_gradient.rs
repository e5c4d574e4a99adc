//! Projected gradient ascent on `D`.
//!
//! The gradient of the quadratic part of `W D` is `-x_i.w(a)` per unit of weight. A step of length
//! `1 / sigma` along it, with the conjugate kept exact, is SDCA's step with `sigma` in place of
//! `q`, for all rows at once:
//!
//! ```text
//! a_i = argmax_t  -phi*(-t; y_i) - t z_i - sigma t^2 / 2,   z_i = x_i.w(a) + b - sigma a_i
//! ```
//!
//! If `phi*` is linear on its domain (hinge, absolute, quantile), this is the gradient step
//! `a_i + (y_i - x_i.w) / sigma`, projected on the interval of `a_i`. For other losses (such as the
//! log loss, whose gradient is infinite at the ends of its interval), it is the proximal form of
//! that step. `sigma` must be at least `lambda_max(X' C X) / (lambda W)`, which is estimated by
//! power iteration. The estimate is checked: a step that turns out to be longer than its own
//! curvature allows is undone and shortened.
//!
//! **Intercept.** `b` is the multiplier of `sum_i c_i a_i = 0`. The step is also projected on that
//! constraint, by a search for the `b` for which the new values satisfy it. Every iterate is
//! feasible, and `X` counts as centred in `lambda_max`.

use std::ops::Range;

use crate::error::{self, Error};
use crate::intercept;
use crate::loss::blocks::{LinePoint, Proximal};
use crate::memory;
use crate::problem::{Point, Problem};
use crate::run::{Budget, Fit, Monitor, RunContext, parameter};
use crate::solver::driver::{self, Evaluation, Process, Stretch};
use crate::solver::frame::Frame;
use crate::solver::output::{AverageFrom, Averager, Iterates, Output};
use crate::solver::schedule::Pace;
use crate::solver::spectrum::largest_eigenvalue;
use crate::solver::{Solver, Start};

/// The settings of projected dual gradient ascent.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct DualGradient {
    /// `1 / sigma`; `None` uses a bound from power iteration. If it is too long, the run may not
    /// converge.
    pub step: Option<f64>,
    /// The dual point that is evaluated and returned.
    pub output: Output,
    /// `T0` of [`Output::Average`] and [`Output::Random`].
    pub average_from: AverageFrom,
    /// Seed of [`Output::Random`]; nothing else is random.
    pub seed: u64,
    /// Threads that share the passes. The result does not depend on it.
    pub n_threads: usize,
}

impl Default for DualGradient {
    fn default() -> Self {
        Self {
            step: None,
            output: Output::default(),
            average_from: AverageFrom::default(),
            seed: 0,
            n_threads: 1,
        }
    }
}

/// Safety factor on the curvature that a step has encountered.
const MARGIN: f64 = 1.05;

/// Cost of an evaluation in epochs. A constant, so that runs in which a row is repeated or weighted
/// are evaluated, and end, at the same epochs.
const EVALUATION_COST: f64 = 1.0;

impl Solver for DualGradient {
    fn solve(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        start: Option<Start<'_>>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        error::catch(|| {
            budget.check()?;
            self.average_from.check()?;
            let (rows, n_rows) = (problem.rows(), problem.n_rows());
            let mut context = RunContext::new(budget.max_time, monitor);
            context.set_threads(self.n_threads, rows.n_stored(), rows.n_cols())?;
            let mut a = match start {
                Some(start) => start.dual_for(problem)?,
                None => memory::zeros(n_rows),
            };
            if problem.fit_intercept() {
                intercept::balance(&mut a, |i| problem.weight_fraction(i));
            }
            let (frame, _) = Frame::new(problem, &mut context)?;
            let sigma = match self.step {
                None => {
                    largest_eigenvalue(problem, &frame, &mut context)?
                        / problem.penalty().curvature()
                }
                Some(step) if step.is_finite() && step > 0.0 => 1.0 / step,
                Some(step) => return Err(parameter("step", step, "a finite number > 0")),
            };
            let mut run = Run {
                problem,
                sigma,
                guarded: self.step.is_none(),
                a,
                coef: Vec::new(),
                change: Vec::new(),
                predictions: memory::zeros(n_rows),
                next: memory::zeros(n_rows),
                intercept: 0.0,
                averager: Averager::new(
                    self.output,
                    self.average_from,
                    1,
                    budget.max_epochs,
                    self.seed,
                    || Iterates::new(n_rows),
                ),
            };
            problem.coef_of(&run.a, &mut run.coef, &mut context)?;
            let pace = Pace {
                evaluation_cost: EVALUATION_COST,
                least: 0,
                mean_q: problem.mean_q(frame.mean_sq_norm),
            };
            driver::run(problem, &mut run, budget, pace, &mut context)
        })
    }
}

/// A run: its iterate, and buffers.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    sigma: f64,
    /// Whether steps that are too long are undone.
    guarded: bool,
    a: Vec<f64>,
    /// `w(a)`, up to rounding.
    coef: Vec<f64>,
    /// The change of `coef` in a step.
    change: Vec<f64>,
    /// `x_i.w` for each row, and its new dual value.
    predictions: Vec<f64>,
    next: Vec<f64>,
    /// The multiplier, up to rounding.
    intercept: f64,
    averager: Averager<Iterates>,
}

impl Run<'_, '_> {
    /// The new dual values, in `next`.
    fn propose(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        let (problem, loss) = (self.problem, self.problem.loss());
        problem
            .data()
            .products(&self.coef, &mut self.predictions, context)?;
        let proximal = |block: Range<usize>| Proximal {
            g: self.sigma,
            centre: &self.a[block],
        };
        if problem.fit_intercept() {
            let reach = intercept::inverse_curvature(loss);
            let minimum = intercept::try_minimise(self.intercept, reach, 1e-15, |b| {
                problem.mean_of_pairs(context, |block| {
                    let (p, near) = (&self.predictions[block.clone()], &self.a[block.clone()]);
                    let (proximal, labels) = (proximal(block.clone()), problem.target_block(block));
                    loss.proximal_values_and_slopes(proximal, p, b, near, labels)
                })
            })?;
            self.intercept = minimum.b;
        }
        for p in &mut self.predictions {
            *p += self.intercept;
        }
        context.fill(&mut self.next, problem.data().block_size(), |from, next| {
            let block = from..from + next.len();
            let along = LinePoint::at(&self.predictions[block.clone()]);
            let (near, labels) = (&self.a[block.clone()], problem.target_block(block.clone()));
            loss.proximal_values(proximal(block), along, near, labels, next);
        })?;
        if problem.fit_intercept() {
            intercept::balance(&mut self.next, |i| problem.weight_fraction(i));
        }
        Ok(())
    }

    /// One step.
    fn ascend(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        let problem = self.problem;
        loop {
            self.propose(context)?;
            let mut moved = 0.0;
            let change = |i: usize| self.next[i] - self.a[i];
            for i in 0..problem.n_rows() {
                moved += problem.rate(i) * change(i) * change(i);
            }
            self.change.clear();
            memory::resize(&mut self.change, problem.n_cols(), 0.0);
            let share = |i: usize| problem.rate(i) * change(i);
            problem.data().add_rows(share, &mut self.change, context)?;
            // If sum_i rate_i da_i^2 sigma >= |dw|^2, D cannot fall.
            let curvature = self.change.iter().map(|w| w * w).sum::<f64>() / moved;
            if self.guarded && curvature > self.sigma * (1.0 + 1e-9) && curvature.is_finite() {
                self.sigma = MARGIN * curvature;
                continue;
            }
            break;
        }
        for (w, change) in self.coef.iter_mut().zip(&self.change) {
            *w += change;
        }
        self.a.copy_from_slice(&self.next);
        Ok(())
    }
}

impl Process for Run<'_, '_> {
    fn epoch(&self) -> u64 {
        1
    }

    fn begin(&mut self, start: &Point) {
        self.intercept = start.intercept;
    }

    fn advance(&mut self, stretch: Stretch, context: &mut RunContext<'_>) -> Result<u64, Error> {
        let Stretch { step, horizon, .. } = stretch;
        self.averager
            .before_steps(step, self.a.iter().copied(), horizon);
        if let Some(iterates) = self.averager.tally() {
            iterates.count(self.a.iter().copied());
        }
        self.ascend(context)?;
        let step = step + 1;
        if step.is_power_of_two() || step.is_multiple_of(64) {
            // Removes the rounding errors of updates.
            self.problem.coef_of(&self.a, &mut self.coef, context)?;
        }
        Ok(step)
    }

    fn evaluate(
        &mut self,
        evaluation: Evaluation<'_>,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let precision = evaluation.precision;
        let Self { problem, a, .. } = self;
        match self.averager.output_for(&evaluation, a.iter().copied()) {
            None => problem.evaluate(a.iter().copied(), precision, point, context)?,
            Some(dual) => problem.evaluate(problem.feasible(dual), precision, point, context)?,
        }
        if !self.guarded && !point.certificate.gap.is_finite() {
            return Err(Error::Diverged { name: "step" });
        }
        Ok(())
    }
}
