use super::*;

#[test]
fn a_start_far_away_leads_to_the_minimum_too() {
    // The mean of log losses, two thirds of them with the label -1.
    let at = |b: f64| {
        let value = |m: f64| (-m.abs()).exp().ln_1p() + (-m).max(0.0);
        let slope = |m: f64| -1.0 / (1.0 + m.exp());
        let mean = |of: &dyn Fn(f64) -> f64| (of(b) + 2.0 * of(-b)) / 3.0;
        (mean(&value), (slope(b) - 2.0 * slope(-b)) / 3.0)
    };
    for start in [0.0, 1e3, -1e7, 1e12, -1e22, 3.4e38, -1e300] {
        let found = minimise(start, 8.0, 1e-9, at);
        assert!(
            (found.b + 2f64.ln()).abs() < 1e-3,
            "{} from {start}",
            found.b
        );
    }
}

#[test]
fn balance_reaches_the_constraint_and_only_shrinks() {
    let weights = [1.0, 2.0, 0.0, 0.5, 3.0];
    for start in [
        [0.5, -1.0, 9.0, 0.2, 0.4],
        [1.0, 1.0, 1.0, 1.0, 1.0],
        [-1.0; 5],
        [0.0; 5],
    ] {
        let mut dual = start;
        balance(&mut dual, |i| weights[i]);
        let sum: f64 = dual.iter().zip(weights).map(|(a, c)| c * a).sum();
        assert!(sum.abs() < 1e-15, "{dual:?}");
        for (after, before) in dual.iter().zip(start) {
            assert!(after * before >= 0.0 && after.abs() <= before.abs());
        }
    }
}

#[test]
fn balance_of_what_underflows_is_nothing() {
    // Relative to the first weight, the second has only one digit.
    let weights = [1.0, 5e-324];
    let mut dual = [0.3, -0.7];
    balance(&mut dual, |i| weights[i]);
    assert_eq!(dual, [0.0, 0.0]);
    // Small weights are given as fractions of their sum.
    let mut dual = [0.3, -0.7];
    balance(&mut dual, |_| 0.5);
    assert_eq!(dual, [0.3, -0.3]);
}

#[test]
fn minimise_ends_whatever_the_function() {
    type Function<'a> = &'a dyn Fn(f64) -> (f64, f64);
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let hostile: [Function<'_>; 9] = [
        &|_| (nan, nan),
        &|_| (1.0, nan),
        &|_| (nan, 1.0),
        &|_| (inf, inf),
        &|_| (inf, -inf),
        &|b| (b, 1.0),
        &|b| (-b, -1.0),
        // NaN values from the second point on, with slopes that are not NaN.
        &|b| if b == 0.0 { (1.0, 1.0) } else { (nan, -0.0) },
        &|b| (b.sin(), b.cos()),
    ];
    for (k, f) in hostile.iter().enumerate() {
        for inverse_curvature in [0.0, 8.0] {
            let mut count = 0;
            let found = minimise(0.0, inverse_curvature, 1e-12, |b| {
                count += 1;
                f(b)
            });
            assert!(count < 2500, "{k}: {count} evaluations");
            assert!(found.b.is_finite(), "{k}: {}", found.b);
        }
    }
}

#[test]
fn minimise_finds_parabolas_kinks_and_flats() {
    type Function<'a> = &'a dyn Fn(f64) -> (f64, f64);
    let cases: [(Function<'_>, f64); 4] = [
        (&|b| ((b - 3.0) * (b - 3.0) + 1.0, 2.0 * (b - 3.0)), 3.0),
        (&|b| ((b + 1e6).abs() + 1.0, (b + 1e6).signum()), -1e6),
        (
            &|b: f64| (b.exp() - 7.0 * b + 10.0, b.exp() - 7.0),
            7f64.ln(),
        ),
        (
            &|b: f64| {
                (
                    (b - 1e-9).abs().mul_add(3.0, 1.0),
                    3.0 * (b - 1e-9).signum(),
                )
            },
            1e-9,
        ),
    ];
    for (at, expected) in cases {
        for start in [-1e3, -1.0, 0.0, 0.5, 20.0] {
            for inverse_curvature in [INVERSE_CURVATURE, 0.0] {
                let found = minimise(start, inverse_curvature, 0.0, at).b;
                assert!(
                    (at(found).0 - at(expected).0).abs() <= 1e-13 * at(expected).0,
                    "{start}: {found}"
                );
            }
        }
    }
    for inverse_curvature in [INVERSE_CURVATURE, 0.0] {
        let flat = minimise(100.0, inverse_curvature, 0.0, |b| {
            (
                (b.abs() - 2.0).max(0.0),
                if b.abs() > 2.0 { b.signum() } else { 0.0 },
            )
        })
        .b;
        assert!(flat.abs() <= 2.0);
    }
}

#[test]
fn minimise_ends_where_the_minimum_is_at_infinity() {
    let b = minimise(0.0, INVERSE_CURVATURE, 1e-14, |b: f64| (b.exp(), b.exp())).b;
    assert_eq!(b.exp(), 0.0);
}

#[test]
fn minimise_takes_few_evaluations() {
    // The median of many points, which is piecewise linear with 1000 kinks; and a sum of logistic
    // losses.
    let points: Vec<f64> = (0..1000)
        .map(|i| f64::from(i * 7919 % 1000) / 37.0)
        .collect();
    let mut count = 0;
    minimise(0.0, INVERSE_CURVATURE, 1e-14, |b| {
        count += 1;
        let value = points.iter().map(|p| (b - p).abs()).sum();
        (
            value,
            points
                .iter()
                .map(|p| if b == *p { 0.0 } else { (b - p).signum() })
                .sum(),
        )
    });
    assert!(count <= 30, "{count}");
    count = 0;
    minimise(0.0, INVERSE_CURVATURE, 1e-14, |b| {
        count += 1;
        let value = points
            .iter()
            .map(|p| (b - p).exp().ln_1p() + 0.3 * (p - b))
            .sum();
        (
            value,
            points
                .iter()
                .map(|p| 1.0 / (1.0 + (p - b).exp()) - 0.3)
                .sum(),
        )
    });
    assert!(count <= 30, "{count}");
}
