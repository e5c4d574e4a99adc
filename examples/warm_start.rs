//! Full control: one set of rows for many values of C, each fit from where the last one ended, with a closure that
//! watches the gap fall.
//!
//! ```sh
//! cargo run --release --example warm_start
//! ```
#![allow(clippy::print_stdout)]

use std::ops::ControlFlow;
use std::sync::Arc;

use ndarray::Array2;
use sdca_rs::prelude::*;

fn main() -> Result<(), Error> {
    let (n_rows, n_cols) = (1000, 20);
    let x = Array2::from_shape_fn((n_rows, n_cols), |(i, j)| {
        ((i * i + 3 * i * j + 7 * j) as f64).sin()
    });
    let truth = |i: usize| x[[i, 0]] - 2.0 * x[[i, 1]] + 0.5;
    // Every twentieth target is far off, which the absolute loss takes lightly.
    let y: Vec<f64> = (0..n_rows)
        .map(|i| {
            truth(i)
                + if i % 20 == 0 {
                    50.0
                } else {
                    0.1 * (i as f64).cos()
                }
        })
        .collect();

    let data = Arc::new(Data::dense(&x)?);
    let budget = Budget {
        tol: 1e-6,
        ..Budget::default()
    };
    let mut last: Option<Fit> = None;
    for c in [0.01, 0.1, 1.0, 10.0] {
        let problem = Problem::builder(Arc::clone(&data), &y, Absolute)
            .c(c)
            .build()?;
        let mut evaluations = 0;
        let mut watch = |_: &Progress<'_>| {
            evaluations += 1;
            ControlFlow::Continue(())
        };
        let start = last.as_ref().map(Start::from);
        let fit = Sdca::default().solve(&problem, &budget, start, &mut watch)?;
        println!("C = {c}: {} ({} evaluations)", fit.certificate, evaluations);
        last = Some(fit);
    }
    if let Some(fit) = last {
        println!("w = {:.3?} ..., b = {:.3}", &fit.coef[..3], fit.intercept);
    }
    Ok(())
}
