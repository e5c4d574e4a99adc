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
//! each pass `y` moves to `u`, whether the problem is solved or not. In the limit `y = u = w(a)`
//! solves the problem without the new term. On the way the pair of `u` and `a` has the smaller gap,
//! whose part from the regulariser is `(lambda/2) |u - w(a)|^2 = (kappa^2 / (2 lambda)) |u - y|^2`.
//!
//! (This is Catalyst without the extrapolation of `y`, which is only safe if each problem is solved
//! well: after so few passes it made the runs diverge.)

use crate::memory::IntoVec as _;
use crate::solver::chooser::TUNING;
use crate::solver::frame::{Frame, Sum};

/// `kappa / lambda` as a multiple of the root of the mean `q`, in [units](super::chooser::Tuning::unit_of_q) of the smoothness. (0.3, and `y` at rest
/// for two passes, took 1.2 to 1.7 times as long on `debian_long`, `debian_paths`, bloodcells, ijcnn1 and a9a. On these, 1
/// is even better; but on news20 from C = 100 on it is slower.)
const STRENGTH: f64 = 0.6;

/// The outer loop, somewhere on its way.
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

    /// Turns `w(a)` into `u`. The intercept is not drawn to anything: it has a method of its own.
    pub(crate) fn apply(&self, sum: &mut Sum, frame: &Frame) {
        sum.scale(self.scale);
        for (v, y) in sum.v.iter_mut().zip(&self.y) {
            *v += (1.0 - self.scale) * y;
        }
        sum.update_t(frame);
    }

    /// What is due after each pass, full or short: moves `y` to `sum = u`, and `u` with it.
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
mod tests {
    use super::*;
    use crate::rows::{Dense, Rows};
    use ndarray::ArrayView2;
    use proptest::prelude::*;

    type Vector = Vec<f64>;

    fn numbers(n: usize) -> impl Strategy<Value = Vector> {
        prop::collection::vec(-1.0..1.0, n)
    }

    /// The shares of the rows in `w(a)`, and how a run changes them pass by pass.
    #[derive(Debug, Clone)]
    struct Case {
        n: usize,
        x: Vector,
        mu: Vector,
        s: f64,
        mean_q: f64,
        shares: Vector,
        passes: Vec<Vec<(usize, f64)>>,
    }

    fn cases() -> impl Strategy<Value = Case> {
        (1usize..8, 1usize..8, any::<bool>()).prop_flat_map(|(n, d, intercept)| {
            let pass = prop::collection::vec((0..n, -1.0..1.0), 0..6);
            (
                numbers(n * d),
                numbers(d),
                0.1..2.0,
                4.0..1e6,
                numbers(n),
                prop::collection::vec(pass, 9),
            )
                .prop_map(move |(x, mu, s, mean_q, shares, passes)| Case {
                    n,
                    x,
                    mu: if intercept { mu } else { vec![0.0; d] },
                    s: if intercept { s } else { 0.0 },
                    mean_q,
                    shares,
                    passes,
                })
        })
    }

    impl Case {
        fn frame(&self) -> Frame {
            let mut frame = Frame::at(self.mu.clone());
            frame.s = self.s;
            frame
        }

        fn row(&self, i: usize) -> &[f64] {
            &self.x[i * self.mu.len()..][..self.mu.len()]
        }

        fn m(&self, i: usize) -> f64 {
            self.row(i).iter().zip(&self.mu).map(|(x, m)| x * m).sum()
        }

        /// `w(a)` by its definition, for the shares of the rows.
        fn coef(&self, shares: &[f64]) -> Vector {
            let of_column = |(j, m): (usize, &f64)| -> f64 {
                (0..self.n).map(|i| shares[i] * (self.row(i)[j] - m)).sum()
            };
            self.mu.iter().enumerate().map(of_column).collect()
        }

        /// `w(a)` as a run has it.
        fn sum<R: Rows>(&self, rows: &R, shares: &[f64]) -> Sum {
            let (mut sum, frame) = (Sum::new(self.mu.len()), self.frame());
            for (i, &share) in shares.iter().enumerate() {
                sum.axpy(&frame, rows, i, self.m(i), share);
            }
            sum
        }

        /// That `sum` stands for `u`, in which the intercept pulls with `pull`.
        fn check(&self, sum: &Sum, rows: &impl Rows, u: &[f64], pull: f64) {
            let size = 1.0 + u.iter().chain([&pull]).map(|u| u.abs()).sum::<f64>();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * size;
            for (found, u) in sum.coef(&self.frame(), 1.0).zip(u) {
                assert!(close(found, *u), "{found} instead of {u}");
            }
            assert!(close(sum.pull, pull), "{} instead of {pull}", sum.pull);
            for i in 0..self.n {
                let centred = self.row(i).iter().zip(&self.mu).map(|(x, m)| x - m);
                let product: f64 = centred.zip(u).map(|(x, u)| x * u).sum();
                let found = sum.dot(rows, i, self.m(i));
                assert!(close(found, product + self.s * pull));
            }
        }
    }

    proptest! {
        #[test]
        fn u_is_between_the_model_of_the_dual_values_and_y(case in cases()) {
            let view = ArrayView2::from_shape((case.n, case.mu.len()), &case.x).expect("n rows");
            let rows = Dense::new(view).expect("C order");
            let frame = case.frame();
            let mut shares = case.shares.clone();
            let mut sum = case.sum(&rows, &shares);
            let before: Vector = sum.coef(&frame, 1.0).collect();
            let mut outer = Outer::new(&mut sum, &frame, case.mean_q, 0.0);
            let s = outer.scale();
            prop_assert!(0.0 < s && s < 1.0);
            // y = w(a), so that u is both.
            let total = |shares: &[f64]| s * shares.iter().sum::<f64>();
            case.check(&sum, &rows, &before, total(&shares));
            let mut y = before;
            for pass in &case.passes {
                for &(i, change) in pass {
                    shares[i] += change;
                    sum.axpy(&frame, &rows, i, case.m(i), s * change);
                }
                let u = |y: &[f64]| -> Vector {
                    let of_column = |(w, y): (&f64, &f64)| s * w + (1.0 - s) * y;
                    case.coef(&shares).iter().zip(y).map(of_column).collect()
                };
                case.check(&sum, &rows, &u(&y), total(&shares));
                let mut again = case.sum(&rows, &shares);
                outer.apply(&mut again, &frame);
                case.check(&again, &rows, &u(&y), total(&shares));
                outer.end_pass(&mut sum, &frame);
                y = u(&y);
                case.check(&sum, &rows, &u(&y), total(&shares));
            }
        }

        #[test]
        fn nothing_moves_at_the_solution(case in cases()) {
            let view = ArrayView2::from_shape((case.n, case.mu.len()), &case.x).expect("n rows");
            let rows = Dense::new(view).expect("C order");
            let frame = case.frame();
            let mut sum = case.sum(&rows, &case.shares);
            let before: Vector = sum.coef(&frame, 1.0).collect();
            let mut outer = Outer::new(&mut sum, &frame, case.mean_q, 0.0);
            let pull = outer.scale() * case.shares.iter().sum::<f64>();
            for _ in 0..20 {
                outer.end_pass(&mut sum, &frame);
                case.check(&sum, &rows, &before, pull);
            }
        }
    }

    #[test]
    fn the_larger_the_rows_the_stronger_the_pull() {
        let scale = |mean_q: f64, smoothness: f64| {
            let frame = Frame::at(vec![0.0]);
            Outer::new(&mut Sum::new(1), &frame, mean_q, smoothness).scale()
        };
        assert!(scale(100.0, 0.0) < scale(10.0, 0.0));
        // In units of the smoothness, unless that is all but none.
        assert_eq!(scale(100.0, 0.0), scale(100.0, 1.0));
        assert_eq!(scale(100.0, 4.0), scale(25.0, 1.0));
        assert_eq!(scale(100.0, 0.5), scale(200.0, 1.0));
        assert_eq!(scale(100.0, 0.5), scale(100.0, 1e-3));
    }
}
