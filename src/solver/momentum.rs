//! Momentum: steps along the recent changes made by SDCA's passes.
//!
//! Late in a run, it is settled which dual values are at an end of their range. The other ones
//! solve a system of equations, and passes work on it like the Gauss-Seidel method in random order:
//! slowly, if the rows are similar. If the passes serve as the preconditioner of conjugate
//! gradients, about the square root of their number is enough.
//!
//! Let `x` be the dual values when such a step was last due, whether or not it was taken, `p` the
//! change that had led to `x` from the time before, and `z` the change by passes since then. The
//! step is
//!
//! ```text
//! a = x + z    becomes    a + theta_1 z + theta_2 p
//! ```
//!
//! for the two numbers that maximise `D`, so that `a` ends at the best point in the plane through
//! `x` with the directions `z` and `p`. Values that leave their range are clipped to its end. If
//! this keeps `D` from rising, the step is undone: apart from rounding, `D` never falls (with an
//! intercept, this is the `D` of the moving centre, see [`super::sdca`]).
//!
//! (Conjugate gradients, too, remember only the last step. Their directions are conjugate to all
//! earlier ones by themselves if the preconditioner never changes; here both it and the set of rows
//! do.)

use std::ops::Range;

use crate::error::Error;
use crate::kernel::{Level, lanes};
use crate::loss::blocks::{LossBlocks, TargetBlock};
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::problem::Problem;
use crate::run::RunContext;
use crate::solver::frame::{Frame, Sum};
use crate::solver::sdca::Row;

/// Work of a step per column, and per row if a step of the loss takes [`USUAL_STEP`]; each
/// nanosecond beyond that counts [`LOSS_FACTOR`] times, because conjugates are computed here. In
/// approximate nanoseconds.
const COLUMN_WORK: f64 = 4.0;
const ROW_WORK: f64 = 8.0;
const USUAL_STEP: f64 = 20.0;
const LOSS_FACTOR: f64 = 2.0;

/// The passes between two steps do at least this many times the work of a step. On `debian_long`
/// and news20 (hinge, C = 1, to 1e-6), values from 2 to 4 take about the same time.
const SPACING: f64 = 2.0;

/// A rejected step makes the wait for the next one longer by this factor, up to the limit. An
/// accepted step resets the wait.
const WAIT_GROWTH: f64 = 1.5;
const MAX_WAIT: f64 = 2.0;

/// A step may clip this fraction of the rows that it changes. If it would clip more, it is halved,
/// and possibly again: where it would lead has little to do with what it was computed for. (A row
/// that passes have just brought to an end of its range counts however short the step is.)
const MAX_CLIPPED: f64 = 0.005;
const MAX_HALVINGS: usize = 5;

/// Limit of the multiples of `z` and `p`. A step beyond it means that `z` and `p` are little more
/// than rounding errors, or that most rows would be clipped.
const MAX_THETA: f64 = 100.0;

/// Two directions count as parallel if the squared sine of the angle between them is less than
/// this.
const PARALLEL: f64 = 1e-10;

/// A direction counts as a rounding error if its curvature is at most this multiple of the other
/// one's.
const NEGLIGIBLE: f64 = 1e-16;

/// The recent changes by passes and by steps.
pub(crate) struct Momentum {
    /// See [`Penalty::dual_curvature`](crate::penalty::Penalty::dual_curvature).
    curvature: f64,
    /// `x` and `p`.
    base: Vec<f64>,
    step: Vec<f64>,
    /// `w(x)` and `w(p)`, see [`Sum`].
    model: Combination,
    change: Combination,
    /// The change of `sum_i c_i phi*(-a_i)` from `x - p` to `x`.
    conjugates: f64,
    /// The work of passes since a step was last due, and the factor by which the next one waits
    /// longer than usual.
    work: f64,
    wait: f64,
}

/// A sum of rows with a column for the intercept.
struct Combination {
    v: Vec<f64>,
    /// 0 without an intercept.
    pull: f64,
}

/// The dual point of a run, and what is kept up to date with it.
pub(crate) struct Iterate<'s> {
    pub(crate) rows: &'s mut [Row],
    pub(crate) sum: &'s mut Sum,
    pub(crate) frame: &'s Frame,
    /// The centre of the proximal term on the intercept.
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

    /// What is subtracted from each column per unit of `pull`. Without an intercept `pull` is 0,
    /// and any numbers will do that are read anyway.
    fn mean(&self) -> &[f64] {
        if self.frame.s > 0.0 {
            &self.frame.mu
        } else {
            &self.sum.v
        }
    }

    /// The terms of the model and the intercept that reduce `D`, in units of the curvature of the
    /// penalty: `|w(a)|^2 / 2`, including the intercept's column, plus `centre` times the
    /// intercept's part of `w(a)`.
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
    /// Begins at a point, with no changes so far.
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

    /// To be called after a pass whose cost is `work`. Takes a step if one is due, allowed by
    /// `may_step`, and successful.
    pub(crate) fn end_pass(
        &mut self,
        problem: &Problem<'_>,
        work: f64,
        may_step: bool,
        mut at: Iterate<'_>,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        self.work += work;
        let columns = COLUMN_WORK * self.model.v.len() as f64;
        let of_row = ROW_WORK + LOSS_FACTOR * (problem.loss().step_work() - USUAL_STEP);
        let of_step = columns + of_row * self.base.len() as f64;
        if !may_step || self.work < self.wait * SPACING * of_step {
            return Ok(());
        }
        self.work = 0.0;
        self.wait = if self.try_step(problem, &mut at, context)? {
            1.0
        } else {
            (WAIT_GROWTH * self.wait).min(MAX_WAIT)
        };
        self.rebase(problem, &at);
        context.heartbeat()
    }

    /// Takes the best step along `z` and `p`. Returns whether it was accepted.
    fn try_step(
        &mut self,
        problem: &Problem<'_>,
        at: &mut Iterate<'_>,
        context: &mut RunContext<'_>,
    ) -> Result<bool, Error> {
        let Some(mut theta) = self.plane(problem, at).maximum() else {
            return Ok(false);
        };
        let mut halves = 0;
        while !self.stays_in_range(problem, at.rows, theta) {
            context.heartbeat()?;
            if halves == MAX_HALVINGS {
                return Ok(false);
            }
            halves += 1;
            theta = (0.5 * theta.0, 0.5 * theta.1);
        }
        context.heartbeat()?;
        let (before, pull) = (at.penalty(), at.sum.pull);
        let conjugates = self.take_step(problem, at, theta);
        context.heartbeat()?;
        let gain = self.curvature * (before - at.penalty()) - conjugates / problem.total_weight();
        // False for NaN, too.
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
        // The change of the conjugates along z, and the second derivatives of their sum.
        let (mut along_z, mut zz, mut zp, mut pp) = (0.0, 0.0, 0.0, 0.0);
        let (mut moving, mut curvatures) = (Moving::new(), [0.0; CHUNK]);
        for chunk in chunks(at.rows) {
            let change = |i: usize, a: f64| (self.base[i], a, self.step[i]);
            moving.gather(problem, at.rows, chunk, change);
            along_z += loss.conjugate_changes(moving.from(), moving.to(), moving.labels());
            loss.curvatures(moving.to(), moving.labels().y, &mut curvatures);
            for (k, &of_loss) in curvatures[..moving.len].iter().enumerate() {
                // There is no curvature at an end of the range, to which a value usually returns,
                // or where two pieces of the conjugate meet.
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
        // The parabola through the last two points has this slope at the end of z. The slope along
        // p, which ended where z began, has since changed by the mixed term.
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

    /// Whether all but a few of the rows that a step changes stay within their range.
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

    /// Takes a step. Afterwards `step` holds the dual values before it, and `change` what was added
    /// to the sum. Returns the change of the sum of the conjugates.
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

    /// Makes the present point `x`, and the change that led to it from the last `x` `p`.
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

/// The rows in chunks of [`CHUNK`].
fn chunks(rows: &[Row]) -> impl Iterator<Item = Range<usize>> + use<> {
    let n_rows = rows.len();
    let to = move |from: usize| from..n_rows.min(from + CHUNK);
    (0..n_rows).step_by(CHUNK).map(to)
}

/// The gathered rows whose dual values change or have changed. Most other rows are at rest.
struct Moving {
    len: usize,
    i: [u32; CHUNK],
    from: [f64; CHUNK],
    to: [f64; CHUNK],
    /// The change that led to `from`.
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

    /// Gathers the rows of a chunk that have changed. `change(i, a)` returns `from`, `to` and `p`
    /// of row `i`, whose dual value is `a`.
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

    /// Clamps `to` to the range of the loss. Returns the values before that.
    fn clamp(&mut self, loss: &dyn LossBlocks) -> [f64; CHUNK] {
        let wanted = self.to;
        loss.clamp(&mut self.to[..self.len], &self.y[..self.len]);
        wanted
    }
}

/// The gain is a difference of rounded numbers. Below this fraction of them there may be no gain at
/// all, although dual values may change by the square root of it.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// `W D` near a point as a quadratic function of two numbers.
struct Plane {
    slopes: (f64, f64),
    /// Those of `-W D`.
    curvatures: (f64, f64, f64),
}

impl Plane {
    /// Where the function is largest: in the plane, or along `z` or `p` alone if the other one is
    /// negligible or adds nothing new, or if the step in the plane is too long. `None` if this step
    /// is too long, too.
    fn maximum(&self) -> Option<(f64, f64)> {
        let (of_z, of_p) = self.slopes;
        let (zz, zp, pp) = self.curvatures;
        let det = zz * pp - zp * zp;
        let in_plane = ((of_z * pp - of_p * zp) / det, (of_p * zz - of_z * zp) / det);
        // False for NaN, too.
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
mod tests;
