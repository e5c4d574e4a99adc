"""The certificate of any fitted linear model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn import linear_model, svm
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from sdca_rs import _core
from sdca_rs._base import CertifiedLinearModel
from sdca_rs._data import (
    Floats,
    Labels,
    as_matrix,
    as_targets,
    as_weights,
    loss_shape,
    regularisation,
    validate_X,
)
from sdca_rs._losses import require_loss
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


# What scikit-learn's estimators minimise, in our terms. `alpha` is lam W for Ridge,
# whose objective is a sum over rows, and lam itself for the others.
_SVR = {
    "epsilon_insensitive": "epsilon_insensitive",
    "squared_epsilon_insensitive": "squared_epsilon_insensitive",
}
_KNOWN: dict[type, Callable[[Any, float], dict[str, Any]]] = {
    svm.LinearSVC: lambda model, _: {"loss": model.loss, "C": model.C},
    svm.LinearSVR: lambda model, _: {
        "loss": _SVR[model.loss],
        "loss_param": model.epsilon,
        "C": model.C,
    },
    linear_model.LogisticRegression: lambda model, _: {"loss": "log", "C": model.C},
    linear_model.Ridge: lambda model, total: {
        "loss": "squared",
        "lam": model.alpha / total,
    },
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
    LinearSVR, LogisticRegression (L2, two classes), Ridge or PoissonRegressor; of any
    other, ``loss`` and one of ``C`` and ``lam`` must be given, which can also override
    what is taken.

    The lower bound comes from the estimator's own dual point, if it has one for these
    rows, and otherwise from a fit of :class:`Sdca`.

    Parameters
    ----------
    estimator : object
        Has ``coef_``, ``intercept_`` and, for a classifier, ``classes_``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows that the model was fitted to.
    y : array-like of shape (n_samples,)
        Their classes or targets.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Their weights. The estimator's ``class_weight`` is multiplied in.
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
    check_is_fitted(estimator, ["coef_", "intercept_"])
    known = _objective_of(
        estimator, np.shape(y)[0] if sample_weight is None else np.sum(sample_weight)
    )
    given = {"loss": loss, "loss_param": loss_param, "fit_intercept": fit_intercept}
    known.update({name: value for name, value in given.items() if value is not None})
    if loss is not None and loss_param is None:
        known.pop("loss_param", None)
    if C is not None or lam is not None:
        known.update(C=1.0 if C is None else C, lam=lam)
    if "loss" not in known or not ("C" in known or "lam" in known):
        raise ValueError(
            f"estimator: found {type(estimator).__name__}, whose objective is not "
            "known; give loss and one of C and lam"
        )
    reference = Sdca(**known, tol=tol, max_iter=max_iter, random_state=0)
    spec = require_loss(reference.loss)
    classify = spec.task == "classification"
    X, y = validate_X(Sdca(), X, y=y, y_numeric=not classify)
    weights = as_weights(sample_weight, X.shape[0])
    if classify:
        check_classification_targets(y)
        labels = Labels(np.asarray(y), weights)
        weights = labels.weigh(reference.class_weight, weights)
        if not np.array_equal(estimator.classes_, labels.classes):
            raise ValueError(
                f"y: found classes {labels.classes.tolist()}, expected those of the "
                f"estimator, {estimator.classes_.tolist()}"
            )
        targets = _one_vs_rest(labels)
    else:
        targets = [as_targets(y)]
    coef = estimator.coef_.toarray() if sp.issparse(estimator.coef_) else estimator.coef_
    coefs = np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64)
    intercepts = np.broadcast_to(np.atleast_1d(estimator.intercept_), len(coefs))
    if len(coefs) != len(targets):
        raise ValueError(
            f"estimator.coef_: found {len(coefs)} models, expected {len(targets)}"
        )
    matrix = as_matrix(X, unique=True)
    setting: dict[str, Any] = {
        "sample_weight": weights,
        "loss": spec.name,
        "loss_param": loss_shape(spec, reference.loss_param),
        **regularisation(reference.C, reference.lam),
        "fit_intercept": reference.fit_intercept,
    }
    primal = np.array(
        [
            _core.objective(matrix, t, coef=w, intercept=float(b), **setting)
            for t, w, b in zip(targets, coefs, intercepts, strict=True)
        ]
    )
    duals = _own_duals(estimator, known, X.shape[0])
    if duals is None:
        reference.set_params(class_weight=None).fit(X, y, sample_weight=weights)
        dual = np.atleast_1d(reference.dual_objective_)
    else:
        dual = np.array(
            [
                _core.dual_objective(matrix, t, dual=a, **setting)
                for t, a in zip(targets, duals, strict=True)
            ]
        )
    if len(targets) == 1:
        return Certificate(
            float(primal[0]), float(dual[0]), float(primal[0] - dual[0])
        )
    return Certificate(primal, dual, primal - dual)


def _objective_of(estimator: Any, total_weight: float) -> dict[str, Any]:
    """Return the parameters of `Sdca` under which it minimises what the estimator does."""
    if isinstance(estimator, CertifiedLinearModel):
        names = ("loss", "loss_param", "C", "lam", "fit_intercept", "class_weight")
        return {name: getattr(estimator, name) for name in names}
    for kind, translate in _KNOWN.items():
        if isinstance(estimator, kind):
            return {
                **translate(estimator, float(total_weight)),
                "fit_intercept": estimator.fit_intercept,
                "class_weight": getattr(estimator, "class_weight", None),
            }
    return {}


def _own_duals(
    estimator: Any, setting: dict[str, Any], n_samples: int
) -> Floats | None:
    """Return the dual points of one of our estimators, if they are for these rows."""
    if not isinstance(estimator, CertifiedLinearModel):
        return None
    duals = np.ascontiguousarray(np.atleast_2d(estimator.dual_coef_))
    same_loss = setting["loss"] == estimator.loss
    return duals if same_loss and duals.shape[1] == n_samples else None


def _one_vs_rest(labels: Labels) -> list[Floats]:
    """Return the targets of each binary problem, as the core makes them."""
    if len(labels.classes) == 2:
        return [labels.targets]
    return [
        np.where(labels.numbers == k, 1.0, -1.0) for k in range(len(labels.classes))
    ]
