//! Predictions of fitted models.

use crate::error::Error;
use crate::problem::rows_per_block;
use crate::rows::Rows;
use crate::run::Watch;

/// Stored entries, counted for each model, that are worth a thread: they take from a tenth of a
/// millisecond on (dense rows, in the cache), starting it half as long.
const PER_THREAD: usize = 1 << 20;

/// `x_i . w_k + b_k` for each row `i` and each model `k`, row by row.
///
/// `coefs` holds the models one after the other, `n_cols` numbers each. Up to `n_threads` threads share
/// the rows; the result does not depend on how many.
pub fn predictions<R: Rows>(
    rows: &R,
    coefs: &[f64],
    intercepts: &[f64],
    n_threads: usize,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, Error> {
    let (n_rows, n_cols, n_models) = (rows.n_rows(), rows.n_cols(), intercepts.len());
    if coefs.len() != n_cols * n_models {
        let (found, expected) = (coefs.len(), n_cols * n_models);
        return Err(Error::Length {
            name: "coef",
            found,
            expected,
            why: "columns of X times models",
        });
    }
    let mut out = vec![0.0; n_rows * n_models];
    if out.is_empty() {
        return Ok(out);
    }
    let work = rows.n_stored() * n_models;
    let block = rows_per_block(n_rows, work);
    watch.engage(n_threads.min(work / PER_THREAD), work, n_cols * n_models)?;
    let models: Vec<_> = coefs.chunks_exact(n_cols).zip(intercepts).collect();
    watch.fill(&mut out, block * n_models, |from, out| {
        for (k, out) in out.chunks_exact_mut(n_models).enumerate() {
            let i = from / n_models + k;
            for (out, (coef, b)) in out.iter_mut().zip(&models) {
                *out = rows.dot(i, coef) + *b;
            }
        }
    })?;
    Ok(out)
}
