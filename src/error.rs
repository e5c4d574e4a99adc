//! The one error type of the crate.
//!
//! | category  | meaning                                          | in Python           |
//! |-----------|--------------------------------------------------|---------------------|
//! | parameter | a setting is out of range or unknown             | `ValueError`        |
//! | input     | the rows, targets or weights cannot be used      | `ValueError`        |
//! | file      | a file cannot be read ([`Error::File`]), or not as what it should be ([`Error::Text`]) | `OSError`, `ValueError` |
//! | memory    | there is not enough of it ([`Error::Memory`])    | `MemoryError`       |
//! | run       | the run was ended from outside ([`Error::Interrupted`]) | the interrupt itself |
//!
//! Every message names the argument, what was found and what was expected. A run that did not
//! converge is not an error; see [`StopReason`](crate::run::StopReason).

use crate::loss;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No loss has this name.
    #[error("loss: found {found:?}, expected one of {}", loss::names().join(", "))]
    UnknownLoss {
        /// The name that was asked for.
        found: String,
    },
    /// A shape parameter was given for a loss that has none.
    #[error(
        "loss_param: found {found}, expected None, because loss {loss:?} has no shape parameter"
    )]
    NoLossParam {
        /// Name of the loss.
        loss: &'static str,
        /// The value given.
        found: f64,
    },
    /// The shape parameter of the loss is out of range.
    #[error("loss_param: found {found}, expected {param} to be {expected} for loss {loss:?}")]
    LossParam {
        /// Name of the loss.
        loss: &'static str,
        /// Name of its shape parameter.
        param: &'static str,
        /// The value given.
        found: f64,
        /// The range in words.
        expected: &'static str,
    },
    /// A setting is out of range.
    #[error("{name}: found {found}, expected {expected}")]
    Parameter {
        /// Name of the setting.
        name: &'static str,
        /// The value given.
        found: String,
        /// The range in words.
        expected: &'static str,
    },
    /// A batch is empty, or larger than the data.
    #[error("batch_size: found {found}, expected an integer from 1 to n_samples={n_samples}")]
    BatchSize {
        /// The value given.
        found: i128,
        /// Number of rows.
        n_samples: u64,
    },
    /// An array has the wrong length.
    #[error("{name}: found length {found}, expected {expected} ({why})")]
    Length {
        /// Name of the array.
        name: &'static str,
        /// Its length.
        found: usize,
        /// The length it must have.
        expected: usize,
        /// The reason for the expected length.
        why: &'static str,
    },
    /// There are no rows or no columns.
    #[error("X: found {n_rows} rows and {n_cols} columns, expected at least one of each")]
    EmptyRows {
        /// Number of rows.
        n_rows: usize,
        /// Number of columns.
        n_cols: usize,
    },
    /// There are more rows than the visiting order can number.
    #[error("X: found {n_rows} rows, expected fewer than 2^32")]
    TooManyRows {
        /// Number of rows.
        n_rows: usize,
    },
    /// The row pointers of a CSR matrix do not start at zero.
    #[error("X.indptr: found {found} at position 0, expected 0")]
    IndptrStart {
        /// The first entry.
        found: i64,
    },
    /// The row pointers of a CSR matrix decrease.
    #[error(
        "X.indptr: found {next} after {previous} at row {row}, expected it never to decrease \
         (more than 2^31 - 1 non-zeros need int64)"
    )]
    IndptrDecreases {
        /// The row that ends before it starts.
        row: usize,
        /// Where the row starts.
        previous: i64,
        /// Where it ends, according to the matrix.
        next: i64,
    },
    /// A CSR matrix points beyond the end of its own arrays.
    #[error(
        "X.indptr: found {found} non-zeros, expected at most {available}, the length of {array}"
    )]
    IndptrEnd {
        /// The last entry.
        found: i64,
        /// The length of the shorter array.
        available: usize,
        /// Which array is too short.
        array: &'static str,
    },
    /// A column index of a CSR matrix is out of range.
    #[error("X.indices: found column {found}, expected 0 <= column < {n_cols}")]
    ColumnIndex {
        /// The index.
        found: i64,
        /// Number of columns.
        n_cols: usize,
    },
    /// A column occurs twice in a row of a CSR matrix.
    #[error(
        "X.indices: found column {column} twice in row {row}, expected each column at most once"
    )]
    DuplicateColumn {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
    },
    /// Rows for prediction have a different number of columns from the rows of the fit.
    #[error("X: found {found} columns, expected {expected}, one for each coefficient of the model")]
    Columns {
        /// Number of columns.
        found: usize,
        /// Number of coefficients.
        expected: usize,
    },
    /// A target lies outside the domain of the loss.
    #[error("y: found {found} at row {row}, expected {expected} for loss {loss:?}")]
    Target {
        /// The row.
        row: usize,
        /// Its target.
        found: f64,
        /// The domain in words.
        expected: &'static str,
        /// Name of the loss.
        loss: &'static str,
    },
    /// All rows of positive weight belong to one class.
    #[error("y: found one class among the rows of positive weight, expected at least two classes")]
    OneClass,
    /// A sample weight is negative or not finite.
    #[error("sample_weight: found {found} at row {row}, expected finite weights >= 0")]
    Weight {
        /// The row.
        row: usize,
        /// Its weight.
        found: f64,
    },
    /// All weights are zero.
    #[error("sample_weight: found zero for every weight, expected a positive one")]
    NoWeight,
    /// The numbers are too large for `f64` arithmetic.
    #[error(
        "X: found numbers for which, with this y and C, {what} overflows or is NaN, expected smaller ones"
    )]
    Overflow {
        /// What could not be computed.
        what: &'static str,
    },
    /// The steps were too long.
    #[error("{name}: found steps so long that the coefficients overflow, expected shorter ones")]
    Diverged {
        /// The setting that controls the step length.
        name: &'static str,
    },
    /// A solver for smooth losses was given a loss that is not smooth.
    #[error("loss: found {found:?}, expected a smooth loss {}", smooth_relative(*.relative))]
    NotSmooth {
        /// Name of the loss.
        found: &'static str,
        /// See [`loss::Loss::SMOOTH_RELATIVE`].
        relative: Option<&'static str>,
    },
    /// A text file is not in the format that was expected.
    #[error("{file}:{line}:{column}: found {found}, expected {expected}")]
    Text {
        /// What the file is called.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The byte of the line, from 1.
        column: u64,
        /// What is there.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{file}: {reason}")]
    File {
        /// What the file is called.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// There is not enough memory.
    #[error(
        "X: found too large for the memory that is left, where {bytes} bytes were asked for, expected fewer rows, \
         columns or classes"
    )]
    Memory {
        /// The size of the allocation that failed, in bytes.
        bytes: usize,
    },
    /// The monitor aborted the run.
    #[error("interrupted")]
    Interrupted,
    /// The time limit passed within a step that is useless unless completed. The run ends with
    /// [`StopReason::MaxTime`](crate::run::StopReason::MaxTime), so callers never see this.
    #[doc(hidden)]
    #[error("out of time")]
    OutOfTime,
}

/// Ends the work from deep inside it, by unwinding to the nearest [`catch`].
#[cold]
#[inline(never)]
pub(crate) fn raise(error: Error) -> ! {
    // This prints no panic message: it is an error being returned, not a panic.
    std::panic::resume_unwind(Box::new(error))
}

/// Does work and returns any error that it raises: a column index that another thread has made
/// invalid, or a failed allocation.
///
/// Solvers and predictions call this themselves. Other panics pass through.
pub fn catch<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => match payload.downcast::<Error>() {
            Ok(error) => Err(*error),
            Err(other) => std::panic::resume_unwind(other),
        },
    }
}

fn smooth_relative(relative: Option<&'static str>) -> String {
    match relative {
        Some(name) => format!("such as {name:?}"),
        None => format!("(one of {})", loss::smooth_names().join(", ")),
    }
}
