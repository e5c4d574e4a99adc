use super::*;
use crate::data::Data;
use crate::loss::Huber;
use crate::loss::Loss;
use crate::problem::Regularisation;
use crate::rows::tests::CsrArrays;
use crate::run::NoMonitor;

const N: usize = 300;
const D: usize = 12;

/// `f` for a problem of rows with an entry in columns 2 and 7 and in one of the others, where some rows
/// are large, and a function that solves with the sum for the weights.
fn with_problem(fit_intercept: bool, f: impl Fn(&dyn Fn(&mut Gram, &[f64]) -> Vec<f64>)) {
    let arrays = CsrArrays::new((0..N).map(|i| {
        let size = if is_large(i) { 1e7 } else { 1.0 };
        [2, 7, 8 + i % 4].map(|j| {
            let k = (i * (j + 3)) % 23;
            (j, size * (0.1 * k as f64 - 0.9))
        })
    }));
    let rows = arrays.rows(D);
    let (targets, loss) = (vec![0.0; N], Huber::with_param(1.0));
    let lambda = Regularisation::Lambda(1.0);
    let data = Data::new(rows.clone(), None).expect("valid");
    let problem = Problem::new(data, &targets, loss, lambda, fit_intercept);
    let problem = problem.expect("a problem");
    let columns = Columns::new(&rows);
    assert_eq!(columns.dense, [2, 7]);
    let mu: Vec<f64> = (0..D).map(|j| 0.1 * j as f64).collect();
    f(&|gram, weights| {
        let mut no_monitor = NoMonitor;
        let mut context = RunContext::new(None, &mut no_monitor);
        let size = D + usize::from(fit_intercept);
        let mut system = SymmetricSystem::new(size);
        let weights = (weights, 0.1);
        gram.update(
            &columns,
            (&problem, &mu),
            weights,
            &mut system,
            &mut context,
        )
        .expect("not interrupted");
        system.add_diagonal(D, 1.0);
        system.factor(&mut context).expect("not interrupted");
        let mut v: Vec<f64> = (0..size).map(|j| 1.0 + j as f64).collect();
        system.solve(&mut v);
        v
    });
}

fn assert_close(found: &[f64], expected: &[f64]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs(),
            "{found} {expected}"
        );
    }
}

fn is_large(i: usize) -> bool {
    i % 30 == 4
}

#[test]
fn a_sum_goes_on_from_other_weights() {
    for fit_intercept in [false, true] {
        with_problem(fit_intercept, |solve| {
            let mut gram = Gram::default();
            let first: Vec<f64> = (0..N)
                .map(|i| if is_large(i) { 0.0 } else { (i % 3) as f64 })
                .collect();
            solve(&mut gram, &first);
            // Some rows more, some less, some new and some gone.
            let mut second = first.clone();
            for i in (0..N).step_by(7).filter(|&i| !is_large(i)) {
                second[i] = (i % 5) as f64;
            }
            let found = solve(&mut gram, &second);
            assert_close(&found, &solve(&mut Gram::default(), &second));
            // Nearly the same.
            let third: Vec<f64> = second.iter().map(|h| 1.05 * h).collect();
            assert_eq!(solve(&mut gram, &third), found);
            // Most of them differ.
            let last: Vec<f64> = second.iter().map(|h| 2.0 * h).collect();
            assert_eq!(solve(&mut gram, &last), solve(&mut Gram::default(), &last));
        });
    }
}

#[test]
fn what_is_left_of_much_is_computed_from_scratch() {
    with_problem(false, |solve| {
        let mut gram = Gram::default();
        solve(&mut gram, &[1.0; N]);
        let rest: Vec<f64> = (0..N)
            .map(|i| if is_large(i) { 0.0 } else { 1.0 })
            .collect();
        let found = solve(&mut gram, &rest);
        assert_eq!(found, solve(&mut Gram::default(), &rest));
    });
}
