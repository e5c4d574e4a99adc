//! Quadratic losses with few columns: one step of Newton's method from 0 on is the solution, and where that costs less
//! than the first epochs of SDCA, nothing that these need is set up.
//!
//! ```text
//! a_i = -phi'(0; y_i);   H d = sum_i (c_i / W) a_i x_i  for centred rows, see `hessian.rs`
//! w = d,   a_i = -phi'(x_i.w + b; y_i)
//! ```
//!
//! What the dual point proves is found out as everywhere. Where rounding leaves it short of the tolerance, as with columns
//! of very different sizes, an ordinary run begins, which takes further steps.

use std::ops::ControlFlow;

use crate::error::Error;
use crate::loss::{Loss, sums};
use crate::problem::{Point, Problem};
use crate::rows::Rows;
use crate::run::{Budget, Fit, Phase, Record, StopReason, Watch};
use crate::solver::columns::Columns;
use crate::solver::course::{self, Pace, Process};
use crate::solver::hessian::{self, Design, Hessian, Memory, Way};

/// The work of one step in units of that of a step of SDCA, beside the system: see [`course::work`].
const PER_ROW: f64 = 10.0;

/// Whether one step promises to be cheaper than the epochs up to the first look at the gap.
pub(crate) fn pays<R: Rows, L: Loss>(problem: &Problem<'_, R, L>, columns: &Columns) -> bool {
    if !L::IS_QUADRATIC || Pace::is_small(problem) {
        return false;
    }
    let rows = problem.rows();
    let (way, system) = hessian::cheapest::<R, L>(rows, columns, rows.n_rows(), false);
    let epochs = course::FIRST_EVALUATION * course::epoch_work(problem);
    way == Way::Columns && course::work(problem, PER_ROW) + system < epochs
}

/// The solution, if it proves to be one or the run was stopped from outside.
pub(crate) fn run<R: Rows, L: Loss>(
    problem: &Problem<'_, R, L>,
    columns: &Columns,
    budget: &Budget,
    watch: &mut Watch<'_>,
) -> Result<Option<Fit>, Error> {
    let mut step = AtOnce {
        problem,
        columns,
        tol: budget.tol,
        target: 0.0,
        dual: None,
        mean_q: 0.0,
    };
    let pace = Pace::new(problem, step.epoch(), 0.0, 0.0);
    let fit = match course::run(&mut step, budget, pace, watch) {
        Err(Error::Overflow { .. }) => return Ok(None),
        fit => fit?,
    };
    let failed = matches!(fit.stop, StopReason::Precision | StopReason::MaxEpochs);
    Ok((!failed).then_some(Fit {
        mean_q: step.mean_q,
        ..fit
    }))
}

struct AtOnce<'p, 'a, R, L> {
    problem: &'p Problem<'a, R, L>,
    columns: &'p Columns,
    tol: f64,
    /// The gap to be reached.
    target: f64,
    /// Once the step is done.
    dual: Option<Vec<f64>>,
    /// See [`Fit::mean_q`].
    mean_q: f64,
}

impl<R: Rows, L: Loss> AtOnce<'_, '_, R, L> {
    /// The dual point that the step leads to.
    fn solve(&mut self, watch: &mut Watch<'_>) -> Result<Vec<f64>, Error> {
        let (problem, rows) = (self.problem, self.problem.rows());
        let share = |i: usize| problem.weight(i) / problem.total_weight();
        let mut mu = Vec::new();
        if problem.fit_intercept() {
            mu.resize(rows.n_cols(), 0.0);
            problem.add_rows(share, &mut mu, watch)?;
        }
        let mu_sq_norm = hessian::dot(&mu, &mu);
        let design = Design {
            problem,
            mu,
            columns: self.columns,
        };
        let at_zero = |i: usize| -problem.loss().slope(0.0, problem.target(i));
        let mut gradient = design.sum(|i| -share(i) * at_zero(i), watch)?;
        let mut products = vec![0.0; rows.n_rows()];
        watch.change(&mut products, problem.block_size(), |i, _| {
            share(i) * problem.loss().curvature(at_zero(i), problem.target(i))
        })?;
        let hessian = Hessian {
            design: &design,
            weights: &products,
        };
        // The part of the gradient that may be left: it makes for |gradient|^2 / (2 lambda) of the gap.
        let excess = hessian::dot(&gradient, &gradient) / (2.0 * problem.lambda());
        let precision = (0.1 * self.target / excess).sqrt().min(0.1);
        let mut memory = Memory::new(&problem.loss());
        gradient = hessian.direction(&gradient, precision, &mut memory, watch)?;
        design.products(&gradient, &mut products, watch)?;
        // Also of rows of weight 0, which nothing else looks at.
        if !products.iter().all(|p| p.is_finite()) {
            return Err(Error::Overflow { what: "x.w" });
        }
        let mut dual = vec![0.0; rows.n_rows()];
        watch.fill(&mut dual, problem.block_size(), |from, dual| {
            let block = from..from + dual.len();
            let (p, (y, c)) = (&products[block.clone()], problem.labels(block));
            sums::dual_values(problem.loss(), (p, 0.0, p), y, c, dual);
        })?;
        let sq_norms = problem.by_blocks(watch, |block| {
            let of_row = |i: usize| share(i) * rows.sq_norm(i);
            block.map(of_row).sum::<f64>()
        })?;
        let mean_sq_norm = (sq_norms.iter().sum::<f64>() - mu_sq_norm).max(0.0);
        self.mean_q = mean_sq_norm / (problem.lambda() * problem.total_weight());
        Ok(dual)
    }
}

impl<R: Rows, L: Loss> Process for AtOnce<'_, '_, R, L> {
    fn epoch(&self) -> u64 {
        self.problem.counting().count() as u64
    }

    fn begin(&mut self, start: &Point) {
        self.target = self.tol * start.certificate.primal;
    }

    /// The step, which counts as two epochs, as all steps of Newton's method do.
    fn advance(&mut self, step: u64, _until: u64, watch: &mut Watch<'_>) -> Result<u64, Error> {
        self.dual = Some(self.solve(watch)?);
        Ok(step + 2 * self.epoch())
    }

    fn certify(
        &mut self,
        _step: u64,
        precision: f64,
        point: &mut Point,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        match &self.dual {
            Some(dual) => {
                let dual = dual.iter().copied();
                self.problem.evaluate(dual, precision, point, watch)
            }
            None => {
                let zeros = std::iter::repeat_n(0.0, self.problem.rows().n_rows());
                self.problem.evaluate(zeros, precision, point, watch)
            }
        }
    }

    fn is_ready(&self) -> Option<bool> {
        Some(self.dual.is_some())
    }

    fn phase(&self) -> Phase {
        if self.dual.is_some() {
            Phase::Newton
        } else {
            Phase::Plain
        }
    }

    fn reconsider(
        &mut self,
        _point: &Point,
        _history: &[Record],
        _watch: &mut Watch<'_>,
    ) -> Result<ControlFlow<StopReason>, Error> {
        Ok(if self.dual.is_some() {
            ControlFlow::Break(StopReason::Precision)
        } else {
            ControlFlow::Continue(())
        })
    }

    fn is_perfect(&self, point: &Point) -> bool {
        self.problem.is_perfect(point)
    }
}
