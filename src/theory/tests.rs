use super::*;

const SETTING: Setting = Setting {
    lambda: 0.01,
    eps: 1e-3,
    radius: 1.5,
    initial_gap: 0.9,
};

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("it is wrong").to_string()
}

#[test]
fn published_numbers() -> Result<(), Error> {
    for (n, lambda, published) in [(452, 0.05, 401_549), (48_842, 0.1, 629_840)] {
        let run = sdca_lipschitz_summary(n, Setting::new(lambda, 1e-3), 1.0)?;
        assert_eq!(run.iterations, published);
    }
    Ok(())
}

#[test]
fn lipschitz_inverts_its_bound() -> Result<(), Error> {
    let (n, l) = (1000, 0.8);
    let Setting {
        lambda,
        eps,
        radius,
        initial_gap,
    } = SETTING;
    let squared_range = 4.0 * (l * radius).powi(2);
    let t0 = (n as f64 * (2.0 * lambda * n as f64 * initial_gap / squared_range).ln())
        .ceil()
        .max(0.0) as u64;
    let terms = |first: u64, total: u64| {
        [
            2.0 * squared_range / lambda / (2 * n + first - t0) as f64,
            squared_range / lambda / 2.0 / (total - first) as f64,
        ]
    };

    let run = sdca_lipschitz_iterations(n, SETTING, l, None)?;
    let (total, first) = (run.iterations, run.average_from_step);
    let tight = 1.0 + 1e-12;
    assert!(terms(first, total).iter().all(|&x| x <= eps / 2.0 * tight));
    assert!(terms(first - 1, total - 1)[0] > eps / 2.0);
    assert!(terms(first, total - 1)[1] > eps / 2.0);

    for share in [0.1, 0.5, 0.97] {
        let run = sdca_lipschitz_iterations(n, SETTING, l, Some(share))?;
        let (total, first) = (run.iterations, run.average_from_step);
        assert_eq!(first, floor_share(share, total));
        assert!(terms(first, total).iter().sum::<f64>() <= eps);
        let less = terms(floor_share(share, total - 1), total - 1);
        assert!(less.iter().sum::<f64>() > eps);
    }
    Ok(())
}

#[test]
fn sgd_is_an_epoch_and_then_sdca_from_where_it_ends() -> Result<(), Error> {
    let n = 1000;
    let run = sdca_sgd_iterations(n, SETTING, 0.8, None)?;
    let left = 2.0 * (0.8_f64 * 1.5).powi(2) * (1.0 + (n as f64).ln()) / (0.01 * n as f64);
    let rest = Setting {
        initial_gap: left,
        ..SETTING
    };
    let rest = sdca_lipschitz_iterations(n, rest, 0.8, None)?;
    assert_eq!(run.iterations, n + rest.iterations);
    assert_eq!(run.average_from_step, n + rest.average_from_step);
    Ok(())
}

#[test]
fn smooth_inverts_its_bound() -> Result<(), Error> {
    let (n, gamma) = (1000, 0.7);
    let Setting {
        eps,
        initial_gap: g,
        ..
    } = SETTING;
    let k = n as f64 + 1.5 * 1.5 / (0.01 * gamma);
    let after = |steps: u64| k * g * (-(steps as f64) / k).exp();

    let total = sdca_smooth_iterations(n, SETTING, gamma)?;
    assert!(after(total) <= eps && eps < after(total - 1));

    let best = sdca_smooth_averaged_iterations(n, SETTING, gamma, None)?;
    for share in [0.0, 0.3, 0.5, best.average_from()] {
        let run = sdca_smooth_averaged_iterations(n, SETTING, gamma, Some(share))?;
        let mean = |total: u64| {
            let first = floor_share(share, total);
            after(first) / (total - first) as f64
        };
        assert!(mean(run.iterations) <= eps && eps < mean(run.iterations - 1));
        assert!(best.iterations <= run.iterations + 1);
    }
    Ok(())
}

#[test]
fn asdca_inverts_its_bound() -> Result<(), Error> {
    let (n, gamma) = (500, 0.1);
    for m in [1, 7, 500] {
        let theta = asdca_theta(n, m, SETTING.lambda, gamma, SETTING.radius)?;
        let s = gamma * SETTING.lambda * n as f64 / SETTING.radius.powi(2);
        let paper = [
            1.0,
            (s / m as f64).sqrt(),
            s,
            s.powf(2.0 / 3.0) / (m as f64).cbrt(),
        ];
        let least = paper.into_iter().fold(f64::INFINITY, f64::min) / 4.0;
        assert!((theta - least).abs() < 1e-14, "{m}");

        let total = asdca_iterations(n, m, SETTING, gamma)?;
        let rate = theta * m as f64 / n as f64;
        let after = |steps: u64| SETTING.initial_gap * (-rate * steps as f64).exp();
        assert!(after(total) <= SETTING.eps && SETTING.eps < after(total - 1));
    }
    Ok(())
}

#[test]
fn pegasos_inverts_its_bound() -> Result<(), Error> {
    let Setting { lambda, eps, .. } = SETTING;
    let tight = 1.0 + 1e-12;
    for project in [true, false] {
        for delta in [None, Some(0.01), Some(0.9)] {
            let total = pegasos_iterations(SETTING, 0.8, project, delta)?;
            let ball = (lambda * SETTING.initial_gap).sqrt();
            let c = if project { ball + 1.2 } else { 2.4 }.powi(2);
            let bound = |total: u64| {
                let t = total as f64;
                match delta {
                    None => c * (1.0 + t.ln()) / (2.0 * lambda * t),
                    Some(delta) => 42.0 * c * (t / delta).ln() / (lambda * t),
                }
            };
            assert!(bound(total) <= eps * tight && eps < bound(total - 1) * tight);
        }
    }
    Ok(())
}

#[test]
fn part_is_exact() {
    // The f64 nearest to 7/10 is below it, and its product with 10 rounds up to 7.
    assert_eq!(floor_share(0.7, 10), 6);
    assert_eq!(floor_share(0.1, 10), 1);
    assert_eq!(floor_share(0.75, (1 << 63) - 1), 3 * (1 << 61) - 1);
    assert_eq!(
        floor_share(1.0 - f64::EPSILON / 2.0, u64::MAX),
        u64::MAX - 2048
    );
    assert_eq!(floor_share(2.0_f64.powi(-62), 1 << 62), 1);
    assert_eq!(floor_share(2.0_f64.powi(-62), (1 << 62) - 1), 0);
    for nothing in [0.0, -0.0, f64::from_bits(1), f64::MIN_POSITIVE, 1e-20] {
        assert_eq!(floor_share(nothing, TOO_MANY), 0);
    }
}

#[test]
fn both_parts_grow_with_the_run() {
    // In pure f64 arithmetic they do not: from 2^53 on, T + 1 may be T, or T + 2.
    for share in [1e-3, 0.1, 0.5, 0.7, 0.999, 1.0 - f64::EPSILON] {
        for start in [1, 1 << 53, (1 << 60) + 12_345] {
            for total in start..start + 5000 {
                let grown = floor_share(share, total + 1) - floor_share(share, total);
                assert!(grown <= 1, "{share} {total}");
            }
        }
    }
}

#[test]
fn errors_name_what_is_wrong() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for (name, setting) in [
            (
                "lam",
                Setting {
                    lambda: bad,
                    ..SETTING
                },
            ),
            (
                "eps",
                Setting {
                    eps: bad,
                    ..SETTING
                },
            ),
            (
                "radius",
                Setting {
                    radius: bad,
                    ..SETTING
                },
            ),
            (
                "initial_gap",
                Setting {
                    initial_gap: bad,
                    ..SETTING
                },
            ),
        ] {
            let told = format!("{name}: found {bad}, expected a finite number > 0");
            assert_eq!(message(pegasos_iterations(setting, 1.0, true, None)), told);
            assert_eq!(message(sdca_smooth_iterations(9, setting, 1.0)), told);
        }
    }
    assert_eq!(
        message(sdca_smooth_iterations(0, SETTING, 1.0)),
        "n_samples: found 0, expected an integer >= 1"
    );
    assert_eq!(
        message(asdca_iterations(100, 101, SETTING, 1.0)),
        "batch_size: found 101, expected an integer from 1 to n_samples=100"
    );
    assert_eq!(
        message(sdca_lipschitz_iterations(9, SETTING, 1.0, Some(0.0))),
        "average_from: found 0, expected a number in (0, 1), or None"
    );
    assert!(sdca_smooth_averaged_iterations(9, SETTING, 1.0, Some(0.0)).is_ok());
    assert_eq!(
        message(sdca_sgd_iterations(9, SETTING, 1e200, None)),
        "lipschitz, radius: found values for which the square of their product is inf, \
         expected one that is neither 0 nor infinite"
    );
    assert_eq!(
        message(sdca_smooth_iterations(9, Setting::new(1e-300, 0.1), 1.0)),
        "lam, eps: found 1e-300, 0.1, expected values for which fewer than 2^63 iterations \
         suffice"
    );
}
