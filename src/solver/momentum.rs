//! Momentum: steps along what SDCA's passes have changed.
//!
//! Late in a run, which dual values are at an end of their range is settled, and those of the other rows
//! solve a system of equations. Passes do that as the method of Gauss and Seidel does, in random order:
//! slowly, where rows are much alike. As the preconditioner of conjugate gradients they take about the
//! root of the number of passes.
//!
//! With `x` the dual values when such a step was last due, taken or not, `p` what had led to them from the time before,
//! and `z` what passes have changed since,
//!
//! ```text
//! a = x + z    becomes    a + theta_1 z + theta_2 p
//! ```
//!
//! for the two numbers that maximise `D`, so that `a` ends at the best point in the plane through `x` with the
//! directions `z` and `p`. What leaves its range is put back to the end of it. Where that keeps `D` from rising,
//! the step is taken back: but for rounding, `D` never falls (with an intercept, the one of the moving centre, see
//! [`super::sdca`]).
//!
//! (Conjugate gradients remember the last step only, too. Their other directions are conjugate by
//! themselves if the preconditioner is always the same; here it is not, nor are the rows.)

use std::ops::Range;

use crate::error::Error;
use crate::kernel::{Level, lanes};
use crate::loss::blocks::{LossBlocks, TargetBlock};
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::problem::Problem;
use crate::run::RunContext;
use crate::solver::frame::{Frame, Sum};
use crate::solver::sdca::Row;

/// Work of a step for each column, and for each row if the steps of its loss take [`USUAL_STEP`]; each nanosecond more
/// of these is several more here, where conjugates are computed. In about nanoseconds.
const COLUMN_WORK: f64 = 4.0;
const ROW_WORK: f64 = 8.0;
const USUAL_STEP: f64 = 20.0;
const LOSS_FACTOR: f64 = 2.0;

/// The work of the passes between two steps is at least so many times that of a step. On `debian_long` and news20
/// (hinge, C = 1, to 1e-6), 2 to 4 take the same time, more or less.
const SPACING: f64 = 2.0;

/// A step that is not taken makes the distance to the next longer, up to so many times; one that is taken makes it as
/// it was.
const WAIT_GROWTH: f64 = 1.5;
const MAX_WAIT: f64 = 2.0;

/// A step may put this part of the rows that it moves back to an end of their range. One that would put more is made
/// shorter by a half, and again: what it would lead to has little to do with what it was made for. (A row that passes
/// have just brought to an end counts however short the step is.)
const MAX_CLIPPED: f64 = 0.005;
const MAX_HALVINGS: usize = 5;

/// A step is no longer than so many times `z` and `p`: where it would be, these are little but rounding, or most rows would
/// be put back to an end of their range.
const MAX_THETA: f64 = 100.0;

/// Two directions are taken for one if the sine of the angle between them is less than the root of that.
const PARALLEL: f64 = 1e-10;

/// One of them is what rounding has left if its curvature is no more than so many times that of the other.
const NEGLIGIBLE: f64 = 1e-16;

/// What passes and steps have changed.
pub(crate) struct Momentum {
    /// See [`Penalty::dual_curvature`](crate::penalty::Penalty::dual_curvature).
    curvature: f64,
    /// `x` and `p`.
    base: Vec<f64>,
    step: Vec<f64>,
    /// `w(x)` and `w(p)`, see [`Sum`].
    model: Combination,
    change: Combination,
    /// By how much `sum_i c_i phi*(-a_i)` has changed from `x - p` to `x`.
    conjugates: f64,
    /// What passes have cost since a step was last due, and how much longer than usual the next one waits.
    work: f64,
    wait: f64,
}

/// A sum of rows with a column for the intercept.
struct Combination {
    v: Vec<f64>,
    /// 0 without an intercept.
    pull: f64,
}

/// The dual point of a run, and what is kept in step with it.
pub(crate) struct Iterate<'s> {
    pub(crate) rows: &'s mut [Row],
    pub(crate) sum: &'s mut Sum,
    pub(crate) frame: &'s Frame,
    /// Where the intercept is drawn to.
    pub(crate) centre: f64,
}

impl Iterate<'_> {
    /// [`Combination::pull`] of `w(a)`.
    fn pull(&self) -> f64 {
        if self.frame.s > 0.0 {
            self.sum.pull
        } else {
            0.0
        }
    }

    /// What is subtracted from each column for each `pull`. Without an intercept, which makes that 0, any numbers will
    /// do that are read anyway.
    fn mean(&self) -> &[f64] {
        if self.frame.s > 0.0 {
            &self.frame.mu
        } else {
            &self.sum.v
        }
    }

    /// What `D` loses by the model and the intercept, in units of the curvature of the former: `|w(a)|^2 / 2` with the
    /// intercept's column, and `centre` times its part in `w(a)`.
    fn penalty(&self) -> f64 {
        let pull = self.pull();
        let columns = [&self.sum.v, self.mean()];
        let [of_columns] = lanes::sum(Level::best(), columns, |[v, m]| {
            let w = v - pull * m;
            [w * w]
        });
        0.5 * (of_columns + self.frame.s * pull * pull) + self.centre * pull
    }
}

impl Momentum {
    /// Begins at a point, at rest.
    pub(crate) fn new(at: &Iterate<'_>, curvature: f64) -> Self {
        Self {
            curvature,
            base: at.rows.iter().map(|row| row.a).into_vec(),
            step: memory::zeros(at.rows.len()),
            model: Combination {
                v: at.sum.v.duplicate(),
                pull: at.pull(),
            },
            change: Combination {
                v: memory::zeros(at.sum.v.len()),
                pull: 0.0,
            },
            conjugates: 0.0,
            work: 0.0,
            wait: 1.0,
        }
    }

    /// What is due after a pass that has cost so much: perhaps a step, if it may be taken now.
    pub(crate) fn end_pass(
        &mut self,
        problem: &Problem<'_>,
        work: f64,
        may_step: bool,
        mut at: Iterate<'_>,
        watch: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        self.work += work;
        let columns = COLUMN_WORK * self.model.v.len() as f64;
        let of_row = ROW_WORK + LOSS_FACTOR * (problem.loss().step_work() - USUAL_STEP);
        let of_step = columns + of_row * self.base.len() as f64;
        if !may_step || self.work < self.wait * SPACING * of_step {
            return Ok(());
        }
        self.work = 0.0;
        self.wait = if self.try_step(problem, &mut at, watch)? {
            1.0
        } else {
            (WAIT_GROWTH * self.wait).min(MAX_WAIT)
        };
        self.rebase(problem, &at);
        watch.heartbeat()
    }

    /// Takes the best step along `z` and `p`, unless that leads nowhere.
    fn try_step(
        &mut self,
        problem: &Problem<'_>,
        at: &mut Iterate<'_>,
        watch: &mut RunContext<'_>,
    ) -> Result<bool, Error> {
        let Some(mut theta) = self.plane(problem, at).maximum() else {
            return Ok(false);
        };
        let mut halves = 0;
        while !self.stays_in_range(problem, at.rows, theta) {
            watch.heartbeat()?;
            if halves == MAX_HALVINGS {
                return Ok(false);
            }
            halves += 1;
            theta = (0.5 * theta.0, 0.5 * theta.1);
        }
        watch.heartbeat()?;
        let (before, pull) = (at.penalty(), at.sum.pull);
        let conjugates = self.take_step(problem, at, theta);
        watch.heartbeat()?;
        let gain = self.curvature * (before - at.penalty()) - conjugates / problem.total_weight();
        // Not if it is NaN, either.
        let rises = gain > ROUNDING * self.curvature * before;
        if !rises {
            for (v, change) in at.sum.v.iter_mut().zip(&self.change.v) {
                *v -= change;
            }
            at.sum.pull = pull;
            at.sum.update_t(at.frame);
            for (row, &before) in at.rows.iter_mut().zip(&self.step) {
                row.a = before;
            }
        }
        Ok(rises)
    }

    /// `D` in the plane of the directions `z` and `p`.
    fn plane(&self, problem: &Problem<'_>, at: &Iterate<'_>) -> Plane {
        let loss = problem.loss();
        // By how much the conjugates have changed along z, and the curvatures of their sum.
        let (mut along_z, mut zz, mut zp, mut pp) = (0.0, 0.0, 0.0, 0.0);
        let (mut moving, mut curvatures) = (Moving::new(), [0.0; CHUNK]);
        for chunk in chunks(at.rows) {
            let change = |i: usize, a: f64| (self.base[i], a, self.step[i]);
            moving.gather(problem, at.rows, chunk, change);
            along_z += loss.conjugate_changes(moving.from(), moving.to(), moving.labels());
            loss.curvatures(moving.to(), moving.labels().y, &mut curvatures);
            for (k, &of_loss) in curvatures[..moving.len].iter().enumerate() {
                // None at an end of its range, to which a value mostly goes back, or where two pieces of the
                // conjugate meet.
                if of_loss > 0.0 {
                    let (z, p) = (moving.to[k] - moving.from[k], moving.p[k]);
                    let curvature = moving.c[k] / of_loss;
                    zz += curvature * z * z;
                    zp += curvature * z * p;
                    pp += curvature * p * p;
                }
            }
        }
        let pull = at.pull();
        let (z_pull, p_pull) = (pull - self.model.pull, self.change.pull);
        let columns = [&at.sum.v, &self.model.v, &self.change.v, at.mean()];
        let [of_z, of_p, of_zz, of_zp, of_pp] =
            lanes::sum(Level::best(), columns, |[v, x, p, m]| {
                let (w, z, p) = (v - pull * m, v - x - z_pull * m, p - p_pull * m);
                [w * z, w * p, z * z, z * p, p * p]
            });
        // The parabola through the last two points has this slope at the end of z; and p, which ended where z
        // began, adds what the slope has changed along z.
        let (along_z, along_p) = (along_z + 0.5 * zz, self.conjugates + 0.5 * pp + zp);
        let (s, force) = (at.frame.s, at.centre + at.frame.s * pull);
        let share = self.curvature * problem.total_weight();
        Plane {
            slopes: (
                -along_z - share * (of_z + force * z_pull),
                -along_p - share * (of_p + force * p_pull),
            ),
            curvatures: (
                zz + share * (of_zz + s * z_pull * z_pull),
                zp + share * (of_zp + s * z_pull * p_pull),
                pp + share * (of_pp + s * p_pull * p_pull),
            ),
        }
    }

    /// Whether a step moves all rows but a few within their range.
    fn stays_in_range(&self, problem: &Problem<'_>, rows: &[Row], theta: (f64, f64)) -> bool {
        let (mut moved, mut leave) = (0_usize, 0_usize);
        let mut moving = Moving::new();
        for chunk in chunks(rows) {
            moving.gather(problem, rows, chunk, |i, a| {
                (a, a + self.increment(i, a, theta), 0.0)
            });
            let wanted = moving.clamp(problem.loss());
            let pairs = wanted.iter().zip(moving.to());
            moved += moving.len;
            leave += pairs.filter(|(wanted, to)| wanted != to).count();
        }
        moved > 0 && leave as f64 <= MAX_CLIPPED * moved as f64
    }

    /// Takes a step. Then `step` holds the dual values before it, and `change` what it has added to the sum. Returns
    /// by how much it changes the sum of the conjugates.
    fn take_step(&mut self, problem: &Problem<'_>, at: &mut Iterate<'_>, theta: (f64, f64)) -> f64 {
        let columns = at.sum.v.iter_mut().zip(&mut self.change.v);
        for ((v, p), x) in columns.zip(&self.model.v) {
            *p = theta.0 * (*v - x) + theta.1 * *p;
            *v += *p;
        }
        let (mut conjugates, mut pull) = (0.0, 0.0);
        let mut moving = Moving::new();
        for chunk in chunks(at.rows) {
            moving.gather(problem, at.rows, chunk.clone(), |i, a| {
                (a, a + self.increment(i, a, theta), 0.0)
            });
            let wanted = moving.clamp(problem.loss());
            let labels = moving.labels();
            conjugates += problem
                .loss()
                .conjugate_changes(moving.from(), moving.to(), labels);
            for (row, p) in at.rows[chunk.clone()].iter().zip(&mut self.step[chunk]) {
                *p = row.a;
            }
            for (k, (&to, &wanted)) in moving.to().iter().zip(&wanted).enumerate() {
                let i = moving.i[k] as usize;
                let rate = problem.rate(i);
                pull += rate * (to - moving.from[k]);
                at.rows[i].a = to;
                if to != wanted {
                    let share = rate * (to - wanted);
                    problem.rows().axpy(i, share, &mut self.change.v);
                    problem.rows().axpy(i, share, &mut at.sum.v);
                }
            }
        }
        at.sum.pull += pull;
        at.sum.update_t(at.frame);
        conjugates
    }

    /// What a step adds to the dual value `a` of row `i`.
    #[inline]
    fn increment(&self, i: usize, a: f64, theta: (f64, f64)) -> f64 {
        theta.0 * (a - self.base[i]) + theta.1 * self.step[i]
    }

    /// Makes the present point `x`, and what has led to it from the last one `p`.
    fn rebase(&mut self, problem: &Problem<'_>, at: &Iterate<'_>) {
        self.conjugates = 0.0;
        let mut moving = Moving::new();
        for chunk in chunks(at.rows) {
            moving.gather(problem, at.rows, chunk, |i, a| (self.base[i], a, 0.0));
            let labels = moving.labels();
            let loss = problem.loss();
            self.conjugates += loss.conjugate_changes(moving.from(), moving.to(), labels);
        }
        for (row, (x, p)) in at.rows.iter().zip(self.base.iter_mut().zip(&mut self.step)) {
            *p = row.a - *x;
            *x = row.a;
        }
        let before = self.model.v.iter_mut().zip(&mut self.change.v);
        for (v, (x, p)) in at.sum.v.iter().zip(before) {
            *p = v - *x;
            *x = *v;
        }
        self.change.pull = at.pull() - self.model.pull;
        self.model.pull = at.pull();
    }
}

/// Rows that are gathered before their losses are computed.
const CHUNK: usize = 256;

/// The rows in chunks of that size.
fn chunks(rows: &[Row]) -> impl Iterator<Item = Range<usize>> + use<> {
    let n_rows = rows.len();
    let to = move |from: usize| from..n_rows.min(from + CHUNK);
    (0..n_rows).step_by(CHUNK).map(to)
}

/// Rows of which the dual values change, or have changed, gathered: most others are at rest.
struct Moving {
    len: usize,
    i: [u32; CHUNK],
    from: [f64; CHUNK],
    to: [f64; CHUNK],
    /// What has led to `from`.
    p: [f64; CHUNK],
    y: [f64; CHUNK],
    c: [f64; CHUNK],
}

impl Moving {
    fn new() -> Self {
        let numbers = [0.0; CHUNK];
        Self {
            len: 0,
            i: [0; CHUNK],
            from: numbers,
            to: numbers,
            p: numbers,
            y: numbers,
            c: numbers,
        }
    }

    /// Gathers the rows of a chunk that `change(i, a)`, which is `from`, `to` and `p`, moves.
    #[inline]
    fn gather(
        &mut self,
        problem: &Problem<'_>,
        rows: &[Row],
        chunk: Range<usize>,
        change: impl Fn(usize, f64) -> (f64, f64, f64),
    ) {
        self.len = 0;
        for i in chunk {
            let row = &rows[i];
            let (from, to, p) = change(i, row.a);
            if from != to || p != 0.0 {
                let k = self.len;
                self.i[k] = i as u32;
                (self.from[k], self.to[k], self.p[k]) = (from, to, p);
                (self.y[k], self.c[k]) = (row.y, problem.weight(i));
                self.len += 1;
            }
        }
    }

    fn from(&self) -> &[f64] {
        &self.from[..self.len]
    }

    fn to(&self) -> &[f64] {
        &self.to[..self.len]
    }

    fn labels(&self) -> TargetBlock<'_> {
        TargetBlock {
            y: &self.y[..self.len],
            c: Some(&self.c[..self.len]),
        }
    }

    /// Brings `to` into the range of the loss; returns what it was.
    fn clamp(&mut self, loss: &dyn LossBlocks) -> [f64; CHUNK] {
        let wanted = self.to;
        loss.clamp(&mut self.to[..self.len], &self.y[..self.len]);
        wanted
    }
}

/// What is gained is the difference of numbers that are rounded: a smaller part of them may be none at all, while it
/// moves dual values by the root of that.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// `W D` near a point as a function of two numbers, a parabola.
struct Plane {
    slopes: (f64, f64),
    /// Those of `-W D`.
    curvatures: (f64, f64, f64),
}

impl Plane {
    /// Where it is highest: in the plane, or along `z` or `p` alone where the other one is all but nothing, or nothing
    /// new. Nowhere else if that is too far away.
    fn maximum(&self) -> Option<(f64, f64)> {
        let (of_z, of_p) = self.slopes;
        let (zz, zp, pp) = self.curvatures;
        let det = zz * pp - zp * zp;
        let in_plane = ((of_z * pp - of_p * zp) / det, (of_p * zz - of_z * zp) / det);
        // Not if it is NaN, either.
        let is_near = |theta: &(f64, f64)| theta.0.abs() <= MAX_THETA && theta.1.abs() <= MAX_THETA;
        if zz <= NEGLIGIBLE * pp {
            Some((0.0, of_p / pp)).filter(is_near)
        } else if pp > NEGLIGIBLE * zz && det > PARALLEL * zz * pp && is_near(&in_plane) {
            Some(in_plane)
        } else {
            Some((of_z / zz, 0.0)).filter(is_near)
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::ArrayView2;
    use proptest::prelude::*;

    use super::*;
    use crate::data::Data;
    use crate::loss::Loss;
    use crate::loss::{Absolute, EpsilonInsensitive, Hinge, Log, Squared, SquaredHinge};
    use crate::order::Generator;
    use crate::problem::Regularisation;
    use crate::rows::Dense;
    use crate::run::NoMonitor;

    #[derive(Debug, Clone)]
    struct Case {
        n: usize,
        x: Vec<f64>,
        y: Vec<f64>,
        weights: Vec<f64>,
        c: f64,
        with_intercept: bool,
        /// Where the intercept is drawn to.
        centre: f64,
        /// The rows that the passes visit.
        passes: Vec<Vec<usize>>,
    }

    fn cases() -> impl Strategy<Value = Case> {
        (2usize..12, 1usize..12, any::<bool>()).prop_flat_map(|(n, d, with_intercept)| {
            let numbers = |n, range: std::ops::Range<f64>| prop::collection::vec(range, n);
            let signs = prop::collection::vec(prop::sample::select(vec![-1.0, 1.0]), n);
            let pass = prop::collection::vec(0..n, 1..2 * n);
            (
                numbers(n * d, -1.0..2.0),
                signs,
                numbers(n, 0.0..3.0),
                0.01..10.0,
                -1.0..1.0,
                prop::collection::vec(pass, 8),
            )
                .prop_map(move |(x, mut y, mut weights, c, centre, passes)| {
                    // Both classes, and some weight.
                    (y[0], y[1]) = (-1.0, 1.0);
                    (weights[0], weights[1]) = (1.0, 1.0);
                    let centre = if with_intercept { centre } else { 0.0 };
                    Case {
                        n,
                        x,
                        y,
                        weights,
                        c,
                        with_intercept,
                        centre,
                        passes,
                    }
                })
        })
    }

    /// The state of a run, as far as momentum has to do with it.
    struct Run<'p, 'a> {
        problem: &'p Problem<'a>,
        rows: Vec<Row>,
        sum: Sum,
        frame: Frame,
        centre: f64,
    }

    impl<'p, 'a> Run<'p, 'a> {
        fn new(problem: &'p Problem<'a>, centre: f64) -> Self {
            let mut no_monitor = NoMonitor;
            let mut rows = Vec::new();
            let mut visit = |i: usize, m: f64, spread: f64| {
                let (q, y) = (problem.q(i, spread), problem.target(i));
                rows.push(Row { a: 0.0, q, y, m });
            };
            let mut watch = RunContext::new(None, &mut no_monitor);
            let frame = Frame::new(problem, &mut watch, &mut visit).expect("finite");
            for (i, row) in rows.iter_mut().enumerate() {
                row.q += problem.q(i, frame.s);
            }
            let sum = Sum::new(problem.rows().n_cols());
            Self {
                problem,
                rows,
                sum,
                frame,
                centre,
            }
        }

        /// Momentum that begins here.
        fn momentum(&mut self) -> Momentum {
            let curvature = self.problem.lambda();
            Momentum::new(&self.iterate(), curvature)
        }

        fn iterate(&mut self) -> Iterate<'_> {
            Iterate {
                rows: &mut self.rows,
                sum: &mut self.sum,
                frame: &self.frame,
                centre: self.centre,
            }
        }

        fn pass(&mut self, visits: impl IntoIterator<Item = usize>) {
            for i in visits {
                let Row { a, q, y, m } = self.rows[i];
                if q > 0.0 {
                    let z = self.centre + self.dot(&self.sum, i) - q * a;
                    let next = self.problem.loss().step(z, q, a, y);
                    let share = self.problem.rate(i) * (next - a);
                    self.rows[i].a = next;
                    self.problem.rows().axpy(i, share, &mut self.sum.v);
                    self.sum.axpy_offsets(&self.frame, m, share);
                }
            }
        }

        /// The product of the sum with row `i`.
        fn dot(&self, sum: &Sum, i: usize) -> f64 {
            let mut product = [0.0];
            self.problem.rows().products(i, &sum.v, &mut product);
            sum.centred(product[0], self.rows[i].m)
        }

        fn dual(&self) -> Vec<f64> {
            self.rows.iter().map(|row| row.a).collect()
        }

        /// The sum of the rows by its definition: its columns, and that of the intercept.
        fn sum_of(&self, dual: &[f64]) -> (Vec<f64>, f64) {
            let mut sum = vec![0.0; self.frame.mu.len()];
            let mut pull = 0.0;
            for (i, a) in dual.iter().enumerate() {
                let share = self.problem.rate(i) * a;
                self.problem.rows().axpy(i, share, &mut sum);
                pull += share;
            }
            (sum, pull)
        }

        /// `D` by its definition, with the intercept drawn to the centre.
        fn value(&self, dual: &[f64]) -> f64 {
            let problem = self.problem;
            let conjugate = |(i, &a): (usize, &f64)| {
                problem.weight(i) * problem.loss().conjugate(a, problem.target(i))
            };
            let conjugates: f64 = dual.iter().enumerate().map(conjugate).sum();
            let (sum, pull) = self.sum_of(dual);
            let model = sum.iter().zip(&self.frame.mu).map(|(v, m)| v - pull * m);
            let squares = model.map(|w| w * w).sum::<f64>() + self.frame.s * pull * pull;
            let lost = problem.lambda() * (0.5 * squares + self.centre * pull);
            -conjugates / problem.total_weight() - lost
        }

        fn check_sum(&self) {
            let (sum, pull) = self.sum_of(&self.dual());
            let size = 1.0 + sum.iter().map(|v| v.abs()).sum::<f64>() + pull.abs();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * size;
            assert!(self.sum.v.iter().zip(&sum).all(|(&a, &b)| close(a, b)));
            assert!(close(self.sum.pull, pull));
            // What the sum keeps beside it: `dot` needs all of it.
            let mut again = self.sum.clone();
            again.update_t(&self.frame);
            let dot = |sum: &Sum| self.dot(sum, 0);
            assert!(close(dot(&self.sum), dot(&again)));
        }
    }

    /// What is due after a pass.
    fn step(momentum: &mut Momentum, run: &mut Run<'_, '_>, work: f64, may_step: bool) {
        let mut no_monitor = NoMonitor;
        let mut watch = RunContext::new(None, &mut no_monitor);
        let done = momentum.end_pass(run.problem, work, may_step, run.iterate(), &mut watch);
        done.expect("nobody interrupts");
    }

    impl Case {
        fn with<L: Loss>(&self, loss: L, check: impl Fn(Run<'_, '_>)) {
            let shape = (self.n, self.x.len() / self.n);
            let view = ArrayView2::from_shape(shape, &self.x).expect("n rows");
            let rows = Dense::new(view).expect("C order");
            let c = Regularisation::C(self.c);
            let weights = Some(self.weights.as_slice());
            let data = Data::new(rows, weights).expect("valid");
            let problem = Problem::new(data, &self.y, loss, c, self.with_intercept);
            check(Run::new(&problem.expect("valid"), self.centre));
        }

        /// `D` does not fall, dual values stay in their range, and the sum goes with them.
        fn check_steps<L: Loss>(&self, loss: L) {
            self.with(loss, |mut run| {
                let mut momentum = run.momentum();
                for pass in &self.passes {
                    run.pass(pass.iter().copied());
                    let before = run.value(&run.dual());
                    step(&mut momentum, &mut run, f64::INFINITY, true);
                    let after = run.value(&run.dual());
                    let rounding = 1e-12 * (1.0 + before.abs());
                    assert!(after >= before - rounding, "{after} after {before}");
                    for row in &run.rows {
                        let (low, high) = loss.dual_range(row.y);
                        assert!((low..=high).contains(&row.a));
                    }
                    run.check_sum();
                }
            });
        }
    }

    proptest! {
        #[test]
        fn steps_raise_d_and_keep_the_sum(case in cases()) {
            case.check_steps(Hinge);
            case.check_steps(SquaredHinge);
            case.check_steps(Absolute);
            case.check_steps(EpsilonInsensitive::with_param(0.1));
            case.check_steps(Log);
            case.check_steps(Squared);
        }

        #[test]
        fn the_plane_is_that_of_d(
            case in cases(),
            others in prop::collection::vec((-2.0..3.0, -2.0..3.0), 5),
        ) {
            // Its dual is a parabola, with no ends.
            case.with(Squared, |mut run| {
                let mut momentum = run.momentum();
                let (mut x, mut p) = (run.dual(), vec![0.0; case.n]);
                for pass in &case.passes {
                    run.pass(pass.iter().copied());
                    let a = run.dual();
                    let here = run.value(&a);
                    let plane = momentum.plane(run.problem, &run.iterate());
                    let (zz, zp, pp) = plane.curvatures;
                    for &(of_z, of_p) in &others {
                        let directions = a.iter().zip(&x).zip(&p);
                        let other: Vec<f64> = directions
                            .map(|((a, x), p)| a + of_z * (a - x) + of_p * p)
                            .collect();
                        let linear = of_z * plane.slopes.0 + of_p * plane.slopes.1;
                        let square = of_z * of_z * zz + 2.0 * of_z * of_p * zp + of_p * of_p * pp;
                        let expected: f64 = (linear - 0.5 * square) / run.problem.total_weight();
                        let found = run.value(&other) - here;
                        let size = 1.0 + here.abs() + found.abs();
                        assert!((found - expected).abs() <= 1e-10 * size, "{found}, not {expected}");
                    }
                    step(&mut momentum, &mut run, f64::INFINITY, true);
                    p = run.dual().iter().zip(&x).map(|(a, x)| a - x).collect();
                    x = run.dual();
                }
            });
        }
    }

    #[test]
    fn the_highest_point_is_looked_for_where_there_is_something_to_be_found() {
        let highest = |slopes, curvatures| Plane { slopes, curvatures }.maximum();
        assert_eq!(highest((1.0, 4.0), (1.0, 0.0, 2.0)), Some((1.0, 2.0)));
        // One direction is nothing, or they are the same.
        assert_eq!(highest((1.0, 0.0), (2.0, 0.0, 0.0)), Some((0.5, 0.0)));
        assert_eq!(highest((0.0, 1.0), (0.0, 0.0, 2.0)), Some((0.0, 0.5)));
        assert_eq!(highest((1.0, 1.0), (2.0, 2.0, 2.0)), Some((0.5, 0.0)));
        // Both are nothing, or it is far away.
        assert_eq!(highest((0.0, 0.0), (0.0, 0.0, 0.0)), None);
        assert_eq!(highest((1.0, 0.0), (1e-3, 0.0, 1.0)), None);
    }

    #[test]
    fn steps_that_are_due_come_after_enough_work() {
        let case = Case {
            n: 2,
            x: vec![1.0, 2.0],
            y: vec![1.0, -1.0],
            weights: vec![1.0; 2],
            c: 1.0,
            with_intercept: false,
            centre: 0.0,
            passes: Vec::new(),
        };
        case.with(Squared, |mut run| {
            let mut momentum = run.momentum();
            let of_step = COLUMN_WORK + 2.0 * ROW_WORK;
            run.pass(0..2);
            let after_pass = run.dual();
            step(&mut momentum, &mut run, 0.9 * SPACING * of_step, true);
            assert_eq!(run.dual(), after_pass);
            step(&mut momentum, &mut run, 0.1 * SPACING * of_step, false);
            assert_eq!(run.dual(), after_pass);
            step(&mut momentum, &mut run, 0.1 * SPACING * of_step, true);
            assert_ne!(run.dual(), after_pass);
        });
    }

    /// A system of equations with rows much alike: passes alone take several times as many.
    #[test]
    fn passes_with_momentum_converge_faster() {
        let (n, d) = (60, 80);
        let mut generator = Generator::new(3);
        let mut number = || generator.below(1 << 20) as f64 / f64::from(1 << 19) - 1.0;
        let common: Vec<f64> = (0..d).map(|_| number()).collect();
        let x: Vec<f64> = (0..n * d).map(|k| common[k % d] + 0.2 * number()).collect();
        let y: Vec<f64> = (0..n)
            .map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        for with_intercept in [false, true] {
            let case = Case {
                n,
                x: x.clone(),
                y: y.clone(),
                weights: vec![1.0; n],
                c: 100.0,
                with_intercept,
                centre: 0.1 * f64::from(u8::from(with_intercept)),
                passes: Vec::new(),
            };
            let passes = |has_momentum: bool, until: f64| {
                let count = std::cell::Cell::new((0, 0.0));
                case.with(Squared, |mut run| {
                    let mut momentum = has_momentum.then(|| run.momentum());
                    for pass in 1..=20_000 {
                        run.pass(0..n);
                        if let Some(momentum) = &mut momentum {
                            step(momentum, &mut run, f64::INFINITY, true);
                        }
                        let value = run.value(&run.dual());
                        count.set((pass, value));
                        if value >= until {
                            break;
                        }
                    }
                });
                count.get()
            };
            let (_, best) = passes(false, f64::INFINITY);
            let until = best - 1e-9 * best.abs();
            let (with, without) = (passes(true, until).0, passes(false, until).0);
            assert!(2 * with < without, "{with} passes instead of {without}");
        }
    }
}
