use super::{Loss, Param, Target, soft_threshold};

/// The square of the epsilon-insensitive loss, as LIBLINEAR defines it (no factor 1/2).
///
/// `phi = max(0, |p - y| - epsilon)^2`, `phi*(-a) = -a y + epsilon |a| + a^2 / 4`.
#[derive(Debug, Clone, Copy)]
pub struct SquaredEpsilonInsensitive {
    epsilon: f64,
}

impl Loss for SquaredEpsilonInsensitive {
    const NAME: &'static str = "squared_epsilon_insensitive";
    const FORMULA: &'static str = "max(0, |y - p| - epsilon)^2";
    const TARGET: Target = Target::Real;
    const PARAM: Option<Param> = Some(Param::non_negative("epsilon", 0.1));

    fn with_param(epsilon: f64) -> Self {
        Self { epsilon }
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        let excess = ((p - y).abs() - self.epsilon).max(0.0);
        excess * excess
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        2.0 * soft_threshold(p - y, self.epsilon)
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        // A single product: in a sum, two terms might overflow to NaN.
        let along = if a < 0.0 { -y } else { y };
        let product = a.abs() * (0.25 * a.abs() - along + self.epsilon);
        if a == 0.0 { 0.0 } else { product }
    }

    /// `a = soft(y - z; epsilon) / (q + 1/2)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        soft_threshold(y - z, self.epsilon) / (q + 0.5)
    }

    #[inline]
    fn curvature(&self, a: f64, _y: f64) -> f64 {
        if a == 0.0 { 0.0 } else { 2.0 }
    }

    #[inline]
    fn dual_range(&self, _y: f64) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn lipschitz(&self) -> f64 {
        f64::INFINITY
    }

    fn smoothness(&self) -> f64 {
        0.5
    }
}
