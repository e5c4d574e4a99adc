//! Newton's direction by a system with one unknown for each row with `r_i > 0`.
//!
//! With `t_i = r_i x_i.d`, all lines of the system but that of the intercept are
//! `lambda d = -grad F - sum_i t_i x_i`, which turns it into
//!
//! ```text
//! (1/r_i) t_i + (1/lambda) sum_j x_i.x_j t_j = d_b - (1/lambda) x_i.grad F,    sum_i t_i = -grad_b F
//! ```
//!
//! with `d_b` as one more unknown. No digits are lost if `lambda` is tiny: `w + d` is the model of the dual values that
//! the step leads to.
//!
//! A few columns may be so large that rounding loses the others in `x_i.x_j`. These separate columns keep their own
//! `d_j`, as the intercept does. Let `B` be these columns, and one of ones for the intercept, and `A` the matrix of the
//! system for the other columns:
//!
//! ```text
//! A t = c + B d_B,   lambda d_B + B' t = -grad_B F,   so that  (B' A^-1 B + lambda I) d_B = -grad_B F - B' A^-1 c
//! ```
//!
//! where `lambda I` leaves out the intercept.

use super::{Design, Hessian, dot};
use crate::error::Error;
use crate::linalg::SymmetricSystem;
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::run::RunContext;

/// A column is separate if its sum of squares is more than this many times that of all smaller columns together, of
/// which the products of rows would otherwise keep at most 10 digits. And the maximum number of separate columns.
const APART: f64 = 1e6;
const MAX_APART: usize = 32;

/// The separate columns, see [`APART`], given the sum of squares of each column.
pub(super) fn stand_apart(spreads: &[f64]) -> Vec<usize> {
    let mut largest: Vec<usize> = (0..spreads.len()).into_vec();
    largest.sort_by(|&j, &l| spreads[l].total_cmp(&spreads[j]).then(j.cmp(&l)));
    let mut rest: f64 = largest.iter().skip(MAX_APART).map(|&j| spreads[j]).sum();
    largest.truncate(MAX_APART);
    // From the smallest on: all columns larger than a separate one are separate, too.
    let mut count = 0;
    for (k, &j) in largest.iter().enumerate().rev() {
        if count == 0 && spreads[j] > APART * rest {
            count = k + 1;
        }
        rest += spreads[j];
    }
    largest.truncate(count);
    largest
}

impl Hessian<'_, '_, '_> {
    /// Row `i`, centred if there is an intercept, as a dense vector.
    fn centred(&self, i: usize) -> Vec<f64> {
        let Design { problem, mu, .. } = self.design;
        let mut row = memory::zeros(problem.rows().n_cols());
        problem.rows().write(i, &mut row);
        for (x, m) in row.iter_mut().zip(mu) {
            *x -= m;
        }
        row
    }

    /// The separate columns of the chosen rows, see [`APART`].
    fn columns_apart(
        &self,
        chosen: &[u32],
        context: &mut RunContext<'_>,
    ) -> Result<Vec<usize>, Error> {
        let mut spreads = memory::zeros(self.design.problem.rows().n_cols());
        for &i in chosen {
            for (spread, x) in spreads.iter_mut().zip(self.centred(i as usize)) {
                *spread += x * x;
            }
            context.heartbeat_in_time()?;
        }
        Ok(stand_apart(&spreads))
    }

    pub(super) fn by_rows(
        &self,
        gradient: &[f64],
        system: &mut SymmetricSystem,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let Design { problem, mu, .. } = self.design;
        let (rows, n_cols) = (problem.rows(), problem.rows().n_cols());
        let chosen: Vec<u32> = (0..rows.n_rows() as u32)
            .filter(|&i| self.weights[i as usize] > 0.0)
            .into_vec();
        let apart = self.columns_apart(&chosen, context)?;
        // The columns of the border: the separate ones and, if there is an intercept, a column of ones.
        let room = |_| memory::with_capacity(chosen.len());
        let mut border: Vec<Vec<f64>> = (0..apart.len()).map(room).into_vec();
        system.clear(chosen.len());
        for &i in &chosen {
            let row = self.centred(i as usize);
            for (column, &j) in border.iter_mut().zip(&apart) {
                column.push(row[j]);
            }
        }
        system.fill(context, |k, cells| {
            let mut row = self.centred(chosen[k] as usize);
            for &j in &apart {
                row[j] = 0.0;
            }
            let shift = dot(mu, &row);
            rows.products_of(&chosen[..=k], &row, cells);
            for cell in &mut *cells {
                *cell = (*cell - shift) / problem.penalty().curvature();
            }
            cells[k] += 1.0 / self.weights[chosen[k] as usize];
        })?;
        system.factor(context)?;
        let (coef, of_intercept) = gradient.split_at(n_cols);
        let mut together = coef.duplicate();
        for &j in &apart {
            together[j] = 0.0;
        }
        let shift = dot(mu, &together);
        let mut t = memory::zeros(chosen.len());
        rows.products_of(&chosen, &together, &mut t);
        for t in &mut t {
            *t = (shift - *t) / problem.penalty().curvature();
        }
        system.solve(&mut t);
        border.extend(
            of_intercept
                .iter()
                .map(|_| memory::filled(chosen.len(), 1.0)),
        );
        let solved: Vec<Vec<f64>> = border
            .iter()
            .map(|column| {
                let mut solved = column.duplicate();
                system.solve(&mut solved);
                solved
            })
            .into_vec();
        let mut small = SymmetricSystem::new(border.len());
        for (k, column) in border.iter().enumerate() {
            for (l, solved) in solved[..=k].iter().enumerate() {
                small.add_cell(k, l, dot(column, solved));
            }
        }
        small.add_diagonal(apart.len(), problem.penalty().curvature());
        small.factor(context)?;
        let gradients = apart
            .iter()
            .map(|&j| coef[j])
            .chain(of_intercept.iter().copied());
        let mut d_border: Vec<f64> = gradients
            .zip(&border)
            .map(|(gradient, column)| -gradient - dot(column, &t))
            .into_vec();
        // If nothing depends on the intercept, it does not move.
        small.solve(&mut d_border);
        for (solved, d) in solved.iter().zip(&d_border) {
            for (t, solved) in t.iter_mut().zip(solved) {
                *t += d * solved;
            }
        }
        let mut direction = coef.duplicate();
        let total: f64 = t.iter().sum();
        rows.add_of(&chosen, &t, &mut direction);
        for (d, m) in direction.iter_mut().zip(mu) {
            *d -= total * m;
        }
        for d in &mut direction {
            *d /= -problem.penalty().curvature();
        }
        for (&j, &d) in apart.iter().zip(&d_border) {
            direction[j] = d;
        }
        memory::extend(&mut direction, d_border.get(apart.len()).copied());
        Ok(direction)
    }
}
