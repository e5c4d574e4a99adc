//! Linear models by stochastic dual coordinate ascent, each fit with a certificate.
//!
//! A linear model minimises a regularised mean of convex losses,
//!
//! ```text
//! P(w, b) = (1/W) sum_i c_i phi(x_i.w + b; y_i) + (lambda/2) |w|^2,
//! ```
//!
//! and its dual `D(a)` bounds that minimum from below. SDCA raises `D` one row at a time and stops
//! when the *duality gap* `P - D`, recomputed from all rows, proves that the model is within the
//! tolerance of the best possible one.
//!
//! # Example
//!
//! ```
//! use ndarray::array;
//! use sdca_rs::data::Data;
//! use sdca_rs::loss::Log;
//! use sdca_rs::problem::{Problem, Regularisation};
//! use sdca_rs::rows::Dense;
//! use sdca_rs::run::{Budget, StopReason, Unwatched};
//! use sdca_rs::solver::{Sdca, Solver};
//!
//! let x = array![[0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [3.0, 0.5]];
//! let y = [-1.0, -1.0, 1.0, 1.0];
//! let data = Data::new(Dense::new(x.view())?, None)?;
//! let problem = Problem::new(data, &y, Log, Regularisation::C(1.0), true)?;
//! let fit = Sdca::default().solve(&problem, &Budget::default(), None, &mut Unwatched)?;
//!
//! assert_eq!(fit.stop, StopReason::Converged);
//! assert!(fit.certificate.gap <= 1e-4 * fit.certificate.primal);
//! # Ok::<(), sdca_rs::Error>(())
//! ```
//!
//! # Where to start reading
//!
//! The path of a fit reads downward through this list, and back up as a [`run::Fit`].
//!
//! | module          | what it holds                                                                |
//! |-----------------|------------------------------------------------------------------------------|
//! | [`mod@loss`]    | the losses: value, slope, conjugate and step of each, and the registry       |
//! | [`one_vs_rest`] | several classes: one binary problem each over the same rows, in parallel     |
//! | [`solver`]      | the algorithms, one file each                                                |
//! | [`order`]       | seeded visiting orders                                                       |
//! | [`data`]        | rows and weights, and what is computed from them alone, once                 |
//! | [`problem`]     | `P`, `D`, `w(a)`, the gap: the certificate                                   |
//! | [`intercept`]   | the exact, unregularised intercept                                           |
//! | [`rows`]        | dense and sparse rows, borrowed; sparse ones of one value each               |
//! | [`kernel`]      | arithmetic on rows; the only `unsafe` of computations                        |
//! | [`run`]         | budget, monitor, history, stop reason, result: what all solvers share        |
//! | [`predict`]     | predictions of fitted models                                                 |
//! | [`theory`]      | how many iterations suffice by the theorems                                  |
//! | [`error`]       | the error type                                                               |
//!
//! `python/` (feature `python`) converts arguments and results for the Python package and holds no
//! arithmetic.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod builder;
pub mod classifier;
mod crew;
pub mod data;
pub mod error;
// Public for fuzzing alone.
#[doc(hidden)]
pub mod intercept;
// Public for benches and fuzzing; what users need of it is in `rows`.
#[allow(unsafe_code)]
#[doc(hidden)]
pub mod kernel;
pub mod loss;
mod memory;
mod model;
pub mod one_vs_rest;
// Public for tests and benches; what users need of it is in `solver`.
#[doc(hidden)]
pub mod order;
mod penalty;
pub mod predict;
pub mod prelude;
pub mod problem;
#[cfg(feature = "python")]
#[allow(unsafe_code)]
mod python;
#[cfg(any(feature = "python", test))]
#[allow(unsafe_code)]
mod reserve;
pub mod rows;
pub mod run;
pub mod solver;
mod steps;
pub mod theory;

pub use error::Error;
// The version whose arrays are taken.
pub use ndarray;
#[cfg(feature = "sprs")]
pub use sprs;
