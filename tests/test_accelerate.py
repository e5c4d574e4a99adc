"""Acceleration: short passes and a second-order finish, which change no promise."""

import os
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

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
    # What rounding leaves of w(a), whose terms may be much larger than their sum.
    lost = 4e-16 * problem.but(X=abs(problem.X)).coef_of(abs(a), lam)
    dual_noise = lam * (abs(problem.coef_of(a, lam)) @ lost + lost @ lost)
    assert abs(fit.dual_objective_ - dual) <= 1e-11 * size + noise + dual_noise
    assert fit.duality_gap_ == fit.objective_ - fit.dual_objective_
    assert fit.duality_gap_ >= -1e-12 * size - noise - dual_noise
    low, high = problem.bounds()
    assert np.all((low <= a) & (a <= high))
    if fit.fit_intercept:
        assert abs(problem.c @ a) <= 1e-12 * (problem.c @ abs(a))
    else:
        assert b == 0.0
    within = fit.duality_gap_ <= tol * fit.objective_
    # Where the objective vanishes it cannot be a measure of the gap.
    perfect = fit.duality_gap_ <= 1e-13 * np.max(abs(problem.y))
    assert fit.stop_reason_ in ("converged", "max_iter", "precision")
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
        assert_solved(problem, fit, lam, 1e-4)


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
def test_columns_of_extreme_scales(loss, fit_intercept, C):
    problem = make_problem(loss, 120, 8)
    problem = problem.but(X=problem.X * 10.0 ** np.linspace(-4, 4, 8))
    lam, tol = problem.lam_of(C), 1e-4
    fit = problem.fit(C=C, fit_intercept=fit_intercept, tol=tol, max_iter=1000)
    assert_solved(problem, fit, lam, tol)


# ---------------------------------------------------------------- systems and phases


def phases(fit):
    return set(fit.history_["phase"].tolist())


def text(n=2000, d=5000, per_row=40, seed=0):
    """Generate rows of unit norm with few entries, most of them in some columns."""
    rng = np.random.default_rng(seed)
    places = (d * rng.random((n, per_row)) ** 3).astype(int).ravel()
    entries = (
        rng.exponential(size=n * per_row),
        (
            np.repeat(np.arange(n), per_row),
            places,
        ),
    )
    X = sp.csr_matrix(entries, shape=(n, d))
    X.sum_duplicates()
    sizes = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags(1 / sizes) @ X)
    score = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return Problem("hinge", X, np.where(score > 0, 1.0, -1.0))


@without_warnings
def test_phases_are_in_the_history():
    easy = make_problem("hinge", 3000, 10)
    fit = easy.fit(C=1e-4, max_iter=1000)
    assert_solved(easy, fit, easy.lam_of(1e-4), 1e-4)
    assert phases(fit) == {"plain"}

    large = text()
    fit = large.fit(C=1e3, max_iter=1000)
    assert_solved(large, fit, large.lam_of(1e3), 1e-4)
    assert phases(fit) == {"plain", "proximal"}

    raw_columns = uneven("log")
    fit = raw_columns.fit(C=100.0, tol=1e-6, max_iter=1000)
    assert_solved(raw_columns, fit, raw_columns.lam_of(100.0), 1e-6)
    assert phases(fit) >= {"plain", "newton"}

    for problem in (easy, large, raw_columns):
        fit = problem.fit(C=100.0, max_iter=60, accelerate=False)
        assert phases(fit) == {"plain"}
        # Nor where all epochs are asked for.
        fit = problem.fit(C=100.0, max_iter=60, tol=0.0)
        assert phases(fit) == {"plain"}


@without_warnings
def test_phases_follow_each_other():
    fit = uneven("hinge").fit(C=100.0, tol=1e-8, max_iter=1000)
    order = fit.history_["phase"].tolist()
    assert order[0] == "plain"
    assert order[-1] == "newton"
    phases = ["plain", "momentum", "proximal", "newton"]
    assert order == sorted(order, key=phases.index)


@pytest.mark.parametrize("q", [0.5, 2.0, 8.0])
@pytest.mark.parametrize(
    ("loss", "gamma"), [("squared_hinge", 0.5), ("log", 4.0), ("squared", 1.0)]
)
@without_warnings
def test_epochs_are_no_more_than_theory_says_from_anywhere_on(loss, gamma, q):
    """By this the solver judges a run whose gap says little yet."""
    problem, tol = make_problem(loss, 1000, 20), 1e-6
    X = problem.X / np.linalg.norm(problem.X, axis=1, keepdims=True)
    settings = {"C": q, "fit_intercept": False, "tol": tol, "max_iter": 1000}
    fit = problem.but(X=X).fit(accelerate=False, record_every=1, **settings)
    assert fit.stop_reason_ == "converged"
    history, slowness = fit.history_, 1 + q / gamma
    in_theory = slowness * np.log(slowness * history["gap"] / (tol * history["primal"]))
    is_there = history["gap"] <= tol * history["primal"]
    reached = history["epoch"][np.argmax(is_there)]
    to_come = (reached - history["epoch"])[~is_there]
    assert np.all(to_come <= np.ceil(in_theory[~is_there]))


@pytest.mark.parametrize("seed", range(3))
@with_and_without_intercept
@without_warnings
def test_momentum_saves_epochs_where_rows_are_much_alike(fit_intercept, seed):
    """With tol=0 there are short passes, too, but no momentum."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat(rng.random((750, 1000)) < 0.008, 4, axis=0)
    noise = (rng.random(kinds.shape) < 0.002) * rng.normal(size=kinds.shape)
    X = sp.csr_matrix(normalize(kinds + noise))
    y = np.repeat(rng.normal(size=750), 4) + 0.5 * rng.normal(size=3000) > 0
    tol, settings = 1e-8, {"fit_intercept": fit_intercept, "record_every": 1}
    settings |= {"max_iter": 5000, "random_state": 0}
    fit = Sdca("hinge", tol=tol, **settings).fit(X, y)
    assert fit.stop_reason_ == "converged"
    assert set(fit.history_["phase"]) == {"plain", "momentum"}

    def is_there(progress):
        return progress.gap <= tol * progress.primal

    without = Sdca("hinge", tol=0, callback=is_there, **settings).fit(X, y)
    assert fit.n_iter_ < 0.6 * without.n_iter_
    # Nor is it the objective of another problem.
    assert fit.objective_ == pytest.approx(without.objective_, rel=2 * tol)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_threads_change_nothing(loss, layout):
    problem = make_problem(loss, 6000 if layout == "dense" else 24000, 50)
    if layout == "csr":
        kept = np.random.default_rng(0).random(problem.X.shape) < 0.25
        problem = problem.but(X=problem.X * kept)
    given = problem.but(X=LAYOUTS[layout](problem.X))
    # Less is not shared.
    assert np.count_nonzero(problem.X) >= 2**18
    fits = [
        given.fit(C=100.0, tol=1e-6, max_iter=1000, n_jobs=n_jobs)
        for n_jobs in (1, 2, 3)
    ]
    assert_solved(problem, fits[0], problem.lam_of(100.0), 1e-6)
    assert "newton" in phases(fits[0])
    for fit in fits[1:]:
        assert bits(fit) == bits(fits[0])
        for name in fit.history_:
            if "seconds" not in name:
                one, other = fit.history_[name], fits[0].history_[name]
                assert one.tolist() == other.tolist(), name


@with_and_without_intercept
@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
def test_many_rows_of_some_hundred_columns(loss, fit_intercept):
    # A sample of the rows is the way. Every fifth column has entries in 14 of them.
    problem = make_problem(loss, 20000, 600)
    X = problem.X
    X[:, ::5] *= np.arange(len(X))[:, None] % 1500 == 7
    problem = problem.but(X=X)
    settings = {"C": 10.0, "max_iter": 1000, "fit_intercept": fit_intercept}
    one, two = (problem.fit(tol=1e-9, n_jobs=n, **settings) for n in (1, 2))
    assert_solved(problem, one, problem.lam_of(10.0), 1e-9)
    assert "newton" in phases(one)
    assert bits(one) == bits(two)
    # A handful of steps, each of which counts as two epochs.
    assert one.n_iter_ <= 60


@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("mean", [10.0, 1000.0])
@pytest.mark.parametrize(
    "loss", ["hinge", "squared_hinge", "log", "absolute", "squared"]
)
def test_far_more_columns_than_rows(loss, mean, C):
    problem = make_problem(loss, 60, 4000)
    problem = problem.but(X=problem.X + mean)
    fit = problem.fit(C=C, fit_intercept=False, max_iter=1000)
    assert_solved(problem, fit, problem.lam_of(C), 1e-4)
    assert "newton" in phases(fit)
    again = certify(fit, problem.X, problem.y)
    assert again.objective == pytest.approx(fit.objective_, rel=1e-10)
    assert again.dual_objective == pytest.approx(fit.dual_objective_, rel=1e-10)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("per_row", [3, 10])
@with_and_without_intercept
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_many_rows_and_columns_of_different_sizes(loss, fit_intercept, per_row, C):
    n = 3500
    rng = np.random.default_rng(0)
    X = sp.random(
        n, n, per_row / n, "csr", random_state=0, data_rvs=rng.standard_normal
    )
    X = sp.csr_matrix(X @ sp.diags(10.0 ** rng.uniform(-2, 2, n)))
    score = X @ rng.normal(size=n)
    score = score / np.std(score) + 0.3 * rng.normal(size=n)
    y = np.where(score > 0, 1.0, -1.0) if loss == "log" else score
    problem = Problem(loss, X, y)
    fit = problem.fit(C=C, fit_intercept=fit_intercept, max_iter=1000)
    assert_solved(problem, fit, problem.lam_of(C), 1e-4)
    # With C = 1 the log loss may do without.
    assert "newton" in phases(fit) or (loss == "log" and C == 1.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
@with_and_without_intercept
@pytest.mark.parametrize("loss", ["smooth_hinge", "squared_hinge"])
def test_classes_that_can_almost_be_told_apart(loss, fit_intercept, noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 100))
    score = X @ rng.normal(size=100) / 10 + noise * rng.normal(size=150)
    y = np.where(score > 0, 1.0, -1.0)
    problem = Problem(loss, X * 10.0 ** np.linspace(-3, 3, 100), y)
    fit = problem.fit(C=1e4, fit_intercept=fit_intercept, max_iter=1000)
    assert_solved(problem, fit, problem.lam_of(1e4), 1e-4)
    assert "newton" in phases(fit)


@pytest.mark.parametrize(
    "loss", ["hinge", "smooth_hinge", "quantile", "absolute", "epsilon_insensitive"]
)
@without_warnings
def test_few_rows_that_are_all_flat(loss):
    """Nothing but the gradient tells where the intercept has to go."""
    for seed in range(100):
        problem = make_problem(loss, 3 + seed % 8, 2, seed=seed)
        for C in (1e-3, 1e-1, 1.0):
            fit = problem.fit(C=C, max_iter=1000)
            assert_solved(problem, fit, problem.lam_of(C), 1e-4)
    if loss == "hinge":
        X, y = np.array([[-6.0], [-5.0], [-3.0]]), np.array([1.0, -1.0, 1.0])
        problem = Problem(loss, X, y)
        fit = problem.fit(C=0.1, max_iter=1000)
        assert_solved(problem, fit, problem.lam_of(0.1), 1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1, 2])
@with_and_without_intercept
@every_loss
def test_rounding_ends_a_fit(loss, fit_intercept, scale, seed):
    """A tolerance out of reach does not cost all epochs."""
    problem, C, tol = make_problem(loss, 120, 8, seed=seed), 1e4, 1e-18
    problem = problem.but(X=problem.X * 10.0 ** np.linspace(-scale, scale, 8))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = problem.fit(C=C, tol=tol, max_iter=10**5, fit_intercept=fit_intercept)
    assert_truthful(problem, fit, problem.lam_of(C), tol)
    assert fit.duality_gap_ <= 1e-10 * fit.objective_
    assert fit.stop_reason_ in ("converged", "precision")
    assert fit.n_iter_ < 10**4
    if fit.stop_reason_ == "precision":
        [warning] = caught
        assert warning.category is ConvergenceWarning
        assert "precision" in str(warning.message)
    else:
        assert caught == []


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


def sparse_classes(n_classes=11):
    """Return sparse rows of norm 1, and classes that hang on them."""
    rng = np.random.default_rng(0)
    X = sp.random(3000, 200, 0.05, format="csr", random_state=0)
    X = sp.csr_matrix(normalize(X))
    scores = X @ rng.standard_normal((200, n_classes))
    return X, (scores + 0.3 * rng.standard_normal(scores.shape)).argmax(axis=1)


@pytest.mark.parametrize("loss", ["hinge", "log", "squared_hinge"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_classes_begin_together(loss, fit_intercept):
    X, y = sparse_classes()
    settings = {"fit_intercept": fit_intercept, "tol": 1e-5, "random_state": 0}
    model = Sdca(loss, **settings).fit(X, y)
    for n_jobs in (1, 2, 3):
        assert bits(Sdca(loss, n_jobs=n_jobs, **settings).fit(X, y)) == bits(model)
    common = 8 if loss == "hinge" else 6
    for k, history in enumerate(model.history_):
        own = Sdca(loss, **settings).fit(X, y == k)
        low, high = own.objective_ - own.duality_gap_, own.objective_
        gap = model.duality_gap_[k]
        assert gap <= 1e-5 * model.objective_[k]
        assert low * (1 - 1e-12) <= model.objective_[k] <= (high + gap) * (1 + 1e-12)
        assert own.history_["epoch"][1] == 2
        assert history["epoch"][:2].tolist() == [0, common]
        assert (np.diff(history["seconds"]) > 0).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"accelerate": False},
        {"max_time": 1e3},
        {"sampling": "cyclic"},
        {"C": 1e-3},
        {"C": 1e3},
        {"tol": 0.1},
    ],
    ids=str,
)
def test_classes_begin_one_by_one(settings):
    X, y = sparse_classes(4)
    settings = {"random_state": 0, "max_iter": 5000, **settings}
    model = Sdca("squared_hinge", **settings).fit(X, y)
    for k, history in enumerate(model.history_):
        own = Sdca("squared_hinge", **settings).fit(X, y == k)
        assert model.coef_[k].tobytes() == own.coef_[0].tobytes()
        assert history["epoch"].tolist() == own.history_["epoch"].tolist()


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


@with_and_without_intercept
def test_a_quadratic_loss_takes_one_direction(fit_intercept):
    # More columns than a matrix is set up for, of very different sizes.
    rng = np.random.default_rng(0)
    X = sp.random(6000, 3200, density=0.004, format="csr", random_state=0)
    X = sp.csr_matrix(X @ sp.diags(10.0 ** rng.uniform(-2, 2, 3200)))
    y = X @ rng.normal(size=3200) + rng.normal(size=6000)
    problem = Problem("squared", X, y / y.std())
    fit = problem.fit(C=10.0, tol=1e-8, max_iter=1000, fit_intercept=fit_intercept)
    assert_solved(problem, fit, problem.lam_of(10.0), 1e-8)
    history = fit.history_
    assert history["phase"][-1] == "newton"
    # A step counts as two epochs, and one more finds out that it has arrived.
    others = history["epoch"][history["phase"] != "newton"]
    assert history["epoch"][-1] <= others[-1] + 4
