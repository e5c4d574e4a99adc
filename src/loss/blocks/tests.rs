use super::*;
use crate::loss::{
    Log, SPECS, Squared, SquaredEpsilonInsensitive, SquaredHinge, Visitor, dispatch,
};

#[derive(Clone, Copy)]
struct Compare;

impl Visitor for Compare {
    type Out = ();

    /// 19 rows, one of which has weight 0 and an infinite conjugate.
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
                LinePoint {
                    p: &p,
                    t: 0.5,
                    d: &d,
                },
                TargetBlock { y: &y, c },
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
            // Out of range, for losses with a bounded dual range.
            a[4] = if c.is_some() { 1e300 } else { a[3] };
            let targets = TargetBlock { y: &y, c };
            let weight = |i: usize| c.map_or(1.0, |c| c[i]);
            let counts = |i: &usize| weight(*i) > 0.0;
            let naive = |term: &dyn Fn(usize) -> f64| -> f64 {
                (0..19).filter(counts).map(|i| weight(i) * term(i)).sum()
            };
            let close = |found: f64, expected: f64| {
                found == expected || (found - expected).abs() <= 1e-13 * expected.abs()
            };
            let value = naive(&|i| loss.value(p[i] + 0.3, y[i]));
            assert!(close(loss.values(&p, 0.3, targets), value), "{}", L::NAME);
            let both = loss.values_and_slopes(&p, 0.3, targets);
            assert!(close(both.0, value), "{}", L::NAME);
            let slope = naive(&|i| loss.slope(p[i] + 0.3, y[i]));
            assert!(
                (both.1 - slope).abs() <= 1e-12 * (1.0 + value.abs()),
                "{}",
                L::NAME
            );
            let size = |p: f64, y: f64| {
                let d = 0.01 * (p.abs() + target_as_prediction::<L>(y).abs());
                let (left, right) = (loss.slope(p - d, y), loss.slope(p + d, y));
                left.abs().max(right.abs()) * d
            };
            let sizes = naive(&|i| size(p[i] + 0.3, y[i]));
            let found = loss.rounding(&p, 0.01, 0.3, targets);
            assert!(close(found, sizes), "{}", L::NAME);
            let conjugate = naive(&|i| loss.conjugate(a[i], y[i]));
            assert!(
                close(loss.conjugates(&a, targets), conjugate),
                "{}",
                L::NAME
            );
            let change = naive(&|i| loss.value(p[i] + 0.5 * d[i], y[i]) - loss.value(p[i], y[i]));
            let found = loss.changes(
                LinePoint {
                    p: &p,
                    t: 0.5,
                    d: &d,
                },
                targets,
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

/// The smallest target that the loss accepts (or -1).
fn least<L: Loss>() -> f64 {
    if L::TARGET.accepts(-1.0) { -1.0 } else { 0.0 }
}

#[test]
fn sums_agree_with_the_naive() {
    for spec in SPECS {
        dispatch(spec.name, None, Compare).expect("the registry builds its own losses");
    }
}

/// A step to `p + d` for 19 rows, one of which has weight 0, with curvatures that are `size` times
/// those at `p`. Returns the estimated gap of the dual values that it predicts, these values, and
/// their exact gap.
fn predict<L: Loss>(loss: L, d: f64, size: f64) -> (f64, Vec<f64>, f64) {
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
    let step = NewtonStep {
        p: &p,
        d: &d,
        curvatures: &curvatures,
        total_weight,
    };
    let targets = TargetBlock { y: &y, c: Some(&c) };
    let gap = loss.predicted_gap(step, &a, targets);
    let mut values = vec![f64::NAN; a.len()];
    loss.predicted_values(step, targets, &mut values);
    let term = |i: usize| {
        let (p, a) = (p[i] + d[i], values[i]);
        c[i] * (loss.value(p, y[i]) + loss.conjugate(a, y[i]) + a * p)
    };
    let exact = rows.filter(|&i| c[i] > 0.0).map(term).sum();
    (gap, values, exact)
}

#[test]
fn the_predicted_gap_is_that_of_the_predicted_values() {
    for size in [1.0, 0.8] {
        let (gap, values, exact) = predict(Log::with_param(0.0), 0.3, size);
        assert!(
            exact > 1e-6 && (gap - exact).abs() < 0.1 * exact,
            "{gap} for {exact}"
        );
        assert_eq!(values[4], 0.0);
    }
    // On a parabola the prediction is exact.
    let (gap, _, exact) = predict(Squared::with_param(0.0), 3.0, 1.0);
    assert!(gap < 1e-25 && exact.abs() < 1e-12, "{gap} and {exact}");
    let (gap, _, exact) = predict(Squared::with_param(0.0), 3.0, 0.5);
    assert!((gap - exact).abs() < 1e-12 * exact, "{gap} for {exact}");
}

#[test]
fn predicted_values_outside_their_range_prove_nothing() {
    let short = predict(SquaredHinge::with_param(0.0), 1e-3, 1.0).0;
    assert!(short < 1e-5, "{short}");
    assert_eq!(
        predict(SquaredHinge::with_param(0.0), -9.0, 1.0).0,
        f64::INFINITY
    );
    assert_eq!(predict(Log::with_param(0.0), -9.0, 1.0).0, f64::INFINITY);
    // Some rows enter the tube, where the conjugate has a kink.
    let tube = SquaredEpsilonInsensitive::with_param(1.0);
    assert!(predict(tube, 1e-3, 1.0).0 < 1e-9);
    assert_eq!(predict(tube, 1.0, 1.0).0, f64::INFINITY);
}

#[test]
fn predictions_without_weights_are_those_with_weights_of_1() {
    let loss = Log::with_param(0.0);
    let (p, d, k, y, a) = ([0.3; 9], [0.1; 9], [0.02; 9], [1.0; 9], [0.4; 9]);
    let step = NewtonStep {
        p: &p,
        d: &d,
        curvatures: &k,
        total_weight: 9.0,
    };
    let ones = [1.0; 9];
    let (none, all) = (None, Some(ones.as_slice()));
    let targets = |c| TargetBlock { y: &y, c };
    let gap = loss.predicted_gap(step, &a, targets(none));
    assert_eq!(gap, loss.predicted_gap(step, &a, targets(all)));
    let (mut plain, mut weighted) = ([0.0; 9], [0.0; 9]);
    loss.predicted_values(step, targets(none), &mut plain);
    loss.predicted_values(step, targets(all), &mut weighted);
    assert_eq!(plain, weighted);
}
