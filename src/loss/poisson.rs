use super::{Link, Loss, Target};

/// Half the Poisson deviance with a log link: `p` is the logarithm of the expected count.
///
/// `phi = e^p - y p + y ln y - y`, which is 0 at its minimum `p = ln y`, so that a gap relative to
/// the objective is meaningful. With `u = y - a >= 0`: `phi*(-a) = u ln u - u - y ln y + y`. The
/// loss is neither smooth nor Lipschitz.
#[derive(Debug, Clone, Copy)]
pub struct Poisson;

impl Loss for Poisson {
    const NAME: &'static str = "poisson";
    const FORMULA: &'static str = "exp(p) - y p + y log(y) - y";
    const TARGET: Target = Target::NonNegative;
    const LINK: Link = Link::Log;
    const STEP_WORK: f64 = 70.0;

    fn with_param(_: f64) -> Self {
        Self
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        // With t = p - ln y this is y (e^t - 1 - t), which does not cancel near the minimum.
        let t = p - y.ln();
        if y > 0.0 && t.abs() < 1.0 {
            y * (t.exp_m1() - t)
        } else {
            number_or_infinity(p.exp() - y * p + entropy(y))
        }
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        p.exp() - y
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        let u = y - a;
        // With s = a / y this is y ((1 - s) ln(1 - s) + s) - a ln y. Its terms are not much larger
        // than a, whereas u ln u and y ln y would cancel.
        let s = a / y;
        if y > 0.0 && s.abs() <= 0.5 {
            y * ((1.0 - s) * (-s).ln_1p() + s) - a * y.ln()
        } else if u >= 0.0 {
            number_or_infinity(entropy(u) - entropy(y))
        } else {
            f64::INFINITY
        }
    }

    /// `a = y - e^p = (p - z) / q` where the new prediction `p` solves `p + q e^p = z + q y`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        let s = z + q * y;
        if s == f64::INFINITY {
            // p is negligible in s = p + q e^p.
            let p = (y + z / q).ln();
            return if p.is_finite() {
                ((p - z) / q).min(y)
            } else {
                y
            };
        }
        let p = new_prediction(s, q);
        let mu = p.exp();
        // The one of the two forms whose difference loses fewer digits.
        if p.abs() + z.abs() < q * (y + mu) {
            ((p - z) / q).min(y)
        } else {
            y - mu
        }
    }

    #[inline]
    fn curvature(&self, a: f64, y: f64) -> f64 {
        (y - a).max(0.0)
    }

    #[inline]
    fn dual_range(&self, y: f64) -> (f64, f64) {
        (f64::NEG_INFINITY, y)
    }

    fn lipschitz(&self) -> f64 {
        f64::INFINITY
    }

    fn smoothness(&self) -> f64 {
        0.0
    }
}

/// A sum of which two terms may have overflowed; it is then infinite.
#[inline]
fn number_or_infinity(sum: f64) -> f64 {
    if sum.is_nan() { f64::INFINITY } else { sum }
}

/// `u ln u - u`, extended by its limit 0 at 0.
#[inline]
fn entropy(u: f64) -> f64 {
    if u == 0.0 { 0.0 } else { u * (u.ln() - 1.0) }
}

/// The root of `f(p) = p + q e^p - s`.
///
/// `f` is increasing and convex, so Newton's method descends monotonically from any point to the
/// right of the root. `s` is such a point. If `L = ln q + s > 1`, a closer one is `ln L - ln q`:
/// with `u = s - p` the root satisfies `u + ln u = L`, whose solution is at least `L - ln L`.
#[inline]
fn new_prediction(s: f64, q: f64) -> f64 {
    let log_q = q.ln();
    let level = log_q + s;
    let mut p = if level > 1.0 {
        s.min(level.ln() - log_q)
    } else {
        s
    };
    // At most about 10 rounds; the limit is only a safeguard against a cycle in the last bit.
    for _ in 0..100 {
        let pull = q * p.exp();
        let next = p - (p + pull - s) / (1.0 + pull);
        // NaN (from q = 0 with an overflowing e^p) ends the loop too, at the exact p = s.
        let goes_on = p - next > 4.0 * f64::EPSILON * p.abs().max(1.0);
        p = p.min(next);
        if !goes_on {
            break;
        }
    }
    p
}
