//! Bounds on the rounding errors of losses, in units of [`EPSILON`](f64::EPSILON), to be multiplied
//! by [`K`].
//!
//! Each bound is the sum of the sizes of the terms that a careful formula adds up, plus the effect
//! on the function of rounding a difference. A bound that overflows bounds nothing, and laws are
//! skipped there.

use sdca_rs::loss::{Link, Loss};

/// The number of rounding units that count as one: a formula has some ten operations.
pub const K: f64 = 32.0;

/// The effect of underflow on a sum of a few terms.
pub const TINY: f64 = 64.0 * 5e-324;

/// A loss with its shape parameter, or 0 if it has none.
#[derive(Clone, Copy)]
pub struct Shaped<L> {
    pub loss: L,
    pub param: f64,
}

impl<L: Loss> Shaped<L> {
    /// The target in the units of predictions: the rounding of a difference is relative to it.
    fn target_as_prediction(y: f64) -> f64 {
        match L::LINK {
            Link::Log if y > 0.0 => y.ln(),
            Link::Log => 0.0,
            _ => y,
        }
    }

    /// The size of the numbers that `p` is compared with.
    fn magnitude(self, p: f64, y: f64) -> f64 {
        p.abs() + Self::target_as_prediction(y).abs() + self.param
    }

    /// The largest slope within `distance` of `p`, and within rounding of that.
    pub fn steepest(self, p: f64, y: f64, distance: f64) -> f64 {
        let distance = distance + K * f64::EPSILON * self.magnitude(p, y);
        let at = |p: f64| self.loss.slope(p, y).abs();
        at(p).max(at(p - distance)).max(at(p + distance))
    }

    /// The bound for `phi(p; y)`.
    pub fn of_value(self, p: f64, y: f64) -> f64 {
        let steepest = self.steepest(p, y, 0.0);
        let of_exp = if L::LINK == Link::Log { p.exp() } else { 0.0 };
        self.loss.value(p, y).abs() + steepest * (self.magnitude(p, y) + 1.0) + of_exp.min(steepest)
    }

    /// The bound for `phi*(-a; y)`.
    pub fn of_conjugate(self, a: f64, y: f64) -> f64 {
        let conjugate = self.loss.conjugate(a, y).abs();
        let per_unit = if L::LINK == Link::Log {
            let ln = |v: f64| if v > 0.0 { v.ln().abs() } else { 0.0 };
            1.0 + ln(y) + ln(y - a)
        } else {
            1.0 + a.abs() + y.abs() + self.param
        };
        conjugate + a.abs() * per_unit
    }
}
