//! The steps of Cholesky's method that are not products of matrices: the factor of a small square, and solutions with
//! it. (With row-by-row loops over [`super::dense_dot`], a system of 200 to 400 unknowns took 2.4 times as long.)
//!
//! The versions for the [`Level`]s of vector instructions are compiled from the same code and return the same bits.

use super::dense::{Kind, Level};
use crate::memory;

/// The number of rows and columns of the square.
pub const SIDE: usize = 64;

/// The number of columns that are solved for together.
pub const LANES: usize = 8;

/// If the diagonal of a matrix is ones, pivots up to this size are rounding noise.
pub const NOISE: f64 = 1e-14;

/// A symmetric matrix `A`, or its factor `U` with `A = U' U`: the diagonal and the part to the right of it.
#[derive(Debug, Clone)]
pub struct Triangle {
    /// Row by row. The cells to the left of the diagonal are not read.
    pub rows: Vec<[f64; SIDE]>,
    /// The inverses of the pivots; 0 for an infinite one.
    pub inverses: [f64; SIDE],
}

impl Triangle {
    /// Zeros, with this number of rows, at most [`SIDE`].
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            rows: memory::filled(rows, [0.0; SIDE]),
            inverses: [0.0; SIDE],
        }
    }
}

/// Overwrites the first `size` rows and columns with their factor. A pivot of at most [`NOISE`] (or NaN) becomes
/// infinite, which makes the rest of its row zeros.
pub fn factor(level: Level, triangle: &mut Triangle, size: usize) {
    match level.0 {
        Kind::Portable => portable::factor(triangle, size),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Level` of this kind is only made on a CPU that supports the instructions of the function.
        Kind::Avx2 => unsafe { avx2::factor(triangle, size) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for AVX2.
        Kind::Avx512 => unsafe { avx512::factor(triangle, size) },
    }
}

/// Overwrites the [`LANES`] columns of `x` with the solutions of `U' z = x`, for a factor of [`SIDE`] rows.
pub fn solve(level: Level, factor: &Triangle, x: &mut [[f64; LANES]; SIDE]) {
    match level.0 {
        Kind::Portable => portable::solve(factor, x),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Level` of this kind is only made on a CPU that supports the instructions of the function.
        Kind::Avx2 => unsafe { avx2::solve(factor, x) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for AVX2.
        Kind::Avx512 => unsafe { avx512::solve(factor, x) },
    }
}

mod portable {
    use super::{LANES, NOISE, SIDE, Triangle};

    /// The number of rows that stay in registers while the rows above are subtracted from them.
    const LINES: usize = 4;

    /// The number of cells that are updated together.
    const PIECE: usize = 8;

    #[inline(always)]
    pub(super) fn factor(triangle: &mut Triangle, size: usize) {
        // The cells to the right of that do not belong to the system, and small systems should not pay for them.
        let width = size.next_multiple_of(PIECE);
        for k in 0..size {
            let (above, below) = triangle.rows[..size].split_at_mut(k + 1);
            let row = &mut above[k];
            let pivot = row[k];
            let root = if pivot > NOISE {
                pivot.sqrt()
            } else {
                f64::INFINITY
            };
            let inverse = 1.0 / root;
            triangle.inverses[k] = inverse;
            for cell in &mut row[k + 1..width] {
                *cell *= inverse;
            }
            row[k] = root;
            for (j, other) in (k + 1..).zip(below) {
                let share = row[j];
                let from = j / PIECE * PIECE;
                let pieces = other[from..width].as_chunks_mut::<PIECE>().0.iter_mut();
                for (other, row) in pieces.zip(row[from..width].as_chunks::<PIECE>().0) {
                    for (other, cell) in other.iter_mut().zip(row) {
                        *other -= share * cell;
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn subtract(line: &mut [f64; LANES], share: f64, x: &[f64; LANES]) {
        for (line, x) in line.iter_mut().zip(x) {
            *line -= share * x;
        }
    }

    #[inline(always)]
    pub(super) fn solve(factor: &Triangle, x: &mut [[f64; LANES]; SIDE]) {
        for top in (0..SIDE).step_by(LINES) {
            let (above, rest) = x.split_at_mut(top);
            let own = rest.first_chunk_mut::<LINES>().expect("LINES divides SIDE");
            let mut tile = *own;
            for (row, x) in factor.rows.iter().zip(above.iter()) {
                let shares: &[f64; LINES] = row[top..].first_chunk().expect("LINES divides SIDE");
                for (line, share) in tile.iter_mut().zip(shares) {
                    subtract(line, *share, x);
                }
            }
            for line in 0..LINES {
                let (above, rest) = tile.split_at_mut(line);
                for (k, x) in (top..).zip(above) {
                    subtract(&mut rest[0], factor.rows[k][top + line], x);
                }
                for x in &mut rest[0] {
                    *x *= factor.inverses[top + line];
                }
            }
            *own = tile;
        }
    }
}

/// The portable functions, compiled with more instructions enabled.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($module:ident, $features:literal) => {
        mod $module {
            use super::{LANES, SIDE, Triangle, portable};

            #[target_feature(enable = $features)]
            pub(super) fn factor(triangle: &mut Triangle, size: usize) {
                portable::factor(triangle, size);
            }

            #[target_feature(enable = $features)]
            pub(super) fn solve(factor: &Triangle, x: &mut [[f64; LANES]; SIDE]) {
                portable::solve(factor, x);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, "avx2");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, "avx512f,avx512vl");

#[cfg(test)]
mod tests;
