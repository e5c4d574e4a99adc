use super::functions::{exp_neg, ln, ln_1p};
use super::{Link, Loss, Target, label_range};

/// The logistic loss: its minimiser is logistic regression.
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
    const STEP_WORK: f64 = 70.0;

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
        // It is symmetric; and ln_1p(-b) is exact for small b.
        let b = b.min(1.0 - b);
        if b >= 0.0 {
            b * ln(b) + (1.0 - b) * ln_1p(-b)
        } else {
            f64::INFINITY
        }
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

/// `1 / (1 + e^-t)` without overflow and with full relative accuracy for very negative `t`.
#[inline]
fn sigmoid(t: f64) -> f64 {
    let e = exp_neg(t.abs());
    (if t >= 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// `b = sigmoid(-m)` at the new margin `m`, the root of `f(m) = m - start - q sigmoid(-m)`. `b` is
/// sought from its present value, the margin from `start + q b`.
///
/// A root `m < 0` is the negative of the root for `-(start + q)`, because
/// `sigmoid(-m) = 1 - sigmoid(m)`; so let the root be positive.
#[inline]
fn new_value(start: f64, q: f64, b: f64) -> f64 {
    let positive = start + 0.5 * q >= 0.0;
    let (from, near) = if positive {
        (start, b)
    } else {
        (-(start + q), 1.0 - b)
    };
    let value = value_at_positive_root(from, q, near);
    if positive { value } else { 1.0 - value }
}

/// Rounds of the search after which its start is taken to have been far from the root.
const PATIENCE: usize = 6;

/// Steps of at most this length leave an error of less than `STEP^3 / 2`, which is 3e-14.
const STEP: f64 = 4e-5;

/// See [`new_value`].
///
/// For `m >= 0`, `f` increases and is concave: Newton's method converges from anywhere, after its
/// first step from the left and monotonically. Where its step `d` is short, Halley's method makes
/// the same exponential count for more: from the error `e` it leaves less than `e^3 / 2`, since the
/// second and third derivatives of `f` are no larger than the first. The last step is not followed by
/// another exponential: `sigmoid(-m)` is continued by its derivatives. So there are one or two of
/// them near the optimum.
#[inline]
fn value_at_positive_root(start: f64, q: f64, b: f64) -> f64 {
    let low = start.max(0.0);
    // Not `clamp`, which panics if data that another thread spoils have made a limit NaN.
    let mut m = (start + q * b).max(low).min(start + q);
    // The limit only guards against a cycle in the last bit of a huge margin.
    for round in 0..100 {
        if round == PATIENCE {
            m = m.max(far_start(start, q));
        }
        // s = sigmoid(-m) = e / u, and with it
        //     f = m - start - q s = residual / u,  f' = 1 + q s (1 - s) = slope / u^2,
        //     f'' = -q s (1 - s) (1 - 2 s) = -2 curve / u^3,
        // so that a step of either method takes a single division.
        let e = (-m).exp();
        let u = 1.0 + e;
        let residual = (m - start) * u - q * e;
        let slope = u * u + q * e;
        let curve = 0.5 * q * e * (1.0 - e);
        let d = if residual.abs() * u <= 0.5 * slope {
            residual * slope * u / (slope * slope + residual * curve)
        } else {
            residual * u / slope
        };
        let next = (m - d).max(low);
        let moved = next - m;
        if moved.abs() <= STEP || moved.abs() <= 4.0 * f64::EPSILON * m {
            // sigmoid(-(m + d)) = s (1 - (1-s) d + (1-s)(1-2s) d^2 / 2 - ...)
            let s = e / u;
            return s - s * (1.0 - s) * moved * (1.0 - 0.5 * (1.0 - 2.0 * s) * moved);
        }
        m = next;
    }
    sigmoid(-m)
}

/// A lower bound of the root, where Newton's method from far left of it has been of little use: a round
/// of that gains only 1.
///
/// As `sigmoid(-m) >= e^-m / 2`, the root of `(m - start) e^m = q / 2` is one, and so is `ln(q/2) - ln L`,
/// where `L = ln(q/2) - start > 1`.
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
