//! The loop around every solver: step, evaluate, keep the best point, choose, stop.
//!
//! A solver is a [`Process`], and [`run`] drives it. What all runs have in common is here and
//! nowhere else: the budget, the history, the best point, and the reason why a run ends.
//!
//! **Recording only observes.** The run evaluates itself at intervals that keep the cost low (see
//! [`super::schedule`]), and its decisions depend on these evaluations alone. If the user wants
//! records at other steps, the process is evaluated there into a separate point. Nothing that the
//! steps depend on changes, so the result has the same bits with and without records.

use std::ops::ControlFlow;

use crate::error::Error;
use crate::memory;
use crate::problem::{Point, Problem};
use crate::run::{Budget, Certificate, Fit, Phase, Progress, Record, RunContext, StopReason};
use crate::solver::schedule::{self, Pace};

/// How far [`Process::advance`] may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    /// The number of steps done so far.
    pub(crate) step: u64,
    /// Stop at this step at the latest: the run is evaluated or recorded there.
    pub(crate) until: u64,
    /// The step of the next evaluation of the run itself. Steps may depend on it.
    pub(crate) horizon: u64,
}

/// A request to evaluate a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evaluation<'d> {
    /// The number of steps done so far.
    pub(crate) step: u64,
    /// With an intercept, `P` is minimised over it to this relative precision.
    pub(crate) precision: f64,
    /// The best point so far; empty if each point replaces the one before.
    pub(crate) best: &'d Point,
    /// Whether this is only for the record. The run must then continue as if there had been no
    /// evaluation.
    pub(crate) for_record: bool,
}

/// Which of its points a run returns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// The last one: either each point is better than those before, or the algorithm prescribes it.
    Latest,
    /// The last model, paired with the dual point that gave the highest lower bound so far.
    HighestBound,
    /// The point with the smallest gap, because points may also get worse. Its `D` must be at least
    /// `least_dual`, unless its gap is within the tolerance. If two gaps differ by no more than the
    /// fraction `alike` of `P`, the later point is preferred.
    Best { least_dual: f64, alike: f64 },
}

/// Relative differences below this may be due to rounding alone.
pub(crate) const ROUNDING: f64 = 1e-12;

impl Keep {
    /// Whether `new` replaces the best point so far. It may take over the dual point of the latter.
    fn takes(self, new: &mut Point, best: &Point, tol: f64) -> bool {
        let (now, before) = (new.certificate, best.certificate);
        match self {
            Self::Latest => true,
            Self::HighestBound => {
                if before.dual >= now.dual {
                    memory::assign(&mut new.dual, &best.dual);
                    new.certificate = Certificate::new(now.primal, before.dual, before.support);
                }
                true
            }
            Self::Best { least_dual, alike } => {
                let is_high = now.dual >= least_dual - ROUNDING * least_dual.abs();
                now.gap <= before.gap + alike * now.primal.abs() && (is_high || now.is_within(tol))
            }
        }
    }
}

/// A running solver. Steps are counted from 0.
pub(crate) trait Process {
    /// Steps in an epoch; 0 if there is nothing to do.
    fn epoch(&self) -> u64;

    /// Called once, after the start has been evaluated.
    fn begin(&mut self, _start: &Point) {}

    /// Does some of the remaining steps, as many as fit between two heartbeats. Returns the total
    /// number of steps done by then.
    fn advance(&mut self, stretch: Stretch, context: &mut RunContext<'_>) -> Result<u64, Error>;

    /// Evaluates the point that the run would return now.
    fn evaluate(
        &mut self,
        evaluation: Evaluation<'_>,
        point: &mut Point,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error>;

    /// Which of the evaluated points is kept.
    fn keep(&self) -> Keep {
        Keep::Latest
    }

    /// Whether an evaluation is due, if the process decides this itself; `None` leaves it to the
    /// schedule.
    fn is_ready(&self) -> Option<bool> {
        None
    }

    /// What the process is doing.
    fn phase(&self) -> Phase {
        Phase::default()
    }

    /// Decides how to continue. Called after each evaluation of the run that does not end it,
    /// including the one at the start, but not after the last epoch. `present` is the certificate
    /// of the present point, whether or not that is the best one. `Break` ends the run: nothing
    /// more can be gained. The predictions of the best point may have been dropped.
    fn choose(
        &mut self,
        _present: Certificate,
        _best: &mut Point,
        _history: &[Record],
        _context: &mut RunContext<'_>,
    ) -> Result<ControlFlow<StopReason>, Error> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Runs `process`, which solves `problem`, until the solution is good enough or the budget is used
/// up.
pub(crate) fn run(
    problem: &Problem<'_>,
    process: &mut dyn Process,
    budget: &Budget,
    pace: Pace,
    context: &mut RunContext<'_>,
) -> Result<Fit, Error> {
    let mut driver = Driver::new(problem, process.epoch(), budget, pace);
    let mut stop = driver.evaluate(process, context)?;
    driver.check_start()?;
    process.begin(&driver.best);
    loop {
        if stop.is_none() && !driver.is_over(context) {
            stop = driver.choose(process, context)?;
        }
        if stop.is_some() || driver.is_over(context) {
            return driver.finish(stop, context);
        }
        while !driver.is_due(process, context) {
            if driver.is_record_due() {
                driver.record(process, context)?;
            } else {
                driver.advance(process, context)?;
            }
        }
        stop = driver.evaluate(process, context)?;
    }
}

struct Driver<'p, 'a> {
    problem: &'p Problem<'a>,
    budget: &'p Budget,
    pace: Pace,
    /// Steps in an epoch, steps in all epochs, and steps done so far.
    epoch: u64,
    last: u64,
    step: u64,
    /// The steps of the next evaluation and of the next record.
    next_evaluation: u64,
    next_record: u64,
    /// The best point so far; a buffer for the next evaluation, used if not every point is kept;
    /// and a buffer for points that are only recorded.
    best: Point,
    fresh: Point,
    observed: Point,
    /// The certificate of the last evaluation.
    present: Certificate,
    /// The evaluations of the run, and the records for the user if these are separate.
    history: Vec<Record>,
    records: Vec<Record>,
    /// The gap at the last evaluation if the fit was perfect there, otherwise infinity.
    perfect_gap: f64,
    /// Whether the run began with zero coefficients, so that its first evaluation is that of the
    /// zero model.
    from_zero: bool,
    /// Whether a callback has asked to stop.
    is_stopped: bool,
}

impl<'p, 'a> Driver<'p, 'a> {
    fn new(problem: &'p Problem<'a>, epoch: u64, budget: &'p Budget, pace: Pace) -> Self {
        Self {
            problem,
            budget,
            pace,
            epoch,
            last: epoch.saturating_mul(budget.max_epochs as u64),
            step: 0,
            next_evaluation: 0,
            next_record: 0,
            best: Point::default(),
            fresh: Point::default(),
            observed: Point::default(),
            present: Point::default().certificate,
            history: Vec::new(),
            records: Vec::new(),
            perfect_gap: f64::INFINITY,
            from_zero: false,
            is_stopped: false,
        }
    }

    /// Returns an error if the objective overflows even with zero coefficients.
    fn check_start(&mut self) -> Result<(), Error> {
        self.from_zero = self.best.coef.iter().all(|&w| w == 0.0);
        if self.from_zero && !self.best.certificate.primal.is_finite() {
            return Err(Error::Overflow {
                what: "the objective without coefficients",
            });
        }
        Ok(())
    }

    /// Whether the epochs or the time are used up.
    fn is_over(&self, context: &RunContext<'_>) -> bool {
        self.step >= self.last || context.is_out_of_time()
    }

    /// Whether the run should be evaluated now.
    fn is_due(&self, process: &dyn Process, context: &RunContext<'_>) -> bool {
        let due = process
            .is_ready()
            .unwrap_or(self.step >= self.next_evaluation);
        due || self.is_stopped || self.is_over(context)
    }

    /// Whether a record is due at the present step.
    fn is_record_due(&self) -> bool {
        self.budget.record_every.is_some() && self.step >= self.next_record
    }

    /// Does some steps.
    fn advance(
        &mut self,
        process: &mut dyn Process,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let horizon = self.next_evaluation.min(self.last);
        let stretch = Stretch {
            step: self.step,
            until: match self.budget.record_every {
                Some(_) => horizon.min(self.next_record),
                None => horizon,
            },
            horizon,
        };
        self.step = process.advance(stretch, context)?.min(self.last);
        context.heartbeat()
    }

    /// Evaluates the run at the present step. Returns the reason to stop, if there is one.
    fn evaluate(
        &mut self,
        process: &mut dyn Process,
        context: &mut RunContext<'_>,
    ) -> Result<Option<StopReason>, Error> {
        let mut record = self.blank_record(process, context);
        context.evaluate(|context| {
            let keep = process.keep();
            // If the latest point is always kept, it overwrites the one before.
            let mut point = match keep {
                Keep::Latest => std::mem::take(&mut self.best),
                Keep::HighestBound | Keep::Best { .. } => {
                    // Two points take enough memory without the predictions of both.
                    self.best.predictions = Vec::new();
                    self.fresh.search_from(self.best.intercept);
                    std::mem::take(&mut self.fresh)
                }
            };
            process.evaluate(self.evaluation(false), &mut point, context)?;
            self.present = point.certificate;
            if keep.takes(&mut point, &self.best, self.budget.tol) {
                std::mem::swap(&mut self.best, &mut point);
            }
            point.predictions = Vec::new();
            self.fresh = point;
            record.certificate = self.best.certificate;
            if record.certificate.gap.is_nan() {
                return Err(Error::Overflow {
                    what: "the objective",
                });
            }
            memory::push(&mut self.history, record);
            self.next_evaluation = self.step_to_evaluate();
            let within = record.certificate.is_within(self.budget.tol);
            let stop = if within && self.step >= self.pace.least {
                Some(StopReason::Converged)
            } else if self.is_perfect_and_stalled(context)? {
                Some(StopReason::Perfect)
            } else {
                None
            };
            if stop.is_some() || self.budget.record_every.is_none() || self.is_record_due() {
                let best = std::mem::take(&mut self.best);
                self.note(record, &best, context);
                self.best = best;
            }
            Ok(match stop {
                Some(StopReason::Converged) => stop,
                _ if self.is_stopped => Some(StopReason::Callback),
                _ => stop,
            })
        })
    }

    /// Evaluates the present step only for the record.
    fn record(
        &mut self,
        process: &mut dyn Process,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let mut record = self.blank_record(process, context);
        context.evaluate(|context| {
            let mut point = std::mem::take(&mut self.observed);
            point.search_from(self.best.intercept);
            process.evaluate(self.evaluation(true), &mut point, context)?;
            if !process
                .keep()
                .takes(&mut point, &self.best, self.budget.tol)
            {
                point.copy_from(&self.best);
            }
            record.certificate = point.certificate;
            self.note(record, &point, context);
            self.observed = point;
            Ok(())
        })
    }

    /// The request to evaluate the present step.
    fn evaluation(&self, for_record: bool) -> Evaluation<'_> {
        Evaluation {
            step: self.step,
            precision: self.precision(),
            best: &self.best,
            for_record,
        }
    }

    /// Adds a record for the user, and shows it to the monitor.
    fn note(&mut self, record: Record, point: &Point, context: &mut RunContext<'_>) {
        if let Some(every) = self.budget.record_every {
            memory::push(&mut self.records, record);
            // The first multiple that rounds to a later step.
            let spacing = every * self.epoch as f64;
            let count = ((self.step as f64 + 0.5) / spacing).ceil();
            self.next_record = ((count * spacing).round() as u64).max(self.step + 1);
        }
        let answer = context.report(&Progress {
            record,
            coef: &point.coef,
            intercept: point.intercept,
        });
        self.is_stopped |= answer.is_break();
    }

    /// A record of the present step, still without its certificate.
    fn blank_record(&self, process: &dyn Process, context: &RunContext<'_>) -> Record {
        Record {
            epoch: self.step as f64 / (self.epoch as f64).max(1.0),
            seconds: context.seconds(),
            cpu_seconds: context.cpu_seconds(),
            certificate: Point::default().certificate,
            phase: process.phase(),
        }
    }

    /// Lets the process decide how to continue. Returns the reason to stop, if it has found one.
    fn choose(
        &mut self,
        process: &mut dyn Process,
        context: &mut RunContext<'_>,
    ) -> Result<Option<StopReason>, Error> {
        let answer = process.choose(self.present, &mut self.best, &self.history, context)?;
        Ok(answer.break_value())
    }

    /// The result. It is never worse than the zero model.
    fn finish(
        mut self,
        stop: Option<StopReason>,
        context: &mut RunContext<'_>,
    ) -> Result<Fit, Error> {
        let stop = stop.unwrap_or(if self.step < self.last {
            StopReason::MaxTime
        } else {
            StopReason::MaxEpochs
        });
        let is_perfect = self.is_perfect(context)?;
        self.prefer_zero(context)?;
        let certificate = self.best.certificate;
        if !certificate.primal.is_finite() {
            return Err(Error::Overflow {
                what: "the objective",
            });
        }
        let stop = match stop {
            // Also if time, epochs or a callback ended the run: it has reached the tolerance.
            _ if certificate.is_within(self.budget.tol) => StopReason::Converged,
            StopReason::Callback => StopReason::Callback,
            _ if is_perfect => StopReason::Perfect,
            // The zero model has replaced the one that had converged.
            StopReason::Converged => StopReason::Precision,
            reason => reason,
        };
        Ok(Fit {
            epochs: self.history.last().map_or(0.0, |record| record.epoch),
            steps: self.step as f64,
            stop,
            mean_q: self.pace.mean_q,
            target: self.problem.loss().target(),
            link: self.problem.loss().link(),
            history: self.recorded(context),
            certificate,
            coef: self.best.coef,
            intercept: self.best.intercept,
            dual: self.best.dual,
        })
    }

    /// The history for the user. Its last entry describes the returned point.
    fn recorded(&mut self, context: &mut RunContext<'_>) -> Vec<Record> {
        let mut last = *self.history.last().expect("the start has been evaluated");
        last.certificate = self.best.certificate;
        if self.budget.record_every.is_none() {
            self.history.pop();
            memory::push(&mut self.history, last);
            return std::mem::take(&mut self.history);
        }
        match self.records.last_mut() {
            Some(record) if record.epoch == last.epoch => record.certificate = last.certificate,
            _ => {
                let best = std::mem::take(&mut self.best);
                self.note(last, &best, context);
                self.best = best;
            }
        }
        std::mem::take(&mut self.records)
    }

    /// Returns the zero model if it is better.
    fn prefer_zero(&mut self, context: &mut RunContext<'_>) -> Result<(), Error> {
        // With `tol = 0` the user wants to see where the algorithm ends. And there is nothing to do
        // if the run began at zero and has not got worse.
        let is_study = self.budget.tol == 0.0;
        let at_start = self.history[0].certificate.primal;
        let is_better = self.from_zero && self.best.certificate.primal <= at_start;
        if !is_study && !is_better {
            let precision = self.precision();
            self.problem
                .prefer_zero(precision, &mut self.best, context)?;
        }
        Ok(())
    }

    /// The relative precision to which `P` is minimised over the intercept.
    fn precision(&self) -> f64 {
        match self.pace.least {
            0 => schedule::intercept_precision(self.budget.tol),
            _ => 0.0,
        }
    }

    /// Whether the fit is perfect and the gap has not halved since the last evaluation, at which it
    /// was already perfect.
    fn is_perfect_and_stalled(&mut self, context: &mut RunContext<'_>) -> Result<bool, Error> {
        let gap = self.best.certificate.gap;
        let is_perfect = self.is_perfect(context)?;
        let before = std::mem::replace(
            &mut self.perfect_gap,
            if is_perfect { gap } else { f64::INFINITY },
        );
        Ok(is_perfect && (gap > 0.5 * before || gap <= 0.0))
    }

    /// Whether the fit is perfect. This is checked only at the start and once `P` has nearly
    /// vanished.
    fn is_perfect(&mut self, context: &mut RunContext<'_>) -> Result<bool, Error> {
        let first = self.history[0].certificate.primal;
        let Certificate { primal, gap, .. } = self.best.certificate;
        let may_be_perfect =
            self.history.len() == 1 || primal <= 1e-8 * first || self.perfect_gap.is_finite();
        if self.budget.tol == 0.0 || !may_be_perfect {
            return Ok(false);
        }
        if self.best.predictions.is_empty() {
            self.problem.predict(&mut self.best, context)?;
        }
        // Below the rounding error of the first `P`.
        let is_nothing = self.from_zero && primal.max(gap) <= f64::EPSILON * first;
        Ok(is_nothing || self.problem.is_perfect(&self.best))
    }

    /// The step of the next evaluation of the run.
    fn step_to_evaluate(&self) -> u64 {
        let tol = self.budget.tol;
        if self.best.certificate.is_within(tol) {
            return self.pace.least.max(self.step + 1);
        }
        let cost = self.pace.evaluation_cost;
        let next = schedule::next_epoch_to_evaluate(&self.history, tol, cost);
        (next * self.epoch as f64) as u64
    }
}
