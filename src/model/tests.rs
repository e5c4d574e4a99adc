use super::*;

#[test]
fn numbers_have_six_digits_whatever_their_size() {
    let line = |primal, dual| {
        let gap = primal - dual;
        Certificate::new(primal, dual, 0)
            .to_string()
            .replace(&format!(", gap {gap:.1e}"), "")
    };
    assert_eq!(line(123.456_789, 0.0), "objective 123.457, lower bound 0");
    assert_eq!(
        line(1.5e9, -2.0),
        "objective 1.50000e9, lower bound -2.00000"
    );
    assert_eq!(
        line(1e-7, 999_999.7),
        "objective 1.00000e-7, lower bound 1000000"
    );
    assert_eq!(
        Certificate::new(0.25, 0.25, 1).to_string(),
        "objective 0.250000, lower bound 0.250000, gap 0"
    );
    assert_eq!(
        line(f64::INFINITY, f64::NEG_INFINITY),
        "objective inf, lower bound -inf"
    );
}

#[test]
fn probabilities_of_any_odds() {
    for p in [0.0_f64, 0.3, -2.0, 35.0] {
        let expected = 1.0 / (1.0 + (-p).exp());
        assert!((log_sigmoid(p).exp() - expected).abs() < 1e-15);
    }
    assert_eq!(log_sigmoid(800.0), 0.0);
    assert_eq!(log_sigmoid(-800.0), -800.0);
}
