//! The loop around every solver: step, evaluate, keep the best point, choose, stop.
//!
//! A solver is a [`Process`]. [`run`] drives it, and reads downward. What belongs to all runs is here and nowhere else: the
//! budget, the history, the best point, and why a run ends.
//!
//! **Recording observes.** Evaluations of the run itself are spaced so that they cost little, see [`super::schedule`], and
//! its choices rest on them alone. Where the user asks for records at other steps, the process is evaluated there into a
//! point of its own: nothing that steps depend on changes, and the result has the same bits with and without them.

use std::ops::ControlFlow;

use crate::error::Error;
use crate::memory;
use crate::problem::{Point, Problem};
use crate::run::{Budget, Certificate, Fit, Phase, Progress, Record, RunContext, StopReason};
use crate::solver::schedule::{self, Pace};

/// How far [`Process::advance`] may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    /// The steps that are done.
    pub(crate) step: u64,
    /// No steps after this one: something is to be looked at there.
    pub(crate) until: u64,
    /// Where the run itself will be evaluated next. What steps do may depend on it.
    pub(crate) horizon: u64,
}

/// An evaluation that a process is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evaluation<'d> {
    /// The steps that are done.
    pub(crate) step: u64,
    /// If there is an intercept, `P` is to be minimised over it to this relative precision.
    pub(crate) precision: f64,
    /// The best point so far; empty where each point takes the place of the one before.
    pub(crate) best: &'d Point,
    /// Whether this is for the record only: then the run goes on as if it had not been asked.
    pub(crate) for_record: bool,
}

/// Which of its points a run returns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// The last one: each is better than those before, or is what the algorithm says.
    Latest,
    /// The last model, with the dual point that has the highest bound so far.
    HighestBound,
    /// The one with the smallest gap: points may also get worse. Its `D` may not be below this, unless it is within the
    /// tolerance. Of two whose gaps differ by no more than this part of `P`, the later one is the better.
    Best { least_dual: f64, alike: f64 },
}

/// What differs by less than this part may be the same, but for rounding.
pub(crate) const ROUNDING: f64 = 1e-12;

impl Keep {
    /// Whether `new` takes the place of the best point so far, perhaps with the dual point of the latter.
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

/// A solver at work. Steps are counted from 0.
pub(crate) trait Process {
    /// Steps in an epoch; 0 if there is nothing to do.
    fn epoch(&self) -> u64;

    /// Called once, after the start has been evaluated.
    fn begin(&mut self, _start: &Point) {}

    /// Does some of the steps that are left, as many as fit between two heartbeats. Returns how many steps are then done.
    fn advance(&mut self, stretch: Stretch, watch: &mut RunContext<'_>) -> Result<u64, Error>;

    /// Evaluates the point that would be returned now.
    fn evaluate(
        &mut self,
        evaluation: Evaluation<'_>,
        point: &mut Point,
        watch: &mut RunContext<'_>,
    ) -> Result<(), Error>;

    /// Which of the points that are evaluated is kept.
    fn keep(&self) -> Keep {
        Keep::Latest
    }

    /// Whether an evaluation is due, where the process and not the schedule decides about it.
    fn is_ready(&self) -> Option<bool> {
        None
    }

    /// What it is doing.
    fn phase(&self) -> Phase {
        Phase::default()
    }

    /// Chooses how to go on, after each evaluation of the run that does not end it: the one of the start included, but not
    /// after the last epoch. `present` is what has been found now, whether it is the best point or not. `Break` ends the
    /// run: there is nothing left to be gained. The predictions of `best` may have been dropped.
    fn choose(
        &mut self,
        _present: Certificate,
        _best: &mut Point,
        _history: &[Record],
        _watch: &mut RunContext<'_>,
    ) -> Result<ControlFlow<StopReason>, Error> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Runs `process`, which solves `problem`, until it is good enough or the budget is used up.
pub(crate) fn run(
    problem: &Problem<'_>,
    process: &mut dyn Process,
    budget: &Budget,
    pace: Pace,
    watch: &mut RunContext<'_>,
) -> Result<Fit, Error> {
    let mut driver = Driver::new(problem, process.epoch(), budget, pace);
    let mut stop = driver.evaluate(process, watch)?;
    driver.check_start()?;
    process.begin(&driver.best);
    loop {
        if stop.is_none() && !driver.is_over(watch) {
            stop = driver.choose(process, watch)?;
        }
        if stop.is_some() || driver.is_over(watch) {
            return driver.finish(stop, watch);
        }
        while !driver.is_due(process, watch) {
            if driver.is_record_due() {
                driver.record(process, watch)?;
            } else {
                driver.advance(process, watch)?;
            }
        }
        stop = driver.evaluate(process, watch)?;
    }
}

struct Driver<'p, 'a> {
    problem: &'p Problem<'a>,
    budget: &'p Budget,
    pace: Pace,
    /// Steps in an epoch, in all epochs, and those that are done.
    epoch: u64,
    last: u64,
    step: u64,
    /// Where the run is to be evaluated next, and where it is to be recorded.
    next_evaluation: u64,
    next_record: u64,
    /// The best point so far, what has been evaluated last if not all are kept, and what is recorded between
    /// evaluations.
    best: Point,
    fresh: Point,
    observed: Point,
    /// What has been found at the last evaluation.
    present: Certificate,
    /// The evaluations of the run, and what is recorded where that is something else.
    history: Vec<Record>,
    records: Vec<Record>,
    /// The gap of the last evaluation, if the fit was perfect.
    perfect_gap: f64,
    /// Whether the run has begun without coefficients, so that its first evaluation is that of no model.
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

    /// Refuses a problem whose objective overflows without coefficients.
    fn check_start(&mut self) -> Result<(), Error> {
        self.from_zero = self.best.coef.iter().all(|&w| w == 0.0);
        if self.from_zero && !self.best.certificate.primal.is_finite() {
            return Err(Error::Overflow {
                what: "the objective without coefficients",
            });
        }
        Ok(())
    }

    /// Whether epochs or time are used up.
    fn is_over(&self, watch: &RunContext<'_>) -> bool {
        self.step >= self.last || watch.is_out_of_time()
    }

    /// Whether the run is to be evaluated.
    fn is_due(&self, process: &dyn Process, watch: &RunContext<'_>) -> bool {
        let due = process
            .is_ready()
            .unwrap_or(self.step >= self.next_evaluation);
        due || self.is_stopped || self.is_over(watch)
    }

    /// Whether the present step is to be recorded, and the run not evaluated anyway.
    fn is_record_due(&self) -> bool {
        self.budget.record_every.is_some() && self.step >= self.next_record
    }

    /// Does some steps.
    fn advance(
        &mut self,
        process: &mut dyn Process,
        watch: &mut RunContext<'_>,
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
        self.step = process.advance(stretch, watch)?.min(self.last);
        watch.heartbeat()
    }

    /// Evaluates the run after the steps that are done, and says whether that is the end of it.
    fn evaluate(
        &mut self,
        process: &mut dyn Process,
        watch: &mut RunContext<'_>,
    ) -> Result<Option<StopReason>, Error> {
        let mut record = self.blank_record(process, watch);
        watch.evaluate(|watch| {
            let keep = process.keep();
            // Where the last point is kept, it takes the place of the one before, in its memory.
            let mut point = match keep {
                Keep::Latest => std::mem::take(&mut self.best),
                Keep::HighestBound | Keep::Best { .. } => {
                    // Two points take memory enough without the predictions of both.
                    self.best.predictions = Vec::new();
                    self.fresh.search_from(self.best.intercept);
                    std::mem::take(&mut self.fresh)
                }
            };
            let evaluation = Evaluation {
                step: self.step,
                precision: self.precision(),
                best: &self.best,
                for_record: false,
            };
            process.evaluate(evaluation, &mut point, watch)?;
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
            } else if self.is_as_good_as_it_gets(watch)? {
                Some(StopReason::Perfect)
            } else {
                None
            };
            if stop.is_some() || self.budget.record_every.is_none() || self.is_record_due() {
                let best = std::mem::take(&mut self.best);
                self.note(record, &best, watch);
                self.best = best;
            }
            Ok(match stop {
                Some(StopReason::Converged) => stop,
                _ if self.is_stopped => Some(StopReason::Callback),
                _ => stop,
            })
        })
    }

    /// Evaluates the present step for the record alone.
    fn record(
        &mut self,
        process: &mut dyn Process,
        watch: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let mut record = self.blank_record(process, watch);
        watch.evaluate(|watch| {
            let mut point = std::mem::take(&mut self.observed);
            point.search_from(self.best.intercept);
            let evaluation = Evaluation {
                step: self.step,
                precision: self.precision(),
                best: &self.best,
                for_record: true,
            };
            process.evaluate(evaluation, &mut point, watch)?;
            if !process
                .keep()
                .takes(&mut point, &self.best, self.budget.tol)
            {
                point.copy_from(&self.best);
            }
            record.certificate = point.certificate;
            self.note(record, &point, watch);
            self.observed = point;
            Ok(())
        })
    }

    /// Adds a record for the user, and shows it to the monitor.
    fn note(&mut self, record: Record, point: &Point, watch: &mut RunContext<'_>) {
        if let Some(every) = self.budget.record_every {
            memory::push(&mut self.records, record);
            // The first multiple that rounds to a later step.
            let spacing = every * self.epoch as f64;
            let count = ((self.step as f64 + 0.5) / spacing).ceil();
            self.next_record = ((count * spacing).round() as u64).max(self.step + 1);
        }
        let answer = watch.report(&Progress {
            record,
            coef: &point.coef,
            intercept: point.intercept,
        });
        self.is_stopped |= answer.is_break();
    }

    /// A record of the steps that are done, with nothing evaluated yet.
    fn blank_record(&self, process: &dyn Process, watch: &RunContext<'_>) -> Record {
        Record {
            epoch: self.step as f64 / (self.epoch as f64).max(1.0),
            seconds: watch.seconds(),
            cpu_seconds: watch.cpu_seconds(),
            certificate: Point::default().certificate,
            phase: process.phase(),
        }
    }

    /// Lets the process choose how to go on, and says whether that is to stop.
    fn choose(
        &mut self,
        process: &mut dyn Process,
        watch: &mut RunContext<'_>,
    ) -> Result<Option<StopReason>, Error> {
        let answer = process.choose(self.present, &mut self.best, &self.history, watch)?;
        Ok(answer.break_value())
    }

    /// The result: never worse than no model at all.
    fn finish(
        mut self,
        stop: Option<StopReason>,
        watch: &mut RunContext<'_>,
    ) -> Result<Fit, Error> {
        let stop = stop.unwrap_or(if self.step < self.last {
            StopReason::MaxTime
        } else {
            StopReason::MaxEpochs
        });
        let is_perfect = self.is_perfect(watch)?;
        self.prefer_zero(watch)?;
        let certificate = self.best.certificate;
        if !certificate.primal.is_finite() {
            return Err(Error::Overflow {
                what: "the objective",
            });
        }
        let stop = match stop {
            // Also a run whose time, epochs or callback ended it: it has what was asked for.
            _ if certificate.is_within(self.budget.tol) => StopReason::Converged,
            StopReason::Callback => StopReason::Callback,
            _ if is_perfect => StopReason::Perfect,
            // Not with the model that has taken the place of the one that had.
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
            history: self.recorded(watch),
            certificate,
            coef: self.best.coef,
            intercept: self.best.intercept,
            dual: self.best.dual,
        })
    }

    /// The history for the user, the last line of which is about what is returned.
    fn recorded(&mut self, watch: &mut RunContext<'_>) -> Vec<Record> {
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
                self.note(last, &best, watch);
                self.best = best;
            }
        }
        std::mem::take(&mut self.records)
    }

    /// Returns no model instead of a worse one.
    fn prefer_zero(&mut self, watch: &mut RunContext<'_>) -> Result<(), Error> {
        // Whoever asks for all epochs wants to see what the algorithm ends with. And there is nothing to do where the
        // run began without coefficients and has not got worse.
        let is_study = self.budget.tol == 0.0;
        let at_start = self.history[0].certificate.primal;
        let is_better = self.from_zero && self.best.certificate.primal <= at_start;
        if !is_study && !is_better {
            let precision = self.precision();
            self.problem.prefer_zero(precision, &mut self.best, watch)?;
        }
        Ok(())
    }

    /// The precision of the intercept.
    fn precision(&self) -> f64 {
        match self.pace.least {
            0 => schedule::intercept_precision(self.budget.tol),
            _ => 0.0,
        }
    }

    /// Whether the fit is perfect and the gap has not been halved since it was so before.
    fn is_as_good_as_it_gets(&mut self, watch: &mut RunContext<'_>) -> Result<bool, Error> {
        let gap = self.best.certificate.gap;
        let is_perfect = self.is_perfect(watch)?;
        let before = std::mem::replace(
            &mut self.perfect_gap,
            if is_perfect { gap } else { f64::INFINITY },
        );
        Ok(is_perfect && (gap > 0.5 * before || gap <= 0.0))
    }

    /// Whether the fit is perfect, which is worth a look only at the start and where `P` has vanished.
    fn is_perfect(&mut self, watch: &mut RunContext<'_>) -> Result<bool, Error> {
        let first = self.history[0].certificate.primal;
        let Certificate { primal, gap, .. } = self.best.certificate;
        let is_worth_a_look =
            self.history.len() == 1 || primal <= 1e-8 * first || self.perfect_gap.is_finite();
        if self.budget.tol == 0.0 || !is_worth_a_look {
            return Ok(false);
        }
        if self.best.predictions.is_empty() {
            self.problem.predict(&mut self.best, watch)?;
        }
        // Less than the last digit of what there was.
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
