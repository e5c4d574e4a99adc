//! Laws and cross-module tests of the crate, in one binary so that they are linked once.

mod loss_laws;
mod problem_laws;
mod runs;
mod support;
