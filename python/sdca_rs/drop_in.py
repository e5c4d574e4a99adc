"""scikit-learn's linear models, by name and signature, fitted with a certificate.

Change the import, and keep the rest::

    from sdca_rs.drop_in import LinearSVC, LogisticRegression, Ridge

The classes have the parameters, defaults and attributes of scikit-learn 1.9, with any
version of scikit-learn from 1.6 on. They minimise the same objective; only the penalty
of :class:`QuantileRegressor` is another one, which must be asked for. What they cannot
do raises a ValueError in ``fit`` that names the parameter. Beyond scikit-learn's
attributes they have those of :class:`sdca_rs.Sdca`: ``objective_``, ``duality_gap_``
and the others that certify the fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from sdca_rs._base import CertifiedLinearModel, keeping_state
from sdca_rs._data import (
    Floats,
    as_number,
    is_sparse,
    naming,
    validate_y,
    weighed_labels,
)
from sdca_rs._handle import Data, Given
from sdca_rs._sdca import Sdca

if TYPE_CHECKING:
    from typing_extensions import Self

    from sdca_rs._core import Fit, Rows, _Matrix

__all__ = [
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "QuantileRegressor",
    "Ridge",
    "RidgeClassifier",
]

_ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None
_Dual: TypeAlias = bool | Literal["auto"]
_RidgeSolver: TypeAlias = Literal[
    "auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"
]

# A gap below this share of the objective is rounding: no fit is asked for less.
_LEAST_GAP = 1e-15

# Where rounding has stopped a fit, a gap up to this share of the objective is no reason
# for a warning, however small `tol` is.
_ROUNDING = 1e-10


class _Rule(NamedTuple):
    """What a parameter may be, for parameters that do not reach :class:`Sdca`."""

    accepts: Callable[[Any], bool]
    expected: str


def _choice(*values: Any, but: str = "") -> _Rule:
    """Allow these values only; ``but`` says what is wrong with others."""

    def accepts(value: Any) -> bool:
        # Not `in`: 1 is not True, and an array is equal to nothing.
        return any(type(value) is type(v) and value == v for v in values)

    one_of = "one of " if len(values) > 1 else ""
    return _Rule(accepts, one_of + ", ".join(map(repr, values)) + but)


def _number(is_allowed: Callable[[float], bool], expected: str) -> _Rule:
    """Allow numbers of a range."""

    def accepts(value: Any) -> bool:
        try:
            return is_allowed(as_number("", value, expected))
        except (TypeError, ValueError):
            return False

    return _Rule(accepts, expected)


_FLAG = _Rule(lambda value: isinstance(value, bool | np.bool_), "True or False")
_DUAL = _Rule(
    lambda value: _FLAG.accepts(value) or (isinstance(value, str) and value == "auto"),
    "'auto', True or False",
)
_NOT_NEGATIVE = _number(lambda value: 0 <= value < np.inf, "a finite number >= 0")
_FRACTION = _number(lambda value: 0 < value < 1, "a number between 0 and 1")
_CLASS_WEIGHT = _Rule(
    lambda value: (
        value is None
        or isinstance(value, Mapping)
        or (isinstance(value, str) and value == "balanced")
    ),
    "'balanced', a dict or None",
)

# For all classes.
_RULES = {"tol": _NOT_NEGATIVE, "fit_intercept": _FLAG}


class _DropIn(CertifiedLinearModel):
    """A class of scikit-learn: its parameters, translated into those of Sdca."""

    # What Sdca has and scikit-learn's class has not.
    loss_param: float | None = None
    lam: float | None = None
    max_time = None
    class_weight: Any = None
    warm_start = False
    keep_dual = True
    record_every = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    callback = None

    _rules: ClassVar[dict[str, _Rule]] = {}

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model and certify it.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels or numbers. Ridge and RidgeClassifier take a matrix, too, with
            a column for each target.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A weight counts its row: weight 2 is the row twice, weight 0 is the row
            absent.

        Returns
        -------
        self
            The fitted estimator.
        """
        with keeping_state(self):
            for name, rule in {**_RULES, **self._rules}.items():
                value = getattr(self, name)
                if not rule.accepts(value):
                    raise ValueError(
                        f"{name}: found {value!r}, expected {rule.expected}"
                    )
            fits = self._run(Given(self, X, reset=True), y, sample_weight)
        self._warn_not_converged(fits)
        return self

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Refuse callbacks of scikit-learn, which the estimators of sdca_rs take.

        Parameters
        ----------
        *callbacks
            None.

        Returns
        -------
        self
        """
        if callbacks:
            raise ValueError(
                f"callbacks: found {callbacks!r}, expected none: those of scikit-learn "
                "are for SdcaClassifier, SdcaRegressor and the solvers of sdca_rs"
            )
        return self

    def _run(self, given: Given, y: Any, sample_weight: Any) -> list[Fit]:
        """Fit one model, or one for each class against the rest."""
        weights = given.weigh(sample_weight)
        scaling = self._intercept_scaling(given.X.dtype)
        if scaling is None:
            engine, rows = self._engine(), given
        else:
            given.rows()  # Its structure is sound before scipy reads it.
            engine = self._engine(fit_intercept=False)
            rows = _with_constant(given.X, scaling)
        self._start_from_last(engine, given, scaling)
        fits, _ = engine._fit(rows, y, weights)
        self._take(engine, scaling)
        return fits

    def _engine(self, **changes: Any) -> Sdca:
        """Return the estimator that does the work."""
        verbose = self.verbose
        settings: dict[str, Any] = {
            "loss": self.loss,
            "loss_param": self.loss_param,
            "C": self.C,
            "lam": self.lam,
            "fit_intercept": self.fit_intercept,
            "tol": max(self._relative_gap(), _LEAST_GAP),
            "max_iter": self.max_iter,
            "class_weight": self.class_weight,
            "n_jobs": self.n_jobs,
            # Most of scikit-learn's solvers leave nothing to chance.
            "random_state": 0 if self.random_state is None else self.random_state,
            "verbose": int(verbose) if isinstance(verbose, bool) else verbose,
        }
        return Sdca(**settings | changes)

    def _relative_gap(self) -> float:
        """Return the gap to be reached, as a share of the objective.

        ``|w - w*|^2 <= 2 gap / lam`` and ``|w*|^2 <= 2 P / lam``: a gap of
        ``tol^2 P`` leaves an error of the coefficients within ``tol`` of the largest
        norm that they could have.
        """
        return float(self.tol) ** 2

    def _intercept_scaling(self, dtype: Any) -> Any:
        """Return the value of the column whose coefficient gives the intercept.

        None stands for an intercept that is not regularised, or for none at all.
        """
        return None

    def _start_from_last(self, engine: Sdca, given: Given, scaling: Any) -> None:
        """Start from the last fit if that is wanted and of use."""

    def _take(self, engine: Sdca, scaling: Any) -> None:
        """Store what was fitted."""
        fitted = {
            name: value
            for name, value in vars(engine).items()
            # The columns are those of the rows before one was added.
            if name not in (*engine.get_params(), "n_features_in_", "feature_names_in_")
        }
        if scaling is not None:
            coef = fitted["coef_"]
            intercept = np.float64(scaling) * coef[..., -1]
            fitted["coef_"] = np.ascontiguousarray(coef[..., :-1])
            fitted["intercept_"] = intercept
        if np.ndim(fitted["intercept_"]) == 0:
            fitted["intercept_"] = np.float64(fitted["intercept_"])
        self.__dict__.update(fitted)

    def _models(self) -> tuple[Floats, Floats]:
        coef, intercept = super()._models()
        # scikit-learn has one 0 for all models without an intercept.
        return coef, np.broadcast_to(intercept, len(coef)).copy()

    def _warn_not_converged(self, fits: list[Fit]) -> None:
        asked = self._relative_gap()
        short = []
        for fit in fits:
            least = _ROUNDING if fit.stop_reason == "precision" else _LEAST_GAP
            is_done = fit.gap <= max(asked, least) * fit.objective
            if fit.stop_reason in ("max_iter", "precision") and not is_done:
                short.append(fit)
        if not short:
            return
        with np.errstate(all="ignore"):
            share = max(np.float64(fit.gap) / fit.objective for fit in short)
        of_fits = f" for {len(short)} of {len(fits)} models" if len(fits) > 1 else ""
        warnings.warn(
            f"{type(self).__name__} failed to converge{of_fits}: stopped by "
            f"{short[0].stop_reason} after {short[0].epochs:g} epochs with a duality "
            f"gap of {share:.2g} of the objective, where tol={self.tol!r} asks for "
            f"tol^2 = {asked:.2g}. Increase the number of iterations (max_iter), scale "
            "the columns of X, for example by StandardScaler, or increase tol",
            ConvergenceWarning,
            stacklevel=3,
        )


class _Liblinear(_DropIn):
    """LIBLINEAR's intercept: the coefficient of one more column, with its penalty."""

    intercept_scaling: float

    def _is_liblinear(self) -> bool:
        return True

    def _run(self, given: Given, y: Any, sample_weight: Any) -> list[Fit]:
        fits = super()._run(given, y, sample_weight)
        if self._is_liblinear():
            # In the shapes of scikit-learn's.
            intercept = np.atleast_1d(self.intercept_)
            self.intercept_ = intercept if self.fit_intercept else 0.0
        return fits

    def _intercept_scaling(self, dtype: Any) -> Any:
        if not (self._is_liblinear() and self.fit_intercept):
            return None
        expected = "a number > 0"
        scaling = as_number("intercept_scaling", self.intercept_scaling, expected)
        with np.errstate(all="ignore"):
            scaling = dtype.type(scaling)
        if not scaling > 0:
            raise ValueError(
                f"intercept_scaling: found {self.intercept_scaling!r}, expected "
                f"{expected}"
            )
        return scaling if scaling < np.inf else None


def _with_constant(X: Any, value: Any) -> Any:
    """Append a column."""
    parts: list[Any] = [X, np.full((X.shape[0], 1), value, dtype=X.dtype)]
    return sp.hstack(parts, format="csr") if is_sparse(X) else np.hstack(parts)


class LinearSVC(_Liblinear):
    """scikit-learn's LinearSVC with a certificate.

    Minimises, with ``b = intercept_scaling * v`` as LIBLINEAR does, ::

        (1/W) sum_i c_i loss(x_i @ w + b, y_i) + (|w|^2 + v^2) / (2 C W)

    which is scikit-learn's objective divided by ``C W``, where ``W`` is the sum of the
    weights ``c_i``. More than two classes are fitted one against the rest.

    Parameters
    ----------
    penalty : {"l2"}, default="l2"
        "l1" raises.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        The loss. All combinations with ``dual`` are possible.
    dual : "auto" or bool, default="auto"
        Ignored: it chooses an algorithm.
    tol : float, default=1e-4
        Stop when ``duality_gap_ <= tol**2 * objective_``, or when rounding ends the
        fit.
    C : float, default=1.0
        Inverse strength of regularisation.
    multi_class : {"ovr"}, default="ovr"
        "crammer_singer" raises.
    fit_intercept : bool, default=True
        Whether to fit ``b``.
    intercept_scaling : float, default=1
        The larger, the less the intercept is regularised. ``np.inf`` is possible: then
        it is not regularised, as in :class:`sdca_rs.Sdca`, and ``X`` is not copied.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    verbose : int, default=0
        1 prints at most one line per second, 2 at most ten.
    random_state : int, RandomState instance or None, default=None
        The seed of the order of the rows; None is 0.
    max_iter : int, default=1000
        Limit of epochs, as LIBLINEAR's.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        ``w``.
    intercept_ : ndarray of shape (1,) or (n_classes,), or 0.0
        ``b``; 0.0 without ``fit_intercept``.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_iter_ : int
        Epochs done, of the class that took most.
    objective_, dual_objective_, duality_gap_, stop_reason_ : float or ndarray
        The certificate, as of :class:`sdca_rs.Sdca`, for the objective above.
    dual_coef_ : ndarray of shape (1, n_samples) or (n_classes, n_samples)
        The dual point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sdca_rs.drop_in import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> svm = LinearSVC().fit(X, y)
    >>> round(svm.score(X, y), 2)
    0.97
    >>> bool((svm.duality_gap_ <= 1e-8 * svm.objective_).all())
    True
    """

    _rules: ClassVar[dict[str, _Rule]] = {
        "penalty": _choice("l2"),
        "loss": _choice("hinge", "squared_hinge"),
        "dual": _DUAL,
        "multi_class": _choice(
            "ovr", but=", because joint models of all classes are not available"
        ),
    }

    def __init__(
        self,
        penalty: Literal["l2"] = "l2",
        loss: Literal["hinge", "squared_hinge"] = "squared_hinge",
        *,
        dual: _Dual = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: Literal["ovr"] = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: _ClassWeight = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter


class LinearSVR(_Liblinear):
    """scikit-learn's LinearSVR with a certificate.

    Minimises, with ``b = intercept_scaling * v`` as LIBLINEAR does, ::

        (1/W) sum_i c_i loss(x_i @ w + b, y_i) + (|w|^2 + v^2) / (2 C W)

    which is scikit-learn's objective divided by ``C W``, where ``W`` is the sum of the
    weights ``c_i``.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals up to this size cost nothing.
    tol : float, default=1e-4
        Stop when ``duality_gap_ <= tol**2 * objective_``, or when rounding ends the
        fit.
    C : float, default=1.0
        Inverse strength of regularisation.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, \
            default="epsilon_insensitive"
        The loss. All combinations with ``dual`` are possible.
    fit_intercept : bool, default=True
        Whether to fit ``b``.
    intercept_scaling : float, default=1.0
        The larger, the less the intercept is regularised. ``np.inf`` is possible: then
        it is not regularised, as in :class:`sdca_rs.Sdca`, and ``X`` is not copied.
    dual : "auto" or bool, default="auto"
        Ignored: it chooses an algorithm.
    verbose : int, default=0
        1 prints at most one line per second, 2 at most ten.
    random_state : int, RandomState instance or None, default=None
        The seed of the order of the rows; None is 0.
    max_iter : int, default=1000
        Limit of epochs, as LIBLINEAR's.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        ``w``.
    intercept_ : ndarray of shape (1,), or 0.0 without ``fit_intercept``
        ``b``.
    n_iter_ : int
        Epochs done.
    objective_, dual_objective_, duality_gap_ : float
        The certificate, as of :class:`sdca_rs.Sdca`, for the objective above.
    stop_reason_ : str
        Why the fit ended.
    dual_coef_ : ndarray of shape (n_samples,)
        The dual point.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sdca_rs.drop_in import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> svr = LinearSVR(C=100.0).fit(X, y)
    >>> round(svr.score(X, y), 2)
    0.48
    >>> svr.stop_reason_
    'converged'
    """

    _rules: ClassVar[dict[str, _Rule]] = {
        "epsilon": _NOT_NEGATIVE,
        "loss": _choice("epsilon_insensitive", "squared_epsilon_insensitive"),
        "dual": _DUAL,
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: Literal[
            "epsilon_insensitive", "squared_epsilon_insensitive"
        ] = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: _Dual = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    @property
    def loss_param(self) -> float:  # type: ignore[override]
        """The width within which residuals cost nothing, ``epsilon``."""
        return float(self.epsilon)


class LogisticRegression(_Liblinear):
    """scikit-learn's LogisticRegression of two classes with a certificate.

    Minimises ::

        (1/W) sum_i c_i log(1 + exp(-y_i (x_i @ w + b))) + |w|^2 / (2 C W)

    which is scikit-learn's objective divided by ``C W``, where ``W`` is the sum of the
    weights ``c_i``. For more than two classes scikit-learn fits one model of all
    classes together, which is not available here: ``fit`` raises.

    Parameters
    ----------
    penalty : {"l2", "deprecated"}, default="deprecated"
        Both are the L2 penalty. "l1", "elasticnet" and None raise.
    C : float, default=1.0
        Inverse strength of regularisation. ``np.inf`` raises.
    l1_ratio : float or None, default=0.0
        0 or None; any other value raises.
    dual : bool, default=False
        Ignored: it chooses an algorithm.
    tol : float, default=1e-4
        Stop when ``duality_gap_ <= tol**2 * objective_``, or when rounding ends the
        fit.
    fit_intercept : bool, default=True
        Whether to fit ``b``.
    intercept_scaling : float, default=1
        Only for ``solver="liblinear"``, as in scikit-learn.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    random_state : int, RandomState instance or None, default=None
        The seed of the order of the rows; None is 0.
    solver : {"lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"}, \
            default="lbfgs"
        "liblinear" regularises the intercept: it adds ``v^2 / (2 C W)`` to the
        objective, where ``b = intercept_scaling * v``. The others choose an algorithm,
        which is ignored.
    max_iter : int, default=100
        Limit of epochs, of which each costs about as much as an iteration of lbfgs.
    verbose : int, default=0
        1 prints at most one line per second, 2 at most ten.
    warm_start : bool, default=False
        Start from the last fit, if it had as many rows and columns.
    n_jobs : int, default=None
        Threads that share evaluations, Newton's method and predictions.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        ``w``.
    intercept_ : ndarray of shape (1,)
        ``b``.
    classes_ : ndarray of shape (2,)
        The classes.
    n_iter_ : ndarray of shape (1,)
        Epochs done.
    objective_, dual_objective_, duality_gap_ : float
        The certificate, as of :class:`sdca_rs.Sdca`, for the objective above.
    stop_reason_ : str
        Why the fit ended.
    dual_coef_ : ndarray of shape (1, n_samples)
        The dual point.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sdca_rs.drop_in import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.96
    >>> model.stop_reason_
    'converged'
    """

    loss = "log"

    _rules: ClassVar[dict[str, _Rule]] = {
        "penalty": _choice("l2", "deprecated"),
        "l1_ratio": _Rule(
            lambda value: (
                value is None or (isinstance(value, int | float) and not value)
            ),
            "0 or None, because the penalty is L2",
        ),
        "dual": _FLAG,
        "solver": _choice(
            "lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"
        ),
        "warm_start": _FLAG,
    }

    def __init__(
        self,
        penalty: Literal["l2", "deprecated"] = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: _ClassWeight = None,
        random_state: Any = None,
        solver: Literal[
            "lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"
        ] = "lbfgs",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def _run(self, given: Given, y: Any, sample_weight: Any) -> list[Fit]:
        y = validate_y(y, given.n_samples, numeric=False)
        labels, _ = weighed_labels(y, given.weigh(sample_weight), self.class_weight)
        if len(labels.classes) > 2:
            return self._run_jointly(len(labels.classes))
        # A warm start is one for the classes of today, whatever they were called.
        self.classes_ = labels.classes
        fits = super()._run(given, y, sample_weight)
        self.n_iter_ = np.array([self.n_iter_], dtype=np.int32)  # type: ignore[assignment]
        return fits

    def _run_jointly(self, n_classes: int) -> list[Fit]:
        """Fit one multinomial model of three or more classes, which we cannot yet."""
        raise ValueError(
            f"y: found {n_classes} classes, expected 2. Only binary classification is "
            "supported. The type of the target is multiclass. scikit-learn's "
            "LogisticRegression fits one multinomial model of all classes together, "
            "which is not available here; "
            "OneVsRestClassifier(LogisticRegression()) and sdca_rs.Sdca('log') fit one "
            "model for each class against the rest"
        )

    def _is_liblinear(self) -> bool:
        return self.solver == "liblinear"

    def _start_from_last(self, engine: Sdca, given: Given, scaling: Any) -> None:
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return
        coef, intercept = self._models()
        shape = (self.dual_coef_.shape[1], coef.shape[1])
        if shape != given.X.shape:
            return
        if scaling is not None:
            coef, intercept = np.c_[coef, intercept / scaling], np.zeros(1)
        engine.warm_start = True
        engine.__dict__.update(
            coef_=coef,
            intercept_=intercept,
            dual_coef_=self.dual_coef_,
            classes_=self.classes_,
            _steps=self._steps,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class QuantileRegressor(_DropIn):
    """scikit-learn's QuantileRegressor with an L2 penalty and a certificate.

    Minimises, with ``r_i = y_i - x_i @ w - b``, ::

        (1/W) sum_i c_i max(quantile r_i, (quantile - 1) r_i) + (alpha/2) |w|^2

    where scikit-learn has the L1 penalty ``alpha |w|_1``. As the models differ, the
    penalty must be asked for: without ``penalty="l2"``, ``fit`` raises.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l1"
        Must be "l2". "l1", which is scikit-learn's, raises. scikit-learn's class does
        not have this parameter.
    quantile : float, default=0.5
        The quantile to predict, between 0 and 1.
    alpha : float, default=1.0
        Strength of regularisation. 0 raises.
    fit_intercept : bool, default=True
        Whether to fit ``b``, which is not regularised.
    solver : {"highs-ds", "highs-ipm", "highs", "interior-point", "revised simplex"}, \
            default="highs"
        Ignored: it chooses an algorithm for linear programs.
    solver_options : None, default=None
        A dict raises: there is no linear program.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        ``w``.
    intercept_ : float
        ``b``.
    n_iter_ : int
        Epochs done.
    objective_, dual_objective_, duality_gap_ : float
        The certificate, as of :class:`sdca_rs.Sdca`, for the objective above.
    stop_reason_ : str
        Why the fit ended.
    dual_coef_ : ndarray of shape (n_samples,)
        The dual point.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sdca_rs.drop_in import QuantileRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> upper = QuantileRegressor(penalty="l2", quantile=0.9, alpha=1e-3).fit(X, y)
    >>> float((y <= upper.predict(X)).mean().round(2))
    0.9
    """

    loss = "quantile"
    # scikit-learn's linear programs are solved to the end.
    tol = 1e-5
    max_iter = 10_000

    _rules: ClassVar[dict[str, _Rule]] = {
        "quantile": _FRACTION,
        "penalty": _choice(
            "l2",
            but=": scikit-learn's L1 penalty is not available, and the model with an "
            "L2 penalty is another one, which must be asked for",
        ),
        "solver": _choice(
            "highs-ds", "highs-ipm", "highs", "interior-point", "revised simplex"
        ),
        "solver_options": _choice(None, but=", because there is no linear program"),
    }

    def __init__(
        self,
        *,
        penalty: Literal["l1", "l2"] = "l1",
        quantile: float = 0.5,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: Literal[
            "highs-ds", "highs-ipm", "highs", "interior-point", "revised simplex"
        ] = "highs",
        solver_options: None = None,
    ) -> None:
        self.penalty = penalty
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options

    # Sdca's default, beside which it takes `lam`.
    C = 1.0

    @property
    def loss_param(self) -> float:  # type: ignore[override]
        """The quantile."""
        return float(self.quantile)

    @property
    def lam(self) -> float:  # type: ignore[override]
        """The strength of regularisation, ``alpha``."""
        return float(_strengths(self.alpha, 1)[0])


def _strengths(alpha: Any, n_targets: int) -> Floats:
    """Check ``alpha`` and return one number for each target."""
    expected = "a finite number > 0"
    strengths = np.asarray(alpha)
    if strengths.dtype.kind not in "iuf":
        raise ValueError(f"alpha: found {alpha!r}, expected {expected}")
    if strengths.ndim > 1 or strengths.size not in (1, n_targets):
        raise ValueError(
            f"alpha: found shape {strengths.shape} for {n_targets} targets, expected "
            "one number, or one for each target"
        )
    strengths = strengths.astype(np.float64)
    with np.errstate(all="ignore"):
        # 0, and numbers that are as good as 0 or infinite.
        bad = ~((strengths > 0) & np.isfinite(strengths) & np.isfinite(1 / strengths))
    if bad.any():
        raise ValueError(
            f"alpha: found {alpha!r}, expected {expected} (0, a model without "
            "a penalty, is not available)"
        )
    return np.broadcast_to(strengths, (n_targets,))


class _RidgeBase(_DropIn):
    """Least squares with an L2 penalty, for as many targets as there are."""

    loss = "squared"
    alpha: Any
    max_iter: int | None  # type: ignore[assignment]

    solver_: str

    _rules: ClassVar[dict[str, _Rule]] = {
        "copy_X": _FLAG,
        "solver": _choice(
            "auto",
            "svd",
            "cholesky",
            "lsqr",
            "sparse_cg",
            "sag",
            "saga",
            but=" ('lbfgs' is for positive=True)",
        ),
        "positive": _choice(False, but=", because constraints are not available"),
    }

    @property
    def C(self) -> Any:  # type: ignore[override]
        """The inverse strength of regularisation, ``1 / alpha``."""
        return 1.0 / np.asarray(self.alpha) if np.ndim(self.alpha) else 1.0 / self.alpha

    def _fit_targets(
        self, given: Given, targets: list[Floats], weights: Floats | None
    ) -> list[Fit]:
        """Fit one model for each target, and store them."""
        engines = [
            self._engine(
                C=1.0 / float(alpha),
                lam=None,
                # Direct solvers leave an error of rounding only. So do we.
                tol=_LEAST_GAP,
                max_iter=1000 if self.max_iter is None else self.max_iter,
                class_weight=None,
            )
            for alpha in _strengths(self.alpha, len(targets))
        ]
        rows: Any = given
        if len(targets) > 1:
            # What is found out about the rows is shared.
            rows = Data(given.X)
        fits = []
        for engine, target in zip(engines, targets, strict=True):
            fits += engine._fit(rows, target, weights)[0]
        if len(engines) == 1:
            self._take(engines[0], None)
        else:
            self.__dict__.update(
                {
                    name: np.array([getattr(engine, name) for engine in engines])
                    for name in _OF_EACH_TARGET
                },
                history_=[engine.history_ for engine in engines],
                _steps=[engine._steps[0] for engine in engines],
            )
        self.n_iter_ = np.array(  # type: ignore[assignment]
            [engine.n_iter_ for engine in engines], dtype=np.int32
        )
        self.solver_ = "sdca"
        return fits

    def densify(self) -> Self:
        """Store ``coef_`` as an array again.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if is_sparse(self.coef_):
            dense = self.coef_.toarray()
            self.coef_ = dense if np.ndim(self.objective_) else dense.ravel()
        return self


def _as_matrix(y: Any) -> tuple[Any, bool]:
    """Return targets as an array, if they are not refused, and whether it is 2-D."""
    if y is None or is_sparse(y):
        return y, False
    y = np.asarray(y)
    return y, y.ndim == 2


_OF_EACH_TARGET = (
    "coef_",
    "intercept_",
    "dual_coef_",
    "objective_",
    "dual_objective_",
    "duality_gap_",
    "stop_reason_",
    "_lam",
)


class Ridge(MultiOutputMixin, RegressorMixin, _RidgeBase):  # type: ignore[misc]
    """scikit-learn's Ridge with a certificate.

    Minimises, for each target, ::

        (1/W) sum_i c_i (x_i @ w + b - y_i)^2 / 2 + (alpha / (2 W)) |w|^2

    which is scikit-learn's objective divided by ``2 W``, where ``W`` is the sum of the
    weights ``c_i``.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Strength of regularisation. 0 raises.
    fit_intercept : bool, default=True
        Whether to fit ``b``, which is not regularised.
    copy_X : bool, default=True
        Ignored: ``X`` is never written.
    max_iter : int, default=None
        Limit of epochs; None is 1000.
    tol : float, default=1e-4
        Each fit goes on until rounding ends it, or ``max_iter``. There is a warning if
        then ``duality_gap_ > tol**2 * objective_``.
    solver : {"auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"}, \
            default="auto"
        Ignored: it chooses an algorithm. "lbfgs", which is for ``positive=True``,
        raises.
    positive : {False}, default=False
        True raises.
    random_state : int, RandomState instance or None, default=None
        The seed of the order of the rows; None is 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        ``w``.
    intercept_ : float or ndarray of shape (n_targets,)
        ``b``; 0.0 without ``fit_intercept``.
    n_iter_ : ndarray of shape (n_targets,)
        Epochs done for each target.
    solver_ : str
        "sdca".
    objective_, dual_objective_, duality_gap_, stop_reason_ : float or ndarray
        The certificate, as of :class:`sdca_rs.Sdca`, for the objective above; one
        entry for each target if there are several.
    dual_coef_ : ndarray of shape (n_samples,) or (n_targets, n_samples)
        The dual point.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sdca_rs.drop_in import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ridge = Ridge(alpha=0.1).fit(X, y)
    >>> round(ridge.score(X, y), 2)
    0.51
    >>> bool(ridge.duality_gap_ <= 1e-12 * ridge.objective_)
    True
    """

    def __init__(
        self,
        alpha: float | ArrayLike = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: _RidgeSolver = "auto",
        positive: Literal[False] = False,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state

    def _run(self, given: Given, y: Any, sample_weight: Any) -> list[Fit]:
        n_samples = given.n_samples
        y, is_matrix = _as_matrix(y)
        if is_matrix:
            with naming("y", "numbers, one row of them for each row of X"):
                y = check_array(y, dtype="float64", input_name="y")
        columns = y.T if is_matrix else [y]
        targets = [validate_y(one, n_samples, numeric=True) for one in columns]
        fits = self._fit_targets(given, targets, given.weigh(sample_weight))
        if not self.fit_intercept:
            self.intercept_ = 0.0
        elif is_matrix:
            self.intercept_ = np.atleast_1d(self.intercept_)
        return fits

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        predictions = self._predictions(X)
        return predictions if np.ndim(self.objective_) else predictions[:, 0]


class RidgeClassifier(ClassifierMixin, _RidgeBase):  # type: ignore[misc]
    """scikit-learn's RidgeClassifier with a certificate.

    For each class (one of them, if there are two) it minimises ::

        (1/W) sum_i c_i (x_i @ w + b - t_i)^2 / 2 + (alpha / (2 W)) |w|^2

    with the target ``t_i`` 1 for rows of the class and -1 for all others, which is
    scikit-learn's objective divided by ``2 W``, where ``W`` is the sum of the weights
    ``c_i``. With several labels for each row, it does so for each label.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Strength of regularisation. 0 raises.
    fit_intercept : bool, default=True
        Whether to fit ``b``, which is not regularised.
    copy_X : bool, default=True
        Ignored: ``X`` is never written.
    max_iter : int, default=None
        Limit of epochs; None is 1000.
    tol : float, default=1e-4
        Each fit goes on until rounding ends it, or ``max_iter``. There is a warning if
        then ``duality_gap_ > tol**2 * objective_``.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    solver : {"auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga"}, \
            default="auto"
        Ignored: it chooses an algorithm. "lbfgs", which is for ``positive=True``,
        raises.
    positive : {False}, default=False
        True raises.
    random_state : int, RandomState instance or None, default=None
        The seed of the order of the rows; None is 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        ``w``, of one dimension for two classes.
    intercept_ : float or ndarray of shape (1,) or (n_classes,)
        ``b``; 0.0 without ``fit_intercept``.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Epochs done for each class.
    solver_ : str
        "sdca".
    objective_, dual_objective_, duality_gap_, stop_reason_ : float or ndarray
        The certificate, as of :class:`sdca_rs.Sdca`, for the objective above.
    dual_coef_ : ndarray of shape (n_samples,) or (n_classes, n_samples)
        The dual point.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sdca_rs.drop_in import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> round(RidgeClassifier().fit(X, y).score(X, y), 2)
    0.96
    """

    _rules: ClassVar[dict[str, _Rule]] = {
        **_RidgeBase._rules,
        "class_weight": _CLASS_WEIGHT,
    }

    _label_binarizer: Any

    def __init__(
        self,
        alpha: float | ArrayLike = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: _ClassWeight = None,
        solver: _RidgeSolver = "auto",
        positive: Literal[False] = False,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state

    def _run(self, given: Given, y: Any, sample_weight: Any) -> list[Fit]:
        n_samples = given.n_samples
        y, is_matrix = _as_matrix(y)
        if not is_matrix or y.shape[1] == 1:
            y = validate_y(y, n_samples, numeric=False)
        with naming("y", "class labels, one for each row of X, or a matrix of 0 and 1"):
            check_classification_targets(y)
            binarizer = LabelBinarizer(neg_label=-1, pos_label=1).fit(y)
            Y = binarizer.transform(y).astype(np.float64)
        weights = given.weigh(sample_weight)
        if self.class_weight is not None:
            with naming("class_weight", "'balanced', a dict or None"):
                factors = compute_sample_weight(self.class_weight, y)
            weights = factors if weights is None else weights * factors
        targets = [validate_y(one, n_samples, numeric=True) for one in Y.T]
        fits = self._fit_targets(given, targets, weights)
        intercept = np.atleast_1d(self.intercept_)
        self.intercept_ = intercept if self.fit_intercept else 0.0
        self._label_binarizer = binarizer
        self.classes_ = binarizer.classes_
        return fits

    def _prepare(self, X: Any) -> Rows | _Matrix:
        # The loss is one for numbers: that there are classes is no contradiction here.
        check_is_fitted(self)
        return Given(self, X, reset=False).to_predict()

    def decision_function(self, X: Any) -> Floats:
        """Compute signed scores, positive for the class they speak for.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes, of the second one.
        """
        scores = self._predictions(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Classes, or a matrix of 0 and 1 if the fit was to one.
        """
        scores = self._predictions(X)
        if self._label_binarizer.y_type_.startswith("multilabel"):
            signs = np.where(scores > 0, 1.0, -1.0)
            return cast(NDArray[Any], self._label_binarizer.inverse_transform(signs))
        if scores.shape[1] == 1:
            numbers = (scores[:, 0] > 0).astype(np.intp)
        else:
            numbers = scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[numbers]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags = None
        tags.classifier_tags.multi_label = True
        return tags
