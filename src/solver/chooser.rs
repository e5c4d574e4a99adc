//! Which mechanism SDCA goes on with: a pure function of what has been observed.
//!
//! [`choose`] is asked after each evaluation. It looks at the history of the run, which has no times in it that count, and
//! at what each mechanism is foreseen to cost ([`super::schedule`] and [`super::hessian`] count work in nanoseconds of a
//! common machine; `cargo bench --bench foreseen` prints them beside what they cost here). So it chooses the same on all machines.
//!
//! The numbers that it decides by are those of [`TUNING`].

use crate::run::{Phase, Record, StopReason};
use crate::solver::schedule;

/// What the chooser decides by. Each number says where it was measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Up to this mean of `q`, in units of the targets, the first epoch is one of modified SGD. It gives a better model
    /// than a plain epoch at almost any mean `q`, but a smaller gap only if rows are small beside the regularisation: on
    /// a9a and ijcnn1 it is ahead up to about 0.1, for the log loss by a factor of 10 and more at 0.01, and behind from
    /// 1 on.
    pub(crate) sgd_mean_q: f64,
    /// Epochs to come from which on the outer loop is worth its evaluations, and momentum its steps: they do little
    /// before the rows at an end of their range are settled.
    pub(crate) many_epochs: f64,
    /// Below this mean `q`, in units of the smoothness, the outer loop does not pay.
    pub(crate) outer_mean_q: f64,
    /// The least unit of the smoothness, which is that of the squared hinge: below, a loss is all but one with kinks.
    /// (With 1, bloodcells with C = 0.01 and `debian_paths` with C = 100 took up to 1.3 times as long.)
    pub(crate) least_smoothness: f64,
    /// Epochs that a run is likely to take at least, where the loss is smooth: those to the first evaluation, and so many
    /// times the mean `q` in units of the smoothness, but no more than [`Self::likely_epochs`]. On a9a and ijcnn1 from
    /// C = 1 on, on california and skin always, Newton's method from 0 takes less; with more columns, as in digits and
    /// arrhythmia, a first look at the rate of the gap is cheap beside what it may save.
    pub(crate) epochs_per_q: f64,
    /// See [`Self::epochs_per_q`].
    pub(crate) likely_epochs: f64,
    /// What lies behind a run as a part of the work of Newton's method, from which on that may take over although the rate
    /// of the gap is no sure guide: where the loss has kinks, the gap falls slowly at first.
    pub(crate) paid_for: f64,
    /// Part of the epochs of a run after which a gap that falls too slowly is taken for what it is.
    pub(crate) patience: f64,
    /// The same if Newton's method is not certain to do better.
    pub(crate) last_patience: f64,
    /// Evaluations in a row without half the gap, after which Newton's method is given up.
    pub(crate) newton_failures: u32,
    /// Epochs, beyond as many as before, that passes are given after Newton's method has been given up.
    pub(crate) last_try: f64,
    /// How little `P` and `D` may change in the last half of these, as parts of `P` and of the gap, to be taken to stand
    /// still.
    pub(crate) still: (f64, f64),
    /// A gap up to this part of `P` may be what rounding leaves.
    pub(crate) close: f64,
}

/// What is used.
pub(crate) const TUNING: Tuning = Tuning {
    sgd_mean_q: 0.1,
    many_epochs: 10.0,
    outer_mean_q: 4.0,
    least_smoothness: 0.5,
    epochs_per_q: 4.0,
    likely_epochs: 10.0,
    paid_for: 1.0 / 3.0,
    patience: 0.05,
    last_patience: 0.5,
    newton_failures: 8,
    last_try: 50.0,
    still: (1e-10, 1e-2),
    close: 1e-6,
};

impl Tuning {
    /// What the mean `q` is measured by: it is `q / gamma` that makes steps on a smooth loss short.
    pub(crate) fn unit_of_q(&self, smoothness: f64) -> f64 {
        if smoothness > 0.0 {
            smoothness.max(self.least_smoothness)
        } else {
            1.0
        }
    }

    /// Whether rows are large enough for the outer loop to pay.
    pub(crate) fn outer_pays(&self, mean_q: f64, smoothness: f64) -> bool {
        mean_q > self.outer_mean_q * self.unit_of_q(smoothness)
    }

    /// Epochs that a cold start is likely to take at least; 0 if nothing is known.
    pub(crate) fn likely_epochs(&self, mean_q: f64, smoothness: f64) -> f64 {
        if smoothness > 0.0 {
            let of_size = self.epochs_per_q * mean_q / smoothness;
            (schedule::FIRST_EVALUATION + of_size).min(self.likely_epochs)
        } else {
            0.0
        }
    }
}

/// What makes up the acceleration: each earns its room in the table of docs/acceleration.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    ShortPasses,
    Momentum,
    OuterLoop,
    Newton,
    NewtonFromZero,
    Columns,
    Sample,
    Rows,
    ConjugateGradients,
    ModifiedSgd,
    Together,
}

impl Mechanism {
    /// Whether it may be used. `benches/ablation.py` compiles with the feature `ablation` and switches off those that the
    /// environment names; in any other build this is always true.
    #[cfg(not(feature = "ablation"))]
    #[inline(always)]
    pub(crate) fn is_on(self) -> bool {
        true
    }

    /// See above.
    #[cfg(feature = "ablation")]
    pub(crate) fn is_on(self) -> bool {
        let off = std::env::var("SDCA_RS_WITHOUT").unwrap_or_default();
        !off.split(',').any(|name| name == format!("{self:?}"))
    }
}

/// What Newton's method is foreseen to cost, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostEstimate {
    pub(crate) work: f64,
    /// Whether that is as good as certain. It is not where rows lie flat and conjugate gradients are the way: which rows
    /// those are has to be found out in many steps, each of them slow.
    pub(crate) is_certain: bool,
}

/// What is known when a run is to go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outlook<'h> {
    /// The evaluations so far.
    pub(crate) history: &'h [Record],
    /// See [`Budget`](crate::run::Budget).
    pub(crate) tol: f64,
    pub(crate) max_epochs: f64,
    /// What the run does now.
    pub(crate) phase: Phase,
    /// The mean of `q`, and what the loss is like.
    pub(crate) mean_q: f64,
    pub(crate) smoothness: f64,
    pub(crate) has_kinks: bool,
    /// What an epoch costs, in nanoseconds.
    pub(crate) epoch_work: f64,
    /// Epochs that the run is likely to take at least; 0 if nothing is known.
    pub(crate) likely_epochs: f64,
    /// Newton's method from the present point on, and from no model; `None` if it may not be used.
    pub(crate) newton: Option<CostEstimate>,
    pub(crate) newton_from_zero: Option<f64>,
    /// Whether momentum may begin, and the outer loop. Both are slow to the last digits, and so are not used where more
    /// than the tolerance is asked for.
    pub(crate) may_speed_up: bool,
    /// Evaluations in a row in which Newton's method has failed to halve the gap.
    pub(crate) newton_failures: u32,
    /// The epoch in which it was given up.
    pub(crate) gave_up_at: Option<f64>,
}

/// How to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// As before.
    GoOn,
    /// With a mechanism that begins now: momentum, the outer loop, Newton's method, or passes after the latter has failed.
    Begin(Phase),
    /// Not at all.
    Stop(StopReason),
}

/// Chooses how a run goes on.
pub(crate) fn choose(outlook: &Outlook<'_>, tuning: &Tuning) -> Choice {
    if outlook.phase == Phase::Newton {
        return if outlook.newton_failures < tuning.newton_failures {
            Choice::GoOn
        } else if outlook.is_within() {
            Choice::Stop(StopReason::Converged)
        } else {
            Choice::Begin(Phase::Plain)
        };
    }
    if outlook.stands_still(tuning) {
        Choice::Stop(StopReason::Precision)
    } else if outlook.newton_pays_at_once() || outlook.newton_pays(tuning) {
        Choice::Begin(Phase::Newton)
    } else if outlook.outer_pays(tuning) {
        Choice::Begin(Phase::Proximal)
    } else if outlook.momentum_pays(tuning) {
        Choice::Begin(Phase::Momentum)
    } else {
        Choice::GoOn
    }
}

impl Outlook<'_> {
    /// Whether the tolerance has been reached, and more is asked for.
    fn is_within(&self) -> bool {
        let last = self.history.last();
        last.is_some_and(|last| last.certificate.is_within(self.tol))
    }

    /// Whether rounding keeps the run where it is: neither method gets any further.
    fn stands_still(&self, tuning: &Tuning) -> bool {
        let (Some(since), Some(last)) = (self.gave_up_at, self.history.last()) else {
            return false;
        };
        let halfway = 0.5 * (since + last.epoch);
        let Some(before) = self.history.iter().rfind(|record| record.epoch <= halfway) else {
            return false;
        };
        let (now, before) = (last.certificate, before.certificate);
        let room = (tuning.still.0 * now.primal).min(tuning.still.1 * now.gap);
        last.epoch > 2.0 * since + tuning.last_try
            && now.gap <= tuning.close * now.primal
            && (now.primal - before.primal).abs() <= room
            && (now.dual - before.dual).abs() <= room
    }

    /// Whether Newton's method is cheaper than to find out how fast the gap falls.
    fn newton_pays_at_once(&self) -> bool {
        let plain = self.likely_epochs * self.epoch_work;
        self.history.len() == 1 && self.newton_from_zero.is_some_and(|newton| newton < plain)
    }

    /// Whether Newton's method is cheaper than to go on.
    fn newton_pays(&self, tuning: &Tuning) -> bool {
        let (Some(newton), [first, .., last]) = (self.newton, self.history) else {
            return false;
        };
        let Some(mut to_come) = schedule::epochs_to_come(self.history, self.tol) else {
            return false;
        };
        let is_smooth = self.smoothness > 0.0;
        // While `P` has risen above where it began, the rate of the gap says little. (bloodcells, squared hinge,
        // C = 0.01, to 1e-4: Newton's method from epoch 2 on takes 205 ms, SDCA alone 85 ms.)
        if is_smooth && last.certificate.primal > first.certificate.primal {
            let in_theory =
                schedule::epochs_in_theory(last, self.tol, self.mean_q / self.smoothness);
            to_come = to_come.min(in_theory);
        }
        // Beyond the tolerance every digit counts: at kinks, passes find more of them.
        if self.is_within() && !is_smooth {
            return false;
        }
        // Where the loss is smooth the gap falls steadily from the start. Elsewhere what lies behind must be as much as a
        // part of what a wrong choice may cost.
        let is_paid_for = last.epoch * self.epoch_work > tuning.paid_for * newton.work;
        let patience = if newton.is_certain {
            tuning.patience
        } else {
            tuning.last_patience
        };
        let is_hopeless =
            last.epoch + to_come > self.max_epochs && last.epoch > patience * self.max_epochs;
        let is_time = is_hopeless || (newton.is_certain && (is_smooth || is_paid_for));
        to_come * self.epoch_work > newton.work && is_time
    }

    /// Whether many epochs are to come.
    fn is_far_from_the_end(&self, tuning: &Tuning) -> bool {
        let to_come = schedule::epochs_to_come(self.history, self.tol);
        to_come.is_some_and(|to_come| to_come > tuning.many_epochs)
    }

    /// Whether the outer loop is cheaper than to go on.
    ///
    /// Never for a loss without kinks whose curvature has no bound (Poisson): its steps are short where the curvature is
    /// large, whatever `q` is, and the loop takes up to ten times as many epochs. (300 x 1000, C = 100: 217 and 24.)
    fn outer_pays(&self, tuning: &Tuning) -> bool {
        self.may_speed_up
            && Mechanism::OuterLoop.is_on()
            && self.phase != Phase::Proximal
            && self.is_far_from_the_end(tuning)
            && (self.smoothness > 0.0 || self.has_kinks)
            && tuning.outer_pays(self.mean_q, self.smoothness)
    }

    /// Whether momentum saves epochs, where the outer loop might have begun, and has not. (In that loop it saved epochs,
    /// but no time.)
    fn momentum_pays(&self, tuning: &Tuning) -> bool {
        self.may_speed_up
            && Mechanism::Momentum.is_on()
            && !matches!(self.phase, Phase::Proximal | Phase::Momentum)
            && self.is_far_from_the_end(tuning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Certificate;

    /// Evaluations at these epochs that have found these gaps, where `P` is 1.
    fn history(evaluations: &[(f64, f64)]) -> Vec<Record> {
        let record = |&(epoch, gap): &(f64, f64)| Record {
            epoch,
            seconds: 0.0,
            cpu_seconds: 0.0,
            certificate: Certificate::new(1.0, 1.0 - gap, 0),
            phase: Phase::Plain,
        };
        evaluations.iter().map(record).collect()
    }

    /// A hinge-like loss with large rows, 96 epochs from the end; nothing but passes may go on.
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
        // Nothing is known before the second evaluation.
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
        // Mean q, smoothness, kinks, what the run does, what it chooses.
        let cases = [
            (10.0, 0.0, true, Phase::Plain, begin(Phase::Proximal)),
            (10.0, 0.0, true, Phase::Momentum, begin(Phase::Proximal)),
            (10.0, 0.0, true, Phase::Proximal, Choice::GoOn),
            (3.0, 0.0, true, Phase::Plain, begin(Phase::Momentum)),
            (3.0, 0.0, true, Phase::Momentum, Choice::GoOn),
            // In units of the smoothness, of which the least is 1/2.
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
        // The gap falls by a fifth in two epochs: some 60 epochs of 1e6 ns are to come.
        let newton = |work, is_certain| Some(CostEstimate { work, is_certain });
        let begin = Choice::Begin(Phase::Newton);
        // CostEstimate, smoothness, what is chosen.
        let cases = [
            (newton(1e7, true), 1.0, begin),
            (newton(1e8, true), 1.0, Choice::GoOn),
            // Many steps of conjugate gradients may be in vain.
            (newton(1e7, false), 1.0, Choice::GoOn),
            // With kinks: once 4 epochs are a third of the work.
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
        // A gap that hardly falls.
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
        // Nothing is known of losses with kinks.
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
        // More than the tolerance was asked for, and cannot be had.
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
        // Not yet, and not where rounding is too small to be the reason.
        assert_eq!(after(1e-8, 60.0), Choice::GoOn);
        assert_eq!(after(1e-5, 80.0), Choice::GoOn);
    }

    #[test]
    fn a_first_epoch_is_likely_to_be_followed_by_more_the_larger_the_rows() {
        assert_eq!(TUNING.likely_epochs(1.0, 4.0), 3.0);
        assert_eq!(TUNING.likely_epochs(100.0, 4.0), TUNING.likely_epochs);
        assert_eq!(TUNING.likely_epochs(100.0, 0.0), 0.0);
    }
}
