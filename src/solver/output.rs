//! Which of its iterates a run returns: the last one, an average, or one drawn at random.
//!
//! An iterate is a list of numbers: the dual point of a dual solver, or a model. The theorems for
//! Lipschitz losses are about the mean of the iterates before the steps `T0+1 ..= T`, or about one
//! of them drawn uniformly, where `T0` is a fraction of `T`, or a step chosen in advance. A run that
//! stops as soon as it is accurate enough does not know `T` in advance. So its steps are divided into consecutive
//! [`Piece`]s of slowly growing length, and each piece keeps the sum of its iterates (or one of
//! them, drawn uniformly). The pieces that begin at `T0` or later give the output; older ones are
//! dropped. A run that uses all its epochs has a piece that begins exactly at `T0`. Otherwise `T0`
//! is rounded up to the next piece, by at most an eighth of itself or of an epoch.

use std::collections::VecDeque;

use crate::error::Error;
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::order::Generator;
use crate::run::parameter;
use crate::solver::driver::Evaluation;

/// The iterate that a run returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Output {
    /// The last one: the best choice in practice.
    #[default]
    Last,
    /// The mean over the steps after `T0`.
    Average,
    /// One drawn uniformly from the steps after `T0`.
    Random,
}

impl Output {
    /// The variant with this name in the user interface.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "last" => Ok(Self::Last),
            "average" => Ok(Self::Average),
            "random" => Ok(Self::Random),
            _ => Err(parameter(
                "output",
                format!("{name:?}"),
                "one of last, average, random",
            )),
        }
    }
}

/// `T0`: the step after which [`Output::Average`] and [`Output::Random`] begin.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum AverageFrom {
    /// A fraction of the run, of [0, 1).
    Fraction(f64),
    /// A number of steps. A run that does not get beyond it returns its last iterate.
    Step(u64),
}

impl Default for AverageFrom {
    /// The second half of the run.
    fn default() -> Self {
        Self::Fraction(0.5)
    }
}

impl From<f64> for AverageFrom {
    fn from(fraction: f64) -> Self {
        Self::Fraction(fraction)
    }
}

impl AverageFrom {
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::Fraction(fraction) if !(0.0..1.0).contains(&fraction) => Err(parameter(
                "average_from",
                fraction,
                "a fraction in [0, 1) or a number of steps",
            )),
            _ => Ok(()),
        }
    }

    /// `T0` of a run of `steps` steps.
    fn of(self, steps: u64) -> u64 {
        match self {
            Self::Fraction(fraction) => (fraction * steps as f64).round() as u64,
            Self::Step(step) => step,
        }
    }

    /// Whether no run, however long, has its `T0` after `step`.
    fn is_never_after(self, step: u64) -> bool {
        match self {
            Self::Fraction(fraction) => fraction == 0.0,
            Self::Step(first) => first <= step,
        }
    }
}

/// Receives each change of a dual value.
pub(crate) trait Trace {
    /// At step `step` (counted from 1), the value `old` of row `i` was replaced. This raised `D` by
    /// at least `gain`, in some unit.
    fn changed(&mut self, step: u64, i: usize, old: f64, gain: f64);
}

/// Records nothing.
pub(crate) struct NoTrace;

impl Trace for NoTrace {
    #[inline(always)]
    fn changed(&mut self, _step: u64, _i: usize, _old: f64, _gain: f64) {}
}

/// A piece is at most as long as the steps before it, or as an epoch, divided by this number.
const PIECE: u64 = 8;

/// The iterates before the steps `from + 1 ..= to`.
struct Piece {
    from: u64,
    to: u64,
    /// Their sum, or one of them.
    kept: Vec<f64>,
}

/// Adds up the iterates of a run, in the cheapest way for its solver.
pub(crate) trait Tally {
    /// The sum of the iterates before each step since the last call. `step` steps have been done in
    /// total, and the iterate is now `values`.
    fn take(&mut self, step: u64, values: impl Iterator<Item = f64>) -> Vec<f64>;

    /// A copy.
    fn copy(&self) -> Self;
}

/// Collects what the output of a run needs: sums of its iterates, or random draws from them. Steps
/// are counted from 0.
pub(crate) struct Averager<T> {
    kind: Kind<T>,
    average_from: AverageFrom,
    /// `T0` of a run that uses all its epochs.
    full_run: u64,
    /// Steps in an epoch.
    epoch: u64,
    closed: VecDeque<Piece>,
    /// Where the open piece begins, and where it must end at the latest.
    from: u64,
    to: u64,
}

enum Kind<T> {
    Last,
    Average(T),
    Random(Draw),
}

/// The sum of the iterates of a solver that changes one value at a time. Each value's part of the
/// sum is brought up to date when the value changes.
pub(crate) struct Sums {
    /// For each row, the sum of its values over the steps before `since`.
    sum: Vec<f64>,
    /// For each row, the step up to which `sum` is complete.
    since: Vec<u64>,
}

impl Sums {
    /// For iterates of `len` values.
    pub(crate) fn new(len: usize) -> Self {
        Self {
            sum: memory::zeros(len),
            since: memory::filled(len, 0),
        }
    }
}

impl Tally for Sums {
    fn take(&mut self, step: u64, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let Self { sum, since } = self;
        for ((sum, since), value) in sum.iter_mut().zip(since.iter_mut()).zip(values) {
            *sum += value * (step - *since) as f64;
            *since = step;
        }
        let len = sum.len();
        std::mem::replace(sum, memory::zeros(len))
    }

    fn copy(&self) -> Self {
        Self {
            sum: self.sum.duplicate(),
            since: self.since.duplicate(),
        }
    }
}

impl Trace for Sums {
    #[inline(always)]
    fn changed(&mut self, step: u64, i: usize, old: f64, _gain: f64) {
        self.sum[i] += old * (step - self.since[i]) as f64;
        self.since[i] = step;
    }
}

/// The sum of the iterates of a solver that changes all values in each step.
pub(crate) struct Iterates(Vec<f64>);

impl Iterates {
    pub(crate) fn new(len: usize) -> Self {
        Self(memory::zeros(len))
    }

    /// Adds the iterate before a step.
    pub(crate) fn count(&mut self, values: impl Iterator<Item = f64>) {
        for (sum, value) in self.0.iter_mut().zip(values) {
            *sum += value;
        }
    }
}

impl Tally for Iterates {
    fn take(&mut self, _step: u64, _values: impl Iterator<Item = f64>) -> Vec<f64> {
        let len = self.0.len();
        std::mem::replace(&mut self.0, memory::zeros(len))
    }

    fn copy(&self) -> Self {
        Self(self.0.duplicate())
    }
}

/// A uniform draw from the iterates of the open piece.
struct Draw {
    generator: Generator,
    /// The step of the open piece whose iterate is to be kept.
    chosen: u64,
    kept: Option<Vec<f64>>,
}

impl<T: Tally> Averager<T> {
    /// For a run of at most `max_epochs` epochs of `epoch` steps. `tally` is called if its iterates
    /// have to be added up.
    pub(crate) fn new(
        output: Output,
        average_from: AverageFrom,
        epoch: u64,
        max_epochs: usize,
        seed: u64,
        tally: impl FnOnce() -> T,
    ) -> Self {
        let kind = match output {
            Output::Last => Kind::Last,
            Output::Average => Kind::Average(tally()),
            // A separate stream of random numbers: the choice of output must not change the run.
            Output::Random => Kind::Random(Draw {
                generator: Generator::new(!seed),
                chosen: 0,
                kept: None,
            }),
        };
        let full_run = average_from.of((max_epochs as u64).saturating_mul(epoch));
        Self {
            kind,
            average_from,
            full_run,
            epoch,
            closed: VecDeque::new(),
            from: 0,
            to: 0,
        }
    }

    /// Begins a piece; no output is needed before the step `horizon`.
    fn open(&mut self, horizon: u64) {
        let mut to = (self.from + self.limit(self.from)).min(horizon.max(self.from + 1));
        if self.from < self.full_run {
            to = to.min(self.full_run);
        }
        self.to = to;
        if let Kind::Random(draw) = &mut self.kind {
            draw.chosen = self.from + draw.generator.below(to - self.from);
            draw.kept = None;
        }
    }

    /// The maximum length of a piece that begins at `from`.
    fn limit(&self, from: u64) -> u64 {
        (from.max(self.epoch) / PIECE).max(1)
    }

    /// The next step before which [`Self::before_steps`] must be called.
    pub(crate) fn next_event(&self) -> u64 {
        match &self.kind {
            Kind::Last => u64::MAX,
            Kind::Random(Draw {
                chosen, kept: None, ..
            }) => *chosen,
            _ => self.to,
        }
    }

    /// The tally, if the output is an average.
    pub(crate) fn tally(&mut self) -> Option<&mut T> {
        if let Kind::Average(tally) = &mut self.kind {
            Some(tally)
        } else {
            None
        }
    }

    /// To be called before further steps, after `step` steps, when the iterate is `values` and no
    /// output is needed before the step `horizon`.
    pub(crate) fn before_steps(
        &mut self,
        step: u64,
        values: impl Iterator<Item = f64> + Clone,
        horizon: u64,
    ) {
        if step >= self.to {
            self.close(step, values.clone());
            self.open(horizon);
        }
        if let Kind::Random(draw) = &mut self.kind
            && draw.kept.is_none()
            && step >= draw.chosen
        {
            draw.kept = Some(values.clone().into_vec());
        }
    }

    /// Ends the open piece, if it has begun.
    fn close(&mut self, step: u64, values: impl Iterator<Item = f64>) {
        if step == self.from {
            return;
        }
        let kept = match &mut self.kind {
            Kind::Last => return,
            Kind::Average(tally) => tally.take(step, values),
            // Only a run cut short by its time limit ends a piece before the chosen step.
            Kind::Random(draw) => draw.kept.take().unwrap_or_else(|| values.into_vec()),
        };
        let piece = Piece {
            from: self.from,
            to: step,
            kept,
        };
        self.from = step;
        let room = self.closed.back().is_some_and(|last| {
            piece.from != self.full_run
                && (self.average_from.is_never_after(last.from)
                    || piece.to - last.from <= self.limit(last.from))
        });
        if room && let Some(last) = self.closed.back_mut() {
            join(last, piece, &mut self.kind);
        } else {
            self.closed.push_back(piece);
        }
        let start = self.average_from.of(step);
        while self.closed.len() > 1 && self.closed[0].from < start {
            self.closed.pop_front();
        }
    }

    /// The output if the run ended at this evaluation; `None` if it is the present iterate.
    pub(crate) fn output_for(
        &mut self,
        evaluation: &Evaluation<'_>,
        values: impl Iterator<Item = f64>,
    ) -> Option<Vec<f64>> {
        let step = evaluation.step;
        match &self.kind {
            Kind::Last => None,
            // Closing a piece would change those that follow, so this is done on a copy.
            _ if evaluation.for_record => self.copy().output(step, values),
            _ => self.output(step, values),
        }
    }

    fn copy(&self) -> Self {
        let mut closed = VecDeque::new();
        for piece in &self.closed {
            let kept = piece.kept.duplicate();
            closed.push_back(Piece { kept, ..*piece });
        }
        let kind = match &self.kind {
            Kind::Last => Kind::Last,
            Kind::Average(tally) => Kind::Average(tally.copy()),
            Kind::Random(draw) => Kind::Random(Draw {
                generator: draw.generator.clone(),
                chosen: draw.chosen,
                kept: draw.kept.as_ref().map(|kept| kept.duplicate()),
            }),
        };
        Self {
            kind,
            closed,
            ..*self
        }
    }

    /// See [`Self::output_for`].
    fn output(&mut self, step: u64, values: impl Iterator<Item = f64>) -> Option<Vec<f64>> {
        self.close(step, values);
        // The next piece begins with the next step.
        self.to = self.from;
        if matches!(self.average_from, AverageFrom::Step(first) if first >= step) {
            return None;
        }
        let steps: u64 = self.closed.iter().map(|piece| piece.to - piece.from).sum();
        if steps == 0 {
            return None;
        }
        match &mut self.kind {
            Kind::Last => None,
            Kind::Average(_) => {
                let mut mean = memory::zeros(self.closed[0].kept.len());
                for piece in &self.closed {
                    add(&mut mean, &piece.kept);
                }
                for sum in &mut mean {
                    *sum /= steps as f64;
                }
                Some(mean)
            }
            Kind::Random(draw) => {
                let mut chosen = draw.generator.below(steps);
                let piece = self.closed.iter().find(|piece| {
                    let len = piece.to - piece.from;
                    let here = chosen < len;
                    chosen = chosen.wrapping_sub(len);
                    here
                });
                piece.map(|piece| piece.kept.duplicate())
            }
        }
    }
}

/// Merges a piece into the one before it.
fn join<T>(last: &mut Piece, new: Piece, kind: &mut Kind<T>) {
    let new_len = new.to - new.from;
    last.to = new.to;
    match kind {
        Kind::Last => {}
        Kind::Average(_) => add(&mut last.kept, &new.kept),
        Kind::Random(draw) => {
            if draw.generator.below(last.to - last.from) < new_len {
                last.kept = new.kept;
            }
        }
    }
}

fn add(sums: &mut [f64], more: &[f64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

#[cfg(test)]
mod tests;
