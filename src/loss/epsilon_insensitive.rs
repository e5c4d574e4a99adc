use super::{Loss, Param, Target, clipped_ratio, kink_if, soft_threshold};

/// The loss of support vector regression: residuals up to `epsilon` cost nothing.
///
/// `phi = max(0, |p - y| - epsilon)`, `phi*(-a) = -a y + epsilon |a|` for `|a| <= 1`.
#[derive(Debug, Clone, Copy)]
pub struct EpsilonInsensitive {
    epsilon: f64,
}

impl Loss for EpsilonInsensitive {
    const NAME: &'static str = "epsilon_insensitive";
    const FORMULA: &'static str = "max(0, |y - p| - epsilon)";
    const TARGET: Target = Target::Real;
    const PARAM: Option<Param> = Some(Param::non_negative("epsilon", 0.1));
    const SMOOTH_RELATIVE: Option<&'static str> = Some("squared_epsilon_insensitive");

    fn with_param(epsilon: f64) -> Self {
        Self { epsilon }
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        ((p - y).abs() - self.epsilon).max(0.0)
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        if (p - y).abs() > self.epsilon {
            (p - y).signum()
        } else {
            0.0
        }
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        if a.abs() <= 1.0 {
            self.epsilon * a.abs() - a * y
        } else {
            f64::INFINITY
        }
    }

    /// `a = clip(soft(y - z; epsilon) / q; -1, 1)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        clipped_ratio(soft_threshold(y - z, self.epsilon), q, -1.0, 1.0)
    }

    #[inline]
    fn curvature(&self, a: f64, _y: f64) -> f64 {
        kink_if(a != 0.0 && a.abs() < 1.0)
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
