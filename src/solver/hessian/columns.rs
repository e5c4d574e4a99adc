//! The matrix of the columns, `sum_i h_i x_i x_i'` for centred rows.
//!
//! Columns with entries in many rows ("dense") are copied to a buffer, a few rows at a time, and multiplied by vector
//! instructions; the entries of the other columns ("sparse") are multiplied one by one. With an intercept, dense
//! columns are centred as they are copied, and the column of the intercept, with a value of 1 in each row, is put
//! beside them. The means of sparse columns are small relative to their entries; their products are corrected at the
//! end: `sum h (x - m) (z - n) = sum h x z - m sum h z - n sum h x + m n sum h`.

use std::ops::Range;

use crate::error::Error;
use crate::kernel::Level;
use crate::kernel::gram::{self, Block, Entry, LANES};
use crate::linalg::SymmetricSystem;
use crate::memory::{self, IntoVec as _};
use crate::problem::Problem;
use crate::rows::Rows;
use crate::rows::blocks::RowBlocks;
use crate::run::RunContext;

/// A column of compressed rows is dense if at least this fraction of them has an entry in it. And the maximum number of
/// dense columns.
const DENSE: f64 = 0.3;
const MAX_DENSE: usize = 1200;

/// The number of rows that are examined to find the dense columns.
const SAMPLE: usize = 1024;

/// The number of rows that are copied before they are multiplied.
const COPIED: usize = 64;

/// The maximum number of partial sums, which threads fill at the same time; the maximum number of their cells in total,
/// if there are more than two; and the least number of products of entries per cell that a partial sum must have.
const MAX_PARTS: usize = 8;
const MAX_CELLS: usize = 1 << 17;
const ENTRIES_PER_CELL: f64 = 8.0;

/// The maximum number of blocks of each partial sum between two heartbeats, and the maximum of their work in
/// approximate nanoseconds, if that is more than one block.
const MAX_ROUNDS: f64 = 16.0;
const WORK: f64 = 1e7;

/// Which columns are dense.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// The dense ones, ascending.
    dense: Vec<usize>,
    /// The position of each column among the dense ones; for sparse columns, the number of dense ones.
    places: Vec<u32>,
    /// The mean number of entries of a row in sparse columns.
    strays_per_row: f64,
}

impl Columns {
    /// Those of the rows.
    pub(crate) fn new(rows: &dyn RowBlocks) -> Self {
        let (n_rows, n_cols) = (rows.n_rows(), rows.n_cols());
        let per_row = rows.n_stored() as f64 / n_rows as f64;
        let mut columns = Self {
            dense: Vec::new(),
            places: Vec::new(),
            strays_per_row: per_row,
        };
        if rows.is_sparse() {
            let mut counts = memory::filled(n_cols, 0u32);
            let sampled = n_rows.min(SAMPLE);
            for k in 0..sampled {
                rows.count(k * n_rows / sampled, &mut counts);
            }
            let least = DENSE * sampled as f64;
            columns.dense = (0..n_cols)
                .filter(|&j| f64::from(counts[j]) >= least)
                .into_vec();
            columns
                .dense
                .sort_by_key(|&j| (std::cmp::Reverse(counts[j]), j));
            columns.dense.truncate(MAX_DENSE);
            columns.dense.sort_unstable();
            let taken: f64 = columns.dense.iter().map(|&j| f64::from(counts[j])).sum();
            columns.strays_per_row = (per_row - taken / sampled as f64).max(0.0);
        } else if n_cols <= MAX_DENSE {
            columns.dense = (0..n_cols).into_vec();
            columns.strays_per_row = 0.0;
        }
        columns.places = memory::filled(n_cols, columns.dense.len() as u32);
        for (place, &j) in columns.dense.iter().enumerate() {
            columns.places[j] = place as u32;
        }
        columns
    }

    fn is_sparse(&self, j: usize) -> bool {
        self.places[j] as usize == self.dense.len()
    }

    /// Work of adding a row, in approximate nanoseconds.
    pub(crate) fn work(&self) -> f64 {
        let (dense, strays) = (self.dense.len() as f64, self.strays_per_row);
        let tiles = (dense / LANES as f64).ceil();
        6.0 + 0.7 * dense + tiles * (tiles + 1.0) + strays * (2.0 + tiles) + 0.43 * strays * strays
    }
}

/// A sum `sum_i h_i x_i x_i'` that is updated when the weights change: near a solution few of them do.
#[derive(Default)]
pub(crate) struct Gram {
    sums: Option<Part>,
    /// The weights with which it was computed.
    weights: Vec<f64>,
    /// The largest values of its diagonal since it was last computed from scratch.
    largest: Vec<f64>,
}

/// If an entry of the diagonal falls below this fraction of its largest value, too much of it may be rounding, and the
/// sum is computed from scratch.
const LEFT: f64 = 1e-3;

impl Gram {
    /// Computes the sum for other weights and adds it to the system. Only rows whose weight differs by more than
    /// the fraction `precision` are added again. With an intercept the rows are centred at `mu`.
    pub(crate) fn update(
        &mut self,
        columns: &Columns,
        (problem, mu): (&Problem<'_>, &[f64]),
        (weights, precision): (&[f64], f64),
        system: &mut SymmetricSystem,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let differs = |(h, old): (&f64, &f64)| (h - old).abs() > precision * old;
        let pairs = weights.iter().zip(&self.weights);
        let n_others = pairs.filter(|&pair| differs(pair)).count();
        let n_rows = weights.iter().filter(|&&h| h > 0.0).count();
        let is_quadratic = problem.loss().is_quadratic();
        let mut goes_on = self.weights.len() == weights.len() && 2 * n_others < n_rows;
        loop {
            if !goes_on {
                // For a quadratic loss one direction is enough, so nothing is kept for another.
                let n_kept = if is_quadratic { 0 } else { weights.len() };
                *self = Self {
                    sums: None,
                    weights: memory::zeros(n_kept),
                    largest: memory::zeros(problem.rows().n_cols()),
                };
            }
            let old = std::mem::take(&mut self.weights);
            let change = |i: usize| {
                let (h, old) = (weights[i], old.get(i).copied().unwrap_or(0.0));
                if differs((&h, &old)) { h - old } else { 0.0 }
            };
            let sums = self.sums.take();
            let sums = Part::add_rows(sums, columns, (problem, mu), change, context)?;
            self.weights = old;
            for (old, h) in self.weights.iter_mut().zip(weights) {
                if differs((h, old)) {
                    *old = *h;
                }
            }
            let mut is_sound = true;
            for (j, largest) in self.largest.iter_mut().enumerate() {
                let now = sums.diagonal(columns, j);
                is_sound &= now >= LEFT * *largest;
                *largest = largest.max(now);
            }
            if is_sound || !goes_on {
                sums.write(columns, problem.fit_intercept().then_some(mu), system);
                self.sums = (!is_quadratic).then_some(sums);
                return Ok(());
            }
            goes_on = false;
        }
    }
}

/// Sums over some of the rows.
pub(crate) struct Part {
    level: Level,
    /// The number of cells of a copied row: one for each dense column; if there are sparse columns, a dummy to which
    /// their entries are written; if there is an intercept, a 1 at `ones`; and padding with zeros. The first `used`
    /// cells are multiplied. (The products of the dummy are never used.)
    width: usize,
    used: usize,
    ones: usize,
    /// The copy of a row without entries, and the number of cells that rows may write to.
    empty: Vec<f64>,
    touched: usize,
    /// Buffers for the rows that have been copied but not yet multiplied, and for their weights.
    rows: Vec<f64>,
    weights: Vec<f64>,
    /// The entries of these rows in sparse columns, times the weight of the row, and the end of each row among them.
    strays: Vec<Entry>,
    ends: Vec<usize>,
    /// Buffers for the entries of a row in sparse columns, and for the changes of weight of the rows of a block.
    entries: Vec<Entry>,
    changes: Vec<f64>,
    /// Products of copied columns with each other, of sparse columns with copied ones, and of sparse
    /// columns with each other.
    products: Vec<f64>,
    mixed: Vec<f64>,
    sparse: SymmetricSystem,
}

impl Part {
    /// Adds each row to the sums, times the `change` of its weight; rows without a change are skipped.
    fn add_rows(
        sums: Option<Self>,
        columns: &Columns,
        (problem, mu): (&Problem<'_>, &[f64]),
        change: impl Fn(usize) -> f64 + Sync,
        context: &mut RunContext<'_>,
    ) -> Result<Self, Error> {
        let rows = problem.rows();
        let n_blocks = rows.n_rows().div_ceil(problem.data().block_size());
        let products = rows.n_stored() as f64 * rows.n_stored() as f64 / rows.n_rows() as f64;
        let cells = rows.n_cols() * rows.n_cols();
        let room = products / (cells as f64 * ENTRIES_PER_CELL);
        let most = (MAX_CELLS / cells).clamp(2, MAX_PARTS).min(n_blocks);
        // A power of two, so that two or four threads have equal work.
        let n_parts = 1 << (room as usize).clamp(1, most).ilog2();
        // Each partial sum takes every `n_parts`th block.
        let new = || Self::new(columns, problem.fit_intercept(), mu);
        let mut parts = vec![sums.unwrap_or_else(new)];
        parts.resize_with(n_parts, new);
        let of_block = problem.data().block_size() as f64 * columns.work();
        let rounds = (WORK / of_block).clamp(1.0, MAX_ROUNDS) as usize;
        for from in (0..n_blocks).step_by(rounds * n_parts) {
            context.for_chunks(&mut parts, 1, |number, part| {
                let blocks = problem.data().blocks().skip(from + number).step_by(n_parts);
                for block in blocks.take(rounds) {
                    let part = &mut part[0];
                    let mut changes = std::mem::take(&mut part.changes);
                    changes.clear();
                    memory::extend(&mut changes, block.clone().map(&change));
                    rows.add_to(part, columns, block, &changes);
                    part.changes = changes;
                }
            });
            context.heartbeat_in_time()?;
        }
        let mut others = parts.split_off(1);
        let mut sums = parts.pop().expect("there is one");
        sums.flush();
        for other in &mut others {
            other.flush();
            sums.add(other);
        }
        Ok(sums)
    }

    fn new(columns: &Columns, fit_intercept: bool, mu: &[f64]) -> Self {
        let n_dense = columns.dense.len();
        let n_cols = columns.places.len();
        let has_sparse = n_dense < n_cols;
        let ones = n_dense + usize::from(has_sparse);
        let used = if fit_intercept { ones + 1 } else { n_dense };
        let width = used.max(ones).next_multiple_of(LANES);
        let mut empty = memory::zeros(width);
        if fit_intercept {
            for (cell, &j) in empty.iter_mut().zip(&columns.dense) {
                *cell = -mu[j];
            }
            empty[ones] = 1.0;
        }
        Self {
            level: Level::best(),
            width,
            used,
            ones,
            rows: (0..COPIED * width).map(|k| empty[k % width]).into_vec(),
            empty,
            touched: if has_sparse {
                width
            } else {
                n_dense.next_multiple_of(LANES)
            },
            weights: memory::with_capacity(COPIED),
            strays: Vec::new(),
            ends: memory::with_capacity(COPIED),
            entries: memory::filled(n_cols, (0, 0.0)),
            changes: Vec::new(),
            products: memory::zeros(width * width),
            mixed: memory::zeros(if has_sparse { n_cols * width } else { 0 }),
            sparse: SymmetricSystem::new(if has_sparse { n_cols } else { 0 }),
        }
    }

    /// Adds the rows of a block, each times its change.
    pub(crate) fn add_block<R: Rows>(
        &mut self,
        columns: &Columns,
        rows: &R,
        block: Range<usize>,
        changes: &[f64],
    ) {
        // If the rows are dense, all columns are dense, or none is.
        if !R::IS_SPARSE && !columns.dense.is_empty() {
            self.add_dense(rows, block, changes);
            return;
        }
        for (i, &h) in block.zip(changes) {
            if h != 0.0 {
                self.add_row(columns, rows, i, h);
            }
        }
    }

    /// Adds dense rows: if the weights of all of them have changed, as many at a time as the buffer can hold.
    #[inline]
    fn add_dense<R: Rows>(&mut self, rows: &R, block: Range<usize>, changes: &[f64]) {
        let mut from = block.start;
        while from < block.end {
            let Self {
                width,
                weights,
                rows: copies,
                ..
            } = self;
            let shift = &self.empty[..rows.n_cols()];
            let mut count = weights.len();
            let to = block.end.min(from + COPIED - count);
            let of_rows = &changes[from - block.start..to - block.start];
            memory::extend(weights, of_rows.iter().copied());
            if weights[count..].iter().all(|&h| h != 0.0) {
                let copies = &mut copies[count * *width..][..(to - from) * *width];
                rows.shifted(from, shift, *width, copies);
            } else {
                for (i, k) in (from..to).zip(count..) {
                    let h = weights[k];
                    if h != 0.0 {
                        let copy = &mut copies[count * *width..][..*width];
                        rows.shifted(i, shift, *width, copy);
                        weights[count] = h;
                        count += 1;
                    }
                }
                weights.truncate(count);
            }
            if weights.len() == COPIED {
                self.flush();
            }
            from = to;
        }
    }

    #[inline]
    fn add_row<R: Rows>(&mut self, columns: &Columns, rows: &R, i: usize, h: f64) {
        let copy = &mut self.rows[self.weights.len() * self.width..][..self.width];
        // In pieces of a constant length, so that no function is called to copy them.
        let pieces = copy[..self.touched].chunks_exact_mut(LANES);
        for (copy, empty) in pieces.zip(self.empty.chunks_exact(LANES)) {
            copy.copy_from_slice(empty);
        }
        self.add_entries(columns, rows, i, h);
        self.ends.push(self.strays.len());
        self.weights.push(h);
        if self.weights.len() == COPIED {
            self.flush();
        }
    }

    /// Adds the entries of a row to its copy, and those in sparse columns to their sums.
    #[inline]
    fn add_entries<R: Rows>(&mut self, columns: &Columns, rows: &R, i: usize, h: f64) {
        let copy = &mut self.rows[self.weights.len() * self.width..][..self.width];
        let (entries, mut count) = (self.entries.as_mut_slice(), 0);
        let rest = columns.dense.len();
        rows.visit(i, |column, x| {
            // Written both to the copy and to the list: a branch on the kind of column would be hard to predict.
            let place = columns.places[column] as usize;
            copy[place] += x;
            if let Some(entry) = entries.get_mut(count) {
                *entry = (column as u32, x);
            }
            count += usize::from(place == rest);
        });
        let entries = &entries[..count.min(entries.len())];
        self.sparse.add_outer(entries, h);
        if self.used > 0 {
            let weighted = entries.iter().map(|&(column, x)| (column, h * x));
            memory::extend(&mut self.strays, weighted);
        }
    }

    /// Multiplies the copied rows.
    fn flush(&mut self) {
        let block = Block {
            rows: &self.rows[..self.weights.len() * self.width],
            width: self.width,
            used: self.used,
        };
        if self.used > 0 {
            gram::add_products(self.level, block, &self.weights, &mut self.products);
            let ends = &self.ends;
            gram::add_mixed(self.level, block, &self.strays, ends, &mut self.mixed);
        }
        self.weights.clear();
        self.strays.clear();
        self.ends.clear();
    }

    /// The entry of the diagonal for column `j`.
    fn diagonal(&self, columns: &Columns, j: usize) -> f64 {
        if columns.is_sparse(j) {
            self.sparse.pivot(j)
        } else {
            self.products[columns.places[j] as usize * (self.width + 1)]
        }
    }

    /// Adds the sums of another `Part`.
    fn add(&mut self, other: &Self) {
        let add = |sums: &mut [f64], more: &[f64]| {
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum += more;
            }
        };
        add(&mut self.products, &other.products);
        add(&mut self.mixed, &other.mixed);
        self.sparse.add(&other.sparse);
    }

    /// Adds the sums to the system, centred at `mu` if it is given.
    fn write(&self, columns: &Columns, mu: Option<&[f64]>, system: &mut SymmetricSystem) {
        let (width, dense) = (self.width, &columns.dense);
        let n_cols = columns.places.len();
        if dense.len() < n_cols {
            system.add(&self.sparse);
        }
        for (place, &j) in dense.iter().enumerate() {
            for (&l, product) in dense[..=place].iter().zip(&self.products[place * width..]) {
                system.add_cell(j, l, *product);
            }
        }
        for j in (0..n_cols).filter(|&j| columns.is_sparse(j)) {
            for (&l, product) in dense.iter().zip(&self.mixed[j * width..]) {
                system.add_cell(j, l, *product);
            }
        }
        if let Some(mu) = mu {
            let of_ones = &self.products[self.ones * width..][..width];
            let sum = |j: usize| {
                if columns.is_sparse(j) {
                    self.mixed[j * width + self.ones]
                } else {
                    of_ones[columns.places[j] as usize]
                }
            };
            let sums: Vec<f64> = (0..n_cols).map(sum).into_vec();
            let left = |j: usize| if columns.is_sparse(j) { mu[j] } else { 0.0 };
            let left: Vec<f64> = (0..n_cols).map(left).into_vec();
            system.centre(&left, &sums, of_ones[self.ones]);
        }
    }
}

#[cfg(test)]
mod tests;
