//! Laws that known bugs violate. Set a switch to `true` when the bug is fixed, which enables the
//! law.

/// `minimise` ends for slopes that are NaN, and for a function that decreases over the whole range
/// of numbers.
pub const MINIMISE_ENDS_FOR_NAN: bool = true;

/// `balance` is correct where products underflow.
pub const BALANCE_OF_SUBNORMAL: bool = true;

/// The conjugate of the Poisson loss does not cancel for large targets.
pub const POISSON_CONJUGATE: bool = true;

/// Fits whose objective overflows are refused, and none returns a number that is not finite.
pub const OVERFLOW_IS_REFUSED: bool = true;

/// No model is worse than the best one without coefficients.
pub const NEVER_WORSE_THAN_ZERO: bool = true;

/// "Converged" always means that the gap is within the tolerance: a perfect fit has its own stop
/// reason.
pub const PERFECT_IS_NOT_CONVERGED: bool = true;

/// A stream with arrays of the wrong length is an error, not a panic.
pub const STREAM_LENGTHS_ARE_CHECKED: bool = true;

// ---------------------------------------------------------------- found by these targets

/// `balance` is correct where the factor by which it shrinks values underflows.
pub const BALANCE_FACTOR_UNDERFLOWS: bool = true;

/// The value and the conjugate of the Poisson loss are infinite, not NaN, where a term overflows.
pub const POISSON_OVERFLOW: bool = true;

/// The step of the log loss satisfies its equation also for `q` above 1e140, where it loses the new
/// margin: a row of margin 1 should get a margin of some hundreds, but gets 0.
pub const LOG_STEP_FOR_HUGE_Q: bool = false;

/// The step of the Poisson loss is correct also where `q e^p` is subnormal.
pub const POISSON_STEP_FOR_TINY_Q: bool = false;

/// The search for an intercept is as accurate as elsewhere where values are within some powers of
/// 10 of overflow.
pub const SEARCH_NEAR_OVERFLOW: bool = true;

/// A model whose `|w|^2` overflows is refused or replaced by zero coefficients: `prefer_zero` took
/// infinite <= infinite as a proof that it is better.
pub const INFINITE_PENALTY: bool = true;

/// The conjugate of the squared epsilon-insensitive loss is 0 at 0, even where `epsilon + |y|`
/// overflows.
pub const SQUARED_EPSILON_OVERFLOW: bool = true;

/// `rounding_of` neither overflows nor multiplies an infinite square by the 0 of a row without
/// entries. Otherwise the lower bound is infinite or NaN, which goes unnoticed if it comes with the
/// model that is replaced by zero coefficients at the end.
pub const ROUNDING_OVERFLOWS: bool = true;

/// The step of the Poisson loss is finite where the dual value itself, `y - e^p`, overflows. It is
/// finite where `q y` overflows; but after counts of 1e229 a row may get -infinity, and so may the
/// lower bound.
pub const POISSON_STEP_OVERFLOWS: bool = false;
