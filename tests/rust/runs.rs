//! Runs of SDCA converge to a certified optimum, are reproducible, and stop when they should.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use ndarray::ArrayView2;
use sdca_rs::Error;
use sdca_rs::kernel::Borrowed;
use sdca_rs::loss::{
    Hinge, Log, Loss, SPECS, SmoothHinge, Squared, SquaredHinge, Visitor, dispatch,
};
use sdca_rs::one_vs_rest::{self, OneVsRest};
use sdca_rs::order::Sampling;
use sdca_rs::problem::Regularisation;
use sdca_rs::rows::{Csr, Dense};
use sdca_rs::run::{Budget, Fit, Monitor, NoMonitor, Progress, StopReason};
use sdca_rs::solver::{AverageFrom, FirstEpoch, Output, Sdca, Solver, Start};

use crate::support::{Data, Stored, posed};

const N: usize = 400;
const D: usize = 8;

fn view(data: &Data) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((data.n_rows, data.n_cols), &data.dense).expect("shape")
}

#[derive(Clone, Copy)]
struct Solve<'a, R> {
    data: &'a Data,
    rows: &'a R,
    sdca: &'a Sdca,
    budget: &'a Budget,
    weighted: bool,
    fit_intercept: bool,
}

impl<R: Stored> Visitor for Solve<'_, R> {
    type Out = Fit;

    fn visit<L: Loss>(self, loss: L) -> Fit {
        let weights = self.weighted.then_some(&self.data.weights[..]);
        let targets = self.data.targets(L::TARGET);
        let c = Regularisation::C(1.0);
        let problem =
            posed(self.rows, targets, weights, loss, c, self.fit_intercept).expect("valid");
        self.sdca
            .solve(&problem, self.budget, None, &mut NoMonitor)
            .expect("not interrupted")
    }
}

fn budget(tol: f64, max_epochs: usize) -> Budget {
    Budget {
        tol,
        max_epochs,
        ..Budget::default()
    }
}

#[test]
fn every_loss_storage_sampling_and_first_epoch_reach_the_same_certified_optimum() {
    let data = Data::new(N, D, 4);
    let dense = Dense::new(view(&data)).expect("C order");
    let (values, indices) = (Borrowed::new(&data.values), Borrowed::new(&data.indices));
    let sparse = Csr::new(values, indices, Borrowed::new(&data.indptr), D).expect("valid");
    let budget = &budget(1e-6, 20_000);
    for spec in SPECS {
        for (weighted, fit_intercept) in [(false, false), (true, true)] {
            let mut fits = Vec::new();
            for sampling in [Sampling::Permutation, Sampling::Random, Sampling::Cyclic] {
                for first_epoch in [FirstEpoch::Sdca, FirstEpoch::Sgd] {
                    let sdca = &Sdca {
                        sampling,
                        first_epoch,
                        seed: 3,
                        ..Sdca::default()
                    };
                    let data = &data;
                    let on_dense = Solve {
                        data,
                        rows: &dense,
                        sdca,
                        budget,
                        weighted,
                        fit_intercept,
                    };
                    let on_sparse = Solve {
                        data,
                        rows: &sparse,
                        sdca,
                        budget,
                        weighted,
                        fit_intercept,
                    };
                    fits.push(dispatch(spec.name, None, on_dense).expect("known"));
                    fits.push(dispatch(spec.name, None, on_sparse).expect("known"));
                }
            }
            let highest = fits
                .iter()
                .map(|fit| fit.certificate.dual)
                .fold(f64::NEG_INFINITY, f64::max);
            for fit in &fits {
                let c = fit.certificate;
                assert_eq!(fit.stop, StopReason::Converged, "{} {c:?}", spec.name);
                assert!(
                    c.gap <= 1e-6 * c.primal && c.gap >= -1e-13 * c.primal,
                    "{} {c:?}",
                    spec.name
                );
                assert!(
                    c.primal >= highest - 1e-13 * c.primal,
                    "{} below a lower bound: {c:?}",
                    spec.name
                );
                let last = fit.history.last().expect("at least one evaluation");
                assert_eq!((last.certificate, last.epoch), (c, fit.epochs));
            }
        }
    }
}

#[test]
fn a_pattern_has_the_same_certified_optimum_as_its_dense_rows() {
    let data = &Data::with_one_value_in_each_row(N, D, 4);
    let dense = &Dense::new(view(data)).expect("C order");
    let (values, indices) = (Borrowed::new(&data.values), Borrowed::new(&data.indices));
    let sparse = Csr::new(values, indices, Borrowed::new(&data.indptr), D).expect("valid");
    let pattern = &sparse.into_pattern().expect("one value in each row");
    let budget = &budget(1e-9, 20_000);
    for spec in SPECS {
        for (weighted, fit_intercept) in [(false, false), (true, true)] {
            for accelerate in [false, true] {
                let sdca = &Sdca {
                    accelerate,
                    ..Sdca::default()
                };
                let on_dense = Solve {
                    data,
                    rows: dense,
                    sdca,
                    budget,
                    weighted,
                    fit_intercept,
                };
                let on_pattern = Solve {
                    data,
                    rows: pattern,
                    sdca,
                    budget,
                    weighted,
                    fit_intercept,
                };
                let a = dispatch(spec.name, None, on_dense).expect("known");
                let b = dispatch(spec.name, None, on_pattern).expect("known");
                let (p, q) = (a.certificate, b.certificate);
                let what = format!("{} {accelerate} {p:?} {q:?}", spec.name);
                assert_eq!(
                    (a.stop, b.stop),
                    (StopReason::Converged, StopReason::Converged),
                    "{what}"
                );
                // Each is a bound on the other.
                assert!(q.primal >= p.dual - 1e-13 * p.primal, "{what}");
                assert!(p.primal >= q.dual - 1e-13 * p.primal, "{what}");
                assert!(q.gap <= 1e-9 * q.primal, "{what}");
            }
        }
    }
}

#[test]
fn averaged_and_random_outputs_carry_their_own_certificate_and_do_not_change_the_run() {
    let data = Data::new(N, D, 5);
    let rows = &Dense::new(view(&data)).expect("C order");
    let budget = &Budget {
        tol: 0.0,
        max_epochs: 40,
        ..Budget::default()
    };
    let fit = |output, average_from, fit_intercept| {
        let sdca = &Sdca {
            output,
            average_from,
            sampling: Sampling::Random,
            seed: 9,
            ..Sdca::default()
        };
        dispatch(
            "hinge",
            None,
            Solve {
                data: &data,
                rows,
                sdca,
                budget,
                weighted: true,
                fit_intercept,
            },
        )
        .expect("known")
    };
    for fit_intercept in [false, true] {
        let last = fit(Output::Last, AverageFrom::default(), fit_intercept);
        for output in [Output::Average, Output::Random] {
            for average_from in [
                AverageFrom::Fraction(0.0),
                AverageFrom::Fraction(0.5),
                AverageFrom::Fraction(0.9),
                AverageFrom::Step(1),
            ] {
                let other = fit(output, average_from, fit_intercept);
                assert_ne!(other.dual, last.dual);
                let problem = posed(
                    rows,
                    &data.labels,
                    Some(&data.weights),
                    Hinge,
                    Regularisation::C(1.0),
                    fit_intercept,
                )
                .expect("valid");
                let mut no_monitor = NoMonitor;
                let mut context = sdca_rs::run::RunContext::new(None, &mut no_monitor);
                let primal = problem
                    .primal(&other.coef, other.intercept, &mut context)
                    .expect("not interrupted");
                assert!((primal - other.certificate.primal).abs() < 1e-12);
                let mut coef = Vec::new();
                problem
                    .coef_of(&other.dual, &mut coef, &mut context)
                    .expect("not interrupted");
                assert!(
                    coef.iter()
                        .zip(&other.coef)
                        .all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + a.abs()))
                );
                assert!(other.certificate.gap > 0.0 && other.certificate.gap < 0.1);
            }
        }
    }
}

/// The average according to its definition: the mean of the iterates before the steps T0+1..=T, one
/// step at a time.
#[test]
fn the_average_is_the_mean_of_the_iterates() {
    let data = Data::new(30, 3, 6);
    let rows = &Dense::new(view(&data)).expect("C order");
    let problem = posed(
        rows,
        &data.labels,
        None,
        Hinge,
        Regularisation::C(1.0),
        false,
    )
    .expect("valid");
    let epochs = 6;
    // Empty rows never change.
    let moving = data
        .dense
        .chunks(3)
        .filter(|row| row.iter().any(|&x| x != 0.0))
        .count();
    let steps = moving * epochs;
    let every_step = Budget {
        tol: 0.0,
        max_epochs: epochs,
        record_every: Some(1.0 / moving as f64),
        max_time: None,
    };
    let sdca = Sdca {
        first_epoch: FirstEpoch::Sdca,
        // Averages are of the iterates of the published algorithm.
        accelerate: false,
        seed: 2,
        ..Sdca::default()
    };
    let mut iterates: Vec<Vec<f64>> = Vec::new();
    struct Models<'a>(&'a mut Vec<Vec<f64>>);
    impl Monitor for Models<'_> {
        fn record(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
            self.0.push(progress.coef.to_vec());
            ControlFlow::Continue(())
        }
    }
    sdca.solve(&problem, &every_step, None, &mut Models(&mut iterates))
        .expect("not interrupted");
    assert_eq!(iterates.len(), steps + 1);
    let half = (0.5 * steps as f64).round() as usize;
    for (average_from, from) in [
        (AverageFrom::Fraction(0.0), 0),
        (AverageFrom::Fraction(0.5), half),
        (AverageFrom::Step(7), 7),
    ] {
        let averaged = Sdca {
            output: Output::Average,
            average_from,
            ..sdca.clone()
        };
        let budget = Budget {
            record_every: None,
            ..every_step.clone()
        };
        let fit = averaged
            .solve(&problem, &budget, None, &mut NoMonitor)
            .expect("not interrupted");
        for j in 0..3 {
            // w is linear in a, so the mean of the w is the w of the mean.
            let mean =
                iterates[from..steps].iter().map(|w| w[j]).sum::<f64>() / (steps - from) as f64;
            assert!(
                (mean - fit.coef[j]).abs() < 1e-12,
                "from {average_from:?}: {mean} not {}",
                fit.coef[j]
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_recording_changes_nothing() {
    let data = Data::new(N, D, 7);
    let rows = &Dense::new(view(&data)).expect("C order");
    for output in [Output::Last, Output::Average, Output::Random] {
        let fit = |seed, record_every| {
            let sdca = &Sdca {
                seed,
                output,
                ..Sdca::default()
            };
            let budget = &Budget {
                tol: 0.0,
                max_epochs: 12,
                record_every,
                max_time: None,
            };
            let solve = Solve {
                data: &data,
                rows,
                sdca,
                budget,
                weighted: false,
                fit_intercept: true,
            };
            dispatch("log", None, solve).expect("known")
        };
        let one = fit(1, None);
        let bits = |fit: &Fit| fit.dual.iter().map(|a| a.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&one), bits(&fit(1, None)));
        assert_ne!(bits(&one), bits(&fit(2, None)));
        for every in [0.01, 0.25, 5.0] {
            let recorded = fit(1, Some(every));
            assert_eq!(bits(&one), bits(&recorded), "{output:?}");
            assert_eq!(recorded.certificate, one.certificate);
        }
    }
}

/// The iterates of SDCA, written out for dense rows without weights and without an intercept, in
/// data order.
fn twin<L: Loss>(
    x: &[f64],
    y: &[f64],
    loss: L,
    lambda: f64,
    epochs: usize,
    sgd: bool,
) -> Vec<Vec<f64>> {
    let n_cols = x.len() / y.len();
    let mut a = vec![0.0; y.len()];
    let mut all = vec![vec![0.0; n_cols]];
    for epoch in 0..epochs {
        for (i, row) in x.chunks(n_cols).enumerate() {
            // The rows seen so far stand for all rows: t - 1 of them in the model, as it was before
            // the step, and t in the step.
            let is_sgd = sgd && epoch == 0;
            let n = if is_sgd { i + 1 } else { y.len() } as f64;
            let n_of_model = if is_sgd { i.max(1) } else { y.len() } as f64;
            let mut z = 0.0;
            for (x, a) in x.chunks(n_cols).zip(&a) {
                let dot = x.iter().zip(row).map(|(x, r)| x * r).sum::<f64>();
                z += a * dot / (lambda * n_of_model);
            }
            let q = row.iter().map(|x| x * x).sum::<f64>() / (lambda * n);
            a[i] = loss.step(z - q * a[i], q, 0.0, y[i]);
            let column = |j| x.iter().skip(j).step_by(n_cols);
            let sum = |j| column(j).zip(&a).map(|(x, a)| x * a).sum::<f64>();
            all.push(
                (0..n_cols)
                    .map(|j| sum(j) / (lambda * y.len() as f64))
                    .collect(),
            );
        }
    }
    all
}

struct Published<'a> {
    data: &'a Data,
    first_epoch: FirstEpoch,
}

impl Visitor for Published<'_> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let (data, lambda, epochs) = (self.data, 0.05, 6);
        // No row is empty, so each has its step.
        let x: Vec<f64> = data.dense.iter().map(|x| x + 0.1).collect();
        let shape = (data.n_rows, data.n_cols);
        let rows = Dense::new(ArrayView2::from_shape(shape, &x).expect("shape")).expect("C order");
        let y = data.targets(L::TARGET);
        let strength = Regularisation::Lambda(lambda);
        let problem = posed(&rows, y, None, loss, strength, false).expect("valid");
        let sdca = Sdca {
            sampling: Sampling::Cyclic,
            first_epoch: self.first_epoch,
            accelerate: false,
            ..Sdca::default()
        };
        let budget = Budget {
            record_every: Some(1.0 / data.n_rows as f64),
            ..budget(0.0, epochs)
        };
        struct Models(Vec<Vec<f64>>);
        impl Monitor for Models {
            fn record(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
                self.0.push(progress.coef.to_vec());
                ControlFlow::Continue(())
            }
        }
        let mut models = Models(Vec::new());
        sdca.solve(&problem, &budget, None, &mut models)
            .expect("not interrupted");
        let sgd = self.first_epoch == FirstEpoch::Sgd;
        let expected = twin(&x, y, loss, lambda, epochs, sgd);
        assert_eq!(models.0.len(), expected.len());
        for (step, (found, expected)) in models.0.iter().zip(&expected).enumerate() {
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
                    "{} step {step}: {found} not {expected}",
                    L::NAME
                );
            }
        }
    }
}

#[test]
fn without_acceleration_sdca_is_the_published_algorithm() {
    let data = &Data::new(25, 3, 13);
    for spec in SPECS {
        for first_epoch in [FirstEpoch::Sdca, FirstEpoch::Sgd] {
            dispatch(spec.name, None, Published { data, first_epoch }).expect("known");
        }
    }
}

#[test]
fn acceleration_saves_epochs_and_takes_no_more_than_allowed() {
    let data = Data::new(1500, 20, 14);
    // Labels that no model can explain, so that there are support vectors.
    let mut labels = data.labels.clone();
    for y in labels.iter_mut().step_by(7) {
        *y = -*y;
    }
    // Columns without any entries: with so many columns the run has no second-order finish.
    for (n_cols, saved) in [(3000, 0.5), (20, 0.3)] {
        let (values, indices) = (Borrowed::new(&data.values), Borrowed::new(&data.indices));
        let rows = &Csr::new(values, indices, Borrowed::new(&data.indptr), n_cols).expect("valid");
        for fit_intercept in [false, true] {
            let c = Regularisation::C(1.0);
            let problem = posed(rows, &labels, None, Hinge, c, fit_intercept).expect("valid");
            let solve = |accelerate, tol, max_epochs| {
                let sdca = Sdca {
                    accelerate,
                    ..Sdca::default()
                };
                sdca.solve(&problem, &budget(tol, max_epochs), None, &mut NoMonitor)
                    .expect("not interrupted")
            };
            let [plain, fast] = [false, true].map(|accelerate| solve(accelerate, 1e-4, 20_000));
            for fit in [&plain, &fast] {
                assert_eq!(fit.stop, StopReason::Converged);
                assert!(fit.certificate.gap <= 1e-4 * fit.certificate.primal);
            }
            assert!(fast.certificate.dual <= plain.certificate.primal);
            assert!(plain.certificate.dual <= fast.certificate.primal);
            assert!(
                fast.epochs <= saved * plain.epochs,
                "{n_cols} columns, intercept {fit_intercept}: {} epochs, not {}",
                fast.epochs,
                plain.epochs
            );
            // Also in the middle of a short pass, or of a step of the finish.
            for max_epochs in [1, 2, 3, 5, 10, 23, fast.epochs as usize - 1] {
                let cut = solve(true, 1e-15, max_epochs);
                assert_eq!(cut.stop, StopReason::MaxEpochs);
                assert_eq!(cut.epochs, max_epochs as f64);
            }
        }
    }
}

#[test]
fn records_fall_on_fractions_of_an_epoch() {
    let data = Data::new(N, D, 8);
    let rows = &Dense::new(view(&data)).expect("C order");
    let sdca = &Sdca::default();
    let budget = &Budget {
        tol: 0.0,
        max_epochs: 2,
        record_every: Some(0.01),
        max_time: None,
    };
    let solve = Solve {
        data: &data,
        rows,
        sdca,
        budget,
        weighted: false,
        fit_intercept: false,
    };
    let fit = dispatch("squared", None, solve).expect("known");
    assert_eq!(
        (fit.history.len(), fit.stop, fit.epochs),
        (201, StopReason::MaxEpochs, 2.0)
    );
    for (k, record) in fit.history.iter().enumerate() {
        assert!(
            (record.epoch - 0.01 * k as f64).abs() <= 0.51 / 390.0,
            "{}",
            record.epoch
        );
        // Exact coordinate ascent never decreases D.
        assert!(k == 0 || record.certificate.dual >= fit.history[k - 1].certificate.dual - 1e-14);
    }
}

#[test]
fn a_warm_start_goes_on_where_the_last_run_ended() {
    let data = Data::new(N, D, 9);
    let rows = &Dense::new(view(&data)).expect("C order");
    let problem =
        posed(rows, &data.labels, None, Log, Regularisation::C(1.0), true).expect("valid");
    let sdca = Sdca::default();
    let budget = |tol, max_epochs| Budget {
        record_every: Some(1.0),
        ..budget(tol, max_epochs)
    };
    let cold = sdca
        .solve(&problem, &budget(1e-6, 1000), None, &mut NoMonitor)
        .expect("not interrupted");
    let warm = sdca
        .solve(
            &problem,
            &budget(1e-6, 1000),
            Some((&cold).into()),
            &mut NoMonitor,
        )
        .expect("valid");
    assert_eq!((warm.epochs, warm.stop), (0.0, StopReason::Converged));
    let near = posed(rows, &data.labels, None, Log, Regularisation::C(1.1), true).expect("valid");
    let far = sdca
        .solve(&near, &budget(1e-6, 1000), None, &mut NoMonitor)
        .expect("not interrupted");
    let warm = sdca
        .solve(
            &near,
            &budget(1e-6, 1000),
            Some((&cold).into()),
            &mut NoMonitor,
        )
        .expect("valid");
    assert!(
        warm.epochs < far.epochs,
        "{} not below {}",
        warm.epochs,
        far.epochs
    );
    // Values that are outside the domain or not finite are brought inside.
    let wild: Vec<f64> = (0..N)
        .map(|i| [9.0, -9.0, f64::NAN, f64::INFINITY][i % 4])
        .collect();
    let from = |dual| Start {
        dual,
        coef: &cold.coef,
        intercept: 0.0,
        steps: 0.0,
    };
    let fit = sdca
        .solve(
            &near,
            &budget(1e-6, 1000),
            Some(from(&wild)),
            &mut NoMonitor,
        )
        .expect("valid");
    assert_eq!(fit.stop, StopReason::Converged);
    let short = sdca.solve(
        &near,
        &budget(1e-6, 1000),
        Some(from(&wild[1..])),
        &mut NoMonitor,
    );
    assert!(matches!(
        short,
        Err(Error::Length {
            name: "dual start",
            ..
        })
    ));
}

#[test]
fn empty_rows_get_their_best_dual_value() {
    let x = [0.0, 0.0, 0.0, 1.0, 0.0, -2.0];
    let rows = Dense::new(ArrayView2::from_shape((3, 2), &x).expect("shape")).expect("C order");
    for fit_intercept in [false, true] {
        let y = [1.0, -1.0, 1.0];
        let problem = posed(
            &rows,
            &y,
            None,
            Hinge,
            Regularisation::C(1.0),
            fit_intercept,
        )
        .expect("valid");
        let fit = Sdca::default()
            .solve(&problem, &budget(1e-9, 1000), None, &mut NoMonitor)
            .expect("valid");
        assert_eq!(fit.stop, StopReason::Converged);
        assert!(fit_intercept || fit.dual[0] == 1.0);
    }
    // All rows are empty, so there is nothing to do.
    let rows =
        Dense::new(ArrayView2::from_shape((3, 2), &[0.0; 6]).expect("shape")).expect("C order");
    let y = [1.0, 4.0, 7.0];
    for (fit_intercept, intercept) in [(false, 0.0), (true, 4.0)] {
        let problem = posed(
            &rows,
            &y,
            None,
            Squared,
            Regularisation::C(1.0),
            fit_intercept,
        )
        .expect("valid");
        let fit = Sdca::default()
            .solve(&problem, &budget(1e-9, 1000), None, &mut NoMonitor)
            .expect("valid");
        assert_eq!(fit.stop, StopReason::Converged);
        assert!((fit.intercept - intercept).abs() < 1e-9);
    }
}

/// Stops or aborts the run after some calls.
struct Limit {
    records: usize,
    looks: usize,
}

impl Monitor for Limit {
    fn record(&mut self, _: &Progress<'_>) -> ControlFlow<()> {
        self.records = self.records.saturating_sub(1);
        if self.records == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn check(&mut self) -> ControlFlow<()> {
        self.looks = self.looks.saturating_sub(1);
        if self.looks == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[test]
fn runs_stop_for_the_reason_they_give() {
    let data = Data::new(N, D, 10);
    let rows = &Dense::new(view(&data)).expect("C order");
    let problem = posed(
        rows,
        &data.labels,
        None,
        Hinge,
        Regularisation::C(1e3),
        true,
    )
    .expect("valid");
    let sdca = Sdca::default();
    let fit = sdca
        .solve(&problem, &budget(1e-12, 3), None, &mut NoMonitor)
        .expect("valid");
    assert_eq!((fit.stop, fit.epochs), (StopReason::MaxEpochs, 3.0));
    let fit = sdca
        .solve(&problem, &budget(0.5, 1000), None, &mut NoMonitor)
        .expect("valid");
    assert_eq!(fit.stop, StopReason::Converged);
    let mut third = Limit {
        records: 3,
        looks: usize::MAX,
    };
    let fit = sdca
        .solve(&problem, &budget(1e-12, 1000), None, &mut third)
        .expect("valid");
    assert_eq!((fit.stop, fit.history.len()), (StopReason::Callback, 3));
    let timed = Budget {
        max_time: Some(Duration::from_nanos(1)),
        ..budget(1e-12, 1_000_000)
    };
    let fit = sdca
        .solve(&problem, &timed, None, &mut NoMonitor)
        .expect("valid");
    assert_eq!(fit.stop, StopReason::MaxTime);
    assert!(fit.epochs < 100.0);
    let endless = budget(0.0, usize::MAX);
    let abandoned = sdca.solve(
        &problem,
        &endless,
        None,
        &mut Limit {
            records: usize::MAX,
            looks: 2,
        },
    );
    assert_eq!(abandoned.err(), Some(Error::Interrupted));
}

#[test]
fn bad_settings_are_named() {
    let data = Data::new(20, 2, 11);
    let rows = &Dense::new(view(&data)).expect("C order");
    let problem = posed(
        rows,
        &data.labels,
        None,
        Hinge,
        Regularisation::C(1.0),
        true,
    )
    .expect("valid");
    let name =
        |sdca: &Sdca, budget: &Budget| match sdca.solve(&problem, budget, None, &mut NoMonitor) {
            Err(Error::Parameter { name, .. }) => name,
            other => panic!("{other:?}"),
        };
    let sdca = Sdca::default();
    assert_eq!(name(&sdca, &budget(-1.0, 10)), "tol");
    assert_eq!(name(&sdca, &budget(f64::NAN, 10)), "tol");
    assert_eq!(name(&sdca, &budget(0.1, 0)), "max_iter");
    for every in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            name(
                &sdca,
                &Budget {
                    record_every: Some(every),
                    ..budget(0.1, 10)
                }
            ),
            "record_every"
        );
    }
    for average_from in [-0.1, 1.0, f64::NAN].map(AverageFrom::Fraction) {
        assert_eq!(
            name(
                &Sdca {
                    average_from,
                    ..Sdca::default()
                },
                &budget(0.1, 10)
            ),
            "average_from"
        );
    }
    assert!(Sampling::named("shuffle").is_err() && Output::named("mean").is_err());
    assert!(FirstEpoch::named("").is_err() && Sampling::named("cyclic") == Ok(Sampling::Cyclic));
}

#[test]
fn classes_in_parallel_give_the_same_bits() {
    let data = Data::new(N, D, 12);
    let rows = &Dense::new(view(&data)).expect("C order");
    let classes: Vec<u32> = data.counts.iter().map(|&k| (k as u32).min(4)).collect();
    let sdca = Sdca::default();
    let solve = |class: usize, _: Option<Duration>| {
        let y = one_vs_rest::targets(&classes, class as u32);
        let problem = posed(rows, &y, None, Hinge, Regularisation::C(1.0), true)?;
        sdca.solve(&problem, &budget(1e-5, 5000), None, &mut NoMonitor)
    };
    let bits = |threads| {
        let fits = one_vs_rest::fit_classes(5, threads, None, &solve, &mut || ()).expect("valid");
        fits.iter()
            .flat_map(|fit| fit.coef.iter().map(|w| w.to_bits()))
            .collect::<Vec<_>>()
    };
    let serial = bits(1);
    assert_eq!(serial.len(), 5 * D);
    assert_eq!(serial, bits(2));
    assert_eq!(serial, bits(8));
    // So does the interface for all classes at a time, which never begins several classes of dense
    // rows together.
    let c = Regularisation::C(1.0);
    let data = Arc::new(sdca_rs::data::Data::new(*rows, None).expect("valid"));
    let problems = OneVsRest::new(Arc::clone(&data), (&classes, 5), Hinge, c, true);
    let of_all = |threads: usize, starts: Option<&[Start<'_>]>| {
        let budget = budget(1e-5, 5000);
        let fits = problems.fit(&sdca, &budget, starts, threads, &NoMonitor);
        fits.expect("valid")
    };
    let fits = of_all(1, None);
    let coefs = fits.iter().flat_map(|fit| &fit.coef);
    assert_eq!(serial, coefs.map(|w| w.to_bits()).collect::<Vec<_>>());
    // Starting from their own result, there is nothing left to do.
    let starts: Vec<Start<'_>> = fits.iter().map(Start::from).collect();
    for fit in of_all(2, Some(&starts)) {
        assert_eq!((fit.stop, fit.epochs), (StopReason::Converged, 0.0));
    }
    // A class without rows.
    let six = OneVsRest::new(data, (&classes, 6), Hinge, c, true);
    let found = six.fit(&sdca, &budget(1e-5, 5), None, 1, &NoMonitor);
    assert_eq!(found.err(), Some(Error::OneClass));
    let failed =
        one_vs_rest::fit_classes::<Fit>(5, 2, None, &|_, _| Err(Error::OneClass), &mut || ());
    assert_eq!(failed.err(), Some(Error::OneClass));
}

#[test]
fn groups_hold_all_classes_in_order() {
    for (n_classes, size, expected) in [(0, 8, 0), (3, 8, 1), (8, 8, 1), (9, 8, 2), (58, 8, 8)] {
        let groups = one_vs_rest::groups(n_classes, size);
        assert_eq!(groups.len(), expected);
        assert!(groups.iter().cloned().flatten().eq(0..n_classes as u32));
        let sizes = groups.iter().map(Range::len);
        let (least, most) = (sizes.clone().min(), sizes.max());
        assert!(groups.is_empty() || most <= Some(size) && least >= most.map(|most| most - 1));
    }
}

/// The fits of the classes against the rest on sparse rows, with common first epochs if possible.
fn by_groups<L: Loss>(
    data: &Data,
    loss: L,
    (sdca, budget): (&Sdca, &Budget),
    (weighted, fit_intercept): (bool, bool),
    groups: &[Range<u32>],
) -> Vec<Fit> {
    let classes: Vec<u32> = data.counts.iter().map(|&k| (k as u32).min(4)).collect();
    let rows = sparse(data);
    let weights = weighted.then_some(&data.weights[..]);
    let mut fits = Vec::new();
    for group in groups {
        let targets = |class: u32| one_vs_rest::targets(&classes, class);
        let c = same_mean_q(data);
        let first = targets(group.start);
        let problem = posed(&rows, &first, weights, loss, c, fit_intercept).expect("valid");
        let heads = sdca
            .begin_together(&problem, &classes, group.clone(), budget, &mut NoMonitor)
            .expect("not interrupted");
        assert_eq!(heads.len(), group.len());
        for (class, head) in group.clone().zip(heads) {
            let y = targets(class);
            let problem = posed(&rows, &y, weights, loss, c, fit_intercept).expect("valid");
            let fit = sdca.go_on(&problem, budget, head, &mut NoMonitor);
            let fit = fit.expect("not interrupted");
            let solo = sdca
                .solve(&problem, budget, None, &mut NoMonitor)
                .expect("not interrupted");
            check_certificate(&fit, &solo, budget.tol);
            fits.push(fit);
        }
    }
    return fits;

    fn check_certificate(fit: &Fit, solo: &Fit, tol: f64) {
        if fit.stop == StopReason::Converged {
            assert!(fit.certificate.gap <= tol * fit.certificate.primal);
            let optimum = solo.certificate.primal - solo.certificate.gap;
            assert!(fit.certificate.primal >= optimum * (1.0 - 1e-12));
            assert!(fit.certificate.dual <= solo.certificate.primal * (1.0 + 1e-12));
        }
        // The history begins where both runs begin.
        let (own, other) = (&fit.history[0], &solo.history[0]);
        assert_eq!((own.epoch, own.certificate), (0.0, other.certificate));
        assert!(fit.history.is_sorted_by_key(|record| record.epoch));
        assert!(fit.history.is_sorted_by_key(|record| record.seconds));
        assert!(fit.history.is_sorted_by_key(|record| record.cpu_seconds));
    }
}

/// The `C` for which steps on rows with any number of columns are as long as on rows with `D`
/// columns and `C = 1`.
fn same_mean_q(data: &Data) -> Regularisation {
    Regularisation::C(D as f64 / data.n_cols as f64)
}

/// Enough columns to make Newton's method too expensive for the first epochs of a smooth loss.
const MANY: usize = 300;

fn sparse(data: &Data) -> Csr<'_, f64, i32> {
    Csr::new(
        Borrowed::new(&data.values),
        Borrowed::new(&data.indices),
        Borrowed::new(&data.indptr),
        data.n_cols,
    )
    .expect("valid")
}

#[test]
fn classes_that_begin_together_end_where_each_ends_alone() {
    let (data, wide) = (Data::new(N, D, 12), Data::new(N, MANY, 12));
    let settings = (&Sdca::default(), &budget(1e-5, 5000));
    for weighted in [false, true] {
        for fit_intercept in [false, true] {
            let kind = (weighted, fit_intercept);
            let bits = |fits: &[Fit]| -> Vec<u64> {
                assert!(fits.iter().all(|fit| fit.stop == StopReason::Converged));
                let coefs = fits.iter().flat_map(|fit| &fit.coef);
                coefs.map(|w| w.to_bits()).collect()
            };
            // One group, two groups, and one group per class.
            for size in [8, 3, 1] {
                let groups = &one_vs_rest::groups(5, size);
                let hinge = by_groups(&data, Hinge, settings, kind, groups);
                bits(&by_groups(&wide, SquaredHinge, settings, kind, groups));
                bits(&by_groups(&wide, Log, settings, kind, groups));
                let again = by_groups(&data, Hinge, settings, kind, groups);
                assert_eq!(bits(&hinge), bits(&again));
            }
        }
    }
}

#[test]
fn a_class_of_a_group_takes_the_steps_of_a_run_alone() {
    let wide = Data::new(N, MANY, 12);
    // The number of common epochs, so that the run ends together with them.
    fn check<L: Loss>(data: &Data, loss: L, epochs: usize, kinds: &[(bool, bool)]) {
        let sdca = Sdca::default();
        for &kind in kinds {
            for class in [0, 3] {
                let budget = budget(1e-9, epochs);
                let group = class..class + 1;
                let group = std::slice::from_ref(&group);
                let fits = by_groups(data, loss, (&sdca, &budget), kind, group);
                let classes: Vec<u32> = data.counts.iter().map(|&k| (k as u32).min(4)).collect();
                let y = one_vs_rest::targets(&classes, class);
                let weights = kind.0.then_some(&data.weights[..]);
                let (rows, c) = (sparse(data), same_mean_q(data));
                let problem = posed(&rows, &y, weights, loss, c, kind.1).expect("valid");
                // No intermediate evaluations, at which a single run might decide differently.
                let budget = Budget {
                    record_every: Some(epochs as f64),
                    ..budget
                };
                let solo = sdca.solve(&problem, &budget, None, &mut NoMonitor);
                let (fit, solo) = (&fits[0], solo.expect("not interrupted"));
                assert_eq!((fit.epochs, fit.steps), (solo.epochs, solo.steps));
                for (own, other) in fit.dual.iter().zip(&solo.dual) {
                    assert!((own - other).abs() < 1e-8, "{own} not {other}");
                }
            }
        }
    }
    let kinds = [(false, true), (true, true), (false, false), (true, false)];
    // Not the hinge: most rows start at a kink, where rounding decides whether a row has moved, and
    // so affects the passes.
    check(&wide, SmoothHinge::with_param(1.0), 6, &kinds);
    check(&wide, SquaredHinge, 6, &kinds);
    check(&wide, Log, 6, &kinds);
}

/// How many of two classes begin together.
fn count_heads<R: Stored, L: Loss>(
    rows: &R,
    data: &Data,
    loss: L,
    (sdca, budget): (&Sdca, &Budget),
    c: f64,
) -> usize {
    let y = &data.labels;
    let classes: Vec<u32> = y.iter().map(|&y| u32::from(y > 0.0)).collect();
    let problem = posed(rows, y, None, loss, Regularisation::C(c), true).expect("valid");
    let heads = sdca.begin_together(&problem, &classes, 0..2, budget, &mut NoMonitor);
    heads.expect("not interrupted").len()
}

#[test]
fn classes_begin_together_only_where_the_run_is_a_usual_one() {
    let data = Data::new(N, D, 12);
    let small = Data::new(60, D, 12);
    let usual = budget(1e-4, 1000);
    let heads = |data: &Data, is_sparse: bool, sdca: &Sdca, budget: &Budget, c: f64| {
        if is_sparse {
            count_heads(&sparse(data), data, Hinge, (sdca, budget), c)
        } else {
            let rows = &Dense::new(view(data)).expect("C order");
            count_heads(rows, data, Hinge, (sdca, budget), c)
        }
    };
    assert_eq!(heads(&data, true, &Sdca::default(), &usual, 1.0), 2);
    assert_eq!(heads(&data, false, &Sdca::default(), &usual, 1.0), 0);
    assert_eq!(heads(&small, true, &Sdca::default(), &usual, 1.0), 0);
    // Steps are short, or the run begins with modified SGD.
    assert_eq!(heads(&data, true, &Sdca::default(), &usual, 1e3), 0);
    assert_eq!(heads(&data, true, &Sdca::default(), &usual, 1e-3), 0);
    // Newton's method takes over at once.
    let plain = (&Sdca::default(), &usual);
    assert_eq!(
        count_heads(&sparse(&data), &data, SquaredHinge, plain, 1.0),
        0
    );
    let usually = Sdca::default;
    for sdca in [
        Sdca {
            accelerate: false,
            ..usually()
        },
        Sdca {
            sampling: Sampling::Random,
            ..usually()
        },
        Sdca {
            sampling: Sampling::Cyclic,
            ..usually()
        },
        Sdca {
            output: Output::Average,
            ..usually()
        },
        Sdca {
            first_epoch: FirstEpoch::Sgd,
            ..usually()
        },
    ] {
        assert_eq!(heads(&data, true, &sdca, &usual, 1.0), 0, "{sdca:?}");
    }
    let recorded = Budget {
        record_every: Some(1.0),
        ..usual.clone()
    };
    let sdca = Sdca::default();
    assert_eq!(heads(&data, true, &sdca, &recorded, 1.0), 2);
    let timed = Budget {
        max_time: Some(Duration::from_secs(3600)),
        ..usual.clone()
    };
    for budget in [timed, budget(0.0, 1000), budget(0.1, 1000), budget(1e-4, 7)] {
        assert_eq!(
            heads(&data, true, &Sdca::default(), &budget, 1.0),
            0,
            "{budget:?}"
        );
    }
}
