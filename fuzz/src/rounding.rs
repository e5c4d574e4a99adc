//! What rounding can do to losses: bounds in units of [`EPSILON`](f64::EPSILON), to be multiplied by [`K`].
//!
//! Each is a sum of the sizes of the terms that a careful formula of the function adds up, and of what
//! rounding of a difference does to the function of it. A bound that overflows bounds nothing: laws are
//! skipped there.

use sdca_rs::loss::{Link, Loss};

/// Units of rounding that count as one: a formula has some ten operations.
pub const K: f64 = 32.0;

/// What underflow does to a sum of a few terms.
pub const TINY: f64 = 64.0 * 5e-324;

/// A loss with its shape parameter, or 0 if it has none.
#[derive(Clone, Copy)]
pub struct Shaped<L> {
    pub loss: L,
    pub param: f64,
}

impl<L: Loss> Shaped<L> {
    /// The target in units of predictions: rounding of a difference is relative to it.
    fn target_as_prediction(y: f64) -> f64 {
        match L::LINK {
            Link::Log if y > 0.0 => y.ln(),
            Link::Log => 0.0,
            _ => y,
        }
    }

    /// The size of what `p` is compared with.
    fn reach(self, p: f64, y: f64) -> f64 {
        p.abs() + Self::target_as_prediction(y).abs() + self.param
    }

    /// The largest slope within `apart` of `p` and within rounding of it.
    pub fn steepest(self, p: f64, y: f64, apart: f64) -> f64 {
        let apart = apart + K * f64::EPSILON * self.reach(p, y);
        let at = |p: f64| self.loss.slope(p, y).abs();
        at(p).max(at(p - apart)).max(at(p + apart))
    }

    /// The bound for `phi(p; y)`.
    pub fn of_value(self, p: f64, y: f64) -> f64 {
        let steepest = self.steepest(p, y, 0.0);
        let of_exp = if L::LINK == Link::Log { p.exp() } else { 0.0 };
        self.loss.value(p, y).abs() + steepest * (self.reach(p, y) + 1.0) + of_exp.min(steepest)
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
