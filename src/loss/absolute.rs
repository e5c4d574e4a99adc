use super::{Loss, Target, clipped_ratio, kink_if};

/// The absolute error, which predicts medians: how far away outliers are does not matter.
///
/// `phi = |p - y|`, `phi*(-a) = -a y` for `|a| <= 1`.
#[derive(Debug, Clone, Copy)]
pub struct Absolute;

impl Loss for Absolute {
    const NAME: &'static str = "absolute";
    const FORMULA: &'static str = "|y - p|";
    const TARGET: Target = Target::Real;
    const SMOOTH_RELATIVE: Option<&'static str> = Some("huber");

    fn with_param(_: f64) -> Self {
        Self
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        (p - y).abs()
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        if p == y { 0.0 } else { (p - y).signum() }
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        if a.abs() <= 1.0 {
            -a * y
        } else {
            f64::INFINITY
        }
    }

    /// `a = clip((y - z) / q; -1, 1)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        clipped_ratio(y - z, q, -1.0, 1.0)
    }

    #[inline]
    fn curvature(&self, a: f64, _y: f64) -> f64 {
        kink_if(a.abs() < 1.0)
    }

    #[inline]
    fn dual_range(&self, _y: f64) -> (f64, f64) {
        (-1.0, 1.0)
    }

    fn lipschitz(&self) -> f64 {
        1.0
    }

    fn smoothness(&self) -> f64 {
        0.0
    }
}
