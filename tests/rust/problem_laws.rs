//! Laws of the objective, its dual and the certificate, for every loss and both storages.

use ndarray::ArrayView2;
use sdca_rs::Error;
use sdca_rs::kernel::Borrowed;
use sdca_rs::loss::{Hinge, Loss, SPECS, Squared, Target, Visitor, dispatch};
use sdca_rs::order::Generator;
use sdca_rs::problem::{Point, Problem, Regularisation};
use sdca_rs::rows::{Csr, Dense};
use sdca_rs::run::{NoMonitor, RunContext};

use crate::support::{Data, Stored, posed};

const N: usize = 60;
const D: usize = 7;
const LAMBDA: f64 = 0.05;

#[derive(Clone, Copy)]
struct Laws<'a, R> {
    data: &'a Data,
    rows: &'a R,
    weighted: bool,
    fit_intercept: bool,
}

impl<R: Stored> Visitor for Laws<'_, R> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let Self {
            data,
            rows,
            weighted,
            fit_intercept,
        } = self;
        let targets = data.targets(L::TARGET);
        let weights = weighted.then_some(&data.weights[..]);
        let lambda = Regularisation::Lambda(LAMBDA);
        let problem = posed(rows, targets, weights, loss, lambda, fit_intercept).expect("valid");
        let mut no_monitor = NoMonitor;
        let mut context = RunContext::new(None, &mut no_monitor);
        let mut generator = Generator::new(17);
        let mut uniform = move || generator.below(1 << 30) as f64 / (1u64 << 30) as f64;
        let (mut best_dual, mut best_primal) = (f64::NEG_INFINITY, f64::INFINITY);
        for _ in 0..20 {
            let inside = |y: &f64| {
                let (low, high) = loss.dual_range(*y);
                let (low, high) = (low.max(-2.0), high.min(2.0));
                low + (high - low) * uniform()
            };
            let dual: Vec<f64> = targets.iter().map(inside).collect();
            let mut point = Point::default();
            problem
                .evaluate(dual.iter().copied(), 1e-14, &mut point, &mut context)
                .expect("not interrupted");
            check_feasibility(&problem, &dual, &point);
            check_definitions(&problem, loss, data, &point, &mut context);
            check_intercept(&problem, &point, &mut context);
            best_dual = best_dual.max(point.certificate.dual);
            best_primal = best_primal.min(point.certificate.primal);
        }
        // Weak duality holds for any pair.
        assert!(
            best_dual <= best_primal,
            "{}: D = {best_dual} above P = {best_primal}",
            L::NAME
        );
    }
}

/// The point satisfies the constraint of the intercept, or is unchanged if there is none.
fn check_feasibility(problem: &Problem<'_>, dual: &[f64], point: &Point) {
    if problem.fit_intercept() {
        let drift: f64 = point
            .dual
            .iter()
            .enumerate()
            .map(|(i, a)| problem.weight(i) * a)
            .sum();
        assert!(
            drift.abs() < 1e-12 * problem.total_weight(),
            "{}: sum c a = {drift}",
            problem.loss_name()
        );
    } else {
        assert_eq!((&point.dual[..], point.intercept), (dual, 0.0));
    }
}

/// w = w(a), P, D and the gap according to their definitions, from the dense rows.
fn check_definitions<L: Loss>(
    problem: &Problem<'_>,
    loss: L,
    data: &Data,
    point: &Point,
    context: &mut RunContext<'_>,
) {
    let Point {
        dual: a,
        coef,
        intercept: b,
        certificate,
        ..
    } = point;
    let total: f64 = (0..N).map(|i| problem.weight(i)).sum();
    let x = |i: usize, j: usize| data.dense[i * D + j];
    for (j, found) in coef.iter().enumerate() {
        let w: f64 = (0..N)
            .map(|i| problem.weight(i) * a[i] * x(i, j))
            .sum::<f64>()
            / (LAMBDA * total);
        assert!(
            (w - found).abs() < 1e-12 * (1.0 + w.abs()),
            "{}: w_{j}",
            L::NAME
        );
    }
    let penalty = 0.5 * LAMBDA * coef.iter().map(|w| w * w).sum::<f64>();
    let p = |i: usize| (0..D).map(|j| x(i, j) * coef[j]).sum::<f64>() + b;
    let mean =
        |f: &dyn Fn(usize) -> f64| (0..N).map(|i| problem.weight(i) * f(i)).sum::<f64>() / total;
    let primal = mean(&|i| loss.value(p(i), problem.target(i))) + penalty;
    let dual = mean(&|i| -loss.conjugate(a[i], problem.target(i))) - penalty;
    let close =
        |found: f64, expected: f64| (found - expected).abs() < 1e-11 * (1.0 + expected.abs());
    assert!(close(certificate.primal, primal), "{}: P", L::NAME);
    assert!(close(certificate.dual, dual), "{}: D", L::NAME);
    assert!(
        close(
            problem.primal(coef, *b, context).expect("not interrupted"),
            primal
        ),
        "{}",
        L::NAME
    );
    assert_eq!(certificate.gap, certificate.primal - certificate.dual);
    let support = (0..N)
        .filter(|&i| problem.weight(i) > 0.0 && a[i] != 0.0)
        .count();
    assert_eq!(certificate.support, support);

    // The gap is a mean of non-negative terms.
    let by_rows = mean(&|i| problem.row_gap(i, p(i), a[i]));
    assert!(
        (by_rows - certificate.gap).abs() < 1e-10 * (1.0 + primal),
        "{}: {by_rows}",
        L::NAME
    );
    for (i, &a) in a.iter().enumerate() {
        assert!(
            problem.row_gap(i, p(i), a) > -1e-11 * (1.0 + primal),
            "{}: row {i}",
            L::NAME
        );
    }
}

/// b minimises P.
fn check_intercept(problem: &Problem<'_>, point: &Point, context: &mut RunContext<'_>) {
    if !problem.fit_intercept() {
        return;
    }
    for h in [1e-6, 1e-3, 0.1] {
        for b in [point.intercept - h, point.intercept + h] {
            let moved = problem
                .primal(&point.coef, b, context)
                .expect("not interrupted");
            assert!(
                moved >= point.certificate.primal * (1.0 - 1e-13),
                "{}: {b} is better",
                problem.loss_name()
            );
        }
    }
}

fn check_laws<R: Stored>(data: &Data, rows: &R) {
    for spec in SPECS {
        for (weighted, fit_intercept) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            dispatch(
                spec.name,
                None,
                Laws {
                    data,
                    rows,
                    weighted,
                    fit_intercept,
                },
            )
            .expect("known");
        }
    }
}

#[test]
fn certificates_are_what_their_definitions_say_dense() {
    let data = Data::new(N, D, 1);
    let x = ArrayView2::from_shape((N, D), &data.dense).expect("shape");
    check_laws(&data, &Dense::new(x).expect("C order"));
}

#[test]
fn certificates_are_what_their_definitions_say_sparse() {
    let data = Data::new(N, D, 2);
    let (values, indices) = (Borrowed::new(&data.values), Borrowed::new(&data.indices));
    check_laws(
        &data,
        &Csr::new(values, indices, Borrowed::new(&data.indptr), D).expect("valid"),
    );
}

fn square(
    targets: &[f64],
    weights: Option<&[f64]>,
    regularisation: Regularisation,
) -> Result<f64, Error> {
    let x = [1.0, 2.0, 3.0];
    let rows = Dense::new(ArrayView2::from_shape((3, 1), &x).expect("shape")).expect("C order");
    posed(&rows, targets, weights, Squared, regularisation, true).map(|problem| problem.lambda())
}

#[test]
fn c_is_scikit_learns() {
    let y = [1.0, 2.0, 3.0];
    assert_eq!(square(&y, None, Regularisation::C(0.5)), Ok(1.0 / 1.5));
    assert_eq!(
        square(&y, Some(&[2.0, 0.0, 6.0]), Regularisation::C(0.5)),
        Ok(0.25)
    );
    assert_eq!(
        square(&y, Some(&[2.0, 0.0, 6.0]), Regularisation::Lambda(0.3)),
        Ok(0.3)
    );
}

#[test]
fn bad_parts_of_a_problem_are_named() {
    let (y, c1) = ([1.0, 2.0, 3.0], Regularisation::C(1.0));
    assert!(matches!(
        square(&y[..2], None, c1),
        Err(Error::Length {
            name: "y",
            found: 2,
            expected: 3,
            ..
        })
    ));
    let short = square(&y, Some(&[1.0; 4]), c1);
    assert!(matches!(
        short,
        Err(Error::Length {
            name: "sample_weight",
            found: 4,
            expected: 3,
            ..
        })
    ));
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let negative = square(&y, Some(&[1.0, bad, 1.0]), c1);
        assert!(
            matches!(negative, Err(Error::Weight { row: 1, .. })),
            "{negative:?}"
        );
        let target = square(
            &[1.0, 2.0, if bad > 0.0 { bad } else { f64::NAN }],
            None,
            c1,
        );
        assert!(
            matches!(target, Err(Error::Target { row: 2, .. })),
            "{target:?}"
        );
    }
    assert_eq!(square(&y, Some(&[0.0; 3]), c1), Err(Error::NoWeight));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let c = square(&y, None, Regularisation::C(bad));
        assert!(
            matches!(c, Err(Error::Parameter { name: "C", .. })),
            "{c:?}"
        );
        let lambda = square(&y, None, Regularisation::Lambda(bad));
        assert!(
            matches!(lambda, Err(Error::Parameter { name: "lam", .. })),
            "{lambda:?}"
        );
    }
    let x = [1.0, 2.0, 3.0];
    let rows = Dense::new(ArrayView2::from_shape((3, 1), &x).expect("shape")).expect("C order");
    let label = |y: &[f64], c: Option<&[f64]>| posed(&rows, y, c, Hinge, c1, true).err();
    assert!(matches!(
        label(&[1.0, 0.0, 1.0], None),
        Some(Error::Target { row: 1, .. })
    ));
    assert_eq!(label(&[1.0, 1.0, 1.0], None), Some(Error::OneClass));
    assert_eq!(
        label(&[1.0, -1.0, 1.0], Some(&[1.0, 0.0, 1.0])),
        Some(Error::OneClass)
    );
    assert_eq!(Hinge::TARGET, Target::Label);
}
