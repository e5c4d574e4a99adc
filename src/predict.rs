//! Predictions of fitted models.

use crate::error::Error;
use crate::problem::rows_per_block;
use crate::rows::Rows;
use crate::run::Watch;

/// `x_i . w_k + b_k` for each row `i` and each model `k`, row by row.
///
/// `coefs` holds the models one after the other, `n_cols` numbers each.
pub fn predictions<R: Rows>(
    rows: &R,
    coefs: &[f64],
    intercepts: &[f64],
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, Error> {
    let (n_rows, n_cols) = (rows.n_rows(), rows.n_cols());
    if coefs.len() != n_cols * intercepts.len() {
        let (found, expected) = (coefs.len(), n_cols * intercepts.len());
        return Err(Error::Length {
            name: "coef",
            found,
            expected,
            why: "columns of X times models",
        });
    }
    let block = rows_per_block(n_rows, rows.n_stored() * intercepts.len());
    let mut out = Vec::with_capacity(n_rows * intercepts.len());
    for i in 0..n_rows {
        for (coef, b) in coefs.chunks_exact(n_cols).zip(intercepts) {
            out.push(rows.dot(i, coef) + b);
        }
        if i % block == 0 {
            watch.beat()?;
        }
    }
    Ok(out)
}
