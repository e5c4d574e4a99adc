"""The certificate of any fitted linear model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn import linear_model, svm
from sklearn.exceptions import NotFittedError

from sdca_rs import _core
from sdca_rs._base import CertifiedLinearModel
from sdca_rs._data import (
    Floats,
    as_flag,
    is_sparse,
    loss_shape,
    one_vs_rest,
    regularisation,
    validate_y,
    weighed_labels,
)
from sdca_rs._handle import Given
from sdca_rs._losses import find_loss, require_loss
from sdca_rs._sdca import Sdca


class Certificate(NamedTuple):
    """What is proved about a model.

    Attributes
    ----------
    objective : float or ndarray of shape (n_classes,)
        ``P`` at the model; one entry for each class from three classes on.
    dual_objective : float or ndarray of shape (n_classes,)
        A proven lower bound of the best possible ``P``.
    gap : float or ndarray of shape (n_classes,)
        Their difference: the model is at most that far from the optimum.
    """

    objective: Any
    dual_objective: Any
    gap: Any


# What scikit-learn's estimators minimise, in our terms, or None where we cannot say it.
# `alpha` is lam W for Ridge, whose objective is a sum over rows, and lam itself for
# PoissonRegressor.
_KNOWN: dict[type, Callable[[Any, float], dict[str, Any] | None]] = {
    svm.LinearSVC: lambda model, _: (
        {"loss": model.loss, "C": model.C}
        if model.penalty == "l2" and model.multi_class == "ovr"
        else None
    ),
    svm.LinearSVR: lambda model, _: {
        "loss": model.loss,
        "loss_param": model.epsilon,
        "C": model.C,
    },
    linear_model.LogisticRegression: lambda model, _: (
        {"loss": "log", "C": model.C}
        if model.penalty in ("l2", "deprecated")
        and not model.l1_ratio
        and len(model.classes_) == 2
        else None
    ),
    linear_model.Ridge: lambda model, total: (
        None
        if model.positive or np.ndim(model.alpha)
        else {"loss": "squared", "lam": model.alpha / total}
    ),
    linear_model.PoissonRegressor: lambda model, _: {
        "loss": "poisson",
        "lam": model.alpha,
    },
}


def certify(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    loss: str | None = None,
    loss_param: float | None = None,
    C: float | None = None,
    lam: float | None = None,
    fit_intercept: bool | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> Certificate:
    """Prove how close a fitted linear model is to the best one.

    The objective is that of :class:`Sdca`: the intercept is not regularised. It is
    taken from the estimator if that is one of ours, or scikit-learn's LinearSVC,
    LinearSVR, LogisticRegression (two classes), Ridge or PoissonRegressor with a
    squared L2 penalty and no constraint. Of any other, ``loss`` and one of ``C`` and
    ``lam`` must be given, which can also override what is taken.

    The lower bound comes from the estimator's own dual point, if it has one for these
    rows, and otherwise from a fit of :class:`Sdca`.

    Parameters
    ----------
    estimator : object
        Has ``coef_``, ``intercept_`` and, for a classifier, ``classes_``.
    X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
        The rows that the model was fitted to.
    y : array-like of shape (n_samples,)
        Their classes or targets.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Their weights, or those of :class:`Data` if it has weights. The estimator's
        ``class_weight`` is multiplied in.
    loss, loss_param, C, lam, fit_intercept
        As in :class:`Sdca`; None takes them from the estimator.
    tol : float, default=1e-4
        Tolerance of the fit that gives the lower bound, if one is needed.
    max_iter : int, default=1000
        Limit of epochs of that fit.

    Returns
    -------
    Certificate
        Objective, lower bound, and gap.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import LinearSVC
    >>> from sdca_rs import certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> proof = certify(LinearSVC(loss="hinge", max_iter=10**5).fit(X, y), X, y)
    >>> bool(0 <= proof.gap < 0.01 * proof.objective)
    True
    """
    for name in ("coef_", "intercept_"):
        if not hasattr(estimator, name):
            raise NotFittedError(
                f"estimator: found {type(estimator).__name__} without {name}, expected "
                "a fitted linear model"
            )
    given = Given(Sdca(), X, reset=True)
    n_samples = given.n_samples
    weights = given.weigh(sample_weight)
    total = float(n_samples) if weights is None else float(weights.sum())
    known = _objective_of(estimator, total)
    wanted = {"loss": loss, "loss_param": loss_param, "fit_intercept": fit_intercept}
    known.update({name: value for name, value in wanted.items() if value is not None})
    if loss is not None and loss_param is None:
        known.pop("loss_param", None)
    if C is not None or lam is not None:
        known.update(C=1.0 if C is None else C, lam=lam)
    if "fit_intercept" in known:
        as_flag("fit_intercept", known["fit_intercept"])
    if "loss" not in known or not ("C" in known or "lam" in known):
        raise ValueError(
            f"estimator: found {type(estimator).__name__} with an objective that is "
            "not known, expected loss and one of C and lam to be given with it"
        )
    reference = Sdca(**known, tol=tol, max_iter=max_iter, random_state=0)
    spec = require_loss(reference.loss)
    classify = spec.task == "classification"
    y = validate_y(y, n_samples, numeric=not classify)
    if classify:
        labels, weights = weighed_labels(y, weights, reference.class_weight)
        classes = getattr(estimator, "classes_", labels.classes)
        if not np.array_equal(classes, labels.classes):
            raise ValueError(
                f"y: found classes {labels.classes.tolist()}, expected those of the "
                f"estimator, {classes.tolist()}"
            )
        targets = one_vs_rest(labels)
    else:
        targets = [y]
    coef = estimator.coef_.toarray() if is_sparse(estimator.coef_) else estimator.coef_
    coefs = np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64)
    intercepts = np.broadcast_to(np.atleast_1d(estimator.intercept_), len(coefs))
    if len(coefs) != len(targets):
        raise ValueError(
            f"estimator.coef_: found {len(coefs)} models, expected {len(targets)}"
        )
    if not reference.fit_intercept and np.any(intercepts):
        raise ValueError(
            f"estimator.intercept_: found {estimator.intercept_}, expected 0 for "
            "fit_intercept=False"
        )
    rows = given.rows()
    setting: dict[str, Any] = {
        "sample_weight": given.others(weights),
        "loss": spec.name,
        "loss_param": loss_shape(spec, reference.loss_param),
        **dict(
            zip(("C", "lam"), regularisation(reference.C, reference.lam), strict=True)
        ),
        "fit_intercept": reference.fit_intercept,
    }
    duals = _own_duals(estimator, known, total, (len(targets), n_samples))
    values = [
        _core.objectives(rows, t, coef=w, intercept=float(b), dual=a, **setting)
        for t, w, b, a in zip(targets, coefs, intercepts, duals, strict=True)
    ]
    primal, dual = np.array(values).T
    if not np.isfinite(dual).all():
        # No dual point for this objective, or one that these targets make infeasible.
        reference.set_params(class_weight=None).fit(given, y, sample_weight=weights)
        dual = np.atleast_1d(reference.dual_objective_)
    if len(targets) == 1:
        return Certificate(float(primal[0]), float(dual[0]), float(primal[0] - dual[0]))
    return Certificate(primal, dual, primal - dual)


def _objective_of(estimator: Any, total_weight: float) -> dict[str, Any]:
    """Return the parameters under which `Sdca` minimises what the estimator does."""
    if isinstance(estimator, CertifiedLinearModel):
        loss = find_loss(estimator.loss)
        if hasattr(estimator, "classes_") and loss and loss.task == "regression":
            # A ridge classifier: `y` is not what it has been fitted to.
            return {}
        names = ("loss", "loss_param", "C", "lam", "fit_intercept", "class_weight")
        return {name: getattr(estimator, name) for name in names}
    # The very class: subclasses such as LogisticRegressionCV have other parameters.
    translate = _KNOWN.get(type(estimator))
    known = None if translate is None else translate(estimator, total_weight)
    if known is None:
        return {}
    known["fit_intercept"] = estimator.fit_intercept
    known["class_weight"] = getattr(estimator, "class_weight", None)
    return known


def _own_duals(
    estimator: Any, known: dict[str, Any], total: float, shape: tuple[int, int]
) -> list[Floats] | list[None]:
    """Return the dual points of one of our estimators, if they are of this problem."""
    duals = getattr(estimator, "dual_coef_", None)
    if (
        isinstance(estimator, CertifiedLinearModel)
        and duals is not None
        and np.atleast_2d(duals).shape == shape
        and _objective_of(estimator, total) == known
    ):
        return list(np.ascontiguousarray(np.atleast_2d(duals)))
    return [None] * shape[0]
