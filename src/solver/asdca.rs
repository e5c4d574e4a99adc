//! Accelerated mini-batch SDCA (Shalev-Shwartz and Zhang, NIPS 2013), for smooth losses.
//!
//! ```text
//! a = 0, v = w = 0;  repeat
//!     u   = (1 - theta) w + theta v;   choose m rows I
//!     a_i = (1 - theta) a_i - theta phi'(u.x_i)      for the rows of I, independently of each other
//!     v   = w(a);   w = (1 - theta) w + theta v
//! ```
//!
//! with `rate_i = c_i / (lambda W)` and `Q = max_i rate_i |x_i|^2 / gamma`, for a loss that is
//! `1/gamma`-smooth, the theorem's choice is
//!
//! ```text
//! theta = 1/4 min(1, (Q m)^(-1/2), Q^-1)
//! ```
//!
//! model `w` lags behind `v`: `w = v + rho e`. When `v` changes, `e` changes in the same places
//! only,
//!
//! ```text
//! w+ - v+ = (1 - theta) (rho e - (v+ - v)),   so   e+ = e - (v+ - v) / rho,   rho+ = (1 - theta) rho
//! ```
//!
//! so that the cost of a step is that of the entries of its rows. `a` stays in the dual domain,
//! because it is a mean of values `-phi'`. The certificate is `P(w) - D(a)`. The intercept is that
//! of [`super::sdca`]: one more column of centred rows, whose centre moves after each epoch.

use crate::data::rows_per_block;
use crate::error::{self, Error};
use crate::memory;
use crate::order::{Order, Sampling};
use crate::problem::{Point, Problem};
use crate::run::{Budget, Fit, Monitor, RunContext, parameter};
use crate::solver::batch::BatchPool;
use crate::solver::driver::{self, Evaluation, Process, Stretch};
use crate::solver::frame::{Frame, Sum};
use crate::solver::output::{AverageFrom, Averager, Output, Sums, Trace};
use crate::solver::schedule::Pace;
use crate::solver::{Solver, Start};
use crate::theory;

/// The settings of accelerated mini-batch SDCA.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Asdca {
    /// `m`, the rows in a batch.
    pub batch_size: usize,
    /// How batches are drawn. [`Sampling::Random`], as in the paper, draws `m` different rows each
    /// time; the others divide each epoch into consecutive batches.
    pub sampling: Sampling,
    /// `theta`, in (0, 1]; `None` is the theorem's choice.
    pub theta: Option<f64>,
    /// What is evaluated and returned: `w` and `a`, or `w(a)` and `a` for an averaged or random
    /// `a`.
    pub output: Output,
    /// `T0` of [`Output::Average`] and [`Output::Random`].
    pub average_from: AverageFrom,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads that share a batch if it is large. The result does not depend on it.
    pub n_threads: usize,
}

impl Default for Asdca {
    fn default() -> Self {
        Self {
            batch_size: 100,
            sampling: Sampling::Random,
            theta: None,
            output: Output::default(),
            average_from: AverageFrom::default(),
            seed: 0,
            n_threads: 1,
        }
    }
}

impl Solver for Asdca {
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
            let gamma = problem.loss().smoothness();
            if gamma == 0.0 {
                return Err(Error::NotSmooth {
                    found: problem.loss().name(),
                    relative: problem.loss().smooth_relative(),
                });
            }
            if self.batch_size == 0 {
                return Err(parameter("batch_size", 0, "an integer >= 1"));
            }
            let rows = problem.rows();
            let mut context = RunContext::new(budget.max_time, monitor);
            let (mut state, moving) = State::new(problem, start, &mut context)?;
            let batch = self.batch_size.clamp(1, moving.len().max(1));
            state.theta = match self.theta {
                None => theory::theta(gamma / state.max_q, batch as f64),
                Some(theta) if 0.0 < theta && theta <= 1.0 => theta,
                Some(theta) => {
                    return Err(parameter("theta", theta, "a number > 0 and at most 1"));
                }
            };
            let epoch = moving.len().div_ceil(batch) as u64;
            let pool = BatchPool::new(rows, batch, self.n_threads)?;
            pool.count_cpu_time(&mut context);
            // On small data: see `Pace`. A step is a quarter as long as it could be.
            let is_usual = self.output == Output::Last && start.is_none();
            let effort = if is_usual { 8.0 } else { 0.0 };
            let pace = Pace::new(problem, epoch, effort, state.mean_q);
            let mut run = Run {
                problem,
                state,
                chosen: self.theta.is_some(),
                pool,
                order: Order::new(self.sampling, self.seed, moving),
                distinct: self.sampling == Sampling::Random,
                drawn: Vec::new(),
                averager: Averager::new(
                    self.output,
                    self.average_from,
                    epoch,
                    budget.max_epochs,
                    self.seed,
                    || Sums::new(rows.n_rows()),
                ),
                batch,
                block: (rows_per_block(rows.n_rows(), rows.n_stored()) / batch).max(1) as u64,
            };
            driver::run(problem, &mut run, budget, pace, &mut context)
        })
    }
}

/// What a step needs to know about its row.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Its dual value.
    a: f64,
    /// Its target.
    y: f64,
    /// `x.mu`.
    m: f64,
}

/// The two models of a run, as centred sums of rows.
struct State {
    rows: Vec<Row>,
    frame: Frame,
    /// `v = sum_i rate_i a_i (x_i - mu)`.
    v: Sum,
    /// `w = v + rho e`.
    e: Sum,
    rho: f64,
    theta: f64,
    /// The centre of the proximal term on the intercept of the centred rows.
    centre: f64,
    /// Mean of `q` without the intercept column, and its maximum with it.
    mean_q: f64,
    max_q: f64,
    /// Buffers with one number for each row of a batch.
    shares: Vec<f64>,
    lags: Vec<f64>,
    targets: Vec<f64>,
}

/// `e` is rescaled when `rho` falls below this.
const LEAST_RHO: f64 = 1e-100;

impl State {
    /// The state at the start, and the rows that steps can change: those of positive weight and,
    /// without an intercept, not empty.
    fn new(
        problem: &Problem<'_>,
        start: Option<Start<'_>>,
        context: &mut RunContext<'_>,
    ) -> Result<(Self, Vec<u32>), Error> {
        let n_rows = problem.n_rows();
        let start = start.map(|start| start.dual_for(problem)).transpose()?;
        let (frame, geometry) = Frame::new(problem, context)?;
        let mut rows = memory::with_capacity(n_rows);
        let mut moving = memory::with_capacity(n_rows);
        let mut max_q = 0.0;
        for (i, &spread) in geometry.spreads.iter().enumerate() {
            let mut a = start.as_ref().map_or(0.0, |start| start[i]);
            let (y, m) = (problem.target(i), geometry.m(i));
            let q = problem.q(i, spread + frame.s);
            max_q = f64::max(max_q, q);
            if q > 0.0 {
                moving.push(i as u32);
            } else if problem.weight(i) > 0.0 {
                // An empty row predicts 0 for any w, so its best dual value is known at once.
                a = problem.loss().step(0.0, 0.0, a, y);
            }
            rows.push(Row { a, y, m });
        }
        let n_cols = problem.n_cols();
        let mut state = Self {
            rows,
            v: Sum::new(n_cols),
            e: Sum::new(n_cols),
            rho: 1.0,
            theta: 1.0,
            centre: 0.0,
            mean_q: problem.mean_q(frame.mean_sq_norm),
            max_q,
            frame,
            shares: Vec::new(),
            lags: Vec::new(),
            targets: Vec::new(),
        };
        state.refresh(problem, context)?;
        Ok((state, moving))
    }

    fn dual(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.rows.iter().map(|row| row.a)
    }

    fn refresh(
        &mut self,
        problem: &Problem<'_>,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let rows = &self.rows;
        let share = |i: usize| problem.rate(i) * rows[i].a;
        self.v.refresh(&self.frame, problem, share, context)?;
        self.e.update_t(&self.frame);
        Ok(())
    }

    /// `u.x_i + b` for the rows of a batch.
    fn predict(
        &mut self,
        problem: &Problem<'_>,
        pool: &BatchPool,
        batch: &[u32],
        out: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let rows = problem.rows();
        memory::resize(&mut self.lags, batch.len(), 0.0);
        pool.products(rows, batch, &self.v.v, out, context)?;
        pool.products(rows, batch, &self.e.v, &mut self.lags, context)?;
        for ((p, lag), &i) in out.iter_mut().zip(&self.lags).zip(batch) {
            let m = self.rows[i as usize].m;
            let lag = (1.0 - self.theta) * self.rho * self.e.centred(*lag, m);
            *p = self.centre + self.v.centred(*p, m) + lag;
        }
        Ok(())
    }

    /// Step `step` of the run, counted from 1, on a batch of rows.
    fn step(
        &mut self,
        problem: &Problem<'_>,
        pool: &mut BatchPool,
        batch: &[u32],
        step: u64,
        mut sums: Option<&mut Sums>,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let (rows, theta) = (problem.rows(), self.theta);
        let mut shares = std::mem::take(&mut self.shares);
        memory::resize(&mut shares, batch.len(), 0.0);
        // First compute the new dual values, all of them from the same u.
        self.predict(problem, pool, batch, &mut shares, context)?;
        self.targets.clear();
        let targets = batch.iter().map(|&i| self.rows[i as usize].y);
        memory::extend(&mut self.targets, targets);
        problem.loss().slopes(&mut shares, &self.targets);
        for (share, &i) in shares.iter_mut().zip(batch) {
            let row = &mut self.rows[i as usize];
            let a = (1.0 - theta) * row.a - theta * *share;
            if let Some(sums) = &mut sums {
                sums.changed(step, i as usize, row.a, 0.0);
            }
            *share = problem.rate(i as usize) * (a - row.a);
            row.a = a;
        }
        pool.add(rows, batch, &shares, &mut self.v.v, context)?;
        for (&i, &share) in batch.iter().zip(&shares) {
            self.v
                .axpy_offsets(&self.frame, self.rows[i as usize].m, share);
        }
        for share in &mut shares {
            *share /= -self.rho;
        }
        pool.add(rows, batch, &shares, &mut self.e.v, context)?;
        for (&i, &share) in batch.iter().zip(&shares) {
            self.e
                .axpy_offsets(&self.frame, self.rows[i as usize].m, share);
        }
        self.shares = shares;
        self.rho *= 1.0 - theta;
        if self.rho < LEAST_RHO {
            self.e.scale(self.rho);
            self.rho = 1.0;
        }
        Ok(())
    }
}

/// A run: the state, the order of its steps, and what its output needs.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    state: State,
    /// Whether `theta` is not the theorem's.
    chosen: bool,
    pool: BatchPool,
    order: Order,
    /// Whether each batch is drawn separately, without repeated rows.
    distinct: bool,
    drawn: Vec<u32>,
    averager: Averager<Sums>,
    /// Rows in a batch.
    batch: usize,
    /// Steps between two heartbeats.
    block: u64,
}

impl Process for Run<'_, '_> {
    fn epoch(&self) -> u64 {
        self.order.len().div_ceil(self.batch) as u64
    }

    fn begin(&mut self, start: &Point) {
        if self.problem.fit_intercept() {
            // Start from the best intercept, so that the multiplier does not have to find it.
            self.state.centre = start.intercept + self.state.frame.mu_dot(&self.state.v.v);
        }
    }

    fn advance(&mut self, stretch: Stretch, context: &mut RunContext<'_>) -> Result<u64, Error> {
        let Stretch {
            step,
            until,
            horizon,
        } = stretch;
        let epoch = self.epoch();
        let in_epoch = step % epoch;
        if in_epoch == 0 && !self.distinct {
            self.order.next_epoch();
        }
        self.averager.before_steps(step, self.state.dual(), horizon);
        let until = (step - in_epoch + epoch)
            .min(step + self.block)
            .min(until)
            .min(self.averager.next_event());
        for step in step..until {
            let batch = if self.distinct {
                self.order.draw(self.batch, &mut self.drawn);
                &self.drawn[..]
            } else {
                let from = (step % epoch) as usize * self.batch;
                let visits = self.order.visits();
                &visits[from..visits.len().min(from + self.batch)]
            };
            let sums = self.averager.tally();
            self.state
                .step(self.problem, &mut self.pool, batch, step + 1, sums, context)?;
        }
        if until.is_multiple_of(epoch) {
            self.state.centre += self.state.frame.s * self.state.v.pull;
            let epochs = until / epoch;
            if epochs.is_power_of_two() || epochs.is_multiple_of(64) {
                self.state.refresh(self.problem, context)?;
            }
        }
        Ok(until)
    }

    fn evaluate(
        &mut self,
        evaluation: Evaluation<'_>,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let precision = evaluation.precision;
        let Self { problem, state, .. } = self;
        if let Some(dual) = self.averager.output_for(&evaluation, state.dual()) {
            problem.evaluate(problem.feasible(dual), precision, point, context)?;
        } else {
            let lag = state.e.coef(&state.frame, state.rho);
            let coef = state.v.coef(&state.frame, 1.0).zip(lag);
            let coef = coef.map(|(v, lag)| v + lag);
            let dual = problem.feasible(state.dual());
            problem.evaluate_pair(coef, dual, precision, point, context)?;
        }
        // The theorem's theta cannot diverge: if the gap is not finite there, the numbers
        // themselves are too large.
        if self.chosen && !point.certificate.gap.is_finite() {
            return Err(Error::Diverged { name: "theta" });
        }
        Ok(())
    }
}
