//! The bounds of [`crate::theory`], one function each.

use pyo3::prelude::*;

use super::guarded;
use crate::error::Error;
use crate::theory::{self, AveragedRun, Setting};

/// The numbers of [`Setting`], in their order.
type Numbers = (f64, f64, f64, f64);

/// `T` and `T0`.
type Steps = (u64, u64);

fn unpack((lambda, eps, radius, initial_gap): Numbers) -> Setting {
    Setting {
        lambda,
        eps,
        radius,
        initial_gap,
    }
}

fn steps(run: AveragedRun) -> Steps {
    (run.iterations, run.average_from_step)
}

/// Computes a bound.
fn bound<T>(work: impl FnOnce() -> Result<T, Error>) -> PyResult<T> {
    guarded(|| work().map_err(Into::into))
}

/// The size of a batch, which Python checks only to be an integer.
fn batch(n_samples: u64, batch_size: i64) -> Result<u64, Error> {
    batch_size.try_into().map_err(|_| Error::BatchSize {
        found: batch_size.into(),
        n_samples,
    })
}

/// See [`theory::sdca_lipschitz_iterations`].
#[pyfunction]
#[pyo3(signature = (n_samples, setting, lipschitz, average_from))]
pub(super) fn theory_sdca_lipschitz(
    n_samples: u64,
    setting: Numbers,
    lipschitz: f64,
    average_from: Option<f64>,
) -> PyResult<Steps> {
    bound(|| {
        theory::sdca_lipschitz_iterations(n_samples, unpack(setting), lipschitz, average_from)
            .map(steps)
    })
}

/// See [`theory::sdca_lipschitz_summary`].
#[pyfunction]
pub(super) fn theory_sdca_lipschitz_summary(
    n_samples: u64,
    setting: Numbers,
    lipschitz: f64,
) -> PyResult<Steps> {
    bound(|| theory::sdca_lipschitz_summary(n_samples, unpack(setting), lipschitz).map(steps))
}

/// See [`theory::sdca_sgd_iterations`].
#[pyfunction]
#[pyo3(signature = (n_samples, setting, lipschitz, average_from))]
pub(super) fn theory_sdca_sgd(
    n_samples: u64,
    setting: Numbers,
    lipschitz: f64,
    average_from: Option<f64>,
) -> PyResult<Steps> {
    bound(|| {
        theory::sdca_sgd_iterations(n_samples, unpack(setting), lipschitz, average_from).map(steps)
    })
}

/// See [`theory::sdca_smooth_iterations`].
#[pyfunction]
pub(super) fn theory_sdca_smooth(n_samples: u64, setting: Numbers, gamma: f64) -> PyResult<u64> {
    bound(|| theory::sdca_smooth_iterations(n_samples, unpack(setting), gamma))
}

/// See [`theory::sdca_smooth_averaged_iterations`].
#[pyfunction]
#[pyo3(signature = (n_samples, setting, gamma, average_from))]
pub(super) fn theory_sdca_smooth_averaged(
    n_samples: u64,
    setting: Numbers,
    gamma: f64,
    average_from: Option<f64>,
) -> PyResult<Steps> {
    bound(|| {
        theory::sdca_smooth_averaged_iterations(n_samples, unpack(setting), gamma, average_from)
            .map(steps)
    })
}

/// See [`theory::asdca_theta`].
#[pyfunction]
pub(super) fn theory_asdca_theta(
    n_samples: u64,
    batch_size: i64,
    lam: f64,
    gamma: f64,
    radius: f64,
) -> PyResult<f64> {
    bound(|| theory::asdca_theta(n_samples, batch(n_samples, batch_size)?, lam, gamma, radius))
}

/// See [`theory::asdca_iterations`].
#[pyfunction]
pub(super) fn theory_asdca(
    n_samples: u64,
    batch_size: i64,
    setting: Numbers,
    gamma: f64,
) -> PyResult<u64> {
    bound(|| {
        let batch_size = batch(n_samples, batch_size)?;
        theory::asdca_iterations(n_samples, batch_size, unpack(setting), gamma)
    })
}

/// See [`theory::pegasos_iterations`].
#[pyfunction]
#[pyo3(signature = (setting, lipschitz, project, delta))]
pub(super) fn theory_pegasos(
    setting: Numbers,
    lipschitz: f64,
    project: bool,
    delta: Option<f64>,
) -> PyResult<u64> {
    bound(|| theory::pegasos_iterations(unpack(setting), lipschitz, project, delta))
}
