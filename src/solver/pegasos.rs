//! Pegasos: stochastic subgradient descent on `P` (Shalev-Shwartz, Singer, Srebro and Cotter,
//! 2011), for any loss and any batch size. With other step lengths it is plain SGD.
//!
//! ```text
//! w = 0;  for t = 1, 2, ...
//!     eta = 1 / (lambda t);   choose a batch of k rows out of the n
//!     w   = (1 - eta lambda) w - eta (n / (W k)) sum over the batch of c_i phi'(x_i.w) x_i
//!     w   = w min(1, radius / |w|)                                             (if asked for)
//! ```
//!
//! If `k` does not divide `n`, the last batch of an epoch has `m < k` rows. It takes the fraction
//! `m / k` of a step: `t` is the sum of these fractions up to and including its own, and
//! `eta = (m / k) / (lambda t)`. So every row has the same weight in `w`.
//!
//! `w` is stored as `scale * v`, so that the cost of a step is that of the entries of its rows, not
//! of all columns. The first factor, `1 - eta lambda` at `t = 1`, is 0: there `v` starts again from
//! 0.
//!
//! **Certificate.** `w` is a sum of (centred) rows, `w = sum_i r_i x_i`, so that
//! `a_i = r_i / rate_i` has `w(a) = w`. With steps of `1 / (lambda t)`, `a_i` is the average of
//! `-phi'` of row `i` over its visits. It lies in the dual domain, except that rows may not have
//! been drawn equally often. Clamped to the domain, and then moved onto `sum_i c_i a_i = 0` if
//! there is an intercept, it bounds the optimum from below. So does `a_i = -phi'(x_i.w)`; the
//! better one is used. A warm start continues from the dual point that it is given, which need not
//! be that of its model.
//!
//! **Projection.** At the optimum, weak duality with `phi >= 0` and `-phi*(-a) <= phi(b) + a b`
//! give `lambda |w|^2 <= P(0)`, with the best intercept `b` in `P(0)`. The radius is
//! `sqrt(P(0) / lambda)`. For the hinge without intercept, where `P(0) = 1`, it is that of the
//! paper.
//!
//! **Intercept.** It is not regularised. Rows are centred ([`super::frame`]), and `b` takes the
//! steps of a column with the value `sqrt(s)`, but none longer than the distance over which the
//! slope of the loss changes: the first steps, of length `1 / (lambda t)`, would carry it too far
//! away to return. The returned model has the best `b` for its `w`.

use std::sync::Arc;

use crate::data::{RowGeometry, rows_per_block};
use crate::error::{self, Error};
use crate::intercept;
use crate::loss::Target;
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::order::{Order, Sampling};
use crate::problem::{Point, Problem};
use crate::rows::blocks::RowBlocks;
use crate::run::{Budget, Fit, Monitor, RunContext, parameter};
use crate::solver::batch::BatchPool;
use crate::solver::driver::{self, Evaluation, Process, Stretch};
use crate::solver::frame::{Frame, Sum};
use crate::solver::output::{AverageFrom, Averager, Output, Tally};
use crate::solver::rate::{LearningRate, Steps, loss_curvature};
use crate::solver::schedule::Pace;
use crate::solver::{Solver, Start, check_length};

/// The settings of Pegasos.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Pegasos {
    /// Rows in a batch. `None` is one row, or all of them if there are at most [`Self::SMALL`],
    /// which makes the run independent of the order of rows.
    pub batch_size: Option<usize>,
    /// How batches are drawn. All but [`Sampling::Random`] divide each epoch into consecutive
    /// batches, so that [`Sampling::Permutation`] gives a random partition.
    pub sampling: Sampling,
    /// Whether `w` is kept inside the ball that contains the optimum. This is always so for a loss
    /// whose slope is neither Lipschitz-continuous nor bounded (Poisson): nothing else bounds its
    /// steps.
    pub project: bool,
    /// The lengths of the steps.
    pub learning_rate: LearningRate,
    /// The model that is evaluated and returned.
    pub output: Output,
    /// `T0` of [`Output::Average`] and [`Output::Random`].
    pub average_from: AverageFrom,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads that share a batch if it is large. The result does not depend on it.
    pub n_threads: usize,
}

impl Default for Pegasos {
    fn default() -> Self {
        Self {
            batch_size: None,
            sampling: Sampling::default(),
            project: false,
            learning_rate: LearningRate::default(),
            output: Output::default(),
            average_from: AverageFrom::default(),
            seed: 0,
            n_threads: 1,
        }
    }
}

impl Pegasos {
    /// Data of at most this many rows are one batch by default.
    pub const SMALL: usize = 100;

    fn check(&self) -> Result<(), Error> {
        self.average_from.check()?;
        if self.batch_size == Some(0) {
            return Err(parameter("batch_size", 0, "an integer >= 1"));
        }
        Ok(())
    }

    /// One epoch over rows of a stream. `stream` holds what is known from the rows before.
    ///
    /// Unless a size is given, batches have one row. `lambda` and the settings must be the same for
    /// all parts of a stream.
    pub fn partial_solve(
        &self,
        problem: &Problem<'_>,
        stream: Option<Stream>,
        monitor: &mut dyn Monitor,
    ) -> Result<Stream, Error> {
        error::catch(|| {
            self.check()?;
            let rows = problem.rows();
            let mut context = RunContext::new(None, monitor);
            if let Some(stream) = &stream {
                stream.check(rows.n_cols())?;
            }
            let scales = stream.as_ref().and_then(|stream| stream.scales.as_ref());
            let mut state = State::new(self, problem, true, scales, &mut context)?;
            let (mut mean, before) = match stream {
                None => (Model::zero(rows.n_cols()), 0.0),
                Some(stream) => {
                    state.take_model(&stream.last);
                    (stream.mean, stream.steps)
                }
            };
            let (moving, batch) = (std::mem::take(&mut state.moving), state.batch);
            let mut pool = BatchPool::new(rows, batch, self.n_threads)?;
            let mut order = Order::new(self.sampling, self.seed, moving);
            order.next_batches(batch);
            let mut tally = Scaled::new(state.values().count(), rows.n_cols());
            let mut t = before;
            // A part of a stream should be short enough to be done between two heartbeats. If it is
            // not:
            let block = rows_per_block(rows.n_rows(), rows.n_stored()).max(batch);
            for visits in order.visits().chunks(block / batch * batch) {
                for visits in visits.chunks(batch) {
                    t += visits.len() as f64 / state.full_step;
                    state.step(
                        problem,
                        &mut pool,
                        visits,
                        t,
                        Some(&mut tally),
                        &mut context,
                    )?;
                }
                context.heartbeat()?;
            }
            let batches = order.visits().len().div_ceil(batch) as u64;
            let sums = tally.take(batches, state.values());
            let pull = sums[rows.n_cols()];
            // From the sum over this part to the mean over all parts, weighted by their steps.
            let done = t - before;
            let add = |mean: &mut f64, sum: f64| *mean += (sum / batches as f64 - *mean) * done / t;
            let mut mu_dot_sum = 0.0;
            for ((mean, sum), mu) in mean.coef.iter_mut().zip(&sums).zip(&state.frame.mu) {
                let sum = sum - pull * mu;
                mu_dot_sum += mu * sum;
                add(mean, sum);
            }
            add(&mut mean.intercept, state.intercept_sum - mu_dot_sum);
            let last = state.model();
            if !(last.is_finite() && mean.is_finite()) {
                return Err(Error::Diverged {
                    name: "learning_rate",
                });
            }
            Ok(Stream {
                steps: t,
                last,
                mean,
                scales: Some(Scales {
                    mean_sq_norm: state.frame.mean_sq_norm,
                    mean_row: state.frame.mu,
                    weight: state.weight,
                    longest_step: state.longest,
                    curvature: state.curvature,
                    loss_at_zero: state.primal_at_zero,
                }),
            })
        })
    }
}

/// Coefficients and intercept.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Model {
    /// `w`.
    pub coef: Vec<f64>,
    /// `b`.
    pub intercept: f64,
}

impl Model {
    fn zero(n_cols: usize) -> Self {
        Self {
            coef: memory::zeros(n_cols),
            intercept: 0.0,
        }
    }

    fn is_finite(&self) -> bool {
        self.intercept.is_finite() && self.coef.iter().all(|w| w.is_finite())
    }
}

/// What is known about a stream of rows: see [`Pegasos::partial_solve`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stream {
    /// Steps done; one for fewer rows than a batch counts in part.
    pub steps: f64,
    /// The model after the last step.
    pub last: Model,
    /// The mean of the models before each step.
    pub mean: Model,
    /// What the first rows have determined; `None` leaves it to the next ones.
    pub scales: Option<Scales>,
}

impl Stream {
    /// A copy.
    #[cfg(feature = "python")]
    pub(crate) fn duplicate(&self) -> Self {
        let model = |model: &Model| Model {
            coef: model.coef.duplicate(),
            intercept: model.intercept,
        };
        Self {
            steps: self.steps,
            last: model(&self.last),
            mean: model(&self.mean),
            scales: self.scales.as_ref().map(|scales| Scales {
                mean_row: scales.mean_row.duplicate(),
                ..*scales
            }),
        }
    }

    /// Checks that it can continue with rows of `n_cols` columns.
    fn check(&self, n_cols: usize) -> Result<(), Error> {
        check_length("coef", &self.last.coef, n_cols)?;
        check_length("mean of coef", &self.mean.coef, n_cols)?;
        if let Some(scales) = &self.scales {
            check_length("mean row", &scales.mean_row, n_cols)?;
        }
        if !(self.steps.is_finite() && self.steps >= 0.0) {
            return Err(parameter("steps", self.steps, "a finite number >= 0"));
        }
        Ok(())
    }
}

/// What the rows of a stream have shown so far.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scales {
    /// Their mean, by which rows are centred if there is an intercept.
    pub mean_row: Vec<f64>,
    /// The mean of `|x - mean_row|^2`.
    pub mean_sq_norm: f64,
    /// The sum of their weights.
    pub weight: f64,
    /// The longest step of the intercept.
    pub longest_step: f64,
    /// A bound of the curvature of `P - (lambda/2) |w|^2` in a step.
    pub curvature: f64,
    /// The mean loss for predictions of 0.
    pub loss_at_zero: f64,
}

impl Solver for Pegasos {
    fn solve(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        start: Option<Start<'_>>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        error::catch(|| {
            budget.check()?;
            self.check()?;
            let rows = problem.rows();
            let mut context = RunContext::new(budget.max_time, monitor);
            let mut state = State::new(self, problem, false, None, &mut context)?;
            let mut before = 0.0;
            if let Some(start) = start {
                before = start.steps()?;
                state.take_model(&Model {
                    coef: start.coef_for(problem)?.duplicate(),
                    intercept: start.intercept,
                });
                // The weights of the rows in `w` are no longer known. This will do instead: a dual
                // point with which the new slopes are averaged.
                for (i, a) in start.dual_for(problem)?.into_iter().enumerate() {
                    state.r[i] = a * problem.rate(i);
                }
            }
            let (moving, batch) = (std::mem::take(&mut state.moving), state.batch);
            let epoch = moving.len().div_ceil(batch) as u64;
            let pool = BatchPool::new(rows, batch, self.n_threads)?;
            pool.count_cpu_time(&mut context);
            let (len, n_cols) = (state.values().count(), rows.n_cols());
            let pace = Pace {
                evaluation_cost: EVALUATION_COST,
                least: 0,
                mean_q: problem.mean_q(state.frame.mean_sq_norm),
            };
            let mut run = Run {
                problem,
                state,
                pool,
                order: Order::new(self.sampling, self.seed, moving),
                averager: Averager::new(
                    self.output,
                    self.average_from,
                    epoch,
                    budget.max_epochs,
                    self.seed,
                    || Scaled::new(len, n_cols),
                ),
                batch,
                before,
                block: (rows_per_block(rows.n_rows(), rows.n_stored()) / batch).max(1) as u64,
            };
            let mut fit = driver::run(problem, &mut run, budget, pace, &mut context)?;
            fit.steps = run.steps_after(fit.steps as u64);
            Ok(fit)
        })
    }
}

/// A run: the state, the order of its steps, and what its output needs.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    state: State,
    pool: BatchPool,
    order: Order,
    averager: Averager<Scaled>,
    /// Rows in a batch.
    batch: usize,
    /// Steps of earlier runs.
    before: f64,
    /// Steps between two heartbeats.
    block: u64,
}

impl Run<'_, '_> {
    /// The steps of this run and of those before after this many batches. Short batches count as
    /// fractions.
    fn steps_after(&self, batches: u64) -> f64 {
        let per_epoch = self.order.len().div_ceil(self.batch) as u64;
        let of_epoch = |batches: u64| {
            let rows = batches as usize * self.batch;
            rows.min(self.order.visits().len()) as f64 / self.state.full_step
        };
        self.before
            + (batches / per_epoch) as f64 * of_epoch(per_epoch)
            + of_epoch(batches % per_epoch)
    }
}

impl Process for Run<'_, '_> {
    fn epoch(&self) -> u64 {
        self.order.len().div_ceil(self.batch) as u64
    }

    fn advance(&mut self, stretch: Stretch, context: &mut RunContext<'_>) -> Result<u64, Error> {
        let Stretch {
            step,
            until,
            horizon,
        } = stretch;
        let epoch = self.epoch();
        let in_epoch = step % epoch;
        if in_epoch == 0 {
            self.order.next_batches(self.batch);
        }
        self.averager
            .before_steps(step, self.state.values(), horizon);
        let until = (step - in_epoch + epoch)
            .min(step + self.block)
            .min(until)
            .min(self.averager.next_event());
        let batches = self.order.visits().chunks(self.batch);
        let due = batches
            .skip(in_epoch as usize)
            .take((until - step) as usize);
        for (batches, batch) in (step + 1..).zip(due) {
            let (t, tally) = (self.steps_after(batches), self.averager.tally());
            self.state
                .step(self.problem, &mut self.pool, batch, t, tally, context)?;
        }
        if until.is_multiple_of(epoch) {
            self.state.update_t();
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
        let values = match self.averager.output_for(&evaluation, state.values()) {
            Some(values) => values,
            None => state.values().into_vec(),
        };
        let (v, rest) = values.split_at(problem.n_cols());
        let coef = v
            .iter()
            .zip(&state.frame.mu)
            .map(|(v, mu)| v - rest[0] * mu);
        if values.iter().any(|v| !v.is_finite()) {
            return Err(Error::Diverged {
                name: "learning_rate",
            });
        }
        let dual = rest[1..].iter().enumerate().map(|(i, r)| {
            let rate = problem.rate(i);
            if rate > 0.0 { r / rate } else { 0.0 }
        });
        problem.evaluate_model(coef, problem.feasible(dual), precision, point, context)
    }
}

/// Cost of an evaluation in epochs: three passes in the order of memory, where an epoch takes two in
/// random order. A constant, so that runs in which a row is repeated or weighted are evaluated, and
/// end, at the same epochs.
const EVALUATION_COST: f64 = 1.0;

/// `v` is rescaled when the scale falls below this, long before squares of `v` overflow.
const LEAST_SCALE: f64 = 1e-100;

/// The same while iterates are added up: [`Scaled`] loses as many digits as the scale has fallen
/// by.
const LEAST_TALLIED_SCALE: f64 = 1e-4;

/// The model of a run and what is kept up to date with it.
struct State {
    frame: Frame,
    /// Weight of the intercept's column.
    s: f64,
    /// The longest step of the intercept: `gamma`, or 1 for a loss with kinks.
    longest: f64,
    steps: Steps,
    /// Of the projection; infinite without one.
    radius: f64,
    /// See [`Scales`].
    weight: f64,
    curvature: f64,
    /// A bound of `lambda |w|^2` at the solution: `P` without coefficients or, in a stream, whose
    /// best intercept is not known, the mean loss for predictions of 0.
    primal_at_zero: f64,
    geometry: Arc<RowGeometry>,
    /// `w = scale sum`, a sum of centred rows.
    sum: Sum,
    scale: f64,
    /// `|w|^2 / scale^2`, if there is a projection, up to rounding.
    sq_norm: f64,
    /// The weight of each row in `sum`: `w = scale sum_i r_i (x_i - mu)`.
    r: Vec<f64>,
    /// The intercept of the centred rows, and the sum of its values before each step.
    intercept: f64,
    intercept_sum: f64,
    /// The rows of positive weight that steps use.
    moving: Vec<u32>,
    /// Rows in a batch, and in a full step. The latter has more of them in a short part of a
    /// stream.
    batch: usize,
    full_step: f64,
    /// `n / W`, by which the weights of rows have mean 1. In a stream, whose `W` is not known, 1.
    per_weight: f64,
    /// Buffers with one number for each row of a batch.
    shares: Vec<f64>,
    targets: Vec<f64>,
}

impl State {
    /// The state at the start, of a run or of a part of a stream, of which earlier parts may be known.
    fn new(
        settings: &Pegasos,
        problem: &Problem<'_>,
        stream: bool,
        scales: Option<&Scales>,
        context: &mut RunContext<'_>,
    ) -> Result<Self, Error> {
        let n_rows = problem.n_rows();
        let loss = problem.loss();
        let unbounded = loss.smoothness() == 0.0 && loss.lipschitz().is_infinite();
        let project = settings.project || unbounded;
        let (mut frame, geometry, weight) = match scales {
            None => {
                let (frame, geometry) = Frame::new(problem, context)?;
                (frame, geometry, problem.total_weight())
            }
            Some(scales) => {
                let before = (
                    scales.mean_row.as_slice(),
                    scales.mean_sq_norm,
                    scales.weight,
                );
                Frame::joined(problem, before, context)?
            }
        };
        let (mut largest, mut moving) = (0.0, memory::with_capacity(n_rows));
        for (i, &spread) in geometry.spreads.iter().enumerate() {
            if problem.weight(i) > 0.0 {
                moving.push(i as u32);
                largest = f64::max(largest, problem.weight(i) * spread);
            }
        }
        // The intercept steps by itself.
        let s = std::mem::take(&mut frame.s);
        let n_moving = moving.len() as f64;
        let auto = if !stream && moving.len() <= Pegasos::SMALL {
            moving.len()
        } else {
            1
        };
        let size = settings.batch_size.unwrap_or(auto).max(1);
        let batch = size.min(moving.len());
        let mut state = Self {
            s,
            longest: f64::INFINITY,
            steps: settings
                .learning_rate
                .steps(loss, problem.penalty().curvature(), 0.0)?,
            radius: f64::INFINITY,
            weight,
            curvature: 0.0,
            primal_at_zero: 0.0,
            geometry,
            sum: Sum::new(frame.mu.len()),
            frame,
            scale: 1.0,
            sq_norm: 0.0,
            r: memory::zeros(n_rows),
            intercept: 0.0,
            intercept_sum: 0.0,
            moving,
            batch,
            full_step: if stream { size } else { batch } as f64,
            per_weight: if stream {
                1.0
            } else {
                n_moving / problem.total_weight()
            },
            shares: Vec::new(),
            targets: Vec::new(),
        };
        state.find_scales(problem, largest);
        if scales.is_none() {
            state.find_constant(problem, context)?;
        }
        if stream {
            let zeros = memory::zeros(n_rows);
            let losses = problem.data().by_blocks(context, |block| {
                let labels = problem.target_block(block.clone());
                loss.values(&zeros[block], 0.0, labels)
            })?;
            let (mut sum, mut weight) = (losses.iter().sum::<f64>(), problem.total_weight());
            if let Some(scales) = scales {
                state.longest = state.longest.min(scales.longest_step);
                state.curvature = state.curvature.max(scales.curvature);
                sum += scales.weight * scales.loss_at_zero;
                weight += scales.weight;
            }
            state.primal_at_zero = sum / weight;
        }
        let penalty = problem.penalty();
        state.steps = settings
            .learning_rate
            .steps(loss, penalty.curvature(), state.curvature)?;
        if project {
            state.radius = penalty.radius(state.primal_at_zero);
        }
        Ok(state)
    }

    /// Computes the bounds that depend on the lengths of the rows; `largest` is the largest of
    /// `c_i |x_i - mu|^2`.
    fn find_scales(&mut self, problem: &Problem<'_>, largest: f64) {
        let (n, k) = (self.moving.len() as f64, self.batch as f64);
        // 1 except in a stream.
        let mean_weight = self.per_weight * problem.total_weight() / n;
        // For the mean of k rows out of n, drawn without replacement (Gower et al., SGD: general
        // analysis and improved rates, 2019): from the largest |x|^2 for k = 1 to the mean for k =
        // n.
        let largest = self.per_weight * (largest + self.s * max_weight(problem));
        let mean = mean_weight * (self.frame.mean_sq_norm + self.s);
        let sq_norm = if n > 1.0 {
            ((n - k) * largest + n * (k - 1.0) * mean) / (k * (n - 1.0))
        } else {
            mean
        };
        let loss_curvature = loss_curvature(problem);
        self.curvature = loss_curvature * sq_norm;
        self.longest = problem.prediction_scale() / loss_curvature;
    }

    /// Evaluates the model without coefficients: `P(0)`, and the intercept to start from.
    fn find_constant(
        &mut self,
        problem: &Problem<'_>,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let mut zero = Point::default();
        let nothing = std::iter::repeat_n(0.0, problem.n_rows());
        problem.evaluate(nothing, 1e-6, &mut zero, context)?;
        self.primal_at_zero = zero.certificate.primal;
        // The best constant often puts a whole class on the kink of the hinge, where rounding would
        // decide the first step. And the first part of a stream may contain only one class, for
        // which there is no best constant.
        let labels = problem.data().positive_rows().map(|i| problem.target(i));
        let is_safe = problem.loss().target() != Target::Label
            || (problem.loss().smoothness() > 0.0 && has_several(labels));
        if problem.fit_intercept() && is_safe {
            self.intercept = zero.intercept
                + intercept::kink_offset(problem.loss(), zero.intercept, self.primal_at_zero);
        }
        Ok(())
    }

    /// Continues from a model.
    fn take_model(&mut self, model: &Model) {
        self.sum.v.copy_from_slice(&model.coef);
        self.intercept = model.intercept + self.frame.mu_dot(&model.coef);
        self.update_t();
    }

    /// The model for the original rows, which are not centred.
    fn model(&self) -> Model {
        let coef: Vec<f64> = self.sum.coef(&self.frame, self.scale).into_vec();
        Model {
            intercept: self.intercept - self.frame.mu_dot(&coef),
            coef,
        }
    }

    /// Recomputes what steps only update, as far as that is cheap.
    fn update_t(&mut self) {
        self.sum.update_t(&self.frame);
        self.sq_norm = self.sum.sq_norm(&self.frame);
    }

    /// The iterate of the run: `v`, its pull, and `r`.
    fn values(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        let pull = std::iter::once(&self.sum.pull);
        let all = self.sum.v.iter().chain(pull).chain(&self.r);
        all.map(|v| self.scale * v)
    }

    /// A step on a batch of rows, with which there are `t` steps.
    #[inline]
    fn step(
        &mut self,
        problem: &Problem<'_>,
        pool: &mut BatchPool,
        batch: &[u32],
        t: f64,
        mut tally: Option<&mut Scaled>,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let (rows, loss) = (problem.rows(), problem.loss());
        let part = batch.len() as f64 / self.full_step;
        let (eta, decay) = self.steps.at(t, part);
        let rate = eta * self.per_weight / batch.len() as f64;
        let mut shares = std::mem::take(&mut self.shares);
        memory::resize(&mut shares, batch.len(), 0.0);
        pool.products(rows, batch, &self.sum.v, &mut shares, context)?;
        self.targets.clear();
        let targets = batch.iter().map(|&i| problem.target(i as usize));
        memory::extend(&mut self.targets, targets);
        for (share, &i) in shares.iter_mut().zip(batch) {
            let product = self.sum.centred(*share, self.geometry.m(i as usize));
            *share = self.scale * product + self.intercept;
        }
        loss.slopes(&mut shares, &self.targets);
        for (share, &i) in shares.iter_mut().zip(batch) {
            *share *= -rate * problem.weight(i as usize);
        }
        if let Some(tally) = &mut tally {
            tally.count(self.scale);
            self.intercept_sum += self.intercept;
        }
        self.scale *= decay;
        self.fold_if_due(&mut tally);
        if problem.fit_intercept() {
            let column = self.s.min(self.longest / eta);
            self.intercept += column * shares.iter().sum::<f64>();
        }
        for share in &mut shares {
            *share /= self.scale;
        }
        let projects = self.radius.is_finite();
        if projects && !pool.cover(batch.len(), self.sum.v.len()) {
            // The norm is updated row by row: a pass over the columns would take longer.
            for (&i, &share) in batch.iter().zip(&shares) {
                let i = i as usize;
                let m = self.geometry.m(i);
                let mut product = [0.0];
                rows.products(i, &self.sum.v, &mut product);
                let dot = self.sum.centred(product[0], m);
                self.sq_norm += share * (2.0 * dot + share * self.geometry.spreads[i]);
                rows.axpy(i, share, &mut self.sum.v);
                self.sum.axpy_offsets(&self.frame, m, share);
            }
        } else {
            pool.add(rows, batch, &shares, &mut self.sum.v, context)?;
            for (&i, &share) in batch.iter().zip(&shares) {
                let m = self.geometry.m(i as usize);
                self.sum.axpy_offsets(&self.frame, m, share);
            }
            if projects {
                self.sq_norm = self.sum.sq_norm(&self.frame);
            }
        }
        for (&i, &share) in batch.iter().zip(&shares) {
            self.r[i as usize] += share;
        }
        if let Some(tally) = &mut tally {
            tally.add(rows, batch, &shares);
        }
        if projects {
            let norm = self.scale * self.sq_norm.max(0.0).sqrt();
            if norm > self.radius {
                self.scale *= self.radius / norm;
            }
        }
        self.fold_if_due(&mut tally);
        if let Some(tally) = tally {
            tally.scale = self.scale;
        }
        self.shares = shares;
        Ok(())
    }

    #[inline]
    fn fold_if_due(&mut self, tally: &mut Option<&mut Scaled>) {
        let least = match tally {
            Some(_) => LEAST_TALLIED_SCALE,
            None => LEAST_SCALE,
        };
        if self.scale < least {
            self.fold(tally);
        }
    }

    /// Multiplies `v` and `r` by the scale; the model does not change.
    #[cold]
    fn fold(&mut self, tally: &mut Option<&mut Scaled>) {
        if let Some(tally) = tally {
            let all = self.sum.v.iter().chain(std::iter::once(&self.sum.pull));
            tally.rebase(all.chain(&self.r));
        }
        self.sum.scale(self.scale);
        for r in &mut self.r {
            *r *= self.scale;
        }
        self.sq_norm *= self.scale * self.scale;
        self.scale = 1.0;
    }
}

fn has_several(mut labels: impl Iterator<Item = f64>) -> bool {
    let first = labels.next();
    labels.any(|y| Some(y) != first)
}

fn max_weight(problem: &Problem<'_>) -> f64 {
    let weights = (0..problem.n_rows()).map(|i| problem.weight(i));
    weights.fold(0.0, f64::max)
}

/// Adds up the iterates `scale_t u_t` of a run whose `u` changes at few places in a step, where
/// `u = (v, pull, r)`. With `total_t = scale_1 + ... + scale_t`,
///
/// ```text
/// sum_(t <= T) scale_t u_t = total_T u_T - sum_(t < T) total_t (u_(t+1) - u_t)
/// ```
///
/// so that only the changes have to be added, to `late`.
struct Scaled {
    late: Vec<f64>,
    total: f64,
    /// The present scale.
    scale: f64,
    n_cols: usize,
}

impl Scaled {
    fn new(len: usize, n_cols: usize) -> Self {
        Self {
            late: memory::zeros(len),
            total: 0.0,
            scale: 1.0,
            n_cols,
        }
    }

    /// Counts the present iterate.
    #[inline]
    fn count(&mut self, scale: f64) {
        self.total += scale;
    }

    /// To be called when `shares` of the rows of a batch have been added to `u`.
    fn add(&mut self, rows: &dyn RowBlocks, batch: &[u32], shares: &[f64]) {
        let (columns, rest) = self.late.split_at_mut(self.n_cols);
        for (&i, &share) in batch.iter().zip(shares) {
            let late = self.total * share;
            if late != 0.0 {
                rows.axpy(i as usize, late, columns);
                rest[0] += late;
                rest[1 + i as usize] += late;
            }
        }
    }

    /// To be called before the scale is reset to 1: makes the sum so far independent of later
    /// changes of `u`.
    fn rebase<'u>(&mut self, u: impl Iterator<Item = &'u f64>) {
        for (late, u) in self.late.iter_mut().zip(u) {
            *late -= self.total * u;
        }
        self.total = 0.0;
    }
}

impl Tally for Scaled {
    fn take(&mut self, _step: u64, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let factor = self.total / self.scale;
        let sums = values
            .zip(&self.late)
            .map(|(value, late)| factor * value - late);
        let sums = sums.into_vec();
        self.late.fill(0.0);
        self.total = 0.0;
        sums
    }

    fn copy(&self) -> Self {
        Self {
            late: self.late.duplicate(),
            ..*self
        }
    }
}
