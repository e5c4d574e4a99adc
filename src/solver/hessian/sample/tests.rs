use super::*;
use proptest::prelude::*;

proptest! {
    /// In any range of rows, the chosen ones have about the same sum of shares as all of them.
    #[test]
    fn a_sample_stands_for_all_rows(
        rows in prop::collection::vec((0.0..1.0f64, 0.001..3.0f64), 1..200),
        size in 1usize..50,
    ) {
        let (weights, importance): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
        let chosen = thin_out(&weights, &importance, size);
        let shares = weights.iter().zip(&importance).map(|(r, s)| (r * s).min(1.0));
        let total: f64 = shares.clone().sum();
        let portion = total / size as f64;
        let count = chosen.iter().filter(|&&r| r > 0.0).count();
        prop_assert!(count <= size + 1);
        let mut ahead = 0.0;
        for (k, share) in shares.enumerate() {
            prop_assert!(chosen[k] == 0.0 || chosen[k] >= weights[k]);
            if share >= portion {
                prop_assert_eq!(chosen[k], weights[k]);
            }
            if weights[k] > 0.0 {
                ahead += share * (chosen[k] / weights[k] - 1.0);
            }
            prop_assert!(ahead.abs() <= 0.5 * portion + 1e-12 * total, "{ahead} of {portion}");
        }
    }
}

/// A row with an entry in a column in which no row of positive weight had one before.
#[test]
fn a_row_that_comes_alive_does_not_crowd_out_the_others() {
    let (mut weights, mut importance) = (vec![1.0; 1000], vec![0.01; 1000]);
    (weights[500], importance[500]) = (1.0, 1e9);
    let chosen = thin_out(&weights, &importance, 80);
    assert_eq!(chosen[500], 1.0);
    let others = chosen.iter().filter(|&&r| r > 0.0).count() - 1;
    assert!((70..=80).contains(&others), "{others}");
}

#[test]
fn a_sample_serves_on_while_it_takes_few_steps() {
    let mut sample = Sample::default();
    assert!(!sample.serves());
    assert_eq!(sample.max_steps(), MAX_STEPS);
    sample.has_taken(Some(FEW_STEPS));
    assert!(sample.serves());
    assert_eq!(sample.max_steps(), MAX_STEPS_OLD);
    for steps in [Some(FEW_STEPS + 1), None] {
        sample.has_taken(Some(1));
        sample.has_taken(steps);
        assert!(!sample.serves());
    }
}

#[test]
fn rows_without_weight_are_not_chosen() {
    let chosen = thin_out(&[0.0, 1.0, 0.0, 3.0], &[1.0, 1.0, 0.0, 0.0], 3);
    assert_eq!(chosen, [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(thin_out(&[0.0; 3], &[0.0; 3], 5), [0.0; 3]);
}
