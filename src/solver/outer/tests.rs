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

    /// `w(a)` as a run computes it.
    fn sum<R: Rows>(&self, rows: &R, shares: &[f64]) -> Sum {
        let (mut sum, frame) = (Sum::new(self.mu.len()), self.frame());
        for (i, &share) in shares.iter().enumerate() {
            sum.axpy(&frame, rows, i, self.m(i), share);
        }
        sum
    }

    /// Checks that `sum` represents `u`, with `pull` for the intercept.
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
        // y = w(a), and so u = w(a).
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
    // In units of the smoothness, unless that is close to 0.
    assert_eq!(scale(100.0, 0.0), scale(100.0, 1.0));
    assert_eq!(scale(100.0, 4.0), scale(25.0, 1.0));
    assert_eq!(scale(100.0, 0.5), scale(200.0, 1.0));
    assert_eq!(scale(100.0, 0.5), scale(100.0, 1e-3));
}
