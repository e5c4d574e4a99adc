//! What the fuzz targets share.
//!
//! A target, in `fuzz_targets/`, decodes the bytes that libFuzzer gives it into arguments ([`bytes`]), calls the
//! crate, and checks the laws that hold for any arguments. A broken law is a panic. Rounding errors are bounded by
//! [`rounding`]: a law fails only where rounding cannot be the reason. Laws that a known bug breaks are switched
//! off in [`known`].

pub mod bytes;
pub mod choices;
pub mod known;
pub mod rounding;
