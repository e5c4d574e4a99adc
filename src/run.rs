//! What all solvers share: the budget of a run, its monitor, its history and its result.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};

use crate::error::Error;
use crate::loss::{Link, Target};
use crate::memory;
use crate::threads::ThreadPool;

/// How close a run must come to the optimum, and what it may cost.
///
/// ```
/// use std::time::Duration;
///
/// use sdca_rs::run::Budget;
///
/// let budget = Budget {
///     tol: 1e-6,
///     max_time: Some(Duration::from_secs(10)),
///     ..Budget::default()
/// };
/// assert_eq!(budget.max_epochs, 1000);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Budget {
    /// Stop when `gap <= tol * primal`; 0 asks for all epochs.
    pub tol: f64,
    /// Stop after this many epochs.
    pub max_epochs: usize,
    /// Stop once this much time has passed since the start of the run.
    pub max_time: Option<Duration>,
    /// Evaluate at every multiple of this many epochs, which may be a fraction of one, for the history. It changes nothing
    /// else. `None` records the evaluations that the solver itself makes, which are few enough to cost little.
    pub record_every: Option<f64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            tol: 1e-4,
            max_epochs: 1000,
            max_time: None,
            record_every: None,
        }
    }
}

impl Budget {
    /// Checks that all settings are in range.
    pub fn check(&self) -> Result<(), Error> {
        if !(self.tol.is_finite() && self.tol >= 0.0) {
            return Err(parameter("tol", self.tol, "a finite number >= 0"));
        }
        if self.max_epochs == 0 {
            return Err(parameter("max_iter", 0, "an integer >= 1"));
        }
        match self.record_every {
            Some(every) if !(every.is_finite() && every > 0.0) => Err(parameter(
                "record_every",
                every,
                "a finite number of epochs > 0, or None",
            )),
            _ => Ok(()),
        }
    }
}

/// The error for a setting that is out of range.
pub(crate) fn parameter(name: &'static str, found: impl ToString, expected: &'static str) -> Error {
    Error::Parameter {
        name,
        found: found.to_string(),
        expected,
    }
}

/// What a model and a feasible dual point prove together: `primal - gap <= optimum <= primal`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Certificate {
    /// `P(w, b)`, recomputed from all rows.
    pub primal: f64,
    /// `D(a)`, recomputed from all rows.
    pub dual: f64,
    /// `primal - dual`: an upper bound on how far the model is above the optimum. Non-negative up
    /// to rounding.
    pub gap: f64,
    /// Number of rows of positive weight whose dual value is not zero.
    pub support: usize,
}

impl Certificate {
    /// The certificate of these two objectives.
    pub(crate) fn new(primal: f64, dual: f64, support: usize) -> Self {
        Self {
            primal,
            dual,
            gap: primal - dual,
            support,
        }
    }

    /// Whether `gap <= tol * primal`. Always false for `tol = 0`, which asks for all epochs: a gap
    /// that rounding has made zero or negative proves nothing.
    pub fn is_within(&self, tol: f64) -> bool {
        tol > 0.0 && self.gap.is_finite() && self.gap <= tol * self.primal
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum StopReason {
    /// Converged: `gap <= tol * primal`.
    Converged,
    /// The maximum number of epochs was reached.
    MaxEpochs,
    /// The time limit was reached.
    MaxTime,
    /// The monitor asked the run to stop.
    Callback,
    /// The model fits perfectly: `P` and the gap are 0 up to rounding, so the gap cannot become
    /// small relative to `P`.
    Perfect,
    /// Rounding prevents any further progress of `P` and `D`, short of the tolerance.
    Precision,
}

impl StopReason {
    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxEpochs => "max_iter",
            Self::MaxTime => "max_time",
            Self::Callback => "callback",
            Self::Perfect => "perfect",
            Self::Precision => "precision",
        }
    }
}

/// What a run is currently doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Phase {
    /// The solver's own steps.
    #[default]
    Plain,
    /// The first epoch of SDCA, done by modified SGD.
    Sgd,
    /// SDCA steps with momentum: further steps along the change that its passes have made.
    Momentum,
    /// The same, inside an outer loop of proximal point steps.
    Proximal,
    /// Newton's method.
    Newton,
}

impl Phase {
    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sgd => "sgd",
            Self::Momentum => "momentum",
            Self::Proximal => "proximal",
            Self::Newton => "newton",
        }
    }
}

/// One entry of a run's history.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// Epochs completed, possibly a fraction.
    pub epoch: f64,
    /// Seconds since the start, excluding evaluations.
    pub seconds: f64,
    /// The same in seconds of processor time: of this thread or, while several threads share the
    /// work, of the whole process.
    pub cpu_seconds: f64,
    /// The certificate of the point that would be returned now.
    pub certificate: Certificate,
    /// The phase that produced it.
    pub phase: Phase,
}

/// What a monitor receives at each evaluation.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The entry added to the history.
    pub record: Record,
    /// Coefficients of the model that would be returned now.
    pub coef: &'a [f64],
    /// Its intercept.
    pub intercept: f64,
}

/// Observes a run and may end it. Callbacks, signals and progress reports all reach the core
/// through this trait.
///
/// A closure that takes a [`Progress`] is a monitor:
///
/// ```
/// use std::ops::ControlFlow;
///
/// use sdca_rs::prelude::*;
///
/// let x = [[0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [3.0, 0.5]];
/// let y = [-1.0, -1.0, 1.0, 1.0];
/// let problem = Problem::builder(Data::dense(&x)?, &y, Log).build()?;
///
/// let mut gaps = Vec::new();
/// let mut monitor = |progress: &Progress<'_>| {
///     gaps.push(progress.record.certificate.gap);
///     ControlFlow::Continue(())
/// };
/// let fit = Sdca::default().solve(&problem, &Budget::default(), None, &mut monitor)?;
/// assert_eq!(gaps.last(), Some(&fit.certificate.gap));
/// # Ok::<(), Error>(())
/// ```
pub trait Monitor {
    /// Called at each evaluation; `Break` stops the run with [`StopReason::Callback`].
    fn record(&mut self, _progress: &Progress<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called about once every [`HEARTBEAT`], also within an epoch and within an evaluation;
    /// `Break` aborts the run with [`Error::Interrupted`].
    fn check(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// A monitor that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMonitor;

impl Monitor for NoMonitor {}

impl<F: FnMut(&Progress<'_>) -> ControlFlow<()>> Monitor for F {
    fn record(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self(progress)
    }
}

/// Time between two calls of [`Monitor::check`]. Half of the 0.2 s that we guarantee, because the
/// clock is read only once per block of rows.
pub const HEARTBEAT: Duration = Duration::from_millis(100);

/// Stored entries between two readings of the clock: well under a millisecond of work.
pub(crate) const BLOCK: usize = 1 << 17;

/// What a run carries with it: its clock, its monitor and its threads. Solvers send a heartbeat
/// after each block of rows.
pub struct RunContext<'m> {
    monitor: &'m mut dyn Monitor,
    started: Instant,
    last_heartbeat: Instant,
    evaluating: Duration,
    cpu: CpuClock,
    cpu_started: Duration,
    cpu_evaluating: Duration,
    /// Seconds of work, and of processor time, spent before the start.
    earlier: (f64, f64),
    deadline: Option<Instant>,
    pool: ThreadPool,
}

/// The smallest number of stored entries for which a pass is shared among threads.
const MIN_SHARED_ENTRIES: usize = 1 << 18;

/// The smallest number of stored entries per column for which a pass is shared: a model nearly as
/// large as the data has to travel from core to core. (On text with 7 to 16 entries per column, two
/// threads took 3 % longer than one.)
const ENTRIES_PER_COLUMN: usize = 32;

/// Parts of a pass between two heartbeats. The threads synchronise there, which costs them about as
/// much as 2 parts.
const PARTS_PER_HEARTBEAT: usize = 64;

/// Which processor time is counted.
#[derive(Debug, Clone, Copy)]
enum CpuClock {
    Thread,
    Process,
}

impl CpuClock {
    fn now(self) -> Duration {
        let now = match self {
            Self::Thread => ThreadTime::try_now().map(|time| time.as_duration()),
            Self::Process => ProcessTime::try_now().map(|time| time.as_duration()),
        };
        // Systems without such a clock report a processor time of 0.
        now.unwrap_or_default()
    }
}

impl<'m> RunContext<'m> {
    /// Starts the clock.
    pub fn new(max_time: Option<Duration>, monitor: &'m mut dyn Monitor) -> Self {
        let started = Instant::now();
        Self {
            monitor,
            started,
            last_heartbeat: started,
            evaluating: Duration::ZERO,
            cpu: CpuClock::Thread,
            cpu_started: CpuClock::Thread.now(),
            cpu_evaluating: Duration::ZERO,
            earlier: (0.0, 0.0),
            // A time limit beyond the range of the clock is no limit.
            deadline: max_time.and_then(|limit| started.checked_add(limit)),
            pool: ThreadPool::default(),
        }
    }

    /// Lets up to `n_threads` threads share the passes over `n_stored` entries in `n_cols` columns,
    /// if that is faster.
    pub(crate) fn set_threads(
        &mut self,
        n_threads: usize,
        n_stored: usize,
        n_cols: usize,
    ) -> Result<(), Error> {
        let is_worth_sharing =
            n_stored >= MIN_SHARED_ENTRIES && n_stored >= ENTRIES_PER_COLUMN.saturating_mul(n_cols);
        self.pool = ThreadPool::new(n_threads, is_worth_sharing)?;
        if self.pool.is_shared() {
            self.count_all_threads();
        }
        Ok(())
    }

    /// Calls `take(work(part))` for the parts `0..count` of a pass, in order, with heartbeats in
    /// between. The threads share the work.
    pub(crate) fn fold<T: Send>(
        &mut self,
        count: usize,
        work: impl Fn(usize) -> T + Sync,
        mut take: impl FnMut(T),
    ) -> Result<(), Error> {
        for from in (0..count).step_by(PARTS_PER_HEARTBEAT) {
            let parts = self
                .pool
                .map(from..count.min(from + PARTS_PER_HEARTBEAT), &work);
            parts.into_iter().for_each(&mut take);
            self.heartbeat()?;
        }
        Ok(())
    }

    /// Returns `work(part)` for the parts `0..count` of a pass; see [`Self::fold`].
    pub(crate) fn map<T: Send>(
        &mut self,
        count: usize,
        work: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Error> {
        let mut all = memory::with_capacity(count);
        self.fold(count, work, |result| all.push(result))?;
        Ok(all)
    }

    /// Sets `items[i] = work(i, items[i])` for all items, in parts of `size`, with heartbeats in
    /// between.
    pub(crate) fn update(
        &mut self,
        items: &mut [f64],
        size: usize,
        work: impl Fn(usize, f64) -> f64 + Sync,
    ) -> Result<(), Error> {
        self.fill(items, size, |from, items| {
            for (k, item) in items.iter_mut().enumerate() {
                *item = work(from + k, *item);
            }
        })
    }

    /// Calls `work(from, items)` for all items in parts of `size`, with heartbeats in between;
    /// `from` is the index of the first item of a part.
    pub(crate) fn fill<T: Send>(
        &mut self,
        items: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<(), Error> {
        for (stretch, items) in items.chunks_mut(PARTS_PER_HEARTBEAT * size).enumerate() {
            self.pool.for_chunks(items, size, &|number, items| {
                work((stretch * PARTS_PER_HEARTBEAT + number) * size, items);
            });
            self.heartbeat()?;
        }
        Ok(())
    }

    /// Calls `work(number, items)` for each part of `size` items, without heartbeats.
    pub(crate) fn for_chunks<T: Send>(
        &self,
        items: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        self.pool.for_chunks(items, size, &work);
    }

    /// Calls [`Monitor::check`] if that is due. To be called after each block of rows.
    pub(crate) fn heartbeat(&mut self) -> Result<(), Error> {
        if self.last_heartbeat.elapsed() < HEARTBEAT {
            return Ok(());
        }
        let answer = self.monitor.check();
        self.last_heartbeat = Instant::now();
        if answer.is_break() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// [`Self::heartbeat`] within a step that is useless unless completed: it also fails once the
    /// time is up.
    pub(crate) fn heartbeat_in_time(&mut self) -> Result<(), Error> {
        self.heartbeat()?;
        if self.is_out_of_time() {
            return Err(Error::OutOfTime);
        }
        Ok(())
    }

    /// Whether the time limit has passed.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Does work that does not count towards [`Record::seconds`].
    pub(crate) fn evaluate<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let (begun, cpu_begun) = (Instant::now(), self.cpu.now());
        let result = work(self);
        self.evaluating += begun.elapsed();
        self.cpu_evaluating += self.cpu.now().saturating_sub(cpu_begun);
        result
    }

    /// Seconds so far, excluding evaluations.
    pub(crate) fn seconds(&self) -> f64 {
        self.started
            .elapsed()
            .saturating_sub(self.evaluating)
            .as_secs_f64()
            + self.earlier.0
    }

    /// Counts the processor time of all threads from now on, because they share work.
    pub(crate) fn count_all_threads(&mut self) {
        let spent = self.cpu.now().saturating_sub(self.cpu_started);
        self.cpu = CpuClock::Process;
        self.cpu_started = self.cpu.now().saturating_sub(spent);
    }

    /// Seconds of processor time so far, excluding evaluations.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let spent = self.cpu.now().saturating_sub(self.cpu_started);
        spent.saturating_sub(self.cpu_evaluating).as_secs_f64() + self.earlier.1
    }

    /// Adds work that was done before the start: its seconds, and its seconds of processor time.
    pub(crate) fn add_earlier_time(&mut self, (seconds, cpu_seconds): (f64, f64)) {
        self.earlier.0 += seconds;
        self.earlier.1 += cpu_seconds;
    }

    /// Passes a record to the monitor.
    pub(crate) fn report(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.monitor.record(progress)
    }
}

/// The result of a run: a model, the dual point behind it, and their certificate.
///
/// Predictions need only the coefficients and the intercept. To store a fit as a model, `dual` and
/// `history`, which may be large, can be emptied.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fit {
    /// `w`.
    pub coef: Vec<f64>,
    /// `b`; 0 if there is no intercept.
    pub intercept: f64,
    /// `a`, which is feasible. For solvers that work in the dual, `w = w(a)`.
    pub dual: Vec<f64>,
    /// The certificate of exactly this `w`, `b` and `a`, recomputed from all rows.
    pub certificate: Certificate,
    /// Epochs completed; the last one may be partial.
    pub epochs: f64,
    /// Steps taken; a step visits one row, a batch of rows or all rows, depending on the solver.
    pub steps: f64,
    /// Why the run ended.
    pub stop: StopReason,
    /// The mean of `q_i = c_i |x_i|^2 / (lambda W)`: a measure of how hard the problem is for
    /// coordinate steps.
    pub mean_q: f64,
    /// All evaluations; the last one is that of `certificate`.
    pub history: Vec<Record>,
    /// The targets that the loss accepts: whether the model classifies or regresses.
    pub target: Target,
    /// What `x.w + b` means for them.
    pub link: Link,
}
