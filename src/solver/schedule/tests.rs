use super::*;
use crate::run::{Certificate, Phase};

const TOL: f64 = 1e-4;

/// The evaluations at these epochs, with these gaps, where `P` is 1.
pub(in crate::solver) fn history(evaluations: &[(f64, f64)]) -> Vec<Record> {
    let record = |&(epoch, gap): &(f64, f64)| Record {
        epoch,
        seconds: 0.0,
        cpu_seconds: 0.0,
        certificate: Certificate::new(1.0, 1.0 - gap, 0),
        phase: Phase::Plain,
    };
    evaluations.iter().map(record).collect()
}

fn next(evaluations: &[(f64, f64)], cost: f64) -> f64 {
    next_epoch_to_evaluate(&history(evaluations), TOL, cost)
}

#[test]
fn evaluations_come_early_only_where_that_is_a_good_bet() {
    assert_eq!(next(&[(0.0, 1.0)], 1.0), FIRST_EVALUATION);
    // Almost there: sqrt(2 * 4) epochs later would be too late.
    let close = [(0.0, 1.0), (2.0, 6e-4), (4.0, 1.07e-4)];
    assert_eq!(next(&close, 1.0), 5.0);
    // What a success saves must be more than the cost of an evaluation.
    assert_eq!(next(&[(0.0, 1.0), (2.0, 6e-4), (4.0, 1.9e-4)], 1.0), 7.0);
    // The first epochs say little.
    assert_eq!(next(&[(0.0, 1.0), (2.0, 1.07e-4)], 2.0), 5.0);
    // Far away, but not beyond four times the epochs so far.
    assert_eq!(next(&[(0.0, 1.0), (2.0, 0.5), (4.0, 0.4)], 1.0), 16.0);
    // The user wants all epochs, or the gap does not fall.
    let all = history(&[(0.0, 1.0), (2.0, 0.5), (40.0, 0.4)]);
    assert_eq!(next_epoch_to_evaluate(&all, 0.0, 1.0), 80.0);
    assert_eq!(next(&[(0.0, 1.0), (2.0, 0.5), (4.0, 0.6)], 1.0), 7.0);
}

#[test]
fn the_latest_rate_is_that_of_several_epochs() {
    let to_come = |evaluations| epochs_to_come(&history(evaluations), TOL);
    assert_eq!(to_come(&[(0.0, 1.0)]), None);
    // From the start, because there is no other evaluation.
    let halving = to_come(&[(0.0, 1.0), (2.0, 1e-2)]).expect("a rate");
    assert!((halving - 2.0).abs() < 1e-12, "{halving}");
    // Not the last epoch alone, in which the gap hardly fell.
    let slower = to_come(&[(0.0, 1.0), (2.0, 1e-2), (4.0, 1.1e-3), (5.0, 1e-3)]);
    assert!((slower.expect("a rate") - 3.0).abs() < 1e-12, "{slower:?}");
    assert_eq!(
        to_come(&[(0.0, 1.0), (2.0, 0.1), (8.0, 0.2)]),
        Some(f64::INFINITY)
    );
}

#[test]
fn theory_needs_the_more_epochs_the_longer_the_rows() {
    let distance = 1e3;
    let epochs = |q| epochs_in_theory(&history(&[(2.0, distance * TOL)])[0], TOL, q);
    assert!((epochs(0.0) - distance.ln()).abs() < 1e-9);
    assert!((epochs(3.0) - 4.0 * (4.0 * distance).ln()).abs() < 1e-9);
}
