use ndarray::ArrayView2;
use proptest::prelude::*;

use super::*;
use crate::data::Data;
use crate::loss::Loss;
use crate::loss::{Absolute, EpsilonInsensitive, Hinge, Log, Squared, SquaredHinge};
use crate::order::Generator;
use crate::problem::Regularisation;
use crate::rows::Dense;
use crate::run::NoMonitor;

#[derive(Debug, Clone)]
struct Case {
    n: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    weights: Vec<f64>,
    c: f64,
    with_intercept: bool,
    /// The centre of the proximal term on the intercept.
    centre: f64,
    /// The rows that the passes visit.
    passes: Vec<Vec<usize>>,
}

fn cases() -> impl Strategy<Value = Case> {
    (2usize..12, 1usize..12, any::<bool>()).prop_flat_map(|(n, d, with_intercept)| {
        let numbers = |n, range: std::ops::Range<f64>| prop::collection::vec(range, n);
        let signs = prop::collection::vec(prop::sample::select(vec![-1.0, 1.0]), n);
        let pass = prop::collection::vec(0..n, 1..2 * n);
        (
            numbers(n * d, -1.0..2.0),
            signs,
            numbers(n, 0.0..3.0),
            0.01..10.0,
            -1.0..1.0,
            prop::collection::vec(pass, 8),
        )
            .prop_map(move |(x, mut y, mut weights, c, centre, passes)| {
                // Both classes have a row of positive weight.
                (y[0], y[1]) = (-1.0, 1.0);
                (weights[0], weights[1]) = (1.0, 1.0);
                let centre = if with_intercept { centre } else { 0.0 };
                Case {
                    n,
                    x,
                    y,
                    weights,
                    c,
                    with_intercept,
                    centre,
                    passes,
                }
            })
    })
}

/// The part of a run's state that momentum uses.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    rows: Vec<Row>,
    sum: Sum,
    frame: Frame,
    centre: f64,
}

impl<'p, 'a> Run<'p, 'a> {
    fn new(problem: &'p Problem<'a>, centre: f64) -> Self {
        let mut no_monitor = NoMonitor;
        let mut context = RunContext::new(None, &mut no_monitor);
        let (frame, geometry) = Frame::new(problem, &mut context).expect("finite");
        let row = |i: usize| Row {
            a: 0.0,
            q: problem.q(i, geometry.spreads[i] + frame.s),
            y: problem.target(i),
            m: geometry.m(i),
        };
        let rows = (0..problem.n_rows()).map(row).collect();
        let sum = Sum::new(problem.rows().n_cols());
        Self {
            problem,
            rows,
            sum,
            frame,
            centre,
        }
    }

    /// Momentum that begins here.
    fn momentum(&mut self) -> Momentum {
        let curvature = self.problem.lambda();
        Momentum::new(&self.iterate(), curvature)
    }

    fn iterate(&mut self) -> Iterate<'_> {
        Iterate {
            rows: &mut self.rows,
            sum: &mut self.sum,
            frame: &self.frame,
            centre: self.centre,
        }
    }

    fn pass(&mut self, visits: impl IntoIterator<Item = usize>) {
        for i in visits {
            let Row { a, q, y, m } = self.rows[i];
            if q > 0.0 {
                let z = self.centre + self.dot(&self.sum, i) - q * a;
                let next = self.problem.loss().step(z, q, a, y);
                let share = self.problem.rate(i) * (next - a);
                self.rows[i].a = next;
                self.problem.rows().axpy(i, share, &mut self.sum.v);
                self.sum.axpy_offsets(&self.frame, m, share);
            }
        }
    }

    /// The product of the sum with row `i`.
    fn dot(&self, sum: &Sum, i: usize) -> f64 {
        let mut product = [0.0];
        self.problem.rows().products(i, &sum.v, &mut product);
        sum.centred(product[0], self.rows[i].m)
    }

    fn dual(&self) -> Vec<f64> {
        self.rows.iter().map(|row| row.a).collect()
    }

    /// The sum of the rows by its definition: its columns, and that of the intercept.
    fn sum_of(&self, dual: &[f64]) -> (Vec<f64>, f64) {
        let mut sum = vec![0.0; self.frame.mu.len()];
        let mut pull = 0.0;
        for (i, a) in dual.iter().enumerate() {
            let share = self.problem.rate(i) * a;
            self.problem.rows().axpy(i, share, &mut sum);
            pull += share;
        }
        (sum, pull)
    }

    /// `D` by its definition, with the proximal term on the intercept.
    fn value(&self, dual: &[f64]) -> f64 {
        let problem = self.problem;
        let conjugate = |(i, &a): (usize, &f64)| {
            problem.weight(i) * problem.loss().conjugate(a, problem.target(i))
        };
        let conjugates: f64 = dual.iter().enumerate().map(conjugate).sum();
        let (sum, pull) = self.sum_of(dual);
        let model = sum.iter().zip(&self.frame.mu).map(|(v, m)| v - pull * m);
        let squares = model.map(|w| w * w).sum::<f64>() + self.frame.s * pull * pull;
        let lost = problem.lambda() * (0.5 * squares + self.centre * pull);
        -conjugates / problem.total_weight() - lost
    }

    fn check_sum(&self) {
        let (sum, pull) = self.sum_of(&self.dual());
        let size = 1.0 + sum.iter().map(|v| v.abs()).sum::<f64>() + pull.abs();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * size;
        assert!(self.sum.v.iter().zip(&sum).all(|(&a, &b)| close(a, b)));
        assert!(close(self.sum.pull, pull));
        // The other numbers of the sum, all of which `dot` uses.
        let mut again = self.sum.clone();
        again.update_t(&self.frame);
        let dot = |sum: &Sum| self.dot(sum, 0);
        assert!(close(dot(&self.sum), dot(&again)));
    }
}

/// To be called after a pass.
fn step(momentum: &mut Momentum, run: &mut Run<'_, '_>, work: f64, may_step: bool) {
    let mut no_monitor = NoMonitor;
    let mut context = RunContext::new(None, &mut no_monitor);
    let done = momentum.end_pass(run.problem, work, may_step, run.iterate(), &mut context);
    done.expect("nobody interrupts");
}

impl Case {
    fn with<L: Loss>(&self, loss: L, check: impl Fn(Run<'_, '_>)) {
        let shape = (self.n, self.x.len() / self.n);
        let view = ArrayView2::from_shape(shape, &self.x).expect("n rows");
        let rows = Dense::new(view).expect("C order");
        let c = Regularisation::C(self.c);
        let weights = Some(self.weights.as_slice());
        let data = Data::new(rows, weights).expect("valid");
        let problem = Problem::new(data, &self.y, loss, c, self.with_intercept);
        check(Run::new(&problem.expect("valid"), self.centre));
    }

    /// `D` does not fall, dual values stay in their range, and the sum matches them.
    fn check_steps<L: Loss>(&self, loss: L) {
        self.with(loss, |mut run| {
            let mut momentum = run.momentum();
            for pass in &self.passes {
                run.pass(pass.iter().copied());
                let before = run.value(&run.dual());
                step(&mut momentum, &mut run, f64::INFINITY, true);
                let after = run.value(&run.dual());
                let rounding = 1e-12 * (1.0 + before.abs());
                assert!(after >= before - rounding, "{after} after {before}");
                for row in &run.rows {
                    let (low, high) = loss.dual_range(row.y);
                    assert!((low..=high).contains(&row.a));
                }
                run.check_sum();
            }
        });
    }
}

proptest! {
    #[test]
    fn steps_raise_d_and_keep_the_sum(case in cases()) {
        case.check_steps(Hinge);
        case.check_steps(SquaredHinge);
        case.check_steps(Absolute);
        case.check_steps(EpsilonInsensitive::with_param(0.1));
        case.check_steps(Log);
        case.check_steps(Squared);
    }

    #[test]
    fn the_plane_is_that_of_d(
        case in cases(),
        others in prop::collection::vec((-2.0..3.0, -2.0..3.0), 5),
    ) {
        // Its dual is a parabola without ends of a range.
        case.with(Squared, |mut run| {
            let mut momentum = run.momentum();
            let (mut x, mut p) = (run.dual(), vec![0.0; case.n]);
            for pass in &case.passes {
                run.pass(pass.iter().copied());
                let a = run.dual();
                let here = run.value(&a);
                let plane = momentum.plane(run.problem, &run.iterate());
                let (zz, zp, pp) = plane.curvatures;
                for &(of_z, of_p) in &others {
                    let directions = a.iter().zip(&x).zip(&p);
                    let other: Vec<f64> = directions
                        .map(|((a, x), p)| a + of_z * (a - x) + of_p * p)
                        .collect();
                    let linear = of_z * plane.slopes.0 + of_p * plane.slopes.1;
                    let square = of_z * of_z * zz + 2.0 * of_z * of_p * zp + of_p * of_p * pp;
                    let expected: f64 = (linear - 0.5 * square) / run.problem.total_weight();
                    let found = run.value(&other) - here;
                    let size = 1.0 + here.abs() + found.abs();
                    assert!((found - expected).abs() <= 1e-10 * size, "{found}, not {expected}");
                }
                step(&mut momentum, &mut run, f64::INFINITY, true);
                p = run.dual().iter().zip(&x).map(|(a, x)| a - x).collect();
                x = run.dual();
            }
        });
    }
}

#[test]
fn the_highest_point_is_looked_for_where_there_is_something_to_be_found() {
    let highest = |slopes, curvatures| Plane { slopes, curvatures }.maximum();
    assert_eq!(highest((1.0, 4.0), (1.0, 0.0, 2.0)), Some((1.0, 2.0)));
    // One direction is negligible, or they are parallel.
    assert_eq!(highest((1.0, 0.0), (2.0, 0.0, 0.0)), Some((0.5, 0.0)));
    assert_eq!(highest((0.0, 1.0), (0.0, 0.0, 2.0)), Some((0.0, 0.5)));
    assert_eq!(highest((1.0, 1.0), (2.0, 2.0, 2.0)), Some((0.5, 0.0)));
    // Both are negligible, or the maximum is too far away.
    assert_eq!(highest((0.0, 0.0), (0.0, 0.0, 0.0)), None);
    assert_eq!(highest((1.0, 0.0), (1e-3, 0.0, 1.0)), None);
}

#[test]
fn steps_that_are_due_come_after_enough_work() {
    let case = Case {
        n: 2,
        x: vec![1.0, 2.0],
        y: vec![1.0, -1.0],
        weights: vec![1.0; 2],
        c: 1.0,
        with_intercept: false,
        centre: 0.0,
        passes: Vec::new(),
    };
    case.with(Squared, |mut run| {
        let mut momentum = run.momentum();
        let of_step = COLUMN_WORK + 2.0 * ROW_WORK;
        run.pass(0..2);
        let after_pass = run.dual();
        step(&mut momentum, &mut run, 0.9 * SPACING * of_step, true);
        assert_eq!(run.dual(), after_pass);
        step(&mut momentum, &mut run, 0.1 * SPACING * of_step, false);
        assert_eq!(run.dual(), after_pass);
        step(&mut momentum, &mut run, 0.1 * SPACING * of_step, true);
        assert_ne!(run.dual(), after_pass);
    });
}

/// A system of equations with similar rows: passes alone need several times as many.
#[test]
fn passes_with_momentum_converge_faster() {
    let (n, d) = (60, 80);
    let mut generator = Generator::new(3);
    let mut number = || generator.below(1 << 20) as f64 / f64::from(1 << 19) - 1.0;
    let common: Vec<f64> = (0..d).map(|_| number()).collect();
    let x: Vec<f64> = (0..n * d).map(|k| common[k % d] + 0.2 * number()).collect();
    let y: Vec<f64> = (0..n)
        .map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })
        .collect();
    for with_intercept in [false, true] {
        let case = Case {
            n,
            x: x.clone(),
            y: y.clone(),
            weights: vec![1.0; n],
            c: 100.0,
            with_intercept,
            centre: 0.1 * f64::from(u8::from(with_intercept)),
            passes: Vec::new(),
        };
        let passes = |has_momentum: bool, until: f64| {
            let count = std::cell::Cell::new((0, 0.0));
            case.with(Squared, |mut run| {
                let mut momentum = has_momentum.then(|| run.momentum());
                for pass in 1..=20_000 {
                    run.pass(0..n);
                    if let Some(momentum) = &mut momentum {
                        step(momentum, &mut run, f64::INFINITY, true);
                    }
                    let value = run.value(&run.dual());
                    count.set((pass, value));
                    if value >= until {
                        break;
                    }
                }
            });
            count.get()
        };
        let (_, best) = passes(false, f64::INFINITY);
        let until = best - 1e-9 * best.abs();
        let (with, without) = (passes(true, until).0, passes(false, until).0);
        assert!(2 * with < without, "{with} passes instead of {without}");
    }
}
