//! The threads of a run.
//!
//! Work is cut into parts that depend on the data alone, and results come back in the order of the
//! parts: they have the same bits for any number of threads.
//!
//! Nothing here is generic in the work, so that it is compiled once: it calls the work once for each
//! part.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::Error;
use crate::one_vs_rest;

/// The threads that share work.
#[derive(Debug, Default)]
pub(crate) struct ThreadPool {
    /// None beside the calling one.
    pool: Option<rayon::ThreadPool>,
}

impl ThreadPool {
    /// Up to `n_threads` threads if the work is worth sharing, else the calling one alone.
    pub(crate) fn new(n_threads: usize, is_worth_sharing: bool) -> Result<Self, Error> {
        let pool = if n_threads > 1 && is_worth_sharing {
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

    /// `work(number, items)` for each part of `size` items.
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
