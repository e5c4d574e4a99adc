//! Step lengths of the subgradient methods on `P`.

use crate::error::Error;
use crate::loss::Link;
use crate::loss::blocks::LossBlocks;
use crate::problem::Problem;
use crate::run::parameter;

/// The length of step `t`, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum LearningRate {
    /// `1 / (lambda t)`.
    ///
    /// For a loss that is not Lipschitz-continuous (such as the squared one), the first steps would
    /// be so long that the model overflows. For such losses it is `1 / (lambda (t + t0))`, with
    /// `t0` such that the first step is as long as a constant one.
    #[default]
    Pegasos,
    /// `eta0`.
    Constant {
        /// `None` is `1 / (lambda + R / gamma)`, where `1 / gamma` bounds the curvature of the loss
        /// (1 if it is not smooth) and `R` that of the mean of `(x_i.w)^2 / 2` over a batch: the
        /// largest `|x_i|^2` for one row, the largest eigenvalue, or the mean of `|x_i|^2`, for all.
        eta0: Option<f64>,
    },
    /// `eta0 / t^power`.
    InvScaling {
        /// As for [`Self::Constant`].
        eta0: Option<f64>,
        /// The usual values are 1/2 and 1.
        power: f64,
    },
}

const ETA0: &str = "a number > 0 and at most 1 / lambda, or None";
const POWER: &str = "a number > 0 and at most 1";

impl LearningRate {
    /// The variant with this name in the user interface.
    pub fn named(name: &str, eta0: Option<f64>, power: f64) -> Result<Self, Error> {
        if let Some(eta) = eta0
            && !(eta.is_finite() && eta > 0.0)
        {
            return Err(parameter("eta0", eta, ETA0));
        }
        if !(0.0 < power && power <= 1.0) {
            return Err(parameter("power_t", power, POWER));
        }
        match name {
            "pegasos" => Ok(Self::Pegasos),
            "constant" => Ok(Self::Constant { eta0 }),
            "invscaling" => Ok(Self::InvScaling { eta0, power }),
            _ => Err(parameter(
                "learning_rate",
                format!("{name:?}"),
                "one of pegasos, constant, invscaling",
            )),
        }
    }

    /// How fast steps get shorter.
    pub(crate) fn power(self) -> f64 {
        match self {
            Self::Pegasos => 1.0,
            Self::Constant { .. } => 0.0,
            Self::InvScaling { power, .. } => power,
        }
    }

    /// The step lengths on a problem whose penalty has the curvature `lambda`, where `curvature`
    /// bounds that of the mean loss as a function of `w`.
    pub(crate) fn steps(
        self,
        loss: &dyn LossBlocks,
        lambda: f64,
        curvature: f64,
    ) -> Result<Steps, Error> {
        let safe = 1.0 / (lambda + curvature);
        let first = |eta0: Option<f64>| match eta0 {
            None => Ok(safe),
            Some(eta) if eta > 0.0 && eta * lambda <= 1.0 => Ok(eta),
            Some(eta) => Err(parameter(
                "eta0",
                format!("{eta} for lambda = {lambda:e}"),
                ETA0,
            )),
        };
        let (first, offset) = match self {
            Self::Pegasos if loss.lipschitz().is_finite() => (1.0 / lambda, 0.0),
            Self::Pegasos => (1.0 / lambda, curvature / lambda),
            Self::Constant { eta0 } => (first(eta0)?, 0.0),
            Self::InvScaling { eta0, power } if 0.0 < power && power <= 1.0 => (first(eta0)?, 0.0),
            Self::InvScaling { power, .. } => {
                return Err(parameter("power_t", power, POWER));
            }
        };
        Ok(Steps {
            first,
            power: self.power(),
            offset,
            lambda,
        })
    }
}

/// Step lengths `first / (t + offset)^power`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    pub(crate) first: f64,
    pub(crate) power: f64,
    pub(crate) offset: f64,
    pub(crate) lambda: f64,
}

impl Steps {
    /// The length `eta` of a step, and `1 - eta lambda`, which is 0 in the first step of Pegasos.
    ///
    /// The step is the fraction `share` of a full one: 1, or less for a batch of fewer rows than
    /// the others. `t` is the sum of these fractions up to and including this step, which is the
    /// number of the step if all are full. So every row has the same weight, whatever batch it is
    /// in.
    pub(crate) fn at(&self, t: f64, share: f64) -> (f64, f64) {
        let t = t + self.offset;
        if self.power == 1.0 && (self.first * self.lambda - 1.0).abs() < 1e-15 {
            (share * self.first / t, (t - share) / t)
        } else {
            let eta = share * self.first / t.powf(self.power);
            (eta, (1.0 - eta * self.lambda).max(0.0))
        }
    }
}

/// A bound of the second derivative of the loss: `1 / gamma` for a smooth loss, 1 for one with
/// kinks. For a loss whose curvature is unbounded (Poisson), it is the mean around the prediction
/// for the largest target.
pub(crate) fn loss_curvature(problem: &Problem<'_>) -> f64 {
    let loss = problem.loss();
    if loss.smoothness() > 0.0 {
        return 1.0 / loss.smoothness();
    }
    if loss.lipschitz().is_finite() {
        return 1.0;
    }
    let targets = problem.data().positive_rows().map(|i| problem.target(i));
    let largest = targets.fold(1.0, f64::max);
    let p = match loss.link() {
        Link::Log => largest.ln(),
        Link::Identity | Link::Logit => largest,
    };
    (loss.slope(p + 1.0, largest) - loss.slope(p - 1.0, largest)) / 2.0
}
