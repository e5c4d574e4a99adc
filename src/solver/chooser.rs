//! Decides which mechanism SDCA continues with: a pure function of what has been observed.
//!
//! [`choose`] is called after each evaluation. It uses the history of the run, except for the times
//! in it, and the estimated cost of each mechanism ([`super::schedule`] and [`super::hessian`]
//! count work in nanoseconds of a typical machine; `cargo bench --bench foreseen` prints the
//! estimates beside the costs measured on this one). So the choice is the same on all machines.
//!
//! Its thresholds are in [`TUNING`].

use crate::run::{Phase, Record, StopReason};
use crate::solver::schedule;

/// The thresholds of the chooser. Each comment says where the number was measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Up to this mean of `q`, in units of the targets, the first epoch uses modified SGD. That
    /// gives a better model than a plain epoch at almost any mean `q`, but a smaller gap only if
    /// rows are small relative to the regularisation: on a9a and ijcnn1 it is ahead up to about
    /// 0.1, for the log loss by a factor of 10 and more at 0.01, and behind from 1 on.
    pub(crate) sgd_mean_q: f64,
    /// A start for another problem, such as one with another `C`, is dropped for modified SGD if its
    /// gap is a larger fraction of `P`. (On ijcnn1, `log`, `C` from 0.01 to 0.1, an epoch of
    /// modified SGD leaves 0.0002 to 0.02; a start for a third of `C` is at 0.25 to 0.4.)
    pub(crate) good_start: f64,
    /// From this number of epochs still to come, the outer loop is worth its evaluations and
    /// momentum its steps. Before it is settled which rows are at an end of their range, they
    /// achieve little.
    pub(crate) many_epochs: f64,
    /// Below this mean `q`, in units of the smoothness, the outer loop does not pay.
    pub(crate) outer_mean_q: f64,
    /// The lower limit of the unit of `q`, which is the smoothness of the squared hinge: a loss
    /// that is less smooth behaves almost like one with kinks. (With 1, bloodcells with C = 0.01
    /// and `debian_paths` with C = 100 took up to 1.3 times as long.)
    pub(crate) least_smoothness: f64,
    /// For a smooth loss, a run is estimated to take at least the epochs up to the first evaluation
    /// plus this number times the mean `q` in units of the smoothness, but no more than
    /// [`Self::likely_epochs`]. On a9a and ijcnn1 from C = 1 on, and on california and skin always,
    /// Newton's method from 0 takes less time. With more columns, as in digits and arrhythmia, a
    /// first look at the rate of the gap is cheap compared with what it may save.
    pub(crate) epochs_per_q: f64,
    /// See [`Self::epochs_per_q`].
    pub(crate) likely_epochs: f64,
    /// For a loss with kinks, Newton's method may take over once the run has done this fraction of
    /// the work that the method would need. Before that, the rate of the gap is not a reliable
    /// guide, because the gap falls slowly at first.
    pub(crate) paid_for: f64,
    /// Fraction of the maximum number of epochs after which a gap that falls too slowly for the
    /// rest of them is believed to continue like this.
    pub(crate) patience: f64,
    /// The same if it is not certain that Newton's method will do better.
    pub(crate) last_patience: f64,
    /// Newton's method is given up after this many evaluations in a row that have not halved the
    /// gap.
    pub(crate) newton_failures: u32,
    /// After Newton's method has been given up, passes get as many epochs as before, plus this
    /// many.
    pub(crate) last_try: f64,
    /// A run has come to a standstill if, in the last half of these epochs, neither `P` nor `D` has
    /// changed by more than the smaller of two limits: these fractions of `P` and of the gap.
    pub(crate) still: (f64, f64),
    /// A gap of up to this fraction of `P` may be due to rounding.
    pub(crate) close: f64,
}

/// The thresholds in use.
pub(crate) const TUNING: Tuning = Tuning {
    sgd_mean_q: 0.1,
    good_start: 0.1,
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
    /// The unit of the mean `q`: steps on a smooth loss get short where `q / gamma` is large.
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

    /// Epochs that a cold start is likely to take at least; 0 if unknown.
    pub(crate) fn likely_epochs(&self, mean_q: f64, smoothness: f64) -> f64 {
        if smoothness > 0.0 {
            let of_size = self.epochs_per_q * mean_q / smoothness;
            (schedule::FIRST_EVALUATION + of_size).min(self.likely_epochs)
        } else {
            0.0
        }
    }
}

/// The parts of the acceleration. The table in docs/acceleration.md shows what each of them gains.
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
    /// Whether this mechanism may be used. `benches/ablation.py` compiles with the feature
    /// `ablation` and switches off those that an environment variable names. In any other build
    /// this is always true.
    #[inline]
    pub(crate) fn is_on(self) -> bool {
        if !cfg!(feature = "ablation") {
            return true;
        }
        let off = std::env::var("SDCA_RS_WITHOUT").unwrap_or_default();
        !off.split(',').any(|name| name == format!("{self:?}"))
    }
}

/// The estimated cost of Newton's method, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostEstimate {
    pub(crate) work: f64,
    /// Whether the estimate is reliable. It is not if some rows have zero curvature and conjugate
    /// gradients are used: finding out which rows these are takes many steps, each of them slow.
    pub(crate) is_certain: bool,
}

/// What is known when a run has to decide how to continue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outlook<'h> {
    /// The evaluations so far.
    pub(crate) history: &'h [Record],
    /// See [`Budget`](crate::run::Budget).
    pub(crate) tol: f64,
    pub(crate) max_epochs: f64,
    /// What the run is doing now.
    pub(crate) phase: Phase,
    /// The mean of `q`, and properties of the loss.
    pub(crate) mean_q: f64,
    pub(crate) smoothness: f64,
    pub(crate) has_kinks: bool,
    /// The cost of an epoch, in nanoseconds.
    pub(crate) epoch_work: f64,
    /// Epochs that the run is likely to take at least; 0 if unknown.
    pub(crate) likely_epochs: f64,
    /// The cost of Newton's method from the present point, and from zero; `None` if it may not be
    /// used.
    pub(crate) newton: Option<CostEstimate>,
    pub(crate) newton_from_zero: Option<f64>,
    /// Whether momentum and the outer loop may begin. Both are slow to reach the last digits, so
    /// they are not used if more than the tolerance is wanted.
    pub(crate) may_speed_up: bool,
    /// Evaluations in a row in which Newton's method has failed to halve the gap.
    pub(crate) newton_failures: u32,
    /// The epoch in which Newton's method was given up.
    pub(crate) gave_up_at: Option<f64>,
}

/// How to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Continue as before.
    GoOn,
    /// Begin with a mechanism: momentum, the outer loop, Newton's method, or passes after the
    /// latter has failed.
    Begin(Phase),
    /// Stop the run.
    Stop(StopReason),
}

/// Decides how a run continues.
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
    /// Whether the tolerance has been reached, in which case more than that is wanted.
    fn is_within(&self) -> bool {
        let last = self.history.last();
        last.is_some_and(|last| last.certificate.is_within(self.tol))
    }

    /// Whether rounding prevents any progress, with either method.
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

    /// Whether Newton's method is cheaper than finding out how fast the gap falls.
    fn newton_pays_at_once(&self) -> bool {
        let plain = self.likely_epochs * self.epoch_work;
        self.history.len() == 1 && self.newton_from_zero.is_some_and(|newton| newton < plain)
    }

    /// Whether Newton's method is cheaper than continuing as before.
    fn newton_pays(&self, tuning: &Tuning) -> bool {
        let (Some(newton), [first, .., last]) = (self.newton, self.history) else {
            return false;
        };
        let Some(mut to_come) = schedule::epochs_to_come(self.history, self.tol) else {
            return false;
        };
        let is_smooth = self.smoothness > 0.0;
        // While `P` is above its value at the start, the rate of the gap says little. (bloodcells,
        // squared hinge, C = 0.01, to 1e-4: Newton's method from epoch 2 on takes 205 ms, SDCA
        // alone 85 ms.)
        if is_smooth && last.certificate.primal > first.certificate.primal {
            let in_theory =
                schedule::epochs_in_theory(last, self.tol, self.mean_q / self.smoothness);
            to_come = to_come.min(in_theory);
        }
        // Beyond the tolerance, as many digits as possible are wanted, and on a loss with kinks
        // passes find more of them.
        if self.is_within() && !is_smooth {
            return false;
        }
        // If the loss is smooth, the gap falls steadily from the start. Otherwise, the work done so
        // far must be at least a fraction of what a wrong choice may cost.
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

    /// Whether many epochs are still to come.
    fn is_far_from_the_end(&self, tuning: &Tuning) -> bool {
        let to_come = schedule::epochs_to_come(self.history, self.tol);
        to_come.is_some_and(|to_come| to_come > tuning.many_epochs)
    }

    /// Whether the outer loop is cheaper than continuing as before.
    ///
    /// It never is for a loss without kinks whose curvature is unbounded (Poisson). There, steps
    /// are short where the curvature is large, whatever `q` is, and the loop takes up to ten times
    /// as many epochs. (300 x 1000, C = 100: 217 epochs instead of 24.)
    fn outer_pays(&self, tuning: &Tuning) -> bool {
        self.may_speed_up
            && Mechanism::OuterLoop.is_on()
            && self.phase != Phase::Proximal
            && self.is_far_from_the_end(tuning)
            && (self.smoothness > 0.0 || self.has_kinks)
            && tuning.outer_pays(self.mean_q, self.smoothness)
    }

    /// Whether momentum saves epochs. It is an option where the outer loop could have begun but has
    /// not. (Within that loop it saved epochs, but no time.)
    fn momentum_pays(&self, tuning: &Tuning) -> bool {
        self.may_speed_up
            && Mechanism::Momentum.is_on()
            && !matches!(self.phase, Phase::Proximal | Phase::Momentum)
            && self.is_far_from_the_end(tuning)
    }
}

#[cfg(test)]
mod tests;
