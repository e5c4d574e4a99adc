//! The solvers other than SDCA: their certificates are correct, they do exactly what the papers
//! say, and they converge as the theorems say.

use std::ops::ControlFlow;

use ndarray::ArrayView2;
use sdca_rs::Error;
use sdca_rs::kernel::Borrowed;
use sdca_rs::loss::{
    Absolute, EpsilonInsensitive, Hinge, Huber, Log, Loss, Poisson, Quantile, SPECS, SmoothHinge,
    Squared, SquaredHinge, Target, Visitor, dispatch,
};
use sdca_rs::order::Sampling;
use sdca_rs::problem::{Problem, Regularisation};
use sdca_rs::rows::{Csr, Dense};
use sdca_rs::run::{
    Budget, Certificate, Fit, Monitor, NoMonitor, Phase, Progress, RunContext, StopReason,
};
use sdca_rs::solver::{
    Asdca, AverageFrom, DualGradient, LearningRate, Output, Pegasos, Sdca, Solver, Start, Stream,
    Subgradient,
};

use crate::support::{Data, Stored, posed};

const D: usize = 6;

fn dense(x: &[f64], n_cols: usize) -> Dense<'_, f64> {
    let shape = (x.len() / n_cols, n_cols);
    Dense::new(ArrayView2::from_shape(shape, x).expect("shape")).expect("C order")
}

fn budget(tol: f64, max_epochs: usize) -> Budget {
    Budget {
        tol,
        max_epochs,
        ..Budget::default()
    }
}

/// A problem without weights and without an intercept.
fn plain<'a, R: Stored, L: Loss>(
    rows: &'a R,
    targets: &'a [f64],
    loss: L,
    lambda: f64,
) -> Problem<'a> {
    let lambda = Regularisation::Lambda(lambda);
    posed(rows, targets, None, loss, lambda, false).expect("valid")
}

fn solve(solver: &impl Solver, problem: &Problem<'_>, budget: &Budget) -> Fit {
    solver
        .solve(problem, budget, None, &mut NoMonitor)
        .expect("neither interrupted nor diverged")
}

/// Collects the models of a run.
#[derive(Default)]
struct Models(Vec<Vec<f64>>);

impl Monitor for Models {
    fn record(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.0.push(progress.coef.to_vec());
        ControlFlow::Continue(())
    }
}

/// The model before the first step and after each of `steps`, of which an epoch has `per_epoch`.
fn iterates(
    solver: &impl Solver,
    problem: &Problem<'_>,
    steps: usize,
    per_epoch: usize,
) -> (Vec<Vec<f64>>, Fit) {
    let budget = Budget {
        record_every: Some(1.0 / per_epoch as f64),
        ..budget(0.0, steps.div_ceil(per_epoch))
    };
    let mut models = Models::default();
    let fit = solver
        .solve(problem, &budget, None, &mut models)
        .expect("neither interrupted nor diverged");
    models.0.truncate(steps + 1);
    assert_eq!(models.0.len(), steps + 1);
    (models.0, fit)
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], tol: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().fold(1.0, |size, v| f64::max(size, v.abs()));
    for (j, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= tol * size,
            "{what}: {found} not {expected} at {j}"
        );
    }
}

#[track_caller]
fn assert_all_close(found: &[Vec<f64>], expected: &[Vec<f64>], tol: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (step, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_close(found, expected, tol, &format!("{what}, step {step}"));
    }
}

fn mean(vectors: &[Vec<f64>]) -> Vec<f64> {
    let sum = |j: usize| vectors.iter().map(|v| v[j]).sum::<f64>();
    let columns = 0..vectors[0].len();
    columns.map(|j| sum(j) / vectors.len() as f64).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

// ---------------------------------------------------------------- certificates

/// Everything that must hold for each solver on one problem.
#[derive(Clone, Copy)]
struct Laws<'a, R> {
    data: &'a Data,
    rows: &'a R,
    weighted: bool,
    fit_intercept: bool,
}

/// What a run of a solver is expected to reach.
enum Goal {
    /// A correct certificate, whatever its gap.
    Truth,
    /// A gap of at most this fraction of `P`.
    Gap(f64),
}

impl<R: Stored> Visitor for Laws<'_, R> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let weights = self.weighted.then_some(&self.data.weights[..]);
        let targets = self.data.targets(L::TARGET);
        let c = Regularisation::C(1.0);
        let problem =
            posed(self.rows, targets, weights, loss, c, self.fit_intercept).expect("valid");
        let best = solve(&Sdca::default(), &problem, &budget(1e-9, 20_000));
        assert_eq!(best.stop, StopReason::Converged, "{}", L::NAME);
        let is_smooth = loss.smoothness() > 0.0;
        for output in [Output::Last, Output::Average, Output::Random] {
            let last = output == Output::Last;
            let goal = |tol| if last { Goal::Gap(tol) } else { Goal::Truth };
            let epochs = |epochs| if last { epochs } else { 15 };
            let pegasos = Pegasos {
                output,
                batch_size: if last { None } else { Some(7) },
                project: self.weighted,
                ..Pegasos::default()
            };
            self.check(&pegasos, (&problem, loss), 40, Goal::Truth, &best);
            let dual_gradient = DualGradient {
                output,
                ..DualGradient::default()
            };
            let tol = if is_smooth { 1e-7 } else { 1e-3 };
            self.check(
                &dual_gradient,
                (&problem, loss),
                epochs(20_000),
                goal(tol),
                &best,
            );
            // `None` returns the best iterate.
            let subgradient = Subgradient {
                output: if last { None } else { Some(output) },
                ..Subgradient::default()
            };
            if is_smooth {
                self.check(
                    &subgradient,
                    (&problem, loss),
                    epochs(20_000),
                    goal(1e-7),
                    &best,
                );
                let asdca = Asdca {
                    batch_size: 20,
                    output,
                    ..Asdca::default()
                };
                self.check(&asdca, (&problem, loss), epochs(20_000), goal(1e-7), &best);
            } else {
                self.check(&subgradient, (&problem, loss), 40, Goal::Truth, &best);
            }
        }
    }
}

impl<R: Stored> Laws<'_, R> {
    fn check<L: Loss>(
        &self,
        solver: &(impl Solver + std::fmt::Debug),
        (problem, loss): (&Problem<'_>, L),
        max_epochs: usize,
        goal: Goal,
        best: &Fit,
    ) {
        let tol = match goal {
            Goal::Truth => 0.0,
            Goal::Gap(tol) => tol,
        };
        let fit = solve(solver, problem, &budget(tol, max_epochs));
        let found = fit.certificate;
        let what = format!(
            "{} {solver:?}, intercept {}: {found:?}",
            L::NAME,
            self.fit_intercept
        );
        let size = found.primal.abs() + found.dual.abs();
        let (primal, dual) = self.objectives(problem, loss, &fit);
        assert!((found.primal - primal).abs() <= 1e-12 * size, "{what}");
        assert!(
            (found.dual - dual).abs() <= 1e-12 * size,
            "{what} not {dual}"
        );
        assert_eq!(found.gap, found.primal - found.dual, "{what}");
        assert!(found.gap >= -1e-13 * size, "{what}");
        let rounding = 1e-13 * size;
        assert!(found.dual <= best.certificate.primal + rounding, "{what}");
        assert!(found.primal >= best.certificate.dual - rounding, "{what}");
        let mut no_monitor = NoMonitor;
        let mut context = RunContext::new(None, &mut no_monitor);
        let mut at = |b| {
            problem
                .primal(&fit.coef, b, &mut context)
                .expect("not interrupted")
        };
        assert!(
            (at(fit.intercept) - found.primal).abs() <= 1e-12 * size,
            "{what}"
        );
        if self.fit_intercept {
            for step in [-1.0, -0.1, 0.1, 1.0] {
                assert!(at(fit.intercept + step) >= found.primal * (1.0 - 1e-4));
            }
            let (mut sum, mut size) = (0.0, 0.0);
            for (i, a) in fit.dual.iter().enumerate() {
                sum += problem.weight(i) * a;
                size += problem.weight(i) * a.abs();
            }
            assert!(sum.abs() <= 1e-13 * size, "{what}");
        } else {
            assert_eq!(fit.intercept, 0.0);
        }
        for (i, &a) in fit.dual.iter().enumerate() {
            let (low, high) = loss.dual_range(problem.target(i));
            assert!(low <= a && a <= high, "{what}: {a} outside {low}, {high}");
        }
        if let Goal::Gap(tol) = goal {
            assert_eq!(fit.stop, StopReason::Converged, "{what}");
            assert!(
                found.primal - best.certificate.dual <= tol * found.primal + rounding,
                "{what}"
            );
        }
    }

    /// `P` and `D` according to their definitions, from the dense matrix.
    fn objectives<L: Loss>(&self, problem: &Problem<'_>, loss: L, fit: &Fit) -> (f64, f64) {
        let lambda = problem.lambda();
        let (mut losses, mut conjugates, mut total) = (0.0, 0.0, 0.0);
        let mut of_dual = vec![0.0; D];
        for (i, row) in self.data.dense.chunks(D).enumerate() {
            let c = if self.weighted {
                self.data.weights[i]
            } else {
                1.0
            };
            let (y, a) = (problem.target(i), fit.dual[i]);
            total += c;
            if c > 0.0 {
                losses += c * loss.value(dot(row, &fit.coef) + fit.intercept, y);
                conjugates += c * loss.conjugate(a, y);
            }
            for (w, x) in of_dual.iter_mut().zip(row) {
                *w += c * a * x;
            }
        }
        for w in &mut of_dual {
            *w /= lambda * total;
        }
        let penalty = |w: &[f64]| 0.5 * lambda * dot(w, w);
        (
            losses / total + penalty(&fit.coef),
            -conjugates / total - penalty(&of_dual),
        )
    }
}

fn dot(u: &[f64], v: &[f64]) -> f64 {
    u.iter().zip(v).map(|(u, v)| u * v).sum()
}

#[test]
fn certificates_are_true_and_solvers_agree_on_the_optimum() {
    let data = &Data::new(120, D, 21);
    let on_dense = &dense(&data.dense, D);
    let (values, indices) = (Borrowed::new(&data.values), Borrowed::new(&data.indices));
    let on_sparse = &Csr::new(values, indices, Borrowed::new(&data.indptr), D).expect("valid");
    for spec in SPECS {
        for both in [false, true] {
            let (weighted, fit_intercept) = (both, both);
            let laws = Laws {
                data,
                rows: on_dense,
                weighted,
                fit_intercept,
            };
            dispatch(spec.name, None, laws).expect("known");
            let laws = Laws {
                data,
                rows: on_sparse,
                weighted,
                fit_intercept,
            };
            dispatch(spec.name, None, laws).expect("known");
        }
    }
}

// ---------------------------------------------------------------- the algorithms as published

/// Rows without weights and without an intercept, for the algorithms as written in the papers.
struct Twin<'a, L> {
    x: Vec<&'a [f64]>,
    y: &'a [f64],
    loss: L,
    lambda: f64,
}

impl<'a, L: Loss> Twin<'a, L> {
    fn of(problem: &Problem<'_>, loss: L, x: &'a [f64], y: &'a [f64]) -> Self {
        Self {
            x: x.chunks(x.len() / y.len()).collect(),
            y,
            loss,
            lambda: problem.lambda(),
        }
    }

    fn zero(&self) -> Vec<f64> {
        vec![0.0; self.x[0].len()]
    }

    /// Consecutive batches of `size` rows from `rows`.
    fn batches(rows: &[usize], size: usize) -> Vec<Vec<usize>> {
        rows.chunks(size).map(<[usize]>::to_vec).collect()
    }

    fn all(&self) -> Vec<usize> {
        (0..self.y.len()).collect()
    }

    /// The largest `|x|`.
    fn radius(&self) -> f64 {
        let norms = self.x.iter().map(|x| dot(x, x).sqrt());
        norms.fold(0.0, f64::max)
    }

    fn primal(&self, w: &[f64]) -> f64 {
        let losses = self
            .x
            .iter()
            .zip(self.y)
            .map(|(x, &y)| self.loss.value(dot(x, w), y));
        losses.sum::<f64>() / self.y.len() as f64 + 0.5 * self.lambda * dot(w, w)
    }

    /// `w(a) = (1 / (lambda n)) sum_i a_i x_i`.
    fn model(&self, a: &[f64]) -> Vec<f64> {
        let mut w = self.zero();
        for (x, a) in self.x.iter().zip(a) {
            for (w, x) in w.iter_mut().zip(*x) {
                *w += a * x / (self.lambda * self.y.len() as f64);
            }
        }
        w
    }

    /// Pegasos on the batches in turn, which is subgradient descent if there is only one: the model
    /// before each step and after the last.
    fn descend(
        &self,
        batches: &[Vec<usize>],
        steps: usize,
        eta: impl Fn(f64) -> f64,
        radius: f64,
    ) -> Vec<Vec<f64>> {
        let mut w = self.zero();
        let mut iterates = vec![w.clone()];
        // A short batch makes part of a step.
        let size = batches[0].len() as f64;
        let mut t = 0.0;
        for batch in batches.iter().cycle().take(steps) {
            let part = batch.len() as f64 / size;
            t += part;
            let eta = part * eta(t);
            let mut next: Vec<f64> = w.iter().map(|w| (1.0 - eta * self.lambda) * w).collect();
            for &i in batch {
                let slope = self.loss.slope(dot(self.x[i], &w), self.y[i]);
                for (next, x) in next.iter_mut().zip(self.x[i]) {
                    *next -= eta / batch.len() as f64 * slope * x;
                }
            }
            let norm = dot(&next, &next).sqrt();
            w = next
                .iter()
                .map(|w| w * f64::min(1.0, radius / norm))
                .collect();
            if norm == 0.0 {
                w = next;
            }
            iterates.push(w.clone());
        }
        iterates
    }

    /// Accelerated mini-batch SDCA on the batches in turn: model and dual point before each step and
    /// after the last.
    fn accelerate(
        &self,
        batches: &[Vec<usize>],
        steps: usize,
        theta: f64,
    ) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let mut a = vec![0.0; self.y.len()];
        let (mut v, mut w) = (self.zero(), self.zero());
        let mix = |w: &[f64], v: &[f64]| -> Vec<f64> {
            let pairs = w.iter().zip(v);
            pairs.map(|(w, v)| (1.0 - theta) * w + theta * v).collect()
        };
        let (mut models, mut duals) = (vec![w.clone()], vec![a.clone()]);
        for (_, batch) in (0..steps).zip(batches.iter().cycle()) {
            let u = mix(&w, &v);
            for &i in batch {
                let slope = self.loss.slope(dot(self.x[i], &u), self.y[i]);
                a[i] = (1.0 - theta) * a[i] - theta * slope;
            }
            v = self.model(&a);
            w = mix(&w, &v);
            models.push(w.clone());
            duals.push(a.clone());
        }
        (models, duals)
    }

    /// Projected gradient ascent on the dual of a loss whose conjugate is linear, `-a y`.
    fn ascend(&self, steps: usize, sigma: f64) -> Vec<Vec<f64>> {
        let mut a = vec![0.0; self.y.len()];
        let mut duals = vec![a.clone()];
        for _ in 0..steps {
            let w = self.model(&a);
            for (i, a) in a.iter_mut().enumerate() {
                let (low, high) = self.loss.dual_range(self.y[i]);
                *a = (*a + (self.y[i] - dot(self.x[i], &w)) / sigma).clamp(low, high);
            }
            duals.push(a.clone());
        }
        duals
    }
}

const TWIN_ROWS: usize = 23;
const LAMBDA: f64 = 0.07;

/// Pegasos with these settings is the published algorithm with steps of `eta(t)`; an iterate drawn
/// from it is one of that algorithm.
fn check_pegasos<L: Loss>(
    loss: L,
    y: &[f64],
    x: &[f64],
    settings: &Pegasos,
    eta: impl Fn(f64) -> f64,
) {
    let rows = &dense(x, D);
    let problem = plain(rows, y, loss, LAMBDA);
    let what = format!("{} {settings:?}", L::NAME);
    let (per_epoch, expected) = pegasos_twin((&problem, loss), y, x, settings, eta);
    let steps = expected.len() - 1;
    let (found, _) = iterates(settings, &problem, steps, per_epoch);
    assert_all_close(&found, &expected, 1e-10, &what);
    for (average_from, from) in starts(steps) {
        let drawn = Pegasos {
            output: Output::Random,
            average_from,
            ..settings.clone()
        };
        let fit = solve(&drawn, &problem, &budget(0.0, steps / per_epoch));
        let near = |w: &Vec<f64>| w.iter().zip(&fit.coef).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(expected[from..steps].iter().any(near), "{what}");
    }
}

/// The average of Pegasos is the mean of the iterates of the published algorithm.
fn check_pegasos_average<L: Loss>(
    loss: L,
    y: &[f64],
    x: &[f64],
    settings: &Pegasos,
    eta: impl Fn(f64) -> f64,
) {
    let rows = &dense(x, D);
    let problem = plain(rows, y, loss, LAMBDA);
    let (per_epoch, expected) = pegasos_twin((&problem, loss), y, x, settings, eta);
    let steps = expected.len() - 1;
    for (average_from, from) in starts(steps) {
        let averaged = Pegasos {
            output: Output::Average,
            average_from,
            ..settings.clone()
        };
        let fit = solve(&averaged, &problem, &budget(0.0, steps / per_epoch));
        let what = format!("{} {averaged:?}", L::NAME);
        assert_close(&fit.coef, &mean(&expected[from..steps]), 1e-10, &what);
    }
    let stream = stream(settings, &[problem], steps / per_epoch);
    let what = format!("stream of {} {settings:?}", L::NAME);
    assert_close(&stream.mean.coef, &mean(&expected[..steps]), 1e-10, &what);
}

/// Fractions `T0 / T`, and the corresponding steps.
fn starts(steps: usize) -> impl Iterator<Item = (AverageFrom, usize)> {
    let fractions = [0.0, 0.5, 0.7].into_iter().map(move |fraction| {
        let from = (fraction * steps as f64).round() as usize;
        (AverageFrom::Fraction(fraction), from)
    });
    let counts = [0, 1, steps / 3, steps - 1].into_iter();
    fractions.chain(counts.map(|from| (AverageFrom::Step(from as u64), from)))
}

/// The batches in an epoch, and the iterates of some epochs.
fn pegasos_twin<L: Loss>(
    (problem, loss): (&Problem<'_>, L),
    y: &[f64],
    x: &[f64],
    settings: &Pegasos,
    eta: impl Fn(f64) -> f64,
) -> (usize, Vec<Vec<f64>>) {
    let twin = Twin::of(problem, loss, x, y);
    let size = settings.batch_size.expect("given");
    let batches = Twin::<L>::batches(&twin.all(), size);
    let radius = if settings.project {
        (twin.primal(&twin.zero()) / LAMBDA).sqrt()
    } else {
        f64::INFINITY
    };
    let epochs = 1 + 150 / batches.len();
    let steps = epochs * batches.len();
    (batches.len(), twin.descend(&batches, steps, eta, radius))
}

#[test]
fn pegasos_is_the_published_algorithm() {
    let data = Data::new(TWIN_ROWS, D, 31);
    fn check<L: Loss>(data: &Data, loss: L, settings: &Pegasos, eta: impl Fn(f64) -> f64 + Copy) {
        let y = data.targets(L::TARGET);
        check_pegasos(loss, y, &data.dense, settings, eta);
        check_pegasos_average(loss, y, &data.dense, settings, eta);
    }
    for batch_size in [1, 4, TWIN_ROWS] {
        for project in [false, true] {
            let with = |learning_rate| Pegasos {
                batch_size: Some(batch_size),
                sampling: Sampling::Cyclic,
                project,
                learning_rate,
                ..Pegasos::default()
            };
            let classic = with(LearningRate::Pegasos);
            let eta = |t: f64| 1.0 / (LAMBDA * t);
            check(&data, Hinge, &classic, eta);
            check(&data, Log, &classic, eta);
            check(&data, Absolute, &classic, eta);
            check(&data, Huber::with_param(1.3), &classic, eta);
            let constant = with(LearningRate::Constant { eta0: Some(0.3) });
            check(&data, Log, &constant, |_| 0.3);
            check(&data, Squared, &constant, |_| 0.3);
            for power in [0.5, 1.0] {
                let eta0 = Some(0.8);
                let scaled = with(LearningRate::InvScaling { eta0, power });
                let eta = |t: f64| 0.8 / t.powf(power);
                check(&data, Hinge, &scaled, eta);
                check(&data, Squared, &scaled, eta);
            }
        }
    }
}

/// For a loss whose slope is unbounded, the steps of Pegasos begin at a safe length.
#[test]
fn pegasos_begins_with_a_constant_step_on_the_squared_loss() {
    let data = Data::new(TWIN_ROWS, D, 32);
    let (x, y) = (&data.dense, &data.reals);
    let sq_norms: Vec<f64> = x.chunks(D).map(|x| dot(x, x)).collect();
    let largest = sq_norms.iter().fold(0.0, |a, &b| f64::max(a, b));
    let mean = sq_norms.iter().sum::<f64>() / TWIN_ROWS as f64;
    for (batch_size, curvature) in [(1, largest), (TWIN_ROWS, mean)] {
        let settings = Pegasos {
            batch_size: Some(batch_size),
            sampling: Sampling::Cyclic,
            ..Pegasos::default()
        };
        let eta = |t: f64| 1.0 / (LAMBDA * t + curvature);
        check_pegasos(Squared, y, x, &settings, eta);
        let constant = Pegasos {
            learning_rate: LearningRate::Constant { eta0: None },
            ..settings
        };
        check_pegasos(Squared, y, x, &constant, |_| 1.0 / (LAMBDA + curvature));
    }
}

/// Steps that leave only `1 - share` of `w`, so that its scale soon underflows.
fn forgetful(share: f64, project: bool) -> (Pegasos, f64) {
    let eta0 = share / LAMBDA;
    let settings = Pegasos {
        batch_size: Some(2),
        sampling: Sampling::Cyclic,
        project,
        learning_rate: LearningRate::Constant { eta0: Some(eta0) },
        ..Pegasos::default()
    };
    (settings, eta0)
}

const FORGOTTEN: [f64; 5] = [0.6, 0.9, 0.999, 1.0 - 1e-9, 1.0];

#[test]
fn scales_are_folded_without_a_trace() {
    // Long enough for the scale to be folded into `w` several times, at 100 digits each.
    let data = Data::new(600, D, 33);
    for share in FORGOTTEN {
        for project in [false, true] {
            let (settings, eta0) = forgetful(share, project);
            check_pegasos(Hinge, &data.labels, &data.dense, &settings, |_| eta0);
            check_pegasos(Log, &data.labels, &data.dense, &settings, |_| eta0);
        }
    }
}

#[test]
fn averages_do_not_cancel_where_steps_forget() {
    let data = Data::new(600, D, 33);
    for share in FORGOTTEN {
        for project in [false, true] {
            let (settings, eta0) = forgetful(share, project);
            check_pegasos_average(Hinge, &data.labels, &data.dense, &settings, |_| eta0);
        }
    }
    // A typical step in a long epoch.
    let data = Data::new(6000, D, 33);
    for share in [0.01, 0.03, 0.1] {
        let (settings, eta0) = forgetful(share, false);
        check_pegasos_average(Log, &data.labels, &data.dense, &settings, |_| eta0);
    }
}

/// Asdca with these settings is the published recursion, and its average is that of the recursion.
fn check_asdca<L: Loss>(loss: L, y: &[f64], x: &[f64], settings: &Asdca, lambda: f64) {
    let rows = &dense(x, D);
    let problem = plain(rows, y, loss, lambda);
    let twin = Twin::of(&problem, loss, x, y);
    // Empty rows never change.
    let mut moving = twin.all();
    moving.retain(|&i| dot(twin.x[i], twin.x[i]) > 0.0);
    let m = settings.batch_size.min(moving.len());
    let theta = settings.theta.unwrap_or_else(|| {
        let gln = loss.smoothness() * lambda * y.len() as f64 / twin.radius().powi(2);
        let m = m as f64;
        let least = [
            1.0,
            f64::sqrt(gln / m),
            gln,
            gln.powf(2.0 / 3.0) / m.powf(1.0 / 3.0),
        ];
        0.25 * least.into_iter().fold(f64::INFINITY, f64::min)
    });
    let batches = Twin::<L>::batches(&moving, m);
    let epochs = 1 + 250 / batches.len();
    let steps = epochs * batches.len();
    let (models, duals) = twin.accelerate(&batches, steps, theta);
    let what = format!("{} {settings:?} lambda {lambda}", L::NAME);
    let (found, fit) = iterates(settings, &problem, steps, batches.len());
    assert_all_close(&found, &models, 1e-10, &what);
    let of_moving = |a: &[f64]| moving.iter().map(|&i| a[i]).collect::<Vec<_>>();
    assert_close(
        &of_moving(&fit.dual),
        &of_moving(&duals[steps]),
        1e-10,
        &what,
    );
    for (average_from, from) in starts(steps) {
        let averaged = Asdca {
            output: Output::Average,
            average_from,
            ..settings.clone()
        };
        let fit = solve(&averaged, &problem, &budget(0.0, epochs));
        let what = format!("{} {averaged:?} lambda {lambda}", L::NAME);
        let a = mean(&duals[from..steps]);
        assert_close(&of_moving(&fit.dual), &of_moving(&a), 1e-10, &what);
        assert_close(&fit.coef, &twin.model(&a), 1e-10, &what);
    }
}

#[test]
fn asdca_is_the_published_algorithm() {
    let data = Data::new(TWIN_ROWS, D, 34);
    for batch_size in [1, 5, TWIN_ROWS] {
        for lambda in [0.01, LAMBDA, 10.0] {
            // Without a bound on theta/Q the recursion may diverge, so large values are combined
            // with a large lambda.
            let thetas: &[Option<f64>] = if lambda > 1.0 {
                &[None, Some(0.3), Some(0.9), Some(1.0)]
            } else {
                &[None, Some(0.01)]
            };
            for &theta in thetas {
                let settings = Asdca {
                    batch_size,
                    sampling: Sampling::Cyclic,
                    theta,
                    ..Asdca::default()
                };
                check_asdca(Log, &data.labels, &data.dense, &settings, lambda);
                let smooth = SmoothHinge::with_param(0.5);
                check_asdca(smooth, &data.labels, &data.dense, &settings, lambda);
                check_asdca(Squared, &data.reals, &data.dense, &settings, lambda);
            }
        }
    }
}

/// Subgradient descent with these steps is the published algorithm, and so are its average and its
/// best iterate.
fn check_subgradient<L: Loss>(
    loss: L,
    y: &[f64],
    x: &[f64],
    learning_rate: LearningRate,
    eta: impl Fn(f64) -> f64,
) {
    let rows = &dense(x, D);
    let problem = plain(rows, y, loss, LAMBDA);
    let twin = Twin::of(&problem, loss, x, y);
    let steps = 60;
    let expected = twin.descend(&[twin.all()], steps, eta, f64::INFINITY);
    let what = format!("{} {learning_rate:?}", L::NAME);
    let with = |output, average_from| Subgradient {
        learning_rate: Some(learning_rate),
        output,
        average_from,
        ..Subgradient::default()
    };
    let (found, _) = iterates(
        &with(Some(Output::Last), AverageFrom::default()),
        &problem,
        steps,
        1,
    );
    assert_all_close(&found, &expected, 1e-10, &what);
    for (average_from, from) in starts(steps) {
        let averaged = with(Some(Output::Average), average_from);
        let fit = solve(&averaged, &problem, &budget(0.0, steps));
        assert_close(&fit.coef, &mean(&expected[from..steps]), 1e-10, &what);
    }
    let (best, fit) = iterates(&with(None, AverageFrom::default()), &problem, steps, 1);
    let mut least = f64::INFINITY;
    for ((w, best), record) in expected.iter().zip(&best).zip(&fit.history) {
        least = least.min(twin.primal(w));
        assert!((twin.primal(best) - least).abs() <= 1e-10 * least, "{what}");
        assert!(
            (record.certificate.primal - least).abs() <= 1e-10 * least,
            "{what}"
        );
    }
}

#[test]
fn subgradient_is_the_published_algorithm() {
    let data = Data::new(TWIN_ROWS, D, 35);
    let (x, labels, reals) = (&data.dense, &data.labels, &data.reals);
    let classic = |t: f64| 1.0 / (LAMBDA * t);
    check_subgradient(Hinge, labels, x, LearningRate::Pegasos, classic);
    check_subgradient(Log, labels, x, LearningRate::Pegasos, classic);
    let tau = Quantile::with_param(0.3);
    check_subgradient(tau, reals, x, LearningRate::Pegasos, classic);
    let constant = LearningRate::Constant { eta0: Some(0.4) };
    check_subgradient(Hinge, labels, x, constant, |_| 0.4);
    check_subgradient(Squared, reals, x, constant, |_| 0.4);
    let eta0 = Some(2.0);
    let scaled = LearningRate::InvScaling { eta0, power: 0.5 };
    check_subgradient(Absolute, reals, x, scaled, |t| 2.0 / t.sqrt());
}

/// Projected gradient ascent on the dual does what the name says, and so does its average.
fn check_dual_gradient<L: Loss>(loss: L, y: &[f64], x: &[f64], sigma: f64) {
    let rows = &dense(x, D);
    let problem = plain(rows, y, loss, LAMBDA);
    let twin = Twin::of(&problem, loss, x, y);
    let steps = 150;
    let duals = twin.ascend(steps, sigma);
    let expected: Vec<Vec<f64>> = duals.iter().map(|a| twin.model(a)).collect();
    let settings = DualGradient {
        step: Some(1.0 / sigma),
        ..DualGradient::default()
    };
    let what = format!("{} {settings:?}", L::NAME);
    let (found, fit) = iterates(&settings, &problem, steps, 1);
    assert_all_close(&found, &expected, 1e-10, &what);
    assert_close(&fit.dual, &duals[steps], 1e-10, &what);
    for (average_from, from) in starts(steps) {
        let averaged = DualGradient {
            output: Output::Average,
            average_from,
            ..settings.clone()
        };
        let fit = solve(&averaged, &problem, &budget(0.0, steps));
        assert_close(&fit.dual, &mean(&duals[from..steps]), 1e-10, &what);
        assert_close(&fit.coef, &mean(&expected[from..steps]), 1e-10, &what);
    }
}

#[test]
fn dual_gradient_is_projected_gradient_ascent() {
    let data = Data::new(TWIN_ROWS, D, 36);
    // lambda_max(X'X) / (lambda n) is below 10 here: shorter steps, and one that is too long.
    for sigma in [40.0, 10.0, 1.0] {
        check_dual_gradient(Hinge, &data.labels, &data.dense, sigma);
        check_dual_gradient(Absolute, &data.reals, &data.dense, sigma);
        let tau = Quantile::with_param(0.3);
        check_dual_gradient(tau, &data.reals, &data.dense, sigma);
    }
}

/// Batches large enough that their sums are split into pieces.
#[test]
fn large_batches_take_the_steps_written_out() {
    let data = Data::new(4000, 16, 37);
    let rows = &dense(&data.dense, 16);
    let problem = plain(rows, &data.labels, Log, 0.01);
    let twin = Twin::of(&problem, Log, &data.dense, &data.labels);
    let eta = |t: f64| 1.0 / (0.01 * t);
    let all = [twin.all()];
    let expected = twin.descend(&all, 4, eta, f64::INFINITY);
    let subgradient = Subgradient {
        learning_rate: Some(LearningRate::Pegasos),
        output: Some(Output::Last),
        n_threads: 2,
        ..Subgradient::default()
    };
    let (found, _) = iterates(&subgradient, &problem, 4, 1);
    assert_all_close(&found, &expected, 1e-10, "subgradient");
    let pegasos = Pegasos {
        batch_size: Some(4000),
        sampling: Sampling::Cyclic,
        n_threads: 2,
        ..Pegasos::default()
    };
    let (found, _) = iterates(&pegasos, &problem, 4, 1);
    assert_all_close(&found, &expected, 1e-10, "pegasos");
    let asdca = Asdca {
        batch_size: 4000,
        sampling: Sampling::Cyclic,
        theta: Some(0.2),
        n_threads: 2,
        ..Asdca::default()
    };
    let mut moving = twin.all();
    moving.retain(|&i| dot(twin.x[i], twin.x[i]) > 0.0);
    let (expected, _) = twin.accelerate(&[moving], 4, 0.2);
    let (found, _) = iterates(&asdca, &problem, 4, 1);
    assert_all_close(&found, &expected, 1e-10, "asdca");
}

// ---------------------------------------------------------------- threads and seeds

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let (n_rows, n_cols) = (5000, 16);
    let data = Data::new(n_rows, n_cols, 41);
    let rows = &dense(&data.dense, n_cols);
    let weights = Some(&data.weights[..]);
    let c = Regularisation::C(1.0);
    let problem = posed(rows, &data.labels, weights, Log, c, true).expect("valid");
    // More than one stride of a pass.
    let long = Data::new(9 << 14, 8, 42);
    let long_rows = &dense(&long.dense, 8);
    let long_problem = plain(long_rows, &long.labels, Log, 1e-3);
    let fits = |n_threads| {
        let mut fits = Vec::new();
        for project in [false, true] {
            let pegasos = Pegasos {
                batch_size: Some(4500),
                project,
                output: Output::Average,
                n_threads,
                ..Pegasos::default()
            };
            fits.push(solve(&pegasos, &problem, &budget(0.0, 3)));
        }
        let asdca = Asdca {
            batch_size: 4500,
            n_threads,
            ..Asdca::default()
        };
        fits.push(solve(&asdca, &problem, &budget(0.0, 3)));
        let subgradient = Subgradient {
            n_threads,
            ..Subgradient::default()
        };
        fits.push(solve(&subgradient, &problem, &budget(0.0, 3)));
        fits.push(solve(&subgradient, &long_problem, &budget(0.0, 2)));
        let dual_gradient = DualGradient {
            n_threads,
            ..DualGradient::default()
        };
        fits.push(solve(&dual_gradient, &problem, &budget(0.0, 3)));
        fits.push(solve(&dual_gradient, &long_problem, &budget(0.0, 2)));
        let all = fits.iter().map(|fit| (bits(&fit.coef), bits(&fit.dual)));
        all.collect::<Vec<_>>()
    };
    let alone = fits(1);
    assert!(alone == fits(2));
    assert!(alone == fits(4));
}

#[test]
fn the_seed_decides_what_is_random() {
    let data = Data::new(200, D, 43);
    let rows = &dense(&data.dense, D);
    let problem = plain(rows, &data.labels, Log, 0.02);
    fn check<S: Solver>(problem: &Problem<'_>, differs: bool, with: impl Fn(u64) -> S) {
        let fit = |seed| bits(&solve(&with(seed), problem, &budget(0.0, 8)).coef);
        assert_eq!(fit(1), fit(1));
        assert_eq!(fit(1) != fit(2), differs);
    }
    for output in [Output::Last, Output::Average, Output::Random] {
        for sampling in [Sampling::Permutation, Sampling::Random, Sampling::Cyclic] {
            let differs = sampling != Sampling::Cyclic || output == Output::Random;
            check(&problem, differs, |seed| Pegasos {
                batch_size: Some(3),
                sampling,
                output,
                seed,
                ..Pegasos::default()
            });
            check(&problem, differs, |seed| Asdca {
                batch_size: 30,
                sampling,
                output,
                seed,
                ..Asdca::default()
            });
        }
    }
    for output in [Output::Last, Output::Average] {
        check(&problem, false, |seed| Subgradient {
            output: Some(output),
            seed,
            ..Subgradient::default()
        });
        check(&problem, false, |seed| DualGradient {
            output,
            seed,
            ..DualGradient::default()
        });
    }
}

// ---------------------------------------------------------------- theorems

/// How far above the optimum subgradient methods may be on one problem.
struct Bounds<'a> {
    data: &'a Data,
}

impl Visitor for Bounds<'_> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let lipschitz = loss.lipschitz();
        if lipschitz.is_infinite() {
            return;
        }
        let (lambda, steps) = (0.02, 300.0f64);
        let rows = &dense(&self.data.dense, D);
        let y = self.data.targets(L::TARGET);
        let problem = plain(rows, y, loss, lambda);
        let twin = Twin::of(&problem, loss, &self.data.dense, y);
        let best = solve(&Sdca::default(), &problem, &budget(1e-9, 20_000)).certificate;
        let slope = lipschitz * twin.radius();
        let share = (1.0 + steps.ln()) / (2.0 * lambda * steps);
        let free = 4.0 * slope * slope * share;
        let in_ball = (lambda * twin.primal(&twin.zero())).sqrt() + slope;
        let projected = in_ball * in_ball * share;
        // Pegasos with all rows is deterministic, so the theorem holds without an expectation.
        for (project, bound) in [(false, free), (true, projected)] {
            let pegasos = |batch_size, seed| Pegasos {
                batch_size: Some(batch_size),
                sampling: Sampling::Random,
                project,
                output: Output::Average,
                average_from: AverageFrom::Step(0),
                seed,
                ..Pegasos::default()
            };
            let all = y.len();
            let whole = Pegasos {
                sampling: Sampling::Cyclic,
                ..pegasos(all, 0)
            };
            let excess = |settings: &Pegasos, epochs| {
                solve(settings, &problem, &budget(0.0, epochs))
                    .certificate
                    .primal
                    - best.dual
            };
            let found = excess(&whole, steps as usize);
            assert!(found <= bound, "{} {found} > {bound}", L::NAME);
            // For single rows the theorem is about the mean over the draws.
            let seeds = 0..10;
            let epochs = steps as usize / all;
            let sum: f64 = seeds.map(|seed| excess(&pegasos(1, seed), epochs)).sum();
            assert!(sum / 10.0 <= bound, "{} {sum} / 10 > {bound}", L::NAME);
        }
        // The best iterate is better than the mean of all. With an intercept, the method is
        // subgradient descent on min_b P, whose subgradients are sums of centred rows.
        for fit_intercept in [false, true] {
            let lambda = Regularisation::Lambda(lambda);
            let problem = posed(rows, y, None, loss, lambda, fit_intercept).expect("valid");
            let best = solve(&Sdca::default(), &problem, &budget(1e-9, 20_000)).certificate;
            let subgradient = Subgradient {
                learning_rate: Some(LearningRate::Pegasos),
                ..Subgradient::default()
            };
            let fit = solve(&subgradient, &problem, &budget(0.0, steps as usize));
            let found = fit.certificate.primal - best.dual;
            assert!(found <= free, "{} {found} > {free}", L::NAME);
        }
    }
}

#[test]
fn subgradient_methods_are_within_their_bounds() {
    let data = &Data::new(100, D, 51);
    for spec in SPECS {
        dispatch(spec.name, None, Bounds { data }).expect("known");
    }
}

/// The objective that never gets worse.
struct Monotone<'a> {
    data: &'a Data,
    fit_intercept: bool,
}

impl Visitor for Monotone<'_> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let rows = &dense(&self.data.dense, D);
        let y = self.data.targets(L::TARGET);
        let c = Regularisation::C(3.0);
        let weights = Some(&self.data.weights[..]);
        let problem = posed(rows, y, weights, loss, c, self.fit_intercept).expect("valid");
        let every = Budget {
            record_every: Some(1.0),
            ..budget(0.0, 100)
        };
        let fit = solve(&DualGradient::default(), &problem, &every);
        let first = fit.history[0].certificate.primal;
        for pair in fit.history.windows(2) {
            let (before, after) = (pair[0].certificate.dual, pair[1].certificate.dual);
            assert!(after >= before - 1e-13 * first, "{} {pair:?}", L::NAME);
        }
        let fit = solve(&Subgradient::default(), &problem, &every);
        for pair in fit.history.windows(2) {
            let (before, after) = (pair[0].certificate.primal, pair[1].certificate.primal);
            assert!(after <= before * (1.0 + 1e-13), "{} {pair:?}", L::NAME);
        }
        let last = Subgradient {
            output: Some(Output::Last),
            ..Subgradient::default()
        };
        let last = solve(&last, &problem, &every).certificate.primal;
        assert!(fit.certificate.primal <= last * (1.0 + 1e-13));
    }
}

#[test]
fn the_dual_of_dual_gradient_never_falls_and_the_best_of_subgradient_never_rises() {
    let data = &Data::new(80, D, 52);
    for spec in SPECS {
        for fit_intercept in [false, true] {
            let monotone = Monotone {
                data,
                fit_intercept,
            };
            dispatch(spec.name, None, monotone).expect("known");
        }
    }
}

/// The power iteration starts orthogonal to the direction of the long rows and so finds a step that
/// is four times too long, which has to be undone.
#[test]
fn a_step_of_dual_gradient_that_is_too_long_is_taken_back() {
    let x = [0.8, -0.7, 0.35, 0.4, -0.8, 0.7, 0.35, 0.4];
    let rows = &dense(&x, 2);
    let y = [1.0, -1.0, 0.5, 2.0];
    let problem = plain(rows, &y, Squared, 1e-3);
    let every = Budget {
        record_every: Some(1.0),
        ..budget(1e-6, 10_000)
    };
    let fit = solve(&DualGradient::default(), &problem, &every);
    assert_eq!(fit.stop, StopReason::Converged);
    for pair in fit.history.windows(2) {
        let (before, after) = (pair[0].certificate.dual, pair[1].certificate.dual);
        assert!(after >= before - 1e-13, "{pair:?}");
    }
}

// ---------------------------------------------------------------- starts, weights and streams

#[test]
fn a_warm_start_goes_on_with_the_count_of_steps() {
    let data = Data::new(60, D, 61);
    let rows = &dense(&data.dense, D);
    fn check(solver: &impl Solver, problem: &Problem<'_>, steps: u64) {
        let whole = solve(solver, problem, &budget(0.0, 10));
        let half = solve(solver, problem, &budget(0.0, 5));
        let second = solver
            .solve(
                problem,
                &budget(0.0, 5),
                Some(Start::from(&half)),
                &mut NoMonitor,
            )
            .expect("valid");
        assert_close(&second.coef, &whole.coef, 1e-11, problem.loss_name());
        assert_eq!(
            (half.steps, second.steps, whole.steps),
            ((steps / 2) as f64, steps as f64, steps as f64)
        );
    }
    for learning_rate in [
        LearningRate::Pegasos,
        LearningRate::InvScaling {
            eta0: None,
            power: 0.6,
        },
    ] {
        for project in [false, true] {
            let pegasos = Pegasos {
                batch_size: Some(1),
                sampling: Sampling::Cyclic,
                project,
                learning_rate,
                ..Pegasos::default()
            };
            check(&pegasos, &plain(rows, &data.labels, Hinge, LAMBDA), 600);
            check(&pegasos, &plain(rows, &data.reals, Squared, LAMBDA), 600);
        }
        let subgradient = Subgradient {
            learning_rate: Some(learning_rate),
            output: Some(Output::Last),
            ..Subgradient::default()
        };
        check(&subgradient, &plain(rows, &data.labels, Hinge, LAMBDA), 10);
        check(&subgradient, &plain(rows, &data.reals, Squared, LAMBDA), 10);
    }
    // A start from another solver is as good as any, and an invalid one is refused.
    let problem = plain(rows, &data.labels, Log, LAMBDA);
    let best = solve(&Sdca::default(), &problem, &budget(1e-9, 20_000));
    let go = |solver: &dyn Fn(&Fit) -> Result<Fit, Error>| {
        let fit = solver(&best).expect("valid");
        assert_eq!((fit.epochs, fit.stop), (0.0, StopReason::Converged));
    };
    let tol = &budget(1e-6, 100);
    go(&|fit| Subgradient::default().solve(&problem, tol, Some(fit.into()), &mut NoMonitor));
    go(&|fit| DualGradient::default().solve(&problem, tol, Some(fit.into()), &mut NoMonitor));
    go(&|fit| Pegasos::default().solve(&problem, tol, Some(fit.into()), &mut NoMonitor));
    let longer = [best.coef.clone(), vec![0.0]].concat();
    let wrong = Start {
        coef: &longer,
        ..Start::from(&best)
    };
    let refused = Pegasos::default().solve(&problem, tol, Some(wrong), &mut NoMonitor);
    assert!(matches!(refused, Err(Error::Length { .. })));
    for steps in [f64::NAN, f64::INFINITY, -1.0] {
        let wrong = Start {
            steps,
            ..Start::from(&best)
        };
        let refused = Pegasos::default().solve(&problem, tol, Some(wrong), &mut NoMonitor);
        assert!(matches!(refused, Err(Error::Parameter { .. })));
        let refused = Subgradient::default().solve(&problem, tol, Some(wrong), &mut NoMonitor);
        assert!(matches!(refused, Err(Error::Parameter { .. })));
    }
}

/// The same data, once with integer weights and once with repeated rows.
struct Counted<'a> {
    data: &'a Data,
    fit_intercept: bool,
}

impl Visitor for Counted<'_> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let Data { dense: x, .. } = self.data;
        let y = self.data.targets(L::TARGET);
        let counts: Vec<f64> = (0..y.len()).map(|i| f64::from(i as u32 * 7 % 4)).collect();
        let (mut x_repeated, mut y_repeated) = (Vec::new(), Vec::new());
        for ((row, y), &count) in x.chunks(D).zip(y).zip(&counts) {
            for _ in 0..count as usize {
                x_repeated.extend_from_slice(row);
                y_repeated.push(*y);
            }
        }
        let c = Regularisation::C(1.0);
        let rows = &dense(x, D);
        let weighted = posed(rows, y, Some(&counts), loss, c, self.fit_intercept).expect("valid");
        let rows = &dense(&x_repeated, D);
        let repeated = posed(rows, &y_repeated, None, loss, c, self.fit_intercept).expect("valid");
        let same = Same {
            problems: [&weighted, &repeated],
        };
        same.check(&DualGradient::default());
        // For a loss with kinks, any intercept in an interval may be the best one.
        if !self.fit_intercept || loss.smoothness() > 0.0 {
            same.check(&Subgradient::default());
        }
        if !self.fit_intercept {
            same.check(&Pegasos {
                batch_size: Some(usize::MAX),
                output: Output::Average,
                ..Pegasos::default()
            });
        }
        if loss.smoothness() > 0.0 {
            same.check(&Asdca {
                batch_size: usize::MAX,
                theta: Some(0.01),
                ..Asdca::default()
            });
            let (tol, mini) = (1e-6, Asdca::default());
            let one = solve(&mini, &weighted, &budget(tol, 20_000)).certificate;
            let other = solve(&mini, &repeated, &budget(tol, 20_000)).certificate;
            assert!(one.is_within(tol) && other.is_within(tol), "{}", L::NAME);
            self.overlap(L::NAME, one, other);
        }
        let one = solve(&Pegasos::default(), &weighted, &budget(0.0, 30)).certificate;
        let other = solve(&Pegasos::default(), &repeated, &budget(0.0, 30)).certificate;
        self.overlap(L::NAME, one, other);
    }
}

/// One problem in two formulations.
struct Same<'a> {
    problems: [&'a Problem<'a>; 2],
}

impl Same<'_> {
    /// A solver that uses all rows at a time does the same on both.
    fn check(&self, solver: &impl Solver) {
        let [one, other] = self.problems;
        let one = solve(solver, one, &budget(0.0, 12));
        let other = solve(solver, other, &budget(0.0, 12));
        let name = self.problems[0].loss_name();
        assert_close(&one.coef, &other.coef, 1e-8, name);
        assert_eq!(one.history.len(), other.history.len());
    }
}

impl Counted<'_> {
    /// Both certificates contain the same optimum.
    fn overlap(&self, name: &str, one: Certificate, other: Certificate) {
        let rounding = 1e-13 * one.primal.abs();
        assert!(
            one.primal >= other.dual - rounding && other.primal >= one.dual - rounding,
            "{name} {}: {one:?}, {other:?}",
            self.fit_intercept
        );
    }
}

#[test]
fn weights_count_rows() {
    let data = &Data::new(60, D, 62);
    for spec in SPECS {
        for fit_intercept in [false, true] {
            let counted = Counted {
                data,
                fit_intercept,
            };
            dispatch(spec.name, None, counted).expect("known");
        }
    }
}

/// A part of a larger problem.
fn part_of<'a, L: Loss>(
    rows: &'a Dense<'a, f64>,
    targets: &'a [f64],
    loss: L,
    regularisation: Regularisation,
    fit_intercept: bool,
) -> Result<Problem<'a>, Error> {
    let data = sdca_rs::data::Data::new(*rows, None)?;
    Problem::part(data, targets, loss, regularisation, fit_intercept)
}

/// The first and the second part of a stream, alternating.
fn stream(settings: &Pegasos, parts: &[Problem<'_>], passes: usize) -> Stream {
    let mut stream = None;
    for part in parts.iter().cycle().take(passes * parts.len()) {
        let next = settings.partial_solve(part, stream, &mut NoMonitor);
        stream = Some(next.expect("not interrupted"));
    }
    stream.expect("a pass")
}

#[test]
fn a_stream_of_the_whole_data_is_a_run() {
    let data = Data::new(50, D, 63);
    let rows = &dense(&data.dense, D);
    fn check<L: Loss>(
        rows: &Dense<'_, f64>,
        data: &Data,
        loss: L,
        settings: &Pegasos,
        fit_intercept: bool,
    ) {
        let lambda = Regularisation::Lambda(LAMBDA);
        let y = data.targets(L::TARGET);
        let problem = posed(rows, y, None, loss, lambda, fit_intercept).expect("valid");
        let per_epoch = y.len().div_ceil(settings.batch_size.expect("given"));
        let passes = 6;
        let steps = passes * per_epoch;
        let (models, fit) = iterates(settings, &problem, steps, per_epoch);
        let stream = stream(settings, &[problem], passes);
        let what = format!("{} {settings:?} {fit_intercept}", L::NAME);
        // A short batch makes part of a step.
        let size = settings.batch_size.expect("given");
        let expected = (passes * y.len()) as f64 / size as f64;
        assert!((stream.steps - expected).abs() < 1e-9 && (fit.steps - expected).abs() < 1e-9);
        assert_close(&stream.last.coef, &fit.coef, 1e-12, &what);
        assert_close(&stream.mean.coef, &mean(&models[..steps]), 1e-12, &what);
        if !fit_intercept {
            assert_eq!((stream.last.intercept, stream.mean.intercept), (0.0, 0.0));
        }
    }
    for batch_size in [1, 7] {
        for project in [false, true] {
            for fit_intercept in [false, true] {
                if project && fit_intercept {
                    // A stream does not know the best constant of all rows, so its ball is larger.
                    continue;
                }
                let settings = &Pegasos {
                    batch_size: Some(batch_size),
                    sampling: Sampling::Cyclic,
                    project,
                    ..Pegasos::default()
                };
                check(rows, &data, Hinge, settings, fit_intercept);
                check(rows, &data, Log, settings, fit_intercept);
                check(rows, &data, Squared, settings, fit_intercept);
                let width = EpsilonInsensitive::with_param(0.1);
                check(rows, &data, width, settings, fit_intercept);
            }
        }
    }
}

#[test]
fn the_parts_of_a_stream_are_one_pass() {
    let data = Data::new(50, D, 64);
    let (x, y) = (&data.dense, &data.labels);
    let lambda = Regularisation::Lambda(LAMBDA);
    let whole_rows = dense(x, D);
    let whole = plain(&whole_rows, y, Log, LAMBDA);
    let (first, second) = (dense(&x[..20 * D], D), dense(&x[20 * D..], D));
    let part = |rows, y| part_of(rows, y, Log, lambda, false).expect("valid");
    let parts = [part(&first, &y[..20]), part(&second, &y[20..])];
    // By default, a batch of a stream is one row.
    let settings = Pegasos {
        sampling: Sampling::Cyclic,
        ..Pegasos::default()
    };
    let single = Pegasos {
        batch_size: Some(1),
        ..settings.clone()
    };
    let (models, fit) = iterates(&single, &whole, 150, 50);
    let stream = stream(&settings, &parts, 3);
    assert_close(&stream.last.coef, &fit.coef, 1e-12, "last");
    assert_close(&stream.mean.coef, &mean(&models[..150]), 1e-12, "mean");
    assert_eq!(stream.steps, 150.0);
}

/// With an intercept, too, the mean of a stream is the mean of its models; parts of one row each
/// expose them all.
#[test]
fn the_mean_of_a_stream_is_the_mean_of_its_models() {
    let data = Data::new(40, D, 65);
    let x = &data.dense;
    fn part<'a>(rows: &'a Dense<'a, f64>, y: &'a [f64]) -> Problem<'a> {
        let lambda = Regularisation::Lambda(LAMBDA);
        part_of(rows, y, Huber::with_param(1.0), lambda, true).expect("valid")
    }
    for project in [false, true] {
        let settings = Pegasos {
            batch_size: Some(1),
            project,
            ..Pegasos::default()
        };
        let first_rows = dense(&x[..10 * D], D);
        let first = part(&first_rows, &data.reals[..10]);
        let mut stream = settings
            .partial_solve(&first, None, &mut NoMonitor)
            .expect("not interrupted");
        let (mut sum, mut intercepts) = (stream.mean.coef.clone(), 10.0 * stream.mean.intercept);
        for sum in &mut sum {
            *sum *= 10.0;
        }
        for i in 10..40 {
            for (sum, w) in sum.iter_mut().zip(&stream.last.coef) {
                *sum += w;
            }
            intercepts += stream.last.intercept;
            let row = dense(&x[i * D..][..D], D);
            let next = part(&row, &data.reals[i..=i]);
            stream = settings
                .partial_solve(&next, Some(stream), &mut NoMonitor)
                .expect("not interrupted");
        }
        assert_eq!(stream.steps, 40.0);
        let means: Vec<f64> = sum.iter().map(|sum| sum / 40.0).collect();
        assert_close(&stream.mean.coef, &means, 1e-12, "coef");
        assert_close(&[stream.mean.intercept], &[intercepts / 40.0], 1e-12, "b");
    }
}

// ---------------------------------------------------------------- errors and extremes

#[test]
fn bad_settings_are_named() {
    let data = Data::new(30, D, 71);
    let rows = &dense(&data.dense, D);
    let problem = plain(rows, &data.labels, Log, LAMBDA);
    let settled = &budget(0.1, 10);
    let name = |result: Result<Fit, Error>| match result {
        Err(Error::Parameter { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    let pegasos = |settings: Pegasos| {
        let streamed = settings.partial_solve(&problem, None, &mut NoMonitor).err();
        let result = settings.solve(&problem, settled, None, &mut NoMonitor);
        assert_eq!(streamed, result.as_ref().err().cloned());
        name(result)
    };
    let asdca = |settings: Asdca| name(settings.solve(&problem, settled, None, &mut NoMonitor));
    let subgradient =
        |settings: Subgradient| name(settings.solve(&problem, settled, None, &mut NoMonitor));
    let dual_gradient =
        |settings: DualGradient| name(settings.solve(&problem, settled, None, &mut NoMonitor));
    let batch_size = Some(0);
    let empty = Pegasos {
        batch_size,
        ..Pegasos::default()
    };
    assert_eq!(pegasos(empty), "batch_size");
    let empty = Asdca {
        batch_size: 0,
        ..Asdca::default()
    };
    assert_eq!(asdca(empty), "batch_size");
    for theta in [0.0, -0.5, 1.0 + 1e-12, f64::NAN, f64::INFINITY] {
        let theta = Some(theta);
        let settings = Asdca {
            theta,
            ..Asdca::default()
        };
        assert_eq!(asdca(settings), "theta");
    }
    for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let step = Some(step);
        let settings = DualGradient {
            step,
            ..DualGradient::default()
        };
        assert_eq!(dual_gradient(settings), "step");
    }
    let mut rates = Vec::new();
    for eta0 in [0.0, -1.0, 1.001 / LAMBDA, f64::NAN, f64::INFINITY] {
        let eta0 = Some(eta0);
        rates.push((LearningRate::Constant { eta0 }, "eta0"));
        rates.push((LearningRate::InvScaling { eta0, power: 0.5 }, "eta0"));
    }
    for power in [0.0, -1.0, 1.1, f64::NAN] {
        let rate = LearningRate::InvScaling { eta0: None, power };
        rates.push((rate, "power_t"));
    }
    for (learning_rate, expected) in rates {
        let settings = Pegasos {
            learning_rate,
            ..Pegasos::default()
        };
        assert_eq!(pegasos(settings), expected, "{learning_rate:?}");
        let learning_rate = Some(learning_rate);
        let settings = Subgradient {
            learning_rate,
            ..Subgradient::default()
        };
        assert_eq!(subgradient(settings), expected, "{learning_rate:?}");
    }
    for average_from in [-0.1, 1.0, f64::NAN].map(AverageFrom::Fraction) {
        let settings = Pegasos {
            average_from,
            ..Pegasos::default()
        };
        assert_eq!(pegasos(settings), "average_from");
        let settings = Asdca {
            average_from,
            ..Asdca::default()
        };
        assert_eq!(asdca(settings), "average_from");
        let settings = Subgradient {
            average_from,
            ..Subgradient::default()
        };
        assert_eq!(subgradient(settings), "average_from");
        let settings = DualGradient {
            average_from,
            ..DualGradient::default()
        };
        assert_eq!(dual_gradient(settings), "average_from");
    }
    assert!(LearningRate::named("optimal", None, 0.5).is_err());
}

#[test]
fn asdca_names_a_smooth_relative() {
    struct Refused<'a>(&'a Data);
    impl Visitor for Refused<'_> {
        type Out = Option<(Error, Option<&'static str>)>;

        fn visit<L: Loss>(self, loss: L) -> Self::Out {
            let rows = &dense(&self.0.dense, D);
            let problem = plain(rows, self.0.targets(L::TARGET), loss, LAMBDA);
            let result = Asdca::default().solve(&problem, &budget(0.1, 10), None, &mut NoMonitor);
            result.err().map(|error| (error, L::SMOOTH_RELATIVE))
        }
    }
    let data = Data::new(30, D, 72);
    for spec in SPECS {
        let refused = dispatch(spec.name, None, Refused(&data)).expect("known");
        assert_eq!(refused.is_none(), (spec.is_smooth)(), "{}", spec.name);
        let Some((error, relative)) = refused else {
            continue;
        };
        let found = spec.name;
        assert_eq!(error, Error::NotSmooth { found, relative });
        assert!(error.to_string().contains(spec.name), "{error}");
        if let Some(relative) = relative {
            assert!(error.to_string().contains(relative), "{error}");
            let smooth = SPECS.iter().find(|spec| spec.name == relative);
            assert!(smooth.is_some_and(|spec| (spec.is_smooth)()), "{error}");
            assert!(smooth.is_some_and(|smooth| smooth.target == spec.target));
        }
    }
}

/// A run that ends returns finite numbers.
#[track_caller]
fn assert_numbers(result: Result<Fit, Error>, what: &str) -> Option<Fit> {
    match result {
        Ok(fit) => {
            let c = fit.certificate;
            assert!(
                !c.gap.is_nan() && !c.primal.is_nan() && !c.dual.is_nan(),
                "{what} {c:?}"
            );
            assert!(c.gap >= -1e-12 * c.primal.abs(), "{what} {c:?}");
            assert!(fit.coef.iter().all(|w| w.is_finite()), "{what}");
            assert!(fit.dual.iter().all(|a| a.is_finite()), "{what}");
            assert!(fit.intercept.is_finite(), "{what}");
            Some(fit)
        }
        Err(Error::Diverged { .. } | Error::Overflow { .. }) => None,
        Err(other) => panic!("{what}: {other}"),
    }
}

#[test]
fn steps_that_are_too_long_are_an_error() {
    let data = Data::new(40, D, 73);
    let rows = &dense(&data.dense, D);
    for fit_intercept in [false, true] {
        let lambda = Regularisation::Lambda(1e-6);
        let problem = posed(rows, &data.reals, None, Squared, lambda, fit_intercept);
        let problem = problem.expect("valid");
        let eta0 = Some(1e5);
        let rate = LearningRate::Constant { eta0 };
        for output in [Output::Last, Output::Average, Output::Random] {
            let pegasos = Pegasos {
                learning_rate: rate,
                batch_size: Some(1),
                output,
                ..Pegasos::default()
            };
            let subgradient = Subgradient {
                learning_rate: Some(rate),
                output: Some(output),
                ..Subgradient::default()
            };
            for epochs in [1, 2, 3, 1000] {
                let budget = &budget(1e-4, epochs);
                let one = pegasos.solve(&problem, budget, None, &mut NoMonitor);
                let other = subgradient.solve(&problem, budget, None, &mut NoMonitor);
                let found = assert_numbers(one, &format!("{pegasos:?}"));
                assert!(found.is_none() || epochs < 1000, "{pegasos:?}");
                let found = assert_numbers(other, &format!("{subgradient:?}"));
                assert!(found.is_none() || epochs < 1000, "{subgradient:?}");
            }
        }
        let pegasos = Pegasos {
            learning_rate: rate,
            ..Pegasos::default()
        };
        let mut stream = None;
        let failed = (0..1000).find_map(|_| {
            let next = pegasos.partial_solve(&problem, stream.take(), &mut NoMonitor);
            next.map(|next| stream = Some(next)).err()
        });
        assert!(matches!(failed, Some(Error::Diverged { .. })));
    }
}

/// All solvers on a problem with extreme numbers.
struct Extreme<'a> {
    x: &'a [f64],
    n_cols: usize,
    y: &'a [f64],
    fit_intercept: bool,
    what: &'a str,
}

impl Visitor for Extreme<'_> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let rows = &dense(self.x, self.n_cols);
        let positive: Vec<f64> = self.y.iter().map(|y| y.abs()).collect();
        let labels: Vec<f64> = self.y.iter().map(|y| y.signum()).collect();
        let y = match L::TARGET {
            Target::Label => &labels,
            Target::Real => self.y,
            Target::NonNegative => &positive,
        };
        let c = Regularisation::C(1.0);
        let Ok(problem) = part_of(rows, y, loss, c, self.fit_intercept) else {
            panic!("{}: not a problem", self.what);
        };
        let budget = &budget(1e-4, 30);
        let what = format!("{} {} {}", L::NAME, self.what, self.fit_intercept);
        for output in [Output::Last, Output::Average, Output::Random] {
            let pegasos = |project, batch_size| {
                let settings = Pegasos {
                    output,
                    project,
                    batch_size,
                    ..Pegasos::default()
                };
                let fit = settings.solve(&problem, budget, None, &mut NoMonitor);
                assert_numbers(fit, &format!("{what} {settings:?}"));
            };
            pegasos(false, None);
            pegasos(true, None);
            pegasos(true, Some(1));
            let settings = Subgradient {
                output: (output != Output::Last).then_some(output),
                ..Subgradient::default()
            };
            let fit = settings.solve(&problem, budget, None, &mut NoMonitor);
            assert_numbers(fit, &format!("{what} {settings:?}"));
            let settings = DualGradient {
                output,
                ..DualGradient::default()
            };
            let fit = settings.solve(&problem, budget, None, &mut NoMonitor);
            assert_numbers(fit, &format!("{what} {settings:?}"));
            if loss.smoothness() > 0.0 {
                let settings = Asdca {
                    output,
                    ..Asdca::default()
                };
                let fit = settings.solve(&problem, budget, None, &mut NoMonitor);
                assert_numbers(fit, &format!("{what} {settings:?}"));
            }
        }
    }
}

#[test]
fn extreme_numbers_give_a_truthful_result_or_an_error() {
    let wild = [1e150, -1e150, 3e149, -2e150];
    let cases: [(&str, &[f64], usize, &[f64]); 9] = [
        ("empty rows", &[0.0; 8], 2, &[1.0, -1.0, 2.0, -3.0]),
        ("one empty row", &[0.0; 2], 2, &[2.0]),
        ("one row", &[1.0, -2.0], 2, &[3.0]),
        (
            "constant columns",
            &[1.0, 5.0, 1.0, 5.0, 1.0, 5.0],
            2,
            &[1.0, -1.0, 2.0],
        ),
        (
            "a far constant",
            &[1e9, 0.1, 1e9, -0.3, 1e9, 0.2],
            2,
            &[1.0, -1.0, 2.0],
        ),
        ("huge targets", &[1.0, 2.0, -1.0, 0.5], 1, &wild),
        ("huge rows", &wild, 1, &[1.0, -1.0, 2.0, -3.0]),
        (
            "tiny rows",
            &[1e-170, 2e-170, -1e-170],
            1,
            &[1.0, -1.0, 2.0],
        ),
        ("zero targets", &[1.0, -2.0, 0.5, 1.5], 2, &[0.0, 0.0]),
    ];
    for spec in SPECS {
        for (what, x, n_cols, y) in cases {
            for fit_intercept in [false, true] {
                let extreme = Extreme {
                    x,
                    n_cols,
                    y,
                    fit_intercept,
                    what,
                };
                dispatch(spec.name, None, extreme).expect("known");
            }
        }
    }
}

/// For a loss whose slope is neither bounded nor Lipschitz-continuous, only the projection bounds
/// the steps, so it is on whether requested or not.
#[test]
fn poisson_is_always_projected() {
    let data = Data::new(60, D, 74);
    let rows = &dense(&data.dense, D);
    let problem = plain(rows, &data.counts, Poisson, LAMBDA);
    let twin = Twin::of(&problem, Poisson, &data.dense, &data.counts);
    let radius = (twin.primal(&twin.zero()) / LAMBDA).sqrt();
    let with = |project| {
        let settings = Pegasos {
            batch_size: Some(1),
            project,
            learning_rate: LearningRate::Constant {
                eta0: Some(1.0 / LAMBDA),
            },
            ..Pegasos::default()
        };
        iterates(&settings, &problem, 300, 60).0
    };
    let models = with(false);
    assert_eq!(models, with(true));
    for w in models {
        assert!(dot(&w, &w).sqrt() <= radius * (1.0 + 1e-12));
    }
}

/// Pixels, as in the data set skin: three columns of bytes, and labels that they determine up to
/// noise.
fn pixels(seed: u32) -> (Vec<f64>, Vec<f64>) {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1u32 << 24)
    };
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..6000 {
        let grey = 256.0 * uniform();
        let pixel = [(); 3].map(|()| (grey + 80.0 * uniform() - 40.0).clamp(0.0, 255.0).floor());
        let noise = 60.0 * (uniform() + uniform() - uniform() - uniform());
        let score = pixel[0] - 0.6 * pixel[1] - 0.5 * pixel[2] + noise;
        x.extend(pixel);
        y.push(if score > 0.0 { 1.0 } else { -1.0 });
    }
    (x, y)
}

/// At a large C, the rows at the margin span fewer directions than there are columns. The error
/// along the other directions, where the Hessian is `lambda` compared with squares of bytes, used
/// to end runs short of the tolerance.
#[test]
fn bytes_and_a_large_c_are_certified_to_nine_digits() {
    for seed in 1..=8 {
        let (x, y) = pixels(seed);
        let rows = dense(&x, 3);
        for c in [1e5, 1e6] {
            let c = Regularisation::C(c);
            let problem = posed(&rows, &y, None, Hinge, c, false).expect("valid");
            let fit = solve(&Sdca::default(), &problem, &budget(1e-9, 1000));
            assert_eq!(fit.stop, StopReason::Converged, "seed {seed}, {c:?}");
            assert!(
                fit.epochs < 300.0,
                "{} epochs, seed {seed}, {c:?}",
                fit.epochs
            );
        }
    }
}

/// On columns of very different scales, rounding of the dual values spoils their model: what is
/// returned is never worse than zero coefficients, whatever ends the run, and failed attempts do
/// not appear in the history.
#[test]
fn a_system_that_rounding_spoils_is_no_model() {
    let (x, y) = pixels(2);
    let x: Vec<f64> = x
        .chunks(3)
        .flat_map(|row| [1e6 + 0.01 * row[0], 1e-8 * row[1], row[2]])
        .collect();
    let rows = dense(&x, 3);
    for c in [1.0, 1e6, 1e9] {
        let c = Regularisation::C(c);
        let ridge = posed(&rows, &y, None, Squared, c, false).expect("valid");
        // The last tolerance cannot be proved in double precision.
        for (tol, max_time) in [
            (1e-6, Some(std::time::Duration::ZERO)),
            (1e-6, None),
            (1e-17, None),
        ] {
            let budget = Budget {
                max_time,
                ..budget(tol, 200)
            };
            let fit = solve(&Sdca::default(), &ridge, &budget);
            let (first, last) = (fit.history[0].certificate, fit.certificate);
            assert!(last.primal <= first.primal && last.gap <= first.gap);
            assert!(fit.history.is_sorted_by(|a, b| a.epoch < b.epoch));
            if tol == 1e-6 && max_time.is_none() {
                assert_eq!(fit.stop, StopReason::Converged, "{c:?}");
            }
        }
    }
}

/// The weight of one label is negligible relative to that of the other.
#[test]
fn the_first_point_is_certified_for_any_balance_of_the_labels() {
    let rows = vec![0.0; 400];
    let rows = dense(&rows, 1);
    let mut y = vec![1.0; 400];
    y[3] = -1.0;
    for share in [0.1, 1e-12, 1e-14, 1e-17] {
        let mut weights = vec![1.0; 400];
        weights[3] = 400.0 * share;
        let problem =
            posed(&rows, &y, Some(&weights), Log, Regularisation::C(1.0), true).expect("valid");
        let fit = solve(&Sdca::default(), &problem, &budget(1e-4, 50));
        // -s log s - (1 - s) log(1 - s), at the best b.
        let s = weights[3] / (399.0 + weights[3]);
        let exact = -s * s.ln() - (1.0 - s) * (-s).ln_1p();
        let primal = fit.history[0].certificate.primal;
        assert!(
            (primal - exact).abs() <= 1e-3 * exact,
            "{primal} for {exact}"
        );
    }
}

/// Newton's method needs no preceding passes if it costs no more than they would: one step, of two
/// epochs, for the squared loss.
#[test]
fn few_columns_are_a_system_of_equations_at_once() {
    let (x, y) = pixels(1);
    let rows = dense(&x, 3);
    for intercept in [false, true] {
        let c = Regularisation::C(1.0);
        let ridge = posed(&rows, &y, None, Squared, c, intercept).expect("valid");
        let fit = solve(&Sdca::default(), &ridge, &budget(1e-4, 1000));
        assert_eq!(fit.stop, StopReason::Converged);
        assert_eq!((fit.epochs, fit.history.len()), (2.0, 2));
        assert!(fit.certificate.gap.abs() <= 1e-12 * fit.certificate.primal);
        // That many epochs are not always allowed.
        let short = solve(&Sdca::default(), &ridge, &budget(1e-4, 1));
        assert_eq!((short.stop, short.epochs), (StopReason::Converged, 1.0));
        // Values with zero weight must still be finite.
        let mut spoilt = x.clone();
        spoilt[3 * 17] = f64::INFINITY;
        let mut weights = vec![1.0; y.len()];
        weights[17] = 0.0;
        let spoilt = dense(&spoilt, 3);
        let ridge = posed(&spoilt, &y, Some(&weights), Squared, c, intercept).expect("valid");
        let refused = Sdca::default().solve(&ridge, &budget(1e-4, 1000), None, &mut NoMonitor);
        assert!(matches!(refused, Err(Error::Overflow { .. })));
        let logistic = posed(&rows, &y, None, Log, c, intercept).expect("valid");
        let fit = solve(&Sdca::default(), &logistic, &budget(1e-4, 1000));
        assert_eq!(fit.stop, StopReason::Converged);
        assert_eq!(fit.history[1].phase, Phase::Newton);
        // The rows are short for this C, so a few passes are cheaper.
        let c = Regularisation::C(1e-7);
        let easy = posed(&rows, &y, None, SquaredHinge, c, intercept).expect("valid");
        let fit = solve(&Sdca::default(), &easy, &budget(1e-4, 1000));
        assert!(
            fit.history
                .iter()
                .all(|record| record.phase == Phase::Plain)
        );
    }
}
