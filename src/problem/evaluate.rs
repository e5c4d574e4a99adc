//! Evaluations: what a dual point, a model, or both together prove.

use super::{Point, Problem};
use crate::error::Error;
use crate::intercept::{self, Minimum};
use crate::loss::Target;
use crate::memory::{self, Duplicate as _};
use crate::run::{Certificate, RunContext};

/// The relative precision of the intercept where the slopes at it are to serve as a dual point.
const SLOPES_PRECISION: f64 = 1e-14;

impl Problem<'_> {
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

    /// Evaluates a start: a dual point, and the model that came with it. It is not `w(a)` if it was
    /// fitted with another `C`, for example, and may then be far better.
    ///
    /// The result is [`Self::evaluate`], or [`Self::evaluate_pair`] if only the latter is within the
    /// tolerance, or if its gap is smaller and the loss has no kinks. (On a loss with kinks, steps
    /// begin at `w(a)` in any case.)
    pub(crate) fn evaluate_start(
        &self,
        coef: &[f64],
        dual: impl IntoIterator<Item = f64>,
        (tol, precision): (f64, f64),
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        self.evaluate(dual, precision, point, context)?;
        let Certificate { dual, support, .. } = point.certificate;
        if point.certificate.is_within(tol) {
            return Ok(());
        }
        let mut given = Point {
            coef: coef.duplicate(),
            dual: std::mem::take(&mut point.dual),
            intercept: point.intercept,
            ..Point::default()
        };
        self.pair((dual, support), precision, &mut given, context)?;
        let found = given.certificate;
        let may_begin_there = !self.loss().has_kinks() || found.is_within(tol);
        if may_begin_there && found.gap < point.certificate.gap {
            *point = given;
        } else {
            point.dual = given.dual;
        }
        Ok(())
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

/// `c v`, where a row of weight 0 contributes nothing even if `v` is infinite.
#[inline]
fn weighted(c: f64, v: f64) -> f64 {
    if c == 0.0 { 0.0 } else { c * v }
}
