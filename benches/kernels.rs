//! The kernels, each next to its naive counterpart.
//!
//! ```text
//! cargo bench --bench kernels                             # all
//! cargo bench --bench kernels -- dense_dot/f64            # a regular expression on the ids
//! cargo bench --bench kernels -- '/(avx2|naive)/100$'
//! ```
//!
//! Throughput is in stored entries, or in products of entries for the kernels that sum them. The id
//! contains all parameters:
//!
//! ```text
//! dense_dot/{number}/{instructions or "naive"}/{length}
//! sparse_dot/{number}/{index}/{"fast" or "naive"}/{length}
//! pattern_dot/{index}/{"fast" or "naive"}/{length}
//! only_value/{number}/{"fast" or "naive"}/{length}
//! narrow_products/{number}/{"fast" or "naive"}/{columns}
//! narrow_sum/{number}/{instructions or "naive"}/{columns}
//! gram_products/{instructions or "naive"}/{dense columns}
//! ```
//!
//! and likewise for `axpy` and `sq_norm` (the latter has a single dense version, the portable one,
//! and no index), `narrow_shifted` and `gram_mixed`. Dense kernels are measured with all vector
//! instructions that this CPU supports. All vectors stay in the cache.

#![allow(missing_docs)]

use std::any::type_name;
use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use sdca_rs::kernel::gram::{self, Block, Entry, LANES};
use sdca_rs::kernel::{
    Borrowed, Index, Level, NARROW, Real, dense_axpy, dense_dot, dense_sq_norm, narrow_products,
    narrow_shifted, narrow_sum, only_value, pattern_axpy, pattern_dot, sparse_axpy, sparse_dot,
    sparse_sq_norm,
};
use sdca_rs::order::Generator;

/// The numbers of entries in a row.
const LENGTHS: [usize; 3] = [8, 100, 1000];

/// The number of columns of the sparse rows.
const N_COLS: usize = 100_000;

/// For sums of products: the numbers of dense columns; the number of rows at a time, as in a fit;
/// and the sparse columns, with this many entries in a row.
const N_DENSE: [usize; 4] = [4, 9, 100, 200];
const N_ROWS: usize = 64;
const N_SPARSE: usize = 100;
const SPARSE_PER_ROW: usize = 10;

/// The number of narrow rows at a time.
const N_NARROW: usize = 1000;

/// Small enough that the sums stay finite however often it is added.
const SCALE: f64 = 1e-9;

/// The straightforward implementations.
mod naive {
    use sdca_rs::kernel::gram::{Block, Entry};
    use sdca_rs::kernel::{Index, Real};

    pub(super) fn dense_dot<F: Real>(x: &[F], w: &[f64]) -> f64 {
        x.iter().zip(w).map(|(&x, w)| x.into() * w).sum()
    }

    pub(super) fn dense_axpy<F: Real>(scale: f64, x: &[F], w: &mut [f64]) {
        for (w, &x) in w.iter_mut().zip(x) {
            *w += scale * x.into();
        }
    }

    pub(super) fn narrow_products<F: Real>(x: &[F], w: &[f64], out: &mut [f64]) {
        for (x, out) in x.chunks_exact(w.len()).zip(out) {
            *out = dense_dot(x, w);
        }
    }

    pub(super) fn narrow_sum<F: Real>(x: &[F], shares: &[f64], sum: &mut [f64]) {
        for (x, &share) in x.chunks_exact(sum.len()).zip(shares) {
            dense_axpy(share, x, sum);
        }
    }

    pub(super) fn narrow_shifted<F: Real>(x: &[F], shift: &[f64], width: usize, out: &mut [f64]) {
        for (x, out) in x.chunks_exact(shift.len()).zip(out.chunks_exact_mut(width)) {
            for ((out, &x), shift) in out.iter_mut().zip(x).zip(shift) {
                *out = shift + x.into();
            }
        }
    }

    pub(super) fn sq_norm<F: Real>(x: &[F]) -> f64 {
        x.iter().map(|&x| x.into() * x.into()).sum()
    }

    pub(super) fn sparse_dot<F: Real, I: Index>(values: &[F], indices: &[I], w: &[f64]) -> f64 {
        let entries = values.iter().zip(indices);
        entries.map(|(&x, j)| x.into() * w[j.to_usize()]).sum()
    }

    pub(super) fn sparse_axpy<F: Real, I: Index>(
        scale: f64,
        values: &[F],
        indices: &[I],
        w: &mut [f64],
    ) {
        for (&x, j) in values.iter().zip(indices) {
            w[j.to_usize()] += scale * x.into();
        }
    }

    pub(super) fn pattern_dot<I: Index>(indices: &[I], w: &[f64]) -> f64 {
        indices.iter().map(|j| w[j.to_usize()]).sum()
    }

    pub(super) fn pattern_axpy<I: Index>(scale: f64, indices: &[I], w: &mut [f64]) {
        for j in indices {
            w[j.to_usize()] += scale;
        }
    }

    pub(super) fn only_value<F: Real>(values: &[F]) -> Option<f64> {
        let first = values.first().map_or(0.0, |&x| x.into());
        values.iter().all(|&x| x.into() == first).then_some(first)
    }

    pub(super) fn gram_products(block: Block<'_>, weights: &[f64], out: &mut [f64]) {
        for (row, h) in block.rows.chunks(block.width).zip(weights) {
            for (j, out) in out.chunks_mut(block.width).take(block.used).enumerate() {
                for (out, z) in out.iter_mut().zip(&row[..=j]) {
                    *out += h * row[j] * z;
                }
            }
        }
    }

    pub(super) fn gram_mixed(block: Block<'_>, entries: &[Entry], ends: &[usize], out: &mut [f64]) {
        let mut from = 0;
        for (row, &end) in block.rows.chunks(block.width).zip(ends) {
            for &(column, x) in &entries[from..end] {
                let out = &mut out[column as usize * block.width..];
                for (out, z) in out.iter_mut().zip(&row[..block.used]) {
                    *out += x * z;
                }
            }
            from = end;
        }
    }
}

/// Numbers in [-1, 1), the same in either precision.
fn numbers<F: From<f32>>(n: usize, seed: u64) -> Vec<F> {
    let mut generator = Generator::new(seed);
    (0..n)
        .map(|_| F::from(generator.below(1 << 24) as f32 / (1u32 << 23) as f32 - 1.0))
        .collect()
}

/// The sorted columns of a row, one from each of `n` equal ranges of all `n_cols`.
fn columns<I: TryFrom<usize>>(n: usize, n_cols: usize, seed: u64) -> Vec<I> {
    let mut generator = Generator::new(seed);
    let range = n_cols / n;
    (0..n)
        .map(|k| k * range + generator.below(range as u64) as usize)
        .map(|j| I::try_from(j).ok().expect("few columns"))
        .collect()
}

fn group(criterion: &mut Criterion, name: String) -> BenchmarkGroup<'_, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .nresamples(5000);
    group
}

fn dense<F: Real + From<f32>>(criterion: &mut Criterion) {
    let number = type_name::<F>();

    let mut dots = group(criterion, format!("dense_dot/{number}"));
    for len in LENGTHS {
        dots.throughput(Throughput::Elements(len as u64));
        let (x, w) = (numbers::<F>(len, 1), numbers::<f64>(len, 2));
        for level in Level::available() {
            dots.bench_function(BenchmarkId::new(level.name(), len), |b| {
                b.iter(|| dense_dot(level, black_box(&x), black_box(&w)));
            });
        }
        dots.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| naive::dense_dot(black_box(&x), black_box(&w)));
        });
    }
    dots.finish();

    let mut axpys = group(criterion, format!("dense_axpy/{number}"));
    for len in LENGTHS {
        axpys.throughput(Throughput::Elements(len as u64));
        let (x, mut w) = (numbers::<F>(len, 1), numbers::<f64>(len, 2));
        for level in Level::available() {
            axpys.bench_function(BenchmarkId::new(level.name(), len), |b| {
                b.iter(|| dense_axpy(level, SCALE, black_box(&x), black_box(&mut w)));
            });
        }
        axpys.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| naive::dense_axpy(SCALE, black_box(&x), black_box(&mut w)));
        });
    }
    axpys.finish();

    let mut norms = group(criterion, format!("dense_sq_norm/{number}"));
    for len in LENGTHS {
        norms.throughput(Throughput::Elements(len as u64));
        let x = numbers::<F>(len, 1);
        norms.bench_function(BenchmarkId::new(Level::PORTABLE.name(), len), |b| {
            b.iter(|| dense_sq_norm(black_box(&x)));
        });
        norms.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| naive::sq_norm(black_box(&x)));
        });
    }
    norms.finish();
}

/// A kernel for narrow rows: `x`, the input, and the output that it updates.
type Narrow<F> = fn(Level, &[F], &[f64], &mut [f64]);

fn narrow<F: Real + From<f32>>(criterion: &mut Criterion) {
    let kernels: [(&str, Narrow<F>, Narrow<F>); 3] = [
        (
            "narrow_products",
            |_, x, w, out| narrow_products(x, w, out),
            |_, x, w, out| naive::narrow_products(x, w, out),
        ),
        ("narrow_sum", narrow_sum, |_, x, shares, sum| {
            naive::narrow_sum(x, shares, sum);
        }),
        (
            "narrow_shifted",
            |level, x, shift, out| narrow_shifted(level, x, shift, NARROW, out),
            |_, x, shift, out| naive::narrow_shifted(x, shift, NARROW, out),
        ),
    ];
    for (name, fast, naive) in kernels {
        let mut group = group(criterion, format!("{name}/{}", type_name::<F>()));
        for n_cols in [3, NARROW] {
            group.throughput(Throughput::Elements((N_NARROW * n_cols) as u64));
            let x = numbers::<F>(N_NARROW * n_cols, 1);
            let (mut of_columns, mut of_rows) = (numbers(n_cols, 2), numbers(N_NARROW, 3));
            let mut lines = numbers(N_NARROW * NARROW, 4);
            let (given, changed) = match name {
                "narrow_sum" => (&of_rows, &mut of_columns),
                "narrow_shifted" => (&of_columns, &mut lines),
                _ => (&of_columns, &mut of_rows),
            };
            let mut measure = |which: &str, kernel: Narrow<F>, level| {
                group.bench_function(BenchmarkId::new(which, n_cols), |b| {
                    b.iter(|| kernel(level, black_box(&x), black_box(given), black_box(changed)));
                });
            };
            if name == "narrow_products" {
                measure("fast", fast, Level::PORTABLE);
            } else {
                for level in Level::available() {
                    measure(level.name(), fast, level);
                }
            }
            measure("naive", naive, Level::PORTABLE);
        }
        group.finish();
    }
}

fn sparse<F: Real + From<f32>, I: Index + TryFrom<usize>>(criterion: &mut Criterion) {
    let types = format!("{}/{}", type_name::<F>(), type_name::<I>());

    let mut dots = group(criterion, format!("sparse_dot/{types}"));
    for len in LENGTHS {
        dots.throughput(Throughput::Elements(len as u64));
        let (values, indices) = (numbers::<F>(len, 3), columns::<I>(len, N_COLS, 4));
        let w = numbers::<f64>(N_COLS, 5);
        dots.bench_function(BenchmarkId::new("fast", len), |b| {
            let (values, indices) = (Borrowed::new(&values), Borrowed::new(&indices));
            b.iter(|| sparse_dot(black_box(values), black_box(indices), black_box(&w)));
        });
        dots.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| naive::sparse_dot(black_box(&values), black_box(&indices), black_box(&w)));
        });
    }
    dots.finish();

    let mut axpys = group(criterion, format!("sparse_axpy/{types}"));
    for len in LENGTHS {
        axpys.throughput(Throughput::Elements(len as u64));
        let (values, indices) = (numbers::<F>(len, 3), columns::<I>(len, N_COLS, 4));
        let mut w = numbers::<f64>(N_COLS, 5);
        axpys.bench_function(BenchmarkId::new("fast", len), |b| {
            let (values, indices) = (Borrowed::new(&values), Borrowed::new(&indices));
            b.iter(|| {
                sparse_axpy(
                    SCALE,
                    black_box(values),
                    black_box(indices),
                    black_box(&mut w),
                );
            });
        });
        axpys.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| {
                naive::sparse_axpy(
                    SCALE,
                    black_box(&values),
                    black_box(&indices),
                    black_box(&mut w),
                );
            });
        });
    }
    axpys.finish();
}

/// This kernel does not depend on values.
fn pattern<I: Index + TryFrom<usize>>(criterion: &mut Criterion) {
    let index = type_name::<I>();

    let mut dots = group(criterion, format!("pattern_dot/{index}"));
    for len in LENGTHS {
        dots.throughput(Throughput::Elements(len as u64));
        let indices = columns::<I>(len, N_COLS, 4);
        let w = numbers::<f64>(N_COLS, 5);
        dots.bench_function(BenchmarkId::new("fast", len), |b| {
            let indices = Borrowed::new(&indices);
            b.iter(|| pattern_dot(black_box(indices), black_box(&w)));
        });
        dots.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| naive::pattern_dot(black_box(&indices), black_box(&w)));
        });
    }
    dots.finish();

    let mut axpys = group(criterion, format!("pattern_axpy/{index}"));
    for len in LENGTHS {
        axpys.throughput(Throughput::Elements(len as u64));
        let indices = columns::<I>(len, N_COLS, 4);
        let mut w = numbers::<f64>(N_COLS, 5);
        axpys.bench_function(BenchmarkId::new("fast", len), |b| {
            let indices = Borrowed::new(&indices);
            b.iter(|| pattern_axpy(SCALE, black_box(indices), black_box(&mut w)));
        });
        axpys.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| naive::pattern_axpy(SCALE, black_box(&indices), black_box(&mut w)));
        });
    }
    axpys.finish();
}

/// Indices play no part here.
fn only_values<F: Real + From<f32>>(criterion: &mut Criterion) {
    let mut tests = group(criterion, format!("only_value/{}", type_name::<F>()));
    for len in LENGTHS {
        tests.throughput(Throughput::Elements(len as u64));
        let values = vec![F::from(0.1); len];
        tests.bench_function(BenchmarkId::new("fast", len), |b| {
            let values = Borrowed::new(&values);
            b.iter(|| only_value(black_box(values)));
        });
        tests.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| naive::only_value(black_box(&values)));
        });
    }
    tests.finish();
}

/// Indices play no part here.
fn sparse_norms<F: Real + From<f32>>(criterion: &mut Criterion) {
    let mut norms = group(criterion, format!("sparse_sq_norm/{}", type_name::<F>()));
    for len in LENGTHS {
        norms.throughput(Throughput::Elements(len as u64));
        let values = numbers::<F>(len, 3);
        norms.bench_function(BenchmarkId::new("fast", len), |b| {
            let values = Borrowed::new(&values);
            b.iter(|| sparse_sq_norm(black_box(values)));
        });
        norms.bench_function(BenchmarkId::new("naive", len), |b| {
            b.iter(|| naive::sq_norm(black_box(&values)));
        });
    }
    norms.finish();
}

/// Rows of `used` numbers, with zeros up to their width.
fn padded(used: usize) -> Vec<f64> {
    let width = used.next_multiple_of(LANES);
    let mut rows = numbers(N_ROWS * width, 6);
    for row in rows.chunks_mut(width) {
        row[used..].fill(0.0);
    }
    rows
}

fn gram_block(rows: &[f64], used: usize) -> Block<'_> {
    let width = rows.len() / N_ROWS;
    Block { rows, width, used }
}

fn gram_products(criterion: &mut Criterion) {
    let mut products = group(criterion, "gram_products".into());
    let weights = numbers::<f64>(N_ROWS, 7);
    for used in N_DENSE {
        let count = N_ROWS * used * (used + 1) / 2;
        products.throughput(Throughput::Elements(count as u64));
        let rows = padded(used);
        let block = gram_block(&rows, used);
        let mut out = vec![0.0; block.width * block.width];
        for level in Level::available() {
            products.bench_function(BenchmarkId::new(level.name(), used), |b| {
                b.iter(|| {
                    let (block, weights) = (black_box(block), black_box(&weights));
                    gram::add_products(level, block, weights, black_box(&mut out));
                });
            });
        }
        products.bench_function(BenchmarkId::new("naive", used), |b| {
            b.iter(|| {
                let (block, weights) = (black_box(block), black_box(&weights));
                naive::gram_products(block, weights, black_box(&mut out));
            });
        });
    }
    products.finish();
}

fn gram_mixed(criterion: &mut Criterion) {
    let mut mixed = group(criterion, "gram_mixed".into());
    let entries: Vec<Entry> = (0..N_ROWS)
        .flat_map(|i| columns(SPARSE_PER_ROW, N_SPARSE, i as u64))
        .zip(numbers(N_ROWS * SPARSE_PER_ROW, 8))
        .collect();
    let ends: Vec<usize> = (1..=N_ROWS).map(|i| i * SPARSE_PER_ROW).collect();
    for used in N_DENSE {
        mixed.throughput(Throughput::Elements((entries.len() * used) as u64));
        let rows = padded(used);
        let block = gram_block(&rows, used);
        let mut out = vec![0.0; N_SPARSE * block.width];
        for level in Level::available() {
            mixed.bench_function(BenchmarkId::new(level.name(), used), |b| {
                b.iter(|| {
                    let (entries, ends) = (black_box(&entries), black_box(&ends));
                    gram::add_mixed(level, black_box(block), entries, ends, black_box(&mut out));
                });
            });
        }
        mixed.bench_function(BenchmarkId::new("naive", used), |b| {
            b.iter(|| {
                let (entries, ends) = (black_box(&entries), black_box(&ends));
                naive::gram_mixed(black_box(block), entries, ends, black_box(&mut out));
            });
        });
    }
    mixed.finish();
}

criterion_group!(
    kernels,
    dense::<f64>,
    dense::<f32>,
    narrow::<f64>,
    narrow::<f32>,
    sparse::<f64, i32>,
    sparse::<f64, i64>,
    sparse::<f32, i32>,
    sparse::<f32, i64>,
    sparse_norms::<f64>,
    sparse_norms::<f32>,
    pattern::<i32>,
    pattern::<i64>,
    only_values::<f64>,
    only_values::<f32>,
    gram_products,
    gram_mixed,
);
criterion_main!(kernels);
