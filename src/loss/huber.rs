use super::{Loss, Param, Target};

/// Squared for small residuals, linear beyond `delta`.
///
/// With `r = y - p`: `phi = r^2 / 2` for `|r| <= delta`, else `delta |r| - delta^2 / 2`;
/// `phi*(-a) = -a y + a^2 / 2` for `|a| <= delta`.
#[derive(Debug, Clone, Copy)]
pub struct Huber {
    delta: f64,
}

impl Loss for Huber {
    const NAME: &'static str = "huber";
    const FORMULA: &'static str =
        "(y - p)^2 / 2 if |y - p| <= delta else delta |y - p| - delta^2 / 2";
    const TARGET: Target = Target::Real;
    const NEWTON_STEPS: f64 = 12.0;
    const PARAM: Option<Param> = Some(Param::positive("delta", 1.35));

    fn with_param(delta: f64) -> Self {
        Self { delta }
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        let size = (p - y).abs();
        if size <= self.delta {
            0.5 * size * size
        } else {
            self.delta * (size - 0.5 * self.delta)
        }
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        (p - y).clamp(-self.delta, self.delta)
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        if a.abs() <= self.delta {
            a * (0.5 * a - y)
        } else {
            f64::INFINITY
        }
    }

    /// `a = clip((y - z) / (q + 1); -delta, delta)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        ((y - z) / (q + 1.0)).clamp(-self.delta, self.delta)
    }

    #[inline]
    fn curvature(&self, a: f64, _y: f64) -> f64 {
        if a.abs() < self.delta { 1.0 } else { 0.0 }
    }

    #[inline]
    fn dual_range(&self, _y: f64) -> (f64, f64) {
        (-self.delta, self.delta)
    }

    fn lipschitz(&self) -> f64 {
        self.delta
    }

    fn smoothness(&self) -> f64 {
        1.0
    }
}
