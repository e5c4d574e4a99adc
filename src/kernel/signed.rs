//! Reads unsigned column indices as signed indices of the same size, so that rows are compiled for
//! two index types instead of five.

use std::marker::PhantomData;

use super::{Borrowed, Index};

/// Indices that can be read as a signed type. An index beyond the range of that type becomes
/// negative, and so out of range.
pub(crate) trait Signed: Index {
    /// The signed type of the same size.
    type Signed: Index;
    /// Reinterprets the same memory.
    fn signed(borrowed: Borrowed<'_, Self>) -> Borrowed<'_, Self::Signed>;
}

macro_rules! signed {
    ($($from:ty => $to:ty,)+) => {$(
        impl Signed for $from {
            type Signed = $to;

            fn signed(borrowed: Borrowed<'_, Self>) -> Borrowed<'_, $to> {
                const { assert!(size_of::<$from>() == size_of::<$to>()) };
                const { assert!(align_of::<$from>() == align_of::<$to>()) };
                Borrowed {
                    start: borrowed.start.cast(),
                    len: borrowed.len,
                    lifetime: PhantomData,
                }
            }
        }
    )+};
}

signed! {
    i32 => i32,
    i64 => i64,
    u32 => i32,
    u64 => i64,
}

#[cfg(target_pointer_width = "64")]
signed!(usize => i64,);

#[cfg(target_pointer_width = "32")]
signed!(usize => i32,);

#[cfg(test)]
mod tests;
