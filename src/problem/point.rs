//! A model, a dual point, and what they prove.

use crate::memory;
use crate::run::Certificate;

/// A feasible dual point, a model (usually `w(a)`), and their certificate; see
/// [`Problem::evaluate`](super::Problem::evaluate).
#[derive(Debug, Clone)]
pub struct Point {
    /// `a`.
    pub dual: Vec<f64>,
    /// `w(a)`, or a model that was given.
    pub coef: Vec<f64>,
    /// The best `b` for this `w`.
    pub intercept: f64,
    /// `x_i.w`, without the intercept.
    pub predictions: Vec<f64>,
    /// The certificate of `w`, `b` and `a`.
    pub certificate: Certificate,
}

impl Point {
    /// The point 0 of a problem, without a certificate.
    pub(crate) fn zero(n_rows: usize, n_cols: usize) -> Self {
        Self {
            dual: memory::zeros(n_rows),
            coef: memory::zeros(n_cols),
            predictions: memory::zeros(n_rows),
            ..Self::default()
        }
    }

    /// Copies another point, except for its predictions, reusing the memory.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        memory::assign(&mut self.dual, &other.dual);
        memory::assign(&mut self.coef, &other.coef);
        self.intercept = other.intercept;
        self.certificate = other.certificate;
        self.predictions = Vec::new();
    }

    /// Overwrites the model and the dual point, reusing the memory.
    pub(super) fn assign(
        &mut self,
        coef: impl IntoIterator<Item = f64>,
        dual: impl IntoIterator<Item = f64>,
    ) {
        self.coef.clear();
        memory::extend(&mut self.coef, coef);
        self.dual.clear();
        memory::extend(&mut self.dual, dual);
    }

    /// Makes the next evaluation search for the best intercept from `intercept`, if that is finite.
    pub(crate) fn search_from(&mut self, intercept: f64) {
        if intercept.is_finite() {
            self.intercept = intercept;
        }
    }
}

impl Default for Point {
    fn default() -> Self {
        let certificate = Certificate {
            primal: f64::INFINITY,
            dual: f64::NEG_INFINITY,
            gap: f64::INFINITY,
            support: 0,
        };
        Self {
            dual: Vec::new(),
            coef: Vec::new(),
            intercept: 0.0,
            predictions: Vec::new(),
            certificate,
        }
    }
}
