//! One epoch of each solver on each storage, and of SDCA with each loss.
//!
//! ```text
//! cargo bench --bench epoch                               # all
//! cargo bench --bench epoch -- sdca/dense                 # a regular expression on the ids
//! cargo bench --bench epoch -- 'csr/f64/i32/smooth_hinge'
//! ```
//!
//! Throughput is in stored entries. The id contains all parameters:
//!
//! ```text
//! {solver}/dense/{number}/{instructions}/{loss}/{rows}x{columns}
//! {solver}/csr/{number}/{index}/{loss}/{rows}x{columns}/{entries in a row}
//! {solver}/pattern/{index}/{loss}/{rows}x{columns}/{entries in a row}
//! ```
//!
//! The instructions are the best that this CPU supports, up to `SDCA_RS_SIMD`.
//!
//! The time is that of the solver's own work in the first [`EPOCHS`] epochs, divided by their
//! number. It excludes what a run does before its first step (centring, power iteration) and the
//! evaluations at its two ends. An epoch is as many visits as there are rows. SDCA is measured with
//! `accelerate: false`, because otherwise it would visit resting rows less often, and its first
//! epoch is like all others. Otherwise the solvers have their default settings and one thread.

#![allow(missing_docs)]

use std::any::type_name;
use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group,
    criterion_main,
};
use ndarray::ArrayView2;
use sdca_rs::data::{Data, Storage};
use sdca_rs::kernel::{Borrowed, Index, Level, Real};
use sdca_rs::loss::{Loss, SPECS, SmoothHinge, Target, Visitor, dispatch};
use sdca_rs::order::Generator;
use sdca_rs::problem::{Problem, Regularisation};
use sdca_rs::rows::{Csr, Dense, Pattern, Rows};
use sdca_rs::run::{Budget, NoMonitor};
use sdca_rs::solver::{Asdca, DualGradient, FirstEpoch, Pegasos, Sdca, Solver, Subgradient};

/// The number of epochs in a run.
const EPOCHS: usize = 5;

const N_ROWS: usize = 20_000;

/// The number of columns of the dense rows.
const NARROW: usize = 50;

/// The number of columns of the sparse rows, and of entries in each row.
const WIDE: usize = 20_000;
const PER_ROW: usize = 12;

/// Numbers in [-1, 1), the same in either precision.
fn numbers<F: From<f32>>(n: usize, seed: u64) -> Vec<F> {
    let mut generator = Generator::new(seed);
    (0..n)
        .map(|_| F::from(generator.below(1 << 24) as f32 / (1u32 << 23) as f32 - 1.0))
        .collect()
}

/// Converts to another index type.
fn small<I: TryFrom<usize>>(index: usize) -> I {
    I::try_from(index).ok().expect("few rows, few columns")
}

/// The sorted columns of sparse rows, one from each of [`PER_ROW`] equal ranges.
fn columns<I: TryFrom<usize>>(seed: u64) -> Vec<I> {
    let mut generator = Generator::new(seed);
    let range = WIDE / PER_ROW;
    (0..N_ROWS * PER_ROW)
        .map(|k| k % PER_ROW * range + generator.below(range as u64) as usize)
        .map(small)
        .collect()
}

/// The sparse rows with these entries.
fn compressed<'a, F: Real, I: Index + TryFrom<usize>>(
    values: &'a [F],
    indices: &'a [I],
) -> Csr<'a, F, I> {
    let indptr: Vec<I> = (0..=N_ROWS).map(|i| small(i * PER_ROW)).collect();
    let (values, indices) = (Borrowed::new(values), Borrowed::new(indices));
    Csr::new(values, indices, Borrowed::new(&indptr), WIDE).expect("valid")
}

fn targets(kind: Target) -> Vec<f64> {
    let target = |y: f64| match kind {
        Target::Label => y.signum(),
        Target::Real => y,
        Target::NonNegative => (3.0 * y.abs()).round(),
    };
    numbers(N_ROWS, 5).into_iter().map(target).collect()
}

/// The measurements of one solver.
struct Bench<'c, S> {
    group: BenchmarkGroup<'c, WallTime>,
    solver: S,
}

impl<'c, S: Solver> Bench<'c, S> {
    fn new(criterion: &'c mut Criterion, name: &str, solver: S) -> Self {
        let mut group = criterion.benchmark_group(name);
        group
            .sample_size(10)
            .sampling_mode(SamplingMode::Flat)
            .warm_up_time(Duration::from_millis(100))
            .measurement_time(Duration::from_secs(1))
            .nresamples(5000);
        Self { group, solver }
    }

    fn all_storages(&mut self) {
        let loss = SmoothHinge::with_param(SmoothHinge::PARAM.map_or(f64::NAN, |p| p.default));
        self.dense::<f64, _>(loss);
        self.dense::<f32, _>(loss);
        self.csr::<f64, i32, _>(loss);
        self.csr::<f64, i64, _>(loss);
        self.csr::<f32, i32, _>(loss);
        self.csr::<f32, i64, _>(loss);
        self.pattern::<i32, _>(loss);
        self.pattern::<i64, _>(loss);
    }

    fn dense<F: Real + From<f32>, L: Loss>(&mut self, loss: L)
    where
        for<'a> Storage<'a>: From<Dense<'a, F>>,
    {
        let values = numbers::<F>(N_ROWS * NARROW, 6);
        let x = ArrayView2::from_shape((N_ROWS, NARROW), &values).expect("as many as that");
        let rows = Dense::new(x).expect("C order");
        let (number, level) = (type_name::<F>(), Level::best().name());
        let storage = format!("dense/{number}/{level}");
        self.measure(&storage, &format!("{N_ROWS}x{NARROW}"), rows, loss);
    }

    fn csr<F: Real + From<f32>, I: Index + TryFrom<usize>, L: Loss>(&mut self, loss: L)
    where
        for<'a> Storage<'a>: From<Csr<'a, F, I>>,
    {
        let (values, indices) = (numbers::<F>(N_ROWS * PER_ROW, 7), columns::<I>(8));
        let rows = compressed(&values, &indices);
        let storage = format!("csr/{}/{}", type_name::<F>(), type_name::<I>());
        let shape = format!("{N_ROWS}x{WIDE}/{PER_ROW}");
        self.measure(&storage, &shape, rows, loss);
    }

    fn pattern<I: Index + TryFrom<usize>, L: Loss>(&mut self, loss: L)
    where
        for<'a> Storage<'a>: From<Pattern<'a, I>>,
    {
        let (values, indices) = (vec![0.3; N_ROWS * PER_ROW], columns::<I>(8));
        let rows = compressed(&values, &indices);
        let Ok(rows) = rows.into_pattern() else {
            panic!("more than one value in a row");
        };
        let shape = format!("{N_ROWS}x{WIDE}/{PER_ROW}");
        self.measure(&format!("pattern/{}", type_name::<I>()), &shape, rows, loss);
    }

    fn measure<'a, R: Rows + Into<Storage<'a>>, L: Loss>(
        &mut self,
        storage: &str,
        shape: &str,
        rows: R,
        loss: L,
    ) {
        let targets = targets(L::TARGET);
        let c = Regularisation::C(1.0);
        let n_stored = rows.n_stored() as u64;
        let data = Data::new(rows, None).expect("valid rows");
        let problem = Problem::new(data, &targets, loss, c, true).expect("a valid problem");
        let Self { group, solver } = self;
        group.throughput(Throughput::Elements(n_stored));
        let id = BenchmarkId::new(format!("{storage}/{}", L::NAME), shape);
        group.bench_function(id, |b| {
            b.iter_custom(|n| (0..n).map(|_| epoch(solver, black_box(&problem))).sum());
        });
    }
}

/// The mean time of an epoch in one run.
fn epoch<S: Solver>(solver: &S, problem: &Problem<'_>) -> Duration {
    let budget = Budget {
        tol: 0.0,
        max_epochs: EPOCHS,
        max_time: None,
        // Only at the two ends.
        record_every: Some(EPOCHS as f64),
    };
    let fit = solver
        .solve(problem, &budget, None, &mut NoMonitor)
        .expect("not interrupted");
    let [start, end] = fit.history[..] else {
        panic!("{} evaluations", fit.history.len());
    };
    assert_eq!(end.epoch, EPOCHS as f64);
    Duration::from_secs_f64((end.seconds - start.seconds) / EPOCHS as f64)
}

/// Measures the loss that it is given.
impl<S: Solver> Visitor for &mut Bench<'_, S> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        self.dense::<f64, _>(loss);
        self.csr::<f64, i32, _>(loss);
    }
}

fn sdca(criterion: &mut Criterion) {
    let solver = Sdca {
        first_epoch: FirstEpoch::Sdca,
        accelerate: false,
        ..Sdca::default()
    };
    let mut bench = Bench::new(criterion, "sdca", solver);
    bench.all_storages();
    for spec in SPECS.iter().filter(|spec| spec.name != SmoothHinge::NAME) {
        dispatch(spec.name, None, &mut bench).expect("a known loss");
    }
}

fn asdca(criterion: &mut Criterion) {
    Bench::new(criterion, "asdca", Asdca::default()).all_storages();
}

fn pegasos(criterion: &mut Criterion) {
    Bench::new(criterion, "pegasos", Pegasos::default()).all_storages();
}

fn subgradient(criterion: &mut Criterion) {
    Bench::new(criterion, "subgradient", Subgradient::default()).all_storages();
}

fn dual_gradient(criterion: &mut Criterion) {
    Bench::new(criterion, "dual_gradient", DualGradient::default()).all_storages();
}

criterion_group!(epochs, sdca, asdca, pegasos, subgradient, dual_gradient);
criterion_main!(epochs);
