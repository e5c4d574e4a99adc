use super::*;
use crate::solver::schedule::tests::history;

/// A hinge-like loss with large rows, 96 epochs from the end; only passes are allowed.
fn outlook(history: &[Record]) -> Outlook<'_> {
    Outlook {
        history,
        tol: 1e-4,
        max_epochs: 1000.0,
        phase: Phase::Plain,
        mean_q: 10.0,
        smoothness: 0.0,
        has_kinks: true,
        epoch_work: 1e6,
        likely_epochs: 0.0,
        newton: None,
        newton_from_zero: None,
        may_speed_up: false,
        newton_failures: 0,
        gave_up_at: None,
    }
}

const SLOW: [(f64, f64); 3] = [(0.0, 1.0), (2.0, 0.1), (4.0, 0.08)];

fn chosen(outlook: Outlook<'_>) -> Choice {
    choose(&outlook, &TUNING)
}

#[test]
fn nothing_begins_where_nothing_may_or_the_end_is_near() {
    let slow = history(&SLOW);
    assert_eq!(chosen(outlook(&slow)), Choice::GoOn);
    let near = history(&[(0.0, 1.0), (2.0, 1e-2), (4.0, 5e-4)]);
    let may = Outlook {
        may_speed_up: true,
        ..outlook(&near)
    };
    assert_eq!(chosen(may), Choice::GoOn);
    // There is no rate before the second evaluation.
    let start = history(&[(0.0, 1.0)]);
    let may = Outlook {
        may_speed_up: true,
        ..outlook(&start)
    };
    assert_eq!(chosen(may), Choice::GoOn);
}

#[test]
fn large_rows_take_the_outer_loop_and_small_ones_momentum() {
    let slow = history(&SLOW);
    let may = Outlook {
        may_speed_up: true,
        ..outlook(&slow)
    };
    let begin = |phase| Choice::Begin(phase);
    // Mean q, smoothness, kinks, present phase, choice.
    let cases = [
        (10.0, 0.0, true, Phase::Plain, begin(Phase::Proximal)),
        (10.0, 0.0, true, Phase::Momentum, begin(Phase::Proximal)),
        (10.0, 0.0, true, Phase::Proximal, Choice::GoOn),
        (3.0, 0.0, true, Phase::Plain, begin(Phase::Momentum)),
        (3.0, 0.0, true, Phase::Momentum, Choice::GoOn),
        // In units of the smoothness, which is at least 1/2.
        (10.0, 4.0, false, Phase::Plain, begin(Phase::Momentum)),
        (17.0, 4.0, false, Phase::Plain, begin(Phase::Proximal)),
        (2.5, 0.5, false, Phase::Plain, begin(Phase::Proximal)),
        (1.5, 1e-3, false, Phase::Plain, begin(Phase::Momentum)),
        // Poisson.
        (10.0, 0.0, false, Phase::Plain, begin(Phase::Momentum)),
    ];
    for (mean_q, smoothness, has_kinks, phase, expected) in cases {
        let case = Outlook {
            phase,
            mean_q,
            smoothness,
            has_kinks,
            ..may
        };
        assert_eq!(chosen(case), expected, "{case:?}");
    }
}

#[test]
fn newtons_method_begins_where_it_is_cheaper_and_its_cost_is_known() {
    let slow = history(&SLOW);
    // The gap falls by a fifth in two epochs: some 60 epochs of 1e6 ns are left.
    let newton = |work, is_certain| Some(CostEstimate { work, is_certain });
    let begin = Choice::Begin(Phase::Newton);
    // Estimated cost, smoothness, choice.
    let cases = [
        (newton(1e7, true), 1.0, begin),
        (newton(1e8, true), 1.0, Choice::GoOn),
        // Many steps of conjugate gradients may achieve nothing.
        (newton(1e7, false), 1.0, Choice::GoOn),
        // With kinks: once 4 epochs cost a third of the method.
        (newton(1.1e7, true), 0.0, begin),
        (newton(1.3e7, true), 0.0, Choice::GoOn),
    ];
    for (newton, smoothness, expected) in cases {
        let case = Outlook {
            newton,
            smoothness,
            has_kinks: smoothness == 0.0,
            mean_q: 1.0,
            ..outlook(&slow)
        };
        assert_eq!(chosen(case), expected, "{case:?}");
    }
}

#[test]
fn a_hopeless_run_tries_newtons_method_even_where_that_is_uncertain() {
    // The gap hardly falls.
    let hopeless = |epoch| history(&[(0.0, 1.0), (epoch / 2.0, 0.1), (epoch, 0.0999)]);
    let uncertain = |history: &[Record]| {
        chosen(Outlook {
            newton: Some(CostEstimate {
                work: 1e9,
                is_certain: false,
            }),
            ..outlook(history)
        })
    };
    assert_eq!(uncertain(&hopeless(400.0)), Choice::GoOn);
    assert_eq!(uncertain(&hopeless(600.0)), Choice::Begin(Phase::Newton));
}

#[test]
fn newtons_method_begins_at_once_where_that_is_cheaper_than_a_first_look() {
    let start = history(&[(0.0, 1.0)]);
    let from_zero = |work, likely_epochs| {
        chosen(Outlook {
            newton_from_zero: Some(work),
            likely_epochs,
            ..outlook(&start)
        })
    };
    assert_eq!(from_zero(5e6, 6.0), Choice::Begin(Phase::Newton));
    assert_eq!(from_zero(7e6, 6.0), Choice::GoOn);
    // Nothing is known about losses with kinks.
    assert_eq!(from_zero(1.0, 0.0), Choice::GoOn);
}

#[test]
fn newtons_method_ends_after_too_many_failures() {
    let at = |gap: f64, newton_failures| {
        chosen(Outlook {
            phase: Phase::Newton,
            newton_failures,
            ..outlook(&history(&[(0.0, 1.0), (2.0, gap)]))
        })
    };
    assert_eq!(at(0.1, 7), Choice::GoOn);
    assert_eq!(at(0.1, 8), Choice::Begin(Phase::Plain));
    // More than the tolerance was wanted, but cannot be reached.
    assert_eq!(at(1e-5, 8), Choice::Stop(StopReason::Converged));
}

#[test]
fn a_run_that_rounding_keeps_in_place_stops() {
    let after = |gap: f64, epoch| {
        chosen(Outlook {
            gave_up_at: Some(10.0),
            tol: 1e-9,
            ..outlook(&history(&[(10.0, 1e-8), (30.0, gap), (epoch, gap)]))
        })
    };
    assert_eq!(after(1e-8, 80.0), Choice::Stop(StopReason::Precision));
    // Too early, or with a gap too large to be due to rounding.
    assert_eq!(after(1e-8, 60.0), Choice::GoOn);
    assert_eq!(after(1e-5, 80.0), Choice::GoOn);
}

#[test]
fn a_first_epoch_is_likely_to_be_followed_by_more_the_larger_the_rows() {
    assert_eq!(TUNING.likely_epochs(1.0, 4.0), 3.0);
    assert_eq!(TUNING.likely_epochs(100.0, 4.0), TUNING.likely_epochs);
    assert_eq!(TUNING.likely_epochs(100.0, 0.0), 0.0);
}
