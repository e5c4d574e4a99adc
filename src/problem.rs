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
//! where `h` is the penalty, see `penalty.rs`: today `|w|^2 / 2`, so that `w(a) = v`.
//!
//! With an intercept, `a` must also satisfy `sum_i c_i a_i = 0`; without one, `b = 0`. For every
//! feasible `a`, `D(a) <= min P`, so that `gap = P - D` bounds how far a model is from the best. At
//! `w = w(a)` the gap is a weighted mean of one term per row, none of them negative:
//!
//! ```text
//! P - D = (1/W) sum_i c_i (phi(p_i) + phi*(-a_i) + a_i p_i),   p_i = x_i.w + b
//! ```

use std::ops::Range;
use std::sync::Arc;

use crate::data::Data;
use crate::error::Error;
use crate::intercept::{self, Minimum};
use crate::loss::blocks::{LossBlocks, TargetBlock};
use crate::loss::{Loss, Target};
use crate::memory;
use crate::penalty::{L2, Penalty};
use crate::rows::blocks::RowBlocks;
use crate::run::{Certificate, RunContext, parameter};
use crate::steps::Steps;

/// How strongly `w` is regularised.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Regularisation {
    /// As scikit-learn: `lambda = 1 / (C W)`, so that `W C P` is its objective.
    C(f64),
    /// `lambda` itself.
    Lambda(f64),
}

/// Rows, targets, weights, loss and regularisation: what is to be minimised.
#[derive(Clone)]
pub struct Problem<'a> {
    data: Arc<Data<'a>>,
    loss: Arc<dyn Steps>,
    targets: &'a [f64],
    penalty: Arc<dyn Penalty>,
    /// `lambda W`.
    scale: f64,
    fit_intercept: bool,
}

impl<'a> Problem<'a> {
    /// States the problem, after checking that its parts fit together. Problems may share their data.
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

    /// As [`Self::new`], for a part of a larger problem, in which all labels may be the same.
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
        Ok(Self {
            data,
            loss,
            targets,
            penalty: Arc::new(L2 { lambda }),
            scale: lambda * total_weight,
            fit_intercept,
        })
    }

    /// The data.
    pub fn data(&self) -> &Data<'a> {
        &self.data
    }

    /// The rows, block by block.
    pub(crate) fn rows(&self) -> &dyn RowBlocks {
        self.data.rows()
    }

    /// The loss, block by block.
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

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.data.n_rows()
    }

    /// Number of columns.
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

    /// `c_i / W`, or 1 if there are no weights, for [`intercept::balance`].
    #[inline]
    pub(crate) fn weight_fraction(&self, i: usize) -> f64 {
        self.data
            .weights()
            .map_or(1.0, |c| c[i] / self.total_weight())
    }

    /// What predictions are measured in: 1 for labels, and where losses are curved, which has a scale of its own; else
    /// how far targets are from their mean or, without an intercept, from 0. Then losses are in the same units.
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

    /// `c_i / (lambda W)`: how much of `a_i x_i` is in the sum of the rows.
    #[inline]
    #[doc(hidden)]
    pub fn rate(&self, i: usize) -> f64 {
        self.weight(i) / self.scale
    }

    /// `q_i` for the square of the length of row `i`: how much the prediction for the row follows its dual value.
    pub(crate) fn q(&self, i: usize, sq_norm: f64) -> f64 {
        self.rate(i) * sq_norm * self.penalty.conjugate_smoothness()
    }

    /// The weighted mean of `q_i`, for that of the squares.
    pub(crate) fn mean_q(&self, mean_sq_norm: f64) -> f64 {
        mean_sq_norm / self.scale * self.penalty.conjugate_smoothness()
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

    /// `w = w(a)`, written over `coef`. Returns what the penalty takes off `D(a)`, `lambda h*(v)`.
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

    /// The term of row `i` in the gap, never negative but for rounding:
    /// `phi(p) + phi*(-a) + a p` for the prediction `p` and the dual value `a`.
    #[doc(hidden)]
    pub fn row_gap(&self, i: usize, p: f64, a: f64) -> f64 {
        let (loss, y) = (self.loss(), self.targets[i]);
        loss.value(p, y) + loss.conjugate(a, y) + a * p
    }

    /// The values of a dual point, each brought into the domain of the loss: rounding, as in a mean
    /// of values at a limit, can leave it.
    pub(crate) fn feasible<'d>(
        &'d self,
        dual: impl IntoIterator<Item = f64> + 'd,
    ) -> impl Iterator<Item = f64> + 'd {
        dual.into_iter().enumerate().map(|(i, a)| {
            let (low, high) = self.loss().dual_range(self.targets[i]);
            a.max(low).min(high)
        })
    }

    /// The model that a dual point defines and what the two prove, computed from scratch.
    ///
    /// The dual values must lie in the domain of the loss. With an intercept they are first made
    /// feasible ([`intercept::balance`]), and `P` is minimised over `b` to a relative `precision`,
    /// searching from the last `point.intercept` on. The buffers of `point` are used again.
    pub fn evaluate(
        &self,
        dual: impl IntoIterator<Item = f64>,
        precision: f64,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        point.dual.clear();
        memory::extend(&mut point.dual, dual);
        self.evaluate_dual(precision, point, context)
    }

    /// [`Self::evaluate`], offset from what takes an iterator: to be compiled once for a problem.
    fn evaluate_dual(
        &self,
        precision: f64,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        self.balance(&mut point.dual);
        let mut coef = std::mem::take(&mut point.coef);
        let conjugate = self.coef_of(&point.dual, &mut coef, context)?;
        point.coef = coef;
        let primal = self.find_intercept(precision, point, context)?;
        let (dual, support) = self.dual(&point.dual, conjugate, context)?;
        point.certificate = Certificate::new(primal, dual, support);
        Ok(())
    }

    /// What a model and a dual point prove that do not belong together, computed from scratch.
    ///
    /// As [`Self::evaluate`], but for the coefficients, which are given; the intercept is the best
    /// one for them.
    pub fn evaluate_pair(
        &self,
        coef: impl IntoIterator<Item = f64>,
        dual: impl IntoIterator<Item = f64>,
        precision: f64,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        point.assign(coef, dual);
        let (_, dual) = self.evaluate_both(&mut point.dual, context)?;
        self.pair(dual, precision, point, context)
    }

    /// Makes a dual point feasible. Returns `w(a)`, `D(a)` and the number of dual values other than zero.
    fn evaluate_both(
        &self,
        dual: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<(Vec<f64>, (f64, usize)), Error> {
        self.balance(dual);
        let mut coef = Vec::new();
        let conjugate = self.coef_of(dual, &mut coef, context)?;
        let value = self.dual(dual, conjugate, context)?;
        Ok((coef, value))
    }

    /// Certifies the model of `point`, which is not the one of its dual point. That has the value and the number
    /// of values other than zero that are given.
    fn pair(
        &self,
        (dual, support): (f64, usize),
        precision: f64,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let primal = self.find_intercept(precision, point, context)?;
        let bound = dual - self.rounding_of(&point.dual, context)?;
        point.certificate = Certificate::new(primal, bound, support);
        Ok(())
    }

    /// What the rounding error of `w(a)` may do to `D(a)`, as a rule.
    ///
    /// The sum of the rows may all but cancel. In `D(a)` alone an error of it counts to second order, which a model of
    /// another origin does not make up for.
    fn rounding_of(&self, dual: &[f64], context: &mut RunContext<'_>) -> Result<f64, Error> {
        // Errors are scaled before they are squared, which may overflow otherwise.
        let unit = 4.0 * f64::EPSILON * self.penalty.error_scale();
        let squares = self.data.by_blocks(context, |block| {
            // Most dual values may be 0: their rows are not read.
            let norm_of = |i: usize| {
                let mut sq_norm = [0.0];
                self.rows().sq_norms(i, &mut sq_norm);
                (i, sq_norm[0])
            };
            block
                .filter(|&i| dual[i] != 0.0)
                .map(norm_of)
                .filter(|&(_, sq_norm)| sq_norm > 0.0)
                .map(|(i, sq_norm)| (unit * self.rate(i) * dual[i] * sq_norm.sqrt()).powi(2))
                .sum::<f64>()
        })?;
        Ok(0.5 * squares.iter().sum::<f64>())
    }

    /// [`Self::evaluate_pair`], or [`Self::evaluate`] where both are within the tolerance, or where it is and
    /// `probably` had made it the first to be tried. Says whether it is the latter.
    pub(crate) fn evaluate_either(
        &self,
        coef: impl IntoIterator<Item = f64>,
        dual: impl IntoIterator<Item = f64>,
        probably: bool,
        (tol, precision): (f64, f64),
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<bool, Error> {
        point.assign(coef, dual);
        let (coef, (dual, support)) = self.evaluate_both(&mut point.dual, context)?;
        if !probably {
            self.pair((dual, support), precision, point, context)?;
            if !point.certificate.is_within(tol) {
                return Ok(false);
            }
        }
        let mut of_dual = Point {
            coef,
            dual: std::mem::take(&mut point.dual),
            predictions: std::mem::take(&mut point.predictions),
            intercept: point.intercept,
            ..Point::default()
        };
        let primal = self.find_intercept(precision, &mut of_dual, context)?;
        of_dual.certificate = Certificate::new(primal, dual, support);
        if of_dual.certificate.is_within(tol) {
            *point = of_dual;
            return Ok(true);
        }
        point.dual = of_dual.dual;
        point.predictions = of_dual.predictions;
        if probably {
            self.pair((dual, support), precision, point, context)?;
        } else {
            self.predict(point, context)?;
        }
        Ok(false)
    }

    /// As [`Self::evaluate_pair`], but for the dual point, which is the better of `dual` and of
    /// `a_i = -phi'(x_i.w + b)`. Near the optimum of a differentiable loss the latter is the better
    /// one, whatever has led there.
    pub fn evaluate_model(
        &self,
        coef: impl IntoIterator<Item = f64>,
        dual: impl IntoIterator<Item = f64>,
        precision: f64,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let precision = self.slopes_precision(precision);
        self.evaluate_pair(coef, dual, precision, point, context)?;
        self.try_slopes(point, context)
    }

    /// Replaces a model that is worse than that without coefficients by the latter: no run may return what is worse
    /// than no model at all. Says whether it has. The predictions of `point` do not count afterwards.
    pub(crate) fn prefer_zero(
        &self,
        precision: f64,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<bool, Error> {
        let Certificate { primal, gap, .. } = point.certificate;
        if self.penalty.proves_better_than_zero(&point.coef, gap) {
            return Ok(false);
        }
        let nothing = memory::zeros(self.n_cols());
        let coef = std::mem::replace(&mut point.coef, nothing);
        let intercept = std::mem::take(&mut point.intercept);
        let precision = self.slopes_precision(precision);
        let at_zero = self.find_intercept(precision, point, context)?;
        if !at_zero.is_finite() {
            return Err(Error::Overflow {
                what: "the objective without coefficients",
            });
        }
        if primal <= at_zero {
            (point.coef, point.intercept) = (coef, intercept);
            return Ok(false);
        }
        let (_, dual) = self.evaluate_both(&mut point.dual, context)?;
        self.pair(dual, precision, point, context)?;
        self.try_slopes(point, context)?;
        Ok(true)
    }

    /// The precision of an intercept whose slopes are to be a dual point: they add up to 0 where it is the best one, and
    /// what is left would cost the dual point as much.
    fn slopes_precision(&self, precision: f64) -> f64 {
        if self.loss().has_kinks() {
            precision
        } else {
            precision.min(SLOPES_PRECISION)
        }
    }

    /// Replaces the dual point by `a_i = -phi'(x_i.w + b)`, the mean of both sides at a kink, if that is the
    /// better one.
    fn try_slopes(&self, point: &mut Point, context: &mut RunContext<'_>) -> Result<(), Error> {
        let b = point.intercept;
        let offset = if self.fit_intercept {
            intercept::kink_offset(self.loss(), b, point.certificate.primal)
        } else {
            0.0
        };
        let mut slopes = memory::zeros(self.n_rows());
        context.fill(&mut slopes, self.data.block_size(), |from, slopes| {
            let block = from..from + slopes.len();
            let (p, targets) = (&point.predictions[block.clone()], self.target_block(block));
            let sides = (b - offset, b + offset);
            self.loss()
                .mixed_dual_values(p, sides, 0.5, targets, slopes);
        })?;
        self.balance(&mut slopes);
        let mut of_slopes = Vec::new();
        let conjugate = self.coef_of(&slopes, &mut of_slopes, context)?;
        let (dual, support) = self.dual(&slopes, conjugate, context)?;
        if dual > point.certificate.dual || point.certificate.dual.is_nan() {
            point.certificate = Certificate::new(point.certificate.primal, dual, support);
            point.dual = slopes;
        }
        Ok(())
    }

    /// Makes a dual point feasible if there is an intercept.
    fn balance(&self, a: &mut [f64]) {
        if self.fit_intercept {
            intercept::balance(a, |i| self.weight_fraction(i));
        }
    }

    /// Predictions for the coefficients of `point`.
    pub(crate) fn predict(
        &self,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let Point {
            coef, predictions, ..
        } = point;
        predictions.clear();
        memory::resize(predictions, self.n_rows(), 0.0);
        if coef.iter().any(|&w| w != 0.0) {
            self.data.products(coef, predictions, context)?;
        }
        Ok(())
    }

    /// Predictions and intercept for the coefficients of `point`; returns `P`.
    fn find_intercept(
        &self,
        precision: f64,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<f64, Error> {
        self.predict(point, context)?;
        let Point {
            coef,
            intercept: b,
            predictions,
            ..
        } = point;
        let mean = if self.fit_intercept {
            let minimum = if self.loss().target() == Target::Label && coef.iter().all(|&w| w == 0.0)
            {
                self.best_constant(*b, precision)
            } else {
                self.best_intercept(predictions, *b, precision, context)?
            };
            *b = minimum.b;
            minimum.value
        } else {
            *b = 0.0;
            let sums = self.data.by_blocks(context, |block| {
                let targets = self.target_block(block.clone());
                self.loss().values(&predictions[block], 0.0, targets)
            })?;
            sums.iter().sum::<f64>() / self.total_weight()
        };
        Ok(mean + self.penalty.value(coef))
    }

    /// `D(a)`, of which the penalty has this part, and the number of dual values other than zero.
    fn dual(
        &self,
        a: &[f64],
        conjugate: f64,
        context: &mut RunContext<'_>,
    ) -> Result<(f64, usize), Error> {
        let blocks = self.data.by_blocks(context, |block| {
            let targets = self.target_block(block.clone());
            let counts = |i: &usize| a[*i] != 0.0 && self.weight(*i) > 0.0;
            let support = block.clone().filter(counts).count();
            (self.loss().conjugates(&a[block], targets), support)
        })?;
        let conjugates: f64 = blocks.iter().map(|block| block.0).sum();
        let support = blocks.iter().map(|block| block.1).sum();
        let dual = -conjugates / self.total_weight() - conjugate;
        Ok((dual, support))
    }

    /// Targets and weights of a block of rows.
    pub(crate) fn target_block(&self, block: Range<usize>) -> TargetBlock<'a> {
        TargetBlock {
            c: self.data.weights().map(|c| &c[block.clone()]),
            y: &self.targets[block],
        }
    }

    /// Whether `P` and the gap are 0 up to what the rounding of predictions does to `P`, so that no
    /// tolerance relative to `P` can be met: the model fits perfectly.
    #[doc(hidden)]
    pub fn is_perfect(&self, point: &Point) -> bool {
        let sums = self.data.blocks().map(|block| {
            let targets = self.target_block(block.clone());
            let p = &point.predictions[block];
            let unit = 64.0 * f64::EPSILON;
            self.loss().rounding(p, unit, point.intercept, targets)
        });
        // Or what underflow leaves.
        let floor = (sums.sum::<f64>() / self.total_weight()).max(intercept::MIN_MASS);
        floor.is_finite() && point.certificate.primal <= floor && point.certificate.gap <= floor
    }

    /// The best `b` for the predictions `x_i.w`, and the mean of the losses there.
    pub(crate) fn best_intercept(
        &self,
        predictions: &[f64],
        start: f64,
        precision: f64,
        context: &mut RunContext<'_>,
    ) -> Result<Minimum, Error> {
        let inverse_curvature = intercept::inverse_curvature(self.loss());
        intercept::try_minimise(start, inverse_curvature, precision, |b| {
            self.mean_loss(predictions, b, context)
        })
    }

    /// The mean of the losses for the predictions `x_i.w` and the intercept `b`, and its slope along `b`.
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

    /// The sums over all rows of pairs that `work` sums over a block, divided by `W`.
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

    /// The best `b` for predictions of 0, and the mean of the losses there: rows of one label are all alike.
    fn best_constant(&self, start: f64, precision: f64) -> Minimum {
        // Each on its own: the weight of a label may be next to nothing beside that of the other.
        let shares = [1.0, -1.0].map(|label| {
            let has_it = |y: &&f64| **y == label;
            let weight = match self.data.weights() {
                None => self.targets.iter().filter(has_it).count() as f64,
                Some(c) => {
                    let rows = c.iter().zip(self.targets);
                    rows.filter(|(_, y)| has_it(y)).map(|(c, _)| c).sum()
                }
            };
            (label, weight / self.total_weight())
        });
        intercept::minimise(
            start,
            intercept::inverse_curvature(self.loss()),
            precision,
            |b| {
                shares
                    .iter()
                    .fold((0.0, 0.0), |(value, slope), &(y, share)| {
                        let more = |sum: f64, of_label: f64| sum + weighted(share, of_label);
                        (
                            more(value, self.loss().value(b, y)),
                            more(slope, self.loss().slope(b, y)),
                        )
                    })
            },
        )
    }
}

/// To what part of `P` the intercept is the best one where the slopes there are to be a dual point.
const SLOPES_PRECISION: f64 = 1e-14;

/// `c v`, where an infinite `v` of an absent row counts for nothing.
#[inline]
fn weighted(c: f64, v: f64) -> f64 {
    if c == 0.0 { 0.0 } else { c * v }
}

/// A feasible dual point, a model (mostly the one that it defines), and what they prove; see
/// [`Problem::evaluate`].
#[derive(Debug, Clone)]
pub struct Point {
    /// `a`.
    pub dual: Vec<f64>,
    /// `w(a)`, or the model that was given.
    pub coef: Vec<f64>,
    /// The best `b` for this `w`.
    pub intercept: f64,
    /// `x_i.w`, without the intercept.
    pub predictions: Vec<f64>,
    /// What `w`, `b` and `a` prove.
    pub certificate: Certificate,
}

impl Point {
    /// The point 0 of a problem, with no certificate.
    pub(crate) fn zero(n_rows: usize, n_cols: usize) -> Self {
        Self {
            dual: memory::zeros(n_rows),
            coef: memory::zeros(n_cols),
            predictions: memory::zeros(n_rows),
            ..Self::default()
        }
    }

    /// Becomes a copy of another point, but for its predictions, in the memory that it has.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        memory::assign(&mut self.dual, &other.dual);
        memory::assign(&mut self.coef, &other.coef);
        self.intercept = other.intercept;
        self.certificate = other.certificate;
        self.predictions = Vec::new();
    }

    /// Becomes a model and a dual point, in the memory that it has.
    fn assign(&mut self, coef: impl IntoIterator<Item = f64>, dual: impl IntoIterator<Item = f64>) {
        self.coef.clear();
        memory::extend(&mut self.coef, coef);
        self.dual.clear();
        memory::extend(&mut self.dual, dual);
    }

    /// Lets the next evaluation search for the best intercept from `intercept` on, if that is a number.
    pub(crate) fn search_from(&mut self, intercept: f64) {
        if intercept.is_finite() {
            self.intercept = intercept;
        }
    }
}

impl Default for Point {
    fn default() -> Self {
        let certificate = Certificate {
            primal: f64::INFINITY,
            dual: f64::NEG_INFINITY,
            gap: f64::INFINITY,
            support: 0,
        };
        Self {
            dual: Vec::new(),
            coef: Vec::new(),
            intercept: 0.0,
            predictions: Vec::new(),
            certificate,
        }
    }
}
