"""What a fit says of itself is true, and what it promises of its data holds."""

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import (
    CLASSIFIERS,
    FORMULAS,
    LOSSES,
    NAMES,
    REGRESSORS,
    Problem,
    make_problem,
    model_of,
)

# Losses of y - p alone.
TRANSLATION_INVARIANT = [n for n in REGRESSORS if LOSSES[n].link == "identity"]

with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
every_loss = pytest.mark.parametrize("loss", NAMES)

# tol=0 runs all epochs and never warns: this ends far from the optimum.
FAR = {"tol": 0.0, "max_iter": 3}
SOLVED = {"tol": 1e-10}


def close(value, expected, *, by=1e-12, scale=0.0):
    """Whether two numbers agree up to rounding of terms of the size of ``scale``."""
    return abs(value - expected) <= by * max(abs(expected), scale)


def certified(estimator, tol):
    return (
        estimator.stop_reason_ == "converged"
        and estimator.duality_gap_ <= tol * estimator.objective_
    )


def assert_same_fit(one, other):
    """Compare two solved fits of small data."""
    assert close(one.objective_, other.objective_, by=2e-10)
    # What strong convexity leaves of 1e-10, with room for the intercept.
    assert other.coef_ == pytest.approx(one.coef_, rel=1e-4, abs=1e-4)
    assert other.intercept_ == pytest.approx(one.intercept_, rel=1e-4, abs=1e-4)


def test_every_loss_has_a_formula():
    assert set(FORMULAS) == set(NAMES)


@every_loss
def test_formulas_are_conjugate(loss):
    # phi(p) + phi*(-a) >= -a p, with equality at the best p.
    problem = make_problem(loss, 8)
    formula, t = FORMULAS[loss], problem.loss_param
    y = problem.y[:, None]
    p = np.linspace(-20.0, 20.0, 40_001)
    low, high = (np.clip(bound, -1.5, 1.5) for bound in problem.bounds())
    for share in (0.1, 0.5, 0.9):
        a = np.broadcast_to(low + share * (high - low), problem.y.shape)[:, None]
        sup = np.max(-a * p - formula.value(p, y, t), axis=1)
        assert sup == pytest.approx(formula.conjugate(a, y, t)[:, 0], abs=2e-3)


# ---------------------------------------------------------------- the certificate


@pytest.mark.parametrize("output", ["last", "average", "random"])
@pytest.mark.parametrize("strength", [{"C": 0.3}, {"lam": 0.2}], ids=["C", "lam"])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, sp.csr_matrix])
@pytest.mark.parametrize("weights", [None, "fractions"])
@with_and_without_intercept
@every_loss
def test_certificate_is_what_its_definition_says(
    loss, fit_intercept, weights, layout, strength, output
):
    problem = make_problem(loss, weights=weights)
    problem = problem.but(X=layout(problem.X))
    lam = strength.get("lam") or problem.lam_of(strength["C"])
    fit = problem.fit(fit_intercept=fit_intercept, output=output, **strength, **FAR)
    w, b, a = model_of(fit)
    primal, dual = problem.primal(w, b, lam), problem.dual(a, lam)
    size = abs(primal) + abs(dual)
    assert close(fit.objective_, primal)
    assert close(fit.dual_objective_, dual, scale=size)
    assert fit.duality_gap_ == fit.objective_ - fit.dual_objective_
    # It is not solved yet, so that P and D are told apart.
    assert fit.duality_gap_ > 1e-6 * size
    # w = w(a), and a is feasible.
    of_dual = problem.coef_of(a, lam)
    assert np.abs(w - of_dual).max() <= 1e-12 * np.abs(of_dual).max()
    low, high = problem.bounds()
    assert np.all((low <= a) & (a <= high))
    if fit_intercept:
        assert abs(problem.c @ a) <= 1e-12 * (problem.c @ abs(a))
    else:
        assert b == 0.0


@with_and_without_intercept
@every_loss
def test_history_ends_with_the_certificate_and_its_gaps_are_gaps(loss, fit_intercept):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(
        C=0.1, fit_intercept=fit_intercept, tol=0.0, max_iter=20_000, record_every=10
    )
    history = fit.history_
    assert len(history["gap"]) == 2001
    assert np.array_equal(history["gap"], history["primal"] - history["dual"])
    # Solved to rounding at the end, so that many gaps are as good as zero.
    assert np.all(history["gap"] >= -1e-12 * history["primal"])
    assert history["gap"].min() <= 1e-12 * history["primal"][-1]
    last = [history[name][-1] for name in ("primal", "dual", "gap", "epoch")]
    assert last == [fit.objective_, fit.dual_objective_, fit.duality_gap_, fit.n_iter_]
    a = model_of(fit).a
    assert history["support"][-1] == np.count_nonzero(a[problem.c > 0])


@pytest.mark.parametrize("sampling", ["permutation", "random", "cyclic"])
@every_loss
def test_steps_never_lower_the_dual(loss, sampling):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(
        C=1.0,
        fit_intercept=False,
        tol=0.0,
        max_iter=50,
        record_every=0.1,
        sampling=sampling,
        first_epoch="sdca",
    )
    dual = fit.history_["dual"]
    assert np.diff(dual).min() >= -1e-13 * abs(dual).max()
    assert dual[-1] > dual[0]


@with_and_without_intercept
@every_loss
def test_no_model_is_below_the_lower_bound(loss, fit_intercept):
    problem = make_problem(loss, weights="fractions")
    lam = 0.1
    rng = np.random.default_rng(1)
    for settings in (FAR, SOLVED):
        fit = problem.fit(lam=lam, fit_intercept=fit_intercept, **settings)
        w, b, _ = model_of(fit)
        for size in (0.0, 1e-8, 1e-4, 1e-2, 1.0):
            for _ in range(20):
                v = w + size * rng.normal(size=w.shape)
                e = (b + size * rng.normal()) if fit_intercept else 0.0
                value = problem.primal(v, e, lam)
                assert value >= fit.dual_objective_ - 1e-13 * value


# ---------------------------------------------------------------- weights


def repeated(problem, counts):
    """The problem with each row as often as its count says."""
    n = counts.astype(int)
    return problem.but(
        X=np.repeat(problem.X, n, axis=0), y=np.repeat(problem.y, n), weights=None
    )


@with_and_without_intercept
@every_loss
def test_weight_is_a_count(loss, fit_intercept):
    weighted = make_problem(loss, 700, weights="counts")
    rows = repeated(weighted, weighted.weights)
    # More than would be solved to rounding anyway.
    assert min(weighted.X.size, rows.X.size) > 2048
    settings = {"C": 0.1, "fit_intercept": fit_intercept}
    for tol in (1e-2, 1e-6):
        one, other = (p.fit(tol=tol, **settings) for p in (weighted, rows))
        assert certified(one, tol)
        assert certified(other, tol)
        # Both lie between the optimum and (1 + tol) times a value not above.
        larger = max(one.objective_, other.objective_)
        assert abs(one.objective_ - other.objective_) <= tol * larger
        assert one.dual_objective_ <= other.objective_ * (1 + 1e-13)
        assert other.dual_objective_ <= one.objective_ * (1 + 1e-13)


@with_and_without_intercept
@every_loss
def test_weight_is_a_count_exactly_on_small_data(loss, fit_intercept):
    weighted = make_problem(loss, weights="counts")
    rows = repeated(weighted, weighted.weights)
    settings = {"C": 0.1, "fit_intercept": fit_intercept, **SOLVED}
    assert_same_fit(*(p.fit(**settings) for p in (weighted, rows)))


@with_and_without_intercept
@every_loss
def test_row_of_weight_zero_is_absent_whatever_it_holds(loss, fit_intercept):
    problem = make_problem(loss, weights="counts")
    c = problem.c
    present = problem.but(
        X=problem.X[c > 0], y=problem.y[c > 0], weights=problem.c[c > 0]
    )
    wild = problem.but(X=problem.X.copy())
    wild.X[c == 0] *= 1e100
    if loss in CLASSIFIERS:
        # Not a class, and beyond all of them.
        wild = wild.but(y=np.where(c == 0, 7.0, problem.y))
    else:
        wild = wild.but(y=np.where(c == 0, 1e100, problem.y))
    settings = {"C": 0.1, "fit_intercept": fit_intercept, **SOLVED}
    one, other = (p.fit(**settings) for p in (present, wild))
    assert_same_fit(one, other)
    assert certified(other, SOLVED["tol"])
    if loss in CLASSIFIERS:
        assert other.classes_.tolist() == [-1.0, 1.0]


@every_loss
def test_scale_of_the_weights_does_not_matter_with_lam_fixed(loss):
    problem = make_problem(loss, weights="fractions")
    scaled = problem.but(weights=1e3 * problem.weights)
    one, other = (p.fit(lam=0.1, **SOLVED) for p in (problem, scaled))
    assert_same_fit(one, other)
    # And a number is equal weights.
    equal = problem.but(weights=None).fit(lam=0.1, **SOLVED)
    number = problem.but(weights=7.0).fit(lam=0.1, **SOLVED)
    assert_same_fit(equal, number)
    assert not close(equal.objective_, one.objective_, by=1e-6)


@every_loss
def test_C_times_the_weights_is_what_counts(loss):
    problem = make_problem(loss, weights="fractions")
    one = problem.fit(C=0.5, **SOLVED)
    other = problem.but(weights=problem.weights * 5.0).fit(C=0.1, **SOLVED)
    assert_same_fit(one, other)


@pytest.mark.parametrize("weights", [None, "fractions"])
@every_loss
def test_C_is_lam_of_the_total_weight(loss, weights):
    problem = make_problem(loss, weights=weights)
    one = problem.fit(C=0.5, **FAR)
    other = problem.fit(lam=1 / (0.5 * problem.c.sum()), **FAR)
    assert close(one.objective_, other.objective_)
    assert other.coef_ == pytest.approx(one.coef_, rel=1e-9)


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_class_weight_multiplies_the_weights(loss):
    problem = make_problem(loss, weights="fractions")
    plain = problem.fit(lam=0.1, **SOLVED)
    by_class = problem.fit(lam=0.1, class_weight={1.0: 3.0}, **SOLVED)
    factors = np.where(problem.y > 0, 3.0, 1.0)
    by_row = problem.but(weights=factors * problem.weights).fit(lam=0.1, **SOLVED)
    assert_same_fit(by_class, by_row)
    assert not close(by_class.objective_, plain.objective_, by=1e-6)
    scaled = problem.fit(lam=0.1, class_weight={-1.0: 5.0, 1.0: 5.0}, **SOLVED)
    assert_same_fit(scaled, plain)


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_balanced_classes_have_equal_total_weight(loss):
    problem = make_problem(loss, weights="fractions")
    positive = problem.y > 0
    factors = np.where(
        positive, 1 / problem.c[positive].sum(), 1 / problem.c[~positive].sum()
    )
    # The sum of all weights stays.
    balanced = problem.weights * factors * problem.c.sum() / 2
    one = problem.fit(C=0.1, class_weight="balanced", **SOLVED)
    other = problem.but(weights=balanced).fit(C=0.1, **SOLVED)
    assert_same_fit(one, other)
    plain = problem.fit(C=0.1, **SOLVED)
    assert not close(one.objective_, plain.objective_, by=1e-6)


# ---------------------------------------------------------------- small data


@with_and_without_intercept
@every_loss
def test_small_data_is_usually_solved_to_rounding_whatever_the_tolerance(
    loss, fit_intercept
):
    gaps = []
    for seed in range(9):
        problem = make_problem(loss, weights="fractions", seed=seed)
        # As many epochs as there are by default.
        fit = problem.fit(C=0.1, fit_intercept=fit_intercept, tol=0.1, max_iter=1000)
        assert certified(fit, 0.1)
        gaps.append(fit.duality_gap_ / fit.objective_)
    # The losses with kinks do not always get there.
    assert np.median(gaps) <= 1e-12


# ---------------------------------------------------------------- the intercept


@pytest.mark.parametrize("settings", [FAR, SOLVED], ids=["far", "solved"])
@every_loss
def test_intercept_minimises_the_objective(loss, settings):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(lam=0.1, **settings)
    w, b, _ = model_of(fit)
    best = problem.primal(w, b, 0.1)
    for h in 10.0 ** np.arange(-9, 3):
        for other in (b - h, b + h):
            assert problem.primal(w, other, 0.1) >= best * (1 - 1e-13)
    # It matters: without it, or a little off, the objective is larger.
    assert problem.primal(w, b + 1.0, 0.1) > best * (1 + 1e-4)
    assert problem.primal(w, 0.0, 0.1) > best * (1 + 1e-6)


@pytest.mark.parametrize("shift", [-3.0, 1e3])
@pytest.mark.parametrize("loss", TRANSLATION_INVARIANT)
def test_shift_of_all_targets_shifts_the_intercept(loss, shift):
    problem = make_problem(loss, weights="fractions")
    shifted = problem.but(y=problem.y + shift)
    one, other = (p.fit(lam=0.1, **SOLVED) for p in (problem, shifted))
    other.intercept_ -= shift
    assert_same_fit(one, other)


@pytest.mark.parametrize("shift", [-3.0, 1e2, 1e4])
@every_loss
def test_shift_of_all_columns_shifts_the_intercept(loss, shift):
    problem = make_problem(loss, weights="fractions")
    shifted = problem.but(X=problem.X + shift)
    one, other = (p.fit(lam=0.1, **SOLVED) for p in (problem, shifted))
    other.intercept_ += shift * other.coef_.sum()
    assert_same_fit(one, other)


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_exchange_of_the_classes_turns_the_signs(loss):
    problem = make_problem(loss, weights="fractions")
    turned = problem.but(y=-problem.y)
    one, other = (p.fit(lam=0.1, **SOLVED) for p in (problem, turned))
    other.coef_ *= -1
    other.intercept_ *= -1
    assert_same_fit(one, other)


# ---------------------------------------------------------------- odd data


def empty_rows(problem):
    problem.X[::3] = 0.0
    return problem


def duplicate_rows(problem):
    i = np.arange(len(problem.y)) // 2
    return problem.but(X=problem.X[i], y=problem.y[i])


def conflicting_rows(problem):
    i = np.arange(len(problem.y)) // 2
    return problem.but(X=problem.X[i])


def constant_columns(problem):
    problem.X[:, 0] = 0.0
    problem.X[:, 1] = 3.0
    return problem


def equal_columns(problem):
    problem.X[:] = problem.X[:, :1]
    return problem


def one_column(problem):
    return problem.but(X=problem.X[:, :1].copy())


def no_entries(problem):
    return problem.but(X=np.zeros_like(problem.X))


def two_rows(problem):
    return problem.but(X=problem.X[:2], y=problem.y[:2])


def more_columns_than_rows(problem):
    return make_problem(problem.loss, 8, 30)


def mostly_one_target(problem):
    problem.y[2:] = problem.y[0]
    return problem


@pytest.mark.parametrize("layout", [np.ascontiguousarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "twist",
    [
        empty_rows,
        duplicate_rows,
        conflicting_rows,
        constant_columns,
        equal_columns,
        one_column,
        no_entries,
        two_rows,
        more_columns_than_rows,
        mostly_one_target,
    ],
)
@with_and_without_intercept
@every_loss
def test_odd_data_is_certified(loss, fit_intercept, twist, layout):
    problem = twist(make_problem(loss))
    problem = problem.but(X=layout(problem.X))
    fit = problem.fit(lam=0.1, fit_intercept=fit_intercept, tol=1e-6)
    w, b, a = model_of(fit)
    assert np.all(np.isfinite(w))
    assert np.isfinite(b)
    assert np.all(np.isfinite(a))
    assert certified(fit, 1e-6)
    assert close(fit.objective_, problem.primal(w, b, 0.1), scale=1.0)
    assert close(fit.dual_objective_, problem.dual(a, 0.1), scale=1.0)
    # The zero model is not better.
    assert fit.objective_ <= problem.primal(0 * w, 0.0, 0.1) * (1 + 1e-6)


@with_and_without_intercept
@pytest.mark.parametrize("loss", REGRESSORS)
def test_one_row_is_certified(loss, fit_intercept):
    problem = Problem(loss, np.array([[1.0, -2.0]]), np.array([3.0]))
    fit = problem.fit(lam=0.1, fit_intercept=fit_intercept)
    w, b, a = model_of(fit)
    assert np.all(np.isfinite([*w, b, *a]))
    assert certified(fit, 1e-4)
    assert fit.objective_ <= problem.primal(0 * w, 0.0, 0.1)
    if fit_intercept:
        # The intercept alone does it.
        assert fit.objective_ == pytest.approx(0.0, abs=1e-12)
        assert w.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("target", [0.0, 2.0, 7.7, -1e3])
@pytest.mark.parametrize("loss", REGRESSORS)
def test_constant_targets_need_only_an_intercept(loss, target, weights):
    if LOSSES[loss].link == "log":
        target = abs(target)
    problem = make_problem(loss, weights=weights)
    problem = problem.but(y=np.full_like(problem.y, target))
    fit = problem.fit(lam=0.1, max_iter=1000)
    # The objective is 0 up to rounding, and so cannot be a measure of the gap.
    assert fit.stop_reason_ in ("converged", "perfect")
    assert fit.duality_gap_ <= 1e-12 * max(1.0, abs(target))
    assert fit.objective_ == pytest.approx(0.0, abs=1e-9 * max(1.0, abs(target)))
    assert fit.coef_ == pytest.approx(0.0, abs=1e-9)
    assert fit.predict(problem.X) == pytest.approx(
        target, rel=1e-9, abs=problem.loss_param or 1e-9
    )


@pytest.mark.parametrize("size", [1e8, 1e12, 1e150])
@pytest.mark.parametrize("how", ["scaled", "shifted"])
@with_and_without_intercept
@every_loss
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_huge_values_give_no_nan_and_a_true_stop_reason(loss, fit_intercept, how, size):
    problem = make_problem(loss, weights="fractions")
    if how == "scaled":
        problem.X[:, -1] *= size
    else:
        problem.X[:, -1] += size
    tol = 1e-12
    fit = problem.fit(
        lam=0.1,
        fit_intercept=fit_intercept,
        tol=tol,
        callback=lambda progress: progress.epoch >= 500,
    )
    w, b, a = model_of(fit)
    assert np.all(np.isfinite([*w, b, *a]))
    # The objective may overflow, if the loss is an exponential or a square.
    assert not np.isnan([fit.objective_, fit.dual_objective_]).any()
    assert fit.duality_gap_ == fit.objective_ - fit.dual_objective_
    within = np.isfinite(fit.duality_gap_)
    within = within and fit.duality_gap_ <= tol * fit.objective_
    assert fit.stop_reason_ in (("converged",) if within else ("callback", "precision"))
    with np.errstate(over="ignore"):
        # As exact as predictions of that size are.
        p = abs(problem.X) @ abs(w) + abs(b)
        assert fit.objective_ == pytest.approx(
            problem.primal(w, b, 0.1), rel=1e-9, abs=1e-14 * p.max()
        )
    assert fit.duality_gap_ >= -1e-14 * p.max()
    if not fit_intercept:
        # Not solved, perhaps, but the steps went up.
        assert fit.dual_objective_ >= fit.history_["dual"][0]
