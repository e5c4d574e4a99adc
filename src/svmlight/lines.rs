//! One chunk of lines, parsed into the room made for it.

use super::number::{self, Value};
use super::{Numbering, ReadOptions};
use crate::memory;

/// A type for column indices and row pointers.
pub(crate) trait Column: Copy + Default + Send + Sync {
    /// The largest index that may be in a file.
    const MOST: i64;
    fn of(number: i64) -> Self;
    fn number(self) -> i64;
}

// One less than the type holds, so that the number of columns fits as well.
impl Column for i32 {
    const MOST: i64 = i32::MAX as i64 - 1;

    #[inline(always)]
    fn of(number: i64) -> Self {
        number as Self
    }

    #[inline(always)]
    fn number(self) -> i64 {
        self.into()
    }
}

impl Column for i64 {
    const MOST: i64 = i64::MAX - 1;

    #[inline(always)]
    fn of(number: i64) -> Self {
        number
    }

    #[inline(always)]
    fn number(self) -> i64 {
        self
    }
}

/// Where the contents of a chunk go.
pub(crate) struct Room<'a, F, I> {
    pub(crate) values: &'a mut [F],
    pub(crate) indices: &'a mut [I],
    /// How many entries of the chunk there are up to the end of each row.
    pub(crate) ends: &'a mut [I],
    /// Empty if rows have several labels.
    pub(crate) targets: &'a mut [f64],
}

/// What a chunk was found to hold.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) n_rows: usize,
    pub(super) n_entries: usize,
    /// The smallest and the largest index as written.
    pub(super) span: Option<(i64, i64)>,
    /// The labels of all rows, and how many there are up to the end of each row.
    pub(super) labels: Vec<f64>,
    pub(super) label_ends: Vec<usize>,
    pub(super) query_ids: Vec<i64>,
    /// Where the first row without a query id begins.
    pub(super) without_query: Option<usize>,
    /// Where the first row with one begins.
    pub(super) with_query: Option<usize>,
}

/// Why a chunk cannot be read.
#[derive(Debug)]
pub(super) enum Failure {
    /// At this byte, this was expected.
    Text(usize, &'static str),
    /// An index needs 64 bits.
    Narrow,
    /// There is more text than when it was counted.
    Changed,
}

const LABEL: &str = "a number, the label of the row";
const LABEL_ONE: &str = "a single label (several are read with multilabel=True)";
const QUERY: &str = "qid: and an integer";
const ENTRY: &str = "index:value";
const COLON: &str = "a colon behind the index";
const VALUE: &str = "a number behind the colon";
const INDEX: &str = "an index that fits into 63 bits";
const FROM_ONE: &str = "indices from 1, as zero_based=False says";
const SORTED: &str = "an index larger than the one before it";

/// Parses lines into `room`.
pub(super) fn parse<F: Value, I: Column>(
    text: &[u8],
    options: &ReadOptions,
    room: Room<'_, F, I>,
) -> Result<Contents, Failure> {
    let mut contents = Contents::default();
    let shift = i64::from(options.numbering != Numbering::Zero);
    let least = i64::from(options.numbering == Numbering::One);
    let (mut smallest, mut largest) = (i64::MAX, -1);
    let Room {
        values,
        indices,
        ends,
        targets,
    } = room;
    let mut n_entries = 0;
    let mut at = 0;
    while at < text.len() {
        at = skip_blanks(text, at);
        if is_line_end(text, at) {
            at = next_line(text, at);
            continue;
        }
        let begin = at;
        let n_rows = contents.n_rows;
        if options.multilabel {
            at = labels(text, at, &mut contents)?;
        } else {
            let label = value::<f64>(text, at).ok_or_else(|| {
                let expected = if token(text, at).contains(&b',') {
                    LABEL_ONE
                } else {
                    LABEL
                };
                Failure::Text(at, expected)
            })?;
            *targets.get_mut(n_rows).ok_or(Failure::Changed)? = label.0;
            at = skip_blanks(text, label.1);
        }
        if text.get(at) == Some(&b'q') {
            at = query(text, at, begin, options.query_ids, &mut contents)?;
        } else if contents.without_query.is_none() {
            contents.without_query = Some(begin);
        }
        let mut last = -1;
        while !is_line_end(text, at) {
            let start = at;
            let Some((index, colon)) = index(text, at)? else {
                return Err(Failure::Text(start, ENTRY));
            };
            if text.get(colon) != Some(&b':') {
                return Err(Failure::Text(start, COLON));
            }
            if index <= last {
                return Err(Failure::Text(start, SORTED));
            }
            if index < least {
                return Err(Failure::Text(start, FROM_ONE));
            }
            if last < 0 && index < smallest {
                smallest = index;
            }
            last = index;
            let number = value::<F>(text, colon + 1);
            let (number, end) = number.ok_or(Failure::Text(colon + 1, VALUE))?;
            let (Some(to), Some(column)) = (values.get_mut(n_entries), indices.get_mut(n_entries))
            else {
                return Err(Failure::Changed);
            };
            *to = number;
            *column = I::of(index - shift);
            n_entries += 1;
            at = skip_blanks(text, end);
        }
        if last > I::MOST {
            return Err(Failure::Narrow);
        }
        largest = largest.max(last);
        *ends.get_mut(n_rows).ok_or(Failure::Changed)? = I::of(n_entries.cast_signed() as i64);
        contents.n_rows += 1;
        at = next_line(text, at);
    }
    contents.n_entries = n_entries;
    contents.span = (n_entries > 0).then_some((smallest, largest));
    Ok(contents)
}

#[inline(always)]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

#[inline(always)]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).copied().is_some_and(is_blank) {
        at += 1;
    }
    at
}

/// Whether a line, or what is not a comment of it, ends here.
#[inline(always)]
fn is_line_end(text: &[u8], at: usize) -> bool {
    matches!(text.get(at), None | Some(b'\n' | b'#'))
}

/// Whether a token ends here.
#[inline(always)]
fn is_token_end(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        None => true,
        Some(&byte) => is_blank(byte) || matches!(byte, b'\n' | b'#'),
    }
}

fn next_line(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let length = rest.iter().position(|&byte| byte == b'\n');
    at + length.map_or(rest.len(), |length| length + 1)
}

/// What is between here and the next blank, comment or end of line.
pub(super) fn token(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    let length = (at..text.len()).position(|end| is_token_end(text, end));
    &rest[..length.unwrap_or(rest.len())]
}

/// The number that the token from here on writes, and where it ends.
#[inline(always)]
fn value<F: Value>(text: &[u8], at: usize) -> Option<(F, usize)> {
    match number::simple(text, at) {
        Some((number, end)) if is_token_end(text, end) => {
            Some((F::nearest(number, &text[at..end]), end))
        }
        _ => any_value(token(text, at)).map(|(number, length)| (number, at + length)),
    }
}

#[cold]
#[inline(never)]
fn any_value<F: Value>(token: &[u8]) -> Option<(F, usize)> {
    let number = F::parse(std::str::from_utf8(token).ok()?)?;
    Some((number, token.len()))
}

/// The index that begins here, and where it ends.
#[inline(always)]
fn index(text: &[u8], from: usize) -> Result<Option<(i64, usize)>, Failure> {
    let mut at = from;
    let mut number = 0_u64;
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    if at == from {
        return Ok(None);
    }
    // Eighteen digits always fit.
    if at - from > 18 {
        return long_index(text, from, at).map(Some);
    }
    Ok(Some((number.cast_signed(), at)))
}

#[cold]
fn long_index(text: &[u8], from: usize, at: usize) -> Result<(i64, usize), Failure> {
    let digits = std::str::from_utf8(&text[from..at]).unwrap_or_default();
    match digits.parse() {
        Ok(number) if number <= i64::MOST => Ok((number, at)),
        _ => Err(Failure::Text(from, INDEX)),
    }
}

/// Reads labels, separated by commas, unless what is here is an entry or a query id.
fn labels(text: &[u8], at: usize, contents: &mut Contents) -> Result<usize, Failure> {
    let found = token(text, at);
    let mut end = at;
    if !found.contains(&b':') {
        let first = contents.labels.len();
        for label in found.split(|&byte| byte == b',') {
            let number = any_value(label).ok_or(Failure::Text(end, LABEL))?.0;
            memory::push(&mut contents.labels, number);
            end += label.len() + 1;
        }
        contents.labels[first..].sort_by(f64::total_cmp);
        end = at + found.len();
    }
    let n_labels = contents.labels.len();
    memory::push(&mut contents.label_ends, n_labels);
    Ok(skip_blanks(text, end))
}

/// Reads a query id, if that is what is here.
fn query(
    text: &[u8],
    at: usize,
    row: usize,
    wanted: bool,
    contents: &mut Contents,
) -> Result<usize, Failure> {
    let found = token(text, at);
    let Some(number) = found.strip_prefix(b"qid:") else {
        return Err(Failure::Text(at, QUERY));
    };
    contents.with_query.get_or_insert(row);
    if wanted {
        let number = std::str::from_utf8(number)
            .ok()
            .and_then(|id| id.parse().ok());
        memory::push(
            &mut contents.query_ids,
            number.ok_or(Failure::Text(at, QUERY))?,
        );
    }
    Ok(skip_blanks(text, at + found.len()))
}
