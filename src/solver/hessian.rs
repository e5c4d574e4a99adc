//! Newton's direction: the solution `d` of `H d = -grad F` for
//!
//! ```text
//! H = lambda I + sum_i r_i x_i x_i'
//! ```
//!
//! where the identity leaves out the intercept, `x_i` stands for the centred row with a last entry of 1
//! for the intercept if there is one, and `r_i >= 0`. There are four methods, and the cheapest possible
//! one is used:
//!
//! * **By columns.** `H` itself, for few columns, by Cholesky's method.
//! * **By a sample.** The same for a sample of the rows, which preconditions a few steps of conjugate
//!   gradients on all of them, see [`super::sample`]. This is for many rows of some hundred columns.
//! * **By rows**, for few rows with `r_i > 0`. With `t_i = r_i x_i.d`, all lines of the system but that of the
//!   intercept are `lambda d = -grad F - sum_i t_i x_i`, which turns it into
//!
//!   ```text
//!   (1/r_i) t_i + (1/lambda) sum_j x_i.x_j t_j = d_b - (1/lambda) x_i.grad F,    sum_i t_i = -grad_b F
//!   ```
//!
//!   with one unknown for each of those rows, and `d_b`. No digits are lost if `lambda` is tiny: `w + d` is the model
//!   of the dual values that the step leads to. A few columns may be so large that rounding loses the others in
//!   `x_i.x_j`. These separate columns keep their own `d_j`, as the intercept does. Let `B` be these columns, and one
//!   of ones for the intercept, and `A` the matrix of the system for the other columns:
//!
//!   ```text
//!   A t = c + B d_B,   lambda d_B + B' t = -grad_B F,   so that  (B' A^-1 B + lambda I) d_B = -grad_B F - B' A^-1 c
//!   ```
//!
//!   where, again, `lambda I` leaves out the intercept.
//! * **By conjugate gradients**, for anything else, preconditioned with the diagonal of `H`, until the residual is
//!   small relative to the gradient.

use crate::error::Error;
use crate::linalg::SymmetricSystem;
use crate::loss::blocks::LossBlocks;
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::problem::Problem;
use crate::rows::blocks::RowBlocks;
use crate::run::RunContext;
use crate::solver::chooser::Mechanism;
use crate::solver::columns::{Columns, Gram};
use crate::solver::sample::{self, Sample};

/// The maximum number of unknowns of a system: a matrix of 72 MB.
const MAX_UNKNOWNS: usize = 3000;

/// A row whose weight has changed by less than this fraction keeps its old weight in the matrix. The direction is then
/// wrong by about the same fraction, but only the rows that have changed need to be added again.
const CHANGE: f64 = 0.1;

/// The fraction of the rows that are added again for a direction, on average.
const RENEWED: f64 = 0.5;

/// Systems by rows are used up to this number of rows per column. Columns of very different sizes can be scaled in a
/// system of the columns, but products of rows mix them and keep fewer digits of the small ones.
const FEW_ROWS: f64 = 1.0 / 3.0;

/// Steps of conjugate gradients for one direction: the expected number, the maximum, and the maximum for a quadratic
/// loss, for which a single direction is enough. (`nycflights_onehot` takes 46, 246 and 497 for `C` of 0.01, 1 and 100.)
const EXPECTED_STEPS: f64 = 50.0;
const MAX_STEPS: usize = 300;
const MAX_STEPS_QUADRATIC: usize = 3000;

/// A column is separate if its sum of squares is more than this many times that of all smaller columns together, of
/// which the products of rows would otherwise keep at most 10 digits. And the maximum number of separate columns.
const APART: f64 = 1e6;
const MAX_APART: usize = 32;

/// The separate columns, see [`APART`], given the sum of squares of each column.
fn stand_apart(spreads: &[f64]) -> Vec<usize> {
    let mut largest: Vec<usize> = (0..spreads.len()).into_vec();
    largest.sort_by(|&j, &l| spreads[l].total_cmp(&spreads[j]).then(j.cmp(&l)));
    let mut rest: f64 = largest.iter().skip(MAX_APART).map(|&j| spreads[j]).sum();
    largest.truncate(MAX_APART);
    // From the smallest on: all columns larger than a separate one are separate, too.
    let mut count = 0;
    for (k, &j) in largest.iter().enumerate().rev() {
        if count == 0 && spreads[j] > APART * rest {
            count = k + 1;
        }
        rest += spreads[j];
    }
    largest.truncate(count);
    largest
}

/// The statistics of the columns, if systems of the columns are possible; otherwise empty.
pub(crate) fn columns(rows: &dyn RowBlocks) -> Columns {
    if rows.n_cols() <= MAX_UNKNOWNS {
        Columns::new(rows)
    } else {
        Columns::default()
    }
}

/// How a system is solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectionMethod {
    Columns,
    Sample,
    Rows,
    ConjugateGradients,
}

/// The cheapest method for a Hessian with `count` rows of positive weight, and its work for one direction, on average,
/// in approximate nanoseconds.
pub(crate) fn cheapest(
    (rows, is_quadratic): (&dyn RowBlocks, bool),
    columns: &Columns,
    count: usize,
    may_sample: bool,
) -> (DirectionMethod, f64) {
    let (n, n_cols) = (count as f64, rows.n_cols() as f64);
    let per_row = rows.n_stored() as f64 / rows.n_rows() as f64;
    // An upper figure: about 0.010 is measured today, see "Linear algebra" in docs/benchmarks.md.
    let cholesky = |unknowns: f64| 0.017 * unknowns.powi(3);
    let pass = |share: f64| share * rows.entry_work() * n * per_row + 15.0 * n;
    let mut best = (
        DirectionMethod::ConjugateGradients,
        if Mechanism::ConjugateGradients.is_on() {
            EXPECTED_STEPS * (pass(1.5) + 10.0 * n_cols)
        } else {
            f64::MAX
        },
    );
    if rows.n_cols() <= MAX_UNKNOWNS && Mechanism::Columns.is_on() {
        let of_row = outer_work(rows, columns).0;
        let renewed = if is_quadratic { 1.0 } else { RENEWED };
        // Even if conjugate gradients would be cheaper: this always reaches the solution, they may not.
        best = (
            DirectionMethod::Columns,
            renewed * n * of_row + cholesky(n_cols),
        );
        if may_sample && count >= rows.n_cols() && Mechanism::Sample.is_on() {
            let size = sample::size(rows.n_cols()).min(count) as f64;
            let factor = sample::CHOSEN * (size * of_row + cholesky(n_cols));
            // See `Design::image`.
            let step = pass(if rows.is_sparse() { 1.5 } else { 1.0 }) + 0.3 * n_cols * n_cols;
            let work = factor + sample::EXPECTED_STEPS * step;
            if work < sample::WORTH * best.1 {
                best = (DirectionMethod::Sample, work);
            }
        }
    }
    let are_few = count <= MAX_UNKNOWNS && count as f64 <= FEW_ROWS * n_cols;
    if are_few && Mechanism::Rows.is_on() {
        let products = 0.15 * rows.entry_work() * n * n * per_row + 2.0 * n * n_cols;
        let work = products + cholesky(n);
        if work < best.1 {
            best = (DirectionMethod::Rows, work);
        }
    }
    best
}

/// Work of adding one row to the matrix of the columns, in approximate nanoseconds, and whether [`Columns`] does it
/// with less work than adding it as a dense row.
fn outer_work(rows: &dyn RowBlocks, columns: &Columns) -> (f64, bool) {
    let (by_columns, as_dense) = (columns.work(), dense_work(rows));
    (by_columns.min(as_dense), by_columns < as_dense)
}

fn dense_work(rows: &dyn RowBlocks) -> f64 {
    let columns = rows.n_cols() as f64;
    12.0 + 1.2 * columns + 0.021 * columns * columns
}

/// Whether adding the rows as dense ones costs at most 30 times as much as adding them by [`Columns`].
fn is_affordable_again(rows: &dyn RowBlocks, columns: &Columns) -> bool {
    dense_work(rows) <= 30.0 * columns.work()
}

/// The rows as they are in `H`: centred, with a last entry of 1 if there is an intercept.
pub(crate) struct Design<'p, 'a> {
    pub(crate) problem: &'p Problem<'a>,
    /// The mean row; empty without an intercept.
    pub(crate) mu: Vec<f64>,
    pub(crate) columns: &'p Columns,
}

impl Design<'_, '_> {
    /// What to add to `x.v` for the product of the centred row with `v`.
    pub(crate) fn shift(&self, v: &[f64]) -> f64 {
        let (coef, rest) = v.split_at(self.problem.rows().n_cols());
        rest.first().map_or(0.0, |b| b - dot(&self.mu, coef))
    }

    /// The products of all rows with `v`.
    pub(crate) fn products(
        &self,
        v: &[f64],
        out: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let rows = self.problem.rows();
        let (coef, shift) = (&v[..rows.n_cols()], self.shift(v));
        context.fill(out, self.problem.data().block_size(), |from, out| {
            rows.products(from, coef, out);
            for product in out {
                *product += shift;
            }
        })
    }

    /// The sum of all rows, each times its weight and its product with `v`. `room` is a buffer for these products.
    fn image(
        &self,
        weights: &[f64],
        v: &[f64],
        room: &mut Vec<f64>,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let rows = self.problem.rows();
        let (coef, shift) = (&v[..rows.n_cols()], self.shift(v));
        let fill = |from: usize, shares: &mut [f64]| {
            let weights = &weights[from..from + shares.len()];
            if weights.iter().all(|&r| r > 0.0) {
                rows.products(from, coef, shares);
            } else {
                for (i, (share, &r)) in (from..).zip(shares.iter_mut().zip(weights)) {
                    if r > 0.0 {
                        rows.products(i, coef, std::slice::from_mut(share));
                    }
                }
            }
            for (share, &r) in shares.iter_mut().zip(weights) {
                *share = if r > 0.0 { r * (*share + shift) } else { 0.0 };
            }
        };
        if !rows.is_sparse() && self.problem.data().sums_by_blocks() {
            // In one pass, so that each row is read from memory once. (Compressed rows gain nothing from that.)
            return self.sum_blocks(&fill, context);
        }
        memory::resize(room, rows.n_rows(), 0.0);
        context.fill(room, self.problem.data().block_size(), fill)?;
        self.sum(|i| room[i], context)
    }

    /// The sum of all rows times `share(i)`.
    pub(crate) fn sum(
        &self,
        share: impl Fn(usize) -> f64 + Sync,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let fill = |from: usize, shares: &mut [f64]| {
            for (i, of_row) in (from..).zip(shares) {
                *of_row = share(i);
            }
        };
        self.sum_blocks(&fill, context)
    }

    /// [`Self::sum`] for shares that `fill(from, shares)` computes for the rows from `from` on.
    pub(crate) fn sum_blocks(
        &self,
        fill: &(dyn Fn(usize, &mut [f64]) + Sync),
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let mut sum = memory::zeros(self.problem.n_cols());
        let total = self.problem.data().add_blocks(fill, &mut sum, context)?;
        if self.problem.fit_intercept() {
            for (sum, m) in sum.iter_mut().zip(&self.mu) {
                *sum -= total * m;
            }
            memory::push(&mut sum, total);
        }
        Ok(sum)
    }
}

/// What is reused from one direction to the next.
#[derive(Default)]
pub(crate) struct Memory {
    system: SymmetricSystem,
    gram: Gram,
    /// The sample; `None` if samples do not suit the loss, or have been given up.
    pub(crate) sample: Option<Sample>,
}

impl Memory {
    pub(crate) fn new(loss: &dyn LossBlocks) -> Self {
        Self {
            sample: sample::suits(loss).then(Sample::default),
            ..Self::default()
        }
    }
}

/// `H`, given by the weights `r` of its rows.
pub(crate) struct Hessian<'h, 'p, 'a> {
    pub(crate) design: &'h Design<'p, 'a>,
    pub(crate) weights: &'h [f64],
}

impl Hessian<'_, '_, '_> {
    /// The solution of `H d = -gradient`, with a residual of about `precision` times the gradient, or of
    /// [`sample::PRECISION`] times the gradient if it comes from a sample. `memory` is reused from call to call.
    pub(crate) fn direction(
        &self,
        gradient: &[f64],
        precision: f64,
        memory: &mut Memory,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let count = self.weights.iter().filter(|&&r| r > 0.0).count();
        if count == 0 {
            // Nothing limits the intercept: the line search finds how far it should go.
            let (coef, rest) = gradient.split_at(self.design.problem.rows().n_cols());
            let coef = coef
                .iter()
                .map(|g| -g / self.design.problem.penalty().curvature());
            return Ok(coef.chain(rest.iter().map(|g| -g)).into_vec());
        }
        let (rows, columns) = (self.design.problem.rows(), self.design.columns);
        let is_quadratic = self.design.problem.loss().is_quadratic();
        let cheapest = |may_sample| cheapest((rows, is_quadratic), columns, count, may_sample).0;
        let way = match (cheapest(memory.sample.is_some()), memory.sample.take()) {
            (DirectionMethod::Sample, Some(mut sample)) => {
                let found = self.by_sample(gradient, sample::PRECISION, &mut sample, context)?;
                if let Some(direction) = found {
                    memory.sample = Some(sample);
                    return Ok(direction);
                }
                cheapest(false)
            }
            // Another method is cheaper, or samples were given up: the sample is freed, and samples are not used again.
            (way, _) => way,
        };
        match way {
            DirectionMethod::Columns | DirectionMethod::Sample => {
                self.by_columns(gradient, precision, memory, context)
            }
            DirectionMethod::Rows => self.by_rows(gradient, &mut memory.system, context),
            DirectionMethod::ConjugateGradients => {
                self.by_conjugate_gradients(gradient, precision, context)
            }
        }
    }

    fn by_columns(
        &self,
        gradient: &[f64],
        precision: f64,
        memory: &mut Memory,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let (rows, columns) = (self.design.problem.rows(), self.design.columns);
        let Memory { system, gram, .. } = memory;
        self.factor(system, gram, context)?;
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).into_vec();
        let room = precision * precision * dot(gradient, gradient);
        let remainder = system.remainder(&direction);
        if is_affordable_again(rows, columns) && remainder > room {
            self.solve_again(&mut direction, system, context)?;
        } else {
            system.solve(&mut direction);
        }
        Ok(direction)
    }

    /// Makes `system` that of the columns, and factors it.
    fn factor(
        &self,
        system: &mut SymmetricSystem,
        gram: &mut Gram,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let Design {
            problem,
            mu,
            columns,
        } = self.design;
        let rows = problem.rows();
        system.clear(rows.n_cols() + usize::from(problem.fit_intercept()));
        if outer_work(rows, columns).1 {
            let weights = (self.weights, CHANGE);
            gram.update(columns, (problem, mu), weights, system, context)?;
        } else {
            self.add_rows(system, |_| {}, context)?;
            system.flush(context);
        }
        system.add_diagonal(rows.n_cols(), problem.penalty().curvature());
        system.factor(context)
    }

    /// By conjugate gradients, preconditioned with the matrix of a sample of the rows. `None` if they do not reach the
    /// precision even with a new sample.
    fn by_sample(
        &self,
        gradient: &[f64],
        precision: f64,
        sample: &mut Sample,
        context: &mut RunContext<'_>,
    ) -> Result<Option<Vec<f64>>, Error> {
        loop {
            let is_new = !sample.serves();
            if is_new {
                let design = self.design;
                if sample.importance.is_empty() {
                    sample.importance = self.importance(context)?;
                }
                let weights = &sample.choose(self.weights, design.problem.rows().n_cols());
                let mut once = Gram::default();
                Hessian { design, weights }.factor(&mut sample.system, &mut once, context)?;
            }
            let room = precision * precision * dot(gradient, gradient);
            let (mut direction, mut steps) = (memory::zeros(gradient.len()), None);
            // Otherwise the part of the gradient along fixed unknowns would count as solved.
            if sample.system.remainder(gradient) <= room {
                let precondition = |v: &[f64]| {
                    let mut v = v.duplicate();
                    sample.system.solve(&mut v);
                    v
                };
                let most = sample.max_steps();
                (direction, steps) =
                    self.conjugate_gradients(gradient, precision, most, &precondition, context)?;
            }
            sample.has_taken(steps);
            if steps.is_some() || context.is_out_of_time() {
                return Ok(Some(direction));
            }
            if is_new {
                return Ok(None);
            }
        }
    }

    /// The importance of each row: `sum_j x_ij^2 / D_j` with the diagonal `D` of `H`, its share in `D` up to its
    /// weight.
    fn importance(&self, context: &mut RunContext<'_>) -> Result<Vec<f64>, Error> {
        let Design { problem, mu, .. } = self.design;
        let (n_cols, diagonal) = (problem.rows().n_cols(), self.diagonal(context)?);
        let of_intercept = diagonal.get(n_cols).map_or(0.0, |total| 1.0 / total);
        let means = mu.iter().zip(&diagonal).map(|(m, d)| m * m / d);
        // The importance of a row without entries: centred, it is not zero.
        let least = of_intercept + means.sum::<f64>();
        let mut importance = memory::zeros(problem.rows().n_rows());
        let twice: Vec<f64> = mu.iter().map(|m| 2.0 * m).into_vec();
        let rows = problem.rows();
        context.fill(
            &mut importance,
            problem.data().block_size(),
            |from, importance| {
                rows.scaled_squares(from, &twice, &diagonal, importance);
                for sum in importance {
                    *sum = (least + *sum).max(0.0);
                }
            },
        )?;
        Ok(importance)
    }

    /// The solution of the system of the columns if the sums of products have lost a direction `v` that
    /// matters: one in which `v' H v` is little more than `lambda |v|^2`, because the rows cancel there, to
    /// less than the last digit of the matrix.
    ///
    /// Let `L` be the computed factor of `S H S`. The rows, and those of `lambda I` (the root of `lambda`
    /// in each), are replaced by `L^-1 S x`. Products of these lose nothing, because `x.v` cancels before it
    /// is squared. Their system is `L^-1 S H S L^-T`, close to the identity.
    fn solve_again(
        &self,
        v: &mut [f64],
        system: &mut SymmetricSystem,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let problem = self.design.problem;
        system.release();
        let mut finer = SymmetricSystem::new(v.len());
        self.add_rows(&mut finer, |row| system.forward(row), context)?;
        for j in 0..problem.rows().n_cols() {
            let row = finer.next_row();
            row[j] = 1.0;
            system.forward(row);
            finer.end_row(problem.penalty().curvature(), context);
            context.heartbeat_in_time()?;
        }
        finer.flush(context);
        finer.factor(context)?;
        system.forward(v);
        finer.solve(v);
        system.backward(v);
        Ok(())
    }

    /// Adds the rows to the system one by one, as dense rows, each changed by `change`.
    fn add_rows(
        &self,
        system: &mut SymmetricSystem,
        change: impl Fn(&mut [f64]),
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let Design { problem, mu, .. } = self.design;
        for block in problem.data().blocks() {
            for i in block {
                let r = self.weights[i];
                if r > 0.0 {
                    let row = system.next_row();
                    problem.rows().write(i, row);
                    for (x, m) in row.iter_mut().zip(mu) {
                        *x -= m;
                    }
                    if problem.fit_intercept() {
                        row[mu.len()] = 1.0;
                    }
                    change(row);
                    system.end_row(r, context);
                    context.heartbeat_in_time()?;
                }
            }
        }
        Ok(())
    }

    /// Row `i`, centred if there is an intercept, as a dense vector.
    fn centred(&self, i: usize) -> Vec<f64> {
        let Design { problem, mu, .. } = self.design;
        let mut row = memory::zeros(problem.rows().n_cols());
        problem.rows().write(i, &mut row);
        for (x, m) in row.iter_mut().zip(mu) {
            *x -= m;
        }
        row
    }

    /// The separate columns of the chosen rows, see [`APART`].
    fn columns_apart(
        &self,
        chosen: &[u32],
        context: &mut RunContext<'_>,
    ) -> Result<Vec<usize>, Error> {
        let mut spreads = memory::zeros(self.design.problem.rows().n_cols());
        for &i in chosen {
            for (spread, x) in spreads.iter_mut().zip(self.centred(i as usize)) {
                *spread += x * x;
            }
            context.heartbeat_in_time()?;
        }
        Ok(stand_apart(&spreads))
    }

    fn by_rows(
        &self,
        gradient: &[f64],
        system: &mut SymmetricSystem,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let Design { problem, mu, .. } = self.design;
        let (rows, n_cols) = (problem.rows(), problem.rows().n_cols());
        let chosen: Vec<u32> = (0..rows.n_rows() as u32)
            .filter(|&i| self.weights[i as usize] > 0.0)
            .into_vec();
        let apart = self.columns_apart(&chosen, context)?;
        // The columns of the border: the separate ones and, if there is an intercept, a column of ones.
        let room = |_| memory::with_capacity(chosen.len());
        let mut border: Vec<Vec<f64>> = (0..apart.len()).map(room).into_vec();
        system.clear(chosen.len());
        for &i in &chosen {
            let row = self.centred(i as usize);
            for (column, &j) in border.iter_mut().zip(&apart) {
                column.push(row[j]);
            }
        }
        system.fill(context, |k, cells| {
            let mut row = self.centred(chosen[k] as usize);
            for &j in &apart {
                row[j] = 0.0;
            }
            let shift = dot(mu, &row);
            rows.products_of(&chosen[..=k], &row, cells);
            for cell in &mut *cells {
                *cell = (*cell - shift) / problem.penalty().curvature();
            }
            cells[k] += 1.0 / self.weights[chosen[k] as usize];
        })?;
        system.factor(context)?;
        let (coef, of_intercept) = gradient.split_at(n_cols);
        let mut together = coef.duplicate();
        for &j in &apart {
            together[j] = 0.0;
        }
        let shift = dot(mu, &together);
        let mut t = memory::zeros(chosen.len());
        rows.products_of(&chosen, &together, &mut t);
        for t in &mut t {
            *t = (shift - *t) / problem.penalty().curvature();
        }
        system.solve(&mut t);
        border.extend(
            of_intercept
                .iter()
                .map(|_| memory::filled(chosen.len(), 1.0)),
        );
        let solved: Vec<Vec<f64>> = border
            .iter()
            .map(|column| {
                let mut solved = column.duplicate();
                system.solve(&mut solved);
                solved
            })
            .into_vec();
        let mut small = SymmetricSystem::new(border.len());
        for (k, column) in border.iter().enumerate() {
            for (l, solved) in solved[..=k].iter().enumerate() {
                small.add_cell(k, l, dot(column, solved));
            }
        }
        small.add_diagonal(apart.len(), problem.penalty().curvature());
        small.factor(context)?;
        let gradients = apart
            .iter()
            .map(|&j| coef[j])
            .chain(of_intercept.iter().copied());
        let mut d_border: Vec<f64> = gradients
            .zip(&border)
            .map(|(gradient, column)| -gradient - dot(column, &t))
            .into_vec();
        // If nothing depends on the intercept, it does not move.
        small.solve(&mut d_border);
        for (solved, d) in solved.iter().zip(&d_border) {
            for (t, solved) in t.iter_mut().zip(solved) {
                *t += d * solved;
            }
        }
        let mut direction = coef.duplicate();
        let total: f64 = t.iter().sum();
        rows.add_of(&chosen, &t, &mut direction);
        for (d, m) in direction.iter_mut().zip(mu) {
            *d -= total * m;
        }
        for d in &mut direction {
            *d /= -problem.penalty().curvature();
        }
        for (&j, &d) in apart.iter().zip(&d_border) {
            direction[j] = d;
        }
        memory::extend(&mut direction, d_border.get(apart.len()).copied());
        Ok(direction)
    }

    fn by_conjugate_gradients(
        &self,
        gradient: &[f64],
        precision: f64,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let diagonal = self.diagonal(context)?;
        let precondition =
            |v: &[f64]| -> Vec<f64> { v.iter().zip(&diagonal).map(|(v, d)| v / d).into_vec() };
        let most = if self.design.problem.loss().is_quadratic() {
            MAX_STEPS_QUADRATIC
        } else {
            MAX_STEPS
        };
        let found = self.conjugate_gradients(gradient, precision, most, &precondition, context)?;
        Ok(found.0)
    }

    /// The direction after at most `max_steps` steps of conjugate gradients, and the number of steps if they were
    /// enough for the precision; otherwise `None`.
    fn conjugate_gradients(
        &self,
        gradient: &[f64],
        precision: f64,
        max_steps: usize,
        precondition: &dyn Fn(&[f64]) -> Vec<f64>,
        context: &mut RunContext<'_>,
    ) -> Result<(Vec<f64>, Option<usize>), Error> {
        let (design, problem) = (self.design, self.design.problem);
        let (n_cols, lambda) = (problem.rows().n_cols(), problem.penalty().curvature());
        let mut room = Vec::new();
        let mut direction = memory::zeros(gradient.len());
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).into_vec();
        let mut scaled = precondition(&residual);
        let mut size = dot(&residual, &scaled);
        if size == 0.0 {
            return Ok((direction, Some(0)));
        }
        // For a quadratic loss, the direction leads to the solution, and the residual is measured as the gap
        // measures it, by `|r|^2`. Otherwise what counts is how far the objective falls.
        let measure = |residual: &[f64], size: f64| {
            if self.design.problem.loss().is_quadratic() {
                dot(residual, residual)
            } else {
                size
            }
        };
        let enough = precision * precision * measure(gradient, size);
        let mut way = scaled.duplicate();
        for steps in 1..=max_steps {
            let mut image = design.image(self.weights, &way, &mut room, context)?;
            for (image, v) in image.iter_mut().zip(&way[..n_cols]) {
                *image += lambda * v;
            }
            let step = size / dot(&way, &image);
            if !(step.is_finite() && step > 0.0) {
                break;
            }
            for (d, v) in direction.iter_mut().zip(&way) {
                *d += step * v;
            }
            for (r, v) in residual.iter_mut().zip(&image) {
                *r -= step * v;
            }
            scaled = precondition(&residual);
            let before = size;
            size = dot(&residual, &scaled);
            if measure(&residual, size) <= enough {
                return Ok((direction, Some(steps)));
            }
            if context.is_out_of_time() {
                break;
            }
            for (v, s) in way.iter_mut().zip(&scaled) {
                *v = s + size / before * *v;
            }
        }
        // Wherever the steps end, the objective falls along the direction.
        Ok((direction, None))
    }

    /// The diagonal of `H`.
    fn diagonal(&self, context: &mut RunContext<'_>) -> Result<Vec<f64>, Error> {
        let Design { problem, mu, .. } = self.design;
        let n_cols = problem.rows().n_cols();
        let (mut squares, mut sums, mut total) =
            (memory::zeros(n_cols), memory::zeros(mu.len()), 0.0);
        for block in problem.data().blocks() {
            let weights = &self.weights[block.clone()];
            let rows = problem.rows();
            rows.add_squares(block.start, weights, &mut squares, &mut sums);
            total += weights.iter().filter(|&&r| r > 0.0).sum::<f64>();
            context.heartbeat()?;
        }
        for ((square, sum), m) in squares.iter_mut().zip(&sums).zip(mu) {
            // Rounding must not make it negative.
            *square = (*square - 2.0 * m * sum + m * m * total).max(0.0);
        }
        for square in &mut squares {
            *square += problem.penalty().curvature();
        }
        if problem.fit_intercept() {
            memory::push(&mut squares, if total > 0.0 { total } else { 1.0 });
        }
        Ok(squares)
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Storage};
    use crate::loss::Loss;
    use crate::loss::{Hinge, Huber, Log, Squared};
    use crate::problem::Regularisation;
    use crate::rows::Dense;
    use crate::rows::Rows;
    use crate::rows::tests::CsrArrays;
    use crate::run::NoMonitor;
    use ndarray::ArrayView2;
    use proptest::prelude::*;
    use std::sync::Arc;

    type Vector = Vec<f64>;

    /// A Hessian, and the right side of a system with it. `mu` and the last entry of the gradient
    /// count only with an intercept.
    #[derive(Debug, Clone)]
    struct Case {
        rows: Vec<Vector>,
        weights: Vector,
        mu: Vector,
        gradient: Vector,
        lambda: f64,
    }

    impl Case {
        /// `f` for the Hessian of the case, with dense or with compressed rows, by so many threads: once for a
        /// quadratic loss and once for another.
        fn with(&self, kind: Kind, threads: usize, f: impl Fn(&dyn Solve, &mut RunContext<'_>)) {
            let (n, d) = (self.rows.len(), self.mu.len());
            let targets = vec![1.0; n];
            let mut no_monitor = NoMonitor;
            let mut context = RunContext::new(None, &mut no_monitor);
            context
                .set_threads(threads, usize::MAX, 1)
                .expect("a few threads");
            if kind.sparse {
                let rows = self.rows.iter().map(|row| row.iter().copied().enumerate());
                let arrays = CsrArrays::new(rows.map(|row| row.filter(|(_, x)| *x != 0.0)));
                self.with_rows(arrays.rows(d), &targets, kind, &mut context, f);
            } else {
                let entries = self.rows.concat();
                let view = ArrayView2::from_shape((n, d), &entries).expect("n rows");
                let rows = Dense::new(view).expect("C order");
                self.with_rows(rows, &targets, kind, &mut context, f);
            }
        }

        fn with_rows<'a>(
            &self,
            rows: impl Into<Storage<'a>>,
            targets: &'a [f64],
            kind: Kind,
            context: &mut RunContext<'_>,
            f: impl Fn(&dyn Solve, &mut RunContext<'_>),
        ) {
            let data = &Arc::new(Data::new(rows, None).expect("valid"));
            self.with_loss(data, targets, Squared, kind, context, &f);
            self.with_loss(data, targets, Huber::with_param(1.0), kind, context, &f);
        }

        fn with_loss<'a, L: Loss>(
            &self,
            data: &Arc<Data<'a>>,
            targets: &'a [f64],
            loss: L,
            kind: Kind,
            context: &mut RunContext<'_>,
            f: impl Fn(&dyn Solve, &mut RunContext<'_>),
        ) {
            let lambda = Regularisation::Lambda(self.lambda);
            let problem = Problem::new(Arc::clone(data), targets, loss, lambda, kind.intercept);
            let problem = problem.expect("a problem");
            let mu = if kind.intercept {
                self.mu.clone()
            } else {
                Vec::new()
            };
            let columns = Columns::new(data.rows());
            let design = Design {
                problem: &problem,
                mu,
                columns: &columns,
            };
            let hessian = Hessian {
                design: &design,
                weights: &self.weights,
            };
            f(&hessian, context);
        }

        /// The rows of the definition.
        fn centred(&self, intercept: bool) -> Vec<Vector> {
            let centre = |row: &Vector| -> Vector {
                if intercept {
                    let shifted = row.iter().zip(&self.mu).map(|(x, m)| x - m);
                    shifted.chain([1.0]).collect()
                } else {
                    row.clone()
                }
            };
            self.rows.iter().map(centre).collect()
        }

        fn gradient(&self, intercept: bool) -> &[f64] {
            &self.gradient[..self.mu.len() + usize::from(intercept)]
        }

        /// How well `d` solves `H d = -gradient`: the largest residual beside the largest sum of what
        /// cancels in a line.
        fn residual(&self, d: &[f64], intercept: bool) -> f64 {
            let gradient = self.gradient(intercept);
            let (mut left, mut size) = (gradient.to_vec(), vec![0.0; d.len()]);
            for (row, r) in self.centred(intercept).iter().zip(&self.weights) {
                let product = dot(row, d);
                let sizes: f64 = row.iter().zip(d).map(|(x, d)| (x * d).abs()).sum();
                for ((left, size), x) in left.iter_mut().zip(&mut size).zip(row) {
                    *left += r * product * x;
                    *size += r * sizes * x.abs();
                }
            }
            for (j, g) in gradient.iter().enumerate() {
                if j < self.mu.len() {
                    left[j] += self.lambda * d[j];
                    size[j] += self.lambda * d[j].abs();
                }
                size[j] += g.abs();
            }
            largest(&left) / largest(&size)
        }
    }

    /// How a case is posed.
    #[derive(Debug, Clone, Copy)]
    struct Kind {
        sparse: bool,
        intercept: bool,
    }

    fn kinds() -> impl Iterator<Item = Kind> {
        [false, true].into_iter().flat_map(|sparse| {
            [false, true]
                .into_iter()
                .map(move |intercept| Kind { sparse, intercept })
        })
    }

    /// A Hessian with rows of any storage.
    trait Solve {
        /// The direction by one of the methods, or by the cheapest one.
        fn solve(
            &self,
            way: Option<DirectionMethod>,
            gradient: &[f64],
            context: &mut RunContext<'_>,
        ) -> Vector;
        /// The direction to the `aim`, a gradient and a precision, by a sample that has served for other weights
        /// before, if any; and whether it is to serve for the next one.
        fn solve_by_sample(
            &self,
            before: Option<&[f64]>,
            aim: (&[f64], f64),
            context: &mut RunContext<'_>,
        ) -> (Vector, bool);
        /// Whether the matrix of the columns is computed by [`Columns`].
        fn is_by_columns(&self) -> bool;
        fn products(&self, v: &[f64], context: &mut RunContext<'_>) -> Vector;
        fn sum(&self, share: &[f64], context: &mut RunContext<'_>) -> Vector;
        fn size(&self) -> usize;
    }

    /// The residual that conjugate gradients may leave, relative to the gradient.
    const TINY: f64 = 1e-14;

    impl Solve for Hessian<'_, '_, '_> {
        fn solve(
            &self,
            way: Option<DirectionMethod>,
            gradient: &[f64],
            context: &mut RunContext<'_>,
        ) -> Vector {
            let mut memory = Memory::default();
            let direction = match way {
                None => self.direction(gradient, TINY, &mut memory, context),
                Some(DirectionMethod::Columns) => {
                    self.by_columns(gradient, TINY, &mut memory, context)
                }
                Some(DirectionMethod::Sample) => {
                    return self.solve_by_sample(None, (gradient, TINY), context).0;
                }
                Some(DirectionMethod::Rows) => self.by_rows(gradient, &mut memory.system, context),
                Some(DirectionMethod::ConjugateGradients) => {
                    self.by_conjugate_gradients(gradient, TINY, context)
                }
            };
            direction.expect("not interrupted")
        }

        fn solve_by_sample(
            &self,
            before: Option<&[f64]>,
            (gradient, precision): (&[f64], f64),
            context: &mut RunContext<'_>,
        ) -> (Vector, bool) {
            let (design, mut sample) = (self.design, Sample::default());
            let mut solve = |weights: &[f64], precision: f64| {
                let found = Hessian { design, weights }.by_sample(
                    gradient,
                    precision,
                    &mut sample,
                    context,
                );
                found.expect("not interrupted").expect("steps enough")
            };
            if let Some(before) = before {
                // A few steps, after which the sample is not given up.
                solve(before, sample::PRECISION);
            }
            let direction = solve(self.weights, precision);
            (direction, sample.serves())
        }

        fn is_by_columns(&self) -> bool {
            outer_work(self.design.problem.rows(), self.design.columns).1
        }

        fn products(&self, v: &[f64], context: &mut RunContext<'_>) -> Vector {
            let mut out = vec![7.0; self.weights.len()];
            self.design
                .products(v, &mut out, context)
                .expect("not interrupted");
            out
        }

        fn sum(&self, share: &[f64], context: &mut RunContext<'_>) -> Vector {
            self.design
                .sum(|i| share[i], context)
                .expect("not interrupted")
        }

        fn size(&self) -> usize {
            let problem = self.design.problem;
            problem.rows().n_cols() + usize::from(problem.fit_intercept())
        }
    }

    const WAYS: [Option<DirectionMethod>; 5] = [
        Some(DirectionMethod::Columns),
        Some(DirectionMethod::Sample),
        Some(DirectionMethod::Rows),
        Some(DirectionMethod::ConjugateGradients),
        None,
    ];

    fn largest(v: &[f64]) -> f64 {
        v.iter()
            .fold(f64::MIN_POSITIVE, |most, x| most.max(x.abs()))
    }

    fn numbers(n: usize) -> impl Strategy<Value = Vector> {
        prop::collection::vec(-1.0..1.0, n)
    }

    /// `n` rows of `d` entries, of which that part is not zero.
    fn rows(n: usize, d: usize, part: f64) -> impl Strategy<Value = Vec<Vector>> {
        let entry = (0.0..1.0, -1.0..1.0f64);
        let entry = entry.prop_map(move |(u, x)| if u < part { x } else { 0.0 });
        prop::collection::vec(prop::collection::vec(entry, d), n)
    }

    /// With weights among which there are zeros.
    fn cases() -> impl Strategy<Value = Case> {
        let shape = (1usize..14, 1usize..14, 0.2..1.2f64);
        shape.prop_flat_map(|(n, d, part)| {
            let weight = prop_oneof![Just(0.0), 0.01..2.0];
            (
                rows(n, d, part),
                prop::collection::vec(weight, n),
                numbers(d),
                numbers(d + 1),
                -3.0..1.0f64,
            )
                .prop_map(|(rows, weights, mu, mut gradient, power)| {
                    if weights.iter().all(|&r| r == 0.0) {
                        // Nothing depends on the intercept.
                        *gradient.last_mut().expect("not empty") = 0.0;
                    }
                    let lambda = 10f64.powf(power);
                    Case {
                        rows,
                        weights,
                        mu,
                        gradient,
                        lambda,
                    }
                })
        })
    }

    /// Pseudo-random numbers from 0 to 1, the same ones in each call.
    fn uniform() -> impl FnMut() -> f64 {
        let mut seed = 1u32;
        move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(seed >> 8) / f64::from(1u32 << 24)
        }
    }

    /// Many more columns than rows, and next to no regularisation.
    fn wide_cases() -> impl Strategy<Value = Case> {
        (1usize..9, 40usize..60).prop_flat_map(|(n, d)| {
            (
                rows(n, d, 2.0),
                prop::collection::vec(0.01..2.0, n),
                numbers(d),
                numbers(d + 1),
            )
                .prop_map(|(rows, weights, mu, gradient)| Case {
                    rows,
                    weights,
                    mu,
                    gradient,
                    lambda: 1e-10,
                })
        })
    }

    /// Gaussian elimination with the largest pivot of each column.
    fn eliminate(mut matrix: Vec<Vector>, mut right: Vector) -> Vector {
        let n = right.len();
        for k in 0..n {
            let size = |i: &usize| matrix[*i][k].abs();
            let best = (k..n).max_by(|i, j| size(i).total_cmp(&size(j)));
            let best = best.expect("k is one");
            matrix.swap(k, best);
            right.swap(k, best);
            let pivot = matrix[k].clone();
            for i in k + 1..n {
                let factor = matrix[i][k] / pivot[k];
                for (x, p) in matrix[i].iter_mut().zip(&pivot) {
                    *x -= factor * p;
                }
                right[i] -= factor * right[k];
            }
        }
        for k in (0..n).rev() {
            let known = dot(&matrix[k][k + 1..], &right[k + 1..]);
            right[k] = (right[k] - known) / matrix[k][k];
        }
        right
    }

    proptest! {
        #[test]
        fn all_ways_solve_the_system(case in cases()) {
            for kind in kinds() {
                case.with(kind, 1, |hessian, context| {
                    for way in WAYS {
                        let d = hessian.solve(way, case.gradient(kind.intercept), context);
                        assert_eq!(d.len(), hessian.size());
                        let residual = case.residual(&d, kind.intercept);
                        assert!(residual < 1e-9, "{residual} by {way:?}, {kind:?}");
                    }
                });
            }
        }

        #[test]
        fn sums_and_products_are_those_of_centred_rows(case in cases()) {
            for kind in kinds() {
                let rows = case.centred(kind.intercept);
                let v = case.gradient(kind.intercept);
                case.with(kind, 1, |hessian, context| {
                    let products = hessian.products(v, context);
                    for (row, product) in rows.iter().zip(products) {
                        assert!((product - dot(row, v)).abs() < 1e-13);
                    }
                    let sum = hessian.sum(&case.weights, context);
                    assert_eq!(sum.len(), v.len());
                    for (j, sum) in sum.iter().enumerate() {
                        let terms = rows.iter().zip(&case.weights).map(|(row, r)| r * row[j]);
                        assert!((sum - terms.sum::<f64>()).abs() < 1e-12);
                    }
                });
            }
        }

        /// What rounding leaves of the dual values `t` of the step does not depend on `lambda`: they
        /// are in `lambda d + gradient`.
        #[test]
        fn by_rows_loses_nothing_where_lambda_is_tiny(case in wide_cases()) {
            for kind in kinds() {
                let (rows, n) = (case.centred(kind.intercept), case.rows.len());
                let (g, d_cols) = (case.gradient(kind.intercept), case.mu.len());
                // lambda / r t + G t - lambda d_b = -x.gradient,  sum t = -gradient_b
                let size = n + usize::from(kind.intercept);
                let mut matrix = vec![vec![0.0; size]; size];
                let mut right = vec![0.0; size];
                for i in 0..n {
                    for j in 0..n {
                        matrix[i][j] = dot(&rows[i][..d_cols], &rows[j][..d_cols]);
                    }
                    matrix[i][i] += case.lambda / case.weights[i];
                    right[i] = -dot(&rows[i][..d_cols], &g[..d_cols]);
                    if kind.intercept {
                        (matrix[i][n], matrix[n][i]) = (-1.0, 1.0);
                        right[n] = -g[d_cols];
                    }
                }
                let solution = eliminate(matrix, right);
                case.with(kind, 1, |hessian, context| {
                    let d = hessian.solve(Some(DirectionMethod::Rows), g, context);
                    for j in 0..d_cols {
                        let t_x: f64 = (0..n).map(|i| solution[i] * rows[i][j]).sum();
                        let off = case.lambda * d[j] + g[j] + t_x;
                        assert!(off.abs() < 1e-12, "{off} in column {j}, {kind:?}");
                    }
                    if let (Some(d_b), Some(expected)) = (d.get(d_cols), solution.get(n)) {
                        let off = case.lambda * d_b - expected;
                        assert!(off.abs() < 1e-11, "{off} in the intercept");
                    }
                    // As far as numbers go that are as large as d.
                    for i in 0..n {
                        let (product, expected) = (dot(&rows[i], &d), solution[i] / case.weights[i]);
                        assert!((product - expected).abs() < 1e-13 / case.lambda);
                    }
                });
            }
        }
    }

    /// Systems of the columns can be scaled and keep columns of all sizes: systems by rows must agree with them.
    #[test]
    fn by_rows_columns_apart_do_not_hide_the_others() {
        let (n, d) = (6, 30);
        let mut uniform = uniform();
        let mut number = || uniform() - 0.4;
        let mut case = Case {
            rows: (0..n).map(|_| (0..d).map(|_| number()).collect()).collect(),
            weights: (0..n).map(|_| 0.5 + number()).collect(),
            mu: (0..d).map(|_| number()).collect(),
            gradient: (0..=d).map(|_| number()).collect(),
            lambda: 0.3,
        };
        let scales = |j: usize| match j {
            4 => 1e9,
            17 => 1e5,
            _ => 1.0,
        };
        for j in [4, 17] {
            case.rows.iter_mut().for_each(|row| row[j] *= scales(j));
            case.mu[j] *= scales(j);
            case.gradient[j] *= scales(j);
        }
        for kind in kinds() {
            case.with(kind, 1, |hessian, context| {
                let gradient = case.gradient(kind.intercept);
                let by_rows = hessian.solve(Some(DirectionMethod::Rows), gradient, context);
                let expected = hessian.solve(Some(DirectionMethod::Columns), gradient, context);
                for (j, (found, expected)) in by_rows.iter().zip(&expected).enumerate() {
                    let off = (found - expected).abs() * scales(j);
                    assert!(
                        off < 1e-5,
                        "{found}, not {expected}, in column {j}, {kind:?}"
                    );
                }
            });
        }
    }

    #[test]
    fn columns_stand_apart_from_all_smaller_ones() {
        assert_eq!(stand_apart(&[1.0; 50]), [0usize; 0]);
        assert_eq!(stand_apart(&[]), [0usize; 0]);
        assert_eq!(stand_apart(&[0.0, 0.0]), [0usize; 0]);
        let mut spreads = [1.0; 50];
        spreads[7] = 1e9;
        assert_eq!(stand_apart(&spreads), [7]);
        (spreads[30], spreads[3]) = (1e9, 1e13);
        assert_eq!(stand_apart(&spreads), [3, 7, 30]);
        // Not if another column is nearly as large.
        (spreads[7], spreads[30]) = (1e6, 1.0);
        assert_eq!(stand_apart(&spreads), [3]);
        // And not if there are too many.
        assert_eq!(stand_apart(&vec![1e9; 2000]), [0usize; 0]);
    }

    /// Two rows of bytes in three columns: along what is orthogonal to both, `lambda` is all that there is,
    /// far below the last digit of the products of entries.
    #[test]
    fn by_columns_sees_lambda_beside_large_rows() {
        let rows = [[200.0, 90.0, 31.0], [17.0, 250.0, 111.0]];
        let [[a, b, c], [d, e, f]] = rows;
        let across = [b * f - c * e, c * d - a * f, a * e - b * d];
        let case = Case {
            rows: rows.map(Vec::from).to_vec(),
            weights: vec![50.0, 80.0],
            mu: vec![0.0; 3],
            gradient: vec![3.0, -1.0, 2.0],
            lambda: 1e-12,
        };
        for kind in kinds().filter(|kind| !kind.intercept) {
            case.with(kind, 1, |hessian, context| {
                let d = hessian.solve(Some(DirectionMethod::Columns), &case.gradient, context);
                let expected = -dot(&case.gradient, &across) / case.lambda;
                let off = dot(&d, &across) / expected - 1.0;
                assert!(off.abs() < 1e-6, "{off}, {kind:?}");
            });
        }
    }

    #[test]
    fn what_nothing_depends_on_stays_where_it_is() {
        let case = Case {
            rows: vec![vec![1.0, 2.0], vec![3.0, -1.0]],
            weights: vec![0.0, 0.0],
            mu: vec![0.5, 0.5],
            gradient: vec![1.0, -2.0, 3.0],
            lambda: 0.5,
        };
        for kind in kinds().filter(|kind| kind.intercept) {
            case.with(kind, 1, |hessian, context| {
                for way in [DirectionMethod::Columns, DirectionMethod::Rows] {
                    let d = hessian.solve(Some(way), &case.gradient, context);
                    assert!((d[0] + 2.0).abs() < 1e-15 && (d[1] - 4.0).abs() < 1e-15);
                    assert_eq!(d[2], 0.0, "{way:?}");
                }
                // The systems alone do not move it, but a direction must, or the intercept would never move.
                assert_eq!(
                    hessian.solve(None, &case.gradient, context),
                    [-2.0, 4.0, -3.0]
                );
                for way in WAYS {
                    assert_eq!(hessian.solve(way, &[0.0; 3], context), [0.0; 3], "{way:?}");
                }
            });
        }
    }

    /// Rows in several blocks, which have matrices of their own where they are filled entry by entry.
    #[test]
    fn blocks_and_threads_change_nothing() {
        let (n, d) = (60_000, 9);
        let mut uniform = uniform();
        let mut rows = vec![vec![0.0; d]; n];
        for row in &mut rows {
            // Columns of which two are dense, as compressed rows, and the others are not.
            for j in [1, 5, (9.0 * uniform()) as usize] {
                row[j] = uniform() - 0.3;
            }
        }
        let weights = (0..n)
            .map(|_| (uniform() - 0.4).max(0.0) / n as f64)
            .collect();
        let case = Case {
            rows,
            weights,
            mu: (0..d).map(|_| uniform()).collect(),
            gradient: (0..=d).map(|_| uniform()).collect(),
            lambda: 1e-3,
        };
        for kind in kinds() {
            let gradient = case.gradient(kind.intercept);
            for way in [
                DirectionMethod::Columns,
                DirectionMethod::Sample,
                DirectionMethod::ConjugateGradients,
            ] {
                let found = std::cell::RefCell::new(Vec::new());
                for threads in [1, 2, 3] {
                    case.with(kind, threads, |hessian, context| {
                        assert!(hessian.is_by_columns());
                        let d = hessian.solve(Some(way), gradient, context);
                        found.borrow_mut().push(d);
                    });
                }
                // Two losses each.
                let found = found.into_inner();
                for d in &found[..2] {
                    let residual = case.residual(d, kind.intercept);
                    assert!(residual < 1e-11, "{residual} by {way:?}, {kind:?}");
                }
                assert_eq!(found[..2], found[2..4]);
                assert_eq!(found[..2], found[4..]);
            }
        }
    }

    /// Some columns have entries in only two rows each. Without these rows in the sample, conjugate gradients would
    /// need a step for each of these columns.
    #[test]
    fn a_sample_has_the_rows_of_rare_columns_and_yields_to_another() {
        let (n, d, rare) = (4000, 24, 12);
        let mut uniform = uniform();
        let mut rows = vec![vec![0.0; d]; n];
        for (i, row) in rows.iter_mut().enumerate() {
            row.iter_mut().skip(rare).for_each(|x| *x = uniform() - 0.5);
            if i % 150 == 77 && i / 150 < 2 * rare {
                row[i / 150 % rare] = 3.0 * uniform();
            }
        }
        let weights: Vector = (0..n).map(|_| uniform() / n as f64).collect();
        let others: Vector = (0..n).map(|i| if i < n / 2 { 1.0 } else { 1e-9 }).collect();
        let mean = |j: usize| rows.iter().map(|row| row[j]).sum::<f64>() / n as f64;
        let case = Case {
            mu: (0..d).map(mean).collect(),
            rows,
            weights,
            gradient: (0..=d).map(|_| uniform() - 0.5).collect(),
            lambda: 1e-9,
        };
        for kind in kinds() {
            let gradient = case.gradient(kind.intercept);
            case.with(kind, 1, |hessian, context| {
                let coarse = (gradient, sample::PRECISION);
                let (_, serves_on) = hessian.solve_by_sample(None, coarse, context);
                assert!(serves_on, "{kind:?}");
                let (d, _) = hessian.solve_by_sample(Some(&others), (gradient, TINY), context);
                let residual = case.residual(&d, kind.intercept);
                assert!(residual < 1e-9, "{residual}, {kind:?}");
            });
        }
    }

    #[test]
    fn a_direction_by_a_sample_does_nearly_as_much_until_samples_are_given_up() {
        let mut uniform = uniform();
        let (n_rows, n_cols) = (20_000, 600);
        // Each row begins at another place of the same numbers.
        let numbers: Vec<f32> = (0..4000).map(|_| uniform() as f32 - 0.5).collect();
        let row = |i: usize| &numbers[i * 7919 % (numbers.len() - n_cols)..][..n_cols];
        let entries = (0..n_rows).map(row).collect::<Vec<_>>().concat();
        let view = ArrayView2::from_shape((n_rows, n_cols), &entries).expect("n rows");
        let rows = Dense::new(view).expect("C order");
        let data = Data::new(rows, None).expect("valid");
        let targets = vec![1.0; n_rows];
        let lambda = Regularisation::Lambda(1e-5);
        let loss = Huber::with_param(1.0);
        let problem = Problem::new(data, &targets, loss, lambda, false).expect("a problem");
        let columns = super::columns(&rows);
        let design = Design {
            problem: &problem,
            mu: Vec::new(),
            columns: &columns,
        };
        let weights: Vector = (0..n_rows).map(|_| uniform() / 20_000.0).collect();
        let gradient: Vector = (0..n_cols).map(|_| uniform() - 0.5).collect();
        let mut no_monitor = NoMonitor;
        let mut context = RunContext::new(None, &mut no_monitor);
        let mut solve = |weights: &[f64], memory: &mut Memory| {
            let design = &design;
            let found =
                Hessian { design, weights }.direction(&gradient, 1e-9, memory, &mut context);
            found.expect("not interrupted")
        };
        let mut memory = Memory::new(&loss);
        let first = solve(&weights, &mut memory);
        let second = solve(&weights, &mut memory);
        assert!(memory.sample.as_ref().is_some_and(Sample::serves));
        // For few rows the system by rows is used, and the sample is dropped.
        let mut few = weights.clone();
        few[50..].fill(0.0);
        solve(&few, &mut memory);
        assert!(memory.sample.is_none());
        let exact = solve(&weights, &mut memory);
        for d in [first, second] {
            assert_ne!(d, exact);
            // H d = -gradient for the exact one, which lowers gradient.d + d.H d / 2 most.
            let mut h_d: Vector = d.iter().map(|d| problem.lambda() * d).collect();
            for (i, r) in weights.iter().enumerate() {
                Rows::axpy(&rows, i, r * rows.dot(i, &d), &mut h_d);
            }
            let lowered = dot(&gradient, &d) + 0.5 * dot(&d, &h_d);
            assert!(lowered < 0.95 * 0.5 * dot(&gradient, &exact), "{lowered}");
        }
    }

    /// Rows that have a shape but no numbers.
    struct Shape {
        rows: usize,
        columns: usize,
        stored: usize,
    }

    impl Rows for Shape {
        const ENTRY_WORK: f64 = 2.0;
        const IS_SPARSE: bool = true;

        fn n_rows(&self) -> usize {
            self.rows
        }
        fn n_cols(&self) -> usize {
            self.columns
        }
        fn n_stored(&self) -> usize {
            self.stored
        }
        fn dot(&self, _i: usize, _w: &[f64]) -> f64 {
            unreachable!()
        }
        fn axpy(&self, _i: usize, _scale: f64, _w: &mut [f64]) {
            unreachable!()
        }
        fn sq_norm(&self, _i: usize) -> f64 {
            unreachable!()
        }
        /// Entries at even distances, in other columns in each row.
        fn visit(&self, i: usize, mut f: impl FnMut(usize, f64)) {
            let per_row = self.stored / self.rows;
            for k in 0..per_row {
                f((i + k * self.columns / per_row) % self.columns, 1.0);
            }
        }
        fn prefetch(&self, _i: usize) {
            unreachable!()
        }
    }

    /// More rows, columns and entries than 31 or 32 bits can count; none of them is stored.
    #[test]
    fn sizes_beyond_32_bits_are_counted() {
        let shape = Shape {
            rows: (1 << 32) - 2,
            columns: 1000,
            stored: 1 << 44,
        };
        let columns = super::columns(&shape);
        let (way, work) = cheapest((&shape, false), &columns, shape.rows, true);
        assert_ne!(way, DirectionMethod::Rows);
        assert!(work.is_finite() && work > 1e12);
        let wide = Shape {
            rows: 1 << 31,
            columns: 1 << 40,
            stored: 1 << 36,
        };
        let (way, work) = cheapest((&wide, false), &Columns::default(), wide.rows, true);
        assert_eq!(way, DirectionMethod::ConjugateGradients);
        assert!(work.is_finite() && work > 1e12);
        // Rows per block, without overflow on the way.
        assert_eq!(crate::data::rows_per_block(1 << 31, 1 << 40), 256);
        assert_eq!(crate::data::rows_per_block(1 << 31, 1 << 31), 4096);
        assert_eq!(crate::data::rows_per_block(1 << 60, usize::MAX), 1);
    }

    #[test]
    fn the_cheapest_way_depends_on_the_shape() {
        let way = |rows: usize, columns: usize, per_row: usize, count: usize| {
            let shape = Shape {
                rows,
                columns,
                stored: rows * per_row,
            };
            let (way, work) = cheapest((&shape, false), &super::columns(&shape), count, true);
            assert!(work.is_finite() && work >= 0.0);
            way
        };
        // Dense.
        assert_eq!(way(10_000, 20, 20, 10_000), DirectionMethod::Columns);
        assert_eq!(way(60, 4000, 4000, 60), DirectionMethod::Rows);
        assert_eq!(way(60, 2000, 2000, 60), DirectionMethod::Rows);
        // Only rows of positive weight matter.
        assert_eq!(way(10_000, 2000, 2000, 10), DirectionMethod::Rows);
        assert_eq!(way(10_000, 2000, 2000, 10_000), DirectionMethod::Columns);
        assert_eq!(way(10_000, 1200, 1200, 10_000), DirectionMethod::Columns);
        assert_eq!(way(70_000, 2000, 2000, 70_000), DirectionMethod::Sample);
        let large = Shape {
            rows: 70_000,
            columns: 2000,
            stored: 70_000 * 2000,
        };
        let columns = super::columns(&large);
        let without = cheapest((&large, false), &columns, large.rows, false).0;
        assert_eq!(without, DirectionMethod::Columns);
        // Few rows of positive weight: the system by rows.
        assert_eq!(way(60_000, 2000, 2000, 100), DirectionMethod::Rows);
        assert!(sample::suits(&Log));
        assert!(!sample::suits(&Squared) && !sample::suits(&Hinge));
        // Sparse.
        assert_eq!(way(100_000, 1000, 10, 100_000), DirectionMethod::Columns);
        assert_eq!(
            way(100_000, 100_000, 10, 100_000),
            DirectionMethod::ConjugateGradients
        );
        assert_eq!(way(100_000, 100_000, 10, 50), DirectionMethod::Rows);
        assert_eq!(
            way(3500, 3500, 10, 3500),
            DirectionMethod::ConjugateGradients
        );
        // No system has more than the maximum number of unknowns.
        let most = MAX_UNKNOWNS;
        assert_eq!(way(50_000, most, 10, 50_000), DirectionMethod::Sample);
        assert_eq!(way(most - 1, most, 10, most - 1), DirectionMethod::Columns);
        assert_eq!(
            way(50_000, most + 1, 10, 50_000),
            DirectionMethod::ConjugateGradients
        );
        assert_ne!(
            way(most + 1, 10 * most, 10, most + 1),
            DirectionMethod::Rows
        );
    }
}
