//! Subgradient descent on `P`, all rows at a time, which keeps the best of its iterates.
//!
//! ```text
//! g_i = -phi'(x_i.w + b; y_i),   b = argmin_b P(w, b)
//! w   = (1 - eta lambda) w + (eta / W) sum_i c_i g_i x_i
//! ```
//!
//! With an intercept, this is the method on `min_b P(w, b)`: the subgradients `g` are chosen, where
//! rows lie on a kink, so that `sum_i c_i g_i = 0`.
//!
//! **Certificate.** `w` stays `w(a)` if `a` takes the same steps, `a = (1 - eta lambda) a + eta lambda g`:
//! a mean of values `-phi'`, and so a feasible dual point. The better one of it and of `-phi'` at the
//! model itself counts. (After a warm start, `a` goes on from the dual point that was given, which need
//! not be that of the model.)

use crate::error::{self, Error};
use crate::intercept::{self, Minimum};
use crate::loss::Loss;
use crate::memory::{self, Duplicate as _, IntoVec as _};
use crate::problem::{Point, Problem};
use crate::rows::Rows;
use crate::run::{Budget, Certificate, Fit, Monitor, Watch};
use crate::solver::batch::Team;
use crate::solver::course::{self, Pace, Process};
use crate::solver::frame::Frame;
use crate::solver::output::{Iterates, Keeper, Output, check_average_from};
use crate::solver::rate::{LearningRate, Steps, loss_curvature};
use crate::solver::spectrum::largest_eigenvalue;
use crate::solver::{Solver, Start};

/// The settings of subgradient descent.
#[derive(Debug, Clone, PartialEq)]
pub struct Subgradient {
    /// The lengths of the steps. `None` is [`LearningRate::Pegasos`] for a loss with kinks and
    /// [`LearningRate::Constant`] for one without.
    pub learning_rate: Option<LearningRate>,
    /// The iterate that is returned, and evaluated on the way: `None` is the best one so far.
    pub output: Option<Output>,
    /// `T0` of [`Output::Average`] and [`Output::Random`] as a fraction of the run.
    pub average_from: f64,
    /// Seed of [`Output::Random`]; nothing else is random.
    pub seed: u64,
    /// Threads that share the passes. The result does not depend on it.
    pub n_threads: usize,
}

impl Default for Subgradient {
    fn default() -> Self {
        Self {
            learning_rate: None,
            output: None,
            average_from: 0.5,
            seed: 0,
            n_threads: 1,
        }
    }
}

/// Cost of an evaluation in epochs: four passes, where an epoch takes two. A constant, so that runs in
/// which a row is repeated or weighted are evaluated, and end, at the same epochs.
const EVALUATION_COST: f64 = 2.0;

impl Solver for Subgradient {
    // Once for all that call it: it is long, and compiled for each loss and storage.
    #[inline(never)]
    fn solve<R: Rows, L: Loss>(
        &self,
        problem: &Problem<'_, R, L>,
        budget: &Budget,
        start: Option<Start<'_>>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        error::catch(|| {
            budget.check()?;
            let output = self.output.unwrap_or_default();
            check_average_from(self.average_from)?;
            let (rows, loss) = (problem.rows(), problem.loss());
            let n_rows = rows.n_rows();
            let mut watch = Watch::new(budget.max_time, monitor);
            let frame = Frame::new(problem, &mut watch, &mut |_, _, _| ())?;
            let mut team = Team::new(rows, n_rows, self.n_threads)?;
            team.announce(&mut watch);
            let moving: Vec<u32> = problem.counting().map(|i| i as u32).into_vec();
            let mut zero = Point::default();
            problem.evaluate(memory::zeros(n_rows), 1e-6, &mut zero, &mut watch)?;
            let largest = largest_eigenvalue(problem, &frame, &moving, &mut team, &mut watch)?;
            let curvature = loss_curvature(problem) * largest;
            let rate = match self.learning_rate {
                Some(rate) => rate,
                None if loss.has_kinks() => LearningRate::Pegasos,
                None => LearningRate::Constant { eta0: None },
            };
            let (mut a, coef) = match start {
                Some(start) => (
                    start.dual_for(problem)?,
                    start.coef_for(problem)?.duplicate(),
                ),
                None => (memory::zeros(n_rows), memory::zeros(rows.n_cols())),
            };
            if problem.fit_intercept() {
                intercept::balance(&mut a, |i| problem.mass(i));
            }
            let mut run = Run {
                problem,
                steps: rate.steps(loss, problem.lambda(), curvature)?,
                before: start.map_or(0.0, |start| start.steps),
                iterate: Iterate { coef, a },
                intercept: zero.intercept,
                predictions: memory::zeros(moving.len()),
                slopes: memory::zeros(moving.len()),
                shares: memory::zeros(moving.len()),
                best: self.output.is_none().then_some((f64::INFINITY, None)),
                highest: None,
                team,
                moving,
                keeper: Keeper::new(
                    output,
                    self.average_from,
                    1,
                    budget.max_epochs,
                    self.seed,
                    || Iterates::new(rows.n_cols() + n_rows),
                ),
            };
            let pace = Pace {
                evaluation_cost: EVALUATION_COST,
                least: 0,
                mean_q: frame.mean_sq_norm / (problem.lambda() * problem.total_weight()),
            };
            let before = run.before;
            let mut fit = course::run(&mut run, budget, pace, &mut watch)?;
            fit.steps += before;
            Ok(fit)
        })
    }
}

/// A model and the dual point that takes the same steps.
struct Iterate {
    coef: Vec<f64>,
    a: Vec<f64>,
}

impl Iterate {
    fn duplicate(&self) -> Self {
        Self {
            coef: self.coef.duplicate(),
            a: self.a.duplicate(),
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.coef.iter().chain(&self.a).copied()
    }
}

/// A run: its iterate, and buffers.
struct Run<'p, 'a, R, L> {
    problem: &'p Problem<'a, R, L>,
    steps: Steps,
    /// Steps of earlier runs.
    before: f64,
    iterate: Iterate,
    /// The best `b`.
    intercept: f64,
    /// For each row that counts: `x.w`, the negative slope there, and its share of a step.
    predictions: Vec<f64>,
    slopes: Vec<f64>,
    shares: Vec<f64>,
    /// The least `P` of an iterate, and that iterate; `None` if another one is returned.
    best: Option<(f64, Option<Iterate>)>,
    /// The highest `D` that went with it at an evaluation, and the dual point.
    highest: Option<(Certificate, Vec<f64>)>,
    team: Team,
    /// The rows that count.
    moving: Vec<u32>,
    keeper: Keeper<Iterates>,
}

impl<R: Rows, L: Loss> Run<'_, '_, R, L> {
    /// Finds predictions, intercept and slopes of the present iterate. Keeps it if it is the best.
    fn look(&mut self, watch: &mut Watch<'_>) -> Result<(), Error> {
        let Self {
            problem,
            iterate: Iterate { coef, .. },
            predictions,
            slopes,
            moving,
            ..
        } = self;
        let (rows, loss) = (problem.rows(), problem.loss());
        self.team
            .map(moving, predictions, watch, |_, i| rows.dot(i, coef))?;
        let (predictions, moving) = (&*predictions, &*moving);
        let term = |k: usize, b: f64| {
            let i = moving[k] as usize;
            let (p, c, y) = (predictions[k] + b, problem.weight(i), problem.target(i));
            (c * loss.value(p, y), c * loss.slope(p, y))
        };
        let n = moving.len();
        let reach = intercept::reach(&loss) / problem.total_weight();
        let minimum = if problem.fit_intercept() {
            let found = intercept::minimise_sum(n, self.intercept, reach, 1e-13, watch, term)?;
            let apart = intercept::apart(&loss, found.b, found.value / problem.total_weight());
            if apart == 0.0 {
                found
            } else {
                intercept::with_close_sides(found, apart, n, watch, term)?
            }
        } else {
            Minimum::at(0.0, intercept::sum(n, watch, |k| term(k, 0.0))?.0)
        };
        self.intercept = minimum.b;
        // Beside a kink the slopes on both sides are mixed so that they add up to 0.
        let (left, right) = minimum.sides;
        let mix = minimum.mix;
        for ((slope, p), &i) in slopes.iter_mut().zip(predictions).zip(moving) {
            let y = problem.target(i as usize);
            *slope = -mix * loss.slope(p + left, y) - (1.0 - mix) * loss.slope(p + right, y);
        }
        if problem.fit_intercept() {
            intercept::balance(slopes, |k| problem.mass(moving[k] as usize));
        }
        if let Some((least, best)) = &mut self.best {
            let penalty = 0.5 * problem.lambda() * coef.iter().map(|w| w * w).sum::<f64>();
            let primal = minimum.value / problem.total_weight() + penalty;
            if primal < *least {
                *least = primal;
                *best = Some(self.iterate.duplicate());
            }
        }
        Ok(())
    }
}

impl<R: Rows, L: Loss> Process for Run<'_, '_, R, L> {
    fn epoch(&self) -> u64 {
        1
    }

    fn is_perfect(&self, point: &Point) -> bool {
        self.problem.is_perfect(point)
    }

    fn prefer_zero(
        &self,
        precision: f64,
        point: &mut Point,
        watch: &mut Watch<'_>,
    ) -> Result<bool, Error> {
        self.problem.prefer_zero(precision, point, watch)
    }

    fn advance(&mut self, step: u64, until: u64, watch: &mut Watch<'_>) -> Result<u64, Error> {
        self.keeper.attend(step, self.iterate.values(), until);
        if let Some(iterates) = self.keeper.tally() {
            iterates.count(self.iterate.values());
        }
        self.look(watch)?;
        let step = step + 1;
        let (_, decay) = self.steps.at(self.before + step as f64, 1.0);
        let problem = self.problem;
        let Iterate { coef, a } = &mut self.iterate;
        for ((share, slope), &i) in self.shares.iter_mut().zip(&self.slopes).zip(&self.moving) {
            let i = i as usize;
            *share = (1.0 - decay) * problem.rate(i) * slope;
            a[i] = decay * a[i] + (1.0 - decay) * slope;
        }
        for w in &mut *coef {
            *w *= decay;
        }
        let rows = problem.rows();
        self.team
            .add(rows, &self.moving, &self.shares, coef, watch)?;
        if coef.iter().any(|w| !w.is_finite()) {
            return Err(Error::Diverged {
                name: "learning_rate",
            });
        }
        Ok(step)
    }

    fn certify(
        &mut self,
        step: u64,
        precision: f64,
        point: &mut Point,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        let values = match self.keeper.output(step, self.iterate.values()) {
            Some(values) => values,
            None if self.best.is_some() => {
                self.look(watch)?;
                let best = self.best.as_ref().and_then(|(_, best)| best.as_ref());
                best.unwrap_or(&self.iterate).values().into_vec()
            }
            None => self.iterate.values().into_vec(),
        };
        let problem = self.problem;
        let (coef, dual) = values.split_at(problem.rows().n_cols());
        problem.evaluate_model(
            coef.iter().copied(),
            problem.feasible(dual.iter().copied()),
            precision,
            point,
            watch,
        )?;
        if self.best.is_some() {
            // The highest lower bound so far, whichever iterate it came with.
            let Certificate { primal, dual, .. } = point.certificate;
            match &self.highest {
                Some((highest, a)) if highest.dual >= dual => {
                    point.certificate = Certificate::new(primal, highest.dual, highest.support);
                    memory::assign(&mut point.dual, a);
                }
                _ => {
                    self.highest = Some((point.certificate, point.dual.duplicate()));
                }
            }
        }
        Ok(())
    }
}
