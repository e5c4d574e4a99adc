//! Several classes: one binary problem for each class against the rest, over the same rows.
//!
//! The problems do not depend on each other, so that the results are the same for any number of
//! threads. While workers are busy, the calling thread keeps looking after signals.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::error::Error;
use crate::memory::{self, IntoVec as _};
use crate::run::LOOK_EVERY;

/// The targets of the problem "class `class` against the rest", for rows whose classes are numbered.
pub fn targets(classes: &[u32], class: u32) -> Vec<f64> {
    classes
        .iter()
        .map(|&k| if k == class { 1.0 } else { -1.0 })
        .into_vec()
}

/// All classes in as few groups of up to `size` as there can be, of about the same size each.
pub fn groups(n_classes: usize, size: usize) -> Vec<Range<u32>> {
    let n_groups = n_classes.div_ceil(size);
    let bound = |k: usize| (k * n_classes / n_groups) as u32;
    (0..n_groups).map(|k| bound(k)..bound(k + 1)).collect()
}

/// Threads of our own: no global state, and nothing left behind that a fork could inherit.
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

/// The results of `solve(class, time)` for all classes, on up to `n_threads` threads.
///
/// `time` is the share of `max_time` that the problem may take, so that all classes together keep
/// to it: what is left, divided by the rounds of `n_threads` problems still to come.
///
/// `solve` must give its own signs of life when it runs in the calling thread, that is if there is
/// only one thread. Otherwise `idle` is called there about every [`LOOK_EVERY`]; it is up to the
/// caller to make `solve` end when `idle` finds a reason.
///
/// Nothing here is generic in the work, so that it is compiled once for each kind of result.
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
            // Dropped when the work ends, also by a panic: that is what ends the waiting.
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
        while waiting.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
            idle();
        }
        worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    results.extend(slots.into_iter().flatten());
    Ok(results)
}
