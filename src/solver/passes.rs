//! Which rows SDCA visits, pass by pass.
//!
//! A *full pass* visits all rows. Late in a run, most dual values stay where they are, at an end of
//! their range or at a kink, and visits to their rows achieve nothing. So a full pass may be
//! followed by *short passes*, each over the rows whose dual values changed in the pass before it.
//! They continue as long as a visit still raises `D` by as much as a visit of the full pass did,
//! and until they have cost [`SHORT_SHARE`] times as much as that pass. Then all rows are visited
//! again: no row at rest is dropped for good, no threshold decides whether it is, and evaluations
//! include all rows in any case.
//!
//! A step of length `d` maximises `-phi*(-t) - t z - q t^2 / 2`, whose curvature is at least `q`.
//! So it raises that function by at least `q d^2 / 2`, and `D` by `c / W` times as much.
//!
//! (LIBLINEAR's shrinking is the same idea with a threshold: it drops a row whose gradient points out
//! of its range by more than the largest violation of the pass before.)

use crate::memory;
use crate::order::Order;
use crate::solver::output::Trace;

/// Visits in the short passes between two full ones, as a multiple of those in a full one. On
/// `debian_long`, ijcnn1 and bloodcells (hinge, C = 100 and 1), 4 takes 0.7 to 0.9 times as long as
/// 2, and 8 takes about as long as 4.
const SHORT_SHARE: f64 = 4.0;

/// Rows whose dual values have changed, in the order of their visits, and the total gain from these
/// changes.
#[derive(Default)]
pub(crate) struct Moved {
    rows: Vec<u32>,
    gain: f64,
}

impl Trace for Moved {
    #[inline]
    fn changed(&mut self, _step: u64, i: usize, _old: f64, gain: f64) {
        memory::push(&mut self.rows, i as u32);
        self.gain += gain;
    }
}

/// The passes of a run.
pub(crate) struct Passes {
    order: Order,
    /// Whether there are short passes.
    short: bool,
    /// The rows that the present pass visits; `None` for all rows in their order.
    chosen: Option<Vec<u32>>,
    /// Visits done in the present pass.
    position: usize,
    /// The rows whose dual values the present pass has changed so far.
    moved: Moved,
    /// Visits in short passes since the last full pass, and the gain per visit of that full pass.
    spent: usize,
    standard: f64,
}

impl Passes {
    /// Passes over the rows of `order`. Short passes need an order that visits each row once: one
    /// that draws rows with replacement cannot tell which rows are at rest.
    pub(crate) fn new(order: Order, short: bool) -> Self {
        Self {
            short: short && order.is_exhaustive(),
            order,
            chosen: None,
            position: 0,
            moved: Moved::default(),
            spent: 0,
            standard: 0.0,
        }
    }

    /// Visits in a full pass.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Chooses the rows of the next pass if the present one is over. With `exhaustive`, this is a
    /// full pass that visits each row exactly once.
    pub(crate) fn prepare(&mut self, exhaustive: bool) {
        if self.position > 0 {
            return;
        }
        let visits = self.chosen.as_ref().map_or(self.len(), Vec::len);
        let gain = std::mem::take(&mut self.moved.gain) / visits as f64;
        if self.chosen.is_none() {
            self.standard = gain;
        }
        let pays = gain >= self.standard && !self.moved.rows.is_empty();
        let spent = self.spent + self.moved.rows.len();
        let limit = SHORT_SHARE * self.len() as f64;
        if self.short && !exhaustive && pays && spent as f64 <= limit {
            self.spent = spent;
            let chosen = self.chosen.get_or_insert_default();
            std::mem::swap(chosen, &mut self.moved.rows);
            self.order.arrange(chosen);
        } else {
            self.spent = 0;
            self.chosen = None;
            if exhaustive {
                self.order.next_pass();
            } else {
                self.order.next_epoch();
            }
        }
        self.moved.rows.clear();
    }

    /// The next visits, at most `count`, and where to record the rows that they change, if that is
    /// needed.
    pub(crate) fn next(&mut self, count: u64) -> (&[u32], Option<&mut Moved>) {
        let all = self.chosen.as_deref().unwrap_or(self.order.visits());
        let rest = all.len() - self.position;
        let visits = &all[self.position..][..rest.min(count as usize)];
        self.position += visits.len();
        if self.position == all.len() {
            self.position = 0;
        }
        (visits, self.short.then_some(&mut self.moved))
    }

    /// Abandons the present pass and frees its memory. The next pass is full.
    pub(crate) fn reset(&mut self) {
        self.chosen = None;
        self.moved = Moved::default();
        self.position = 0;
        self.spent = 0;
    }

    /// Whether the present pass is over.
    pub(crate) fn is_over(&self) -> bool {
        self.position == 0
    }
}

#[cfg(test)]
mod tests;
