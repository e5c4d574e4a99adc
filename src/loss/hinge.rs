use super::{Loss, Target, clipped_ratio, kink_if, label_range};

/// The loss of the support vector machine.
///
/// With `m = y p` and `b = y a`: `phi = max(0, 1 - m)`, `phi*(-a) = -b` for `b` in [0, 1].
#[derive(Debug, Clone, Copy)]
pub struct Hinge;

impl Loss for Hinge {
    const NAME: &'static str = "hinge";
    const FORMULA: &'static str = "max(0, 1 - y p)";
    const TARGET: Target = Target::Label;
    const SMOOTH_RELATIVE: Option<&'static str> = Some("smooth_hinge");

    fn with_param(_: f64) -> Self {
        Self
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        (1.0 - y * p).max(0.0)
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        if y * p < 1.0 { -y } else { 0.0 }
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        let b = y * a;
        if (0.0..=1.0).contains(&b) {
            -b
        } else {
            f64::INFINITY
        }
    }

    /// `b = clip((1 - y z) / q; 0, 1)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        y * clipped_ratio(1.0 - y * z, q, 0.0, 1.0)
    }

    #[inline]
    fn curvature(&self, a: f64, y: f64) -> f64 {
        kink_if(0.0 < y * a && y * a < 1.0)
    }

    #[inline]
    fn dual_range(&self, y: f64) -> (f64, f64) {
        label_range(y, 1.0)
    }

    fn lipschitz(&self) -> f64 {
        1.0
    }

    fn smoothness(&self) -> f64 {
        0.0
    }
}
