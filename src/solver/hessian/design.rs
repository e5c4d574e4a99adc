//! The rows as Newton's method sees them.

use super::columns::Columns;
use super::dot;
use crate::error::Error;
use crate::memory;
use crate::problem::Problem;
use crate::run::RunContext;

/// The rows as they are in `H`: centred, with a last entry of 1 if there is an intercept.
pub(crate) struct Design<'p, 'a> {
    pub(crate) problem: &'p Problem<'a>,
    /// The mean row; empty without an intercept.
    pub(crate) mu: Vec<f64>,
    pub(crate) columns: &'p Columns,
}

impl Design<'_, '_> {
    /// What to add to `x.v` for the product of the centred row with `v`.
    pub(crate) fn shift(&self, v: &[f64]) -> f64 {
        let (coef, rest) = v.split_at(self.problem.rows().n_cols());
        rest.first().map_or(0.0, |b| b - dot(&self.mu, coef))
    }

    /// The products of all rows with `v`.
    pub(crate) fn products(
        &self,
        v: &[f64],
        out: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let rows = self.problem.rows();
        let (coef, shift) = (&v[..rows.n_cols()], self.shift(v));
        context.fill(out, self.problem.data().block_size(), |from, out| {
            rows.products(from, coef, out);
            for product in out {
                *product += shift;
            }
        })
    }

    /// The sum of all rows, each times its weight and its product with `v`. `room` is a buffer for these products.
    pub(super) fn image(
        &self,
        weights: &[f64],
        v: &[f64],
        room: &mut Vec<f64>,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let rows = self.problem.rows();
        let (coef, shift) = (&v[..rows.n_cols()], self.shift(v));
        let fill = |from: usize, shares: &mut [f64]| {
            let weights = &weights[from..from + shares.len()];
            if weights.iter().all(|&r| r > 0.0) {
                rows.products(from, coef, shares);
            } else {
                for (i, (share, &r)) in (from..).zip(shares.iter_mut().zip(weights)) {
                    if r > 0.0 {
                        rows.products(i, coef, std::slice::from_mut(share));
                    }
                }
            }
            for (share, &r) in shares.iter_mut().zip(weights) {
                *share = if r > 0.0 { r * (*share + shift) } else { 0.0 };
            }
        };
        if !rows.is_sparse() && self.problem.data().sums_by_blocks() {
            // In one pass, so that each row is read from memory once. (Compressed rows gain nothing from that.)
            return self.sum_blocks(&fill, context);
        }
        memory::resize(room, rows.n_rows(), 0.0);
        context.fill(room, self.problem.data().block_size(), fill)?;
        self.sum(|i| room[i], context)
    }

    /// The sum of all rows times `share(i)`.
    pub(crate) fn sum(
        &self,
        share: impl Fn(usize) -> f64 + Sync,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let fill = |from: usize, shares: &mut [f64]| {
            for (i, of_row) in (from..).zip(shares) {
                *of_row = share(i);
            }
        };
        self.sum_blocks(&fill, context)
    }

    /// [`Self::sum`] for shares that `fill(from, shares)` computes for the rows from `from` on.
    pub(crate) fn sum_blocks(
        &self,
        fill: &(dyn Fn(usize, &mut [f64]) + Sync),
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let mut sum = memory::zeros(self.problem.n_cols());
        let total = self.problem.data().add_blocks(fill, &mut sum, context)?;
        if self.problem.fit_intercept() {
            for (sum, m) in sum.iter_mut().zip(&self.mu) {
                *sum -= total * m;
            }
            memory::push(&mut sum, total);
        }
        Ok(sum)
    }
}
