//! Matrices as Python hands them over.

use numpy::{
    Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::error::Error;
use crate::kernel::{Index, Loan, Real};
use crate::rows::{Csr, Dense, Rows};
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

/// Work to be done with rows whose type is known only at run time.
pub(super) trait RowsVisitor {
    /// Whether the rows are read so often that it pays to look for a [`Pattern`](crate::rows::Pattern), and to
    /// compile the work for it.
    const READS_OFTEN: bool;
    type Out;
    fn visit<R: Rows>(self, rows: &R) -> Result<Self::Out, Error>;
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

    /// Finds the type of the rows and hands them to `visitor`: the one place where storage becomes
    /// a type.
    pub(super) fn visit<V: RowsVisitor>(&self, py: Python<'_>, visitor: V) -> PyResult<V::Out> {
        Ok(match self {
            Self::Dense64(x) => visitor.visit(&dense(x)?)?,
            Self::Dense32(x) => visitor.visit(&dense(x)?)?,
            Self::Csr(values, indices, p, n) => match (values, indices) {
                (Values::F64(v), Indices::I32(j)) => sparse(py, csr(py, v, j, p, *n)?, visitor)?,
                (Values::F64(v), Indices::I64(j)) => sparse(py, csr(py, v, j, p, *n)?, visitor)?,
                (Values::F32(v), Indices::I32(j)) => sparse(py, csr(py, v, j, p, *n)?, visitor)?,
                (Values::F32(v), Indices::I64(j)) => sparse(py, csr(py, v, j, p, *n)?, visitor)?,
            },
        })
    }

    /// Checks all column indices, and says whether a column occurs twice in some row.
    pub(super) fn has_duplicates(&self, py: Python<'_>) -> PyResult<bool> {
        fn check<F: Real, I: Index>(py: Python<'_>, rows: &Csr<'_, F, I>) -> Result<bool, Error> {
            py.detach(|| rows.scan())
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

/// Hands compressed rows to `visitor`, as a pattern if they are one and that pays.
fn sparse<F: Real, I: Index, V: RowsVisitor>(
    py: Python<'_>,
    rows: Csr<'_, F, I>,
    visitor: V,
) -> Result<V::Out, Error> {
    // Decided when it is compiled: the others need not be for patterns, too.
    if const { !V::READS_OFTEN } {
        return visitor.visit(&rows);
    }
    match py.detach(|| rows.into_pattern()) {
        Ok(pattern) => visitor.visit(&pattern),
        Err(rows) => visitor.visit(&rows),
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
    let (values, indices) = (loan("X.data", values)?, loan("X.indices", indices)?);
    match indptr {
        Indices::I32(p) => {
            let indptr = loan("X.indptr", p)?;
            py.detach(|| Csr::unscanned(values, indices, indptr, n_cols))
        }
        Indices::I64(p) => {
            let indptr = loan("X.indptr", p)?;
            py.detach(|| Csr::unscanned(values, indices, indptr, n_cols))
        }
    }
}

/// Borrows a numpy array that other Python threads may write meanwhile.
fn loan<'a, T>(name: &'static str, array: &'a PyReadonlyArray1<'_, T>) -> Result<Loan<'a, T>, Error>
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
    Ok(unsafe { Loan::from_raw(array.data(), array.len()) })
}
