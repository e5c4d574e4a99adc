"""The faces of :class:`Sdca` for one task each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from sdca_rs._data import Floats
from sdca_rs._losses import ClassifierLoss, RegressorLoss
from sdca_rs._score_history import Callback
from sdca_rs._sdca import Sdca


class SdcaClassifier(ClassifierMixin, Sdca):  # type: ignore[misc]
    """Linear classifier by stochastic dual coordinate ascent, with a certificate.

    Logistic regression, a support vector machine or another, as ``loss`` says; from
    three classes on, one against the rest. It is :class:`Sdca` for the losses of
    classification only, and minimises the same objective in the same way: the fit ends
    when the duality gap proves the model to be within ``tol`` of the best one.

    Read more in the user guide.

    Parameters
    ----------
    loss : str, default="log"
        What to minimise: "log" (or "log_loss") is logistic regression, "hinge" and
        "squared_hinge" are support vector machines, "smooth_hinge" is a hinge with a
        round corner, and "modified_huber" one that outliers move less. "log" and
        "modified_huber" give probabilities.
    loss_param : float, default=None
        The width of the corner of "smooth_hinge"; None is 1.
    C : float, default=1.0
        Inverse strength of regularisation, as in scikit-learn: a smaller one
        regularises more.
    lam : float, default=None
        The strength of regularisation itself, ``1 / (C W)`` with the sum ``W`` of the
        weights. Excludes ``C``.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not regularised.
    tol : float, default=1e-4
        Stop when ``duality_gap_ <= tol * objective_``.
    max_iter : int, default=1000
        Stop after this many epochs, with a warning.
    max_time : float, default=None
        Stop after this many seconds, with a warning.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows. "balanced" gives every class the
        same total weight; a class of weight 0 is absent.
    warm_start, keep_dual, sampling, output, average_from, first_epoch : optional
        As for :class:`Sdca`.
    accelerate, record_every, n_jobs, random_state, verbose, callback : optional
        As for :class:`Sdca`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The coefficients, for two classes and for more.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts, likewise.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    dual_coef_ : ndarray of shape (1, n_samples) or (n_classes, n_samples)
        The dual values.
    objective_, dual_objective_, duality_gap_ : float or ndarray of shape (n_classes,)
        The certificate, from three classes on with an entry for each.
    n_iter_, stop_reason_, history_, n_features_in_, feature_names_in_
        As for :class:`Sdca`.

    See Also
    --------
    SdcaRegressor : The same for regression.
    certify : The certificate of any fitted linear model.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sdca_rs import SdcaClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SdcaClassifier(random_state=0))
    >>> model.fit(X, y).score(X, y) > 0.98
    True
    >>> model.predict_proba(X[:1]).round(3)
    array([[1., 0.]])
    >>> model[-1].stop_reason_
    'converged'
    """

    _task = "classification"

    coef_: Floats
    intercept_: Floats
    dual_coef_: Floats
    objective_: float | Floats
    dual_objective_: float | Floats
    duality_gap_: float | Floats
    stop_reason_: str | NDArray[np.str_]
    history_: dict[str, NDArray[Any]] | list[dict[str, NDArray[Any]]]

    # The mixin has others, which know neither `Data` nor losses.
    score = Sdca.score  # pyright: ignore[reportAssignmentType]
    __sklearn_tags__ = Sdca.__sklearn_tags__  # pyright: ignore[reportAssignmentType]

    def __init__(
        self,
        loss: ClassifierLoss = "log",
        *,
        loss_param: float | None = None,
        C: float = 1.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        warm_start: bool = False,
        keep_dual: bool = True,
        sampling: Literal["permutation", "random", "cyclic"] = "permutation",
        output: Literal["last", "average", "random"] = "last",
        average_from: float = 0.5,
        first_epoch: Literal["auto", "sdca", "sgd"] = "auto",
        accelerate: bool = True,
        record_every: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(
            loss,
            loss_param=loss_param,
            C=C,
            lam=lam,
            fit_intercept=fit_intercept,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            class_weight=class_weight,
            warm_start=warm_start,
            keep_dual=keep_dual,
            sampling=sampling,
            output=output,
            average_from=average_from,
            first_epoch=first_epoch,
            accelerate=accelerate,
            record_every=record_every,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            callback=callback,
        )


class SdcaRegressor(RegressorMixin, Sdca):  # type: ignore[misc]
    """Linear regression by stochastic dual coordinate ascent, with a certificate.

    Ridge, robust, quantile or Poisson regression, as ``loss`` says. It is :class:`Sdca`
    for the losses of regression only, and minimises the same objective in the same way:
    the fit ends when the duality gap proves the model to be within ``tol`` of the best
    one.

    Read more in the user guide.

    Parameters
    ----------
    loss : str, default="squared"
        What to minimise: "squared" (or "squared_error") is ridge regression,
        "absolute" (or "absolute_error") the regression of the median, "quantile" that
        of any quantile, "huber" is robust, "epsilon_insensitive" and
        "squared_epsilon_insensitive" are support vector regression, and "poisson" is
        for counts.
    loss_param : float, default=None
        The quantile of "quantile" (None is 0.5), where "huber" becomes linear (None is
        1.35), or the width of the tube of "epsilon_insensitive" and
        "squared_epsilon_insensitive" (None is 0.1).
    C : float, default=1.0
        Inverse strength of regularisation, as in scikit-learn: a smaller one
        regularises more. The ``alpha`` of scikit-learn's ``Ridge`` is ``1 / C``.
    lam : float, default=None
        The strength of regularisation itself, ``1 / (C W)`` with the sum ``W`` of the
        weights. Excludes ``C``.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not regularised.
    tol : float, default=1e-4
        Stop when ``duality_gap_ <= tol * objective_``.
    max_iter : int, default=1000
        Stop after this many epochs, with a warning.
    max_time : float, default=None
        Stop after this many seconds, with a warning.
    warm_start, keep_dual, sampling, output, average_from, first_epoch : optional
        As for :class:`Sdca`.
    accelerate, record_every, n_jobs, random_state, verbose, callback : optional
        As for :class:`Sdca`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients.
    intercept_ : float
        The intercept.
    dual_coef_ : ndarray of shape (n_samples,)
        The dual values.
    objective_, dual_objective_, duality_gap_ : float
        The certificate.
    n_iter_, stop_reason_, history_, n_features_in_, feature_names_in_
        As for :class:`Sdca`.

    See Also
    --------
    SdcaClassifier : The same for classification.
    certify : The certificate of any fitted linear model.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sdca_rs import SdcaRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SdcaRegressor(C=10, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.51
    >>> upper = SdcaRegressor("quantile", loss_param=0.9, random_state=0).fit(X, y)
    >>> float((y <= upper.predict(X)).mean().round(2))
    0.9
    """

    _task = "regression"

    # There are no classes to have weights.
    class_weight: None = None

    coef_: Floats
    intercept_: float
    dual_coef_: Floats
    objective_: float
    dual_objective_: float
    duality_gap_: float
    stop_reason_: str
    history_: dict[str, NDArray[Any]]

    # The mixin has others, which know neither `Data` nor losses.
    score = Sdca.score  # pyright: ignore[reportAssignmentType]
    __sklearn_tags__ = Sdca.__sklearn_tags__  # pyright: ignore[reportAssignmentType]

    def __init__(
        self,
        loss: RegressorLoss = "squared",
        *,
        loss_param: float | None = None,
        C: float = 1.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        keep_dual: bool = True,
        sampling: Literal["permutation", "random", "cyclic"] = "permutation",
        output: Literal["last", "average", "random"] = "last",
        average_from: float = 0.5,
        first_epoch: Literal["auto", "sdca", "sgd"] = "auto",
        accelerate: bool = True,
        record_every: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(
            loss,
            loss_param=loss_param,
            C=C,
            lam=lam,
            fit_intercept=fit_intercept,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            warm_start=warm_start,
            keep_dual=keep_dual,
            sampling=sampling,
            output=output,
            average_from=average_from,
            first_epoch=first_epoch,
            accelerate=accelerate,
            record_every=record_every,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            callback=callback,
        )
