//! Dense linear algebra: `SymmetricSystem`, a system of equations that is built cell by cell or from the outer
//! products of rows, and solved by Cholesky's method. The solvers use nothing else from this module.

mod cholesky;
#[cfg(test)]
mod tests;

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, s};

use crate::error::Error;
use crate::kernel::triangle::NOISE;
use crate::memory::{self, Duplicate as _};
use crate::run::{NoMonitor, RunContext};

/// The number of rows that are gathered before they are multiplied, and the number of rows of the matrix that a thread
/// works on at a time.
const GATHERED: usize = 512;
const STRIPE: usize = 64;

/// Rows of the matrix between two heartbeats.
const PARTS: usize = 16;

/// The maximum number of bytes that a product of matrices allocates for itself. If that allocation failed, it would end
/// the process, so it is tried beforehand.
const OF_PRODUCT: usize = 1 << 22;

/// A symmetric positive definite system of equations.
#[derive(Default)]
pub(crate) struct SymmetricSystem {
    size: usize,
    /// Row by row. The matrix is the diagonal and the cells to the left of it. [`Self::factor`] writes the factor to
    /// the diagonal and to the cells to the right of it.
    matrix: Vec<f64>,
    /// The factors that scale the diagonal to ones.
    scales: Vec<f64>,
    /// Rows, times the root of their weight, that have not been added yet, and their number.
    gathered: Vec<f64>,
    count: usize,
}

impl SymmetricSystem {
    /// A matrix of zeros.
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            matrix: memory::zeros(size * size),
            scales: Vec::new(),
            gathered: Vec::new(),
            count: 0,
        }
    }

    /// Adds another matrix, which may be smaller, to the first rows and columns.
    pub(crate) fn add(&mut self, other: &Self) {
        let rows = self.matrix.chunks_mut(self.size.max(1));
        for (row, other) in rows.zip(other.matrix.chunks(other.size.max(1))) {
            for (cell, other) in row.iter_mut().zip(other) {
                *cell += other;
            }
        }
    }

    /// Adds `value` to the cell in row `j` and column `l`, which is the same as that in row `l` and column `j`.
    pub(crate) fn add_cell(&mut self, j: usize, l: usize, value: f64) {
        let (row, column) = if l < j { (j, l) } else { (l, j) };
        self.matrix[row * self.size + column] += value;
    }

    /// Starts again with a matrix of zeros for `size` unknowns.
    pub(crate) fn clear(&mut self, size: usize) {
        self.size = size;
        self.matrix.clear();
        memory::resize(&mut self.matrix, size * size, 0.0);
        self.count = 0;
    }

    /// Calls `fill(j, row)` for each row `j` of the matrix, up to the diagonal, in the threads of the run.
    pub(crate) fn fill(
        &mut self,
        context: &mut RunContext<'_>,
        fill: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<(), Error> {
        let size = self.size;
        let stretch = PARTS * size.max(1);
        for (number, rows) in self.matrix.chunks_mut(stretch).enumerate() {
            context.for_chunks(rows, size, |k, row| {
                let j = number * PARTS + k;
                fill(j, &mut row[..=j]);
            });
            context.heartbeat_in_time()?;
        }
        Ok(())
    }

    /// Adds `h x x'` for the entries `(j, x_j)`.
    pub(crate) fn add_outer(&mut self, entries: &[(u32, f64)], h: f64) {
        for (k, &(j, x)) in entries.iter().enumerate() {
            let hx = h * x;
            for &(l, z) in &entries[..=k] {
                self.add_cell(j as usize, l as usize, hx * z);
            }
        }
    }

    /// Turns `sum h x x'` into `sum h (x - mu, 1) (x - mu, 1)'`, given `sum h x` and `sum h`.
    pub(crate) fn centre(&mut self, mu: &[f64], sum: &[f64], total: f64) {
        let last = mu.len();
        for j in 0..last {
            let row = &mut self.matrix[j * self.size..][..=j];
            for (l, entry) in row.iter_mut().enumerate() {
                *entry += (total * mu[j] - sum[j]) * mu[l] - mu[j] * sum[l];
            }
        }
        for l in 0..last {
            self.matrix[last * self.size + l] = sum[l] - total * mu[l];
        }
        self.matrix[last * self.size + last] = total;
    }

    /// A row of zeros, to be filled in and then added by [`Self::end_row`].
    pub(crate) fn next_row(&mut self) -> &mut [f64] {
        memory::resize(&mut self.gathered, GATHERED * self.size, 0.0);
        let row = &mut self.gathered[self.count * self.size..][..self.size];
        row.fill(0.0);
        row
    }

    /// Adds `h x x'` for the row that has been filled in.
    pub(crate) fn end_row(&mut self, h: f64, context: &RunContext<'_>) {
        let root = h.sqrt();
        for x in &mut self.gathered[self.count * self.size..][..self.size] {
            *x *= root;
        }
        self.count += 1;
        if self.count == GATHERED {
            self.flush(context);
        }
    }

    /// Adds the rows that have been gathered, stripe by stripe up to the diagonal.
    pub(crate) fn flush(&mut self, context: &RunContext<'_>) {
        let (count, size) = (self.count, self.size);
        self.count = 0;
        memory::check_available(OF_PRODUCT);
        let rows = ArrayView2::from_shape((count, size), &self.gathered[..count * size])
            .expect("count rows of size entries");
        context.for_chunks(&mut self.matrix, STRIPE * size, |number, stripe| {
            let from = number * STRIPE;
            let to = from + stripe.len() / size;
            let mut stripe =
                ArrayViewMut2::from_shape((to - from, size), stripe).expect("whole rows");
            let mut stripe = stripe.slice_mut(s![.., ..to]);
            let (left, right) = (rows.slice(s![.., from..to]), rows.slice(s![.., ..to]));
            general_mat_mul(1.0, &left.t(), &right, 1.0, &mut stripe);
        });
    }

    /// Adds `value` to the first `count` entries of the diagonal.
    pub(crate) fn add_diagonal(&mut self, count: usize, value: f64) {
        for j in 0..count {
            self.matrix[j * self.size + j] += value;
        }
    }

    /// Computes the factor, which [`Self::solve`] needs. The run can end it early: by an interrupt, or because its
    /// time is up.
    ///
    /// Where rounding has made the matrix singular or indefinite, the unknown of a pivot that is noise is fixed: it is
    /// zero in every solution.
    pub(crate) fn factor(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        let n = self.size;
        // Scales to a unit diagonal. An unknown that nothing depends on is zero in the solution.
        self.scales.clear();
        let scale = |j: usize| {
            let diagonal = self.matrix[j * n + j];
            if diagonal > 0.0 {
                1.0 / diagonal.sqrt()
            } else {
                0.0
            }
        };
        memory::extend(&mut self.scales, (0..n).map(scale));
        cholesky::factor(&mut self.matrix, &self.scales, context)
    }

    /// Overwrites `v` with the solution for the right-hand side `v`.
    pub(crate) fn solve(&self, v: &mut [f64]) {
        self.forward(v);
        self.backward(v);
    }

    /// `|r|^2` for the residual `r` that [`Self::solve`] leaves for the right-hand side `v`: its part along the fixed
    /// unknowns.
    pub(crate) fn remainder(&self, v: &[f64]) -> f64 {
        let mut v = v.duplicate();
        let mut sum = 0.0;
        self.forward_with(&mut v, |i, rest| {
            if self.pivot(i).is_infinite() {
                sum += (rest / self.scales[i]).powi(2);
            }
        });
        sum
    }

    /// Releases the fixed unknowns: from here on the factor is only used as a change of coordinates, in which the
    /// matrix is close to the identity.
    pub(crate) fn release(&mut self) {
        for cell in self.matrix.iter_mut().step_by(self.size + 1) {
            if cell.is_infinite() {
                *cell = NOISE.sqrt();
            }
        }
    }

    /// Overwrites `v` with `U^-T S v`, for the factor `U' U` of the matrix `S H S` of unit diagonal.
    pub(crate) fn forward(&self, v: &mut [f64]) {
        self.forward_with(v, |_, _| {});
    }

    /// [`Self::forward`]; calls `see` with each entry before it is divided by its pivot.
    fn forward_with(&self, v: &mut [f64], see: impl FnMut(usize, f64)) {
        for (v, scale) in v.iter_mut().zip(&self.scales) {
            *v *= scale;
        }
        cholesky::forward(&self.matrix, v, see);
    }

    /// Overwrites `v` with `S U^-1 v`.
    pub(crate) fn backward(&self, v: &mut [f64]) {
        cholesky::backward(&self.matrix, v);
        for (v, scale) in v.iter_mut().zip(&self.scales) {
            *v *= scale;
        }
    }

    /// The entry `i` of the diagonal: a pivot, once the matrix has been factored.
    pub(crate) fn pivot(&self, i: usize) -> f64 {
        self.matrix[i * self.size + i]
    }
}

/// Overwrites `right` with the solution of a system, and its matrix with the factor. Only the diagonal of the matrix
/// and the cells to the left of it are read. For benches: this is what the solvers do with their systems.
pub fn solve_in_place(
    matrix: &mut Vec<f64>,
    right: &mut [f64],
    n_threads: usize,
) -> Result<(), Error> {
    let mut no_monitor = NoMonitor;
    let mut context = RunContext::new(None, &mut no_monitor);
    context.set_threads(n_threads, usize::MAX, 1)?;
    let mut system = SymmetricSystem {
        size: right.len(),
        matrix: std::mem::take(matrix),
        ..SymmetricSystem::default()
    };
    let factored = system.factor(&mut context);
    system.solve(right);
    *matrix = system.matrix;
    factored
}
