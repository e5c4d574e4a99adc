//! Sparse rows from three slices: words of short texts, each text a set of words.
//!
//! ```sh
//! cargo run --release --example sparse
//! ```
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;

use sdca_rs::prelude::*;

const TEXTS: [(&str, f64); 8] = [
    ("the soup was warm and the bread fresh", 1.0),
    ("fresh fish and a kind waiter", 1.0),
    ("warm bread kind people", 1.0),
    ("we come back for the fish", 1.0),
    ("the soup was cold", -1.0),
    ("cold fish and a rude waiter", -1.0),
    ("we waited an hour for stale bread", -1.0),
    ("rude people stale soup", -1.0),
];

/// Compressed rows: text `i` has the words `indices[indptr[i]..indptr[i + 1]]`.
#[derive(Default)]
struct Rows {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Rows {
    fn of<'t>(
        texts: impl Iterator<Item = &'t str>,
        mut number: impl FnMut(&'t str) -> Option<u32>,
    ) -> Self {
        let mut rows = Self::default();
        rows.indptr.push(0);
        for text in texts {
            let mut words: Vec<u32> = text.split(' ').filter_map(&mut number).collect();
            // A column may occur only once in a row.
            words.sort_unstable();
            words.dedup();
            rows.values.resize(rows.values.len() + words.len(), 1.0);
            rows.indices.extend(words);
            rows.indptr.push(rows.indices.len());
        }
        rows
    }

    fn data(&self, n_words: usize) -> Result<Data<'_>, Error> {
        Data::csr(&self.indptr, &self.indices, &self.values, n_words)
    }
}

fn main() -> Result<(), Error> {
    let mut words = BTreeMap::new();
    let rows = Rows::of(TEXTS.iter().map(|(text, _)| *text), |word| {
        let next = u32::try_from(words.len()).ok()?;
        Some(*words.entry(word).or_insert(next))
    });
    let y = TEXTS.map(|(_, label)| label);

    let problem = Problem::builder(rows.data(words.len())?, &y, Hinge).build()?;
    let fit = Sdca::default().fit(&problem)?;
    println!("{}", fit.certificate);
    println!(
        "{} of {} texts are support vectors",
        fit.certificate.support,
        TEXTS.len()
    );

    let mut by_weight: Vec<(f64, &str)> = words
        .iter()
        .map(|(word, &j)| (fit.coef[j as usize], *word))
        .collect();
    by_weight.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!(
        "worst and best word: {:.3?}, {:.3?}",
        by_weight[0],
        by_weight[by_weight.len() - 1]
    );

    // Words that were never seen are left out.
    let new = ["kind people and warm soup", "cold and stale"];
    let rows = Rows::of(new.into_iter(), |word| words.get(word).copied());
    println!("{:?}", fit.predict(&rows.data(words.len())?)?);
    Ok(())
}
