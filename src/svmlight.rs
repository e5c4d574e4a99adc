//! Files in the svmlight (libsvm) format, read and written in parallel.
//!
//! A line is a row: its label, perhaps `qid:` and the number of a query, and `index:value` for each
//! entry, with indices in increasing order. What follows a `#` is a comment.
//!
//! ```
//! use sdca_rs::prelude::*;
//! use sdca_rs::svmlight::{self, ReadOptions};
//!
//! let text = b"-1 1:0.5 3:2\n+1 2:1 # a comment\n-1 1:1 2:-1\n";
//! let table = svmlight::parse::<f64>("rows", text, &ReadOptions::default())?;
//! assert_eq!((table.n_rows(), table.n_cols), (3, 3));
//! assert_eq!(table.targets, [-1.0, 1.0, -1.0]);
//!
//! let problem = Problem::builder(table.data()?, &table.targets, Hinge).build()?;
//! assert!(Sdca::default().fit(&problem)?.certificate.gap <= 1e-3);
//!
//! let error = svmlight::parse::<f64>("rows", b"1 2:0.5\n1 2=1\n", &ReadOptions::default());
//! assert_eq!(
//!     error.expect_err("an entry has a colon").to_string(),
//!     "rows:2:3: found \"2=1\", expected a colon behind the index"
//! );
//! # Ok::<(), Error>(())
//! ```
//!
//! Numbers are read exactly: the result is the one nearest to the text. Those that [`write()`] writes
//! come back with the same bits.
//!
//! A file is gone through twice, in chunks that stay in the cache of a core: the lines and colons are
//! counted first, so that the arrays can have their final size before anything is parsed. Besides
//! them, only a few chunks are in memory.

mod lines;
mod number;
mod output;
mod source;

use std::ops::{ControlFlow, Range};
use std::path::Path;

use crate::data::Data;
use crate::error::{self, Error};
use crate::memory;
use crate::threads::ThreadPool;
pub(crate) use lines::{Column, Room};
use lines::{Contents, Failure};
pub use number::Value;
#[cfg(feature = "python")]
pub(crate) use output::Writer;
pub use output::{Labels, WriteOptions, write};
pub(crate) use source::Source;

/// What the column index 1 of a file means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbering {
    /// The first column, unless there is an index 0 in the file.
    #[default]
    Auto,
    /// The second column.
    Zero,
    /// The first column; an index 0 is an error.
    One,
}

/// How a file is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// What column indices mean.
    pub numbering: Numbering,
    /// The number of columns; `None` takes as many as occur.
    pub n_cols: Option<u64>,
    /// Whether a row may have any number of labels, separated by commas.
    pub multilabel: bool,
    /// Whether to read query ids; they are skipped otherwise.
    pub query_ids: bool,
    /// Unless it is 0, lines that begin at or before this byte are left out.
    pub offset: u64,
    /// Lines that begin more than so many bytes behind `offset` are left out.
    pub length: Option<u64>,
    /// The number of threads; 0 is one for each processor. The result does not depend on it.
    pub n_threads: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            numbering: Numbering::Auto,
            n_cols: None,
            multilabel: false,
            query_ids: false,
            offset: 0,
            length: None,
            n_threads: 0,
        }
    }
}

/// Row pointers and column indices, in 32 bits if those suffice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Structure {
    /// In 32 bits.
    Narrow {
        /// Where each row begins, and where the last one ends.
        indptr: Vec<i32>,
        /// The column of each entry.
        indices: Vec<i32>,
    },
    /// In 64 bits.
    Wide {
        /// Where each row begins, and where the last one ends.
        indptr: Vec<i64>,
        /// The column of each entry.
        indices: Vec<i64>,
    },
}

/// The contents of a file: a sparse matrix in compressed rows, and the labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<F> {
    /// The value of each entry.
    pub values: Vec<F>,
    /// Where the entries are.
    pub structure: Structure,
    /// The number of columns.
    pub n_cols: usize,
    /// The label of each row; with [`ReadOptions::multilabel`], those of all rows.
    pub targets: Vec<f64>,
    /// With [`ReadOptions::multilabel`], the number of labels up to the end of each row.
    pub label_ends: Vec<usize>,
    /// The query of each row, if the file has them and they were asked for.
    pub query_ids: Vec<i64>,
}

impl<F: Value> Table<F> {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        match &self.structure {
            Structure::Narrow { indptr, .. } => indptr.len() - 1,
            Structure::Wide { indptr, .. } => indptr.len() - 1,
        }
    }

    /// The rows, for a [`Problem`](crate::problem::Problem) or for predictions.
    pub fn data(&self) -> Result<Data<'_>, Error> {
        match &self.structure {
            Structure::Narrow { indptr, indices } => {
                Data::csr(indptr, indices, &self.values, self.n_cols)
            }
            Structure::Wide { indptr, indices } => {
                Data::csr(indptr, indices, &self.values, self.n_cols)
            }
        }
    }
}

/// Reads a file. It is not decompressed.
///
/// ```
/// use sdca_rs::svmlight::{self, Labels, ReadOptions, WriteOptions};
/// # let path = std::env::temp_dir().join(format!("sdca-rs-{}.svm", std::process::id()));
///
/// let rows = sdca_rs::data::Data::dense(&[[0.5, 0.0], [0.1, 2.0]])?;
/// let mut file = std::fs::File::create(&path).expect("a writable folder");
/// svmlight::write(&mut file, &rows, Labels::One(&[1.0, -1.0]), &WriteOptions::default())?;
/// assert_eq!(std::fs::read_to_string(&path).expect("text"), "1 1:0.5\n-1 1:0.1 2:2\n");
///
/// let table = svmlight::read::<f64>(&path, &ReadOptions::default())?;
/// assert_eq!(table.values, [0.5, 0.1, 2.0]);
/// # std::fs::remove_file(path).expect("the file is ours");
/// # Ok::<(), sdca_rs::Error>(())
/// ```
pub fn read<F: Value>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Table<F>, Error> {
    let path = path.as_ref();
    let name = path.display().to_string();
    error::catch(|| table(&Source::file(&name, path)?, options))
}

/// As [`parse`], with so many bytes in a chunk. For tests.
#[doc(hidden)]
pub fn parse_in_chunks<F: Value>(
    size: u64,
    text: &[u8],
    options: &ReadOptions,
) -> Result<Table<F>, Error> {
    error::catch(|| table(&Source::bytes("rows", text).in_chunks(size), options))
}

/// Reads text in memory, which messages call `name`.
pub fn parse<F: Value>(name: &str, text: &[u8], options: &ReadOptions) -> Result<Table<F>, Error> {
    error::catch(|| table(&Source::bytes(name, text), options))
}

fn table<F: Value>(source: &Source<'_>, options: &ReadOptions) -> Result<Table<F>, Error> {
    let mut go_on = || ControlFlow::Continue(());
    read_table(source, options, &mut go_on).map(|(table, _)| table)
}

/// Also says whether the index 1 was taken for the first column.
pub(crate) fn read_table<F: Value>(
    source: &Source<'_>,
    options: &ReadOptions,
    go_on: GoOn<'_>,
) -> Result<(Table<F>, bool), Error> {
    let plan = Plan::new(source, options, go_on)?;
    let mut values = memory::filled(plan.n_entries, F::default());
    let mut targets = memory::zeros(plan.n_targets());
    if !plan.is_wide() {
        let (found, indptr, indices) = arrays::<F, i32>(&plan, &mut values, &mut targets, go_on)?;
        if let Some(summary) = found {
            let structure = Structure::Narrow { indptr, indices };
            return Ok(summary.table(values, structure, targets));
        }
    }
    let (found, indptr, indices) = arrays::<F, i64>(&plan, &mut values, &mut targets, go_on)?;
    let summary = found.expect("every index that is accepted fits into 64 bits");
    Ok(summary.table(values, Structure::Wide { indptr, indices }, targets))
}

type Arrays<I> = (Option<Summary>, Vec<I>, Vec<I>);

fn arrays<F: Value, I: Column>(
    plan: &Plan<'_>,
    values: &mut Vec<F>,
    targets: &mut Vec<f64>,
    go_on: GoOn<'_>,
) -> Result<Arrays<I>, Error> {
    let mut indptr = memory::filled(plan.n_rows + 1, I::default());
    let mut indices = memory::filled(plan.n_entries, I::default());
    let room = Room {
        values,
        indices: &mut indices,
        ends: &mut indptr,
        targets,
    };
    let found = plan.fill(room, go_on)?;
    if let Some(summary) = &found {
        values.truncate(summary.n_entries);
        indices.truncate(summary.n_entries);
        indptr.truncate(summary.n_rows + 1);
        targets.truncate(summary.n_rows);
    }
    Ok((found, indptr, indices))
}

/// Asked now and then whether to go on.
pub(crate) type GoOn<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Chunks between two such questions.
const GROUP: usize = 256;

/// The lines of a source, counted.
pub(crate) struct Plan<'a> {
    source: &'a Source<'a>,
    options: &'a ReadOptions,
    pool: ThreadPool,
    chunks: Vec<Chunk>,
    /// No fewer than there are: comments may hold colons, and lines may be empty.
    pub(crate) n_rows: usize,
    pub(crate) n_entries: usize,
}

/// What a source was found to hold, besides the arrays.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) n_rows: usize,
    pub(crate) n_entries: usize,
    pub(crate) n_cols: usize,
    /// Whether the index 1 was taken for the first column.
    pub(crate) from_one: bool,
    pub(crate) labels: Vec<f64>,
    pub(crate) label_ends: Vec<usize>,
    pub(crate) query_ids: Vec<i64>,
}

impl Summary {
    fn table<F>(self, values: Vec<F>, structure: Structure, targets: Vec<f64>) -> (Table<F>, bool) {
        let table = Table {
            values,
            structure,
            n_cols: self.n_cols,
            targets: if self.label_ends.is_empty() {
                targets
            } else {
                self.labels
            },
            label_ends: self.label_ends,
            query_ids: self.query_ids,
        };
        (table, self.from_one)
    }
}

/// Lines that are read by one thread.
struct Chunk {
    /// The bytes where they may begin.
    starts: Range<u64>,
    /// No fewer rows and entries than they hold.
    n_rows: usize,
    n_entries: usize,
    /// Whether they could be read.
    read: Result<(), Error>,
}

/// A chunk to be parsed.
struct Job<'a, F, I> {
    starts: Range<u64>,
    /// Taken by the thread that parses it.
    room: Option<Room<'a, F, I>>,
    /// What was found.
    done: Result<Parsed, Error>,
}

/// What became of a chunk.
enum Parsed {
    /// It has not been parsed yet.
    Not,
    /// Its first line begins at this byte.
    Read(u64, Contents),
    Misread(Misread),
    Narrow,
    Changed,
}

/// Text that could not be understood.
struct Misread {
    position: u64,
    column: usize,
    found: String,
    expected: &'static str,
}

impl Misread {
    /// Of text that begins at the byte `first` of the source.
    fn new(text: &[u8], first: u64, at: usize, expected: &'static str) -> Self {
        let before = &text[..at.min(text.len())];
        let newline = before.iter().rposition(|&byte| byte == b'\n');
        Self {
            position: first + at as u64,
            column: at - newline.map_or(0, |newline| newline + 1) + 1,
            found: quoted(lines::token(text, at)),
            expected,
        }
    }
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        source: &'a Source<'a>,
        options: &'a ReadOptions,
        go_on: GoOn<'_>,
    ) -> Result<Self, Error> {
        let ranges = source.chunks(options.offset, options.length);
        let n_threads = match options.n_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n_threads => n_threads,
        };
        let pool = ThreadPool::new(n_threads.min(ranges.len()), true)?;
        let mut chunks = memory::with_capacity(ranges.len());
        chunks.extend(ranges.into_iter().map(|starts| Chunk {
            starts,
            n_rows: 0,
            n_entries: 0,
            read: Ok(()),
        }));
        for group in chunks.chunks_mut(GROUP) {
            pool.for_chunks(group, 1, &|_, chunks| {
                for chunk in chunks {
                    chunk.read = error::catch(|| {
                        source.with_lines(&chunk.starts, |text, _| {
                            let is_open = !text.is_empty() && !text.ends_with(b"\n");
                            chunk.n_rows = source::count(text, b'\n') + usize::from(is_open);
                            chunk.n_entries = source::count(text, b':');
                        })
                    });
                }
            });
            proceed(go_on)?;
        }
        for chunk in &mut chunks {
            std::mem::replace(&mut chunk.read, Ok(()))?;
        }
        Ok(Self {
            source,
            options,
            pool,
            n_rows: chunks.iter().map(|chunk| chunk.n_rows).sum(),
            n_entries: chunks.iter().map(|chunk| chunk.n_entries).sum(),
            chunks,
        })
    }

    /// Whether 64-bit indices are known to be needed.
    pub(crate) fn is_wide(&self) -> bool {
        let most = <i32 as Column>::MOST as u64;
        self.n_entries as u64 > most || self.options.n_cols.is_some_and(|n_cols| n_cols > most)
    }

    /// Rows that have a label of their own, of which there may be fewer.
    pub(crate) fn n_targets(&self) -> usize {
        if self.options.multilabel {
            0
        } else {
            self.n_rows
        }
    }

    /// Parses all lines into arrays of the sizes that were counted, with one row pointer more than
    /// rows. `None` if the indices do not fit into theirs.
    pub(crate) fn fill<F: Value, I: Column>(
        &self,
        room: Room<'_, F, I>,
        go_on: GoOn<'_>,
    ) -> Result<Option<Summary>, Error> {
        let Room {
            values,
            indices,
            ends: indptr,
            targets,
        } = room;
        let mut jobs = self.jobs(Room {
            values,
            indices,
            ends: &mut indptr[1..],
            targets,
        });
        for group in jobs.chunks_mut(GROUP) {
            self.pool.for_chunks(group, 1, &|_, jobs| {
                for Job { starts, room, done } in jobs {
                    let Some(room) = room.take() else { continue };
                    *done = error::catch(|| {
                        self.source.with_lines(starts, |text, first| {
                            match lines::parse(text, self.options, room) {
                                Ok(contents) => Parsed::Read(first, contents),
                                Err(Failure::Text(at, expected)) => {
                                    Parsed::Misread(Misread::new(text, first, at, expected))
                                }
                                Err(Failure::Narrow) => Parsed::Narrow,
                                Err(Failure::Changed) => Parsed::Changed,
                            }
                        })
                    });
                }
            });
            proceed(go_on)?;
        }
        let mut contents = memory::with_capacity(jobs.len());
        for job in jobs {
            match job.done? {
                Parsed::Read(first, found) => contents.push((first, found)),
                Parsed::Misread(error) => return Err(self.misread(error)),
                Parsed::Narrow => return Ok(None),
                Parsed::Not | Parsed::Changed => return Err(self.changed()),
            }
        }
        let room = Room {
            values,
            indices,
            ends: indptr,
            targets,
        };
        self.join(contents, room).map(Some)
    }

    /// The room of each chunk.
    fn jobs<'r, F, I>(&self, mut room: Room<'r, F, I>) -> Vec<Job<'r, F, I>> {
        let mut jobs = memory::with_capacity(self.chunks.len());
        for chunk in &self.chunks {
            let (n_rows, n_entries) = (chunk.n_rows, chunk.n_entries);
            let n_targets = if self.options.multilabel { 0 } else { n_rows };
            let (values, indices, ends, targets);
            (values, room.values) = room.values.split_at_mut(n_entries);
            (indices, room.indices) = room.indices.split_at_mut(n_entries);
            (ends, room.ends) = room.ends.split_at_mut(n_rows);
            (targets, room.targets) = room.targets.split_at_mut(n_targets);
            let part = Room {
                values,
                indices,
                ends,
                targets,
            };
            jobs.push(Job {
                starts: chunk.starts.clone(),
                room: Some(part),
                done: Ok(Parsed::Not),
            });
        }
        jobs
    }

    /// Closes the gaps that empty lines and comments have left, and makes of the ends of rows in
    /// their chunks those in the whole.
    fn join<F: Value, I: Column>(
        &self,
        contents: Vec<(u64, Contents)>,
        room: Room<'_, F, I>,
    ) -> Result<Summary, Error> {
        let mut summary = Summary {
            n_rows: 0,
            n_entries: 0,
            n_cols: 0,
            from_one: self.options.numbering == Numbering::One,
            labels: Vec::new(),
            label_ends: Vec::new(),
            query_ids: Vec::new(),
        };
        let (mut from_row, mut from_entry) = (0, 0);
        let mut span: Option<(i64, i64)> = None;
        let (mut with_query, mut without_query) = (None, None);
        for (chunk, (first, found)) in self.chunks.iter().zip(contents) {
            let (row, entry) = (summary.n_rows, summary.n_entries);
            if from_entry > entry {
                let entries = from_entry..from_entry + found.n_entries;
                room.values.copy_within(entries.clone(), entry);
                room.indices.copy_within(entries, entry);
            }
            for k in 0..found.n_rows {
                room.ends[1 + row + k] =
                    I::of(room.ends[1 + from_row + k].number() + entry.cast_signed() as i64);
            }
            if from_row > row && !self.options.multilabel {
                room.targets
                    .copy_within(from_row..from_row + found.n_rows, row);
            }
            let n_labels = summary.labels.len();
            memory::extend(&mut summary.labels, found.labels);
            let ends = found.label_ends.iter().map(|end| n_labels + end);
            memory::extend(&mut summary.label_ends, ends);
            memory::extend(&mut summary.query_ids, found.query_ids);
            with_query = with_query.or(found.with_query.map(|at| first + at as u64));
            without_query = without_query.or(found.without_query.map(|at| first + at as u64));
            span = match (span, found.span) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                (a, b) => a.or(b),
            };
            summary.n_rows += found.n_rows;
            summary.n_entries += found.n_entries;
            from_row += chunk.n_rows;
            from_entry += chunk.n_entries;
        }
        room.ends[0] = I::of(0);
        if let (true, Some(_), Some(at)) = (self.options.query_ids, with_query, without_query) {
            return Err(self.misread(Misread {
                position: at,
                column: 1,
                found: "a row without qid".to_owned(),
                expected: "a query id in every row or in none",
            }));
        }
        if self.options.numbering == Numbering::Auto {
            summary.from_one = span.is_some_and(|(smallest, _)| smallest > 0);
            if !summary.from_one {
                for index in &mut room.indices[..summary.n_entries] {
                    *index = I::of(index.number() + 1);
                }
            }
        }
        let largest = span.map_or(0, |(_, largest)| largest - i64::from(summary.from_one));
        let n_cols = largest as u64 + 1;
        let wanted = self.options.n_cols.unwrap_or(n_cols);
        if wanted < n_cols {
            return Err(Error::Parameter {
                name: "n_features",
                found: format!("{wanted} for a file of {n_cols} columns"),
                expected: "no fewer than there are",
            });
        }
        summary.n_cols = wanted as usize;
        Ok(summary)
    }

    fn changed(&self) -> Error {
        Error::File {
            file: self.source.name().to_owned(),
            reason: "found other contents than at first, expected a file that nobody changes"
                .to_owned(),
        }
    }

    fn misread(&self, error: Misread) -> Error {
        Error::Text {
            file: self.source.name().to_owned(),
            line: self.source.line_number(error.position),
            column: error.column as u64,
            found: error.found,
            expected: error.expected,
        }
    }
}

/// A token for a message: not too long, and without control characters.
fn quoted(token: &[u8]) -> String {
    const MOST: usize = 40;
    if token.is_empty() {
        return "nothing".to_owned();
    }
    let text = String::from_utf8_lossy(&token[..token.len().min(MOST)]);
    let dots = if token.len() > MOST { "..." } else { "" };
    format!("{text:?}{dots}")
}

fn proceed(go_on: GoOn<'_>) -> Result<(), Error> {
    if go_on().is_break() {
        return Err(Error::Interrupted);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
