//! Where text comes from: memory or a file, in chunks of whole lines that threads read side by side.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use crate::error::Error;
use crate::memory;

/// Bytes of a chunk: few enough to stay in a core's own cache between reading and parsing.
const CHUNK: u64 = 1 << 19;

/// A file is read on in such steps until the line ends.
const STEP: usize = 1 << 14;

/// Text, and what messages call it.
pub(crate) struct Source<'a> {
    name: &'a str,
    store: Store<'a>,
    len: u64,
    chunk_size: u64,
    /// Memory for chunks of a file, to be used again.
    buffers: Mutex<Vec<Vec<u8>>>,
}

enum Store<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
    File(File),
}

impl<'a> Source<'a> {
    /// Text in memory.
    pub(crate) fn bytes(name: &'a str, text: &'a [u8]) -> Self {
        Self::new(name, Store::Borrowed(text), text.len() as u64)
    }

    /// The text of a file. What is no regular file, such as a pipe, is read into memory.
    pub(crate) fn file(name: &'a str, path: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| unreadable(name, &error);
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() && can_read_anywhere() {
            return Ok(Self::new(name, Store::File(file), metadata.len()));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let len = text.len() as u64;
        Ok(Self::new(name, Store::Owned(text), len))
    }

    fn new(name: &'a str, store: Store<'a>, len: u64) -> Self {
        Self {
            name,
            store,
            len,
            chunk_size: CHUNK,
            buffers: Mutex::default(),
        }
    }

    /// The same with chunks of another size, so that tests have many.
    pub(crate) fn in_chunks(mut self, size: u64) -> Self {
        self.chunk_size = size;
        self
    }

    pub(crate) fn name(&self) -> &str {
        self.name
    }

    /// Splits the lines that begin in a range of the bytes: behind byte `offset`, unless that is 0,
    /// and not behind byte `offset + length`, if there is a length.
    pub(super) fn chunks(&self, offset: u64, length: Option<u64>) -> Vec<Range<u64>> {
        let begin = if offset == 0 {
            0
        } else {
            offset.saturating_add(1)
        };
        let end = length.map_or(self.len, |length| {
            offset
                .saturating_add(length)
                .saturating_add(1)
                .min(self.len)
        });
        let size = self.chunk_size;
        let mut chunks = memory::with_capacity((end.saturating_sub(begin) / size) as usize + 1);
        let mut from = begin;
        while from < end {
            let to = from.saturating_add(size).min(end);
            chunks.push(from..to);
            from = to;
        }
        chunks
    }

    /// Does work on the lines that begin in this range, and where the first of them begins.
    pub(super) fn with_lines<T>(
        &self,
        starts: &Range<u64>,
        work: impl FnOnce(&[u8], u64) -> T,
    ) -> Result<T, Error> {
        let text = match &self.store {
            Store::Borrowed(text) => text,
            Store::Owned(text) => text.as_slice(),
            Store::File(file) => return self.with_lines_of(file, starts, work),
        };
        let lines = lines_in(text, 0, starts).unwrap_or(text.len()..text.len());
        let first = lines.start as u64;
        Ok(work(&text[lines], first))
    }

    fn with_lines_of<T>(
        &self,
        file: &File,
        starts: &Range<u64>,
        work: impl FnOnce(&[u8], u64) -> T,
    ) -> Result<T, Error> {
        // The byte before tells whether a line begins at the first.
        let base = starts.start.saturating_sub(1);
        let mut buffer = self.take_buffer();
        let mut missing = (starts.end - base) as usize;
        let mut at_end = false;
        let lines = loop {
            let known = buffer.len();
            memory::resize(&mut buffer, known + missing, 0);
            let mut filled = known;
            while filled < buffer.len() && !at_end {
                let position = base + filled as u64;
                match read_at(file, &mut buffer[filled..], position) {
                    Ok(0) => at_end = true,
                    Ok(more) => filled += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(unreadable(self.name, &error)),
                }
            }
            buffer.truncate(filled);
            if base + filled as u64 >= self.len {
                at_end = true;
            }
            match lines_in(&buffer, base, starts) {
                Some(lines) if at_end || ends_line(&buffer[..lines.end]) => break lines,
                None => break filled..filled,
                // The rest of a long line: the buffer doubles, lest it be copied too often.
                Some(_) => missing = STEP.max(buffer.len()),
            }
        };
        let first = base + lines.start as u64;
        let done = work(&buffer[lines], first);
        self.give_back(buffer);
        Ok(done)
    }

    fn take_buffer(&self) -> Vec<u8> {
        let kept = self.buffers.lock().ok().and_then(|mut kept| kept.pop());
        let mut buffer = kept.unwrap_or_default();
        buffer.clear();
        buffer
    }

    fn give_back(&self, buffer: Vec<u8>) {
        if let Ok(mut kept) = self.buffers.lock() {
            kept.push(buffer);
        }
    }

    /// The number of the line, from 1, that begins at this byte.
    pub(super) fn line_number(&self, start: u64) -> u64 {
        let mut lines = 1;
        for chunk in self.chunks(0, Some(start)) {
            let counted = self.with_lines(&chunk, |text, first| {
                let until = start.saturating_sub(first).min(text.len() as u64) as usize;
                count(&text[..until], b'\n')
            });
            lines += counted.unwrap_or(0) as u64;
        }
        lines
    }
}

/// The part of `text` with the lines that begin in `starts`; `text` is at byte `base` of the whole.
/// `None` if no line begins there. If the last line does not end in `text`, neither does the part.
fn lines_in(text: &[u8], base: u64, starts: &Range<u64>) -> Option<Range<usize>> {
    let (from, to) = ((starts.start - base) as usize, (starts.end - base) as usize);
    // Not beyond: most chunks of a very long line have no part in it.
    let begin = line_start(&text[..to.min(text.len())], from)?;
    if begin >= to {
        return None;
    }
    let end = line_start(text, to).unwrap_or(text.len());
    Some(begin..end)
}

/// Where the first line begins that does not begin before `from`.
fn line_start(text: &[u8], from: usize) -> Option<usize> {
    if from == 0 {
        return Some(0);
    }
    let before = text.get(from - 1..)?;
    let newline = before.iter().position(|&byte| byte == b'\n')?;
    Some(from + newline)
}

fn ends_line(text: &[u8]) -> bool {
    text.last() == Some(&b'\n')
}

/// How often a byte occurs.
pub(super) fn count(text: &[u8], byte: u8) -> usize {
    // Counters of a byte each, as many as fit into a few vectors; none of them overflows.
    const LANES: usize = 64;
    let mut total = 0;
    for block in text.chunks(LANES * 255) {
        let mut counts = [0_u8; LANES];
        let lanes = block.chunks_exact(LANES);
        let rest = lanes.remainder();
        for lane in lanes {
            for (count, &found) in counts.iter_mut().zip(lane) {
                *count += u8::from(found == byte);
            }
        }
        total += counts
            .iter()
            .map(|&count| usize::from(count))
            .sum::<usize>();
        total += rest
            .iter()
            .map(|&found| usize::from(found == byte))
            .sum::<usize>();
    }
    total
}

fn unreadable(name: &str, error: &io::Error) -> Error {
    Error::File {
        file: name.to_owned(),
        reason: error.to_string(),
    }
}

const fn can_read_anywhere() -> bool {
    cfg!(any(unix, windows))
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, position)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, position)
}

#[cfg(not(any(unix, windows)))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
