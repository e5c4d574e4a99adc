//! Builders for problems and classifiers: every setting has a default.

use std::sync::Arc;

use ndarray::ArrayView1;

use crate::classifier::{self, Classifier};
use crate::data::{Data, contiguous};
use crate::error::Error;
use crate::loss::Loss;
use crate::problem::{Problem, Regularisation};
use crate::run::Budget;
use crate::solver::Solver;
use crate::steps::Steps;

/// The settings that all builders share.
macro_rules! settings {
    () => {
        /// scikit-learn's `C`, by default 1: the larger, the weaker the regularisation. See
        /// [`Regularisation::C`].
        pub fn c(mut self, c: f64) -> Self {
            self.regularisation = Regularisation::C(c);
            self
        }

        /// The factor of `|w|^2 / 2`, instead of `C`. See [`Regularisation::Lambda`].
        pub fn lambda(mut self, lambda: f64) -> Self {
            self.regularisation = Regularisation::Lambda(lambda);
            self
        }

        /// Whether to fit an intercept, which is not regularised. By default there is one.
        pub fn fit_intercept(mut self, fit_intercept: bool) -> Self {
            self.fit_intercept = fit_intercept;
            self
        }
    };
}

/// A builder of a [`Problem`]; see [`Problem::builder`].
#[derive(Clone)]
#[must_use = "`build` makes the problem"]
pub struct ProblemBuilder<'a> {
    data: Arc<Data<'a>>,
    targets: ArrayView1<'a, f64>,
    loss: Arc<dyn Steps>,
    regularisation: Regularisation,
    fit_intercept: bool,
}

impl<'a> Problem<'a> {
    /// Starts to build the problem of these rows, targets and loss, by default with `C = 1` and an
    /// intercept.
    ///
    /// Targets, one per row, may be `&slice`, `&vec` or `&array`: -1 or +1 for the losses that
    /// classify (see [`Classifier`] for other kinds of labels). Problems may share their data in an
    /// [`Arc`].
    ///
    /// ```
    /// use sdca_rs::prelude::*;
    ///
    /// let x = [[0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [3.0, 0.5]];
    /// let y = [0.5, 1.0, 2.5, 3.0];
    /// let problem = Problem::builder(Data::dense(&x)?, &y, Quantile::new(0.9)?).c(10.0).build()?;
    /// let fit = Sdca::default().fit(&problem)?;
    ///
    /// assert!(fit.certificate.is_within(1e-4));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn builder<L: Loss>(
        data: impl Into<Arc<Data<'a>>>,
        targets: impl Into<ArrayView1<'a, f64>>,
        loss: L,
    ) -> ProblemBuilder<'a> {
        ProblemBuilder {
            data: data.into(),
            targets: targets.into(),
            loss: Arc::new(loss),
            regularisation: Regularisation::C(1.0),
            fit_intercept: true,
        }
    }
}

impl<'a> ProblemBuilder<'a> {
    settings!();

    /// Builds the problem after checking that its parts are consistent.
    pub fn build(self) -> Result<Problem<'a>, Error> {
        let targets = contiguous("y", self.targets)?;
        Problem::of(
            self.data,
            targets,
            self.loss,
            self.regularisation,
            self.fit_intercept,
        )
    }
}

/// A builder of a [`Classifier`]; see [`Classifier::builder`].
#[derive(Clone)]
#[must_use = "`fit` makes the classifier"]
pub struct ClassifierBuilder<'a, T> {
    data: Arc<Data<'a>>,
    labels: &'a [T],
    loss: Arc<dyn Steps>,
    regularisation: Regularisation,
    fit_intercept: bool,
    budget: Budget,
    n_threads: usize,
}

impl<T: Ord + Clone> Classifier<T> {
    /// Starts to build a classifier for these rows, one label per row, and this loss, by default
    /// with `C = 1` and an intercept.
    pub fn builder<'a, L: Loss>(
        data: impl Into<Arc<Data<'a>>>,
        labels: &'a [T],
        loss: L,
    ) -> ClassifierBuilder<'a, T> {
        ClassifierBuilder {
            data: data.into(),
            labels,
            loss: Arc::new(loss),
            regularisation: Regularisation::C(1.0),
            fit_intercept: true,
            budget: Budget::default(),
            n_threads: 1,
        }
    }
}

impl<T: Ord + Clone> ClassifierBuilder<'_, T> {
    settings!();

    /// How close each model must come to its optimum, and the time limit for all of them together.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// The number of classes that are fitted at a time, by default 1. The result does not depend on
    /// it.
    pub fn n_threads(mut self, n_threads: usize) -> Self {
        self.n_threads = n_threads;
        self
    }

    /// Fits each class against the rest or, for two classes, the second against the first.
    ///
    /// The classes are those of the rows of positive weight. There must be at least two.
    pub fn fit(self, solver: &dyn Solver) -> Result<Classifier<T>, Error> {
        let setting = classifier::Setting {
            loss: self.loss,
            regularisation: self.regularisation,
            fit_intercept: self.fit_intercept,
        };
        let run = (solver, &self.budget, self.n_threads);
        classifier::fit(self.data, self.labels, setting, run)
    }
}
