//! Matrices that are examined once and used by many calls.
//!
//! Nothing is borrowed for longer than a call. [`PyRows`] holds the Python objects and, separately, what is known about
//! them. Each call borrows the arrays again, subject to numpy's own checks, and combines the two. If an array has been
//! changed in place between two calls, or has even moved, results may be wrong. But memory is safe for the same reasons
//! as in a call with the matrix itself, and no `unsafe` is needed here.

use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::matrix::{Examination, Matrix, Structure, changed};
use super::{guarded, slice};
use crate::data::{Cache, Data, Storage};

/// A matrix and its weights, examined.
#[pyclass(frozen, name = "Rows", module = "sdca_rs._core")]
pub(super) struct PyRows {
    matrix: Py<PyAny>,
    sample_weight: Option<Py<PyArray1<f64>>>,
    structure: Structure,
    /// What fits have computed, if that is to be kept.
    cache: Option<Cache>,
    /// Whether the scan has found a column that occurs twice in some row. Such rows are not for fits.
    #[pyo3(get)]
    has_duplicates: bool,
}

#[pymethods]
impl PyRows {
    #[new]
    #[pyo3(signature = (X, *, sample_weight, scan, find_pattern, keep))]
    fn new(
        py: Python<'_>,
        X: Py<PyAny>,
        sample_weight: Option<Py<PyArray1<f64>>>,
        scan: bool,
        find_pattern: bool,
        keep: bool,
    ) -> PyResult<Self> {
        guarded(|| {
            let what = Examination { scan, find_pattern };
            let matrix: Matrix<'_> = X.bind(py).extract()?;
            let (structure, has_duplicates) = matrix.examine(py, what)?;
            drop(matrix);
            Ok(Self {
                matrix: X,
                sample_weight,
                structure,
                cache: keep.then(Cache::keeping_all),
                has_duplicates,
            })
        })
    }
}

/// Rows as Python hands them over: examined, or not.
#[derive(FromPyObject)]
pub(super) enum Source<'py> {
    Examined(Bound<'py, PyRows>),
    Matrix(Matrix<'py>),
}

impl<'py> Source<'py> {
    /// Borrows the arrays, until what is returned is dropped.
    pub(super) fn lend(self, py: Python<'py>) -> PyResult<Lent<'py>> {
        let rows = match self {
            Self::Matrix(matrix) => {
                return Ok(Lent {
                    matrix,
                    sample_weight: None,
                    rows: None,
                });
            }
            Self::Examined(rows) => rows,
        };
        let known = rows.get();
        let matrix = known.matrix.bind(py).extract();
        let sample_weight = known.sample_weight.as_ref().map(|c| c.bind(py).extract());
        Ok(Lent {
            matrix: matrix.map_err(|_| changed("another type", "the same types"))?,
            sample_weight: sample_weight.transpose()?,
            rows: Some(rows),
        })
    }
}

/// Arrays that are borrowed for a call.
pub(super) struct Lent<'py> {
    matrix: Matrix<'py>,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
    rows: Option<Bound<'py, PyRows>>,
}

impl Lent<'_> {
    /// Number of rows, as far as that is known before the matrix is checked.
    pub(super) fn n_rows(&self) -> usize {
        self.matrix.n_rows()
    }

    /// The rows, for work that reads them once and without their weights.
    pub(super) fn storage(&self, py: Python<'_>) -> PyResult<Storage<'_>> {
        match &self.rows {
            // Sums over a pattern are rounded in another way.
            Some(rows) if !matches!(rows.get().structure, Structure::Pattern(_)) => {
                self.matrix.examined(&rows.get().structure)
            }
            _ => self.matrix.storage(py),
        }
    }

    /// The rows, for work that reads them once, with these weights or, if there are none, their own.
    pub(super) fn part<'a>(
        &'a self,
        py: Python<'_>,
        sample_weight: Option<&'a PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Arc<Data<'a>>> {
        let weights = self.weights(sample_weight)?;
        Ok(Arc::new(Data::new(self.storage(py)?, weights)?))
    }

    fn weights<'a>(
        &'a self,
        sample_weight: Option<&'a PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Option<&'a [f64]>> {
        let weights = sample_weight.or(self.sample_weight.as_ref());
        weights.map(|c| slice("sample_weight", c)).transpose()
    }

    /// The rows, for work that reads them often, with these weights or, if there are none, their own.
    pub(super) fn data<'a>(
        &'a self,
        py: Python<'_>,
        sample_weight: Option<&'a PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Arc<Data<'a>>> {
        let weights = self.weights(sample_weight)?;
        let Some(rows) = &self.rows else {
            return Ok(Arc::new(Data::new(self.matrix.storage(py)?, weights)?));
        };
        let known = rows.get();
        let storage = self.matrix.examined(&known.structure)?;
        let cache = match &known.cache {
            None => Cache::default(),
            Some(cache) if sample_weight.is_some() => cache.without_weights(),
            Some(cache) => cache.clone(),
        };
        Ok(Arc::new(Data::with_cache(storage, weights, cache)?))
    }
}
