//! Newton's method on the primal, or on that of a proximal point step of the dual, for problems with
//! few columns.
//!
//! **Smooth losses**: Newton's method on the primal. With `u = (w, b)` and `p_i = x_i.w + b`,
//!
//! ```text
//! F(u) = (1/W) sum_i c_i phi(p_i; y_i) + (lambda/2) |w|^2
//! ```
//!
//! has the gradient `lambda w - (1/W) sum_i c_i a_i x_i` with `a_i = -phi'(p_i)`, a feasible dual
//! point, and the Hessian `lambda I + (1/W) sum_i c_i h_i x_i x_i'` with `h_i = phi''(p_i)`.
//!
//! **Other losses**: the proximal point method on the dual. For a centre `k` and a weight `g`,
//! `max_a D(a) - (1/W) sum_i c_i (g/2) (a_i - k_i)^2` is the dual of the same `F` with
//!
//! ```text
//! psi_i(p) = max_a  -a p - phi*(-a; y_i) - (g/2) (a - k_i)^2
//! ```
//!
//! in the place of `phi`, whose slope is again `-a_i`, where `a_i` is the loss's own `step` from
//! `z = p - g k_i` with `q = g`. It is differentiable, and its slope piecewise smooth: with `kappa`
//! the curvature of `phi` at `a_i`, `h_i = kappa / (1 + g kappa)`, which is `1/g` at a kink and 0 on
//! the flat pieces. Newton's method solves it (semismooth, because `h` jumps); then the centre moves
//! to `a`, and `g` shrinks. For `g = 0` this is the smooth case.
//!
//! The step along Newton's direction goes to where the derivative of `F` changes sign, which the
//! convexity of `F` makes safe from anywhere. The system is scaled to a unit diagonal and solved by
//! Cholesky's method, which makes columns of any size alike.
//!
//! With an intercept, rows are centred at their mean `mu`: `p_i = (x_i - mu).w + b'`.

use crate::error::Error;
use crate::loss::Loss;
use crate::problem::{Point, Problem};
use crate::rows::Rows;
use crate::run::Watch;
use crate::solver::system::System;

/// Most columns for which the system is solved by Cholesky's method.
pub(crate) const MAX_COLUMNS: usize = 1500;

/// The proximal weight begins at a tenth of the mean `q`, within these limits, and never becomes less
/// than this fraction of that.
const FIRST_WEIGHT: (f64, f64) = (1e-3, 1e2);
const LAST_WEIGHT: f64 = 1e-7;

/// A step along less than this part of the direction is short: the direction was wrong, because rows
/// that are flat at its start are not at its end.
const SHORT: f64 = 0.25;

/// Steps without progress after which there is none to come.
const IDLE: u32 = 15;

/// Newton's method for one problem, somewhere on its way.
pub(crate) struct Newton<'p, 'a, R, L> {
    problem: &'p Problem<'a, R, L>,
    /// The mean row; empty without an intercept.
    mu: Vec<f64>,
    /// `w` and, if there is an intercept, `b'`.
    u: Vec<f64>,
    /// `p_i`.
    p: Vec<f64>,
    /// `a_i`.
    a: Vec<f64>,
    /// `k_i`; empty for `g = 0`.
    centre: Vec<f64>,
    /// The proximal weight.
    g: f64,
    least_g: f64,
    system: System,
    /// What a step along the direction adds to `p`.
    change: Vec<f64>,
    /// `|grad F|^2 / (2 lambda) = (lambda/2) |w - w(a)|^2`: what the present subproblem, not being
    /// solved exactly, adds to the gap of the pair of `w` and `a`. The gap at `w(a)` can be larger.
    excess: f64,
    /// After a step that a kink has cut short, how far ahead the Hessian looks, as a fraction of the
    /// last direction.
    look_ahead: f64,
    /// Steps in the present subproblem.
    steps: u32,
    /// The smallest excess in the present subproblem, and the steps since it was last halved.
    least_excess: f64,
    idle: u32,
    /// The excess below which the present subproblem counts as solved.
    goal: f64,
}

impl<'p, 'a, R: Rows, L: Loss> Newton<'p, 'a, R, L> {
    /// Begins where `point` is. `mu` is the mean row, `mean_q` the mean of `q_i`, and `target` the gap
    /// to be reached.
    pub(crate) fn new(
        problem: &'p Problem<'a, R, L>,
        mu: &[f64],
        mean_q: f64,
        point: &Point,
        target: f64,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Error> {
        let loss = problem.loss();
        let mut u = point.coef.clone();
        let mut mean = Vec::new();
        if problem.fit_intercept() {
            mean = mu.to_vec();
            u.push(point.intercept + mean.iter().zip(&u).map(|(m, w)| m * w).sum::<f64>());
        }
        let smooth = loss.smoothness() > 0.0;
        let g = if smooth {
            0.0
        } else {
            (0.1 * mean_q).clamp(FIRST_WEIGHT.0, FIRST_WEIGHT.1)
        };
        let mut newton = Self {
            problem,
            mu: mean,
            p: point
                .predictions
                .iter()
                .map(|p| p + point.intercept)
                .collect(),
            a: point.dual.clone(),
            centre: if smooth {
                Vec::new()
            } else {
                point.dual.clone()
            },
            g,
            least_g: g * LAST_WEIGHT,
            system: System::new(u.len()),
            change: vec![0.0; point.dual.len()],
            excess: f64::INFINITY,
            steps: 0,
            least_excess: f64::INFINITY,
            idle: 0,
            look_ahead: 0.0,
            goal: 0.1 * target,
            u,
        };
        newton.slide(0.0, watch)?;
        Ok(newton)
    }

    /// The problem.
    pub(crate) fn problem(&self) -> &'p Problem<'a, R, L> {
        self.problem
    }

    /// The dual point.
    pub(crate) fn dual(&self) -> &[f64] {
        &self.a
    }

    /// `w`.
    pub(crate) fn coef(&self) -> &[f64] {
        &self.u[..self.problem.rows().n_cols()]
    }

    /// The intercept of the rows as they are, not centred; 0 without one.
    pub(crate) fn intercept(&self) -> f64 {
        let (coef, rest) = self.u.split_at(self.problem.rows().n_cols());
        rest.first().map_or(0.0, |b| b - dot(&self.mu, coef))
    }

    /// Whether the present subproblem is solved, so that an evaluation is worth its cost.
    pub(crate) fn is_ready(&self) -> bool {
        self.excess <= self.goal
    }

    /// To be told what the present dual point proves, if that is not enough: asks for more.
    pub(crate) fn go_on(
        &mut self,
        gap: f64,
        target: f64,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        if self.g > 0.0 {
            self.centre.copy_from_slice(&self.a);
            let shrink = match self.steps {
                0..=6 => 0.2,
                7..=12 => 0.35,
                _ => 0.6,
            };
            self.steps = 0;
            self.g = (self.g * shrink).max(self.least_g);
            self.slide(0.0, watch)?;
            self.goal = self.goal.min(0.1 * target);
        } else {
            // Not a number if the gap is none.
            let factor = (0.1 * target / gap).clamp(1e-6, 0.1);
            self.goal *= if factor.is_nan() { 0.1 } else { factor };
        }
        self.excess = f64::INFINITY;
        self.least_excess = f64::INFINITY;
        self.idle = 0;
        self.look_ahead = 0.0;
        Ok(())
    }

    /// One step of Newton's method, unless the present subproblem turns out to be solved.
    pub(crate) fn step(&mut self, watch: &mut Watch<'_>) -> Result<(), Error> {
        let gradient = self.gradient(watch)?;
        self.excess = dot(&gradient, &gradient) / (2.0 * self.problem.lambda());
        if self.excess <= 0.5 * self.least_excess {
            (self.least_excess, self.idle) = (self.excess, 0);
        } else {
            self.idle += 1;
        }
        if self.idle > IDLE {
            // As good as numbers of this precision allow.
            self.excess = 0.0;
        }
        if self.is_ready() {
            return Ok(());
        }
        self.steps += 1;
        self.assemble(watch)?;
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
        self.system.solve(&mut direction);
        let decrement: f64 = -dot(&gradient, &direction);
        if decrement.is_nan() || decrement.is_infinite() || decrement <= 0.0 {
            // Likewise.
            self.excess = 0.0;
            return Ok(());
        }
        let n_cols = self.problem.rows().n_cols();
        let (coef, rest) = direction.split_at(n_cols);
        let shift = rest.first().map_or(0.0, |b| b - dot(&self.mu, coef));
        let rows = self.problem.rows();
        watch.change(&mut self.change, self.problem.block_size(), |i, _| {
            rows.dot(i, coef) + shift
        })?;
        let t = self.search(coef, watch)?;
        self.look_ahead = if t < SHORT { 2.0 * t } else { 0.0 };
        for (u, d) in self.u.iter_mut().zip(&direction) {
            *u += t * d;
        }
        self.slide(t, watch)
    }

    /// The dual value of row `i` for the prediction `p`, searched for from `near` on.
    #[inline]
    fn value(&self, i: usize, p: f64, near: f64) -> f64 {
        let y = self.problem.target(i);
        let loss = self.problem.loss();
        if self.problem.weight(i) == 0.0 {
            0.0
        } else if self.g > 0.0 {
            let k = self.centre[i];
            loss.step(p - self.g * k, self.g, near, y)
        } else {
            -loss.slope(p, y)
        }
    }

    /// Moves `p` by `t` times the change, and `a` with it.
    fn slide(&mut self, t: f64, watch: &mut Watch<'_>) -> Result<(), Error> {
        let (size, change) = (self.problem.block_size(), &self.change);
        watch.change(&mut self.p, size, |i, p| p + t * change[i])?;
        let mut a = std::mem::take(&mut self.a);
        watch.change(&mut a, size, |i, a| self.value(i, self.p[i], a))?;
        self.a = a;
        Ok(())
    }

    /// The gradient of `F`.
    fn gradient(&self, watch: &mut Watch<'_>) -> Result<Vec<f64>, Error> {
        let problem = self.problem;
        let n_cols = problem.rows().n_cols();
        let share = |i: usize| problem.weight(i) * self.a[i] / problem.total_weight();
        let mut sum = vec![0.0; n_cols];
        problem.add_rows(share, &mut sum, watch)?;
        let mut gradient: Vec<f64> = sum
            .iter()
            .zip(&self.u)
            .map(|(sum, w)| problem.lambda() * w - sum)
            .collect();
        if problem.fit_intercept() {
            let pulls = problem.by_blocks(watch, |block| block.map(share).sum::<f64>())?;
            let pull: f64 = pulls.iter().sum();
            for (g, m) in gradient.iter_mut().zip(&self.mu) {
                *g += pull * m;
            }
            gradient.push(-pull);
        }
        Ok(gradient)
    }

    /// `c_i h_i / W`.
    #[inline]
    fn curvature(&self, i: usize) -> f64 {
        let c = self.problem.weight(i) / self.problem.total_weight();
        if c == 0.0 {
            return 0.0;
        }
        let kappa = self
            .problem
            .loss()
            .curvature(self.a[i], self.problem.target(i));
        let d = self.look_ahead * self.change[i];
        if kappa.is_infinite() {
            c / self.g
        } else if kappa > 0.0 {
            c * kappa / (1.0 + self.g * kappa)
        } else if d != 0.0 {
            // Flat here, but perhaps not a bit further on: the mean over the stretch ahead.
            c * (self.a[i] - self.value(i, self.p[i] + d, self.a[i])) / d
        } else {
            0.0
        }
    }

    /// Sets up the system with the Hessian of `F`.
    fn assemble(&mut self, watch: &mut Watch<'_>) -> Result<(), Error> {
        let (problem, rows) = (self.problem, self.problem.rows());
        let mut system = std::mem::take(&mut self.system);
        system.clear();
        if outer_work(rows).1 {
            self.add_by_entries(&mut system, watch)?;
        } else {
            for block in problem.blocks() {
                for i in block {
                    let h = self.curvature(i);
                    if h > 0.0 {
                        let row = system.next_row();
                        rows.visit(i, |j, x| row[j] = x);
                        for (x, m) in row.iter_mut().zip(&self.mu) {
                            *x -= m;
                        }
                        if problem.fit_intercept() {
                            row[self.mu.len()] = 1.0;
                        }
                        system.end_row(h, watch);
                    }
                }
                watch.beat()?;
            }
            system.flush(watch);
        }
        system.add_diagonal(rows.n_cols(), problem.lambda());
        self.system = system;
        Ok(())
    }

    /// Adds the rows to the system entry by entry.
    fn add_by_entries(&self, system: &mut System, watch: &mut Watch<'_>) -> Result<(), Error> {
        let (problem, rows) = (self.problem, self.problem.rows());
        let n_blocks = rows.n_rows().div_ceil(problem.block_size());
        let work = rows.n_stored() as f64 * rows.n_stored() as f64 / rows.n_rows() as f64;
        let room = work / (system.n_cells() as f64 * ENTRIES_PER_CELL);
        let n_parts = (room as usize).clamp(1, MAX_PARTS).min(n_blocks);
        // Each part has sums of its own, of every `n_parts`th block.
        let part = || (System::new(system.size()), vec![0.0; rows.n_cols()], 0.0);
        let mut parts: Vec<_> = (0..n_parts).map(|_| part()).collect();
        for from in (0..n_blocks).step_by(n_parts) {
            watch.share(&mut parts, 1, |number, part| {
                let Some(block) = problem.blocks().nth(from + number) else {
                    return;
                };
                let (system, sum, total) = &mut part[0];
                let mut entries = Vec::new();
                for i in block {
                    let h = self.curvature(i);
                    if h > 0.0 {
                        entries.clear();
                        rows.visit(i, |j, x| entries.push((j, x)));
                        system.add_outer(&entries, h);
                        for &(j, x) in &entries {
                            sum[j] += h * x;
                        }
                        *total += h;
                    }
                }
            });
            watch.beat()?;
        }
        let (mut sum, mut total) = (vec![0.0; rows.n_cols()], 0.0);
        for (part, part_sum, part_total) in &parts {
            system.add(part);
            for (sum, part) in sum.iter_mut().zip(part_sum) {
                *sum += part;
            }
            total += part_total;
        }
        if problem.fit_intercept() {
            system.centre(&self.mu, &sum, total);
        }
        Ok(())
    }

    /// How far to go along `(coef, ..)`: about where the derivative of `F` changes its sign.
    fn search(&self, coef: &[f64], watch: &mut Watch<'_>) -> Result<f64, Error> {
        /// The derivative may keep this fraction of what it was at the start.
        const REST: f64 = 0.3;
        let problem = self.problem;
        let (along, length) = (dot(&self.u, coef), dot(coef, coef));
        let mut derivative = |t: f64| -> Result<f64, Error> {
            let sums = problem.by_blocks(watch, |block| {
                block
                    .map(|i| {
                        let (d, near) = (self.change[i], self.a[i]);
                        problem.weight(i) * self.value(i, self.p[i] + t * d, near) * d
                    })
                    .sum::<f64>()
            })?;
            let sum: f64 = sums.iter().sum();
            Ok(problem.lambda() * (along + t * length) - sum / problem.total_weight())
        };
        let room = REST * derivative(0.0)?.abs();
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut t = 1.0;
        for _ in 0..60 {
            let slope = derivative(t)?;
            if slope.abs() <= room {
                break;
            }
            if slope < 0.0 {
                low = t;
            } else {
                high = t;
            }
            t = if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * t
            };
        }
        Ok(t)
    }
}

/// Work of adding one row to the Hessian, in about nanoseconds, and whether that is best done entry
/// by entry.
pub(crate) fn outer_work<R: Rows>(rows: &R) -> (f64, bool) {
    let per_row = rows.n_stored() as f64 / rows.n_rows() as f64;
    let by_entries = 0.6 * per_row * per_row;
    let columns = rows.n_cols() as f64;
    let as_dense = 0.08 * columns * columns + columns;
    (by_entries.min(as_dense), by_entries < as_dense)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Matrices that are filled side by side, at most, and the products of entries that each must be
/// worth for every cell of it.
const MAX_PARTS: usize = 8;
const ENTRIES_PER_CELL: f64 = 8.0;
