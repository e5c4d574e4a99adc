//! Several classes: one binary problem for each class against the rest, over the same rows.
//!
//! The problems do not depend on each other, so that the results are the same for any number of
//! threads. While workers are busy, the calling thread keeps looking after signals.

use std::sync::mpsc;

use rayon::prelude::*;

use crate::error::Error;
use crate::run::{Fit, LOOK_EVERY};

/// The targets of the problem "class `class` against the rest", for rows whose classes are numbered.
pub fn targets(classes: &[u32], class: u32) -> Vec<f64> {
    classes
        .iter()
        .map(|&k| if k == class { 1.0 } else { -1.0 })
        .collect()
}

/// The fits of `solve(class)` for all classes, on up to `n_threads` threads.
///
/// `solve` must give its own signs of life when it runs in the calling thread, that is if there is
/// only one thread. Otherwise `idle` is called there about every [`LOOK_EVERY`]; it is up to the
/// caller to make `solve` end when `idle` finds a reason.
pub fn fit_classes(
    n_classes: usize,
    n_threads: usize,
    solve: impl Fn(usize) -> Result<Fit, Error> + Sync,
    mut idle: impl FnMut(),
) -> Result<Vec<Fit>, Error> {
    let n_threads = n_threads.min(n_classes);
    if n_threads <= 1 {
        return (0..n_classes).map(solve).collect();
    }
    // A pool of our own: no global state, and nothing left behind that a fork could inherit.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .map_err(|error| Error::Parameter {
            name: "n_jobs",
            found: format!("{n_threads} ({error})"),
            expected: "a number of threads that the system grants",
        })?;
    std::thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        let solve = &solve;
        let worker = scope.spawn(move || {
            // Dropped when the work ends, also by a panic: that is what ends the waiting.
            let _done = done;
            pool.install(|| (0..n_classes).into_par_iter().map(solve).collect())
        });
        while waiting.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
            idle();
        }
        worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
