//! Code shared by the fuzz targets.
//!
//! A target in `fuzz_targets/` decodes the bytes from libFuzzer into arguments ([`bytes`]), calls
//! the crate, and checks laws that hold for any arguments. A violated law is a panic. Rounding
//! errors are bounded by [`rounding`]: a law fails only where rounding cannot explain it. Laws that
//! a known bug violates are disabled in [`known`].

pub mod bytes;
pub mod choices;
pub mod known;
pub mod rounding;
