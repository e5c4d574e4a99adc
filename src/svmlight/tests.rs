use proptest::prelude::*;

use super::*;

/// In so many bytes to a chunk that most texts have several, and most lines cross a border.
const CHUNK: u64 = 16;

fn parsed(text: &str) -> Result<Table<f64>, Error> {
    parse_in_chunks(CHUNK, text.as_bytes(), &ReadOptions::default())
}

#[test]
fn a_table_has_what_the_lines_say() {
    let table = parsed("# head\n1 2:0.5 5:-1e3 # tail 7:1\n\n -1.5\t1:+2 \r\n0\n").expect("valid");
    assert_eq!(table.targets, [1.0, -1.5, 0.0]);
    assert_eq!(table.values, [0.5, -1000.0, 2.0]);
    let (indptr, indices) = (vec![0, 2, 3, 3], vec![1, 4, 0]);
    assert_eq!(table.structure, Structure::Narrow { indptr, indices });
    assert_eq!(table.n_cols, 5);
}

#[test]
fn lines_of_any_length_are_found_once() {
    for length in 0..70 {
        let mut text = String::new();
        for row in 0..40 {
            text += &row.to_string();
            if row % 3 == 0 {
                text += " 1:2";
                text += &" ".repeat(length);
            }
            text.push('\n');
        }
        for text in [text.as_str(), text.trim_end()] {
            let table = parsed(text).expect("valid");
            assert_eq!(table.targets, (0..40).map(f64::from).collect::<Vec<_>>());
            assert_eq!(table.values.len(), 14);
        }
    }
}

#[test]
fn errors_name_line_and_column() {
    let cases = [
        (
            "abc 1:2\n",
            "1:1: found \"abc\", expected a number, the label of the row",
        ),
        (
            "1,2 1:2\n",
            "1:1: found \"1,2\", expected a single label (several are read with multilabel=True)",
        ),
        (
            "1\n\n1 1:2 abc\n",
            "3:7: found \"abc\", expected index:value",
        ),
        (
            "1 1:2 3\n",
            "1:7: found \"3\", expected a colon behind the index",
        ),
        (
            "1 1:x2\n",
            "1:5: found \"x2\", expected a number behind the colon",
        ),
        (
            "1 1:\n",
            "1:5: found nothing, expected a number behind the colon",
        ),
        (
            "1 1:1_0\n",
            "1:5: found \"1_0\", expected a number behind the colon",
        ),
        (
            "1 2:1 2:1\n",
            "1:7: found \"2:1\", expected an index larger than the one before it",
        ),
        ("1 -2:1\n", "1:3: found \"-2:1\", expected index:value"),
        (
            "1 2:1 qid:3\n",
            "1:7: found \"qid:3\", expected index:value",
        ),
        (
            "1 99999999999999999999:1\n",
            "1:3: found \"99999999999999999999:1\", expected an index that fits into 63 bits",
        ),
    ];
    for (text, expected) in cases {
        let error = parsed(text).expect_err(text).to_string();
        assert_eq!(error, format!("rows:{expected}"));
    }
}

#[test]
fn wide_indices_are_read() {
    let table = parsed("1 1:1 5000000000:2\n").expect("valid");
    let (indptr, indices) = (vec![0, 2], vec![0, 4_999_999_999]);
    assert_eq!(table.structure, Structure::Wide { indptr, indices });
}

#[test]
fn a_file_that_is_missing_is_named() {
    let error = read::<f64>("/no/such/file", &ReadOptions::default()).expect_err("missing");
    assert!(error.to_string().starts_with("/no/such/file: "), "{error}");
}

/// Bytes `offset..offset + length` of a file are those of one reader of many.
#[test]
fn every_split_reads_each_row_once() {
    let text = "1 1:1\n2 2:1 # comment\n\n3 1:1 2:2 3:3\n4\n";
    let mut options = ReadOptions {
        n_cols: Some(4),
        ..ReadOptions::default()
    };
    for cut in 1..text.len() as u64 {
        (options.offset, options.length) = (0, Some(cut));
        let mut rows = parse_in_chunks::<f64>(CHUNK, text.as_bytes(), &options)
            .expect("valid")
            .targets;
        (options.offset, options.length) = (cut, None);
        rows.extend(
            parse_in_chunks::<f64>(CHUNK, text.as_bytes(), &options)
                .expect("valid")
                .targets,
        );
        assert_eq!(rows, [1.0, 2.0, 3.0, 4.0], "cut at {cut}");
    }
}

#[test]
fn rounding_to_single_precision_happens_once() {
    // The nearest f64 lies half-way between two f32, the number itself does not.
    let text = "1 1:1.000000059604644775390625000000000001 2:1e-45 3:0\n";
    let table =
        parse_in_chunks::<f32>(CHUNK, text.as_bytes(), &ReadOptions::default()).expect("valid");
    assert_eq!(table.values, [1.000_000_1, 1e-45, 0.0]);
}

#[test]
fn numbers_are_written_as_c_would() {
    let cases = [
        (1.0, "1"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (1e15, "1000000000000000"),
        (1e16, "1e+16"),
        (2.5e-7, "2.5e-07"),
        (-1.5e300, "-1.5e+300"),
    ];
    for (number, expected) in cases {
        let values = [number];
        let data = Data::csr(&[0, 1], &[0], &values, 1).expect("valid");
        let mut text = Vec::new();
        write(
            &mut text,
            &data,
            Labels::One(&[number]),
            &WriteOptions::default(),
        )
        .expect("valid");
        let expected = format!("{expected} 1:{expected}\n");
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        (-1000_i32..1000).prop_map(f64::from),
        -1.0..1.0,
    ]
}

proptest! {
    #[test]
    fn decimal_numbers_are_read_exactly(number in any_number(), digits in 0_usize..20) {
        for text in [format!("{number:?}"), format!("{number:e}"), format!("{number:.digits$e}")] {
            let exact: f64 = text.parse().expect("a number");
            let found = parsed(&format!("{text}\n")).expect("valid").targets[0];
            prop_assert_eq!(found.to_bits(), exact.to_bits(), "{}", text);
            let line = format!("1 1:{text}\n");
            let found = parse_in_chunks::<f32>(CHUNK, line.as_bytes(), &ReadOptions::default());
            let exact: f32 = text.parse().expect("a number");
            prop_assert_eq!(found.expect("valid").values[0].to_bits(), exact.to_bits(), "{}", text);
        }
    }

    #[test]
    fn what_is_written_is_read(
        rows in prop::collection::vec(prop::collection::btree_map(0_i32..40, any_number(), 0..9), 1..20),
        is_zero_based: bool,
    ) {
        let finite = |x: f64| if x.is_finite() { x } else { 0.5 };
        let mut indptr = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for row in &rows {
            indices.extend(row.keys().copied());
            values.extend(row.values().map(|&x| finite(x)));
            indptr.push(i32::try_from(indices.len()).expect("a few"));
        }
        let targets: Vec<f64> = (0..rows.len()).map(|i| i as f64 / 3.0).collect();
        let data = Data::csr(&indptr, &indices, &values, 40).expect("valid");
        let options = WriteOptions { zero_based: is_zero_based, ..WriteOptions::default() };
        let mut text = Vec::new();
        write(&mut text, &data, Labels::One(&targets), &options).expect("written");
        let numbering = if is_zero_based { Numbering::Zero } else { Numbering::One };
        let options = ReadOptions { numbering, n_cols: Some(40), ..ReadOptions::default() };
        let table = parse_in_chunks::<f64>(CHUNK, &text, &options).expect("valid");
        prop_assert_eq!(table.structure, Structure::Narrow { indptr, indices });
        prop_assert_eq!(table.values, values);
        prop_assert_eq!(table.targets, targets);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "([0-9:\\.e+\\-, \t\n#qidna]|1:|\n1 |qid:){0,80}",
        multilabel: bool,
        query_ids: bool,
        n_threads in 1_usize..3,
    ) {
        let options = ReadOptions { multilabel, query_ids, n_threads, ..ReadOptions::default() };
        match parse_in_chunks::<f64>(CHUNK, text.as_bytes(), &options) {
            Ok(table) => {
                if table.n_rows() > 0 {
                    prop_assert_eq!(table.data().expect("valid").storage().blocks().n_rows(), table.n_rows());
                }
            }
            Err(error) => prop_assert!(error.to_string().contains(", expected "), "{}", error),
        }
    }
}
