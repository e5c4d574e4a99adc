//! Predictions of a fit, and the display of its certificate.

use std::fmt;

use crate::data::Data;
use crate::error::{self, Error};
use crate::loss::{Link, Target};
use crate::memory::IntoVec as _;
use crate::predict;
use crate::run::{Certificate, Fit, NoMonitor, RunContext, StopReason, parameter};

/// Predictions: one number per row.
///
/// ```
/// use sdca_rs::prelude::*;
///
/// let x = [[0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [3.0, 0.5]];
/// let y = [-1.0, -1.0, 1.0, 1.0];
/// let problem = Problem::builder(Data::dense(&x)?, &y, Log).build()?;
/// let fit = Sdca::default().fit(&problem)?;
///
/// let rows = Data::dense(&[[0.5, 1.0], [2.5, 0.0]])?;
/// assert_eq!(fit.predict(&rows)?, [-1.0, 1.0]);
/// assert!(fit.decision_function(&rows)?[0] < 0.0);
/// assert!(fit.probabilities(&rows)?[1] > 0.5);
/// # Ok::<(), Error>(())
/// ```
impl Fit {
    /// `x.w + b` for each row.
    pub fn decision_function(&self, rows: &Data<'_>) -> Result<Vec<f64>, Error> {
        scores(rows, &self.coef, &[self.intercept])
    }

    /// The prediction for each row, in the units of the targets: -1 or +1 for labels,
    /// `exp(x.w + b)` for the Poisson loss, otherwise `x.w + b`.
    pub fn predict(&self, rows: &Data<'_>) -> Result<Vec<f64>, Error> {
        let mut predictions = self.decision_function(rows)?;
        for p in &mut predictions {
            *p = match (self.target, self.link) {
                (Target::Label, _) => label(*p),
                (_, Link::Log) => p.exp(),
                _ => *p,
            };
        }
        Ok(predictions)
    }

    /// The probability of the label +1 for each row. An error except for the logistic loss, the
    /// only one that estimates probabilities.
    pub fn probabilities(&self, rows: &Data<'_>) -> Result<Vec<f64>, Error> {
        self.check_logit()?;
        let mut predictions = self.decision_function(rows)?;
        for p in &mut predictions {
            *p = log_sigmoid(*p).exp();
        }
        Ok(predictions)
    }

    /// An error unless `x.w + b` is a log-odds.
    pub(crate) fn check_logit(&self) -> Result<(), Error> {
        if self.link == Link::Logit {
            return Ok(());
        }
        Err(parameter("loss", "one without probabilities", "log"))
    }
}

/// The label for a prediction.
fn label(p: f64) -> f64 {
    if p > 0.0 { 1.0 } else { -1.0 }
}

/// `log(1 / (1 + e^-p))`.
pub(crate) fn log_sigmoid(p: f64) -> f64 {
    p.min(0.0) - (-p.abs()).exp().ln_1p()
}

/// `x.w + b` for each row and each model, in row-major order. The models are stored one after the
/// other.
fn scores(rows: &Data<'_>, coefs: &[f64], intercepts: &[f64]) -> Result<Vec<f64>, Error> {
    let mut no_monitor = NoMonitor;
    let mut context = RunContext::new(None, &mut no_monitor);
    if intercepts.len() == 1 {
        check_columns(rows, coefs)?;
    }
    predict::predictions(rows.storage(), coefs, intercepts, 1, &mut context)
}

/// `x.w + b` for each row and each fit, in row-major order.
pub(crate) fn scores_of_all(rows: &Data<'_>, fits: &[Fit]) -> Result<Vec<f64>, Error> {
    error::catch(|| {
        fits.iter()
            .try_for_each(|fit| check_columns(rows, &fit.coef))?;
        let coefs = fits.iter().flat_map(|fit| fit.coef.iter().copied());
        let coefs = coefs.into_vec();
        let intercepts = fits.iter().map(|fit| fit.intercept).into_vec();
        scores(rows, &coefs, &intercepts)
    })
}

/// An error unless there is one coefficient per column.
fn check_columns(rows: &Data<'_>, coef: &[f64]) -> Result<(), Error> {
    let (found, expected) = (rows.n_cols(), coef.len());
    if found == expected {
        return Ok(());
    }
    Err(Error::Columns { found, expected })
}

/// Prints the objective, the lower bound and the gap in one line.
///
/// ```
/// use sdca_rs::run::Certificate;
///
/// let certificate = Certificate { primal: 0.1791542, dual: 0.1791363, gap: 1.79e-5, support: 7 };
/// assert_eq!(
///     certificate.to_string(),
///     "objective 0.179154, lower bound 0.179136, gap 1.8e-5"
/// );
/// ```
impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            primal, dual, gap, ..
        } = *self;
        f.write_str("objective ")?;
        write_number(f, primal)?;
        f.write_str(", lower bound ")?;
        write_number(f, dual)?;
        if gap == 0.0 {
            f.write_str(", gap 0")
        } else {
            write!(f, ", gap {gap:.1e}")
        }
    }
}

/// Prints [`StopReason::name`].
impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Prints six significant digits.
fn write_number(f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
    if number == 0.0 {
        return f.write_str("0");
    }
    let magnitude = number.abs().log10().floor();
    if (-4.0..6.0).contains(&magnitude) {
        let digits = (5.0 - magnitude) as usize;
        write!(f, "{number:.digits$}")
    } else {
        write!(f, "{number:.5e}")
    }
}

#[cfg(test)]
mod tests;
