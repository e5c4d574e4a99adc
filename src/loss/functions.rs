//! Exponential and logarithm without calls or branches, so that the compiler can vectorise them.
//! For a single number the system's library is faster; for many, these are up to ten times as fast.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// `e^-t` for `t >= 0`, to 2 units in the last place; 0 where the result would be subnormal.
#[inline(always)]
pub(super) const fn exp_neg(t: f64) -> f64 {
    // Adding this leaves the nearest integer in the last bits.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    // ln 2, split into its first 33 bits and the rest: k times the former is exact.
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // e^-t = 2^k e^r
    let shifted = SHIFT - t * LOG2_E;
    let k = shifted - SHIFT;
    let r = (-t - k * LN_2_HIGH) - k * LN_2_LOW;
    let power = 1.0 + exp_m1(r);
    let value = f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52));
    if t < 708.0 { value } else { 0.0 }
}

/// The largest `|r|` for [`exp_m1`].
pub(super) const EXP_M1_RANGE: f64 = 0.5 * LN_2;

/// `e^r - 1` for `|r| <= ln(2) / 2`.
#[inline(always)]
pub(super) const fn exp_m1(r: f64) -> f64 {
    // e^r = 1 + r + r^2 sum_j EXP_j r^j to 4e-18: the best polynomial of this degree.
    const EXP: [f64; 10] = [
        0.500_000_000_000_001_2,
        0.166_666_666_666_667,
        0.041_666_666_666_515_42,
        0.008_333_333_333_307_203,
        0.001_388_888_894_701_648_5,
        0.000_198_412_699_173_888_87,
        2.480_148_994_172_892_6e-5,
        2.755_721_629_626_271_3e-6,
        2.763_128_048_344_332e-7,
        2.511_786_247_475_274_8e-8,
    ];
    r + r * r * polynomial(&EXP, r)
}

/// Adding this to a number from 0 to 2^51 leaves the nearest integer in the last bits.
const TWO_52: f64 = 4_503_599_627_370_496.0;

/// The points per unit in the grid of [`exp_neg_near`], and their number, a power of 2; see there.
const GRID: f64 = 16.0;
const GRID_SIZE: usize = 1024;

/// `e^-(k / GRID)`.
static GRID_EXP_NEG: [f64; GRID_SIZE] = {
    let mut values = [0.0; GRID_SIZE];
    let mut k = 0;
    while k < GRID_SIZE {
        values[k] = exp_neg(k as f64 / GRID);
        k += 1;
    }
    values
};

/// The upper end of the range of [`exp_neg_near`].
pub(super) const NEAR_RANGE: f64 = GRID_SIZE as f64 / GRID - 1.0;

/// Returns `m`, at most 1/32 away from `t`, and `e^-m`, for `0 <= t < NEAR_RANGE`, in a fraction of
/// the time of `e^-t`.
#[inline(always)]
pub(super) fn exp_neg_near(t: f64) -> (f64, f64) {
    debug_assert!((0.0..=NEAR_RANGE).contains(&t), "{t} is not in the grid");
    let shifted = t * GRID + TWO_52;
    // The remainder keeps the last bits and makes the bounds check unnecessary.
    let power = GRID_EXP_NEG[shifted.to_bits() as usize % GRID_SIZE];
    ((shifted - TWO_52) * (1.0 / GRID), power)
}

/// `ln x` for a normal `x`.
#[inline(always)]
pub(super) fn ln(x: f64) -> f64 {
    // x = 2^k m with m from sqrt(1/2) to sqrt(2), using the exponent of x sqrt(2).
    let exponent = (x * SQRT_2).to_bits() >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub(exponent.wrapping_sub(1023) << 52));
    // The exponent as a number: it fits into the last bits of 2^52.
    let k = (f64::from_bits(TWO_52.to_bits() | exponent) - TWO_52) - 1023.0;
    k * LN_2 + twice_atanh((m - 1.0) / (m + 1.0))
}

/// `ln(1 + x)` for `x` from -1/2 to 1.
#[inline(always)]
pub(super) fn ln_1p(x: f64) -> f64 {
    twice_atanh(x / (2.0 + x))
}

/// `2 atanh s = ln((1 + s) / (1 - s))` for `|s| <= 1/3`.
#[inline(always)]
fn twice_atanh(s: f64) -> f64 {
    // (2 atanh s - 2 s) / s^3 as a polynomial in s^2, to 6e-17 of the whole: the best of its
    // degree.
    const ATANH: [f64; 10] = [
        0.666_666_666_666_749_8,
        0.399_999_999_966_695_6,
        0.285_714_290_058_858_96,
        0.222_221_951_156_347_08,
        0.181_827_607_351_376_5,
        0.153_650_596_176_659_58,
        0.135_798_772_873_191_6,
        0.099_322_769_489_824_4,
        0.176_832_616_988_892_63,
        0.0,
    ];
    let u = s * s;
    2.0 * s + s * (u * polynomial(&ATANH, u))
}

/// `sum_j c_j x^j`, in pairs, which shortens the chain of dependent operations.
#[inline(always)]
const fn polynomial(c: &[f64; 10], x: f64) -> f64 {
    let x2 = x * x;
    let low = (c[0] + c[1] * x) + (c[2] + c[3] * x) * x2;
    let middle = (c[4] + c[5] * x) + (c[6] + c[7] * x) * x2;
    low + x2 * x2 * (middle + x2 * x2 * (c[8] + c[9] * x))
}

#[cfg(test)]
mod tests;
