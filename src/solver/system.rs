//! Systems of equations with a sum of outer products of rows for a matrix, solved by Cholesky's
//! method.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, s};

use crate::error::Error;
use crate::kernel::{Level, dense_dot};
use crate::memory::{self, Duplicate as _};
use crate::run::RunContext;

/// Rows gathered before they are multiplied, and rows of the matrix that a thread works on at a time.
const GATHERED: usize = 512;
const STRIPE: usize = 64;

/// Rows of the matrix between two signs of life, and products of a factor.
const PARTS: usize = 16;
const PRODUCTS: usize = 1 << 22;

/// Bytes that a product of matrices takes for itself, at most. It would end the process if they were not to be had.
const OF_PRODUCT: usize = 1 << 22;

/// A symmetric positive definite system of equations.
#[derive(Default)]
pub(crate) struct System {
    size: usize,
    /// Row by row; what is right of the diagonal does not count. Its factor after [`Self::factor`].
    matrix: Vec<f64>,
    /// What brings the diagonal to one.
    scales: Vec<f64>,
    /// Rows, times the root of their weight, still to be added.
    gathered: Vec<f64>,
    count: usize,
}

impl System {
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

    /// Adds another matrix to the first rows and columns: it may be smaller.
    pub(crate) fn add(&mut self, other: &Self) {
        let rows = self.matrix.chunks_mut(self.size.max(1));
        for (row, other) in rows.zip(other.matrix.chunks(other.size.max(1))) {
            for (cell, other) in row.iter_mut().zip(other) {
                *cell += other;
            }
        }
    }

    /// Adds to the cell of row and column `j` and `l`, or `l` and `j`.
    pub(crate) fn add_cell(&mut self, j: usize, l: usize, value: f64) {
        let (row, column) = if l < j { (j, l) } else { (l, j) };
        self.matrix[row * self.size + column] += value;
    }

    /// Makes the matrix a matrix of zeros for `size` unknowns.
    pub(crate) fn clear(&mut self, size: usize) {
        self.size = size;
        self.matrix.clear();
        memory::resize(&mut self.matrix, size * size, 0.0);
        self.count = 0;
    }

    /// `fill(j, row)` for each row of the matrix up to the diagonal, by the threads of the run.
    pub(crate) fn fill(
        &mut self,
        watch: &mut RunContext<'_>,
        fill: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<(), Error> {
        let size = self.size;
        let stretch = PARTS * size.max(1);
        for (number, rows) in self.matrix.chunks_mut(stretch).enumerate() {
            watch.for_chunks(rows, size, |k, row| {
                let j = number * PARTS + k;
                fill(j, &mut row[..=j]);
            });
            watch.heartbeat_in_time()?;
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

    /// An empty row, to be filled and ended.
    pub(crate) fn next_row(&mut self) -> &mut [f64] {
        memory::resize(&mut self.gathered, GATHERED * self.size, 0.0);
        let row = &mut self.gathered[self.count * self.size..][..self.size];
        row.fill(0.0);
        row
    }

    /// Adds `h x x'` for the row that has been filled.
    pub(crate) fn end_row(&mut self, h: f64, watch: &RunContext<'_>) {
        let root = h.sqrt();
        for x in &mut self.gathered[self.count * self.size..][..self.size] {
            *x *= root;
        }
        self.count += 1;
        if self.count == GATHERED {
            self.flush(watch);
        }
    }

    /// Adds the rows that have been gathered, stripe by stripe up to the diagonal.
    pub(crate) fn flush(&mut self, watch: &RunContext<'_>) {
        let (count, size) = (self.count, self.size);
        self.count = 0;
        memory::check_available(OF_PRODUCT);
        let rows = ArrayView2::from_shape((count, size), &self.gathered[..count * size])
            .expect("count rows of size entries");
        watch.for_chunks(&mut self.matrix, STRIPE * size, |number, stripe| {
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

    /// Overwrites the matrix by its factor, to be used by [`Self::solve`].
    ///
    /// Where rounding has left the matrix not positive definite, a direction in which it is close to
    /// zero is held fast.
    pub(crate) fn factor(&mut self, watch: &mut RunContext<'_>) -> Result<(), Error> {
        let (n, level) = (self.size, Level::best());
        // To a unit diagonal; an unknown that nothing depends on stays where it is.
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
        let scales = &self.scales;
        let mut products = 0;
        for i in 0..n {
            products += i * i / 2;
            if products > PRODUCTS {
                products = 0;
                watch.heartbeat_in_time()?;
            }
            let (above, rest) = self.matrix.split_at_mut(i * n);
            let row = &mut rest[..n];
            for j in 0..i {
                let scaled = row[j] * scales[i] * scales[j];
                let other = &above[j * n..][..n];
                row[j] = (scaled - dense_dot(level, &row[..j], &other[..j])) / other[j];
            }
            let pivot = 1.0 - dense_dot(level, &row[..i], &row[..i]);
            row[i] = if pivot > PIVOT {
                pivot.sqrt()
            } else {
                f64::INFINITY
            };
        }
        Ok(())
    }

    /// Overwrites `v` by the solution for the right side `v`.
    pub(crate) fn solve(&self, v: &mut [f64]) {
        self.forward(v);
        self.backward(v);
    }

    /// `|r|^2` for what [`Self::solve`] leaves of the right side `v`: its part along directions that are
    /// held fast.
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

    /// Lets go of the directions that are held fast: from here on the factor is only a change of
    /// coordinates, in which the matrix is close to the identity.
    pub(crate) fn release(&mut self) {
        for cell in self.matrix.iter_mut().step_by(self.size + 1) {
            if cell.is_infinite() {
                *cell = PIVOT.sqrt();
            }
        }
    }

    /// Overwrites `v` by `L^-1 S v`, for the factor `L` of the matrix `S H S` of unit diagonal.
    pub(crate) fn forward(&self, v: &mut [f64]) {
        self.forward_with(v, |_, _| {});
    }

    /// [`Self::forward`], which shows `see` each entry before it is divided by its pivot.
    fn forward_with(&self, v: &mut [f64], mut see: impl FnMut(usize, f64)) {
        let (n, level) = (self.size, Level::best());
        for (v, scale) in v.iter_mut().zip(&self.scales) {
            *v *= scale;
        }
        for i in 0..n {
            let row = &self.matrix[i * n..][..n];
            let rest = v[i] - dense_dot(level, &row[..i], &v[..i]);
            see(i, rest);
            v[i] = rest / row[i];
        }
    }

    /// Overwrites `v` by `S L^-T v`.
    pub(crate) fn backward(&self, v: &mut [f64]) {
        let n = self.size;
        for i in (0..n).rev() {
            let row = &self.matrix[i * n..][..n];
            v[i] /= row[i];
            let value = v[i];
            for (v, l) in v[..i].iter_mut().zip(row) {
                *v -= l * value;
            }
        }
        for (v, scale) in v.iter_mut().zip(&self.scales) {
            *v *= scale;
        }
    }

    /// What there is on the diagonal.
    pub(crate) fn pivot(&self, i: usize) -> f64 {
        self.matrix[i * self.size + i]
    }
}

/// Pivots of the scaled matrix up to this size are noise.
const PIVOT: f64 = 1e-14;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::NoMonitor;
    use proptest::prelude::*;

    type Rows = Vec<Vec<f64>>;

    /// More rows than columns, with weights, and a right side.
    fn problems() -> impl Strategy<Value = (Rows, Vec<f64>, Vec<f64>)> {
        (1usize..90).prop_flat_map(|size| {
            let number = || -1.0..1.0;
            let row = prop::collection::vec(number(), size);
            let n = size + 3;
            (
                prop::collection::vec(row, n),
                prop::collection::vec(0.1..2.0, n),
                prop::collection::vec(number(), size),
            )
        })
    }

    fn by_entries(rows: &[Vec<f64>], weights: &[f64]) -> System {
        let mut system = System::new(rows[0].len());
        for (row, &h) in rows.iter().zip(weights) {
            // In an order that is not that of the columns.
            let entries: Vec<_> = (0u32..).zip(row.iter().copied()).collect();
            let entries: Vec<_> = entries.into_iter().rev().collect();
            system.add_outer(&entries, h);
        }
        system
    }

    fn by_rows(rows: &[Vec<f64>], weights: &[f64]) -> System {
        let mut no_monitor = NoMonitor;
        let watch = RunContext::new(None, &mut no_monitor);
        let mut system = System::new(rows[0].len());
        for (row, &h) in rows.iter().zip(weights) {
            system.next_row().copy_from_slice(row);
            system.end_row(h, &watch);
        }
        system.flush(&watch);
        system
    }

    /// Entry by entry, from the definition.
    fn naive(rows: &[Vec<f64>], weights: &[f64], j: usize, l: usize) -> f64 {
        let terms = rows.iter().zip(weights);
        terms.map(|(row, h)| h * row[j] * row[l]).sum()
    }

    fn lower(size: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..size).flat_map(|j| (0..=j).map(move |l| (j, l)))
    }

    proptest! {
        #[test]
        fn both_ways_of_adding_rows_agree_with_the_naive((rows, weights, _) in problems()) {
            let size = rows[0].len();
            for system in [by_entries(&rows, &weights), by_rows(&rows, &weights)] {
                for (j, l) in lower(size) {
                    let expected = naive(&rows, &weights, j, l);
                    prop_assert!((system.matrix[j * size + l] - expected).abs() < 1e-12);
                }
            }
        }

        #[test]
        fn centring_is_as_if_the_rows_had_been_centred((rows, weights, mu) in problems()) {
            let size = mu.len();
            let total: f64 = weights.iter().sum();
            let sum: Vec<f64> = (0..size)
                .map(|j| rows.iter().zip(&weights).map(|(row, h)| h * row[j]).sum())
                .collect();
            let widened: Rows = rows.iter().map(|row| [&row[..], &[0.0]].concat()).collect();
            let centred = |row: &Vec<f64>| -> Vec<f64> {
                let shifted = row.iter().zip(&mu).map(|(x, m)| x - m);
                shifted.chain([1.0]).collect()
            };
            let expected: Rows = rows.iter().map(centred).collect();
            let mut system = by_entries(&widened, &weights);
            system.centre(&mu, &sum, total);
            for (j, l) in lower(size + 1) {
                let expected = naive(&expected, &weights, j, l);
                prop_assert!((system.matrix[j * (size + 1) + l] - expected).abs() < 1e-11);
            }
        }

        #[test]
        fn the_solution_solves_whatever_the_scales((rows, weights, right) in problems()) {
            let size = right.len();
            // Columns from 1e-6 to 1e6.
            let scale = |j: usize| 1e-6 * 10f64.powf((j * 7 % 13) as f64);
            let rows: Rows = rows
                .into_iter()
                .map(|row| row.into_iter().enumerate().map(|(j, x)| x * scale(j)).collect())
                .collect();
            let mut system = by_rows(&rows, &weights);
            for j in 0..size {
                system.matrix[j * size + j] += scale(j) * scale(j);
            }
            let mut v: Vec<f64> = right.iter().enumerate().map(|(j, r)| r * scale(j)).collect();
            let mut no_monitor = NoMonitor;
            system.factor(&mut RunContext::new(None, &mut no_monitor)).expect("not interrupted");
            system.solve(&mut v);
            for j in 0..size {
                let mut left = scale(j) * scale(j) * v[j];
                for (l, v) in v.iter().enumerate() {
                    left += naive(&rows, &weights, j, l) * v;
                }
                let residual = (left - right[j] * scale(j)).abs();
                prop_assert!(residual < 1e-10 * scale(j), "{residual} in unknown {j}");
            }
        }
    }

    #[test]
    fn unknowns_that_nothing_tells_apart_are_held_fast() {
        // Two equal columns, and one of zeros.
        let rows = vec![vec![1.0, 1.0, 0.0], vec![2.0, 2.0, 0.0]];
        let mut system = by_rows(&rows, &[1.0, 1.0]);
        let mut v = vec![5.0, 5.0, 0.0];
        let mut no_monitor = NoMonitor;
        system
            .factor(&mut RunContext::new(None, &mut no_monitor))
            .expect("not interrupted");
        system.solve(&mut v);
        assert_eq!(v[1..], [0.0, 0.0]);
        assert!((v[0] - 1.0).abs() < 1e-15);
    }
}
