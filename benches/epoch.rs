//! Kernels on one row, and whole epochs for each loss and storage.
//!
//! `cargo bench`; throughput is in stored entries. The id of a measurement carries all parameters.

#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::ArrayView2;
use sdca_rs::kernel::{Loan, dense_axpy, dense_dot, sparse_axpy, sparse_dot};
use sdca_rs::loss::{Loss, SPECS, Target, Visitor, dispatch};
use sdca_rs::order::Generator;
use sdca_rs::problem::{Problem, Regularisation};
use sdca_rs::rows::{Csr, Dense, Rows};
use sdca_rs::run::{Budget, Unwatched};
use sdca_rs::solver::{FirstEpoch, Sdca, Solver};

fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut generator = Generator::new(seed);
    (0..n)
        .map(|_| generator.below(1 << 30) as f64 / (1u64 << 29) as f64 - 1.0)
        .collect()
}

fn columns(n: usize, n_cols: usize, seed: u64) -> Vec<u32> {
    let mut generator = Generator::new(seed);
    (0..n)
        .map(|_| generator.below(n_cols as u64) as u32)
        .collect()
}

fn kernels(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernel");
    for len in [8, 100, 1000] {
        group.throughput(Throughput::Elements(len as u64));
        let (x, mut w) = (numbers(len, 1), numbers(len, 2));
        let single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let id = |name: &str| BenchmarkId::new(name, len);
        group.bench_function(id("dense_dot/f64"), |b| {
            b.iter(|| dense_dot(black_box(&x), &w));
        });
        group.bench_function(id("dense_dot/f32"), |b| {
            b.iter(|| dense_dot(black_box(&single), &w));
        });
        group.bench_function(id("dense_axpy/f64"), |b| {
            b.iter(|| dense_axpy(1e-9, black_box(&x), &mut w));
        });
        let indices = columns(len, 100_000, 3);
        let mut w = numbers(100_000, 4);
        let (values, indices) = (Loan::new(&x), Loan::new(&indices));
        group.bench_function(id("sparse_dot/f64/u32"), |b| {
            b.iter(|| sparse_dot(values, indices, black_box(&w)));
        });
        group.bench_function(id("sparse_axpy/f64/u32"), |b| {
            b.iter(|| sparse_axpy(1e-9, values, indices, black_box(&mut w)));
        });
    }
    group.finish();
}

/// Runs the given number of SDCA epochs, the evaluations at both ends included.
struct Epochs<'a, R> {
    rows: &'a R,
    reals: &'a [f64],
    count: usize,
}

impl<R: Rows> Visitor for Epochs<'_, R> {
    type Out = f64;

    fn visit<L: Loss>(self, loss: L) -> f64 {
        let targets: Vec<f64> = match L::TARGET {
            Target::Label => self.reals.iter().map(|y| y.signum()).collect(),
            Target::Real => self.reals.to_vec(),
            Target::NonNegative => self.reals.iter().map(|y| (3.0 * y.abs()).round()).collect(),
        };
        let problem = Problem::new(
            self.rows,
            &targets,
            None,
            loss,
            Regularisation::C(1.0),
            true,
        )
        .expect("a valid problem");
        let sdca = Sdca {
            first_epoch: FirstEpoch::Sdca,
            ..Sdca::default()
        };
        let budget = Budget {
            tol: 0.0,
            max_epochs: self.count,
            ..Budget::default()
        };
        sdca.solve(&problem, &budget, None, &mut Unwatched)
            .expect("nobody interrupts")
            .certificate
            .gap
    }
}

fn epochs(criterion: &mut Criterion) {
    const EPOCHS: usize = 5;
    let (n_rows, n_cols, per_row) = (20_000, 50, 12);
    let mut group = criterion.benchmark_group(format!("sdca/{EPOCHS}_epochs"));
    group.sample_size(10);
    let reals = numbers(n_rows, 5);
    let x = numbers(n_rows * n_cols, 6);
    let dense =
        Dense::new(ArrayView2::from_shape((n_rows, n_cols), &x).expect("shape")).expect("C order");
    let wide = 20_000;
    let (values, indices) = (
        numbers(n_rows * per_row, 7),
        columns(n_rows * per_row, wide, 8),
    );
    let indptr: Vec<u64> = (0..=n_rows as u64).map(|i| i * per_row as u64).collect();
    let sparse = Csr::new(
        Loan::new(&values),
        Loan::new(&indices),
        Loan::new(&indptr),
        wide,
    )
    .expect("valid");
    for spec in SPECS {
        group.throughput(Throughput::Elements((EPOCHS * n_rows * n_cols) as u64));
        let id = BenchmarkId::new(
            format!("dense/f64/{}", spec.name),
            format!("{n_rows}x{n_cols}"),
        );
        let work = || Epochs {
            rows: &dense,
            reals: &reals,
            count: EPOCHS,
        };
        group.bench_function(id, |b| b.iter(|| dispatch(spec.name, None, work())));
        group.throughput(Throughput::Elements((EPOCHS * n_rows * per_row) as u64));
        let shape = format!("{n_rows}x{wide}/{per_row}");
        let id = BenchmarkId::new(format!("csr/f64/u32/{}", spec.name), shape);
        let work = || Epochs {
            rows: &sparse,
            reals: &reals,
            count: EPOCHS,
        };
        group.bench_function(id, |b| b.iter(|| dispatch(spec.name, None, work())));
    }
    group.finish();
}

criterion_group!(benches, kernels, epochs);
criterion_main!(benches);
