//! Newton's direction by the matrix of the columns.

use super::columns::Gram;
use super::cost::{is_affordable_again, outer_work};
use super::{Design, Hessian, Memory, dot};
use crate::error::Error;
use crate::linalg::SymmetricSystem;
use crate::memory::IntoVec as _;
use crate::run::RunContext;

/// A row whose weight has changed by less than this fraction keeps its old weight in the matrix. The direction is then
/// wrong by about the same fraction, but only the rows that have changed need to be added again.
const CHANGE: f64 = 0.1;

impl Hessian<'_, '_, '_> {
    pub(super) fn by_columns(
        &self,
        gradient: &[f64],
        precision: f64,
        memory: &mut Memory,
        context: &mut RunContext<'_>,
    ) -> Result<Vec<f64>, Error> {
        let (rows, columns) = (self.design.problem.rows(), self.design.columns);
        let Memory { system, gram, .. } = memory;
        self.factor(system, gram, context)?;
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).into_vec();
        let room = precision * precision * dot(gradient, gradient);
        let remainder = system.remainder(&direction);
        if is_affordable_again(rows, columns) && remainder > room {
            self.solve_again(&mut direction, system, context)?;
        } else {
            system.solve(&mut direction);
        }
        Ok(direction)
    }

    /// Makes `system` that of the columns, and factors it.
    pub(super) fn factor(
        &self,
        system: &mut SymmetricSystem,
        gram: &mut Gram,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let Design {
            problem,
            mu,
            columns,
        } = self.design;
        let rows = problem.rows();
        system.clear(rows.n_cols() + usize::from(problem.fit_intercept()));
        if outer_work(rows, columns).1 {
            let weights = (self.weights, CHANGE);
            gram.update(columns, (problem, mu), weights, system, context)?;
        } else {
            self.add_rows(system, |_| {}, context)?;
            system.flush(context);
        }
        system.add_diagonal(rows.n_cols(), problem.penalty().curvature());
        system.factor(context)
    }

    /// The solution of the system of the columns if the sums of products have lost a direction `v` that
    /// matters: one in which `v' H v` is little more than `lambda |v|^2`, because the rows cancel there, to
    /// less than the last digit of the matrix.
    ///
    /// Let `L` be the computed factor of `S H S`. The rows, and those of `lambda I` (the root of `lambda`
    /// in each), are replaced by `L^-1 S x`. Products of these lose nothing, because `x.v` cancels before it
    /// is squared. Their system is `L^-1 S H S L^-T`, close to the identity.
    fn solve_again(
        &self,
        v: &mut [f64],
        system: &mut SymmetricSystem,
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let problem = self.design.problem;
        system.release();
        let mut finer = SymmetricSystem::new(v.len());
        self.add_rows(&mut finer, |row| system.forward(row), context)?;
        for j in 0..problem.rows().n_cols() {
            let row = finer.next_row();
            row[j] = 1.0;
            system.forward(row);
            finer.end_row(problem.penalty().curvature(), context);
            context.heartbeat_in_time()?;
        }
        finer.flush(context);
        finer.factor(context)?;
        system.forward(v);
        finer.solve(v);
        system.backward(v);
        Ok(())
    }

    /// Adds the rows to the system one by one, as dense rows, each changed by `change`.
    fn add_rows(
        &self,
        system: &mut SymmetricSystem,
        change: impl Fn(&mut [f64]),
        context: &mut RunContext<'_>,
    ) -> Result<(), Error> {
        let Design { problem, mu, .. } = self.design;
        for block in problem.data().blocks() {
            for i in block {
                let r = self.weights[i];
                if r > 0.0 {
                    let row = system.next_row();
                    problem.rows().write(i, row);
                    for (x, m) in row.iter_mut().zip(mu) {
                        *x -= m;
                    }
                    if problem.fit_intercept() {
                        row[mu.len()] = 1.0;
                    }
                    change(row);
                    system.end_row(r, context);
                    context.heartbeat_in_time()?;
                }
            }
        }
        Ok(())
    }
}
