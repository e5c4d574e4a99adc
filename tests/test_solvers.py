"""Asdca, Pegasos, Subgradient and DualGradient: the published methods, certified."""

import inspect
import itertools
import os
import pickle
import re
import subprocess
import sys
import textwrap
import warnings
from copy import deepcopy
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

import sdca_rs
from conftest import (
    CLASSIFIERS,
    FORMULAS,
    LOSSES,
    NAMES,
    REGRESSORS,
    SMOOTH,
    make_problem,
    model_of,
)
from sdca_rs import Asdca, DualGradient, Pegasos, Progress, Sdca, Subgradient, certify
from sdca_rs.theory import asdca_theta

ESTIMATORS = [Asdca, DualGradient, Pegasos, Subgradient]
OUTPUTS = {
    Asdca: ["last", "average", "random"],
    DualGradient: ["last", "average", "random"],
    Pegasos: ["last", "average", "random"],
    Subgradient: ["best", "last", "average", "random"],
}
# Where a solution to any tolerance can be waited for.
CONVERGENT = [
    *((Asdca, loss) for loss in SMOOTH),
    *((Subgradient, loss) for loss in SMOOTH),
    *((DualGradient, loss) for loss in NAMES),
]
# What Asdca refuses, and says instead.
KINKS = {
    "hinge": '"smooth_hinge"',
    "absolute": '"huber"',
    "epsilon_insensitive": '"squared_epsilon_insensitive"',
    "quantile": "",
    "poisson": "",
}

with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
with_and_without_weights = pytest.mark.parametrize("weights", [None, "fractions"])
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
every_pair = pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (estimator, loss)
        for estimator in ESTIMATORS
        for loss in NAMES
        if estimator is not Asdca or loss in SMOOTH
    ],
)


def loss_for(estimator):
    return "log" if estimator is Asdca else "hinge"


def close(value, expected, *, by=1e-12, scale=0.0):
    """Whether two numbers agree up to rounding of terms of the size of ``scale``."""
    return abs(value - expected) <= by * max(abs(expected), scale)


@cache
def tight(loss, weights, lam, fit_intercept=True, n=60):
    problem = make_problem(loss, n, weights=weights)
    return problem.fit(lam=lam, fit_intercept=fit_intercept, tol=1e-10)


# ---------------------------------------------------------------- the certificate


@with_and_without_weights
@with_and_without_intercept
@every_pair
def test_certificate_is_what_its_definition_says(
    estimator, loss, fit_intercept, weights
):
    problem = make_problem(loss, weights=weights)
    lam = 0.2
    best = tight(loss, weights, lam, fit_intercept)
    for output in OUTPUTS[estimator]:
        fit = problem.fit(
            estimator,
            lam=lam,
            fit_intercept=fit_intercept,
            output=output,
            tol=0.0,
            max_iter=3,
        )
        w, b, a = model_of(fit)
        primal, dual = problem.primal(w, b, lam), problem.dual(a, lam)
        size = abs(primal) + abs(dual)
        assert close(fit.objective_, primal)
        assert close(fit.dual_objective_, dual, scale=size)
        assert fit.duality_gap_ == fit.objective_ - fit.dual_objective_
        # It is not solved yet, so that P and D are told apart.
        assert fit.duality_gap_ > 1e-9 * size
        low, high = problem.bounds()
        assert np.all((low <= a) & (a <= high))
        if fit_intercept:
            assert abs(problem.c @ a) <= 1e-12 * (problem.c @ abs(a))
        else:
            assert b == 0.0
        # Both sides are where they say they are.
        assert fit.dual_objective_ <= best.objective_ * (1 + 1e-12)
        assert fit.objective_ >= best.dual_objective_ * (1 - 1e-12)
        assert fit.objective_ - best.dual_objective_ <= fit.duality_gap_ + 1e-9 * size
        again = certify(fit, problem.X, problem.y, sample_weight=problem.weights)
        assert close(again.objective, fit.objective_)
        assert close(again.dual_objective, fit.dual_objective_, scale=size)


@every_pair
def test_intercept_is_the_best_one(estimator, loss):
    problem = make_problem(loss, weights="fractions")
    for output in OUTPUTS[estimator]:
        fit = problem.fit(estimator, lam=0.1, output=output, tol=0.0, max_iter=4)
        w, b, _ = model_of(fit)
        best = problem.primal(w, b, 0.1)
        for h in 10.0 ** np.arange(-6, 2):
            for other in (b - h, b + h):
                assert problem.primal(w, other, 0.1) >= best * (1 - 1e-12)


@every_pair
def test_coefficients_of_dual_outputs_are_those_of_the_dual_point(estimator, loss):
    if estimator in (Pegasos, Subgradient):
        return
    problem = make_problem(loss, weights="fractions")
    for output in ("average", "random") if estimator is Asdca else OUTPUTS[estimator]:
        fit = problem.fit(estimator, lam=0.1, output=output, tol=0.0, max_iter=4)
        w, _, a = model_of(fit)
        of_dual = problem.coef_of(a, 0.1)
        assert np.abs(w - of_dual).max() <= 1e-12 * np.abs(of_dual).max()


# ---------------------------------------------------------------- the optimum


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize(("estimator", "loss"), CONVERGENT)
def test_convergent_solvers_reach_the_optimum(estimator, loss, fit_intercept, weights):
    problem, lam = make_problem(loss, weights=weights), 0.2
    best = tight(loss, weights, lam, fit_intercept)
    tol = 1e-5
    fit = problem.fit(estimator, lam=lam, fit_intercept=fit_intercept, tol=tol)
    assert fit.stop_reason_ == "converged"
    assert 0 <= fit.duality_gap_ + 1e-14 <= tol * fit.objective_ + 1e-14
    assert fit.objective_ <= best.objective_ * (1 + tol)
    w, best_w = np.ravel(fit.coef_), np.ravel(best.coef_)
    radius = np.sqrt(2 * (tol + 1e-9) * fit.objective_ / lam)
    assert np.linalg.norm(w - best_w) <= radius
    # So that the line before says something.
    assert radius < 0.2 * np.linalg.norm(best_w) or loss == "quantile"


@pytest.mark.parametrize("estimator", [Asdca, Subgradient, DualGradient])
@with_and_without_intercept
def test_squared_is_ridge(estimator, fit_intercept):
    problem, lam = make_problem("squared", weights="fractions"), 0.5
    theirs = Ridge(
        alpha=lam * problem.c.sum(), fit_intercept=fit_intercept, solver="cholesky"
    ).fit(problem.X, problem.y, problem.weights)
    ours = problem.fit(estimator, lam=lam, fit_intercept=fit_intercept, tol=1e-10)
    assert ours.stop_reason_ == "converged"
    assert ours.coef_ == pytest.approx(theirs.coef_, rel=1e-4)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-4)


@pytest.mark.parametrize("estimator", [Asdca, Subgradient, DualGradient])
@with_and_without_intercept
def test_log_is_logistic_regression(estimator, fit_intercept):
    problem, C = make_problem("log", weights="fractions"), 0.1
    theirs = LogisticRegression(
        C=C, fit_intercept=fit_intercept, solver="lbfgs", tol=1e-10, max_iter=10_000
    ).fit(problem.X, problem.y, problem.weights)
    ours = problem.fit(estimator, C=C, fit_intercept=fit_intercept, tol=1e-10)
    assert ours.stop_reason_ == "converged"
    assert ours.coef_ == pytest.approx(theirs.coef_, rel=1e-3, abs=1e-4)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-3, abs=1e-4)
    assert ours.predict_proba(problem.X) == pytest.approx(
        theirs.predict_proba(problem.X), abs=1e-4
    )


@with_and_without_intercept
@pytest.mark.parametrize("loss", NAMES)
def test_gradient_and_cyclic_coordinates_meet(loss, fit_intercept):
    problem = make_problem(loss, 200, weights="counts")
    settings = {"lam": 0.1, "fit_intercept": fit_intercept, "tol": 1e-4}
    gradient = problem.fit(DualGradient, **settings)
    coordinate = problem.fit(sampling="cyclic", **settings)
    for one, other in itertools.permutations([gradient, coordinate]):
        assert one.stop_reason_ == "converged"
        # Both gaps bound the difference; either may be 0 up to rounding.
        assert one.dual_objective_ <= other.objective_ * (1 + 1e-12)
        assert one.objective_ <= other.objective_ * (1 + 1e-4)


@pytest.mark.parametrize("estimator", [Pegasos, Subgradient])
@pytest.mark.parametrize("loss", [loss for loss in NAMES if loss != "poisson"])
def test_primal_solvers_come_close(estimator, loss):
    problem = make_problem(loss, 300)
    fit = problem.fit(estimator, lam=0.2, tol=2e-2, max_iter=5000)
    assert fit.stop_reason_ == "converged"
    best = problem.fit(lam=0.2, tol=1e-8)
    assert best.dual_objective_ <= fit.objective_ <= best.objective_ * (1 + 2e-2)


@pytest.mark.parametrize("loss", NAMES)
def test_dual_gradient_never_falls(loss):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(DualGradient, lam=0.1, tol=0.0, max_iter=200, record_every=1)
    dual = fit.history_["dual"]
    assert np.diff(dual).min() >= -1e-12 * abs(dual).max()
    assert dual[-1] > dual[0]


@pytest.mark.parametrize("loss", SMOOTH)
def test_gradient_descent_never_climbs(loss):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(
        Subgradient, lam=0.1, output="last", tol=0.0, max_iter=200, record_every=1
    )
    primal = fit.history_["primal"]
    assert np.diff(primal).max() <= 1e-12 * primal[0]
    assert primal[-1] < primal[0]


@pytest.mark.parametrize("loss", NAMES)
def test_best_is_the_best_so_far(loss):
    problem = make_problem(loss)
    settings = {"lam": 0.1, "tol": 0.0, "max_iter": 50, "record_every": 1}
    best = problem.fit(Subgradient, **settings).history_["primal"]
    last = problem.fit(Subgradient, output="last", **settings).history_["primal"]
    assert best == pytest.approx(np.minimum.accumulate(last), rel=1e-9)


# ---------------------------------------------------------------- naive twins

# The derivatives by p, on either side of a kink.
SLOPES = {
    "hinge": lambda p, y, _: np.where(y * p < 1, -y, 0.0),
    "squared_hinge": lambda p, y, _: -2 * y * np.maximum(0.0, 1 - y * p),
    "smooth_hinge": lambda p, y, gamma: -y * np.clip((1 - y * p) / gamma, 0, 1),
    "log": lambda p, y, _: -y * expit(-y * p),
    "modified_huber": lambda p, y, _: -y * np.clip(2 * (1 - y * p), 0, 4),
    "squared": lambda p, y, _: p - y,
    "absolute": lambda p, y, _: np.sign(p - y),
    "huber": lambda p, y, delta: np.clip(p - y, -delta, delta),
    "epsilon_insensitive": lambda p, y, eps: np.sign(p - y) * (abs(p - y) > eps),
    "squared_epsilon_insensitive": lambda p, y, eps: (
        2 * np.sign(p - y) * np.maximum(abs(p - y) - eps, 0.0)
    ),
    "quantile": lambda p, y, tau: np.where(p < y, -tau, 1 - tau),
    "poisson": lambda p, y, _: np.exp(p) - y,
}
# 1 / gamma bounds the curvature.
GAMMAS = {
    "squared_hinge": lambda _: 0.5,
    "smooth_hinge": lambda gamma: gamma,
    "log": lambda _: 4.0,
    "modified_huber": lambda _: 0.5,
    "squared": lambda _: 1.0,
    "huber": lambda _: 1.0,
    "squared_epsilon_insensitive": lambda _: 0.5,
}
UNBOUNDED_SLOPES = ["squared", "squared_hinge", "squared_epsilon_insensitive"]


@pytest.mark.parametrize("loss", NAMES)
def test_slopes_are_those_of_the_formulas(loss):
    # phi(p) + phi*(-a) = -a p, where a = -phi'(p).
    problem = make_problem(loss)
    p = np.random.default_rng(1).normal(size=60)
    a = -SLOPES[loss](p, problem.y, problem.loss_param)
    value, conjugate, _ = FORMULAS[loss]
    y, t = problem.y, problem.loss_param
    assert value(p, y, t) + conjugate(a, y, t) == pytest.approx(-a * p, abs=1e-12)


def gamma_of(problem):
    return GAMMAS[problem.loss](problem.loss_param)


def slopes_of(problem, w, b=0.0):
    return SLOPES[problem.loss](problem.X @ w + b, problem.y, problem.loss_param)


def cyclic_batches(problem, size):
    present = np.flatnonzero(problem.c > 0)
    while True:
        for start in range(0, len(present), size):
            yield present[start : start + size]


class Iterate(NamedTuple):
    """A model and the dual values that have made it."""

    w: np.ndarray
    a: np.ndarray


def mean_iterate(iterates):
    return Iterate(*(np.mean(parts, axis=0) for parts in zip(*iterates, strict=True)))


def pegasos(problem, lam, batch_size, n_epochs, eta, radius=np.inf):
    """Return the model before each step, and the last one."""
    X, c, n_rows = problem.X, problem.c, np.count_nonzero(problem.c)
    n_steps = n_epochs * -(-n_rows // batch_size)
    w, a = np.zeros(X.shape[1]), np.zeros(len(X))
    iterates = [Iterate(w, a)]
    batches = cyclic_batches(problem, batch_size)
    t = 0
    for _, batch in zip(range(n_steps), batches, strict=False):
        # A short batch is a part of a step.
        part = len(batch) / min(batch_size, n_rows)
        t += part
        step = part * eta(t)
        share = np.zeros(len(X))
        # The weight of a row relative to the mean weight.
        share[batch] = c[batch] * n_rows / c.sum() / len(batch)
        g = share * slopes_of(problem, w)
        w = (1 - step * lam) * w - step * (X.T @ g)
        # w is the sum of c_i a_i x_i / (lam W).
        da = np.divide(g, c, out=np.zeros(len(X)), where=c > 0)
        a = (1 - step * lam) * a - step * lam * c.sum() * da
        norm = np.linalg.norm(w)
        if norm > radius:
            w, a = w * radius / norm, a * radius / norm
        iterates.append(Iterate(w, a))
    return iterates


def assert_pegasos(problem, lam, fit, expected):
    w, b, a = model_of(fit)
    assert b == 0.0
    # The first steps are long, and make rounding errors larger.
    assert w == pytest.approx(expected.w, rel=1e-6, abs=1e-8)
    # The dual point is the better of two.
    clipped = np.clip(expected.a, *problem.bounds())
    duals = [problem.dual(clipped, lam), problem.dual(-slopes_of(problem, w), lam)]
    assert fit.dual_objective_ == pytest.approx(max(duals), rel=1e-6, abs=1e-7)
    assert problem.dual(a, lam) == pytest.approx(max(duals), rel=1e-6, abs=1e-7)


def curvature_bound(problem, batch_size):
    """Bound how curved the mean loss of a batch is, as the largest row makes it."""
    assert batch_size == 1
    c, n_rows = problem.c, np.count_nonzero(problem.c)
    largest = (c * (problem.X**2).sum(axis=1)).max() * n_rows / c.sum()
    return largest / GAMMAS.get(problem.loss, lambda _: 1.0)(problem.loss_param)


CYCLIC = {"sampling": "cyclic", "fit_intercept": False, "tol": 0.0}


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7, 60])
@with_and_without_weights
@pytest.mark.parametrize("loss", [x for x in NAMES if x not in UNBOUNDED_SLOPES])
def test_pegasos_is_the_published_one(loss, weights, batch_size, project):
    problem, lam, n_epochs = make_problem(loss, weights=weights), 0.1, 3
    settings = {"batch_size": batch_size, "project": project}
    n_batch = min(batch_size, np.count_nonzero(problem.c))
    radius = np.inf
    if project or loss == "poisson":
        radius = np.sqrt(problem.primal(np.zeros(4), 0.0, lam) / lam)
    if loss == "poisson":
        settings |= {"learning_rate": "constant", "eta0": 0.05}
    iterates = pegasos(
        problem,
        lam,
        n_batch,
        n_epochs,
        (lambda _: 0.05) if loss == "poisson" else (lambda t: 1 / (lam * t)),
        radius,
    )
    fit = problem.fit(Pegasos, lam=lam, max_iter=n_epochs, **settings, **CYCLIC)
    assert_pegasos(problem, lam, fit, iterates[-1])
    if project:
        norms = [np.linalg.norm(w) for w, _ in iterates]
        assert max(norms) == pytest.approx(radius) or loss == "poisson"


@with_and_without_weights
@pytest.mark.parametrize("loss", UNBOUNDED_SLOPES)
def test_pegasos_begins_gently_where_slopes_have_no_bound(loss, weights):
    problem, lam = make_problem(loss, weights=weights), 0.1
    t0 = curvature_bound(problem, 1) / lam
    iterates = pegasos(problem, lam, 1, 3, lambda t: 1 / (lam * (t + t0)))
    fit = problem.fit(Pegasos, lam=lam, batch_size=1, max_iter=3, **CYCLIC)
    assert_pegasos(problem, lam, fit, iterates[-1])


@pytest.mark.parametrize("loss", ["hinge", "log", "huber", "absolute"])
@pytest.mark.parametrize(
    ("settings", "eta"),
    [
        ({"learning_rate": "constant", "eta0": 0.01}, lambda t: 0.01),
        (
            {"learning_rate": "invscaling", "eta0": 0.02, "power_t": 0.7},
            lambda t: 0.02 / t**0.7,
        ),
        # The longest there is: each step forgets all before it.
        ({"learning_rate": "constant", "eta0": 10.0}, lambda t: 10.0),
        ({"learning_rate": "constant"}, None),
        ({"learning_rate": "invscaling"}, None),
    ],
    ids=["constant", "invscaling", "longest", "constant auto", "invscaling auto"],
)
def test_learning_rates(loss, settings, eta):
    problem, lam = make_problem(loss), 0.1
    if eta is None:
        eta0 = 1 / (lam + curvature_bound(problem, 1))
        power = 0.5 if settings["learning_rate"] == "invscaling" else 0.0
        iterates = pegasos(problem, lam, 1, 2, lambda t: eta0 / t**power)
    else:
        iterates = pegasos(problem, lam, 1, 2, eta)
    fit = problem.fit(Pegasos, lam=lam, batch_size=1, max_iter=2, **settings, **CYCLIC)
    assert_pegasos(problem, lam, fit, iterates[-1])


@pytest.mark.parametrize("average_from", [0.0, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("loss", ["hinge", "log", "squared"])
@pytest.mark.parametrize("project", [False, True])
def test_average_is_the_mean_of_the_iterates(loss, average_from, project):
    problem, lam, n_epochs = make_problem(loss), 0.1, 10
    t0 = curvature_bound(problem, 1) / lam if loss == "squared" else 0.0
    P0 = problem.primal(np.zeros(4), 0.0, lam)
    radius = np.sqrt(P0 / lam) if project else np.inf
    iterates = pegasos(
        problem, lam, 1, n_epochs, lambda t: 1 / (lam * (t + t0)), radius
    )
    T = n_epochs * 60
    kept = iterates[round(average_from * T) : T]
    settings = {"batch_size": 1, "project": project, "average_from": average_from}
    settings |= {"lam": lam, "max_iter": n_epochs, **CYCLIC}
    fit = problem.fit(Pegasos, output="average", **settings)
    assert_pegasos(problem, lam, fit, mean_iterate(kept))
    # Not the last one as often as there are steps, nor a mean that begins elsewhere.
    for wrong in (
        iterates[-1].w,
        mean_iterate(iterates[round(average_from * T) + 1 :]).w,
        mean_iterate(iterates[1:]).w,
    ):
        assert not np.allclose(fit.coef_, wrong, rtol=1e-6)
    drawn = problem.fit(Pegasos, output="random", **settings)
    distances = [np.abs(drawn.coef_ - w).max() for w, _ in kept]
    assert min(distances) <= 1e-9
    assert np.median(distances) > 1e-6


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_mistakes_in_circulation_are_not_made(loss):
    problem, lam, k, n_steps = make_problem(loss), 0.1, 7, 18
    fit = problem.fit(Pegasos, lam=lam, batch_size=k, max_iter=2, **CYCLIC)
    w = model_of(fit).w

    def twin(eta):
        return pegasos(problem, lam, k, 2, eta)[-1].w

    def other_step(new):
        v = np.zeros(4)
        for t, batch in zip(
            range(1, n_steps + 1), cyclic_batches(problem, k), strict=False
        ):
            part = problem.but(X=problem.X[batch], y=problem.y[batch])
            v = new(v, 1 / t, lambda u, part=part: part.X.T @ slopes_of(part, u) / lam)
        return v

    assert w == pytest.approx(twin(lambda t: 1 / (lam * t)), rel=1e-9)
    wrong = {
        "1 / (lam n)": twin(lambda t: 1 / (lam * 60)),
        "from 2": twin(lambda t: 1 / (lam * (t + 1))),
        "by epoch": twin(lambda t: 1 / (lam * (1 + (t - 1) // 9))),
        "by row": twin(lambda t: 1 / (lam * (1 + (t - 1) * k))),
        "sqrt": twin(lambda t: 1 / (lam * np.sqrt(t))),
        "sum": other_step(lambda v, s, g: (1 - s) * v - s * g(v)),
        "not shrunk": other_step(lambda v, s, g: v - s * g(v) / k),
    }
    if loss == "log":
        wrong["shrunk first"] = other_step(
            lambda v, s, g: (1 - s) * v - s * g((1 - s) * v) / k
        )
    for name, other in wrong.items():
        assert np.linalg.norm(w - other) > 1e-3 * np.linalg.norm(w), name


def asdca(problem, lam, batch_size, n_epochs, theta):
    X, c = problem.X, problem.c
    rate = c / (lam * c.sum())
    if theta is None:
        Q = (rate * (X**2).sum(axis=1)).max() / gamma_of(problem)
        m = batch_size
        powers = (1, (Q * m) ** -0.5, 1 / Q, Q ** (-2 / 3) * m ** (-1 / 3))
        theta = min(powers) / 4
    a, v, w = np.zeros(len(X)), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    n_steps = n_epochs * -(-np.count_nonzero(c) // batch_size)
    iterates = [Iterate(w, a)]
    for _, batch in zip(
        range(n_steps), cyclic_batches(problem, batch_size), strict=False
    ):
        u = (1 - theta) * w + theta * v
        a = a.copy()
        a[batch] = (1 - theta) * a[batch] - theta * slopes_of(problem, u)[batch]
        v = X.T @ (rate * a)
        w = (1 - theta) * w + theta * v
        iterates.append(Iterate(w, a))
    return iterates


@pytest.mark.parametrize("theta", ["auto", 0.3, 1.0])
@pytest.mark.parametrize("batch_size", [1, 7, 60])
@with_and_without_weights
@pytest.mark.parametrize("loss", SMOOTH)
def test_asdca_is_the_published_one(loss, weights, batch_size, theta):
    problem, lam, n_epochs = make_problem(loss, weights=weights), 0.5, 4
    n_batch = min(batch_size, np.count_nonzero(problem.c))
    fixed = None if theta == "auto" else theta
    iterates = asdca(problem, lam, n_batch, n_epochs, fixed)
    settings = {"lam": lam, "batch_size": batch_size, "theta": theta}
    settings |= {"max_iter": n_epochs, "record_every": 1, **CYCLIC}
    size = max(1.0, np.abs(iterates[-1].a).max())
    if size > 1e6:
        # So long a step need not converge, and then rounding errors grow as well.
        assert theta != "auto"
        return
    w, _, a = model_of(problem.fit(Asdca, **settings))
    assert w == pytest.approx(iterates[-1].w, rel=1e-8, abs=1e-10 * size)
    assert a == pytest.approx(iterates[-1].a, rel=1e-8, abs=1e-10 * size)
    T = len(iterates) - 1
    mean = mean_iterate(iterates[T // 2 : T])
    w, _, a = model_of(problem.fit(Asdca, output="average", **settings))
    assert a == pytest.approx(mean.a, rel=1e-8, abs=1e-10 * size)
    assert w == pytest.approx(problem.coef_of(mean.a, lam), rel=1e-8, abs=1e-9 * size)


@pytest.mark.parametrize("batch_size", [1, 5, 60])
@pytest.mark.parametrize("loss", SMOOTH)
def test_theta_is_that_of_the_theory(loss, batch_size):
    problem, lam = make_problem(loss), 0.1
    theta = asdca_theta(
        60,
        batch_size=batch_size,
        lam=lam,
        gamma=gamma_of(problem),
        radius=np.linalg.norm(problem.X, axis=1).max(),
    )
    settings = {"lam": lam, "batch_size": batch_size, "tol": 0.0, "max_iter": 3}
    settings["fit_intercept"] = False
    auto = problem.fit(Asdca, **settings)
    given = problem.fit(Asdca, theta=theta, **settings)
    assert auto.coef_ == pytest.approx(given.coef_, rel=1e-10)
    other = problem.fit(Asdca, theta=0.9 * theta, **settings)
    assert other.coef_ != pytest.approx(given.coef_, rel=1e-3)


def best_intercept(problem, w):
    def slope(b):
        return problem.c @ slopes_of(problem, w, b)

    return brentq(slope, -50, 50, xtol=1e-14)


def subgradient(problem, lam, n_steps, eta, fit_intercept):
    X, share = problem.X, problem.c / problem.c.sum()
    w, a = np.zeros(X.shape[1]), np.zeros(len(X))
    iterates = [Iterate(w, a)]
    for t in range(1, n_steps + 1):
        step = eta(t)
        b = best_intercept(problem, w) if fit_intercept else 0.0
        g = slopes_of(problem, w, b)
        w = w - step * (lam * w + X.T @ (share * g))
        a = (1 - step * lam) * a - step * lam * g
        iterates.append(Iterate(w, a))
    return iterates


@with_and_without_weights
@pytest.mark.parametrize(
    ("loss", "fit_intercept"),
    [(loss, False) for loss in NAMES] + [(loss, True) for loss in SMOOTH],
)
def test_subgradient_is_the_textbook_one(loss, fit_intercept, weights):
    problem, lam, n_steps = make_problem(loss, weights=weights), 0.1, 20
    settings = {"lam": lam, "tol": 0.0, "max_iter": n_steps}
    settings["fit_intercept"] = fit_intercept
    if loss in SMOOTH or loss == "poisson":
        settings |= {"learning_rate": "constant", "eta0": 0.02}
        iterates = subgradient(problem, lam, n_steps, lambda _: 0.02, fit_intercept)
    else:
        iterates = subgradient(
            problem, lam, n_steps, lambda t: 1 / (lam * t), fit_intercept
        )

    def objective(iterate):
        b = best_intercept(problem, iterate.w) if fit_intercept else 0.0
        return problem.primal(iterate.w, b, lam)

    expected = {
        "last": iterates[-1],
        "best": min(iterates, key=objective),
        "average": mean_iterate(iterates[n_steps // 2 : n_steps]),
    }
    for output, (w, a) in expected.items():
        fit = problem.fit(Subgradient, output=output, **settings)
        assert fit.coef_.ravel() == pytest.approx(w, rel=1e-7, abs=1e-9)
        # The dual point is the better of two.
        a = np.where(problem.c > 0, a, 0.0)
        assert fit.dual_objective_ >= problem.dual(a, lam) - 1e-9
    assert fit.history_["epoch"][-1] == n_steps


@pytest.mark.parametrize("loss", SMOOTH)
def test_default_step_of_subgradient_is_one_over_the_curvature(loss):
    problem, lam = make_problem(loss, 200, weights="fractions"), 0.1
    X, c = problem.X, problem.c
    fit = problem.fit(
        Subgradient, lam=lam, tol=0.0, max_iter=1, output="last", fit_intercept=False
    )
    gradient = X.T @ (c / c.sum() * slopes_of(problem, np.zeros(4)))
    eta = np.linalg.norm(fit.coef_) / np.linalg.norm(gradient)
    found = (1 / eta - lam) * gamma_of(problem)
    largest = np.linalg.eigvalsh(X.T @ (c[:, None] * X)).max() / c.sum()
    assert largest * (1 - 1e-9) <= found <= 1.06 * largest


# How curved the conjugate is within its bounds, and its kink at 0.
CURVED = {
    "hinge": lambda t: (0.0, 0.0),
    "squared_hinge": lambda t: (0.5, 0.0),
    "smooth_hinge": lambda t: (t, 0.0),
    "modified_huber": lambda t: (0.5, 0.0),
    "squared": lambda t: (1.0, 0.0),
    "absolute": lambda t: (0.0, 0.0),
    "huber": lambda t: (1.0, 0.0),
    "epsilon_insensitive": lambda t: (0.0, t),
    "squared_epsilon_insensitive": lambda t: (0.5, t),
    "quantile": lambda t: (0.0, 0.0),
}


def dual_gradient(problem, lam, n_steps, step, fit_intercept):
    X, y, c = problem.X, problem.y, problem.c
    curvature, kink = CURVED[problem.loss](problem.loss_param)
    a = np.zeros(len(X))
    iterates = [Iterate(problem.coef_of(a, lam), a)]
    for _ in range(n_steps):
        ahead = a + step * (y - X @ iterates[-1].w)

        def moved(b, ahead=ahead):
            here = ahead - step * b
            here = np.sign(here) * np.maximum(abs(here) - step * kink, 0.0)
            return np.clip(here / (1 + step * curvature), *problem.bounds())

        b = 0.0
        if fit_intercept:
            b = brentq(lambda b: c @ moved(b), -1e3, 1e3, xtol=1e-14)
        a = np.where(c > 0, moved(b), 0.0)
        iterates.append(Iterate(problem.coef_of(a, lam), a))
    return iterates


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("loss", CURVED)
def test_dual_gradient_is_the_projected_one(loss, fit_intercept, weights):
    problem, lam, n_steps = make_problem(loss, weights=weights), 0.5, 20
    X, c = problem.X, problem.c
    step = lam * c.sum() / np.linalg.eigvalsh(X.T @ (c[:, None] * X)).max()
    iterates = dual_gradient(problem, lam, n_steps, step, fit_intercept)
    settings = {"lam": lam, "tol": 0.0, "max_iter": n_steps, "step": step}
    settings["fit_intercept"] = fit_intercept
    for output, expected in {
        "last": iterates[-1],
        "average": mean_iterate(iterates[n_steps // 2 : n_steps]),
    }.items():
        fit = problem.fit(DualGradient, output=output, **settings)
        w, _, a = model_of(fit)
        assert w == pytest.approx(expected.w, rel=1e-7, abs=1e-9)
        assert a[c > 0] == pytest.approx(expected.a[c > 0], rel=1e-7, abs=1e-9)


def test_steps_of_dual_gradient_have_a_longest():
    # The conjugate is linear within its bounds: there is nothing else to slow it down.
    problem, lam = make_problem("absolute"), 0.5
    longest = 2 * lam * 60 / np.linalg.eigvalsh(problem.X.T @ problem.X).max()

    def relative_gap(step):
        settings = {"tol": 0.0, "max_iter": 1000, "fit_intercept": False}
        fit = problem.fit(DualGradient, lam=lam, step=step, **settings)
        return fit.duality_gap_ / fit.objective_

    assert relative_gap(0.9 * longest) < 1e-3
    assert relative_gap("auto") < 1e-3
    assert relative_gap(3 * longest) > 1e-2


# ---------------------------------------------------------------- weights


def repeated(problem):
    """The problem with each row as often as its count says."""
    n = problem.weights.astype(int)
    return problem.but(
        X=np.repeat(problem.X, n, axis=0), y=np.repeat(problem.y, n), weights=None
    )


@with_and_without_intercept
@every_pair
def test_weight_is_a_count(estimator, loss, fit_intercept):
    weighted = make_problem(loss, 150, weights="counts")
    rows = repeated(weighted)
    tol = 1e-2 if (estimator, loss) in CONVERGENT else 5e-2
    settings = {"C": 0.01, "fit_intercept": fit_intercept, "tol": tol}
    settings["max_iter"] = 20_000
    one, other = (p.fit(estimator, **settings) for p in (weighted, rows))
    for fit in (one, other):
        assert fit.stop_reason_ == "converged"
        assert fit.duality_gap_ <= tol * fit.objective_
    # Both lie between the optimum and (1 + tol) times a value not above.
    assert one.dual_objective_ <= other.objective_ * (1 + 1e-12)
    assert other.dual_objective_ <= one.objective_ * (1 + 1e-12)
    lam = weighted.lam_of(0.01)
    w, b, _ = model_of(other)
    assert close(weighted.primal(w, b, lam), other.objective_)


@with_and_without_intercept
@pytest.mark.parametrize("loss", NAMES)
@pytest.mark.parametrize("estimator", [DualGradient, Pegasos, Subgradient])
def test_weight_is_a_count_step_by_step(estimator, loss, fit_intercept):
    # All rows in each step: then a repeated row does what a weighted one does.
    if estimator is Pegasos and fit_intercept and loss in KINKS and loss in REGRESSORS:
        # It begins at a median, where a row lies on the kink.
        return
    weighted = make_problem(loss, 40, weights="counts")
    settings = {"C": 0.1, "fit_intercept": fit_intercept, "tol": 0.0, "max_iter": 8}
    one, other = (p.fit(estimator, **settings) for p in (weighted, repeated(weighted)))
    assert one.n_iter_ == other.n_iter_ == 8
    assert other.coef_ == pytest.approx(one.coef_, rel=1e-6, abs=1e-8)
    assert other.intercept_ == pytest.approx(one.intercept_, rel=1e-6, abs=1e-6)
    assert other.duality_gap_ == pytest.approx(one.duality_gap_, rel=1e-6)


@every_pair
def test_row_of_weight_zero_is_absent_whatever_it_holds(estimator, loss):
    problem = make_problem(loss, weights="counts")
    there = problem.c > 0
    present = problem.but(
        X=problem.X[there], y=problem.y[there], weights=problem.c[there]
    )
    wild = problem.but(X=problem.X.copy(), y=problem.y.copy())
    wild.X[~there] *= 1e100
    wild.y[~there] = 7.0 if loss in CLASSIFIERS else 1e100
    settings = {"C": 0.1, "tol": 0.0, "max_iter": 8}
    one, other = (p.fit(estimator, **settings) for p in (present, wild))
    assert other.coef_ == pytest.approx(one.coef_, rel=1e-7, abs=1e-9)
    assert other.intercept_ == pytest.approx(one.intercept_, rel=1e-7, abs=1e-7)
    assert other.duality_gap_ == pytest.approx(one.duality_gap_, rel=1e-6)
    if loss in CLASSIFIERS:
        assert other.classes_.tolist() == [-1.0, 1.0]


@every_pair
def test_class_weight_multiplies_the_weights(estimator, loss):
    if loss in REGRESSORS:
        with pytest.raises(ValueError, match=r"^class_weight: found 'balanced'"):
            make_problem(loss).fit(estimator, class_weight="balanced")
        return
    problem = make_problem(loss, weights="fractions")
    positive = problem.y > 0
    totals = [problem.c[~positive].sum(), problem.c[positive].sum()]
    balanced = {
        k: sum(totals) / 2 / total for k, total in zip([-1, 1], totals, strict=True)
    }
    settings = {"lam": 0.1, "tol": 0.0, "max_iter": 5}
    plain = problem.fit(estimator, **settings)
    for class_weight, factors in (
        ({1.0: 3.0}, {-1: 1.0, 1: 3.0}),
        ("balanced", balanced),
    ):
        by_class = problem.fit(estimator, class_weight=class_weight, **settings)
        factors = np.where(positive, factors[1], factors[-1])
        by_row = problem.but(weights=problem.c * factors).fit(estimator, **settings)
        assert by_class.coef_ == pytest.approx(by_row.coef_, rel=1e-7, abs=1e-10)
        assert by_class.objective_ == pytest.approx(by_row.objective_, rel=1e-9)
        assert by_class.objective_ != pytest.approx(plain.objective_, rel=1e-4)


# ---------------------------------------------------------------- several classes


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def binary():
    return make_classification(
        n_samples=600, n_features=12, n_informative=6, flip_y=0.1, random_state=3
    )


def bits(fit):
    """All that was learned, but for the clock."""
    learned = {
        name: deepcopy(value)
        for name, value in vars(fit).items()
        if name.endswith("_") and name != "history_"
    }
    histories = getattr(fit, "history_", [])
    histories = [histories] if isinstance(histories, dict) else histories
    learned["history_"] = [
        {name: column for name, column in history.items() if "seconds" not in name}
        for history in histories
    ]
    return pickle.dumps(learned)


@every_estimator
def test_three_classes(estimator):
    X, numbers = load_iris(return_X_y=True)
    y = np.array(["red", "green", "blue"])[numbers]
    fit = estimator(
        loss="log", lam=0.01, tol=0.05, max_iter=10_000, random_state=0
    ).fit(X, y)
    assert fit.classes_.tolist() == ["blue", "green", "red"]
    assert fit.coef_.shape == (3, 4)
    assert fit.intercept_.shape == (3,)
    assert fit.dual_coef_.shape == (3, 150)
    for name in ("objective_", "dual_objective_", "duality_gap_", "stop_reason_"):
        assert getattr(fit, name).shape == (3,)
    assert len(fit.history_) == 3
    assert (fit.stop_reason_ == "converged").all()
    assert fit.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert fit.score(X, y) > 0.8
    again = certify(fit, X, y)
    assert again.objective == pytest.approx(fit.objective_, rel=1e-12)
    assert again.gap == pytest.approx(fit.duality_gap_, rel=1e-6, abs=1e-12)
    for k, label in enumerate(fit.classes_):
        best = Sdca("log", lam=0.01, tol=1e-8, random_state=0).fit(X, y == label)
        assert fit.dual_objective_[k] <= best.objective_ * (1 + 1e-12)
        assert best.dual_objective_ <= fit.objective_[k] * (1 + 1e-12)
        assert fit.objective_[k] <= 1.06 * best.objective_


@pytest.mark.parametrize("estimator", [DualGradient, Subgradient])
def test_classes_are_fitted_one_by_one(estimator, digits):
    X, y = digits
    settings = {"lam": 0.1, "tol": 0.0, "max_iter": 5}
    fit = estimator(**settings).fit(X, y)
    for k in (0, 8):
        one = estimator(**settings).fit(X, y == k)
        assert fit.coef_[k] == pytest.approx(one.coef_[0], rel=1e-12)
        assert fit.objective_[k] == one.objective_


@every_estimator
def test_classes_in_parallel_give_the_same_bits(estimator, digits):
    def fit(n_jobs):
        settings = {"loss": loss_for(estimator), "tol": 0.0, "max_iter": 4}
        return estimator(**settings, n_jobs=n_jobs, random_state=0).fit(*digits)

    serial = bits(fit(None))
    for n_jobs in (2, 3, -1):
        assert bits(fit(n_jobs)) == serial


# Enough entries in a batch to be shared: 4 or 8 pieces of them.
N_LARGE = 5000
LARGE = {
    Asdca: [{"batch_size": N_LARGE}, {"batch_size": N_LARGE // 2}],
    DualGradient: [{}],
    Pegasos: [
        {"batch_size": N_LARGE},
        {"batch_size": N_LARGE // 2, "project": True},
        {"batch_size": N_LARGE, "output": "average"},
    ],
    Subgradient: [{}],
}


@pytest.mark.parametrize("layout", [np.ascontiguousarray, sp.csr_matrix])
@with_and_without_intercept
@every_estimator
def test_batches_shared_by_threads_give_the_same_bits(estimator, layout, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_LARGE, 20))
    y = X[:, 0] + rng.normal(size=N_LARGE) > 0.3
    stored = layout(X)
    for settings in LARGE[estimator]:

        def fit(n_jobs, settings=settings):
            return estimator(
                loss_for(estimator),
                lam=0.1,
                fit_intercept=fit_intercept,
                tol=0.0,
                max_iter=4,
                n_jobs=n_jobs,
                random_state=0,
                **settings,
            ).fit(stored, y)

        serial = bits(fit(1))
        assert bits(fit(2)) == serial
        assert bits(fit(3)) == serial


# ---------------------------------------------------------------- the course of a run


@every_estimator
def test_same_seed_same_bits(estimator, binary):
    for output in OUTPUTS[estimator]:

        def fit(seed, output=output):
            settings = {"tol": 0.0, "max_iter": 9, "random_state": seed}
            return estimator(
                loss=loss_for(estimator), lam=0.01, output=output, **settings
            ).fit(*binary)

        assert bits(fit(1)) == bits(fit(1))
        deterministic = estimator in (DualGradient, Subgradient)
        if output != "random":
            assert (bits(fit(1)) == bits(fit(2))) is deterministic
        else:
            assert len({bits(fit(seed)) for seed in range(6)}) > 1


@every_pair
def test_history_tells_the_run(estimator, loss):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(estimator, lam=0.1, tol=0.0, max_iter=40, record_every=1)
    history = fit.history_
    assert sorted(history) == [
        "cpu_seconds",
        "dual",
        "epoch",
        "gap",
        "phase",
        "primal",
        "seconds",
        "support",
    ]
    assert history["epoch"] == pytest.approx(np.arange(41))
    for name in ("seconds", "cpu_seconds"):
        assert history[name][0] >= 0
        assert np.diff(history[name]).min() >= 0
    np.testing.assert_array_equal(history["primal"] - history["dual"], history["gap"])
    assert history["primal"][-1] == fit.objective_
    assert history["dual"][-1] == fit.dual_objective_
    assert history["gap"][-1] == fit.duality_gap_
    present = problem.c > 0
    a = model_of(fit).a
    assert history["support"][-1] == np.count_nonzero(a[present])
    assert history["support"].max() <= np.count_nonzero(present)
    assert fit.n_iter_ == 40
    assert fit.stop_reason_ == "max_iter"
    # Weak duality holds between any two records.
    assert history["primal"].min() >= history["dual"].max() * (1 - 1e-12)


@pytest.mark.parametrize("every", [0.01, 0.3, 1, 2.5])
@pytest.mark.parametrize("estimator", [Asdca, Pegasos])
@pytest.mark.parametrize("output", ["last", "average", "random"])
def test_record_every_is_met_and_changes_no_bit(binary, estimator, every, output):
    settings = {"tol": 0.0, "max_iter": 5, "batch_size": 3, "random_state": 0}
    settings |= {"loss": loss_for(estimator), "output": output}
    plain = estimator(**settings).fit(*binary)
    recorded = estimator(record_every=every, **settings).fit(*binary)
    assert recorded.coef_.tobytes() == plain.coef_.tobytes()
    assert recorded.dual_coef_.tobytes() == plain.dual_coef_.tobytes()
    expected = np.append(np.arange(0, 5, every), 5.0)
    found = recorded.history_["epoch"]
    np.testing.assert_allclose(found, expected, atol=0.51 / 200)


@pytest.mark.parametrize("every", [0.3, 2])
@pytest.mark.parametrize("estimator", [DualGradient, Subgradient])
def test_record_every_of_full_batches_counts_steps(binary, estimator, every):
    plain = estimator(tol=0, max_iter=6).fit(*binary)
    recorded = estimator(tol=0, max_iter=6, record_every=every).fit(*binary)
    assert recorded.coef_.tobytes() == plain.coef_.tobytes()
    assert recorded.dual_coef_.tobytes() == plain.dual_coef_.tobytes()
    expected = np.arange(0, 7, max(every, 1))
    np.testing.assert_array_equal(recorded.history_["epoch"], expected)


@every_estimator
def test_evaluations_are_few_in_a_long_run(estimator, binary):
    fit = estimator(loss=loss_for(estimator), tol=0, max_iter=300).fit(*binary)
    assert 3 <= len(fit.history_["epoch"]) <= 0.15 * 300 + 5


@every_estimator
def test_tol_decides_how_long_a_run_is(estimator, binary):
    epochs = []
    for tol in (0.2, 0.1, 0.05):
        fit = estimator(
            loss=loss_for(estimator), lam=0.1, tol=tol, max_iter=10_000, random_state=0
        )
        # Small data are otherwise solved further.
        fit.set_params(record_every=1).fit(*binary)
        assert fit.stop_reason_ == "converged"
        assert fit.duality_gap_ <= tol * fit.objective_
        epochs.append(fit.n_iter_)
    assert sorted(epochs) == epochs
    assert epochs[0] < epochs[-1]


@every_estimator
def test_callback_sees_and_stops(estimator, binary):
    X, y = binary
    seen, scores = [], []
    # Regularised enough for three epochs of any method to be better than none: else
    # that would be returned.
    model = estimator(loss=loss_for(estimator), lam=1.0, tol=1e-12, record_every=1)
    model.set_params(output="last")

    def callback(progress):
        seen.append(progress)
        # How to follow the score of rows that are held back.
        scores.append(np.mean((X @ progress.coef + progress.intercept > 0) == y))
        return progress.epoch >= 3

    fit = model.set_params(callback=callback, random_state=0).fit(X, y)
    assert fit.stop_reason_ == "callback"
    assert fit.n_iter_ == 3
    assert all(isinstance(progress, Progress) for progress in seen)
    assert [progress.epoch for progress in seen] == [0, 1, 2, 3]
    assert not seen[0].coef.any()
    last = seen[-1]
    assert (last.primal, last.dual, last.gap) == (
        fit.objective_,
        fit.dual_objective_,
        fit.duality_gap_,
    )
    assert last.support == fit.history_["support"][-1]
    assert last.cpu_seconds == fit.history_["cpu_seconds"][-1]
    np.testing.assert_array_equal(last.coef, fit.coef_[0])
    assert last.intercept == fit.intercept_[0]
    assert scores[-1] == fit.score(X, y)
    # Snapshots: later steps have not changed them.
    assert len({progress.coef.tobytes() for progress in seen}) > 2


@every_estimator
def test_verbose_writes_few_readable_lines(estimator, binary, capfd):
    name = estimator.__name__
    settings = {"loss": loss_for(estimator), "tol": 0, "max_iter": 30}
    estimator(verbose=1, record_every=0.5, **settings).fit(*binary)
    out = capfd.readouterr().out.splitlines()
    assert 2 <= len(out) <= 10
    assert out[0].startswith(f"[{name}] epoch 0: objective ")
    assert out[-1].startswith(f"[{name}] max_iter after 30 epochs: objective")
    estimator(**settings).fit(*binary)
    assert capfd.readouterr() == ("", "")


@every_estimator
def test_not_converged_warns_with_numbers(estimator, binary):
    model = estimator(loss=loss_for(estimator), tol=1e-9, max_iter=4, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        fit = model.fit(*binary)
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    for part in (
        f"{estimator.__name__} did not reach its tolerance",
        "stopped by max_iter after 4 epochs",
        f"duality gap {fit.duality_gap_:.3g}",
        f"{fit.duality_gap_ / fit.objective_:.3g} of the objective",
        "tol=1e-09",
        "What would help",
    ):
        assert part in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.set_params(tol=0).fit(*binary).stop_reason_ == "max_iter"


@every_estimator
def test_max_time_stops_and_warns(estimator, binary):
    # So weak a regularisation that no machine gets down to rounding in this time.
    model = estimator(loss=loss_for(estimator), max_time=0.02, max_iter=10**9)
    model.set_params(lam=1e-6, random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        fit = model.set_params(tol=1e-300).fit(*binary)
    assert fit.stop_reason_ == "max_time"
    assert len(fit.history_["epoch"]) >= 2
    # How far it came depends on the machine.
    assert 0 < fit.duality_gap_ < np.inf


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (Pegasos, {"batch_size": 7}),
        (Pegasos, {"batch_size": 7, "learning_rate": "invscaling"}),
        (Pegasos, {"batch_size": 7, "loss": "squared_hinge"}),
        (Subgradient, {"output": "last"}),
        (Subgradient, {"output": "last", "learning_rate": "invscaling"}),
        (DualGradient, {}),
        (DualGradient, {"step": 0.1}),
    ],
)
def test_warm_start_goes_on_with_the_next_step(estimator, settings):
    settings = {"lam": 0.1, "fit_intercept": False, "tol": 0.0, **settings}
    problem = make_problem(settings.pop("loss", "hinge"))
    if estimator is Pegasos:
        settings["sampling"] = "cyclic"
    whole = problem.fit(estimator, max_iter=7, **settings)
    parts = problem.fit(estimator, max_iter=3, warm_start=True, **settings)
    assert parts.coef_ != pytest.approx(whole.coef_, rel=1e-3)
    parts.set_params(max_iter=4).fit(problem.X, problem.y)
    assert parts.coef_ == pytest.approx(whole.coef_, rel=1e-9)
    assert parts.n_iter_ == 4
    again = parts.set_params(warm_start=False, max_iter=7).fit(problem.X, problem.y)
    assert again.coef_.tobytes() == whole.coef_.tobytes()


@with_and_without_intercept
@every_estimator
def test_warm_start_along_a_path_of_lam(estimator, fit_intercept, binary):
    warm = estimator(
        loss=loss_for(estimator),
        fit_intercept=fit_intercept,
        warm_start=True,
        tol=0.05,
        max_iter=20_000,
        record_every=1,
        random_state=0,
    )
    for lam in (0.2, 0.18, 0.16):
        warm.set_params(lam=lam).fit(*binary)
        cold = clone(warm).fit(*binary)
        for fit, other in itertools.permutations([warm, cold]):
            assert fit.stop_reason_ == "converged"
            assert fit.dual_objective_ <= other.objective_ * (1 + 1e-12)
    before = warm.objective_
    warm.fit(*binary)
    assert warm.n_iter_ <= 1
    assert warm.objective_ <= before * (1 + 0.05)


@every_estimator
def test_warm_start_of_several_classes(estimator, digits):
    model = estimator(
        loss="log", lam=0.1, tol=0.1, warm_start=True, max_iter=2000, random_state=0
    )
    first = deepcopy(model.fit(*digits))
    model.set_params(tol=0.05).fit(*digits)
    assert (model.stop_reason_ == "converged").all()
    assert (model.dual_objective_ <= first.objective_).all()
    assert (first.dual_objective_ <= model.objective_).all()


INTERRUPTED = """
    import os, signal, threading, time
    import numpy as np
    from sdca_rs import {name}

    rng = np.random.default_rng(0)

    def interrupt(n, n_classes, settings):
        X = rng.normal(size=(n, 20))
        y = rng.integers(n_classes, size=n)
        est = {name}("{loss}", tol=0.5, lam=1.0, **settings)
        est.fit(X[:200], y[:200])  # everything is loaded
        before = dict(vars(est))
        sent = []

        def send():
            time.sleep(0.3)
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        est.set_params(tol=1e-300, max_iter=10**9, lam=1e-4)
        thread = threading.Thread(target=send)
        thread.start()
        try:
            est.fit(X, y)
        except KeyboardInterrupt:
            waited = time.perf_counter() - sent[0]
        thread.join()
        est.set_params(tol=0.5, max_iter=before["max_iter"], lam=1.0)
        assert vars(est) == before
        est.fit(X[:300], y[:300])
        return waited

    # Many epochs; long ones in threads; classes in parallel.
    print(interrupt(3000, 2, {few}))
    print(interrupt(50_000, 2, {many}))
    print(interrupt(3000, 5, dict(n_jobs=2)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to itself")
@every_estimator
def test_interrupt_comes_through_and_the_next_fit_works(estimator):
    few, many = {}, {"n_jobs": 2}
    if estimator in (Asdca, Pegasos):
        few, many = {"batch_size": 10}, many | {"batch_size": 25_000}
    code = textwrap.dedent(INTERRUPTED).format(
        name=estimator.__name__, loss=loss_for(estimator), few=few, many=many
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # 0.2 s is promised; the rest is for a busy machine.
    waited = [float(line) for line in done.stdout.split()]
    assert len(waited) == 3
    assert max(waited) < 1.0


# ---------------------------------------------------------------- storage


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def wide_indices(array):
    made = sp.csr_matrix(array)
    made.indices, made.indptr = (
        made.indices.astype(np.int64),
        made.indptr.astype(np.int64),
    )
    return made


LAYOUTS = {
    "float32": lambda X: X.astype(np.float32),
    "read-only": read_only,
    "fortran": np.asfortranarray,
    "csr": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csr float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "csr int64": wide_indices,
    "csc": sp.csc_matrix,
    "list": lambda X: X.tolist(),
}


@with_and_without_intercept
@every_estimator
def test_storage_makes_no_difference(estimator, fit_intercept, tmp_path):
    # Small whole numbers, which every number type holds exactly; some rows are empty.
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, size=(60, 6)) * (rng.random((60, 6)) < 0.5)
    X = X.astype(np.float64)
    X[[0, 7, 59]] = 0
    y = X @ rng.normal(size=6) + rng.normal(size=60) > 0
    np.save(tmp_path / "X.npy", X)
    layouts = LAYOUTS | {"memmap": lambda _: np.load(tmp_path / "X.npy", mmap_mode="r")}

    def fit(X):
        settings = {"lam": 0.1, "tol": 0.0, "max_iter": 6, "random_state": 0}
        return estimator(
            loss_for(estimator), fit_intercept=fit_intercept, **settings
        ).fit(X, y)

    expected = fit(X)
    for name, layout in layouts.items():
        stored = layout(X)
        before = pickle.dumps(stored)
        found = fit(stored)
        assert pickle.dumps(stored) == before
        assert found.coef_ == pytest.approx(expected.coef_, rel=1e-6, abs=1e-8), name
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-7), name
        assert found.dual_objective_ == pytest.approx(
            expected.dual_objective_, rel=1e-6, abs=1e-8
        )


BORROWED = """
    import re
    from pathlib import Path
    import numpy as np
    from sdca_rs import Asdca, DualGradient, Pegasos, Subgradient

    def peak():
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) * 1024

    X = np.empty((50_000, 200))
    np.random.default_rng(0).random(out=X)
    y = X[:, 0] > 0.5
    models = [
        model("log", max_iter=1, tol=0.0)
        for model in (Asdca, DualGradient, Pegasos, Subgradient)
    ]
    for model in models:
        model.fit(X[:1000], y[:1000])
    before = peak()
    for model in models:
        model.fit(X, y)
    models[2].partial_fit(X, y)
    print((peak() - before) / X.nbytes)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no VmHWM")
def test_rows_are_borrowed_not_copied():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BORROWED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.3


def test_steps_cost_the_entries_of_their_rows_not_the_columns():
    # As many steps as here, each over all columns, would take an hour.
    rng = np.random.default_rng(0)
    n, per_row = 2000, 10

    def rows(n_cols):
        indices = np.sort(rng.integers(0, n_cols // per_row, size=(n, per_row)))
        indices += np.arange(per_row) * (n_cols // per_row)
        indptr = np.arange(0, n * per_row + 1, per_row)
        data = rng.normal(size=n * per_row)
        return sp.csr_matrix((data, indices.ravel(), indptr), (n, n_cols))

    y = np.arange(n) % 2
    for estimator in (Asdca, Pegasos):
        model = estimator(
            loss_for(estimator), lam=0.01, batch_size=1, tol=0.0, max_iter=2
        )
        fit = model.fit(rows(2_000_000), y)
        assert fit.coef_.shape == (1, 2_000_000)
        assert np.count_nonzero(fit.coef_) > 0.4 * n * per_row


# ---------------------------------------------------------------- errors

REFUSALS = (TypeError, ValueError)
COUNT = "an integer >= 1"
FRACTION = "a number in [0, 1), or an integer >= 1 of steps"
ORDERS = "one of permutation, random, cyclic"
LIMITED = "a number > 0 and at most 1 / lambda"
RATE = {"learning_rate": "constant"}
SCALED = {"learning_rate": "invscaling"}

BAD = [
    *(
        (estimator, {"batch_size": value}, repr(value), COUNT)
        for estimator in (Asdca, Pegasos)
        for value in (0, -1, 1.5, "x", None, True)
    ),
    *((Asdca, {"theta": v}, str(v), "a number") for v in (0, -0.5, 1.5)),
    *((Asdca, {"theta": v}, repr(v), "a number of (0, 1]") for v in ("x", None, True)),
    *((DualGradient, {"step": v}, str(v), "a finite number > 0") for v in (0, -1)),
    *((DualGradient, {"step": v}, "", "a finite number > 0") for v in (np.nan, np.inf)),
    *(
        (DualGradient, {"step": v}, repr(v), "a finite number > 0")
        for v in ("x", None, True)
    ),
    *(
        (estimator, {"eta0": v} | rate, str(v), LIMITED)
        for estimator in (Pegasos, Subgradient)
        for rate in (RATE, SCALED)
        for v in (0, -1, 1000)
    ),
    *(
        (estimator, {"eta0": v}, repr(v), "a number > 0, or None")
        for estimator in (Pegasos, Subgradient)
        for v in ("x", True)
    ),
    *(
        (estimator, {"power_t": v} | SCALED, "", "a number")
        for estimator in (Pegasos, Subgradient)
        for v in (0, -1, 1.5, np.nan, "x", None)
    ),
    *(
        (estimator, {"learning_rate": v}, "", "pegasos, constant, invscaling")
        for estimator in (Pegasos, Subgradient)
        for v in ("optimal", "")
    ),
    *(
        (estimator, {name: None}, "None", "a string")
        for estimator, name in [
            (Pegasos, "learning_rate"),
            (Subgradient, "learning_rate"),
            (Pegasos, "sampling"),
            (Asdca, "sampling"),
            (Pegasos, "output"),
            (Asdca, "output"),
            (Subgradient, "output"),
            (DualGradient, "output"),
        ]
    ),
    *(
        (e, {"output": "first"}, "'first'" if e is Subgradient else '"first"', "last")
        for e in ESTIMATORS
    ),
    *((e, {"output": "best"}, '"best"', "last") for e in (Asdca, Pegasos)),
    *((e, {"average_from": 1.0}, "1", FRACTION) for e in ESTIMATORS),
    *((e, {"average_from": -0.1}, "-0.1", FRACTION) for e in ESTIMATORS),
    *((e, {"average_from": "a"}, "'a'", FRACTION) for e in ESTIMATORS),
    *((e, {"sampling": "shuffled"}, '"shuffled"', ORDERS) for e in (Asdca, Pegasos)),
    *((Pegasos, {"project": v}, repr(v), "True or False") for v in ("yes", 1, None)),
    *((e, {"tol": -1}, "-1", "a finite number >= 0") for e in ESTIMATORS),
    *((e, {"max_iter": 0}, "0", COUNT) for e in ESTIMATORS),
    *((e, {"n_jobs": 0}, "0", "an integer other than 0") for e in ESTIMATORS),
    *((e, {"lam": 0.0, "C": 1.0}, "0", "a finite number > 0") for e in ESTIMATORS),
]


@pytest.mark.parametrize(
    ("estimator", "settings", "found", "expected"),
    BAD,
    ids=[f"{e.__name__}-{next(iter(s.items()))}" for e, s, *_ in BAD],
)
def test_bad_setting_is_refused(estimator, settings, found, expected):
    problem = make_problem("log")
    name = next(iter(settings))
    found, expected = re.escape(found), re.escape(expected)
    model = estimator("log", **{"lam": 0.1} | settings)
    with pytest.raises(
        REFUSALS, match=rf"^{name}: found {found}.*expected .*{expected}"
    ):
        model.fit(problem.X, problem.y)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("loss", KINKS)
def test_asdca_refuses_kinks_and_names_a_smooth_relative(loss):
    problem = make_problem(loss)
    with pytest.raises(ValueError, match=rf'^loss: found "{loss}"') as caught:
        problem.fit(Asdca)
    told = str(caught.value)
    for name in [KINKS[loss]] if KINKS[loss] else SMOOTH:
        assert name in told
    assert set(KINKS) | set(SMOOTH) == set(NAMES)


@pytest.mark.parametrize("estimator", [Pegasos, Subgradient])
def test_steps_that_diverge_are_an_error(estimator):
    problem = make_problem("squared").but(X=1e3 * make_problem("squared").X)
    with pytest.raises(ValueError, match=r"^learning_rate: found steps so long"):
        problem.fit(
            estimator, lam=0.1, max_iter=1000, learning_rate="constant", eta0=10
        )


@every_estimator
def test_a_failed_fit_leaves_the_fitted_model(estimator, binary):
    X, y = binary
    fit = estimator(loss=loss_for(estimator), lam=0.1, tol=0, max_iter=3).fit(X, y)
    before = dict(vars(fit))
    with pytest.raises(ValueError, match="one class"):
        fit.fit(X[:, :3], np.ones(len(y)))
    assert vars(fit) == before

    def stop(_):
        raise LookupError("mine")

    before["callback"] = stop
    with pytest.raises(LookupError, match="mine"):
        fit.set_params(callback=stop).fit(X[:, :3], y)
    assert vars(fit) == before


# ---------------------------------------------------------------- documentation

PUBLIC = [*ESTIMATORS, Sdca]


@pytest.mark.parametrize("estimator", PUBLIC)
def test_every_parameter_is_documented(estimator):
    doc = inspect.getdoc(estimator)
    order = ["Parameters", "Attributes", "See Also", "Examples"]
    places = [doc.index(f"{head}\n{'-' * len(head)}\n") for head in order]
    assert places == sorted(places)
    parameters = doc[places[0] : places[1]]
    named = [
        name
        for line in re.findall(r"^(\w[\w, ]*) : ", parameters, re.MULTILINE)
        for name in line.split(", ")
    ]
    assert sorted(named) == sorted(inspect.signature(estimator).parameters)
    for method in ("fit", "predict", "score", "partial_fit"):
        if hasattr(estimator, method):
            doc = inspect.getdoc(getattr(estimator, method))
            for name in list(inspect.signature(getattr(estimator, method)).parameters):
                assert name == "self" or re.search(rf"^{name} : ", doc, re.MULTILINE)


@pytest.mark.parametrize("estimator", PUBLIC)
def test_every_attribute_is_documented(estimator, binary):
    fit = estimator(loss=loss_for(estimator), tol=0, max_iter=2).fit(*binary)
    doc = inspect.getdoc(estimator)
    attributes = doc[doc.index("Attributes\n-") : doc.index("See Also\n-")]
    for name in vars(fit):
        if name.endswith("_"):
            assert re.search(rf"\b{name}\b", attributes), name


@pytest.mark.parametrize("estimator", PUBLIC)
def test_clone_and_parameters(estimator):
    names = inspect.signature(estimator).parameters
    model = estimator(lam=0.5, max_iter=7)
    assert set(model.get_params()) == set(names)
    assert clone(model).get_params() == model.get_params()
    assert estimator.__name__ in sdca_rs.__all__
    # What all of them have means the same for all of them.
    for name in ("loss_param", "C", "lam", "fit_intercept", "class_weight", "n_jobs"):
        assert names[name].default == inspect.signature(Sdca).parameters[name].default


def test_losses_have_a_task():
    assert set(LOSSES) == set(CLASSIFIERS) | set(REGRESSORS)
