//! What the methods for Newton's direction are estimated to cost, and which of them is the cheapest.

use super::columns::Columns;
use super::conjugate_gradients::EXPECTED_STEPS;
use super::sample;
use crate::rows::blocks::RowBlocks;
use crate::solver::chooser::Mechanism;

/// The maximum number of unknowns of a system: a matrix of 72 MB.
pub(super) const MAX_UNKNOWNS: usize = 3000;

/// The fraction of the rows that are added again for a direction, on average.
const RENEWED: f64 = 0.5;

/// Systems by rows are used up to this number of rows per column. Columns of very different sizes can be scaled in a
/// system of the columns, but products of rows mix them and keep fewer digits of the small ones.
const FEW_ROWS: f64 = 1.0 / 3.0;

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
pub(super) fn outer_work(rows: &dyn RowBlocks, columns: &Columns) -> (f64, bool) {
    let (by_columns, as_dense) = (columns.work(), dense_work(rows));
    (by_columns.min(as_dense), by_columns < as_dense)
}

fn dense_work(rows: &dyn RowBlocks) -> f64 {
    let columns = rows.n_cols() as f64;
    12.0 + 1.2 * columns + 0.021 * columns * columns
}

/// Whether adding the rows as dense ones costs at most 30 times as much as adding them by [`Columns`].
pub(super) fn is_affordable_again(rows: &dyn RowBlocks, columns: &Columns) -> bool {
    dense_work(rows) <= 30.0 * columns.work()
}
