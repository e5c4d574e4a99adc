//! Laws and cross-module tests of the crate, in one binary so that they are linked only once.

// A helper is best read next to the only test that uses it.
#![allow(clippy::items_after_statements)]

mod library;
mod loss_laws;
mod predictions;
mod problem_laws;
mod runs;
mod solvers;
mod support;
