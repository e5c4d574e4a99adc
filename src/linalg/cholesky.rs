//! Cholesky's method: `A = U' U` for an upper triangle `U`, and solutions with it.
//!
//! `U` is computed in panels of [`SIDE`] rows. First the products of all rows above are subtracted from a panel. Then
//! its square on the diagonal is factored, and the columns to the right of the square are solved for. In a large
//! matrix the products are nearly all of the work. They are `ndarray`'s `general_mat_mul`, that is, the crate
//! `matrixmultiply`. The rest is in [`crate::kernel::triangle`].
//!
//! The threads of the run share the columns of a panel, in parts that do not depend on the number of threads, so that
//! the result has the same bits for any number. There is a heartbeat after each few parts.
//!
//! `benches/cholesky` compares this with the library faer. Its figures, and why faer is not used, are in
//! docs/benchmarks.md.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, s};

use crate::error::Error;
use crate::kernel::triangle::{self, LANES, SIDE, Triangle};
use crate::kernel::{Level, dense_axpy, dense_dot};
use crate::memory;
use crate::run::RunContext;

/// The number of columns of a panel in one part.
const COLUMNS: usize = 128;

/// Parts between two heartbeats: well under 0.1 s with 3000 unknowns, even without vector instructions.
const PARTS: usize = 4;

/// From this number of products in a part on, threads share the parts. That is about 0.1 ms of work; starting the
/// threads takes some microseconds.
const MIN_SHARED_PRODUCTS: usize = 1 << 21;

/// The number of rows and columns of the squares in which the matrix is transposed.
const TRANSPOSED: usize = 16;

/// Copies the cells to the left of the diagonal to the right of it, cell `(i, j)` times `scales[i] * scales[j]`, and
/// sets the diagonal to ones.
fn mirror(matrix: &mut [f64], scales: &[f64], context: &mut RunContext<'_>) -> Result<(), Error> {
    let n = scales.len();
    for top in (0..n).step_by(TRANSPOSED) {
        for left in (0..=top).step_by(TRANSPOSED) {
            for i in top..n.min(top + TRANSPOSED) {
                for j in left..i.min(left + TRANSPOSED) {
                    matrix[j * n + i] = matrix[i * n + j] * scales[i] * scales[j];
                }
            }
        }
        context.heartbeat_in_time()?;
    }
    for cell in matrix.iter_mut().step_by(n + 1) {
        *cell = 1.0;
    }
    Ok(())
}

/// Overwrites the diagonal, and the cells to the right of it, with the factor of the matrix to the left of it, scaled
/// so that its diagonal is ones. The cells to the left of the diagonal do not change.
///
/// A pivot that is close to zero, or negative through rounding, is replaced by infinity, so that its unknown is zero in
/// every solution.
pub(super) fn factor(
    matrix: &mut [f64],
    scales: &[f64],
    context: &mut RunContext<'_>,
) -> Result<(), Error> {
    let (n, level) = (scales.len(), Level::best());
    mirror(matrix, scales, context)?;
    if n > SIDE {
        memory::check_available(super::OF_PRODUCT);
    }
    let mut square = Triangle::new(SIDE.min(n));
    for top in (0..n).step_by(SIDE) {
        let size = SIDE.min(n - top);
        let (above, panel) = matrix.split_at_mut(top * n);
        let above = ArrayView2::from_shape((top, n), &*above).expect("whole rows");
        let panel = ArrayViewMut2::from_shape((size, n), &mut panel[..size * n]);
        let (_, right) = panel.expect("whole rows").split_at(Axis(1), top);
        let (mut diagonal, mut right) = right.split_at(Axis(1), size);
        let own = above.slice(s![.., top..top + size]);
        let subtract = |from: usize, panel: &mut ArrayViewMut2<'_, f64>| {
            if top > 0 {
                let others = above.slice(s![.., from..from + panel.ncols()]);
                general_mat_mul(-1.0, &own.t(), &others, 1.0, panel);
            }
        };
        subtract(top, &mut diagonal);
        for (row, cells) in square.rows.iter_mut().zip(diagonal.rows()) {
            for (cell, value) in row.iter_mut().zip(cells) {
                *cell = *value;
            }
        }
        triangle::factor(level, &mut square, size);
        for (row, cells) in square.rows.iter().zip(diagonal.rows_mut()) {
            for (cell, value) in row.iter().zip(cells) {
                *value = *cell;
            }
        }
        context.heartbeat_in_time()?;
        let parts = right.axis_chunks_iter_mut(Axis(1), COLUMNS);
        let mut parts: Vec<_> = parts.enumerate().collect();
        let is_worth_sharing = top * SIDE * COLUMNS >= MIN_SHARED_PRODUCTS;
        let at_a_time = if is_worth_sharing { 1 } else { PARTS };
        for parts in parts.chunks_mut(PARTS) {
            context.for_chunks(parts, at_a_time, |_, parts| {
                for (number, panel) in parts {
                    subtract(top + size + *number * COLUMNS, panel);
                    solve_columns(level, &square, panel);
                }
            });
            context.heartbeat_in_time()?;
        }
    }
    Ok(())
}

/// Overwrites the columns with the solutions of `U' z = x`, for the factor `square` of the square on the diagonal.
fn solve_columns(level: Level, square: &Triangle, columns: &mut ArrayViewMut2<'_, f64>) {
    for mut columns in columns.axis_chunks_iter_mut(Axis(1), LANES) {
        let mut x = [[0.0; LANES]; SIDE];
        for (x, cells) in x.iter_mut().zip(columns.rows()) {
            for (x, cell) in x.iter_mut().zip(cells) {
                *x = *cell;
            }
        }
        triangle::solve(level, square, &mut x);
        for (x, cells) in x.iter().zip(columns.rows_mut()) {
            for (x, cell) in x.iter().zip(cells) {
                *cell = *x;
            }
        }
    }
}

/// Overwrites `v` with the solution of `U' z = v`; calls `see` with each entry before it is divided by its pivot.
pub(super) fn forward(matrix: &[f64], v: &mut [f64], mut see: impl FnMut(usize, f64)) {
    let (n, level) = (v.len(), Level::best());
    for i in 0..n {
        let row = &matrix[i * n..][i..n];
        see(i, v[i]);
        v[i] /= row[0];
        let value = v[i];
        dense_axpy(level, -value, &row[1..], &mut v[i + 1..]);
    }
}

/// Overwrites `v` with the solution of `U z = v`.
pub(super) fn backward(matrix: &[f64], v: &mut [f64]) {
    let (n, level) = (v.len(), Level::best());
    for i in (0..n).rev() {
        let row = &matrix[i * n..][i..n];
        v[i] = (v[i] - dense_dot(level, &row[1..], &v[i + 1..])) / row[0];
    }
}
