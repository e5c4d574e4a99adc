use super::*;
use crate::data::Data;
use crate::loss::{Hinge, Log, Loss};
use crate::problem::Regularisation;
use crate::rows::Dense;
use crate::run::NoMonitor;
use crate::solver::hessian;
use ndarray::Array2;

const N: usize = 400;
const D: usize = 3;
const TOL: f64 = 1e-4;

/// Calls `f` with Newton's method at 0, on rows whose labels come from a plane with noise.
fn with_newton<L: Loss>(fit_intercept: bool, f: impl Fn(Newton<'_, '_>, &mut RunContext<'_>)) {
    let wave = |k: usize| (k as f64 * 1.7).sin() + (k as f64 * 0.31).cos();
    let x = Array2::from_shape_fn((N, D), |(i, j)| wave(7 * i + 3 * j) + 0.5 * j as f64);
    let label = |i: usize| (x[[i, 0]] - 0.7 * x[[i, 1]] + 0.9 * wave(11 * i) - 0.3).signum();
    let y: Vec<f64> = (0..N).map(label).collect();
    let c: Vec<f64> = (0..N).map(|i| (i % 4) as f64).collect();
    let rows = Dense::new(x.view()).expect("C order");
    let data = Data::new(rows, Some(&c)).expect("valid");
    let (loss, strength) = (L::with_param(1.0), Regularisation::C(10.0));
    let problem = Problem::new(data, &y, loss, strength, fit_intercept).expect("a problem");
    let mut no_monitor = NoMonitor;
    let mut context = RunContext::new(None, &mut no_monitor);
    let columns = hessian::columns(&rows);
    let mu = [0.1, 0.6, 1.1];
    let zero = Point::zero(N, D);
    let newton = Newton::new(&problem, (&mu, &columns), 10.0, &zero, TOL, &mut context)
        .expect("not interrupted");
    f(newton, &mut context);
}

#[test]
fn predicted_dual_values_are_those_of_the_model_and_prove_enough() {
    for fit_intercept in [false, true] {
        with_newton::<Log>(fit_intercept, |mut newton, context| {
            let mut steps = 0;
            while !newton.is_ready() {
                newton.step(context).expect("not interrupted");
                steps += 1;
            }
            assert!(
                newton.prediction == Prediction::Made && steps < 10,
                "{steps}"
            );
            let (problem, coef) = (newton.problem(), newton.coef());
            let mut of_dual = Vec::new();
            problem
                .coef_of(newton.dual(), &mut of_dual, context)
                .expect("not interrupted");
            for (found, w) in of_dual.iter().zip(coef) {
                assert!(
                    (found - w).abs() <= 1e-9 * w.abs(),
                    "{found} instead of {w}"
                );
            }
            let mut point = Point::default();
            let dual = newton.dual().iter().copied();
            problem
                .evaluate(dual, 1e-6, &mut point, context)
                .expect("not interrupted");
            assert!(point.certificate.gap <= TOL, "{}", point.certificate.gap);
            // The slopes do not prove as much: their w(a) is the gradient / lambda away from w.
            newton.prediction = Prediction::Never;
            newton.update_dual(context).expect("not interrupted");
            let slopes = newton.dual().iter().copied();
            problem
                .evaluate(slopes, 1e-6, &mut point, context)
                .expect("not interrupted");
            assert!(point.certificate.gap > TOL, "{}", point.certificate.gap);
        });
    }
}

#[test]
fn nothing_is_predicted_for_a_loss_with_kinks() {
    with_newton::<Hinge>(true, |mut newton, context| {
        while !newton.is_ready() {
            newton.step(context).expect("not interrupted");
            assert!(newton.prediction != Prediction::Made);
        }
    });
}

#[test]
fn a_solved_problem_can_be_solved_more_accurately() {
    with_newton::<Log>(true, |mut newton, context| {
        while !newton.is_ready() {
            newton.step(context).expect("not interrupted");
        }
        newton
            .go_on(TOL, 0.1 * TOL, context)
            .expect("not interrupted");
        assert!(!newton.is_ready());
        // The prediction is replaced by the slopes.
        let problem = newton.problem();
        for i in 0..N {
            let slope = problem.loss().values_and_slopes(
                &newton.p[i..=i],
                0.0,
                problem.target_block(i..i + 1),
            );
            assert_eq!(problem.weight(i) * newton.dual()[i], -slope.1);
        }
        while !newton.is_ready() {
            newton.step(context).expect("not interrupted");
        }
        let mut point = Point::default();
        let dual = newton.dual().iter().copied();
        newton
            .problem()
            .evaluate(dual, 1e-9, &mut point, context)
            .expect("not interrupted");
        assert!(
            point.certificate.gap <= 0.1 * TOL,
            "{}",
            point.certificate.gap
        );
    });
}
