//! Allocation of memory whose size depends on the data. If there is not enough of it, that is an
//! error; the standard library's own functions would abort the process.
//!
//! These functions do not return the error but raise it ([`crate::error::raise`]): some two hundred
//! places allocate memory, deep inside the work on rows and columns. Solvers and predictions catch
//! and return it.

use std::collections::TryReserveError;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{self, Error};

/// Whether even a small allocation outside this module has failed: then every request here fails
/// too.
static IS_EXHAUSTED: AtomicBool = AtomicBool::new(false);

/// See [`IS_EXHAUSTED`].
#[cfg(feature = "python")]
pub(crate) fn set_exhausted(is_exhausted: bool) {
    IS_EXHAUSTED.store(is_exhausted, Ordering::Relaxed);
}

/// A vector of `len` zeros.
pub(crate) fn zeros(len: usize) -> Vec<f64> {
    filled(len, 0.0)
}

/// A vector of `len` times `value`.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Vec<T> {
    let mut vec = with_capacity(len);
    vec.resize(len, value);
    vec
}

/// An empty vector with room for `len` items.
pub(crate) fn with_capacity<T>(len: usize) -> Vec<T> {
    let mut vec = Vec::new();
    check_reserved::<T>(len, vec.try_reserve_exact(len));
    vec
}

/// Appends an item.
pub(crate) fn push<T>(vec: &mut Vec<T>, item: T) {
    check_reserved::<T>(vec.len() + 1, vec.try_reserve(1));
    vec.push(item);
}

/// Appends items.
pub(crate) fn extend<T>(vec: &mut Vec<T>, items: impl IntoIterator<Item = T>) {
    let items = items.into_iter();
    match items.size_hint() {
        (least, Some(most)) if least == most => {
            check_reserved::<T>(vec.len() + least, vec.try_reserve(least));
            vec.extend(items);
        }
        _ => items.for_each(|item| push(vec, item)),
    }
}

/// Changes the length of a vector to `len`; new items have this value.
pub(crate) fn resize<T: Clone>(vec: &mut Vec<T>, len: usize, value: T) {
    let more = len.saturating_sub(vec.len());
    check_reserved::<T>(len, vec.try_reserve_exact(more));
    vec.resize(len, value);
}

/// Overwrites a vector with a copy of a slice, reusing its memory if that is large enough.
pub(crate) fn assign<T: Clone>(vec: &mut Vec<T>, items: &[T]) {
    vec.clear();
    extend(vec, items.iter().cloned());
}

/// Raises the error if this many bytes cannot be allocated right now. For calls into libraries that
/// would abort the process.
pub(crate) fn check_available(bytes: usize) {
    drop(std::hint::black_box(with_capacity::<u8>(bytes)));
}

/// `collect` into a vector, by another name.
pub(crate) trait IntoVec: Iterator + Sized {
    /// Collects the items.
    fn into_vec(self) -> Vec<Self::Item> {
        let mut vec = Vec::new();
        extend(&mut vec, self);
        vec
    }
}

impl<I: Iterator> IntoVec for I {}

/// `to_vec` and `clone`, by another name.
pub(crate) trait Duplicate<T> {
    /// A copy.
    fn duplicate(&self) -> Vec<T>;
}

impl<T: Clone> Duplicate<T> for [T] {
    fn duplicate(&self) -> Vec<T> {
        self.iter().cloned().into_vec()
    }
}

fn check_reserved<T>(len: usize, answer: Result<(), TryReserveError>) {
    if answer.is_err() || IS_EXHAUSTED.load(Ordering::Relaxed) {
        let bytes = len.saturating_mul(size_of::<T>());
        error::raise(Error::Memory { bytes });
    }
}

#[cfg(test)]
mod tests;
