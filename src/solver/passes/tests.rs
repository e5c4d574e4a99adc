use super::*;
use crate::order::Sampling;

/// The rows of the next pass, which is done in blocks of 3. The rows below `moving` change, each
/// with this gain.
fn pass(passes: &mut Passes, moving: u32, gain: f64) -> Vec<u32> {
    let mut rows = Vec::new();
    passes.prepare(false);
    loop {
        let (visits, moved) = passes.next(3);
        rows.extend_from_slice(visits);
        if let Some(moved) = moved {
            for &i in visits.iter().filter(|&&i| i < moving) {
                moved.changed(0, i as usize, 0.0, gain);
            }
        }
        if passes.is_over() {
            rows.sort_unstable();
            return rows;
        }
    }
}

fn passes(sampling: Sampling, short: bool) -> Passes {
    Passes::new(Order::new(sampling, 1, (0..10).collect()), short)
}

#[test]
fn short_passes_visit_what_moved_until_a_full_pass_is_due() {
    let mut passes = passes(Sampling::Permutation, true);
    let all: Vec<u32> = (0..10).collect();
    assert_eq!(pass(&mut passes, 9, 1.0), all);
    assert_eq!(pass(&mut passes, 9, 1.0), all[..9]);
    for _ in 0..3 {
        assert_eq!(pass(&mut passes, 9, 1.0), all[..9]);
    }
    // 9 + 9 + 9 + 9 visits: 9 more would be over 4 times 10.
    assert_eq!(pass(&mut passes, 2, 1.0), all);
    assert_eq!(pass(&mut passes, 0, 1.0), all[..2]);
    // Nothing has changed.
    assert_eq!(pass(&mut passes, 7, 1.0), all);
    passes.reset();
    assert_eq!(pass(&mut passes, 7, 1.0), all);
}

#[test]
fn short_passes_end_where_a_visit_gains_less_than_one_of_the_full_pass() {
    let mut passes = passes(Sampling::Permutation, true);
    let all: Vec<u32> = (0..10).collect();
    // The full pass gains 0.4 a visit, the short ones 0.56, 0.75, and 0.3, which is less.
    assert_eq!(pass(&mut passes, 8, 0.5), all);
    assert_eq!(pass(&mut passes, 5, 0.9), all[..8]);
    assert_eq!(pass(&mut passes, 5, 0.75), all[..5]);
    assert_eq!(pass(&mut passes, 5, 0.3), all[..5]);
    // Short passes are compared with the full pass before them, which is this one.
    assert_eq!(pass(&mut passes, 5, 0.2), all);
    assert_eq!(pass(&mut passes, 3, 0.2), all[..5]);
    assert_eq!(pass(&mut passes, 3, 0.05), all[..3]);
    assert_eq!(pass(&mut passes, 3, 0.05), all);
}

#[test]
fn all_passes_are_full_if_requested_or_if_rows_are_drawn() {
    let all: Vec<u32> = (0..10).collect();
    let mut plain = passes(Sampling::Cyclic, false);
    let mut drawn = passes(Sampling::Random, true);
    for _ in 0..3 {
        assert_eq!(pass(&mut plain, 5, 1.0), all);
        assert_eq!(pass(&mut drawn, 5, 1.0).len(), 10);
    }
    let mut first = passes(Sampling::Permutation, true);
    assert_eq!(pass(&mut first, 5, 1.0), all);
    first.prepare(true);
    assert_eq!(first.next(99).0.len(), 10);
}

#[test]
fn cyclic_short_passes_keep_the_order_of_the_data() {
    let mut passes = passes(Sampling::Cyclic, true);
    assert_eq!(pass(&mut passes, 4, 1.0).len(), 10);
    passes.prepare(false);
    assert_eq!(passes.next(99).0, [0, 1, 2, 3]);
}
