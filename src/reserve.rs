//! An allocator with a reserve of memory for small allocations.
//!
//! Memory whose size depends on the data is allocated by [`crate::memory`], which raises an error
//! if there is not enough. All other allocations, of a few bytes each and most of them in
//! libraries, would abort the process if they failed. When one of them fails, this allocator
//! returns its reserve to the system and retries. From then on, every request to [`crate::memory`]
//! fails, which ends the call in progress. The next call refills the reserve.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Allocations outside [`crate::memory`] are smaller than this.
const SMALL: usize = 1 << 14;

/// Enough for all allocations on the way from raising an error to returning it.
const RESERVE: Layout = match Layout::from_size_align(1 << 20, 16) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// The allocator of the Python extension.
pub(crate) struct WithReserve {
    block: AtomicPtr<u8>,
    /// Called with whether the reserve has been used.
    on_use: fn(bool),
}

impl WithReserve {
    pub(crate) const fn new(on_use: fn(bool)) -> Self {
        Self {
            block: AtomicPtr::new(ptr::null_mut()),
            on_use,
        }
    }

    /// Fills the reserve if it is empty and memory is available.
    pub(crate) fn fill(&self) {
        if self.block.load(Ordering::Acquire).is_null() {
            // SAFETY: the size of the layout is not 0.
            let block = unsafe { System.alloc(RESERVE) };
            if block.is_null() {
                return;
            }
            let swapped = self.block.compare_exchange(
                ptr::null_mut(),
                block,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if swapped.is_err() {
                // SAFETY: another thread filled the reserve first, so this block was never shared.
                unsafe { System.dealloc(block, RESERVE) };
            }
        }
        (self.on_use)(false);
    }

    /// Returns the reserve to the system. Returns whether there was one.
    #[cold]
    fn release(&self) -> bool {
        let block = self.block.swap(ptr::null_mut(), Ordering::AcqRel);
        if block.is_null() {
            return false;
        }
        (self.on_use)(true);
        // SAFETY: the block was allocated with this layout, and only the thread that swapped it out
        // holds it.
        unsafe { System.dealloc(block, RESERVE) };
        true
    }

    /// Runs `attempt()`, which allocates `size` bytes; if a small allocation fails, releases the
    /// reserve and retries once.
    #[inline]
    fn retried(&self, size: usize, attempt: impl Fn() -> *mut u8) -> *mut u8 {
        let block = attempt();
        if block.is_null() && size <= SMALL && self.release() {
            return attempt();
        }
        block
    }
}

// SAFETY: every block comes from the system allocator and is returned to it with the layout it was
// requested with.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        self.retried(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        self.retried(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller; a failed attempt leaves the block as it was.
        self.retried(size, || unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(block, layout) };
    }
}

#[cfg(test)]
mod tests;
