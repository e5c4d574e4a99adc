//! The costs of epochs, evaluations and iterations of Newton's method as the chooser estimates them ("foreseen"),
//! beside those measured on this machine ("here").
//!
//! ```text
//! cargo bench --bench foreseen
//! ```
//!
//! The figures in `src/solver/schedule.rs` and `src/solver/hessian/cost.rs` are nanoseconds of one machine. Only their ratios
//! matter for a choice. So the last column compares the cost of an iteration of Newton's method in epochs, as measured,
//! with the estimate: their quotient, which is 1 if the estimate is right. The shortest of three runs counts, on one
//! thread.

#![allow(missing_docs, clippy::print_stdout)]

use std::time::Instant;

use ndarray::Array2;
use sdca_rs::data::Data;
use sdca_rs::loss::{Hinge, Log, Loss, Squared};
use sdca_rs::order::Generator;
use sdca_rs::prelude::*;
use sdca_rs::problem::Point;
use sdca_rs::run::{NoMonitor, Phase, RunContext};
use sdca_rs::solver::{Costs, costs};

/// Numbers in [-1, 1).
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut generator = Generator::new(seed);
    let mut number = || generator.below(1 << 40) as f64 / (1_u64 << 39) as f64 - 1.0;
    (0..n).map(|_| number()).collect()
}

/// Labels of a noisy plane through the rows.
fn labels(score: impl Iterator<Item = f64>, noise: &[f64]) -> Vec<f64> {
    score.zip(noise).map(|(s, e)| (s + e).signum()).collect()
}

fn shortest(work: impl Fn() -> f64) -> f64 {
    (0..3).map(|_| work()).fold(f64::INFINITY, f64::min)
}

/// Seconds of one epoch of plain SDCA.
fn epoch(problem: &Problem<'_>) -> f64 {
    let run = |max_epochs| {
        let budget = Budget {
            tol: 0.0,
            max_epochs,
            ..Budget::default()
        };
        let plain = Sdca {
            accelerate: false,
            ..Sdca::default()
        };
        let fit = plain.fit_within(problem, &budget).expect("valid");
        fit.history.last().expect("evaluated").seconds
    };
    shortest(|| (run(6) - run(1)) / 5.0)
}

/// Seconds of an evaluation.
fn evaluation(problem: &Problem<'_>) -> f64 {
    let budget = Budget {
        max_epochs: 2,
        ..Budget::default()
    };
    let fit = Sdca::default().fit_within(problem, &budget).expect("valid");
    shortest(|| {
        let mut none = NoMonitor;
        let context = &mut RunContext::new(None, &mut none);
        let (dual, mut point) = (fit.dual.iter().copied(), Point::default());
        let begun = Instant::now();
        problem
            .evaluate(dual, 1e-6, &mut point, context)
            .expect("valid");
        begun.elapsed().as_secs_f64()
    })
}

/// Seconds of one iteration of Newton's method, on average, if it was used.
fn iteration(problem: &Problem<'_>) -> Option<f64> {
    let budget = Budget {
        tol: 1e-9,
        max_epochs: 400,
        ..Budget::default()
    };
    let of_run = || {
        let fit = Sdca::default().fit_within(problem, &budget).expect("valid");
        let first = fit
            .history
            .iter()
            .position(|record| record.phase == Phase::Newton)?;
        let (before, last) = (fit.history[first.checked_sub(1)?], *fit.history.last()?);
        Some(2.0 * (last.seconds - before.seconds) / (last.epoch - before.epoch))
    };
    (0..3).filter_map(|_| of_run()).reduce(f64::min)
}

fn print<L: Loss>(name: &str, data: Data<'_>, y: &[f64], loss: L, c: f64) {
    let problem = Problem::builder(data, y, loss).c(c).build().expect("valid");
    let Costs {
        epoch: foreseen_epoch,
        evaluation: foreseen_evaluation,
        iteration: foreseen,
        method,
    } = costs(&problem);
    let (epoch, evaluation) = (1e9 * epoch(&problem), 1e9 * evaluation(&problem));
    print!(
        "| {name}, {} | {foreseen_epoch:.2e} | {epoch:.2e} | {foreseen_evaluation:.2e} | {evaluation:.2e} | {method} | {foreseen:.2e} ",
        L::NAME
    );
    match iteration(&problem) {
        Some(seconds) => {
            let measured = 1e9 * seconds;
            let ratio = measured / epoch / (foreseen / foreseen_epoch);
            println!("| {measured:.2e} | {ratio:.2} |");
        }
        None => println!("| not used | |"),
    }
}

fn dense(name: &str, n: usize, d: usize, c: f64) {
    let x = Array2::from_shape_vec((n, d), numbers(n * d, 1)).expect("n rows");
    let noise = numbers(n, 2);
    let score = |row: ndarray::ArrayView1<'_, f64>| row.iter().take(9).sum::<f64>();
    let y = labels(x.rows().into_iter().map(score), &noise);
    let data = || Data::dense(&x).expect("C order");
    print(name, data(), &y, Log, c);
    print(name, data(), &y, Squared, c);
    print(name, data(), &y, Hinge, c);
}

fn sparse(name: &str, n: usize, d: usize, per_row: usize, c: f64) {
    let mut generator = Generator::new(3);
    let (mut indices, mut indptr) = (Vec::new(), vec![0_u32]);
    for _ in 0..n {
        let mut row: Vec<u32> = (0..per_row)
            .map(|_| generator.below(d as u64) as u32)
            .collect();
        row.sort_unstable();
        row.dedup();
        indices.extend(row);
        indptr.push(indices.len() as u32);
    }
    let values = numbers(indices.len(), 4);
    let noise = numbers(n, 5);
    let rows = indptr.windows(2).map(|at| at[0] as usize..at[1] as usize);
    let plane = numbers(d, 6);
    let score = rows.map(|row| row.map(|k| values[k] * plane[indices[k] as usize]).sum());
    let y = labels(score, &noise);
    let data = || Data::csr(&indptr, &indices, &values, d).expect("valid");
    print(name, data(), &y, Log, c);
    print(name, data(), &y, Hinge, c);
}

fn main() {
    println!("In nanoseconds, foreseen and measured.\n");
    println!(
        "| data, loss | epoch | here | evaluation | here | Newton's method | an iteration | here | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    dense("dense 50000 x 20", 50_000, 20, 1.0);
    dense("dense 20000 x 200", 20_000, 200, 1.0);
    dense("dense 300 x 2000", 300, 2000, 1.0);
    sparse("sparse 50000 x 100, 10 in a row", 50_000, 100, 10, 1.0);
    sparse("sparse 5000 x 20000, 30 in a row", 5000, 20_000, 30, 100.0);
}
