use super::*;
use ndarray::{Array2, array};

/// The arrays that [`Csr`] borrows.
pub(crate) struct CsrArrays {
    values: Vec<f64>,
    indices: Vec<i32>,
    indptr: Vec<i64>,
}

impl CsrArrays {
    /// Builds the arrays from the column and the value of each entry.
    pub(crate) fn new<R>(rows: impl IntoIterator<Item = R>) -> Self
    where
        R: IntoIterator<Item = (usize, f64)>,
    {
        let (mut values, mut indices, mut indptr) = (vec![], vec![], vec![0]);
        for row in rows {
            for (j, x) in row {
                indices.push(i32::try_from(j).expect("small"));
                values.push(x);
            }
            indptr.push(i64::try_from(values.len()).expect("small"));
        }
        Self {
            values,
            indices,
            indptr,
        }
    }

    /// The rows.
    pub(crate) fn rows(&self, n_cols: usize) -> Csr<'_, f64, i32> {
        let (values, indices) = (Borrowed::new(&self.values), Borrowed::new(&self.indices));
        Csr::new(values, indices, Borrowed::new(&self.indptr), n_cols).expect("compressed rows")
    }
}

fn csr(values: &[f64], indices: &[i32], indptr: &[i32], n_cols: usize) -> Result<bool, Error> {
    Csr::new(
        Borrowed::new(values),
        Borrowed::new(indices),
        Borrowed::new(indptr),
        n_cols,
    )
    .map(|m| m.has_duplicates())
}

#[test]
fn dense_rows_are_borrowed_in_c_order_only() {
    let x = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let rows = Dense::new(x.view()).expect("C order");
    assert_eq!(rows.row(1).as_ptr(), &raw const x[[1, 0]]);
    assert_eq!(rows.dot(1, &[1.0, 0.0, -1.0]), -2.0);
    assert!(matches!(
        Dense::new(x.t()),
        Err(Error::Parameter { name: "X", .. })
    ));
    let none = Array2::<f64>::zeros((0, 3));
    assert_eq!(
        Dense::new(none.view()).err(),
        Some(Error::EmptyRows {
            n_rows: 0,
            n_cols: 3
        })
    );
}

#[test]
fn sparse_rows_mean_what_dense_rows_mean() {
    // [[0, 2, 0], [3, 0, 1] unsorted, [] ]
    let (values, indices, indptr) = ([2.0f32, 1.0, 3.0, 9.9], [1i64, 2, 0, 0], [0i32, 1, 3, 3]);
    let rows = Csr::new(
        Borrowed::new(&values),
        Borrowed::new(&indices),
        Borrowed::new(&indptr),
        3,
    )
    .expect("valid");
    assert_eq!((rows.n_rows(), rows.n_cols(), rows.n_stored()), (3, 3, 3));
    let w = [1.0, 10.0, 100.0];
    assert_eq!(
        [rows.dot(0, &w), rows.dot(1, &w), rows.dot(2, &w)],
        [20.0, 103.0, 0.0]
    );
    assert_eq!(rows.sq_norm(1), 10.0);
    let mut moved = w;
    rows.axpy(1, 2.0, &mut moved);
    assert_eq!(moved, [7.0, 10.0, 102.0]);
}

#[test]
fn rows_of_one_value_each_are_a_pattern() {
    let arrays = CsrArrays::new([
        vec![(4, 0.5), (0, 0.5), (2, 0.5)],
        vec![],
        vec![(1, -3.0)],
        vec![(3, 0.0), (1, 0.0)],
    ]);
    let rows = arrays.rows(5);
    let pattern = rows.clone().into_pattern().expect("one value in each row");
    assert_eq!(
        (pattern.n_rows(), pattern.n_cols(), pattern.n_stored()),
        (rows.n_rows(), rows.n_cols(), rows.n_stored())
    );
    let w = [1.0, 10.0, 100.0, 1000.0, 10000.0];
    for i in 0..4 {
        assert_eq!(pattern.dot(i, &w), rows.dot(i, &w));
        assert_eq!(pattern.sq_norm(i), rows.sq_norm(i));
        let (mut of_pattern, mut of_rows) = (w, w);
        pattern.axpy(i, 2.0, &mut of_pattern);
        rows.axpy(i, 2.0, &mut of_rows);
        assert_eq!(of_pattern, of_rows);
        let (mut of_pattern, mut of_rows) = (vec![], vec![]);
        pattern.visit(i, |j, x| of_pattern.push((j, x)));
        rows.visit(i, |j, x| of_rows.push((j, x)));
        assert_eq!(of_pattern, of_rows);
        pattern.prefetch_pointers(i);
        pattern.prefetch(i);
    }
    let two = CsrArrays::new([vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0), (1, 2.0)]]);
    assert!(two.rows(2).into_pattern().is_err());
}

#[test]
fn malformed_sparse_rows_are_refused() {
    let x = [1.0, 2.0];
    assert_eq!(csr(&x, &[0, 1], &[0, 1, 2], 2), Ok(false));
    assert_eq!(
        csr(&x, &[0, 1], &[1, 1, 2], 2),
        Err(Error::IndptrStart { found: 1 })
    );
    assert_eq!(
        csr(&x, &[0, 1], &[0, 2, 1], 2),
        Err(Error::IndptrDecreases {
            row: 1,
            previous: 2,
            next: 1
        })
    );
    assert_eq!(
        csr(&x, &[0, 1], &[0, -1], 2),
        Err(Error::IndptrDecreases {
            row: 0,
            previous: 0,
            next: -1
        })
    );
    let short = |array| {
        Err(Error::IndptrEnd {
            found: 3,
            available: 2,
            array,
        })
    };
    assert_eq!(csr(&x, &[0, 1], &[0, 3], 2), short("X.indices"));
    assert_eq!(csr(&x, &[0, 1, 0], &[0, 3], 2), short("X.data"));
    assert_eq!(
        csr(&x, &[0, 2], &[0, 2], 2),
        Err(Error::ColumnIndex {
            found: 2,
            n_cols: 2
        })
    );
    assert_eq!(
        csr(&x, &[0, -7], &[0, 2], 2),
        Err(Error::ColumnIndex {
            found: -7,
            n_cols: 2
        })
    );
    assert_eq!(
        csr(&x, &[0, 1], &[0], 2),
        Err(Error::EmptyRows {
            n_rows: 0,
            n_cols: 2
        })
    );
    assert_eq!(
        csr(&x, &[0, 1], &[], 2),
        Err(Error::EmptyRows {
            n_rows: 0,
            n_cols: 2
        })
    );
    assert_eq!(
        csr(&[], &[], &[0, 0], 0),
        Err(Error::EmptyRows {
            n_rows: 1,
            n_cols: 0
        })
    );
}

#[test]
fn duplicates_are_seen_sorted_or_not() {
    let x = [1.0; 4];
    assert_eq!(csr(&x, &[0, 2, 1, 2], &[0, 2, 4], 3), Ok(false));
    assert_eq!(csr(&x, &[2, 0, 2, 1], &[0, 2, 4], 3), Ok(false));
    assert_eq!(csr(&x, &[0, 1, 1, 2], &[0, 3, 4], 3), Ok(true));
    assert_eq!(csr(&x, &[2, 0, 2, 1], &[0, 3, 4], 3), Ok(true));
}
