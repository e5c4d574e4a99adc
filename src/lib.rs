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
//! # How it goes
//!
//! 1. Rows become [`Data`](data::Data), which borrows them: [`Data::dense`](data::Data::dense) of an array,
//!    [`Data::csr`](data::Data::csr) of the three slices of a sparse matrix, and
//!    [`with_weights`](data::Data::with_weights).
//! 2. With targets and a [loss](mod@loss) they are a [`Problem`](problem::Problem::builder).
//! 3. A [`Solver`](solver::Solver), mostly [`Sdca`](solver::Sdca), makes a [`Fit`](run::Fit) of it, within a
//!    [`Budget`](run::Budget) if the default one will not do. [`Solver::solve`](solver::Solver::solve) also takes
//!    where an earlier fit ended, and who watches.
//! 4. The fit has the model, its [`Certificate`](run::Certificate), and [`predict`](run::Fit::predict).
//!
//! Labels of other kinds than -1 and +1, and any number of classes, are for a [`Classifier`](classifier::Classifier).
//!
//! A run that did not come as close as it was told to is no error: [`Fit::stop`](run::Fit::stop) says why it ended, and
//! the certificate how close it came.
//!
//! # Features
//!
//! | feature  | what it adds                                                                        |
//! |----------|-------------------------------------------------------------------------------------|
//! | `sprs`   | `Data::sprs`: the matrices of the crate sprs                                        |
//! | `serde`  | settings, fits, classifiers and all they consist of can be serialised and read back |
//! | `python` | the extension module of the Python package; of no use to a Rust program             |
//!
//! # Modules
//!
//! The path of a fit reads downward through this list, and back up as a [`run::Fit`].
//!
//! | module          | what it holds                                                                |
//! |-----------------|------------------------------------------------------------------------------|
//! | [`prelude`]     | what most programs need                                                      |
//! | [`builder`]     | problems and classifiers step by step, with defaults                         |
//! | [`classifier`]  | labels of any kind, any number of classes                                    |
//! | [`mod@loss`]    | the losses: value, slope, conjugate and step of each, and the registry       |
//! | [`one_vs_rest`] | several classes: one binary problem each over the same rows, in parallel     |
//! | [`solver`]      | the algorithms, one file each                                                |
//! | `threads`       | the threads that share a pass                                                |
//! | `order`         | seeded visiting orders                                                       |
//! | [`data`]        | rows and weights, and what is computed from them alone, once                 |
//! | [`problem`]     | `P`, `D`, `w(a)`, the gap: the certificate                                   |
//! | `intercept`     | the exact, unregularised intercept                                           |
//! | [`rows`]        | dense and sparse rows, borrowed; sparse ones of one value each               |
//! | `kernel`        | arithmetic on rows; the only `unsafe` of computations                        |
//! | [`run`]         | budget, monitor, history, stop reason, result: what all solvers share        |
//! | `model`         | what a fit is good for: predictions                                          |
//! | [`predict`]     | predictions of several models at once, by several threads                    |
//! | [`theory`]      | how many iterations suffice by the theorems                                  |
//! | [`error`]       | the error type                                                               |
//!
//! Those without a link are for readers of the source. `python/` (feature `python`) converts arguments and results for
//! the Python package and holds no arithmetic.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod builder;
pub mod classifier;
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
mod threads;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use error::Error;
// The version whose arrays are taken.
pub use ndarray;
#[cfg(feature = "sprs")]
pub use sprs;
