use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn lanes_agree_with_the_naive_and_levels_with_each_other(
        (x, y) in (0usize..40).prop_flat_map(|n| {
            let numbers = || prop::collection::vec(-10.0..10.0f64, n);
            (numbers(), numbers())
        })
    ) {
        let product = |[x, y]: [f64; 2]| x * y + 1.0;
        let naive: f64 = x.iter().zip(&y).map(|(x, y)| x * y + 1.0).sum();
        let portable = sum(Level::PORTABLE, [&x, &y], |xy| [product(xy), xy[0]]);
        prop_assert!((portable[0] - naive).abs() < 1e-11);
        prop_assert!((portable[1] - x.iter().sum::<f64>()).abs() < 1e-11);
        for level in Level::available() {
            prop_assert_eq!(sum(level, [&x, &y], |xy| [product(xy), xy[0]]), portable);
            let mut out = vec![0.0; x.len()];
            map(level, [&x, &y], &mut out, product);
            for (k, value) in out.iter().enumerate() {
                prop_assert_eq!(*value, product([x[k], y[k]]));
            }
        }
    }
}
