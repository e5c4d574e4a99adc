use super::*;

fn epochs(sampling: Sampling, seed: u64, count: usize) -> Vec<Vec<u32>> {
    let mut order = Order::new(sampling, seed, (10..40).collect());
    let next = |_| {
        order.next_epoch();
        order.visits().to_vec()
    };
    (0..count).map(next).collect()
}

#[test]
fn a_permutation_visits_each_row_once_and_differs_every_epoch() {
    let orders = epochs(Sampling::Permutation, 1, 3);
    assert!(orders[0] != orders[1] && orders[1] != orders[2]);
    for mut order in orders {
        order.sort_unstable();
        assert!(order.into_iter().eq(10..40));
    }
}

#[test]
fn random_draws_are_uniform_over_the_rows() {
    let mut counts = [0usize; 40];
    for i in epochs(Sampling::Random, 3, 2000).concat() {
        counts[i as usize] += 1;
    }
    assert!(counts[..10].iter().all(|&c| c == 0));
    // 60000 draws over 30 rows: 2000 each, standard deviation 44.
    assert!(
        counts[10..].iter().all(|&c| c.abs_diff(2000) < 220),
        "{counts:?}"
    );
}

#[test]
fn draws_are_uniform_subsets() {
    let mut order = Order::new(Sampling::Random, 9, (0..6).collect());
    let (mut pairs, mut drawn) = (std::collections::HashMap::new(), Vec::new());
    for _ in 0..15_000 {
        order.draw(2, &mut drawn);
        drawn.sort_unstable();
        *pairs.entry(drawn.clone()).or_insert(0usize) += 1;
    }
    // 15 pairs, 1000 each, standard deviation 31.
    assert_eq!(pairs.len(), 15);
    assert!(pairs.values().all(|c| c.abs_diff(1000) < 160), "{pairs:?}");
    order.draw(9, &mut drawn);
    drawn.sort_unstable();
    assert!(drawn.into_iter().eq(0..6));
}

#[test]
fn cyclic_is_the_order_of_the_data() {
    assert!(
        epochs(Sampling::Cyclic, 5, 2)
            .iter()
            .all(|o| o.iter().copied().eq(10..40))
    );
}

#[test]
fn the_seed_decides() {
    for sampling in [Sampling::Permutation, Sampling::Random] {
        assert_eq!(epochs(sampling, 7, 3), epochs(sampling, 7, 3));
        assert_ne!(epochs(sampling, 7, 3), epochs(sampling, 8, 3));
    }
}

#[test]
fn permutations_are_uniform() {
    let mut counts = std::collections::HashMap::new();
    let mut generator = Generator::new(11);
    for _ in 0..24_000 {
        let mut items = [0, 1, 2, 3];
        generator.shuffle(&mut items);
        *counts.entry(items).or_insert(0usize) += 1;
    }
    // 24 orders, 1000 each, standard deviation 31.
    assert_eq!(counts.len(), 24);
    assert!(
        counts.values().all(|c| c.abs_diff(1000) < 160),
        "{counts:?}"
    );
}
