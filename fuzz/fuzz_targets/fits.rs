//! Complete tiny fits with every solver and every loss, at any scale: either an error, or a model
//! with a correct certificate.

#![no_main]

use std::ops::ControlFlow;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ndarray::ArrayView2;
use sdca_rs::Error;
use sdca_rs::data::{Data, Storage};
use sdca_rs::kernel::Borrowed;
use sdca_rs::loss::{Loss, SPECS, Target, Visitor, dispatch};
use sdca_rs::order::Sampling;
use sdca_rs::problem::{Problem, Regularisation};
use sdca_rs::rows::{Csr, Dense};
use sdca_rs::run::{Budget, Fit, Monitor, Progress, StopReason};
use sdca_rs::solver::{
    Asdca, AverageFrom, DualGradient, FirstEpoch, Output, Pegasos, Sdca, Solver, Start, Subgradient,
};

use sdca_fuzz::bytes::{Bytes, Kind};
use sdca_fuzz::choices::{learning_rate, target};
use sdca_fuzz::known;
use sdca_fuzz::rounding::{K, Shaped};

// ---------------------------------------------------------------- what has been done

static FITS: AtomicU64 = AtomicU64::new(0);
static ERRORS: AtomicU64 = AtomicU64::new(0);
static CONVERGED: AtomicU64 = AtomicU64::new(0);
static PRINT: Once = Once::new();

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> std::ffi::c_int;
}

/// `run.sh` searches the output for this line.
extern "C" fn print() {
    let [fits, errors, converged] = [&FITS, &ERRORS, &CONVERGED].map(|count| count.load(Relaxed));
    eprintln!("fits: {fits}, of which errors: {errors}, converged: {converged}");
}

// ---------------------------------------------------------------- rows of any storage

/// How rows are stored.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Layout {
    Dense,
    Narrow,
    Csr,
    CsrNarrow,
    Pattern,
}

/// A matrix in all storage formats.
struct Matrix {
    n_rows: usize,
    n_cols: usize,
    /// The exact stored values.
    dense: Vec<f64>,
    narrow: Vec<f32>,
    values: Vec<f64>,
    narrow_values: Vec<f32>,
    indices: Vec<i32>,
    long_indices: Vec<i64>,
    indptr: Vec<i32>,
}

impl Matrix {
    /// Decodes a matrix.
    fn new(bytes: &mut Bytes<'_>, n_rows: usize, n_cols: usize, storage: Layout) -> Self {
        let mut dense = vec![0.0; n_rows * n_cols];
        let scales = bytes.below(6);
        for x in &mut dense {
            *x = if scales == 5 {
                bytes.number()
            } else {
                bytes.tame()
            };
        }
        match scales {
            // Each column or each row has its own scale, or only one of them does.
            1 => {
                let units: Vec<f64> = (0..n_cols).map(|_| bytes.power()).collect();
                dense
                    .iter_mut()
                    .enumerate()
                    .for_each(|(k, x)| *x *= units[k % n_cols]);
            }
            2 => {
                let units: Vec<f64> = (0..n_rows).map(|_| bytes.power()).collect();
                dense
                    .iter_mut()
                    .enumerate()
                    .for_each(|(k, x)| *x *= units[k / n_cols]);
            }
            3 => {
                let (j, unit) = (bytes.below(n_cols), bytes.power());
                dense
                    .iter_mut()
                    .skip(j)
                    .step_by(n_cols)
                    .for_each(|x| *x *= unit);
            }
            4 => {
                let (unit, shift) = (bytes.tame_power(), bytes.power());
                dense.iter_mut().for_each(|x| *x = *x * unit + shift);
            }
            _ => {}
        }
        if storage == Layout::Pattern {
            for row in dense.chunks_exact_mut(n_cols) {
                let value = row.iter().copied().find(|&x| x != 0.0).unwrap_or(0.0);
                row.iter_mut()
                    .filter(|x| **x != 0.0)
                    .for_each(|x| *x = value);
            }
        }
        for x in &mut dense {
            *x = x.clamp(-f64::MAX, f64::MAX);
            if matches!(storage, Layout::Narrow | Layout::CsrNarrow) {
                *x = f64::from((*x as f32).clamp(-f32::MAX, f32::MAX));
            }
        }
        let narrow: Vec<f32> = dense.iter().map(|&x| x as f32).collect();
        let (mut values, mut indices, mut indptr) = (Vec::new(), Vec::new(), vec![0]);
        // Reversed columns and stored zeros are valid.
        let (reverse, keep_zeros) = (bytes.flag(), bytes.flag() && storage != Layout::Pattern);
        for row in dense.chunks_exact(n_cols) {
            for j in 0..n_cols {
                let j = if reverse { n_cols - 1 - j } else { j };
                if row[j] != 0.0 || keep_zeros {
                    values.push(row[j]);
                    indices.push(j as i32);
                }
            }
            indptr.push(indices.len() as i32);
        }
        Self {
            n_rows,
            n_cols,
            narrow_values: values.iter().map(|&x| x as f32).collect(),
            long_indices: indices.iter().map(|&j| i64::from(j)).collect(),
            dense,
            narrow,
            values,
            indices,
            indptr,
        }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.dense[i * self.n_cols..][..self.n_cols]
    }

    fn stored(&self, storage: Layout) -> Storage<'_> {
        let shape = (self.n_rows, self.n_cols);
        let indptr = Borrowed::new(&self.indptr);
        let csr = || {
            let (values, indices) = (Borrowed::new(&self.values), Borrowed::new(&self.indices));
            Csr::new(values, indices, indptr, self.n_cols).expect("compressed rows")
        };
        match storage {
            Layout::Dense => {
                let x = ArrayView2::from_shape(shape, &self.dense).expect("shape");
                Dense::new(x).expect("C order").into()
            }
            Layout::Narrow => {
                let x = ArrayView2::from_shape(shape, &self.narrow).expect("shape");
                Dense::new(x).expect("C order").into()
            }
            Layout::Csr => csr().into(),
            Layout::CsrNarrow => {
                let (values, indices) = (
                    Borrowed::new(&self.narrow_values),
                    Borrowed::new(&self.long_indices),
                );
                let rows = Csr::new(values, indices, indptr, self.n_cols);
                rows.expect("compressed rows").into()
            }
            Layout::Pattern => {
                let pattern = csr().into_pattern();
                pattern.expect("one value in each row").into()
            }
        }
    }
}

// ---------------------------------------------------------------- what is asked for

/// Any of the solvers.
#[derive(Debug, Clone)]
enum Any {
    Sdca(Sdca),
    Asdca(Asdca),
    Pegasos(Pegasos),
    Subgradient(Subgradient),
    DualGradient(DualGradient),
}

const OUTPUTS: [Output; 3] = [Output::Last, Output::Average, Output::Random];
const SAMPLINGS: [Sampling; 3] = [Sampling::Permutation, Sampling::Random, Sampling::Cyclic];
const FIRST_EPOCHS: [FirstEpoch; 3] = [FirstEpoch::Auto, FirstEpoch::Sdca, FirstEpoch::Sgd];

impl Any {
    fn new(bytes: &mut Bytes<'_>, n_rows: usize) -> Self {
        let seed = u64::from(bytes.byte());
        let average_from = match bytes.byte() {
            fraction @ 0..224 => AverageFrom::Fraction(f64::from(fraction) / 224.0),
            step => AverageFrom::Step(u64::from(step - 224)),
        };
        let output = bytes.pick(&OUTPUTS);
        let sampling = bytes.pick(&SAMPLINGS);
        match bytes.below(8) {
            0..4 => Self::Sdca(Sdca {
                sampling,
                // Only the last iterate can be accelerated.
                output: if bytes.flag() { output } else { Output::Last },
                average_from,
                first_epoch: bytes.pick(&FIRST_EPOCHS),
                accelerate: bytes.byte() % 4 != 3,
                seed,
                n_threads: 1,
            }),
            4 => Self::Asdca(Asdca {
                batch_size: 1 + bytes.below(n_rows),
                sampling,
                theta: if bytes.flag() {
                    Some(bytes.size())
                } else {
                    None
                },
                output,
                average_from,
                seed,
                n_threads: 1,
            }),
            5 => Self::Pegasos(Pegasos {
                batch_size: if bytes.flag() {
                    Some(1 + bytes.below(n_rows))
                } else {
                    None
                },
                sampling,
                project: bytes.flag(),
                learning_rate: learning_rate(bytes),
                output,
                average_from,
                seed,
                n_threads: 1,
            }),
            6 => Self::Subgradient(Subgradient {
                learning_rate: if bytes.flag() {
                    Some(learning_rate(bytes))
                } else {
                    None
                },
                output: if bytes.flag() { Some(output) } else { None },
                average_from,
                seed,
                n_threads: 1,
            }),
            _ => Self::DualGradient(DualGradient {
                step: if bytes.flag() {
                    Some(bytes.size())
                } else {
                    None
                },
                output,
                average_from,
                seed,
                n_threads: 1,
            }),
        }
    }

    fn solve(
        &self,
        problem: &Problem<'_>,
        budget: &Budget,
        start: Option<Start<'_>>,
        monitor: &mut dyn Monitor,
    ) -> Result<Fit, Error> {
        match self {
            Self::Sdca(solver) => solver.solve(problem, budget, start, monitor),
            Self::Asdca(solver) => solver.solve(problem, budget, start, monitor),
            Self::Pegasos(solver) => solver.solve(problem, budget, start, monitor),
            Self::Subgradient(solver) => solver.solve(problem, budget, start, monitor),
            Self::DualGradient(solver) => solver.solve(problem, budget, start, monitor),
        }
    }
}

/// Limits the number of records of a run, and checks that there are not more than possible.
struct Bounded {
    records: usize,
    stop_after: usize,
    limit: usize,
}

impl Monitor for Bounded {
    fn record(&mut self, _: &Progress<'_>) -> ControlFlow<()> {
        self.records += 1;
        assert!(self.records <= self.limit, "{} records", self.records);
        if self.records >= self.stop_after {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// All settings except rows and loss.
struct Task<'b, 'a> {
    bytes: &'b mut Bytes<'a>,
    param: Option<f64>,
    matrix: &'b Matrix,
    storage: Layout,
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));

/// Decodes a problem and settings, fits once or twice, and checks all laws.
fn run(data: &[u8]) {
    PRINT.call_once(|| {
        // SAFETY: `print` may be called at any time.
        unsafe { atexit(print) };
    });
    let mut bytes = Bytes::new(data);
    let spec = bytes.pick(SPECS);
    let param = spec.param.filter(|_| bytes.flag()).map(|param| {
        let found = bytes.number();
        if (param.accepts)(found) {
            found
        } else {
            param.default
        }
    });
    let storage = bytes.pick(&[
        Layout::Dense,
        Layout::Csr,
        Layout::Pattern,
        Layout::Narrow,
        Layout::CsrNarrow,
    ]);
    let n_rows = 1 + bytes.below(8);
    let wide = bytes.byte();
    let n_cols = if wide >= 240 {
        7 + usize::from(wide - 240) * 2
    } else {
        1 + usize::from(wide) % 6
    };
    let matrix = &Matrix::new(&mut bytes, n_rows, n_cols, storage);
    let task = Task {
        bytes: &mut bytes,
        param,
        matrix,
        storage,
    };
    dispatch(spec.name, param, task).expect("the registry builds its own losses");
}

impl Visitor for Task<'_, '_> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let Self {
            bytes,
            param,
            matrix,
            storage,
        } = self;
        let n_rows = matrix.n_rows;
        let wild = bytes.byte() % 4 == 0;
        let unit = if bytes.byte() % 4 == 0 {
            bytes.power()
        } else {
            1.0
        };
        let mut y: Vec<f64> = (0..n_rows)
            .map(|_| {
                let y = target_of::<L>(bytes, wild);
                let scaled = y * unit;
                if L::TARGET.accepts(scaled) { scaled } else { y }
            })
            .collect();
        // A single class is refused; that need not be tried often.
        let is_one_class = y.iter().all(|&label| label == y[0]);
        if L::TARGET == Target::Label && is_one_class && bytes.byte() != 255 {
            y[n_rows - 1] = -y[0];
        }
        let weights: Option<Vec<f64>> = match bytes.byte() % 4 {
            0 => Some((0..n_rows).map(|_| bytes.tame().abs()).collect()),
            1 => Some((0..n_rows).map(|_| bytes.size()).collect()),
            _ => None,
        };
        let strength = if bytes.byte() % 4 == 0 {
            bytes.power()
        } else {
            bytes.tame_power()
        };
        let regularisation = if bytes.flag() {
            Regularisation::C(strength)
        } else {
            Regularisation::Lambda(strength)
        };
        let fit_intercept = bytes.flag();
        let Ok(data) = Data::new(matrix.stored(storage), weights.as_deref()) else {
            return;
        };
        let Ok(problem) = Problem::new(data, &y, loss, regularisation, fit_intercept) else {
            return;
        };
        let solver = Any::new(bytes, n_rows);
        let budget = Budget {
            tol: bytes.pick(&[1e-4, 0.0, 1e-1, 1e-8, 1e-12, 1e-15, 1e-300, 0.999]),
            max_epochs: 1 + bytes.below(32),
            max_time: bytes.pick(&[None, None, None, Some(Duration::ZERO), Some(Duration::MAX)]),
            record_every: bytes.pick(&[None, None, Some(1.0), Some(0.3), Some(7.5)]),
        };
        let stop_after = match bytes.byte() {
            byte @ 1..16 => usize::from(byte),
            _ => usize::MAX,
        };
        let monitor = || Bounded {
            records: 0,
            stop_after,
            limit: 8 * budget.max_epochs + 100,
        };
        let laws = Laws {
            problem: &problem,
            matrix,
            shaped: Shaped {
                loss,
                param: param.or(L::PARAM.map(|param| param.default)).unwrap_or(0.0),
            },
            tol: budget.tol,
            what: &solver,
        };
        let garbage = bytes.byte();
        let (dual, coef): (Vec<f64>, Vec<f64>);
        let start = if garbage % 4 == 0 && garbage > 0 {
            let kind = bytes.pick(&[Kind::Tame, Kind::Number, Kind::Any]);
            dual = (0..n_rows).map(|_| bytes.of(kind)).collect();
            coef = (0..matrix.n_cols).map(|_| bytes.of(kind)).collect();
            let steps = if bytes.flag() {
                f64::from(bytes.byte())
            } else {
                bytes.any()
            };
            Some(Start {
                dual: &dual,
                coef: &coef,
                intercept: bytes.of(kind),
                steps,
            })
        } else {
            None
        };
        let solve = |start: Option<Start<'_>>| {
            FITS.fetch_add(1, Relaxed);
            let fit = solver.solve(&problem, &budget, start, &mut monitor());
            match &fit {
                Err(error) => {
                    ERRORS.fetch_add(1, Relaxed);
                    assert!(!error.to_string().is_empty());
                }
                Ok(fit) => {
                    CONVERGED.fetch_add(u64::from(fit.stop == StopReason::Converged), Relaxed);
                    laws.check(fit);
                }
            }
            fit
        };
        let first = solve(start);
        let more = bytes.byte();
        if let Ok(first) = &first
            && more % 8 == 1
        {
            // The run continues from there.
            let _ = solve(Some(first.into()));
        }
        if more % 8 == 2 && budget.max_time.is_none() {
            // Repeated, it must be bitwise identical.
            match (&first, &solve(start)) {
                (Ok(one), Ok(two)) => {
                    assert_eq!(bits(&one.coef), bits(&two.coef), "{solver:?}");
                    assert_eq!(bits(&one.dual), bits(&two.dual), "{solver:?}");
                    assert_eq!((one.stop, one.steps), (two.stop, two.steps), "{solver:?}");
                }
                (one, two) => assert_eq!(one.as_ref().err(), two.as_ref().err(), "{solver:?}"),
            }
        }
    }
}

fn target_of<L: Loss>(bytes: &mut Bytes<'_>, wild: bool) -> f64 {
    if wild {
        return target(L::TARGET, bytes);
    }
    let y = bytes.tame();
    match y {
        y if L::TARGET.accepts(y) => y,
        y if L::TARGET.accepts(-y) => -y,
        // A label.
        y => {
            if y > 0.0 {
                1.0
            } else {
                -1.0
            }
        }
    }
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

// ---------------------------------------------------------------- what is to be true

struct Laws<'p, 'a, L> {
    problem: &'p Problem<'a>,
    matrix: &'p Matrix,
    shaped: Shaped<L>,
    tol: f64,
    what: &'p Any,
}

/// The log loss replaces an exponential by 0 before it is subnormal.
const UNDERFLOW: f64 = 4.0 * f64::MIN_POSITIVE;

/// A sum, and a bound on its rounding error.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: f64,
    room: f64,
}

impl<L: Loss> Laws<'_, '_, L> {
    fn check(&self, fit: &Fit) {
        let problem = self.problem;
        let c = fit.certificate;
        let at = || {
            format!(
                "{} (param {:e}), lambda {:e}, intercept {}, {:?}: {c:?}, {:?}, coef {:?} {:e}, dual {:?}, x {:?}, y {:?}, c {:?}",
                L::NAME,
                self.shaped.param,
                problem.lambda(),
                problem.fit_intercept(),
                self.what,
                fit.stop,
                fit.coef,
                fit.intercept,
                fit.dual,
                self.matrix.dense,
                (0..self.matrix.n_rows)
                    .map(|i| problem.target(i))
                    .collect::<Vec<_>>(),
                (0..self.matrix.n_rows)
                    .map(|i| problem.weight(i))
                    .collect::<Vec<_>>(),
            )
        };
        // The shape of the result.
        assert_eq!(
            (fit.coef.len(), fit.dual.len()),
            (self.matrix.n_cols, self.matrix.n_rows)
        );
        let last = fit.history.last().expect("at least one evaluation");
        assert_eq!(
            same(last.certificate),
            same(c),
            "the history ends otherwise: {}",
            at()
        );
        assert_eq!(last.epoch, fit.epochs, "{}", at());
        assert!(fit.mean_q >= 0.0 || fit.mean_q.is_nan(), "{}", at());
        // All numbers are finite.
        let all = fit
            .coef
            .iter()
            .chain(&fit.dual)
            .chain([&fit.intercept, &c.primal]);
        if all.into_iter().any(|v| !v.is_finite()) || c.dual.is_nan() || c.gap.is_nan() {
            let squares: f64 = fit.coef.iter().map(|w| w * w).sum();
            let is_known = (squares.is_infinite() && !known::INFINITE_PENALTY)
                || (c.gap.is_nan() && squares == 0.0 && !known::ROUNDING_OVERFLOWS)
                || (L::NAME == "poisson"
                    && fit.dual.contains(&f64::NEG_INFINITY)
                    && !known::POISSON_STEP_OVERFLOWS);
            assert!(
                is_known || !known::OVERFLOW_IS_REFUSED,
                "not finite: {}",
                at()
            );
            return;
        }
        assert_eq!(c.gap, c.primal - c.dual, "{}", at());
        if !problem.fit_intercept() {
            assert_eq!(fit.intercept, 0.0, "{}", at());
        }
        if L::NAME == "poisson" && !known::POISSON_CONJUGATE {
            return;
        }
        let support = (0..self.matrix.n_rows)
            .filter(|&i| fit.dual[i] != 0.0 && problem.weight(i) > 0.0)
            .count();
        assert_eq!(c.support, support, "{}", at());
        for (i, &a) in fit.dual.iter().enumerate() {
            let (low, high) = self.shaped.loss.dual_range(problem.target(i));
            assert!(
                low <= a && a <= high,
                "{a:e} is not in {low:e} to {high:e}: {}",
                at()
            );
        }
        // The certificate is correct.
        let (primal, dual) = (self.primal(&fit.coef, fit.intercept), self.dual(fit));
        let Some(off) = self.off_balance(fit) else {
            return;
        };
        if primal.room.is_finite() && primal.sum.is_finite() {
            let allowed = primal.room + K * f64::EPSILON * primal.sum.abs();
            assert!(
                (c.primal - primal.sum).abs() <= allowed,
                "P is {:e}, room {allowed:e}: {}",
                primal.sum,
                at()
            );
        }
        // An infinite bound is trivially correct.
        let is_known = c.dual == f64::NEG_INFINITY && !known::ROUNDING_OVERFLOWS;
        if dual.room.is_finite() && dual.sum.is_finite() && !is_known {
            // If the model is not that of its dual point, the bound is slightly lower.
            let allowed = 2.0 * dual.room + K * f64::EPSILON * dual.sum.abs();
            assert!(
                (c.dual - dual.sum).abs() <= allowed,
                "D is {:e}, room {allowed:e}: {}",
                dual.sum,
                at()
            );
        }
        let room = primal.room + dual.room + off;
        if room.is_finite() {
            assert!(
                c.gap >= -room,
                "the lower bound is above P, room {room:e}: {}",
                at()
            );
        }
        let is_perfect = c.primal <= 64.0 * room && c.gap <= 64.0 * room;
        if fit.stop == StopReason::Converged && (known::PERFECT_IS_NOT_CONVERGED || !is_perfect) {
            assert!(
                c.gap <= self.tol * c.primal,
                "not within the tolerance {:e}: {}",
                self.tol,
                at()
            );
        }
        // Zero coefficients are not better; but with a tolerance of 0, the algorithm's own last
        // iterate is returned.
        if known::NEVER_WORSE_THAN_ZERO && self.tol > 0.0 {
            let (b, nothing) = self.best_constant();
            if nothing.sum > 1e290 && !known::SEARCH_NEAR_OVERFLOW {
                return;
            }
            // What the search for an intercept does not guarantee: a slope that places the minimum
            // within 1e-14 counts as 0, and rows with a relative weight of 1e-12 are lost in the
            // rounding of tangents.
            let flat = 1e-14 / 8.0 * (b - fit.intercept).abs();
            let counting = (0..self.matrix.n_rows)
                .map(|i| problem.weight(i))
                .filter(|&c| c > 0.0);
            let (least, most) = counting.fold((f64::MAX, 0.0), |(least, most): (f64, f64), c| {
                (least.min(c), most.max(c))
            });
            if problem.fit_intercept() && least < 1e-12 * most {
                return;
            }
            let allowed = primal.room
                + nothing.room
                + self.tol.clamp(1e-9, 1e-4) * nothing.sum.abs()
                + flat
                + f64::MIN_POSITIVE;
            if allowed.is_finite() && nothing.sum.is_finite() {
                assert!(
                    c.primal <= nothing.sum + allowed,
                    "no model has {:e}: {}",
                    nothing.sum,
                    at()
                );
            }
        }
    }

    /// `P` according to its definition.
    fn primal(&self, coef: &[f64], b: f64) -> Sum {
        let (problem, n_cols) = (self.problem, self.matrix.n_cols as f64);
        let total = problem.total_weight();
        let (mut sum, mut room) = (0.0, 0.0);
        for i in (0..self.matrix.n_rows).filter(|&i| problem.weight(i) > 0.0) {
            let (y, c) = (problem.target(i), problem.weight(i));
            let (mut p, mut size) = (b, b.abs());
            for (x, w) in self.matrix.row(i).iter().zip(coef) {
                p += x * w;
                size += (x * w).abs();
            }
            let of_p = (n_cols + 3.0) * (f64::EPSILON * size + 5e-324);
            let steepest = self.shaped.steepest(p, y, of_p);
            sum += c * self.shaped.loss.value(p, y);
            room += c
                * (2.0 * steepest * of_p
                    + K * f64::EPSILON * self.shaped.of_value(p, y)
                    + UNDERFLOW)
                + K * 5e-324;
        }
        let n = self.matrix.n_rows as f64;
        let squares: f64 = coef.iter().map(|w| w * w).sum();
        let penalty = 0.5 * problem.lambda() * squares;
        Sum {
            sum: sum / total + penalty,
            room: room / total
                + (n + n_cols + 8.0) * f64::EPSILON * (sum / total + penalty)
                + problem.lambda() * n_cols * 5e-324,
        }
    }

    /// `D` according to its definition.
    fn dual(&self, fit: &Fit) -> Sum {
        let problem = self.problem;
        let (n, total) = (self.matrix.n_rows as f64, problem.total_weight());
        let (mut w, mut blur) = (vec![0.0; self.matrix.n_cols], vec![0.0; self.matrix.n_cols]);
        let (mut sum, mut size, mut room) = (0.0, 0.0, 0.0);
        for i in (0..self.matrix.n_rows).filter(|&i| problem.weight(i) > 0.0) {
            let (y, c, a) = (problem.target(i), problem.weight(i), fit.dual[i]);
            let conjugate = self.shaped.loss.conjugate(a, y);
            sum += c * conjugate;
            size += c * conjugate.abs();
            room += c * K * f64::EPSILON * self.shaped.of_conjugate(a, y) + K * 5e-324;
            let share = problem.rate(i) * a;
            for ((w, blur), x) in w.iter_mut().zip(&mut blur).zip(self.matrix.row(i)) {
                *w += share * x;
                *blur += (n + 6.0) * (f64::EPSILON * (share * x).abs() + 5e-324 * (1.0 + x.abs()));
            }
        }
        let squares: f64 = w.iter().map(|w| w * w).sum();
        let of_squares: f64 = w
            .iter()
            .zip(&blur)
            .map(|(w, e)| (2.0 * w.abs() + e) * e + 5e-324)
            .sum();
        let penalty = 0.5 * problem.lambda() * squares;
        Sum {
            sum: -sum / total - penalty,
            room: room / total
                + 4.0 * problem.lambda() * of_squares
                + (n + self.matrix.n_cols as f64 + 8.0) * f64::EPSILON * (size / total + penalty),
        }
    }

    /// With an intercept: checks that `sum c a = 0` up to rounding. Returns the effect of the
    /// remainder on the gap, or `None` if that overflows.
    fn off_balance(&self, fit: &Fit) -> Option<f64> {
        if !self.problem.fit_intercept() {
            return Some(0.0);
        }
        let (mut sum, mut size) = (0.0, 0.0);
        for (i, a) in fit.dual.iter().enumerate() {
            let share = self.problem.weight(i) / self.problem.total_weight();
            sum += share * a;
            size += (share * a).abs();
        }
        let room = 8.0 * (self.matrix.n_rows as f64 + 2.0) * (f64::EPSILON * size + 5e-324);
        if !room.is_finite() {
            return None;
        }
        if known::BALANCE_OF_SUBNORMAL {
            assert!(
                sum.abs() <= room,
                "sum c a is {sum:e} of {size:e}: {}, {:?}",
                L::NAME,
                self.what
            );
        }
        Some(room.max(sum.abs()) * fit.intercept.abs())
    }

    /// The best of many intercepts without coefficients, and `P` there.
    fn best_constant(&self) -> (f64, Sum) {
        let nothing = vec![0.0; self.matrix.n_cols];
        let mut best = (0.0, self.primal(&nothing, 0.0));
        if self.problem.fit_intercept() {
            // A violation could show anywhere; minima are at these points.
            let targets = (0..self.matrix.n_rows).map(|i| self.problem.target(i));
            let tried = (-20..=20).map(|k| f64::from(k) / 4.0);
            for b in tried.chain(targets.flat_map(|y| [y, y.abs().ln()])) {
                let found = self.primal(&nothing, b);
                if found.sum < best.1.sum {
                    best = (b, found);
                }
            }
        }
        best
    }
}

/// A certificate that compares NaN as equal to itself.
fn same(c: sdca_rs::run::Certificate) -> [u64; 4] {
    [
        c.primal.to_bits(),
        c.dual.to_bits(),
        c.gap.to_bits(),
        c.support as u64,
    ]
}
