//! The dual point of an SDCA run, the sums that are kept up to date with it, and the steps
//! themselves.

use crate::error::Error;
use crate::kernel::prefetch;
use crate::loss::Loss;
use crate::memory;
use crate::problem::Problem;
use crate::rows::Rows;
use crate::run::RunContext;
use crate::solver::Start;
use crate::solver::frame::{Frame, Sum};
use crate::solver::momentum::Iterate;
use crate::solver::outer::Outer;
use crate::solver::output::Trace;
use crate::solver::together::CommonStart;

/// All that a step needs to know about its row; two of these fit in a cache line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Its dual value.
    pub(crate) a: f64,
    /// `rate (|x - mu|^2 + s)`.
    pub(crate) q: f64,
    /// Its target.
    pub(crate) y: f64,
    /// `x.mu`.
    pub(crate) m: f64,
}

/// How many visits ahead a row is prefetched, and how many visits ahead the pointers to it.
pub(crate) const NEAR: usize = 8;
pub(crate) const FAR: usize = 20;

/// The dual point of a run and what is kept up to date with it.
pub(crate) struct State {
    pub(super) rows: Vec<Row>,
    pub(super) frame: Frame,
    /// `sum_i rate_i a_i (x_i - mu)`, or the `u` of the outer loop.
    pub(super) sum: Sum,
    pub(super) outer: Option<Outer>,
    /// The factor that the outer loop applies to `q`: its `s`, or 1 without it.
    scale: f64,
    /// The centre of the proximal term on the intercept of the centred rows.
    pub(super) centre: f64,
    /// Mean of `q` without the intercept column.
    pub(super) mean_q: f64,
}

impl State {
    /// The state at the start, and the rows that steps can change: those of positive weight and,
    /// without an intercept, not empty.
    pub(super) fn new(
        problem: &Problem<'_>,
        start: Option<Start<'_>>,
        context: &mut RunContext<'_>,
    ) -> Result<(Self, Vec<u32>), Error> {
        let n_rows = problem.n_rows();
        let start = start.map(|start| start.dual_for(problem)).transpose()?;
        let (frame, geometry) = Frame::new(problem, context)?;
        let row = |i: usize| Row {
            a: start.as_ref().map_or(0.0, |start| start[i]),
            q: problem.q(i, geometry.spreads[i]) + problem.q(i, frame.s),
            y: problem.target(i),
            m: geometry.m(i),
        };
        let mut rows = memory::with_capacity(n_rows);
        let mut moving = memory::with_capacity(n_rows);
        for i in 0..n_rows {
            let row = row(i);
            if row.q > 0.0 {
                moving.push(i as u32);
            }
            rows.push(row);
        }
        if moving.len() < n_rows {
            for (i, row) in rows.iter_mut().enumerate() {
                if row.q == 0.0 && problem.weight(i) > 0.0 {
                    // An empty row predicts 0 for any w, so its best dual value is known at once.
                    row.a = problem.loss().step(0.0, 0.0, row.a, row.y);
                }
            }
        }
        let mut state = Self {
            rows,
            sum: Sum::new(problem.n_cols()),
            outer: None,
            scale: 1.0,
            centre: 0.0,
            mean_q: problem.mean_q(frame.mean_sq_norm),
            frame,
        };
        if state.dual().any(|a| a != 0.0) {
            state.refresh(problem, context)?;
        }
        Ok((state, moving))
    }

    pub(super) fn dual(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.rows.iter().map(|row| row.a)
    }

    pub(super) fn refresh(
        &mut self,
        problem: &Problem<'_>,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let rows = &self.rows;
        let share = |i: usize| problem.rate(i) * rows[i].a;
        self.sum.refresh(&self.frame, problem, share, context)?;
        if let Some(outer) = &self.outer {
            outer.apply(&mut self.sum, &self.frame);
        }
        Ok(())
    }

    /// Continues where the common epochs ended. Returns the number of steps done there.
    pub(super) fn adopt(
        &mut self,
        problem: &Problem<'_>,
        common_start: CommonStart,
        context: &mut RunContext<'_>,
    ) -> Result<u64, Error> {
        for (row, a) in self.rows.iter_mut().zip(common_start.dual) {
            if row.q > 0.0 {
                row.a = a;
            }
        }
        self.centre = common_start.centre;
        context.add_earlier_time(common_start.seconds);
        self.refresh(problem, context)?;
        Ok(common_start.steps)
    }

    /// Begins the outer loop.
    pub(super) fn begin_outer(&mut self, smoothness: f64) {
        let outer = Outer::new(&mut self.sum, &self.frame, self.mean_q, smoothness);
        self.scale = outer.scale();
        self.outer = Some(outer);
    }

    /// This point, for [`Momentum`](crate::solver::momentum::Momentum).
    pub(super) fn iterate(&mut self) -> Iterate<'_> {
        Iterate {
            rows: &mut self.rows,
            sum: &mut self.sum,
            frame: &self.frame,
            centre: self.centre,
        }
    }

    /// To be called after each pass.
    pub(super) fn end_pass(&mut self) {
        self.centre += self.frame.s * self.sum.pull;
        if let Some(outer) = &mut self.outer {
            outer.end_pass(&mut self.sum, &self.frame);
        }
    }

    /// The intercept for the original rows, which are not centred; 0 without an intercept.
    pub(super) fn intercept(&self) -> f64 {
        self.centre - self.frame.mu_dot(&self.sum.v)
    }

    /// Changes the dual value of row `i` to `a`.
    #[inline(always)]
    fn set<R: Rows>(&mut self, rows: &R, problem: &Problem<'_>, i: usize, a: f64) {
        let row = &mut self.rows[i];
        let share = self.scale * problem.rate(i) * (a - row.a);
        row.a = a;
        self.sum.axpy(&self.frame, rows, i, row.m, share);
    }

    /// Prefetches the memory for the visits that follow `visits[k]`.
    #[inline(always)]
    fn prefetch<R: Rows>(&self, rows: &R, visits: &[u32], k: usize) {
        if let Some(&i) = visits.get(k + FAR) {
            prefetch(&self.rows, i as usize, i as usize + 1);
            rows.prefetch_pointers(i as usize);
        }
        if let Some(&i) = visits.get(k + NEAR) {
            rows.prefetch(i as usize);
        }
    }

    /// SDCA steps for the rows `visits`; the first of them is step `step` of the run.
    #[inline]
    pub(crate) fn ascend<R: Rows, L: Loss>(
        &mut self,
        (rows, loss): (&R, &L),
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        trace: &mut impl Trace,
    ) {
        for (k, &i) in visits.iter().enumerate() {
            self.prefetch(rows, visits, k);
            let i = i as usize;
            let row = self.rows[i];
            let q = self.scale * row.q;
            let z = self.centre + self.sum.dot(rows, i, row.m) - q * row.a;
            let a = loss.step(z, q, row.a, row.y);
            if a != row.a {
                let gain = problem.rate(i) * q * (a - row.a) * (a - row.a);
                trace.changed(step + k as u64, i, row.a, gain);
                self.set(rows, problem, i, a);
            }
        }
    }

    /// Steps of modified SGD. `seen` is the sum of the rates of the rows seen before.
    #[inline]
    pub(crate) fn descend<R: Rows, L: Loss>(
        &mut self,
        (rows, loss): (&R, &L),
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        seen: &mut f64,
        trace: &mut impl Trace,
    ) {
        for (k, &i) in visits.iter().enumerate() {
            self.prefetch(rows, visits, k);
            let i = i as usize;
            let row = self.rows[i];
            // W / W_(t-1), because sum_i rate_i = 1 / lambda; before the first row the sum is
            // empty. (Both are finite even if the first rows have almost no weight.)
            let all_by = |seen: f64| 1.0 / (problem.lambda() * seen).max(f64::MIN_POSITIVE);
            let of_model = if *seen > 0.0 { all_by(*seen) } else { 0.0 };
            *seen += problem.rate(i);
            // W / W_t. All dual values are 0 before their step.
            let of_step = all_by(*seen);
            let z = self.centre + of_model * self.sum.dot(rows, i, row.m);
            let a = loss.step(z, of_step * row.q, row.a, row.y);
            if a != row.a {
                trace.changed(step + k as u64, i, row.a, 0.0);
                self.set(rows, problem, i, a);
            }
        }
    }
}
