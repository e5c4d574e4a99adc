//! Sums over rows of products of a few dense columns, in one version for each [`Level`] of vector
//! instructions.
//!
//! Rows hold `width` numbers, a multiple of [`LANES`], of which only the first `used` are
//! meaningful. Each cell is a sum over the rows in order, so all versions give bitwise identical
//! results.

use super::dense::{Kind, Level};

/// The number of columns processed together.
pub const LANES: usize = 8;

/// An entry of a row: its column and its value.
pub type Entry = (u32, f64);

/// Rows of `width` numbers, of which only the first `used` are meaningful.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// The numbers in row-major order.
    pub rows: &'a [f64],
    /// The length of a row, a multiple of [`LANES`].
    pub width: usize,
    /// The number of meaningful numbers in a row.
    pub used: usize,
}

/// `out += sum_r h_r z_r z_r'` for the rows `z_r` and their weights `h_r`. Cells to the right of
/// the diagonal may or may not be computed.
pub fn add_products(level: Level, block: Block<'_>, weights: &[f64], out: &mut [f64]) {
    match level.0 {
        Kind::Portable => portable::products(block, weights, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is only constructed where the CPU supports it.
        Kind::Avx2 => unsafe { avx2::products(block, weights, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 => unsafe { avx512::products(block, weights, out) },
    }
}

/// `out_column += x z_r` for the entries `(column, x)` of each row in the other columns; those of
/// row `r` end before `ends[r]`. `out` has a line of `width` numbers for each column.
pub fn add_mixed(
    level: Level,
    block: Block<'_>,
    entries: &[Entry],
    ends: &[usize],
    out: &mut [f64],
) {
    match level.0 {
        Kind::Portable => portable::mixed(block, entries, ends, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is only constructed where the CPU supports it.
        Kind::Avx2 => unsafe { avx2::mixed(block, entries, ends, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 => unsafe { avx512::mixed(block, entries, ends, out) },
    }
}

mod portable {
    use super::{Block, Entry, LANES};

    /// Works in tiles of as many lines as stay in registers during the loop over the rows.
    pub(super) fn products(block: Block<'_>, weights: &[f64], out: &mut [f64]) {
        const LINES: usize = 4;
        let Block { rows, width, used } = block;
        for top in (0..used).step_by(LINES) {
            for left in (0..top + LINES).step_by(LANES) {
                let mut tile = [[0.0; LANES]; LINES];
                for (row, h) in rows.chunks_exact(width).zip(weights) {
                    let x: &[f64; LINES] = row[top..].first_chunk().expect("LINES divides width");
                    let z: &[f64; LANES] = row[left..].first_chunk().expect("LANES divides width");
                    let z = z.map(|z| h * z);
                    for (line, x) in tile.iter_mut().zip(x) {
                        for (cell, z) in line.iter_mut().zip(z) {
                            *cell += x * z;
                        }
                    }
                }
                for (line, tile) in tile.iter().enumerate() {
                    let out = &mut out[(top + line) * width + left..][..LANES];
                    for (out, cell) in out.iter_mut().zip(tile) {
                        *out += cell;
                    }
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn mixed(block: Block<'_>, entries: &[Entry], ends: &[usize], out: &mut [f64]) {
        let Block { rows, width, .. } = block;
        let mut from = 0;
        for (row, &end) in rows.chunks_exact(width).zip(ends) {
            for &(column, value) in &entries[from..end] {
                let out = &mut out[column as usize * width..][..width];
                for (out, x) in out.iter_mut().zip(row) {
                    *out += value * x;
                }
            }
            from = end;
        }
    }
}

/// The same with explicit vectors, because the compiler keeps an array of sums in memory in some
/// builds and in registers in others. `mixed` compiles well as a single loop: if it is split into
/// chunks, the compiler uses gathers and scatters.
#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($module:ident, $features:literal, $lines:literal, $n_vectors:literal, $zero:ident, $same:ident, $load:ident, $store:ident,
     $add:ident, $mul:ident) => {
        mod $module {
            use std::arch::x86_64::{$add, $load, $mul, $same, $store, $zero};

            use super::{Block, Entry, LANES, portable};

            /// The number of elements in a vector.
            const SIZE: usize = LANES / $n_vectors;

            /// Works in tiles of as many lines as stay in registers during the loop over the rows;
            /// the last tile may have fewer.
            #[target_feature(enable = $features)]
            pub(super) fn products(block: Block<'_>, weights: &[f64], out: &mut [f64]) {
                let mut top = 0;
                while top < block.used {
                    let rest = block.used - top;
                    for left in (0..top + rest.min($lines)).step_by(LANES) {
                        let corner = (top, left);
                        match rest {
                            1 => tile::<1>(block, weights, corner, out),
                            2..=4 => tile::<4>(block, weights, corner, out),
                            _ => tile::<$lines>(block, weights, corner, out),
                        }
                    }
                    top += $lines;
                }
            }

            /// One tile: the lines starting at `top`, in the columns starting at `left`.
            #[target_feature(enable = $features)]
            fn tile<const LINES: usize>(
                block: Block<'_>,
                weights: &[f64],
                (top, left): (usize, usize),
                out: &mut [f64],
            ) {
                let Block { rows, width, .. } = block;
                let mut tile = [[$zero(); $n_vectors]; LINES];
                for (row, &h) in rows.chunks_exact(width).zip(weights) {
                    let x: &[f64; LINES] = row[top..].first_chunk().expect("LINES divides width");
                    let z: &[f64; LANES] = row[left..].first_chunk().expect("LANES divides width");
                    let mut scaled = [$zero(); $n_vectors];
                    for (k, scaled) in scaled.iter_mut().enumerate() {
                        // SAFETY: z has $n_vectors * SIZE elements.
                        let z = unsafe { $load(z.as_ptr().add(k * SIZE)) };
                        *scaled = $mul($same(h), z);
                    }
                    for line in 0..LINES {
                        let x = $same(x[line]);
                        for k in 0..$n_vectors {
                            tile[line][k] = $add(tile[line][k], $mul(x, scaled[k]));
                        }
                    }
                }
                for (line, tile) in tile.iter().enumerate() {
                    let out: &mut [f64; LANES] = out[(top + line) * width + left..]
                        .first_chunk_mut()
                        .expect("LANES divides width");
                    for (k, sum) in tile.iter().enumerate() {
                        let at = k * SIZE;
                        // SAFETY: out has $n_vectors * SIZE elements.
                        unsafe {
                            let before = $load(out.as_ptr().add(at));
                            $store(out.as_mut_ptr().add(at), $add(before, *sum));
                        }
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(super) fn mixed(
                block: Block<'_>,
                entries: &[Entry],
                ends: &[usize],
                out: &mut [f64],
            ) {
                portable::mixed(block, entries, ends, out);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vectors!(
    avx2,
    "avx2",
    4,
    2,
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_mul_pd
);
#[cfg(target_arch = "x86_64")]
vectors!(
    avx512,
    "avx512f,avx512vl",
    8,
    1,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_mul_pd
);

#[cfg(test)]
mod tests;
