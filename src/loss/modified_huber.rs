use super::{Loss, Target, label_range};

/// The squared hinge, continued linearly for `m < -1` so that outliers count less.
///
/// With `m = y p` and `b = y a`: `phi = max(0, 1 - m)^2` for `m >= -1`, else `-4 m`;
/// `phi*(-a) = -b + b^2 / 4` for `b` in [0, 4].
#[derive(Debug, Clone, Copy)]
pub struct ModifiedHuber;

impl Loss for ModifiedHuber {
    const NAME: &'static str = "modified_huber";
    const FORMULA: &'static str = "max(0, 1 - y p)^2 if y p >= -1 else -4 y p";
    const TARGET: Target = Target::Label;
    const NEWTON_STEPS: f64 = 12.0;

    fn with_param(_: f64) -> Self {
        Self
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        let m = y * p;
        let slack = (1.0 - m).max(0.0);
        if m >= -1.0 { slack * slack } else { -4.0 * m }
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        -y * (2.0 * (1.0 - y * p)).clamp(0.0, 4.0)
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        let b = y * a;
        if (0.0..=4.0).contains(&b) {
            -b + 0.25 * b * b
        } else {
            f64::INFINITY
        }
    }

    /// `b = clip((1 - y z) / (q + 1/2); 0, 4)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        y * ((1.0 - y * z) / (q + 0.5)).clamp(0.0, 4.0)
    }

    #[inline]
    fn curvature(&self, a: f64, y: f64) -> f64 {
        if 0.0 < y * a && y * a < 4.0 { 2.0 } else { 0.0 }
    }

    #[inline]
    fn dual_range(&self, y: f64) -> (f64, f64) {
        label_range(y, 4.0)
    }

    fn lipschitz(&self) -> f64 {
        4.0
    }

    fn smoothness(&self) -> f64 {
        0.5
    }
}
