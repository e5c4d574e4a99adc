//! The second-order finish of an SDCA run: when Newton's method ([`super::newton`]) promises to be
//! cheaper than going on, what its points prove, and when it has failed.
//!
//! The dual values of the run stay those of the best point so far, so that a run from which the method
//! is taken away again simply goes on.

use crate::error::Error;
use crate::loss::Loss;
use crate::problem::{Point, Problem};
use crate::rows::Rows;
use crate::run::{Certificate, Watch};
use crate::solver::newton::{self, Newton};

/// Newton's method at work, and whether it does work.
pub(crate) struct Finish<'p, 'a, R, L> {
    newton: Newton<'p, 'a, R, L>,
    /// The gap of the best point so far, and its model where that is not `w(a)`.
    held: (f64, Option<Vec<f64>>),
    /// `D` where the method began: less will not do.
    least_dual: f64,
    /// Whether `w(a)` has failed, so that the model of Newton's method itself may be the result.
    by_itself: bool,
    /// The gap of the present point.
    gap: f64,
    /// The smallest gap of Newton's method itself, and how many times in a row it has since failed to
    /// halve it.
    best: f64,
    failures: u32,
}

/// Gaps that differ by less than this part of `P` are alike.
const ROUNDING: f64 = 1e-12;

/// Failures after which `w(a)` is taken to be spoilt by rounding, and after which the method is given
/// up.
const DOUBT: u32 = 2;
const PATIENCE: u32 = 8;

impl<'p, 'a, R: Rows, L: Loss> Finish<'p, 'a, R, L> {
    /// Whether the problem is of the kind that the method is for.
    pub(crate) fn suits(problem: &Problem<'_, R, L>) -> bool {
        problem.rows().n_cols() <= newton::MAX_COLUMNS
    }

    /// Work of the whole finish from the dual point `a(i)` on, in about nanoseconds.
    pub(crate) fn work(problem: &Problem<'_, R, L>, a: impl Fn(usize) -> f64) -> f64 {
        let rows = problem.rows();
        let (n, stored) = (rows.n_rows() as f64, rows.n_stored() as f64);
        let loss = problem.loss();
        let free = problem
            .counting()
            .filter(|&i| loss.curvature(a(i), problem.target(i)) > 0.0)
            .count() as f64;
        let columns = rows.n_cols() as f64;
        let iterations = if loss.smoothness() > 0.0 { 7.0 } else { 30.0 };
        let system = free * newton::outer_work(rows).0 + 0.05 * columns.powi(3);
        iterations * (2.0 * stored + 25.0 * n + system)
    }

    /// Takes over a run whose point proves `reached`.
    pub(crate) fn new(newton: Newton<'p, 'a, R, L>, reached: Certificate) -> Self {
        Self {
            newton,
            held: (reached.gap, None),
            least_dual: reached.dual,
            by_itself: false,
            gap: f64::INFINITY,
            best: f64::INFINITY,
            failures: 0,
        }
    }

    /// Whether an evaluation is worth its cost.
    pub(crate) fn is_ready(&self) -> bool {
        self.newton.is_ready()
    }

    /// One step of Newton's method, at most.
    pub(crate) fn step(&mut self, watch: &mut Watch<'_>) -> Result<(), Error> {
        self.newton.step(watch)
    }

    /// Certifies the present point. Says whether it is the best so far.
    ///
    /// That is the dual point with `w(a)`, as everywhere else in SDCA. But on columns of very different
    /// sizes rounding in `a` alone can spoil `w(a)`: where it has made no progress, the model of
    /// Newton's method is the result, if it is the better one.
    pub(crate) fn certify(
        &mut self,
        tol: f64,
        precision: f64,
        point: &mut Point,
        watch: &mut Watch<'_>,
    ) -> Result<bool, Error> {
        let (newton, problem) = (&self.newton, self.newton.problem());
        let dual = || newton.dual().iter().copied();
        self.by_itself |= self.failures >= DOUBT;
        point.search_from(newton.intercept());
        problem.evaluate(dual(), precision, point, watch)?;
        let of_dual = point.certificate;
        let mut own = false;
        if self.by_itself && !of_dual.is_within(tol) {
            let coef = newton.coef().iter().copied();
            problem.evaluate_pair(coef, dual(), precision, point, watch)?;
            own = point.certificate.gap < of_dual.gap || of_dual.gap.is_nan();
            if !own {
                problem.evaluate(dual(), precision, point, watch)?;
            }
        }
        let certificate = point.certificate;
        self.gap = certificate.gap;
        // Of points that differ by rounding, the later one is the better.
        let rounding = ROUNDING * certificate.primal.abs();
        let is_best = self.gap < self.held.0 + rounding
            && certificate.dual >= self.least_dual - ROUNDING * self.least_dual.abs();
        if is_best {
            self.held = (self.gap, own.then(|| point.coef.clone()));
        }
        Ok(is_best)
    }

    /// The model of the best point so far, where that is not `w(a)`.
    pub(crate) fn held_model(&self) -> Option<&[f64]> {
        self.held.1.as_deref()
    }

    /// To be told that the gap is still larger than `target`. Says whether there is no hope.
    pub(crate) fn has_failed(&mut self, target: f64, watch: &mut Watch<'_>) -> Result<bool, Error> {
        if !self.newton.is_ready() {
            return Ok(false);
        }
        if self.gap <= 0.5 * self.best {
            (self.best, self.failures) = (self.gap, 0);
        } else {
            self.failures += 1;
        }
        if self.failures >= PATIENCE {
            return Ok(true);
        }
        self.newton.go_on(self.gap, target, watch)?;
        Ok(false)
    }
}
