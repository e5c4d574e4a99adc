//! The arithmetic on rows, and the only `unsafe` code of the core. (The Python bindings have some
//! more, and so has `reserve.rs`, the allocator of the Python extension, because the allocator
//! trait is unsafe.)
//!
//! Each kernel has a naive counterpart in the tests, and a property test compares the two.
//!
//! Sparse matrices come from numpy, and another thread may write to a numpy array while we read it.
//! So it is not enough to check an index once: it may change before it is used. The arrays are
//! therefore held as [`Borrowed`]. Their indices are read by relaxed atomic loads (plain moves on
//! every CPU we build for), so a concurrent write is not a data race, and every value read is
//! checked right where it is used. An index out of range is raised ([`error::catch`]), which costs
//! the loop nothing.
//!
//! The values of the rows (those of dense rows are plain slices), the targets and the weights are
//! read by plain loads: no index depends on them, and atomic loads would prevent the compiler from
//! vectorising (which costs 7 % of an epoch on text and 12 % on covtype). The caller promises not
//! to write to them meanwhile. Breaking that promise is undefined behaviour according to the
//! language. The compiled code then simply computes with whatever it reads, which gives wrong
//! numbers but no invalid memory access; this is, however, not guaranteed.

mod dense;
pub mod gram;
pub(crate) mod lanes;
mod narrow;
mod signed;
pub mod triangle;

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::error::{self, Error};

pub use dense::{Level, Vector, dense_axpy, dense_dot, dense_sq_norm};
pub use narrow::{NARROW, narrow_products, narrow_shifted, narrow_sum};
pub(crate) use signed::Signed;

/// A number type for stored rows. All arithmetic on it is done in `f64`.
pub trait Real: Element + Into<f64> + Vector {}
impl Real for f32 {}
impl Real for f64 {}

/// A number type for column indices and row pointers.
pub trait Index: Element {
    /// The number as an index; a negative number becomes one that is out of range.
    fn to_usize(self) -> usize;
    /// The number for an error message.
    fn to_i64(self) -> i64;
}

/// A primitive number whose arrays can be borrowed.
pub trait Element: Copy + Send + Sync + 'static {
    /// Reads the number at `at`; integers, which may be indices, by a relaxed atomic load.
    ///
    /// # Safety
    /// `at` must be aligned and point to memory that stays allocated during the call.
    unsafe fn load(at: *const Self) -> Self;
}

macro_rules! element {
    ($($number:ty as $atomic:ty: $from_bits:expr;)+) => {$(
        impl Element for $number {
            #[inline(always)]
            unsafe fn load(at: *const Self) -> Self {
                // SAFETY: the caller guarantees alignment and lifetime; the atomic type has the
                // same size and alignment as the number, and it is only used for loads.
                let atomic = unsafe { <$atomic>::from_ptr(at.cast_mut().cast()) };
                $from_bits(atomic.load(Ordering::Relaxed))
            }
        }
    )+};
}

/// For numbers that are never an index.
macro_rules! plain {
    ($($number:ty),+) => {$(
        impl Element for $number {
            #[inline(always)]
            unsafe fn load(at: *const Self) -> Self {
                // SAFETY: the caller guarantees alignment and lifetime.
                unsafe { at.read() }
            }
        }
    )+};
}

plain!(f32, f64);

element! {
    i32 as AtomicU32: u32::cast_signed;
    i64 as AtomicU64: u64::cast_signed;
    u32 as AtomicU32: std::convert::identity;
    u64 as AtomicU64: std::convert::identity;
    usize as AtomicUsize: std::convert::identity;
}

macro_rules! index {
    ($($number:ty),+) => {$(
        impl Index for $number {
            #[inline(always)]
            #[allow(clippy::cast_lossless)]
            fn to_usize(self) -> usize {
                self as usize
            }

            #[allow(clippy::cast_possible_wrap, clippy::cast_lossless)]
            fn to_i64(self) -> i64 {
                self as i64
            }
        }
    )+};
}

index!(i32, i64, u32, u64, usize);

/// A borrowed array. If it holds integers, other threads may write to it; see
/// [`Borrowed::from_raw`].
#[derive(Debug)]
pub struct Borrowed<'a, T> {
    start: *const T,
    len: usize,
    lifetime: PhantomData<&'a [T]>,
}

impl<T> Clone for Borrowed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Borrowed<'_, T> {}

// SAFETY: a Borrowed only hands out copies of its elements, and reads those that can be indices
// atomically.
unsafe impl<T: Element> Send for Borrowed<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Borrowed<'_, T> {}

impl<'a, T: Element> Borrowed<'a, T> {
    /// Borrows a slice.
    pub fn new(slice: &'a [T]) -> Self {
        Self {
            start: slice.as_ptr(),
            len: slice.len(),
            lifetime: PhantomData,
        }
    }

    /// Borrows `len` elements starting at `start`.
    ///
    /// # Safety
    /// `start` must be aligned, and the `len` elements starting there must stay allocated during
    /// `'a`. Other threads may write to integers at the same time, because these are read by atomic
    /// loads, but not to floating-point numbers, which are read by plain loads.
    pub unsafe fn from_raw(start: *const T, len: usize) -> Self {
        Self {
            start,
            len,
            lifetime: PhantomData,
        }
    }

    /// The number of elements.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The elements `from..to`.
    ///
    /// # Panics
    /// If the range is not within the array.
    #[inline]
    #[must_use]
    pub fn range(self, from: usize, to: usize) -> Self {
        assert!(
            from <= to && to <= self.len,
            "range {from}..{to} of an array of length {}",
            self.len
        );
        // SAFETY: from <= len, so the pointer stays within the array or one past its end.
        let start = unsafe { self.start.add(from) };
        Self {
            start,
            len: to - from,
            lifetime: PhantomData,
        }
    }

    /// The current value of element `k`.
    ///
    /// # Panics
    /// If `k` is not less than the length.
    #[inline]
    pub fn get(self, k: usize) -> T {
        assert!(
            k < self.len,
            "element {k} of an array of length {}",
            self.len
        );
        // SAFETY: k < len, and the constructor guarantees that the memory is valid.
        unsafe { T::load(self.start.add(k)) }
    }

    /// As [`Self::get`], without the check.
    ///
    /// # Safety
    /// `k` must be less than the length.
    #[inline]
    unsafe fn get_unchecked(self, k: usize) -> T {
        // SAFETY: the caller guarantees that k < len, the constructor that the memory is valid.
        unsafe { T::load(self.start.add(k)) }
    }

    /// The current values in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = T> + 'a {
        // SAFETY: k < len.
        (0..self.len).map(move |k| unsafe { self.get_unchecked(k) })
    }

    /// Prefetches the elements `from..to`, up to `PREFETCH` cache lines of them. Only a hint:
    /// indices out of range do no harm.
    #[inline]
    pub fn prefetch(self, from: usize, to: usize) {
        prefetch_lines(self.start, from, to);
    }
}

/// A vector with several owners, which no one changes. Reading it costs as much as reading a vector. An
/// `Arc<Vec<T>>` adds an indirection, which makes steps on short rows 3 % slower; the allocation of an
/// `Arc<[T]>` cannot fail gracefully.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    start: *const T,
    len: usize,
    owner: Arc<Vec<T>>,
}

// SAFETY: it consists of its owner and a pointer to what that owns, which no one changes.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(vec: Vec<T>) -> Self {
        let owner = Arc::new(vec);
        Self {
            start: owner.as_ptr(),
            len: owner.len(),
            owner,
        }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self {
            owner: Arc::clone(&self.owner),
            ..*self
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: these are the items of the vector that `owner` holds. It lives as long as `self`, and its
        // items do not move: `owner` is private and only ever cloned, so no one can change the vector.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// The largest number of cache lines prefetched at once: with more than a hundred or so, the
/// requests of one row would evict each other.
const PREFETCH: usize = 128;

/// The size of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches `slice[from..to]`; see [`Borrowed::prefetch`].
#[inline]
pub fn prefetch<T>(slice: &[T], from: usize, to: usize) {
    prefetch_lines(slice.as_ptr(), from, to);
}

#[inline]
fn prefetch_lines<T>(start: *const T, from: usize, to: usize) {
    let first = start.wrapping_add(from).cast::<u8>();
    let last = start.wrapping_add(to).cast::<u8>().wrapping_sub(1);
    // Short rows consist of these two lines: no branch depends on the number of lines.
    prefetch_line(first);
    prefetch_line(last);
    let lines = (last.addr() / LINE).saturating_sub(first.addr() / LINE);
    for k in 1..lines.min(PREFETCH) {
        prefetch_line(first.wrapping_add(k * LINE));
    }
}

#[inline(always)]
fn prefetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is only a hint and never faults, whatever the address; SSE is part of
    // x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch is only a hint and never faults, whatever the address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Ends the run from inside a kernel: an index that was valid at the start no longer is.
#[cold]
#[inline(never)]
fn invalid_index(found: i64, n_cols: usize) -> ! {
    error::raise(Error::ColumnIndex { found, n_cols })
}

/// `sum_k term(k)` for `k < n`, with several accumulators, because each addition waits for the one
/// before.
#[inline(always)]
fn sum(n: usize, term: impl Fn(usize) -> f64) -> f64 {
    const LANES: usize = 4;
    let mut sums = [0.0; LANES];
    let whole = n - n % LANES;
    for k in (0..whole).step_by(LANES) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum += term(k + lane);
        }
    }
    for (lane, sum) in sums.iter_mut().take(n - whole).enumerate() {
        *sum += term(whole + lane);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// `w_j`.
#[inline(always)]
fn at<I: Index>(w: &[f64], j: I) -> f64 {
    match w.get(j.to_usize()) {
        Some(&w) => w,
        None => invalid_index(j.to_i64(), w.len()),
    }
}

/// A mutable reference to `w_j`.
#[inline(always)]
fn at_mut<I: Index>(w: &mut [f64], j: I) -> &mut f64 {
    let n_cols = w.len();
    match w.get_mut(j.to_usize()) {
        Some(w) => w,
        None => invalid_index(j.to_i64(), n_cols),
    }
}

/// `j` as an index, which is less than `n_cols`.
#[inline(always)]
fn column<I: Index>(j: I, n_cols: usize) -> usize {
    if j.to_usize() >= n_cols {
        invalid_index(j.to_i64(), n_cols);
    }
    j.to_usize()
}

/// `sum_k values_k w[indices_k]`; both arrays have the same length.
#[inline(always)]
pub fn sparse_dot<F: Real, I: Index>(
    values: Borrowed<'_, F>,
    indices: Borrowed<'_, I>,
    w: &[f64],
) -> f64 {
    sum(values.len().min(indices.len()), |k| {
        // SAFETY: k is less than the shorter of the two lengths.
        let (x, j) = unsafe { (values.get_unchecked(k), indices.get_unchecked(k)) };
        x.into() * at(w, j)
    })
}

/// `sum_k w[indices_k]`.
#[inline(always)]
pub fn pattern_dot<I: Index>(indices: Borrowed<'_, I>, w: &[f64]) -> f64 {
    sum(indices.len(), |k| {
        // SAFETY: k is less than the length.
        let j = unsafe { indices.get_unchecked(k) };
        at(w, j)
    })
}

/// `w[indices_k] += scale values_k`; both arrays have the same length.
#[inline(always)]
pub fn sparse_axpy<F: Real, I: Index>(
    scale: f64,
    values: Borrowed<'_, F>,
    indices: Borrowed<'_, I>,
    w: &mut [f64],
) {
    for (x, j) in values.iter().zip(indices.iter()) {
        *at_mut(w, j) += scale * x.into();
    }
}

/// `w[indices_k] += scale`.
#[inline(always)]
pub fn pattern_axpy<I: Index>(scale: f64, indices: Borrowed<'_, I>, w: &mut [f64]) {
    for j in indices.iter() {
        *at_mut(w, j) += scale;
    }
}

/// Calls `f(indices_k)` for each `k`; the indices are less than `n_cols`.
#[inline]
pub fn pattern_visit<I: Index>(indices: Borrowed<'_, I>, n_cols: usize, f: &mut impl FnMut(usize)) {
    for j in indices.iter() {
        f(column(j, n_cols));
    }
}

/// Calls `f(indices_k, values_k)` for each `k`; the indices are less than `n_cols`.
#[inline]
pub fn sparse_visit<F: Real, I: Index>(
    values: Borrowed<'_, F>,
    indices: Borrowed<'_, I>,
    n_cols: usize,
    f: &mut impl FnMut(usize, f64),
) {
    for (x, j) in values.iter().zip(indices.iter()) {
        f(column(j, n_cols), x.into());
    }
}

/// `sum_k values_k^2`.
#[inline]
pub fn sparse_sq_norm<F: Real>(values: Borrowed<'_, F>) -> f64 {
    sum(values.len(), |k| {
        // SAFETY: k is less than the length.
        let x = unsafe { values.get_unchecked(k) }.into();
        x * x
    })
}

/// The common value if all values are equal, else `None`; 0 if there are no values.
#[inline]
pub fn only_value<F: Real>(values: Borrowed<'_, F>) -> Option<f64> {
    let Some(first) = values.iter().next().map(Into::into) else {
        return Some(0.0);
    };
    // Without an early exit, so that the compiler can vectorise the loop.
    let differs = |differs: bool, x: F| differs | (x.into() != first);
    (!values.iter().fold(false, differs)).then_some(first)
}

#[cfg(test)]
mod tests;
