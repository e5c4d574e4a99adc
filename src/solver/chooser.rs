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
mod tests;
