//! Constructors of [`Data`] from arrays, slices and the matrices of other crates.

use ndarray::{ArrayView1, ArrayView2};

use super::{Data, Storage};
use crate::error::{self, Error};
use crate::rows::{Borrowed, Csr, Dense, Index, Real};
use crate::run::parameter;

/// A number type for rows: `f32` or `f64`. All arithmetic is done in `f64`.
pub trait Number: Real {
    #[doc(hidden)]
    fn dense(rows: Dense<'_, Self>) -> Storage<'_>;
    #[doc(hidden)]
    fn narrow(rows: Csr<'_, Self, i32>) -> Storage<'_>;
    #[doc(hidden)]
    fn wide(rows: Csr<'_, Self, i64>) -> Storage<'_>;
}

macro_rules! number {
    ($($number:ty),+) => {$(
        impl Number for $number {
            fn dense(rows: Dense<'_, Self>) -> Storage<'_> {
                rows.into()
            }

            fn narrow(rows: Csr<'_, Self, i32>) -> Storage<'_> {
                rows.into_pattern().map_or_else(Into::into, Into::into)
            }

            fn wide(rows: Csr<'_, Self, i64>) -> Storage<'_> {
                rows.into_pattern().map_or_else(Into::into, Into::into)
            }
        }
    )+};
}

number!(f32, f64);

/// A number type for column indices: `i32`, `i64`, `u32`, `u64` or `usize`. Indices are used in
/// place, without a copy; 32-bit indices are faster.
pub trait ColumnIndex: Index {
    #[doc(hidden)]
    fn store<F: Number>(rows: Csr<'_, F, Self>) -> Storage<'_>;
}

macro_rules! column_index {
    ($($index:ty => $store:ident,)+) => {$(
        impl ColumnIndex for $index {
            fn store<F: Number>(rows: Csr<'_, F, Self>) -> Storage<'_> {
                F::$store(rows.signed())
            }
        }
    )+};
}

column_index! {
    i32 => narrow,
    u32 => narrow,
    i64 => wide,
    u64 => wide,
}

#[cfg(target_pointer_width = "64")]
column_index!(usize => wide,);

#[cfg(target_pointer_width = "32")]
column_index!(usize => narrow,);

impl<'a> Data<'a> {
    /// Dense rows: a matrix of `f32` or `f64` in C order, such as `&array` for an
    /// [`ndarray::Array2`], a view of one, or an array of arrays.
    ///
    /// ```
    /// use ndarray::array;
    /// use sdca_rs::data::Data;
    ///
    /// let x = array![[0.0, 1.0], [1.0, 1.0], [2.0, -1.0]];
    /// assert_eq!(Data::dense(&x)?.n_rows(), 3);
    ///
    /// // In a view of the transpose, the entries of a row are not contiguous.
    /// let error = Data::dense(x.t()).expect_err("not in C order");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "X: found strides [1, 2], expected a contiguous array in C order"
    /// );
    /// # Ok::<(), sdca_rs::Error>(())
    /// ```
    pub fn dense<F: Number>(x: impl Into<ArrayView2<'a, F>>) -> Result<Self, Error> {
        Self::new(F::dense(Dense::new(x.into())?), None)
    }

    /// Sparse rows in compressed format: row `i` holds `values[indptr[i]..indptr[i + 1]]` in the
    /// columns `indices[indptr[i]..indptr[i + 1]]` of `n_cols`.
    ///
    /// Columns need not be sorted, but each may occur only once in a row. Only the row pointers are
    /// copied. If the entries of every row have a single common value, as in one-hot codes, the
    /// values are not read again.
    ///
    /// ```
    /// use sdca_rs::data::Data;
    ///
    /// // [[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]
    /// let (indptr, indices, values) = ([0, 1, 3], [1, 0, 2], [2.0, 1.0, 3.0]);
    /// assert_eq!(Data::csr(&indptr, &indices, &values, 3)?.n_rows(), 2);
    ///
    /// let error = Data::csr(&indptr, &indices, &values, 2).expect_err("there is a column 2");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "X.indices: found column 2, expected 0 <= column < 2"
    /// );
    /// # Ok::<(), sdca_rs::Error>(())
    /// ```
    pub fn csr<P: Index, I: ColumnIndex, F: Number>(
        indptr: &[P],
        indices: &'a [I],
        values: &'a [F],
        n_cols: usize,
    ) -> Result<Self, Error> {
        error::catch(|| {
            let (values, indices, indptr) = (
                Borrowed::new(values),
                Borrowed::new(indices),
                Borrowed::new(indptr),
            );
            // The scan checks the indices, while they still have the caller's type.
            let rows = Csr::with_unchecked_indices(values, indices, indptr, n_cols)?;
            if let Some((row, column)) = rows.scan()? {
                return Err(Error::DuplicateColumn { row, column });
            }
            Self::new(I::store(rows), None)
        })
    }

    /// The same rows with these weights, one per row, instead of any earlier ones: `&slice`, `&vec`
    /// or `&array`.
    ///
    /// A row of weight 2 counts twice, a row of weight 0 not at all.
    ///
    /// ```
    /// use sdca_rs::data::Data;
    ///
    /// let x = [[1.0], [2.0], [3.0]];
    /// assert_eq!(Data::dense(&x)?.with_weights(&[1.0, 2.0, 0.0])?.total_weight(), 3.0);
    ///
    /// let error = Data::dense(&x)?.with_weights(&[1.0, -1.0, 0.0]).expect_err("negative");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "sample_weight: found -1 at row 1, expected finite weights >= 0"
    /// );
    /// # Ok::<(), sdca_rs::Error>(())
    /// ```
    pub fn with_weights(self, weights: impl Into<ArrayView1<'a, f64>>) -> Result<Self, Error> {
        let weights = contiguous("sample_weight", weights.into())?;
        Self::new(self.storage, Some(weights))
    }

    /// The rows of a sparse matrix of the crate sprs, which must be in compressed row format (CSR).
    ///
    /// Only the row pointers are copied.
    ///
    /// ```
    /// use sdca_rs::data::Data;
    /// use sprs::{CsMat, TriMat};
    ///
    /// let mut entries = TriMat::new((2, 3));
    /// entries.add_triplet(0, 1, 2.0);
    /// entries.add_triplet(1, 0, 1.0);
    /// let x: CsMat<f64> = entries.to_csr();
    /// assert_eq!(Data::sprs(x.view())?.n_cols(), 3);
    ///
    /// let error = Data::sprs(x.to_csc().view()).expect_err("compressed columns");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "X: found a CSC matrix, expected a CSR matrix, as `to_csr` makes it"
    /// );
    /// # Ok::<(), sdca_rs::Error>(())
    /// ```
    #[cfg(feature = "sprs")]
    #[cfg_attr(docsrs, doc(cfg(feature = "sprs")))]
    pub fn sprs<F, I, P>(x: sprs::CsMatViewI<'a, F, I, P>) -> Result<Self, Error>
    where
        F: Number,
        I: ColumnIndex + sprs::SpIndex,
        P: sprs::SpIndex,
    {
        use crate::memory::IntoVec as _;

        if !x.is_csr() {
            return Err(parameter(
                "X",
                "a CSC matrix",
                "a CSR matrix, as `to_csr` makes it",
            ));
        }
        error::catch(|| {
            let n_cols = x.cols();
            let (indptr, indices, values) = x.into_raw_storage();
            // A view of some rows of a larger matrix holds only their entries, but their original
            // row pointers.
            let first = indptr.first().map_or(0, |first| first.index());
            let indptr = indptr.iter().map(|end| end.index() - first).into_vec();
            Self::csr(&indptr, indices, values, n_cols)
        })
    }
}

/// The elements of a vector, which must be contiguous.
pub(crate) fn contiguous<'a>(
    name: &'static str,
    vector: ArrayView1<'a, f64>,
) -> Result<&'a [f64], Error> {
    vector.to_slice().ok_or_else(|| {
        let found = format!("strides {:?}", vector.strides());
        parameter(name, found, "a contiguous array")
    })
}
