"""What there is to read in a fitted model: its coefficients and its certificate."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from sdca_rs import _core
from sdca_rs._data import (
    Floats,
    as_count,
    is_sparse,
    loss_shape,
    one_vs_rest,
    validate_y,
    weighed_labels,
)
from sdca_rs._handle import Given
from sdca_rs._losses import require_loss

# Relative differences of the objective below this may be due to rounding alone, as in
# `src/solver/driver.rs`.
_ROUNDING = 1e-12

# The same rows give the same objective but for the order of a sum.
_SAME = 1e-6

_INTERCEPT = "(intercept)"

# Columns of a terminal.
_WIDTH = 80

# Rows that are weighed and multiplied at a time: numbers of them, in float64.
_BLOCK = 2**20

# What a target varies by if the model is right, given predictions of the score: this is
# also the curvature of the loss. Of "squared" it is in units of a variance to be found.
_VARIANCES: dict[str, Callable[[Floats], Floats]] = {
    "log": lambda p: expit(p) * expit(-p),
    "poisson": np.exp,
    "squared": np.ones_like,
}


class _Training:
    """The rows of the fit, as they count in each of its problems."""

    X: Any
    counts: Floats
    targets: list[Floats]

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Check that the objective of the model is that of its fit."""
        loss = require_loss(model.loss)
        given = Given(model, X, reset=False)
        weights = given.weigh(sample_weight)
        y = validate_y(y, given.n_samples, numeric=loss.task == "regression")
        if loss.task == "classification":
            labels, weights = weighed_labels(y, weights, model.class_weight)
            if labels.classes.tolist() != model.classes_.tolist():
                raise ValueError(
                    f"y: found classes {labels.classes.tolist()}, expected those of "
                    f"the fit, {model.classes_.tolist()}"
                )
            self.targets = one_vs_rest(labels)
        else:
            self.targets = [y]
        rows = given.rows()
        self.X = given.X
        self.counts = np.ones(given.n_samples) if weights is None else weights
        if not hasattr(model, "objective_"):
            return
        for targets, coef, intercept, expected in zip(
            self.targets, *model._models(), np.atleast_1d(model.objective_), strict=True
        ):
            found, _ = _core.objectives(
                rows,
                targets,
                sample_weight=given.others(weights),
                loss=loss.name,
                loss_param=loss_shape(loss, model.loss_param),
                C=None,
                lam=model._lam,
                fit_intercept=model.fit_intercept,
                coef=coef,
                intercept=float(intercept),
                dual=None,
            )
            if not abs(found - expected) <= _SAME * max(abs(expected), _ROUNDING):
                raise ValueError(
                    f"X, y: found an objective of {found:.6g}, expected that of the "
                    f"fit, {expected:.6g}: give the rows, targets and weights of the "
                    "fit"
                )


def coef_table(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> Any:
    """List coefficients, bounds of their errors, and standard errors."""
    if (X is None) != (y is None):
        raise ValueError(
            f"{'X' if X is None else 'y'}: found None, expected both of X and y, or "
            "none of the two"
        )
    coefs, intercepts = model._models()
    training = None if X is None else _Training(model, X, y, sample_weight)
    bounds = _max_errors(model, coefs, training)
    values = coefs
    if model.fit_intercept:
        values = np.column_stack([coefs, intercepts])
    else:
        bounds = bounds[:, :-1]
    names = feature_names(model)
    if model.fit_intercept:
        names = [*names, _INTERCEPT]
    n_problems, n_values = values.shape
    columns: dict[str, NDArray[Any]] = {
        "feature": np.array(names * n_problems, dtype=object)
    }
    if n_problems > 1:
        columns["class"] = np.repeat(model.classes_, n_values)
    columns |= {"coef": values.ravel(), "max_error": bounds.ravel()}
    loss = require_loss(model.loss).name
    if training is not None and loss in _VARIANCES:
        columns["std_error"] = np.concatenate(
            [
                _std_errors(model, loss, training, targets, coef, float(intercept))
                for targets, coef, intercept in zip(
                    training.targets, coefs, intercepts, strict=True
                )
            ]
        )
    try:
        import pandas as pd
    except ImportError:
        types = [(name, column.dtype) for name, column in columns.items()]
        table = np.empty(values.size, dtype=types)
        for name, column in columns.items():
            table[name] = column
        return table
    return pd.DataFrame(columns)


def feature_names(model: Any) -> list[str]:
    """Return the names of the features, as scikit-learn makes them up if need be."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"x{j}" for j in range(model.n_features_in_)]
    return [str(name) for name in names]


def _gaps(model: Any) -> Floats:
    """Return the duality gaps, with what rounding may hide."""
    gaps, objectives = np.atleast_1d(model.duality_gap_, model.objective_)
    bounds: Floats = np.maximum(gaps, 0.0) + _ROUNDING * np.abs(objectives)
    return bounds


def _max_errors(model: Any, coefs: Floats, training: _Training | None) -> Floats:
    """Bound the errors of coefficients and, in the last column, intercepts.

    The docstring of :meth:`FittedModel.coef_table` has the proof.
    """
    n_problems, n_features = coefs.shape
    errors = np.full((n_problems, n_features + 1), np.nan)
    if not hasattr(model, "duality_gap_"):
        return errors
    gaps = _gaps(model)
    # Of the vector of coefficients.
    distances = np.sqrt(2.0 * gaps / model._lam)
    errors[:, :-1] = distances[:, np.newaxis]
    if training is None:
        return errors
    if hasattr(model, "dual_coef_"):
        weighed = training.counts * np.atleast_2d(model.dual_coef_)
        of_dual = (training.X.T @ weighed.T).T / (model._lam * training.counts.sum())
        half = (coefs - of_dual) / 2.0
        apart = np.linalg.norm(half, axis=1)
        radii = np.sqrt(np.maximum(gaps / model._lam - apart**2, 0.0))
        errors[:, :-1] = np.minimum(errors[:, :-1], np.abs(half) + radii[:, np.newaxis])
        distances = np.minimum(distances, apart + radii)
    longest = np.sqrt(_squares(training.X)[training.counts > 0].max())
    errors[:, -1] = longest * distances
    return errors


def _squares(X: Any) -> Floats:
    """Return ``|x_i|^2`` of each row, also of float32 in float64."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
    squares: Floats = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return squares


def _std_errors(
    model: Any,
    loss: str,
    training: _Training,
    targets: Floats,
    coef: Floats,
    intercept: float,
) -> Floats:
    """Return the standard errors of coefficients and, last, of the intercept.

    With ``m``, the mean row by ``c_i v_i``, the intercept of the centred rows
    ``x_i - m`` is ``b + m @ w``. There the Fisher information, and so the covariance,
    has no entries between ``w`` and the intercept, whose own is ``1 / sum_i c_i v_i``.
    """
    X, counts = training.X, training.counts
    predictions = X @ coef + intercept
    with np.errstate(over="ignore"):
        weights = counts * _VARIANCES[loss](predictions)
    total = float(weights.sum())
    unknown = np.full(len(coef) + bool(model.fit_intercept), np.nan)
    if not 0 < total < np.inf:
        return unknown
    mean = X.T @ weights / total if model.fit_intercept else np.zeros(len(coef))
    fisher = _gram(X, weights, mean)
    hessian = fisher.copy()
    np.fill_diagonal(hessian, np.diag(hessian) + model._lam * counts.sum())
    # Columns of all scales: correlations are better to invert.
    scale = 1.0 / np.sqrt(np.diag(hessian))
    scales = np.outer(scale, scale)
    try:
        factor = scipy.linalg.cho_factor(hessian * scales)
    except scipy.linalg.LinAlgError:
        return unknown
    shrunk = scipy.linalg.cho_solve(factor, fisher * scales)
    covariance = scipy.linalg.cho_solve(factor, shrunk.T) * scales
    variances = np.maximum(np.diag(covariance), 0.0)
    n_parameters = np.trace(shrunk)
    if model.fit_intercept:
        variances = np.append(variances, 1.0 / total + mean @ covariance @ mean)
        n_parameters += 1.0
    if loss == "squared":
        free = counts.sum() - n_parameters
        squares = float(counts @ (targets - predictions) ** 2)
        # With as many parameters as rows nothing is left but rounding.
        is_enough = free > len(variances) * np.finfo(np.float64).eps * counts.sum()
        variances = variances * (squares / free if is_enough else np.nan)
    return np.sqrt(variances)


def _gram(X: Any, weights: Floats, mean: Floats) -> Floats:
    """Return ``sum_i weights_i (x_i - mean) (x_i - mean)'``.

    ``mean`` is that of the weighted rows, or zero.
    """
    if is_sparse(X):
        product = (X.T.multiply(weights) @ X).toarray()
        centred: Floats = product - weights.sum() * np.outer(mean, mean)
        return centred
    n_rows, n_features = X.shape
    gram = np.zeros((n_features, n_features))
    step = max(1, _BLOCK // n_features)
    for start in range(0, n_rows, step):
        part = X[start : start + step] - mean
        gram += (part.T * weights[start : start + step]) @ part
    return gram


def summary(model: Any, max_features: int) -> str:
    """Describe a model and its certificate."""
    n_shown = as_count("max_features", max_features, "an integer >= 0")
    if n_shown < 0:
        raise ValueError(f"max_features: found {n_shown}, expected an integer >= 0")
    loss = require_loss(model.loss)
    coefs, intercepts = model._models()
    n_zero = int(np.count_nonzero(coefs == 0))
    facts = {"loss": loss.name}
    if loss.param is not None:
        value = loss.default if model.loss_param is None else model.loss_param
        facts["loss"] += f" ({loss.param} = {value:.6g})"
    facts["regularisation"] = f"lam = {model._lam:.6g}" + (
        f" (C = {model.C:.6g})" if model.lam is None else ""
    )
    facts["features"] = f"{model.n_features_in_}" + (
        f", {n_zero} of {coefs.size} coefficients are 0" if n_zero else ""
    )
    if loss.task == "classification":
        facts["classes"] = _listed(model.classes_)
    if len(coefs) == 1:
        facts["intercept"] = f"{intercepts[0]:.4g}"
        facts |= _certificate(model)
    else:
        facts["epochs"] = str(getattr(model, "n_iter_", "unknown"))
    width = max(map(len, facts))
    lines = [type(model).__name__]
    lines += [f"  {name:{width}}  {value}" for name, value in facts.items()]
    if len(coefs) > 1:
        lines += ["", *_by_class(model, intercepts)]
    lines += _largest(model, coefs, n_shown)
    return "\n".join(lines)


def _listed(labels: NDArray[Any], at_most: int = 6) -> str:
    if len(labels) == 2:
        return f"{labels[0]} (-1), {labels[1]} (+1)"
    shown = [str(label) for label in labels[:at_most]]
    if len(labels) > at_most:
        shown[-1:] = ["...", str(labels[-1])]
    return f"{len(labels)}: {', '.join(shown)}"


def _certificate(model: Any) -> dict[str, str]:
    if not hasattr(model, "duality_gap_"):
        return {"certificate": "none after partial_fit; see certify"}
    share = model.duality_gap_ / model.objective_ if model.objective_ else 0.0
    off = np.sqrt(2.0 * _gaps(model)[0] / model._lam)
    return {
        "objective": f"{model.objective_:.6g}",
        "lower bound": f"{model.dual_objective_:.6g}",
        "gap": f"{model.duality_gap_:.1e} ({share:.1e} of the objective, "
        f"tol {model.tol:.1e})",
        "coefficients": f"each within {off:.1e} of its best value",
        "stop reason": f"{model.stop_reason_}, after {_epochs(model)}",
    }


def _epochs(model: Any) -> str:
    return f"{model.n_iter_} epoch{'' if model.n_iter_ == 1 else 's'}"


def _by_class(model: Any, intercepts: Floats) -> list[str]:
    columns = {
        "class": [str(label) for label in model.classes_],
        "intercept": [f"{value:.4g}" for value in intercepts],
    }
    if hasattr(model, "duality_gap_"):
        columns |= {
            "objective": [f"{value:.6g}" for value in model.objective_],
            "lower bound": [f"{value:.6g}" for value in model.dual_objective_],
            "gap": [f"{value:.1e}" for value in model.duality_gap_],
            "max_error": [
                f"{value:.1e}" for value in np.sqrt(2.0 * _gaps(model) / model._lam)
            ],
            "stop reason": [str(reason) for reason in model.stop_reason_],
        }
    return _aligned([[name, *entries] for name, entries in columns.items()])


def _largest(model: Any, coefs: Floats, n_shown: int) -> list[str]:
    """List the largest coefficients of each problem."""
    names = feature_names(model)
    by_size = np.argsort(-np.abs(coefs), axis=1, kind="stable")[:, :n_shown]
    shown = [
        [(names[j], f"{coef[j]:.4g}") for j in order if coef[j] != 0]
        for coef, order in zip(coefs, by_size, strict=True)
    ]
    if not any(shown):
        return []
    if len(coefs) == 1:
        [pairs] = shown
        head = f"largest {len(pairs)} of {coefs.size} coefficients"
        if len(pairs) == coefs.size:
            head = "coefficients"
        features, values = zip(*pairs, strict=True)
        return ["", f"  {head}", *_aligned([features, values])]
    labels = [str(label) for label in model.classes_]
    width = max(len("class"), *map(len, labels))
    lines = ["", f"  {'class':<{width}}  largest coefficients"]
    for label, pairs in zip(labels, shown, strict=True):
        lines += textwrap.wrap(
            ", ".join(f"{name} {value}" for name, value in pairs),
            _WIDTH,
            initial_indent=f"  {label:<{width}}  ",
            subsequent_indent=" " * (width + 4),
        )
    return lines


def _aligned(columns: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of a table: the first column to the left, the rest to the right."""
    widths = [max(map(len, column)) for column in columns]
    return [
        "  "
        + "  ".join(
            f"{cell:<{width}}" if j == 0 else f"{cell:>{width}}"
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in zip(*columns, strict=True)
    ]
