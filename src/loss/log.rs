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

    fn with_param(_: f64) -> Self {
        Self
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        let m = y * p;
        (-m).max(0.0) + (-m.abs()).exp().ln_1p()
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        -y * sigmoid(-y * p)
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        let b = y * a;
        if !(0.0..=1.0).contains(&b) {
            return f64::INFINITY;
        }
        let rest = 1.0 - b;
        // ln(1 - b) as ln_1p(-b): exact for small b.
        let here = if b == 0.0 { 0.0 } else { b * b.ln() };
        let there = if rest == 0.0 {
            0.0
        } else {
            rest * (-b).ln_1p()
        };
        here + there
    }

    /// `b = sigmoid(-m)` where the new margin `m` solves `m - y z - q sigmoid(-m) = 0`.
    #[inline]
    fn step(&self, z: f64, q: f64, a: f64, y: f64) -> f64 {
        y * sigmoid(-new_margin(y * z, q, y * a))
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
    let e = (-t.abs()).exp();
    if t >= 0.0 {
        1.0 / (1.0 + e)
    } else {
        e / (1.0 + e)
    }
}

/// The root of `f(m) = m - start - q sigmoid(-m)`, from the present margin `start + q b`.
///
/// A root `m < 0` is the negative of the root for `-(start + q)`, because
/// `sigmoid(-m) = 1 - sigmoid(m)`; so let the root be positive. There `f` increases and is concave:
/// Newton's method converges from anywhere, after its first step from the left and monotonically.
#[inline]
fn new_margin(start: f64, q: f64, b: f64) -> f64 {
    if start + 0.5 * q >= 0.0 {
        positive_root(start, q, b)
    } else {
        -positive_root(-(start + q), q, 1.0 - b)
    }
}

/// Rounds of Newton's method after which the start is taken to have been far from the root.
const PATIENCE: usize = 6;

/// See [`new_margin`].
#[inline]
fn positive_root(start: f64, q: f64, b: f64) -> f64 {
    let low = start.max(0.0);
    // Not `clamp`, which panics if data that another thread spoils have made a limit NaN.
    let mut m = (start + q * b).max(low).min(start + q);
    // 2 or 3 rounds from a warm start. The limit only guards against a cycle in the last bit.
    for round in 0..100 {
        if round == PATIENCE {
            // Far left of the root a round gains only 1. As sigmoid(-m) >= e^-m / 2, the root of
            // (m - start) e^m = q / 2 is a lower bound, and so is ln(q/2) - ln L, where
            // L = ln(q/2) - start > 1.
            let half = (0.5 * q).ln();
            if half - start > 1.0 {
                m = m.max(half - (half - start).ln());
            }
        }
        let s = sigmoid(-m);
        let newton = m - (m - start - q * s) / (1.0 + q * s * (1.0 - s));
        let next = newton.max(low);
        let moved = (next - m).abs();
        m = next;
        if moved <= 4.0 * f64::EPSILON * m.max(1.0) {
            break;
        }
    }
    m
}
