//! What a fit and the interpreter tell each other while the fit runs.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::copy_of;
use crate::one_vs_rest::Monitors;
use crate::run::{Monitor, Progress};

/// What may come in from outside while work is going on: a signal, or an exception from a callback.
#[derive(Default)]
pub(super) struct Outside {
    raised: Mutex<Option<PyErr>>,
    ended: AtomicBool,
}

impl Outside {
    /// Lets Python handle signals, which it does in its main thread only, and remembers what a
    /// handler raises.
    pub(super) fn look(&self) {
        // clippy's method path does not name the lifetime that `attach` wants.
        #[allow(clippy::redundant_closure_for_method_calls)]
        let handled = Python::attach(|py| py.check_signals());
        if let Err(error) = handled {
            self.raise(error);
        }
    }

    /// Ends all work, to raise `error` when it has ended. The first error wins.
    fn raise(&self, error: PyErr) {
        let mut raised = self
            .raised
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        raised.get_or_insert(error);
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Raises what came in.
    pub(super) fn check(self) -> PyResult<()> {
        match self
            .raised
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
        {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// Watches one problem of a fit.
pub(super) struct Watcher<'a> {
    outside: &'a Outside,
    report: Option<&'a Py<PyAny>>,
    report_from: Instant,
    class: usize,
    /// Whether the work runs in the thread that Python called from, the only one in which signals
    /// can be handled.
    in_caller: bool,
}

impl<'a> Watcher<'a> {
    /// For work without evaluations, in the calling thread.
    pub(super) fn silent(outside: &'a Outside) -> Self {
        Self {
            outside,
            report: None,
            report_from: Instant::now(),
            class: 0,
            in_caller: true,
        }
    }
}

/// Watches all problems of a fit.
pub(super) struct Watchers<'a> {
    pub(super) outside: &'a Outside,
    pub(super) report: Option<&'a Py<PyAny>>,
    /// Nothing is reported before.
    pub(super) report_from: Instant,
}

impl Monitors for Watchers<'_> {
    fn of_class(&self, class: usize, in_caller: bool) -> Box<dyn Monitor + '_> {
        Box::new(Watcher {
            outside: self.outside,
            report: self.report,
            report_from: self.report_from,
            class,
            in_caller,
        })
    }

    fn idle(&self) {
        self.outside.look();
    }
}

impl Monitor for Watcher<'_> {
    fn record(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        let Some(report) = self.report else {
            return ControlFlow::Continue(());
        };
        if Instant::now() < self.report_from {
            return ControlFlow::Continue(());
        }
        let answer = Python::attach(|py| {
            let shown = PyProgress::new(py, self.class, progress)?;
            report.bind(py).call1((shown,))?.is_truthy()
        });
        match answer {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(error) => {
                self.outside.raise(error);
                ControlFlow::Break(())
            }
        }
    }

    fn check(&mut self) -> ControlFlow<()> {
        if self.in_caller {
            self.outside.look();
        }
        if self.outside.is_ended() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// A snapshot of a running fit, as handed to callbacks.
#[pyclass(frozen, name = "Progress", module = "sdca_rs")]
pub(super) struct PyProgress {
    /// Which problem of a one-vs-rest fit this is; 0 if there is only one.
    #[pyo3(get)]
    class_index: usize,
    /// Epochs done, which may be a fraction.
    #[pyo3(get)]
    epoch: f64,
    /// Seconds of pure work, without the time spent on evaluations.
    #[pyo3(get)]
    seconds: f64,
    /// The same in seconds of processor time.
    #[pyo3(get)]
    cpu_seconds: f64,
    /// The objective `P` of the present model.
    #[pyo3(get)]
    primal: f64,
    /// The dual objective `D`.
    #[pyo3(get)]
    dual: f64,
    /// `primal - dual`.
    #[pyo3(get)]
    gap: f64,
    /// Number of rows with a dual value other than zero.
    #[pyo3(get)]
    support: usize,
    /// Coefficients of the present model.
    #[pyo3(get)]
    coef: Py<PyArray1<f64>>,
    /// Intercept of the present model.
    #[pyo3(get)]
    intercept: f64,
}

impl PyProgress {
    fn new(py: Python<'_>, class_index: usize, progress: &Progress<'_>) -> PyResult<Self> {
        let certificate = progress.record.certificate;
        Ok(Self {
            class_index,
            epoch: progress.record.epoch,
            seconds: progress.record.seconds,
            cpu_seconds: progress.record.cpu_seconds,
            primal: certificate.primal,
            dual: certificate.dual,
            gap: certificate.gap,
            support: certificate.support,
            coef: copy_of(py, progress.coef)?.unbind(),
            intercept: progress.intercept,
        })
    }
}

#[pymethods]
impl PyProgress {
    fn __repr__(&self) -> String {
        let Self {
            class_index,
            epoch,
            primal,
            gap,
            ..
        } = self;
        format!(
            "Progress(class_index={class_index}, epoch={epoch}, primal={primal:.6e}, gap={gap:.3e})"
        )
    }
}
