use super::{Loss, Target, label_range};

/// The squared hinge, as LIBLINEAR defines it (no factor 1/2).
///
/// With `m = y p` and `b = y a`: `phi = max(0, 1 - m)^2`, `phi*(-a) = -b + b^2 / 4` for `b >= 0`.
#[derive(Debug, Clone, Copy)]
pub struct SquaredHinge;

impl Loss for SquaredHinge {
    const NAME: &'static str = "squared_hinge";
    const FORMULA: &'static str = "max(0, 1 - y p)^2";
    const TARGET: Target = Target::Label;

    fn with_param(_: f64) -> Self {
        Self
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        let slack = (1.0 - y * p).max(0.0);
        slack * slack
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        -2.0 * y * (1.0 - y * p).max(0.0)
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        let b = y * a;
        if b >= 0.0 {
            -b + 0.25 * b * b
        } else {
            f64::INFINITY
        }
    }

    /// `b = max(0, (1 - y z) / (q + 1/2))`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        y * ((1.0 - y * z) / (q + 0.5)).max(0.0)
    }

    #[inline]
    fn curvature(&self, a: f64, y: f64) -> f64 {
        if y * a > 0.0 { 2.0 } else { 0.0 }
    }

    #[inline]
    fn dual_range(&self, y: f64) -> (f64, f64) {
        label_range(y, f64::INFINITY)
    }

    fn lipschitz(&self) -> f64 {
        f64::INFINITY
    }

    fn smoothness(&self) -> f64 {
        0.5
    }
}
