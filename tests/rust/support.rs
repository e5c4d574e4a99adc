//! Generated problems.

use sdca_rs::Error;
use sdca_rs::data::{Data as Rows, Storage};
use sdca_rs::loss::{Loss, Target};
use sdca_rs::order::Generator;
use sdca_rs::problem::{Problem, Regularisation};
use sdca_rs::rows::{Csr, Dense, Pattern};

/// Rows in any storage format, to be borrowed by several problems.
pub(crate) trait Stored: Sync {
    fn stored(&self) -> Storage<'_>;
}

macro_rules! stored {
    ($($rows:ty),+) => {$(
        impl Stored for $rows {
            fn stored(&self) -> Storage<'_> {
                self.clone().into()
            }
        }
    )+};
}

stored!(
    Dense<'_, f64>,
    Dense<'_, f32>,
    Csr<'_, f64, i32>,
    Csr<'_, f32, i64>,
    Pattern<'_, i32>
);

/// A problem that owns its data.
pub(crate) fn posed<'a, R: Stored, L: Loss>(
    rows: &'a R,
    targets: &'a [f64],
    weights: Option<&'a [f64]>,
    loss: L,
    regularisation: Regularisation,
    fit_intercept: bool,
) -> Result<Problem<'a>, Error> {
    let data = Rows::new(rows.stored(), weights)?;
    Problem::new(data, targets, loss, regularisation, fit_intercept)
}

/// A dense matrix in row-major order, and the same matrix in compressed rows.
pub(crate) struct Data {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) dense: Vec<f64>,
    pub(crate) values: Vec<f64>,
    pub(crate) indices: Vec<i32>,
    pub(crate) indptr: Vec<i64>,
    pub(crate) labels: Vec<f64>,
    pub(crate) reals: Vec<f64>,
    pub(crate) counts: Vec<f64>,
    pub(crate) weights: Vec<f64>,
}

impl Data {
    /// About half of the entries are 0, one row is empty, and one weight is 0.
    pub(crate) fn new(n_rows: usize, n_cols: usize, seed: u64) -> Self {
        let mut generator = Generator::new(seed);
        let mut uniform = move || generator.below(1 << 40) as f64 / (1u64 << 40) as f64;
        let mut dense = vec![0.0; n_rows * n_cols];
        for entry in &mut dense {
            if uniform() < 0.5 {
                *entry = 2.0 * uniform() - 1.0;
            }
        }
        dense[3 * n_cols..4 * n_cols].fill(0.0);
        let truth: Vec<f64> = (0..n_cols).map(|_| 4.0 * uniform() - 2.0).collect();
        let (mut values, mut indices, mut indptr) = (Vec::new(), Vec::new(), vec![0]);
        let (mut labels, mut reals, mut counts, mut weights) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for i in 0..n_rows {
            let row = &dense[i * n_cols..][..n_cols];
            for (j, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                values.push(x);
                indices.push(i32::try_from(j).expect("small"));
            }
            indptr.push(i64::try_from(values.len()).expect("small"));
            let p: f64 = row.iter().zip(&truth).map(|(x, w)| x * w).sum::<f64>() + uniform() - 0.3;
            labels.push(if p > 0.0 { 1.0 } else { -1.0 });
            reals.push(3.0 * p + 2.0);
            counts.push((p.exp() * 2.0 * uniform()).round());
            weights.push(3.0 * uniform());
        }
        weights[5] = 0.0;
        Self {
            n_rows,
            n_cols,
            dense,
            values,
            indices,
            indptr,
            labels,
            reals,
            counts,
            weights,
        }
    }

    /// As [`Self::new`], except that all non-zero entries of a row have the same value.
    pub(crate) fn with_one_value_in_each_row(n_rows: usize, n_cols: usize, seed: u64) -> Self {
        let mut data = Self::new(n_rows, n_cols, seed);
        for i in 0..n_rows {
            let value = 0.25 * (1 + i % 7) as f64;
            for x in &mut data.dense[i * n_cols..][..n_cols] {
                if *x != 0.0 {
                    *x = value;
                }
            }
            let place = |end: i64| usize::try_from(end).expect("not negative");
            data.values[place(data.indptr[i])..place(data.indptr[i + 1])].fill(value);
        }
        data
    }

    pub(crate) fn targets(&self, target: Target) -> &[f64] {
        match target {
            Target::Label => &self.labels,
            Target::Real => &self.reals,
            Target::NonNegative => &self.counts,
        }
    }
}
