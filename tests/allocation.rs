//! Every allocation whose size depends on the data fails once: the fit or the prediction then
//! returns [`Error::Memory`], and the process continues.
//!
//! This is a separate binary because its allocator counts for all threads. With the feature
//! `python` the crate itself has an allocator, and there can be only one.
#![cfg(not(feature = "python"))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use ndarray::ArrayView2;
use sdca_rs::Error;
use sdca_rs::classifier::Classifier;
use sdca_rs::data::{Data as Rows, Storage};
use sdca_rs::kernel::Borrowed;
use sdca_rs::loss::{Hinge, Log, Loss, Squared};
use sdca_rs::order::Generator;
use sdca_rs::predict::predictions;
use sdca_rs::problem::{Problem, Regularisation};
use sdca_rs::rows::{Csr, Dense};
use sdca_rs::run::{Budget, Fit, NoMonitor, RunContext};
use sdca_rs::solver::{Asdca, DualGradient, Output, Pegasos, Sdca, Solver, Start, Subgradient};

/// Allocations of at least this size depend on the data: those of the standard library and of
/// threads are smaller.
const LARGE: usize = 4096;

/// Matrix products request more than the usual alignment. The memory they need is bounded whatever
/// the data, and a trial allocation is made first.
const ALIGNED: usize = 16;

/// The number of large allocations that succeed before one fails; negative afterwards.
static TO_COME: AtomicIsize = AtomicIsize::new(isize::MAX);

struct Failing;

impl Failing {
    fn fails(layout: Layout, size: usize) -> bool {
        size >= LARGE && layout.align() <= ALIGNED && TO_COME.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

// SAFETY: all calls are forwarded to the system allocator, except that some results are replaced by
// a null pointer.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::fails(layout, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::fails(layout, size) {
            return std::ptr::null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Repeats the work with the first, the second, ... large allocation failing, until none fails.
/// Returns their number.
fn fail_each<T>(what: &str, mut work: impl FnMut() -> Result<T, Error>) -> usize {
    for granted in 0..100_000 {
        TO_COME.store(granted, Ordering::Relaxed);
        let result = work();
        let failed = TO_COME.swap(isize::MAX, Ordering::Relaxed) < 0;
        match result {
            Ok(_) => {
                assert!(
                    !failed,
                    "{what}: allocation {granted} failed, and nothing was said"
                );
                return granted as usize;
            }
            Err(Error::Memory { bytes }) => assert!(failed && bytes > 0, "{what}"),
            Err(error) => panic!("{what}: {error}"),
        }
    }
    panic!("{what}: no end of allocations");
}

struct Data {
    dense: Vec<f64>,
    values: Vec<f64>,
    indices: Vec<i32>,
    indptr: Vec<i64>,
    labels: Vec<f64>,
    weights: Vec<f64>,
}

impl Data {
    /// Rows with about `per_row` entries.
    fn new(n_rows: usize, n_cols: usize, per_row: usize) -> Self {
        let mut generator = Generator::new(7);
        let mut uniform = move || generator.below(1 << 40) as f64 / (1u64 << 40) as f64;
        let mut dense = vec![0.0; n_rows * n_cols];
        for row in dense.chunks_mut(n_cols) {
            for _ in 0..per_row {
                row[(uniform() * n_cols as f64) as usize] = 2.0 * uniform() - 1.0;
            }
        }
        let (mut values, mut indices, mut indptr) = (Vec::new(), Vec::new(), vec![0]);
        for row in dense.chunks(n_cols) {
            for (j, &x) in (0..).zip(row) {
                if x != 0.0 {
                    values.push(x);
                    indices.push(j);
                }
            }
            indptr.push(i64::try_from(values.len()).expect("small"));
        }
        let label = |row: &[f64]| {
            if row[..n_cols / 2].iter().sum::<f64>() > 0.1 {
                1.0
            } else {
                -1.0
            }
        };
        Self {
            labels: dense.chunks(n_cols).map(label).collect(),
            weights: (0..n_rows).map(|_| 0.5 + uniform()).collect(),
            dense,
            values,
            indices,
            indptr,
        }
    }

    fn n_rows(&self) -> usize {
        self.labels.len()
    }

    fn labels_in_words(&self) -> Vec<&str> {
        let word = |&y: &f64| if y > 0.0 { "yes" } else { "no" };
        self.labels.iter().map(word).collect()
    }

    fn rows(&self) -> Dense<'_, f64> {
        let shape = (self.n_rows(), self.dense.len() / self.n_rows());
        Dense::new(ArrayView2::from_shape(shape, &self.dense).expect("shape")).expect("C order")
    }

    fn csr(&self) -> Result<Csr<'_, f64, i32>, Error> {
        let n_cols = self.dense.len() / self.n_rows();
        let (values, indices) = (Borrowed::new(&self.values), Borrowed::new(&self.indices));
        sdca_rs::error::catch(|| Csr::new(values, indices, Borrowed::new(&self.indptr), n_cols))
    }
}

fn fit<'a, L: Loss, S: Solver>(
    rows: impl Into<Storage<'a>>,
    data: &'a Data,
    solver: &S,
    c: f64,
    start: Option<Start<'_>>,
) -> Result<Fit, Error> {
    let (weights, strength) = (Some(data.weights.as_slice()), Regularisation::C(c));
    let loss = L::with_param(1.0);
    let rows = Rows::new(rows, weights)?;
    let problem = Problem::new(rows, &data.labels, loss, strength, true)?;
    let budget = Budget {
        max_epochs: 12,
        ..Budget::default()
    };
    solver.solve(&problem, &budget, start, &mut NoMonitor)
}

#[test]
fn each_allocation_that_fails_is_an_error() {
    // Enough columns and rows that a vector of either is a large allocation, even of 32-bit
    // numbers.
    let tall = Data::new(1100, 520, 40);
    let sdca = Sdca::default();
    let mut counts = Vec::new();
    let mut count = |what: &str, found: usize| counts.push((what.to_owned(), found));

    let rows = tall.rows();
    let by_columns = || fit::<Log, _>(rows, &tall, &sdca, 1.0, None);
    count("log, dense", fail_each("log, dense", by_columns));
    let hinge = || fit::<Hinge, _>(rows, &tall, &sdca, 1.0, None);
    count("hinge, dense", fail_each("hinge, dense", hinge));
    let threads = Sdca {
        n_threads: 2,
        ..Sdca::default()
    };
    let shared = || fit::<Log, _>(rows, &tall, &threads, 100.0, None);
    count("two threads", fail_each("two threads", shared));
    let at_once = || fit::<Squared, _>(rows, &tall, &sdca, 1.0, None);
    count("squared, dense", fail_each("squared, dense", at_once));

    for output in [Output::Average, Output::Random] {
        let study = Sdca {
            output,
            ..Sdca::default()
        };
        let found = fail_each("study", || fit::<Hinge, _>(rows, &tall, &study, 1.0, None));
        count("an output of the theorems", found);
    }
    let asdca = Asdca::default();
    count(
        "asdca",
        fail_each("asdca", || fit::<Log, _>(rows, &tall, &asdca, 1.0, None)),
    );
    let pegasos = Pegasos {
        output: Output::Average,
        project: true,
        ..Pegasos::default()
    };
    count(
        "pegasos",
        fail_each("pegasos", || {
            fit::<Hinge, _>(rows, &tall, &pegasos, 1.0, None)
        }),
    );
    let subgradient = Subgradient::default();
    let found = fail_each("subgradient", || {
        fit::<Hinge, _>(rows, &tall, &subgradient, 1.0, None)
    });
    count("subgradient", found);
    let dual = DualGradient::default();
    count(
        "dual gradient",
        fail_each("dual gradient", || {
            fit::<Log, _>(rows, &tall, &dual, 1.0, None)
        }),
    );

    let before = fit::<Log, _>(rows, &tall, &sdca, 1.0, None).expect("memory enough");
    let warm = || fit::<Log, _>(rows, &tall, &sdca, 2.0, Some(Start::from(&before)));
    count("warm start", fail_each("warm start", warm));

    // Few rows of positive weight, so the system is solved by rows; and so many columns that
    // conjugate gradients are used.
    let wide = Data::new(600, 3500, 30);
    let sparse = || fit::<Log, _>(wide.csr()?, &wide, &sdca, 1e4, None);
    count("log, sparse", fail_each("log, sparse", sparse));
    let square = Data::new(2000, 3500, 12);
    let by_gradients = || fit::<Hinge, _>(square.csr()?, &square, &sdca, 1e3, None);
    count("hinge, sparse", fail_each("hinge, sparse", by_gradients));

    let scores = || {
        let mut no_monitor = NoMonitor;
        let mut context = RunContext::new(None, &mut no_monitor);
        predictions(&rows.into(), &[1.0; 3 * 520], &[0.0; 3], 1, &mut context)
    };
    count("predictions", fail_each("predictions", scores));

    // Class names; the array of class numbers is large as well.
    let names: Vec<usize> = (0..square.n_rows()).map(|i| i * i % 3).collect();
    let slices = || Rows::csr(&square.indptr, &square.indices, &square.values, 3500);
    let classify = || Classifier::builder(slices()?, &names, Log).fit(&sdca);
    count("classifier", fail_each("classifier", classify));
    let classifier = classify().expect("memory enough");
    let predict = || {
        let rows = slices()?;
        classifier.decision_function(&rows)?;
        classifier.probabilities(&rows)?;
        classifier.predict(&rows)
    };
    count("classes", fail_each("classes", predict));
    let binary = || Classifier::builder(slices()?, &square.labels_in_words(), Log).fit(&sdca);
    let binary = binary().expect("memory enough");
    let predict = || binary.probabilities(&slices()?);
    count("two classes", fail_each("two classes", predict));

    for (what, found) in &counts {
        assert!(*found > 0, "{what}");
    }
}
