"""What a fitted model can do besides predicting: be read, stored and handed on."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from sdca_rs import _export, _model_file, _summary


class _DualValues:
    """Says why there are no dual values. Those of an instance take precedence."""

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        reason = ""
        if hasattr(model, "coef_"):
            reason = (
                ": keep_dual=False drops the dual values after a fit"
                if not model.keep_dual
                else ": neither partial_fit nor load has dual values"
            )
        raise AttributeError(
            f"{type(model).__name__!r} object has no attribute 'dual_coef_'{reason}",
            name="dual_coef_",
            obj=model,
        )


class FittedModel(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that reads, stores and hands on what was fitted."""

    if not TYPE_CHECKING:
        dual_coef_ = _DualValues()

    def _check_model(self) -> None:
        """Check that there is a model, of the kind that the loss demands."""
        raise NotImplementedError

    def to_sklearn(self) -> Any:
        """Return a fitted estimator of scikit-learn that predicts the same.

        It does not need this package: to predict, to be pickled, or to be converted by
        tools that know scikit-learn's linear models, for example to ONNX by skl2onnx.
        ``predict``, ``decision_function`` and, for the losses "log" and
        "modified_huber", ``predict_proba`` agree to rounding.

        Returns
        -------
        estimator
            For the loss "log" LogisticRegression or, from three classes on,
            SGDClassifier (scikit-learn's LogisticRegression then has a softmax in
            place of one model for each class); for "modified_huber" SGDClassifier; for
            the other losses for classes LinearSVC. For "squared" Ridge, for "poisson"
            PoissonRegressor, for "huber" SGDRegressor, for "quantile"
            QuantileRegressor, for the others LinearSVR.

        Notes
        -----
        Its parameters are as close to the problem that was solved as those of its class
        can be. So it can be fitted again, but need not give the same model: LinearSVC
        and LinearSVR also regularise the intercept, QuantileRegressor has an L1
        penalty, and LinearSVC has no rounded hinge. Where the sum of the weights of a
        fit is not known (after :meth:`Pegasos.partial_fit`), it is taken to be 1.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from sdca_rs import Sdca
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X = scale(X)
        >>> model = Sdca("log", C=0.1, random_state=0).fit(X, y)
        >>> stock = model.to_sklearn()
        >>> stock
        LogisticRegression(C=0.1)
        >>> bool((stock.predict(X) == model.predict(X)).all())
        True
        """
        self._check_model()
        return _export.to_sklearn(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a small JSON file, for :func:`sdca_rs.load`.

        The file holds the parameters, ``coef_`` and ``intercept_`` to the last bit, the
        classes, the names of the features, the certificate and the version of this
        package. It can be read by any program, and by :func:`sdca_rs.load` without
        running code. What it does not hold: ``dual_coef_`` and ``history_`` (a pickle
        has both), so that a warm start from it is refused by solvers that need dual
        values; the state of a stream, so that :meth:`Pegasos.partial_fit` goes on from
        it as it does after ``fit``; ``callback``, and a ``random_state`` that is an
        object, which are None after loading.

        Parameters
        ----------
        path : str or path-like
            Where to write. A file that exists is replaced.

        See Also
        --------
        sdca_rs.load : Read the file.

        Examples
        --------
        >>> import os, tempfile
        >>> import sdca_rs
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = sdca_rs.Sdca("log", random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "iris.json")
        ...     model.save(path)
        ...     loaded = sdca_rs.load(path)
        >>> bool((loaded.coef_ == model.coef_).all())
        True
        >>> loaded.feature_names_in_[0]
        'sepal length (cm)'
        """
        self._check_model()
        _model_file.save(self, path)

    def coef_table(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """List the coefficients, with bounds of their errors and standard errors.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features), \
default=None
            The rows of the fit. With them (and ``y``) there are standard errors for the
            losses "log", "squared" and "poisson", a bound for the intercept, and
            tighter bounds for the coefficients.
        y : array-like of shape (n_samples,), default=None
            The targets of the fit.
        sample_weight : float or array-like of shape (n_samples,), default=None
            The weights of the fit, without ``class_weight``. None takes those of
            :class:`Data`, if it has weights.

        Returns
        -------
        pandas.DataFrame, or a structured array of NumPy without pandas
            A row for each feature (x0, x1, ... if they have no names) and, last, one
            for the "(intercept)", if one was fitted; from three classes on, such a
            block for each class. The columns:

            * ``feature`` and, from three classes on, ``class``;
            * ``coef``;
            * ``max_error``: the duality gap proves that ``coef`` differs by at most
              this from the value of the model that minimises the objective. NaN if
              nothing is proved: for the intercept without ``X``, and after
              :meth:`Pegasos.partial_fit`. The bound of the intercept, which is the
              score of a row of zeros, is wide where rows are far from 0;
            * ``std_error``: the standard deviation of ``coef`` over samples of targets,
              for the given rows, if the model is right. It measures noise and not the
              bias that the penalty adds, so ``coef`` plus or minus two of them is no
              confidence interval unless the penalty is weak. NaN if the model has no
              doubt of any target, or if no residuals are left for the variance.

        Raises
        ------
        ValueError
            If the objective at ``X`` and ``y`` is not that of the fit.

        Notes
        -----
        **max_error.** Write ``gap`` for the duality gap, and ``w*`` for the best
        coefficients. ``P`` is a convex function plus ``(lam/2) |w|^2``, so
        ``P(w, b) - P* >= (lam/2) |w - w*|^2``, and each coefficient is within
        ``sqrt(2 gap / lam)`` of the best. With the rows and the dual point ``a`` at
        hand, ``D* - D(a) >= (lam/2) |w(a) - w*|^2`` as well, since ``D`` is a concave
        function less ``(lam/2) |w(a)|^2``. The sum is
        ``|w - w*|^2 + |w(a) - w*|^2 <= 2 gap / lam``: ``w*`` lies in the ball around
        ``m = (w + w(a)) / 2`` with the radius ``r``,
        ``r^2 = gap / lam - |w - w(a)|^2 / 4``, and coefficient ``j`` is within
        ``|w_j - w(a)_j| / 2 + r``. If ``R`` bounds ``|w - w*|``, predictions without
        intercept move by at most ``d = R max |x_i|`` from ``w`` to ``w*``. The slope of
        the mean loss in ``b`` does not decrease in ``b`` nor in any prediction, and has
        0 at the present ``b``, so a root for ``w*`` lies within ``d`` of it. Relative
        differences of 1e-12 of the objective count as rounding: so much is added to
        ``gap``.

        **std_error.** Let ``v_i`` be the variance of a target that the model predicts
        (``p (1 - p)`` for "log", ``exp(x_i @ w + b)`` for "poisson", 1 for "squared"),
        ``z_i`` the row with a 1 appended for the intercept, ``F = sum_i c_i v_i z_i
        z_i'`` the Fisher information and ``H = F + lam W I`` (without the entry of the
        intercept in ``I``) the Hessian of the penalised objective times ``W``. The
        covariance is ``H^-1 F H^-1``, for "squared" times ``sum_i c_i (y_i - p_i)^2 /
        (W - trace(H^-1 F))``, where the trace counts the parameters. Without a penalty
        it is the usual ``F^-1`` of maximum likelihood. Weights are counts, as always
        here: weights of another kind, ``class_weight`` among them, give standard errors
        of data that had so many rows. The matrices are dense: they have as many rows
        and columns as there are features.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sdca_rs import Sdca
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> X = (X - X.mean()) / X.std()
        >>> model = Sdca("squared", lam=1e-3, tol=1e-9, random_state=0).fit(X, y)
        >>> table = model.coef_table(X, y)
        >>> print(table[["feature", "coef", "std_error"]].round(1)[2:5])
          feature  coef  std_error
        2     bmi  24.8        3.2
        3      bp  15.4        3.1
        4      s1 -33.9       17.8
        >>> bool((table["max_error"] < 0.1).all())
        True
        """
        self._check_model()
        return _summary.coef_table(self, X, y, sample_weight)

    def summary(self, *, max_features: int = 10) -> str:
        """Describe the fitted model and its certificate in a few lines of text.

        Parameters
        ----------
        max_features : int, default=10
            How many of the largest coefficients to list, for each class.

        Returns
        -------
        str
            To be printed.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import StandardScaler
        >>> from sdca_rs import Sdca
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> X = StandardScaler().set_output(transform="pandas").fit_transform(X)
        >>> model = Sdca("log", C=0.1, random_state=0).fit(X, y)
        >>> print(model.summary(max_features=3))  # doctest: +ELLIPSIS
        Sdca
          loss            log
          regularisation  lam = 0.0175747 (C = 0.1)
          features        30
          classes         0 (-1), 1 (+1)
          intercept       0.54...
          objective       0.1164...
          lower bound     0.1164...
          gap             ... (... of the objective, tol 1.0e-04)
          coefficients    each within ... of its best value
          stop reason     converged, after ... epochs
        <BLANKLINE>
          largest 3 of 30 coefficients
          worst texture         -0.59...
          worst radius          -0.53...
          worst concave points  -0.52...
        """
        self._check_model()
        return _summary.summary(self, max_features)
