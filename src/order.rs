//! The order in which rows are visited: seeded, and fixed one epoch in advance.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::Error;
use crate::memory;
use crate::run::parameter;

/// How an epoch chooses its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Sampling {
    /// Each row once, in a new random order every epoch: the fastest to converge.
    #[default]
    Permutation,
    /// As many draws as there are rows, with replacement: the case that most theorems cover.
    Random,
    /// Each row once, in the order of the data. Can be very slow on structured data.
    Cyclic,
}

impl Sampling {
    /// The sampling called `name`.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "permutation" => Ok(Self::Permutation),
            "random" => Ok(Self::Random),
            "cyclic" => Ok(Self::Cyclic),
            _ => Err(parameter(
                "sampling",
                format!("{name:?}"),
                "one of permutation, random, cyclic",
            )),
        }
    }
}

/// A small, fast, seeded generator. Its values are covered by our promise of reproducibility.
#[derive(Debug, Clone)]
pub struct Generator(Xoshiro256PlusPlus);

impl Generator {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A random number in `0..n`. The bias of multiply-and-shift is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The visiting orders of a run.
#[derive(Debug, Clone)]
pub struct Order {
    sampling: Sampling,
    generator: Generator,
    rows: Vec<u32>,
    /// The rows drawn with replacement; empty in an epoch that visits each row once.
    drawn: Vec<u32>,
}

impl Order {
    /// Visiting orders over the given rows.
    pub fn new(sampling: Sampling, seed: u64, rows: Vec<u32>) -> Self {
        Self {
            sampling,
            generator: Generator::new(seed),
            rows,
            drawn: Vec::new(),
        }
    }

    /// The number of visits in an epoch.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows to visit.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Chooses the rows of the next epoch.
    pub fn next_epoch(&mut self) {
        self.next_epoch_of(self.rows.len());
    }

    /// As [`Self::next_epoch`], for batches of `batch` rows: with replacement, enough rows are
    /// drawn that no batch is short.
    pub(crate) fn next_batches(&mut self, batch: usize) {
        self.next_epoch_of(self.rows.len().next_multiple_of(batch));
    }

    fn next_epoch_of(&mut self, draws: usize) {
        if self.sampling == Sampling::Random {
            let n = self.rows.len() as u64;
            self.drawn.clear();
            let draw = |_| self.rows[self.generator.below(n) as usize];
            memory::extend(&mut self.drawn, (0..draws).map(draw));
        } else {
            self.next_pass();
        }
    }

    /// As [`Self::next_epoch`], for an epoch that must visit each row exactly once, whatever the
    /// sampling.
    pub fn next_pass(&mut self) {
        self.drawn.clear();
        if self.sampling != Sampling::Cyclic {
            self.generator.shuffle(&mut self.rows);
        }
    }

    /// Whether an epoch visits each row exactly once.
    pub(crate) fn is_exhaustive(&self) -> bool {
        self.sampling != Sampling::Random
    }

    /// Reorders some of the rows, given in the order of their last visits, for their next visits.
    pub(crate) fn arrange(&mut self, rows: &mut [u32]) {
        if self.sampling != Sampling::Cyclic {
            self.generator.shuffle(rows);
        }
    }

    /// Draws `count` distinct rows into `drawn`, uniformly and independently of earlier draws.
    pub fn draw(&mut self, count: usize, drawn: &mut Vec<u32>) {
        let n = self.rows.len();
        for k in 0..count.min(n) {
            let other = k + self.generator.below((n - k) as u64) as usize;
            self.rows.swap(k, other);
        }
        memory::assign(drawn, &self.rows[..count.min(n)]);
    }

    /// The rows to visit in the current epoch, in order.
    pub fn visits(&self) -> &[u32] {
        if self.drawn.is_empty() {
            &self.rows
        } else {
            &self.drawn
        }
    }
}

#[cfg(test)]
mod tests;
