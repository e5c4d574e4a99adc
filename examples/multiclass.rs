//! Several classes: a model for each against the rest, each with its certificate.
//!
//! ```sh
//! cargo run --release --example multiclass
//! ```
#![allow(clippy::print_stdout)]

use ndarray::Array2;
use sdca_rs::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Flower {
    Daisy,
    Rose,
    Tulip,
}

fn main() -> Result<(), Error> {
    use Flower::{Daisy, Rose, Tulip};
    // A cloud of points around each of three centres.
    let centres = [
        (Daisy, [1.0, 0.0]),
        (Rose, [-0.5, 0.9]),
        (Tulip, [-0.5, -0.9]),
    ];
    let labels: Vec<Flower> = (0..300).map(|i| centres[i % 3].0).collect();
    let x = Array2::from_shape_fn((300, 2), |(i, j)| {
        let angle = (7 * i + 50 * j) as f64;
        centres[i % 3].1[j] + 0.8 * angle.sin() * (0.1 * i as f64).cos()
    });

    let classifier = Classifier::builder(Data::dense(&x)?, &labels, Log)
        .c(10.0)
        .n_threads(3)
        .fit(&Sdca::default())?;
    for (class, fit) in classifier.classes.iter().zip(&classifier.fits) {
        println!("{class:?} against the rest: {}", fit.certificate);
    }

    let predicted = classifier.predict(&Data::dense(&x)?)?;
    let right = predicted.iter().zip(&labels).filter(|(p, y)| p == y);
    println!("{} of {} are right", right.count(), labels.len());

    let rows = Data::dense(&[[0.9, 0.1], [-0.2, -0.2]])?;
    println!("two new rows: {:?}", classifier.predict(&rows)?);
    println!("{:.3}", classifier.probabilities(&rows)?);
    Ok(())
}
