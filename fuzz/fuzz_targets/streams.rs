//! Pegasos on a stream of rows, starting from an arbitrary state.

#![no_main]

use ndarray::ArrayView2;
use sdca_rs::data::Data;
use sdca_rs::loss::{Loss, SPECS, Visitor, dispatch};
use sdca_rs::order::Sampling;
use sdca_rs::problem::{Problem, Regularisation};
use sdca_rs::rows::Dense;
use sdca_rs::run::NoMonitor;
use sdca_rs::solver::{Model, Pegasos, Scales, Stream};

use sdca_fuzz::bytes::{Bytes, Kind};
use sdca_fuzz::choices::{learning_rate, target};
use sdca_fuzz::known;

libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));

/// Decodes a few rows and a stream, and continues the stream with Pegasos, twice.
fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let spec = bytes.pick(SPECS);
    dispatch(spec.name, None, Task(&mut bytes)).expect("the registry builds its own losses");
}

struct Task<'b, 'a>(&'b mut Bytes<'a>);

impl Visitor for Task<'_, '_> {
    type Out = ();

    fn visit<L: Loss>(self, loss: L) {
        let bytes = self.0;
        let (n_rows, n_cols) = (1 + bytes.below(6), 1 + bytes.below(5));
        let kind = bytes.pick(&[Kind::Tame, Kind::Number]);
        let x: Vec<f64> = (0..n_rows * n_cols).map(|_| bytes.of(kind)).collect();
        let y: Vec<f64> = (0..n_rows).map(|_| target(L::TARGET, bytes)).collect();
        let rows = ArrayView2::from_shape((n_rows, n_cols), &x).expect("shape");
        let rows = Dense::new(rows).expect("C order");
        let data = Data::new(rows, None).expect("no weights");
        let strength = if bytes.flag() {
            bytes.tame_power()
        } else {
            bytes.power()
        };
        let Ok(problem) = Problem::part(
            data,
            &y,
            loss,
            Regularisation::Lambda(strength),
            bytes.flag(),
        ) else {
            return;
        };
        let pegasos = Pegasos {
            batch_size: if bytes.flag() {
                Some(1 + bytes.below(n_rows + 1))
            } else {
                None
            },
            sampling: bytes.pick(&[Sampling::Permutation, Sampling::Random, Sampling::Cyclic]),
            project: bytes.flag(),
            learning_rate: learning_rate(bytes),
            ..Pegasos::default()
        };
        let stream = if bytes.flag() {
            Some(stream(bytes, n_cols))
        } else {
            None
        };
        let is_fitting = stream.as_ref().is_none_or(|stream| {
            let of_scales = stream
                .scales
                .as_ref()
                .is_none_or(|scales| scales.mean_row.len() == n_cols);
            stream.last.coef.len() == n_cols && stream.mean.coef.len() == n_cols && of_scales
        });
        if !is_fitting && !known::STREAM_LENGTHS_ARE_CHECKED {
            return;
        }
        let Ok(stream) = pegasos.partial_solve(&problem, stream, &mut NoMonitor) else {
            return;
        };
        assert!(is_fitting, "arrays of wrong lengths were accepted");
        check(&stream, n_cols);
        if let Ok(stream) = pegasos.partial_solve(&problem, Some(stream), &mut NoMonitor) {
            check(&stream, n_cols);
        }
    }
}

/// The last model is finite, and all lengths are right.
fn check(stream: &Stream, n_cols: usize) {
    assert_eq!(
        (stream.last.coef.len(), stream.mean.coef.len()),
        (n_cols, n_cols)
    );
    let model = &stream.last;
    assert!(
        model.intercept.is_finite() && model.coef.iter().all(|w| w.is_finite()),
        "{stream:?}"
    );
    assert!(
        stream
            .scales
            .as_ref()
            .is_none_or(|scales| scales.mean_row.len() == n_cols)
    );
}

fn stream(bytes: &mut Bytes<'_>, n_cols: usize) -> Stream {
    let kind = bytes.pick(&[Kind::Tame, Kind::Number, Kind::Any]);
    let list = |bytes: &mut Bytes<'_>| -> Vec<f64> {
        let n = if bytes.byte() == 255 {
            bytes.below(8)
        } else {
            n_cols
        };
        (0..n).map(|_| bytes.of(kind)).collect()
    };
    let steps = if bytes.flag() {
        f64::from(bytes.byte())
    } else {
        bytes.any()
    };
    let last = Model {
        coef: list(bytes),
        intercept: bytes.of(kind),
    };
    let mean = Model {
        coef: list(bytes),
        intercept: bytes.of(kind),
    };
    let scales = bytes.flag().then(|| Scales {
        mean_row: list(bytes),
        mean_sq_norm: bytes.of(kind),
        weight: bytes.of(kind),
        longest_step: bytes.of(kind),
        curvature: bytes.of(kind),
        loss_at_zero: bytes.of(kind),
    });
    Stream {
        steps,
        last,
        mean,
        scales,
    }
}
