//! The penalty: what regularises the coefficients, and how a model follows from a dual point.
//!
//! With a strongly convex `h`, its conjugate `h*(v) = max_w v.w - h(w)`, and `v` the *sum of the rows*,
//!
//! ```text
//! P(w, b) = (1/W) sum_i c_i phi(x_i.w + b)  + lambda h(w)
//! D(a)    = (1/W) sum_i -c_i phi*(-a_i)     - lambda h*(v),       v = (1/(lambda W)) sum_i c_i a_i x_i
//! w(a)    = grad h*(v)
//! ```
//!
//! Only this file knows what `h` is. A new penalty is a new implementation of [`Penalty`], and
//! evaluations, certificates, Newton's method and gradient steps need nothing else. Code that moves
//! `w` along with `v` must check [`Penalty::dual_curvature`] first.

/// What the problem and its solvers need to know about `lambda h`.
pub(crate) trait Penalty: std::fmt::Debug + Send + Sync {
    /// `lambda`.
    fn lambda(&self) -> f64;

    /// `lambda h(w)`.
    fn value(&self, w: &[f64]) -> f64;

    /// Replaces `v` by `w = grad h*(v)`. Returns `lambda h*(v)`.
    fn to_model(&self, v: &mut [f64]) -> f64;

    /// The largest curvature of `h*`. With it, `q_i = (c_i / (lambda W)) smoothness |x_i|^2` is an
    /// upper bound on the curvature of `D` along `a_i`, so the coordinate step of every loss is
    /// safe with this `q_i`.
    fn conjugate_smoothness(&self) -> f64;

    /// Adds `lambda grad h(w)` to the gradient of the losses.
    fn add_gradient(&self, w: &[f64], gradient: &mut [f64]);

    /// The derivative of `lambda h(w + t d)` with respect to `t`.
    fn derivative(&self, w: &[f64], d: &[f64], t: f64) -> f64;

    /// `lambda h(w + t d) - lambda h(w)`.
    fn change(&self, w: &[f64], d: &[f64], t: f64) -> f64;

    /// The value of each diagonal entry of the Hessian of `lambda h`.
    fn curvature(&self) -> f64;

    /// An error `e` in `v` adds at most `(error_scale |e|)^2 / 2` to `lambda h*(v)`, beyond first
    /// order.
    fn error_scale(&self) -> f64;

    /// An upper bound on the penalty's part of a gap, `lambda (h(w) + h*(v) - v.w)`, for a pair in
    /// which each dual value is minus the slope of the loss: then
    /// `grad P = lambda (grad h(w) - v)`.
    fn excess(&self, gradient: &[f64]) -> f64;

    /// An upper bound on the norm of the best `w`, where `primal` is the objective without
    /// coefficients and losses are non-negative.
    fn radius(&self, primal: f64) -> f64;

    /// Whether a model with this gap is certainly better than zero coefficients.
    ///
    /// Without its last term, `D(a)` is a lower bound on `P(0)`:
    /// `P(0) >= P(w) - gap + lambda h*(v)`.
    fn proves_better_than_zero(&self, w: &[f64], gap: f64) -> bool;

    /// The curvature of `-D` along a change of `v`, if it is the same everywhere. Then `w` is a
    /// multiple of `v`, and a change of `v` along a direction changes `w` along the same direction.
    ///
    /// Coordinate steps that read `w` from `v` ([`crate::solver`]'s `frame.rs`), the proximal outer
    /// loop, momentum, and Newton's method by a system of the rows all rely on that. A penalty that
    /// returns `None` cannot use them until they map `v` to `w`.
    fn dual_curvature(&self) -> Option<f64>;
}

/// `h(w) = |w|^2 / 2`. Then `h* = h`, and `w(a) = v`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct L2 {
    pub(crate) lambda: f64,
}

/// `a.b`.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Penalty for L2 {
    fn lambda(&self) -> f64 {
        self.lambda
    }

    fn value(&self, w: &[f64]) -> f64 {
        let sq_norm = w.iter().map(|w| w * w).sum::<f64>();
        if sq_norm.is_finite() {
            return 0.5 * self.lambda * sq_norm;
        }
        // Squares may overflow where lambda is tiny.
        let root = self.lambda.sqrt();
        0.5 * w.iter().map(|w| (root * w).powi(2)).sum::<f64>()
    }

    fn to_model(&self, v: &mut [f64]) -> f64 {
        self.value(v)
    }

    fn conjugate_smoothness(&self) -> f64 {
        1.0
    }

    fn add_gradient(&self, w: &[f64], gradient: &mut [f64]) {
        for (g, w) in gradient.iter_mut().zip(w) {
            *g += self.lambda * w;
        }
    }

    fn derivative(&self, w: &[f64], d: &[f64], t: f64) -> f64 {
        self.lambda * (dot(w, d) + t * dot(d, d))
    }

    fn change(&self, w: &[f64], d: &[f64], t: f64) -> f64 {
        self.lambda * (t * (dot(w, d) + 0.5 * t * dot(d, d)))
    }

    fn curvature(&self) -> f64 {
        self.lambda
    }

    fn error_scale(&self) -> f64 {
        self.lambda.sqrt()
    }

    fn excess(&self, gradient: &[f64]) -> f64 {
        dot(gradient, gradient) / (2.0 * self.lambda)
    }

    fn radius(&self, primal: f64) -> f64 {
        (primal / self.lambda).sqrt()
    }

    fn proves_better_than_zero(&self, w: &[f64], gap: f64) -> bool {
        // The distance from w to w(a) is at most sqrt(2 gap / lambda).
        let penalty = self.value(w);
        4.0 * gap <= penalty && penalty.is_finite()
    }

    fn dual_curvature(&self) -> Option<f64> {
        Some(self.lambda)
    }
}

#[cfg(test)]
mod tests;
