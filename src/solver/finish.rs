//! The second-order finish of an SDCA run: when Newton's method ([`super::newton`]) promises to be
//! cheaper than going on, what its points prove, and when it has failed.
//!
//! The dual values of the run stay those of the best point so far, so that a run from which the method
//! is taken away again simply goes on.

use crate::error::Error;
use crate::memory::{self, Duplicate as _};
use crate::problem::{Point, Problem};
use crate::run::{Certificate, Watch};
use crate::solver::columns::Columns;
use crate::solver::course;
use crate::solver::hessian::{self, Way};
use crate::solver::newton::Newton;
use crate::solver::sample;

/// Newton's method at work, and whether it does work.
pub(crate) struct Finish<'p, 'a> {
    newton: Newton<'p, 'a>,
    /// The gap of the best point so far, and its model where that is not `w(a)`.
    held: (f64, Option<Vec<f64>>),
    /// `D` where the method began: less will not do.
    least_dual: f64,
    /// What the present point proves.
    present: Certificate,
    /// The smallest gap of Newton's method itself, and how many times in a row it has since failed to
    /// halve it.
    best: f64,
    failures: u32,
}

/// Gaps that differ by less than this part of `P` are alike.
const ROUNDING: f64 = 1e-12;

/// Failures after which the method is given up.
const PATIENCE: u32 = 8;

/// Steps of Newton's method that a fit is likely to take if the loss is not smooth.
const STEPS_AT_KINKS: f64 = 30.0;

impl<'p, 'a> Finish<'p, 'a> {
    /// Work of the whole finish from the dual point `a(i)` on, in about nanoseconds, and whether that is
    /// as good as certain. It is not where rows lie flat and conjugate gradients are the way: which rows
    /// those are has to be found out in many steps, each of them slow.
    pub(crate) fn work(
        problem: &Problem<'_>,
        columns: &Columns,
        a: impl Fn(usize) -> f64,
    ) -> (f64, bool) {
        let (mut free, mut all) = (0, 0);
        let (mut values, mut curvatures) = (Vec::new(), Vec::new());
        for block in problem.data().blocks() {
            let labels = problem.labels(block.clone());
            values.clear();
            memory::extend(&mut values, block.clone().map(&a));
            memory::resize(&mut curvatures, values.len(), 0.0);
            problem
                .loss()
                .curvatures(&values, labels.y, &mut curvatures);
            for (i, &curvature) in block.zip(&curvatures) {
                let counts = problem.weight(i) > 0.0;
                free += usize::from(counts && curvature > 0.0);
                all += usize::from(counts);
            }
        }
        let (work, way) = Self::work_for(problem, columns, free);
        (work, way != Way::ConjugateGradients || free == all)
    }

    /// Work of the whole finish if there are `free` rows in its systems, in about nanoseconds, and how these
    /// are solved.
    fn work_for(problem: &Problem<'_>, columns: &Columns, free: usize) -> (f64, Way) {
        let loss = problem.loss();
        let iterations = match !loss.has_kinks() {
            _ if loss.is_quadratic() => 1.0,
            true => loss.newton_steps(),
            false => STEPS_AT_KINKS,
        };
        let (may_sample, rows) = (sample::suits(loss), problem.rows());
        let (way, system) =
            hessian::cheapest((rows, loss.is_quadratic()), columns, free, may_sample);
        (iterations * (course::work(problem, 10.0) + system), way)
    }

    /// The same as for [`Self::work`], where nothing is known yet of which rows are going to lie flat.
    pub(crate) fn work_from_zero(problem: &Problem<'_>, columns: &Columns) -> f64 {
        Self::work_for(problem, columns, problem.n_rows()).0
    }

    /// Takes over a run that has come to `point`, whose model `is_of_dual` or not.
    pub(crate) fn new(newton: Newton<'p, 'a>, point: &Point, is_of_dual: bool) -> Self {
        let reached = point.certificate;
        Self {
            newton,
            held: (reached.gap, (!is_of_dual).then(|| point.coef.duplicate())),
            least_dual: reached.dual,
            present: reached,
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
    /// That is the pair of Newton's method, or the dual point with `w(a)`, as everywhere else in SDCA,
    /// where that is good enough. It takes more accuracy of `a`, and on columns of very different sizes
    /// rounding in `a` alone can spoil it.
    ///
    /// Where its dual point has become worse than the one of the run, as rounding can make it where dual values are
    /// tiny, its model may be the better one all the same: then it is paired with the latter, `dual`.
    pub(crate) fn certify(
        &mut self,
        aim: (f64, f64),
        dual: impl Iterator<Item = f64>,
        point: &mut Point,
        watch: &mut Watch<'_>,
    ) -> Result<bool, Error> {
        let (newton, problem) = (&self.newton, self.newton.problem());
        let (coef, of_newton) = (newton.coef().iter().copied(), newton.dual().iter().copied());
        point.search_from(newton.intercept());
        // Where the loss is smooth, the last step leads so close to the solution that both will do.
        let probably = !problem.loss().has_kinks();
        let mut is_of_dual =
            problem.evaluate_either(coef.clone(), of_newton, probably, aim, point, watch)?;
        let room = ROUNDING * self.least_dual.abs();
        let Certificate {
            primal,
            dual: bound,
            ..
        } = point.certificate;
        if bound < self.least_dual - room && primal - self.least_dual < self.held.0 {
            is_of_dual = false;
            problem.evaluate_pair(coef, dual, aim.1, point, watch)?;
        }
        self.present = point.certificate;
        let Certificate {
            primal, dual, gap, ..
        } = self.present;
        // Of points that differ by rounding, the later one is the better.
        let rounding = ROUNDING * primal.abs();
        let is_best = gap < self.held.0 + rounding && dual >= self.least_dual - room;
        if is_best {
            self.held = (gap, (!is_of_dual).then(|| point.coef.duplicate()));
        }
        Ok(is_best)
    }

    /// The model of the best point so far, where that is not `w(a)`.
    pub(crate) fn held_model(&self) -> Option<&[f64]> {
        self.held.1.as_deref()
    }

    /// To be told that the present point will not do: the gap is to be at most `tol` times its `P`. Says
    /// whether there is no hope.
    pub(crate) fn has_failed(&mut self, tol: f64, watch: &mut Watch<'_>) -> Result<bool, Error> {
        if !self.newton.is_ready() {
            return Ok(false);
        }
        let Certificate { primal, gap, .. } = self.present;
        if gap <= 0.5 * self.best {
            (self.best, self.failures) = (gap, 0);
        } else {
            self.failures += 1;
        }
        if self.failures >= PATIENCE {
            return Ok(true);
        }
        self.newton.go_on(gap, tol * primal, watch)?;
        Ok(false)
    }
}
