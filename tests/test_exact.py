"""Certificates recomputed with 400 bits, over wild scales: what a fit says is true.

The float64 numbers that a fit was given, and those that it returns, are exact. From
them follow the objective ``P``, the lower bound ``D``, and how far rounding may have
led those that the fit reports astray: see ``Exact``. ``SDCA_RS_LONG=1`` runs twenty
times as many cases with new seeds; ``SDCA_RS_SEED`` repeats such a run.
"""

from __future__ import annotations

import dataclasses
import os
import time
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from conftest import CLASSIFIERS, LOSSES, NAMES, SMOOTH, make_problem, model_of
from sdca_rs import Asdca, DualGradient, Pegasos, Sdca, Subgradient

# A loop without an end cannot be interrupted from Python: then all of pytest ends.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.timeout(120, method="thread"),
]

LONG = os.environ.get("SDCA_RS_LONG") == "1"
SEED = int(os.environ.get("SDCA_RS_SEED", time.time_ns() % 10**9 if LONG else 0))
CASES = 20 if LONG else 1

mp = mpmath.MPContext()
mp.prec = 400
ZERO, ONE, INF = mp.mpf(0), mp.mpf(1), mp.mpf("inf")

# A number in float64 is exact to this, and what is smaller than that may be lost.
UNIT = mp.mpf(2) ** -53
LOST = mp.mpf(2) ** -1020

# The smallest number that sums of products have all digits of.
LEAST = mp.mpf(2) ** -1022 / mp.mpf(2) ** -52

# The same of what is computed here.
EXACT = mp.mpf(2) ** -300


# ------------------------------------------------------------------ losses, restated


class Form(NamedTuple):
    """``phi = max over t in [low, high] of t (u - p) - eps |t| - gamma t^2 / 2``.

    For classes ``p`` is the margin, ``u`` is 1, and ``t`` is ``y a``; otherwise ``u``
    is the target and ``t`` is ``a``.
    """

    low: Any
    high: Any
    eps: Any = ZERO
    gamma: Any = ZERO


FORMS = {
    "hinge": lambda _: Form(ZERO, ONE),
    "squared_hinge": lambda _: Form(ZERO, INF, gamma=ONE / 2),
    "smooth_hinge": lambda gamma: Form(ZERO, ONE, gamma=gamma),
    "modified_huber": lambda _: Form(ZERO, 4 * ONE, gamma=ONE / 2),
    "squared": lambda _: Form(-INF, INF, gamma=ONE),
    "absolute": lambda _: Form(-ONE, ONE),
    "huber": lambda delta: Form(-delta, delta, gamma=ONE),
    "epsilon_insensitive": lambda eps: Form(-ONE, ONE, eps=eps),
    "squared_epsilon_insensitive": lambda eps: Form(-INF, INF, eps, ONE / 2),
    # The lower end is a float64 number, too.
    "quantile": lambda tau: Form(mp.mpf(float(tau) - 1.0), tau),
}


def x_log_x(x: Any) -> Any:
    return x * mp.log(x) if x else ZERO


def of_complement(s: Any) -> Any:
    """Return ``(1 - s) log(1 - s)``."""
    return (1 - s) * mp.log1p(-s) if s < 1 else ZERO


def of_rise(t: Any) -> Any:
    """Return ``e^t - 1 - t``, where 400 bits might not do."""
    return t * t / 2 + t**3 / 6 if abs(t) < 1e-50 else mp.expm1(t) - t


def of_ratio(s: Any) -> Any:
    """Return ``(1 - s) log(1 - s) + s``, likewise."""
    return s * s / 2 + s**3 / 6 if abs(s) < 1e-50 else of_complement(s) + s


class ExactLoss:
    """Values and conjugates of a loss, and what rounding may do to them.

    ``noise`` is the relative error of a sum.
    """

    def __init__(self, name: str, param: float | None, noise: Any) -> None:
        self.name, self.noise = name, noise
        self.is_margin = name in CLASSIFIERS
        param = None if param is None else mp.mpf(param)
        self.form = FORMS[name](param) if name in FORMS else None

    def value(self, p: Any, y: Any) -> Any:
        """``phi(p; y)``."""
        if self.name == "log":
            m = y * p
            return mp.log1p(mp.exp(-m)) if m > 0 else mp.log1p(mp.exp(m)) - m
        if self.name == "poisson":
            return y * of_rise(p - mp.log(y)) if y else mp.exp(p)
        low, high, eps, gamma = self.form
        v = 1 - y * p if self.is_margin else y - p
        soft = mp.sign(v) * max(abs(v) - eps, ZERO)
        if not soft:
            return ZERO
        t = soft / gamma if gamma else soft * INF
        t = min(max(t, low), high)
        return t * v - eps * abs(t) - gamma * t * t / 2

    def size(self, y: Any) -> Any:
        """Return the size of the numbers that a prediction is compared with."""
        if self.name == "log":
            return ZERO
        if self.name == "poisson":
            return 1 + abs(mp.log(y)) if y else ONE
        return self.form.eps + (ONE if self.is_margin else abs(y))

    def value_error(self, p: Any, y: Any, size: Any) -> Any:
        """Bound the error of ``phi`` if ``p`` is a sum of terms of this ``size``."""
        shift = self.noise * (size + self.size(y)) + LOST
        value = self.value(p, y)
        # The loss is convex: it rises at one side by more than it falls at the other.
        change = max(self.value(p + shift, y), self.value(p - shift, y)) - value
        return abs(change) + self.noise * value + LOST

    def conjugate(self, a: Any, y: Any) -> tuple[Any, Any]:
        """``phi*(-a; y)``, and a bound of its error."""
        if self.name == "log":
            terms = [x_log_x(y * a), of_complement(y * a)]
        elif self.name == "poisson":
            # y h(a / y) - a log y, h being a parabola at 0.
            terms = [y * of_ratio(a / y), -a * mp.log(y)] if y else [x_log_x(-a), a]
            value = sum(terms)
            return value, self.noise * (sum(map(abs, terms)) + abs(a)) + LOST
        else:
            t, u = (y * a, ONE) if self.is_margin else (a, y)
            terms = [-t * u, self.form.eps * abs(t), self.form.gamma * t * t / 2]
        return sum(terms), self.noise * sum(map(abs, terms)) + LOST

    def is_feasible(self, a: Any, y: Any) -> bool:
        """Whether a dual value lies in the domain of the loss, exactly."""
        if self.name == "poisson":
            return a <= y
        if self.name == "log":
            return 0 <= y * a <= 1
        return self.form.low <= (y * a if self.is_margin else a) <= self.form.high

    def kinks(self, y: Any) -> list[Any]:
        """Return the predictions where the loss changes from parabola to parabola."""
        low, high, eps, gamma = self.form
        # v = u - p at the ends of the tube, and where t reaches the ends of its range.
        ends = [-eps, eps]
        ends += [t * gamma + mp.sign(t) * eps for t in (low, high) if abs(t) < INF]
        return [y * (1 - v) if self.is_margin else y - v for v in ends]


class Sum(NamedTuple):
    """An exact sum, and a bound of the error that float64 makes in it."""

    value: Any
    error: Any


class Exact:
    """The objectives of a problem, exactly.

    The bounds of errors follow from this: a float64 sum of ``n`` rows or ``d`` columns
    is exact to ``noise`` = 16 (n + d + 16) units in the last place, relative to the sum
    of the sizes of its terms. For a prediction these are ``|x_ij w_j|``, ``|b|`` and
    the target; what that does to the loss is its change from ``p - e`` to ``p + e``.
    For ``D`` they are the terms of the conjugate, and ``|rate_i a_i x_ij|``: ``w(a)``
    is off by ``e_j``, and its square by ``2 |w_j| e_j + e_j^2``. Numbers below 1e-307
    may be lost.
    """

    def __init__(
        self,
        loss: str,
        loss_param: float | None,
        X: Any,
        y: Any,
        c: Any,
        C: float,
        fit_intercept: bool,
    ) -> None:
        rows = X.toarray() if sp.issparse(X) else X
        self.X = [[mp.mpf(float(x)) for x in row] for row in rows]
        self.y = [mp.mpf(float(target)) for target in y]
        self.c = [mp.mpf(float(weight)) for weight in c]
        self.W = sum(self.c)
        self.lam = 1 / (mp.mpf(C) * self.W)
        self.fit_intercept = fit_intercept
        self.noise = 16 * (len(self.y) + len(self.X[0]) + 16) * UNIT
        self.loss = ExactLoss(loss, loss_param, self.noise)
        # The rows that count.
        self.rows = [i for i, weight in enumerate(self.c) if weight]

    def primal(self, w: list[Any], b: Any) -> Sum:
        """``P(w, b)``."""
        mean = error = ZERO
        for i in self.rows:
            terms = [x * v for x, v in zip(self.X[i], w, strict=True) if x and v]
            p, size = sum(terms, b), sum(map(abs, terms), abs(b))
            size += len(w) * LOST
            mean += self.c[i] * self.loss.value(p, self.y[i]) / self.W
            of_row = self.c[i] * self.loss.value_error(p, self.y[i], size)
            error += (of_row + LOST) / self.W
        penalty = self.lam / 2 * sum(v * v for v in w)
        error += self.noise * (mean + penalty) + self.lam * len(w) * LOST
        return Sum(mean + penalty, error)

    def dual(self, a: list[Any]) -> Sum:
        """``D(a)``."""
        mean = error = ZERO
        for i in self.rows:
            value, error_of_row = self.loss.conjugate(a[i], self.y[i])
            mean -= self.c[i] * value / self.W
            error += (self.c[i] * error_of_row + LOST) / self.W
        penalty = penalty_error = ZERO
        rates = {i: self.c[i] / (self.lam * self.W) for i in self.rows if a[i]}
        for j in range(len(self.X[0])):
            terms = [rate * a[i] * self.X[i][j] for i, rate in rates.items()]
            w = sum(terms, ZERO)
            lost = sum((1 + abs(a[i])) * abs(self.X[i][j]) + 1 for i in rates) * LOST
            off = self.noise * sum(map(abs, terms), ZERO) + lost
            penalty += w * w
            penalty_error += 2 * abs(w) * off + off * off + self.noise * w * w + LOST
        error += self.noise * abs(mean) + self.lam / 2 * penalty_error
        return Sum(mean - self.lam / 2 * penalty, error)

    def imbalance(self, a: list[Any]) -> tuple[Any, Any]:
        """``sum_i c_i a_i / W``, which an intercept wants to be 0, and of ``|a_i|``."""
        terms = [self.c[i] * a[i] / self.W for i in self.rows]
        return sum(terms), sum(map(abs, terms))

    @cached_property
    def without_coefficients(self) -> Sum:
        """The least ``P(0, b)``."""
        zeros = [ZERO] * len(self.X[0])
        values = [self.primal(zeros, b) for b in self._best_constants()]
        return min(values, key=lambda value: value.value)

    def _best_constants(self) -> list[Any]:
        """Return intercepts among which there is a best one for ``w = 0``."""
        if not self.fit_intercept:
            return [ZERO]
        mean = sum(self.c[i] * self.y[i] for i in self.rows) / self.W
        if self.loss.name == "log":
            return [mp.log((1 + mean) / (1 - mean))]
        if self.loss.name == "poisson":
            # Without any count the best one is minus infinity.
            return [mp.log(mean) if mean else mp.mpf(-(10**5))]
        if self.loss.name == "squared":
            return [mean]
        kinks = {kink for i in self.rows for kink in self.loss.kinks(self.y[i])}
        kinks = sorted(kinks)
        values = [self._constant(b) for b in kinks]
        best = values.index(min(values))
        found = [kinks[best]]
        for k in (best - 1, best):
            if 0 <= k < len(kinks) - 1:
                left, right = kinks[k : k + 2]
                at_left, at_right = values[k : k + 2]
                middle = self._constant((left + right) / 2)
                # The vertex of the parabola through three points.
                rise = at_left - 2 * middle + at_right
                if rise > 0:
                    share = (at_left - at_right) / rise / 4 + ONE / 2
                    share = min(max(share, ZERO), ONE)
                    found.append(left + share * (right - left))
        return found

    def _constant(self, b: Any) -> Any:
        return sum(self.c[i] * self.loss.value(b, self.y[i]) for i in self.rows)


# ------------------------------------------------------------------ cases


@dataclass
class Case:
    """A problem of some wild scale, and the settings of a fit."""

    loss: str
    loss_param: float | None
    X: Any
    y: Any
    weights: Any
    C: float
    fit_intercept: bool
    tol: float
    max_iter: int
    # What the scales are.
    story: str

    def exact(self, y: Any = None) -> Exact:
        c = np.ones(len(self.y)) if self.weights is None else self.weights
        y = self.y if y is None else y
        return Exact(
            self.loss, self.loss_param, self.X, y, c, self.C, self.fit_intercept
        )

    def fit(self, estimator: Any, **settings: Any) -> Any:
        return estimator(
            self.loss,
            loss_param=self.loss_param,
            C=self.C,
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=0,
            **settings,
        ).fit(self.X, self.y, self.weights)


def power(rng: Any, low: float, high: float, size: Any = None) -> Any:
    return 10.0 ** rng.uniform(low, high, size)


def make_case(loss: str, fit_intercept: bool, key: str, **fixed: Any) -> Case:
    """Generate a case; the key and the seed of the run decide which."""
    rng = np.random.default_rng([SEED, zlib.crc32(key.encode())])
    columns = rng.choice(
        ["even", "raw", "wild", "scaled", "one huge", "with gaps", "integers"]
    )
    n = int(rng.integers(2, 15))
    d = int(rng.integers(1, 6))
    if columns == "one huge":
        n, d = int(rng.integers(4, 9)), int(rng.integers(12, 25))
    Z = rng.normal(size=(n, d))
    score = Z @ rng.normal(size=d) + rng.normal()
    X = Z.copy()
    if columns == "raw":
        X *= power(rng, -8, 8, d)
    elif columns == "wild":
        X *= power(rng, -150, 150, d)
    elif columns == "scaled":
        X *= power(rng, -150, 150)
    elif columns == "one huge":
        X[:, 0] = rng.uniform(0.1, 1.0, n) * power(rng, 5, 12)
    elif columns == "with gaps":
        X *= rng.random((n, d)) < 0.4
    elif columns == "integers":
        X = np.round(X)
        X[n // 2 :] = X[: n - n // 2]
    weights, weighing = make_weights(rng, n)
    y, targets = make_targets(rng, loss, score, weights)
    storage = rng.choice(["dense", "csr", "single"], p=[0.6, 0.25, 0.15])
    if storage == "csr":
        X = sp.csr_array(X)
    elif storage == "single" and columns not in ("wild", "scaled"):
        X = X.astype(np.float32)
    C = power(rng, -12, 12) if rng.random() < 0.5 else power(rng, -2, 2)
    squares = float((X.astype(float) ** 2).sum()) / n
    if rng.random() < 0.3 and 1e-200 < squares < 1e200:
        # Neither everything nor nothing is regularised.
        C /= squares
    story = f"{key}, seed {SEED}: {n} x {d} {columns}, {storage}, {targets}, {weighing}"
    case = Case(
        loss=loss,
        loss_param=make_param(rng, loss, y),
        X=X,
        y=y,
        weights=weights,
        C=float(C),
        fit_intercept=fit_intercept,
        tol=float(rng.choice([1e-2, 1e-4, 1e-6, 1e-9, 1e-12, 0.0])),
        max_iter=int(rng.choice([1, 3, 30, 300])),
        story=story,
    )
    return Case(**{**vars(case), **fixed})


def make_weights(rng: Any, n: int) -> tuple[Any, str]:
    kind = rng.choice(["none", "none", "counts", "scaled", "wild"])
    if kind == "none":
        return None, "no weights"
    weights = rng.integers(0, 4, n).astype(float)
    # Two rows at least count, and both classes: see make_targets.
    weights[:2] = 1.0
    if kind == "scaled":
        weights = rng.uniform(0.1, 1.0, n) * power(rng, -100, 100)
    elif kind == "wild":
        weights *= power(rng, -20, 20, n)
    return weights, f"{kind} weights"


def make_targets(rng: Any, loss: str, score: Any, weights: Any) -> tuple[Any, str]:
    n = len(score)
    noise = rng.standard_t(3, n) if rng.random() < 0.7 else np.zeros(n)
    if loss in CLASSIFIERS:
        y = np.where(score + noise > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        return y, "two classes"
    scale = power(rng, -10, 15) if loss == "poisson" else power(rng, -300, 150)
    if rng.random() < 0.3:
        scale = 1.0
    story = f"targets of {scale:.0e}"
    if loss == "poisson":
        y = scale * np.exp(0.5 * score)
        if rng.random() < 0.5:
            y = rng.poisson(y).astype(float)
            story += " counted"
        return y, story
    y = score + noise
    if rng.random() < 0.2:
        y += power(rng, 2, 8)
        story += " far from 0"
    if rng.random() < 0.1:
        y[:] = y[0]
        story += ", constant"
    if rng.random() < 0.2:
        y = np.round(y)
    return scale * y, story


def make_param(rng: Any, loss: str, y: Any) -> float | None:
    if LOSSES[loss].param is None or rng.random() < 0.3:
        return LOSSES[loss].default
    if loss == "quantile":
        return float(rng.choice([1e-3, 0.1, 0.5, 0.9, 0.999]))
    if loss == "smooth_hinge":
        return float(power(rng, -3, 1))
    # In the units of the targets.
    return float(power(rng, -3, 1) * max(np.abs(y).max(), 1e-300))


# ------------------------------------------------------------------ laws


def show(number: Any) -> str:
    return mp.nstr(number, 12, min_fixed=-3, max_fixed=6)


def violations(case: Case, fit: Any, y: Any = None, k: int = 0) -> list[str]:
    """Return all laws that a fit breaks; ``k`` is the class of a one-vs-rest fit."""
    exact = case.exact(y)
    # Of a single problem these are numbers, of several arrays.
    objective, dual_objective, gap, stop = (
        np.atleast_1d(value)[k].item()
        for value in (
            fit.objective_,
            fit.dual_objective_,
            fit.duality_gap_,
            fit.stop_reason_,
        )
    )
    if y is None:
        coef, intercept, dual = model_of(fit)
    else:
        coef, intercept, dual = fit.coef_[k], fit.intercept_[k], fit.dual_coef_[k]
    numbers = [*coef, intercept, *dual, objective, dual_objective, gap]
    if not np.isfinite(numbers).all():
        numbers = f"P {objective}, D {dual_objective}, w {coef}, b {intercept}"
        return [f"a number is not finite: {numbers}, a {dual}"]
    w, b, a = [mp.mpf(v) for v in coef], mp.mpf(intercept), [mp.mpf(v) for v in dual]
    broken = []

    def law(holds: Any, name: str, *found: Any) -> None:
        if not holds:
            broken.append(f"{name}: {', '.join(map(show, found))}")

    # Feasibility: nothing else makes D a lower bound.
    for i in exact.rows:
        law(exact.loss.is_feasible(a[i], exact.y[i]), "a is out of its range", a[i])
    for i in set(range(len(a))) - set(exact.rows):
        law(not a[i], "a of an absent row", a[i])
    rest, size = exact.imbalance(a)
    if case.fit_intercept:
        law(abs(rest) <= exact.noise * size + LOST, "sum c a, |c a|", rest, size)
    else:
        law(intercept == 0.0, "an intercept that is none", b)

    # What is reported is what is true.
    P, D = exact.primal(w, b), exact.dual(a)
    law(
        abs(objective - P.value) <= P.error,
        "reported P, P, error allowed",
        mp.mpf(objective),
        *P,
    )
    law(
        abs(dual_objective - D.value) <= D.error,
        "reported D, D, error allowed",
        mp.mpf(dual_objective),
        *D,
    )
    law(gap == objective - dual_objective, "the gap is no difference", mp.mpf(gap))

    # Weak duality, exactly, but for what is left of sum c a.
    best = exact.without_coefficients
    slack = abs(b * rest) if case.fit_intercept else ZERO
    slack += EXACT * (abs(P.value) + abs(D.value))
    law(D.value <= P.value + slack, "D above P", D.value, P.value, slack)
    law(dual_objective <= P.value + slack + D.error, "reported D above P", mp.mpf(gap))

    # The tolerance is kept.
    if stop == "converged":
        law(case.tol > 0 and gap <= case.tol * objective, "tol", mp.mpf(gap))
        allowed = case.tol * P.value * (1 + mp.mpf(1e-9)) + P.error + D.error + slack
        law(
            P.value - D.value <= allowed,
            "converged with gap, allowed, P",
            P.value - D.value,
            allowed,
            P.value,
        )
    elif stop == "perfect":
        # Zero up to rounding, or less than the last digit of what there was without w.
        # What is smaller than LEAST has lost digits to underflow.
        nothing = max(P.error + D.error + slack, 4 * UNIT * best.value, LEAST)
        law(
            P.value <= nothing and P.value - D.value <= nothing,
            "perfect with P, gap, rounding, P of w = 0",
            P.value,
            P.value - D.value,
            P.error + D.error,
            best.value,
        )
    elif stop not in ("max_iter", "precision"):
        broken.append(f"stopped by {stop}")

    # No model is worse than none. An intercept is searched for to 0.01 tol of P.
    precision = min(max(0.01 * case.tol, 1e-12), 1e-4) if case.fit_intercept else 0
    worst = best.value * (1 + mp.mpf(precision)) + best.error + P.error
    if case.tol > 0:
        # tol=0 asks for what the algorithm itself ends with.
        law(
            P.value <= worst,
            "P, P of w = 0, error allowed",
            P.value,
            best.value,
            P.error,
        )
    return broken


# Refusals that are right: numbers that float64 does not hold.
REFUSALS = ("overflows or is NaN", "lambda =", "coefficients overflow")


def is_extreme(case: Case) -> bool:
    """Whether squares of the data, and multiples of them, may overflow."""
    c = np.ones(1) if case.weights is None else case.weights[case.weights > 0]
    squares = [abs(case.X).max(), abs(case.y).max()]
    factors = [*squares, *squares, case.C, c.max(), c.max() / c.min()]
    return sum(max(np.log10(float(factor) + 1e-300), 0.0) for factor in factors) > 250


def check(case: Case, estimator: Any, **settings: Any) -> None:
    # Seen where the fit never ends.
    print(case.story)
    try:
        fit = case.fit(estimator, **settings)
    except ValueError as error:
        if is_extreme(case) and any(text in str(error) for text in REFUSALS):
            return
        raise
    broken = violations(case, fit)
    assert not broken, describe(case, fit, broken)


def describe(case: Case, fit: Any, broken: list[str]) -> str:
    """Say what is needed to see it again."""
    settings = " ".join(repr(fit).split())
    stop = f"stopped by {fit.stop_reason_} after {fit.n_iter_}"
    return "\n".join([f"{case.story}; {settings}; {stop}", *broken])


with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [True, False])


# ------------------------------------------------------------------ the oracle itself


@with_and_without_intercept
@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("loss", NAMES)
def test_the_oracle_agrees_with_the_definition_in_numpy(loss, weights, fit_intercept):
    problem = make_problem(loss, 30, weights=weights)
    fit = problem.fit(C=0.3, fit_intercept=fit_intercept, tol=0.0, max_iter=3)
    lam = problem.lam_of(0.3)
    exact = Exact(
        loss, problem.loss_param, problem.X, problem.y, problem.c, 0.3, fit_intercept
    )
    w, b, a = model_of(fit)
    P = exact.primal([mp.mpf(v) for v in w], mp.mpf(b))
    D = exact.dual([mp.mpf(v) for v in a])
    assert float(P.value) == pytest.approx(problem.primal(w, b, lam), rel=1e-13)
    assert float(D.value) == pytest.approx(problem.dual(a, lam), rel=1e-12)
    # What it allows is next to nothing where nothing cancels.
    assert P.error < 1e-11 * P.value
    assert D.error < 1e-11 * P.value
    zeros = np.zeros(len(w))
    best = float(exact.without_coefficients.value)
    grid = np.linspace(-8.0, 8.0, 1601) if fit_intercept else [0.0]
    values = [problem.primal(zeros, constant, lam) for constant in grid]
    assert best <= min(values) * (1 + 1e-13)
    assert best >= min(values) - 2e-2


def test_the_oracle_sees_what_is_wrong():
    case = make_case("squared", True, "a case", tol=1e-6, max_iter=300)
    problem = make_problem("squared", 12)
    case.X, case.y, case.C, case.weights = problem.X, problem.y, 1.0, None
    fit = case.fit(Sdca)
    assert violations(case, fit) == []
    found = {}
    for name, change in {
        "objective_": lambda value: value * (1 + 1e-11),
        "dual_objective_": lambda value: value * (1 + 1e-11),
        "intercept_": lambda value: value + 100.0,
        "dual_coef_": lambda value: value + 1e-9,
    }.items():
        right = getattr(fit, name)
        setattr(fit, name, change(right))
        found[name] = " ".join(violations(case, fit))
        setattr(fit, name, right)
    assert "reported P" in found["objective_"]
    assert "reported D" in found["dual_objective_"]
    assert "P of w = 0" in found["intercept_"]
    assert "converged with gap" in found["intercept_"]
    assert "sum c a" in found["dual_coef_"]
    assert violations(case, fit) == []


# ------------------------------------------------------------------ the fits


@pytest.mark.parametrize("number", range(20 * CASES))
@with_and_without_intercept
@pytest.mark.parametrize("loss", NAMES)
def test_sdca_says_what_is_true(loss, fit_intercept, number):
    case = make_case(loss, fit_intercept, f"sdca {loss} {fit_intercept} {number}")
    check(case, Sdca, accelerate=number % 4 != 3)


@pytest.mark.parametrize("number", range(CASES))
@pytest.mark.parametrize("output", ["average", "random"])
@with_and_without_intercept
@pytest.mark.parametrize("loss", NAMES)
def test_means_and_draws_of_sdca_say_what_is_true(loss, fit_intercept, output, number):
    key = f"{output} {loss} {fit_intercept} {number}"
    check(make_case(loss, fit_intercept, key), Sdca, output=output, sampling="random")


@pytest.mark.parametrize("number", range(3 * CASES))
@with_and_without_intercept
@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (estimator, loss)
        for estimator in (Asdca, Pegasos, Subgradient, DualGradient)
        for loss in (SMOOTH if estimator is Asdca else NAMES)
    ],
)
def test_other_solvers_say_what_is_true(estimator, loss, fit_intercept, number):
    key = f"{estimator.__name__} {loss} {fit_intercept} {number}"
    settings = {"batch_size": 1 + number % 2} if estimator is Asdca else {}
    check(make_case(loss, fit_intercept, key), estimator, **settings)


@pytest.mark.parametrize("number", range(3 * CASES))
@with_and_without_intercept
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_each_of_several_classes_says_what_is_true(loss, fit_intercept, number):
    case = make_case(loss, fit_intercept, f"classes {loss} {fit_intercept} {number}")
    n = len(case.y)
    if n < 4 or case.weights is not None:
        case.weights = None
    if n < 4:
        case.X, n = sp.vstack([sp.csr_array(case.X)] * 2).toarray(), 2 * n
    labels = np.arange(n) % 3
    case.y = labels.astype(float)
    fit = case.fit(Sdca, n_jobs=1 + number % 2)
    for k in range(3):
        broken = violations(case, fit, np.where(labels == k, 1.0, -1.0), k)
        assert not broken, describe(case, fit, broken)


@pytest.mark.parametrize("accelerate", [True, False])
@with_and_without_intercept
@pytest.mark.parametrize("loss", ["squared", "huber", "squared_epsilon_insensitive"])
def test_a_warm_start_from_afar_says_what_is_true(loss, fit_intercept, accelerate):
    problem = make_problem(loss, 40, 6)
    story = "a model of targets 1e12 times as large"
    case = make_case(
        loss,
        fit_intercept,
        "warm start",
        X=problem.X,
        y=problem.y,
        weights=None,
        C=1.0,
        loss_param=problem.loss_param,
        tol=1e-8,
        max_iter=1000,
        story=story,
    )
    settings = {"accelerate": accelerate, "warm_start": True}
    fit = dataclasses.replace(case, y=1e12 * case.y).fit(Sdca, **settings)
    fit.fit(case.X, case.y)
    broken = violations(case, fit)
    assert not broken, describe(case, fit, broken)
    assert fit.stop_reason_ == "converged" or not accelerate


@pytest.mark.parametrize("noisy", [True, False])
@with_and_without_intercept
@pytest.mark.parametrize("exponent", range(-10, 16, 2 if not LONG else 1))
def test_poisson_of_any_size(exponent, fit_intercept, noisy):
    rng = np.random.default_rng([SEED, exponent + 10, fit_intercept, noisy])
    X = rng.normal(size=(8, 2))
    y = 10.0**exponent * np.exp(X @ [0.5, -0.3] + noisy * rng.normal(size=8))
    for C, tol in [(1e-6, 1e-6), (1.0, 1e-4), (1e6, 1e-9), (1e12, 1e-12)]:
        story = f"counts of 1e{exponent}, noisy: {noisy}"
        case = Case("poisson", None, X, y, None, C, fit_intercept, tol, 300, story)
        check(case, Sdca)


@with_and_without_intercept
@pytest.mark.parametrize("loss", NAMES)
def test_few_rows_and_no_columns_to_speak_of(loss, fit_intercept):
    for x in ([0.0, 0.0], [1e-150, 1e-150], [1e150, -1e150], [1.0, 1.0]):
        for y in ([1.0, -1.0], [1e-300, 1e-300], [1e150, 0.0], [0.0, 0.0]):
            if loss in CLASSIFIERS and y != [1.0, -1.0]:
                continue
            y = np.abs(y) if loss == "poisson" else np.array(y)
            if loss == "poisson":
                y = np.minimum(y, 1e15)
            for C in (1e-12, 1.0, 1e12):
                case = make_case(
                    loss,
                    fit_intercept,
                    "two rows",
                    X=np.array([x]).T,
                    y=y,
                    weights=None,
                    C=C,
                    loss_param=LOSSES[loss].default,
                    tol=1e-6,
                    max_iter=100,
                    story=f"rows {x}, targets {y.tolist()}",
                )
                check(case, Sdca)
