use super::*;
use proptest::prelude::*;

/// Every implementation; all must satisfy the same laws.
fn all(lambda: f64) -> Vec<Box<dyn Penalty>> {
    vec![Box::new(L2 { lambda })]
}

fn vectors(count: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
    (1usize..6).prop_flat_map(move |n| {
        let one = prop::collection::vec(-3.0..3.0, n);
        prop::collection::vec(one, count)
    })
}

proptest! {
    #[test]
    fn the_model_of_a_sum_attains_the_conjugate(
        v in vectors(2), lambda in 1e-3..1e3
    ) {
        for penalty in all(lambda) {
            let mut w = v[0].clone();
            let conjugate = penalty.to_model(&mut w);
            let at = |w: &[f64]| lambda * dot(&v[0], w) - penalty.value(w);
            let size = 1.0 + conjugate.abs();
            prop_assert!((at(&w) - conjugate).abs() <= 1e-12 * size);
            // The Fenchel-Young inequality holds for any other w.
            prop_assert!(at(&v[1]) <= conjugate + 1e-12 * size);
            // grad h(w) = v.
            let mut gradient = v[0].iter().map(|v| -lambda * v).collect::<Vec<_>>();
            penalty.add_gradient(&w, &mut gradient);
            prop_assert!(gradient.iter().all(|g| g.abs() <= 1e-12 * lambda * 10.0));
        }
    }

    #[test]
    fn changes_and_slopes_are_those_of_the_value(
        v in vectors(2), lambda in 1e-3..1e3, t in -2.0..2.0
    ) {
        let (w, d) = (&v[0], &v[1]);
        for penalty in all(lambda) {
            let at = |t: f64| {
                let moved: Vec<f64> = w.iter().zip(d).map(|(w, d)| w + t * d).collect();
                penalty.value(&moved)
            };
            let size = lambda * (1.0 + dot(w, w) + dot(d, d));
            prop_assert!((penalty.change(w, d, t) - (at(t) - at(0.0))).abs() <= 1e-11 * size);
            let h = 1e-4;
            let slope = (at(t + h) - at(t - h)) / (2.0 * h);
            prop_assert!((penalty.derivative(w, d, t) - slope).abs() <= 1e-6 * size);
            // The curvature is the same along all columns.
            let bend = penalty.derivative(w, d, t + 1.0) - penalty.derivative(w, d, t);
            prop_assert!((bend - penalty.curvature() * dot(d, d)).abs() <= 1e-11 * size);
        }
    }

    #[test]
    fn the_part_of_the_gap_and_errors_are_bounded(v in vectors(2), lambda in 1e-3..1e3) {
        let (w, sum) = (&v[0], &v[1]);
        for penalty in all(lambda) {
            let (mut of_sum, mut gradient) = (sum.clone(), vec![0.0; w.len()]);
            let conjugate = penalty.to_model(&mut of_sum);
            let gap = penalty.value(w) + conjugate - lambda * dot(sum, w);
            penalty.add_gradient(w, &mut gradient);
            for (g, v) in gradient.iter_mut().zip(sum) {
                *g -= lambda * v;
            }
            let size = lambda * (1.0 + dot(w, w) + dot(sum, sum));
            prop_assert!(gap <= penalty.excess(&gradient) + 1e-12 * size);
            // h* at sum + e, beyond the tangent at sum.
            let mut moved: Vec<f64> = sum.iter().zip(w).map(|(v, e)| v + e).collect();
            let bend = penalty.to_model(&mut moved) - conjugate - lambda * dot(&of_sum, w);
            let bound = 0.5 * penalty.error_scale().powi(2) * dot(w, w);
            prop_assert!(bend <= bound + 1e-12 * size);
            let smooth = 0.5 * lambda * penalty.conjugate_smoothness() * dot(w, w);
            prop_assert!(bend <= smooth + 1e-12 * size);
            if let Some(curvature) = penalty.dual_curvature() {
                prop_assert!((bend - 0.5 * curvature * dot(w, w)).abs() <= 1e-12 * size);
            }
        }
    }
}

#[test]
fn squares_that_overflow_are_weighted_first() {
    let penalty = L2 { lambda: 1e-300 };
    let value = penalty.value(&[1e200, -1e200]);
    assert!((value / 1e100 - 1.0).abs() < 1e-12, "{value}");
}
