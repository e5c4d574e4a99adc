use super::by_rows::stand_apart;
use super::cost::{MAX_UNKNOWNS, outer_work};
use super::*;
use crate::data::{Data, Storage};
use crate::loss::Loss;
use crate::loss::{Hinge, Huber, Log, Squared};
use crate::problem::Problem;
use crate::problem::Regularisation;
use crate::rows::Dense;
use crate::rows::Rows;
use crate::rows::tests::CsrArrays;
use crate::run::NoMonitor;
use ndarray::ArrayView2;
use proptest::prelude::*;
use std::sync::Arc;

type Vector = Vec<f64>;

/// A Hessian, and the right side of a system with it. `mu` and the last entry of the gradient
/// count only with an intercept.
#[derive(Debug, Clone)]
struct Case {
    rows: Vec<Vector>,
    weights: Vector,
    mu: Vector,
    gradient: Vector,
    lambda: f64,
}

impl Case {
    /// `f` for the Hessian of the case, with dense or with compressed rows, by so many threads: once for a
    /// quadratic loss and once for another.
    fn with(&self, kind: Kind, threads: usize, f: impl Fn(&dyn Solve, &mut RunContext<'_>)) {
        let (n, d) = (self.rows.len(), self.mu.len());
        let targets = vec![1.0; n];
        let mut no_monitor = NoMonitor;
        let mut context = RunContext::new(None, &mut no_monitor);
        context
            .set_threads(threads, usize::MAX, 1)
            .expect("a few threads");
        if kind.sparse {
            let rows = self.rows.iter().map(|row| row.iter().copied().enumerate());
            let arrays = CsrArrays::new(rows.map(|row| row.filter(|(_, x)| *x != 0.0)));
            self.with_rows(arrays.rows(d), &targets, kind, &mut context, f);
        } else {
            let entries = self.rows.concat();
            let view = ArrayView2::from_shape((n, d), &entries).expect("n rows");
            let rows = Dense::new(view).expect("C order");
            self.with_rows(rows, &targets, kind, &mut context, f);
        }
    }

    fn with_rows<'a>(
        &self,
        rows: impl Into<Storage<'a>>,
        targets: &'a [f64],
        kind: Kind,
        context: &mut RunContext<'_>,
        f: impl Fn(&dyn Solve, &mut RunContext<'_>),
    ) {
        let data = &Arc::new(Data::new(rows, None).expect("valid"));
        self.with_loss(data, targets, Squared, kind, context, &f);
        self.with_loss(data, targets, Huber::with_param(1.0), kind, context, &f);
    }

    fn with_loss<'a, L: Loss>(
        &self,
        data: &Arc<Data<'a>>,
        targets: &'a [f64],
        loss: L,
        kind: Kind,
        context: &mut RunContext<'_>,
        f: impl Fn(&dyn Solve, &mut RunContext<'_>),
    ) {
        let lambda = Regularisation::Lambda(self.lambda);
        let problem = Problem::new(Arc::clone(data), targets, loss, lambda, kind.intercept);
        let problem = problem.expect("a problem");
        let mu = if kind.intercept {
            self.mu.clone()
        } else {
            Vec::new()
        };
        let columns = Columns::new(data.rows());
        let design = Design {
            problem: &problem,
            mu,
            columns: &columns,
        };
        let hessian = Hessian {
            design: &design,
            weights: &self.weights,
        };
        f(&hessian, context);
    }

    /// The rows of the definition.
    fn centred(&self, intercept: bool) -> Vec<Vector> {
        let centre = |row: &Vector| -> Vector {
            if intercept {
                let shifted = row.iter().zip(&self.mu).map(|(x, m)| x - m);
                shifted.chain([1.0]).collect()
            } else {
                row.clone()
            }
        };
        self.rows.iter().map(centre).collect()
    }

    fn gradient(&self, intercept: bool) -> &[f64] {
        &self.gradient[..self.mu.len() + usize::from(intercept)]
    }

    /// How well `d` solves `H d = -gradient`: the largest residual beside the largest sum of what
    /// cancels in a line.
    fn residual(&self, d: &[f64], intercept: bool) -> f64 {
        let gradient = self.gradient(intercept);
        let (mut left, mut size) = (gradient.to_vec(), vec![0.0; d.len()]);
        for (row, r) in self.centred(intercept).iter().zip(&self.weights) {
            let product = dot(row, d);
            let sizes: f64 = row.iter().zip(d).map(|(x, d)| (x * d).abs()).sum();
            for ((left, size), x) in left.iter_mut().zip(&mut size).zip(row) {
                *left += r * product * x;
                *size += r * sizes * x.abs();
            }
        }
        for (j, g) in gradient.iter().enumerate() {
            if j < self.mu.len() {
                left[j] += self.lambda * d[j];
                size[j] += self.lambda * d[j].abs();
            }
            size[j] += g.abs();
        }
        largest(&left) / largest(&size)
    }
}

/// How a case is posed.
#[derive(Debug, Clone, Copy)]
struct Kind {
    sparse: bool,
    intercept: bool,
}

fn kinds() -> impl Iterator<Item = Kind> {
    [false, true].into_iter().flat_map(|sparse| {
        [false, true]
            .into_iter()
            .map(move |intercept| Kind { sparse, intercept })
    })
}

/// A Hessian with rows of any storage.
trait Solve {
    /// The direction by one of the methods, or by the cheapest one.
    fn solve(
        &self,
        way: Option<DirectionMethod>,
        gradient: &[f64],
        context: &mut RunContext<'_>,
    ) -> Vector;
    /// The direction to the `aim`, a gradient and a precision, by a sample that has served for other weights
    /// before, if any; and whether it is to serve for the next one.
    fn solve_by_sample(
        &self,
        before: Option<&[f64]>,
        aim: (&[f64], f64),
        context: &mut RunContext<'_>,
    ) -> (Vector, bool);
    /// Whether the matrix of the columns is computed by [`Columns`].
    fn is_by_columns(&self) -> bool;
    fn products(&self, v: &[f64], context: &mut RunContext<'_>) -> Vector;
    fn sum(&self, share: &[f64], context: &mut RunContext<'_>) -> Vector;
    fn size(&self) -> usize;
}

/// The residual that conjugate gradients may leave, relative to the gradient.
const TINY: f64 = 1e-14;

impl Solve for Hessian<'_, '_, '_> {
    fn solve(
        &self,
        way: Option<DirectionMethod>,
        gradient: &[f64],
        context: &mut RunContext<'_>,
    ) -> Vector {
        let mut memory = Memory::default();
        let direction = match way {
            None => self.direction(gradient, TINY, &mut memory, context),
            Some(DirectionMethod::Columns) => self.by_columns(gradient, TINY, &mut memory, context),
            Some(DirectionMethod::Sample) => {
                return self.solve_by_sample(None, (gradient, TINY), context).0;
            }
            Some(DirectionMethod::Rows) => self.by_rows(gradient, &mut memory.system, context),
            Some(DirectionMethod::ConjugateGradients) => {
                self.by_conjugate_gradients(gradient, TINY, context)
            }
        };
        direction.expect("not interrupted")
    }

    fn solve_by_sample(
        &self,
        before: Option<&[f64]>,
        (gradient, precision): (&[f64], f64),
        context: &mut RunContext<'_>,
    ) -> (Vector, bool) {
        let (design, mut sample) = (self.design, Sample::default());
        let mut solve = |weights: &[f64], precision: f64| {
            let found =
                Hessian { design, weights }.by_sample(gradient, precision, &mut sample, context);
            found.expect("not interrupted").expect("steps enough")
        };
        if let Some(before) = before {
            // A few steps, after which the sample is not given up.
            solve(before, sample::PRECISION);
        }
        let direction = solve(self.weights, precision);
        (direction, sample.serves())
    }

    fn is_by_columns(&self) -> bool {
        outer_work(self.design.problem.rows(), self.design.columns).1
    }

    fn products(&self, v: &[f64], context: &mut RunContext<'_>) -> Vector {
        let mut out = vec![7.0; self.weights.len()];
        self.design
            .products(v, &mut out, context)
            .expect("not interrupted");
        out
    }

    fn sum(&self, share: &[f64], context: &mut RunContext<'_>) -> Vector {
        self.design
            .sum(|i| share[i], context)
            .expect("not interrupted")
    }

    fn size(&self) -> usize {
        let problem = self.design.problem;
        problem.rows().n_cols() + usize::from(problem.fit_intercept())
    }
}

const WAYS: [Option<DirectionMethod>; 5] = [
    Some(DirectionMethod::Columns),
    Some(DirectionMethod::Sample),
    Some(DirectionMethod::Rows),
    Some(DirectionMethod::ConjugateGradients),
    None,
];

fn largest(v: &[f64]) -> f64 {
    v.iter()
        .fold(f64::MIN_POSITIVE, |most, x| most.max(x.abs()))
}

fn numbers(n: usize) -> impl Strategy<Value = Vector> {
    prop::collection::vec(-1.0..1.0, n)
}

/// `n` rows of `d` entries, of which that part is not zero.
fn rows(n: usize, d: usize, part: f64) -> impl Strategy<Value = Vec<Vector>> {
    let entry = (0.0..1.0, -1.0..1.0f64);
    let entry = entry.prop_map(move |(u, x)| if u < part { x } else { 0.0 });
    prop::collection::vec(prop::collection::vec(entry, d), n)
}

/// With weights among which there are zeros.
fn cases() -> impl Strategy<Value = Case> {
    let shape = (1usize..14, 1usize..14, 0.2..1.2f64);
    shape.prop_flat_map(|(n, d, part)| {
        let weight = prop_oneof![Just(0.0), 0.01..2.0];
        (
            rows(n, d, part),
            prop::collection::vec(weight, n),
            numbers(d),
            numbers(d + 1),
            -3.0..1.0f64,
        )
            .prop_map(|(rows, weights, mu, mut gradient, power)| {
                if weights.iter().all(|&r| r == 0.0) {
                    // Nothing depends on the intercept.
                    *gradient.last_mut().expect("not empty") = 0.0;
                }
                let lambda = 10f64.powf(power);
                Case {
                    rows,
                    weights,
                    mu,
                    gradient,
                    lambda,
                }
            })
    })
}

/// Pseudo-random numbers from 0 to 1, the same ones in each call.
fn uniform() -> impl FnMut() -> f64 {
    let mut seed = 1u32;
    move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(seed >> 8) / f64::from(1u32 << 24)
    }
}

/// Many more columns than rows, and next to no regularisation.
fn wide_cases() -> impl Strategy<Value = Case> {
    (1usize..9, 40usize..60).prop_flat_map(|(n, d)| {
        (
            rows(n, d, 2.0),
            prop::collection::vec(0.01..2.0, n),
            numbers(d),
            numbers(d + 1),
        )
            .prop_map(|(rows, weights, mu, gradient)| Case {
                rows,
                weights,
                mu,
                gradient,
                lambda: 1e-10,
            })
    })
}

/// Gaussian elimination with the largest pivot of each column.
fn eliminate(mut matrix: Vec<Vector>, mut right: Vector) -> Vector {
    let n = right.len();
    for k in 0..n {
        let size = |i: &usize| matrix[*i][k].abs();
        let best = (k..n).max_by(|i, j| size(i).total_cmp(&size(j)));
        let best = best.expect("k is one");
        matrix.swap(k, best);
        right.swap(k, best);
        let pivot = matrix[k].clone();
        for i in k + 1..n {
            let factor = matrix[i][k] / pivot[k];
            for (x, p) in matrix[i].iter_mut().zip(&pivot) {
                *x -= factor * p;
            }
            right[i] -= factor * right[k];
        }
    }
    for k in (0..n).rev() {
        let known = dot(&matrix[k][k + 1..], &right[k + 1..]);
        right[k] = (right[k] - known) / matrix[k][k];
    }
    right
}

proptest! {
    #[test]
    fn all_ways_solve_the_system(case in cases()) {
        for kind in kinds() {
            case.with(kind, 1, |hessian, context| {
                for way in WAYS {
                    let d = hessian.solve(way, case.gradient(kind.intercept), context);
                    assert_eq!(d.len(), hessian.size());
                    let residual = case.residual(&d, kind.intercept);
                    assert!(residual < 1e-9, "{residual} by {way:?}, {kind:?}");
                }
            });
        }
    }

    #[test]
    fn sums_and_products_are_those_of_centred_rows(case in cases()) {
        for kind in kinds() {
            let rows = case.centred(kind.intercept);
            let v = case.gradient(kind.intercept);
            case.with(kind, 1, |hessian, context| {
                let products = hessian.products(v, context);
                for (row, product) in rows.iter().zip(products) {
                    assert!((product - dot(row, v)).abs() < 1e-13);
                }
                let sum = hessian.sum(&case.weights, context);
                assert_eq!(sum.len(), v.len());
                for (j, sum) in sum.iter().enumerate() {
                    let terms = rows.iter().zip(&case.weights).map(|(row, r)| r * row[j]);
                    assert!((sum - terms.sum::<f64>()).abs() < 1e-12);
                }
            });
        }
    }

    /// What rounding leaves of the dual values `t` of the step does not depend on `lambda`: they
    /// are in `lambda d + gradient`.
    #[test]
    fn by_rows_loses_nothing_where_lambda_is_tiny(case in wide_cases()) {
        for kind in kinds() {
            let (rows, n) = (case.centred(kind.intercept), case.rows.len());
            let (g, d_cols) = (case.gradient(kind.intercept), case.mu.len());
            // lambda / r t + G t - lambda d_b = -x.gradient,  sum t = -gradient_b
            let size = n + usize::from(kind.intercept);
            let mut matrix = vec![vec![0.0; size]; size];
            let mut right = vec![0.0; size];
            for i in 0..n {
                for j in 0..n {
                    matrix[i][j] = dot(&rows[i][..d_cols], &rows[j][..d_cols]);
                }
                matrix[i][i] += case.lambda / case.weights[i];
                right[i] = -dot(&rows[i][..d_cols], &g[..d_cols]);
                if kind.intercept {
                    (matrix[i][n], matrix[n][i]) = (-1.0, 1.0);
                    right[n] = -g[d_cols];
                }
            }
            let solution = eliminate(matrix, right);
            case.with(kind, 1, |hessian, context| {
                let d = hessian.solve(Some(DirectionMethod::Rows), g, context);
                for j in 0..d_cols {
                    let t_x: f64 = (0..n).map(|i| solution[i] * rows[i][j]).sum();
                    let off = case.lambda * d[j] + g[j] + t_x;
                    assert!(off.abs() < 1e-12, "{off} in column {j}, {kind:?}");
                }
                if let (Some(d_b), Some(expected)) = (d.get(d_cols), solution.get(n)) {
                    let off = case.lambda * d_b - expected;
                    assert!(off.abs() < 1e-11, "{off} in the intercept");
                }
                // As far as numbers go that are as large as d.
                for i in 0..n {
                    let (product, expected) = (dot(&rows[i], &d), solution[i] / case.weights[i]);
                    assert!((product - expected).abs() < 1e-13 / case.lambda);
                }
            });
        }
    }
}

/// Systems of the columns can be scaled and keep columns of all sizes: systems by rows must agree with them.
#[test]
fn by_rows_columns_apart_do_not_hide_the_others() {
    let (n, d) = (6, 30);
    let mut uniform = uniform();
    let mut number = || uniform() - 0.4;
    let mut case = Case {
        rows: (0..n).map(|_| (0..d).map(|_| number()).collect()).collect(),
        weights: (0..n).map(|_| 0.5 + number()).collect(),
        mu: (0..d).map(|_| number()).collect(),
        gradient: (0..=d).map(|_| number()).collect(),
        lambda: 0.3,
    };
    let scales = |j: usize| match j {
        4 => 1e9,
        17 => 1e5,
        _ => 1.0,
    };
    for j in [4, 17] {
        case.rows.iter_mut().for_each(|row| row[j] *= scales(j));
        case.mu[j] *= scales(j);
        case.gradient[j] *= scales(j);
    }
    for kind in kinds() {
        case.with(kind, 1, |hessian, context| {
            let gradient = case.gradient(kind.intercept);
            let by_rows = hessian.solve(Some(DirectionMethod::Rows), gradient, context);
            let expected = hessian.solve(Some(DirectionMethod::Columns), gradient, context);
            for (j, (found, expected)) in by_rows.iter().zip(&expected).enumerate() {
                let off = (found - expected).abs() * scales(j);
                assert!(
                    off < 1e-5,
                    "{found}, not {expected}, in column {j}, {kind:?}"
                );
            }
        });
    }
}

#[test]
fn columns_stand_apart_from_all_smaller_ones() {
    assert_eq!(stand_apart(&[1.0; 50]), [0usize; 0]);
    assert_eq!(stand_apart(&[]), [0usize; 0]);
    assert_eq!(stand_apart(&[0.0, 0.0]), [0usize; 0]);
    let mut spreads = [1.0; 50];
    spreads[7] = 1e9;
    assert_eq!(stand_apart(&spreads), [7]);
    (spreads[30], spreads[3]) = (1e9, 1e13);
    assert_eq!(stand_apart(&spreads), [3, 7, 30]);
    // Not if another column is nearly as large.
    (spreads[7], spreads[30]) = (1e6, 1.0);
    assert_eq!(stand_apart(&spreads), [3]);
    // And not if there are too many.
    assert_eq!(stand_apart(&vec![1e9; 2000]), [0usize; 0]);
}

/// Two rows of bytes in three columns: along what is orthogonal to both, `lambda` is all that there is,
/// far below the last digit of the products of entries.
#[test]
fn by_columns_sees_lambda_beside_large_rows() {
    let rows = [[200.0, 90.0, 31.0], [17.0, 250.0, 111.0]];
    let [[a, b, c], [d, e, f]] = rows;
    let across = [b * f - c * e, c * d - a * f, a * e - b * d];
    let case = Case {
        rows: rows.map(Vec::from).to_vec(),
        weights: vec![50.0, 80.0],
        mu: vec![0.0; 3],
        gradient: vec![3.0, -1.0, 2.0],
        lambda: 1e-12,
    };
    for kind in kinds().filter(|kind| !kind.intercept) {
        case.with(kind, 1, |hessian, context| {
            let d = hessian.solve(Some(DirectionMethod::Columns), &case.gradient, context);
            let expected = -dot(&case.gradient, &across) / case.lambda;
            let off = dot(&d, &across) / expected - 1.0;
            assert!(off.abs() < 1e-6, "{off}, {kind:?}");
        });
    }
}

#[test]
fn what_nothing_depends_on_stays_where_it_is() {
    let case = Case {
        rows: vec![vec![1.0, 2.0], vec![3.0, -1.0]],
        weights: vec![0.0, 0.0],
        mu: vec![0.5, 0.5],
        gradient: vec![1.0, -2.0, 3.0],
        lambda: 0.5,
    };
    for kind in kinds().filter(|kind| kind.intercept) {
        case.with(kind, 1, |hessian, context| {
            for way in [DirectionMethod::Columns, DirectionMethod::Rows] {
                let d = hessian.solve(Some(way), &case.gradient, context);
                assert!((d[0] + 2.0).abs() < 1e-15 && (d[1] - 4.0).abs() < 1e-15);
                assert_eq!(d[2], 0.0, "{way:?}");
            }
            // The systems alone do not move it, but a direction must, or the intercept would never move.
            assert_eq!(
                hessian.solve(None, &case.gradient, context),
                [-2.0, 4.0, -3.0]
            );
            for way in WAYS {
                assert_eq!(hessian.solve(way, &[0.0; 3], context), [0.0; 3], "{way:?}");
            }
        });
    }
}

/// Rows in several blocks, which have matrices of their own where they are filled entry by entry.
#[test]
fn blocks_and_threads_change_nothing() {
    let (n, d) = (60_000, 9);
    let mut uniform = uniform();
    let mut rows = vec![vec![0.0; d]; n];
    for row in &mut rows {
        // Columns of which two are dense, as compressed rows, and the others are not.
        for j in [1, 5, (9.0 * uniform()) as usize] {
            row[j] = uniform() - 0.3;
        }
    }
    let weights = (0..n)
        .map(|_| (uniform() - 0.4).max(0.0) / n as f64)
        .collect();
    let case = Case {
        rows,
        weights,
        mu: (0..d).map(|_| uniform()).collect(),
        gradient: (0..=d).map(|_| uniform()).collect(),
        lambda: 1e-3,
    };
    for kind in kinds() {
        let gradient = case.gradient(kind.intercept);
        for way in [
            DirectionMethod::Columns,
            DirectionMethod::Sample,
            DirectionMethod::ConjugateGradients,
        ] {
            let found = std::cell::RefCell::new(Vec::new());
            for threads in [1, 2, 3] {
                case.with(kind, threads, |hessian, context| {
                    assert!(hessian.is_by_columns());
                    let d = hessian.solve(Some(way), gradient, context);
                    found.borrow_mut().push(d);
                });
            }
            // Two losses each.
            let found = found.into_inner();
            for d in &found[..2] {
                let residual = case.residual(d, kind.intercept);
                assert!(residual < 1e-11, "{residual} by {way:?}, {kind:?}");
            }
            assert_eq!(found[..2], found[2..4]);
            assert_eq!(found[..2], found[4..]);
        }
    }
}

/// Some columns have entries in only two rows each. Without these rows in the sample, conjugate gradients would
/// need a step for each of these columns.
#[test]
fn a_sample_has_the_rows_of_rare_columns_and_yields_to_another() {
    let (n, d, rare) = (4000, 24, 12);
    let mut uniform = uniform();
    let mut rows = vec![vec![0.0; d]; n];
    for (i, row) in rows.iter_mut().enumerate() {
        row.iter_mut().skip(rare).for_each(|x| *x = uniform() - 0.5);
        if i % 150 == 77 && i / 150 < 2 * rare {
            row[i / 150 % rare] = 3.0 * uniform();
        }
    }
    let weights: Vector = (0..n).map(|_| uniform() / n as f64).collect();
    let others: Vector = (0..n).map(|i| if i < n / 2 { 1.0 } else { 1e-9 }).collect();
    let mean = |j: usize| rows.iter().map(|row| row[j]).sum::<f64>() / n as f64;
    let case = Case {
        mu: (0..d).map(mean).collect(),
        rows,
        weights,
        gradient: (0..=d).map(|_| uniform() - 0.5).collect(),
        lambda: 1e-9,
    };
    for kind in kinds() {
        let gradient = case.gradient(kind.intercept);
        case.with(kind, 1, |hessian, context| {
            let coarse = (gradient, sample::PRECISION);
            let (_, serves_on) = hessian.solve_by_sample(None, coarse, context);
            assert!(serves_on, "{kind:?}");
            let (d, _) = hessian.solve_by_sample(Some(&others), (gradient, TINY), context);
            let residual = case.residual(&d, kind.intercept);
            assert!(residual < 1e-9, "{residual}, {kind:?}");
        });
    }
}

#[test]
fn a_direction_by_a_sample_does_nearly_as_much_until_samples_are_given_up() {
    let mut uniform = uniform();
    let (n_rows, n_cols) = (20_000, 600);
    // Each row begins at another place of the same numbers.
    let numbers: Vec<f32> = (0..4000).map(|_| uniform() as f32 - 0.5).collect();
    let row = |i: usize| &numbers[i * 7919 % (numbers.len() - n_cols)..][..n_cols];
    let entries = (0..n_rows).map(row).collect::<Vec<_>>().concat();
    let view = ArrayView2::from_shape((n_rows, n_cols), &entries).expect("n rows");
    let rows = Dense::new(view).expect("C order");
    let data = Data::new(rows, None).expect("valid");
    let targets = vec![1.0; n_rows];
    let lambda = Regularisation::Lambda(1e-5);
    let loss = Huber::with_param(1.0);
    let problem = Problem::new(data, &targets, loss, lambda, false).expect("a problem");
    let columns = super::columns(&rows);
    let design = Design {
        problem: &problem,
        mu: Vec::new(),
        columns: &columns,
    };
    let weights: Vector = (0..n_rows).map(|_| uniform() / 20_000.0).collect();
    let gradient: Vector = (0..n_cols).map(|_| uniform() - 0.5).collect();
    let mut no_monitor = NoMonitor;
    let mut context = RunContext::new(None, &mut no_monitor);
    let mut solve = |weights: &[f64], memory: &mut Memory| {
        let design = &design;
        let found = Hessian { design, weights }.direction(&gradient, 1e-9, memory, &mut context);
        found.expect("not interrupted")
    };
    let mut memory = Memory::new(&loss);
    let first = solve(&weights, &mut memory);
    let second = solve(&weights, &mut memory);
    assert!(memory.sample.as_ref().is_some_and(Sample::serves));
    // For few rows the system by rows is used, and the sample is dropped.
    let mut few = weights.clone();
    few[50..].fill(0.0);
    solve(&few, &mut memory);
    assert!(memory.sample.is_none());
    let exact = solve(&weights, &mut memory);
    for d in [first, second] {
        assert_ne!(d, exact);
        // H d = -gradient for the exact one, which lowers gradient.d + d.H d / 2 most.
        let mut h_d: Vector = d.iter().map(|d| problem.lambda() * d).collect();
        for (i, r) in weights.iter().enumerate() {
            Rows::axpy(&rows, i, r * rows.dot(i, &d), &mut h_d);
        }
        let lowered = dot(&gradient, &d) + 0.5 * dot(&d, &h_d);
        assert!(lowered < 0.95 * 0.5 * dot(&gradient, &exact), "{lowered}");
    }
}

/// Rows that have a shape but no numbers.
struct Shape {
    rows: usize,
    columns: usize,
    stored: usize,
}

impl Rows for Shape {
    const ENTRY_WORK: f64 = 2.0;
    const IS_SPARSE: bool = true;

    fn n_rows(&self) -> usize {
        self.rows
    }
    fn n_cols(&self) -> usize {
        self.columns
    }
    fn n_stored(&self) -> usize {
        self.stored
    }
    fn dot(&self, _i: usize, _w: &[f64]) -> f64 {
        unreachable!()
    }
    fn axpy(&self, _i: usize, _scale: f64, _w: &mut [f64]) {
        unreachable!()
    }
    fn sq_norm(&self, _i: usize) -> f64 {
        unreachable!()
    }
    /// Entries at even distances, in other columns in each row.
    fn visit(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        let per_row = self.stored / self.rows;
        for k in 0..per_row {
            f((i + k * self.columns / per_row) % self.columns, 1.0);
        }
    }
    fn prefetch(&self, _i: usize) {
        unreachable!()
    }
}

/// More rows, columns and entries than 31 or 32 bits can count; none of them is stored.
#[test]
fn sizes_beyond_32_bits_are_counted() {
    let shape = Shape {
        rows: (1 << 32) - 2,
        columns: 1000,
        stored: 1 << 44,
    };
    let columns = super::columns(&shape);
    let (way, work) = cheapest((&shape, false), &columns, shape.rows, true);
    assert_ne!(way, DirectionMethod::Rows);
    assert!(work.is_finite() && work > 1e12);
    let wide = Shape {
        rows: 1 << 31,
        columns: 1 << 40,
        stored: 1 << 36,
    };
    let (way, work) = cheapest((&wide, false), &Columns::default(), wide.rows, true);
    assert_eq!(way, DirectionMethod::ConjugateGradients);
    assert!(work.is_finite() && work > 1e12);
    // Rows per block, without overflow on the way.
    assert_eq!(crate::data::rows_per_block(1 << 31, 1 << 40), 256);
    assert_eq!(crate::data::rows_per_block(1 << 31, 1 << 31), 4096);
    assert_eq!(crate::data::rows_per_block(1 << 60, usize::MAX), 1);
}

#[test]
fn the_cheapest_way_depends_on_the_shape() {
    let way = |rows: usize, columns: usize, per_row: usize, count: usize| {
        let shape = Shape {
            rows,
            columns,
            stored: rows * per_row,
        };
        let (way, work) = cheapest((&shape, false), &super::columns(&shape), count, true);
        assert!(work.is_finite() && work >= 0.0);
        way
    };
    // Dense.
    assert_eq!(way(10_000, 20, 20, 10_000), DirectionMethod::Columns);
    assert_eq!(way(60, 4000, 4000, 60), DirectionMethod::Rows);
    assert_eq!(way(60, 2000, 2000, 60), DirectionMethod::Rows);
    // Only rows of positive weight matter.
    assert_eq!(way(10_000, 2000, 2000, 10), DirectionMethod::Rows);
    assert_eq!(way(10_000, 2000, 2000, 10_000), DirectionMethod::Columns);
    assert_eq!(way(10_000, 1200, 1200, 10_000), DirectionMethod::Columns);
    assert_eq!(way(70_000, 2000, 2000, 70_000), DirectionMethod::Sample);
    let large = Shape {
        rows: 70_000,
        columns: 2000,
        stored: 70_000 * 2000,
    };
    let columns = super::columns(&large);
    let without = cheapest((&large, false), &columns, large.rows, false).0;
    assert_eq!(without, DirectionMethod::Columns);
    // Few rows of positive weight: the system by rows.
    assert_eq!(way(60_000, 2000, 2000, 100), DirectionMethod::Rows);
    assert!(sample::suits(&Log));
    assert!(!sample::suits(&Squared) && !sample::suits(&Hinge));
    // Sparse.
    assert_eq!(way(100_000, 1000, 10, 100_000), DirectionMethod::Columns);
    assert_eq!(
        way(100_000, 100_000, 10, 100_000),
        DirectionMethod::ConjugateGradients
    );
    assert_eq!(way(100_000, 100_000, 10, 50), DirectionMethod::Rows);
    assert_eq!(
        way(3500, 3500, 10, 3500),
        DirectionMethod::ConjugateGradients
    );
    // No system has more than the maximum number of unknowns.
    let most = MAX_UNKNOWNS;
    assert_eq!(way(50_000, most, 10, 50_000), DirectionMethod::Sample);
    assert_eq!(way(most - 1, most, 10, most - 1), DirectionMethod::Columns);
    assert_eq!(
        way(50_000, most + 1, 10, 50_000),
        DirectionMethod::ConjugateGradients
    );
    assert_ne!(
        way(most + 1, 10 * most, 10, most + 1),
        DirectionMethod::Rows
    );
}
