//! Laws that known bugs break. Set a switch to `true` when the bug is mended: the law then counts.

/// `minimise` ends for slopes that are NaN, or for a function that falls as far as numbers go.
pub const MINIMISE_ENDS_FOR_NAN: bool = true;

/// `balance` keeps its promise where products underflow.
pub const BALANCE_OF_SUBNORMAL: bool = true;

/// The conjugate of the Poisson loss does not cancel for large targets.
pub const POISSON_CONJUGATE: bool = true;

/// Fits whose objective overflows are refused, and none returns a number that is not finite.
pub const OVERFLOW_IS_REFUSED: bool = true;

/// No model is worse than the best one without coefficients.
pub const NEVER_WORSE_THAN_ZERO: bool = true;

/// "Converged" always means that the gap is within the tolerance: a perfect fit has a reason of its own.
pub const PERFECT_IS_NOT_CONVERGED: bool = true;

/// A stream with arrays of wrong lengths is an error, not a panic.
pub const STREAM_LENGTHS_ARE_CHECKED: bool = true;

// ---------------------------------------------------------------- found by these targets

/// `balance` keeps its promise where the factor by which it shrinks values underflows.
pub const BALANCE_FACTOR_UNDERFLOWS: bool = true;

/// The value and the conjugate of the Poisson loss are infinite, not NaN, where a term overflows.
pub const POISSON_OVERFLOW: bool = true;

/// The step of the log loss solves its equation also for `q` above 1e140, where it forgets the new margin: a row of
/// margin 1 should get one of some hundreds, and gets one of 0.
pub const LOG_STEP_FOR_HUGE_Q: bool = false;

/// The step of the Poisson loss is right also where `q e^p` is subnormal.
pub const POISSON_STEP_FOR_TINY_Q: bool = false;

/// The search for an intercept is as good as elsewhere where values are within some powers of 10 of overflow.
pub const SEARCH_NEAR_OVERFLOW: bool = true;

/// A model of which `|w|^2` overflows is refused, or replaced by none: `prefer_zero` takes infinite <= infinite for
/// a proof that it is better.
pub const INFINITE_PENALTY: bool = true;

/// The conjugate of the squared epsilon-insensitive loss is 0 at 0 also where `epsilon + |y|` overflows.
pub const SQUARED_EPSILON_OVERFLOW: bool = true;

/// `rounding_of` does not overflow, nor multiply an infinite square by the 0 of a row without entries: else the lower
/// bound is infinite, or NaN, which passes if it comes with the model that is replaced by none at the end.
pub const ROUNDING_OVERFLOWS: bool = true;

/// The step of the Poisson loss is finite where the dual value itself, `y - e^p`, overflows. Where `q y` does, it is; but
/// after counts of 1e229 a row may be given -infinity, and the lower bound with it.
pub const POISSON_STEP_OVERFLOWS: bool = false;
