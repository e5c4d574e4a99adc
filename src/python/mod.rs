//! The border to Python: converts arguments and results, and holds no arithmetic.
//!
//! | Python                                             | here                                |
//! |----------------------------------------------------|-------------------------------------|
//! | C-contiguous `ndarray` of float32 or float64       | [`Dense`], borrowed                 |
//! | tuple `(data, indices, indptr, n_cols)` of a CSR matrix, float32 or float64, int32 or int64 | [`Csr`], borrowed |
//! | `Rows`, one of these examined before               | the same, borrowed anew by each call |
//! | `ValueError`                                       | [`Error`]                           |
//! | `KeyboardInterrupt`, or what a callback raised     | [`Error::Interrupted`]              |
//!
//! The interpreter is released around all work. While a fit runs, signals are looked at about every
//! 0.1 s: by the fit itself if it runs in the calling thread, else by the calling thread, which
//! waits for the workers.

// The names of the arguments are those of the Python side.
#![allow(non_snake_case)]
// pyo3 hands arguments over by value, and a fit has many.
#![allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]

mod matrix;
mod rows;
mod svmlight;
mod theory;
mod watcher;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::data::Data;
use crate::error::{self, Error};
use crate::loss::{self, Link, Loss, SPECS, Target};
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::one_vs_rest::{self, Monitors as _, OneVsRest};
use crate::order::Sampling;
use crate::predict;
use crate::problem::{Point, Problem, Regularisation};
use crate::reserve::WithReserve;
use crate::run::{Budget, Fit, Record, RunContext, parameter};
use crate::solver::{
    Asdca, AverageFrom, DualGradient, FirstEpoch, LearningRate, Model, Output, Pegasos, Scales,
    Sdca, Solver, Start, Stream, Subgradient,
};
use crate::steps::Steps;
use matrix::{Examination, Matrix};
use rows::{Lent, Source};
use watcher::{Outside, Watcher, Watchers};

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
            Error::File { .. } => PyOSError::new_err(error.to_string()),
            _ => PyValueError::new_err(error.to_string()),
        }
    }
}

/// For the whole process, as far as it is compiled from Rust into this extension.
#[global_allocator]
static MEMORY: WithReserve = WithReserve::new(memory::set_exhausted);

/// Does the work of a function that Python calls: what it raises, or a panic, becomes an exception like any other.
fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    MEMORY.fill();
    let result = catch_unwind(AssertUnwindSafe(|| error::catch(|| Ok(work()))));
    match result {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => Err(error.into()),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("a panic without a message");
            Err(PyRuntimeError::new_err(format!(
                "sdca_rs: found an error of its own ({text}), please report it"
            )))
        }
    }
}

/// An array that numpy has the memory of.
fn new_array<T: Element>(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyArray1<T>>> {
    let empty = py
        .import("numpy")?
        .call_method1("empty", (len, T::get_dtype(py)))?;
    Ok(empty.cast_into::<PyArray1<T>>()?)
}

/// A copy that numpy has the memory of.
fn copy_of<'py>(py: Python<'py>, values: &[f64]) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let array = new_array(py, values.len())?;
    array.readwrite().as_slice_mut()?.copy_from_slice(values);
    Ok(array)
}

/// The compiled core of `sdca_rs`. Private: use the package.
#[pymodule(gil_used = false)]
mod _core {
    /// The version, without the time that Python takes to look for it.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::rows::PyRows;
    #[pymodule_export]
    use super::svmlight::{PyTable, PyTrained, read_svmlight, train_svmlight, write_svmlight};
    #[pymodule_export]
    use super::theory::{
        theory_asdca, theory_asdca_theta, theory_pegasos, theory_sdca_lipschitz,
        theory_sdca_lipschitz_summary, theory_sdca_sgd, theory_sdca_smooth,
        theory_sdca_smooth_averaged,
    };
    #[pymodule_export]
    use super::watcher::PyProgress;
    #[pymodule_export]
    use super::{
        PyFit, PySolver, PyStream, decision_function, fit, has_duplicates, losses, objectives,
        partial_fit, predict_classes,
    };
}

/// All losses: dicts of name, formula, target, link and, if there is one, the shape parameter.
#[pyfunction]
fn losses(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    SPECS
        .iter()
        .map(|spec| {
            let entry = PyDict::new(py);
            entry.set_item("name", spec.name)?;
            entry.set_item("formula", spec.formula)?;
            entry.set_item(
                "target",
                match spec.target {
                    Target::Label => "label",
                    Target::Real => "real",
                    Target::NonNegative => "non-negative",
                },
            )?;
            entry.set_item(
                "link",
                match spec.link {
                    Link::Identity => "identity",
                    Link::Logit => "logit",
                    Link::Log => "log",
                },
            )?;
            entry.set_item("param", spec.param.map(|param| param.name))?;
            entry.set_item("default", spec.param.map(|param| param.default))?;
            entry.set_item("expected", spec.param.map(|param| param.expected))?;
            Ok(entry)
        })
        .collect()
}

/// The loss called `name`.
fn loss_named(name: &str, param: Option<f64>) -> Result<Arc<dyn Steps>, Error> {
    struct Make;
    impl loss::Visitor for Make {
        type Out = Arc<dyn Steps>;
        fn visit<L: Loss>(self, loss: L) -> Self::Out {
            Arc::new(loss)
        }
    }
    loss::dispatch(name, param, Make)
}

/// Does work with the interpreter released.
fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    py.detach(|| error::catch(work))
}

/// Checks a CSR matrix and says whether a column occurs twice in some row.
#[pyfunction]
fn has_duplicates(py: Python<'_>, X: Matrix<'_>) -> PyResult<bool> {
    let what = Examination {
        scan: true,
        find_pattern: false,
    };
    guarded(|| Ok(X.examine(py, what)?.1))
}

/// What is to be minimised, but for the data and the targets.
#[derive(Clone)]
struct Setting {
    loss: Arc<dyn Steps>,
    regularisation: Regularisation,
    fit_intercept: bool,
}

impl Setting {
    fn new(
        (loss, param): (&str, Option<f64>),
        c: Option<f64>,
        lam: Option<f64>,
        fit_intercept: bool,
    ) -> PyResult<Self> {
        let regularisation = match (c, lam) {
            (Some(c), None) => Regularisation::C(c),
            (None, Some(lambda)) => Regularisation::Lambda(lambda),
            (c, _) => {
                let found = if c.is_some() { "both" } else { "neither" };
                return Err(parameter("C", found, "exactly one of C and lam").into());
            }
        };
        Ok(Self {
            loss: loss_named(loss, param)?,
            regularisation,
            fit_intercept,
        })
    }

    fn problem<'r>(&self, data: &Arc<Data<'r>>, targets: &'r [f64]) -> Result<Problem<'r>, Error> {
        let (data, loss) = (Arc::clone(data), Arc::clone(&self.loss));
        Problem::of(data, targets, loss, self.regularisation, self.fit_intercept)
    }
}

fn slice<'a>(name: &'static str, array: &'a PyReadonlyArray1<'_, f64>) -> PyResult<&'a [f64]> {
    array
        .as_slice()
        .map_err(|_| parameter(name, "an array with gaps", "a contiguous array").into())
}

/// A number of steps or, if it is no integer, a fraction of the run.
#[derive(FromPyObject)]
enum PyAverageFrom {
    Step(u64),
    Fraction(f64),
}

impl From<PyAverageFrom> for AverageFrom {
    fn from(given: PyAverageFrom) -> Self {
        match given {
            PyAverageFrom::Step(step) => Self::Step(step),
            PyAverageFrom::Fraction(fraction) => Self::Fraction(fraction),
        }
    }
}

/// An algorithm with its settings.
#[pyclass(frozen, name = "Solver", module = "sdca_rs._core")]
struct PySolver(Settings);

enum Settings {
    Sdca(Sdca),
    Asdca(Asdca),
    Pegasos(Pegasos),
    Subgradient(Subgradient),
    DualGradient(DualGradient),
}

impl Settings {
    fn solver(&self) -> &dyn Solver {
        match self {
            Self::Sdca(solver) => solver,
            Self::Asdca(solver) => solver,
            Self::Pegasos(solver) => solver,
            Self::Subgradient(solver) => solver,
            Self::DualGradient(solver) => solver,
        }
    }
}

#[pymethods]
impl PySolver {
    #[staticmethod]
    #[pyo3(signature = (
        *, sampling, output, average_from, first_epoch, accelerate, seed, n_threads
    ))]
    fn sdca(
        sampling: &str,
        output: &str,
        average_from: PyAverageFrom,
        first_epoch: &str,
        accelerate: bool,
        seed: u64,
        n_threads: usize,
    ) -> PyResult<Self> {
        Ok(Self(Settings::Sdca(Sdca {
            sampling: Sampling::named(sampling)?,
            output: Output::named(output)?,
            average_from: average_from.into(),
            first_epoch: FirstEpoch::named(first_epoch)?,
            accelerate,
            seed,
            n_threads,
        })))
    }

    #[staticmethod]
    #[pyo3(signature = (*, batch_size, sampling, theta, output, average_from, seed, n_threads))]
    fn asdca(
        batch_size: usize,
        sampling: &str,
        theta: Option<f64>,
        output: &str,
        average_from: PyAverageFrom,
        seed: u64,
        n_threads: usize,
    ) -> PyResult<Self> {
        Ok(Self(Settings::Asdca(Asdca {
            batch_size,
            sampling: Sampling::named(sampling)?,
            theta,
            output: Output::named(output)?,
            average_from: average_from.into(),
            seed,
            n_threads,
        })))
    }

    #[staticmethod]
    #[pyo3(signature = (
        *, batch_size, sampling, project, learning_rate, eta0, power_t, output, average_from, seed,
        n_threads
    ))]
    fn pegasos(
        batch_size: Option<usize>,
        sampling: &str,
        project: bool,
        learning_rate: &str,
        eta0: Option<f64>,
        power_t: f64,
        output: &str,
        average_from: PyAverageFrom,
        seed: u64,
        n_threads: usize,
    ) -> PyResult<Self> {
        Ok(Self(Settings::Pegasos(Pegasos {
            batch_size,
            sampling: Sampling::named(sampling)?,
            project,
            learning_rate: LearningRate::named(learning_rate, eta0, power_t)?,
            output: Output::named(output)?,
            average_from: average_from.into(),
            seed,
            n_threads,
        })))
    }

    #[staticmethod]
    #[pyo3(signature = (
        *, learning_rate, eta0, power_t, output, average_from, seed, n_threads
    ))]
    fn subgradient(
        learning_rate: Option<&str>,
        eta0: Option<f64>,
        power_t: f64,
        output: Option<&str>,
        average_from: PyAverageFrom,
        seed: u64,
        n_threads: usize,
    ) -> PyResult<Self> {
        let learning_rate = learning_rate
            .map(|name| LearningRate::named(name, eta0, power_t))
            .transpose()?;
        Ok(Self(Settings::Subgradient(Subgradient {
            learning_rate,
            output: output.map(Output::named).transpose()?,
            average_from: average_from.into(),
            seed,
            n_threads,
        })))
    }

    #[staticmethod]
    #[pyo3(signature = (*, step, output, average_from, seed, n_threads))]
    fn dual_gradient(
        step: Option<f64>,
        output: &str,
        average_from: PyAverageFrom,
        seed: u64,
        n_threads: usize,
    ) -> PyResult<Self> {
        Ok(Self(Settings::DualGradient(DualGradient {
            step,
            output: Output::named(output)?,
            average_from: average_from.into(),
            seed,
            n_threads,
        })))
    }
}

/// Where an earlier fit ended: a row, or entry, for each problem.
#[derive(FromPyObject)]
struct PyStart<'py> {
    #[pyo3(item(0))]
    dual: PyReadonlyArray2<'py, f64>,
    #[pyo3(item(1))]
    coef: PyReadonlyArray2<'py, f64>,
    #[pyo3(item(2))]
    intercept: PyReadonlyArray1<'py, f64>,
    #[pyo3(item(3))]
    steps: PyReadonlyArray1<'py, f64>,
}

/// Fits one problem, or one for each of `n_classes` classes against the rest.
///
/// Exactly one of `C` and `lam` must be given. `y` holds the targets or, from three classes on, the
/// numbers of the classes. `report` is called at each evaluation and stops the run by returning True.
#[pyfunction]
#[pyo3(signature = (
    X, y, *, solver, sample_weight, n_classes, loss, loss_param, C, lam, fit_intercept, tol, max_iter,
    max_time, record_every, n_threads, start, report
))]
fn fit<'py>(
    py: Python<'py>,
    X: Source<'py>,
    y: PyReadonlyArray1<'py, f64>,
    solver: PyRef<'py, PySolver>,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
    n_classes: usize,
    loss: &str,
    loss_param: Option<f64>,
    C: Option<f64>,
    lam: Option<f64>,
    fit_intercept: bool,
    tol: f64,
    max_iter: usize,
    max_time: Option<f64>,
    record_every: Option<f64>,
    n_threads: usize,
    start: Option<PyStart<'py>>,
    report: Option<Py<PyAny>>,
) -> PyResult<Vec<PyFit>> {
    guarded(|| {
        let max_time = match max_time {
            None => None,
            Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds).ok(),
            Some(seconds) => {
                return Err(
                    parameter("max_time", seconds, "a number of seconds > 0, or None").into(),
                );
            }
        };
        let outside = Outside::default();
        let starts = match &start {
            None => None,
            Some(start) => Some(Starts {
                dual: start.dual.as_slice()?,
                coef: start.coef.as_slice()?,
                intercept: slice("intercept", &start.intercept)?,
                steps: start.steps.as_slice()?,
            }),
        };
        let setting = Setting::new((loss, loss_param), C, lam, fit_intercept)?;
        let (y, report) = (slice("y", &y)?, report.as_ref());
        let rows = X.lend(py)?;
        let data = rows.data(py, sample_weight.as_ref())?;
        let budget = &Budget {
            tol,
            max_epochs: max_iter,
            max_time,
            record_every,
        };
        let job = FitJob {
            solver: solver.0.solver(),
            setting,
            y,
            n_classes,
            budget,
            starts,
            n_threads,
            watchers: Watchers {
                report,
                report_from: Instant::now(),
                outside: &outside,
            },
        };
        let fits = detached(py, || job.run(&data));
        outside.check()?;
        let fits = fits?;
        let mut all = memory::with_capacity(fits.len());
        for fit in fits {
            all.push(PyFit::new(py, fit)?);
        }
        Ok(all)
    })
}

/// See [`Start`]; the problems one after the other.
#[derive(Clone, Copy)]
struct Starts<'a> {
    dual: &'a [f64],
    coef: &'a [f64],
    intercept: &'a [f64],
    steps: &'a [f64],
}

impl<'a> Starts<'a> {
    fn check(&self, n_problems: usize, n_rows: usize, n_cols: usize) -> Result<(), Error> {
        let lengths = [
            (self.dual.len(), n_problems * n_rows),
            (self.coef.len(), n_problems * n_cols),
            (self.intercept.len(), n_problems),
            (self.steps.len(), n_problems),
        ];
        for (found, expected) in lengths {
            if found != expected {
                return Err(Error::Length {
                    name: "start",
                    found,
                    expected,
                    why: "as many as X and y ask for",
                });
            }
        }
        Ok(())
    }

    fn of(&self, problem: usize, n_rows: usize, n_cols: usize) -> Start<'a> {
        Start {
            dual: &self.dual[problem * n_rows..][..n_rows],
            coef: &self.coef[problem * n_cols..][..n_cols],
            intercept: self.intercept[problem],
            steps: self.steps[problem],
        }
    }
}

struct FitJob<'a> {
    solver: &'a dyn Solver,
    setting: Setting,
    y: &'a [f64],
    n_classes: usize,
    budget: &'a Budget,
    starts: Option<Starts<'a>>,
    n_threads: usize,
    watchers: Watchers<'a>,
}

impl FitJob<'_> {
    fn run(self, data: &Arc<Data<'_>>) -> Result<Vec<Fit>, Error> {
        let (n_rows, n_cols) = (data.n_rows(), data.n_cols());
        let n_problems = if self.n_classes > 2 {
            self.n_classes
        } else {
            1
        };
        if let Some(starts) = &self.starts {
            starts.check(n_problems, n_rows, n_cols)?;
        }
        if n_problems == 1 {
            let problem = self.setting.problem(data, self.y)?;
            let start = self.starts.map(|all| all.of(0, n_rows, n_cols));
            let mut watcher = self.watchers.of_class(0, true);
            let fit = self
                .solver
                .solve(&problem, self.budget, start, &mut *watcher)?;
            return Ok(vec![fit]);
        }
        let classes: Vec<u32> = self.y.iter().map(|&class| class as u32).into_vec();
        let starts = self.starts.map(|all| {
            (0..n_problems)
                .map(|k| all.of(k, n_rows, n_cols))
                .into_vec()
        });
        let problems = OneVsRest::of(
            Arc::clone(data),
            (&classes, n_problems),
            self.setting.loss,
            self.setting.regularisation,
            self.setting.fit_intercept,
        );
        problems.fit(
            self.solver,
            self.budget,
            starts.as_deref(),
            self.n_threads,
            &self.watchers,
        )
    }
}

/// One epoch of Pegasos over rows of a stream, for one problem or one for each class, see `fit`.
///
/// `streams` holds what the last call returned; none begins.
#[pyfunction]
#[pyo3(signature = (
    X, y, *, solver, sample_weight, n_classes, loss, loss_param, lam, fit_intercept, streams
))]
fn partial_fit<'py>(
    py: Python<'py>,
    X: Source<'py>,
    y: PyReadonlyArray1<'py, f64>,
    solver: PyRef<'py, PySolver>,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
    n_classes: usize,
    loss: &str,
    loss_param: Option<f64>,
    lam: f64,
    fit_intercept: bool,
    streams: Option<Vec<PyRef<'py, PyStream>>>,
) -> PyResult<Vec<PyStream>> {
    guarded(|| {
        let Settings::Pegasos(pegasos) = &solver.0 else {
            return Err(
                parameter("solver", "another", "Pegasos, the one that has partial_fit").into(),
            );
        };
        let outside = Outside::default();
        let job = StreamJob {
            pegasos,
            setting: Setting::new((loss, loss_param), None, Some(lam), fit_intercept)?,
            y: slice("y", &y)?,
            n_classes,
            streams: streams.map(|all| all.iter().map(|stream| stream.0.duplicate()).into_vec()),
            outside: &outside,
        };
        let rows = X.lend(py)?;
        let data = rows.part(py, sample_weight.as_ref())?;
        let streams = detached(py, || job.run(&data));
        outside.check()?;
        Ok(streams?.into_iter().map(PyStream).into_vec())
    })
}

struct StreamJob<'a> {
    pegasos: &'a Pegasos,
    setting: Setting,
    y: &'a [f64],
    n_classes: usize,
    streams: Option<Vec<Stream>>,
    outside: &'a Outside,
}

impl StreamJob<'_> {
    fn run(self, data: &Arc<Data<'_>>) -> Result<Vec<Stream>, Error> {
        let n_problems = if self.n_classes > 2 {
            self.n_classes
        } else {
            1
        };
        let mut streams = match self.streams {
            None => memory::filled(n_problems, None),
            Some(streams) => streams.into_iter().map(Some).into_vec(),
        };
        if streams.len() != n_problems {
            return Err(Error::Length {
                name: "streams",
                found: streams.len(),
                expected: n_problems,
                why: "one for each problem",
            });
        }
        let classes: Vec<u32> = self.y.iter().map(|&class| class as u32).into_vec();
        let one = |(class, stream): (usize, &mut Option<Stream>)| {
            let targets = if n_problems == 1 {
                Cow::Borrowed(self.y)
            } else {
                Cow::Owned(one_vs_rest::targets(&classes, class as u32))
            };
            let problem = Problem::part_of(
                Arc::clone(data),
                &targets,
                Arc::clone(&self.setting.loss),
                self.setting.regularisation,
                self.setting.fit_intercept,
            )?;
            let mut watcher = Watcher::silent(self.outside);
            self.pegasos
                .partial_solve(&problem, stream.take(), &mut watcher)
        };
        let mut done = memory::with_capacity(n_problems);
        for stream in streams.iter_mut().enumerate() {
            done.push(one(stream)?);
        }
        Ok(done)
    }
}

/// What is known of a stream.
#[pyclass(frozen, name = "Stream", module = "sdca_rs._core")]
struct PyStream(Stream);

/// The numbers of [`Scales`], in their order.
type Numbers = (f64, f64, f64, f64, f64);

/// The contents of a [`Stream`], for pickling.
type Contents<'py> = (
    f64,
    (Bound<'py, PyArray1<f64>>, f64),
    (Bound<'py, PyArray1<f64>>, f64),
    Option<(Bound<'py, PyArray1<f64>>, Numbers)>,
);

#[pymethods]
impl PyStream {
    #[new]
    #[pyo3(signature = (steps, last, mean, scales))]
    fn new(
        steps: f64,
        last: (PyReadonlyArray1<'_, f64>, f64),
        mean: (PyReadonlyArray1<'_, f64>, f64),
        scales: Option<(PyReadonlyArray1<'_, f64>, Numbers)>,
    ) -> PyResult<Self> {
        guarded(|| {
            let model = |(coef, intercept): (PyReadonlyArray1<'_, f64>, f64)| {
                slice("coef", &coef).map(|coef| Model {
                    coef: coef.duplicate(),
                    intercept,
                })
            };
            let scales = scales.map(|(mean_row, rest)| {
                let (mean_sq_norm, weight, longest_step, curvature, loss_at_zero) = rest;
                slice("mean_row", &mean_row).map(|mean_row| Scales {
                    mean_row: mean_row.duplicate(),
                    mean_sq_norm,
                    weight,
                    longest_step,
                    curvature,
                    loss_at_zero,
                })
            });
            Ok(Self(Stream {
                steps,
                last: model(last)?,
                mean: model(mean)?,
                scales: scales.transpose()?,
            }))
        })
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Contents<'py>> {
        let Stream {
            steps,
            last,
            mean,
            scales,
        } = &self.0;
        let array = |values: &[f64]| copy_of(py, values);
        let scales = scales.as_ref().map(|scales| {
            let Scales {
                mean_row,
                mean_sq_norm,
                weight,
                longest_step,
                curvature,
                loss_at_zero,
            } = scales;
            let rest = (
                *mean_sq_norm,
                *weight,
                *longest_step,
                *curvature,
                *loss_at_zero,
            );
            array(mean_row).map(|mean_row| (mean_row, rest))
        });
        Ok((
            *steps,
            (array(&last.coef)?, last.intercept),
            (array(&mean.coef)?, mean.intercept),
            scales.transpose()?,
        ))
    }

    /// Steps done; one for fewer rows than a batch counts in part.
    #[getter]
    fn steps(&self) -> f64 {
        self.0.steps
    }

    /// Coefficients and intercept after the last step.
    #[getter]
    fn last<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray1<f64>>, f64)> {
        let Model { coef, intercept } = &self.0.last;
        Ok((copy_of(py, coef)?, *intercept))
    }

    /// Their mean over all steps.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray1<f64>>, f64)> {
        let Model { coef, intercept } = &self.0.mean;
        Ok((copy_of(py, coef)?, *intercept))
    }
}

/// What a linear model and a dual point prove: `P` of the one and `D` of the other, which is made
/// feasible first if there is an intercept. Without a dual point, `D` is -inf.
#[pyfunction]
#[pyo3(signature = (
    X, y, *, sample_weight, loss, loss_param, C, lam, fit_intercept, coef, intercept, dual
))]
fn objectives<'py>(
    py: Python<'py>,
    X: Source<'py>,
    y: PyReadonlyArray1<'py, f64>,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
    loss: &str,
    loss_param: Option<f64>,
    C: Option<f64>,
    lam: Option<f64>,
    fit_intercept: bool,
    coef: PyReadonlyArray1<'py, f64>,
    intercept: f64,
    dual: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<(f64, f64)> {
    guarded(|| {
        let outside = Outside::default();
        let job = ObjectivesJob {
            setting: Setting::new((loss, loss_param), C, lam, fit_intercept)?,
            y: slice("y", &y)?,
            coef: slice("coef", &coef)?,
            intercept,
            dual: dual.as_ref().map(|a| slice("dual", a)).transpose()?,
            outside: &outside,
        };
        let rows = X.lend(py)?;
        let data = rows.data(py, sample_weight.as_ref())?;
        let values = detached(py, || job.run(&data));
        outside.check()?;
        Ok(values?)
    })
}

struct ObjectivesJob<'a> {
    setting: Setting,
    y: &'a [f64],
    coef: &'a [f64],
    intercept: f64,
    dual: Option<&'a [f64]>,
    outside: &'a Outside,
}

impl ObjectivesJob<'_> {
    fn run(self, data: &Arc<Data<'_>>) -> Result<(f64, f64), Error> {
        let length = |name, found, expected, why| {
            if found == expected {
                Ok(())
            } else {
                Err(Error::Length {
                    name,
                    found,
                    expected,
                    why,
                })
            }
        };
        length(
            "coef",
            self.coef.len(),
            data.n_cols(),
            "one for each column of X",
        )?;
        let mut watcher = Watcher::silent(self.outside);
        let mut context = RunContext::new(None, &mut watcher);
        let problem = self.setting.problem(data, self.y)?;
        let primal = problem.primal(self.coef, self.intercept, &mut context)?;
        let Some(dual) = self.dual else {
            return Ok((primal, f64::NEG_INFINITY));
        };
        length(
            "dual",
            dual.len(),
            problem.n_rows(),
            "one for each row of X",
        )?;
        let mut point = Point::default();
        // The intercept that goes with the dual point is of no interest: any precision will do.
        problem.evaluate(dual.iter().copied(), 1e-2, &mut point, &mut context)?;
        Ok((primal, point.certificate.dual))
    }
}

/// `x_i . w_k + b_k` for each row of X and each model, a row of `coef` being a model.
#[pyfunction]
#[pyo3(signature = (X, coef, intercept, *, n_threads))]
fn decision_function<'py>(
    py: Python<'py>,
    X: Source<'py>,
    coef: PyReadonlyArray2<'py, f64>,
    intercept: PyReadonlyArray1<'py, f64>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    guarded(|| {
        let rows = X.lend(py)?;
        let shape = [rows.n_rows(), intercept.len()?];
        let scores = new_array(py, shape[0].saturating_mul(shape[1]))?;
        let mut room = scores.readwrite();
        let out = Out::Scores(room.as_slice_mut()?);
        predict_into(py, &rows, &coef, &intercept, n_threads, out)?;
        drop(room);
        scores.reshape(shape)
    })
}

/// The number of the model with the largest `x_i . w_k + b_k`, for each row of X.
#[pyfunction]
#[pyo3(signature = (X, coef, intercept, *, n_threads))]
fn predict_classes<'py>(
    py: Python<'py>,
    X: Source<'py>,
    coef: PyReadonlyArray2<'py, f64>,
    intercept: PyReadonlyArray1<'py, f64>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    guarded(|| {
        let rows = X.lend(py)?;
        let numbers = new_array(py, rows.n_rows())?;
        let mut room = numbers.readwrite();
        let out = Out::Classes(room.as_slice_mut()?);
        predict_into(py, &rows, &coef, &intercept, n_threads, out)?;
        drop(room);
        Ok(numbers)
    })
}

/// Where predictions go.
enum Out<'a> {
    Scores(&'a mut [f64]),
    Classes(&'a mut [i64]),
}

fn predict_into<'py>(
    py: Python<'py>,
    rows: &Lent<'py>,
    coef: &PyReadonlyArray2<'py, f64>,
    intercept: &PyReadonlyArray1<'py, f64>,
    n_threads: usize,
    out: Out<'_>,
) -> PyResult<()> {
    let outside = Outside::default();
    let mut watcher = Watcher::silent(&outside);
    let (coefs, intercepts) = (coef.as_slice()?, slice("intercept", intercept)?);
    let rows = &rows.storage(py)?;
    let done = detached(py, || {
        let context = &mut RunContext::new(None, &mut watcher);
        match out {
            Out::Scores(out) => {
                predict::write_predictions(rows, coefs, intercepts, n_threads, context, out)
            }
            Out::Classes(out) => {
                predict::write_best(rows, coefs, intercepts, n_threads, context, out)
            }
        }
    });
    outside.check()?;
    Ok(done?)
}

/// The result of a fit.
#[pyclass(frozen, name = "Fit", module = "sdca_rs._core")]
struct PyFit {
    #[pyo3(get)]
    coef: Py<PyArray1<f64>>,
    #[pyo3(get)]
    intercept: f64,
    #[pyo3(get)]
    dual: Py<PyArray1<f64>>,
    #[pyo3(get)]
    objective: f64,
    #[pyo3(get)]
    dual_objective: f64,
    #[pyo3(get)]
    gap: f64,
    #[pyo3(get)]
    epochs: f64,
    #[pyo3(get)]
    steps: f64,
    #[pyo3(get)]
    stop_reason: &'static str,
    #[pyo3(get)]
    mean_q: f64,
    #[pyo3(get)]
    history: Py<PyDict>,
}

impl PyFit {
    fn new(py: Python<'_>, fit: Fit) -> PyResult<Self> {
        let history = PyDict::new(py);
        let column = |value: fn(&Record) -> f64| -> Bound<'_, PyArray1<f64>> {
            fit.history.iter().map(value).into_vec().into_pyarray(py)
        };
        history.set_item("epoch", column(|record| record.epoch))?;
        history.set_item("seconds", column(|record| record.seconds))?;
        history.set_item("cpu_seconds", column(|record| record.cpu_seconds))?;
        history.set_item("primal", column(|record| record.certificate.primal))?;
        history.set_item("dual", column(|record| record.certificate.dual))?;
        history.set_item("gap", column(|record| record.certificate.gap))?;
        let support: Vec<_> = fit
            .history
            .iter()
            .map(|record| record.certificate.support)
            .into_vec();
        history.set_item("support", support.into_pyarray(py))?;
        let phases = fit.history.iter().map(|record| record.phase.name());
        let phases = PyList::new(py, phases)?;
        history.set_item(
            "phase",
            py.import("numpy")?.call_method1("array", (phases,))?,
        )?;
        Ok(Self {
            coef: fit.coef.into_pyarray(py).unbind(),
            intercept: fit.intercept,
            dual: fit.dual.into_pyarray(py).unbind(),
            objective: fit.certificate.primal,
            dual_objective: fit.certificate.dual,
            gap: fit.certificate.gap,
            epochs: fit.epochs,
            steps: fit.steps,
            stop_reason: fit.stop.name(),
            mean_q: fit.mean_q,
            history: history.unbind(),
        })
    }
}
