//! Rows as text.

use std::io;
use std::ops::Range;

use super::number::{Value, write_int};
use crate::data::{Data, Storage, with_rows};
use crate::error::{self, Error};
use crate::memory;
use crate::rows::Rows;
use crate::threads::ThreadPool;

/// A thread formats so many rows at a time, or so many entries if that is less.
const ROWS: usize = 1 << 12;
const ENTRIES: usize = 1 << 16;

/// The labels of the rows.
#[derive(Debug, Clone, Copy)]
pub enum Labels<'a> {
    /// One number for each row.
    One(&'a [f64]),
    /// Any number of labels for each row.
    Several {
        /// The labels of all rows.
        labels: &'a [f64],
        /// How many labels there are up to the end of each row.
        ends: &'a [usize],
    },
}

/// How rows are written.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions<'a> {
    /// Whether the first column has index 0; it has index 1 otherwise.
    pub zero_based: bool,
    /// The query of each row.
    pub query_ids: Option<&'a [i64]>,
    /// The number of threads; 0 is one for each processor.
    pub n_threads: usize,
}

/// Writes rows and their labels; see [`read`](super::read) for an example.
///
/// Numbers are written as short as is possible without losing a bit. Of dense rows, zeros are left
/// out.
pub fn write(
    out: &mut impl io::Write,
    rows: &Data<'_>,
    labels: Labels<'_>,
    options: &WriteOptions<'_>,
) -> Result<(), Error> {
    error::catch(|| {
        let writer = Writer::new(rows.storage(), labels, options)?;
        let mut from = 0;
        while from < rows.n_rows() {
            let (texts, to) = writer.next(from);
            for text in texts? {
                out.write_all(&text).map_err(|error| Error::File {
                    file: "out".to_owned(),
                    reason: error.to_string(),
                })?;
            }
            from = to;
        }
        Ok(())
    })
}

/// What writes rows, some at a time.
pub(crate) struct Writer<'a> {
    storage: &'a Storage<'a>,
    labels: Labels<'a>,
    options: &'a WriteOptions<'a>,
    pool: ThreadPool,
    /// Rows of a part, and parts that are written at a time.
    size: usize,
    n_parts: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        storage: &'a Storage<'a>,
        labels: Labels<'a>,
        options: &'a WriteOptions<'a>,
    ) -> Result<Self, Error> {
        let (n_rows, n_entries) = with_rows!(storage, rows => (rows.n_rows(), rows.n_stored()));
        let length = |name, found, why| {
            if found == n_rows {
                return Ok(());
            }
            Err(Error::Length {
                name,
                found,
                expected: n_rows,
                why,
            })
        };
        match labels {
            Labels::One(targets) => length("y", targets.len(), "one for each row of X")?,
            Labels::Several { ends, .. } => length("y", ends.len(), "one for each row of X")?,
        }
        if let Some(ids) = options.query_ids {
            length("query_id", ids.len(), "one for each row of X")?;
        }
        let size = (ENTRIES * n_rows / n_entries.max(1)).clamp(1, ROWS);
        let n_threads = match options.n_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n_threads => n_threads,
        };
        Ok(Self {
            storage,
            labels,
            options,
            pool: ThreadPool::new(n_threads, n_rows > size)?,
            size,
            n_parts: 4 * n_threads,
        })
    }

    /// The text of the next rows from `from` on, and the row that follows.
    pub(crate) fn next(&self, from: usize) -> (Result<Vec<Vec<u8>>, Error>, usize) {
        let n_rows = with_rows!(self.storage, rows => rows.n_rows());
        let to = (from + self.size * self.n_parts).min(n_rows);
        let parts = (to - from).div_ceil(self.size);
        let texts = self.pool.map(0..parts, &|part| {
            let begin = from + part * self.size;
            let end = (begin + self.size).min(to);
            error::catch(|| Ok(with_rows!(self.storage, rows => self.text(rows, begin..end))))
        });
        (texts.into_iter().collect(), to)
    }

    fn text<R: Rows>(&self, rows: &R, range: Range<usize>) -> Vec<u8> {
        let mut text = Vec::new();
        let mut entries: Vec<(usize, f64)> = Vec::new();
        let first = i64::from(!self.options.zero_based);
        let is_single = matches!(
            self.storage,
            Storage::Dense32(_) | Storage::Csr32I32(_) | Storage::Csr32I64(_)
        );
        for i in range {
            let begin = text.len();
            self.write_labels(i, &mut text);
            if let Some(ids) = self.options.query_ids {
                text.extend_from_slice(b" qid:");
                write_int(ids[i], &mut text);
            }
            entries.clear();
            rows.visit(i, |j, x| {
                if R::IS_SPARSE || x != 0.0 {
                    memory::push(&mut entries, (j, x));
                }
            });
            if !entries.is_sorted_by(|a, b| a.0 < b.0) {
                entries.sort_by_key(|entry| entry.0);
                // What a matrix with a column twice means.
                entries.dedup_by(|next, kept| {
                    let is_same = next.0 == kept.0;
                    if is_same {
                        kept.1 += next.1;
                    }
                    is_same
                });
            }
            // A line without anything would be no row.
            if text.len() == begin && entries.is_empty() {
                entries.push((0, 0.0));
            }
            // As scikit-learn does, also where no entry follows.
            text.push(b' ');
            for (k, &(j, x)) in entries.iter().enumerate() {
                if k > 0 {
                    text.push(b' ');
                }
                write_int(j.cast_signed() as i64 + first, &mut text);
                text.push(b':');
                if is_single {
                    (x as f32).write(&mut text);
                } else {
                    x.write(&mut text);
                }
            }
            text.push(b'\n');
        }
        text
    }

    fn write_labels(&self, i: usize, text: &mut Vec<u8>) {
        match self.labels {
            Labels::One(targets) => targets[i].write(text),
            Labels::Several { labels, ends } => {
                let from = if i == 0 { 0 } else { ends[i - 1] };
                let of_row = labels.get(from..ends[i]).unwrap_or_default();
                for (k, label) in of_row.iter().enumerate() {
                    if k > 0 {
                        text.push(b',');
                    }
                    label.write(text);
                }
            }
        }
    }
}
