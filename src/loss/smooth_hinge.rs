use super::{Loss, Param, Target, label_range};

/// The hinge with its kink rounded over a width `gamma`.
///
/// With `m = y p` and `b = y a`: `phi` is 0 for `m >= 1`, `1 - m - gamma/2` for `m <= 1 - gamma` and
/// `(1 - m)^2 / (2 gamma)` between; `phi*(-a) = -b + gamma b^2 / 2` for `b` in [0, 1].
#[derive(Debug, Clone, Copy)]
pub struct SmoothHinge {
    gamma: f64,
}

impl Loss for SmoothHinge {
    const NAME: &'static str = "smooth_hinge";
    const FORMULA: &'static str =
        "max over 0 <= b <= 1 of b (1 - y p) - gamma b^2 / 2 (the hinge with a rounded kink)";
    const TARGET: Target = Target::Label;
    const NEWTON_STEPS: f64 = 12.0;
    const PARAM: Option<Param> = Some(Param::positive("gamma", 1.0));

    fn with_param(gamma: f64) -> Self {
        Self { gamma }
    }

    #[inline]
    fn value(&self, p: f64, y: f64) -> f64 {
        let slack = (1.0 - y * p).max(0.0);
        if slack >= self.gamma {
            slack - 0.5 * self.gamma
        } else {
            0.5 * slack * (slack / self.gamma)
        }
    }

    #[inline]
    fn slope(&self, p: f64, y: f64) -> f64 {
        -y * ((1.0 - y * p) / self.gamma).clamp(0.0, 1.0)
    }

    #[inline]
    fn conjugate(&self, a: f64, y: f64) -> f64 {
        let b = y * a;
        if (0.0..=1.0).contains(&b) {
            -b + 0.5 * self.gamma * b * b
        } else {
            f64::INFINITY
        }
    }

    /// `b = clip((1 - y z) / (q + gamma); 0, 1)`.
    #[inline]
    fn step(&self, z: f64, q: f64, _a: f64, y: f64) -> f64 {
        y * ((1.0 - y * z) / (q + self.gamma)).clamp(0.0, 1.0)
    }

    #[inline]
    fn curvature(&self, a: f64, y: f64) -> f64 {
        if 0.0 < y * a && y * a < 1.0 {
            1.0 / self.gamma
        } else {
            0.0
        }
    }

    #[inline]
    fn dual_range(&self, y: f64) -> (f64, f64) {
        label_range(y, 1.0)
    }

    fn lipschitz(&self) -> f64 {
        1.0
    }

    fn smoothness(&self) -> f64 {
        self.gamma
    }
}
