//! Matrices as Python hands them over.

use numpy::{
    Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::data::Storage;
use crate::error::Error;
use crate::kernel::{Borrowed, Index, Real};
use crate::rows::{Csr, Dense, Pattern};
use crate::run::parameter;

/// A matrix whose storage is known only at run time.
#[derive(FromPyObject)]
pub(super) enum Matrix<'py> {
    Dense64(PyReadonlyArray2<'py, f64>),
    Dense32(PyReadonlyArray2<'py, f32>),
    Csr(Values<'py>, Indices<'py>, Indices<'py>, usize),
}

#[derive(FromPyObject)]
pub(super) enum Values<'py> {
    F64(PyReadonlyArray1<'py, f64>),
    F32(PyReadonlyArray1<'py, f32>),
}

#[derive(FromPyObject)]
pub(super) enum Indices<'py> {
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
}

impl Matrix<'_> {
    /// Number of rows, as far as that is known before the matrix is checked.
    pub(super) fn n_rows(&self) -> usize {
        match self {
            Self::Dense64(x) => x.shape()[0],
            Self::Dense32(x) => x.shape()[0],
            Self::Csr(_, _, Indices::I32(p), _) => p.len().saturating_sub(1),
            Self::Csr(_, _, Indices::I64(p), _) => p.len().saturating_sub(1),
        }
    }

    /// The rows, borrowed. Those that are to be read often are looked through for a pattern.
    pub(super) fn storage(&self, py: Python<'_>, is_read_often: bool) -> PyResult<Storage<'_>> {
        let often = is_read_often;
        Ok(match self {
            Self::Dense64(x) => dense(x)?.into(),
            Self::Dense32(x) => dense(x)?.into(),
            Self::Csr(values, indices, p, n) => match (values, indices) {
                (Values::F64(v), Indices::I32(j)) => sparse(py, csr(py, v, j, p, *n)?, often),
                (Values::F64(v), Indices::I64(j)) => sparse(py, csr(py, v, j, p, *n)?, often),
                (Values::F32(v), Indices::I32(j)) => sparse(py, csr(py, v, j, p, *n)?, often),
                (Values::F32(v), Indices::I64(j)) => sparse(py, csr(py, v, j, p, *n)?, often),
            },
        })
    }

    /// Checks all column indices, and says whether a column occurs twice in some row.
    pub(super) fn has_duplicates(&self, py: Python<'_>) -> PyResult<bool> {
        fn check<F: Real, I: Index>(py: Python<'_>, rows: &Csr<'_, F, I>) -> Result<bool, Error> {
            Ok(py.detach(|| rows.scan())?.is_some())
        }
        Ok(match self {
            Self::Dense64(_) | Self::Dense32(_) => false,
            Self::Csr(Values::F64(v), Indices::I32(j), p, n) => check(py, &csr(py, v, j, p, *n)?)?,
            Self::Csr(Values::F64(v), Indices::I64(j), p, n) => check(py, &csr(py, v, j, p, *n)?)?,
            Self::Csr(Values::F32(v), Indices::I32(j), p, n) => check(py, &csr(py, v, j, p, *n)?)?,
            Self::Csr(Values::F32(v), Indices::I64(j), p, n) => check(py, &csr(py, v, j, p, *n)?)?,
        })
    }
}

/// Compressed rows, as a pattern if they are one and that pays.
fn sparse<'a, F: Real, I: Index>(
    py: Python<'_>,
    rows: Csr<'a, F, I>,
    is_read_often: bool,
) -> Storage<'a>
where
    Storage<'a>: From<Csr<'a, F, I>> + From<Pattern<'a, I>>,
{
    if !is_read_often {
        return rows.into();
    }
    match py.detach(|| rows.into_pattern()) {
        Ok(pattern) => pattern.into(),
        Err(rows) => rows.into(),
    }
}

fn dense<'a, F: Real + Element>(x: &'a PyReadonlyArray2<'_, F>) -> Result<Dense<'a, F>, Error> {
    if !x.data().is_aligned() {
        return Err(parameter(
            "X",
            "an array that is not aligned",
            "an aligned array",
        ));
    }
    Dense::new(x.as_array())
}

/// Column indices are checked where they are used. The copy of the row pointers takes time: the interpreter
/// is released around it too.
fn csr<'a, F, I>(
    py: Python<'_>,
    values: &'a PyReadonlyArray1<'_, F>,
    indices: &'a PyReadonlyArray1<'_, I>,
    indptr: &Indices<'_>,
    n_cols: usize,
) -> Result<Csr<'a, F, I>, Error>
where
    F: Real + Element,
    I: Index + Element,
{
    let (values, indices) = (borrowed("X.data", values)?, borrowed("X.indices", indices)?);
    match indptr {
        Indices::I32(p) => {
            let indptr = borrowed("X.indptr", p)?;
            py.detach(|| Csr::with_unchecked_indices(values, indices, indptr, n_cols))
        }
        Indices::I64(p) => {
            let indptr = borrowed("X.indptr", p)?;
            py.detach(|| Csr::with_unchecked_indices(values, indices, indptr, n_cols))
        }
    }
}

/// Borrows a numpy array that other Python threads may write meanwhile.
fn borrowed<'a, T>(
    name: &'static str,
    array: &'a PyReadonlyArray1<'_, T>,
) -> Result<Borrowed<'a, T>, Error>
where
    T: crate::kernel::Element + Element,
{
    let array: &Bound<'_, PyArray1<T>> = array;
    if !array.is_contiguous() || !array.data().is_aligned() {
        return Err(parameter(
            name,
            "an array with gaps or not aligned",
            "a contiguous, aligned array",
        ));
    }
    // SAFETY: the pointer is aligned, the array contiguous, and the borrow keeps it alive for 'a.
    Ok(unsafe { Borrowed::from_raw(array.data(), array.len()) })
}
