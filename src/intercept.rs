//! The unregularised intercept, handled so that the certificate stays exact.
//!
//! With an intercept, the dual has the constraint `sum_i c_i a_i = 0`. The iterates of a solver may
//! violate it; a certificate may not. At an evaluation the dual point is first moved back onto the
//! constraint ([`balance`]), then `P` is minimised over `b` ([`minimise`]).

use crate::error::Error;
use crate::loss::Target;
use crate::loss::blocks::LossBlocks;

/// A sum of products below this threshold has lost digits to underflow.
pub(crate) const MIN_MASS: f64 = f64::MIN_POSITIVE / f64::EPSILON;

/// Makes `sum_i c_i a_i = 0` by scaling the values of the sign with the larger sum towards 0.
///
/// The dual domain of every loss is an interval that contains 0, so the result is feasible. Weights
/// must be given as fractions of their sum, or all as 1. If one side is too small relative to the
/// other to be balanced to rounding accuracy, it becomes 0.
pub fn balance(dual: &mut [f64], weight: impl Fn(usize) -> f64) {
    let (mut above, mut below) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |from: usize, block: &[f64]| {
        for (lane, &a) in block.iter().enumerate() {
            let mass = weight(from + lane) * a;
            above[lane] += mass.max(0.0);
            below[lane] -= mass.min(0.0);
        }
    };
    let mut blocks = dual.chunks_exact(LANES);
    for (k, block) in (&mut blocks).enumerate() {
        add(k * LANES, block);
    }
    add(dual.len() - blocks.remainder().len(), blocks.remainder());
    let (above, below): (f64, f64) = (above.iter().sum(), below.iter().sum());
    // One of the two scale factors is 1.
    let (lighter, heavier) = (above.min(below), above.max(below));
    // The sums and their quotient must not have lost digits, and an infinite sum carries no
    // information.
    let is_exact = lighter >= MIN_MASS && lighter / heavier >= MIN_MASS;
    let lighter = if is_exact { lighter } else { 0.0 };
    let scale_above = if above > 0.0 { lighter / above } else { 1.0 };
    let scale_below = if below > 0.0 { lighter / below } else { 1.0 };
    for (i, a) in dual.iter_mut().enumerate() {
        let scale = if *a > 0.0 { scale_above } else { scale_below };
        *a *= if weight(i) > 0.0 { scale } else { 1.0 };
    }
}

/// Parallel accumulators: a single sum would have to wait for each of its additions.
const LANES: usize = 8;

/// The same minimum of a sum with kinks, with sides only `offset` away from it. The sides found by
/// the search may lie exactly at a kink, where rounding decides the slope, or far away.
pub(crate) fn with_nearby_sides(
    minimum: Minimum,
    offset: f64,
    mut at: impl FnMut(f64) -> Result<(f64, f64), Error>,
) -> Result<Minimum, Error> {
    let sides = (minimum.b - offset, minimum.b + offset);
    let (_, down) = at(sides.0)?;
    let (_, up) = at(sides.1)?;
    let mix = up / (up - down);
    Ok(if down <= 0.0 && up >= 0.0 && mix.is_finite() {
        Minimum {
            sides,
            mix,
            ..minimum
        }
    } else {
        minimum
    })
}

/// [`minimise`] for a function that can fail.
pub(crate) fn try_minimise(
    start: f64,
    inverse_curvature: f64,
    precision: f64,
    mut at: impl FnMut(f64) -> Result<(f64, f64), Error>,
) -> Result<Minimum, Error> {
    let mut outcome = Ok(());
    let minimum = minimise(start, inverse_curvature, precision, |b| {
        at(b).unwrap_or_else(|error| {
            outcome = Err(error);
            // A slope of 0 ends the search.
            (f64::INFINITY, 0.0)
        })
    });
    outcome.map(|()| minimum)
}

/// The tangent to a convex function at `b`: its value and a subgradient.
#[derive(Clone, Copy)]
struct Tangent {
    b: f64,
    value: f64,
    slope: f64,
}

/// The `inverse_curvature` that [`minimise`] is given for a mean of smooth losses. For a loss of
/// curvature 1/4 or 1, half of it or less would do.
const INVERSE_CURVATURE: f64 = 8.0;

/// The `inverse_curvature` for a loss: 0, meaning unknown, if it is not smooth.
pub(crate) fn inverse_curvature(loss: &dyn LossBlocks) -> f64 {
    if loss.smoothness() > 0.0 {
        INVERSE_CURVATURE
    } else {
        0.0
    }
}

/// The distance from a kink, relative to the size of predictions, at which rounding no longer
/// decides the slope.
const KINK_OFFSET: f64 = 1e-9;

/// The distance from a minimiser `b`, where the mean loss is `value`, at which slopes should be
/// taken. For a loss with kinks, `b` lies at one, where rounding would decide the slope of a row,
/// and with it a step or a dual point. For other losses it is 0.
pub(crate) fn kink_offset(loss: &dyn LossBlocks, b: f64, value: f64) -> f64 {
    if !loss.has_kinks() {
        return 0.0;
    }
    // For labels, kinks are at about 1. For numeric targets, the loss is in the same units as the
    // targets and has slopes of about 1.
    let size = match loss.target() {
        Target::Label => 1.0,
        Target::Real | Target::NonNegative => value,
    };
    KINK_OFFSET * b.abs().max(size)
}

/// A slope counts as 0 if it places the minimum no farther away than this: rounding leaves as much
/// of a sum of slopes of about 1. Where the value is below 1e-3, most slopes are smaller, and so is
/// the limit.
const FLAT: f64 = 1e-14;

/// If the start is farther from 0 than this, the search starts at 0 if that is better: in so wide a
/// bracket, numbers near its ends have too few digits to bound the minimum.
const FAR: f64 = 1e6;

/// A safeguard only: at least every third step halves the bracket, which ends the search long
/// before this.
const MAX_EVALUATIONS: usize = 300;

/// A minimiser of a convex function, with a convex combination of slopes that is 0.
#[derive(Debug, Clone, Copy)]
pub struct Minimum {
    /// The minimiser.
    pub b: f64,
    /// The value at the minimiser.
    pub value: f64,
    /// Points on either side of the minimiser, or the minimiser itself twice.
    pub sides: (f64, f64),
    /// `mix` times the slope on the left plus `1 - mix` times the slope on the right is 0.
    pub mix: f64,
}

impl Minimum {
    /// A minimiser at which the slope itself is 0.
    pub fn at(b: f64, value: f64) -> Self {
        Self {
            b,
            value,
            sides: (b, b),
            mix: 1.0,
        }
    }

    fn between(left: Tangent, right: Tangent) -> Self {
        let Tangent { b, value, .. } = if right.value < left.value {
            right
        } else {
            left
        };
        let mix = right.slope / (right.slope - left.slope);
        if mix.is_finite() {
            Self {
                b,
                value,
                sides: (left.b, right.b),
                mix,
            }
        } else {
            Self::at(b, value)
        }
    }
}

/// A minimiser of the convex function of which `at` returns the value and a subgradient.
///
/// The first steps assume that the minimiser lies within `inverse_curvature` times the slope at
/// `start`; 0 means that nothing is known. Whether the assumption holds affects only the number of
/// evaluations.
///
/// The search ends as soon as the value is provably within `precision * |value|` of the minimum:
/// the tangents at the two ends of the bracket bound it from below. The next trial point is, in
/// turn, the intersection of the tangents, which is exact at a kink, and the zero of the
/// interpolated slope, which is exact for a parabola. If two trials together have not halved the
/// bracket, the next one bisects it.
pub fn minimise(
    start: f64,
    inverse_curvature: f64,
    precision: f64,
    mut at: impl FnMut(f64) -> (f64, f64),
) -> Minimum {
    let mut tangent = |b: f64| {
        let (value, slope) = at(b);
        // A sum that is 0 up to rounding must not decide where on a flat bottom the search ends.
        let is_flat = inverse_curvature > 0.0
            && slope.abs() * inverse_curvature <= FLAT * (1e3 * value.abs()).min(1.0);
        let slope = if is_flat { 0.0 } else { slope };
        Tangent { b, value, slope }
    };
    let mut first = tangent(start);
    if start.abs() > FAR {
        let zero = tangent(0.0);
        if zero.value < first.value {
            first = zero;
        }
    }
    let Some((mut left, mut right)) = bracket(first, inverse_curvature, &mut tangent) else {
        return Minimum::at(first.b, first.value);
    };
    let mut widths = [f64::INFINITY; 2];
    for trial in 0..MAX_EVALUATIONS {
        let best = if right.value < left.value {
            right
        } else {
            left
        };
        if left.slope == 0.0 {
            return Minimum::at(left.b, left.value);
        }
        if right.slope == 0.0 {
            return Minimum::at(right.b, right.value);
        }
        let kink = (right.value - left.value + left.slope * left.b - right.slope * right.b)
            / (left.slope - right.slope);
        let bound = left.value + left.slope * (kink - left.b);
        // An end of infinite value gives no bound.
        if bound.is_finite() && best.value - bound <= precision * best.value.abs() {
            return Minimum::between(left, right);
        }
        let width = right.b - left.b;
        let middle = left.b + 0.5 * width;
        let guess = if width > 0.5 * widths[0] {
            middle
        } else if trial % 2 == 0 {
            kink
        } else {
            left.b - left.slope * (width / (right.slope - left.slope))
        };
        widths = [widths[1], width];
        // Also handles NaN, from an infinite slope or value.
        let b = if left.b < guess && guess < right.b {
            guess
        } else {
            middle
        };
        if !(left.b < b && b < right.b) {
            return Minimum::between(left, right);
        }
        let next = tangent(b);
        if next.slope <= 0.0 {
            left = next;
        } else {
            right = next;
        }
    }
    Minimum::between(left, right)
}

/// Moves downhill from `first` with growing steps until the slope changes sign. Returns `None` if
/// `first` is already a minimiser. The two ends may coincide in a point of slope 0.
fn bracket(
    first: Tangent,
    inverse_curvature: f64,
    tangent: &mut impl FnMut(f64) -> Tangent,
) -> Option<(Tangent, Tangent)> {
    // Nor is there a downhill direction if the slope is NaN.
    if first.slope == 0.0 || first.slope.is_nan() {
        return None;
    }
    let downhill = -first.slope.signum();
    let mut near = first;
    // Large enough not to be lost to rounding, and not so large that a loss like `exp` overflows.
    let size = first.b.abs();
    let mut step = if inverse_curvature > 0.0 {
        (inverse_curvature * first.slope.abs())
            .min(size.max(1.0))
            .max(1e-12 * size)
    } else {
        // Not beyond the zero of the tangent, below which the function rarely falls: numbers may be
        // tiny.
        let to_zero = (first.value / first.slope).abs();
        let usual = (0.01 * size).max(0.1);
        if to_zero > 0.0 {
            usual.min(to_zero)
        } else {
            usual
        }
    };
    loop {
        let b = near.b + downhill * step;
        if !b.is_finite() {
            // The function decreases all the way to the largest finite number.
            return Some((near, near));
        }
        let far = tangent(b);
        let goes_on = far.slope * downhill < 0.0 && !far.value.is_nan();
        // A slope that underflows to 0 (a minimum at infinity) ends the loop too, and so does NaN.
        if !goes_on {
            return Some(if downhill > 0.0 {
                (near, far)
            } else {
                (far, near)
            });
        }
        near = far;
        step *= 4.0;
    }
}

#[cfg(test)]
mod tests;
