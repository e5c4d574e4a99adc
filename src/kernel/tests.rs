use super::*;
use proptest::prelude::*;

mod naive {
    pub(super) fn dot(x: &[f64], w: &[f64]) -> f64 {
        x.iter().zip(w).map(|(x, w)| x * w).sum()
    }

    pub(super) fn axpy(scale: f64, x: &[f64], w: &[f64]) -> Vec<f64> {
        x.iter().zip(w).map(|(x, w)| w + scale * x).collect()
    }

    pub(super) fn only_value(x: &[f64]) -> Option<f64> {
        let first = x.first().copied().unwrap_or(0.0);
        x.iter().all(|x| *x == first).then_some(first)
    }

    /// The dense form of a sparse row.
    pub(super) fn scatter(values: &[f64], indices: &[i32], n_cols: usize) -> Vec<f64> {
        let mut row = vec![0.0; n_cols];
        for (v, &j) in values.iter().zip(indices) {
            row[usize::try_from(j).expect("test indices are not negative")] += v;
        }
        row
    }
}

#[test]
fn what_is_shared_outlives_each_owner() {
    let first = Shared::from(vec![1, 2, 3]);
    let second = first.clone();
    assert_eq!(first.as_ptr(), second.as_ptr());
    drop(first);
    let moved = std::thread::spawn(move || second.to_vec());
    assert_eq!(moved.join().expect("no panic"), [1, 2, 3]);
    assert!(Shared::from(Vec::<f64>::new()).is_empty());
}

const N_COLS: usize = 37;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * (1.0 + a.abs().max(b.abs()))
}

fn numbers(n: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-10.0..10.0, n)
}

fn dense() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    (0usize..70).prop_flat_map(|n| (numbers(n), numbers(n)))
}

fn sparse() -> impl Strategy<Value = (Vec<f64>, Vec<i32>, Vec<f64>)> {
    (0usize..20).prop_flat_map(|nnz| {
        let index = 0..i32::try_from(N_COLS).expect("small");
        (
            numbers(nnz),
            prop::collection::vec(index, nnz),
            numbers(N_COLS),
        )
    })
}

proptest! {
    #[test]
    fn dense_kernels_agree_with_the_naive((x, w) in dense(), scale in -3.0..3.0f64) {
        prop_assert!(close(dense_sq_norm(&x), naive::dot(&x, &x)));
        for level in Level::available() {
            prop_assert!(close(dense_dot(level, &x, &w), naive::dot(&x, &w)));
            let mut moved = w.clone();
            dense_axpy(level, scale, &x, &mut moved);
            for (a, b) in moved.iter().zip(naive::axpy(scale, &x, &w)) {
                prop_assert!(close(*a, b));
            }
        }
    }

    #[test]
    fn float32_rows_are_accumulated_in_float64((x, w) in dense(), scale in -3.0..3.0f64) {
        let single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let back: Vec<f64> = single.iter().map(|&v| f64::from(v)).collect();
        prop_assert!(close(dense_sq_norm(&single), naive::dot(&back, &back)));
        for level in Level::available() {
            prop_assert!(close(dense_dot(level, &single, &w), naive::dot(&back, &w)));
            let mut moved = w.clone();
            dense_axpy(level, scale, &single, &mut moved);
            for (a, b) in moved.iter().zip(naive::axpy(scale, &back, &w)) {
                prop_assert!(close(*a, b));
            }
        }
    }

    #[test]
    fn kernels_of_narrow_rows_agree_with_the_naive(
        (n_cols, x) in (1usize..=NARROW, 0usize..20).prop_flat_map(|(n_cols, n)| (Just(n_cols), numbers(n_cols * n))),
        others in numbers(40),
    ) {
        let n_rows = x.len() / n_cols;
        let (w, mut shares) = (&others[..n_cols], others[20..20 + n_rows].to_vec());
        let single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        // A row whose share is 0 may hold anything.
        let mut hollow = x.clone();
        if n_rows > 3 {
            shares[3] = 0.0;
            hollow[3 * n_cols] = f64::NAN;
        }
        let mut expected_sum = w.to_vec();
        for (row, &share) in x.chunks(n_cols).zip(&shares) {
            expected_sum = naive::axpy(share, row, &expected_sum);
        }
        let mut portable = w.to_vec();
        narrow_sum(Level::PORTABLE, &hollow, &shares, &mut portable);
        let mut found = vec![0.0; n_rows];
        narrow_products(&x, w, &mut found);
        for (row, found) in x.chunks(n_cols).zip(&found) {
            prop_assert!(close(*found, naive::dot(row, w)));
            prop_assert_eq!(*found, dense_dot(Level::PORTABLE, row, w));
        }
        let mut of_single = vec![0.0; n_rows];
        narrow_products(&single, w, &mut of_single);
        for (found, expected) in of_single.iter().zip(&found) {
            prop_assert!((found - expected).abs() < 1e-3);
        }
        for level in Level::available() {
            let mut sum = w.to_vec();
            narrow_sum(level, &hollow, &shares, &mut sum);
            prop_assert_eq!(&sum, &portable);
            for (found, expected) in sum.iter().zip(&expected_sum) {
                prop_assert!(close(*found, *expected), "{} for {}", found, expected);
            }
            let width = NARROW + 3;
            let mut lines = vec![7.0; n_rows * width];
            narrow_shifted(level, &x, w, width, &mut lines);
            for (line, row) in lines.chunks(width).zip(x.chunks(n_cols)) {
                let shifted: Vec<f64> = row.iter().zip(w).map(|(x, w)| x + w).collect();
                prop_assert_eq!(&line[..n_cols], &shifted);
                prop_assert!(line[n_cols..].iter().all(|&rest| rest == 7.0));
            }
        }
    }

    /// Kernels take the lengths from their arguments and stop at the end of the shorter one.
    #[test]
    fn dense_kernels_stop_where_the_shorter_one_ends((x, w) in dense(), cut in 0usize..70) {
        let cut = cut.min(x.len());
        for level in Level::available() {
            prop_assert!(close(dense_dot(level, &x, &w[..cut]), naive::dot(&x[..cut], &w[..cut])));
            prop_assert!(close(dense_dot(level, &x[..cut], &w), naive::dot(&x[..cut], &w[..cut])));
            let mut moved = w.clone();
            dense_axpy(level, 2.0, &x[..cut], &mut moved);
            prop_assert_eq!(&moved[cut..], &w[cut..]);
        }
    }

    #[test]
    fn sparse_kernels_agree_with_the_naive((values, indices, w) in sparse(), scale in -3.0..3.0f64) {
        let row = naive::scatter(&values, &indices, N_COLS);
        let wide: Vec<i64> = indices.iter().map(|&j| i64::from(j)).collect();
        let (v, narrow, wide) = (Borrowed::new(&values), Borrowed::new(&indices), Borrowed::new(&wide));
        prop_assert!(close(sparse_dot(v, narrow, &w), naive::dot(&row, &w)));
        prop_assert!(close(sparse_dot(v, wide, &w), naive::dot(&row, &w)));
        prop_assert!(close(sparse_sq_norm(v), naive::dot(&values, &values)));
        let mut moved = w.clone();
        sparse_axpy(scale, v, narrow, &mut moved);
        for (a, b) in moved.iter().zip(naive::axpy(scale, &row, &w)) {
            prop_assert!(close(*a, b));
        }
    }

    #[test]
    fn pattern_kernels_agree_with_the_naive((values, indices, w) in sparse(), scale in -3.0..3.0f64) {
        let row = naive::scatter(&vec![1.0; values.len()], &indices, N_COLS);
        let wide: Vec<i64> = indices.iter().map(|&j| i64::from(j)).collect();
        let (narrow, wide) = (Borrowed::new(&indices), Borrowed::new(&wide));
        prop_assert!(close(pattern_dot(narrow, &w), naive::dot(&row, &w)));
        prop_assert!(close(pattern_dot(wide, &w), naive::dot(&row, &w)));
        let mut moved = w.clone();
        pattern_axpy(scale, narrow, &mut moved);
        for (a, b) in moved.iter().zip(naive::axpy(scale, &row, &w)) {
            prop_assert!(close(*a, b));
        }
        let mut visited = vec![];
        pattern_visit(wide, N_COLS, &mut |j| visited.push(j));
        prop_assert!(visited.iter().copied().eq(narrow.iter().map(Index::to_usize)));
    }

    #[test]
    fn one_value_is_told_from_several_as_by_the_naive(
        values in prop::collection::vec(prop::sample::select(vec![0.5, 0.5, 0.5, 0.5, -2.0, f64::NAN]), 0..9)
    ) {
        prop_assert_eq!(only_value(Borrowed::new(&values)), naive::only_value(&values));
    }
}

#[test]
fn an_index_out_of_range_is_an_error_not_a_panic() {
    let values = [1.0, 2.0];
    for found in [-1, 3, i32::MAX, i32::MIN] {
        let indices = [0, found];
        let expected = Err(Error::ColumnIndex {
            found: i64::from(found),
            n_cols: 3,
        });
        let dot = error::catch(|| {
            Ok(sparse_dot(
                Borrowed::new(&values),
                Borrowed::new(&indices),
                &[1.0; 3],
            ))
        });
        assert_eq!(dot, expected);
        let axpy = error::catch(|| {
            sparse_axpy(
                1.0,
                Borrowed::new(&values),
                Borrowed::new(&indices),
                &mut [1.0; 3],
            );
            Ok(0.0)
        });
        assert_eq!(axpy, expected);
        let dot = error::catch(|| Ok(pattern_dot(Borrowed::new(&indices), &[1.0; 3])));
        assert_eq!(dot, expected);
        let axpy = error::catch(|| {
            pattern_axpy(1.0, Borrowed::new(&indices), &mut [1.0; 3]);
            Ok(0.0)
        });
        assert_eq!(axpy, expected);
        let visit = error::catch(|| {
            pattern_visit(Borrowed::new(&indices), 3, &mut |_| {});
            Ok(0.0)
        });
        assert_eq!(visit, expected);
    }
}

#[test]
#[should_panic(expected = "another panic")]
fn other_panics_pass_through() {
    let _ = error::catch(|| -> Result<(), Error> { panic!("another panic") });
}
