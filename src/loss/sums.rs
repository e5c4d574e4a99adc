//! A loss on many rows at once: its values, slopes and conjugates, and their sums.
//!
//! `y` are the targets and `c` the weights of the rows, all 1 if there are none. A row of weight 0
//! counts for nothing, even where its loss is infinite.

use super::{Link, Loss};
use crate::kernel::{Level, lanes};

/// `sum_i c_i term(u_i, y_i)`.
#[inline(always)]
fn sum<const OUT: usize>(
    u: &[f64],
    y: &[f64],
    c: Option<&[f64]>,
    term: impl Fn(f64, f64) -> [f64; OUT],
) -> [f64; OUT] {
    let level = Level::best();
    match c {
        None => lanes::sum(level, [u, y], |[u, y]| term(u, y)),
        Some(c) => lanes::sum(level, [u, y, c], |[u, y, c]| {
            term(u, y).map(|term| if c == 0.0 { 0.0 } else { c * term })
        }),
    }
}

/// `sum_i c_i phi(p_i + b; y_i)`.
#[inline(never)]
pub(crate) fn values<L: Loss>(loss: L, p: &[f64], b: f64, y: &[f64], c: Option<&[f64]>) -> f64 {
    let [values] = sum(p, y, c, |p, y| [loss.value(p + b, y)]);
    values
}

/// `sum_i c_i phi(p_i + b; y_i)`, and the sum of their slopes.
#[inline(never)]
pub(crate) fn values_and_slopes<L: Loss>(
    loss: L,
    p: &[f64],
    b: f64,
    y: &[f64],
    c: Option<&[f64]>,
) -> (f64, f64) {
    let [values, slopes] = sum(p, y, c, |p, y| [loss.value(p + b, y), loss.slope(p + b, y)]);
    (values, slopes)
}

/// `sum_i c_i phi*(-a_i; y_i)`.
#[inline(never)]
pub(crate) fn conjugates<L: Loss>(loss: L, a: &[f64], y: &[f64], c: Option<&[f64]>) -> f64 {
    let [conjugates] = sum(a, y, c, |a, y| [loss.conjugate(a, y)]);
    conjugates
}

/// `sum_i c_i |phi'| d_i` with `d_i = unit (|p_i + b| + |y_i|)`: what rounding of the predictions does to the losses, if
/// it changes numbers by `unit` of themselves. Where predictions are logarithms of targets, `ln y_i` stands for `y_i`.
/// The slope is the steeper one of those at `p_i + b - d_i` and `p_i + b + d_i`, because a prediction may be at a kink.
#[inline(never)]
pub(crate) fn rounding<L: Loss>(
    loss: L,
    (p, unit): (&[f64], f64),
    b: f64,
    y: &[f64],
    c: Option<&[f64]>,
) -> f64 {
    let [sizes] = sum(p, y, c, |p, y| {
        let p = p + b;
        let d = unit * (p.abs() + linked::<L>(y).abs());
        [loss.slope(p - d, y).abs().max(loss.slope(p + d, y).abs()) * d]
    });
    sizes
}

/// The target in units of predictions; 0 for a logarithm that is infinite.
#[inline(always)]
fn linked<L: Loss>(y: f64) -> f64 {
    match L::LINK {
        Link::Identity | Link::Logit => y,
        Link::Log if y > 0.0 => y.ln(),
        Link::Log => 0.0,
    }
}

/// `sum_i c_i a_i d_i`.
#[inline(never)]
pub(crate) fn products(a: &[f64], d: &[f64], c: Option<&[f64]>) -> f64 {
    let [products] = sum(a, d, c, |a, d| [a * d]);
    products
}

/// `sum_i c_i (phi(p_i + t d_i; y_i) - phi(p_i; y_i))`.
#[inline(never)]
pub(crate) fn changes<L: Loss>(
    loss: L,
    (p, t, d): (&[f64], f64, &[f64]),
    y: &[f64],
    c: Option<&[f64]>,
) -> f64 {
    let (level, term) = (Level::best(), |p, d, y| {
        loss.value(p + t * d, y) - loss.value(p, y)
    });
    let [changes] = match c {
        None => lanes::sum(level, [p, d, y], |[p, d, y]| [term(p, d, y)]),
        Some(c) => lanes::sum(level, [p, d, y, c], |[p, d, y, c]| {
            [if c == 0.0 { 0.0 } else { c * term(p, d, y) }]
        }),
    };
    changes
}

/// `a_i = -phi'(p_i + t d_i; y_i)`, and 0 for rows of weight 0.
#[inline(never)]
pub(crate) fn dual_values<L: Loss>(
    loss: L,
    (p, t, d): (&[f64], f64, &[f64]),
    y: &[f64],
    c: Option<&[f64]>,
    a: &mut [f64],
) {
    let (level, value) = (Level::best(), |p, d, y| -loss.slope(p + t * d, y));
    match c {
        None => lanes::map(level, [p, d, y], a, |[p, d, y]| value(p, d, y)),
        Some(c) => lanes::map(level, [p, d, y, c], a, |[p, d, y, c]| {
            if c == 0.0 { 0.0 } else { value(p, d, y) }
        }),
    }
}

/// A step of Newton's method, from `p_i` to `p_i + d_i`, that has taken `c_i h_i / W` for the curvature of row `i`.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) p: &'a [f64],
    pub(crate) d: &'a [f64],
    pub(crate) curvatures: &'a [f64],
    pub(crate) total_weight: f64,
}

impl Step<'_> {
    /// `h` of a row of weight `c`, from what it was taken for.
    #[inline(always)]
    fn h(&self, curvature: f64, c: f64) -> f64 {
        self.total_weight * curvature / c
    }
}

/// The dual value that a step leads to if slopes are straight lines: `-phi'(p; y) - h d`.
#[inline(always)]
fn foreseen<L: Loss>(loss: L, p: f64, d: f64, h: f64, y: f64) -> f64 {
    -loss.slope(p, y) - h * d
}

/// About `sum_i c_i (phi(p_i + d_i; y_i) + phi*(-f_i; y_i) + f_i (p_i + d_i))` for the values `f_i` that are
/// foreseen after a step, `a_i` being the minimisers of the terms: infinite if a value leaves its range.
///
/// The conjugate is taken for a parabola from `f_i` to `a_i`, where both are on a curved piece; infinite if not: at a
/// kink of the conjugate it may be much larger.
#[inline(never)]
pub(crate) fn foreseen_gap<L: Loss>(
    loss: L,
    step: Step<'_>,
    a: &[f64],
    y: &[f64],
    c: Option<&[f64]>,
) -> f64 {
    let term = |p, d, h, a, y| {
        let f = foreseen(loss, p, d, h, y);
        let (low, high) = loss.dual_range(y);
        let (of_f, of_a) = (loss.curvature(f, y), loss.curvature(a, y));
        let gap = 0.5 * (f - a) * (f - a) / of_f.max(of_a);
        let is_known = low <= f && f <= high && of_f > 0.0 && of_a > 0.0;
        let gap = if is_known { gap } else { f64::INFINITY };
        if f == a { 0.0 } else { gap }
    };
    let level = Level::best();
    let (p, d, k) = (step.p, step.d, step.curvatures);
    let [gap] = match c {
        None => lanes::sum(level, [p, d, k, a, y], |[p, d, k, a, y]| {
            [term(p, d, step.h(k, 1.0), a, y)]
        }),
        Some(c) => lanes::sum(level, [p, d, k, a, y, c], |[p, d, k, a, y, c]| {
            let gap = c * term(p, d, step.h(k, c), a, y);
            [if c == 0.0 { 0.0 } else { gap }]
        }),
    };
    gap
}

/// `a_i = f_i`, see [`foreseen_gap`], and 0 for rows of weight 0.
#[inline(never)]
pub(crate) fn foreseen_values<L: Loss>(
    loss: L,
    step: Step<'_>,
    y: &[f64],
    c: Option<&[f64]>,
    a: &mut [f64],
) {
    let level = Level::best();
    let (p, d, k) = (step.p, step.d, step.curvatures);
    match c {
        None => lanes::map(level, [p, d, k, y], a, |[p, d, k, y]| {
            foreseen(loss, p, d, step.h(k, 1.0), y)
        }),
        Some(c) => lanes::map(level, [p, d, k, y, c], a, |[p, d, k, y, c]| {
            let value = foreseen(loss, p, d, step.h(k, c), y);
            if c == 0.0 { 0.0 } else { value }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{
        Log, SPECS, Squared, SquaredEpsilonInsensitive, SquaredHinge, Visitor, dispatch,
    };

    #[derive(Clone, Copy)]
    struct Compare;

    impl Visitor for Compare {
        type Out = ();

        /// 19 rows, of which one has weight 0 and an infinite conjugate.
        fn visit<L: Loss>(self, loss: L) {
            let number = |i: i32| f64::from(i);
            let p: Vec<f64> = (0..19).map(|i| 0.7 * number(i) - 6.0).collect();
            let d: Vec<f64> = (0..19).map(|i| 1.0 - 0.2 * number(i)).collect();
            let y: Vec<f64> = (0..19)
                .map(|i| number(1 - 2 * (i % 2)).max(least::<L>()))
                .collect();
            let mut c: Vec<f64> = (0..19).map(|i| 0.5 + number(i % 3)).collect();
            c[4] = 0.0;
            let mut a = vec![0.0; 19];
            for c in [Some(c.as_slice()), None] {
                dual_values(loss, (&p, 0.5, &d), &y, c, &mut a);
                for i in 0..19 {
                    let value = -loss.slope(p[i] + 0.5 * d[i], y[i]);
                    let expected = if c.is_some_and(|c| c[i] == 0.0) {
                        0.0
                    } else {
                        value
                    };
                    assert_eq!(a[i], expected, "{}", L::NAME);
                }
            }
            for c in [None, Some(c.as_slice())] {
                // Out of the range of the losses that have one.
                a[4] = if c.is_some() { 1e300 } else { a[3] };
                let weight = |i: usize| c.map_or(1.0, |c| c[i]);
                let counts = |i: &usize| weight(*i) > 0.0;
                let naive = |term: &dyn Fn(usize) -> f64| -> f64 {
                    (0..19).filter(counts).map(|i| weight(i) * term(i)).sum()
                };
                let close = |found: f64, expected: f64| {
                    found == expected || (found - expected).abs() <= 1e-13 * expected.abs()
                };
                let value = naive(&|i| loss.value(p[i] + 0.3, y[i]));
                assert!(close(values(loss, &p, 0.3, &y, c), value), "{}", L::NAME);
                let both = values_and_slopes(loss, &p, 0.3, &y, c);
                assert!(close(both.0, value), "{}", L::NAME);
                let slope = naive(&|i| loss.slope(p[i] + 0.3, y[i]));
                assert!(
                    (both.1 - slope).abs() <= 1e-12 * (1.0 + value.abs()),
                    "{}",
                    L::NAME
                );
                let size = |p: f64, y: f64| {
                    let d = 0.01 * (p.abs() + linked::<L>(y).abs());
                    let (left, right) = (loss.slope(p - d, y), loss.slope(p + d, y));
                    left.abs().max(right.abs()) * d
                };
                let sizes = naive(&|i| size(p[i] + 0.3, y[i]));
                let found = rounding(loss, (&p, 0.01), 0.3, &y, c);
                assert!(close(found, sizes), "{}", L::NAME);
                let conjugate = naive(&|i| loss.conjugate(a[i], y[i]));
                assert!(close(conjugates(loss, &a, &y, c), conjugate), "{}", L::NAME);
                let change =
                    naive(&|i| loss.value(p[i] + 0.5 * d[i], y[i]) - loss.value(p[i], y[i]));
                let found = changes(loss, (&p, 0.5, &d), &y, c);
                assert!(
                    (found - change).abs() <= 1e-12 * (1.0 + value.abs()),
                    "{}",
                    L::NAME
                );
                let product = naive(&|i| a[i] * d[i]);
                assert!((products(&a, &d, c) - product).abs() <= 1e-12 * (1.0 + product.abs()));
            }
        }
    }

    /// The least target that the loss takes.
    fn least<L: Loss>() -> f64 {
        if L::TARGET.accepts(-1.0) { -1.0 } else { 0.0 }
    }

    #[test]
    fn sums_agree_with_the_naive() {
        for spec in SPECS {
            dispatch(spec.name, None, Compare).expect("the registry builds its own losses");
        }
    }

    /// The step to `p + d` of 19 rows of which one has weight 0, as [`Step`] has it, for curvatures that are `size`
    /// times those at `p`; and what is foreseen after it.
    fn foresee<L: Loss>(loss: L, d: f64, size: f64) -> (f64, Vec<f64>, f64) {
        let n = 19;
        let y: Vec<f64> = (0..n).map(|i| f64::from(1 - 2 * (i % 2))).collect();
        let p: Vec<f64> = (0..n).map(|i| 0.2 * f64::from(i) - 1.95).collect();
        let d: Vec<f64> = (0..n).map(|i| d * (1.0 - 0.15 * f64::from(i))).collect();
        let mut c: Vec<f64> = (0..n).map(|i| 0.5 + f64::from(i % 3)).collect();
        c[4] = 0.0;
        let total_weight: f64 = c.iter().sum();
        let rows = 0..n as usize;
        let curvature = |i: usize| size * loss.curvature(-loss.slope(p[i], y[i]), y[i]);
        let curvatures: Vec<f64> = rows
            .clone()
            .map(|i| c[i] * curvature(i) / total_weight)
            .collect();
        let a: Vec<f64> = rows
            .clone()
            .map(|i| -loss.slope(p[i] + d[i], y[i]))
            .collect();
        let step = Step {
            p: &p,
            d: &d,
            curvatures: &curvatures,
            total_weight,
        };
        let gap = foreseen_gap(loss, step, &a, &y, Some(&c));
        let mut values = vec![f64::NAN; a.len()];
        foreseen_values(loss, step, &y, Some(&c), &mut values);
        let term = |i: usize| {
            let (p, a) = (p[i] + d[i], values[i]);
            c[i] * (loss.value(p, y[i]) + loss.conjugate(a, y[i]) + a * p)
        };
        let exact = rows.filter(|&i| c[i] > 0.0).map(term).sum();
        (gap, values, exact)
    }

    #[test]
    fn the_foreseen_gap_is_that_of_the_foreseen_values() {
        for size in [1.0, 0.8] {
            let (gap, values, exact) = foresee(Log::with_param(0.0), 0.3, size);
            assert!(
                exact > 1e-6 && (gap - exact).abs() < 0.1 * exact,
                "{gap} for {exact}"
            );
            assert_eq!(values[4], 0.0);
        }
        // Of a parabola all that is foreseen comes true.
        let (gap, _, exact) = foresee(Squared::with_param(0.0), 3.0, 1.0);
        assert!(gap < 1e-25 && exact.abs() < 1e-12, "{gap} and {exact}");
        let (gap, _, exact) = foresee(Squared::with_param(0.0), 3.0, 0.5);
        assert!((gap - exact).abs() < 1e-12 * exact, "{gap} for {exact}");
    }

    #[test]
    fn values_out_of_their_range_prove_nothing() {
        let short = foresee(SquaredHinge::with_param(0.0), 1e-3, 1.0).0;
        assert!(short < 1e-5, "{short}");
        assert_eq!(
            foresee(SquaredHinge::with_param(0.0), -9.0, 1.0).0,
            f64::INFINITY
        );
        assert_eq!(foresee(Log::with_param(0.0), -9.0, 1.0).0, f64::INFINITY);
        // Some rows enter the tube, where the conjugate has a kink.
        let tube = SquaredEpsilonInsensitive::with_param(1.0);
        assert!(foresee(tube, 1e-3, 1.0).0 < 1e-9);
        assert_eq!(foresee(tube, 1.0, 1.0).0, f64::INFINITY);
    }

    #[test]
    fn no_weights_are_weights_of_1() {
        let loss = Log::with_param(0.0);
        let (p, d, k, y, a) = ([0.3; 9], [0.1; 9], [0.02; 9], [1.0; 9], [0.4; 9]);
        let step = Step {
            p: &p,
            d: &d,
            curvatures: &k,
            total_weight: 9.0,
        };
        let ones = [1.0; 9];
        let gap = foreseen_gap(loss, step, &a, &y, None);
        assert_eq!(gap, foreseen_gap(loss, step, &a, &y, Some(&ones)));
        let (mut plain, mut weighted) = ([0.0; 9], [0.0; 9]);
        foreseen_values(loss, step, &y, None, &mut plain);
        foreseen_values(loss, step, &y, Some(&ones), &mut weighted);
        assert_eq!(plain, weighted);
    }
}
