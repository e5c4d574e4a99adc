//! Row storage: dense rows and compressed sparse rows, borrowed without a copy.

pub(crate) mod blocks;

use ndarray::ArrayView2;

use crate::error::Error;
use crate::kernel::{self, Level, NARROW, Shared, Signed};
use crate::memory;

pub use crate::kernel::{Borrowed, Index, Real};

/// A matrix accessed row by row: all that a solver knows of the data.
#[doc(hidden)]
pub trait Rows: Sync {
    /// The work per stored entry in a step (a dot product and an update), in approximate
    /// nanoseconds.
    const ENTRY_WORK: f64;

    /// Whether entries that are not stored are 0.
    const IS_SPARSE: bool;

    /// The number of rows.
    fn n_rows(&self) -> usize;
    /// The number of columns.
    fn n_cols(&self) -> usize;
    /// The number of stored entries: the work of one pass.
    fn n_stored(&self) -> usize;
    /// `x_i . w`.
    fn dot(&self, i: usize, w: &[f64]) -> f64;
    /// `w += scale x_i`.
    fn axpy(&self, i: usize, scale: f64, w: &mut [f64]);
    /// `|x_i|^2`.
    fn sq_norm(&self, i: usize) -> f64;
    /// `out_k = x_i . w` for the rows `i = from + k`.
    fn products(&self, from: usize, w: &[f64], out: &mut [f64]) {
        products_one_by_one(self, from, w, out);
    }
    /// `sum += sum_k shares_k x_i` for the rows `i = from + k`. A row whose share is 0 contributes
    /// nothing, whatever it holds.
    fn add(&self, from: usize, shares: &[f64], sum: &mut [f64]) {
        add_one_by_one(self, from, shares, sum);
    }
    /// `out_k = shift + x_i` for the rows `i = from + k`, written to the start of the next `width`
    /// elements of `out`; the others are left unchanged. `shift` has one number per column.
    fn shifted(&self, from: usize, shift: &[f64], width: usize, out: &mut [f64]) {
        shifted_one_by_one(self, from, shift, width, out);
    }
    /// Calls `f(j, x_ij)` for each stored entry.
    fn visit(&self, i: usize, f: impl FnMut(usize, f64));
    /// A hint that [`Self::prefetch`] will soon be called for row `i`.
    fn prefetch_pointers(&self, _i: usize) {}
    /// A hint that row `i` will soon be read.
    fn prefetch(&self, i: usize);
}

#[inline]
fn products_one_by_one<R: Rows + ?Sized>(rows: &R, from: usize, w: &[f64], out: &mut [f64]) {
    for (i, out) in (from..).zip(out) {
        *out = rows.dot(i, w);
    }
}

#[inline]
fn add_one_by_one<R: Rows + ?Sized>(rows: &R, from: usize, shares: &[f64], sum: &mut [f64]) {
    for (i, &share) in (from..).zip(shares) {
        if share != 0.0 {
            rows.axpy(i, share, sum);
        }
    }
}

#[inline]
fn shifted_one_by_one<R: Rows + ?Sized>(
    rows: &R,
    from: usize,
    shift: &[f64],
    width: usize,
    out: &mut [f64],
) {
    for (i, out) in (from..).zip(out.chunks_exact_mut(width)) {
        let out = &mut out[..shift.len()];
        out.copy_from_slice(shift);
        rows.axpy(i, 1.0, out);
    }
}

/// A dense matrix in C order.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'a, F> {
    values: &'a [F],
    n_rows: usize,
    n_cols: usize,
    level: Level,
}

impl<'a, F: Real> Dense<'a, F> {
    /// Borrows a matrix, which must be contiguous and in C order.
    pub fn new(x: ArrayView2<'a, F>) -> Result<Self, Error> {
        let (n_rows, n_cols) = x.dim();
        check_shape(n_rows, n_cols)?;
        match x.to_slice() {
            Some(values) => Ok(Self {
                values,
                n_rows,
                n_cols,
                // The portable kernels are inlined into the loop over narrow rows. (On skin, with 3
                // columns, that takes 0.7 to 0.8 of the time with AVX-512; on california, with 8,
                // 0.9 to 0.95.)
                level: if n_cols <= NARROW {
                    Level::PORTABLE
                } else {
                    Level::best()
                },
            }),
            None => Err(Error::Parameter {
                name: "X",
                found: format!("strides {:?}", x.strides()),
                expected: "a contiguous array in C order",
            }),
        }
    }

    #[inline(always)]
    fn row(&self, i: usize) -> &'a [F] {
        &self.values[i * self.n_cols..][..self.n_cols]
    }

    /// The rows `from..from + count`.
    fn block(&self, from: usize, count: usize) -> &'a [F] {
        &self.values[from * self.n_cols..][..count * self.n_cols]
    }
}

impl<F: Real> Rows for Dense<'_, F> {
    const ENTRY_WORK: f64 = 0.6;
    const IS_SPARSE: bool = false;

    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn n_stored(&self) -> usize {
        self.values.len()
    }

    #[inline(always)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        kernel::dense_dot(self.level, self.row(i), w)
    }

    #[inline(always)]
    fn axpy(&self, i: usize, scale: f64, w: &mut [f64]) {
        kernel::dense_axpy(self.level, scale, self.row(i), w);
    }

    #[inline]
    fn sq_norm(&self, i: usize) -> f64 {
        kernel::dense_sq_norm(self.row(i))
    }

    fn products(&self, from: usize, w: &[f64], out: &mut [f64]) {
        if self.n_cols <= NARROW {
            kernel::narrow_products(self.block(from, out.len()), &w[..self.n_cols], out);
        } else {
            products_one_by_one(self, from, w, out);
        }
    }

    fn add(&self, from: usize, shares: &[f64], sum: &mut [f64]) {
        if self.n_cols <= NARROW {
            let rows = self.block(from, shares.len());
            kernel::narrow_sum(Level::best(), rows, shares, &mut sum[..self.n_cols]);
        } else {
            add_one_by_one(self, from, shares, sum);
        }
    }

    fn shifted(&self, from: usize, shift: &[f64], width: usize, out: &mut [f64]) {
        if self.n_cols <= NARROW {
            let rows = self.block(from, out.len() / width);
            kernel::narrow_shifted(Level::best(), rows, &shift[..self.n_cols], width, out);
        } else {
            shifted_one_by_one(self, from, shift, width, out);
        }
    }

    #[inline]
    fn visit(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        for (j, &x) in self.row(i).iter().enumerate() {
            f(j, x.into());
        }
    }

    #[inline]
    fn prefetch(&self, i: usize) {
        let from = i * self.n_cols;
        kernel::prefetch(self.values, from, from + self.n_cols);
    }
}

/// A sparse matrix in compressed row format: row `i` holds `values[indptr[i]..indptr[i + 1]]` in
/// the columns `indices[indptr[i]..indptr[i + 1]]`.
///
/// Columns need not be sorted and explicit zeros are allowed, but a column must not occur twice in
/// a row ([`Csr::has_duplicates`]), because `|x|^2` would be wrong. The row pointers are copied;
/// the other arrays are borrowed.
#[derive(Debug, Clone)]
pub struct Csr<'a, F, I> {
    values: Borrowed<'a, F>,
    indices: Borrowed<'a, I>,
    indptr: Shared<usize>,
    n_cols: usize,
}

impl<'a, F: Real, I: Index> Csr<'a, F, I> {
    /// Borrows a matrix after checking that its three arrays are consistent.
    pub fn new<P: Index>(
        values: Borrowed<'a, F>,
        indices: Borrowed<'a, I>,
        indptr: Borrowed<'_, P>,
        n_cols: usize,
    ) -> Result<Self, Error> {
        let rows = Self::with_unchecked_indices(values, indices, indptr, n_cols)?;
        rows.indices.iter().try_for_each(|j| rows.check(j))?;
        Ok(rows)
    }

    /// As [`Self::new`], except that column indices are only checked when they are used. An invalid
    /// index unwinds; see [`error::catch`].
    pub(crate) fn with_unchecked_indices<P: Index>(
        values: Borrowed<'a, F>,
        indices: Borrowed<'a, I>,
        indptr: Borrowed<'_, P>,
        n_cols: usize,
    ) -> Result<Self, Error> {
        check_shape(indptr.len().saturating_sub(1), n_cols)?;
        let n_rows = indptr.len() - 1;
        let first = indptr.get(0).to_i64();
        if first != 0 {
            return Err(Error::IndptrStart { found: first });
        }
        let mut checked = memory::with_capacity(n_rows + 1);
        checked.push(0);
        let mut previous = 0;
        for row in 0..n_rows {
            let next = indptr.get(row + 1).to_i64();
            if next < previous {
                return Err(Error::IndptrDecreases {
                    row,
                    previous,
                    next,
                });
            }
            checked.push(next as usize);
            previous = next;
        }
        Self::with_checked_indptr(values, indices, checked.into(), n_cols)
    }

    /// As [`Self::with_unchecked_indices`], for row pointers taken from rows that were checked
    /// earlier; only the lengths of the arrays are compared with them.
    pub(crate) fn with_checked_indptr(
        values: Borrowed<'a, F>,
        indices: Borrowed<'a, I>,
        indptr: Shared<usize>,
        n_cols: usize,
    ) -> Result<Self, Error> {
        let end = indptr.last().copied().unwrap_or(0);
        // scipy allows unused space after the last entry.
        check_end(end, "X.indices", indices.len())?;
        check_end(end, "X.data", values.len())?;
        let indices = indices.range(0, end);
        Ok(Self {
            values,
            indices,
            indptr,
            n_cols,
        })
    }

    /// The row pointers, for [`Self::with_checked_indptr`].
    #[cfg(feature = "python")]
    pub(crate) fn indptr(&self) -> Shared<usize> {
        self.indptr.clone()
    }

    /// Checks that column `j` exists.
    #[inline]
    fn check(&self, j: I) -> Result<(), Error> {
        if j.to_usize() < self.n_cols {
            return Ok(());
        }
        Err(Error::ColumnIndex {
            found: j.to_i64(),
            n_cols: self.n_cols,
        })
    }

    /// Whether some column occurs twice in a row. Takes one pass and, if a row is not sorted,
    /// memory for one mark per column.
    pub fn has_duplicates(&self) -> bool {
        // An index that another thread has just made invalid is not reported here; its use will be
        // an error.
        self.scan().is_ok_and(|duplicate| duplicate.is_some())
    }

    /// Checks all column indices. Returns a row in which a column occurs twice, and that column, if
    /// there is one.
    pub(crate) fn scan(&self) -> Result<Option<(usize, usize)>, Error> {
        let (mut last_row_with, mut duplicate) = (Vec::new(), None);
        for i in 0..self.n_rows() {
            let columns = self.columns(i);
            let mut previous = None;
            let sorted = columns
                .iter()
                .map(Index::to_usize)
                .all(|j| previous.replace(j).is_none_or(|p| p < j));
            if sorted && previous.is_none_or(|last| last < self.n_cols) {
                continue;
            }
            if last_row_with.is_empty() {
                memory::resize(&mut last_row_with, self.n_cols, usize::MAX);
            }
            for j in columns.iter() {
                self.check(j)?;
                let row = &mut last_row_with[j.to_usize()];
                if std::mem::replace(row, i) == i {
                    duplicate.get_or_insert((i, j.to_usize()));
                }
            }
        }
        Ok(duplicate)
    }

    /// The same rows, with column indices of the signed type.
    pub(crate) fn signed(self) -> Csr<'a, F, I::Signed>
    where
        I: Signed,
    {
        Csr {
            values: self.values,
            indices: I::signed(self.indices),
            indptr: self.indptr,
            n_cols: self.n_cols,
        }
    }

    /// The same rows as a [`Pattern`], if the entries of each row have a single common value;
    /// otherwise the rows themselves.
    ///
    /// Takes one pass, but only up to the first row with two different values.
    pub fn into_pattern(self) -> Result<Pattern<'a, I>, Self> {
        let value = |i: usize| kernel::only_value(self.entries(i));
        // The first rows usually settle this, so no memory is allocated before.
        if !(0..self.n_rows()).all(|i| value(i).is_some()) {
            return Err(self);
        }
        let mut starts = memory::with_capacity(self.indptr.len());
        let start = |i: usize| RowStart {
            from: self.indptr[i],
            value: self.entries(i).iter().next().map_or(0.0, Into::into),
        };
        memory::extend(&mut starts, (0..self.n_rows()).map(start));
        starts.push(RowStart {
            from: self.indices.len(),
            value: 0.0,
        });
        Ok(Pattern {
            indices: self.indices,
            starts: starts.into(),
            n_cols: self.n_cols,
        })
    }

    #[inline(always)]
    fn columns(&self, i: usize) -> Borrowed<'a, I> {
        self.indices.range(self.indptr[i], self.indptr[i + 1])
    }

    #[inline(always)]
    fn entries(&self, i: usize) -> Borrowed<'a, F> {
        self.values.range(self.indptr[i], self.indptr[i + 1])
    }
}

impl<F: Real, I: Index> Rows for Csr<'_, F, I> {
    const ENTRY_WORK: f64 = 2.0;
    const IS_SPARSE: bool = true;

    fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn n_stored(&self) -> usize {
        self.indices.len()
    }

    #[inline(always)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        kernel::sparse_dot(self.entries(i), self.columns(i), w)
    }

    #[inline(always)]
    fn axpy(&self, i: usize, scale: f64, w: &mut [f64]) {
        kernel::sparse_axpy(scale, self.entries(i), self.columns(i), w);
    }

    #[inline]
    fn sq_norm(&self, i: usize) -> f64 {
        kernel::sparse_sq_norm(self.entries(i))
    }

    #[inline]
    fn visit(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        kernel::sparse_visit(self.entries(i), self.columns(i), self.n_cols, &mut f);
    }

    #[inline]
    fn prefetch_pointers(&self, i: usize) {
        kernel::prefetch(&self.indptr, i, i + 1);
    }

    #[inline]
    fn prefetch(&self, i: usize) {
        let (from, to) = (self.indptr[i], self.indptr[i + 1]);
        self.indices.prefetch(from, to);
        self.values.prefetch(from, to);
    }
}

/// Sparse rows whose entries all have a single value within each row, such as one-hot codes and
/// sets of words, possibly scaled row by row; see [`Csr::into_pattern`].
///
/// Apart from one value per row, a step reads only column indices: with 32-bit indices, a third of
/// what compressed rows of `f64` read.
#[derive(Debug, Clone)]
pub struct Pattern<'a, I> {
    indices: Borrowed<'a, I>,
    /// One per row, followed by the end of the last row.
    starts: Shared<RowStart>,
    n_cols: usize,
}

/// The start of a row of a [`Pattern`], and its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowStart {
    /// The position of its first column index.
    from: usize,
    /// The common value of its entries.
    value: f64,
}

impl<'a, I: Index> Pattern<'a, I> {
    /// Borrows the column indices of rows whose starts are known from an earlier check; only the
    /// length of the array is compared with them.
    #[cfg(feature = "python")]
    pub(crate) fn with_checked_starts(
        indices: Borrowed<'a, I>,
        starts: Shared<RowStart>,
        n_cols: usize,
    ) -> Result<Self, Error> {
        let end = starts.last().map_or(0, |last| last.from);
        check_end(end, "X.indices", indices.len())?;
        let indices = indices.range(0, end);
        Ok(Self {
            indices,
            starts,
            n_cols,
        })
    }

    /// Where each row begins and its value, for [`Self::with_checked_starts`].
    #[cfg(feature = "python")]
    pub(crate) fn starts(&self) -> Shared<RowStart> {
        self.starts.clone()
    }

    /// The columns of row `i` and its value.
    #[inline(always)]
    fn row(&self, i: usize) -> (Borrowed<'a, I>, f64) {
        let RowStart { from, value } = self.starts[i];
        (self.indices.range(from, self.starts[i + 1].from), value)
    }
}

impl<I: Index> Rows for Pattern<'_, I> {
    const ENTRY_WORK: f64 = 1.4;
    const IS_SPARSE: bool = true;

    fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn n_stored(&self) -> usize {
        self.indices.len()
    }

    #[inline(always)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        let (columns, value) = self.row(i);
        value * kernel::pattern_dot(columns, w)
    }

    #[inline(always)]
    fn axpy(&self, i: usize, scale: f64, w: &mut [f64]) {
        let (columns, value) = self.row(i);
        kernel::pattern_axpy(scale * value, columns, w);
    }

    #[inline]
    fn sq_norm(&self, i: usize) -> f64 {
        let (columns, value) = self.row(i);
        columns.len() as f64 * (value * value)
    }

    #[inline]
    fn visit(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        let (columns, value) = self.row(i);
        kernel::pattern_visit(columns, self.n_cols, &mut |j| f(j, value));
    }

    #[inline]
    fn prefetch_pointers(&self, i: usize) {
        kernel::prefetch(&self.starts, i, i + 2);
    }

    #[inline]
    fn prefetch(&self, i: usize) {
        self.indices
            .prefetch(self.starts[i].from, self.starts[i + 1].from);
    }
}

/// Checks that an array is as long as the row pointers require.
fn check_end(end: usize, array: &'static str, available: usize) -> Result<(), Error> {
    if end > available {
        let found = i64::try_from(end).unwrap_or(i64::MAX);
        return Err(Error::IndptrEnd {
            found,
            available,
            array,
        });
    }
    Ok(())
}

fn check_shape(n_rows: usize, n_cols: usize) -> Result<(), Error> {
    if n_rows == 0 || n_cols == 0 {
        return Err(Error::EmptyRows { n_rows, n_cols });
    }
    // The visiting order stores row numbers in 32 bits.
    if u32::try_from(n_rows).is_err() {
        return Err(Error::TooManyRows { n_rows });
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
