"""A model of ours as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR

from sdca_rs._data import is_sparse
from sdca_rs._losses import require_loss

# An estimator of scikit-learn: its class and parameters.
_Stock = tuple[Callable[..., Any], dict[str, Any]]


class _Problem(NamedTuple):
    """What scikit-learn's parameters are made from."""

    param: float | None
    C: float
    lam: float


# Losses that do not follow from what they predict.
_STOCK: dict[str, Callable[[_Problem], _Stock]] = {
    "squared_hinge": lambda p: (LinearSVC, {"loss": "squared_hinge", "C": p.C}),
    "modified_huber": lambda p: (
        SGDClassifier,
        {"loss": "modified_huber", "alpha": p.lam},
    ),
    "absolute": lambda p: (LinearSVR, {"epsilon": 0.0, "C": p.C}),
    "epsilon_insensitive": lambda p: (LinearSVR, {"epsilon": p.param, "C": p.C}),
    "squared_epsilon_insensitive": lambda p: (
        LinearSVR,
        {"loss": "squared_epsilon_insensitive", "epsilon": p.param, "C": p.C},
    ),
    "huber": lambda p: (
        SGDRegressor,
        {"loss": "huber", "epsilon": p.param, "alpha": p.lam},
    ),
    "quantile": lambda p: (QuantileRegressor, {"quantile": p.param, "alpha": p.lam}),
}


def to_sklearn(model: Any) -> Any:
    """Return scikit-learn's estimator for the loss, with the coefficients of a model.

    What its methods need beside coefficients, which differs between scikit-learn's
    versions, comes from a fit to rows without values.
    """
    classify = hasattr(model, "classes_")
    make, params = _stock(model)
    labels = model.classes_ if classify else np.ones(2)
    stock = _fit_to_nothing(make, params, labels)
    params["fit_intercept"] = model.fit_intercept
    if classify:
        params["class_weight"] = model.class_weight
    stock.set_params(**params)
    if classify:
        stock.classes_ = model.classes_.copy()
        stock.coef_ = model.coef_.copy()
    else:
        coef = model.coef_.toarray() if is_sparse(model.coef_) else model.coef_
        stock.coef_ = coef.ravel().copy()
    # A number, or an array of one entry.
    stock.intercept_ = (
        np.array(model.intercept_, dtype=np.float64).reshape(-1)
        if np.ndim(stock.intercept_)
        else np.float64(model.intercept_)
    )
    stock.n_features_in_ = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        stock.feature_names_in_ = model.feature_names_in_.copy()
    n_iter = getattr(model, "n_iter_", 1)
    if stock.n_iter_ is not None:
        stock.n_iter_ = (
            np.full_like(stock.n_iter_, n_iter) if np.ndim(stock.n_iter_) else n_iter
        )
    if hasattr(stock, "t_"):
        # The number of its next step.
        stock.t_ = 1.0 + max(model._steps)
    return stock


def _stock(model: Any) -> _Stock:
    loss = require_loss(model.loss)
    C = model.C
    if model.lam is not None:
        total = getattr(model, "_total_weight", None)
        C = 1 / (model._lam * (1.0 if total is None else total))
    param = loss.default if model.loss_param is None else float(model.loss_param)
    if loss.name in _STOCK:
        return _STOCK[loss.name](_Problem(param, C, model._lam))
    if loss.link == "logit":
        if len(model.classes_) > 2:
            return SGDClassifier, {"loss": "log_loss", "alpha": model._lam}
        return LogisticRegression, {"C": C}
    if loss.task == "classification":
        return LinearSVC, {"loss": "hinge", "C": C}
    if loss.link == "log":
        return PoissonRegressor, {"alpha": model._lam}
    return Ridge, {"alpha": 1 / C}


def _fit_to_nothing(
    make: Callable[..., Any], params: dict[str, Any], labels: Any
) -> Any:
    """Return an estimator with all attributes, and without a word or a random draw."""
    quick: dict[str, Any] = {key: params[key] for key in params if key == "loss"}
    if make in (SGDClassifier, SGDRegressor):
        quick.update(max_iter=1, tol=None)
    stock = make()
    defaults = stock.get_params()
    if "random_state" in defaults:
        quick["random_state"] = 0
    # With fewer rows than that, many classes look to it like numbers.
    labels = np.tile(labels, 3)
    stock.set_params(**quick).fit(np.zeros((len(labels), 1)), labels)
    return stock.set_params(**defaults)
