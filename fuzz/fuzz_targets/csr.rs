//! Compressed rows from arbitrary arrays: either an error, or a matrix that agrees with a naive
//! dense one.

#![no_main]

use sdca_rs::kernel::{Borrowed, Index, Real};
use sdca_rs::rows::{Csr, Rows};

use sdca_fuzz::bytes::Bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));

/// Decodes three arrays of any types and contents, and checks the result.
fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let (of_values, of_indices, of_indptr) = (bytes.flag(), bytes.below(4), bytes.below(4));
    if of_values {
        with_values(&mut bytes, |v| v as f32, of_indices, of_indptr);
    } else {
        with_values(&mut bytes, |v| v, of_indices, of_indptr);
    }
}

fn with_values<F: Real>(
    bytes: &mut Bytes<'_>,
    real: fn(f64) -> F,
    of_indices: usize,
    of_indptr: usize,
) {
    match of_indices {
        0 => with_indices(bytes, real, |v| v as i32, of_indptr),
        1 => with_indices(bytes, real, |v| v, of_indptr),
        2 => with_indices(bytes, real, |v| v as u32, of_indptr),
        _ => with_indices(bytes, real, |v| v as u64, of_indptr),
    }
}

fn with_indices<F: Real, I: Index>(
    bytes: &mut Bytes<'_>,
    real: fn(f64) -> F,
    index: fn(i64) -> I,
    of_indptr: usize,
) {
    match of_indptr {
        0 => check(bytes, real, index, |v| v as i32),
        1 => check(bytes, real, index, |v| v),
        2 => check(bytes, real, index, |v| v as u32),
        _ => check(bytes, real, index, |v| v as u64),
    }
}

/// A number in `0..n` or, rarely, any number at all.
fn index_below(bytes: &mut Bytes<'_>, n: usize) -> i64 {
    match bytes.byte() {
        255 => bytes.word().cast_signed(),
        254 => -1,
        253 => n as i64,
        byte => i64::from(byte) % (n.max(1) as i64),
    }
}

fn check<F: Real, I: Index, P: Index>(
    bytes: &mut Bytes<'_>,
    real: fn(f64) -> F,
    index: fn(i64) -> I,
    pointer: fn(i64) -> P,
) {
    let n_cols = match bytes.byte() {
        0 => 0,
        255 => usize::MAX,
        254 => bytes.word() as usize,
        byte => 1 + usize::from(byte) % 20,
    };
    let n_rows = bytes.below(10);
    // Row lengths, which are rarely invalid.
    let mut end = 0;
    let mut indptr = vec![pointer(if bytes.byte() == 255 {
        bytes.word().cast_signed()
    } else {
        0
    })];
    for _ in 0..n_rows {
        end = match bytes.byte() {
            255 => bytes.word().cast_signed(),
            254 => end.wrapping_sub(1),
            byte => end.wrapping_add(i64::from(byte % 24)),
        };
        indptr.push(pointer(end));
    }
    if bytes.byte() == 255 {
        indptr.clear();
    }
    // Unused space after the last entry, or too little space.
    let length = |spare: u8| {
        (end.clamp(0, 400) as usize + usize::from(spare % 8))
            .saturating_sub(usize::from(spare) / 64)
    };
    let (n_indices, n_values) = (length(bytes.byte()), length(bytes.byte()));
    let same_values = bytes.flag();
    let indices: Vec<I> = (0..n_indices)
        .map(|_| index(index_below(bytes, n_cols.min(20))))
        .collect();
    let only = real(bytes.any());
    let values: Vec<F> = (0..n_values)
        .map(|_| if same_values { only } else { real(bytes.any()) })
        .collect();

    let found = Csr::new(
        Borrowed::new(&values),
        Borrowed::new(&indices),
        Borrowed::new(&indptr),
        n_cols,
    );
    let twin = Twin::new(&values, &indices, &indptr, n_cols);
    let (csr, twin) = match (found, twin) {
        (Err(error), None) => {
            assert!(!error.to_string().is_empty());
            return;
        }
        (Err(error), Some(_)) => panic!("a valid matrix was refused: {error}"),
        (Ok(_), None) => panic!("an invalid matrix was accepted"),
        (Ok(csr), Some(twin)) => (csr, twin),
    };
    // Vectors with one number per column may be too large to allocate.
    if n_cols > 1000 {
        return;
    }
    assert_eq!(csr.has_duplicates(), twin.has_duplicates());
    let w: Vec<f64> = (0..n_cols).map(|_| bytes.any()).collect();
    let (from, scale) = (bytes.below(10), bytes.any());
    twin.compare(&csr, &w, from, scale);
    match csr.into_pattern() {
        Ok(pattern) => {
            assert!(twin.has_one_value_in_each_row());
            // It sums weights before they are multiplied: that sum may overflow where the sum of
            // products does not.
            if w.iter().map(|w| w.abs()).sum::<f64>() < f64::MAX / 400.0 {
                twin.compare(&pattern, &w, from, scale);
            }
        }
        Err(csr) => {
            assert!(!twin.has_one_value_in_each_row());
            twin.compare(&csr, &w, from, scale);
        }
    }
}

/// The entries of each row, according to the definition of the format.
struct Twin {
    rows: Vec<Vec<(usize, f64)>>,
    n_cols: usize,
}

impl Twin {
    /// `None` if the arrays do not define a matrix.
    fn new<F: Real, I: Index, P: Index>(
        values: &[F],
        indices: &[I],
        indptr: &[P],
        n_cols: usize,
    ) -> Option<Self> {
        let pointers: Vec<i64> = indptr.iter().map(|p| p.to_i64()).collect();
        if n_cols == 0 || pointers.len() < 2 || pointers[0] != 0 {
            return None;
        }
        if pointers.windows(2).any(|pair| pair[1] < pair[0]) {
            return None;
        }
        let end = usize::try_from(*pointers.last()?).ok()?;
        if end > values.len() || end > indices.len() {
            return None;
        }
        if indices[..end]
            .iter()
            .any(|j| u64::try_from(j.to_i64()).map_or(true, |j| j >= n_cols as u64))
        {
            // A column beyond 2^63 has a negative number here, but is out of range unless the shape
            // is absurd.
            let is_below = |j: &I| j.to_usize() < n_cols;
            if !indices[..end].iter().all(is_below) {
                return None;
            }
        }
        let entry = |k: usize| (indices[k].to_usize(), values[k].into());
        let row = |pair: &[i64]| (pair[0] as usize..pair[1] as usize).map(entry).collect();
        Some(Self {
            rows: pointers.windows(2).map(row).collect(),
            n_cols,
        })
    }

    fn has_duplicates(&self) -> bool {
        let twice = |row: &Vec<(usize, f64)>, k: usize| row[..k].iter().any(|e| e.0 == row[k].0);
        self.rows
            .iter()
            .any(|row| (0..row.len()).any(|k| twice(row, k)))
    }

    fn has_one_value_in_each_row(&self) -> bool {
        self.rows
            .iter()
            .all(|row| row.iter().all(|e| e.1 == row[0].1))
    }

    /// Checks all methods of the rows against the definition.
    fn compare(&self, rows: &impl Rows, w: &[f64], from: usize, scale: f64) {
        let n = self.rows.len();
        assert_eq!((rows.n_rows(), rows.n_cols()), (n, self.n_cols));
        assert_eq!(
            rows.n_stored(),
            self.rows.iter().map(Vec::len).sum::<usize>()
        );
        for (i, row) in self.rows.iter().enumerate() {
            let mut visited = Vec::new();
            rows.visit(i, |j, x| visited.push((j, x)));
            assert_eq!(bits(&visited), bits(row), "row {i}");
            close(rows.dot(i, w), row.iter().map(|&(j, x)| x * w[j]));
            close(rows.sq_norm(i), row.iter().map(|&(_, x)| x * x));
            let mut moved = w.to_vec();
            rows.axpy(i, scale, &mut moved);
            self.same(&moved, w, &[(i, scale)]);
            rows.prefetch_pointers(i);
            rows.prefetch(i);
        }
        let from = from.min(n);
        let mut out = vec![f64::NAN; n - from];
        rows.products(from, w, &mut out);
        for (k, &product) in out.iter().enumerate() {
            close(product, self.rows[from + k].iter().map(|&(j, x)| x * w[j]));
        }
        // Every other row has a share of 0.
        let share = |k: usize| if k % 2 == 0 { scale } else { 0.0 };
        let shares: Vec<f64> = (0..n - from).map(share).collect();
        let mut sum = w.to_vec();
        rows.add(from, &shares, &mut sum);
        let given: Vec<(usize, f64)> = (from..n).zip(shares).filter(|(_, s)| *s != 0.0).collect();
        self.same(&sum, w, &given);
        let width = self.n_cols + 1;
        let mut out = vec![7.0; (n - from) * width];
        rows.shifted(from, w, width, &mut out);
        for (k, out) in out.chunks_exact(width).enumerate() {
            self.same(&out[..self.n_cols], w, &[(from + k, 1.0)]);
            assert_eq!(out[self.n_cols], 7.0);
        }
    }

    /// Checks that `found` is `w` plus the rows times their shares.
    fn same(&self, found: &[f64], w: &[f64], shares: &[(usize, f64)]) {
        for (j, &found) in found.iter().enumerate() {
            let of_row = |&(i, share): &(usize, f64)| {
                let entries = self.rows[i].iter().filter(move |e| e.0 == j);
                entries.map(move |e| share * e.1)
            };
            close(
                found,
                [w[j]].into_iter().chain(shares.iter().flat_map(of_row)),
            );
        }
    }
}

fn bits(entries: &[(usize, f64)]) -> Vec<(usize, Option<f64>)> {
    // NaN equals NaN here, and 0 equals -0: a pattern keeps only the first value of a row.
    let number = |v: f64| if v.is_nan() { None } else { Some(v) };
    entries.iter().map(|&(j, v)| (j, number(v))).collect()
}

/// Checks that `found` is the sum of the terms up to rounding; anything is accepted where partial
/// sums may overflow.
fn close(found: f64, terms: impl Iterator<Item = f64>) {
    let (mut sum, mut size, mut n) = (0.0, 0.0, 0.0);
    for term in terms {
        sum += term;
        size += term.abs();
        n += 1.0;
    }
    if size.is_finite() {
        let room = 2.0 * n * (f64::EPSILON * size + 5e-324);
        assert!((found - sum).abs() <= room, "{found:e} is not {sum:e}");
    } else {
        assert!(n > 0.0, "{found:e} for a sum of nothing");
    }
}
