//! The data of a problem: rows and their weights, validated once, together with cached quantities
//! that depend on them alone.
//!
//! All classes of a fit and all values of `C` may share one [`Data`]. Nothing in it depends on
//! `lambda`, the targets or the loss.

mod sources;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::error::{self, Error};
use crate::kernel::{Level, lanes};
use crate::memory;
use crate::rows::blocks::RowBlocks;
use crate::rows::{Csr, Dense, Pattern};
use crate::run::{BLOCK, RunContext, parameter};
use crate::solver::hessian::{self, Columns};

pub(crate) use sources::contiguous;
pub use sources::{ColumnIndex, Number};

/// Rows in any of the supported storage formats.
#[derive(Debug, Clone)]
pub enum Storage<'a> {
    /// Dense rows of 64-bit numbers.
    Dense64(Dense<'a, f64>),
    /// Dense rows of 32-bit numbers.
    Dense32(Dense<'a, f32>),
    /// Compressed rows of 64-bit numbers with 32-bit indices.
    Csr64I32(Csr<'a, f64, i32>),
    /// Compressed rows of 64-bit numbers with 64-bit indices.
    Csr64I64(Csr<'a, f64, i64>),
    /// Compressed rows of 32-bit numbers with 32-bit indices.
    Csr32I32(Csr<'a, f32, i32>),
    /// Compressed rows of 32-bit numbers with 64-bit indices.
    Csr32I64(Csr<'a, f32, i64>),
    /// Compressed rows whose entries all have the same value within a row, with 32-bit indices.
    PatternI32(Pattern<'a, i32>),
    /// Compressed rows whose entries all have the same value within a row, with 64-bit indices.
    PatternI64(Pattern<'a, i64>),
}

/// Evaluates the same expression for every storage format: the only place where the format becomes
/// a type.
macro_rules! with_rows {
    ($storage:expr, $rows:ident => $work:expr) => {
        match $storage {
            $crate::data::Storage::Dense64($rows) => $work,
            $crate::data::Storage::Dense32($rows) => $work,
            $crate::data::Storage::Csr64I32($rows) => $work,
            $crate::data::Storage::Csr64I64($rows) => $work,
            $crate::data::Storage::Csr32I32($rows) => $work,
            $crate::data::Storage::Csr32I64($rows) => $work,
            $crate::data::Storage::PatternI32($rows) => $work,
            $crate::data::Storage::PatternI64($rows) => $work,
        }
    };
}
pub(crate) use with_rows;

macro_rules! kinds {
    ($($kind:ident: $rows:ty,)+) => {$(
        impl<'a> From<$rows> for Storage<'a> {
            fn from(rows: $rows) -> Self {
                Self::$kind(rows)
            }
        }
    )+};
}

kinds! {
    Dense64: Dense<'a, f64>,
    Dense32: Dense<'a, f32>,
    Csr64I32: Csr<'a, f64, i32>,
    Csr64I64: Csr<'a, f64, i64>,
    Csr32I32: Csr<'a, f32, i32>,
    Csr32I64: Csr<'a, f32, i64>,
    PatternI32: Pattern<'a, i32>,
    PatternI64: Pattern<'a, i64>,
}

impl Storage<'_> {
    /// The rows, accessed block by block.
    pub(crate) fn blocks(&self) -> &dyn RowBlocks {
        with_rows!(self, rows => rows)
    }
}

/// Rows and their weights.
///
/// The rows are not copied: [`Data::dense`] borrows an array, [`Data::csr`] a sparse matrix in
/// compressed rows.
///
/// ```
/// use sdca_rs::data::Data;
///
/// let dense = Data::dense(&[[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])?;
/// let sparse = Data::csr(&[0, 1, 3], &[1, 0, 2], &[2.0, 1.0, 3.0], 3)?.with_weights(&[1.0, 0.5])?;
///
/// assert_eq!((dense.n_rows(), dense.n_cols()), (2, 3));
/// assert_eq!((sparse.n_rows(), sparse.n_cols()), (2, 3));
/// assert_eq!((dense.total_weight(), sparse.total_weight()), (2.0, 1.5));
/// # Ok::<(), sdca_rs::Error>(())
/// ```
#[derive(Debug)]
pub struct Data<'a> {
    storage: Storage<'a>,
    weights: Option<&'a [f64]>,
    total_weight: f64,
    cache: Cache,
}

/// What has been computed from rows and weights alone. It borrows nothing, so that it can be used
/// again by [`Data::with_cache`] when the same rows are borrowed again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cache {
    columns: Arc<OnceLock<Columns>>,
    /// Relative to 0 and relative to the mean, once computed by [`Data::prepare`].
    geometries: Arc<[OnceLock<Arc<RowGeometry>>; 2]>,
    /// Whether the row norms that a single problem computes are kept, too.
    keeps_all: bool,
}

#[cfg(feature = "python")]
impl Cache {
    /// An empty cache that keeps whatever any problem computes.
    pub(crate) fn keeping_all() -> Self {
        Self {
            keeps_all: true,
            ..Self::default()
        }
    }

    /// The part that does not depend on the weights, for a problem with other ones.
    pub(crate) fn without_weights(&self) -> Self {
        Self {
            columns: Arc::clone(&self.columns),
            ..Self::default()
        }
    }
}

/// Norms of the rows relative to their mean or relative to 0.
#[derive(Debug)]
pub(crate) struct RowGeometry {
    /// The weighted mean of the rows, or zeros.
    pub(crate) mu: Vec<f64>,
    /// `|mu|^2`.
    pub(crate) mu_sq_norm: f64,
    /// `x_i.mu`, or empty if that is 0 everywhere.
    pub(crate) m: Vec<f64>,
    /// `|x_i - mu|^2`.
    pub(crate) spreads: Vec<f64>,
    /// The weighted mean of `spreads`.
    pub(crate) mean_sq_norm: f64,
}

impl<'a> Data<'a> {
    /// Combines rows in any storage format with their weights, all 1 if `None`. A row of weight 0
    /// counts as absent.
    ///
    /// [`Data::dense`] and [`Data::csr`] are more convenient.
    pub fn new(rows: impl Into<Storage<'a>>, weights: Option<&'a [f64]>) -> Result<Self, Error> {
        let storage = rows.into();
        let n_rows = storage.blocks().n_rows();
        let mut total_weight = n_rows as f64;
        if let Some(weights) = weights {
            if weights.len() != n_rows {
                return Err(Error::Length {
                    name: "sample_weight",
                    found: weights.len(),
                    expected: n_rows,
                    why: "one for each row of X",
                });
            }
            if let Some(row) = weights.iter().position(|&c| !(c.is_finite() && c >= 0.0)) {
                let found = weights[row];
                return Err(Error::Weight { row, found });
            }
            total_weight = weights.iter().sum();
            if total_weight == 0.0 {
                return Err(Error::NoWeight);
            }
            if !total_weight.is_normal() {
                return Err(parameter(
                    "sample_weight",
                    format!("a sum of {total_weight:e}"),
                    "weights whose sum is neither infinite nor subnormal",
                ));
            }
        }
        Ok(Self {
            storage,
            weights,
            total_weight,
            cache: Cache::default(),
        })
    }

    /// As [`Self::new`], with what has been computed earlier from the same rows and weights.
    #[cfg(feature = "python")]
    pub(crate) fn with_cache(
        rows: impl Into<Storage<'a>>,
        weights: Option<&'a [f64]>,
        cache: Cache,
    ) -> Result<Self, Error> {
        Ok(Self {
            cache,
            ..Self::new(rows, weights)?
        })
    }
}

impl<'a> Data<'a> {
    /// The rows.
    pub fn storage(&self) -> &Storage<'a> {
        &self.storage
    }

    /// The rows, accessed block by block.
    pub(crate) fn rows(&self) -> &dyn RowBlocks {
        self.storage.blocks()
    }

    /// The weights, if any were given; otherwise they are all 1.
    pub(crate) fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// `W`, the sum of the weights.
    pub fn total_weight(&self) -> f64 {
        self.total_weight
    }

    /// `c_i`.
    #[inline]
    pub fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |c| c[i])
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows().n_rows()
    }

    /// The number of columns.
    pub fn n_cols(&self) -> usize {
        self.rows().n_cols()
    }

    /// The rows of positive weight.
    pub(crate) fn positive_rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.n_rows()).filter(|&i| self.weight(i) > 0.0)
    }

    /// All rows in blocks of similar work. Sums over rows are computed block by block, which keeps
    /// their rounding error small and lets a pass be interrupted.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (n_rows, size) = (self.n_rows(), self.block_size());
        (0..n_rows)
            .step_by(size)
            .map(move |from| from..n_rows.min(from + size))
    }

    /// The number of rows in a block; see [`Self::blocks`].
    pub(crate) fn block_size(&self) -> usize {
        rows_per_block(self.n_rows(), self.rows().n_stored())
    }

    /// Returns `work(block)` for each block; the threads of the run share the work.
    pub(crate) fn by_blocks<T: Send>(
        &self,
        context: &mut RunContext<'_>,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Result<Vec<T>, Error> {
        let (n_rows, size) = (self.n_rows(), self.block_size());
        context.map(n_rows.div_ceil(size), |k| {
            work(k * size..n_rows.min((k + 1) * size))
        })
    }

    /// `out_i = x_i.w`.
    pub(crate) fn products(
        &self,
        w: &[f64],
        out: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        context.fill(out, self.block_size(), |from, out| {
            self.rows().products(from, w, out);
        })
    }

    /// `sum += sum_i share(i) x_i`; returns `sum_i share(i)`.
    pub(crate) fn add_rows(
        &self,
        share: impl Fn(usize) -> f64 + Sync,
        sum: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<f64, Error> {
        let fill = |from: usize, shares: &mut [f64]| {
            for (i, of_row) in (from..).zip(shares) {
                *of_row = share(i);
            }
        };
        self.add_blocks(&fill, sum, context)
    }

    /// [`Self::add_rows`] for shares that `fill(from, shares)` computes for the rows starting at
    /// `from`.
    pub(crate) fn add_blocks(
        &self,
        fill: &(dyn Fn(usize, &mut [f64]) + Sync),
        sum: &mut [f64],
        context: &mut RunContext<'_>,
    ) -> Result<f64, Error> {
        let add = |block: Range<usize>, sum: &mut [f64]| {
            let (mut total, mut shares) = (0.0, [0.0; SHARES]);
            for from in block.clone().step_by(SHARES) {
                let shares = &mut shares[..SHARES.min(block.end - from)];
                fill(from, shares);
                let [of_rows] = lanes::sum(Level::best(), [shares], |[share]| [share]);
                total += of_rows;
                self.rows().add(from, shares, sum);
            }
            total
        };
        let mut total = 0.0;
        if !self.sums_by_blocks() {
            for block in self.blocks() {
                total += add(block, sum);
                context.heartbeat()?;
            }
            return Ok(total);
        }
        let (n_rows, size) = (self.n_rows(), self.block_size());
        let part = |k: usize| {
            let mut part = memory::zeros(self.n_cols());
            let total = add(k * size..n_rows.min((k + 1) * size), &mut part);
            (part, total)
        };
        context.fold(n_rows.div_ceil(size), part, |(part, of_part)| {
            for (sum, part) in sum.iter_mut().zip(part) {
                *sum += part;
            }
            total += of_part;
        })?;
        Ok(total)
    }

    /// Whether each block sums its rows into a vector of its own, so that threads can share the
    /// work: only where the cost of those vectors is small relative to the work.
    pub(crate) fn sums_by_blocks(&self) -> bool {
        let entries = self.block_size() * self.rows().n_stored() / self.n_rows();
        entries >= ENTRIES_PER_COLUMN * self.n_cols()
    }

    /// Statistics of the columns, for systems of equations.
    pub(crate) fn columns(&self) -> &Columns {
        let kept = &self.cache.columns;
        kept.get_or_init(|| hessian::columns(self.rows()))
    }

    /// Computes and caches the row norms that problems with (or without) an intercept need, at 16
    /// bytes per row. Useful for several problems, such as several classes or values of `C`; a
    /// single problem computes them for itself.
    pub fn prepare(&self, fit_intercept: bool, context: &mut RunContext<'_>) -> Result<(), Error> {
        error::catch(|| {
            let kept = &self.cache.geometries[usize::from(fit_intercept)];
            if kept.get().is_none() {
                let geometry = Arc::new(self.compute_geometry(fit_intercept, context)?);
                kept.get_or_init(|| geometry);
            }
            Ok(())
        })
    }

    /// The row norms relative to the mean, or relative to 0.
    pub(crate) fn geometry(
        &self,
        centred: bool,
        context: &mut RunContext<'_>,
    ) -> Result<Arc<RowGeometry>, Error> {
        let kept = &self.cache.geometries[usize::from(centred)];
        if let Some(geometry) = kept.get() {
            return Ok(Arc::clone(geometry));
        }
        let geometry = Arc::new(self.compute_geometry(centred, context)?);
        if self.cache.keeps_all {
            // Another thread may have been faster; its numbers are the same.
            return Ok(Arc::clone(kept.get_or_init(|| geometry)));
        }
        Ok(geometry)
    }

    fn compute_geometry(
        &self,
        centred: bool,
        context: &mut RunContext<'_>,
    ) -> Result<RowGeometry, Error> {
        let mut mu = memory::zeros(self.n_cols());
        if centred {
            let share = |i| self.weight(i) / self.total_weight;
            self.add_rows(share, &mut mu, context)?;
        }
        RowGeometry::about(self, mu, centred, context)
    }
}

impl RowGeometry {
    /// The row norms relative to `mu`, which is 0 unless they are `centred`.
    pub(crate) fn about(
        data: &Data<'_>,
        mu: Vec<f64>,
        centred: bool,
        context: &mut RunContext<'_>,
    ) -> Result<Self, Error> {
        let mu_sq_norm: f64 = mu.iter().map(|m| m * m).sum();
        let (n_rows, size) = (data.n_rows(), data.block_size());
        let mut spreads: Vec<f64> = memory::zeros(n_rows);
        let rows = data.rows();
        context.fill(&mut spreads, size, |from, out| rows.sq_norms(from, out))?;
        let mut m = Vec::new();
        if centred {
            memory::resize(&mut m, n_rows, 0.0);
            data.products(&mu, &mut m, context)?;
            for (spread, m) in spreads.iter_mut().zip(&m) {
                // Rounded up by what the three terms lose to cancellation: steps for too small a
                // |x|^2 would diverge. This also propagates a NaN, which `max` would hide.
                let lost = 8.0 * f64::EPSILON * (*spread + mu_sq_norm);
                *spread = (*spread - 2.0 * m + mu_sq_norm).max(0.0) + lost;
            }
        }
        let level = Level::best();
        let [sum] = match data.weights() {
            Some(weights) => lanes::sum(level, [weights, &spreads], |[c, spread]| [c * spread]),
            None => lanes::sum(level, [&spreads], |[spread]| [spread]),
        };
        Ok(Self {
            mu,
            mu_sq_norm,
            m,
            spreads,
            mean_sq_norm: sum / data.total_weight,
        })
    }

    /// `x_i.mu`.
    #[inline]
    pub(crate) fn m(&self, i: usize) -> f64 {
        self.m.get(i).copied().unwrap_or(0.0)
    }
}

/// How many shares are computed before their rows are added.
const SHARES: usize = 256;

/// A block sums its rows into a vector of its own if it has at least this many stored entries per
/// column.
const ENTRIES_PER_COLUMN: usize = 8;

/// The number of rows with about [`BLOCK`] stored entries in all. The upper limit bounds the
/// rounding error of a sum over a block, and the time that a block of very short rows takes.
pub(crate) fn rows_per_block(n_rows: usize, n_stored: usize) -> usize {
    (BLOCK.saturating_mul(n_rows) / n_stored.max(1)).clamp(1, 4096)
}
