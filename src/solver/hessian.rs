//! Newton's direction: the solution `d` of `H d = -grad F` for
//!
//! ```text
//! H = lambda I + sum_i r_i x_i x_i'
//! ```
//!
//! where the identity leaves out the intercept, `x_i` stands for the centred row with a last entry of 1
//! for the intercept if there is one, and `r_i >= 0`. There are three ways, and the cheapest one that
//! is possible is taken:
//!
//! * **By columns.** `H` itself, for few columns, by Cholesky's method.
//! * **By rows**, for few rows with `r_i > 0`. With `t_i = r_i x_i.d` the first lines of the system are
//!   `lambda d = -grad F - sum_i t_i x_i`, which turns it into
//!
//!   ```text
//!   (1/r_i) t_i + (1/lambda) sum_j x_i.x_j t_j = d_b - (1/lambda) x_i.grad F,    sum_i t_i = -grad_b F
//!   ```
//!
//!   with one unknown for each of those rows beside `d_b`. Nothing is lost where `lambda` is tiny:
//!   `w + d` is the model of the dual values that the step leads to.
//! * **By conjugate gradients**, for anything else, with the diagonal of `H` to precondition them, up
//!   to a residual that is small beside the gradient.

use crate::error::Error;
use crate::loss::Loss;
use crate::problem::Problem;
use crate::rows::Rows;
use crate::run::Watch;
use crate::solver::system::System;

/// Most unknowns for which a system is set up: a matrix of 72 MB.
const MAX_UNKNOWNS: usize = 3000;

/// Steps of conjugate gradients for one direction: expected, and at most.
const EXPECTED_STEPS: f64 = 50.0;
const MAX_STEPS: usize = 300;

/// How a system is solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Columns,
    Rows,
    ConjugateGradients,
}

/// The cheapest way for a Hessian with `count` rows, and its work in about nanoseconds.
pub(crate) fn cheapest<R: Rows>(rows: &R, count: usize) -> (Way, f64) {
    let (n, columns) = (count as f64, rows.n_cols() as f64);
    let per_row = rows.n_stored() as f64 / rows.n_rows() as f64;
    let cholesky = |unknowns: f64| 0.05 * unknowns.powi(3);
    let mut best = (
        Way::ConjugateGradients,
        EXPECTED_STEPS * (3.0 * n * per_row + 15.0 * n + 10.0 * columns),
    );
    if rows.n_cols() <= MAX_UNKNOWNS {
        // Certain where conjugate gradients are not.
        best = (Way::Columns, n * outer_work(rows).0 + cholesky(columns));
    }
    if count <= MAX_UNKNOWNS {
        let products = 0.5 * n * n * per_row + 2.0 * n * columns;
        let work = products + cholesky(n);
        if work < best.1 {
            best = (Way::Rows, work);
        }
    }
    best
}

/// Work of adding one row to the matrix of the columns, in about nanoseconds, and whether that is best
/// done entry by entry.
fn outer_work<R: Rows>(rows: &R) -> (f64, bool) {
    let per_row = rows.n_stored() as f64 / rows.n_rows() as f64;
    let by_entries = 0.6 * per_row * per_row;
    let columns = rows.n_cols() as f64;
    let as_dense = 0.08 * columns * columns + columns;
    (by_entries.min(as_dense), by_entries < as_dense)
}

/// The rows as they are in `H`: centred, with a last entry of 1 if there is an intercept.
pub(crate) struct Design<'p, 'a, R, L> {
    pub(crate) problem: &'p Problem<'a, R, L>,
    /// The mean row; empty without an intercept.
    pub(crate) mu: Vec<f64>,
}

impl<R: Rows, L: Loss> Design<'_, '_, R, L> {
    /// Number of unknowns.
    pub(crate) fn size(&self) -> usize {
        self.problem.rows().n_cols() + usize::from(self.problem.fit_intercept())
    }

    /// What to add to `x.v` for the product of the centred row with `v`.
    pub(crate) fn shift(&self, v: &[f64]) -> f64 {
        let (coef, rest) = v.split_at(self.problem.rows().n_cols());
        rest.first().map_or(0.0, |b| b - dot(&self.mu, coef))
    }

    /// The products of all rows with `v`, or of those that `counts`.
    pub(crate) fn products(
        &self,
        v: &[f64],
        counts: impl Fn(usize) -> bool + Sync,
        out: &mut [f64],
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        let rows = self.problem.rows();
        let (coef, shift) = (&v[..rows.n_cols()], self.shift(v));
        watch.change(out, self.problem.block_size(), |i, _| {
            if counts(i) {
                rows.dot(i, coef) + shift
            } else {
                0.0
            }
        })
    }

    /// The sum of all rows times `share(i)`.
    pub(crate) fn sum(
        &self,
        share: impl Fn(usize) -> f64 + Sync,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<f64>, Error> {
        let mut sum = vec![0.0; self.problem.rows().n_cols()];
        self.problem.add_rows(&share, &mut sum, watch)?;
        if self.problem.fit_intercept() {
            let totals = self
                .problem
                .by_blocks(watch, |block| block.map(&share).sum::<f64>())?;
            let total: f64 = totals.iter().sum();
            for (sum, m) in sum.iter_mut().zip(&self.mu) {
                *sum -= total * m;
            }
            sum.push(total);
        }
        Ok(sum)
    }
}

/// `H`, given by the weights `r` of its rows.
pub(crate) struct Hessian<'h, 'p, 'a, R, L> {
    pub(crate) design: &'h Design<'p, 'a, R, L>,
    pub(crate) weights: &'h [f64],
}

impl<R: Rows, L: Loss> Hessian<'_, '_, '_, R, L> {
    /// The solution of `H d = -gradient`. Conjugate gradients leave a residual of about `precision`
    /// times the gradient. The memory of `system` is used again.
    pub(crate) fn direction(
        &self,
        gradient: &[f64],
        precision: f64,
        system: &mut System,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<f64>, Error> {
        let count = self.weights.iter().filter(|&&r| r > 0.0).count();
        match cheapest(self.design.problem.rows(), count).0 {
            Way::Columns => self.by_columns(gradient, system, watch),
            Way::Rows => self.by_rows(gradient, system, watch),
            Way::ConjugateGradients => self.by_conjugate_gradients(gradient, precision, watch),
        }
    }

    fn by_columns(
        &self,
        gradient: &[f64],
        system: &mut System,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<f64>, Error> {
        let Design { problem, mu } = self.design;
        let rows = problem.rows();
        system.clear(gradient.len());
        if outer_work(rows).1 {
            self.add_by_entries(system, watch)?;
        } else {
            for block in problem.blocks() {
                for i in block {
                    let r = self.weights[i];
                    if r > 0.0 {
                        let row = system.next_row();
                        rows.visit(i, |j, x| row[j] = x);
                        for (x, m) in row.iter_mut().zip(mu) {
                            *x -= m;
                        }
                        if problem.fit_intercept() {
                            row[mu.len()] = 1.0;
                        }
                        system.end_row(r, watch);
                    }
                }
                watch.beat()?;
            }
            system.flush(watch);
        }
        system.add_diagonal(rows.n_cols(), problem.lambda());
        system.factor();
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
        system.solve(&mut direction);
        Ok(direction)
    }

    /// Adds the rows to the system entry by entry.
    fn add_by_entries(&self, system: &mut System, watch: &mut Watch<'_>) -> Result<(), Error> {
        let Design { problem, mu } = self.design;
        let rows = problem.rows();
        let n_blocks = rows.n_rows().div_ceil(problem.block_size());
        let work = rows.n_stored() as f64 * rows.n_stored() as f64 / rows.n_rows() as f64;
        let room = work / (system.n_cells() as f64 * ENTRIES_PER_CELL);
        let n_parts = (room as usize).clamp(1, MAX_PARTS).min(n_blocks);
        // Each part has sums of its own, of every `n_parts`th block.
        let part = || {
            (
                System::new(self.design.size()),
                vec![0.0; rows.n_cols()],
                0.0,
            )
        };
        let mut parts: Vec<_> = (0..n_parts).map(|_| part()).collect();
        for from in (0..n_blocks).step_by(n_parts) {
            watch.share(&mut parts, 1, |number, part| {
                let Some(block) = problem.blocks().nth(from + number) else {
                    return;
                };
                let (system, sum, total) = &mut part[0];
                let mut entries = Vec::new();
                for i in block {
                    let r = self.weights[i];
                    if r > 0.0 {
                        entries.clear();
                        rows.visit(i, |j, x| entries.push((j, x)));
                        system.add_outer(&entries, r);
                        for &(j, x) in &entries {
                            sum[j] += r * x;
                        }
                        *total += r;
                    }
                }
            });
            watch.beat()?;
        }
        let (mut sum, mut total) = (vec![0.0; rows.n_cols()], 0.0);
        for (part, part_sum, part_total) in &parts {
            system.add(part);
            for (sum, part) in sum.iter_mut().zip(part_sum) {
                *sum += part;
            }
            total += part_total;
        }
        if problem.fit_intercept() {
            system.centre(mu, &sum, total);
        }
        Ok(())
    }

    fn by_rows(
        &self,
        gradient: &[f64],
        system: &mut System,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<f64>, Error> {
        let Design { problem, mu } = self.design;
        let (rows, n_cols) = (problem.rows(), problem.rows().n_cols());
        let chosen: Vec<usize> = (0..rows.n_rows())
            .filter(|&i| self.weights[i] > 0.0)
            .collect();
        system.clear(chosen.len());
        system.fill(watch, |k, cells| {
            let mut row = vec![0.0; n_cols];
            rows.visit(chosen[k], |j, x| row[j] = x);
            for (x, m) in row.iter_mut().zip(mu) {
                *x -= m;
            }
            let shift = dot(mu, &row);
            for (cell, &i) in cells.iter_mut().zip(&chosen) {
                *cell = (rows.dot(i, &row) - shift) / problem.lambda();
            }
            cells[k] += 1.0 / self.weights[chosen[k]];
        })?;
        system.factor();
        let (coef, rest) = gradient.split_at(n_cols);
        let shift = dot(mu, coef);
        let mut t: Vec<f64> = chosen
            .iter()
            .map(|&i| (shift - rows.dot(i, coef)) / problem.lambda())
            .collect();
        system.solve(&mut t);
        let mut d_b = None;
        if let Some(gradient_b) = rest.first() {
            let mut of_ones = vec![1.0; chosen.len()];
            system.solve(&mut of_ones);
            let b = (-gradient_b - t.iter().sum::<f64>()) / of_ones.iter().sum::<f64>();
            // Without rows nothing depends on the intercept.
            let b = if chosen.is_empty() { 0.0 } else { b };
            for (t, one) in t.iter_mut().zip(&of_ones) {
                *t += b * one;
            }
            d_b = Some(b);
        }
        let mut direction = coef.to_vec();
        let total: f64 = t.iter().sum();
        for (&i, &t) in chosen.iter().zip(&t) {
            rows.axpy(i, t, &mut direction);
        }
        for (d, m) in direction.iter_mut().zip(mu) {
            *d -= total * m;
        }
        for d in &mut direction {
            *d /= -problem.lambda();
        }
        direction.extend(d_b);
        Ok(direction)
    }

    fn by_conjugate_gradients(
        &self,
        gradient: &[f64],
        precision: f64,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<f64>, Error> {
        let (design, problem) = (self.design, self.design.problem);
        let (n_cols, lambda) = (problem.rows().n_cols(), problem.lambda());
        let diagonal = self.diagonal(watch)?;
        let precondition =
            |v: &[f64]| -> Vec<f64> { v.iter().zip(&diagonal).map(|(v, d)| v / d).collect() };
        let mut products = vec![0.0; problem.rows().n_rows()];
        let mut direction = vec![0.0; gradient.len()];
        let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut scaled = precondition(&residual);
        let mut size = dot(&residual, &scaled);
        let enough = precision * precision * size;
        let mut way = scaled.clone();
        for _ in 0..MAX_STEPS {
            let counts = |i: usize| self.weights[i] > 0.0;
            design.products(&way, counts, &mut products, watch)?;
            let mut image = design.sum(|i| self.weights[i] * products[i], watch)?;
            for (image, v) in image.iter_mut().zip(&way[..n_cols]) {
                *image += lambda * v;
            }
            let step = size / dot(&way, &image);
            if !(step.is_finite() && step > 0.0) {
                break;
            }
            for (d, v) in direction.iter_mut().zip(&way) {
                *d += step * v;
            }
            for (r, v) in residual.iter_mut().zip(&image) {
                *r -= step * v;
            }
            scaled = precondition(&residual);
            let before = size;
            size = dot(&residual, &scaled);
            // Any point on the way is a direction in which the objective falls.
            if size <= enough || watch.is_over() {
                break;
            }
            for (v, s) in way.iter_mut().zip(&scaled) {
                *v = s + size / before * *v;
            }
        }
        Ok(direction)
    }

    /// The diagonal of `H`.
    fn diagonal(&self, watch: &mut Watch<'_>) -> Result<Vec<f64>, Error> {
        let Design { problem, mu } = self.design;
        let n_cols = problem.rows().n_cols();
        let (mut squares, mut sums, mut total) = (vec![0.0; n_cols], vec![0.0; mu.len()], 0.0);
        for block in problem.blocks() {
            for i in block {
                let r = self.weights[i];
                if r > 0.0 {
                    problem.rows().visit(i, |j, x| {
                        squares[j] += r * x * x;
                        if let Some(sum) = sums.get_mut(j) {
                            *sum += r * x;
                        }
                    });
                    total += r;
                }
            }
            watch.beat()?;
        }
        for ((square, sum), m) in squares.iter_mut().zip(&sums).zip(mu) {
            // Not negative, whatever rounding does.
            *square = (*square - 2.0 * m * sum + m * m * total).max(0.0);
        }
        for square in &mut squares {
            *square += problem.lambda();
        }
        if problem.fit_intercept() {
            squares.push(if total > 0.0 { total } else { 1.0 });
        }
        Ok(squares)
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Matrices that are filled side by side, at most, and the products of entries that each must be
/// worth for every cell of it.
const MAX_PARTS: usize = 8;
const ENTRIES_PER_CELL: f64 = 8.0;
