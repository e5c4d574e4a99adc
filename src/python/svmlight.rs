//! Files in the svmlight format, read into arrays that numpy has the memory of.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::rows::Source as Matrix;
use super::watcher::{Outside, Watchers};
use super::{FitJob, Setting, detached, guarded, new_array, slice};
use crate::memory::{self, IntoVec as _};
use crate::run::{Budget, Fit};
use crate::solver::Sdca;
use crate::svmlight::{
    Column, Labels, Numbering, Plan, ReadOptions, Room, Source, Summary, Value, WriteOptions,
    Writer, read_table,
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
            numbering: numbering(zero_based),
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
    let label_ends = label_ends
        .into_iter()
        .map(|end| end.cast_signed() as i64)
        .into_vec();
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

/// A model trained on a file, without numpy: to import it takes longer than to train on a small file.
#[pyclass(frozen, get_all, name = "Trained", module = "sdca_rs._core")]
pub(super) struct PyTrained {
    n_rows: usize,
    n_entries: usize,
    n_features: usize,
    zero_based: bool,
    /// The smallest and the largest target.
    span: (f64, f64),
    /// The labels in order, and how many rows have each; none if the targets are numbers.
    classes: Vec<f64>,
    counts: Vec<usize>,
    /// For each problem:
    coef: Vec<Vec<f64>>,
    intercept: Vec<f64>,
    objective: Vec<f64>,
    dual_objective: Vec<f64>,
    gap: Vec<f64>,
    epochs: Vec<f64>,
    steps: Vec<f64>,
    stop_reason: Vec<&'static str>,
}

/// The labels in order, and the number of the label of each row. None if they are not integers, or too
/// many to be labels beyond doubt.
fn classes_of(targets: &[f64]) -> Option<(Vec<f64>, Vec<u32>)> {
    const MOST: usize = 100;
    let place =
        |labels: &[f64], target: f64| labels.binary_search_by(|label| label.total_cmp(&target));
    let mut labels = Vec::new();
    for target in targets {
        // 0 and -0 are the same label.
        let target = target + 0.0;
        if target.trunc() != target || target.abs() >= 1e15 {
            return None;
        }
        if let Err(at) = place(&labels, target) {
            if labels.len() == MOST {
                return None;
            }
            labels.insert(at, target);
        }
    }
    let number = |target: &f64| place(&labels, target + 0.0).unwrap_or_default() as u32;
    let numbers = targets.iter().map(number).into_vec();
    Some((labels, numbers))
}

/// Reads a file and trains on it. None if it holds something out of the ordinary, which the caller
/// looks at: targets that are no labels, a single class, numbers that are not finite, or nothing.
/// `report` is called at evaluations, but not in the first `report_after` seconds.
#[pyfunction]
#[pyo3(signature = (
    path, *, seed, classify, zero_based, loss, loss_param, C, fit_intercept, tol, max_iter,
    max_time, n_threads, report, report_after
))]
pub(super) fn train_svmlight(
    py: Python<'_>,
    path: PathBuf,
    seed: u64,
    classify: bool,
    zero_based: Option<bool>,
    loss: &str,
    loss_param: Option<f64>,
    C: f64,
    fit_intercept: bool,
    tol: f64,
    max_iter: usize,
    max_time: Option<f64>,
    n_threads: usize,
    report: Option<Py<PyAny>>,
    report_after: f64,
) -> PyResult<Option<PyTrained>> {
    guarded(|| {
        let outside = Outside::default();
        let options = ReadOptions {
            numbering: numbering(zero_based),
            n_threads,
            ..ReadOptions::default()
        };
        let budget = &Budget {
            tol,
            max_epochs: max_iter,
            max_time: max_time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            record_every: None,
        };
        let setting = Setting::new((loss, loss_param), Some(C), None, fit_intercept)?;
        let trained = detached(py, || {
            let name = path.display().to_string();
            let source = Source::file(&name, &path)?;
            let (table, from_one) = read_table::<f64>(&source, &options, &mut look(&outside))?;
            let is_finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
            if table.n_rows() == 0 || !is_finite(&table.targets) || !is_finite(&table.values) {
                return Ok(None);
            }
            let (mut labels, mut counts) = (Vec::new(), Vec::new());
            let mut targets = Cow::Borrowed(table.targets.as_slice());
            if classify {
                let Some((found, numbers)) = classes_of(&table.targets) else {
                    return Ok(None);
                };
                if found.len() < 2 {
                    return Ok(None);
                }
                counts = memory::filled(found.len(), 0);
                for &number in &numbers {
                    counts[number as usize] += 1;
                }
                let is_binary = found.len() == 2;
                let target = |number: u32| {
                    if is_binary {
                        2.0 * f64::from(number) - 1.0
                    } else {
                        f64::from(number)
                    }
                };
                targets = Cow::Owned(numbers.into_iter().map(target).into_vec());
                labels = found;
            }
            let data = Arc::new(table.data()?);
            let watchers = Watchers {
                report: report.as_ref(),
                report_from: Instant::now() + Duration::from_secs_f64(report_after.clamp(0.0, 1e6)),
                outside: &outside,
            };
            // Several classes are fitted at the same time.
            let is_single = labels.len() <= 2;
            let solver = Sdca {
                seed,
                n_threads: if is_single { n_threads } else { 1 },
                ..Sdca::default()
            };
            let job = FitJob {
                solver: &solver,
                setting,
                y: &targets,
                n_classes: labels.len(),
                budget,
                starts: None,
                n_threads,
                watchers,
            };
            let fits = job.run(&data)?;
            let smaller = |a: f64, b: &f64| a.min(*b);
            let larger = |a: f64, b: &f64| a.max(*b);
            let column = |value: fn(&Fit) -> f64| fits.iter().map(value).into_vec();
            Ok(Some(PyTrained {
                n_rows: table.n_rows(),
                n_entries: table.values.len(),
                n_features: table.n_cols,
                zero_based: !table.values.is_empty() && !from_one,
                span: (
                    table.targets.iter().fold(f64::INFINITY, smaller),
                    table.targets.iter().fold(f64::NEG_INFINITY, larger),
                ),
                classes: labels,
                counts,
                intercept: column(|fit| fit.intercept),
                objective: column(|fit| fit.certificate.primal),
                dual_objective: column(|fit| fit.certificate.dual),
                gap: column(|fit| fit.certificate.gap),
                epochs: column(|fit| fit.epochs),
                steps: column(|fit| fit.steps),
                stop_reason: fits.iter().map(|fit| fit.stop.name()).into_vec(),
                coef: fits.into_iter().map(|fit| fit.coef).into_vec(),
            }))
        });
        outside.check()?;
        Ok(trained?)
    })
}

fn numbering(zero_based: Option<bool>) -> Numbering {
    match zero_based {
        None => Numbering::Auto,
        Some(true) => Numbering::Zero,
        Some(false) => Numbering::One,
    }
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
