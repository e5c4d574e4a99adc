use super::{Loss, Target};

/// Half the squared error, which gives ridge regression.
///
/// `phi = (p - y)^2 / 2`, `phi*(-a) = -a y + a^2 / 2`.
#[derive(Debug, Clone, Copy)]
pub struct Squared;

impl Loss for Squared {
    const NAME: &'static str = "squared";
    const FORMULA: &'static str = "(y - p)^2 / 2";
    const TARGET: Target = Target::Real;
    const IS_QUADRATIC: bool = true;

    fn with_param(_: f64) -> Self {
        Self
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        0.5 * (p - y) * (p - y)
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        p - y
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        a * (0.5 * a - y)
    }

    /// `a = (y - z) / (q + 1)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        (y - z) / (q + 1.0)
    }

    #[inline]
    fn curvature(&self, _a: f64, _y: f64) -> f64 {
        1.0
    }

    #[inline]
    fn dual_range(&self, _y: f64) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn lipschitz(&self) -> f64 {
        f64::INFINITY
    }

    fn smoothness(&self) -> f64 {
        1.0
    }
}
