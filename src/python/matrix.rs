//! Matrices as Python hands them over.

use numpy::{
    Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::data::Storage;
use crate::error::Error;
use crate::kernel::{Borrowed, Index, Real, Shared};
use crate::rows::{Csr, Dense, Pattern, RowStart, Rows as _};
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

/// The structure of a matrix as far as it has been examined, without its arrays.
pub(super) enum Structure {
    /// The numbers of rows and columns of a dense matrix.
    Dense([usize; 2]),
    /// Compressed rows with these row pointers.
    Rows(Shared<usize>),
    /// Compressed rows with a single value each, and where they begin.
    Pattern(Shared<RowStart>),
}

/// What [`Matrix::examine`] does.
#[derive(Clone, Copy)]
pub(super) struct Examination {
    /// Check all column indices, and look for a column that occurs twice in a row.
    pub(super) scan: bool,
    /// Look for a pattern, for rows that will be read often.
    pub(super) find_pattern: bool,
}

/// Does the same work whatever the types of a CSR matrix are.
macro_rules! with_types {
    ($values:expr, $indices:expr, ($v:ident, $j:ident) => $work:expr) => {
        match ($values, $indices) {
            (Values::F64($v), Indices::I32($j)) => $work,
            (Values::F64($v), Indices::I64($j)) => $work,
            (Values::F32($v), Indices::I32($j)) => $work,
            (Values::F32($v), Indices::I64($j)) => $work,
        }
    };
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

    /// The rows, borrowed, for work that reads them once. Column indices are checked where they are used.
    pub(super) fn storage(&self, py: Python<'_>) -> PyResult<Storage<'_>> {
        Ok(match self {
            Self::Dense64(x) => dense(x)?.into(),
            Self::Dense32(x) => dense(x)?.into(),
            Self::Csr(values, indices, p, n) => {
                with_types!(values, indices, (v, j) => csr(py, v, j, p, *n)?.into())
            }
        })
    }

    /// Examines the structure, and says whether a column occurs twice in some row.
    pub(super) fn examine(&self, py: Python<'_>, what: Examination) -> PyResult<(Structure, bool)> {
        Ok(match self {
            Self::Dense64(x) => (Structure::Dense(shape(&dense(x)?)), false),
            Self::Dense32(x) => (Structure::Dense(shape(&dense(x)?)), false),
            Self::Csr(values, indices, p, n) => {
                with_types!(values, indices, (v, j) => examine(py, csr(py, v, j, p, *n)?, what)?)
            }
        })
    }

    /// The rows, borrowed, of a matrix whose structure has been examined. Safety does not rest on the
    /// earlier examination: the lengths of the arrays are compared here, and column indices are checked
    /// where they are used.
    pub(super) fn examined(&self, structure: &Structure) -> PyResult<Storage<'_>> {
        Ok(match (self, structure) {
            (Self::Dense64(x), Structure::Dense(known)) => of_shape(dense(x)?, *known)?.into(),
            (Self::Dense32(x), Structure::Dense(known)) => of_shape(dense(x)?, *known)?.into(),
            (Self::Csr(values, indices, _, n), Structure::Rows(indptr)) => {
                with_types!(values, indices, (v, j) => {
                    let (v, j) = (borrowed("X.data", v)?, borrowed("X.indices", j)?);
                    Csr::with_checked_indptr(v, j, indptr.clone(), *n)?.into()
                })
            }
            (Self::Csr(_, indices, _, n), Structure::Pattern(starts)) => match indices {
                Indices::I32(j) => pattern(j, starts, *n)?.into(),
                Indices::I64(j) => pattern(j, starts, *n)?.into(),
            },
            _ => {
                return Err(changed(
                    "another kind of matrix",
                    "the one that was prepared",
                ));
            }
        })
    }
}

fn shape<F: Real>(rows: &Dense<'_, F>) -> [usize; 2] {
    [rows.n_rows(), rows.n_cols()]
}

/// Dense rows, if they are still as many of as many columns.
fn of_shape<F: Real>(rows: Dense<'_, F>, known: [usize; 2]) -> PyResult<Dense<'_, F>> {
    let found = shape(&rows);
    if found == known {
        return Ok(rows);
    }
    Err(changed(format!("{found:?}"), format!("{known:?}")))
}

fn pattern<'a, I: Index + Element>(
    indices: &'a PyReadonlyArray1<'_, I>,
    starts: &Shared<RowStart>,
    n_cols: usize,
) -> Result<Pattern<'a, I>, Error> {
    Pattern::with_checked_starts(borrowed("X.indices", indices)?, starts.clone(), n_cols)
}

/// The error for arrays that are no longer those that were prepared.
pub(super) fn changed(found: impl std::fmt::Display, expected: impl std::fmt::Display) -> PyErr {
    let found = format!("arrays that have been changed in place ({found})");
    let expected = format!("those that Data was made of ({expected})");
    PyValueError::new_err(format!("X: found {found}, expected {expected}"))
}

fn examine<F: Real, I: Index>(
    py: Python<'_>,
    rows: Csr<'_, F, I>,
    Examination { scan, find_pattern }: Examination,
) -> Result<(Structure, bool), Error> {
    super::detached(py, || {
        if scan && rows.scan()?.is_some() {
            return Ok((Structure::Rows(rows.indptr()), true));
        }
        if !find_pattern {
            return Ok((Structure::Rows(rows.indptr()), false));
        }
        let structure = match rows.into_pattern() {
            Ok(pattern) => Structure::Pattern(pattern.starts()),
            Err(rows) => Structure::Rows(rows.indptr()),
        };
        Ok((structure, false))
    })
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
