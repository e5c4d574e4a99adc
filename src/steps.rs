//! Steps on single rows: the only code that is compiled for each pair of a loss and a row storage.
//! All other code accesses them block by block, through
//! [`RowBlocks`](crate::rows::blocks::RowBlocks) and [`LossBlocks`].

use crate::data::with_rows;
use crate::loss::Loss;
use crate::loss::blocks::LossBlocks;
use crate::problem::Problem;
use crate::solver::output::{NoTrace, Sums};
use crate::solver::passes::Moved;
use crate::solver::sdca::State;
use crate::solver::together::Group;

/// A loss whose type is known only at run time, with its steps on the rows of a problem.
pub(crate) trait Steps: LossBlocks {
    /// See [`State::ascend`].
    fn ascend(
        &self,
        state: &mut State,
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        trace: TraceKind<'_>,
    );

    /// See [`State::descend`].
    fn descend(
        &self,
        state: &mut State,
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        seen: &mut f64,
        trace: TraceKind<'_>,
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

/// Where each change of a dual value is recorded.
pub(crate) enum TraceKind<'t> {
    None,
    Sums(&'t mut Sums),
    Moved(&'t mut Moved),
}

impl<L: Loss> Steps for L {
    fn ascend(
        &self,
        state: &mut State,
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        trace: TraceKind<'_>,
    ) {
        with_rows!(problem.data().storage(), rows => match trace {
            TraceKind::None => state.ascend((rows, self), problem, visits, step, &mut NoTrace),
            TraceKind::Sums(sums) => state.ascend((rows, self), problem, visits, step, sums),
            TraceKind::Moved(moved) => state.ascend((rows, self), problem, visits, step, moved),
        });
    }

    fn descend(
        &self,
        state: &mut State,
        problem: &Problem<'_>,
        visits: &[u32],
        step: u64,
        seen: &mut f64,
        trace: TraceKind<'_>,
    ) {
        with_rows!(problem.data().storage(), rows => {
            let on = (rows, self);
            match trace {
                TraceKind::Sums(sums) => state.descend(on, problem, visits, step, seen, sums),
                // Short passes follow only ascents.
                _ => state.descend(on, problem, visits, step, seen, &mut NoTrace),
            }
        });
    }

    fn ascend_together(
        &self,
        group: &mut Group<'_>,
        problem: &Problem<'_>,
        visits: &[u32],
        moved: &mut Moved,
    ) {
        with_rows!(problem.data().storage(), rows => {
            group.ascend((rows, self), problem, visits, moved);
        });
    }
}
