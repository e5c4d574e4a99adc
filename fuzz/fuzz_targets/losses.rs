//! Every loss in the registry, for any finite arguments.

#![no_main]

use sdca_rs::loss::{Link, Loss, SPECS, Visitor, dispatch};

use sdca_fuzz::bytes::Bytes;
use sdca_fuzz::choices::target;
use sdca_fuzz::known;
use sdca_fuzz::rounding::{K, Shaped, TINY};

libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));

/// Decodes a loss and its arguments, and checks all laws.
fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let spec = bytes.pick(SPECS);
    let param = spec.param.map(|param| {
        Some(bytes.number())
            .filter(|&v| (param.accepts)(v))
            .unwrap_or(param.default)
    });
    let laws = Laws {
        bytes: &mut bytes,
        param: param.unwrap_or(0.0),
    };
    dispatch(spec.name, param, laws).expect("the registry builds its own losses");
}

struct Laws<'b, 'a> {
    bytes: &'b mut Bytes<'a>,
    param: f64,
}

impl Visitor for Laws<'_, '_> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let Self { bytes, param } = self;
        let shaped = Shaped { loss, param };
        let y = target(L::TARGET, bytes);
        let (low, high) = loss.dual_range(y);
        assert!(
            low <= 0.0 && 0.0 <= high,
            "{}: {low} to {high} for y={y:e}",
            L::NAME
        );
        let (p, other_p) = (bytes.number(), bytes.number());
        let a = dual_value(loss, y, bytes);
        let other_a = dual_value(loss, y, bytes);
        primal_laws(shaped, p, other_p, y);
        dual_laws(shaped, a, y);
        if L::LINK != Link::Log || known::POISSON_CONJUGATE {
            fenchel_laws(shaped, p, a, y);
        }
        let (z, q) = (bytes.number(), bytes.size());
        let (z, q) = match L::LINK {
            Link::Logit if !known::LOG_STEP_FOR_HUGE_Q => (z.clamp(-1e307, 1e307), q.min(1e139)),
            Link::Log if !known::POISSON_STEP_FOR_TINY_Q && q > 0.0 => (z, q.max(1e-290)),
            _ => (z, q),
        };
        step_laws(shaped, (z, q), (a, other_a), y);
    }
}

/// A finite dual value in the range: a fraction of it, an end point, the one for a prediction, or
/// any number.
fn dual_value<L: Loss>(loss: L, y: f64, bytes: &mut Bytes<'_>) -> f64 {
    let (low, high) = loss.dual_range(y);
    let value = match bytes.byte() % 4 {
        0 => bytes.pick(&[low, high, 0.0]),
        1 => -loss.slope(bytes.number(), y),
        2 => {
            let (low, high) = (low.max(-8.0), high.min(8.0));
            low + (high - low) * f64::from(bytes.byte()) / 255.0
        }
        _ => bytes.number(),
    };
    let value = if value.is_finite() { value } else { 0.0 };
    value.max(low).min(high)
}

/// Value and slope: no NaN, never negative, convex.
fn primal_laws<L: Loss>(shaped: Shaped<L>, p: f64, other: f64, y: f64) {
    let loss = shaped.loss;
    let at = || format!("{} (param {:e}) p={p:e} y={y:e}", L::NAME, shaped.param);
    let (value, slope) = (loss.value(p, y), loss.slope(p, y));
    if L::LINK == Link::Log && value.is_nan() && !known::POISSON_OVERFLOW {
        return;
    }
    assert!(!value.is_nan(), "the value is NaN: {}", at());
    assert!(!slope.is_nan(), "the slope is NaN: {}", at());
    let room = K * f64::EPSILON * shaped.of_value(p, y) + TINY;
    if room.is_finite() {
        assert!(value >= -room, "the value {value:e} is negative: {}", at());
    }
    let (low, high) = loss.dual_range(y);
    assert!(
        low <= -slope && -slope <= high,
        "-slope = {:e} is outside: {}",
        -slope,
        at()
    );
    let steepest = loss.lipschitz() * (1.0 + K * f64::EPSILON);
    assert!(
        slope.abs() <= steepest,
        "the slope {slope:e} is too steep: {}",
        at()
    );
    // The tangent is below the graph.
    let (there, step) = (loss.value(other, y), other - p);
    let tolerance = K * f64::EPSILON * (p.abs() + y.abs() + shaped.param);
    let sizes = shaped.of_value(p, y)
        + shaped.of_value(other, y)
        + shaped.steepest(p, y, tolerance) * (step.abs() + p.abs() + other.abs());
    let room = K * f64::EPSILON * sizes + TINY;
    // Rounding of p - y changes the slope in proportion to the curvature.
    let blur = shaped.steepest(p, y, tolerance) - slope.abs();
    let room = room + 2.0 * blur.abs() * step.abs();
    let tangent = value + slope * step;
    if room.is_finite() && tangent.is_finite() && there.is_finite() {
        assert!(
            there >= tangent - room,
            "not convex, at {other:e} {there:e} is below {tangent:e}: {}",
            at()
        );
    }
}

/// Conjugate and curvature: no NaN, and infinite outside the range.
fn dual_laws<L: Loss>(shaped: Shaped<L>, a: f64, y: f64) {
    let loss = shaped.loss;
    let at = || format!("{} (param {:e}) a={a:e} y={y:e}", L::NAME, shaped.param);
    let conjugate = loss.conjugate(a, y);
    if L::LINK == Link::Log && conjugate.is_nan() && !known::POISSON_OVERFLOW {
        return;
    }
    let is_epsilon = L::NAME == "squared_epsilon_insensitive";
    if is_epsilon && conjugate.is_nan() && !known::SQUARED_EPSILON_OVERFLOW {
        return;
    }
    assert!(!conjugate.is_nan(), "the conjugate is NaN: {}", at());
    if shaped.of_conjugate(a, y).is_finite() {
        assert!(
            conjugate.is_finite(),
            "the conjugate is {conjugate}: {}",
            at()
        );
    }
    let curvature = loss.curvature(a, y);
    assert!(curvature >= 0.0, "the curvature is {curvature:e}: {}", at());
    let (low, high) = loss.dual_range(y);
    for end in [low, high] {
        let out = end + end.signum() * (end.abs().max(f64::MIN_POSITIVE)) * 1e-3;
        if end.is_finite() && out.is_finite() && end != 0.0 {
            assert_eq!(
                loss.conjugate(out, y),
                f64::INFINITY,
                "outside, at {out:e}: {}",
                at()
            );
        }
    }
}

/// `phi(p) + phi*(-a) + a p >= 0`, with equality at `a = -phi'(p)`.
fn fenchel_laws<L: Loss>(shaped: Shaped<L>, p: f64, a: f64, y: f64) {
    let loss = shaped.loss;
    let gap = |a: f64| loss.value(p, y) + loss.conjugate(a, y) + a * p;
    let room = |a: f64| {
        let sizes = shaped.of_value(p, y) + shaped.of_conjugate(a, y) + (a * p).abs();
        // The log loss replaces an exponential by 0 before it is subnormal.
        K * f64::EPSILON * sizes + 4.0 * f64::MIN_POSITIVE
    };
    let at = |a: f64| {
        format!(
            "{} (param {:e}) p={p:e} a={a:e} y={y:e}",
            L::NAME,
            shaped.param
        )
    };
    let (found, allowed) = (gap(a), room(a));
    if allowed.is_finite() {
        assert!(found >= -allowed, "{found:e} < -{allowed:e}: {}", at(a));
    }
    let a = -loss.slope(p, y);
    let (found, allowed) = (gap(a), room(a));
    if allowed.is_finite() {
        assert!(
            found.abs() <= 4.0 * allowed,
            "{found:e} instead of 0, room {allowed:e}: {}",
            at(a)
        );
    }
}

/// The step is in the range, satisfies its equation, is better than any other value, and does not
/// depend on its starting point.
fn step_laws<L: Loss>(shaped: Shaped<L>, (z, q): (f64, f64), (from, other): (f64, f64), y: f64) {
    let loss = shaped.loss;
    let t = loss.step(z, q, from, y);
    let at = || {
        format!(
            "{} (param {:e}) z={z:e} q={q:e} from={from:e} y={y:e}: {t:e}",
            L::NAME,
            shaped.param
        )
    };
    assert!(!t.is_nan(), "NaN: {}", at());
    let (low, high) = loss.dual_range(y);
    assert!(low <= t && t <= high, "outside: {}", at());
    // Halley's method ends with a relative error of 3e-14, see log.rs; the error of an exponential
    // is as many units of rounding as its exponent.
    let k = f64::EPSILON
        * match L::LINK {
            Link::Identity => K,
            Link::Logit => 512.0,
            Link::Log => 2048.0,
        };
    let again = loss.step(z, q, 0.0, y);
    let p = z + q * t;
    // Denominators, as in the smooth hinge, may overflow too.
    if !p.is_finite() || !t.is_finite() || !(q + shaped.param).is_finite() {
        return;
    }
    // -t is a slope at p, up to rounding of p.
    let blur = k * (z.abs() + q * t.abs() + y.abs() + shaped.param) + TINY + q * TINY;
    let sizes = |p: f64| {
        t.abs()
            + if L::LINK == Link::Log {
                y + p.exp()
            } else {
                0.0
            }
    };
    // The log loss replaces an exponential by 0 before it is subnormal.
    let tiny = 4.0 * f64::MIN_POSITIVE;
    let (left, right) = (loss.slope(p - blur, y), loss.slope(p + blur, y));
    let (below, above) = (k * sizes(p - blur) + tiny, k * sizes(p + blur) + tiny);
    assert!(
        left - below <= -t,
        "no slope at p={p:e}: from {left:e}: {}",
        at()
    );
    assert!(
        -t <= right + above,
        "no slope at p={p:e}: to {right:e}: {}",
        at()
    );
    let tolerance = 2.0 * (right - left + below + above);
    if tolerance.is_finite() {
        assert!(
            (t - again).abs() <= tolerance.max(1e-12 * t.abs()),
            "from 0 {again:e}: {}",
            at()
        );
    }
    // The objective is concave, so no other value is better.
    if L::LINK == Link::Log && !known::POISSON_CONJUGATE {
        return;
    }
    let objective = |t: f64| -loss.conjugate(t, y) - t * z - 0.5 * q * t * t;
    let room = |t: f64| k * (shaped.of_conjugate(t, y) + (t * z).abs() + q * t * t);
    let best = objective(t);
    let near = [1e-8, 1e-5, 1e-2, 1.0]
        .iter()
        .flat_map(|h| [t * (1.0 - h), t * (1.0 + h), t - h, t + h]);
    for rival in near.chain([from, other, 0.0]) {
        let rival = rival.max(low).min(high);
        let allowed = room(t) + room(rival) + tiny * (1.0 + z.abs());
        let found = objective(rival);
        if allowed.is_finite() {
            assert!(
                found <= best + allowed,
                "{rival:e} is better, {found:e} > {best:e}: {}",
                at()
            );
        }
    }
}
