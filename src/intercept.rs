//! The unregularised intercept: what makes its certificate exact.
//!
//! With an intercept the dual has the constraint `sum_i c_i a_i = 0`. Solvers may wander off it;
//! a certificate may not. At an evaluation the dual point is first put back on the constraint
//! ([`balance`]), then `b` is chosen by minimising `P` over it ([`minimise`]).

use crate::error::Error;
use crate::loss::Target;
use crate::loss::blocks::LossBlocks;

/// A sum of products below this has lost digits to underflow.
pub(crate) const LEAST_MASS: f64 = f64::MIN_POSITIVE / f64::EPSILON;

/// Makes `sum_i c_i a_i = 0` by scaling the values of the heavier sign towards 0.
///
/// The dual domain of every loss is an interval that contains 0, so the result is feasible. Weights are to be
/// given as parts of their sum, or all as 1: what is too small beside that to be balanced to rounding becomes 0.
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
    // One of the two factors is 1.
    let (lighter, heavier) = (above.min(below), above.max(below));
    // Neither sums nor their quotient may have lost digits; and an infinite sum tells nothing.
    let is_exact = lighter >= LEAST_MASS && lighter / heavier >= LEAST_MASS;
    let lighter = if is_exact { lighter } else { 0.0 };
    let scale_above = if above > 0.0 { lighter / above } else { 1.0 };
    let scale_below = if below > 0.0 { lighter / below } else { 1.0 };
    for (i, a) in dual.iter_mut().enumerate() {
        let scale = if *a > 0.0 { scale_above } else { scale_below };
        *a *= if weight(i) > 0.0 { scale } else { 1.0 };
    }
}

/// Sums side by side: one alone would wait for each of its additions.
const LANES: usize = 8;

/// The same minimum of a sum with kinks, with sides that lie `apart` from it: those of the search may lie at a
/// kink, where rounding decides about the slope, or far away.
pub(crate) fn with_close_sides(
    minimum: Minimum,
    apart: f64,
    mut at: impl FnMut(f64) -> Result<(f64, f64), Error>,
) -> Result<Minimum, Error> {
    let sides = (minimum.b - apart, minimum.b + apart);
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

/// [`minimise`] for a function that may fail.
pub(crate) fn try_minimise(
    start: f64,
    reach: f64,
    precision: f64,
    mut at: impl FnMut(f64) -> Result<(f64, f64), Error>,
) -> Result<Minimum, Error> {
    let mut alive = Ok(());
    let minimum = minimise(start, reach, precision, |b| {
        at(b).unwrap_or_else(|error| {
            alive = Err(error);
            // A slope of 0 ends the search.
            (f64::INFINITY, 0.0)
        })
    });
    alive.map(|()| minimum)
}

/// A point on the graph of a convex function, with a subgradient.
#[derive(Clone, Copy)]
struct Touch {
    b: f64,
    value: f64,
    slope: f64,
}

/// [`minimise`]'s `reach` for a mean of smooth losses: for one of curvature 1/4 or 1 half of it or less would
/// do.
const REACH: f64 = 8.0;

/// The same for a loss: 0, as there is nothing to go by, for one with kinks.
pub(crate) fn reach(loss: &dyn LossBlocks) -> f64 {
    if loss.smoothness() > 0.0 { REACH } else { 0.0 }
}

/// How far beside a kink rounding no longer decides about slopes, as a part of what predictions are about.
const BESIDE: f64 = 1e-9;

/// How far from a minimiser `b` slopes are to be taken, where the mean loss is `value`: beside it for a loss with kinks,
/// as `b` then is at one, where rounding would decide about the slope of a row, and with that about a step or a dual
/// point.
pub(crate) fn apart(loss: &dyn LossBlocks, b: f64, value: f64) -> f64 {
    if !loss.has_kinks() {
        return 0.0;
    }
    // Labels have kinks at about 1. Losses of numbers are in the units of these, and have slopes of about 1.
    let size = match loss.target() {
        Target::Label => 1.0,
        Target::Real | Target::NonNegative => value,
    };
    BESIDE * b.abs().max(size)
}

/// A slope that expects the minimum no farther away than that is none: rounding leaves as much of a sum of
/// slopes of about 1. Where the value is below 1e-3, most slopes are less, and so is the limit.
const FLAT: f64 = 1e-14;

/// From farther away the search begins at 0 if that is better: numbers at the ends of a bracket that is so wide would have
/// too few digits for a bound of the minimum.
const FAR: f64 = 1e6;

/// Every third step at least halves the bracket, which ends the search long before; this only makes
/// sure of it.
const MAX_EVALUATIONS: usize = 300;

/// A minimiser of a convex function, and where a subgradient of 0 comes from.
#[derive(Debug, Clone, Copy)]
pub struct Minimum {
    /// The minimiser.
    pub b: f64,
    /// The value there.
    pub value: f64,
    /// Points on both sides of it, or twice the minimiser itself.
    pub sides: (f64, f64),
    /// `mix` times the slope on the left and `1 - mix` times the one on the right add up to 0.
    pub mix: f64,
}

impl Minimum {
    /// A minimiser where the slope itself is 0.
    pub fn at(b: f64, value: f64) -> Self {
        Self {
            b,
            value,
            sides: (b, b),
            mix: 1.0,
        }
    }

    fn between(left: Touch, right: Touch) -> Self {
        let Touch { b, value, .. } = if right.value < left.value {
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

/// A minimiser of the convex function whose value and subgradient `at` returns.
///
/// It is expected within `reach` times the slope at `start`, where that is not 0 for nothing is known;
/// whether it is only decides about the number of trials. The search ends as soon as the value is provably
/// within `precision * |value|` of the minimum: the tangents at the ends of the bracket bound it from below. Their intersection is also the next
/// trial, which is exact at a kink, in turn with the zero of the interpolated slope, which is exact
/// on a parabola; if two trials together have not halved the bracket, the next one bisects it.
pub fn minimise(
    start: f64,
    reach: f64,
    precision: f64,
    mut at: impl FnMut(f64) -> (f64, f64),
) -> Minimum {
    let mut touch = |b: f64| {
        let (value, slope) = at(b);
        // What rounding leaves of a sum that is 0 must not decide where on a flat bottom the search ends.
        let is_flat = reach > 0.0 && slope.abs() * reach <= FLAT * (1e3 * value.abs()).min(1.0);
        let slope = if is_flat { 0.0 } else { slope };
        Touch { b, value, slope }
    };
    let mut first = touch(start);
    if start.abs() > FAR {
        let zero = touch(0.0);
        if zero.value < first.value {
            first = zero;
        }
    }
    let Some((mut left, mut right)) = bracket(first, reach, &mut touch) else {
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
        // An end of infinite value bounds nothing.
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
        // Also catches NaN, where a slope or value was infinite.
        let b = if left.b < guess && guess < right.b {
            guess
        } else {
            middle
        };
        if !(left.b < b && b < right.b) {
            return Minimum::between(left, right);
        }
        let next = touch(b);
        if next.slope <= 0.0 {
            left = next;
        } else {
            right = next;
        }
    }
    Minimum::between(left, right)
}

/// Walks downhill from `first` with growing steps until the slope changes sign. `None` if `first` is
/// a minimiser itself. The ends may coincide in one point of slope 0.
fn bracket(
    first: Touch,
    reach: f64,
    touch: &mut impl FnMut(f64) -> Touch,
) -> Option<(Touch, Touch)> {
    // Nor is there a way downhill where the slope is NaN.
    if first.slope == 0.0 || first.slope.is_nan() {
        return None;
    }
    let downhill = -first.slope.signum();
    let mut near = first;
    // Not below what rounding would swallow, and not so far that a loss like `exp` overflows.
    let size = first.b.abs();
    let mut step = if reach > 0.0 {
        (reach * first.slope.abs())
            .min(size.max(1.0))
            .max(1e-12 * size)
    } else {
        // Not beyond where the tangent is 0, which the function is mostly not below: numbers may be tiny.
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
            // The function falls as far as numbers go.
            return Some((near, near));
        }
        let far = touch(b);
        let goes_on = far.slope * downhill < 0.0 && !far.value.is_nan();
        // A slope that underflows to 0 (a minimum at infinity) ends the walk too, and so does NaN.
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
mod tests {
    use super::*;

    #[test]
    fn a_start_far_away_leads_to_the_minimum_too() {
        // The mean of log losses, of which two thirds have the label -1.
        let at = |b: f64| {
            let value = |m: f64| (-m.abs()).exp().ln_1p() + (-m).max(0.0);
            let slope = |m: f64| -1.0 / (1.0 + m.exp());
            let mean = |of: &dyn Fn(f64) -> f64| (of(b) + 2.0 * of(-b)) / 3.0;
            (mean(&value), (slope(b) - 2.0 * slope(-b)) / 3.0)
        };
        for start in [0.0, 1e3, -1e7, 1e12, -1e22, 3.4e38, -1e300] {
            let found = minimise(start, 8.0, 1e-9, at);
            assert!(
                (found.b + 2f64.ln()).abs() < 1e-3,
                "{} from {start}",
                found.b
            );
        }
    }

    #[test]
    fn balance_reaches_the_constraint_and_only_shrinks() {
        let weights = [1.0, 2.0, 0.0, 0.5, 3.0];
        for start in [
            [0.5, -1.0, 9.0, 0.2, 0.4],
            [1.0, 1.0, 1.0, 1.0, 1.0],
            [-1.0; 5],
            [0.0; 5],
        ] {
            let mut dual = start;
            balance(&mut dual, |i| weights[i]);
            let sum: f64 = dual.iter().zip(weights).map(|(a, c)| c * a).sum();
            assert!(sum.abs() < 1e-15, "{dual:?}");
            for (after, before) in dual.iter().zip(start) {
                assert!(after * before >= 0.0 && after.abs() <= before.abs());
            }
        }
    }

    #[test]
    fn balance_of_what_underflows_is_nothing() {
        // Beside the weight of the first, the second has but one digit.
        let weights = [1.0, 5e-324];
        let mut dual = [0.3, -0.7];
        balance(&mut dual, |i| weights[i]);
        assert_eq!(dual, [0.0, 0.0]);
        // All are small: they are given as parts of their sum.
        let mut dual = [0.3, -0.7];
        balance(&mut dual, |_| 0.5);
        assert_eq!(dual, [0.3, -0.3]);
    }

    #[test]
    fn minimise_ends_whatever_the_function() {
        type Function<'a> = &'a dyn Fn(f64) -> (f64, f64);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let hostile: [Function<'_>; 9] = [
            &|_| (nan, nan),
            &|_| (1.0, nan),
            &|_| (nan, 1.0),
            &|_| (inf, inf),
            &|_| (inf, -inf),
            &|b| (b, 1.0),
            &|b| (-b, -1.0),
            // NaN from the second point on, with a slope that is not.
            &|b| if b == 0.0 { (1.0, 1.0) } else { (nan, -0.0) },
            &|b| (b.sin(), b.cos()),
        ];
        for (k, f) in hostile.iter().enumerate() {
            for reach in [0.0, 8.0] {
                let mut count = 0;
                let found = minimise(0.0, reach, 1e-12, |b| {
                    count += 1;
                    f(b)
                });
                assert!(count < 2500, "{k}: {count} evaluations");
                assert!(found.b.is_finite(), "{k}: {}", found.b);
            }
        }
    }

    #[test]
    fn minimise_finds_parabolas_kinks_and_flats() {
        type Function<'a> = &'a dyn Fn(f64) -> (f64, f64);
        let cases: [(Function<'_>, f64); 4] = [
            (&|b| ((b - 3.0) * (b - 3.0) + 1.0, 2.0 * (b - 3.0)), 3.0),
            (&|b| ((b + 1e6).abs() + 1.0, (b + 1e6).signum()), -1e6),
            (
                &|b: f64| (b.exp() - 7.0 * b + 10.0, b.exp() - 7.0),
                7f64.ln(),
            ),
            (
                &|b: f64| {
                    (
                        (b - 1e-9).abs().mul_add(3.0, 1.0),
                        3.0 * (b - 1e-9).signum(),
                    )
                },
                1e-9,
            ),
        ];
        for (at, expected) in cases {
            for start in [-1e3, -1.0, 0.0, 0.5, 20.0] {
                for reach in [REACH, 0.0] {
                    let found = minimise(start, reach, 0.0, at).b;
                    assert!(
                        (at(found).0 - at(expected).0).abs() <= 1e-13 * at(expected).0,
                        "{start}: {found}"
                    );
                }
            }
        }
        for reach in [REACH, 0.0] {
            let flat = minimise(100.0, reach, 0.0, |b| {
                (
                    (b.abs() - 2.0).max(0.0),
                    if b.abs() > 2.0 { b.signum() } else { 0.0 },
                )
            })
            .b;
            assert!(flat.abs() <= 2.0);
        }
    }

    #[test]
    fn minimise_ends_where_the_minimum_is_at_infinity() {
        let b = minimise(0.0, REACH, 1e-14, |b: f64| (b.exp(), b.exp())).b;
        assert_eq!(b.exp(), 0.0);
    }

    #[test]
    fn minimise_takes_few_evaluations() {
        // The median of many points: piecewise linear with 1000 kinks; and a sum of logistic losses.
        let points: Vec<f64> = (0..1000)
            .map(|i| f64::from(i * 7919 % 1000) / 37.0)
            .collect();
        let mut count = 0;
        minimise(0.0, REACH, 1e-14, |b| {
            count += 1;
            let value = points.iter().map(|p| (b - p).abs()).sum();
            (
                value,
                points
                    .iter()
                    .map(|p| if b == *p { 0.0 } else { (b - p).signum() })
                    .sum(),
            )
        });
        assert!(count <= 30, "{count}");
        count = 0;
        minimise(0.0, REACH, 1e-14, |b| {
            count += 1;
            let value = points
                .iter()
                .map(|p| (b - p).exp().ln_1p() + 0.3 * (p - b))
                .sum();
            (
                value,
                points
                    .iter()
                    .map(|p| 1.0 / (1.0 + (p - b).exp()) - 0.3)
                    .sum(),
            )
        });
        assert!(count <= 30, "{count}");
    }
}
