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
//! With a free intercept the rows may be shifted: `x.w + b = (x - mu).w + (b + mu.w)`. The steps use
//! rows centred at their mean `mu`, for which `q_i = rate_i (|x_i - mu|^2 + s)`: columns far from 0
//! would otherwise make `q` large and convergence slow. No row is changed. With `v = sum_i rate_i a_i
//! x_i`, `pull = sum_i rate_i a_i` and `m_i = x_i.mu`, the centred `w` is `v - pull mu`, so that
//!
//! ```text
//! (x_i - mu).w + s pull = x_i.v - pull m_i + t,   t = pull (|mu|^2 + s) - mu.v
//! ```
//!
//! costs one sparse dot and three numbers, `m_i`, `pull` and `t`, the last two kept up to date.
//!
//! **First epoch.** The modified SGD visits each row once and treats the rows seen so far as if they
//! were all: the step for row `t` uses `W_t`, the weight seen up to and including it, for `W`.

use crate::error::Error;
use crate::loss::Loss;
use crate::order::{Order, Sampling};
use crate::problem::{Point, Problem, rows_per_block};
use crate::rows::Rows;
use crate::run::{Budget, Fit, Monitor, Progress, Record, StopReason, Watch, parameter};
use crate::solver::Solver;
use crate::solver::output::{Keeper, NoTrace, Output, Trace};

/// How the first epoch of a cold start is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
pub struct Sdca {
    /// The order in which rows are visited.
    pub sampling: Sampling,
    /// The dual point that is returned, and evaluated on the way.
    pub output: Output,
    /// `T0` of [`Output::Average`] and [`Output::Random`] as a fraction of the run.
    pub average_from: f64,
    /// How the first epoch is done.
    pub first_epoch: FirstEpoch,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Sdca {
    fn default() -> Self {
        Self {
            sampling: Sampling::default(),
            output: Output::default(),
            average_from: 0.5,
            first_epoch: FirstEpoch::default(),
            seed: 0,
        }
    }
}

/// Modified SGD gives a better model than a plain first epoch at almost any mean `q`, but a smaller
/// gap only if rows are small beside the regularisation. On a9a and ijcnn1 it is ahead up to about
/// 0.1, for the log loss by a factor of 10 and more at 0.01, and behind from 1 on.
const SGD_MAX_MEAN_Q: f64 = 0.1;

/// Weight `s` of the intercept column as a fraction of the mean `|x - mu|^2`. The larger, the faster the
/// centre moves; but the intercept's share of `q` makes every step shorter.
const INTERCEPT_SHARE: f64 = 0.1;

/// Least share of the intercept column in `q`. Under strong regularisation `q` is small and steps
/// are long, so that the centre may move faster than [`INTERCEPT_SHARE`] lets it.
const INTERCEPT_Q: f64 = 0.01;

/// `P` is minimised over `b` to this fraction of the tolerance (to rounding on [`SMALL`] data).
const INTERCEPT_PRECISION: f64 = 0.01;

impl Solver for Sdca {
    fn solve<R: Rows, L: Loss>(
        &self,
        problem: &Problem<'_, R, L>,
        budget: &Budget,
        start: Option<&[f64]>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        budget.check()?;
        if !(0.0..1.0).contains(&self.average_from) {
            return Err(parameter(
                "average_from",
                self.average_from,
                "a number in [0, 1)",
            ));
        }
        let mut watch = Watch::new(budget.max_time, monitor);
        let mut state = State::new(problem, start, &mut watch)?;
        Run::new(self, problem, budget, &mut state, start.is_some()).go(&mut state, &mut watch)
    }
}

/// All that a step needs to know of its row: two rows in a cache line.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Its dual value.
    a: f64,
    /// `rate (|x - mu|^2 + s)`.
    q: f64,
    /// Its target.
    y: f64,
    /// `x.mu`.
    m: f64,
}

/// The dual point of a run and what is kept in step with it.
struct State {
    rows: Vec<Row>,
    /// `sum_i rate_i a_i x_i`, up to rounding.
    v: Vec<f64>,
    /// `sum_i rate_i a_i`, up to rounding.
    pull: f64,
    /// `pull (|mu|^2 + s) - mu.v`, up to rounding.
    t: f64,
    /// The mean row; zeros without an intercept.
    mu: Vec<f64>,
    /// `|mu|^2`.
    mu_sq_norm: f64,
    /// Where the intercept of the centred rows is drawn to.
    centre: f64,
    /// Weight of the intercept column; 0 without an intercept.
    s: f64,
    /// The rows that steps can move: of positive weight and, without an intercept, not empty.
    moving: Vec<u32>,
    /// Mean of `q` without the intercept column.
    mean_q: f64,
}

impl State {
    fn new<R: Rows, L: Loss>(
        problem: &Problem<'_, R, L>,
        start: Option<&[f64]>,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Error> {
        let n_rows = problem.rows().n_rows();
        if let Some(start) = start
            && start.len() != n_rows
        {
            let why = "one for each row of X";
            return Err(Error::Length {
                name: "dual start",
                found: start.len(),
                expected: n_rows,
                why,
            });
        }
        let mu = mean_row(problem, watch)?;
        let mu_sq_norm: f64 = mu.iter().map(|m| m * m).sum();
        let loss = problem.loss();
        let mut rows = Vec::with_capacity(n_rows);
        let mut sum_sq_norm = 0.0;
        for block in problem.blocks() {
            for i in block {
                let sq_norm = problem.rows().sq_norm(i);
                let (mut m, mut spread) = (0.0, sq_norm);
                if problem.fit_intercept() {
                    m = problem.rows().dot(i, &mu);
                    // |x - mu|^2, on the safe side of what its three terms lose by cancelling: steps
                    // for too small a q would diverge.
                    let lost = 8.0 * f64::EPSILON * (sq_norm + mu_sq_norm);
                    spread = (sq_norm - 2.0 * m + mu_sq_norm).max(0.0) + lost;
                }
                sum_sq_norm += problem.weight(i) * spread;
                let (y, q) = (problem.target(i), problem.rate(i) * spread);
                if !q.is_finite() {
                    return Err(Error::Overflow {
                        what: "|x|^2 / (lambda W)",
                    });
                }
                let (low, high) = loss.dual_range(y);
                let a = match start {
                    _ if problem.weight(i) == 0.0 => 0.0,
                    Some(start) if start[i].is_finite() => start[i].max(low).min(high),
                    _ => 0.0,
                };
                rows.push(Row { a, q, y, m });
            }
            watch.beat()?;
        }
        let mean_sq_norm = sum_sq_norm / problem.total_weight();
        let mut s = 0.0;
        if problem.fit_intercept() {
            let least = INTERCEPT_Q * problem.lambda() * problem.total_weight();
            s = (INTERCEPT_SHARE * mean_sq_norm).max(least);
        }
        let mut moving = Vec::with_capacity(n_rows);
        for (i, row) in rows.iter_mut().enumerate() {
            let rate = problem.rate(i);
            row.q += rate * s;
            if row.q > 0.0 {
                moving.push(i as u32);
            } else if rate > 0.0 {
                // An empty row predicts 0 whatever w is: its best dual value is known at once.
                row.a = loss.step(0.0, 0.0, row.a, row.y);
            }
        }
        let mean_q = mean_sq_norm / (problem.lambda() * problem.total_weight());
        let (v, pull, t, centre) = (Vec::new(), 0.0, 0.0, 0.0);
        let mut state = Self {
            rows,
            v,
            pull,
            t,
            mu,
            mu_sq_norm,
            centre,
            s,
            moving,
            mean_q,
        };
        state.refresh(problem, watch)?;
        Ok(state)
    }

    fn dual(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.rows.iter().map(|row| row.a)
    }

    /// `mu.v`.
    fn mu_dot_v(&self) -> f64 {
        self.mu.iter().zip(&self.v).map(|(m, v)| m * v).sum()
    }

    /// Recomputes from the dual values what steps only update, which sheds their rounding errors.
    fn refresh<R: Rows, L: Loss>(
        &mut self,
        problem: &Problem<'_, R, L>,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        self.v.clear();
        self.v.resize(problem.rows().n_cols(), 0.0);
        self.pull = 0.0;
        for block in problem.blocks() {
            for i in block {
                let share = problem.rate(i) * self.rows[i].a;
                if share != 0.0 {
                    problem.rows().axpy(i, share, &mut self.v);
                    self.pull += share;
                }
            }
            watch.beat()?;
        }
        self.t = self.pull * (self.mu_sq_norm + self.s) - self.mu_dot_v();
        Ok(())
    }

    /// What is due after `epoch` epochs.
    fn end_epoch<R: Rows, L: Loss>(
        &mut self,
        problem: &Problem<'_, R, L>,
        epoch: u64,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        self.centre += self.s * self.pull;
        // Often while the dual values still move far, later at a cost that vanishes.
        if epoch.is_power_of_two() || epoch.is_multiple_of(64) {
            self.refresh(problem, watch)?;
        }
        Ok(())
    }

    /// `(x_i - mu).w + s pull`: the prediction without the centre.
    #[inline]
    fn deviation<R: Rows>(&self, rows: &R, i: usize) -> f64 {
        rows.dot(i, &self.v) - self.pull * self.rows[i].m + self.t
    }

    /// Changes the dual value of row `i` to `a`.
    #[inline]
    fn set<R: Rows, L: Loss>(&mut self, problem: &Problem<'_, R, L>, i: usize, a: f64) {
        let row = &mut self.rows[i];
        let share = problem.rate(i) * (a - row.a);
        row.a = a;
        problem.rows().axpy(i, share, &mut self.v);
        self.pull += share;
        self.t += share * (self.mu_sq_norm + self.s - row.m);
    }

    /// SDCA steps for the rows `visits`, the first of them being step `step` of the run.
    #[inline]
    fn ascend<R: Rows, L: Loss>(
        &mut self,
        problem: &Problem<'_, R, L>,
        visits: &[u32],
        step: u64,
        trace: &mut impl Trace,
    ) {
        for (k, &i) in visits.iter().enumerate() {
            let i = i as usize;
            let row = self.rows[i];
            let z = self.centre + self.deviation(problem.rows(), i) - row.q * row.a;
            let a = problem.loss().step(z, row.q, row.a, row.y);
            if a != row.a {
                trace.changed(step + k as u64, i, row.a);
                self.set(problem, i, a);
            }
        }
    }

    /// Steps of the modified SGD; `seen` is the sum of the rates of the rows before.
    #[inline]
    fn descend<R: Rows, L: Loss>(
        &mut self,
        problem: &Problem<'_, R, L>,
        visits: &[u32],
        step: u64,
        seen: &mut f64,
        trace: &mut impl Trace,
    ) {
        for (k, &i) in visits.iter().enumerate() {
            let i = i as usize;
            let row = self.rows[i];
            *seen += problem.rate(i);
            // W / W_t, because sum_i rate_i = 1 / lambda. All dual values are 0 before their step.
            let scale = 1.0 / (problem.lambda() * *seen);
            let z = self.centre + scale * self.deviation(problem.rows(), i);
            let a = problem.loss().step(z, scale * row.q, row.a, row.y);
            if a != row.a {
                trace.changed(step + k as u64, i, row.a);
                self.set(problem, i, a);
            }
        }
    }
}

/// The weighted mean of the rows, by which they are centred if there is an intercept.
fn mean_row<R: Rows, L: Loss>(
    problem: &Problem<'_, R, L>,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, Error> {
    let mut mean = vec![0.0; problem.rows().n_cols()];
    if problem.fit_intercept() {
        for block in problem.blocks() {
            for i in block {
                problem
                    .rows()
                    .axpy(i, problem.weight(i) / problem.total_weight(), &mut mean);
            }
            watch.beat()?;
        }
    }
    Ok(mean)
}

/// The course of a run: when to evaluate, when to stop.
struct Run<'p, 'a, R, L> {
    problem: &'p Problem<'a, R, L>,
    budget: &'p Budget,
    order: Order,
    keeper: Keeper,
    /// Whether the first epoch is done by modified SGD.
    sgd: bool,
    point: Point,
    history: Vec<Record>,
    mean_q: f64,
    /// The tolerance does not end the run before this step; see [`SMALL`].
    least: u64,
}

impl<'p, 'a, R: Rows, L: Loss> Run<'p, 'a, R, L> {
    fn new(
        sdca: &Sdca,
        problem: &'p Problem<'a, R, L>,
        budget: &'p Budget,
        state: &mut State,
        warm: bool,
    ) -> Self {
        let n_rows = problem.rows().n_rows();
        let moving = std::mem::take(&mut state.moving);
        let epoch = moving.len() as u64;
        let sgd = !warm
            && match sdca.first_epoch {
                FirstEpoch::Auto => state.mean_q <= SGD_MAX_MEAN_Q,
                FirstEpoch::Sdca => false,
                FirstEpoch::Sgd => true,
            };
        let work = epoch_work(problem);
        let plain = budget.record_every.is_none() && sdca.output == Output::Last && !warm;
        let least = if plain && work <= SMALL {
            epoch * (SMALL_WORK / work).floor() as u64
        } else {
            0
        };
        Self {
            problem,
            budget,
            order: Order::new(sdca.sampling, sdca.seed, moving),
            keeper: Keeper::new(
                sdca.output,
                sdca.average_from,
                n_rows,
                epoch,
                budget.max_epochs,
                sdca.seed,
            ),
            sgd,
            point: Point::default(),
            history: Vec::new(),
            mean_q: state.mean_q,
            least,
        }
    }

    fn go(mut self, state: &mut State, watch: &mut Watch<'_>) -> Result<Fit, Error> {
        let rows = self.problem.rows();
        let block = rows_per_block(rows.n_rows(), rows.n_stored()) as u64;
        let epoch = self.order.len() as u64;
        let last = epoch.saturating_mul(self.budget.max_epochs as u64);
        let mut step = 0;
        let mut stop = self.evaluate(state, step, watch)?;
        if self.problem.fit_intercept() {
            // From the best intercept: the multiplier need not travel there.
            state.centre = self.point.intercept + state.mu_dot_v();
        }
        let mut next_evaluation = self.next_evaluation(step).min(last);
        self.keeper.open(next_evaluation);
        // Sum of the rates that the modified SGD has seen.
        let mut seen = 0.0;
        while stop.is_none() && step < last {
            let in_epoch = step % epoch;
            let sgd = self.sgd && step < epoch;
            if in_epoch == 0 {
                if sgd {
                    self.order.next_pass();
                } else {
                    self.order.next_epoch();
                }
            }
            self.keeper.attend(step, state.dual(), next_evaluation);
            let until = (step - in_epoch + epoch)
                .min(step + block)
                .min(next_evaluation)
                .min(self.keeper.next_event());
            let visits =
                &self.order.visits()[in_epoch as usize..(in_epoch + until - step) as usize];
            match (self.keeper.sums(), sgd) {
                (None, false) => state.ascend(self.problem, visits, step + 1, &mut NoTrace),
                (Some(sums), false) => state.ascend(self.problem, visits, step + 1, sums),
                (None, true) => {
                    state.descend(self.problem, visits, step + 1, &mut seen, &mut NoTrace);
                }
                (Some(sums), true) => {
                    state.descend(self.problem, visits, step + 1, &mut seen, sums);
                }
            }
            step = until;
            watch.beat()?;
            if step % epoch == 0 {
                state.end_epoch(self.problem, step / epoch, watch)?;
            }
            let over = watch.is_over();
            if over || step == next_evaluation {
                stop = self.evaluate(state, step, watch)?;
                next_evaluation = self.next_evaluation(step).min(last);
                self.keeper.open(next_evaluation);
                if over && stop.is_none() {
                    stop = Some(StopReason::MaxTime);
                }
            }
        }
        Ok(Fit {
            coef: self.point.coef,
            intercept: self.point.intercept,
            dual: self.point.dual,
            certificate: self.point.certificate,
            epochs: self.history.last().map_or(0.0, |record| record.epoch),
            stop: match stop {
                // Also a run whose time, epochs or callback ended it: it has what was asked for.
                _ if self.point.certificate.is_within(self.budget.tol) => StopReason::Converged,
                Some(reason) => reason,
                None => StopReason::MaxEpochs,
            },
            mean_q: self.mean_q,
            history: self.history,
        })
    }

    /// Certifies what would be returned after `step` steps, and says whether that is the end.
    fn evaluate(
        &mut self,
        state: &State,
        step: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<StopReason>, Error> {
        let seconds = watch.seconds();
        watch.evaluate(|watch| {
            let precision = match self.least {
                0 => (INTERCEPT_PRECISION * self.budget.tol).clamp(1e-14, 1e-4),
                _ => 0.0,
            };
            match self.keeper.output(step, state.dual()) {
                None => self
                    .problem
                    .evaluate(state.dual(), precision, &mut self.point, watch)?,
                Some(output) => {
                    let loss = self.problem.loss();
                    // A mean of values at a limit can exceed it by rounding.
                    let feasible = output.into_iter().enumerate().map(|(i, a)| {
                        let (low, high) = loss.dual_range(self.problem.target(i));
                        a.max(low).min(high)
                    });
                    self.problem
                        .evaluate(feasible, precision, &mut self.point, watch)?;
                }
            }
            let certificate = self.point.certificate;
            if certificate.gap.is_nan() {
                return Err(Error::Overflow {
                    what: "the objective",
                });
            }
            let epoch = step as f64 / (self.order.len() as f64).max(1.0);
            let record = Record {
                epoch,
                seconds,
                certificate,
            };
            self.history.push(record);
            let Point {
                coef, intercept, ..
            } = &self.point;
            let answer = watch.show(&Progress {
                record,
                coef,
                intercept: *intercept,
            });
            let within = certificate.is_within(self.budget.tol) && step >= self.least;
            Ok(if within || self.is_perfect() {
                Some(StopReason::Converged)
            } else if answer.is_break() {
                Some(StopReason::Callback)
            } else {
                None
            })
        })
    }

    /// Whether the fit is perfect, which is worth a look only at the start and where `P` has vanished.
    fn is_perfect(&self) -> bool {
        let first = self.history[0].certificate.primal;
        let primal = self.point.certificate.primal;
        self.budget.tol > 0.0
            && (self.history.len() == 1 || primal <= 1e-8 * first)
            && self.problem.is_perfect(&self.point)
    }

    /// The step of the next evaluation, after one at `step`.
    fn next_evaluation(&self, step: u64) -> u64 {
        let epoch = self.order.len() as f64;
        if let Some(every) = self.budget.record_every {
            // The first multiple that rounds to a later step.
            let spacing = every * epoch;
            let count = ((step as f64 + 0.5) / spacing).ceil();
            return ((count * spacing).round() as u64).max(step + 1);
        }
        let tol = self.budget.tol;
        if self.point.certificate.is_within(tol) {
            return self.least.max(step + 1);
        }
        let cost = evaluation_cost(self.problem);
        (next_epoch_to_evaluate(&self.history, tol, cost) * epoch) as u64
    }
}

/// A problem is small if an epoch takes at most so much work, see [`epoch_work`]. A cold start on it
/// does at least [`SMALL_WORK`] whatever the tolerance: within a few milliseconds that usually makes
/// the result exact to rounding, so that it does not depend on the seed, or on whether a row is
/// repeated or weighted. Runs that are studied (records or outputs were asked for) end when the
/// tolerance is reached.
const SMALL: f64 = 8192.0;

/// See [`SMALL`].
const SMALL_WORK: f64 = 512.0 * SMALL;

/// Evaluations, beside the one at the start, that a run may have before their share of the time is
/// looked at: one to learn how fast the gap falls, one where that says that the tolerance is reached.
const FREE_EVALUATIONS: f64 = 2.0;

/// The epoch of the first of them.
const FIRST_EVALUATION: f64 = 2.0;

/// Share of the time that evaluations may take beyond that.
const EVALUATION_SHARE: f64 = 0.1;

/// The next whole epoch at which to evaluate, if an evaluation costs `cost` epochs: where the gap is
/// expected to reach the tolerance if it goes on falling at its latest rate, but not before the cost
/// allows it, and within four times the epochs so far. It depends on the history alone, never on the
/// clock, so that runs are reproducible.
fn next_epoch_to_evaluate(history: &[Record], tol: f64, cost: f64) -> f64 {
    let Some((now, earlier)) = history.split_last() else {
        return FIRST_EVALUATION;
    };
    let Some(before) = earlier.last() else {
        return FIRST_EVALUATION;
    };
    let done = now.epoch.floor();
    let used = earlier.len() as f64;
    let allowed = cost / EVALUATION_SHARE * (used + 1.0 - FREE_EVALUATIONS);
    let earliest = (done + 1.0).max(allowed.ceil());
    let (gap, target) = (now.certificate.gap, tol * now.certificate.primal);
    let rate = (gap / before.certificate.gap).ln() / (now.epoch - before.epoch);
    let expected = now.epoch + ((target / gap).ln() / rate).ceil();
    // NaN, or a gap that does not fall, leaves the earliest.
    if expected > now.epoch {
        expected.clamp(earliest, earliest.max(4.0 * done))
    } else {
        earliest
    }
}

/// Work of an epoch: a dot and an update per stored entry, in random order, and a step per row. The
/// unit is about a nanosecond.
fn epoch_work<R: Rows, L: Loss>(problem: &Problem<'_, R, L>) -> f64 {
    3.0 * problem.rows().n_stored() as f64 + 30.0 * problem.rows().n_rows() as f64
}

/// Cost of an evaluation in epochs: two passes in the order of memory, and some evaluations of the
/// loss per row.
fn evaluation_cost<R: Rows, L: Loss>(problem: &Problem<'_, R, L>) -> f64 {
    let per_row = if problem.fit_intercept() { 30.0 } else { 10.0 };
    let work = 2.0 * problem.rows().n_stored() as f64 + per_row * problem.rows().n_rows() as f64;
    work / epoch_work(problem)
}
