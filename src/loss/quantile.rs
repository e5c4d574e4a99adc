use super::{Loss, Param, Target, clipped_ratio, kink_if};

/// The pinball loss, which predicts the chosen `quantile` of the target.
///
/// With `r = y - p` and `tau = quantile`: `phi = max(tau r, (tau - 1) r)`, `phi*(-a) = -a y` for `a`
/// in `[tau - 1, tau]`.
#[derive(Debug, Clone, Copy)]
pub struct Quantile {
    tau: f64,
}

impl Loss for Quantile {
    const NAME: &'static str = "quantile";
    const FORMULA: &'static str = "max(quantile (y - p), (quantile - 1) (y - p))";
    const TARGET: Target = Target::Real;
    const PARAM: Option<Param> = Some(Param::fraction("quantile", 0.5));

    fn with_param(tau: f64) -> Self {
        Self { tau }
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        let r = y - p;
        (self.tau * r).max((self.tau - 1.0) * r)
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        if p < y {
            -self.tau
        } else if p > y {
            1.0 - self.tau
        } else {
            0.0
        }
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        if (self.tau - 1.0..=self.tau).contains(&a) {
            -a * y
        } else {
            f64::INFINITY
        }
    }

    /// `a = clip((y - z) / q; tau - 1, tau)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        clipped_ratio(y - z, q, self.tau - 1.0, self.tau)
    }

    #[inline]
    fn curvature(&self, a: f64, _y: f64) -> f64 {
        kink_if(self.tau - 1.0 < a && a < self.tau)
    }

    #[inline]
    fn dual_range(&self, _y: f64) -> (f64, f64) {
        (self.tau - 1.0, self.tau)
    }

    fn lipschitz(&self) -> f64 {
        self.tau.max(1.0 - self.tau)
    }

    fn smoothness(&self) -> f64 {
        0.0
    }
}
