//! Rows whose storage format is known only at run time.

use std::ops::Range;

use super::Rows;
use crate::solver::hessian::{Columns, Part};

/// Rows whose storage format is known only at run time. Each call does the work of many rows, so
/// the cost of a virtual call is negligible. (The functions for a single row are for code where
/// single rows are rare.)
pub(crate) trait RowBlocks: Sync {
    /// See [`Rows::ENTRY_WORK`].
    fn entry_work(&self) -> f64;
    /// See [`Rows::IS_SPARSE`].
    fn is_sparse(&self) -> bool;
    /// See [`Rows::n_rows`].
    fn n_rows(&self) -> usize;
    /// See [`Rows::n_cols`].
    fn n_cols(&self) -> usize;
    /// See [`Rows::n_stored`].
    fn n_stored(&self) -> usize;
    /// See [`Rows::axpy`].
    fn axpy(&self, i: usize, scale: f64, w: &mut [f64]);
    /// See [`Rows::products`].
    fn products(&self, from: usize, w: &[f64], out: &mut [f64]);
    /// See [`Rows::add`].
    fn add(&self, from: usize, shares: &[f64], sum: &mut [f64]);
    /// `out_k = |x_i|^2` for the rows `i = from + k`.
    fn sq_norms(&self, from: usize, out: &mut [f64]);
    /// `out_k = x_i . w` for the rows `i = which[k]`.
    fn products_of(&self, which: &[u32], w: &[f64], out: &mut [f64]);
    /// `sum += sum_k shares_k x_i` for the rows `i = which[k]`. A row whose share is 0 contributes
    /// nothing, whatever it holds.
    fn add_of(&self, which: &[u32], shares: &[f64], sum: &mut [f64]);
    /// `out_j = x_ij` for each stored entry of row `i`; other elements are left unchanged.
    fn write(&self, i: usize, out: &mut [f64]);
    /// `counts_j += 1` for each stored entry of row `i`.
    fn count(&self, i: usize, counts: &mut [u32]);
    /// `squares_j += sum_k r_k x_ij^2` for the rows `i = from + k` and, unless `sums` is empty,
    /// `sums_j += sum_k r_k x_ij`.
    fn add_squares(&self, from: usize, r: &[f64], squares: &mut [f64], sums: &mut [f64]);
    /// `out_k = sum_j x_ij (x_ij - shift_j) / scale_j` for the rows `i = from + k`; an empty
    /// `shift` stands for zeros.
    fn scaled_squares(&self, from: usize, shift: &[f64], scale: &[f64], out: &mut [f64]);
    /// Adds the rows `rows`, multiplied by their `weights`, to the matrix of the columns; see
    /// [`Part::add_block`].
    fn add_to(&self, part: &mut Part, columns: &Columns, rows: Range<usize>, weights: &[f64]);
}

impl<R: Rows> RowBlocks for R {
    fn entry_work(&self) -> f64 {
        R::ENTRY_WORK
    }

    fn is_sparse(&self) -> bool {
        R::IS_SPARSE
    }

    fn n_rows(&self) -> usize {
        Rows::n_rows(self)
    }

    fn n_cols(&self) -> usize {
        Rows::n_cols(self)
    }

    fn n_stored(&self) -> usize {
        Rows::n_stored(self)
    }

    fn axpy(&self, i: usize, scale: f64, w: &mut [f64]) {
        Rows::axpy(self, i, scale, w);
    }

    fn products(&self, from: usize, w: &[f64], out: &mut [f64]) {
        Rows::products(self, from, w, out);
    }

    fn add(&self, from: usize, shares: &[f64], sum: &mut [f64]) {
        Rows::add(self, from, shares, sum);
    }

    fn sq_norms(&self, from: usize, out: &mut [f64]) {
        for (i, out) in (from..).zip(out) {
            *out = self.sq_norm(i);
        }
    }

    fn products_of(&self, which: &[u32], w: &[f64], out: &mut [f64]) {
        for (&i, out) in which.iter().zip(out) {
            *out = self.dot(i as usize, w);
        }
    }

    fn add_of(&self, which: &[u32], shares: &[f64], sum: &mut [f64]) {
        for (&i, &share) in which.iter().zip(shares) {
            if share != 0.0 {
                Rows::axpy(self, i as usize, share, sum);
            }
        }
    }

    fn write(&self, i: usize, out: &mut [f64]) {
        self.visit(i, |j, x| out[j] = x);
    }

    fn count(&self, i: usize, counts: &mut [u32]) {
        self.visit(i, |j, _| counts[j] += 1);
    }

    fn add_squares(&self, from: usize, r: &[f64], squares: &mut [f64], sums: &mut [f64]) {
        for (i, &r) in (from..).zip(r) {
            if r > 0.0 {
                self.visit(i, |j, x| {
                    squares[j] += r * x * x;
                    if let Some(sum) = sums.get_mut(j) {
                        *sum += r * x;
                    }
                });
            }
        }
    }

    fn scaled_squares(&self, from: usize, shift: &[f64], scale: &[f64], out: &mut [f64]) {
        for (i, out) in (from..).zip(out) {
            *out = 0.0;
            self.visit(i, |j, x| {
                *out += x * (x - shift.get(j).unwrap_or(&0.0)) / scale[j];
            });
        }
    }

    fn add_to(&self, part: &mut Part, columns: &Columns, rows: Range<usize>, weights: &[f64]) {
        part.add_block(columns, self, rows, weights);
    }
}
