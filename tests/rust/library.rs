//! The entry points for Rust users: data from arrays and slices, builders, predictions,
//! classifiers, and the features `sprs` and `serde`.

use std::ops::ControlFlow;

use ndarray::{Array1, Array2, ArrayView2, s};
use sdca_rs::data::{ColumnIndex, Number, Storage};
use sdca_rs::kernel::Borrowed;
use sdca_rs::loss::Loss;
use sdca_rs::one_vs_rest::OneVsRest;
use sdca_rs::prelude::*;
use sdca_rs::rows::{Csr, Dense};

use crate::support::Data as Generated;

const N: usize = 300;
const D: usize = 7;

fn view(data: &Generated) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((data.n_rows, data.n_cols), &data.dense).expect("shape")
}

fn csr(data: &Generated) -> Data<'_> {
    Data::csr(&data.indptr, &data.indices, &data.values, data.n_cols).expect("valid")
}

/// The same numbers in another type.
fn converted<A: Copy, B: TryFrom<A>>(numbers: &[A]) -> Vec<B> {
    let convert = |&number| B::try_from(number).ok().expect("in range");
    numbers.iter().map(convert).collect()
}

fn tight() -> Budget {
    Budget {
        tol: 1e-10,
        ..Budget::default()
    }
}

fn fit_of(data: Data<'_>, y: &[f64], loss: impl Loss) -> Fit {
    let problem = Problem::builder(data, y, loss).c(3.0).build();
    let fit = Sdca::default().fit_within(&problem.expect("valid"), &tight());
    fit.expect("no error")
}

/// A fit without its running times.
fn timeless(mut fit: Fit) -> Fit {
    for record in &mut fit.history {
        (record.seconds, record.cpu_seconds) = (0.0, 0.0);
    }
    fit
}

fn message<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("found no error"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn dense_and_sparse_data_of_the_same_matrix_agree() {
    let data = Generated::new(N, D, 3);
    for weights in [None, Some(&data.weights)] {
        let build = |sparse: bool| {
            let rows = if sparse {
                csr(&data)
            } else {
                Data::dense(view(&data)).expect("valid")
            };
            match weights {
                None => rows,
                Some(c) => rows.with_weights(c).expect("valid"),
            }
        };
        check(&build, &data, Log);
        check(&build, &data, Hinge);
        check(&build, &data, Squared);
        check(&build, &data, Poisson);
    }

    fn check<'a>(build: &dyn Fn(bool) -> Data<'a>, data: &'a Generated, loss: impl Loss) {
        let y = data.targets(target_of(&loss));
        let (dense, sparse) = (fit_of(build(false), y, loss), fit_of(build(true), y, loss));
        let (p, q) = (dense.certificate, sparse.certificate);
        // Each optimum lies within the gap of the other.
        let apart = (p.primal - q.primal).abs();
        assert!(apart <= p.gap.max(q.gap) + 1e-13 * p.primal, "{p} {q}");
        let rows = build(false);
        let mut predictions = dense.decision_function(&rows).expect("same columns");
        let others = dense.decision_function(&build(true)).expect("same columns");
        for (p, q) in predictions.iter().zip(&others) {
            assert!((p - q).abs() <= 1e-13 * (1.0 + p.abs()));
        }
        let others = sparse.decision_function(&rows).expect("same columns");
        for (p, q) in predictions.drain(..).zip(others) {
            assert!((p - q).abs() <= 1e-3 * (1.0 + p.abs()), "{p} {q}");
        }
    }

    fn target_of<L: Loss>(_: &L) -> sdca_rs::loss::Target {
        L::TARGET
    }
}

#[test]
fn the_short_constructors_give_the_bits_of_the_long_ones() {
    let data = Generated::new(N, D, 4);
    let long = |rows: Storage<'_>| {
        let rows = Data::new(rows, Some(&data.weights)).expect("valid");
        let problem = Problem::new(rows, &data.labels, Log, Regularisation::C(3.0), true);
        let problem = problem.expect("valid");
        let fit = Sdca::default().solve(&problem, &tight(), None, &mut NoMonitor);
        timeless(fit.expect("no error"))
    };
    let short = |rows: Result<Data<'_>, Error>| {
        let rows = rows.and_then(|rows| rows.with_weights(&data.weights));
        timeless(fit_of(rows.expect("valid"), &data.labels, Log))
    };

    let expected = long(Dense::new(view(&data)).expect("C order").into());
    assert_eq!(short(Data::dense(view(&data))), expected);
    assert_eq!(short(Data::dense(&view(&data).to_owned())), expected);

    let (indices, indptr) = (Borrowed::new(&data.indices), Borrowed::new(&data.indptr));
    let rows = Csr::new(Borrowed::new(&data.values), indices, indptr, D).expect("valid");
    let expected = long(rows.into());
    every_index_type(&data, &data.values, &|rows| {
        assert_eq!(short(rows), expected);
    });

    let single: Vec<f32> = data.values.iter().map(|&x| x as f32).collect();
    let rows = Csr::new(Borrowed::new(&single), indices, indptr, D).expect("valid");
    let expected = long(rows.into());
    every_index_type(&data, &single, &|rows| assert_eq!(short(rows), expected));
}

/// Runs `check` on the matrix with column indices and row pointers of all types.
fn every_index_type<F: Number>(
    data: &Generated,
    values: &[F],
    check: &dyn Fn(Result<Data<'_>, Error>),
) {
    fn with<I: ColumnIndex + TryFrom<i32>, F: Number>(
        data: &Generated,
        values: &[F],
        check: &dyn Fn(Result<Data<'_>, Error>),
    ) {
        let indices: Vec<I> = converted(&data.indices);
        check(Data::csr(&data.indptr, &indices, values, D));
        let indptr: Vec<usize> = converted(&data.indptr);
        check(Data::csr(&indptr, &indices, values, D));
        let indptr: Vec<u32> = converted(&data.indptr);
        check(Data::csr(&indptr, &indices, values, D));
    }
    with::<i32, F>(data, values, check);
    with::<i64, F>(data, values, check);
    with::<u32, F>(data, values, check);
    with::<u64, F>(data, values, check);
    with::<usize, F>(data, values, check);
}

#[test]
fn rows_of_one_value_each_are_read_without_their_values() {
    let data = Generated::with_one_value_in_each_row(N, D, 5);
    assert!(matches!(csr(&data).storage(), Storage::PatternI32(_)));
    let indices: Vec<usize> = converted(&data.indices);
    let rows = Data::csr(&data.indptr, &indices, &data.values, D).expect("valid");
    assert!(matches!(rows.storage(), Storage::PatternI64(_)));
    let (one, other) = (
        fit_of(rows, &data.labels, Log),
        fit_of(Data::dense(view(&data)).expect("valid"), &data.labels, Log),
    );
    let apart = (one.certificate.primal - other.certificate.primal).abs();
    assert!(apart <= 1e-10 * other.certificate.primal);
}

#[test]
fn errors_name_the_argument_what_was_found_and_what_was_expected() {
    let x = [[0.0, 1.0], [1.0, 1.0], [2.0, -1.0]];
    let dense = || Data::dense(&x).expect("valid");
    assert_eq!(
        message(Data::dense(&Array2::<f32>::zeros((1, 0)))),
        "X: found 1 rows and 0 columns, expected at least one of each"
    );
    let csr = |indptr: &[u32], indices: &[u32]| message(Data::csr(indptr, indices, &[1.0; 3], 4));
    assert_eq!(
        csr(&[0, 1, 3], &[0, 2, u32::MAX]),
        "X.indices: found column 4294967295, expected 0 <= column < 4"
    );
    assert_eq!(
        csr(&[0, 1, 3], &[0, 2, 2]),
        "X.indices: found column 2 twice in row 1, expected each column at most once"
    );
    assert_eq!(
        csr(&[0, 1, 4], &[0, 2, 3]),
        "X.indptr: found 4 non-zeros, expected at most 3, the length of X.indices"
    );
    assert_eq!(
        csr(&[], &[]),
        "X: found 0 rows and 4 columns, expected at least one of each"
    );
    assert_eq!(
        message(dense().with_weights(&[1.0, 2.0])),
        "sample_weight: found length 2, expected 3 (one for each row of X)"
    );
    let every_other = Array1::<f64>::ones(6);
    assert_eq!(
        message(dense().with_weights(every_other.slice(s![..;2]))),
        "sample_weight: found strides [2], expected a contiguous array"
    );
    let problem = |y: &[f64], c: f64| message(Problem::builder(dense(), y, Log).c(c).build());
    assert_eq!(
        problem(&[1.0, -1.0], 1.0),
        "y: found length 2, expected 3 (one for each row of X)"
    );
    assert_eq!(
        problem(&[1.0, -1.0, 0.0], 1.0),
        "y: found 0 at row 2, expected -1 or +1 for loss \"log\""
    );
    assert_eq!(
        problem(&[1.0, -1.0, 1.0], -2.0),
        "C: found -2, expected a finite number > 0"
    );
    assert_eq!(
        message(Quantile::new(1.0)),
        "loss_param: found 1, expected quantile to be a number strictly between 0 and 1 for loss \"quantile\""
    );

    let fit = fit_of(dense(), &[1.0, -1.0, 1.0], Hinge);
    let wide = Data::dense(&[[1.0, 2.0, 3.0]]).expect("valid");
    assert_eq!(
        message(fit.predict(&wide)),
        "X: found 3 columns, expected 2, one for each coefficient of the model"
    );
    assert_eq!(
        message(fit.probabilities(&dense())),
        "loss: found one without probabilities, expected log"
    );
}

#[test]
fn a_builder_says_what_problem_new_says() {
    let data = Generated::new(N, D, 6);
    let dense = || Data::dense(view(&data)).expect("valid");
    for (built, strength, intercept) in [
        (
            Problem::builder(dense(), &data.reals, Squared),
            Regularisation::C(1.0),
            true,
        ),
        (
            Problem::builder(dense(), &data.reals, Squared)
                .c(0.1)
                .fit_intercept(false),
            Regularisation::C(0.1),
            false,
        ),
        (
            Problem::builder(dense(), &data.reals, Squared).lambda(0.2),
            Regularisation::Lambda(0.2),
            true,
        ),
    ] {
        let built = built.build().expect("valid");
        let new = Problem::new(dense(), &data.reals, Squared, strength, intercept);
        let new = new.expect("valid");
        assert_eq!(built.lambda(), new.lambda());
        assert_eq!(built.fit_intercept(), new.fit_intercept());
        let sdca = Sdca::default();
        let solved = sdca.solve(&new, &Budget::default(), None, &mut NoMonitor);
        assert_eq!(
            timeless(sdca.fit(&built).expect("no error")),
            timeless(solved.expect("no error"))
        );
    }
}

#[test]
fn losses_are_checked_and_have_defaults() {
    let quantile = Quantile::new(0.9).expect("valid");
    assert!((quantile.value(0.0, 2.0) - 1.8).abs() < 1e-15);
    assert!((Quantile::default().value(0.0, 2.0) - 1.0).abs() < 1e-15);
    assert!(Huber::new(f64::NAN).is_err());
    assert!(EpsilonInsensitive::new(-0.1).is_err());
    assert!(SquaredEpsilonInsensitive::new(0.0).is_ok());
    assert!(SmoothHinge::new(0.0).is_err());
    assert_eq!(SmoothHinge::default().smoothness(), 1.0);
}

#[test]
fn predictions_are_in_the_units_of_the_targets() {
    let data = Generated::new(N, D, 7);
    let dense = || Data::dense(view(&data)).expect("valid");
    let scores = |fit: &Fit| -> Vec<f64> {
        let row = |i: usize| &data.dense[i * D..][..D];
        let dot = |i: usize| {
            row(i)
                .iter()
                .zip(&fit.coef)
                .map(|(x, w)| x * w)
                .sum::<f64>()
        };
        (0..N).map(|i| dot(i) + fit.intercept).collect()
    };
    let close = |found: &[f64], expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        for (p, q) in found.iter().zip(expected) {
            assert!((p - q).abs() <= 1e-12 * (1.0 + q.abs()), "{p} {q}");
        }
    };

    let fit = fit_of(dense(), &data.reals, Huber::default());
    close(&fit.predict(&dense()).expect("fits"), &scores(&fit));

    let fit = fit_of(dense(), &data.counts, Poisson);
    let expected: Vec<f64> = scores(&fit).into_iter().map(f64::exp).collect();
    close(&fit.predict(&dense()).expect("fits"), &expected);
    // With an intercept, the mean of the predictions is the mean of the targets.
    let total: f64 = data.counts.iter().sum();
    assert!((expected.iter().sum::<f64>() - total).abs() < 1e-3 * total);

    let fit = fit_of(dense(), &data.labels, Log);
    let scores = scores(&fit);
    close(&fit.decision_function(&dense()).expect("fits"), &scores);
    let probabilities = fit.probabilities(&dense()).expect("logistic");
    let expected: Vec<f64> = scores.iter().map(|p| 1.0 / (1.0 + (-p).exp())).collect();
    close(&probabilities, &expected);
    let labels = fit.predict(&dense()).expect("fits");
    for (label, p) in labels.iter().zip(&probabilities) {
        assert_eq!(*label, if *p > 0.5 { 1.0 } else { -1.0 });
    }
}

/// A word for the class of each row, which is the position of the largest of its first entries; and
/// class numbers in the alphabetical order of the words.
fn labelled(data: &Generated, names: &[&'static str]) -> (Vec<&'static str>, Vec<u32>) {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let of_row = |row: &[f64]| {
        let largest = (0..names.len()).max_by(|&j, &k| row[j].total_cmp(&row[k]));
        names[largest.expect("a name")]
    };
    let labels: Vec<&str> = data.dense.chunks(data.n_cols).map(of_row).collect();
    let number = |label: &&str| sorted.binary_search(label).expect("a name") as u32;
    let numbers = labels.iter().map(number).collect();
    (labels, numbers)
}

#[test]
fn a_classifier_is_one_vs_rest_with_names() {
    let data = Generated::new(N, D, 8);
    let (labels, numbers) = labelled(&data, &["oak", "beech", "elm", "ash"]);
    let fit = |rows: Data<'_>, n_threads: usize| {
        let builder = Classifier::builder(rows, &labels, Log)
            .c(2.0)
            .budget(tight());
        let classifier = builder.n_threads(n_threads).fit(&Sdca::default());
        classifier.expect("no error")
    };
    let classifier = fit(csr(&data), 1);
    assert_eq!(classifier.classes, ["ash", "beech", "elm", "oak"]);

    let c = Regularisation::C(2.0);
    let problems = OneVsRest::new(csr(&data), (&numbers, 4), Log, c, true);
    let fits = problems.fit(&Sdca::default(), &tight(), None, 1, &NoMonitor);
    for (found, expected) in classifier.fits.iter().zip(fits.expect("no error")) {
        assert_eq!(
            (&found.coef, found.intercept),
            (&expected.coef, expected.intercept)
        );
    }
    for (found, one) in fit(csr(&data), 3).fits.into_iter().zip(&classifier.fits) {
        assert_eq!(found.coef, one.coef);
    }

    let rows = csr(&data);
    let scores = classifier.decision_function(&rows).expect("fits");
    let probabilities = classifier.probabilities(&rows).expect("logistic");
    let predicted = classifier.predict(&rows).expect("fits");
    assert_eq!(scores.dim(), (N, 4));
    for (k, fit) in classifier.fits.iter().enumerate() {
        let of_class = fit.decision_function(&rows).expect("fits");
        assert_eq!(scores.column(k).to_vec(), of_class);
    }
    for i in 0..N {
        let k = classifier
            .classes
            .binary_search(&predicted[i])
            .expect("known");
        assert!(scores.row(i).iter().all(|&score| score <= scores[[i, k]]));
        let row = probabilities.row(i);
        assert!((row.sum() - 1.0).abs() < 1e-14);
        assert!(row.iter().all(|&p| 0.0 < p && p <= row[k]));
    }
    // The model has learnt something.
    let right = predicted
        .iter()
        .zip(&labels)
        .filter(|(p, y)| p == y)
        .count();
    assert!(right > 3 * N / 4, "{right}");
}

#[test]
fn two_classes_have_a_single_fit() {
    let data = Generated::new(N, D, 9);
    let names: Vec<String> = data
        .labels
        .iter()
        .map(|&y| if y > 0.0 { "yes" } else { "no" }.to_owned())
        .collect();
    let classifier = Classifier::builder(csr(&data), &names, Log)
        .c(3.0)
        .budget(tight());
    let classifier = classifier.fit(&Sdca::default()).expect("no error");
    assert_eq!(classifier.classes, ["no", "yes"]);
    let fit = fit_of(csr(&data), &data.labels, Log);
    assert_eq!(
        classifier
            .fits
            .iter()
            .cloned()
            .map(timeless)
            .collect::<Vec<_>>(),
        [timeless(fit.clone())]
    );
    let rows = csr(&data);
    let labels = fit.predict(&rows).expect("fits");
    let found = classifier.predict(&rows).expect("fits");
    for (label, name) in labels.iter().zip(&found) {
        assert_eq!(*label > 0.0, name == "yes");
    }
    let probabilities = classifier.probabilities(&rows).expect("logistic");
    assert_eq!(probabilities.dim(), (N, 2));
    assert_eq!(
        probabilities.column(1).to_vec(),
        fit.probabilities(&rows).expect("logistic")
    );
    for row in probabilities.rows() {
        assert!((row.sum() - 1.0).abs() < 1e-14);
    }
}

#[test]
fn rows_of_weight_0_have_no_class_of_their_own() {
    let x = [
        [0.0, 1.0],
        [1.0, 0.5],
        [2.0, -1.0],
        [-1.0, -1.0],
        [5.0, 5.0],
    ];
    let labels = [10, 10, 20, 30, 15];
    let present = Data::dense(&x).and_then(|data| data.with_weights(&[1.0, 1.0, 2.0, 1.0, 0.0]));
    let absent = Data::dense(&x[..4]).and_then(|data| data.with_weights(&[1.0, 1.0, 2.0, 1.0]));
    let fit = |data: Data<'_>, labels: &[i32]| {
        let classifier = Classifier::builder(data, labels, Hinge).budget(tight());
        classifier.fit(&Sdca::default())
    };
    let with = fit(present.expect("valid"), &labels).expect("no error");
    let without = fit(absent.expect("valid"), &labels[..4]).expect("no error");
    assert_eq!(with.classes, [10, 20, 30]);
    for (with, without) in with.fits.iter().zip(&without.fits) {
        let apart = (with.certificate.primal - without.certificate.primal).abs();
        assert!(apart <= 1e-9 * with.certificate.primal);
    }

    let weights = [1.0, 1.0, 0.0, 0.0, 0.0];
    let one = Data::dense(&x).and_then(|data| data.with_weights(&weights));
    assert_eq!(fit(one.expect("valid"), &labels), Err(Error::OneClass));
    assert_eq!(
        message(fit(Data::dense(&x).expect("valid"), &labels[..4])),
        "labels: found length 4, expected 5 (one for each row of X)"
    );
    let torn = Classifier {
        classes: vec![1],
        ..with
    };
    let error = message(torn.predict(&Data::dense(&x).expect("valid")));
    assert!(
        error.starts_with("fits: found length 3, expected 1"),
        "{error}"
    );
}

#[test]
fn a_closure_watches_and_ends_a_run() {
    let data = Generated::new(N, D, 10);
    let problem = Problem::builder(csr(&data), &data.labels, Log).build();
    let problem = problem.expect("valid");
    let mut gaps = Vec::new();
    let mut monitor = |progress: &Progress<'_>| {
        gaps.push(progress.record.certificate.gap);
        ControlFlow::Break(())
    };
    let fit = Sdca::default().solve(&problem, &tight(), None, &mut monitor);
    let fit = fit.expect("no error");
    assert_eq!(fit.stop, StopReason::Callback);
    assert_eq!(gaps, [fit.certificate.gap]);
}

#[cfg(feature = "sprs")]
#[test]
fn a_matrix_of_sprs_is_the_same_rows() {
    use sprs::CsMatI;

    let data = Generated::new(N, D, 11);
    let indices: Vec<usize> = converted(&data.indices);
    let indptr: Vec<usize> = converted(&data.indptr);
    let x = CsMatI::new((N, D), indptr, indices, data.values.clone());
    let expected = timeless(fit_of(csr(&data), &data.labels, Log));
    let rows = Data::sprs(x.view()).expect("CSR");
    assert_eq!(timeless(fit_of(rows, &data.labels, Log)), expected);
    assert!(message(Data::sprs(x.to_csc().view())).starts_with("X: found a CSC matrix"));

    let narrow: CsMatI<f64, u32, u64> = x.to_other_types();
    let rows = Data::sprs(narrow.view()).expect("CSR");
    assert_eq!(timeless(fit_of(rows, &data.labels, Log)), expected);

    // A slice of the rows: row pointers do not start at 0.
    let rows = Data::sprs(x.slice_outer(20..60)).expect("CSR");
    let some = Data::dense(view(&data).slice_move(s![20..60, ..])).expect("valid");
    assert_eq!((rows.n_rows(), rows.n_cols()), (40, D));
    let (p, q) = (
        expected.decision_function(&rows).expect("fits"),
        expected.decision_function(&some).expect("fits"),
    );
    for (p, q) in p.iter().zip(q) {
        assert!((p - q).abs() <= 1e-13 * (1.0 + q.abs()));
    }
}

#[cfg(feature = "serde")]
mod stored {
    use std::fmt::Debug;

    use sdca_rs::order::Sampling;
    use sdca_rs::run::Record;
    use sdca_rs::solver::{
        Asdca, DualGradient, FirstEpoch, LearningRate, Output, Pegasos, Subgradient,
    };
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;

    fn there_and_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
        let text = serde_json::to_string(value).expect("a format for all of it");
        let back: T = serde_json::from_str(&text).expect("its own text");
        assert_eq!(back, *value, "{text}");
    }

    #[test]
    fn fits_classifiers_and_streams_come_back() {
        let data = Generated::new(N, D, 12);
        let fit = fit_of(csr(&data), &data.labels, Hinge);
        there_and_back(&fit);
        there_and_back(&fit.certificate);
        there_and_back::<Vec<Record>>(&fit.history);

        let (labels, _) = labelled(&data, &["oak", "beech", "elm"]);
        let labels: Vec<String> = labels.into_iter().map(str::to_owned).collect();
        let classifier = Classifier::builder(csr(&data), &labels, Log).fit(&Sdca::default());
        let classifier = classifier.expect("no error");
        there_and_back(&classifier);
        let text = serde_json::to_string(&classifier).expect("stored");
        let back: Classifier<String> = serde_json::from_str(&text).expect("read");
        let rows = csr(&data);
        assert_eq!(back.predict(&rows), classifier.predict(&rows));

        let problem = Problem::builder(csr(&data), &data.labels, Log).build();
        let problem = problem.expect("valid");
        let stream = Pegasos::default().partial_solve(&problem, None, &mut NoMonitor);
        there_and_back(&stream.expect("no error"));
    }

    #[test]
    fn a_fit_predicts_without_its_dual_values_and_history() {
        let data = Generated::new(N, D, 13);
        let fit = fit_of(csr(&data), &data.counts, Poisson);
        let model = Fit {
            dual: Vec::new(),
            history: Vec::new(),
            ..fit.clone()
        };
        let text = serde_json::to_string(&model).expect("stored");
        assert!(text.len() < 1000, "{text}");
        let back: Fit = serde_json::from_str(&text).expect("read");
        let rows = csr(&data);
        assert_eq!(back.predict(&rows), fit.predict(&rows));
    }

    #[test]
    fn settings_come_back_and_have_defaults() {
        there_and_back(&Sdca {
            seed: u64::MAX,
            output: Output::Average,
            first_epoch: FirstEpoch::Sgd,
            ..Sdca::default()
        });
        there_and_back(&Asdca::default());
        there_and_back(&Pegasos {
            learning_rate: LearningRate::InvScaling {
                eta0: Some(0.1),
                power: 0.5,
            },
            ..Pegasos::default()
        });
        there_and_back(&Subgradient::default());
        there_and_back(&DualGradient::default());
        there_and_back(&Regularisation::Lambda(1e-3));
        there_and_back(&Budget {
            max_time: Some(std::time::Duration::from_millis(1500)),
            record_every: Some(0.25),
            ..Budget::default()
        });

        let sdca: Sdca = serde_json::from_str(r#"{"sampling": "cyclic"}"#).expect("valid");
        let expected = Sdca {
            sampling: Sampling::Cyclic,
            ..Sdca::default()
        };
        assert_eq!(sdca, expected);
        let budget: Budget = serde_json::from_str(r#"{"tol": 1e-6}"#).expect("valid");
        assert_eq!((budget.tol, budget.max_epochs), (1e-6, 1000));
        // A misspelt field is an error.
        let error = serde_json::from_str::<Budget>(r#"{"tolerance": 1e-6}"#);
        assert!(
            error
                .expect_err("unknown")
                .to_string()
                .contains("tolerance")
        );
    }
}
