//! A reserve of memory for small allocations.
//!
//! Memory whose size depends on the data is asked for by [`crate::memory`], which raises an error if there is none. All
//! other allocations, of some bytes each and most of them in libraries, would end the process. Where one of them fails,
//! the reserve is given back to the system, and it is tried again; from then on, whoever asks for memory by
//! [`crate::memory`] gets the error, and the call that is under way ends. The next call fills the reserve again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// All that is not asked for by [`crate::memory`] is smaller.
const SMALL: usize = 1 << 14;

/// Enough for what is allocated on the way from where an error is raised to where it is returned.
const RESERVE: Layout = match Layout::from_size_align(1 << 20, 16) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// The allocator of the extension for Python.
pub(crate) struct WithReserve {
    block: AtomicPtr<u8>,
    /// Told whether the reserve has been used.
    on_use: fn(bool),
}

impl WithReserve {
    pub(crate) const fn new(on_use: fn(bool)) -> Self {
        Self {
            block: AtomicPtr::new(ptr::null_mut()),
            on_use,
        }
    }

    /// Fills the reserve, if it is empty and there is memory.
    pub(crate) fn fill(&self) {
        if self.block.load(Ordering::Acquire).is_null() {
            // SAFETY: the layout is not of size 0.
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
                // SAFETY: another thread was faster, and this block is nobody's.
                unsafe { System.dealloc(block, RESERVE) };
            }
        }
        (self.on_use)(false);
    }

    /// Gives the reserve back to the system; says whether there was any.
    #[cold]
    fn release(&self) -> bool {
        let block = self.block.swap(ptr::null_mut(), Ordering::AcqRel);
        if block.is_null() {
            return false;
        }
        (self.on_use)(true);
        // SAFETY: the block was allocated with this layout, and whoever has swapped it out is alone with it.
        unsafe { System.dealloc(block, RESERVE) };
        true
    }

    /// `attempt()`, which allocates so many bytes; once more if it is a small allocation that fails.
    #[inline]
    fn retried(&self, size: usize, attempt: impl Fn() -> *mut u8) -> *mut u8 {
        let block = attempt();
        if block.is_null() && size <= SMALL && self.release() {
            return attempt();
        }
        block
    }
}

// SAFETY: every block comes from the system's allocator, and goes back to it, with the layout that was asked for.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches for.
        self.retried(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches for.
        self.retried(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller vouches for; a failed attempt leaves the block as it is.
        self.retried(size, || unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller vouches for.
        unsafe { System.dealloc(block, layout) };
    }
}

#[cfg(test)]
mod tests;
