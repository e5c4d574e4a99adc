//! Predictions agree with the definition, whatever the storage and the number of threads.

use std::ops::ControlFlow;

use ndarray::ArrayView2;
use sdca_rs::Error;
use sdca_rs::kernel::Borrowed;
use sdca_rs::predict::predictions;
use sdca_rs::rows::{Csr, Dense, Rows};
use sdca_rs::run::{HEARTBEAT, Monitor, NoMonitor, RunContext};

use crate::support::{Data, Stored};

const D: usize = 6;
const MODELS: usize = 20;

fn predict(
    rows: &impl Stored,
    coefs: &[f64],
    intercepts: &[f64],
    n_threads: usize,
) -> Result<Vec<f64>, Error> {
    let mut no_monitor = NoMonitor;
    let mut context = RunContext::new(None, &mut no_monitor);
    predictions(&rows.stored(), coefs, intercepts, n_threads, &mut context)
}

#[test]
fn any_number_of_threads_gives_the_bits_of_the_definition() {
    // Enough for more parts than fit between two heartbeats; the last part is incomplete.
    let data = Data::new(80_001, D, 1);
    let single: Vec<f32> = data.dense.iter().map(|&x| x as f32).collect();
    let shape = (data.n_rows, D);
    let dense = ArrayView2::from_shape(shape, &data.dense).expect("shape");
    let single = ArrayView2::from_shape(shape, &single).expect("shape");
    let (indices, indptr) = (Borrowed::new(&data.indices), Borrowed::new(&data.indptr));
    let sparse = Csr::new(Borrowed::new(&data.values), indices, indptr, D).expect("valid");
    check(&Dense::new(dense).expect("C order"), "dense");
    check(&Dense::new(single).expect("C order"), "float32");
    check(&sparse, "sparse");

    fn check(rows: &(impl Rows + Stored), what: &str) {
        let coefs: Vec<f64> = (0..D * MODELS).map(|k| (k as f64).sin()).collect();
        for n_models in [1, MODELS] {
            let coefs = &coefs[..D * n_models];
            let intercepts: Vec<f64> = (0..n_models).map(|k| k as f64 - 0.3).collect();
            let of_row = |i: usize| {
                let models = coefs.chunks_exact(D).zip(&intercepts);
                models.map(move |(coef, b)| rows.dot(i, coef) + b)
            };
            let expected: Vec<f64> = (0..rows.n_rows()).flat_map(of_row).collect();
            for n_threads in [1, 2, 3, 16] {
                let found = predict(rows, coefs, &intercepts, n_threads).expect("uninterrupted");
                assert!(
                    found == expected,
                    "{what}, {n_models} models, {n_threads} threads"
                );
            }
        }
    }
}

#[test]
fn models_must_fit_the_columns() {
    let x = [1.0, 2.0, 3.0, 4.0];
    let rows = Dense::new(ArrayView2::from_shape((2, 2), &x).expect("shape")).expect("C order");
    assert_eq!(
        predict(&rows, &[1.0, 0.0, 0.0, 1.0], &[0.5, 0.0], 2),
        Ok(vec![1.5, 2.0, 3.5, 4.0])
    );
    assert_eq!(predict(&rows, &[], &[], 2), Ok(vec![]));
    assert_eq!(
        predict(&rows, &[1.0, 0.0, 0.0], &[0.5], 2),
        Err(Error::Length {
            name: "coef",
            found: 3,
            expected: 2,
            why: "columns of X times models",
        })
    );
}

#[test]
fn predictions_can_be_interrupted() {
    struct Interrupting;
    impl Monitor for Interrupting {
        fn check(&mut self) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let x = vec![1.0; 1 << 21];
    let view = ArrayView2::from_shape((1 << 18, 8), &x).expect("shape");
    let rows = Dense::new(view).expect("C order");
    for n_threads in [1, 2] {
        let mut monitor = Interrupting;
        let mut context = RunContext::new(None, &mut monitor);
        // The next heartbeat from here on calls the monitor.
        std::thread::sleep(HEARTBEAT);
        let found = predictions(&rows.stored(), &[1.0; 8], &[0.0], n_threads, &mut context);
        assert_eq!(found, Err(Error::Interrupted));
    }
}
