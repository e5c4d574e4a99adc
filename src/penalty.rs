//! The penalty: what keeps coefficients small, and how a model follows from a dual point.
//!
//! With a strongly convex `h`, its conjugate `h*(v) = max_w v.w - h(w)`, and `v` the *sum of the rows*,
//!
//! ```text
//! P(w, b) = (1/W) sum_i c_i phi(x_i.w + b)  + lambda h(w)
//! D(a)    = (1/W) sum_i -c_i phi*(-a_i)     - lambda h*(v),       v = (1/(lambda W)) sum_i c_i a_i x_i
//! w(a)    = grad h*(v)
//! ```
//!
//! This is the only file that knows what `h` is. A new penalty is a new implementation of [`Penalty`]. Evaluations,
//! certificates, Newton's method and gradient steps need nothing else. What moves `w` along with `v` asks for
//! [`Penalty::dual_curvature`] first: see there.

/// What the problem and its solvers need to know of `lambda h`.
pub(crate) trait Penalty: std::fmt::Debug + Send + Sync {
    /// `lambda`.
    fn lambda(&self) -> f64;

    /// `lambda h(w)`.
    fn value(&self, w: &[f64]) -> f64;

    /// Turns `v` into `w = grad h*(v)`. Returns `lambda h*(v)`.
    fn to_model(&self, v: &mut [f64]) -> f64;

    /// The largest curvature of `h*`. With it, `q_i = (c_i / (lambda W)) smoothness |x_i|^2` bounds the curvature of `D`
    /// along `a_i` from above: the coordinate step of every loss is safe for this `q_i`.
    fn conjugate_smoothness(&self) -> f64;

    /// Adds `lambda grad h(w)` to the gradient of the losses.
    fn add_gradient(&self, w: &[f64], gradient: &mut [f64]);

    /// The derivative of `lambda h(w + t d)` along `t`.
    fn derivative(&self, w: &[f64], d: &[f64], t: f64) -> f64;

    /// `lambda h(w + t d) - lambda h(w)`.
    fn change(&self, w: &[f64], d: &[f64], t: f64) -> f64;

    /// What each diagonal entry of the Hessian of `lambda h` is.
    fn curvature(&self) -> f64;

    /// An error `e` of `v` adds at most `(error_scale |e|)^2 / 2` to `lambda h*(v)`, beyond first order.
    fn error_scale(&self) -> f64;

    /// A bound on the part of a gap that comes from the penalty, `lambda (h(w) + h*(v) - v.w)`, for a pair whose losses
    /// fit together: then `grad P = lambda (grad h(w) - v)`.
    fn excess(&self, gradient: &[f64]) -> f64;

    /// The length that the best `w` does not exceed, where `primal` is the objective without coefficients and losses are
    /// not negative.
    fn radius(&self, primal: f64) -> f64;

    /// Whether a model with this gap is surely better than that without coefficients.
    ///
    /// Without its last term, `D(a)` bounds `P(0)` from below: `P(0) >= P(w) - gap + lambda h*(v)`.
    fn proves_better_than_zero(&self, w: &[f64], gap: f64) -> bool;

    /// The curvature of `-D` along a change of `v`, if it is the same everywhere: then `w` is a multiple of `v`, and
    /// whoever changes `v` along a direction changes `w` along it, too.
    ///
    /// Coordinate steps that read `w` from `v` ([`crate::solver`]'s `frame.rs`), the proximal outer loop, momentum, and
    /// Newton's method by a system of the rows need that. A penalty that answers `None` goes without them until they
    /// have learned to map `v`.
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
        // w(a) is not farther than sqrt(2 gap / lambda) from w.
        let penalty = self.value(w);
        4.0 * gap <= penalty && penalty.is_finite()
    }

    fn dual_curvature(&self) -> Option<f64> {
        Some(self.lambda)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every implementation, to be held to the same laws.
    fn all(lambda: f64) -> Vec<Box<dyn Penalty>> {
        vec![Box::new(L2 { lambda })]
    }

    fn vectors(count: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
        (1usize..6).prop_flat_map(move |n| {
            let one = prop::collection::vec(-3.0..3.0, n);
            prop::collection::vec(one, count)
        })
    }

    proptest! {
        #[test]
        fn the_model_of_a_sum_attains_the_conjugate(
            v in vectors(2), lambda in 1e-3..1e3
        ) {
            for penalty in all(lambda) {
                let mut w = v[0].clone();
                let conjugate = penalty.to_model(&mut w);
                let at = |w: &[f64]| lambda * dot(&v[0], w) - penalty.value(w);
                let size = 1.0 + conjugate.abs();
                prop_assert!((at(&w) - conjugate).abs() <= 1e-12 * size);
                // And no other does better: Fenchel and Young.
                prop_assert!(at(&v[1]) <= conjugate + 1e-12 * size);
                // grad h(w) = v.
                let mut gradient = v[0].iter().map(|v| -lambda * v).collect::<Vec<_>>();
                penalty.add_gradient(&w, &mut gradient);
                prop_assert!(gradient.iter().all(|g| g.abs() <= 1e-12 * lambda * 10.0));
            }
        }

        #[test]
        fn changes_and_slopes_are_those_of_the_value(
            v in vectors(2), lambda in 1e-3..1e3, t in -2.0..2.0
        ) {
            let (w, d) = (&v[0], &v[1]);
            for penalty in all(lambda) {
                let at = |t: f64| {
                    let moved: Vec<f64> = w.iter().zip(d).map(|(w, d)| w + t * d).collect();
                    penalty.value(&moved)
                };
                let size = lambda * (1.0 + dot(w, w) + dot(d, d));
                prop_assert!((penalty.change(w, d, t) - (at(t) - at(0.0))).abs() <= 1e-11 * size);
                let h = 1e-4;
                let slope = (at(t + h) - at(t - h)) / (2.0 * h);
                prop_assert!((penalty.derivative(w, d, t) - slope).abs() <= 1e-6 * size);
                // The curvature is the same along all columns.
                let bend = penalty.derivative(w, d, t + 1.0) - penalty.derivative(w, d, t);
                prop_assert!((bend - penalty.curvature() * dot(d, d)).abs() <= 1e-11 * size);
            }
        }

        #[test]
        fn the_part_of_the_gap_and_errors_are_bounded(v in vectors(2), lambda in 1e-3..1e3) {
            let (w, sum) = (&v[0], &v[1]);
            for penalty in all(lambda) {
                let (mut of_sum, mut gradient) = (sum.clone(), vec![0.0; w.len()]);
                let conjugate = penalty.to_model(&mut of_sum);
                let gap = penalty.value(w) + conjugate - lambda * dot(sum, w);
                penalty.add_gradient(w, &mut gradient);
                for (g, v) in gradient.iter_mut().zip(sum) {
                    *g -= lambda * v;
                }
                let size = lambda * (1.0 + dot(w, w) + dot(sum, sum));
                prop_assert!(gap <= penalty.excess(&gradient) + 1e-12 * size);
                // h* at sum + e, beyond the tangent at the sum.
                let mut moved: Vec<f64> = sum.iter().zip(w).map(|(v, e)| v + e).collect();
                let bend = penalty.to_model(&mut moved) - conjugate - lambda * dot(&of_sum, w);
                let bound = 0.5 * penalty.error_scale().powi(2) * dot(w, w);
                prop_assert!(bend <= bound + 1e-12 * size);
                let smooth = 0.5 * lambda * penalty.conjugate_smoothness() * dot(w, w);
                prop_assert!(bend <= smooth + 1e-12 * size);
                if let Some(curvature) = penalty.dual_curvature() {
                    prop_assert!((bend - 0.5 * curvature * dot(w, w)).abs() <= 1e-12 * size);
                }
            }
        }
    }

    #[test]
    fn squares_that_overflow_are_weighted_first() {
        let penalty = L2 { lambda: 1e-300 };
        let value = penalty.value(&[1e200, -1e200]);
        assert!((value / 1e100 - 1.0).abs() < 1e-12, "{value}");
    }
}
