//! Classifiers with labels of any ordered type, for any number of classes.

use std::sync::Arc;

use ndarray::Array2;

use crate::data::Data;
use crate::error::{self, Error};
use crate::memory::IntoVec as _;
use crate::model::{log_sigmoid, scores_of_all};
use crate::one_vs_rest::{self, OneVsRest};
use crate::problem::{Problem, Regularisation};
use crate::run::{Budget, Fit, NoMonitor};
use crate::solver::Solver;
use crate::steps::Steps;

/// Linear models that distinguish classes: one per class against the rest, or a single one for two
/// classes.
///
/// Labels may be of any ordered type: numbers, strings, an `enum`.
///
/// ```
/// use sdca_rs::prelude::*;
///
/// let x = [[0.0, 1.0], [0.2, 0.9], [1.0, 0.0], [0.9, 0.1], [-1.0, -1.0]];
/// let labels = ["north", "north", "east", "east", "southwest"];
/// let classifier = Classifier::builder(Data::dense(&x)?, &labels, Hinge)
///     .c(10.0)
///     .fit(&Sdca::default())?;
///
/// assert_eq!(classifier.classes, ["east", "north", "southwest"]);
/// assert!(classifier.fits.iter().all(|fit| fit.certificate.is_within(1e-4)));
///
/// let rows = Data::dense(&[[-0.8, -1.1], [0.1, 1.2]])?;
/// assert_eq!(classifier.predict(&rows)?, ["southwest", "north"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Classifier<T> {
    /// The classes in ascending order.
    pub classes: Vec<T>,
    /// One fit per class against the rest, in the order of the classes; for two classes a single
    /// fit, of the second against the first.
    pub fits: Vec<Fit>,
}

impl<T> Classifier<T> {
    /// `x.w + b` for each row and each fit.
    pub fn decision_function(&self, rows: &Data<'_>) -> Result<Array2<f64>, Error> {
        self.check()?;
        Ok(matrix(rows, scores_of_all(rows, &self.fits)?))
    }

    /// The class of each row: that with the largest `x.w + b`, or the first of several.
    pub fn predict(&self, rows: &Data<'_>) -> Result<Vec<T>, Error>
    where
        T: Clone,
    {
        self.check()?;
        error::catch(|| {
            let scores = scores_of_all(rows, &self.fits)?;
            let best = scores.chunks_exact(self.fits.len()).map(|scores| {
                if let [score] = *scores {
                    return usize::from(score > 0.0);
                }
                let mut best = 0;
                for (k, &score) in scores.iter().enumerate() {
                    if score > scores[best] {
                        best = k;
                    }
                }
                best
            });
            Ok(best.map(|k| self.classes[k].clone()).into_vec())
        })
    }

    /// The probability of each class for each row. An error except for the logistic loss, the only
    /// one that estimates probabilities.
    ///
    /// For three or more classes, these are the probabilities of each class against the rest,
    /// divided by their sum.
    pub fn probabilities(&self, rows: &Data<'_>) -> Result<Array2<f64>, Error> {
        self.check()?;
        self.fits.iter().try_for_each(Fit::check_logit)?;
        error::catch(|| {
            let mut scores = scores_of_all(rows, &self.fits)?;
            if self.fits.len() == 1 {
                let both = scores
                    .iter()
                    .flat_map(|&p| [log_sigmoid(-p), log_sigmoid(p)]);
                let both = both.map(f64::exp).into_vec();
                return Ok(matrix(rows, both));
            }
            for scores in scores.chunks_exact_mut(self.fits.len()) {
                // Relative to the most likely class: all probabilities may be close to 0.
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let unit = log_sigmoid(most);
                for p in scores.iter_mut() {
                    *p = (log_sigmoid(*p) - unit).exp();
                }
                let sum: f64 = scores.iter().sum();
                for p in scores.iter_mut() {
                    *p /= sum;
                }
            }
            Ok(matrix(rows, scores))
        })
    }

    /// Whether the number of fits matches the number of classes: both fields are public.
    fn check(&self) -> Result<(), Error> {
        let (found, n_classes) = (self.fits.len(), self.classes.len());
        let expected = if n_classes == 2 { 1 } else { n_classes };
        if found == expected && n_classes >= 2 {
            return Ok(());
        }
        Err(Error::Length {
            name: "fits",
            found,
            expected: expected.max(1),
            why: "one for each class, from two on, or one for two",
        })
    }
}

/// A matrix from numbers in row-major order.
fn matrix(rows: &Data<'_>, numbers: Vec<f64>) -> Array2<f64> {
    let n_rows = rows.n_rows();
    let shape = (n_rows, numbers.len() / n_rows);
    Array2::from_shape_vec(shape, numbers).expect("as many numbers for each row")
}

/// The problem to be solved for each class, apart from rows and labels.
pub(crate) struct Setting {
    pub(crate) loss: Arc<dyn Steps>,
    pub(crate) regularisation: Regularisation,
    pub(crate) fit_intercept: bool,
}

/// See [`crate::builder::ClassifierBuilder::fit`].
pub(crate) fn fit<T: Ord + Clone>(
    data: Arc<Data<'_>>,
    labels: &[T],
    setting: Setting,
    run: (&dyn Solver, &Budget, usize),
) -> Result<Classifier<T>, Error> {
    error::catch(|| {
        let (classes, codes) = numbered(&data, labels)?;
        let fits = fit_codes(data, (&codes, classes.len()), setting, run)?;
        Ok(Classifier { classes, fits })
    })
}

/// The fits for rows with numbered classes.
fn fit_codes(
    data: Arc<Data<'_>>,
    (codes, n_classes): (&[u32], usize),
    setting: Setting,
    (solver, budget, n_threads): (&dyn Solver, &Budget, usize),
) -> Result<Vec<Fit>, Error> {
    let Setting {
        loss,
        regularisation,
        fit_intercept,
    } = setting;
    if n_classes == 2 {
        let targets = one_vs_rest::targets(codes, 1);
        let problem = Problem::of(data, &targets, loss, regularisation, fit_intercept)?;
        return Ok(vec![solver.fit_within(&problem, budget)?]);
    }
    let classes = (codes, n_classes);
    let problems = OneVsRest::of(data, classes, loss, regularisation, fit_intercept);
    problems.fit(solver, budget, None, n_threads, &NoMonitor)
}

/// The sorted classes of the rows of positive weight, and the class number of each row. That number
/// is arbitrary if the row has weight 0 and a label that occurs nowhere else.
fn numbered<T: Ord + Clone>(data: &Data<'_>, labels: &[T]) -> Result<(Vec<T>, Vec<u32>), Error> {
    if labels.len() != data.n_rows() {
        return Err(Error::Length {
            name: "labels",
            found: labels.len(),
            expected: data.n_rows(),
            why: "one for each row of X",
        });
    }
    let mut classes = data.positive_rows().map(|i| &labels[i]).into_vec();
    classes.sort_unstable();
    classes.dedup();
    if classes.len() < 2 {
        return Err(Error::OneClass);
    }
    let number = |label: &T| classes.binary_search(&label).unwrap_or(0) as u32;
    let codes = labels.iter().map(number).into_vec();
    Ok((classes.into_iter().cloned().into_vec(), codes))
}
