//! Rows and loss compiled together, for steps on single rows: the only code that is compiled for each pair of a loss and
//! a storage of rows. All else knows them by blocks of rows, [`RowBlocks`] and [`LossBlocks`].

use crate::loss::Loss;
use crate::loss::blocks::LossBlocks;
use crate::problem::Problem;
use crate::rows::Rows;
use crate::rows::blocks::RowBlocks;
use crate::solver::output::{NoTrace, Sums};
use crate::solver::passes::Moved;
use crate::solver::sdca::State;
use crate::solver::together::Group;

/// Rows and a loss of which neither type is known where they are used.
pub(crate) trait Pair: Send + Sync {
    /// The rows.
    fn rows(&self) -> &dyn RowBlocks;

    /// The loss.
    fn loss(&self) -> &dyn LossBlocks;

    /// See [`State::ascend`].
    fn ascend(
        &self,
        state: &mut State,
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        trace: Traced<'_>,
    );

    /// See [`State::descend`].
    fn descend(
        &self,
        state: &mut State,
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        seen: &mut f64,
        trace: Traced<'_>,
    );

    /// See [`Group::ascend`].
    fn ascend_together(
        &self,
        group: &mut Group<'_>,
        problem: &Problem<'_>,
        visits: &[u32],
        moved: &mut Moved,
    );
}

/// Who is told of each change of a dual value.
pub(crate) enum Traced<'t> {
    Nobody,
    Sums(&'t mut Sums),
    Moved(&'t mut Moved),
}

/// Rows and a loss of known types.
pub(crate) struct Typed<'a, R, L> {
    pub(crate) rows: &'a R,
    pub(crate) loss: L,
}

impl<R: Rows, L: Loss> Pair for Typed<'_, R, L> {
    fn rows(&self) -> &dyn RowBlocks {
        self.rows
    }

    fn loss(&self) -> &dyn LossBlocks {
        &self.loss
    }

    fn ascend(
        &self,
        state: &mut State,
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        trace: Traced<'_>,
    ) {
        match trace {
            Traced::Nobody => state.ascend(self, problem, visits, step, &mut NoTrace),
            Traced::Sums(sums) => state.ascend(self, problem, visits, step, sums),
            Traced::Moved(moved) => state.ascend(self, problem, visits, step, moved),
        }
    }

    fn descend(
        &self,
        state: &mut State,
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        seen: &mut f64,
        trace: Traced<'_>,
    ) {
        match trace {
            Traced::Sums(sums) => state.descend(self, problem, visits, step, seen, sums),
            // Short passes follow ascents alone.
            _ => state.descend(self, problem, visits, step, seen, &mut NoTrace),
        }
    }

    fn ascend_together(
        &self,
        group: &mut Group<'_>,
        problem: &Problem<'_>,
        visits: &[u32],
        moved: &mut Moved,
    ) {
        group.ascend(self, problem, visits, moved);
    }
}
