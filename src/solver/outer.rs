//! The outer loop around SDCA's passes: proximal point steps on the primal.
//!
//! Where rows are large beside the regularisation (the mean of `q` is far above 1), steps are short and
//! the gap falls slowly. The problem with
//!
//! ```text
//! P(w, b) + (kappa/2) |w - y|^2
//! ```
//!
//! is easier by the factor `s = lambda / (lambda + kappa)`: its dual has the same values `a`, the model
//! of `a` is `u = s w(a) + (1 - s) y`, and SDCA's step takes `s q_i` for `q_i` and `u` for `w`. After
//! every few passes `y` moves to `u`, whether the problem is solved or not. In the limit `y = u = w(a)`
//! solves the problem without the new term. On the way the pair of `u` and `a` has the smaller gap,
//! whose part from the regulariser is `(lambda/2) |u - w(a)|^2 = (kappa^2 / (2 lambda)) |u - y|^2`.
//!
//! (This is Catalyst without the extrapolation of `y`, which is only safe if each problem is solved
//! well: after so few passes it made the runs diverge.)

use crate::solver::frame::{Frame, Sum};

/// `kappa / lambda` as a multiple of the root of the mean `q`. On a9a, ijcnn1, covtype, `debian_long`,
/// `debian_paths` and news20 with C = 1, 100 and 10000, 0.1 to 1 are good for the hinge losses.
const STRENGTH: f64 = 0.3;

/// Below this mean `q`, in units of the smoothness of the loss if that is larger than 1, the loop does
/// not pay.
const LEAST_MEAN_Q: f64 = 4.0;

/// Passes, full or short, for each place of `y`.
const PASSES: u32 = 2;

/// The outer loop, somewhere on its way.
pub(crate) struct Outer {
    /// `s`.
    scale: f64,
    /// `y`.
    y: Vec<f64>,
    /// Passes since `y` has moved.
    passes: u32,
}

impl Outer {
    /// Whether the loop pays for a loss of this smoothness.
    pub(crate) fn pays(mean_q: f64, smoothness: f64) -> bool {
        mean_q > LEAST_MEAN_Q * smoothness.max(1.0)
    }

    /// Begins at the model `sum = w(a)`, which becomes `u`.
    pub(crate) fn new(sum: &mut Sum, frame: &Frame, mean_q: f64, smoothness: f64) -> Self {
        let kappa = STRENGTH * (mean_q / smoothness.max(1.0)).sqrt();
        let outer = Self {
            scale: 1.0 / (1.0 + kappa),
            y: sum.coef(frame, 1.0).collect(),
            passes: 0,
        };
        outer.apply(sum, frame);
        outer
    }

    /// `s`.
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    /// Turns `w(a)` into `u`. The intercept is not drawn to anything: it has a method of its own.
    pub(crate) fn apply(&self, sum: &mut Sum, frame: &Frame) {
        sum.scale(self.scale);
        for (v, y) in sum.v.iter_mut().zip(&self.y) {
            *v += (1.0 - self.scale) * y;
        }
        sum.settle(frame);
    }

    /// What is due after each pass: moves `y` to `sum = u` from time to time, and `u` with it.
    pub(crate) fn end_pass(&mut self, sum: &mut Sum, frame: &Frame) {
        self.passes += 1;
        if self.passes < PASSES {
            return;
        }
        self.passes = 0;
        let Sum { v, pull, .. } = sum;
        for ((v, y), m) in v.iter_mut().zip(&mut self.y).zip(&frame.mu) {
            let u = *v - *pull * m;
            *v += (1.0 - self.scale) * (u - *y);
            *y = u;
        }
        sum.settle(frame);
    }
}
