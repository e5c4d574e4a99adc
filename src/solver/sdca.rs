//! Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang, 2013, Procedure SDCA and, for the
//! first epoch, Procedure SDCA with SGD initialisation).
//!
//! ```text
//! Given rows x_i, targets y_i, weights c_i, loss phi, lambda; W = sum_i c_i
//! rate_i = c_i / (lambda W),  q_i = rate_i |x_i|^2;   a = 0, w = 0
//! repeat, for i in the order of the epoch:
//!     z   = x_i.w - q_i a_i
//!     a+  = argmax_t  -phi*(-t; y_i) - t z - q_i t^2 / 2          (the loss's `step`)
//!     w   = w + rate_i (a+ - a_i) x_i;   a_i = a+
//! until P(w(a)) - D(a) <= tol P(w(a))
//! ```
//!
//! **Intercept.** The constraint `sum c a = 0` is enforced by the method of multipliers. The
//! unregularised `b` gets a proximal term: `(lambda/(2 s)) (b - centre)^2` is added to `P`, which
//! gives `b = centre + s sum_i rate_i a_i` and turns the intercept into one more column with the
//! value `sqrt(s)`. After each epoch the centre moves to `b`. The limit solves the unregularised
//! problem exactly, and evaluations certify that problem: see [`crate::intercept`].
//!
//! The rows are centred implicitly, see [`super::frame`]: `q_i = rate_i (|x_i - mu|^2 + s)`.
//!
//! **Acceleration.** With [`Sdca::accelerate`], rows whose dual values no longer change are visited
//! less often (see [`super::passes`]), the passes get momentum (see [`super::momentum`]), a
//! sequence of easier problems is solved where steps are short (see [`super::outer`]), and Newton's
//! method takes over where SDCA would take long (see [`super::newton_phase`]). [`super::chooser`]
//! decides when.
//!
//! **Several classes** on sparse rows may share their first epochs, see [`super::together`].
//!
//! **First epoch.** Modified SGD visits each row once and treats the rows seen so far as if they
//! were all of them. With `W_t` the total weight up to and including row `t`, the step for this row
//! starts from the model `w = (1/(lambda W_(t-1))) sum_(i < t) c_i a_i x_i` and uses
//! `q = c_t |x_t|^2 / (lambda W_t)`, as published.

mod state;

pub(crate) use state::{FAR, NEAR, Row, State};

use std::ops::{ControlFlow, Range};

use crate::data::rows_per_block;
use crate::error::{self, Error};
use crate::loss::Target;
use crate::order::{Order, Sampling};
use crate::problem::{Point, Problem};
use crate::run::{
    Budget, Certificate, Fit, Monitor, Phase, Record, RunContext, StopReason, parameter,
};
use crate::solver::chooser::{self, Choice, Mechanism, Outlook, TUNING};
use crate::solver::driver::{self, Evaluation, Keep, Process, ROUNDING, Stretch};
use crate::solver::hessian::Columns;
use crate::solver::momentum::Momentum;
use crate::solver::newton::Newton;
use crate::solver::newton_phase::NewtonPhase;
use crate::solver::output::{AverageFrom, Averager, Output, Sums};
use crate::solver::passes::Passes;
use crate::solver::schedule::{self, Pace};
use crate::solver::together::{self, CommonStart};
use crate::solver::{Solver, Start};
use crate::steps::TraceKind;

/// How the first epoch of a cold start is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FirstEpoch {
    /// Modified SGD where it is known to help: if the mean of `q` is at most 0.1.
    #[default]
    Auto,
    /// An SDCA epoch, like all others.
    Sdca,
    /// Modified SGD.
    Sgd,
}

impl FirstEpoch {
    /// The variant with this name in the user interface.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "auto" => Ok(Self::Auto),
            "sdca" => Ok(Self::Sdca),
            "sgd" => Ok(Self::Sgd),
            _ => Err(parameter(
                "first_epoch",
                format!("{name:?}"),
                "one of auto, sdca, sgd",
            )),
        }
    }
}

/// The settings of SDCA.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Sdca {
    /// The order in which rows are visited.
    pub sampling: Sampling,
    /// The dual point that is evaluated and returned.
    pub output: Output,
    /// `T0` of [`Output::Average`] and [`Output::Random`].
    pub average_from: AverageFrom,
    /// How the first epoch is done.
    pub first_epoch: FirstEpoch,
    /// Whether to accelerate: rows at rest are visited less often, passes get momentum, an outer
    /// loop lengthens short steps, and Newton's method takes over where it is estimated to be
    /// cheaper. See `passes.rs`, `momentum.rs`, `outer.rs` and `newton_phase.rs`. This needs an
    /// order that visits each row once, and the last iterate as output. Without acceleration, the
    /// published algorithm is followed exactly.
    pub accelerate: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Up to this many threads share the passes over all rows, in evaluations and in Newton's
    /// method. The result does not depend on it.
    pub n_threads: usize,
}

impl Default for Sdca {
    fn default() -> Self {
        Self {
            sampling: Sampling::default(),
            output: Output::default(),
            average_from: AverageFrom::default(),
            first_epoch: FirstEpoch::default(),
            accelerate: true,
            seed: 0,
            n_threads: 1,
        }
    }
}

impl Solver for Sdca {
    fn solve(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        start: Option<Start<'_>>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        error::catch(|| self.run(problem, budget, start, None, monitor))
    }

    fn begin_together(
        &self,
        problem: &Problem<'_>,
        classes: &[u32],
        group: Range<u32>,
        budget: &Budget,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<CommonStart>, Error> {
        if !problem.rows().is_sparse() || problem.loss().target() != Target::Label {
            return Ok(Vec::new());
        }
        budget.check()?;
        let is_usual = self.accelerates()
            && self.sampling == Sampling::Permutation
            && self.first_epoch != FirstEpoch::Sgd
            && budget.max_time.is_none()
            && !Pace::is_small(problem);
        if !Mechanism::Together.is_on()
            || !is_usual
            || !together::may_pay(problem, budget.tol, budget.max_epochs)
        {
            return Ok(Vec::new());
        }
        let order = |moving| Order::new(self.sampling, self.seed, moving);
        let mut context = RunContext::new(None, monitor);
        let columns = problem.data().columns();
        let pays = |mean_q| {
            let plain = TUNING.likely_epochs(mean_q, problem.loss().smoothness())
                * schedule::epoch_work(problem);
            mean_q > TUNING.sgd_mean_q && NewtonPhase::work_from_zero(problem, columns) >= plain
        };
        error::catch(|| together::run(problem, classes, group, pays, order, &mut context))
    }

    fn go_on(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        common_start: CommonStart,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        error::catch(|| self.run(problem, budget, None, Some(common_start), monitor))
    }
}

impl Sdca {
    /// Whether [`Self::accelerate`] is set and possible.
    fn accelerates(&self) -> bool {
        self.accelerate && self.output == Output::Last && self.sampling != Sampling::Random
    }

    /// Implements [`Solver::solve`] and [`Solver::go_on`].
    fn run(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        start: Option<Start<'_>>,
        common_start: Option<CommonStart>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        budget.check()?;
        self.average_from.check()?;
        let mut context = RunContext::new(budget.max_time, monitor);
        context.set_threads(self.n_threads, problem.rows().n_stored(), problem.n_cols())?;
        let rows = problem.rows();
        let may_use_newton = self.accelerates() && budget.tol > 0.0 && Mechanism::Newton.is_on();
        let none = Columns::default();
        let columns = if may_use_newton {
            problem.data().columns()
        } else {
            &none
        };
        let (state, moving) = State::new(problem, start, &mut context)?;
        let epoch = moving.len() as u64;
        // On small data: see `Pace`.
        let is_usual = self.output == Output::Last && start.is_none();
        let effort = if is_usual { 1.0 } else { 0.0 };
        let pace = Pace::new(problem, epoch, effort, state.mean_q);
        let sgd = match self.first_epoch {
            FirstEpoch::Auto => {
                Mechanism::ModifiedSgd.is_on()
                    && state.mean_q <= TUNING.sgd_mean_q * problem.prediction_scale()
            }
            FirstEpoch::Sdca => false,
            FirstEpoch::Sgd => true,
        };
        // For a smooth loss, the first epoch by modified SGD comes closer to the optimum than a
        // start for another `C` is. A run of few epochs may be meant to continue the one before.
        let may_begin_cold = sgd
            && start.is_some()
            && self.accelerates()
            && !problem.loss().has_kinks()
            && budget.max_epochs as f64 >= TUNING.many_epochs;
        let sgd = sgd && start.is_none();
        let order = Order::new(self.sampling, self.seed, moving);
        let accelerate = self.accelerates();
        let mean_q = state.mean_q;
        let mut run = Run {
            problem,
            columns,
            state,
            passes: Passes::new(order, accelerate && Mechanism::ShortPasses.is_on()),
            averager: Averager::new(
                self.output,
                self.average_from,
                epoch,
                budget.max_epochs,
                self.seed,
                || Sums::new(rows.n_rows()),
            ),
            sgd: sgd.then_some(0.0),
            refresh_at: FIRST_REFRESH * epoch,
            may_use_newton,
            may_speed_up: accelerate
                && budget.tol > 0.0
                && pace.least == 0
                && problem.penalty().dual_curvature().is_some(),
            momentum: None,
            visited: 0,
            momentum_pause: epoch / MOMENTUM_PAUSE,
            least_dual: None,
            likely_epochs: if common_start.is_some() {
                0.0
            } else {
                TUNING.likely_epochs(mean_q, problem.loss().smoothness())
            },
            may_begin_cold,
            common_start,
            start_coef: start
                .filter(|_| accelerate)
                .map(|start| start.coef_for(problem))
                .transpose()?,
            newton_phase: None,
            gave_up_at: None,
            tol: budget.tol,
            max_epochs: budget.max_epochs as f64,
            block: rows_per_block(rows.n_rows(), rows.n_stored()) as u64,
        };
        driver::run(problem, &mut run, budget, pace, &mut context)
    }
}

/// Epochs after which the sum of the rows is first recomputed from scratch. Unless the columns are
/// far from centred, the rounding errors of so many updates are negligible beside what is left to
/// gain, and evaluations compute a sum of their own.
const FIRST_REFRESH: u64 = 8;

/// A run: the state, the order of its steps, and what its output needs.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    /// What Newton's method needs to know about the columns.
    columns: &'p Columns,
    state: State,
    passes: Passes,
    averager: Averager<Sums>,
    /// The result of common epochs, until the run continues from it.
    common_start: Option<CommonStart>,
    /// During a first epoch of modified SGD: the sum of the rates of the rows seen so far.
    sgd: Option<f64>,
    /// The step after which the sum of rows is recomputed.
    refresh_at: u64,
    /// Whether Newton's method may take over.
    may_use_newton: bool,
    /// Whether the outer loop and momentum may begin.
    may_speed_up: bool,
    /// Momentum, once it has begun.
    momentum: Option<Momentum>,
    /// Visits in the present pass so far.
    visited: usize,
    /// See [`MOMENTUM_PAUSE`].
    momentum_pause: u64,
    /// `D` where an acceleration began, once there has been one. From then on points may also get
    /// worse, and one with a lower `D` is not good enough.
    least_dual: Option<f64>,
    /// Epochs that the run is likely to take at least; 0 if unknown.
    likely_epochs: f64,
    /// The model of the start, if one was given.
    start_coef: Option<&'p [f64]>,
    /// Whether to drop the start that was given if it is not good, see `good_start` in [`TUNING`].
    may_begin_cold: bool,
    newton_phase: Option<NewtonPhase<'p, 'a>>,
    /// The epoch in which Newton's method was given up.
    gave_up_at: Option<f64>,
    /// See [`Budget`].
    tol: f64,
    max_epochs: f64,
    /// Rows between two heartbeats.
    block: u64,
}

/// Momentum takes no step in the last `1 / MOMENTUM_PAUSE` of an epoch before an evaluation: a step
/// raises `D`, but may also raise `P` until passes have corrected single rows.
const MOMENTUM_PAUSE: u64 = 2;

impl Run<'_, '_> {
    /// What is known when the run has to decide how to continue.
    fn outlook<'h>(&self, history: &'h [Record]) -> Outlook<'h> {
        let (problem, loss) = (self.problem, self.problem.loss());
        // Not the dual point of the evaluation: making it feasible moves values away from the ends
        // of their range, and they would count as free.
        let a = |i: usize| self.state.rows[i].a;
        let has_rate = schedule::epochs_to_come(history, self.tol).is_some();
        let may_begin = self.may_use_newton && self.newton_phase.is_none();
        Outlook {
            history,
            tol: self.tol,
            max_epochs: self.max_epochs,
            phase: self.phase(),
            mean_q: self.state.mean_q,
            smoothness: loss.smoothness(),
            has_kinks: loss.has_kinks(),
            epoch_work: schedule::epoch_work(problem),
            likely_epochs: self.likely_epochs,
            newton: (may_begin && has_rate).then(|| NewtonPhase::work(problem, self.columns, a)),
            newton_from_zero: (may_begin
                && history.len() == 1
                && Mechanism::NewtonFromZero.is_on())
            .then(|| NewtonPhase::work_from_zero(problem, self.columns)),
            may_speed_up: self.may_speed_up,
            newton_failures: self.newton_phase.as_ref().map_or(0, NewtonPhase::failures),
            gave_up_at: self.gave_up_at,
        }
    }

    /// Drops the start that was given, and begins with an epoch of modified SGD.
    fn begin_cold(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        let mut zero = Point::default();
        for row in self.state.rows.iter_mut().filter(|row| row.q > 0.0) {
            row.a = 0.0;
        }
        self.state.refresh(self.problem, context)?;
        let precision = schedule::intercept_precision(self.tol);
        self.problem
            .evaluate(self.state.dual(), precision, &mut zero, context)?;
        self.begin(&zero);
        self.sgd = Some(0.0);
        Ok(())
    }

    /// Starts Newton's method from the best point, or from zero if that is better.
    fn begin_newton(
        &mut self,
        best: &mut Point,
        history: &[Record],
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        if best.predictions.is_empty() {
            self.problem.predict(best, context)?;
        }
        let (frame, mean_q) = (&self.state.frame, self.state.mean_q);
        let rows = (frame.mu.as_slice(), self.columns);
        let at_zero = history[0].certificate.primal;
        let zero;
        let start = if best.certificate.primal > at_zero {
            zero = Point::zero(best.dual.len(), best.coef.len());
            &zero
        } else {
            &*best
        };
        let target = self.tol * best.certificate.primal.min(at_zero);
        self.passes.reset();
        self.visited = 0;
        self.momentum = None;
        let newton = Newton::new(self.problem, rows, mean_q, start, target, context)?;
        self.newton_phase = Some(NewtonPhase::new(newton));
        self.least_dual = Some(best.certificate.dual);
        Ok(())
    }

    /// Returns to passes, from the best point, after Newton's method has failed.
    fn give_up_newton(
        &mut self,
        best: &Point,
        history: &[Record],
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        self.newton_phase = None;
        self.may_use_newton = false;
        self.gave_up_at = history.last().map(|record| record.epoch);
        self.least_dual = Some(history[0].certificate.dual);
        for (row, &a) in self.state.rows.iter_mut().zip(&best.dual) {
            row.a = a;
        }
        self.state.refresh(self.problem, context)?;
        self.begin(best);
        Ok(())
    }

    /// Starts the outer loop, which replaces momentum.
    fn begin_outer(&mut self, best: &Point) {
        self.momentum = None;
        self.least_dual = Some(best.certificate.dual);
        self.state.begin_outer(self.problem.loss().smoothness());
    }

    fn begin_momentum(&mut self) {
        let curvature = self.problem.penalty().dual_curvature();
        self.momentum = curvature.map(|curvature| Momentum::new(&self.state.iterate(), curvature));
    }
}

impl Process for Run<'_, '_> {
    fn epoch(&self) -> u64 {
        self.passes.len() as u64
    }

    fn begin(&mut self, start: &Point) {
        if self.problem.fit_intercept() {
            // Start from the best intercept, so that the multiplier does not have to find it. See
            // `State::intercept`.
            self.state.centre = start.intercept + self.state.frame.mu_dot(&self.state.sum.v);
        }
    }

    fn is_ready(&self) -> Option<bool> {
        self.newton_phase.as_ref().map(NewtonPhase::is_ready)
    }

    fn phase(&self) -> Phase {
        if self.newton_phase.is_some() {
            Phase::Newton
        } else if self.state.outer.is_some() {
            Phase::Proximal
        } else if self.momentum.is_some() {
            Phase::Momentum
        } else if self.sgd.is_some_and(|seen| seen > 0.0) {
            Phase::Sgd
        } else {
            Phase::Plain
        }
    }

    fn keep(&self) -> Keep {
        match self.least_dual {
            Some(least_dual) => Keep::Best {
                least_dual,
                alike: if self.newton_phase.is_some() {
                    ROUNDING
                } else {
                    0.0
                },
            },
            None => Keep::Latest,
        }
    }

    fn choose(
        &mut self,
        present: Certificate,
        best: &mut Point,
        history: &[Record],
        context: &mut RunContext<'_>,
    ) -> Result<ControlFlow<StopReason>, Error> {
        if let Some(newton_phase) = &mut self.newton_phase {
            newton_phase.observe(present);
        }
        if std::mem::take(&mut self.may_begin_cold) && !present.is_within(TUNING.good_start) {
            self.begin_cold(context)?;
            return Ok(ControlFlow::Continue(()));
        }
        match chooser::choose(&self.outlook(history), &TUNING) {
            Choice::Stop(reason) => return Ok(ControlFlow::Break(reason)),
            Choice::Begin(Phase::Newton) => self.begin_newton(best, history, context)?,
            Choice::Begin(Phase::Proximal) => self.begin_outer(best),
            Choice::Begin(Phase::Momentum) => self.begin_momentum(),
            Choice::Begin(Phase::Plain | Phase::Sgd) => {
                self.give_up_newton(best, history, context)?;
            }
            Choice::GoOn => {
                if let Some(newton_phase) = &mut self.newton_phase {
                    // Small problems continue beyond the tolerance: see `Pace::least`.
                    let is_within = best.certificate.is_within(self.tol);
                    let tol = if is_within { f64::EPSILON } else { self.tol };
                    newton_phase.go_on(tol, context)?;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn advance(&mut self, stretch: Stretch, context: &mut RunContext<'_>) -> Result<u64, Error> {
        let Stretch {
            step,
            until,
            horizon,
        } = stretch;
        if let Some(newton_phase) = &mut self.newton_phase {
            // It takes two passes over the rows.
            newton_phase.step(context)?;
            return Ok(step + 2 * self.passes.len() as u64);
        }
        if let Some(common_start) = self.common_start.take() {
            self.refresh_at = 2 * common_start.steps;
            return self.state.adopt(self.problem, common_start, context);
        }
        let Self {
            problem,
            state,
            passes,
            averager,
            momentum,
            visited,
            momentum_pause,
            ..
        } = self;
        let epoch = passes.len() as u64;
        let visit_work = schedule::epoch_work(problem) / problem.n_rows() as f64;
        let until = (step + self.block).min(until);
        let mut step = step;
        // These may be several short passes; the clock is not read after each of them.
        while step < until {
            if step >= epoch {
                self.sgd = None;
            }
            passes.prepare(self.sgd.is_some());
            averager.before_steps(step, state.dual(), horizon);
            let (visits, moved) = passes.next(until.min(averager.next_event()) - step);
            let from = step + 1;
            step += visits.len() as u64;
            *visited += visits.len();
            let trace = match (averager.tally(), moved) {
                (Some(sums), _) => TraceKind::Sums(sums),
                (None, Some(moved)) => TraceKind::Moved(moved),
                (None, None) => TraceKind::None,
            };
            if let Some(seen) = &mut self.sgd {
                let pair = problem.steps();
                pair.descend(state, problem, visits, from, seen, trace);
            } else {
                problem.steps().ascend(state, problem, visits, from, trace);
            }
            if passes.is_over() {
                state.end_pass();
                let work = std::mem::take(visited) as f64 * visit_work;
                if let Some(momentum) = momentum {
                    let may_step = horizon - step >= *momentum_pause;
                    momentum.end_pass(problem, work, may_step, state.iterate(), context)?;
                }
                if step >= self.refresh_at {
                    state.refresh(problem, context)?;
                    // At growing intervals, so that the cost stays negligible.
                    self.refresh_at = step + step.clamp(epoch, 64 * epoch);
                }
            }
        }
        Ok(step)
    }

    fn evaluate(
        &mut self,
        evaluation: Evaluation<'_>,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let Self { problem, state, .. } = self;
        let precision = evaluation.precision;
        if let Some(newton_phase) = &mut self.newton_phase {
            let least_dual = self.least_dual.unwrap_or(f64::NEG_INFINITY);
            let best = (evaluation.best, least_dual);
            return newton_phase.evaluate((self.tol, precision), best, point, context);
        }
        point.search_from(state.intercept());
        let aim = (self.tol, precision);
        if state.outer.is_some() {
            let coef = state.sum.coef(&state.frame, 1.0);
            problem.evaluate_either(coef, state.dual(), false, aim, point, context)?;
            return Ok(());
        }
        if evaluation.step == 0
            && let Some(coef) = self.start_coef
        {
            return problem.evaluate_start(coef, state.dual(), aim, point, context);
        }
        match self.averager.output_for(&evaluation, state.dual()) {
            None => problem.evaluate(state.dual(), precision, point, context),
            Some(dual) => problem.evaluate(problem.feasible(dual), precision, point, context),
        }
    }
}
