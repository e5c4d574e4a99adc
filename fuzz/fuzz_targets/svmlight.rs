//! Text of any kind: either an error that names a place in it, or a table that is the same for any
//! chunks and threads, that agrees with a naive reader, and that comes back when it is written.

#![no_main]

use sdca_rs::Error;
use sdca_rs::data::Data;
use sdca_rs::svmlight::{
    self, Labels, Numbering, ReadOptions, Structure, Table, WriteOptions, parse_in_chunks,
};

use sdca_fuzz::bytes::Bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));

/// The first bytes are options, the others text.
fn run(data: &[u8]) {
    let (head, text) = data.split_at(data.len().min(6));
    let mut bytes = Bytes::new(head);
    let mut options = ReadOptions::default();
    options.numbering = match bytes.below(3) {
        0 => Numbering::Auto,
        1 => Numbering::Zero,
        _ => Numbering::One,
    };
    let flags = bytes.byte();
    options.multilabel = flags & 1 != 0;
    options.query_ids = flags & 2 != 0;
    options.n_threads = 1;
    let chunk = 1 + bytes.below(40) as u64;
    if flags & 4 != 0 {
        let cut = bytes.below(64) as u64;
        parts(text, options, cut, chunk);
        return;
    }
    let whole = svmlight::parse::<f64>("rows", text, &options);
    options.n_threads = 1 + usize::from(flags & 8 != 0);
    let found = parse_in_chunks::<f64>(chunk, text, &options);
    match (&whole, &found) {
        (Ok(whole), Ok(found)) => assert!(same(whole, found), "{whole:?} {found:?}"),
        (Err(whole), Err(found)) => assert_eq!(whole.to_string(), found.to_string()),
        _ => panic!("{whole:?} {found:?}"),
    }
    match whole {
        Ok(table) => {
            if !options.multilabel {
                let rows = naive(text).expect("a valid text");
                let smallest = rows
                    .iter()
                    .flat_map(|row| &row.1)
                    .map(|entry| entry.0)
                    .min();
                let from_one = match options.numbering {
                    Numbering::Zero => false,
                    Numbering::One => true,
                    Numbering::Auto => smallest.is_some_and(|index| index > 0),
                };
                assert_eq!(rows, rows_of(&table, from_one.into()));
                written(&table, options.query_ids);
            }
        }
        Err(Error::Text { line, column, .. }) => {
            let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
            let line = lines[line as usize - 1];
            assert!(column >= 1 && column as usize <= line.len() + 1);
        }
        Err(error) => panic!("{error}"),
    }
    // Single precision is refused for the same reasons.
    let single = parse_in_chunks::<f32>(chunk, text, &options).map(|_| ());
    let double = found.map(|_| ());
    assert_eq!(
        single.map_err(|e| e.to_string()),
        double.map_err(|e| e.to_string())
    );
}

/// Two parts of a text have each row once.
fn parts(text: &[u8], mut options: ReadOptions, cut: u64, chunk: u64) {
    options.query_ids = false;
    options.numbering = Numbering::Zero;
    let Ok(whole) = parse_in_chunks::<f64>(chunk, text, &options) else {
        return;
    };
    options.length = Some(cut);
    let first = parse_in_chunks::<f64>(chunk, text, &options).expect("a part of a valid text");
    (options.offset, options.length) = (cut, None);
    if cut == 0 {
        return;
    }
    let second = parse_in_chunks::<f64>(chunk, text, &options).expect("a part of a valid text");
    assert_eq!(first.n_rows() + second.n_rows(), whole.n_rows());
    let values: Vec<u64> = first
        .values
        .iter()
        .chain(&second.values)
        .map(|v| v.to_bits())
        .collect();
    assert_eq!(
        values,
        whole.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    );
}

/// Bits and structure: NaN is the same as NaN.
fn same(a: &Table<f64>, b: &Table<f64>) -> bool {
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    a.structure == b.structure
        && a.n_cols == b.n_cols
        && bits(&a.values) == bits(&b.values)
        && bits(&a.targets) == bits(&b.targets)
        && a.label_ends == b.label_ends
        && a.query_ids == b.query_ids
}

/// Label, and indices and values.
type Row = (u64, Vec<(i64, u64)>);

/// Reads a text that is known to be valid with the tools of the standard library.
fn naive(text: &[u8]) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.split(|&byte| byte == b'#').next()?;
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c);
        let mut tokens = line.split(blank).filter(|token| !token.is_empty());
        let Some(label) = tokens.next() else { continue };
        let number = |bytes: &[u8]| {
            Some(
                std::str::from_utf8(bytes)
                    .ok()?
                    .parse::<f64>()
                    .ok()?
                    .to_bits(),
            )
        };
        let mut entries = Vec::new();
        for token in tokens.filter(|token| !token.starts_with(b"qid:")) {
            let colon = token.iter().position(|&byte| byte == b':')?;
            let index = std::str::from_utf8(&token[..colon]).ok()?.parse().ok()?;
            entries.push((index, number(&token[colon + 1..])?));
        }
        rows.push((number(label)?, entries));
    }
    Some(rows)
}

/// The arrays of a table in 64 bits.
fn wide(structure: &Structure) -> (Vec<i64>, Vec<i64>) {
    match structure {
        Structure::Narrow { indptr, indices } => (
            indptr.iter().map(|&p| p.into()).collect(),
            indices.iter().map(|&j| j.into()).collect(),
        ),
        Structure::Wide { indptr, indices } => (indptr.clone(), indices.clone()),
    }
}

/// The rows of a table, with indices as in the text.
fn rows_of(table: &Table<f64>, shift: i64) -> Vec<Row> {
    let (indptr, indices) = wide(&table.structure);
    let row = |i: usize| {
        let range = indptr[i] as usize..indptr[i + 1] as usize;
        let entries = range.map(|k| (indices[k] + shift, table.values[k].to_bits()));
        (table.targets[i].to_bits(), entries.collect())
    };
    (0..table.n_rows()).map(row).collect()
}

/// What is written is read again.
fn written(table: &Table<f64>, query_ids: bool) {
    let (indptr, indices) = wide(&table.structure);
    if table.n_rows() == 0 || table.n_cols > 1000 {
        return;
    }
    let data = Data::csr(&indptr, &indices, &table.values, table.n_cols).expect("a valid matrix");
    let mut options = WriteOptions::default();
    options.zero_based = true;
    options.n_threads = 1;
    if !table.query_ids.is_empty() {
        options.query_ids = Some(&table.query_ids);
    }
    let mut text = Vec::new();
    svmlight::write(&mut text, &data, Labels::One(&table.targets), &options).expect("written");
    let mut options = ReadOptions::default();
    options.numbering = Numbering::Zero;
    options.n_cols = Some(table.n_cols as u64);
    options.query_ids = query_ids;
    let again = svmlight::parse::<f64>("written", &text, &options).expect("what was written");
    assert_eq!(wide(&again.structure), (indptr, indices));
    assert_eq!(again.query_ids, table.query_ids);
    // Not-a-number has no sign once it is written.
    let known = |a: &[f64], b: &[f64]| {
        a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
    };
    assert!(known(&again.values, &table.values) && known(&again.targets, &table.targets));
}
