use super::*;
use proptest::prelude::*;

/// Rows of `used` meaningful numbers, and their weights.
fn blocks() -> impl Strategy<Value = (usize, Vec<Vec<f64>>, Vec<f64>)> {
    (1usize..30, 0usize..20).prop_flat_map(|(used, n)| {
        let row = prop::collection::vec(-10.0..10.0f64, used);
        let weights = prop::collection::vec(-2.0..2.0f64, n);
        (Just(used), prop::collection::vec(row, n), weights)
    })
}

proptest! {
    #[test]
    fn products_agree_with_the_naive((used, rows, weights) in blocks()) {
        let width = used.next_multiple_of(LANES);
        let mut padded = Vec::new();
        for row in &rows {
            padded.extend(row);
            padded.resize(padded.len().next_multiple_of(LANES), 0.0);
        }
        let block = Block { rows: &padded, width, used };
        // Row r has an entry in the columns 0 to r % 3, except the first row.
        let (mut entries, mut ends) = (Vec::new(), Vec::new());
        for r in 0..rows.len() {
            entries.extend((0..r % 3).map(|column| (column as u32, 0.5 - r as f64)));
            ends.push(entries.len());
        }
        for level in Level::available() {
            let mut out = vec![1.0; width * width];
            add_products(level, block, &weights, &mut out);
            let mut lines = vec![1.0; 3 * width];
            add_mixed(level, block, &entries, &ends, &mut lines);
            for j in 0..used {
                for l in 0..=j {
                    let terms = rows.iter().zip(&weights).map(|(row, h)| row[j] * (h * row[l]));
                    prop_assert_eq!(out[j * width + l], 1.0 + terms.fold(0.0, |sum, t| sum + t));
                }
                for column in 0..3 {
                    let own = rows.iter().enumerate().filter(|(r, _)| column < r % 3);
                    let naive = own.fold(1.0, |sum, (r, row)| sum + (0.5 - r as f64) * row[j]);
                    prop_assert_eq!(lines[column * width + j], naive);
                }
            }
        }
    }
}
