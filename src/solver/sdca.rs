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
//! **Intercept.** The constraint `sum c a = 0` is met by the method of multipliers. An unregularised
//! `b` is replaced by a proximal step on it: `(lambda/(2 s)) (b - centre)^2` is added to `P`, which
//! makes `b = centre + s sum_i rate_i a_i` and turns the intercept into one more column of value
//! `sqrt(s)`. After each epoch the centre moves to `b`. The limit solves the unregularised problem
//! exactly, and evaluations certify that very problem: see [`crate::intercept`].
//!
//! The rows are centred implicitly, see [`super::frame`]: `q_i = rate_i (|x_i - mu|^2 + s)`.
//!
//! **Acceleration.** With [`Sdca::accelerate`], rows whose dual values are at rest are visited less
//! often, see [`super::passes`]; what passes change gives them momentum, see [`super::momentum`]; where
//! steps are short, they solve a sequence of easier problems, see [`super::outer`]; and a second-order
//! method finishes what would take long, see [`super::finish`]. `Run::reconsider` chooses.
//!
//! **Several classes** on sparse rows may do their first epochs together, see [`super::together`].
//!
//! **First epoch.** The modified SGD visits each row once and treats the rows seen so far as if they
//! were all: with `W_t` the weight seen up to and including row `t`, the step for it begins at the model
//! `w = (1/(lambda W_(t-1))) sum_(i < t) c_i a_i x_i` and has `q = c_t |x_t|^2 / (lambda W_t)`, as published.

use std::ops::{ControlFlow, Range};

use crate::data::rows_per_block;
use crate::error::{self, Error};
use crate::kernel::prefetch;
use crate::loss::blocks::LossBlocks;
use crate::loss::{Loss, Target};
use crate::memory;
use crate::order::{Order, Sampling};
use crate::problem::{Point, Problem};
use crate::rows::Rows;
use crate::run::{Budget, Certificate, Fit, Monitor, Phase, Record, StopReason, Watch, parameter};
use crate::solver::at_once;
use crate::solver::columns::Columns;
use crate::solver::course::{self, Pace, Process};
use crate::solver::finish::Finish;
use crate::solver::frame::{Frame, Sum};
use crate::solver::momentum::{Iterate, Momentum};
use crate::solver::newton::Newton;
use crate::solver::outer::Outer;
use crate::solver::output::{Keeper, Output, Sums, Trace, check_average_from};
use crate::solver::passes::Passes;
use crate::solver::together::{self, Head};
use crate::solver::{Solver, Start};
use crate::steps::Traced;

/// How the first epoch of a cold start is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FirstEpoch {
    /// By modified SGD where that is known to help: if the mean of `q` is at most 0.1.
    #[default]
    Auto,
    /// Like all others.
    Sdca,
    /// By modified SGD.
    Sgd,
}

impl FirstEpoch {
    /// The choice that users call `name`.
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
    /// The dual point that is returned, and evaluated on the way.
    pub output: Output,
    /// `T0` of [`Output::Average`] and [`Output::Random`] as a fraction of the run.
    pub average_from: f64,
    /// How the first epoch is done.
    pub first_epoch: FirstEpoch,
    /// Whether rows at rest are visited less often, passes have momentum, an outer loop makes short steps longer, and
    /// Newton's method takes over where it promises to be cheaper: see `passes.rs`, `momentum.rs`, `outer.rs` and
    /// `finish.rs`.
    /// It takes an order that visits each row once, and the last iterate for output. Without it, the
    /// published algorithm is followed exactly.
    pub accelerate: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Up to so many threads share the passes over all rows: evaluations, and those of Newton's
    /// method. The result does not depend on it.
    pub n_threads: usize,
}

impl Default for Sdca {
    fn default() -> Self {
        Self {
            sampling: Sampling::default(),
            output: Output::default(),
            average_from: 0.5,
            first_epoch: FirstEpoch::default(),
            accelerate: true,
            seed: 0,
            n_threads: 1,
        }
    }
}

/// Modified SGD gives a better model than a plain first epoch at almost any mean `q`, but a smaller
/// gap only if rows are small beside the regularisation. On a9a and ijcnn1 it is ahead up to about
/// 0.1, for the log loss by a factor of 10 and more at 0.01, and behind from 1 on.
const SGD_MAX_MEAN_Q: f64 = 0.1;

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
    ) -> Result<Vec<Head>, Error> {
        if !problem.rows().is_sparse() || problem.loss().target() != Target::Label {
            return Ok(Vec::new());
        }
        budget.check()?;
        let is_usual = self.accelerates()
            && self.sampling == Sampling::Permutation
            && self.first_epoch != FirstEpoch::Sgd
            && budget.record_every.is_none()
            && budget.max_time.is_none()
            && !Pace::is_small(problem);
        if !is_usual || !together::may_pay(problem, budget.tol, budget.max_epochs) {
            return Ok(Vec::new());
        }
        let order = |moving| Order::new(self.sampling, self.seed, moving);
        let mut watch = Watch::new(None, monitor);
        let columns = problem.data().columns();
        let pays = |mean_q| {
            let plain = likely_epochs(problem.loss(), mean_q) * course::epoch_work(problem);
            mean_q > SGD_MAX_MEAN_Q && Finish::work_from_zero(problem, columns) >= plain
        };
        error::catch(|| together::run(problem, classes, group, pays, order, &mut watch))
    }

    fn go_on(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        head: Head,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        error::catch(|| self.run(problem, budget, None, Some(head), monitor))
    }
}

impl Sdca {
    /// Whether [`Self::accelerate`] is asked for and possible.
    fn accelerates(&self) -> bool {
        self.accelerate && self.output == Output::Last && self.sampling != Sampling::Random
    }

    /// For [`Solver::solve`] and [`Solver::go_on`].
    fn run(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        start: Option<Start<'_>>,
        head: Option<Head>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        budget.check()?;
        check_average_from(self.average_from)?;
        let mut watch = Watch::new(budget.max_time, monitor);
        watch.engage(self.n_threads, problem.rows().n_stored(), problem.n_cols())?;
        let rows = problem.rows();
        let may_finish = self.accelerates() && budget.tol > 0.0;
        let none = Columns::default();
        let columns = if may_finish {
            problem.data().columns()
        } else {
            &none
        };
        let is_usual = start.is_none() && head.is_none() && budget.record_every.is_none();
        if may_finish
            && is_usual
            && at_once::pays(problem, columns)
            && let Some(fit) = at_once::run(problem, columns, budget, &mut watch)?
        {
            return Ok(fit);
        }
        let (state, moving) = State::new(problem, start, &mut watch)?;
        let epoch = moving.len() as u64;
        // On small data: see `Pace`.
        let studied =
            budget.record_every.is_some() || self.output != Output::Last || start.is_some();
        let finish = if studied { 0.0 } else { 1.0 };
        let pace = Pace::new(problem, epoch, finish, state.mean_q);
        let sgd = match self.first_epoch {
            _ if start.is_some() => false,
            FirstEpoch::Auto => state.mean_q <= SGD_MAX_MEAN_Q * problem.unit(),
            FirstEpoch::Sdca => false,
            FirstEpoch::Sgd => true,
        };
        let order = Order::new(self.sampling, self.seed, moving);
        let accelerate = self.accelerates();
        let mean_q = state.mean_q;
        let mut run = Run {
            problem,
            columns,
            state,
            passes: Passes::new(order, accelerate),
            keeper: Keeper::new(
                self.output,
                self.average_from,
                epoch,
                budget.max_epochs,
                self.seed,
                || Sums::new(rows.n_rows()),
            ),
            sgd,
            seen: 0.0,
            refresh_at: FIRST_REFRESH * epoch,
            may_finish,
            // Not where more than the tolerance is asked for: it is slow to the last digits.
            may_begin_outer: accelerate
                && budget.tol > 0.0
                && pace.least == 0
                && problem.penalty().dual_curvature().is_some(),
            momentum: None,
            visited: 0,
            settling: budget.record_every.map_or(epoch / SETTLING, |_| 0),
            least_dual: None,
            likely_epochs: if start.is_some() || head.is_some() {
                0.0
            } else {
                likely_epochs(problem.loss(), mean_q)
            },
            head,
            given: start.filter(|_| accelerate).map(|start| start.coef),
            spare: Point::default(),
            finish: None,
            gave_up_at: None,
            tol: budget.tol,
            max_epochs: budget.max_epochs as f64,
            block: rows_per_block(rows.n_rows(), rows.n_stored()) as u64,
        };
        course::run(problem, &mut run, budget, pace, &mut watch)
    }
}

/// All that a step needs to know of its row: two rows in a cache line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Its dual value.
    pub(crate) a: f64,
    /// `rate (|x - mu|^2 + s)`.
    pub(crate) q: f64,
    /// Its target.
    pub(crate) y: f64,
    /// `x.mu`.
    pub(crate) m: f64,
}

/// Epochs after which the sum of the rows is computed from scratch for the first time. Unless the columns are far from
/// centred, the rounding of so many changes is nothing beside what is left to gain; and evaluations compute a sum of
/// their own.
const FIRST_REFRESH: u64 = 8;

/// How many visits ahead a row is asked for, and how many ahead what says where it lies.
pub(crate) const NEAR: usize = 8;
pub(crate) const FAR: usize = 20;

/// The dual point of a run and what is kept in step with it.
pub(crate) struct State {
    rows: Vec<Row>,
    frame: Frame,
    /// `sum_i rate_i a_i (x_i - mu)`, or the `u` of the outer loop.
    sum: Sum,
    outer: Option<Outer>,
    /// What the outer loop makes of `q`: `s`, or 1 without it.
    scale: f64,
    /// Where the intercept of the centred rows is drawn to.
    centre: f64,
    /// Mean of `q` without the intercept column.
    mean_q: f64,
}

impl State {
    /// The state at the start, and the rows that steps can move: of positive weight and, without an
    /// intercept, not empty.
    fn new(
        problem: &Problem<'_>,
        start: Option<Start<'_>>,
        watch: &mut Watch<'_>,
    ) -> Result<(Self, Vec<u32>), Error> {
        let n_rows = problem.n_rows();
        let start = start.map(|start| start.dual_for(problem)).transpose()?;
        let mut rows = memory::with_capacity(n_rows);
        let frame = Frame::new(problem, watch, &mut |i, m, spread| {
            let a = start.as_ref().map_or(0.0, |start| start[i]);
            let (y, q) = (problem.target(i), problem.q(i, spread));
            rows.push(Row { a, q, y, m });
        })?;
        let mut moving = memory::with_capacity(n_rows);
        for (i, row) in rows.iter_mut().enumerate() {
            row.q += problem.q(i, frame.s);
            if row.q > 0.0 {
                moving.push(i as u32);
            } else if problem.weight(i) > 0.0 {
                // An empty row predicts 0 whatever w is: its best dual value is known at once.
                row.a = problem.loss().step(0.0, 0.0, row.a, row.y);
            }
        }
        let mut state = Self {
            rows,
            sum: Sum::new(problem.n_cols()),
            outer: None,
            scale: 1.0,
            centre: 0.0,
            mean_q: problem.mean_q(frame.mean_sq_norm),
            frame,
        };
        state.refresh(problem, watch)?;
        Ok((state, moving))
    }

    fn dual(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.rows.iter().map(|row| row.a)
    }

    fn refresh(&mut self, problem: &Problem<'_>, watch: &mut Watch<'_>) -> Result<(), Error> {
        let rows = &self.rows;
        let share = |i: usize| problem.rate(i) * rows[i].a;
        self.sum.refresh(&self.frame, problem, share, watch)?;
        if let Some(outer) = &self.outer {
            outer.apply(&mut self.sum, &self.frame);
        }
        Ok(())
    }

    /// Goes to where common epochs have ended, and returns the steps done there.
    fn adopt(
        &mut self,
        problem: &Problem<'_>,
        head: Head,
        watch: &mut Watch<'_>,
    ) -> Result<u64, Error> {
        for (row, a) in self.rows.iter_mut().zip(head.dual) {
            if row.q > 0.0 {
                row.a = a;
            }
        }
        self.centre = head.centre;
        watch.charge(head.seconds);
        self.refresh(problem, watch)?;
        Ok(head.steps)
    }

    /// Begins the outer loop.
    fn begin_outer(&mut self, smoothness: f64) {
        let outer = Outer::new(&mut self.sum, &self.frame, self.mean_q, smoothness);
        self.scale = outer.scale();
        self.outer = Some(outer);
    }

    /// This point for [`Momentum`].
    fn iterate(&mut self) -> Iterate<'_> {
        Iterate {
            rows: &mut self.rows,
            sum: &mut self.sum,
            frame: &self.frame,
            centre: self.centre,
        }
    }

    /// What is due after each pass.
    fn end_pass(&mut self) {
        self.centre += self.frame.s * self.sum.pull;
        if let Some(outer) = &mut self.outer {
            outer.end_pass(&mut self.sum, &self.frame);
        }
    }

    /// The intercept of the rows as they are, not centred; 0 without one.
    fn intercept(&self) -> f64 {
        self.centre - self.frame.mu_dot(&self.sum.v)
    }

    /// Changes the dual value of row `i` to `a`.
    #[inline(always)]
    fn set<R: Rows>(&mut self, rows: &R, problem: &Problem<'_>, i: usize, a: f64) {
        let row = &mut self.rows[i];
        let share = self.scale * problem.rate(i) * (a - row.a);
        row.a = a;
        self.sum.axpy(&self.frame, rows, i, row.m, share);
    }

    /// Asks for the memory of the visits to come after `visits[k]`.
    #[inline(always)]
    fn prefetch<R: Rows>(&self, rows: &R, visits: &[u32], k: usize) {
        if let Some(&i) = visits.get(k + FAR) {
            prefetch(&self.rows, i as usize, i as usize + 1);
            rows.prefetch_place(i as usize);
        }
        if let Some(&i) = visits.get(k + NEAR) {
            rows.prefetch(i as usize);
        }
    }

    /// SDCA steps for the rows `visits`, the first of them being step `step` of the run.
    #[inline]
    pub(crate) fn ascend<R: Rows, L: Loss>(
        &mut self,
        (rows, loss): (&R, &L),
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        trace: &mut impl Trace,
    ) {
        for (k, &i) in visits.iter().enumerate() {
            self.prefetch(rows, visits, k);
            let i = i as usize;
            let row = self.rows[i];
            let q = self.scale * row.q;
            let z = self.centre + self.sum.dot(rows, i, row.m) - q * row.a;
            let a = loss.step(z, q, row.a, row.y);
            if a != row.a {
                let gain = problem.rate(i) * q * (a - row.a) * (a - row.a);
                trace.changed(step + k as u64, i, row.a, gain);
                self.set(rows, problem, i, a);
            }
        }
    }

    /// Steps of the modified SGD; `seen` is the sum of the rates of the rows before.
    #[inline]
    pub(crate) fn descend<R: Rows, L: Loss>(
        &mut self,
        (rows, loss): (&R, &L),
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        seen: &mut f64,
        trace: &mut impl Trace,
    ) {
        for (k, &i) in visits.iter().enumerate() {
            self.prefetch(rows, visits, k);
            let i = i as usize;
            let row = self.rows[i];
            // W / W_(t-1), because sum_i rate_i = 1 / lambda; before the first row the sum is empty.
            // (Both are finite also where the first rows weigh next to nothing.)
            let all_by = |seen: f64| 1.0 / (problem.lambda() * seen).max(f64::MIN_POSITIVE);
            let of_model = if *seen > 0.0 { all_by(*seen) } else { 0.0 };
            *seen += problem.rate(i);
            // W / W_t. All dual values are 0 before their step.
            let of_step = all_by(*seen);
            let z = self.centre + of_model * self.sum.dot(rows, i, row.m);
            let a = loss.step(z, of_step * row.q, row.a, row.y);
            if a != row.a {
                trace.changed(step + k as u64, i, row.a, 0.0);
                self.set(rows, problem, i, a);
            }
        }
    }
}

/// A run: the state, the order of its steps, and what its output needs.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    /// What Newton's method has to know of them.
    columns: &'p Columns,
    state: State,
    passes: Passes,
    keeper: Keeper<Sums>,
    /// Epochs that were done before the run.
    head: Option<Head>,
    /// Whether the first epoch is done by modified SGD, and the sum of the rates that it has seen.
    sgd: bool,
    seen: f64,
    /// The step after which the sum of rows is due to be recomputed.
    refresh_at: u64,
    /// Whether Newton's method may take over, and its state once it has.
    may_finish: bool,
    /// Whether the outer loop may begin.
    may_begin_outer: bool,
    /// Momentum, once there is any.
    momentum: Option<Momentum>,
    /// Visits of the present pass so far.
    visited: usize,
    /// See [`SETTLING`].
    settling: u64,
    /// Once there has been an acceleration, after which points may also get worse: `D` where that began.
    /// Less will not do.
    least_dual: Option<f64>,
    /// The best point since then, or else nothing in particular.
    spare: Point,
    /// Epochs that it is likely to take at least; 0 if nothing is known.
    likely_epochs: f64,
    /// The model of the start, if one was given.
    given: Option<&'p [f64]>,
    finish: Option<Finish<'p, 'a>>,
    /// The epoch in which Newton's method was given up.
    gave_up_at: Option<f64>,
    /// See [`Budget`].
    tol: f64,
    max_epochs: f64,
    /// Rows between two signs of life.
    block: u64,
}

/// Epochs to come from which on the outer loop is worth its evaluations, and momentum its steps: they do little before
/// the rows at an end of their range are settled.
const MANY_EPOCHS: f64 = 10.0;

/// Momentum takes no step in the last part of an epoch before an evaluation, but where these are asked for by the user:
/// it raises `D`, but may raise `P` as well until passes have mended single rows.
const SETTLING: u64 = 2;

/// What lies behind a run as a part of the work of Newton's method, from which on that may take over although
/// the rate of the gap is no sure guide.
const PAID_FOR: f64 = 1.0 / 3.0;

/// Epochs that a run is likely to take at least, where the loss is smooth: those to the first look, and so
/// many times the mean `q` in units of the smoothness, but no more than that. On a9a and ijcnn1 from `C = 1`
/// on, on california and skin always, Newton's method from 0 takes less; with more columns, as in digits and
/// arrhythmia, a first look at the rate of the gap is cheap beside what it may save.
const EPOCHS_PER_Q: f64 = 4.0;
const LIKELY_EPOCHS: f64 = 10.0;

/// Epochs that a cold start is likely to take at least; 0 if nothing is known.
fn likely_epochs(loss: &dyn LossBlocks, mean_q: f64) -> f64 {
    if loss.smoothness() > 0.0 {
        let of_size = EPOCHS_PER_Q * mean_q / loss.smoothness();
        (course::FIRST_EVALUATION + of_size).min(LIKELY_EPOCHS)
    } else {
        0.0
    }
}

/// Part of the epochs of a run after which a gap that falls too slowly is taken for what it is.
const HOPE: f64 = 0.05;

/// The same if Newton's method is not certain to do better.
const LAST_HOPE: f64 = 0.5;

/// Epochs, beyond as many as before, that SDCA is given after Newton's method has been given up; and how
/// little `P` and `D` may change in the last half of them, as parts of `P` and of the gap, to be taken to
/// stand still.
const LAST_TRY: f64 = 50.0;
const STILL: (f64, f64) = (1e-10, 1e-2);

/// A gap up to this part of `P` may be what rounding leaves.
const CLOSE: f64 = 1e-6;

impl Run<'_, '_> {
    /// Whether rounding keeps the run where it is: neither method gets any further.
    fn stands_still(&self, history: &[Record]) -> bool {
        let (Some(since), Some(last)) = (self.gave_up_at, history.last()) else {
            return false;
        };
        let halfway = 0.5 * (since + last.epoch);
        let Some(before) = history.iter().rfind(|record| record.epoch <= halfway) else {
            return false;
        };
        let (now, before) = (last.certificate, before.certificate);
        let room = (STILL.0 * now.primal).min(STILL.1 * now.gap);
        last.epoch > 2.0 * since + LAST_TRY
            && now.gap <= CLOSE * now.primal
            && (now.primal - before.primal).abs() <= room
            && (now.dual - before.dual).abs() <= room
    }

    /// Whether many epochs are to come.
    fn is_far_from_the_end(&self, history: &[Record]) -> bool {
        course::epochs_to_come(history, self.tol).is_some_and(|to_come| to_come > MANY_EPOCHS)
    }

    /// Whether the outer loop promises to be cheaper than going on.
    ///
    /// Never for a loss without kinks whose curvature has no bound (Poisson): its steps are short where the curvature is
    /// large, whatever `q` is, and the loop takes up to ten times as many epochs. (300 x 1000, C = 100: 217 and 24.)
    fn should_begin_outer(&self, history: &[Record]) -> bool {
        let loss = self.problem.loss();
        self.is_far_from_the_end(history)
            && (loss.smoothness() > 0.0 || loss.has_kinks())
            && Outer::pays(self.state.mean_q, loss.smoothness())
    }

    /// Whether momentum promises to save epochs, where the outer loop might have begun, and has not. (In that loop it
    /// saved epochs, but no time.)
    fn should_gain_momentum(&self, history: &[Record]) -> bool {
        self.may_begin_outer && self.is_far_from_the_end(history)
    }

    /// Whether Newton's method promises to be cheaper than finding out how fast the gap falls.
    fn should_finish_at_once(&self, history: &[Record]) -> bool {
        let plain = self.likely_epochs * course::epoch_work(self.problem);
        history.len() == 1 && Finish::work_from_zero(self.problem, self.columns) < plain
    }

    /// Whether Newton's method promises to be cheaper than going on.
    fn should_finish(&self, history: &[Record]) -> bool {
        let [.., last] = history else {
            return false;
        };
        let Some(mut to_come) = course::epochs_to_come(history, self.tol) else {
            return false;
        };
        // While `P` has risen above where it began, the rate of the gap says little. (bloodcells, squared hinge,
        // C = 0.01, to 1e-4: Newton's method from epoch 2 on takes 205 ms, SDCA alone 85 ms.)
        let smoothness = self.problem.loss().smoothness();
        if smoothness > 0.0 && last.certificate.primal > history[0].certificate.primal {
            let in_theory =
                course::epochs_in_theory(last, self.tol, self.state.mean_q / smoothness);
            to_come = to_come.min(in_theory);
        }
        let epoch = course::epoch_work(self.problem);
        // Not the dual point of the evaluation: making it feasible moves values off the ends of their
        // range, where they would count as free.
        let a = |i: usize| self.state.rows[i].a;
        let (work, is_certain) = Finish::work(self.problem, self.columns, a);
        // Where the loss is smooth the gap falls steadily from the start. Elsewhere it falls slowly at
        // first: there, what lies behind must be as much as a third of what a wrong choice may cost.
        let is_steady = self.problem.loss().smoothness() > 0.0;
        // Beyond the tolerance, see `Pace::least`, every digit counts: at kinks, passes find more of them.
        if last.certificate.is_within(self.tol) && !is_steady {
            return false;
        }
        let is_paid_for = last.epoch * epoch > PAID_FOR * work;
        let hope = if is_certain { HOPE } else { LAST_HOPE };
        let is_hopeless =
            last.epoch + to_come > self.max_epochs && last.epoch > hope * self.max_epochs;
        let is_time = is_hopeless || (is_certain && (is_steady || is_paid_for));
        to_come * epoch > work && is_time
    }
}

impl Process for Run<'_, '_> {
    fn epoch(&self) -> u64 {
        self.passes.len() as u64
    }

    fn begin(&mut self, start: &Point) {
        if self.problem.fit_intercept() {
            // From the best intercept: the multiplier need not travel there. See `State::intercept`.
            self.state.centre = start.intercept + self.state.frame.mu_dot(&self.state.sum.v);
        }
    }

    fn is_ready(&self) -> Option<bool> {
        self.finish.as_ref().map(Finish::is_ready)
    }

    fn phase(&self) -> Phase {
        match (&self.finish, &self.state.outer) {
            (Some(_), _) => Phase::Newton,
            (None, Some(_)) => Phase::Proximal,
            (None, None) => Phase::Plain,
        }
    }

    fn reconsider(
        &mut self,
        point: &Point,
        history: &[Record],
        watch: &mut Watch<'_>,
    ) -> Result<ControlFlow<StopReason>, Error> {
        if let Some(finish) = &mut self.finish {
            // Small problems go on beyond the tolerance: see `Pace::least`.
            let is_within = point.certificate.is_within(self.tol);
            let tol = if is_within { f64::EPSILON } else { self.tol };
            if finish.has_failed(tol, watch)? {
                if is_within {
                    return Ok(ControlFlow::Break(StopReason::Converged));
                }
                self.finish = None;
                self.may_finish = false;
                self.gave_up_at = history.last().map(|record| record.epoch);
                self.spare.hold(point);
                self.least_dual = Some(history[0].certificate.dual);
                self.state.refresh(self.problem, watch)?;
                self.begin(point);
            }
        } else if self.stands_still(history) {
            return Ok(ControlFlow::Break(StopReason::Precision));
        } else if self.may_finish
            && (self.should_finish_at_once(history) || self.should_finish(history))
        {
            let (frame, mean_q) = (&self.state.frame, self.state.mean_q);
            let rows = (frame.mu.as_slice(), self.columns);
            // Where the losses have grown beyond those of no model at all, it is better to begin there.
            let at_zero = history[0].certificate.primal;
            let zero;
            let start = if point.certificate.primal > at_zero {
                zero = Point::zero(point.dual.len(), point.coef.len());
                &zero
            } else {
                point
            };
            // The outer loop may have gone on to a worse point.
            for (row, &a) in self.state.rows.iter_mut().zip(&point.dual) {
                row.a = a;
            }
            let target = self.tol * point.certificate.primal.min(at_zero);
            self.passes.rest();
            self.visited = 0;
            self.momentum = None;
            let newton = Newton::new(self.problem, rows, mean_q, start, target, watch)?;
            self.finish = Some(Finish::new(newton, point, self.state.outer.is_none()));
            self.spare = Point::default();
        } else if self.may_begin_outer && self.should_begin_outer(history) {
            self.may_begin_outer = false;
            self.momentum = None;
            self.spare.hold(point);
            self.least_dual = Some(point.certificate.dual);
            self.state.begin_outer(self.problem.loss().smoothness());
        } else if self.momentum.is_none()
            && self.should_gain_momentum(history)
            && let Some(curvature) = self.problem.penalty().dual_curvature()
        {
            if self.least_dual.is_none() {
                self.spare = Point::default();
            }
            self.momentum = Some(Momentum::new(&self.state.iterate(), curvature));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn advance(&mut self, step: u64, until: u64, watch: &mut Watch<'_>) -> Result<u64, Error> {
        if let Some(finish) = &mut self.finish {
            // Two passes over the rows.
            finish.step(watch)?;
            return Ok(step + 2 * self.passes.len() as u64);
        }
        if let Some(head) = self.head.take() {
            self.refresh_at = 2 * head.steps;
            return self.state.adopt(self.problem, head, watch);
        }
        let Self {
            problem,
            state,
            passes,
            keeper,
            momentum,
            visited,
            settling,
            ..
        } = self;
        let epoch = passes.len() as u64;
        let visit_work = course::epoch_work(problem) / problem.n_rows() as f64;
        let horizon = until;
        let until = (step + self.block).min(until);
        let (mut step, seen) = (step, &mut self.seen);
        // Perhaps several short passes: the clock is not read after each of them.
        while step < until {
            let sgd = self.sgd && step < epoch;
            passes.prepare(sgd);
            keeper.attend(step, state.dual(), horizon);
            let (visits, moved) = passes.next(until.min(keeper.next_event()) - step);
            let from = step + 1;
            step += visits.len() as u64;
            *visited += visits.len();
            let trace = match (keeper.tally(), moved) {
                (Some(sums), _) => Traced::Sums(sums),
                (None, Some(moved)) => Traced::Moved(moved),
                (None, None) => Traced::Nobody,
            };
            if sgd {
                let pair = problem.steps();
                pair.descend(state, problem, visits, from, seen, trace);
            } else {
                problem.steps().ascend(state, problem, visits, from, trace);
            }
            if passes.is_over() {
                state.end_pass();
                let work = std::mem::take(visited) as f64 * visit_work;
                if let Some(momentum) = momentum {
                    let may_step = horizon - step >= *settling;
                    momentum.end_pass(problem, work, may_step, state.iterate(), watch)?;
                }
                if step >= self.refresh_at {
                    state.refresh(problem, watch)?;
                    // Ever more rarely, so that it costs next to nothing.
                    self.refresh_at = step + step.clamp(epoch, 64 * epoch);
                }
            }
        }
        Ok(step)
    }

    fn certify(
        &mut self,
        step: u64,
        precision: f64,
        point: &mut Point,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        let Self {
            problem,
            state,
            spare,
            ..
        } = self;
        if let Some(finish) = &mut self.finish {
            let dual = state.rows.iter().map(|row| row.a);
            if finish.certify((self.tol, precision), dual, point, watch)? {
                for (row, &a) in state.rows.iter_mut().zip(&point.dual) {
                    row.a = a;
                }
                return Ok(());
            }
            // On its way the method may pass through worse points: they are not shown.
            return match finish.held_model() {
                None => problem.evaluate(state.dual(), precision, point, watch),
                Some(coef) => {
                    let coef = coef.iter().copied();
                    problem.evaluate_pair(coef, state.dual(), precision, point, watch)
                }
            };
        }
        point.search_from(state.intercept());
        if let Some(coef) = self.given.take() {
            // The model that the dual values came with may prove enough where their own does not, or be
            // the better one of the two.
            problem.evaluate(state.dual(), precision, point, watch)?;
            let coef = coef.iter().copied();
            problem.evaluate_pair(coef, state.dual(), precision, spare, watch)?;
            let found = spare.certificate;
            if found.is_within(self.tol) && found.gap < point.certificate.gap {
                std::mem::swap(point, spare);
            }
            return Ok(());
        }
        if state.outer.is_some() {
            let coef = state.sum.coef(&state.frame, 1.0);
            let aim = (self.tol, precision);
            problem.evaluate_either(coef, state.dual(), false, aim, point, watch)?;
            if point.certificate.is_within(self.tol) {
                return Ok(());
            }
        } else {
            match self.keeper.output(step, state.dual()) {
                None => problem.evaluate(state.dual(), precision, point, watch),
                Some(dual) => problem.evaluate(problem.feasible(dual), precision, point, watch),
            }?;
        }
        if let Some(least_dual) = self.least_dual {
            let Certificate { dual, gap, .. } = point.certificate;
            if gap <= spare.certificate.gap && dual >= least_dual {
                spare.hold(point);
            } else {
                point.hold(spare);
                problem.predict(point, watch)?;
            }
        }
        Ok(())
    }
}
