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

    /// Computes, from scratch, the model that a dual point defines and their certificate.
    ///
    /// The dual values must lie in the domain of the loss. With an intercept they are first made
    /// feasible ([`intercept::balance`]); then `P` is minimised over `b` to the relative
    /// `precision`, starting from the present `point.intercept`. The buffers of `point` are reused.
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

    /// The part of [`Self::evaluate`] that does not depend on the type of the iterator, so that it
    /// is compiled only once.
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

    /// Computes, from scratch, the certificate of a model and a dual point that do not belong
    /// together.
    ///
    /// As [`Self::evaluate`], except that the coefficients are given; the intercept is the best one
    /// for them.
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

    /// Makes a dual point feasible. Returns `w(a)`, `D(a)` and the number of non-zero dual values.
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

    /// Certifies the model of `point`, which is not `w(a)` for its dual point. The value of the
    /// dual point and its number of non-zero values are given.
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

    /// An estimate of how much the rounding error of `w(a)` can change `D(a)`.
    ///
    /// The sum of the rows may cancel almost completely. Within `D(a)` an error in that sum has
    /// only a second-order effect, but a model from another source does not compensate for it.
    fn rounding_of(&self, dual: &[f64], context: &mut RunContext<'_>) -> Result<f64, Error> {
        // Errors are scaled before they are squared, because squares may overflow.
        let unit = 4.0 * f64::EPSILON * self.penalty.error_scale();
        let squares = self.data.by_blocks(context, |block| {
            // Most dual values may be 0; their rows are not read.
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

    /// [`Self::evaluate_pair`], or [`Self::evaluate`] in two cases: both are within the tolerance,
    /// or the latter is and `probably` asked to try it first. Returns whether it was the latter.
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

    /// As [`Self::evaluate_pair`], except that the dual point is the better of `dual` and
    /// `a_i = -phi'(x_i.w + b)`. Near the optimum of a differentiable loss the latter is better,
    /// whatever the solver.
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

    /// Replaces a model that is worse than zero coefficients by zero coefficients: no run may
    /// return anything worse than that. Returns whether it did. The predictions of `point` are
    /// invalid afterwards.
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

    /// The precision of the intercept where slopes are to serve as a dual point. They add up to 0
    /// at the best intercept, and any remainder costs the dual point as much.
    fn slopes_precision(&self, precision: f64) -> f64 {
        if self.loss().has_kinks() {
            precision
        } else {
            precision.min(SLOPES_PRECISION)
        }
    }

    /// Replaces the dual point by `a_i = -phi'(x_i.w + b)`, the mean of both sides at a kink, if
    /// that is better.
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

    /// Computes the predictions for the coefficients of `point`.
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

    /// Computes predictions and intercept for the coefficients of `point`; returns `P`.
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

    /// `D(a)`, given its penalty term, and the number of non-zero dual values.
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

    /// The targets and weights of a block of rows.
    pub(crate) fn target_block(&self, block: Range<usize>) -> TargetBlock<'a> {
        TargetBlock {
            c: self.data.weights().map(|c| &c[block.clone()]),
            y: &self.targets[block],
        }
    }

    /// Whether the model fits perfectly: `P` and the gap are 0 up to the effect that rounding of
    /// the predictions has on `P`. Then no tolerance relative to `P` can be met.
    #[doc(hidden)]
    pub fn is_perfect(&self, point: &Point) -> bool {
        let sums = self.data.blocks().map(|block| {
            let targets = self.target_block(block.clone());
            let p = &point.predictions[block];
            let unit = 64.0 * f64::EPSILON;
            self.loss().rounding(p, unit, point.intercept, targets)
        });
        // Or up to underflow.
        let floor = (sums.sum::<f64>() / self.total_weight()).max(intercept::MIN_MASS);
        floor.is_finite() && point.certificate.primal <= floor && point.certificate.gap <= floor
    }

    /// The best `b` for the predictions `x_i.w`, and the mean loss there.
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

    /// The best `b` for predictions of 0, and the mean loss there. All rows with the same label are
    /// alike.
    fn best_constant(&self, start: f64, precision: f64) -> Minimum {
        // Summed separately: the weight of one label may be negligible relative to the other.
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

/// The relative precision of the intercept where the slopes at it are to serve as a dual point.
const SLOPES_PRECISION: f64 = 1e-14;

/// `c v`, where a row of weight 0 contributes nothing even if `v` is infinite.
#[inline]
fn weighted(c: f64, v: f64) -> f64 {
    if c == 0.0 { 0.0 } else { c * v }
}

/// A feasible dual point, a model (usually `w(a)`), and their certificate; see
/// [`Problem::evaluate`].
#[derive(Debug, Clone)]
pub struct Point {
    /// `a`.
    pub dual: Vec<f64>,
    /// `w(a)`, or a model that was given.
    pub coef: Vec<f64>,
    /// The best `b` for this `w`.
    pub intercept: f64,
    /// `x_i.w`, without the intercept.
    pub predictions: Vec<f64>,
    /// The certificate of `w`, `b` and `a`.
    pub certificate: Certificate,
}

impl Point {
    /// The point 0 of a problem, without a certificate.
    pub(crate) fn zero(n_rows: usize, n_cols: usize) -> Self {
        Self {
            dual: memory::zeros(n_rows),
            coef: memory::zeros(n_cols),
            predictions: memory::zeros(n_rows),
            ..Self::default()
        }
    }

    /// Copies another point, except for its predictions, reusing the memory.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        memory::assign(&mut self.dual, &other.dual);
        memory::assign(&mut self.coef, &other.coef);
        self.intercept = other.intercept;
        self.certificate = other.certificate;
        self.predictions = Vec::new();
    }

    /// Overwrites the model and the dual point, reusing the memory.
    fn assign(&mut self, coef: impl IntoIterator<Item = f64>, dual: impl IntoIterator<Item = f64>) {
        self.coef.clear();
        memory::extend(&mut self.coef, coef);
        self.dual.clear();
        memory::extend(&mut self.dual, dual);
    }

    /// Makes the next evaluation search for the best intercept from `intercept`, if that is finite.
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
