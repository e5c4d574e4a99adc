//! Rows as used by solvers that update the intercept: centred, with a column for it.
//!
//! With a free intercept the rows may be shifted: `x.w + b = (x - mu).w + (b + mu.w)`. Steps on
//! rows centred at their mean `mu` are longer, because `|x - mu|^2` is smaller than `|x|^2` where
//! columns are far from 0. The rows themselves are not changed. A sum of centred rows
//! `sum_i r_i (x_i - mu)`, with a last column of value `sqrt(s)` for the intercept, is stored as
//! `v = sum_i r_i x_i` and `pull = sum_i r_i`. With `m_i = x_i.mu`, its product with the centred
//! row `i`,
//!
//! ```text
//! (x_i - mu).(v - pull mu) + s pull = x_i.v - pull m_i + t,   t = pull (|mu|^2 + s) - mu.v
//! ```
//!
//! costs one sparse dot product and three numbers: `m_i`, `pull` and `t`. The last two are kept up
//! to date. Without an intercept `mu` and `s` are 0, and so are `m_i` and `t`.

use std::sync::Arc;

use crate::data::RowGeometry;
use crate::error::Error;
use crate::memory::{self, Duplicate as _};
use crate::problem::Problem;
use crate::rows::Rows;
use crate::run::RunContext;

/// Weight `s` of the intercept column as a fraction of the mean `|x - mu|^2`. The larger it is, the
/// faster the intercept moves; but its share of `|x|^2` makes every step shorter.
const INTERCEPT_SHARE: f64 = 0.1;

/// Least contribution of the intercept column to `q = |x|^2 / (lambda W)`. Under strong
/// regularisation `q` is small and steps are long, so that the intercept may move faster than
/// [`INTERCEPT_SHARE`] allows. In units of [`Problem::prediction_scale`], as `q` is.
const INTERCEPT_Q: f64 = 0.01;

/// A limit for targets and `lambda` so large that their product overflows; the intercept then moves
/// less.
const MOST_LEAST: f64 = 1e300;

/// The mean row and the numbers that depend on it.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// The mean row; zeros without an intercept.
    pub(crate) mu: Vec<f64>,
    /// `|mu|^2`.
    mu_sq_norm: f64,
    /// Weight of the intercept column; 0 without an intercept.
    pub(crate) s: f64,
    /// The weighted mean of `|x - mu|^2`.
    pub(crate) mean_sq_norm: f64,
}

impl Frame {
    /// The frame of the data, and the norms of the rows in it.
    pub(crate) fn new(
        problem: &Problem<'_>,
        context: &mut RunContext<'_>,
    ) -> Result<(Self, Arc<RowGeometry>), Error> {
        let geometry = problem.data().geometry(problem.fit_intercept(), context)?;
        check_finite(problem, &geometry)?;
        let mut frame = Self::of(&geometry);
        frame.weigh_intercept(problem, problem.total_weight());
        Ok((frame, geometry))
    }

    /// The frame for rows that follow others, whose mean row, mean `|x - mu|^2` and weight are
    /// given. Its origin is the mean of all rows, and it contains the mean `|x - mu|^2` of all.
    /// Also returns the norms of the rows that are given now, and the weight of all.
    pub(crate) fn joined(
        problem: &Problem<'_>,
        (mean_before, sq_norm_before, weight_before): (&[f64], f64, f64),
        context: &mut RunContext<'_>,
    ) -> Result<(Self, Arc<RowGeometry>, f64), Error> {
        let weight = weight_before + problem.total_weight();
        let (before, now) = (weight_before / weight, problem.total_weight() / weight);
        let mut mu = memory::zeros(mean_before.len());
        let mut moved = 0.0;
        if problem.fit_intercept() {
            let share = |i| problem.weight(i) / problem.total_weight();
            problem.data().add_rows(share, &mut mu, context)?;
            for (mu, mean) in mu.iter_mut().zip(mean_before) {
                *mu = before * mean + now * *mu;
                moved += (*mu - mean) * (*mu - mean);
            }
        }
        let geometry = RowGeometry::about(problem.data(), mu, problem.fit_intercept(), context)?;
        check_finite(problem, &geometry)?;
        let mut frame = Self::of(&geometry);
        frame.mean_sq_norm = before * (sq_norm_before + moved) + now * geometry.mean_sq_norm;
        frame.weigh_intercept(problem, problem.total_weight());
        Ok((frame, Arc::new(geometry), weight))
    }

    /// Computes `s` for rows that have this weight in an epoch.
    fn weigh_intercept(&mut self, problem: &Problem<'_>, weight: f64) {
        if problem.fit_intercept() {
            let least = INTERCEPT_Q * problem.prediction_scale() * problem.lambda() * weight;
            self.s = (INTERCEPT_SHARE * self.mean_sq_norm).max(least.min(MOST_LEAST));
        }
    }

    /// The frame with its origin at `mu`.
    #[cfg(test)]
    pub(crate) fn at(mu: Vec<f64>) -> Self {
        let mu_sq_norm = mu.iter().map(|m| m * m).sum();
        Self {
            mu,
            mu_sq_norm,
            s: 0.0,
            mean_sq_norm: 0.0,
        }
    }

    /// The frame with the same origin as the geometry.
    fn of(geometry: &RowGeometry) -> Self {
        Self {
            mu: geometry.mu.duplicate(),
            mu_sq_norm: geometry.mu_sq_norm,
            s: 0.0,
            mean_sq_norm: geometry.mean_sq_norm,
        }
    }

    /// What adding the centred row `x`, for which `m = x.mu`, adds to `t`.
    #[inline(always)]
    pub(crate) fn t_increment(&self, m: f64) -> f64 {
        self.mu_sq_norm + self.s - m
    }

    /// `mu.v`.
    pub(crate) fn mu_dot(&self, v: &[f64]) -> f64 {
        self.mu.iter().zip(v).map(|(m, v)| m * v).sum()
    }
}

/// Returns an error if `q` is not finite for some row, including those of weight 0, because 0 times a
/// non-finite number is NaN. For Python users, this is the check that rejects infinities and NaNs.
fn check_finite(problem: &Problem<'_>, geometry: &RowGeometry) -> Result<(), Error> {
    let mut is_finite = true;
    for (i, &spread) in geometry.spreads.iter().enumerate() {
        is_finite &= problem.q(i, spread).is_finite();
    }
    if is_finite {
        return Ok(());
    }
    Err(Error::Overflow {
        what: "|x|^2 / (lambda W)",
    })
}

/// A sum of centred rows, `sum_i r_i (x_i - mu)`.
#[derive(Debug, Clone)]
pub(crate) struct Sum {
    /// `sum_i r_i x_i`, up to rounding.
    pub(crate) v: Vec<f64>,
    /// `sum_i r_i`, up to rounding.
    pub(crate) pull: f64,
    /// `pull (|mu|^2 + s) - mu.v`, up to rounding.
    t: f64,
}

impl Sum {
    /// The empty sum.
    pub(crate) fn new(n_cols: usize) -> Self {
        Self {
            v: memory::zeros(n_cols),
            pull: 0.0,
            t: 0.0,
        }
    }

    /// The product with the centred row `i`, for which `m = x.mu`.
    #[inline(always)]
    pub(crate) fn dot<R: Rows>(&self, rows: &R, i: usize, m: f64) -> f64 {
        self.centred(rows.dot(i, &self.v), m)
    }

    /// The product with a centred row, given the `product` of `v` with the row itself, and `m = x.mu`.
    #[inline(always)]
    pub(crate) fn centred(&self, product: f64, m: f64) -> f64 {
        product - self.pull * m + self.t
    }

    /// Adds `share` times the centred row `i`, for which `m = x.mu`.
    #[inline(always)]
    pub(crate) fn axpy<R: Rows>(&mut self, frame: &Frame, rows: &R, i: usize, m: f64, share: f64) {
        rows.axpy(i, share, &mut self.v);
        self.axpy_offsets(frame, m, share);
    }

    /// The part of [`Self::axpy`] that does not touch `v`.
    #[inline(always)]
    pub(crate) fn axpy_offsets(&mut self, frame: &Frame, m: f64, share: f64) {
        self.pull += share;
        self.t += share * frame.t_increment(m);
    }

    /// Recomputes the sum of `share(i)` times row `i` from scratch, which removes the rounding
    /// errors of updates.
    pub(crate) fn refresh(
        &mut self,
        frame: &Frame,
        problem: &Problem<'_>,
        share: impl Fn(usize) -> f64 + Sync,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        self.v.fill(0.0);
        problem.data().add_rows(&share, &mut self.v, context)?;
        self.pull = (0..problem.n_rows()).map(share).sum();
        self.update_t(frame);
        Ok(())
    }

    /// Recomputes `t` from `v` and `pull`.
    pub(crate) fn update_t(&mut self, frame: &Frame) {
        self.t = self.pull * (frame.mu_sq_norm + frame.s) - frame.mu_dot(&self.v);
    }

    /// Multiplies the sum by `factor`.
    pub(crate) fn scale(&mut self, factor: f64) {
        for v in &mut self.v {
            *v *= factor;
        }
        self.pull *= factor;
        self.t *= factor;
    }

    /// `v - pull mu`, scaled: the sum without the intercept's column.
    pub(crate) fn coef(&self, frame: &Frame, factor: f64) -> impl Iterator<Item = f64> {
        let columns = self.v.iter().zip(&frame.mu);
        columns.map(move |(v, mu)| factor * (v - self.pull * mu))
    }

    /// `|v - pull mu|^2`.
    pub(crate) fn sq_norm(&self, frame: &Frame) -> f64 {
        self.coef(frame, 1.0).map(|w| w * w).sum()
    }
}
