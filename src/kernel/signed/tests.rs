use super::*;

#[test]
fn the_same_numbers_or_negative_ones() {
    let found = Signed::signed(Borrowed::new(&[0, 7, u32::MAX]));
    assert_eq!(found.iter().collect::<Vec<i32>>(), [0, 7, -1]);
    let found = Signed::signed(Borrowed::new(&[3, usize::MAX]));
    assert_eq!(
        found.iter().map(Index::to_usize).collect::<Vec<_>>(),
        [3, usize::MAX]
    );
    let found = Signed::signed(Borrowed::new(&[-1_i64, 1 << 40]));
    assert_eq!(found.iter().collect::<Vec<_>>(), [-1, 1 << 40]);
}
