//! Several classes: one binary problem per class (this class against the rest), over the same rows.
//!
//! The problems are independent, so the results are the same for any number of threads. While
//! worker threads are busy, the calling thread keeps checking for signals.
//!
//! A [`Classifier`](crate::classifier::Classifier) is easier to use. This module is for callers who
//! want to monitor the run or to continue from earlier fits.
//!
//! ```
//! use ndarray::array;
//! use sdca_rs::one_vs_rest::OneVsRest;
//! use sdca_rs::prelude::*;
//!
//! let x = array![[0.0, 1.0], [0.2, 0.9], [1.0, 0.0], [0.9, 0.1], [-1.0, -1.0]];
//! let data = Data::dense(&x)?;
//! let c = Regularisation::C(10.0);
//! let problems = OneVsRest::new(data, (&[0, 0, 1, 1, 2], 3), Hinge, c, true);
//! let fits = problems.fit(&Sdca::default(), &Budget::default(), None, 2, &NoMonitor)?;
//!
//! assert_eq!(fits.len(), 3);
//! assert!(fits.iter().all(|fit| fit.certificate.gap <= 1e-4 * fit.certificate.primal));
//! # Ok::<(), Error>(())
//! ```

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::data::Data;
use crate::error::Error;
use crate::loss::Loss;
use crate::memory::{self, IntoVec as _};
use crate::problem::{Problem, Regularisation};
use crate::run::{Budget, Fit, HEARTBEAT, Monitor, NoMonitor, RunContext};
use crate::solver::{CommonStart, GROUP, Solver, Start};
use crate::steps::Steps;

/// Monitors for the problems of several classes, which may be solved in several threads at a time.
pub trait Monitors: Sync {
    /// The monitor for the problem of one class; `in_caller` says whether that problem is solved in
    /// the calling thread.
    fn of_class(&self, class: usize, in_caller: bool) -> Box<dyn Monitor + '_>;

    /// Called about once every [`HEARTBEAT`] in the calling thread while other threads work. Only
    /// their monitors can end that work.
    fn idle(&self) {}
}

impl Monitors for NoMonitor {
    fn of_class(&self, _class: usize, _in_caller: bool) -> Box<dyn Monitor + '_> {
        Box::new(Self)
    }
}

/// One binary problem per class.
#[derive(Clone)]
pub struct OneVsRest<'a> {
    data: Arc<Data<'a>>,
    loss: Arc<dyn Steps>,
    classes: &'a [u32],
    n_classes: usize,
    regularisation: Regularisation,
    fit_intercept: bool,
}

impl<'a> OneVsRest<'a> {
    /// Sets up the problems for rows whose classes are numbered `0..n_classes`. See
    /// [`Problem::new`].
    pub fn new<L: Loss>(
        data: impl Into<Arc<Data<'a>>>,
        (classes, n_classes): (&'a [u32], usize),
        loss: L,
        regularisation: Regularisation,
        fit_intercept: bool,
    ) -> Self {
        let (data, loss) = (data.into(), Arc::new(loss));
        let classes = (classes, n_classes);
        Self::of(data, classes, loss, regularisation, fit_intercept)
    }

    /// See [`Self::new`].
    pub(crate) fn of(
        data: Arc<Data<'a>>,
        (classes, n_classes): (&'a [u32], usize),
        loss: Arc<dyn Steps>,
        regularisation: Regularisation,
        fit_intercept: bool,
    ) -> Self {
        Self {
            data,
            loss,
            classes,
            n_classes,
            regularisation,
            fit_intercept,
        }
    }

    /// The problem of one class, given its targets.
    fn problem<'p>(&self, targets: &'p [f64]) -> Result<Problem<'p>, Error>
    where
        'a: 'p,
    {
        let data: Arc<Data<'p>> = self.data.clone();
        let (loss, strength) = (Arc::clone(&self.loss), self.regularisation);
        Problem::of(data, targets, loss, strength, self.fit_intercept)
    }

    /// Fits all classes on up to `n_threads` threads, from `starts`, one per class, or else from 0.
    /// The `max_time` of the budget is for all of them together.
    pub fn fit(
        &self,
        solver: &dyn Solver,
        budget: &Budget,
        starts: Option<&[Start<'_>]>,
        n_threads: usize,
        monitors: &dyn Monitors,
    ) -> Result<Vec<Fit>, Error> {
        {
            let mut monitor = monitors.of_class(0, true);
            let mut context = RunContext::new(None, &mut *monitor);
            self.data.prepare(self.fit_intercept, &mut context)?;
        }
        // The same rule as in `fit_classes`.
        let in_caller = |n_jobs: usize| n_jobs.min(n_threads) <= 1;
        let groups = match starts {
            None => groups(self.n_classes, GROUP),
            Some(_) => Vec::new(),
        };
        let begin = |group: Range<u32>| {
            let first = group.start as usize;
            let targets = targets(self.classes, group.start);
            let problem = self.problem(&targets)?;
            let mut monitor = monitors.of_class(first, in_caller(groups.len()));
            solver.begin_together(&problem, self.classes, group, budget, &mut *monitor)
        };
        let begun = fit_classes(
            groups.len(),
            n_threads,
            None,
            &|k, _| begin(groups[k].clone()),
            &mut || monitors.idle(),
        )?;
        // Each class takes its own part and frees it.
        let common_starts = begun.into_iter().flatten().map(Some).map(Mutex::new);
        let common_starts: Vec<Mutex<Option<CommonStart>>> = common_starts.into_vec();
        let take = |common_start: &Mutex<Option<CommonStart>>| {
            let mut common_start = common_start.lock().unwrap_or_else(PoisonError::into_inner);
            common_start.take()
        };
        let solve = |class: usize, max_time: Option<Duration>| {
            let targets = targets(self.classes, class as u32);
            let problem = self.problem(&targets)?;
            let budget = Budget {
                max_time,
                ..budget.clone()
            };
            let mut monitor = monitors.of_class(class, in_caller(self.n_classes));
            if let Some(common_start) = common_starts.get(class).and_then(take) {
                return solver.go_on(&problem, &budget, common_start, &mut *monitor);
            }
            let start = starts.map(|starts| starts[class]);
            solver.solve(&problem, &budget, start, &mut *monitor)
        };
        let max_time = budget.max_time;
        let mut idle = || monitors.idle();
        fit_classes(self.n_classes, n_threads, max_time, &solve, &mut idle)
    }
}

/// The targets of the problem "class `class` against the rest", for numbered classes.
#[doc(hidden)]
pub fn targets(classes: &[u32], class: u32) -> Vec<f64> {
    classes
        .iter()
        .map(|&k| if k == class { 1.0 } else { -1.0 })
        .into_vec()
}

/// Splits all classes into as few groups of at most `size` as possible, of about equal size.
#[doc(hidden)]
pub fn groups(n_classes: usize, size: usize) -> Vec<Range<u32>> {
    let n_groups = n_classes.div_ceil(size);
    let bound = |k: usize| (k * n_classes / n_groups) as u32;
    (0..n_groups).map(|k| bound(k)..bound(k + 1)).collect()
}

/// A thread pool of our own: no global state, and no threads left behind for a fork to inherit.
pub(crate) fn pool(n_threads: usize) -> Result<rayon::ThreadPool, Error> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .map_err(|error| no_threads(n_threads, &error))
}

fn no_threads(n_threads: usize, error: &dyn std::error::Error) -> Error {
    Error::Parameter {
        name: "n_jobs",
        found: format!("{n_threads} ({error})"),
        expected: "a number of threads that the system grants",
    }
}

/// Returns `solve(class, time)` for all classes, computed on up to `n_threads` threads.
///
/// `time` is the share of `max_time` that the problem may take so that all classes together stay
/// within it: the time left, divided by the number of rounds of `n_threads` problems still to come.
///
/// With a single thread, `solve` runs in the calling thread and must itself check for interrupts.
/// Otherwise `idle` is called there about once every [`HEARTBEAT`]; if `idle` finds a reason to
/// stop, the caller has to make `solve` return.
///
/// Nothing here is generic in the work, so this is compiled once per type of result.
#[doc(hidden)]
pub fn fit_classes<T: Send>(
    n_classes: usize,
    n_threads: usize,
    max_time: Option<Duration>,
    solve: &(dyn Fn(usize, Option<Duration>) -> Result<T, Error> + Sync),
    idle: &mut dyn FnMut(),
) -> Result<Vec<T>, Error> {
    let n_threads = n_threads.clamp(1, n_classes.max(1));
    let started = Instant::now();
    let begun = AtomicUsize::new(0);
    let solve = |class: usize| {
        let to_come = n_classes - begun.fetch_add(1, Ordering::Relaxed);
        let rounds = to_come.div_ceil(n_threads).max(1);
        let left = max_time.map(|time| time.saturating_sub(started.elapsed()) / rounds as u32);
        solve(class, left)
    };
    let mut results = memory::with_capacity(n_classes);
    if n_threads == 1 {
        for class in 0..n_classes {
            results.push(solve(class)?);
        }
        return Ok(results);
    }
    let mut slots = memory::with_capacity(n_classes);
    slots.resize_with(n_classes, || None);
    let pool = pool(n_threads)?;
    std::thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        let (solve, slots) = (&solve, &mut slots);
        let work = move || {
            // Dropped when the work ends, even by a panic, which ends the wait below.
            let _done = done;
            let one = |(class, slot): (usize, &mut Option<T>)| {
                *slot = Some(solve(class)?);
                Ok(())
            };
            pool.install(|| slots.par_iter_mut().enumerate().try_for_each(one))
        };
        let worker = std::thread::Builder::new()
            .spawn_scoped(scope, work)
            .map_err(|error| no_threads(n_threads, &error))?;
        while waiting.recv_timeout(HEARTBEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
            idle();
        }
        worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    results.extend(slots.into_iter().flatten());
    Ok(results)
}
