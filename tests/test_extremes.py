"""Extreme data and settings: a fit always ends, with the truth, and mostly solved."""

import numpy as np
import pytest

from conftest import CLASSIFIERS, make_problem
from test_accelerate import LAYOUTS, assert_truthful

LOSSES = [
    "hinge",
    "squared_hinge",
    "smooth_hinge",
    "log",
    "squared",
    "absolute",
    "huber",
    "epsilon_insensitive",
    "quantile",
]

# On columns from 1e-8 to 1e8 rounding can be too much for these.
KINKED = ["hinge", "absolute", "epsilon_insensitive", "quantile"]

STRENGTHS = [1e-8, 1e-4, 1.0, 1e4, 1e8]


def columns(problem):
    """Spread the columns from 1e-8 to 1e8."""
    d = problem.X.shape[1]
    return problem.but(X=problem.X * 10.0 ** np.linspace(-8, 8, d))


def targets(problem):
    return problem.but(y=problem.y * 1e8 / np.max(abs(problem.y)))


def duplicated(problem):
    return problem.but(X=np.tile(problem.X, (3, 1)), y=np.tile(problem.y, 3))


def empty(problem):
    X = problem.X.copy()
    X[::2] = 0.0
    return problem.but(X=X)


def constant(problem):
    """Make all columns constant but one."""
    X = np.tile([0.0, 1.0, -1e4, 1e-4, 0.0], (len(problem.y), 1))
    X[:, -1] = problem.X[:, 0]
    return problem.but(X=X)


def one_row(problem):
    return problem.but(X=problem.X[:1].copy(), y=problem.y[:1].copy())


def one_column(problem):
    return problem.but(X=problem.X[:, :1].copy())


def rare_class(problem):
    y = np.full(len(problem.y), -1.0)
    y[3] = 1.0
    return problem.but(y=y)


def separable(problem):
    score = problem.X @ np.arange(1.0, 1.0 + problem.X.shape[1])
    return problem.but(y=np.where(score > 0, 1.0, -1.0))


FOR_ALL = [columns, duplicated, empty, constant, one_column]
CASES = [
    (loss, case)
    for loss in LOSSES
    for case in FOR_ALL
    + ([rare_class, separable] if loss in CLASSIFIERS else [targets, one_row])
]


def fits(loss, case, fit_intercept, layout):
    """Fit with all settings left as they are, for all C and some seeds."""
    for seed in range(3):
        problem = case(make_problem(loss, 60, 6, seed=seed))
        given = problem.but(X=LAYOUTS[layout](problem.X))
        for C in STRENGTHS:
            fit = given.fit(C=C, fit_intercept=fit_intercept, max_iter=1000)
            yield problem, C, seed, fit


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("loss", "case"), CASES, ids=[f"{loss}-{case.__name__}" for loss, case in CASES]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fit_ends_with_the_truth(loss, case, fit_intercept, layout):
    for problem, C, seed, fit in fits(loss, case, fit_intercept, layout):
        assert np.isfinite(fit.objective_)
        assert fit.n_iter_ <= 1000
        assert_truthful(problem, fit, problem.lam_of(C), 1e-4)
        if not (case is columns and loss in KINKED and C > 1.0):
            assert fit.stop_reason_ == "converged", (C, seed)
