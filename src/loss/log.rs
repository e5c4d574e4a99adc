use super::functions::{EXP_M1_RANGE, NEAR_RANGE, exp_m1, exp_neg, exp_neg_near, ln, ln_1p};
use super::{Link, Loss, Target, label_range};

/// The logistic loss, which gives logistic regression.
///
/// With `m = y p` and `b = y a`: `phi = log(1 + e^-m)`,
/// `phi*(-a) = b log b + (1 - b) log(1 - b)` for `b` in [0, 1].
#[derive(Debug, Clone, Copy)]
pub struct Log;

impl Loss for Log {
    const NAME: &'static str = "log";
    const FORMULA: &'static str = "log(1 + exp(-y p))";
    const TARGET: Target = Target::Label;
    const LINK: Link = Link::Logit;
    const STEP_WORK: f64 = 55.0;
    const NEWTON_STEPS: f64 = 4.0;

    fn with_param(_: f64) -> Self {
        Self
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        let m = y * p;
        (-m).max(0.0) + ln_1p(exp_neg(m.abs()))
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        -y * sigmoid(-y * p)
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        let b = y * a;
        // The conjugate is symmetric, and ln_1p(-b) is exact for small b.
        let b = b.min(1.0 - b);
        // Always computed: with a branch around it, the compiler does not vectorise.
        let value = b * ln(b) + (1.0 - b) * ln_1p(-b);
        if b >= 0.0 { value } else { f64::INFINITY }
    }

    #[inline]
    fn step(&self, z: f64, q: f64, a: f64, y: f64) -> f64 {
        y * new_value(y * z, q, y * a)
    }

    #[inline]
    fn curvature(&self, a: f64, y: f64) -> f64 {
        let b = y * a;
        b * (1.0 - b)
    }

    #[inline]
    fn dual_range(&self, y: f64) -> (f64, f64) {
        label_range(y, 1.0)
    }

    fn lipschitz(&self) -> f64 {
        1.0
    }

    fn smoothness(&self) -> f64 {
        4.0
    }
}

/// `1 / (1 + e^-t)`, without overflow and with full relative accuracy for very negative `t`.
#[inline]
fn sigmoid(t: f64) -> f64 {
    let e = exp_neg(t.abs());
    (if t >= 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// `b = sigmoid(-m)` at the new margin `m`, the root of `f(m) = m - start - q sigmoid(-m)`. The
/// search starts from the current value of `b`, at the margin `start + q b`.
///
/// A root `m < 0` is minus the root for `-(start + q)`, because `sigmoid(-m) = 1 - sigmoid(m)`; so
/// the root may be assumed positive.
#[inline]
fn new_value(start: f64, q: f64, b: f64) -> f64 {
    let positive = start + 0.5 * q >= 0.0;
    let (from, near) = if positive {
        (start, b)
    } else {
        (-(start + q), 1.0 - b)
    };
    let value = value_at_positive_root(from, q, near);
    let value = if positive { value } else { 1.0 - value };
    if value.is_nan() {
        // Numbers overflow; relative to them, every margin but the start is negligible.
        return (-start / q).clamp(0.0, 1.0);
    }
    value
}

/// A point of the root search: what is needed of `f` at a margin `m`.
///
/// With `e = e^-m`, `u = 1 + e` and `s = sigmoid(-m) = e / u`
///
/// ```text
/// f = m - start - q s = residual / u,  f' = 1 + q s (1 - s) = slope / u^2,
/// f'' = -q s (1 - s) (1 - 2 s) = -2 curve / u^3
/// ```
///
/// so that a step of Newton's or Halley's method takes a single division.
#[derive(Clone, Copy)]
struct SearchPoint {
    m: f64,
    e: f64,
    u: f64,
    residual: f64,
    slope: f64,
    q: f64,
}

impl SearchPoint {
    #[inline(always)]
    fn new(start: f64, q: f64, (m, e): (f64, f64)) -> Self {
        let u = 1.0 + e;
        Self {
            m,
            e,
            u,
            residual: (m - start) * u - q * e,
            slope: u * u + q * e,
            q,
        }
    }

    /// Whether the Newton step is at most 1/2 and the Halley step does not overflow.
    #[inline(always)]
    fn is_near(&self) -> bool {
        self.residual.abs() * self.u <= 0.5 * self.slope && self.slope < LARGEST
    }

    /// The step of Halley's method, to be subtracted from `m`. If [`Self::is_near`], it reduces an
    /// error `e` to less than `e^3 / 2`, because the second and third derivatives of `f` are no
    /// larger than the first.
    #[inline(always)]
    fn halley(&self) -> f64 {
        let curve = 0.5 * self.q * self.e * (1.0 - self.e);
        self.residual * self.slope * self.u / (self.slope * self.slope + self.residual * curve)
    }

    /// The step of Newton's method, to be subtracted from `m`. For `m >= 0`, `f` is increasing and
    /// concave, so the method converges from any start, and from the left and monotonically after
    /// its first step.
    #[inline(always)]
    fn newton(&self) -> f64 {
        self.residual * self.u / self.slope
    }

    /// `sigmoid(-(m - d))`, from a Taylor expansion at `m`.
    #[inline(always)]
    fn value_after(&self, d: f64) -> f64 {
        let s = self.e / self.u;
        s + s * (1.0 - s) * d * (1.0 + 0.5 * (1.0 - 2.0 * s) * d)
    }
}

/// Halley's method squares numbers up to this size.
const LARGEST: f64 = 1e150;

/// After a step of at most this length, the error is less than `STEP^3 / 2`, which is 3e-14.
const STEP: f64 = 4e-5;

/// See [`new_value`].
///
/// Two steps suffice unless the point is far from the optimum: one from the nearest margin whose
/// exponential is in a table, and one from the result, which is so close that a short polynomial
/// gives the exponential. There is no loop, and the branches that choose the method are easy to
/// predict, so this takes two thirds of the time of [`search`] alone.
#[inline(always)]
fn value_at_positive_root(start: f64, q: f64, b: f64) -> f64 {
    let guess = (start + q * b).max(0.0);
    if guess < NEAR_RANGE {
        let at = SearchPoint::new(start, q, exp_neg_near(guess));
        let d = at.halley();
        if at.is_near() && d.abs() <= EXP_M1_RANGE {
            let at = SearchPoint::new(start, q, (at.m - d, at.e + at.e * exp_m1(d)));
            let d = at.halley();
            if d.abs() <= STEP {
                return at.value_after(d);
            }
            return search(start, q, at.m - d);
        }
        return search(start, q, at.m - if at.is_near() { d } else { at.newton() });
    }
    search(start, q, guess)
}

/// The round of the search at which the start is assumed to have been far from the root.
const FAR_START_ROUND: usize = 6;

/// As [`value_at_positive_root`], starting from any margin.
#[inline(never)]
fn search(start: f64, q: f64, from: f64) -> f64 {
    let low = start.max(0.0);
    // Not `clamp`, which panics if a limit is NaN, as when another thread corrupts the data.
    let mut m = from.max(low).min(start + q);
    // The limit is only a safeguard against a cycle in the last bit of a huge margin.
    for round in 0..100 {
        if round == FAR_START_ROUND {
            m = m.max(far_start(start, q));
        }
        let at = SearchPoint::new(start, q, (m, (-m).exp()));
        let d = if at.is_near() {
            at.halley()
        } else {
            at.newton()
        };
        let next = (m - d).max(low);
        let moved = next - m;
        if moved.abs() <= STEP || moved.abs() <= 4.0 * f64::EPSILON * m {
            return at.value_after(-moved);
        }
        m = next;
    }
    sigmoid(-m)
}

/// A lower bound on the root, for a start far to its left, from which Newton's method gains only
/// about 1 per round.
///
/// Because `sigmoid(-m) >= e^-m / 2`, the root of `(m - start) e^m = q / 2` is a lower bound, and
/// so is `ln(q/2) - ln L`, where `L = ln(q/2) - start > 1`.
#[cold]
#[inline(never)]
fn far_start(start: f64, q: f64) -> f64 {
    let half = (0.5 * q).ln();
    if half - start > 1.0 {
        half - (half - start).ln()
    } else {
        0.0
    }
}
