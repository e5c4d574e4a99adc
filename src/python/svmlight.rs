//! Files in the svmlight format, read into arrays that numpy has the memory of.

use std::ops::ControlFlow;
use std::path::PathBuf;

use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::rows::Source as Matrix;
use super::watcher::Outside;
use super::{detached, guarded, new_array, slice};
use crate::memory::IntoVec as _;
use crate::svmlight::{
    Column, Labels, Numbering, Plan, ReadOptions, Room, Source, Summary, Value, WriteOptions,
    Writer,
};

/// A file, or text in memory.
#[derive(FromPyObject)]
pub(super) enum Text<'py> {
    Path(PathBuf),
    Bytes(PyReadonlyArray1<'py, u8>),
}

/// The arrays, which may be longer than what they hold, and the rest.
#[pyclass(frozen, name = "Table", module = "sdca_rs._core")]
pub(super) struct PyTable {
    #[pyo3(get)]
    data: Py<PyAny>,
    #[pyo3(get)]
    indices: Py<PyAny>,
    #[pyo3(get)]
    indptr: Py<PyAny>,
    #[pyo3(get)]
    targets: Py<PyArray1<f64>>,
    #[pyo3(get)]
    n_rows: usize,
    #[pyo3(get)]
    n_entries: usize,
    #[pyo3(get)]
    n_features: usize,
    /// Whether the index 1 was taken for the first column.
    #[pyo3(get)]
    from_one: bool,
    /// With several labels: those of all rows, and their number up to the end of each row.
    #[pyo3(get)]
    labels: Py<PyArray1<f64>>,
    #[pyo3(get)]
    label_ends: Py<PyArray1<i64>>,
    #[pyo3(get)]
    query_ids: Py<PyArray1<i64>>,
}

/// Reads a file or text, which messages call `name`. `zero_based` None finds out.
#[pyfunction]
#[pyo3(signature = (
    text, name, *, single, multilabel, zero_based, query_id, offset, length, n_threads
))]
pub(super) fn read_svmlight<'py>(
    py: Python<'py>,
    text: Text<'py>,
    name: &str,
    single: bool,
    multilabel: bool,
    zero_based: Option<bool>,
    query_id: bool,
    offset: u64,
    length: Option<u64>,
    n_threads: usize,
) -> PyResult<PyTable> {
    guarded(|| {
        let options = ReadOptions {
            numbering: match zero_based {
                None => Numbering::Auto,
                Some(true) => Numbering::Zero,
                Some(false) => Numbering::One,
            },
            // What several files have in common is for the caller to know.
            n_cols: None,
            multilabel,
            query_ids: query_id,
            offset,
            length,
            n_threads,
        };
        let source = match &text {
            Text::Path(path) => detached(py, || Source::file(name, path))?,
            Text::Bytes(bytes) => Source::bytes(name, bytes.as_slice()?),
        };
        let outside = Outside::default();
        let plan = detached(py, || Plan::new(&source, &options, &mut look(&outside)));
        let table = match plan {
            Ok(plan) if single => table::<f32>(py, &plan, &outside),
            Ok(plan) => table::<f64>(py, &plan, &outside),
            Err(error) => Err(error.into()),
        };
        outside.check()?;
        table
    })
}

/// Lets Python handle signals.
fn look(outside: &Outside) -> impl FnMut() -> ControlFlow<()> + '_ {
    || {
        outside.look();
        if outside.is_ended() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn table<F: Value + Element>(
    py: Python<'_>,
    plan: &Plan<'_>,
    outside: &Outside,
) -> PyResult<PyTable> {
    if !plan.is_wide()
        && let Some(table) = table_of::<F, i32>(py, plan, outside)?
    {
        return Ok(table);
    }
    let table = table_of::<F, i64>(py, plan, outside)?;
    Ok(table.expect("every index that is accepted fits into 64 bits"))
}

/// `None` if the indices need a wider type.
fn table_of<F: Value + Element, I: Column + Element>(
    py: Python<'_>,
    plan: &Plan<'_>,
    outside: &Outside,
) -> PyResult<Option<PyTable>> {
    let data = new_array::<F>(py, plan.n_entries)?;
    let indices = new_array::<I>(py, plan.n_entries)?;
    let indptr = new_array::<I>(py, plan.n_rows + 1)?;
    let targets = new_array::<f64>(py, plan.n_targets())?;
    let (mut v, mut j) = (data.readwrite(), indices.readwrite());
    let (mut p, mut y) = (indptr.readwrite(), targets.readwrite());
    let room = Room {
        values: v.as_slice_mut()?,
        indices: j.as_slice_mut()?,
        ends: p.as_slice_mut()?,
        targets: y.as_slice_mut()?,
    };
    let filled = detached(py, || plan.fill(room, &mut look(outside)))?;
    drop((v, j, p, y));
    let Some(summary) = filled else {
        return Ok(None);
    };
    let Summary {
        n_rows,
        n_entries,
        n_cols,
        from_one,
        labels,
        label_ends,
        query_ids,
    } = summary;
    let label_ends = label_ends.into_iter().map(|end| end as i64).into_vec();
    Ok(Some(PyTable {
        data: data.into_any().unbind(),
        indices: indices.into_any().unbind(),
        indptr: indptr.into_any().unbind(),
        targets: targets.unbind(),
        n_rows,
        n_entries,
        n_features: n_cols,
        from_one,
        labels: labels.into_pyarray(py).unbind(),
        label_ends: label_ends.into_pyarray(py).unbind(),
        query_ids: query_ids.into_pyarray(py).unbind(),
    }))
}

/// Calls `write` with the text of the rows, some at a time. With `label_ends`, `labels` holds those
/// of all rows, and `label_ends` their number up to the end of each row.
#[pyfunction]
#[pyo3(signature = (X, labels, write, *, label_ends, query_id, zero_based, n_threads))]
pub(super) fn write_svmlight<'py>(
    py: Python<'py>,
    X: Matrix<'py>,
    labels: PyReadonlyArray1<'py, f64>,
    write: Bound<'py, PyAny>,
    label_ends: Option<PyReadonlyArray1<'py, i64>>,
    query_id: Option<PyReadonlyArray1<'py, i64>>,
    zero_based: bool,
    n_threads: usize,
) -> PyResult<()> {
    guarded(|| {
        let ends = match &label_ends {
            None => None,
            Some(ends) => Some(ends.as_slice()?.iter().map(|&end| end as usize).into_vec()),
        };
        let labels = slice("y", &labels)?;
        let labels = match &ends {
            None => Labels::One(labels),
            Some(ends) => Labels::Several { labels, ends },
        };
        let query_ids = query_id.as_ref().map(|ids| ids.as_slice()).transpose()?;
        let options = WriteOptions {
            zero_based,
            query_ids,
            n_threads,
        };
        let rows = X.lend(py)?;
        let storage = rows.storage(py)?;
        let writer = Writer::new(&storage, labels, &options)?;
        let mut from = 0;
        while from < rows.n_rows() {
            let texts;
            (texts, from) = detached(py, || {
                let (texts, to) = writer.next(from);
                Ok((texts?, to))
            })?;
            for text in texts {
                write.call1((PyBytes::new(py, &text),))?;
            }
            py.check_signals()?;
        }
        Ok(())
    })
}
