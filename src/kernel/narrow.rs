//! Whole blocks of dense rows of a few columns: a call for each row would cost more than its arithmetic, and a sum
//! kept in memory would wait for itself from row to row.

use super::Element;
use super::dense::portable::sum_products;

/// Most columns of narrow rows.
pub const NARROW: usize = 8;

/// `$call::<_, N>($arguments)` for `N = $n_cols`, which is at most [`NARROW`].
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

/// `out_k = x_k.w` for the rows `x_k` of as many columns as `w`, at most [`NARROW`]. The same bits as those of the
/// portable [`super::dense_dot`].
pub fn narrow_products<F: Element + Into<f64>>(x: &[F], w: &[f64], out: &mut [f64]) {
    with_width!(w.len(), products(x, w, out));
}

fn products<F: Element + Into<f64>, const N: usize>(x: &[F], w: &[f64], out: &mut [f64]) {
    let w: &[f64; N] = w.first_chunk().expect("N columns");
    for (x, out) in x.as_chunks::<N>().0.iter().zip(out) {
        *out = sum_products(x, w);
    }
}

/// `sum += sum_k shares_k x_k` for the rows `x_k` of as many columns as `sum`, at most [`NARROW`]. A row whose share
/// is 0 counts for nothing, whatever it holds.
pub fn narrow_sum<F: Element + Into<f64>>(x: &[F], shares: &[f64], sum: &mut [f64]) {
    with_width!(sum.len(), add(x, shares, sum));
}

fn add<F: Element + Into<f64>, const N: usize>(x: &[F], shares: &[f64], sum: &mut [f64]) {
    /// Sums side by side.
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
