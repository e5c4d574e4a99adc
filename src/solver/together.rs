//! The first epochs of SDCA for several classes at a time.
//!
//! The problems of a one-vs-rest fit differ only in their targets. As long as all of them take full
//! passes, or nearly, they can visit the rows in the same order. A stored entry `x_ij` is then read
//! once for all classes of a group, and the coefficients that it is multiplied by, one per class,
//! are adjacent in memory. After [`epochs`] such epochs each class continues alone, from its dual
//! values.
//!
//! Each class takes the steps that it would take alone, except for the order of the visits: a short
//! pass visits the rows whose dual values the pass before it has changed in any class.

use std::ops::Range;

use crate::data::rows_per_block;
use crate::error::Error;
use crate::intercept;
use crate::kernel::prefetch;
use crate::loss::Loss;
use crate::loss::blocks::LossBlocks;
use crate::memory::{self, IntoVec as _};
use crate::order::Order;
use crate::problem::Problem;
use crate::rows::Rows;
use crate::run::RunContext;
use crate::solver::chooser::TUNING;
use crate::solver::frame::Frame;
use crate::solver::output::Trace;
use crate::solver::passes::Passes;
use crate::solver::sdca::{FAR, NEAR};

/// Maximum number of classes in a group: their coefficients for one column fill a cache line.
pub const GROUP: usize = 8;

/// Larger tolerances are reached before the common epochs end.
const MAX_TOL: f64 = 1e-3;

/// The dual values of one class after the common epochs, with which its own run continues.
#[derive(Debug, Clone)]
pub struct CommonStart {
    /// `a`, for rows that steps can change.
    pub(crate) dual: Vec<f64>,
    /// The centre of the proximal term on the intercept of the centred rows.
    pub(crate) centre: f64,
    /// Steps done.
    pub(crate) steps: u64,
    /// The share of this class in the elapsed seconds, and in those of processor time.
    pub(crate) seconds: (f64, f64),
}

/// Number of common epochs: about as many as a gap of 1e-4 takes on rows of norm 1 with `C = 1`,
/// and fewer than that for losses with kinks.
fn epochs(loss: &dyn LossBlocks) -> usize {
    if loss.smoothness() > 0.0 { 6 } else { 8 }
}

/// Whether common epochs can pay with this tolerance and number of epochs.
pub(crate) fn may_pay(problem: &Problem<'_>, tol: f64, max_epochs: usize) -> bool {
    tol > 0.0 && tol <= MAX_TOL && max_epochs >= epochs(problem.loss())
}

/// What a visit needs to know about its row, for any class.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// `rate (|x - mu|^2 + s)`.
    q: f64,
    /// `x.mu`.
    m: f64,
}

/// One number for each class of the group; unused places stay 0.
type Lanes = [f64; GROUP];

/// The dual points of a group and what is kept up to date with them, see `State` in
/// `sdca/state.rs`.
pub(crate) struct Group<'a> {
    /// The class of each row, and those in the group.
    classes: &'a [u32],
    members: Range<u32>,
    rows: Vec<Row>,
    frame: Frame,
    a: Vec<Lanes>,
    /// `sum_i rate_i a_i (x_i - mu)`, see [`super::frame::Sum`].
    v: Vec<Lanes>,
    pull: Lanes,
    t: Lanes,
    centre: Lanes,
}

impl Group<'_> {
    /// A step for row `i` in each class. Returns the gain, see [`Trace::changed`], if a dual value
    /// has changed in any of them.
    #[inline]
    fn step<R: Rows, L: Loss>(
        &mut self,
        (rows, loss): (&R, &L),
        problem: &Problem<'_>,
        i: usize,
    ) -> Option<f64> {
        let Row { q, m } = self.rows[i];
        let mut dots = [0.0; GROUP];
        rows.visit(i, |j, x| {
            for (dot, v) in dots.iter_mut().zip(&self.v[j]) {
                *dot += x * v;
            }
        });
        let (rate, a) = (problem.rate(i), &mut self.a[i]);
        let mut shares = [0.0; GROUP];
        let (mut has_moved, mut gain) = (false, 0.0);
        for (k, class) in self.members.clone().enumerate() {
            let y = if self.classes[i] == class { 1.0 } else { -1.0 };
            let z = self.centre[k] + dots[k] - self.pull[k] * m + self.t[k] - q * a[k];
            let new = loss.step(z, q, a[k], y);
            has_moved |= new != a[k];
            shares[k] = rate * (new - a[k]);
            gain += q * shares[k] * (new - a[k]);
            a[k] = new;
        }
        if has_moved {
            rows.visit(i, |j, x| {
                for (v, share) in self.v[j].iter_mut().zip(&shares) {
                    *v += x * share;
                }
            });
            let t_increment = self.frame.t_increment(m);
            for (k, share) in shares.into_iter().enumerate() {
                self.pull[k] += share;
                self.t[k] += share * t_increment;
            }
        }
        has_moved.then_some(gain)
    }

    /// Steps for the rows `visits`.
    pub(crate) fn ascend<R: Rows, L: Loss>(
        &mut self,
        (rows, loss): (&R, &L),
        problem: &Problem<'_>,
        visits: &[u32],
        moved: &mut impl Trace,
    ) {
        for (k, &i) in visits.iter().enumerate() {
            if let Some(&i) = visits.get(k + FAR) {
                prefetch(&self.a, i as usize, i as usize + 1);
                prefetch(&self.rows, i as usize, i as usize + 1);
                rows.prefetch_pointers(i as usize);
            }
            if let Some(&i) = visits.get(k + NEAR) {
                rows.prefetch(i as usize);
            }
            if let Some(gain) = self.step((rows, loss), problem, i as usize) {
                moved.changed(0, i as usize, 0.0, gain);
            }
        }
    }
}

/// The common epochs of the classes `group`, each against the rest, for rows whose classes are
/// numbered. `problem` is that of any of them; `order` makes an order of the rows that steps can
/// change. Returns nothing if common epochs do not pay: `pays` decides this from the mean of `q`,
/// and where the outer loop pays, it would begin before they end.
pub(crate) fn run(
    problem: &Problem<'_>,
    classes: &[u32],
    group: Range<u32>,
    pays: impl FnOnce(f64) -> bool,
    order: impl FnOnce(Vec<u32>) -> Order,
    context: &mut RunContext<'_>,
) -> Result<Vec<CommonStart>, Error> {
    let n_rows = problem.n_rows();
    let (frame, geometry) = Frame::new(problem, context)?;
    let mean_q = problem.mean_q(frame.mean_sq_norm);
    if TUNING.outer_pays(mean_q, problem.loss().smoothness()) || !pays(mean_q) {
        return Ok(Vec::new());
    }
    let row = |(i, &spread)| Row {
        q: problem.q(i, spread) + problem.q(i, frame.s),
        m: geometry.m(i),
    };
    let rows = geometry.spreads.iter().enumerate().map(row).into_vec();
    let moving = (0..n_rows as u32).filter(|&i| rows[i as usize].q > 0.0);
    let mut passes = Passes::new(order(moving.into_vec()), true);
    let mut centre = [0.0; GROUP];
    if problem.fit_intercept() {
        for (centre, class) in centre.iter_mut().zip(group.clone()) {
            *centre = intercept_at_zero(problem, classes, class);
        }
    }
    let mut state = Group {
        classes,
        members: group.clone(),
        rows,
        frame,
        a: memory::filled(n_rows, [0.0; GROUP]),
        v: memory::filled(problem.n_cols(), [0.0; GROUP]),
        pull: [0.0; GROUP],
        t: [0.0; GROUP],
        centre,
    };
    let block = rows_per_block(n_rows, GROUP * problem.rows().n_stored()) as u64;
    let (mut step, until) = (0, (epochs(problem.loss()) * passes.len()) as u64);
    while step < until {
        passes.prepare(false);
        let (visits, moved) = passes.next(block.min(until - step));
        step += visits.len() as u64;
        if let Some(moved) = moved {
            problem
                .steps()
                .ascend_together(&mut state, problem, visits, moved);
        }
        if passes.is_over() {
            for (centre, pull) in state.centre.iter_mut().zip(&state.pull) {
                *centre += state.frame.s * pull;
            }
        }
        context.heartbeat()?;
    }
    let n_classes = group.len() as f64;
    let seconds = (
        context.seconds() / n_classes,
        context.cpu_seconds() / n_classes,
    );
    let common_start = |k: usize| CommonStart {
        dual: state.a.iter().map(|a| a[k]).into_vec(),
        centre: state.centre[k],
        steps: step,
        seconds,
    };
    Ok((0..group.len()).map(common_start).collect())
}

/// The best intercept for `w = 0`: that of `c phi(b; 1) + (W - c) phi(b; -1)`, where `c` is the weight
/// of the class.
fn intercept_at_zero(problem: &Problem<'_>, classes: &[u32], class: u32) -> f64 {
    let loss = problem.loss();
    let own = problem
        .data()
        .positive_rows()
        .filter(|&i| classes[i] == class);
    let share = own.map(|i| problem.weight(i)).sum::<f64>() / problem.total_weight();
    let minimum = intercept::minimise(0.0, intercept::inverse_curvature(loss), 0.0, |b| {
        let mean = |of: &dyn Fn(f64) -> f64| share * of(1.0) + (1.0 - share) * of(-1.0);
        (mean(&|y| loss.value(b, y)), mean(&|y| loss.slope(b, y)))
    });
    minimum.b
}
