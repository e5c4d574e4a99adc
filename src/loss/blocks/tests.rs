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
            loss.dual_values(
                Along {
                    p: &p,
                    t: 0.5,
                    d: &d,
                },
                Labels { y: &y, c },
                &mut a,
            );
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
            let labels = Labels { y: &y, c };
            let weight = |i: usize| c.map_or(1.0, |c| c[i]);
            let counts = |i: &usize| weight(*i) > 0.0;
            let naive = |term: &dyn Fn(usize) -> f64| -> f64 {
                (0..19).filter(counts).map(|i| weight(i) * term(i)).sum()
            };
            let close = |found: f64, expected: f64| {
                found == expected || (found - expected).abs() <= 1e-13 * expected.abs()
            };
            let value = naive(&|i| loss.value(p[i] + 0.3, y[i]));
            assert!(close(loss.values(&p, 0.3, labels), value), "{}", L::NAME);
            let both = loss.values_and_slopes(&p, 0.3, labels);
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
            let found = loss.rounding(&p, 0.01, 0.3, labels);
            assert!(close(found, sizes), "{}", L::NAME);
            let conjugate = naive(&|i| loss.conjugate(a[i], y[i]));
            assert!(close(loss.conjugates(&a, labels), conjugate), "{}", L::NAME);
            let change = naive(&|i| loss.value(p[i] + 0.5 * d[i], y[i]) - loss.value(p[i], y[i]));
            let found = loss.changes(
                Along {
                    p: &p,
                    t: 0.5,
                    d: &d,
                },
                labels,
            );
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
    let labels = Labels { y: &y, c: Some(&c) };
    let gap = loss.foreseen_gap(step, &a, labels);
    let mut values = vec![f64::NAN; a.len()];
    loss.foreseen_values(step, labels, &mut values);
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
    let (none, all) = (None, Some(ones.as_slice()));
    let labels = |c| Labels { y: &y, c };
    let gap = loss.foreseen_gap(step, &a, labels(none));
    assert_eq!(gap, loss.foreseen_gap(step, &a, labels(all)));
    let (mut plain, mut weighted) = ([0.0; 9], [0.0; 9]);
    loss.foreseen_values(step, labels(none), &mut plain);
    loss.foreseen_values(step, labels(all), &mut weighted);
    assert_eq!(plain, weighted);
}
