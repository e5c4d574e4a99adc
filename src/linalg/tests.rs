//! Systems of equations against their definition.

use std::time::Duration;

use super::*;
use crate::order::Generator;
use crate::run::NoMonitor;
use proptest::prelude::*;

type Rows = Vec<Vec<f64>>;

/// More rows than columns, with weights, and a right-hand side.
fn problems() -> impl Strategy<Value = (Rows, Vec<f64>, Vec<f64>)> {
    (1usize..90).prop_flat_map(|size| {
        let number = || -1.0..1.0;
        let row = prop::collection::vec(number(), size);
        let n = size + 3;
        (
            prop::collection::vec(row, n),
            prop::collection::vec(0.1..2.0, n),
            prop::collection::vec(number(), size),
        )
    })
}

fn by_entries(rows: &[Vec<f64>], weights: &[f64]) -> SymmetricSystem {
    let mut system = SymmetricSystem::new(rows[0].len());
    for (row, &h) in rows.iter().zip(weights) {
        // In an order that is not that of the columns.
        let entries: Vec<_> = (0u32..).zip(row.iter().copied()).collect();
        let entries: Vec<_> = entries.into_iter().rev().collect();
        system.add_outer(&entries, h);
    }
    system
}

fn by_rows(rows: &[Vec<f64>], weights: &[f64]) -> SymmetricSystem {
    let mut no_monitor = NoMonitor;
    let context = RunContext::new(None, &mut no_monitor);
    let mut system = SymmetricSystem::new(rows[0].len());
    for (row, &h) in rows.iter().zip(weights) {
        system.next_row().copy_from_slice(row);
        system.end_row(h, &context);
    }
    system.flush(&context);
    system
}

/// Entry by entry, from the definition.
fn naive(rows: &[Vec<f64>], weights: &[f64], j: usize, l: usize) -> f64 {
    let terms = rows.iter().zip(weights);
    terms.map(|(row, h)| h * row[j] * row[l]).sum()
}

fn lower(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size).flat_map(|j| (0..=j).map(move |l| (j, l)))
}

proptest! {
    #[test]
    fn both_ways_of_adding_rows_agree_with_the_naive((rows, weights, _) in problems()) {
        let size = rows[0].len();
        for system in [by_entries(&rows, &weights), by_rows(&rows, &weights)] {
            for (j, l) in lower(size) {
                let expected = naive(&rows, &weights, j, l);
                prop_assert!((system.matrix[j * size + l] - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn centring_is_as_if_the_rows_had_been_centred((rows, weights, mu) in problems()) {
        let size = mu.len();
        let total: f64 = weights.iter().sum();
        let sum: Vec<f64> = (0..size)
            .map(|j| rows.iter().zip(&weights).map(|(row, h)| h * row[j]).sum())
            .collect();
        let widened: Rows = rows.iter().map(|row| [&row[..], &[0.0]].concat()).collect();
        let centred = |row: &Vec<f64>| -> Vec<f64> {
            let shifted = row.iter().zip(&mu).map(|(x, m)| x - m);
            shifted.chain([1.0]).collect()
        };
        let expected: Rows = rows.iter().map(centred).collect();
        let mut system = by_entries(&widened, &weights);
        system.centre(&mu, &sum, total);
        for (j, l) in lower(size + 1) {
            let expected = naive(&expected, &weights, j, l);
            prop_assert!((system.matrix[j * (size + 1) + l] - expected).abs() < 1e-11);
        }
    }

    #[test]
    fn the_solution_solves_whatever_the_scales((rows, weights, right) in problems()) {
        let size = right.len();
        // Columns from 1e-6 to 1e6.
        let scale = |j: usize| 1e-6 * 10f64.powf((j * 7 % 13) as f64);
        let rows: Rows = rows
            .into_iter()
            .map(|row| row.into_iter().enumerate().map(|(j, x)| x * scale(j)).collect())
            .collect();
        let mut system = by_rows(&rows, &weights);
        for j in 0..size {
            system.matrix[j * size + j] += scale(j) * scale(j);
        }
        let mut v: Vec<f64> = right.iter().enumerate().map(|(j, r)| r * scale(j)).collect();
        let mut no_monitor = NoMonitor;
        system.factor(&mut RunContext::new(None, &mut no_monitor)).expect("not interrupted");
        system.solve(&mut v);
        for j in 0..size {
            let mut left = scale(j) * scale(j) * v[j];
            for (l, v) in v.iter().enumerate() {
                left += naive(&rows, &weights, j, l) * v;
            }
            let residual = (left - right[j] * scale(j)).abs();
            prop_assert!(residual < 1e-10 * scale(j), "{residual} in unknown {j}");
        }
    }
}

#[test]
fn unknowns_that_nothing_tells_apart_are_held_fast() {
    // Two equal columns, and one of zeros.
    let rows = vec![vec![1.0, 1.0, 0.0], vec![2.0, 2.0, 0.0]];
    let mut system = by_rows(&rows, &[1.0, 1.0]);
    let mut v = vec![5.0, 5.0, 0.0];
    let mut no_monitor = NoMonitor;
    system
        .factor(&mut RunContext::new(None, &mut no_monitor))
        .expect("not interrupted");
    system.solve(&mut v);
    assert_eq!(v[1..], [0.0, 0.0]);
    assert!((v[0] - 1.0).abs() < 1e-15);
}

/// A system of more unknowns than a panel has rows, from rows of random numbers. The columns `twins` are equal to the
/// last column but one.
fn large(size: usize, twins: &[usize]) -> SymmetricSystem {
    let mut generator = Generator::new(1);
    let mut number = || generator.below(1 << 20) as f64 / f64::from(1 << 20) - 0.5;
    let mut system = SymmetricSystem::new(size);
    let mut no_monitor = NoMonitor;
    let context = RunContext::new(None, &mut no_monitor);
    for _ in 0..size + 10 {
        let row = system.next_row();
        for x in &mut *row {
            *x = number();
        }
        for &twin in twins {
            row[twin] = row[size - 2];
        }
        system.end_row(1.0, &context);
    }
    system.flush(&context);
    system
}

fn factor(system: &mut SymmetricSystem, n_threads: usize) {
    let mut no_monitor = NoMonitor;
    let mut context = RunContext::new(None, &mut no_monitor);
    context
        .set_threads(n_threads, usize::MAX, 1)
        .expect("threads");
    system.factor(&mut context).expect("not interrupted");
}

#[test]
fn large_systems_are_solved_with_the_same_bits_for_any_number_of_threads() {
    for size in [63, 64, 65, 127, 200, 448, 700] {
        let mut first: Option<Vec<f64>> = None;
        for n_threads in [1, 2, 3] {
            let mut system = large(size, &[]);
            let matrix = system.matrix.clone();
            let cell = |j: usize, l: usize| matrix[j.max(l) * size + j.min(l)];
            let right: Vec<f64> = (0..size).map(|j| 1.0 + (j % 5) as f64).collect();
            let mut v = right.clone();
            factor(&mut system, n_threads);
            system.solve(&mut v);
            let first = first.get_or_insert_with(|| v.clone());
            assert_eq!(*first, v);
            let length: f64 = v.iter().map(|v| v.abs()).sum();
            for (j, right) in right.iter().enumerate() {
                let left: f64 = v.iter().enumerate().map(|(l, v)| cell(j, l) * v).sum();
                let off = (left - right).abs();
                assert!(off < 1e-12 * length, "{off} in unknown {j} of {size}");
            }
        }
    }
}

#[test]
fn forward_and_backward_are_halves_of_a_solution() {
    let size = 150;
    let mut system = large(size, &[]);
    factor(&mut system, 1);
    // |U^-T S v|^2 = v' A^-1 v.
    let v: Vec<f64> = (0..size).map(|j| (j % 3) as f64 - 1.0).collect();
    let (mut half, mut whole) = (v.clone(), v.clone());
    system.forward(&mut half);
    system.solve(&mut whole);
    let of_half: f64 = half.iter().map(|h| h * h).sum();
    let of_whole: f64 = whole.iter().zip(&v).map(|(w, v)| w * v).sum();
    assert!((of_half / of_whole - 1.0).abs() < 1e-10);
    system.backward(&mut half);
    assert_eq!(half, whole);
}

/// Equal columns in the same panel, in earlier panels, and as the first unknown.
#[test]
fn what_large_systems_do_not_tell_apart_is_held_fast_too() {
    let size = 200;
    for twins in [&[0][..], &[197], &[5, 70, 130]] {
        let mut system = large(size, twins);
        let matrix = system.matrix.clone();
        let cell = |j: usize, l: usize| matrix[j.max(l) * size + j.min(l)];
        // A right-hand side for which there is a solution.
        let x: Vec<f64> = (0..size).map(|j| 1.0 + (j % 5) as f64).collect();
        let times = |x: &[f64]| -> Vec<f64> {
            let of_row = |j| x.iter().enumerate().map(|(l, x)| cell(j, l) * x).sum();
            (0..size).map(of_row).collect()
        };
        let right = times(&x);
        factor(&mut system, 2);
        // All of the equal columns but the first.
        let mut alike = [twins, &[size - 2]].concat();
        alike.remove(0);
        for j in 0..size {
            assert_eq!(system.pivot(j).is_infinite(), alike.contains(&j), "{j}");
        }
        assert!(system.remainder(&right) < 1e-16 * right.iter().map(|r| r * r).sum::<f64>());
        let mut found = right.clone();
        system.solve(&mut found);
        for j in alike {
            assert_eq!(found[j], 0.0);
        }
        for (left, right) in times(&found).iter().zip(&right) {
            assert!((left / right - 1.0).abs() < 1e-8);
        }
        system.release();
        let mut v = right;
        system.forward(&mut v);
        assert!(v.iter().all(|v| v.is_finite()));
    }
}

#[test]
fn a_factorisation_ends_with_the_time() {
    let mut system = large(300, &[]);
    let mut no_monitor = NoMonitor;
    let mut context = RunContext::new(Some(Duration::ZERO), &mut no_monitor);
    assert_eq!(system.factor(&mut context), Err(Error::OutOfTime));
}
