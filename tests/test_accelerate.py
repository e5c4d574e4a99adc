"""Acceleration: short passes and a second-order finish, which change no promise."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from conftest import CLASSIFIERS, NAMES, Problem, make_problem, model_of
from sdca_rs import Sdca, certify
from test_oracles import solve_cone_program

every_loss = pytest.mark.parametrize("loss", NAMES)
with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
with_and_without_weights = pytest.mark.parametrize("weights", [None, "fractions"])
without_warnings = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)

LAYOUTS = {"dense": np.ascontiguousarray, "csr": sp.csr_matrix}


def single(X):
    """Round to numbers that single precision holds exactly, as double and as single."""
    rounded = X.astype(np.float32)
    return rounded.astype(float), rounded


def assert_truthful(problem, fit, lam, tol):
    """Recompute the certificate by its definition: it proves what the fit says."""
    w, b, a = model_of(fit)
    assert np.all(np.isfinite([*w, b, *a]))
    primal, dual = problem.primal(w, b, lam), problem.dual(a, lam)
    size = abs(primal) + abs(dual)
    # As exact as predictions of their size are.
    noise = 1e-14 * np.max(abs(problem.X) @ abs(w) + abs(b))
    assert fit.objective_ == pytest.approx(primal, rel=1e-11, abs=noise)
    assert abs(fit.dual_objective_ - dual) <= 1e-11 * size + noise
    assert fit.duality_gap_ == fit.objective_ - fit.dual_objective_
    assert fit.duality_gap_ >= -1e-12 * size - noise
    low, high = problem.bounds()
    assert np.all((low <= a) & (a <= high))
    if fit.fit_intercept:
        assert abs(problem.c @ a) <= 1e-12 * (problem.c @ abs(a))
    else:
        assert b == 0.0
    within = fit.duality_gap_ <= tol * fit.objective_
    # Where the objective vanishes it cannot be a measure of the gap.
    perfect = fit.duality_gap_ <= 1e-13 * np.max(abs(problem.y))
    assert fit.stop_reason_ in ("converged", "max_iter")
    if fit.stop_reason_ == "converged":
        assert within or perfect
    else:
        assert not within


def assert_solved(problem, fit, lam, tol):
    assert_truthful(problem, fit, lam, tol)
    assert fit.stop_reason_ == "converged"


# ---------------------------------------------------------------- the finish


def uneven(loss, n=300, **settings):
    """Generate columns of sizes that differ by some thousands."""
    problem = make_problem(loss, n, 6, **settings)
    sizes = np.array([0.01, 0.03, 0.1, 1.0, 3.0, 3.0])
    if loss != "poisson":
        sizes *= [1.0, 1.0, 1.0, 1.0, 1.0, 4.0]
    return problem.but(X=problem.X * sizes)


@pytest.mark.parametrize("layout", ["dense", "csr", "single"])
@with_and_without_weights
@with_and_without_intercept
@every_loss
@without_warnings
def test_finish_reaches_what_the_published_algorithm_does_not(
    loss, fit_intercept, weights, layout
):
    problem, tol = uneven(loss, weights=weights), 1e-8
    X, rounded = single(problem.X)
    problem = problem.but(X=X)
    given = problem.but(X=rounded if layout == "single" else LAYOUTS[layout](X))
    lam = problem.lam_of(10.0)
    settings = {"lam": lam, "fit_intercept": fit_intercept, "tol": tol}
    fit = given.fit(max_iter=1000, **settings)
    assert_solved(problem, fit, lam, tol)
    plain = given.fit(max_iter=fit.n_iter_, accelerate=False, **settings)
    assert_truthful(problem, plain, lam, tol)
    assert plain.stop_reason_ == "max_iter"
    assert plain.duality_gap_ > 100 * fit.duality_gap_
    again = certify(fit, given.X, given.y, sample_weight=given.weights)
    assert again.objective == pytest.approx(fit.objective_, rel=1e-12)
    assert again.dual_objective == pytest.approx(fit.dual_objective_, rel=1e-12)
    w, b, _ = solve_cone_program(problem, lam, fit_intercept=fit_intercept)
    assert fit.objective_ == pytest.approx(problem.primal(w, b, lam), rel=1e-7)
    assert fit.dual_objective_ <= problem.primal(w, b, lam) * (1 + 1e-12)


def raw(name, loss):
    """Load a data set as it comes, with targets for the loss."""
    X, y = {
        "cancer": load_breast_cancer,
        "diabetes": load_diabetes,
        "wine": load_wine,
    }[name](return_X_y=True)
    if loss in CLASSIFIERS:
        return Problem(loss, X, np.where(y > np.median(y) - 0.5, 1.0, -1.0))
    return Problem(loss, X, y.astype(float))


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("loss", CLASSIFIERS)
@without_warnings
def test_raw_columns_of_breast_cancer(loss, C):
    problem = raw("cancer", loss)
    lam = problem.lam_of(C)
    # With all settings left as they are but the tolerance.
    fit = problem.fit(C=C, tol=1e-6, max_iter=1000)
    assert_solved(problem, fit, lam, 1e-6)
    plain = problem.fit(C=C, tol=1e-6, max_iter=1000, accelerate=False)
    assert plain.stop_reason_ == "max_iter"
    assert plain.duality_gap_ > 0.1 * plain.objective_


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("name", ["diabetes", "wine"])
@every_loss
def test_other_raw_data(loss, name, C):
    problem = raw(name, loss)
    fit = problem.fit(C=C, max_iter=1000)
    assert_solved(problem, fit, problem.lam_of(C), 1e-4)


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_classes_of_raw_wine(loss):
    X, y = load_wine(return_X_y=True)
    shape = Problem(loss, X, y).loss_param
    fit = Sdca(loss, loss_param=shape, C=10.0, tol=1e-6, random_state=0).fit(X, y)
    assert fit.stop_reason_.tolist() == ["converged"] * 3
    for k in range(3):
        problem = Problem(loss, X, np.where(y == k, 1.0, -1.0))
        b, lam = fit.intercept_[k], problem.lam_of(10.0)
        primal = problem.primal(fit.coef_[k], b, lam)
        assert fit.objective_[k] == pytest.approx(primal, rel=1e-9)
        assert fit.dual_objective_[k] == pytest.approx(
            problem.dual(fit.dual_coef_[k], lam), rel=1e-9
        )
    assert fit.score(X, y) > 0.95


# ---------------------------------------------------------------- odd data


def constant(problem):
    X = problem.X.copy()
    X[:, 0], X[:, 1] = 0.0, 7.0
    return problem.but(X=X)


def duplicated(problem):
    """Repeat each row, and each column three times."""
    return problem.but(
        X=np.tile(problem.X, (2, 3)),
        y=np.tile(problem.y, 2),
        weights=None if problem.weights is None else np.tile(problem.weights, 2),
    )


def contradictory(problem):
    """Give rows of both classes, or of two targets, at the same places."""
    X = problem.X.copy()
    X[1::2] = X[::2]
    return problem.but(X=X)


def empty(problem):
    X = problem.X.copy()
    X[::3] = 0.0
    return problem.but(X=X)


def mostly_absent(problem):
    weights = np.zeros(len(problem.y))
    weights[:8] = [1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 0.1, 1.0]
    return problem.but(weights=weights)


ODD = {
    "plain": lambda problem: problem,
    "constant": constant,
    "duplicated": duplicated,
    "contradictory": contradictory,
    "shifted": lambda problem: problem.but(X=problem.X + 1e4),
    "one column": lambda problem: problem.but(X=problem.X[:, :1].copy()),
    "empty": empty,
    "mostly absent": mostly_absent,
    "wide": lambda problem: problem.but(
        X=np.tile(problem.X, (1, 40))[:50], y=problem.y[:50]
    ),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 100.0])
@with_and_without_intercept
@every_loss
@without_warnings
def test_odd_data(loss, fit_intercept, C, odd):
    problem = ODD[odd](make_problem(loss, 80))
    lam = problem.lam_of(C)
    for layout in LAYOUTS.values():
        given = problem.but(X=layout(problem.X))
        fit = given.fit(C=C, fit_intercept=fit_intercept, max_iter=1000)
        assert_truthful(problem, fit, lam, 1e-4)
        # Without an intercept, rounding sets a limit to the gap of shifted columns, and
        # that of poisson swings so much that it may be large at the end.
        hard = odd == "shifted" or (loss == "poisson" and C == 100.0)
        if fit_intercept or not hard:
            assert fit.stop_reason_ == "converged"


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("d", [1, 2, 30])
@with_and_without_intercept
@every_loss
@without_warnings
def test_few_rows(loss, fit_intercept, d, n):
    if n == 1 and loss in CLASSIFIERS:
        return
    problem = make_problem(loss, 10, d)
    problem = problem.but(X=problem.X[:n].copy(), y=problem.y[:n].copy())
    for C in (1e-4, 1.0, 1e2):
        fit = problem.fit(C=C, fit_intercept=fit_intercept, max_iter=1000)
        assert_solved(problem, fit, problem.lam_of(C), 1e-4)


@with_and_without_intercept
@pytest.mark.parametrize("loss", CLASSIFIERS)
@without_warnings
def test_separable_classes_with_a_large_C(loss, fit_intercept):
    problem = make_problem(loss, 150, 5)
    score = problem.X @ np.ones(5)
    problem = problem.but(X=problem.X[abs(score) > 0.3])
    score = problem.X @ np.ones(5)
    problem = problem.but(y=np.sign(score))
    for C in (1.0, 1e3, 1e6):
        fit = problem.fit(C=C, fit_intercept=fit_intercept, max_iter=1000)
        assert_solved(problem, fit, problem.lam_of(C), 1e-4)
        if C > 1.0:
            assert np.array_equal(fit.predict(problem.X), problem.y)


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
@with_and_without_intercept
@every_loss
@without_warnings
def test_extreme_scales_end_with_the_truth(loss, fit_intercept, C):
    problem = make_problem(loss, 120, 8)
    problem = problem.but(X=problem.X * 10.0 ** np.linspace(-4, 4, 8))
    lam, tol = problem.lam_of(C), 1e-4
    fit = problem.fit(C=C, fit_intercept=fit_intercept, tol=tol, max_iter=1000)
    if np.isfinite(fit.objective_):
        assert_truthful(problem, fit, lam, tol)
    assert fit.n_iter_ <= 1000


# ---------------------------------------------------------------- what stays as it was


def bits(fit):
    parts = (fit.coef_, fit.intercept_, fit.dual_coef_)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@every_loss
@without_warnings
def test_same_seed_same_bits(loss, layout):
    problem = uneven(loss)
    problem = problem.but(X=layout(problem.X))
    one, again = (problem.fit(tol=1e-6, max_iter=300) for _ in range(2))
    assert bits(one) == bits(again)
    assert one.history_["gap"].tobytes() == again.history_["gap"].tobytes()


@pytest.mark.parametrize(
    "settings",
    [
        {"sampling": "random"},
        {"output": "average"},
        {"output": "random"},
        {"output": "average", "sampling": "cyclic"},
    ],
    ids=str,
)
@pytest.mark.parametrize("loss", ["hinge", "squared"])
@without_warnings
def test_nothing_is_accelerated_where_the_course_itself_is_studied(loss, settings):
    problem = uneven(loss)
    settings = {"tol": 0.0, "max_iter": 40} | settings
    one, other = (problem.fit(accelerate=flag, **settings) for flag in (True, False))
    assert bits(one) == bits(other)
    assert one.history_["gap"].tobytes() == other.history_["gap"].tobytes()
    # Unlike otherwise.
    free = {"tol": 1e-9, "max_iter": 40}
    one, other = (problem.fit(accelerate=flag, **free) for flag in (True, False))
    assert bits(one) != bits(other)


@pytest.mark.parametrize("sampling", ["permutation", "cyclic"])
@pytest.mark.parametrize("record_every", [None, 0.5, 3])
@pytest.mark.parametrize("loss", ["hinge", "log", "absolute", "squared"])
@without_warnings
def test_visits_stay_within_max_iter(loss, record_every, sampling):
    problem = uneven(loss)
    for max_iter in (1, 2, 3, 4, 7, 20, 61):
        fit = problem.fit(
            C=100.0,
            tol=1e-15,
            max_iter=max_iter,
            sampling=sampling,
            record_every=record_every,
        )
        epochs = fit.history_["epoch"]
        assert epochs[-1] == fit.n_iter_ == max_iter or (
            fit.stop_reason_ == "converged" and epochs[-1] <= max_iter
        )
        assert np.all(np.diff(epochs) > 0)
        assert_truthful(problem, fit, problem.lam_of(100.0), 1e-15)


@with_and_without_intercept
@every_loss
def test_warm_start_from_the_optimum_ends_at_once(loss, fit_intercept):
    problem = uneven(loss)
    settings = {"warm_start": True, "fit_intercept": fit_intercept}
    fit = problem.fit(tol=1e-8, **settings)
    assert fit.stop_reason_ == "converged"
    before, objective = bits(fit), fit.objective_
    fit.set_params(tol=1e-7).fit(problem.X, problem.y)
    assert fit.n_iter_ == 0
    assert fit.objective_ == pytest.approx(objective, rel=1e-9)
    # On the way from there to another optimum the finish is at hand, too.
    fit.set_params(C=20.0, tol=1e-8).fit(problem.X, problem.y)
    assert_solved(problem, fit, problem.lam_of(20.0), 1e-8)
    assert bits(fit) != before


@pytest.mark.parametrize("loss", ["hinge", "log", "squared_hinge"])
def test_classes_are_fitted_one_by_one(loss):
    X, y = load_wine(return_X_y=True)
    together = Sdca(loss, tol=1e-6, n_jobs=2, random_state=0).fit(X, y)
    serial = Sdca(loss, tol=1e-6, random_state=0).fit(X, y)
    assert bits(together) == bits(serial)


# ---------------------------------------------------------------- vector instructions

LEVELS = """
    import numpy as np
    from conftest import make_problem

    for loss in ("hinge", "log", "squared", "absolute"):
        for d in (1, 7, 37, 200):
            for number in (np.float64, np.float32):
                problem = make_problem(loss, 150, d)
                problem = problem.but(X=problem.X.astype(number))
                fit = problem.fit(lam=0.05, tol=1e-11)
                assert fit.stop_reason_ == "converged"
                values = fit.objective_, fit.dual_objective_
                print(loss, d, number.__name__, *(value.hex() for value in values))
"""


def fits_with(level):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LEVELS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=os.path.dirname(__file__),
        env=os.environ | {"SDCA_RS_SIMD": level},
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    return [row[:3] for row in rows], [
        list(map(float.fromhex, row[3:])) for row in rows
    ]


def test_levels_of_vector_instructions_agree():
    found = {level: fits_with(level) for level in ("portable", "avx2", "avx512")}
    names, expected = found["portable"]
    assert len(names) == 32
    for level, (others, values) in found.items():
        assert others == names, level
        for name, (primal, dual), (other_primal, other_dual) in zip(
            names, expected, values, strict=True
        ):
            assert other_primal == pytest.approx(primal, rel=1e-10), (level, name)
            assert dual <= other_primal * (1 + 1e-13), (level, name)
            assert other_dual <= primal * (1 + 1e-13), (level, name)
    # A level that does not exist limits nothing.
    best = fits_with("")
    assert fits_with("avx1024") == best
    assert best == found["avx512"]
