//! Predictions of several fitted models at once.

use crate::data::{Storage, rows_per_block, with_rows};
use crate::error::{self, Error};
use crate::memory;
use crate::rows::Rows;
use crate::run::RunContext;

/// The smallest number of stored entries, counted once per model, that justifies a thread: they
/// take a tenth of a millisecond or more (dense rows, in cache), and starting a thread takes half
/// as long.
const PER_THREAD: usize = 1 << 20;

/// `x_i . w_k + b_k` for each row `i` and each model `k`, in row-major order.
///
/// `coefs` holds the models one after the other, `n_cols` numbers each. Up to `n_threads` threads
/// share the rows; the result does not depend on their number.
pub fn predictions(
    rows: &Storage<'_>,
    coefs: &[f64],
    intercepts: &[f64],
    n_threads: usize,
    context: &mut RunContext<'_>,
) -> Result<Vec<f64>, Error> {
    error::catch(|| {
        let mut out = memory::zeros(rows.blocks().n_rows().saturating_mul(intercepts.len()));
        write_predictions(rows, coefs, intercepts, n_threads, context, &mut out)?;
        Ok(out)
    })
}

/// [`predictions`], written to `out`.
pub fn write_predictions(
    rows: &Storage<'_>,
    coefs: &[f64],
    intercepts: &[f64],
    n_threads: usize,
    context: &mut RunContext<'_>,
    out: &mut [f64],
) -> Result<(), Error> {
    with_rows!(rows, rows => {
        let models = Models::new(rows, coefs, intercepts)?;
        models.for_rows(n_threads, context, out, intercepts.len(), |i, out| {
            for (out, score) in out.iter_mut().zip(models.scores(i)) {
                *out = score;
            }
        })
    })
}

/// Writes to `out` the model with the largest of the [`predictions`] for each row, or the first of
/// several. The predictions themselves are not stored.
pub fn write_best(
    rows: &Storage<'_>,
    coefs: &[f64],
    intercepts: &[f64],
    n_threads: usize,
    context: &mut RunContext<'_>,
    out: &mut [i64],
) -> Result<(), Error> {
    with_rows!(rows, rows => {
        let models = Models::new(rows, coefs, intercepts)?;
        models.for_rows(n_threads, context, out, 1, |i, out| {
            let mut best = (0, f64::NEG_INFINITY);
            for (k, score) in (0..).zip(models.scores(i)) {
                if score > best.1 {
                    best = (k, score);
                }
            }
            out[0] = best.0;
        })
    })
}

/// Linear models, and the rows to predict for.
struct Models<'a, R> {
    rows: &'a R,
    coefs: &'a [f64],
    intercepts: &'a [f64],
}

impl<'a, R: Rows> Models<'a, R> {
    fn new(rows: &'a R, coefs: &'a [f64], intercepts: &'a [f64]) -> Result<Self, Error> {
        let (found, expected) = (coefs.len(), rows.n_cols() * intercepts.len());
        if found != expected {
            return Err(Error::Length {
                name: "coef",
                found,
                expected,
                why: "columns of X times models",
            });
        }
        Ok(Self {
            rows,
            coefs,
            intercepts,
        })
    }

    /// The predictions for row `i`.
    #[inline]
    fn scores(&self, i: usize) -> impl Iterator<Item = f64> {
        let models = self.coefs.chunks_exact(self.rows.n_cols());
        models
            .zip(self.intercepts)
            .map(move |(coef, b)| self.rows.dot(i, coef) + *b)
    }

    /// Calls `work(i, out)` for each row; `out` has `size` items per row.
    fn for_rows<T: Send>(
        &self,
        n_threads: usize,
        context: &mut RunContext<'_>,
        out: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<(), Error> {
        if out.is_empty() {
            return Ok(());
        }
        let n_models = self.intercepts.len();
        let entries = self.rows.n_stored().saturating_mul(n_models);
        let block = rows_per_block(self.rows.n_rows(), entries);
        let of_models = self.rows.n_cols() * n_models;
        context.set_threads(n_threads.min(entries / PER_THREAD), entries, of_models)?;
        context.fill(out, block * size, |from, out| {
            for (k, out) in out.chunks_exact_mut(size).enumerate() {
                work(from / size + k, out);
            }
        })
    }
}
