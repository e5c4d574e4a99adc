//! What most programs need, in one line: `use sdca_rs::prelude::*;`

pub use crate::classifier::Classifier;
pub use crate::data::Data;
pub use crate::error::Error;
pub use crate::loss::{
    Absolute, EpsilonInsensitive, Hinge, Huber, Log, ModifiedHuber, Poisson, Quantile, SmoothHinge,
    Squared, SquaredEpsilonInsensitive, SquaredHinge,
};
pub use crate::problem::{Problem, Regularisation};
pub use crate::run::{Budget, Certificate, Fit, NoMonitor, Progress, StopReason};
pub use crate::solver::{Sdca, Solver, Start};
