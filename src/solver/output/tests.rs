use super::*;

/// The output of a run of `steps` steps in which row 0 has the value t after t steps.
fn run(
    output: Output,
    from: impl Into<AverageFrom>,
    full_steps: usize,
    steps: u64,
    every: u64,
    seed: u64,
) -> f64 {
    let mut averager = Averager::new(output, from.into(), 1, full_steps, seed, || Sums::new(1));
    let (mut value, mut found) = (0.0, f64::NAN);
    for step in 0..=steps {
        if step > 0 && step % every == 0 {
            found = averager
                .output(step, std::iter::once(value))
                .map_or(value, |v| v[0]);
        }
        averager.before_steps(step, std::iter::once(value), (step / every + 1) * every);
        if let Some(sums) = averager.tally() {
            sums.changed(step + 1, 0, value, 0.0);
        }
        value += 1.0;
    }
    found
}

#[test]
fn the_average_starts_exactly_at_t0_in_a_full_run() {
    // The iterates before the steps T0+1..=T are T0, ..., T-1.
    for every in [1, 10, 200] {
        for (fraction, start) in [(0.0, 0.0), (0.25, 50.0), (0.5, 100.0), (0.9, 180.0)] {
            let mean = run(Output::Average, fraction, 200, 200, every, 1);
            assert!(
                (mean - f64::midpoint(start, 199.0)).abs() < 1e-9,
                "{every} {fraction} {mean}"
            );
        }
    }
}

#[test]
fn the_average_of_a_run_cut_short_starts_close_to_t0() {
    let mean = run(Output::Average, 0.5, 100_000, 800, 50, 1);
    let start = 2.0 * mean - 799.0;
    assert!((400.0..=450.0).contains(&start), "{start}");
}

/// However many epochs the run was allowed.
#[test]
fn the_average_starts_exactly_at_a_given_step() {
    for (every, full) in [(1, 100_000), (10, 200), (200, 2000)] {
        for start in [0, 1, 7, 100, 199] {
            let mean = run(
                Output::Average,
                AverageFrom::Step(start),
                full,
                200,
                every,
                1,
            );
            assert!(
                (mean - f64::midpoint(start as f64, 199.0)).abs() < 1e-9,
                "{every} {start} {mean}"
            );
        }
    }
}

#[test]
fn a_run_that_ends_before_the_given_step_returns_its_last_iterate() {
    for output in [Output::Average, Output::Random] {
        for start in [200, 201, u64::MAX] {
            let last = run(output, AverageFrom::Step(start), 1000, 200, 10, 1);
            assert_eq!(last.to_bits(), 200.0_f64.to_bits(), "{output:?} {start}");
        }
    }
}

#[test]
fn random_output_is_uniform_from_a_given_step_on() {
    let mut counts = [0usize; 4];
    for seed in 0..4000 {
        let step = run(Output::Random, AverageFrom::Step(140), 1000, 280, 40, seed);
        counts[(step - 140.0) as usize / 35] += 1;
    }
    assert!(counts.iter().all(|&c| c.abs_diff(1000) < 140), "{counts:?}");
}

#[test]
fn random_output_is_uniform_from_t0_on() {
    for every in [1, 7, 40] {
        let mut counts = [0usize; 4];
        for seed in 0..4000 {
            let step = run(Output::Random, 0.5, 280, 280, every, seed);
            assert!((140.0..280.0).contains(&step), "{step}");
            counts[(step - 140.0) as usize / 35] += 1;
        }
        // 1000 each, standard deviation 27.
        assert!(
            counts.iter().all(|&c| c.abs_diff(1000) < 140),
            "{every}: {counts:?}"
        );
    }
}

#[test]
fn few_pieces_are_kept() {
    let counts = [0, 1, 5000].map(AverageFrom::Step).into_iter();
    let fractions = [0.0, 0.5, 0.9].map(AverageFrom::Fraction).into_iter();
    for from in fractions.chain(counts) {
        let mut averager = Averager::new(Output::Average, from, 100, 1000, 1, || Sums::new(1));
        for step in 0..100_000 {
            averager.before_steps(step, std::iter::once(0.0), step + 1);
            assert!(
                averager.closed.len() <= 20,
                "{step} of {from:?}: {}",
                averager.closed.len()
            );
        }
    }
}
