//! The problem: its objective `P`, its dual `D`, the model `w(a)`, and what a dual point proves.
//!
//! For rows `x_i`, targets `y_i`, weights `c_i` with `W = sum_i c_i`, and a loss `phi`:
//!
//! ```text
//! P(w, b) = (1/W) sum_i c_i phi(x_i.w + b; y_i) + lambda h(w)
//! D(a)    = (1/W) sum_i -c_i phi*(-a_i; y_i)    - lambda h*(v)
//! v       = (1/(lambda W)) sum_i c_i a_i x_i,     w(a) = grad h*(v)
//! ```
//!
//! where `h` is the penalty (see `penalty.rs`), at present `|w|^2 / 2`, so that `w(a) = v`.
//!
//! With an intercept, `a` must also satisfy `sum_i c_i a_i = 0`; without one, `b = 0`. For every
//! feasible `a`, `D(a) <= min P`, so `gap = P - D` bounds how far a model is above the optimum. At
//! `w = w(a)` the gap is a weighted mean of non-negative terms, one per row:
//!
//! ```text
//! P - D = (1/W) sum_i c_i (phi(p_i) + phi*(-a_i) + a_i p_i),   p_i = x_i.w + b
//! ```

mod evaluate;
mod point;

pub use point::Point;

use std::ops::Range;
use std::sync::Arc;

use crate::data::Data;
use crate::error::Error;
use crate::loss::blocks::{LossBlocks, TargetBlock};
use crate::loss::{Loss, Target};
use crate::memory;
use crate::penalty::{L2, Penalty};
use crate::rows::blocks::RowBlocks;
use crate::run::{RunContext, parameter};
use crate::steps::Steps;

/// The strength of the regularisation.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Regularisation {
    /// As in scikit-learn: `lambda = 1 / (C W)`, so that scikit-learn's objective is `W C P`.
    C(f64),
    /// `lambda` itself.
    Lambda(f64),
}

/// The problem to be minimised: rows, targets, weights, loss and regularisation.
#[derive(Clone)]
pub struct Problem<'a> {
    data: Arc<Data<'a>>,
    loss: Arc<dyn Steps>,
    targets: &'a [f64],
    penalty: Arc<dyn Penalty>,
    /// See [`Penalty::conjugate_smoothness`].
    conjugate_smoothness: f64,
    /// `lambda W`.
    scale: f64,
    fit_intercept: bool,
}

impl<'a> Problem<'a> {
    /// Builds the problem after checking that its parts are consistent. Problems may share their
    /// data.
    pub fn new<L: Loss>(
        data: impl Into<Arc<Data<'a>>>,
        targets: &'a [f64],
        loss: L,
        regularisation: Regularisation,
        fit_intercept: bool,
    ) -> Result<Self, Error> {
        let (data, loss) = (data.into(), Arc::new(loss));
        Self::of(data, targets, loss, regularisation, fit_intercept)
    }

    /// See [`Self::new`].
    pub(crate) fn of(
        data: Arc<Data<'a>>,
        targets: &'a [f64],
        loss: Arc<dyn Steps>,
        regularisation: Regularisation,
        fit_intercept: bool,
    ) -> Result<Self, Error> {
        let problem = Self::part_of(data, targets, loss, regularisation, fit_intercept)?;
        if problem.loss().target() == Target::Label {
            let mut labels = problem.data.positive_rows().map(|i| targets[i]);
            let first = labels.next();
            if labels.all(|y| Some(y) == first) {
                return Err(Error::OneClass);
            }
        }
        Ok(problem)
    }

    /// As [`Self::new`], for part of a larger problem: all labels may be the same.
    pub fn part<L: Loss>(
        data: impl Into<Arc<Data<'a>>>,
        targets: &'a [f64],
        loss: L,
        regularisation: Regularisation,
        fit_intercept: bool,
    ) -> Result<Self, Error> {
        let (data, loss) = (data.into(), Arc::new(loss));
        Self::part_of(data, targets, loss, regularisation, fit_intercept)
    }

    /// See [`Self::part`].
    pub(crate) fn part_of(
        data: Arc<Data<'a>>,
        targets: &'a [f64],
        loss: Arc<dyn Steps>,
        regularisation: Regularisation,
        fit_intercept: bool,
    ) -> Result<Self, Error> {
        let (n_rows, total_weight) = (data.n_rows(), data.total_weight());
        let why = "one for each row of X";
        if targets.len() != n_rows {
            return Err(Error::Length {
                name: "y",
                found: targets.len(),
                expected: n_rows,
                why,
            });
        }
        let target = loss.target();
        if let Some(row) = targets.iter().position(|&y| !target.accepts(y)) {
            let (found, expected) = (targets[row], target.expected());
            return Err(Error::Target {
                row,
                found,
                expected,
                loss: loss.name(),
            });
        }
        let lambda = match regularisation {
            Regularisation::C(c) if c.is_finite() && c > 0.0 => 1.0 / (c * total_weight),
            Regularisation::C(c) => return Err(parameter("C", c, "a finite number > 0")),
            Regularisation::Lambda(lambda) if lambda.is_finite() && lambda > 0.0 => lambda,
            Regularisation::Lambda(lambda) => {
                return Err(parameter("lam", lambda, "a finite number > 0"));
            }
        };
        if lambda.is_normal() && !(lambda * total_weight).is_normal() && data.weights().is_some() {
            return Err(parameter(
                "sample_weight",
                format!("a sum of {total_weight:e} for lambda = {lambda:e}"),
                "weights whose sum times lambda is neither infinite nor subnormal",
            ));
        }
        if !(lambda.is_normal() && (lambda * total_weight).is_normal()) {
            let name = if matches!(regularisation, Regularisation::C(_)) {
                "C"
            } else {
                "lam"
            };
            let expected =
                "a value for which lambda = 1 / (C W) is neither 0 nor infinite (nor subnormal)";
            return Err(parameter(name, format!("lambda = {lambda:e}"), expected));
        }
        let penalty = L2 { lambda };
        Ok(Self {
            data,
            loss,
            targets,
            conjugate_smoothness: penalty.conjugate_smoothness(),
            penalty: Arc::new(penalty),
            scale: lambda * total_weight,
            fit_intercept,
        })
    }

    /// The data.
    pub fn data(&self) -> &Data<'a> {
        &self.data
    }

    /// The rows, accessed block by block.
    pub(crate) fn rows(&self) -> &dyn RowBlocks {
        self.data.rows()
    }

    /// The loss, evaluated block by block.
    pub(crate) fn loss(&self) -> &dyn LossBlocks {
        &*self.loss
    }

    /// The loss, for steps on single rows.
    pub(crate) fn steps(&self) -> &dyn Steps {
        &*self.loss
    }

    /// The name of the loss.
    pub fn loss_name(&self) -> &'static str {
        self.loss().name()
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.data.n_rows()
    }

    /// The number of columns.
    pub fn n_cols(&self) -> usize {
        self.data.n_cols()
    }

    /// `lambda`.
    pub fn lambda(&self) -> f64 {
        self.penalty.lambda()
    }

    /// The penalty.
    pub(crate) fn penalty(&self) -> &dyn Penalty {
        &*self.penalty
    }

    /// Whether there is an intercept.
    pub fn fit_intercept(&self) -> bool {
        self.fit_intercept
    }

    /// `W`, the sum of the weights.
    pub fn total_weight(&self) -> f64 {
        self.data.total_weight()
    }

    /// `y_i`.
    #[inline]
    pub fn target(&self, i: usize) -> f64 {
        self.targets[i]
    }

    /// `c_i`.
    #[inline]
    pub fn weight(&self, i: usize) -> f64 {
        self.data.weight(i)
    }

    /// `c_i / W`, or 1 if there are no weights; for [`intercept::balance`].
    #[inline]
    pub(crate) fn weight_fraction(&self, i: usize) -> f64 {
        self.data
            .weights()
            .map_or(1.0, |c| c[i] / self.total_weight())
    }

    /// The scale of predictions. It is 1 for labels, and for curved losses, which set a scale of
    /// their own. For other losses it is the mean distance of the targets from their mean or,
    /// without an intercept, from 0; such losses are in the same units.
    pub(crate) fn prediction_scale(&self) -> f64 {
        if self.loss().target() == Target::Label || !self.loss().has_kinks() {
            return 1.0;
        }
        let mean_of = |term: &dyn Fn(f64) -> f64| {
            let terms = self.data.positive_rows().map(|i| {
                let share = self.weight(i) / self.total_weight();
                share * term(self.targets[i])
            });
            terms.sum::<f64>()
        };
        let mean = if self.fit_intercept {
            mean_of(&|y| y)
        } else {
            0.0
        };
        let unit = mean_of(&|y| (y - mean).abs());
        if unit.is_normal() { unit } else { 1.0 }
    }

    /// `c_i / (lambda W)`: the factor of `a_i x_i` in `v`.
    #[inline]
    #[doc(hidden)]
    pub fn rate(&self, i: usize) -> f64 {
        self.weight(i) / self.scale
    }

    /// `q_i` for a row of squared norm `sq_norm`: how fast the prediction for a row changes with
    /// its dual value.
    #[inline]
    pub(crate) fn q(&self, i: usize, sq_norm: f64) -> f64 {
        self.rate(i) * sq_norm * self.conjugate_smoothness
    }

    /// The weighted mean of `q_i`, given that of the squared norms.
    pub(crate) fn mean_q(&self, mean_sq_norm: f64) -> f64 {
        mean_sq_norm / self.scale * self.conjugate_smoothness
    }

    /// `P(w, b)`.
    pub fn primal(
        &self,
        coef: &[f64],
        intercept: f64,
        context: &mut RunContext<'_>,
    ) -> Result<f64, Error> {
        let losses = self.data.by_blocks(context, |block| {
            let mut p = memory::zeros(block.len());
            self.rows().products(block.start, coef, &mut p);
            self.loss().values(&p, intercept, self.target_block(block))
        })?;
        Ok(losses.iter().sum::<f64>() / self.total_weight() + self.penalty.value(coef))
    }

    /// Overwrites `coef` with `w(a)`. Returns `lambda h*(v)`, the penalty's term in `D(a)`.
    pub fn coef_of(
        &self,
        dual: &[f64],
        coef: &mut Vec<f64>,
        context: &mut RunContext<'_>,
    ) -> Result<f64, Error> {
        coef.clear();
        memory::resize(coef, self.n_cols(), 0.0);
        if dual.iter().any(|&a| a != 0.0) {
            self.data
                .add_rows(|i| self.rate(i) * dual[i], coef, context)?;
        }
        Ok(self.penalty.to_model(coef))
    }

    /// The term of row `i` in the gap, non-negative up to rounding: `phi(p) + phi*(-a) + a p` for
    /// the prediction `p` and the dual value `a`.
    #[doc(hidden)]
    pub fn row_gap(&self, i: usize, p: f64, a: f64) -> f64 {
        let (loss, y) = (self.loss(), self.targets[i]);
        loss.value(p, y) + loss.conjugate(a, y) + a * p
    }

    /// The values of a dual point, each clamped to the domain of the loss, which rounding can
    /// leave: for example in a mean of values at a limit.
    pub(crate) fn feasible<'d>(
        &'d self,
        dual: impl IntoIterator<Item = f64> + 'd,
    ) -> impl Iterator<Item = f64> + 'd {
        dual.into_iter().enumerate().map(|(i, a)| {
            let (low, high) = self.loss().dual_range(self.targets[i]);
            a.max(low).min(high)
        })
    }

    /// The targets and weights of a block of rows.
    pub(crate) fn target_block(&self, block: Range<usize>) -> TargetBlock<'a> {
        TargetBlock {
            c: self.data.weights().map(|c| &c[block.clone()]),
            y: &self.targets[block],
        }
    }

    /// The mean loss for the predictions `x_i.w` and the intercept `b`, and its derivative with
    /// respect to `b`.
    pub(crate) fn mean_loss(
        &self,
        predictions: &[f64],
        b: f64,
        context: &mut RunContext<'_>,
    ) -> Result<(f64, f64), Error> {
        self.mean_of_pairs(context, |block| {
            let targets = self.target_block(block.clone());
            self.loss()
                .values_and_slopes(&predictions[block], b, targets)
        })
    }

    /// The sums over all rows, divided by `W`, of the pairs that `work` sums over a block.
    pub(crate) fn mean_of_pairs(
        &self,
        context: &mut RunContext<'_>,
        work: impl Fn(Range<usize>) -> (f64, f64) + Sync,
    ) -> Result<(f64, f64), Error> {
        let blocks = self.data.by_blocks(context, work)?;
        let add = |sum: (f64, f64), more: (f64, f64)| (sum.0 + more.0, sum.1 + more.1);
        let (value, slope) = blocks.into_iter().fold((0.0, 0.0), add);
        Ok((value / self.total_weight(), slope / self.total_weight()))
    }
}
