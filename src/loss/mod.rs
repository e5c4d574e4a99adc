//! Loss functions: the trait, the registry, and one short file per loss.
//!
//! Let `p` be the prediction for a row and `y` its target. A loss `phi(p; y)` is convex in `p` and
//! enters every solver through a few scalar functions ([`Loss`]). The most important is
//! [`Loss::step`], the exact maximiser of the dual along one coordinate. A loss knows nothing about
//! rows, weights or solvers.
//!
//! **Adding a loss** takes one file here and one line in [`registry!`](self): write the formulas,
//! then run `cargo test`, which checks the laws of `tests/rust/loss_laws.rs` for everything in the
//! registry. The name then appears in Python, the documentation and the estimator checks
//! automatically.

mod absolute;
pub(crate) mod blocks;
mod epsilon_insensitive;
mod functions;
mod hinge;
mod huber;
mod log;
mod modified_huber;
mod poisson;
mod quantile;
mod smooth_hinge;
mod squared;
mod squared_epsilon_insensitive;
mod squared_hinge;

pub use absolute::Absolute;
pub use epsilon_insensitive::EpsilonInsensitive;
pub use hinge::Hinge;
pub use huber::Huber;
pub use log::Log;
pub use modified_huber::ModifiedHuber;
pub use poisson::Poisson;
pub use quantile::Quantile;
pub use smooth_hinge::SmoothHinge;
pub use squared::Squared;
pub use squared_epsilon_insensitive::SquaredEpsilonInsensitive;
pub use squared_hinge::SquaredHinge;

use crate::error::Error;

/// A convex loss `phi(p; y)` with its conjugate and its proximal step.
///
/// Signs: the dual value `a` of a row is such that `-a` lies in the subdifferential of `phi`, so
/// that `w = (1 / (lambda W)) sum_i c_i a_i x_i`. All functions are total: for any finite argument
/// they return a number (infinite where the formula is infinite), never NaN.
pub trait Loss: Copy + Send + Sync + 'static {
    /// The name of the loss for users.
    const NAME: &'static str;
    /// The formula of `phi(p; y)` in one line.
    const FORMULA: &'static str;
    /// The targets that it accepts, and so whether it classifies or regresses.
    const TARGET: Target;
    /// What a prediction means.
    const LINK: Link = Link::Identity;
    /// Its shape parameter, if any.
    const PARAM: Option<Param> = None;
    /// The smooth loss most similar to this one, if this one is not smooth.
    const SMOOTH_RELATIVE: Option<&'static str> = None;
    /// Whether its curvature is constant, so that Newton's method takes a single step.
    const IS_QUADRATIC: bool = false;
    /// The number of Newton steps that a fit typically takes if the loss is smooth but not
    /// quadratic. It is larger if the loss is flat on one side and straight on the other, because
    /// only the rows in between contribute curvature.
    const NEWTON_STEPS: f64 = 5.0;
    /// The work of a step in addition to the arithmetic on its row, in approximate nanoseconds.
    const STEP_WORK: f64 = 20.0;

    /// The loss with this shape parameter, whose range is not checked; ignored by a loss that has
    /// none.
    fn with_param(param: f64) -> Self;

    /// `phi(p; y)`.
    fn value(&self, p: f64, y: f64) -> f64;

    /// A subgradient of `phi` at `p`; its negative is a feasible dual value.
    fn slope(&self, p: f64, y: f64) -> f64;

    /// `phi*(-a; y) = sup_p  -a p - phi(p; y)`, infinite outside [`Self::dual_range`].
    fn conjugate(&self, a: f64, y: f64) -> f64;

    /// The SDCA step `argmax_t  -phi*(-t) - t z - q t^2 / 2`, for `q >= 0`.
    ///
    /// With `p = z + q t`, this is the proximal operator of `q phi`: `t = (p - z) / q = -phi'(p)`.
    /// `a` is the current dual value and serves only as a starting point: beyond rounding, the
    /// result must not depend on it.
    fn step(&self, z: f64, q: f64, a: f64, y: f64) -> f64;

    /// `phi''` at the point where `-phi' = a`. It is infinite at a kink, if `-a` is strictly
    /// between the slopes on its two sides.
    ///
    /// Where two pieces of `phi` meet, it is the curvature of either piece.
    fn curvature(&self, a: f64, y: f64) -> f64;

    /// The closed interval of valid dual values. It always contains 0.
    fn dual_range(&self, y: f64) -> (f64, f64);

    /// The smallest `L` with `|phi(p) - phi(p')| <= L |p - p'|`; infinite if there is none.
    fn lipschitz(&self) -> f64;

    /// The largest `gamma` such that `phi'` is `1 / gamma`-Lipschitz; 0 if `phi` is not smooth.
    fn smoothness(&self) -> f64;

    /// Whether `phi'` has a jump. (If it has none, it may still grow without bound, as for
    /// Poisson.)
    fn has_kinks(&self) -> bool {
        self.smoothness() == 0.0 && self.lipschitz().is_finite()
    }
}

/// The targets that a loss accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Target {
    /// Two classes, encoded as -1 and +1: the loss makes a classifier.
    Label,
    /// Any finite number: the loss makes a regressor.
    Real,
    /// Any finite number >= 0: the loss makes a regressor.
    NonNegative,
}

impl Target {
    /// Whether `y` is an accepted target.
    pub fn accepts(self, y: f64) -> bool {
        match self {
            Self::Label => y == 1.0 || y == -1.0,
            Self::Real => y.is_finite(),
            Self::NonNegative => y.is_finite() && y >= 0.0,
        }
    }

    /// The accepted values in words.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Label => "-1 or +1",
            Self::Real => "finite numbers",
            Self::NonNegative => "finite numbers >= 0",
        }
    }
}

/// What `p = x.w + b` means for the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Link {
    /// `p` is the prediction itself or, for labels, its sign is.
    Identity,
    /// `p` is the log-odds of the class +1.
    Logit,
    /// `p` is the logarithm of the expected target.
    Log,
}

/// The shape parameter of a loss.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its name in the formula.
    pub name: &'static str,
    /// The default value.
    pub default: f64,
    /// The allowed range in words.
    pub expected: &'static str,
    /// Whether a value is in range.
    pub accepts: fn(f64) -> bool,
}

impl Param {
    const fn positive(name: &'static str, default: f64) -> Self {
        Self {
            name,
            default,
            expected: "a finite number > 0",
            accepts: |v| v.is_finite() && v > 0.0,
        }
    }

    const fn non_negative(name: &'static str, default: f64) -> Self {
        Self {
            name,
            default,
            expected: "a finite number >= 0",
            accepts: |v| v.is_finite() && v >= 0.0,
        }
    }

    const fn fraction(name: &'static str, default: f64) -> Self {
        Self {
            name,
            default,
            expected: "a number strictly between 0 and 1",
            accepts: |v| 0.0 < v && v < 1.0,
        }
    }
}

/// The registry entry of a loss.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// See [`Loss::NAME`].
    pub name: &'static str,
    /// See [`Loss::FORMULA`].
    pub formula: &'static str,
    /// See [`Loss::TARGET`].
    pub target: Target,
    /// See [`Loss::LINK`].
    pub link: Link,
    /// See [`Loss::PARAM`].
    pub param: Option<Param>,
    /// Whether the slope is Lipschitz-continuous; see [`Loss::smoothness`].
    pub is_smooth: fn() -> bool,
}

impl Spec {
    const fn of<L: Loss>() -> Self {
        Self {
            name: L::NAME,
            formula: L::FORMULA,
            target: L::TARGET,
            link: L::LINK,
            param: L::PARAM,
            is_smooth: || {
                L::with_param(L::PARAM.map_or(f64::NAN, |p| p.default)).smoothness() > 0.0
            },
        }
    }
}

/// Work on a loss whose type is known only at run time; see [`dispatch`].
pub trait Visitor {
    /// The result of the work.
    type Out;
    /// Does the work.
    fn visit<L: Loss>(self, loss: L) -> Self::Out;
}

macro_rules! registry {
    ($($loss:ty),+ $(,)?) => {
        /// Every loss of the crate, in the order of the documentation.
        pub const SPECS: &[Spec] = &[$(Spec::of::<$loss>()),+];

        /// Builds the loss called `name` (with its default shape parameter if `param` is `None`)
        /// and hands it to `visitor`: the only place where a name becomes a type.
        pub fn dispatch<V: Visitor>(name: &str, param: Option<f64>, visitor: V) -> Result<V::Out, Error> {
            $(if name == <$loss>::NAME {
                return build::<$loss>(param).map(|loss| visitor.visit(loss));
            })+
            Err(Error::UnknownLoss { found: name.to_owned() })
        }
    };
}

registry! {
    Hinge,
    SquaredHinge,
    SmoothHinge,
    Log,
    ModifiedHuber,
    Squared,
    Absolute,
    Huber,
    EpsilonInsensitive,
    SquaredEpsilonInsensitive,
    Quantile,
    Poisson,
}

/// The names of all losses.
pub fn names() -> Vec<&'static str> {
    SPECS.iter().map(|spec| spec.name).collect()
}

/// The names of the smooth losses.
pub(crate) fn smooth_names() -> Vec<&'static str> {
    SPECS
        .iter()
        .filter(|spec| (spec.is_smooth)())
        .map(|spec| spec.name)
        .collect()
}

fn build<L: Loss>(param: Option<f64>) -> Result<L, Error> {
    match (L::PARAM, param) {
        (None, None) => Ok(L::with_param(f64::NAN)),
        (None, Some(found)) => Err(Error::NoLossParam {
            loss: L::NAME,
            found,
        }),
        (Some(spec), None) => Ok(L::with_param(spec.default)),
        (Some(spec), Some(found)) if (spec.accepts)(found) => Ok(L::with_param(found)),
        (Some(spec), Some(found)) => Err(Error::LossParam {
            loss: L::NAME,
            param: spec.name,
            found,
            expected: spec.expected,
        }),
    }
}

macro_rules! shaped {
    ($($loss:ident: $param:ident,)+) => {$(
        impl $loss {
            /// The loss with this shape parameter, after checking its range.
            pub fn new($param: f64) -> Result<Self, Error> {
                build(Some($param))
            }
        }

        impl Default for $loss {
            /// The loss with its default shape parameter.
            fn default() -> Self {
                let param = Self::PARAM.map_or(f64::NAN, |param| param.default);
                Self::with_param(param)
            }
        }
    )+};
}

shaped! {
    SmoothHinge: gamma,
    Huber: delta,
    EpsilonInsensitive: epsilon,
    SquaredEpsilonInsensitive: epsilon,
    Quantile: quantile,
}

// ---------------------------------------------------------------- formulas that losses share

/// `numerator / denominator` clamped to `[low, high]`, an interval around 0; 0 for `0 / 0`.
///
/// The step of every clipped loss. The quotient may overflow, which the limits take care of.
#[inline]
fn clipped_ratio(numerator: f64, denominator: f64, low: f64, high: f64) -> f64 {
    if numerator == 0.0 {
        0.0
    } else {
        (numerator / denominator).clamp(low, high)
    }
}

/// `sign(v) max(|v| - epsilon, 0)`.
#[inline]
fn soft_threshold(v: f64, epsilon: f64) -> f64 {
    (v.abs() - epsilon).max(0.0).copysign(v)
}

/// The curvature of a piecewise linear loss.
#[inline]
fn kink_if(kink: bool) -> f64 {
    if kink { f64::INFINITY } else { 0.0 }
}

/// The interval of `a = y b` for labels `y` in {-1, +1} and `b` in `[0, top]`.
#[inline]
fn label_range(y: f64, top: f64) -> (f64, f64) {
    if y > 0.0 { (0.0, top) } else { (-top, 0.0) }
}
