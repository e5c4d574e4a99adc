"""Problems that mean the same have the same answer, whichever solver is asked.

A law says how to change a problem into a twin of it, and what that makes of models,
dual points and objectives. The fits of both are then compared in two ways.

* Through their certificates, once both are solved: neither may be below the lower bound
  of the other, and the models may not be farther apart than strong convexity allows.
  That holds for all solvers, whatever order they visit the rows in.
* Step by step, after a few epochs: most laws turn every step into one of the twin, so
  that the models agree up to rounding, long before they are solved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import (
    CLASSIFIERS,
    LOSSES,
    NAMES,
    REGRESSORS,
    SHAPES,
    SMOOTH,
    Model,
    Problem,
    make_problem,
    model_of,
)
from sdca_rs import Asdca, DualGradient, Pegasos, Sdca, Subgradient

ESTIMATORS = [Sdca, Asdca, Pegasos, Subgradient, DualGradient]
# Asdca refuses the losses with kinks: see test_asdca_refuses_kinks_...
PAIRS = [
    (estimator, loss)
    for estimator in ESTIMATORS
    for loss in NAMES
    if estimator is not Asdca or loss in SMOOTH
]
# What has a kink in p: a row may lie on it, and then rounding decides its slope.
KINKS = ["hinge", "absolute", "epsilon_insensitive", "quantile"]
LAM = 0.3

every_pair = pytest.mark.parametrize(
    ("estimator", "loss"), PAIRS, ids=[f"{e.__name__}-{loss}" for e, loss in PAIRS]
)


# ---------------------------------------------------------------- the laws


@dataclass(frozen=True)
class Shaped(Problem):
    """A problem whose loss has a shape of its own."""

    shape: float | None = None

    @property
    def loss_param(self) -> float | None:
        return self.shape


class Twin(NamedTuple):
    """A changed problem, and what the change makes of what is known of the first.

    ``w``, ``b`` and ``a`` carry coefficients, intercepts (given the coefficients) and
    dual values over; ``lam`` and the objectives are multiplied by ``strength`` and
    ``value``.
    """

    problem: Problem
    strength: float = 1.0
    w: Callable[[Any], Any] = lambda w: w
    b: Callable[[float, Any], float] = lambda b, w: b
    a: Callable[[Any], Any] = lambda a: a
    value: float = 1.0

    def carry(self, model: Model) -> Model:
        return Model(self.w(model.w), self.b(model.b, model.w), self.a(model.a))


class Law(NamedTuple):
    """How to make a twin, and of which problems.

    ``weights`` are those of the problem (see ``make_problem``), ``losses`` the ones
    that obey, and ``intercepts`` the values of ``fit_intercept`` under which they do.
    """

    twin: Callable[[Problem], Twin]
    weights: str | None = "fractions"
    losses: list[str] = NAMES
    intercepts: tuple[bool, ...] = (True, False)


def negative(x: Any, *_: Any) -> Any:
    return -x


def shaped(problem: Problem, shape: float | None, **changes: Any) -> Shaped:
    fields = {"X": problem.X, "y": problem.y, "weights": problem.weights} | changes
    return Shaped(problem.loss, shape=shape, **fields)


def stored(store: Callable[[Any], Any]) -> Law:
    return Law(lambda problem: Twin(problem.but(X=store(problem.X))))


def rows(problem: Problem, at: Any, *, weights: Any) -> Twin:
    """Return the twin that has the rows ``at``, each as often as it is named."""
    twin = problem.but(X=problem.X[at], y=problem.y[at], weights=weights)
    return Twin(twin, a=lambda a: a[at])


def permuted_rows(problem: Problem) -> Twin:
    at = np.random.default_rng(1).permutation(len(problem.y))
    return rows(problem, at, weights=problem.c[at])


def doubled_rows(problem: Problem) -> Twin:
    return rows(problem, np.repeat(np.arange(len(problem.y)), 2), weights=None)


def counted_rows(problem: Problem) -> Twin:
    at = np.repeat(np.arange(len(problem.y)), problem.c.astype(int))
    return rows(problem, at, weights=None)


def present_rows(problem: Problem) -> Twin:
    at = np.flatnonzero(problem.c)
    return rows(problem, at, weights=problem.c[at])


def weighted(factor: float) -> Callable[[Problem], Twin]:
    return lambda problem: Twin(problem.but(weights=factor * problem.c))


def permuted_columns(problem: Problem) -> Twin:
    at = [2, 0, 3, 1]
    return Twin(problem.but(X=problem.X[:, at]), w=lambda w: w[at])


def turned_columns(problem: Problem) -> Twin:
    # Neither the lengths of rows nor that of w change.
    turn, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))
    return Twin(problem.but(X=problem.X @ turn), w=lambda w: w @ turn)


def with_empty_column(problem: Problem) -> Twin:
    wider = np.insert(problem.X, 2, 0.0, axis=1)
    return Twin(problem.but(X=wider), w=lambda w: np.insert(w, 2, 0.0))


def scaled(factor: float) -> Callable[[Problem], Twin]:
    # P(w / s) is the same if lam |w / s|^2 is: lam s^2, or C / s^2.
    return lambda problem: Twin(
        problem.but(X=problem.X * factor), factor**2, w=lambda w: w / factor
    )


def shifted_columns(problem: Problem) -> Twin:
    shift = np.array([3.0, -1.0, 0.0, 20.0])
    return Twin(problem.but(X=problem.X + shift), b=lambda b, w: b - shift @ w)


def turned_signs(problem: Problem) -> Twin:
    return Twin(problem.but(X=-problem.X), w=negative)


def exchanged_classes(problem: Problem) -> Twin:
    return Twin(problem.but(y=-problem.y), w=negative, b=negative, a=negative)


def shifted_targets(problem: Problem) -> Twin:
    return Twin(problem.but(y=problem.y + 7.0), b=lambda b, w: b + 7.0)


def reflected_targets(problem: Problem) -> Twin:
    tau = problem.loss_param
    shape = 1 - tau if problem.loss == "quantile" else tau
    twin = shaped(problem, shape, y=-problem.y)
    return Twin(twin, w=negative, b=negative, a=negative)


# Losses whose value is multiplied by s^2 if y, p and the shape are by s. Those of the
# others that obey are by s.
QUADRATIC = ["squared", "huber", "squared_epsilon_insensitive"]


def scaled_targets(s: float) -> Callable[[Problem], Twin]:
    def times(x: Any, *_: Any) -> Any:
        return s * x

    def change(problem: Problem) -> Twin:
        shape = problem.loss_param
        if problem.loss in SHAPES and problem.loss != "quantile":
            shape *= s
        twin = shaped(problem, shape, y=s * problem.y)
        if problem.loss in QUADRATIC:
            return Twin(twin, w=times, b=times, a=times, value=s**2)
        return Twin(twin, 1 / s, w=times, b=times, value=s)

    return change


def scaled_counts(problem: Problem) -> Twin:
    # phi(p + log(s); s y) = s phi(p; y) for the loss "poisson".
    s = 3.0
    return Twin(
        problem.but(y=s * problem.y),
        s,
        b=lambda b, w: b + np.log(s),
        a=lambda a: s * a,
        value=s,
    )


TRANSLATED = [loss for loss in REGRESSORS if LOSSES[loss].link == "identity"]
LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csr of float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "csc": sp.csc_array,
}
LAWS = {
    **{name: stored(store) for name, store in LAYOUTS.items()},
    "permuted rows": Law(permuted_rows),
    "doubled rows": Law(doubled_rows, weights=None),
    "counted rows": Law(counted_rows, weights="counts"),
    "present rows": Law(present_rows),
    "weights of 2": Law(weighted(2.0), weights=None),
    "weights times 1/3": Law(weighted(1 / 3)),
    "permuted columns": Law(permuted_columns),
    "turned columns": Law(turned_columns),
    "empty column": Law(with_empty_column),
    "X times 1000": Law(scaled(1000.0)),
    "X times 2^-20": Law(scaled(2.0**-20)),
    "X times -1": Law(turned_signs),
    "shifted columns": Law(shifted_columns, intercepts=(True,)),
    "exchanged classes": Law(exchanged_classes, losses=CLASSIFIERS),
    "shifted targets": Law(shifted_targets, losses=TRANSLATED, intercepts=(True,)),
    "reflected targets": Law(reflected_targets, losses=TRANSLATED),
    "targets times 3": Law(scaled_targets(3.0), losses=TRANSLATED),
    "targets times 1e-9": Law(scaled_targets(1e-9), losses=TRANSLATED),
    "targets times 1e9": Law(scaled_targets(1e9), losses=TRANSLATED),
    "scaled counts": Law(scaled_counts, losses=["poisson"], intercepts=(True,)),
}
TWINS = [
    (name, estimator, loss)
    for name, law in LAWS.items()
    for estimator, loss in PAIRS
    if loss in law.losses
]
every_twin = pytest.mark.parametrize(
    ("name", "estimator", "loss"),
    TWINS,
    ids=[f"{name}-{estimator.__name__}-{loss}" for name, estimator, loss in TWINS],
)


@cache
def original(loss: str, weights: str | None) -> Problem:
    """Return a problem whose numbers single precision holds exactly."""
    problem = make_problem(loss, 40, 4, weights=weights)
    return problem.but(X=problem.X.astype(np.float32).astype(float))


def close(value: float, expected: float, *, by: float, size: float = 0.0) -> bool:
    return abs(value - expected) <= by * max(abs(expected), size)


# ---------------------------------------------------------------- solved


def solved(estimator: Any, loss: str) -> dict[str, Any]:
    """Return settings with which the problems of this file are solved, soon."""
    if estimator is Sdca:
        return {"tol": 1e-8, "max_iter": 10_000}
    if estimator is Pegasos or (estimator is Subgradient and loss not in SMOOTH):
        return {"tol": 3e-2, "max_iter": 20_000}
    return {"tol": 1e-6, "max_iter": 50_000}


@cache
def fit_of_original(
    estimator: Any, loss: str, weights: str | None, fit_intercept: bool
) -> Any:
    return original(loss, weights).fit(
        estimator, lam=LAM, fit_intercept=fit_intercept, **solved(estimator, loss)
    )


def assert_same_optimum(one: Any, twin: Twin, other: Any) -> None:
    """Compare a fit with that of the twin of its problem, through both certificates."""
    carried, model, lam = twin.carry(model_of(one)), model_of(other), other.lam
    P, D = twin.value * one.objective_, twin.value * one.dual_objective_
    rounding = 1e-11 * (abs(P) + abs(D))
    # The law itself: what is carried over is worth what it was.
    assert close(twin.problem.primal(carried.w, carried.b, lam), P, by=1e-10)
    assert close(twin.problem.dual(carried.a, lam), D, by=1e-10, size=abs(P))
    # So each bound holds for both, and it bounds something.
    for fit in (one, other):
        assert fit.stop_reason_ == "converged"
        assert fit.duality_gap_ <= fit.tol * fit.objective_
    assert other.objective_ + rounding >= D
    assert other.dual_objective_ <= P + rounding
    gaps = twin.value * one.duality_gap_, other.duality_gap_
    assert abs(P - other.objective_) <= sum(gaps) + rounding
    reach = sum(np.sqrt(2 * (max(gap, 0.0) + rounding) / lam) for gap in gaps)
    assert np.linalg.norm(model.w - carried.w) <= reach


@every_twin
def test_twins_have_the_same_optimum(name, estimator, loss):
    law, settings = LAWS[name], solved(estimator, loss)
    twin = law.twin(original(loss, law.weights))
    for fit_intercept in law.intercepts:
        one = fit_of_original(estimator, loss, law.weights, fit_intercept)
        other = twin.problem.fit(
            estimator,
            lam=LAM * twin.strength,
            fit_intercept=fit_intercept,
            **settings,
        )
        assert_same_optimum(one, twin, other)
        if name == "empty column":
            assert model_of(other).w[2] == 0.0


@cache
def uneven(loss: str, weights: str | None) -> Problem:
    """Return a problem that takes Sdca an outer loop, or Newton's method."""
    problem = make_problem(loss, 300, 4, weights=weights)
    X = problem.X * [0.02, 0.1, 1.0, 0.5 if loss == "poisson" else 6.0]
    return problem.but(X=X.astype(np.float32).astype(float))


HARD = {"lam": 1e-4, "tol": 1e-8, "max_iter": 10_000}


@cache
def fit_of_uneven(loss: str, weights: str | None, fit_intercept: bool) -> Any:
    return uneven(loss, weights).fit(Sdca, fit_intercept=fit_intercept, **HARD)


@pytest.mark.parametrize(
    ("name", "loss"), [(name, loss) for name, e, loss in TWINS if e is Sdca]
)
def test_twins_that_need_acceleration_have_the_same_optimum(name, loss):
    law = LAWS[name]
    twin = law.twin(uneven(loss, law.weights))
    settings = HARD | {"lam": HARD["lam"] * twin.strength}
    for fit_intercept in law.intercepts:
        one = fit_of_uneven(loss, law.weights, fit_intercept)
        other = twin.problem.fit(Sdca, fit_intercept=fit_intercept, **settings)
        assert {"proximal", "newton"} & set(one.history_["phase"])
        assert_same_optimum(one, twin, other)


# ---------------------------------------------------------------- step by step

# A few epochs of the published methods, from which nothing is solved yet.
STEPS = {
    Sdca: {"accelerate": False, "max_iter": 4},
    Asdca: {"max_iter": 6},
    Pegasos: {"max_iter": 6, "batch_size": "auto"},
    Subgradient: {"max_iter": 6, "output": "last"},
    DualGradient: {"max_iter": 6},
}
# These change which rows, or how many, are drawn together.
OF_ROWS = ["permuted rows", "doubled rows", "counted rows"]
OF_TARGETS = [name for name in LAWS if "targets" in name or name == "scaled counts"]


def steps_are_those_of_the_twin(name: str, estimator: Any, loss: str) -> bool:
    if estimator in (Sdca, Asdca):
        return name not in OF_ROWS
    # Pegasos takes all of so few rows in each step. It begins at a median, though,
    # where a row lies on the kink.
    return not (estimator is Pegasos and loss in KINKS and name in OF_TARGETS)


@every_twin
def test_steps_of_twins_are_the_same(name, estimator, loss):
    if not steps_are_those_of_the_twin(name, estimator, loss):
        return
    law = LAWS[name]
    problem = original(loss, law.weights)
    twin = law.twin(problem)
    # The intercept at which Pegasos begins is the best one to a few digits only. Those
    # of full batches have a step from a power iteration, which starts at the columns.
    by = 1e-3 if estimator is Pegasos and name in OF_TARGETS else 1e-6
    for fit_intercept in law.intercepts:
        settings = {"fit_intercept": fit_intercept, "tol": 0.0, "record_every": 1}
        settings |= STEPS[estimator]
        one = problem.fit(estimator, lam=LAM, **settings)
        other = twin.problem.fit(estimator, lam=LAM * twin.strength, **settings)
        # The last point is that of no coefficients, if steps have made it worse.
        before, after = one.history_, other.history_
        assert len(before["epoch"]) == len(after["epoch"]) >= 5
        primal, dual = (twin.value * before[side] for side in ("primal", "dual"))
        assert np.all(abs(after["primal"] - primal) <= by * primal)
        assert np.all(abs(after["dual"] - dual) <= by * (primal + abs(dual)))
        assert min(before["gap"][1:3] / before["primal"][1:3]) > 1e-6
        carried, model = twin.carry(model_of(one)), model_of(other)
        assert np.linalg.norm(model.w - carried.w) <= by * np.linalg.norm(carried.w)
        size = max(1.0, np.max(abs(twin.problem.y)))
        assert abs(model.b - carried.b) <= by * max(abs(carried.b), size)


# ---------------------------------------------------------------- classes


@every_pair
def test_order_of_three_classes_is_the_order_of_their_models(estimator, loss):
    if loss in REGRESSORS:
        return
    rng = np.random.default_rng(3)
    X = rng.normal(size=(45, 4))
    classes = np.array([2.0, 0.0, 1.0])  # Of the twin, for each of the problem.
    y = np.argmax(X[:, :3] + rng.normal(size=(45, 3)), axis=1)
    settings = {"lam": LAM, "random_state": 0, **solved(estimator, loss)}
    one = estimator(loss, **settings).fit(X, y)
    other = estimator(loss, **settings).fit(X, classes[y])
    assert other.classes_.tolist() == [0.0, 1.0, 2.0]
    for k in range(3):
        j = int(classes[k])
        P, D = one.objective_[k], one.dual_objective_[k]
        rounding = 1e-11 * (abs(P) + abs(D))
        assert other.stop_reason_[j] == "converged"
        assert other.objective_[j] + rounding >= D
        assert other.dual_objective_[j] <= P + rounding
        gaps = one.duality_gap_[k], other.duality_gap_[j]
        reach = sum(np.sqrt(2 * (max(gap, 0.0) + rounding) / LAM) for gap in gaps)
        assert np.linalg.norm(other.coef_[j] - one.coef_[k]) <= reach


@every_pair
def test_names_of_classes_change_no_bit(estimator, loss):
    if loss in REGRESSORS:
        return
    problem = original(loss, "fractions")
    settings = {"lam": LAM, "random_state": 0, "tol": 0.0, "max_iter": 5}
    fits = [
        estimator(loss, **settings).fit(
            problem.X, np.where(problem.y > 0, *names), problem.c
        )
        for names in ((1, -1), (True, False), ("yes", "no"), (7.0, -0.0))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.coef_, fits[0].coef_)
        np.testing.assert_array_equal(other.intercept_, fits[0].intercept_)
        np.testing.assert_array_equal(other.dual_coef_, fits[0].dual_coef_)
        assert other.objective_ == fits[0].objective_


# ---------------------------------------------------------------- streams

# Not those that change how many rows there are.
OF_STREAMS = [
    (name, loss)
    for name, law in LAWS.items()
    for loss in law.losses
    if name not in (*OF_ROWS, "present rows")
    and steps_are_those_of_the_twin(name, Pegasos, loss)
]


def stream(problem: Problem, lam: float, *, fit_intercept: bool) -> Model:
    """Go once over the rows, in two parts."""
    model = Pegasos(
        problem.loss,
        loss_param=problem.loss_param,
        lam=lam,
        fit_intercept=fit_intercept,
        random_state=0,
    )
    known = {"classes": [-1, 1]} if problem.loss in CLASSIFIERS else {}
    X = problem.X.tocsr() if sp.issparse(problem.X) else problem.X
    for part in (slice(0, 15), slice(15, 40)):
        c = problem.c[part]
        model.partial_fit(X[part], problem.y[part], sample_weight=c, **known)
    return Model(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), None)


@pytest.mark.parametrize(("name", "loss"), OF_STREAMS)
def test_streams_of_twins_are_the_same(name, loss):
    law = LAWS[name]
    problem = original(loss, law.weights)
    twin = law.twin(problem)
    # Weights of a stream count as they are, not relative to their sum.
    factor = twin.problem.c.sum() / problem.c.sum()
    lam = LAM * twin.strength * factor
    by = 1e-3 if name in OF_TARGETS else 1e-6
    for fit_intercept in law.intercepts:
        if fit_intercept and not close(factor, 1.0, by=1e-9):
            # Steps of the intercept expect weights of mean 1.
            continue
        one = stream(problem, LAM, fit_intercept=fit_intercept)
        other = stream(twin.problem, lam, fit_intercept=fit_intercept)
        w, b = twin.w(one.w), twin.b(one.b, one.w)
        assert np.linalg.norm(w) > 0.0
        assert np.linalg.norm(other.w - w) <= by * np.linalg.norm(w)
        assert close(other.b, b, by=by, size=1.0)
