//! The threads that share the work of a run.
//!
//! Work is split into parts that depend only on the data, and results are combined in the order of
//! the parts, so they are bitwise identical for any number of threads.
//!
//! Nothing here is generic in the work, so this is compiled only once. The price is one indirect
//! call per part.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::Error;
use crate::one_vs_rest;

/// A pool of threads, or the calling thread alone.
#[derive(Debug, Default)]
pub(crate) struct ThreadPool {
    /// `None`: the calling thread alone.
    pool: Option<rayon::ThreadPool>,
}

impl ThreadPool {
    /// Up to `n_threads` threads if the work is worth sharing, otherwise only the calling thread.
    pub(crate) fn new(n_threads: usize, is_worth_sharing: bool) -> Result<Self, Error> {
        let pool = if n_threads > 1 && is_worth_sharing {
            Some(one_vs_rest::pool(n_threads)?)
        } else {
            None
        };
        Ok(Self { pool })
    }

    /// Whether there are several threads.
    pub(crate) fn is_shared(&self) -> bool {
        self.pool.is_some()
    }

    /// Returns `work(part)` for each part, in order.
    pub(crate) fn map<T: Send>(
        &self,
        parts: Range<usize>,
        work: &(dyn Fn(usize) -> T + Sync),
    ) -> Vec<T> {
        match &self.pool {
            Some(pool) if parts.len() > 1 => {
                pool.install(|| parts.into_par_iter().map(work).collect())
            }
            _ => parts.map(work).collect(),
        }
    }

    /// Calls `work(number, items)` for each chunk of `size` items.
    pub(crate) fn for_chunks<T: Send>(
        &self,
        items: &mut [T],
        size: usize,
        work: &(dyn Fn(usize, &mut [T]) + Sync),
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
