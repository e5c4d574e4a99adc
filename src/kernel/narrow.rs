//! Whole blocks of dense rows with few columns. A call per row would cost more than the arithmetic,
//! and a sum held in memory would have to wait for its own update in every row.
//!
//! The versions for each [`Level`] of vector instructions differ only in the instructions that the
//! compiler may use: their results are bitwise identical.

use super::Element;
use super::dense::{Kind, Level};

/// The largest number of columns of narrow rows.
pub const NARROW: usize = 8;

/// `out_k = x_k.w` for the rows `x_k`, which have as many columns as `w`, at most [`NARROW`].
/// Bitwise identical to the portable [`super::dense_dot`]. (There is no other version: wider
/// vectors do not speed up sums across them.)
pub fn narrow_products<F: Element + Into<f64>>(x: &[F], w: &[f64], out: &mut [f64]) {
    portable::products(x, w, out);
}

/// `sum += sum_k shares_k x_k` for the rows `x_k`, which have as many columns as `sum`, at most
/// [`NARROW`]. A row whose share is 0 contributes nothing, whatever it holds.
pub fn narrow_sum<F: Element + Into<f64>>(level: Level, x: &[F], shares: &[f64], sum: &mut [f64]) {
    match level.0 {
        Kind::Portable => portable::add(x, shares, sum),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is only constructed where the CPU supports it.
        Kind::Avx2 => unsafe { avx2::add(x, shares, sum) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 => unsafe { avx512::add(x, shares, sum) },
    }
}

/// `out_k = shift + x_k` for the rows `x_k`, which have as many columns as `shift`, at most
/// [`NARROW`]. Each is written to the start of the next `width` elements of `out`.
pub fn narrow_shifted<F: Element + Into<f64>>(
    level: Level,
    x: &[F],
    shift: &[f64],
    width: usize,
    out: &mut [f64],
) {
    match level.0 {
        Kind::Portable => portable::shifted(x, shift, width, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is only constructed where the CPU supports it.
        Kind::Avx2 => unsafe { avx2::shifted(x, shift, width, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 => unsafe { avx512::shifted(x, shift, width, out) },
    }
}

mod portable {
    use super::super::Element;
    use super::super::dense::portable::sum_products;

    /// `$call::<_, N>($arguments)` for `N = $n_cols`, which is at most [`super::NARROW`].
    macro_rules! with_width {
        ($n_cols:expr, $call:ident($($argument:expr),*)) => {
            match $n_cols {
                0 => {}
                1 => $call::<_, 1>($($argument),*),
                2 => $call::<_, 2>($($argument),*),
                3 => $call::<_, 3>($($argument),*),
                4 => $call::<_, 4>($($argument),*),
                5 => $call::<_, 5>($($argument),*),
                6 => $call::<_, 6>($($argument),*),
                7 => $call::<_, 7>($($argument),*),
                8 => $call::<_, 8>($($argument),*),
                wide => unreachable!("{wide} columns are not narrow"),
            }
        };
    }

    #[inline(always)]
    pub(super) fn products<F: Element + Into<f64>>(x: &[F], w: &[f64], out: &mut [f64]) {
        with_width!(w.len(), products_of(x, w, out));
    }

    #[inline(always)]
    fn products_of<F: Element + Into<f64>, const N: usize>(x: &[F], w: &[f64], out: &mut [f64]) {
        let w: &[f64; N] = w.first_chunk().expect("N columns");
        for (x, out) in x.as_chunks::<N>().0.iter().zip(out) {
            *out = sum_products(x, w);
        }
    }

    #[inline(always)]
    pub(super) fn add<F: Element + Into<f64>>(x: &[F], shares: &[f64], sum: &mut [f64]) {
        with_width!(sum.len(), add_of(x, shares, sum));
    }

    #[inline(always)]
    fn add_of<F: Element + Into<f64>, const N: usize>(x: &[F], shares: &[f64], sum: &mut [f64]) {
        /// Parallel accumulators.
        const SUMS: usize = 2;
        let mut sums = [[0.0; N]; SUMS];
        let mut add = |at: usize, x: &[F; N], share: f64| {
            for (sum, &x) in sums[at].iter_mut().zip(x) {
                *sum += if share == 0.0 { 0.0 } else { share * x.into() };
            }
        };
        let (pairs, rest) = x.as_chunks::<N>().0.as_chunks::<SUMS>();
        let (share_pairs, share_rest) = shares.as_chunks::<SUMS>();
        for (x, shares) in pairs.iter().zip(share_pairs) {
            for at in 0..SUMS {
                add(at, &x[at], shares[at]);
            }
        }
        for (x, &share) in rest.iter().zip(share_rest) {
            add(0, x, share);
        }
        for (j, sum) in sum.iter_mut().enumerate() {
            *sum += sums[0][j] + sums[1][j];
        }
    }

    #[inline(always)]
    pub(super) fn shifted<F: Element + Into<f64>>(
        x: &[F],
        shift: &[f64],
        width: usize,
        out: &mut [f64],
    ) {
        with_width!(shift.len(), shifted_of(x, shift, width, out));
    }

    #[inline(always)]
    fn shifted_of<F: Element + Into<f64>, const N: usize>(
        x: &[F],
        shift: &[f64],
        width: usize,
        out: &mut [f64],
    ) {
        let shift: &[f64; N] = shift.first_chunk().expect("N columns");
        let lines = out.chunks_exact_mut(width);
        for (x, out) in x.as_chunks::<N>().0.iter().zip(lines) {
            let out: &mut [f64; N] = out.first_chunk_mut().expect("N <= width");
            for ((out, &x), shift) in out.iter_mut().zip(x).zip(shift) {
                *out = shift + x.into();
            }
        }
    }
}

/// The portable functions, compiled for wider vector instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($module:ident, $features:literal) => {
        mod $module {
            use super::super::Element;
            use super::portable;

            #[target_feature(enable = $features)]
            pub(super) fn add<F: Element + Into<f64>>(x: &[F], shares: &[f64], sum: &mut [f64]) {
                portable::add(x, shares, sum);
            }

            #[target_feature(enable = $features)]
            pub(super) fn shifted<F: Element + Into<f64>>(
                x: &[F],
                shift: &[f64],
                width: usize,
                out: &mut [f64],
            ) {
                portable::shifted(x, shift, width, out);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, "avx2");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, "avx512f,avx512vl");
