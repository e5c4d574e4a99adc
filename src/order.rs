//! The order in which rows are visited: seeded, and known one epoch in advance.

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
    /// As many rows as there are, drawn with replacement: what most theorems are about.
    Random,
    /// Each row once, in the order of the data. Can be very slow on structured data.
    Cyclic,
}

impl Sampling {
    /// The choice that users call `name`.
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

/// A small, fast, seeded generator whose values are part of our promise of reproducibility.
#[derive(Debug, Clone)]
pub struct Generator(Xoshiro256PlusPlus);

impl Generator {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number of `0..n`. The bias of multiply-and-shift is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Puts `items` into a random order.
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
    /// Orders over the given rows.
    pub fn new(sampling: Sampling, seed: u64, rows: Vec<u32>) -> Self {
        Self {
            sampling,
            generator: Generator::new(seed),
            rows,
            drawn: Vec::new(),
        }
    }

    /// Number of visits in an epoch.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row to visit.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Chooses the rows of the next epoch.
    pub fn next_epoch(&mut self) {
        self.next_epoch_of(self.rows.len());
    }

    /// As [`Self::next_epoch`], for batches of `batch` rows: where rows are drawn with replacement, so many that no
    /// batch is short.
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

    /// Like [`Self::next_epoch`], for an epoch that must visit each row exactly once whatever the
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

    /// Puts some of the rows, given in the order of their last visits, into the order of the next.
    pub(crate) fn arrange(&mut self, rows: &mut [u32]) {
        if self.sampling != Sampling::Cyclic {
            self.generator.shuffle(rows);
        }
    }

    /// Draws `count` different rows, uniformly and independently of earlier draws, into `drawn`.
    pub fn draw(&mut self, count: usize, drawn: &mut Vec<u32>) {
        let n = self.rows.len();
        for k in 0..count.min(n) {
            let other = k + self.generator.below((n - k) as u64) as usize;
            self.rows.swap(k, other);
        }
        memory::assign(drawn, &self.rows[..count.min(n)]);
    }

    /// The rows to visit in the present epoch, in order.
    pub fn visits(&self) -> &[u32] {
        if self.drawn.is_empty() {
            &self.rows
        } else {
            &self.drawn
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(sampling: Sampling, seed: u64, count: usize) -> Vec<Vec<u32>> {
        let mut order = Order::new(sampling, seed, (10..40).collect());
        let next = |_| {
            order.next_epoch();
            order.visits().to_vec()
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn a_permutation_visits_each_row_once_and_differs_every_epoch() {
        let orders = epochs(Sampling::Permutation, 1, 3);
        assert!(orders[0] != orders[1] && orders[1] != orders[2]);
        for mut order in orders {
            order.sort_unstable();
            assert!(order.into_iter().eq(10..40));
        }
    }

    #[test]
    fn random_draws_are_uniform_over_the_rows() {
        let mut counts = [0usize; 40];
        for i in epochs(Sampling::Random, 3, 2000).concat() {
            counts[i as usize] += 1;
        }
        assert!(counts[..10].iter().all(|&c| c == 0));
        // 60000 draws over 30 rows: 2000 each, standard deviation 44.
        assert!(
            counts[10..].iter().all(|&c| c.abs_diff(2000) < 220),
            "{counts:?}"
        );
    }

    #[test]
    fn draws_are_uniform_subsets() {
        let mut order = Order::new(Sampling::Random, 9, (0..6).collect());
        let (mut pairs, mut drawn) = (std::collections::HashMap::new(), Vec::new());
        for _ in 0..15_000 {
            order.draw(2, &mut drawn);
            drawn.sort_unstable();
            *pairs.entry(drawn.clone()).or_insert(0usize) += 1;
        }
        // 15 pairs, 1000 each, standard deviation 31.
        assert_eq!(pairs.len(), 15);
        assert!(pairs.values().all(|c| c.abs_diff(1000) < 160), "{pairs:?}");
        order.draw(9, &mut drawn);
        drawn.sort_unstable();
        assert!(drawn.into_iter().eq(0..6));
    }

    #[test]
    fn cyclic_is_the_order_of_the_data() {
        assert!(
            epochs(Sampling::Cyclic, 5, 2)
                .iter()
                .all(|o| o.iter().copied().eq(10..40))
        );
    }

    #[test]
    fn the_seed_decides() {
        for sampling in [Sampling::Permutation, Sampling::Random] {
            assert_eq!(epochs(sampling, 7, 3), epochs(sampling, 7, 3));
            assert_ne!(epochs(sampling, 7, 3), epochs(sampling, 8, 3));
        }
    }

    #[test]
    fn permutations_are_uniform() {
        let mut counts = std::collections::HashMap::new();
        let mut generator = Generator::new(11);
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            generator.shuffle(&mut items);
            *counts.entry(items).or_insert(0usize) += 1;
        }
        // 24 orders, 1000 each, standard deviation 31.
        assert_eq!(counts.len(), 24);
        assert!(
            counts.values().all(|c| c.abs_diff(1000) < 160),
            "{counts:?}"
        );
    }
}
