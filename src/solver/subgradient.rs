//! Subgradient descent on `P` with all rows in each step. It keeps the best of its iterates.
//!
//! ```text
//! g_i = -phi'(x_i.w + b; y_i),   b = argmin_b P(w, b)
//! w   = (1 - eta lambda) w + (eta / W) sum_i c_i g_i x_i
//! ```
//!
//! With an intercept, this is the method on `min_b P(w, b)`: the subgradients `g` are chosen, where
//! rows lie on a kink, so that `sum_i c_i g_i = 0`.
//!
//! **Certificate.** If `a` takes the same steps, `a = (1 - eta lambda) a + eta lambda g`, `w`
//! remains `w(a)`. This `a` is a mean of values `-phi'`, and so a feasible dual point. The
//! certificate uses the better one of it and of `-phi'` at the model itself. (After a warm start,
//! `a` continues from the dual point that was given, which need not be that of the model.)

use crate::error::{self, Error};
use crate::intercept::{self, Minimum};
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::problem::{Point, Problem};
use crate::run::{Budget, Fit, Monitor, RunContext};
use crate::solver::driver::{self, Evaluation, Keep, Process, Stretch};
use crate::solver::frame::Frame;
use crate::solver::output::{AverageFrom, Averager, Iterates, Output};
use crate::solver::rate::{LearningRate, Steps, loss_curvature};
use crate::solver::schedule::Pace;
use crate::solver::spectrum::largest_eigenvalue;
use crate::solver::{Solver, Start};

/// The settings of subgradient descent.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Subgradient {
    /// The lengths of the steps. `None` is [`LearningRate::Pegasos`] for a loss with kinks and
    /// [`LearningRate::Constant`] for one without.
    pub learning_rate: Option<LearningRate>,
    /// The iterate that is evaluated and returned; `None` is the best one so far.
    pub output: Option<Output>,
    /// `T0` of [`Output::Average`] and [`Output::Random`].
    pub average_from: AverageFrom,
    /// Seed of [`Output::Random`]; nothing else is random.
    pub seed: u64,
    /// Threads that share the passes. The result does not depend on it.
    pub n_threads: usize,
}

impl Default for Subgradient {
    fn default() -> Self {
        Self {
            learning_rate: None,
            output: None,
            average_from: AverageFrom::default(),
            seed: 0,
            n_threads: 1,
        }
    }
}

/// Cost of an evaluation in epochs: four passes, where an epoch takes two. A constant, so that runs in
/// which a row is repeated or weighted are evaluated, and end, at the same epochs.
const EVALUATION_COST: f64 = 2.0;

impl Solver for Subgradient {
    fn solve(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        start: Option<Start<'_>>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        error::catch(|| {
            budget.check()?;
            let output = self.output.unwrap_or_default();
            self.average_from.check()?;
            let (rows, loss, n_rows) = (problem.rows(), problem.loss(), problem.n_rows());
            let mut context = RunContext::new(budget.max_time, monitor);
            context.set_threads(self.n_threads, rows.n_stored(), rows.n_cols())?;
            let (frame, _) = Frame::new(problem, &mut context)?;
            let mut zero = Point::default();
            problem.evaluate(memory::zeros(n_rows), 1e-6, &mut zero, &mut context)?;
            let largest = largest_eigenvalue(problem, &frame, &mut context)?;
            let curvature = loss_curvature(problem) * largest;
            let rate = match self.learning_rate {
                Some(rate) => rate,
                None if loss.has_kinks() => LearningRate::Pegasos,
                None => LearningRate::Constant { eta0: None },
            };
            let (mut a, coef) = match start {
                Some(start) => (
                    start.dual_for(problem)?,
                    start.coef_for(problem)?.duplicate(),
                ),
                None => (memory::zeros(n_rows), memory::zeros(rows.n_cols())),
            };
            if problem.fit_intercept() {
                intercept::balance(&mut a, |i| problem.weight_fraction(i));
            }
            let mut run = Run {
                problem,
                steps: rate.steps(loss, problem.penalty().curvature(), curvature)?,
                before: start.map_or(Ok(0.0), |start| start.steps())?,
                iterate: Iterate { coef, a },
                intercept: zero.intercept,
                predictions: memory::zeros(n_rows),
                slopes: memory::zeros(n_rows),
                best: self.output.is_none().then_some((f64::INFINITY, None)),
                updated_at: None,
                averager: Averager::new(
                    output,
                    self.average_from,
                    1,
                    budget.max_epochs,
                    self.seed,
                    || Iterates::new(rows.n_cols() + n_rows),
                ),
            };
            let pace = Pace {
                evaluation_cost: EVALUATION_COST,
                least: 0,
                mean_q: problem.mean_q(frame.mean_sq_norm),
            };
            let before = run.before;
            let mut fit = driver::run(problem, &mut run, budget, pace, &mut context)?;
            fit.steps += before;
            Ok(fit)
        })
    }
}

/// A model and the dual point that takes the same steps.
struct Iterate {
    coef: Vec<f64>,
    a: Vec<f64>,
}

impl Iterate {
    fn duplicate(&self) -> Self {
        Self {
            coef: self.coef.duplicate(),
            a: self.a.duplicate(),
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.coef.iter().chain(&self.a).copied()
    }
}

/// A run: its iterate, and buffers.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    steps: Steps,
    /// Steps of earlier runs.
    before: f64,
    iterate: Iterate,
    /// The best `b`.
    intercept: f64,
    /// For each row: `x.w`, and the negative slope there; 0 for rows of weight 0.
    predictions: Vec<f64>,
    slopes: Vec<f64>,
    /// The least `P` of an iterate, and that iterate; `None` if another output was chosen.
    best: Option<(f64, Option<Iterate>)>,
    /// The step for which intercept, predictions and slopes are up to date.
    updated_at: Option<u64>,
    averager: Averager<Iterates>,
}

impl Run<'_, '_> {
    /// Computes predictions, intercept and slopes of the iterate after `step` steps, unless this
    /// has been done. Keeps the iterate if it is the best.
    fn update_slopes(&mut self, step: u64, context: &mut RunContext<'_>) -> Result<(), Error> {
        if self.updated_at == Some(step) {
            return Ok(());
        }
        self.updated_at = Some(step);
        let Self {
            problem,
            iterate: Iterate { coef, .. },
            predictions,
            slopes,
            ..
        } = self;
        problem.data().products(coef, predictions, context)?;
        let (predictions, loss) = (&*predictions, problem.loss());
        let minimum = if problem.fit_intercept() {
            let found = problem.best_intercept(predictions, self.intercept, 1e-13, context)?;
            let apart = intercept::kink_offset(loss, found.b, found.value);
            if apart == 0.0 {
                found
            } else {
                intercept::with_nearby_sides(found, apart, |b| {
                    problem.mean_loss(predictions, b, context)
                })?
            }
        } else {
            Minimum::at(0.0, problem.mean_loss(predictions, 0.0, context)?.0)
        };
        self.intercept = minimum.b;
        // Near a kink the slopes on both sides are mixed so that they add up to 0.
        context.fill(slopes, problem.data().block_size(), |from, slopes| {
            let block = from..from + slopes.len();
            let (p, labels) = (&predictions[block.clone()], problem.target_block(block));
            loss.mixed_dual_values(p, minimum.sides, minimum.mix, labels, slopes);
        })?;
        if problem.fit_intercept() {
            intercept::balance(slopes, |i| problem.weight_fraction(i));
        }
        if let Some((least, best)) = &mut self.best {
            let primal = minimum.value + problem.penalty().value(coef);
            if primal < *least {
                *least = primal;
                *best = Some(self.iterate.duplicate());
            }
        }
        Ok(())
    }
}

impl Process for Run<'_, '_> {
    fn epoch(&self) -> u64 {
        1
    }

    fn keep(&self) -> Keep {
        if self.best.is_some() {
            Keep::HighestBound
        } else {
            Keep::Latest
        }
    }

    fn advance(&mut self, stretch: Stretch, context: &mut RunContext<'_>) -> Result<u64, Error> {
        let Stretch { step, horizon, .. } = stretch;
        self.averager
            .before_steps(step, self.iterate.values(), horizon);
        if let Some(iterates) = self.averager.tally() {
            iterates.count(self.iterate.values());
        }
        self.update_slopes(step, context)?;
        let step = step + 1;
        let (_, decay) = self.steps.at(self.before + step as f64, 1.0);
        let problem = self.problem;
        let Iterate { coef, a } = &mut self.iterate;
        for (a, slope) in a.iter_mut().zip(&self.slopes) {
            *a = decay * *a + (1.0 - decay) * slope;
        }
        for w in &mut *coef {
            *w *= decay;
        }
        let share = |i: usize| (1.0 - decay) * problem.rate(i) * self.slopes[i];
        problem.data().add_rows(share, coef, context)?;
        if coef.iter().any(|w| !w.is_finite()) {
            return Err(Error::Diverged {
                name: "learning_rate",
            });
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
        let values = match self.averager.output_for(&evaluation, self.iterate.values()) {
            Some(values) => values,
            None if self.best.is_some() => {
                self.update_slopes(evaluation.step, context)?;
                let best = self.best.as_ref().and_then(|(_, best)| best.as_ref());
                best.unwrap_or(&self.iterate).values().into_vec()
            }
            None => self.iterate.values().into_vec(),
        };
        let problem = self.problem;
        let (coef, dual) = values.split_at(problem.n_cols());
        let dual = problem.feasible(dual.iter().copied());
        problem.evaluate_model(coef.iter().copied(), dual, precision, point, context)
    }
}
