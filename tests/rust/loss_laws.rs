//! The laws that every loss must satisfy, checked over the registry: a new loss is tested as soon
//! as it is registered.

use sdca_rs::Error;
use sdca_rs::loss::{self, Log, Loss, SPECS, Spec, Target, Visitor, dispatch};

/// Runs `law` for every loss and several values of its shape parameter.
fn for_every_loss<V: Visitor<Out = ()> + Copy>(law: V) {
    for spec in SPECS {
        for param in params(spec) {
            dispatch(spec.name, param, law).expect("the registry builds its own losses");
        }
    }
}

fn params(spec: &Spec) -> Vec<Option<f64>> {
    let mut all = vec![None];
    if let Some(param) = spec.param {
        let tried = [0.0, 0.01, 0.3, 0.95, 2.5, 40.0];
        all.extend(tried.into_iter().filter(|&v| (param.accepts)(v)).map(Some));
    }
    all
}

fn targets(target: Target) -> &'static [f64] {
    match target {
        Target::Label => &[-1.0, 1.0],
        Target::Real => &[-1e3, -1.3, 0.0, 0.7, 25.0],
        Target::NonNegative => &[0.0, 0.5, 1.0, 7.0, 1e3],
    }
}

/// Predictions near the kinks and bends of losses, and far away.
fn predictions() -> Vec<f64> {
    let mut all: Vec<f64> = (-60..=60).map(|k| f64::from(k) * 0.1 + 0.013).collect();
    all.extend((-60..=60).map(|k| f64::from(k) * 0.5));
    all.extend([-1e3, -300.0, -40.0, 40.0, 300.0, 1e3]);
    all
}

/// Dual values within the range, including its finite ends.
fn dual_values<L: Loss>(loss: L, y: f64) -> Vec<f64> {
    let (low, high) = loss.dual_range(y);
    let (from, to) = (low.max(-6.0).min(high), high.min(6.0).max(low));
    let (from, to) = (from.min(to - 1.0).max(low), to);
    (0..=40)
        .map(|k| (from + (to - from) * f64::from(k) / 40.0).clamp(low, high))
        .collect()
}

const QS: [f64; 16] = [
    0.0, 1e-300, 1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 30.0, 1e3, 1e5, 1e7, 1e9, 1e12,
];

/// The allowed error of `phi(p) + phi*(-a) + a p`, given the sizes of its terms.
fn rounding(terms: &[f64]) -> f64 {
    1e-13 * terms.iter().fold(1.0, |sum: f64, t| sum + t.abs())
}

#[derive(Clone, Copy)]
struct FenchelYoung;

impl Visitor for FenchelYoung {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        for &y in targets(L::TARGET) {
            for p in predictions() {
                let value = loss.value(p, y);
                assert!(
                    value >= -1e-12 * y.abs(),
                    "{} is negative: {value} at p={p} y={y}",
                    L::NAME
                );
                for a in dual_values(loss, y) {
                    let conjugate = loss.conjugate(a, y);
                    assert!(
                        conjugate.is_finite(),
                        "{}: phi*(-{a}) = {conjugate}, y={y}",
                        L::NAME
                    );
                    let gap = value + conjugate + a * p;
                    let room = rounding(&[value, conjugate, a * p, y * p]);
                    assert!(gap >= -room, "{}: {gap} at p={p} a={a} y={y}", L::NAME);
                }
                let a = -loss.slope(p, y);
                let (low, high) = loss.dual_range(y);
                assert!(
                    (low..=high).contains(&a),
                    "{}: -slope = {a} at p={p} y={y}",
                    L::NAME
                );
                if a.is_infinite() {
                    continue;
                }
                let conjugate = loss.conjugate(a, y);
                let gap = value + conjugate + a * p;
                let size = if L::NAME == "poisson" {
                    p.exp() * (p.abs() + 1.0)
                } else {
                    0.0
                };
                let room = 10.0 * rounding(&[value, conjugate, a * p, y * p, size]);
                assert!(
                    gap.abs() <= room,
                    "{}: equality fails by {gap} at p={p} y={y}",
                    L::NAME
                );
            }
        }
    }
}

#[test]
fn fenchel_young_inequality_and_equality() {
    for_every_loss(FenchelYoung);
}

#[derive(Clone, Copy)]
struct Conjugate;

impl Visitor for Conjugate {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        for &y in targets(L::TARGET) {
            let (low, high) = loss.dual_range(y);
            for a in dual_values(loss, y) {
                // -a p - phi(p) is concave: ternary search. At an end of the range the supremum may
                // be approached only at infinity, so interior values are compared.
                if a == low || a == high {
                    continue;
                }
                let f = |p: f64| -a * p - loss.value(p, y);
                let bound = if L::NAME == "poisson" { 700.0 } else { 5e3 };
                let (mut from, mut to) = (-bound, bound);
                for _ in 0..400 {
                    let (one, two) = (from + (to - from) / 3.0, to - (to - from) / 3.0);
                    if f(one) < f(two) {
                        from = one;
                    } else {
                        to = two;
                    }
                }
                let (supremum, formula) = (f(from).max(f(to)), loss.conjugate(a, y));
                let room = 1e-10 * (1.0 + supremum.abs() + (a * y).abs());
                assert!(
                    (supremum - formula).abs() <= room,
                    "{}: {formula} not {supremum}, a={a} y={y}",
                    L::NAME
                );
            }
            for (end, out) in [(low, -1.0), (high, 1.0)] {
                if end.is_finite() {
                    let a = end + 0.05 * out;
                    assert_eq!(
                        loss.conjugate(a, y),
                        f64::INFINITY,
                        "{} outside at a={a}",
                        L::NAME
                    );
                    // Correctly so: -a p - phi(p) is unbounded.
                    let p = -out * 1e6;
                    assert!(
                        -a * p - loss.value(p, y) > 1e3,
                        "{} outside at a={a} y={y}",
                        L::NAME
                    );
                }
            }
        }
    }
}

#[test]
fn conjugate_is_the_supremum_and_infinite_outside_the_range() {
    for_every_loss(Conjugate);
}

/// `phi(p) + phi*(-t) + t p` at `p = z + q t`, which is 0 exactly at the maximiser `t`; and how
/// much of it rounding can explain.
fn step_residual<L: Loss>(loss: L, z: f64, q: f64, t: f64, y: f64) -> (f64, f64) {
    let p = z + q * t;
    let (value, conjugate) = (loss.value(p, y), loss.conjugate(t, y));
    // Rounding of t moves p by q |t| eps.
    let slack = (t.abs() + loss.slope(p, y).abs()) * (z.abs() + q * t.abs());
    (
        value + conjugate + t * p,
        20.0 * rounding(&[value, conjugate, t * p, y * p, slack]),
    )
}

#[derive(Clone, Copy)]
struct Step;

impl Visitor for Step {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let zs = [
            -1e3, -80.0, -7.0, -1.0, -0.4, 0.0, 1e-9, 0.3, 1.0, 2.2, 9.0, 80.0, 300.0,
        ];
        for &y in targets(L::TARGET) {
            let (low, high) = loss.dual_range(y);
            for z in zs {
                for q in QS {
                    let cold = loss.step(z, q, 0.0, y);
                    let at = format!("{} z={z} q={q} y={y}: {cold}", L::NAME);
                    assert!((low..=high).contains(&cold), "outside the range: {at}");
                    let (residual, room) = step_residual(loss, z, q, cold, y);
                    assert!(
                        residual.abs() <= room,
                        "not the maximiser, {residual} > {room}: {at}"
                    );
                    // It is better than its neighbours.
                    let objective = |t: f64| -loss.conjugate(t, y) - t * z - 0.5 * q * t * t;
                    let best = objective(cold);
                    let room = 1e-12
                        * (1.0
                            + best.abs()
                            + (cold * z).abs()
                            + q * cold * cold
                            + (cold * y).abs());
                    for scale in [1e-8, 1e-5, 1e-2, 1.0] {
                        for sign in [-1.0, 1.0] {
                            let near =
                                (cold + sign * scale * cold.abs().max(1e-3)).clamp(low, high);
                            assert!(objective(near) <= best + room, "{near} is better: {at}");
                        }
                    }
                    // The current value is only a starting point.
                    for a in dual_values(loss, y).into_iter().step_by(8) {
                        let warm = loss.step(z, q, a, y);
                        assert!(
                            (warm - cold).abs() <= 1e-12 * (1.0 + cold.abs()),
                            "from {a} {warm}: {at}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn step_is_the_maximiser_for_all_q() {
    for_every_loss(Step);
}

/// The square of such a `q` overflows.
#[test]
fn the_step_of_log_is_right_for_huge_q() {
    for exponent in (10..=300).step_by(5) {
        let q = 10f64.powi(exponent);
        for a in [0.0, 0.3, 1.0] {
            // The new margin is negligible relative to q.
            let step = Log.step(-0.4 * q, q, a, 1.0);
            assert!((step - 0.4).abs() < 1e-7, "{step} for {q} from {a}");
        }
    }
}

#[derive(Clone, Copy)]
struct WrongQ;

impl Visitor for WrongQ {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let caught = targets(L::TARGET).iter().any(|&y| {
            [-0.4, 0.3, 2.0, 200.0].into_iter().any(|z| {
                [0.3, 3.0, 30.0, 300.0].into_iter().any(|q| {
                    let (residual, room) =
                        step_residual(loss, z, q, loss.step(z, 1.02 * q, 0.0, y), y);
                    residual > 100.0 * room
                })
            })
        });
        assert!(
            caught,
            "the law would accept a step of {} for 1.02 q",
            L::NAME
        );
    }
}

#[test]
fn the_law_of_the_step_would_catch_a_wrong_formula() {
    for_every_loss(WrongQ);
}

#[derive(Clone, Copy)]
struct Slope;

impl Visitor for Slope {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        for &y in targets(L::TARGET) {
            for p in predictions().into_iter().filter(|p| p.abs() < 50.0) {
                for h in [1e-4, 1e-2, 1.0] {
                    // The difference quotient lies between the two subgradients, as for every
                    // convex function.
                    let (left, right) = (loss.value(p, y), loss.value(p + h, y));
                    let difference = (right - left) / h;
                    let (low, high) = (loss.slope(p, y), loss.slope(p + h, y));
                    let room = (1e-14 / h)
                        * (1.0 + left.abs() + right.abs() + (y * p).abs() + y.abs() * y.abs());
                    let inside = low - room <= difference && difference <= high + room;
                    assert!(
                        inside,
                        "{}: {difference} not in [{low}, {high}] at p={p} h={h} y={y}",
                        L::NAME
                    );
                }
            }
        }
    }
}

#[test]
fn slope_agrees_with_finite_differences() {
    for_every_loss(Slope);
}

/// Whether the slope is `-a` only at a single point, although a flat piece is expected: at `a = 0`
/// if `epsilon` is 0.
fn is_piece_of_no_length<L: Loss>(loss: L, a: f64, y: f64) -> bool {
    let h = 1e-3;
    let bend = loss.conjugate(a + h, y) + loss.conjugate(a - h, y) - 2.0 * loss.conjugate(a, y);
    loss.curvature(a, y) == 0.0 && bend <= 1e-2 * h
}

#[derive(Clone, Copy)]
struct Curvature;

impl Visitor for Curvature {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        for &y in targets(L::TARGET) {
            for p in predictions().into_iter().filter(|p| p.abs() < 20.0) {
                let slope = loss.slope(p, y);
                if is_piece_of_no_length(loss, -slope, y) {
                    continue;
                }
                let found = loss.curvature(-slope, y);
                let at = format!("{}: {found} at p={p} y={y}", L::NAME);
                assert!(found >= 0.0, "{at}");
                // From the left or from the right: two pieces may meet at p, and the curvature is
                // that of either.
                let h = 1e-5;
                let sides = [-h, h].map(|h| (loss.slope(p + h, y) - slope) / h);
                let fits = sides.iter().any(|side| {
                    if found.is_infinite() {
                        // The slope jumps.
                        side * h > 0.1
                    } else {
                        (side - found).abs() <= 1e-4 * (found + 1e-3)
                    }
                });
                assert!(fits, "{at}, not one of {sides:?}");
            }
            // The same for the dual: phi* has curvature 1/phi'', is straight at a kink of phi, and
            // has a kink where phi is straight.
            let (low, high) = loss.dual_range(y);
            for a in dual_values(loss, y) {
                let found = loss.curvature(a, y);
                let at = format!("{}: {found} at a={a} y={y}", L::NAME);
                assert!(found >= 0.0, "{at}");
                let h = 1e-4;
                let is_inside = low < a - 0.02 && a + 0.02 < high;
                if !is_inside || is_piece_of_no_length(loss, a, y) {
                    continue;
                }
                let [before, here, after] = [-h, 0.0, h].map(|h| loss.conjugate(a + h, y));
                let bend = (after - here) - (here - before);
                let room = 0.1 * rounding(&[before, here, after, 6.0 * y]);
                if found == 0.0 {
                    assert!(bend > 1e-3 * h, "{at}: phi* is smooth");
                } else {
                    let expected = h * h / found;
                    assert!(
                        (bend - expected).abs() <= 1e-3 * expected + room,
                        "{at}: phi* says {}",
                        h * h / bend
                    );
                }
            }
        }
    }
}

#[test]
fn curvature_agrees_with_finite_differences() {
    for_every_loss(Curvature);
}

#[derive(Clone, Copy)]
struct CurvatureOfStep;

impl Visitor for CurvatureOfStep {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let mut bent = 0;
        for &y in targets(L::TARGET) {
            for k in dual_values(loss, y).into_iter().step_by(5) {
                for g in [1e-3, 0.1, 1.0, 30.0] {
                    let value = |p: f64| loss.step(p - g * k, g, k, y);
                    for p in predictions().into_iter().filter(|p| p.abs() < 20.0) {
                        let a = value(p);
                        if is_piece_of_no_length(loss, a, y) {
                            continue;
                        }
                        let kappa = loss.curvature(a, y);
                        let expected = if kappa.is_infinite() {
                            -1.0 / g
                        } else {
                            -kappa / (1.0 + g * kappa)
                        };
                        let h = 1e-6;
                        let sides = [-h, h].map(|h| (value(p + h) - a) / h);
                        let room = 1e-3 * expected.abs() + 1e-7 * (1.0 + a.abs());
                        assert!(
                            sides.iter().any(|side| (side - expected).abs() <= room),
                            "{}: {expected} is none of {sides:?} at p={p} g={g} k={k} y={y}",
                            L::NAME
                        );
                        bent += u32::from(kappa > 0.0);
                    }
                }
            }
        }
        assert!(bent > 50, "{}: tried on {bent} bent places", L::NAME);
    }
}

/// The function that the second-order finish differentiates: the dual value for a prediction,
/// pulled towards `k` with the weight `g`.
#[test]
fn the_proximal_dual_value_falls_as_fast_as_the_curvature_says() {
    for_every_loss(CurvatureOfStep);
}

#[derive(Clone, Copy)]
struct Constants;

impl Visitor for Constants {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let (mut steepest, mut sharpest) = (0.0f64, 0.0f64);
        for &y in targets(L::TARGET) {
            for k in -400_000..=400_000 {
                let p = y * f64::from(u8::from(L::TARGET == Target::Real)) + f64::from(k) * 2e-4;
                steepest = steepest.max(loss.slope(p, y).abs());
                sharpest = sharpest.max((loss.slope(p + 2e-4, y) - loss.slope(p, y)) / 2e-4);
            }
        }
        let l = loss.lipschitz();
        if l.is_finite() {
            assert!(
                steepest <= l * (1.0 + 1e-12),
                "{}: slope {steepest} exceeds {l}",
                L::NAME
            );
            assert!(steepest >= 0.97 * l, "{}: {steepest} below {l}", L::NAME);
        } else {
            assert!(steepest > 30.0, "{}: slope stays at {steepest}", L::NAME);
        }
        let gamma = loss.smoothness();
        if gamma > 0.0 {
            assert!(
                sharpest * gamma <= 1.0 + 1e-6,
                "{}: curvature {sharpest} exceeds 1/{gamma}",
                L::NAME
            );
            assert!(
                sharpest * gamma >= 0.97,
                "{}: curvature {sharpest} below 1/{gamma}",
                L::NAME
            );
        } else {
            assert!(
                sharpest > 900.0,
                "{}: curvature stays at {sharpest}",
                L::NAME
            );
        }
    }
}

#[test]
fn lipschitz_and_smoothness_constants_are_attained_and_not_exceeded() {
    for_every_loss(Constants);
}

#[derive(Clone, Copy)]
struct NeverNan;

impl Visitor for NeverNan {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let sizes = [
            0.0, 1e-300, 1e-15, 1e-3, 1.0, 36.0, 37.0, 700.0, 709.0, 710.0, 745.0, 746.0, 1e3,
        ];
        let signed = |v: f64| [-v, v];
        for &y in targets(L::TARGET) {
            let (low, high) = loss.dual_range(y);
            for p in sizes.into_iter().flat_map(signed) {
                for number in [loss.value(p, y), loss.slope(p, y)] {
                    assert!(!number.is_nan(), "{} at p={p} y={y}", L::NAME);
                }
                for q in QS.into_iter().chain([1e-15, 1e-30, 1e20]) {
                    for a in [
                        low.max(-1e3),
                        0.0,
                        1e-300,
                        high.min(1e3),
                        0.5 * high.min(1e3),
                    ] {
                        let t = loss.step(p, q, a.clamp(low, high), y);
                        assert!(!t.is_nan(), "{} z={p} q={q} a={a} y={y}", L::NAME);
                        assert!(
                            (low..=high).contains(&t),
                            "{} z={p} q={q} a={a} y={y}: {t}",
                            L::NAME
                        );
                        assert!(!loss.conjugate(t, y).is_nan(), "{} t={t} y={y}", L::NAME);
                    }
                }
            }
        }
    }
}

#[test]
fn extreme_arguments_never_give_nan() {
    for_every_loss(NeverNan);
}

/// Values computed by hand from the formulas in the documentation: the laws cannot detect a factor
/// 2 in all functions.
#[test]
fn conventions() {
    let cases: &[(&str, Option<f64>, f64, f64, f64)] = &[
        ("hinge", None, 0.25, 1.0, 0.75),
        ("hinge", None, 0.25, -1.0, 1.25),
        ("squared_hinge", None, -1.0, 1.0, 4.0),
        ("smooth_hinge", Some(0.5), 0.75, 1.0, 0.0625),
        ("smooth_hinge", None, -3.0, 1.0, 3.5),
        ("log", None, 0.0, -1.0, std::f64::consts::LN_2),
        ("log", None, -3.0, 1.0, 3.048_587_351_573_742),
        ("modified_huber", None, -3.0, 1.0, 12.0),
        ("modified_huber", None, 0.0, 1.0, 1.0),
        ("squared", None, 3.0, 1.0, 2.0),
        ("absolute", None, 3.0, 1.0, 2.0),
        ("huber", Some(1.0), 3.0, 1.0, 1.5),
        ("huber", None, 0.0, 1.0, 0.5),
        ("epsilon_insensitive", None, 3.0, 1.0, 1.9),
        ("squared_epsilon_insensitive", Some(0.5), 3.0, 1.0, 2.25),
        ("quantile", Some(0.9), 0.0, 2.0, 1.8),
        ("quantile", Some(0.9), 2.0, 0.0, 0.2),
        ("poisson", None, 0.0, 1.0, 0.0),
        ("poisson", None, 1.0, 0.0, std::f64::consts::E),
        ("poisson", None, 0.0, 3.0, 1.0 + 3.0 * 3.0f64.ln() - 3.0),
    ];
    struct Value(f64, f64);
    impl Visitor for Value {
        type Out = f64;
        fn visit<L: Loss>(self, loss: L) -> f64 {
            loss.value(self.0, self.1)
        }
    }
    for &(name, param, p, y, expected) in cases {
        let found = dispatch(name, param, Value(p, y)).expect("known");
        assert!(
            (found - expected).abs() < 1e-14 * (1.0 + expected),
            "{name}: {found} not {expected}"
        );
    }
    for name in loss::names() {
        assert!(
            cases.iter().any(|case| case.0 == name),
            "no value of {name} is checked by hand"
        );
    }
}

#[test]
fn names_and_parameters_are_checked() {
    struct Nothing;
    impl Visitor for Nothing {
        type Out = ();
        fn visit<L: Loss>(self, _: L) {}
    }
    let unknown = dispatch("hing", None, Nothing)
        .expect_err("no such loss")
        .to_string();
    assert!(
        unknown.contains("hing\"") && unknown.contains("smooth_hinge"),
        "{unknown}"
    );
    assert_eq!(
        dispatch("hinge", Some(1.0), Nothing),
        Err(Error::NoLossParam {
            loss: "hinge",
            found: 1.0
        })
    );
    for (name, bad) in [
        ("smooth_hinge", [0.0, -1.0, f64::NAN, f64::INFINITY]),
        ("huber", [0.0, -1.0, f64::NAN, f64::INFINITY]),
        ("epsilon_insensitive", [-0.1, -1.0, f64::NAN, f64::INFINITY]),
        ("quantile", [0.0, 1.0, f64::NAN, -0.1]),
    ] {
        for found in bad {
            assert!(
                matches!(
                    dispatch(name, Some(found), Nothing),
                    Err(Error::LossParam { .. })
                ),
                "{name} {found}"
            );
        }
    }
}
