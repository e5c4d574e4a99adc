//! The Newton phase of an SDCA run: what Newton's method ([`super::newton`]) is estimated to cost,
//! the certificates of its points, and when it has failed.
//!
//! If the method is given up, the run continues from the best point so far.

use crate::error::Error;
use crate::problem::{Point, Problem};
use crate::run::{Certificate, RunContext};
use crate::solver::chooser::CostEstimate;
use crate::solver::driver::ROUNDING;
use crate::solver::hessian::{self, Columns, DirectionMethod, sample};
use crate::solver::newton::{self, Newton};
use crate::solver::schedule;

/// Newton's method within an SDCA run, and its progress.
pub(crate) struct NewtonPhase<'p, 'a> {
    newton: Newton<'p, 'a>,
    /// The certificate of the present point.
    present: Certificate,
    /// The smallest gap of Newton's method itself, and the number of evaluations in a row that have
    /// since failed to halve it.
    best: f64,
    failures: u32,
}

/// Steps of Newton's method that a fit is likely to take if the loss has kinks.
const STEPS_AT_KINKS: f64 = 30.0;

impl<'p, 'a> NewtonPhase<'p, 'a> {
    /// The estimated cost of Newton's method from the dual point `a(i)` on.
    pub(crate) fn work(
        problem: &Problem<'_>,
        columns: &Columns,
        a: impl Fn(usize) -> f64,
    ) -> CostEstimate {
        let (free, all) = newton::count_curved(problem, a);
        let (work, method) = Self::work_for(problem, columns, free);
        CostEstimate {
            work,
            is_certain: method != DirectionMethod::ConjugateGradients || free == all,
        }
    }

    /// The work with `free` rows in the linear systems, in approximate nanoseconds, and the method
    /// that would solve these systems.
    fn work_for(problem: &Problem<'_>, columns: &Columns, free: usize) -> (f64, DirectionMethod) {
        let loss = problem.loss();
        let iterations = match !loss.has_kinks() {
            _ if loss.is_quadratic() => 1.0,
            true => loss.newton_steps(),
            false => STEPS_AT_KINKS,
        };
        let (iteration, method) = Self::iteration_work(problem, columns, free);
        (iterations * iteration, method)
    }

    /// The same for one iteration.
    pub(crate) fn iteration_work(
        problem: &Problem<'_>,
        columns: &Columns,
        free: usize,
    ) -> (f64, DirectionMethod) {
        let (loss, rows) = (problem.loss(), problem.rows());
        let may_sample = sample::suits(loss);
        let (method, system) =
            hessian::cheapest((rows, loss.is_quadratic()), columns, free, may_sample);
        (schedule::work(problem, 10.0) + system, method)
    }

    /// As [`Self::work`], but when it is not known yet which rows will have zero curvature: all
    /// rows count.
    pub(crate) fn work_from_zero(problem: &Problem<'_>, columns: &Columns) -> f64 {
        Self::work_for(problem, columns, problem.n_rows()).0
    }

    /// Begins the phase.
    pub(crate) fn new(newton: Newton<'p, 'a>) -> Self {
        Self {
            newton,
            present: Point::default().certificate,
            best: f64::INFINITY,
            failures: 0,
        }
    }

    /// Whether an evaluation is worth its cost.
    pub(crate) fn is_ready(&self) -> bool {
        self.newton.is_ready()
    }

    /// At most one step of Newton's method.
    pub(crate) fn step(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        self.newton.step(context)
    }

    /// Evaluates the present point.
    ///
    /// The point is the pair of model and dual point of Newton's method, or the dual point with
    /// `w(a)`, as everywhere else in SDCA, if that is good enough. The latter requires a more
    /// accurate `a`, and on columns of very different sizes rounding errors in `a` alone can spoil
    /// it.
    ///
    /// Where dual values are tiny, rounding can make `D` fall below its value at the start of the
    /// phase. The model may still be the better one; it is then paired with the dual point of the
    /// best point so far.
    pub(crate) fn evaluate(
        &mut self,
        aim: (f64, f64),
        (best, least_dual): (&Point, f64),
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        if point.predictions.is_empty() {
            point.predictions = self.newton.lend();
        }
        let (newton, problem) = (&self.newton, self.newton.problem());
        let (coef, of_newton) = (newton.coef().iter().copied(), newton.dual().iter().copied());
        point.search_from(newton.intercept());
        // If the loss is smooth, the last step ends so close to the solution that both will do.
        let probably = !problem.loss().has_kinks();
        problem.evaluate_either(coef.clone(), of_newton, probably, aim, point, context)?;
        let Certificate { primal, dual, .. } = point.certificate;
        let room = ROUNDING * least_dual.abs();
        if dual < least_dual - room && primal - least_dual < best.certificate.gap {
            let dual = best.dual.iter().copied();
            problem.evaluate_pair(coef, dual, aim.1, point, context)?;
        }
        Ok(())
    }

    /// Takes the certificate of the present point. Counts the evaluations in a row that have not
    /// halved the gap.
    pub(crate) fn observe(&mut self, present: Certificate) {
        self.present = present;
        if !self.newton.is_ready() {
            return;
        }
        if present.gap <= 0.5 * self.best {
            (self.best, self.failures) = (present.gap, 0);
        } else {
            self.failures += 1;
        }
    }

    /// See [`Self::observe`].
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Continues from the present point towards a gap of at most `tol` times its `P`.
    pub(crate) fn go_on(&mut self, tol: f64, context: &mut RunContext<'_>) -> Result<(), Error> {
        if !self.newton.is_ready() {
            return Ok(());
        }
        let Certificate { primal, gap, .. } = self.present;
        self.newton.go_on(gap, tol * primal, context)
    }
}
