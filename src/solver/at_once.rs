//! Quadratic losses with few columns: one step of Newton's method from 0 on is the solution, and where that costs less
//! than the first epochs of SDCA, nothing that these need is set up.
//!
//! ```text
//! a_i = -phi'(0; y_i);   H d = sum_i (c_i / W) a_i x_i  for centred rows, see `hessian.rs`
//! w = d,   a_i = -phi'(x_i.w + b; y_i)
//! ```
//!
//! What the two prove is found out as everywhere. Where rounding leaves it short of the tolerance, as with columns of
//! very different sizes, nobody is told, and an ordinary run begins, which takes further steps.

use crate::error::Error;
use crate::loss::blocks::Along;
use crate::memory;
use crate::problem::{Point, Problem};
use crate::run::{Budget, Fit, Phase, Watch};
use crate::solver::columns::Columns;
use crate::solver::driver::{self, Evaluation, Process, Stretch};
use crate::solver::hessian::{self, Design, Hessian, Memory, Way};
use crate::solver::schedule::{self, Pace};

/// Work of the step per row, beside the entries and the system: see [`schedule::work`].
const PER_ROW: f64 = 10.0;

/// The part of the tolerance that directions may cost that the system does not tell apart. `P(0, 0)` may be far above
/// the minimum.
const PART: f64 = 1e-4;

/// Whether one step promises to be cheaper than the epochs up to the first look at the gap.
pub(crate) fn pays(problem: &Problem<'_>, columns: &Columns) -> bool {
    if !problem.loss().is_quadratic() || Pace::is_small(problem) {
        return false;
    }
    let rows = problem.rows();
    // The matrix would not tell whether rows that do not count are finite.
    let share = |i| problem.weight(i) / problem.total_weight();
    if (0..rows.n_rows()).any(|i| share(i) == 0.0) {
        return false;
    }
    let (way, system) = hessian::cheapest((rows, true), columns, rows.n_rows(), false);
    let epochs = schedule::FIRST_EVALUATION * schedule::epoch_work(problem);
    way == Way::Columns && schedule::work(problem, PER_ROW) + system < epochs
}

/// The solution, if what is found proves to be one.
pub(crate) fn run(
    problem: &Problem<'_>,
    columns: &Columns,
    budget: &Budget,
    watch: &mut Watch<'_>,
) -> Result<Option<Fit>, Error> {
    let mut mu = Vec::new();
    if problem.fit_intercept() {
        memory::resize(&mut mu, problem.rows().n_cols(), 0.0);
        let share = |i| problem.weight(i) / problem.total_weight();
        problem.data().add_rows(share, &mut mu, watch)?;
    }
    let design = Design {
        problem,
        mu,
        columns,
    };
    let Some((solution, mean_q)) = solve(&design, budget.tol, watch)? else {
        return Ok(None);
    };
    let pace = Pace::new(problem, problem.rows().n_rows() as u64, 0.0, mean_q);
    let mut step = Solved {
        problem,
        solution,
        is_done: false,
    };
    driver::run(problem, &mut step, budget, pace, watch).map(Some)
}

/// The solution and what it proves, if that is enough, and the mean of `q_i`.
fn solve(
    design: &Design<'_, '_>,
    tol: f64,
    watch: &mut Watch<'_>,
) -> Result<Option<(Point, f64)>, Error> {
    let problem = design.problem;
    let (loss, size) = (problem.loss(), problem.data().block_size());
    let share = |i: usize| problem.weight(i) / problem.total_weight();
    let mut weights = memory::zeros(problem.n_rows());
    let losses = problem.data().by_blocks(watch, |block| {
        let labels = problem.labels(block.clone());
        loss.values(&weights[block], 0.0, labels)
    })?;
    let slopes = |from: usize, slopes: &mut [f64]| {
        slopes.fill(0.0);
        loss.slopes(slopes, problem.labels(from..from + slopes.len()).y);
        for (i, slope) in (from..).zip(slopes) {
            *slope *= share(i);
        }
    };
    let gradient = design.sum_blocks(&slopes, watch)?;
    let primal = losses.iter().sum::<f64>() / problem.total_weight();
    // How much of the gap the gradient makes for decides which part of it may be left.
    let excess = problem.penalty().excess(&gradient);
    let precision = (PART * tol * primal / excess).sqrt().min(0.1);
    // The same everywhere.
    let curvature = loss.curvature(-loss.slope(0.0, problem.target(0)), problem.target(0));
    watch.change(&mut weights, size, |i, _| share(i) * curvature)?;
    let hessian = Hessian {
        design,
        weights: &weights,
    };
    let mut memory = Memory::new(loss);
    let direction = match hessian.direction(&gradient, precision, &mut memory, watch) {
        Err(Error::OutOfTime) => return Ok(None),
        direction => direction?,
    };
    let mean_q = problem.mean_q(memory.spread / curvature);
    // The ordinary run refuses infinities and NaNs in X.
    if !mean_q.is_finite() {
        return Ok(None);
    }
    let mut predictions = weights;
    design.products(&direction, &mut predictions, watch)?;
    let mut dual = memory::zeros(predictions.len());
    watch.fill(&mut dual, size, |from, dual| {
        let block = from..from + dual.len();
        let along = Along::at(&predictions[block.clone()]);
        loss.dual_values(along, problem.labels(block), dual);
    })?;
    let mut point = Point::default();
    point.search_from(design.shift(&direction));
    let coef = direction[..problem.rows().n_cols()].iter().copied();
    let aim = (tol, schedule::intercept_precision(tol));
    watch.evaluate(|watch| {
        problem.evaluate_either(coef, dual, true, aim, &mut point, watch)?;
        Ok(point.certificate.is_within(tol).then_some((point, mean_q)))
    })
}

/// The step from 0 to the solution, which is known.
struct Solved<'p, 'a> {
    problem: &'p Problem<'a>,
    solution: Point,
    is_done: bool,
}

impl Process for Solved<'_, '_> {
    fn epoch(&self) -> u64 {
        self.problem.rows().n_rows() as u64
    }

    /// It counts as two epochs, as all steps of Newton's method do.
    fn advance(&mut self, stretch: Stretch, _watch: &mut Watch<'_>) -> Result<u64, Error> {
        self.is_done = true;
        Ok(stretch.step + 2 * self.epoch())
    }

    fn evaluate(
        &mut self,
        evaluation: Evaluation<'_>,
        point: &mut Point,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        if self.is_done {
            *point = std::mem::take(&mut self.solution);
            return Ok(());
        }
        let zeros = std::iter::repeat_n(0.0, self.problem.rows().n_rows());
        self.problem
            .evaluate(zeros, evaluation.precision, point, watch)
    }

    fn is_ready(&self) -> Option<bool> {
        Some(self.is_done)
    }

    fn phase(&self) -> Phase {
        if self.is_done {
            Phase::Newton
        } else {
            Phase::Plain
        }
    }
}
