//! A loss on blocks of rows: its values, slopes and conjugates, and their sums.
//!
//! [`LossBlocks`] is the interface of a loss whose type is known only at run time. Each call does
//! the work of a block of rows, so the cost of a virtual call is negligible; only coordinate steps,
//! which need the loss row by row, are compiled for each loss. `y` are the targets and `c` the
//! weights of the rows, all 1 if there are none. A row of weight 0 contributes nothing, even where
//! its loss is infinite.

use super::{Link, Loss, Target};
use crate::kernel::{Level, lanes};

/// The targets and weights of a block of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetBlock<'a> {
    pub(crate) y: &'a [f64],
    pub(crate) c: Option<&'a [f64]>,
}

impl TargetBlock<'_> {
    /// The weight of row `k` of the block.
    #[inline(always)]
    fn weight(&self, k: usize) -> f64 {
        self.c.map_or(1.0, |c| c[k])
    }
}

/// A proximal point step on the dual value of each row; see Newton's method in [`crate::solver`].
///
/// With the weight `g` and the centres `k_i`, row `i` at the prediction `p` has the dual value
/// `argmax_a -a p - phi*(-a) - (g/2) (a - k_i)^2`; for `g = 0` that is `-phi'(p)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proximal<'a> {
    pub(crate) g: f64,
    pub(crate) centre: &'a [f64],
}

/// A point on a line: the step from the predictions `p_i` to `p_i + t d_i`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinePoint<'a> {
    pub(crate) p: &'a [f64],
    pub(crate) t: f64,
    pub(crate) d: &'a [f64],
}

impl<'a> LinePoint<'a> {
    /// The predictions themselves, without a step.
    pub(crate) fn at(p: &'a [f64]) -> Self {
        Self { p, t: 0.0, d: p }
    }
}

/// A step of Newton's method, from `p_i` to `p_i + d_i`, for which the curvature of row `i` was
/// taken to be `h_i`, given as `c_i h_i / W`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewtonStep<'a> {
    pub(crate) p: &'a [f64],
    pub(crate) d: &'a [f64],
    pub(crate) curvatures: &'a [f64],
    pub(crate) total_weight: f64,
}

impl NewtonStep<'_> {
    /// `h_i` of a row of weight `c`.
    #[inline(always)]
    fn h(&self, curvature: f64, c: f64) -> f64 {
        self.total_weight * curvature / c
    }
}

/// A loss whose type is known only at run time. See [`Loss`] for the meaning of the individual
/// functions.
pub(crate) trait LossBlocks: Send + Sync {
    /// See [`Loss::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Loss::TARGET`].
    fn target(&self) -> Target;
    /// See [`Loss::SMOOTH_RELATIVE`].
    fn smooth_relative(&self) -> Option<&'static str>;
    /// See [`Loss::IS_QUADRATIC`].
    fn is_quadratic(&self) -> bool;
    /// See [`Loss::NEWTON_STEPS`].
    fn newton_steps(&self) -> f64;
    /// See [`Loss::STEP_WORK`].
    fn step_work(&self) -> f64;
    /// See [`Loss::LINK`].
    fn link(&self) -> Link;
    /// See [`Loss::lipschitz`].
    fn lipschitz(&self) -> f64;
    /// See [`Loss::smoothness`].
    fn smoothness(&self) -> f64;
    /// See [`Loss::has_kinks`].
    fn has_kinks(&self) -> bool;

    /// See [`Loss::value`].
    fn value(&self, p: f64, y: f64) -> f64;
    /// See [`Loss::slope`].
    fn slope(&self, p: f64, y: f64) -> f64;
    /// See [`Loss::conjugate`].
    fn conjugate(&self, a: f64, y: f64) -> f64;
    /// See [`Loss::step`].
    fn step(&self, z: f64, q: f64, a: f64, y: f64) -> f64;
    /// See [`Loss::dual_range`].
    fn dual_range(&self, y: f64) -> (f64, f64);

    /// `sum_i c_i phi(p_i + b; y_i)`.
    fn values(&self, p: &[f64], b: f64, targets: TargetBlock<'_>) -> f64;

    /// `sum_i c_i phi(p_i + b; y_i)`, and the sum of the weighted slopes.
    fn values_and_slopes(&self, p: &[f64], b: f64, targets: TargetBlock<'_>) -> (f64, f64);

    /// `sum_i c_i phi*(-a_i; y_i)`.
    fn conjugates(&self, a: &[f64], targets: TargetBlock<'_>) -> f64;

    /// `sum_i c_i (phi*(-to_i; y_i) - phi*(-from_i; y_i))`.
    fn conjugate_changes(&self, from: &[f64], to: &[f64], targets: TargetBlock<'_>) -> f64;

    /// `sum_i c_i |phi'| d_i` with `d_i = unit (|p_i + b| + |y_i|)`: the effect of rounding the
    /// predictions on the losses, for a relative rounding error of `unit`. Where predictions are
    /// logarithms of targets, `ln y_i` replaces `y_i`. The slope is the steeper of those at
    /// `p_i + b - d_i` and `p_i + b + d_i`, because a prediction may be at a kink.
    fn rounding(&self, p: &[f64], unit: f64, b: f64, targets: TargetBlock<'_>) -> f64;

    /// `sum_i c_i (phi(p_i + t d_i; y_i) - phi(p_i; y_i))`.
    fn changes(&self, along: LinePoint<'_>, targets: TargetBlock<'_>) -> f64;

    /// `p_i = phi'(p_i; y_i)`.
    fn slopes(&self, p: &mut [f64], y: &[f64]);

    /// `a_i = -phi'(p_i + t d_i; y_i)`, and 0 for rows of weight 0.
    fn dual_values(&self, along: LinePoint<'_>, targets: TargetBlock<'_>, a: &mut [f64]);

    /// `a_i = -mix phi'(p_i + left; y_i) - (1 - mix) phi'(p_i + right; y_i)`, and 0 for rows of
    /// weight 0.
    fn mixed_dual_values(
        &self,
        p: &[f64],
        sides: (f64, f64),
        mix: f64,
        targets: TargetBlock<'_>,
        a: &mut [f64],
    );

    /// `out_i = phi''` at the point where `-phi' = a_i`.
    fn curvatures(&self, a: &[f64], y: &[f64], out: &mut [f64]);

    /// Clamps dual values to their range.
    fn clamp(&self, a: &mut [f64], y: &[f64]);

    /// `a_i` becomes the dual value of a proximal step at `p_i + t d_i`, computed starting from
    /// `near_i`, or 0 for rows of weight 0.
    fn proximal_values(
        &self,
        proximal: Proximal<'_>,
        along: LinePoint<'_>,
        near: &[f64],
        targets: TargetBlock<'_>,
        a: &mut [f64],
    );

    /// `sum_i c_i psi_i(p_i + b)` and the sum of the weighted slopes, with
    /// `psi_i(p) = max_a -a p - phi*(-a) - (g/2) (a - k_i)^2`.
    fn proximal_values_and_slopes(
        &self,
        proximal: Proximal<'_>,
        p: &[f64],
        b: f64,
        near: &[f64],
        targets: TargetBlock<'_>,
    ) -> (f64, f64);

    /// `sum_i c_i (psi_i(p_i + t d_i) - psi_i(p_i))`.
    fn proximal_changes(
        &self,
        proximal: Proximal<'_>,
        along: LinePoint<'_>,
        near: &[f64],
        targets: TargetBlock<'_>,
    ) -> f64;

    /// `d_i` becomes `c_i psi_i'' / W` at the prediction `p_i`, whose dual value is `a_i`. If that
    /// is 0 here but may not be a little farther on, it becomes the mean over the interval from
    /// `p_i` to `p_i + look_ahead d_i`.
    fn proximal_curvatures(
        &self,
        proximal: Proximal<'_>,
        at: (&[f64], &[f64]),
        look_ahead: f64,
        total_weight: f64,
        targets: TargetBlock<'_>,
        d: &mut [f64],
    );

    /// An estimate of `sum_i c_i (phi(p_i + d_i; y_i) + phi*(-f_i; y_i) + f_i (p_i + d_i))` for the
    /// dual values `f_i` that a step predicts, where `a_i` minimise the terms. Infinite if a value
    /// leaves its range.
    ///
    /// The conjugate is taken for a parabola between `f_i` and `a_i` if both are on a curved piece;
    /// if not, the estimate is infinite, because at a kink of the conjugate the term may be much
    /// larger.
    fn predicted_gap(&self, step: NewtonStep<'_>, a: &[f64], targets: TargetBlock<'_>) -> f64;

    /// `a_i = f_i`, see [`Self::predicted_gap`], and 0 for rows of weight 0.
    fn predicted_values(&self, step: NewtonStep<'_>, targets: TargetBlock<'_>, a: &mut [f64]);
}

/// `sum_i c_i a_i d_i`.
pub(crate) fn products(a: &[f64], d: &[f64], c: Option<&[f64]>) -> f64 {
    let y = a;
    let [products] = sum(a, d, TargetBlock { y, c }, |a, d, _| [a * d]);
    products
}

/// `sum_i c_i term(u_i, v_i, y_i)`.
#[inline(always)]
fn sum<const OUT: usize>(
    u: &[f64],
    v: &[f64],
    TargetBlock { y, c }: TargetBlock<'_>,
    term: impl Fn(f64, f64, f64) -> [f64; OUT],
) -> [f64; OUT] {
    let level = Level::best();
    match c {
        None => lanes::sum(level, [u, v, y], |[u, v, y]| term(u, v, y)),
        Some(c) => lanes::sum(level, [u, v, y, c], |[u, v, y, c]| {
            let mut terms = term(u, v, y);
            for term in &mut terms {
                *term = if c == 0.0 { 0.0 } else { c * *term };
            }
            terms
        }),
    }
}

/// `out_i = value(u_i, v_i, y_i)`, and 0 for rows of weight 0.
#[inline(always)]
fn map(
    u: &[f64],
    v: &[f64],
    TargetBlock { y, c }: TargetBlock<'_>,
    out: &mut [f64],
    value: impl Fn(f64, f64, f64) -> f64,
) {
    let level = Level::best();
    match c {
        None => lanes::map(level, [u, v, y], out, |[u, v, y]| value(u, v, y)),
        Some(c) => lanes::map(level, [u, v, y, c], out, |[u, v, y, c]| {
            if c == 0.0 { 0.0 } else { value(u, v, y) }
        }),
    }
}

/// The target in the units of predictions; 0 if its logarithm would be infinite.
#[inline(always)]
fn target_as_prediction<L: Loss>(y: f64) -> f64 {
    match L::LINK {
        Link::Identity | Link::Logit => y,
        Link::Log if y > 0.0 => y.ln(),
        Link::Log => 0.0,
    }
}

/// The dual value after a step on which the slope of the loss is taken to be linear:
/// `-phi'(p; y) - h d`.
#[inline(always)]
fn predicted<L: Loss>(loss: &L, p: f64, d: f64, h: f64, y: f64) -> f64 {
    -loss.slope(p, y) - h * d
}

/// One row of a proximal step: its centre and its target.
#[derive(Clone, Copy)]
struct ProximalRow {
    g: f64,
    k: f64,
    y: f64,
}

impl ProximalRow {
    /// The dual value at the prediction `p`, computed starting from `near`.
    #[inline(always)]
    fn value<L: Loss>(self, loss: &L, p: f64, near: f64) -> f64 {
        if self.g > 0.0 {
            loss.step(p - self.g * self.k, self.g, near, self.y)
        } else {
            -loss.slope(p, self.y)
        }
    }

    /// `psi(p)`, given the dual value `a` at `p`.
    #[inline(always)]
    fn psi<L: Loss>(self, loss: &L, p: f64, a: f64) -> f64 {
        let away = a - self.k;
        -a * p - loss.conjugate(a, self.y) - 0.5 * self.g * away * away
    }
}

impl Proximal<'_> {
    #[inline(always)]
    fn row(&self, k: usize, y: f64) -> ProximalRow {
        let centre = if self.g > 0.0 { self.centre[k] } else { 0.0 };
        ProximalRow {
            g: self.g,
            k: centre,
            y,
        }
    }
}

impl<L: Loss> LossBlocks for L {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn target(&self) -> Target {
        L::TARGET
    }

    fn smooth_relative(&self) -> Option<&'static str> {
        L::SMOOTH_RELATIVE
    }

    fn is_quadratic(&self) -> bool {
        L::IS_QUADRATIC
    }

    fn newton_steps(&self) -> f64 {
        L::NEWTON_STEPS
    }

    fn step_work(&self) -> f64 {
        L::STEP_WORK
    }

    fn link(&self) -> Link {
        L::LINK
    }

    fn lipschitz(&self) -> f64 {
        Loss::lipschitz(self)
    }

    fn smoothness(&self) -> f64 {
        Loss::smoothness(self)
    }

    fn has_kinks(&self) -> bool {
        Loss::has_kinks(self)
    }

    fn value(&self, p: f64, y: f64) -> f64 {
        Loss::value(self, p, y)
    }

    fn slope(&self, p: f64, y: f64) -> f64 {
        Loss::slope(self, p, y)
    }

    fn conjugate(&self, a: f64, y: f64) -> f64 {
        Loss::conjugate(self, a, y)
    }

    fn step(&self, z: f64, q: f64, a: f64, y: f64) -> f64 {
        Loss::step(self, z, q, a, y)
    }

    fn dual_range(&self, y: f64) -> (f64, f64) {
        Loss::dual_range(self, y)
    }

    fn values(&self, p: &[f64], b: f64, targets: TargetBlock<'_>) -> f64 {
        let [values] = sum(p, p, targets, |p, _, y| [Loss::value(self, p + b, y)]);
        values
    }

    fn values_and_slopes(&self, p: &[f64], b: f64, targets: TargetBlock<'_>) -> (f64, f64) {
        let [values, slopes] = sum(p, p, targets, |p, _, y| {
            [Loss::value(self, p + b, y), Loss::slope(self, p + b, y)]
        });
        (values, slopes)
    }

    fn conjugates(&self, a: &[f64], targets: TargetBlock<'_>) -> f64 {
        let [conjugates] = sum(a, a, targets, |a, _, y| [Loss::conjugate(self, a, y)]);
        conjugates
    }

    fn conjugate_changes(&self, from: &[f64], to: &[f64], targets: TargetBlock<'_>) -> f64 {
        let [changes] = sum(from, to, targets, |from, to, y| {
            [Loss::conjugate(self, to, y) - Loss::conjugate(self, from, y)]
        });
        changes
    }

    fn rounding(&self, p: &[f64], unit: f64, b: f64, targets: TargetBlock<'_>) -> f64 {
        let [sizes] = sum(p, p, targets, |p, _, y| {
            let p = p + b;
            let d = unit * (p.abs() + target_as_prediction::<L>(y).abs());
            let slope = |p: f64| Loss::slope(self, p, y).abs();
            [slope(p - d).max(slope(p + d)) * d]
        });
        sizes
    }

    fn changes(&self, LinePoint { p, t, d }: LinePoint<'_>, targets: TargetBlock<'_>) -> f64 {
        let [changes] = sum(p, d, targets, |p, d, y| {
            [Loss::value(self, p + t * d, y) - Loss::value(self, p, y)]
        });
        changes
    }

    fn slopes(&self, p: &mut [f64], y: &[f64]) {
        for (p, y) in p.iter_mut().zip(y) {
            *p = Loss::slope(self, *p, *y);
        }
    }

    fn dual_values(
        &self,
        LinePoint { p, t, d }: LinePoint<'_>,
        targets: TargetBlock<'_>,
        a: &mut [f64],
    ) {
        map(p, d, targets, a, |p, d, y| -Loss::slope(self, p + t * d, y));
    }

    fn mixed_dual_values(
        &self,
        p: &[f64],
        (left, right): (f64, f64),
        mix: f64,
        targets: TargetBlock<'_>,
        a: &mut [f64],
    ) {
        map(p, p, targets, a, |p, _, y| {
            -mix * Loss::slope(self, p + left, y) - (1.0 - mix) * Loss::slope(self, p + right, y)
        });
    }

    fn curvatures(&self, a: &[f64], y: &[f64], out: &mut [f64]) {
        lanes::map(Level::best(), [a, y], out, |[a, y]| {
            Loss::curvature(self, a, y)
        });
    }

    fn clamp(&self, a: &mut [f64], y: &[f64]) {
        for (a, y) in a.iter_mut().zip(y) {
            let (low, high) = Loss::dual_range(self, *y);
            *a = a.max(low).min(high);
        }
    }

    fn proximal_values(
        &self,
        proximal: Proximal<'_>,
        LinePoint { p, t, d }: LinePoint<'_>,
        near: &[f64],
        targets: TargetBlock<'_>,
        a: &mut [f64],
    ) {
        let moves = p.iter().zip(d).zip(near);
        for (k, (a, ((p, d), near))) in a.iter_mut().zip(moves).enumerate() {
            *a = if targets.weight(k) == 0.0 {
                0.0
            } else {
                let row = proximal.row(k, targets.y[k]);
                row.value(self, p + t * d, *near)
            };
        }
    }

    fn proximal_values_and_slopes(
        &self,
        proximal: Proximal<'_>,
        p: &[f64],
        b: f64,
        near: &[f64],
        targets: TargetBlock<'_>,
    ) -> (f64, f64) {
        let (mut values, mut slopes) = (0.0, 0.0);
        for (k, (p, near)) in p.iter().zip(near).enumerate() {
            let c = targets.weight(k);
            if c > 0.0 {
                let row = proximal.row(k, targets.y[k]);
                let a = row.value(self, p + b, *near);
                values += c * row.psi(self, p + b, a);
                slopes -= c * a;
            }
        }
        (values, slopes)
    }

    fn proximal_changes(
        &self,
        proximal: Proximal<'_>,
        LinePoint { p, t, d }: LinePoint<'_>,
        near: &[f64],
        targets: TargetBlock<'_>,
    ) -> f64 {
        let mut sum = 0.0;
        for (k, ((p, d), near)) in p.iter().zip(d).zip(near).enumerate() {
            let c = targets.weight(k);
            if c > 0.0 {
                let row = proximal.row(k, targets.y[k]);
                let psi = |p: f64| row.psi(self, p, row.value(self, p, *near));
                sum += c * (psi(p + t * d) - psi(*p));
            }
        }
        sum
    }

    fn proximal_curvatures(
        &self,
        proximal: Proximal<'_>,
        (p, a): (&[f64], &[f64]),
        look_ahead: f64,
        total_weight: f64,
        targets: TargetBlock<'_>,
        d: &mut [f64],
    ) {
        for (k, (d, (p, a))) in d.iter_mut().zip(p.iter().zip(a)).enumerate() {
            let c = targets.weight(k) / total_weight;
            let row = proximal.row(k, targets.y[k]);
            let kappa = Loss::curvature(self, *a, row.y);
            let ahead = look_ahead * *d;
            *d = if c == 0.0 {
                0.0
            } else if kappa.is_infinite() {
                c / row.g
            } else if kappa > 0.0 {
                c * kappa / (1.0 + row.g * kappa)
            } else if ahead != 0.0 {
                // Flat here, but perhaps not a little farther on.
                c * (a - row.value(self, p + ahead, *a)) / ahead
            } else {
                0.0
            };
        }
    }

    fn predicted_gap(
        &self,
        step: NewtonStep<'_>,
        a: &[f64],
        TargetBlock { y, c }: TargetBlock<'_>,
    ) -> f64 {
        let term = |p, d, h, a, y| {
            let f = predicted(self, p, d, h, y);
            let (low, high) = Loss::dual_range(self, y);
            let (of_f, of_a) = (Loss::curvature(self, f, y), Loss::curvature(self, a, y));
            let gap = 0.5 * (f - a) * (f - a) / of_f.max(of_a);
            let is_known = low <= f && f <= high && of_f > 0.0 && of_a > 0.0;
            let gap = if is_known { gap } else { f64::INFINITY };
            if f == a { 0.0 } else { gap }
        };
        let level = Level::best();
        let (p, d, k) = (step.p, step.d, step.curvatures);
        let [gap] = match c {
            None => lanes::sum(level, [p, d, k, a, y], |[p, d, k, a, y]| {
                [term(p, d, step.h(k, 1.0), a, y)]
            }),
            Some(c) => lanes::sum(level, [p, d, k, a, y, c], |[p, d, k, a, y, c]| {
                let gap = c * term(p, d, step.h(k, c), a, y);
                [if c == 0.0 { 0.0 } else { gap }]
            }),
        };
        gap
    }

    fn predicted_values(
        &self,
        step: NewtonStep<'_>,
        TargetBlock { y, c }: TargetBlock<'_>,
        a: &mut [f64],
    ) {
        let level = Level::best();
        let (p, d, k) = (step.p, step.d, step.curvatures);
        match c {
            None => lanes::map(level, [p, d, k, y], a, |[p, d, k, y]| {
                predicted(self, p, d, step.h(k, 1.0), y)
            }),
            Some(c) => lanes::map(level, [p, d, k, y, c], a, |[p, d, k, y, c]| {
                let value = predicted(self, p, d, step.h(k, c), y);
                if c == 0.0 { 0.0 } else { value }
            }),
        }
    }
}

#[cfg(test)]
mod tests;
