//! Cholesky's method and sums of outer products, as sdca-rs does them and as faer does. To run it, see Cargo.toml;
//! what it prints is in docs/benchmarks.md.
//!
//! Times are the least of several runs, in milliseconds of processor time, with the candidates in turn; those with two
//! threads are in milliseconds of the clock, and mean nothing while another program runs.

use std::time::Instant;

use cpu_time::ProcessTime;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Accum, MatMut, MatRef, Par};
use sdca_rs::kernel::gram::{self, Block};
use sdca_rs::kernel::{Level, dense_axpy, dense_dot};
use sdca_rs::order::Generator;

const UNKNOWNS: [usize; 6] = [100, 200, 400, 800, 1500, 3000];
const COLUMNS: [usize; 4] = [56, 128, 304, 800];
const ROWS: usize = 20_000;

fn main() {
    factor_and_solve();
    add_rows();
}

fn milliseconds(by_clock: bool, work: impl FnOnce()) -> f64 {
    let (clock, cpu) = (Instant::now(), ProcessTime::now());
    work();
    let (clock, cpu) = (clock.elapsed(), cpu.elapsed());
    1e3 * if by_clock { clock } else { cpu }.as_secs_f64()
}

fn print(title: &str, sizes: &[usize], lines: &[(&str, Vec<f64>)]) {
    let cells: String = sizes.iter().map(|size| format!(" {size} |")).collect();
    println!("| {title} |{cells}\n|---|{}", "---|".repeat(sizes.len()));
    for (name, times) in lines {
        let cells: String = times.iter().map(|time| format!(" {time:.3} |")).collect();
        println!("| {name} |{cells}");
    }
    println!();
}

/// Overwrites the matrix by its factor and the right side by the solution.
type Solve = fn(&mut Vec<f64>, &mut [f64]);

fn factor_and_solve() {
    let candidates: [(&str, Solve); 5] = [
        ("row by row, by scalar products", |matrix, right| {
            row_by_row(matrix, right);
        }),
        ("sdca-rs", |matrix, right| {
            sdca_rs::linalg::solve_in_place(matrix, right, 1).expect("memory");
        }),
        ("faer, rows in memory", |matrix, right| {
            let n = right.len();
            by_faer(MatMut::from_row_major_slice_mut(matrix, n, n), right);
        }),
        ("faer, columns in memory", |matrix, right| {
            let n = right.len();
            by_faer(MatMut::from_column_major_slice_mut(matrix, n, n), right);
        }),
        ("sdca-rs, 2 threads", |matrix, right| {
            sdca_rs::linalg::solve_in_place(matrix, right, 2).expect("memory");
        }),
    ];
    let mut lines = candidates.map(|(name, _)| (name, vec![f64::INFINITY; UNKNOWNS.len()]));
    let mut generator = Generator::new(0);
    for (size, &n) in UNKNOWNS.iter().enumerate() {
        let mut symmetric = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..i {
                let value = (uniform(&mut generator) - 0.5) / (2.0 * (n as f64).sqrt());
                (symmetric[i * n + j], symmetric[j * n + i]) = (value, value);
            }
            symmetric[i * n + i] = 1.0;
        }
        let mut matrix = symmetric.clone();
        let repeats = (3e9 / (n as f64).powi(3)).clamp(5.0, 300.0) as usize;
        for _ in 0..repeats {
            let mut solution: Option<Vec<f64>> = None;
            for ((name, solve), (_, least)) in candidates.iter().zip(&mut lines) {
                matrix.copy_from_slice(&symmetric);
                let mut right: Vec<f64> = (0..n).map(|k| 1.0 + (k % 7) as f64).collect();
                let by_clock = name.ends_with("threads");
                let took = milliseconds(by_clock, || solve(&mut matrix, &mut right));
                least[size] = least[size].min(took);
                let solution = solution.get_or_insert_with(|| right.clone());
                for (found, expected) in right.iter().zip(solution) {
                    assert!((found - *expected).abs() < 1e-9, "{name}, {n} unknowns");
                }
            }
        }
    }
    print("ms, unknowns", &UNKNOWNS, &lines);
}

fn uniform(generator: &mut Generator) -> f64 {
    generator.below(1 << 30) as f64 / f64::from(1 << 30)
}

/// As sdca-rs did it before.
fn row_by_row(matrix: &mut [f64], right: &mut [f64]) {
    let (n, level) = (right.len(), Level::best());
    for i in 0..n {
        let (above, rest) = matrix.split_at_mut(i * n);
        let row = &mut rest[..n];
        for j in 0..i {
            let other = &above[j * n..][..n];
            row[j] = (row[j] - dense_dot(level, &row[..j], &other[..j])) / other[j];
        }
        row[i] = (row[i] - dense_dot(level, &row[..i], &row[..i])).sqrt();
        right[i] = (right[i] - dense_dot(level, &row[..i], &right[..i])) / row[i];
    }
    for i in (0..n).rev() {
        let row = &matrix[i * n..][..=i];
        right[i] /= row[i];
        let value = right[i];
        dense_axpy(level, -value, &row[..i], &mut right[..i]);
    }
}

fn by_faer(mut matrix: MatMut<'_, f64>, right: &mut [f64]) {
    let n = right.len();
    let request = llt::cholesky_in_place_scratch::<f64>(n, Par::Seq, Default::default());
    let mut room = MemBuffer::new(request);
    let stack = MemStack::new(&mut room);
    let none = Default::default();
    llt::cholesky_in_place(matrix.as_mut(), none, Par::Seq, stack, Default::default())
        .expect("positive definite");
    let factor = matrix.as_ref();
    let mut right = MatMut::from_column_major_slice_mut(right, n, 1);
    solve_lower_triangular_in_place(factor, right.as_mut(), Par::Seq);
    solve_upper_triangular_in_place(factor.transpose(), right, Par::Seq);
}

/// Adds the outer products of some rows.
type Add = fn(&[f64], usize, &mut [f64]);

fn add_rows() {
    // How many at a time, and how.
    let candidates: [(&str, usize, Add); 3] = [
        ("sdca-rs, kernel::gram", 64, |rows, n, out| {
            let block = Block {
                rows,
                width: n,
                used: n,
            };
            gram::add_products(Level::best(), block, &[1.0; 64], out);
        }),
        ("sdca-rs, stripes by matrixmultiply", 512, by_stripes),
        ("faer, triangular product", 512, |rows, n, out| {
            let rows = MatRef::from_row_major_slice(rows, rows.len() / n, n);
            let whole = BlockStructure::Rectangular;
            triangular::matmul(
                MatMut::from_row_major_slice_mut(out, n, n),
                BlockStructure::TriangularLower,
                Accum::Add,
                rows.transpose(),
                whole,
                rows,
                whole,
                1.0,
                Par::Seq,
            );
        }),
    ];
    let mut lines = candidates.map(|(name, ..)| (name, vec![f64::INFINITY; COLUMNS.len()]));
    let mut generator = Generator::new(0);
    for (size, &n) in COLUMNS.iter().enumerate() {
        let rows: Vec<f64> = (0..ROWS * n).map(|_| uniform(&mut generator)).collect();
        for _ in 0..5 {
            let mut sum: Option<Vec<f64>> = None;
            for ((name, count, add), (_, least)) in candidates.iter().zip(&mut lines) {
                let mut out = vec![0.0; n * n];
                let all = || {
                    rows.chunks(count * n)
                        .for_each(|rows| add(rows, n, &mut out))
                };
                least[size] = least[size].min(milliseconds(false, all));
                let sum = sum.get_or_insert_with(|| out.clone());
                for j in 0..n {
                    for l in 0..=j {
                        let off = (out[j * n + l] - sum[j * n + l]).abs();
                        assert!(off < 1e-6, "{name}, {n} columns: {off}");
                    }
                }
            }
        }
    }
    print(&format!("ms, {ROWS} rows of columns"), &COLUMNS, &lines);
}

/// As `src/linalg/` does it.
fn by_stripes(rows: &[f64], n: usize, out: &mut [f64]) {
    const STRIPE: usize = 64;
    for (number, stripe) in out.chunks_mut(STRIPE * n).enumerate() {
        let (from, count) = (number * STRIPE, stripe.len() / n);
        let n = n as isize;
        // SAFETY: rows has numbers in `from..from + count` columns of n, and stripe has `count` rows of n.
        unsafe {
            matrixmultiply::dgemm(
                count,
                rows.len() / n as usize,
                from + count,
                1.0,
                rows.as_ptr().add(from),
                1,
                n,
                rows.as_ptr(),
                n,
                1,
                1.0,
                stripe.as_mut_ptr(),
                n,
                1,
            );
        }
    }
}
