//! The search for the intercept, on convex functions and on functions that only claim to be convex;
//! and the balancing of dual points.

#![no_main]

use sdca_rs::intercept::{Minimum, balance, minimise};

use sdca_fuzz::bytes::{Bytes, Kind};
use sdca_fuzz::known;
use sdca_fuzz::rounding::TINY;

libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));

/// Chooses one of the three checks.
fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    match bytes.below(4) {
        0 => convex(&mut bytes),
        1 => hostile(&mut bytes),
        2 => smooth(&mut bytes),
        _ => balanced(&mut bytes),
    }
}

/// More evaluations than any search may need: 1100 to cross the whole range of numbers by factors
/// of 4, and 300 to converge.
const MOST: usize = 1500;

/// Counts evaluations.
fn counted(
    start: f64,
    inverse_curvature: f64,
    precision: f64,
    mut at: impl FnMut(f64) -> (f64, f64),
) -> Minimum {
    let mut evaluations = 0;
    let minimum = minimise(start, inverse_curvature, precision, |b| {
        evaluations += 1;
        assert!(
            evaluations <= MOST,
            "no end: from {start:e}, inverse_curvature {inverse_curvature:e}, now at {b:e}"
        );
        at(b)
    });
    let (left, right) = minimum.sides;
    assert!(!minimum.b.is_nan() && !left.is_nan() && !right.is_nan() && !minimum.mix.is_nan());
    assert!(left <= minimum.b && minimum.b <= right, "{minimum:?}");
    minimum
}

/// A piece of a convex function: `down (t - b)` left of `t`, and `up (b - t)` right of it.
#[derive(Clone, Copy, Debug)]
struct Kink {
    t: f64,
    down: f64,
    up: f64,
}

impl Kink {
    fn at(self, b: f64) -> (f64, f64) {
        if b < self.t {
            (self.down * (self.t - b), -self.down)
        } else if b > self.t {
            (self.up * (b - self.t), self.up)
        } else {
            (0.0, 0.0)
        }
    }
}

/// A sum of kinks attains its minimum at one of them.
fn convex(bytes: &mut Bytes<'_>) {
    let kind = bytes.pick(&[Kind::Tame, Kind::Number]);
    let start = bytes.of(kind);
    let precision = bytes.pick(&[0.0, 1e-12, 1e-6, 1e-3]);
    let kinks: Vec<Kink> = (0..1 + bytes.below(8))
        .map(|_| Kink {
            t: bytes.of(kind),
            down: bytes.of(kind).abs(),
            up: bytes.of(kind).abs(),
        })
        .collect();
    let f = |b: f64| {
        kinks
            .iter()
            .map(|kink| kink.at(b))
            .fold((0.0, 0.0), |sum, kink| (sum.0 + kink.0, sum.1 + kink.1))
    };
    let minimum = counted(start, 0.0, precision, f);
    assert_eq!(
        minimum.value.to_bits(),
        f(minimum.b).0.to_bits(),
        "the value is of another place"
    );
    // Where everything is finite, differences included:
    let size = |b: f64| -> f64 {
        let of_kink = |kink: &Kink| (kink.down + kink.up) * (kink.t.abs() + b.abs());
        kinks.iter().map(of_kink).sum()
    };
    let farthest = kinks
        .iter()
        .fold(start.abs(), |far, kink| far.max(kink.t.abs()));
    // The bracketing overshoots the minimum by up to four times its distance from the start.
    let room = 1e3 * f64::EPSILON * size(16.0 * farthest + 1.0) + TINY;
    if room.is_finite() {
        for kink in &kinks {
            let there = f(kink.t).0;
            let allowed = room + precision * minimum.value.abs();
            assert!(
                minimum.value <= there + allowed,
                "{minimum:?}, but {there:e} at {:e}, room {room:e}: {kinks:?} from {start:e}",
                kink.t
            );
        }
    }
}

/// Parabolas and exponentials, as in losses, with the crate's `inverse_curvature`.
fn smooth(bytes: &mut Bytes<'_>) {
    let kind = bytes.pick(&[Kind::Tame, Kind::Number]);
    let (start, inverse_curvature) = (bytes.of(kind), bytes.pick(&[8.0, 0.0]));
    let precision = bytes.pick(&[0.0, 1e-12, 1e-6, 1e-3]);
    let mut terms: Vec<(u8, f64, f64)> = (0..1 + bytes.below(8))
        .map(|_| (bytes.byte() % 3, bytes.of(kind), bytes.of(kind).abs()))
        .collect();
    // Losses are weighted by fractions of the sum of all weights.
    let total: f64 = terms.iter().map(|term| term.2).sum();
    if !total.is_normal() {
        return;
    }
    terms.iter_mut().for_each(|term| term.2 /= total);
    let term = |&(kind, t, c): &(u8, f64, f64), b: f64| match kind {
        0 => (0.5 * c * (b - t) * (b - t), c * (b - t)),
        1 => (c * (b.exp() - t.abs() * b), c * (b.exp() - t.abs())),
        // The log loss, computed with the standard library.
        _ => {
            let m = if t < 0.0 { -b } else { b };
            let s = 1.0 / (1.0 + m.exp());
            (
                c * ((-m).max(0.0) + (-m.abs()).exp().ln_1p()),
                if t < 0.0 { c * s } else { -c * s },
            )
        }
    };
    let f = |b: f64| {
        terms
            .iter()
            .map(|t| term(t, b))
            .fold((0.0, 0.0), |sum, t| (sum.0 + t.0, sum.1 + t.1))
    };
    if !known::MINIMISE_ENDS_FOR_NAN
        && (f(start).0.is_nan() || f(start).1.is_nan() || kind == Kind::Number)
    {
        return;
    }
    // Where terms overflow, the function is no longer convex.
    let mut is_finite = true;
    let minimum = counted(start, inverse_curvature, precision, |b| {
        let (value, slope) = f(b);
        is_finite &= value.is_finite() && slope.is_finite();
        (value, slope)
    });
    let (value, _) = f(start);
    if is_finite && value.is_finite() {
        // A slope that places the minimum within 1e-14 counts as 0, wherever the minimum is; and
        // sums are rounded.
        let flat = 1e-14 / 8.0 * (minimum.b - start).abs();
        let allowed = flat + 1e-13 * value.abs() + f64::MIN_POSITIVE;
        assert!(
            minimum.value <= value + allowed,
            "{minimum:?} is worse than the start, {value:e} at {start:e}: {terms:?}"
        );
    }
}

/// Values and slopes that no convex function has: the search must end all the same.
fn hostile(bytes: &mut Bytes<'_>) {
    let (start, inverse_curvature) = (bytes.number(), bytes.pick(&[8.0, 0.0, 1e-3, 1e300]));
    let precision = bytes.pick(&[0.0, 1e-12, 1e-3]);
    let mut answers = [(0.0, 0.0); 16];
    for answer in &mut answers {
        *answer = (bytes.any(), bytes.any());
    }
    let has_nan = answers
        .iter()
        .any(|(value, slope)| value.is_nan() || slope.is_nan());
    let falls = answers.iter().all(|(_, slope)| *slope < 0.0)
        || answers.iter().all(|(_, slope)| *slope > 0.0);
    if !known::MINIMISE_ENDS_FOR_NAN && (has_nan || falls) {
        return;
    }
    let mut k = 0;
    // The replies in sequence, or always the one that belongs to the position.
    let in_turn = bytes.flag();
    counted(start, inverse_curvature, precision, |b| {
        k += 1;
        answers[if in_turn {
            k
        } else {
            (b.to_bits() >> 50) as usize
        } % answers.len()]
    });
}

/// `sum c a = 0` up to rounding, and values only shrink towards 0.
fn balanced(bytes: &mut Bytes<'_>) {
    let kind = bytes.pick(&[Kind::Tame, Kind::Number, Kind::Wild]);
    let n = 1 + bytes.below(24);
    let weighted = bytes.flag();
    let mut weights: Vec<f64> = (0..n)
        .map(|_| if weighted { bytes.of(kind).abs() } else { 1.0 })
        .collect();
    let total: f64 = weights.iter().sum();
    // Weights are given as fractions of their sum; see `balance`.
    if weighted {
        if !total.is_normal() {
            return;
        }
        weights.iter_mut().for_each(|c| *c /= total);
    }
    let before: Vec<f64> = (0..n).map(|_| bytes.of(kind)).collect();
    let masses = || before.iter().zip(&weights).map(|(a, c)| c * a);
    // Dual values are small enough that their sum does not overflow.
    if !masses().map(f64::abs).sum::<f64>().is_finite() {
        return;
    }
    let is_least = |mass: f64| mass != 0.0 && mass.abs() < f64::MIN_POSITIVE / f64::EPSILON;
    if !known::BALANCE_OF_SUBNORMAL
        && (masses().any(is_least)
            || before
                .iter()
                .zip(&weights)
                .any(|(&a, &c)| c * a == 0.0 && a != 0.0 && c != 0.0))
    {
        return;
    }
    let (above, below) = masses().fold((0.0, 0.0), |(above, below): (f64, f64), mass| {
        (above + mass.max(0.0), below - mass.min(0.0))
    });
    let factor = above.min(below) / above.max(below);
    if !known::BALANCE_FACTOR_UNDERFLOWS && factor < f64::MIN_POSITIVE {
        return;
    }
    let mut after = before.clone();
    balance(&mut after, |i| weights[i]);
    let at = || format!("{before:?} became {after:?}, weights {weights:?}");
    for ((a, b), c) in after.iter().zip(&before).zip(&weights) {
        assert!(
            a.abs() <= b.abs() && a * b.signum() >= 0.0,
            "{a:e} for {b:e}: {}",
            at()
        );
        assert!(
            *c > 0.0 || a == b,
            "a row that does not count has changed: {}",
            at()
        );
    }
    let (mut sum, mut size) = (0.0, 0.0);
    for (a, c) in after.iter().zip(&weights) {
        sum += c * a;
        size += (c * a).abs();
    }
    let room = 4.0 * n as f64 * (f64::EPSILON * size + 5e-324);
    assert!(sum.abs() <= room, "{sum:e} of {size:e}: {}", at());
}
