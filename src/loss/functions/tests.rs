use super::*;
use proptest::prelude::*;

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 4.0 * f64::EPSILON * expected.abs()
}

proptest! {
    #[test]
    fn they_agree_with_the_library(t in 0.0..708.0f64, small in -7.0..0.0f64, x in -0.5..1.0f64) {
        prop_assert!(close(exp_neg(t), (-t).exp()));
        let tiny = 10f64.powf(small);
        prop_assert!(close(exp_neg(tiny), (-tiny).exp()));
        let (m, power) = exp_neg_near(t * (NEAR_RANGE / 708.0));
        prop_assert!((m - t * (NEAR_RANGE / 708.0)).abs() <= 1.0 / 32.0);
        prop_assert!(close(power, (-m).exp()));
        let r = x.clamp(-EXP_M1_RANGE, EXP_M1_RANGE);
        prop_assert!(close(exp_m1(r), r.exp_m1()));
        prop_assert!(close(ln_1p(x), x.ln_1p()));
        prop_assert!(close(ln_1p(x * tiny), (x * tiny).ln_1p()));
        // Near 1, the logarithm is as accurate as that of a number adjacent to x.
        for x in [x + 0.5, 1.0 + x * tiny, (-t).exp(), t.exp()] {
            prop_assert!((ln(x) - x.ln()).abs() <= 4.0 * f64::EPSILON * x.ln().abs().max(0.1));
        }
    }
}

#[test]
fn at_the_ends() {
    assert_eq!(exp_neg(0.0), 1.0);
    assert_eq!(exp_neg(1e9), 0.0);
    assert_eq!(exp_neg(f64::INFINITY), 0.0);
    assert_eq!(exp_neg_near(0.0), (0.0, 1.0));
    assert_eq!(exp_neg_near(NEAR_RANGE).0, NEAR_RANGE);
    assert_eq!(ln(1.0), 0.0);
    assert_eq!(ln_1p(0.0), 0.0);
    assert!(close(ln(f64::MIN_POSITIVE), f64::MIN_POSITIVE.ln()));
    assert!(close(ln(2.0), LN_2));
}
