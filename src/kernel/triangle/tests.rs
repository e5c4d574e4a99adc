//! Factors and solutions against their definition, for all vector instructions.

use super::*;
use proptest::prelude::*;

/// A symmetric matrix with a diagonal of ones, positive definite because its other cells are small; but two rows are
/// the same if `twins` names them.
fn triangle(size: usize, cells: &[f64], twins: Option<(usize, usize)>) -> Triangle {
    let mut triangle = Triangle::new(SIDE);
    for i in 0..size {
        for j in i..size {
            let cell = cells[i * SIDE + j] / SIDE as f64;
            triangle.rows[i][j] = if i == j { 1.0 } else { cell };
        }
    }
    if let Some((a, b)) = twins {
        for k in 0..size {
            let cell = if k == a {
                1.0
            } else {
                triangle.rows[k.min(a)][k.max(a)]
            };
            triangle.rows[k.min(b)][k.max(b)] = cell;
        }
        triangle.rows[b][b] = 1.0;
    }
    triangle
}

fn cells() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0..1.0f64, SIDE * SIDE)
}

proptest! {
    #[test]
    fn the_factor_times_itself_is_the_matrix(size in 1..=SIDE, cells in cells()) {
        let matrix = triangle(size, &cells, None);
        let mut first: Option<Triangle> = None;
        for level in Level::available() {
            let mut found = matrix.clone();
            factor(level, &mut found, size);
            for i in 0..size {
                prop_assert_eq!(found.inverses[i], 1.0 / found.rows[i][i]);
                for j in i..size {
                    let sum: f64 = (0..=i).map(|k| found.rows[k][i] * found.rows[k][j]).sum();
                    prop_assert!((sum - matrix.rows[i][j]).abs() < 1e-13);
                }
            }
            let first = first.get_or_insert_with(|| found.clone());
            for (i, (row, expected)) in found.rows.iter().zip(&first.rows).enumerate() {
                prop_assert_eq!(&row[i..], &expected[i..]);
            }
        }
    }

    #[test]
    fn solutions_solve(cells in cells()) {
        let mut triangle = triangle(SIDE, &cells, None);
        factor(Level::PORTABLE, &mut triangle, SIDE);
        let mut right = [[0.0; LANES]; SIDE];
        for (line, cells) in right.iter_mut().zip(cells.chunks(SIDE)) {
            line.copy_from_slice(&cells[..LANES]);
        }
        let mut first: Option<[[f64; LANES]; SIDE]> = None;
        for level in Level::available() {
            let mut x = right;
            solve(level, &triangle, &mut x);
            for (i, right) in right.iter().enumerate() {
                for (lane, right) in right.iter().enumerate() {
                    let sum: f64 = (0..=i).map(|k| triangle.rows[k][i] * x[k][lane]).sum();
                    prop_assert!((sum - right).abs() < 1e-13);
                }
            }
            prop_assert_eq!(*first.get_or_insert(x), x);
        }
    }
}

#[test]
fn the_row_of_a_lost_pivot_is_zero() {
    let cells: Vec<f64> = (0..SIDE * SIDE).map(|k| (k % 17) as f64 / 17.0).collect();
    for level in Level::available() {
        let mut triangle = triangle(SIDE, &cells, Some((3, 40)));
        factor(level, &mut triangle, SIDE);
        assert!(triangle.rows[40][40].is_infinite());
        assert_eq!(triangle.rows[40][41..], [0.0; SIDE - 41]);
        let mut x = [[1.0; LANES]; SIDE];
        solve(level, &triangle, &mut x);
        assert_eq!(x[40], [0.0; LANES]);
        assert!(x.as_flattened().iter().all(|x| x.is_finite()));
    }
}
