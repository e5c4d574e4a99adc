//! The outer loop around SDCA's passes: proximal point steps on the primal.
//!
//! Where rows are large relative to the regularisation (the mean of `q` is far above 1), steps are
//! short and the gap falls slowly. The problem with
//!
//! ```text
//! P(w, b) + (kappa/2) |w - y|^2
//! ```
//!
//! is easier by the factor `s = lambda / (lambda + kappa)`: its dual has the same values `a`, the
//! model of `a` is `u = s w(a) + (1 - s) y`, and SDCA's step uses `s q_i` instead of `q_i` and `u`
//! instead of `w`. After each pass `y` moves to `u`, whether or not the problem has been solved. In
//! the limit, `y = u = w(a)` solves the problem without the additional term. Before that, the pair
//! of `u` and `a` has the smaller gap; the part of this gap that comes from the regulariser is
//! `(lambda/2) |u - w(a)|^2 = (kappa^2 / (2 lambda)) |u - y|^2`.
//!
//! (This is Catalyst without the extrapolation of `y`. Extrapolation is only safe if each problem
//! is solved well: after so few passes it made the runs diverge.)

use crate::memory::IntoVec as _;
use crate::solver::chooser::TUNING;
use crate::solver::frame::{Frame, Sum};

/// `kappa / lambda` as a multiple of the square root of the mean `q`, in
/// [units](super::chooser::Tuning::unit_of_q) of the smoothness. (A value of 0.3, with `y` kept for
/// two passes, took 1.2 to 1.7 times as long on `debian_long`, `debian_paths`, bloodcells, ijcnn1
/// and a9a. On these, 1 is even better, but on news20 from C = 100 on it is slower.)
const STRENGTH: f64 = 0.6;

/// The state of the outer loop.
pub(crate) struct Outer {
    /// `s`.
    scale: f64,
    /// `y`.
    y: Vec<f64>,
}

impl Outer {
    /// Begins at the model `sum = w(a)`, which becomes `u`.
    pub(crate) fn new(sum: &mut Sum, frame: &Frame, mean_q: f64, smoothness: f64) -> Self {
        let kappa = STRENGTH * (mean_q / TUNING.unit_of_q(smoothness)).sqrt();
        let outer = Self {
            scale: 1.0 / (1.0 + kappa),
            y: sum.coef(frame, 1.0).into_vec(),
        };
        outer.apply(sum, frame);
        outer
    }

    /// `s`.
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    /// Turns `w(a)` into `u`. The intercept gets no new term: it has a method of its own.
    pub(crate) fn apply(&self, sum: &mut Sum, frame: &Frame) {
        sum.scale(self.scale);
        for (v, y) in sum.v.iter_mut().zip(&self.y) {
            *v += (1.0 - self.scale) * y;
        }
        sum.update_t(frame);
    }

    /// To be called after each pass, full or short: moves `y` to `sum = u`, and then updates `u`.
    pub(crate) fn end_pass(&mut self, sum: &mut Sum, frame: &Frame) {
        let Sum { v, pull, .. } = sum;
        for ((v, y), m) in v.iter_mut().zip(&mut self.y).zip(&frame.mu) {
            let u = *v - *pull * m;
            *v += (1.0 - self.scale) * (u - *y);
            *y = u;
        }
        sum.update_t(frame);
    }
}

#[cfg(test)]
mod tests;
