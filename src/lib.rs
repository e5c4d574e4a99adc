//! Linear models by stochastic dual coordinate ascent; each fit comes with a certificate.
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
//! ```
//! use sdca_rs::prelude::*;
//!
//! let x = [[0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [3.0, 0.5]];
//! let y = [-1.0, -1.0, 1.0, 1.0];
//! let problem = Problem::builder(Data::dense(&x)?, &y, Log).c(1.0).build()?;
//! let fit = Sdca::default().fit(&problem)?;
//!
//! assert!(fit.certificate.gap <= 1e-4 * fit.certificate.primal);
//! assert_eq!(fit.predict(&Data::dense(&x)?)?, y);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Overview
//!
//! 1. Rows are put into [`Data`](data::Data), which borrows them: [`Data::dense`](data::Data::dense) of an array,
//!    [`Data::csr`](data::Data::csr) of the three slices of a sparse matrix, and
//!    [`with_weights`](data::Data::with_weights).
//! 2. Data, targets and a [loss](mod@loss) make a [`Problem`](problem::Problem::builder).
//! 3. A [`Solver`](solver::Solver), usually [`Sdca`](solver::Sdca), solves it and returns a [`Fit`](run::Fit). A
//!    [`Budget`](run::Budget) replaces the default tolerance and limits. [`Solver::solve`](solver::Solver::solve) also
//!    takes the end of an earlier fit as a start, and a [`Monitor`](run::Monitor).
//! 4. The fit holds the model, its [`Certificate`](run::Certificate), and [`predict`](run::Fit::predict).
//!
//! For labels other than -1 and +1, and for any number of classes, use a [`Classifier`](classifier::Classifier).
//!
//! A run that does not reach its tolerance is not an error: [`Fit::stop`](run::Fit::stop) says why it ended, and the
//! certificate says how close it came.
//!
//! # Features
//!
//! | feature  | effect                                                                              |
//! |----------|-------------------------------------------------------------------------------------|
//! | `sprs`   | `Data::sprs`, for the matrices of the crate sprs                                    |
//! | `serde`  | settings, fits, classifiers and all their parts can be serialised and deserialised  |
//! | `python` | the extension module of the Python package; not useful in a Rust program            |
//!
//! # Modules
//!
//! A fit passes through these modules from top to bottom and returns as a [`run::Fit`].
//!
//! | module          | contents                                                                     |
//! |-----------------|------------------------------------------------------------------------------|
//! | [`prelude`]     | what most programs need                                                      |
//! | [`builder`]     | builders for problems and classifiers, with defaults                         |
//! | [`classifier`]  | labels of any ordered type, any number of classes                            |
//! | [`mod@loss`]    | the losses: value, slope, conjugate and step of each, and the registry       |
//! | [`one_vs_rest`] | several classes: one binary problem each over the same rows, in parallel     |
//! | [`solver`]      | the algorithms, one file each                                                |
//! | `threads`       | the threads that share a pass                                                |
//! | `order`         | seeded visiting orders                                                       |
//! | [`data`]        | rows and weights, and cached quantities that depend on them alone            |
//! | [`problem`]     | `P`, `D`, `w(a)` and the gap: the certificate                                |
//! | `intercept`     | the exact, unregularised intercept                                           |
//! | [`rows`]        | dense and sparse rows, borrowed; sparse rows with a single value each        |
//! | `kernel`        | arithmetic on rows; the only `unsafe` in computations                        |
//! | `linalg`        | systems of linear equations with a dense symmetric matrix                    |
//! | [`run`]         | budget, monitor, history, stop reason, result: what all solvers share        |
//! | `model`         | predictions of a fit                                                         |
//! | [`predict`]     | predictions of several models at once, on several threads                    |
//! | [`theory`]      | how many iterations suffice according to the theorems                        |
//! | [`svmlight`]    | files in the svmlight format, read and written in parallel                   |
//! | [`error`]       | the error type                                                               |
//!
//! Modules without a link are private, or public only for tests. `python/` (feature `python`) converts arguments and
//! results for the Python package; it contains no arithmetic.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod builder;
pub mod classifier;
pub mod data;
pub mod error;
// Public only for fuzzing.
#[doc(hidden)]
pub mod intercept;
// Public for benches and fuzzing; `rows` re-exports what users need.
#[allow(unsafe_code)]
#[doc(hidden)]
pub mod kernel;
// Public for benches.
#[doc(hidden)]
pub mod linalg;
pub mod loss;
mod memory;
mod model;
pub mod one_vs_rest;
// Public for tests and benches; `solver` re-exports what users need.
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
pub mod svmlight;
pub mod theory;
mod threads;

/// Compiles the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use error::Error;
// The version whose arrays this crate accepts.
pub use ndarray;
#[cfg(feature = "sprs")]
pub use sprs;
