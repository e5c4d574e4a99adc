//! Work on many rows at a time, shared by threads if there is enough of it.
//!
//! Whether and where work is divided depends on the rows alone, and the results are combined in a
//! fixed order, so they have the same bits for any number of threads.

use crate::error::Error;
use crate::memory;
use crate::rows::blocks::RowBlocks;
use crate::run::{BLOCK, RunContext};
use crate::threads::ThreadPool;

/// Stored entries that make a piece of work worth handing to another thread: about 20 microseconds.
const PIECE: usize = 1 << 14;

/// Maximum number of pieces of a sum over rows: each needs the memory of a model.
const MAX_PIECES: usize = 8;

/// A sum is divided only if each piece has at least this many times as many entries as the model
/// that it adds.
const ENTRIES_PER_COLUMN: usize = 8;

/// The thread pool of a run, for batches of rows.
pub(crate) struct BatchPool {
    pool: ThreadPool,
    /// Mean number of entries in a row, at least 1.
    per_row: usize,
    /// The sums of pieces.
    partial_sums: Vec<Vec<f64>>,
}

impl BatchPool {
    /// Up to `n_threads` threads for batches of `batch` rows; only the calling one if such batches
    /// are too small to share.
    pub(crate) fn new(rows: &dyn RowBlocks, batch: usize, n_threads: usize) -> Result<Self, Error> {
        let per_row = (rows.n_stored() / rows.n_rows()).max(1);
        Ok(Self {
            pool: ThreadPool::new(n_threads, batch.saturating_mul(per_row) >= 2 * PIECE)?,
            per_row,
            partial_sums: Vec::new(),
        })
    }

    /// Makes the run context count the processor time of all threads, if there are several.
    pub(crate) fn count_cpu_time(&self, context: &mut RunContext<'_>) {
        if self.pool.is_shared() {
            context.count_all_threads();
        }
    }

    /// Rows between two heartbeats.
    fn stride(&self) -> usize {
        (8 * BLOCK / self.per_row).max(1)
    }

    /// Whether `n_rows` rows have at least as many entries as a model of `n_cols` columns.
    pub(crate) fn cover(&self, n_rows: usize, n_cols: usize) -> bool {
        n_rows.saturating_mul(self.per_row) >= n_cols
    }

    /// `out[k] = x_(rows[k]).w`. With many rows, there are heartbeats in between.
    pub(crate) fn products(
        &self,
        x: &dyn RowBlocks,
        rows: &[u32],
        w: &[f64],
        out: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let stride = self.stride();
        if rows.len() <= stride {
            self.products_of_part(x, rows, w, out);
            return Ok(());
        }
        for (rows, out) in rows.chunks(stride).zip(out.chunks_mut(stride)) {
            self.products_of_part(x, rows, w, out);
            context.heartbeat()?;
        }
        Ok(())
    }

    /// `sum += sum_k shares[k] x_(rows[k])`. With many rows, there are heartbeats in between.
    pub(crate) fn add(
        &mut self,
        x: &dyn RowBlocks,
        rows: &[u32],
        shares: &[f64],
        sum: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let stride = self.stride();
        if rows.len() <= stride {
            self.add_part(x, rows, shares, sum);
            return Ok(());
        }
        for (rows, shares) in rows.chunks(stride).zip(shares.chunks(stride)) {
            self.add_part(x, rows, shares, sum);
            context.heartbeat()?;
        }
        Ok(())
    }

    fn products_of_part(&self, x: &dyn RowBlocks, rows: &[u32], w: &[f64], out: &mut [f64]) {
        let piece = (PIECE / self.per_row).max(1);
        if self.pool.is_shared() && rows.len() >= 2 * piece {
            self.pool.for_chunks(out, piece, &|number, out| {
                let rows = &rows[number * piece..][..out.len()];
                x.products_of(rows, w, out);
            });
        } else {
            x.products_of(rows, w, out);
        }
    }

    fn add_part(&mut self, x: &dyn RowBlocks, rows: &[u32], shares: &[f64], sum: &mut [f64]) {
        let entries = rows.len() * self.per_row;
        let pieces = (entries / PIECE.max(ENTRIES_PER_COLUMN * sum.len())).min(MAX_PIECES);
        if pieces < 2 {
            return x.add_of(rows, shares, sum);
        }
        let piece = rows.len().div_ceil(pieces);
        self.partial_sums
            .resize_with(rows.len().div_ceil(piece), Vec::new);
        let work = |number: usize, partial_sums: &mut [Vec<f64>]| {
            let range = number * piece..rows.len().min((number + 1) * piece);
            partial_sums[0].clear();
            memory::resize(&mut partial_sums[0], sum.len(), 0.0);
            x.add_of(&rows[range.clone()], &shares[range], &mut partial_sums[0]);
        };
        self.pool.for_chunks(&mut self.partial_sums, 1, &work);
        for part in &self.partial_sums {
            for (sum, part) in sum.iter_mut().zip(part) {
                *sum += part;
            }
        }
    }
}
