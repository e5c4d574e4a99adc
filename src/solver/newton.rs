//! Newton's method on the primal problem, or on that of a proximal point step of the dual.
//!
//! **Losses without kinks**: Newton's method on the primal. With `u = (w, b)` and `p_i = x_i.w + b`,
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
//! in place of `phi`. Its slope is again `-a_i`, where `a_i` is the result of the loss's own `step`
//! for `z = p - g k_i` and `q = g`. It is differentiable, and its slope is piecewise smooth: with
//! `kappa` the curvature of `phi` at `a_i`, `h_i = kappa / (1 + g kappa)`, which is `1/g` at a kink
//! and 0 on the flat pieces. Newton's method solves this problem (it is semismooth, because `h`
//! jumps). Then the centre moves to `a`, and `g` shrinks. `g = 0` is the smooth case.
//!
//! The step along Newton's direction, see [`super::hessian`], ends where the derivative of `F`
//! changes sign. Because `F` is convex, this is safe from any starting point.
//!
//! With an intercept, rows are centred at their mean `mu`: `p_i = (x_i - mu).w + b'`.

use std::ops::Range;

use crate::error::Error;
use crate::loss::blocks::{self, LinePoint, Proximal};
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::problem::{Point, Problem};
use crate::run::RunContext;
use crate::solver::hessian::{Columns, Design, Hessian, Memory, dot};

/// The proximal weight begins at a tenth of the mean `q`, within the limits `FIRST_WEIGHT`, in
/// units of [`Problem::prediction_scale`], and never becomes less than the fraction `LAST_WEIGHT`
/// of its first value.
const FIRST_WEIGHT: (f64, f64) = (1e-3, 1e2);
const LAST_WEIGHT: f64 = 1e-7;

/// A step of less than this fraction of the direction is short. The direction was wrong, because
/// rows that are flat at its start are not flat at its end.
const SHORT: f64 = 0.25;

/// After this many short steps, proximal steps are tried on a smooth loss, too: it is flat or
/// straight for most rows, as the hinge losses are if the classes can be separated.
const MANY_SHORT: u32 = 5;

/// Steps without progress after which no more progress is expected.
const IDLE: u32 = 15;

/// Limits of the steps without progress, and of the steps since the last evaluation, for directions
/// computed from a sample of the rows. After that they are no longer accurate enough. (mnist takes
/// up to 12 steps with them.)
const SAMPLE_LIMITS: (u32, u32) = (3, 20);

/// Limits of the residual of conjugate gradients, relative to the gradient. For quadratic losses,
/// where the residual becomes the next gradient, the lower limit is `LEAST_PRECISION`.
const PRECISION: (f64, f64) = (1e-2, 1e-1);
const LEAST_PRECISION: f64 = 1e-14;

/// The state of Newton's method on one problem.
pub(crate) struct Newton<'p, 'a> {
    design: Design<'p, 'a>,
    /// `w` and, if there is an intercept, `b'`; and their values at the start.
    u: Vec<f64>,
    first_u: Vec<f64>,
    /// `p_i`.
    p: Vec<f64>,
    /// `a_i`.
    a: Vec<f64>,
    /// `k_i`. For `g = 0`, the dual point at the start, or empty if it cannot be needed.
    centre: Vec<f64>,
    /// The proximal weight, and its first value.
    g: f64,
    first_g: f64,
    memory: Memory,
    /// What a step along the direction adds to `p`; while the direction is being computed,
    /// `c_i h_i / W`.
    change: Vec<f64>,
    /// The dual values at a trial point of the line search. For `g = 0` they do not depend on
    /// earlier dual values, so they are written to `a`, and this is empty.
    trial: Vec<f64>,
    /// `|grad F|^2 / (2 lambda) = (lambda/2) |w - w(a)|^2`: what the inexact solution of the
    /// present subproblem adds to the gap of the pair of `w` and `a`. The gap at `w(a)` can be
    /// larger.
    excess: f64,
    /// After a step that a kink has cut short: how far ahead the curvatures are evaluated, as a
    /// fraction of the last direction.
    look_ahead: f64,
    /// Short steps in the present subproblem.
    n_short: u32,
    /// Whether proximal steps may still be tried.
    may_try_proximal: bool,
    /// Steps in the present subproblem.
    steps: u32,
    /// The smallest excess in the present subproblem, and the steps since it was last halved.
    least_excess: f64,
    idle: u32,
    /// The excess at which the present subproblem counts as solved.
    goal: f64,
    /// Whether the next step is the first one on a quadratic loss. A full step then leads to the
    /// minimum, up to rounding.
    is_first_parabola: bool,
}

/// The number of rows of positive weight on which the loss has a positive curvature at the dual value
/// `a(i)`, and the number of all rows of positive weight.
pub(crate) fn count_curved(problem: &Problem<'_>, a: impl Fn(usize) -> f64) -> (usize, usize) {
    let (mut curved, mut all) = (0, 0);
    let (mut values, mut curvatures) = (Vec::new(), Vec::new());
    for block in problem.data().blocks() {
        let targets = problem.target_block(block.clone());
        values.clear();
        memory::extend(&mut values, block.clone().map(&a));
        memory::resize(&mut curvatures, values.len(), 0.0);
        problem
            .loss()
            .curvatures(&values, targets.y, &mut curvatures);
        for (i, &curvature) in block.zip(&curvatures) {
            let counts = problem.weight(i) > 0.0;
            curved += usize::from(counts && curvature > 0.0);
            all += usize::from(counts);
        }
    }
    (curved, all)
}

impl<'p, 'a> Newton<'p, 'a> {
    /// Begins at `point`. `mu` is the mean row, `mean_q` the mean of `q_i`, and `target` the gap to
    /// be reached.
    pub(crate) fn new(
        problem: &'p Problem<'a>,
        (mu, columns): (&[f64], &'p Columns),
        mean_q: f64,
        point: &Point,
        target: f64,
        context: &mut RunContext<'_>,
    ) -> Result<Self, Error> {
        let mut u = point.coef.duplicate();
        let mut mean = Vec::new();
        if problem.fit_intercept() {
            mean = mu.duplicate();
            let shift = mean.iter().zip(&u).map(|(m, w)| m * w).sum::<f64>();
            memory::push(&mut u, point.intercept + shift);
        }
        let loss = problem.loss();
        let (is_smooth, unit) = (!loss.has_kinks(), problem.prediction_scale());
        let may_try_proximal = is_smooth && {
            let (curved, all) = count_curved(problem, |i| point.dual[i]);
            curved < all
        };
        let mut newton = Self {
            design: Design {
                problem,
                mu: mean,
                columns,
            },
            p: point
                .predictions
                .iter()
                .map(|p| p + point.intercept)
                .into_vec(),
            a: point.dual.duplicate(),
            centre: if may_try_proximal || !is_smooth {
                point.dual.duplicate()
            } else {
                Vec::new()
            },
            g: 0.0,
            first_g: (0.1 * mean_q).clamp(FIRST_WEIGHT.0 * unit, FIRST_WEIGHT.1 * unit),
            memory: Memory::new(loss),
            change: memory::zeros(point.dual.len()),
            trial: Vec::new(),
            excess: f64::INFINITY,
            steps: 0,
            least_excess: f64::INFINITY,
            idle: 0,
            look_ahead: 0.0,
            n_short: 0,
            may_try_proximal,
            goal: 0.1 * target,
            is_first_parabola: loss.is_quadratic(),
            first_u: u.duplicate(),
            u,
        };
        if is_smooth {
            newton.update_dual(context)?;
        } else {
            newton.begin_proximal_steps(context)?;
        }
        Ok(newton)
    }

    /// Switches to proximal steps, and returns to the point where the method began.
    fn begin_proximal_steps(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        self.g = self.first_g;
        memory::resize(&mut self.trial, self.p.len(), 0.0);
        self.may_try_proximal = false;
        memory::assign(&mut self.u, &self.first_u);
        self.design.products(&self.u, &mut self.p, context)?;
        memory::assign(&mut self.a, &self.centre);
        self.begin_subproblem();
        self.update_dual(context)
    }

    /// Resets the counters of steps and progress for a new subproblem.
    fn begin_subproblem(&mut self) {
        self.steps = 0;
        self.excess = f64::INFINITY;
        self.least_excess = f64::INFINITY;
        self.idle = 0;
        self.look_ahead = 0.0;
        self.n_short = 0;
    }

    /// The problem.
    pub(crate) fn problem(&self) -> &'p Problem<'a> {
        self.design.problem
    }

    /// The dual point.
    pub(crate) fn dual(&self) -> &[f64] {
        &self.a
    }

    /// `w`.
    pub(crate) fn coef(&self) -> &[f64] {
        &self.u[..self.design.problem.n_cols()]
    }

    /// The intercept for the original rows, which are not centred; 0 without an intercept.
    pub(crate) fn intercept(&self) -> f64 {
        self.design.shift(&self.u)
    }

    /// Lends a buffer with one number per row, if it is not needed between steps; otherwise an
    /// empty one.
    pub(crate) fn lend(&mut self) -> Vec<f64> {
        if self.look_ahead == 0.0 {
            std::mem::take(&mut self.change)
        } else {
            Vec::new()
        }
    }

    /// Whether the present subproblem is solved, so that an evaluation is worth its cost.
    pub(crate) fn is_ready(&self) -> bool {
        self.excess <= self.goal
    }

    /// To be called if the gap of the present dual point, `gap`, is not small enough: continues
    /// towards `target`.
    pub(crate) fn go_on(
        &mut self,
        gap: f64,
        target: f64,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        if self.g > 0.0 {
            self.centre.copy_from_slice(&self.a);
            let shrink = match self.steps {
                0..=6 => 0.2,
                7..=12 => 0.35,
                _ => 0.6,
            };
            self.g = (self.g * shrink).max(LAST_WEIGHT * self.first_g);
            self.goal = self.goal.min(0.1 * target);
            self.begin_subproblem();
            self.update_dual(context)
        } else {
            self.goal = self.goal.min(0.1 * target);
            if self.idle <= IDLE {
                // The problem has been solved once; what is left is rounding.
                self.may_try_proximal = false;
                // NaN if the gap is NaN.
                let factor = (0.1 * target / gap).clamp(1e-6, 0.1);
                self.goal *= if factor.is_nan() { 0.1 } else { factor };
            }
            self.begin_subproblem();
            Ok(())
        }
    }

    /// One step of Newton's method, unless the present subproblem turns out to be solved.
    pub(crate) fn step(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        let gradient = self.gradient(context)?;
        self.excess = self.problem().penalty().excess(&gradient);
        if self.excess <= 0.5 * self.least_excess {
            (self.least_excess, self.idle) = (self.excess, 0);
        } else {
            self.idle += 1;
        }
        if self.idle > IDLE {
            // This is as accurate as floating-point numbers allow.
            self.excess = 0.0;
        }
        if self.is_ready() {
            return Ok(());
        }
        self.steps += 1;
        self.find_curvatures(context)?;
        let hessian = Hessian {
            design: &self.design,
            weights: &self.change,
        };
        // The excess is the squared gradient, up to a factor.
        let least = if self.problem().loss().is_quadratic() {
            LEAST_PRECISION
        } else {
            PRECISION.0
        };
        let precision = (0.5 * (self.goal / self.excess).sqrt()).clamp(least, PRECISION.1);
        // Proximal steps, whose gradient has kinks, need many more steps of the method if
        // directions are inexact.
        if self.g > 0.0 || self.idle >= SAMPLE_LIMITS.0 || self.steps > SAMPLE_LIMITS.1 {
            self.memory.sample = None;
        }
        let direction = match hessian.direction(&gradient, precision, &mut self.memory, context) {
            // The point stays where it is, and the run ends.
            Err(Error::OutOfTime) => return Ok(()),
            direction => direction?,
        };
        let decrement: f64 = -dot(&gradient, &direction);
        if decrement.is_nan() || decrement.is_infinite() || decrement <= 0.0 {
            // Likewise.
            self.excess = 0.0;
            return Ok(());
        }
        self.design
            .products(&direction, &mut self.change, context)?;
        let coef = &direction[..self.problem().rows().n_cols()];
        let t = self.search(coef, context)?;
        for (u, d) in self.u.iter_mut().zip(&direction) {
            *u += t * d;
        }
        self.take_step(t, context)?;
        if t == 1.0 && std::mem::take(&mut self.is_first_parabola) {
            // A full step leads to the minimum of a quadratic; an evaluation shows how accurately.
            self.excess = 0.0;
        }
        self.look_ahead = 0.0;
        if t < SHORT {
            self.look_ahead = 2.0 * t;
            self.n_short += 1;
            if self.may_try_proximal && self.n_short == MANY_SHORT {
                return self.begin_proximal_steps(context);
            }
        }
        Ok(())
    }

    /// The proximal term for the rows of a block.
    fn proximal(&self, block: Range<usize>) -> Proximal<'_> {
        Proximal {
            g: self.g,
            centre: if self.g > 0.0 {
                &self.centre[block]
            } else {
                &[]
            },
        }
    }

    /// The predictions for the rows of a block, moved by `t` times the change.
    fn along(&self, t: f64, block: Range<usize>) -> LinePoint<'_> {
        LinePoint {
            p: &self.p[block.clone()],
            t,
            d: &self.change[block],
        }
    }

    /// Computes the dual values after `t` times the change, as the trial.
    fn try_step(&mut self, t: f64, context: &mut RunContext<'_>) -> Result<(), Error> {
        let problem = self.problem();
        let mut trial = std::mem::take(self.tried_mut());
        context.fill(&mut trial, problem.data().block_size(), |from, trial| {
            let block = from..from + trial.len();
            let (along, labels) = (
                self.along(t, block.clone()),
                problem.target_block(block.clone()),
            );
            if self.g > 0.0 {
                let (proximal, near) = (self.proximal(block.clone()), &self.a[block]);
                let loss = problem.loss();
                loss.proximal_values(proximal, along, near, labels, trial);
            } else {
                problem.loss().dual_values(along, labels, trial);
            }
        })?;
        *self.tried_mut() = trial;
        Ok(())
    }

    fn tried_mut(&mut self) -> &mut Vec<f64> {
        if self.g > 0.0 {
            &mut self.trial
        } else {
            &mut self.a
        }
    }

    /// The dual values of the last trial.
    fn tried(&self) -> &[f64] {
        if self.g > 0.0 { &self.trial } else { &self.a }
    }

    /// Accepts the dual values of the last trial as `a`.
    fn accept(&mut self) {
        if self.g > 0.0 {
            std::mem::swap(&mut self.a, &mut self.trial);
        }
    }

    /// Recomputes `a` for the present `p`.
    fn update_dual(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        memory::resize(&mut self.change, self.p.len(), 0.0);
        self.try_step(0.0, context)?;
        self.accept();
        Ok(())
    }

    /// Moves `p` by `t` times the change, and `a` to the last trial, which was made for this `t`.
    fn take_step(&mut self, t: f64, context: &mut RunContext<'_>) -> Result<(), Error> {
        let (size, change) = (self.problem().data().block_size(), &self.change);
        context.update(&mut self.p, size, |i, p| p + t * change[i])?;
        self.accept();
        Ok(())
    }

    /// The gradient of `F`.
    fn gradient(&self, context: &mut RunContext<'_>) -> Result<Vec<f64>, Error> {
        let problem = self.problem();
        let share = |i: usize| problem.weight(i) * self.a[i] / problem.total_weight();
        let mut gradient = self.design.sum(share, context)?;
        for g in &mut gradient {
            *g = -*g;
        }
        problem.penalty().add_gradient(self.coef(), &mut gradient);
        Ok(gradient)
    }

    /// Overwrites `change`, which holds the effect of the last direction on `p_i`, with the weights
    /// `c_i h_i / W`.
    fn find_curvatures(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        let mut change = std::mem::take(&mut self.change);
        let problem = self.problem();
        memory::resize(&mut change, problem.n_rows(), 0.0);
        context.fill(&mut change, problem.data().block_size(), |from, change| {
            let block = from..from + change.len();
            problem.loss().proximal_curvatures(
                self.proximal(block.clone()),
                (&self.p[block.clone()], &self.a[block.clone()]),
                self.look_ahead,
                problem.total_weight(),
                problem.target_block(block),
                change,
            );
        })?;
        self.change = change;
        Ok(())
    }

    /// The step length along `(coef, ..)`: approximately where the derivative of `F` changes sign.
    /// Leaves the dual values there as the trial.
    fn search(&mut self, coef: &[f64], context: &mut RunContext<'_>) -> Result<f64, Error> {
        /// The derivative may be at most this fraction of that at the start.
        const SLOPE_FRACTION: f64 = 0.3;
        let room = SLOPE_FRACTION * self.derivative(coef, 0.0, &self.a, context)?.abs();
        let (mut low, mut slope_at_low, mut high) = (0.0, 0.0, f64::INFINITY);
        let mut t = 1.0;
        for _ in 0..60 {
            self.try_step(t, context)?;
            let slope = self.derivative(coef, t, self.tried(), context)?;
            // Because the derivative increases, `F` has changed by at most `rise`. If this does not
            // prove that `F` has fallen, the change is computed: after a steep fall and a long
            // gentle rise, `F` may be larger. (A parabola has changed by
            // `t (F'(0) + F'(t)) / 2 < 0`.)
            let rise = low * slope_at_low + (t - low) * slope;
            let is_lower = || self.problem().loss().is_quadratic() || slope <= 0.0 || rise <= 0.0;
            if slope.abs() <= room && (is_lower() || self.change_of(coef, t, context)? <= 0.0) {
                return Ok(t);
            }
            if slope < 0.0 {
                (low, slope_at_low) = (t, slope);
            } else {
                high = t;
            }
            t = if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * t
            };
        }
        self.try_step(t, context)?;
        Ok(t)
    }

    /// The derivative of `F` along `(coef, ..)` after `t` times this direction, where the dual
    /// values are `a`.
    fn derivative(
        &self,
        coef: &[f64],
        t: f64,
        a: &[f64],
        context: &mut RunContext<'_>,
    ) -> Result<f64, Error> {
        let problem = self.problem();
        let blocks = problem.data().by_blocks(context, |block| {
            let c = problem.target_block(block.clone()).c;
            blocks::products(&a[block.clone()], &self.change[block], c)
        })?;
        let sum: f64 = blocks.iter().sum();
        let penalty = problem.penalty().derivative(self.coef(), coef, t);
        Ok(penalty - sum / problem.total_weight())
    }

    /// The change of `F` after `t` times `(coef, ..)`.
    fn change_of(&self, coef: &[f64], t: f64, context: &mut RunContext<'_>) -> Result<f64, Error> {
        let problem = self.problem();
        let sums = problem.data().by_blocks(context, |block| {
            let (along, labels) = (
                self.along(t, block.clone()),
                problem.target_block(block.clone()),
            );
            if self.g > 0.0 {
                let (proximal, near) = (self.proximal(block.clone()), &self.a[block]);
                let loss = problem.loss();
                loss.proximal_changes(proximal, along, near, labels)
            } else {
                problem.loss().changes(along, labels)
            }
        })?;
        let sum: f64 = sums.iter().sum();
        let penalty = problem.penalty().change(self.coef(), coef, t);
        Ok(penalty + sum / problem.total_weight())
    }
}

#[cfg(test)]
mod tests;
