use super::*;
use crate::loss::{SPECS, Visitor, dispatch};

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
