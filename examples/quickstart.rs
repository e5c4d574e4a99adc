//! Fit, predict, and read the certificate: logistic regression on generated rows.
//!
//! ```sh
//! cargo run --release --example quickstart
//! ```
#![allow(clippy::print_stdout)]

use ndarray::Array2;
use sdca_rs::prelude::*;

fn main() -> Result<(), Error> {
    // Points on a spiral, and which side of a line they are on; every tenth label is wrong.
    let x = Array2::from_shape_fn((500, 2), |(i, j)| {
        let t = 0.1 * i as f64;
        (1.0 + 0.01 * t) * if j == 0 { t.cos() } else { t.sin() }
    });
    let side = |i: usize| {
        if x[[i, 0]] + 0.5 * x[[i, 1]] > 0.2 {
            1.0
        } else {
            -1.0
        }
    };
    let y: Vec<f64> = (0..500)
        .map(|i| if i % 10 == 0 { -side(i) } else { side(i) })
        .collect();

    let problem = Problem::builder(Data::dense(&x)?, &y, Log).c(1.0).build()?;
    let fit = Sdca::default().fit(&problem)?;

    println!("{}", fit.certificate);
    println!("ended because: {}, after {} epochs", fit.stop, fit.epochs);
    println!("w = {:.3?}, b = {:.3}", fit.coef, fit.intercept);

    let rows = Data::dense(&[[1.0, 1.0], [-1.0, 0.0]])?;
    println!("labels of two new rows: {:?}", fit.predict(&rows)?);
    println!("probabilities of +1: {:.3?}", fit.probabilities(&rows)?);
    Ok(())
}
