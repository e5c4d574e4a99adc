"""What the tests share: the losses restated in numpy, and small problems for them.

The objectives are computed without the package, so as to check what it reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, xlogy

from sdca_rs import Sdca, losses

LOSSES = {loss.name: loss for loss in losses()}
NAMES = list(LOSSES)
CLASSIFIERS = [name for name in NAMES if LOSSES[name].task == "classification"]
REGRESSORS = [name for name in NAMES if LOSSES[name].task == "regression"]

# Losses whose slope has a bounded slope itself: Asdca is for these.
SMOOTH = [
    "squared_hinge",
    "smooth_hinge",
    "log",
    "modified_huber",
    "squared",
    "huber",
    "squared_epsilon_insensitive",
]

# Shape parameters other than the defaults. A loss without an entry takes its default.
SHAPES = {
    "smooth_hinge": 0.5,
    "huber": 0.7,
    "epsilon_insensitive": 0.3,
    "squared_epsilon_insensitive": 0.3,
    "quantile": 0.8,
}


class Formula(NamedTuple):
    """A loss for arrays of predictions ``p``, dual values ``a`` and targets ``y``.

    The last argument is the shape parameter. The conjugate is ``phi*(-a)`` and holds
    within the bounds of ``a``, outside of which it is infinite.
    """

    value: Callable[[Any, Any, Any], Any]
    conjugate: Callable[[Any, Any, Any], Any]
    bounds: Callable[[Any, Any], tuple[Any, Any]]


def _hinge(u: Any) -> Any:
    return np.maximum(0.0, u)


def _margin_bounds(top: float) -> Callable[[Any, Any], tuple[Any, Any]]:
    return lambda y, _: (np.where(y > 0, 0.0, -top), np.where(y > 0, top, 0.0))


def _u_log_u(u: Any) -> Any:
    return xlogy(u, u) - u


_unbounded = (-np.inf, np.inf)

# One entry for each loss of the registry: see test_every_loss_has_a_formula.
FORMULAS = {
    "hinge": Formula(
        lambda p, y, _: _hinge(1 - y * p),
        lambda a, y, _: -y * a,
        _margin_bounds(1.0),
    ),
    "squared_hinge": Formula(
        lambda p, y, _: _hinge(1 - y * p) ** 2,
        lambda a, y, _: -y * a + a**2 / 4,
        _margin_bounds(np.inf),
    ),
    "smooth_hinge": Formula(
        lambda p, y, gamma: np.where(
            y * p > 1 - gamma,
            _hinge(1 - y * p) ** 2 / (2 * gamma),
            1 - y * p - gamma / 2,
        ),
        lambda a, y, gamma: -y * a + gamma * a**2 / 2,
        _margin_bounds(1.0),
    ),
    "log": Formula(
        lambda p, y, _: np.logaddexp(0.0, -y * p),
        lambda a, y, _: -entr(y * a) - entr(1 - y * a),
        _margin_bounds(1.0),
    ),
    "modified_huber": Formula(
        lambda p, y, _: np.where(y * p >= -1, _hinge(1 - y * p) ** 2, -4 * y * p),
        lambda a, y, _: -y * a + a**2 / 4,
        _margin_bounds(4.0),
    ),
    "squared": Formula(
        lambda p, y, _: (y - p) ** 2 / 2,
        lambda a, y, _: -y * a + a**2 / 2,
        lambda y, _: _unbounded,
    ),
    "absolute": Formula(
        lambda p, y, _: abs(y - p),
        lambda a, y, _: -y * a,
        lambda y, _: (-1.0, 1.0),
    ),
    "huber": Formula(
        lambda p, y, delta: np.where(
            abs(y - p) <= delta, (y - p) ** 2 / 2, delta * (abs(y - p) - delta / 2)
        ),
        lambda a, y, _: -y * a + a**2 / 2,
        lambda y, delta: (-delta, delta),
    ),
    "epsilon_insensitive": Formula(
        lambda p, y, epsilon: _hinge(abs(y - p) - epsilon),
        lambda a, y, epsilon: -y * a + epsilon * abs(a),
        lambda y, _: (-1.0, 1.0),
    ),
    "squared_epsilon_insensitive": Formula(
        lambda p, y, epsilon: _hinge(abs(y - p) - epsilon) ** 2,
        lambda a, y, epsilon: -y * a + epsilon * abs(a) + a**2 / 4,
        lambda y, _: _unbounded,
    ),
    "quantile": Formula(
        lambda p, y, tau: np.where(p < y, tau * (y - p), (1 - tau) * (p - y)),
        lambda a, y, _: -y * a,
        lambda y, tau: (tau - 1, tau),
    ),
    "poisson": Formula(
        lambda p, y, _: np.exp(p) - y * p + _u_log_u(y),
        lambda a, y, _: _u_log_u(y - a) - _u_log_u(y),
        lambda y, _: (-np.inf, y),
    ),
}


class Model(NamedTuple):
    """Coefficients, intercept and dual values of an estimator for one problem."""

    w: Any
    b: float
    a: Any


def model_of(estimator: Any) -> Model:
    b = np.atleast_1d(estimator.intercept_)
    a = np.ravel(getattr(estimator, "dual_coef_", []))
    return Model(np.ravel(estimator.coef_), float(b[0]), a)


@dataclass(frozen=True)
class Problem:
    """Data for a loss, and the objectives by their definition."""

    loss: str
    X: Any
    y: Any
    weights: Any = None

    @property
    def loss_param(self) -> float | None:
        return SHAPES.get(self.loss, LOSSES[self.loss].default)

    @property
    def c(self) -> Any:
        return np.ones(len(self.y)) if self.weights is None else self.weights

    def primal(self, w: Any, b: float, lam: float) -> float:
        """``P(w, b)``."""
        values = FORMULAS[self.loss].value(self.X @ w + b, self.y, self.loss_param)
        # An absent row counts for nothing even where its loss overflows.
        values = np.where(self.c > 0, values, 0.0)
        return float(np.average(values, weights=self.c) + lam / 2 * (w @ w))

    def dual(self, a: Any, lam: float) -> float:
        """``D(a)``, for an ``a`` within its bounds."""
        values = FORMULAS[self.loss].conjugate(a, self.y, self.loss_param)
        w = self.coef_of(a, lam)
        return float(-np.average(values, weights=self.c) - lam / 2 * (w @ w))

    def coef_of(self, a: Any, lam: float) -> Any:
        """``w(a)``."""
        return self.X.T @ (self.c * a) / (lam * self.c.sum())

    def bounds(self) -> tuple[Any, Any]:
        return FORMULAS[self.loss].bounds(self.y, self.loss_param)

    def lam_of(self, C: float) -> float:
        return 1 / (C * self.c.sum())

    def fit(self, estimator: Any = Sdca, **settings: Any) -> Any:
        """Fit an estimator of the package, with epochs enough for any tolerance."""
        defaults = {"loss_param": self.loss_param, "max_iter": 10**6, "random_state": 0}
        return estimator(self.loss, **(defaults | settings)).fit(
            self.X, self.y, self.weights
        )

    def but(self, **changes: Any) -> Problem:
        return replace(self, **changes)


def make_problem(
    loss: str, n: int = 60, d: int = 4, *, weights: str | None = None, seed: int = 0
) -> Problem:
    """Generate noisy linear data whose last column is of larger scale.

    ``weights`` are none, "counts" or "fractions", a quarter of them zero.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) + 0.7
    X[:, -1] *= 5.0
    noise = rng.standard_t(3, size=n)
    if LOSSES[loss].task == "classification":
        y = np.where(score + noise > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
    elif LOSSES[loss].link == "log":
        y = rng.poisson(np.exp(0.4 * score)).astype(float)
    else:
        y = score + 0.5 * noise
    c = rng.integers(0, 4, n).astype(float)
    # Both classes are present.
    c[:2] = 1.0
    if weights == "fractions":
        c *= rng.uniform(0.2, 1.0, n)
    return Problem(loss, X, y, None if weights is None else c)
