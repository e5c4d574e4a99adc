//! The threads that share passes over all rows.
//!
//! Work is cut into parts that depend on the data alone, and results come back in the order of the
//! parts: they have the same bits for any number of threads.

use rayon::prelude::*;

use crate::error::Error;
use crate::one_vs_rest;

/// Stored entries from which on sharing a pass is worth the handing over.
const WORTH_SHARING: usize = 1 << 18;

/// The threads of a run.
#[derive(Debug, Default)]
pub(crate) struct Crew {
    /// None beside the calling one.
    pool: Option<rayon::ThreadPool>,
}

impl Crew {
    /// Up to `n_threads` threads for passes over `n_stored` entries.
    pub(crate) fn new(n_threads: usize, n_stored: usize) -> Result<Self, Error> {
        let pool = if n_threads > 1 && n_stored >= WORTH_SHARING {
            Some(one_vs_rest::pool(n_threads)?)
        } else {
            None
        };
        Ok(Self { pool })
    }

    /// Whether there are several.
    pub(crate) fn is_shared(&self) -> bool {
        self.pool.is_some()
    }

    /// `work(part)` for each part.
    pub(crate) fn map<T: Send>(
        &self,
        parts: std::ops::Range<usize>,
        work: impl Fn(usize) -> T + Sync,
    ) -> Vec<T> {
        match &self.pool {
            Some(pool) if parts.len() > 1 => {
                pool.install(|| parts.into_par_iter().map(&work).collect())
            }
            _ => parts.map(work).collect(),
        }
    }

    /// `work(number, items)` for each part of `size` items.
    pub(crate) fn change<T: Send>(
        &self,
        items: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        match &self.pool {
            Some(pool) if items.len() > size => pool.install(|| {
                items
                    .par_chunks_mut(size)
                    .enumerate()
                    .for_each(|(number, items)| work(number, items));
            }),
            _ => items
                .chunks_mut(size)
                .enumerate()
                .for_each(|(number, items)| work(number, items)),
        }
    }
}
