//! Choices from the input that several targets share.

use sdca_rs::loss::Target;
use sdca_rs::solver::LearningRate;

use crate::bytes::Bytes;

/// A target that the loss accepts.
pub fn target(target: Target, bytes: &mut Bytes<'_>) -> f64 {
    match target {
        Target::Label => bytes.pick(&[1.0, -1.0]),
        Target::Real => bytes.number(),
        Target::NonNegative => bytes.size(),
    }
}

/// Any step lengths.
pub fn learning_rate(bytes: &mut Bytes<'_>) -> LearningRate {
    let kind = bytes.below(3);
    let eta0 = if bytes.flag() {
        Some(bytes.size())
    } else {
        None
    };
    match kind {
        0 => LearningRate::Pegasos,
        1 => LearningRate::Constant { eta0 },
        _ => LearningRate::InvScaling {
            eta0,
            power: (1.0 + f64::from(bytes.byte())) / 256.0,
        },
    }
}
