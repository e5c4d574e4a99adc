"""What all estimators share: data in, certificate and predictions out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import metadata, version
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.special import kl_div
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sdca_rs import _core
from sdca_rs._availability import only_if
from sdca_rs._callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from sdca_rs._data import (
    Floats,
    Labels,
    as_count,
    as_flag,
    as_number,
    as_weights,
    is_sparse,
    lam_of,
    loss_shape,
    naming,
    naming_not_finite,
    regularisation,
    validate_y,
    warn_of_many_classes,
    weighed_labels,
)
from sdca_rs._fitted import FittedModel
from sdca_rs._handle import Given, default_weights
from sdca_rs._losses import LossInfo, find_loss, losses, require_loss
from sdca_rs._progress import Reporter, warn_not_converged
from sdca_rs._score_history import Callback, ScoreHistory, ScoreRun

if TYPE_CHECKING:
    from typing_extensions import Self

    from sdca_rs._core import Rows, _Matrix

# Dual values, coefficients, intercepts and steps.
_Start: TypeAlias = tuple[Floats, Floats, Floats, Floats]

# What scikit-learn's validation stores.
_FEATURES = ("n_features_in_", "feature_names_in_")

# The key in a pickle.
_VERSION = "_sdca_rs_version"


def _is_classifier(estimator: Any) -> bool:
    if estimator._task is not None:
        return bool(estimator._task == "classification")
    # An unknown loss is refused by `fit`; until then any answer will do.
    loss = find_loss(estimator.loss)
    return loss is None or loss.task == "classification"


def _why_no_decision(estimator: Any) -> str | None:
    if _is_classifier(estimator):
        return None
    return f"with loss {estimator.loss!r} it is a regressor: use predict"


def _has_probabilities(loss: LossInfo) -> bool:
    # The clipped scores of "modified_huber" are those of SGDClassifier.
    return loss.link == "logit" or loss.name == "modified_huber"


def _why_no_probabilities(estimator: Any) -> str | None:
    loss = find_loss(estimator.loss)
    if loss is not None and _has_probabilities(loss):
        return None
    if not _is_classifier(estimator):
        return f"with loss {estimator.loss!r} it is a regressor: use predict"
    known = " and ".join(
        repr(each.name) for each in losses() if _has_probabilities(each)
    )
    return (
        f"loss {estimator.loss!r} has no probabilities. The losses {known} have; for "
        "any other, sklearn.calibration.CalibratedClassifierCV finds them"
    )


@cache
def _docs_url() -> str | None:
    """Return where the documentation is, as the metadata of the package say."""
    for entry in metadata("sdca-rs").get_all("Project-URL") or ():
        label, _, url = entry.partition(",")
        if label.strip().lower() == "documentation":
            return str(url.strip().rstrip("/"))
    return None


class CertifiedLinearModel(CallbackSupportMixin, FittedModel):
    """A linear model that minimises a loss of the registry.

    Subclasses define ``__init__`` with at least the parameters used here, and
    ``_solver``, the algorithm with the settings that only they have.
    """

    # What the estimator is, if not for its loss to decide.
    _task: ClassVar[Literal["classification", "regression"] | None] = None

    loss: str
    loss_param: float | None
    C: float
    lam: float | None
    fit_intercept: bool
    tol: float
    max_iter: int
    max_time: float | None
    class_weight: Any
    warm_start: bool
    keep_dual: bool
    record_every: float | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    callback: Callback | None

    # Scalars or arrays, dense or sparse: see the attributes of the subclasses.
    classes_: NDArray[Any]
    coef_: Any
    intercept_: Any
    dual_coef_: NDArray[Any]
    objective_: Any
    dual_objective_: Any
    duality_gap_: Any
    stop_reason_: Any
    history_: Any
    n_iter_: int
    n_features_in_: int

    # Steps of the last fit, for each problem, its lambda, and the sum of its weights,
    # which no one knows of a stream.
    _steps: list[float]
    _lam: float
    _total_weight: float | None

    # Whether a warm start needs dual values: that of a method on the primal does not.
    _starts_from_dual: ClassVar[bool] = True

    def _solver(self, seed: int, n_threads: int) -> _core.Solver:
        """Return the algorithm; ``n_threads`` may share the work on one problem."""
        raise NotImplementedError

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model and certify it.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Training rows. Arrays in C order and CSR matrices (int32 or int64 indices)
            of float32 or float64 are used where they lie; anything else is converted
            once. They must not be changed while the fit runs. For several fits,
            :class:`Data` is checked and prepared only once.
        y : array-like of shape (n_samples,)
            Class labels of any type, or numbers, as the loss demands.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A weight counts its row: weight 2 is the row twice, weight 0 is the row
            absent. None takes those of :class:`Data`, if it has weights.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._certified_fit(X, y, sample_weight)

    def _certified_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        make_start: Callable[[int, int], _Start] | None = None,
    ) -> Self:
        """Fit as :meth:`fit` does, which calls it and is called by the user.

        ``make_start(n_samples, n_problems)`` returns where to start, if that is given.
        """
        with keeping_state(self):
            fits, reporter = self._fit(X, y, sample_weight, make_start)
        # If this is made an error, what was fitted stays.
        warn_not_converged(
            type(self).__name__, fits, float(self.tol), reporter.classes, stacklevel=3
        )
        return self

    @with_callbacks
    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        make_start: Callable[[int, int], _Start] | None = None,
    ) -> tuple[list[_core.Fit], Reporter]:
        loss = require_loss(self.loss, self._task)
        classify = loss.task == "classification"
        given = Given(self, X, reset=True, require_finite=False)
        features = {name: getattr(self, name, None) for name in _FEATURES}
        n_samples = given.n_samples
        y = validate_y(y, n_samples, numeric=not classify)
        weights = given.weigh(sample_weight)
        labels: Labels | None = None
        if classify:
            labels, weights = weighed_labels(y, weights, self.class_weight)
            # This, the frame of the decorator, `_certified_fit` and `fit`.
            warn_of_many_classes(labels, weights, self.loss, stacklevel=5)
            targets, n_classes = labels.targets, len(labels.classes)
        else:
            if self.class_weight is not None:
                raise ValueError(
                    f"class_weight: found {self.class_weight!r}, expected None, "
                    f"because loss {self.loss!r} has no classes"
                )
            targets, n_classes = y, 0
        n_problems = n_classes if n_classes > 2 else 1
        classes = None if labels is None else labels.classes
        tol = as_number("tol", self.tol, "a finite number >= 0")
        max_iter = positive_count("max_iter", self.max_iter)
        C, lam = regularisation(self.C, self.lam)
        n_threads = self._n_threads()
        rows = given.rows()
        start = (
            self._start(labels, n_samples, n_problems)
            if make_start is None
            else make_start(n_samples, n_problems)
        )
        followed = self._followed_by(loss, classes)
        scores = followed if isinstance(followed, ScoreRun) else None
        tasks = None
        if hasattr(self, "_skl_callbacks"):
            tasks = FitTasks(self, X, y, sample_weight, classes)
        reporter = Reporter(
            type(self).__name__,
            as_verbose(self.verbose),
            [told for told in (tasks, followed) if told is not None],
            classes if n_problems > 1 else None,
            n_problems=n_problems,
            tol=tol,
            max_iter=max_iter,
        )
        with naming_not_finite(self, given.X), reporter:
            fits = _core.fit(
                rows,
                targets,
                solver=self._solver(self._seed(), n_threads if n_problems == 1 else 1),
                sample_weight=given.others(weights),
                n_classes=n_classes,
                loss=loss.name,
                loss_param=loss_shape(loss, self.loss_param),
                C=C,
                lam=lam,
                fit_intercept=as_flag("fit_intercept", self.fit_intercept),
                tol=tol,
                max_iter=max_iter,
                max_time=_optional("max_time", self.max_time, "seconds > 0, or None"),
                record_every=_optional(
                    "record_every", self.record_every, "epochs > 0, or None"
                ),
                n_threads=n_threads,
                start=start,
                report=reporter if reporter.is_needed else None,
            )
        if scores is not None:
            scores.add_to(fits)
        self._keep(fits, labels)
        if scores is not None:
            self._restore(scores, fits)
        # Again: a callback, or another thread, may have fitted this one meanwhile.
        known = {name: value for name, value in features.items() if value is not None}
        self.__dict__.update(
            known,
            _lam=lam_of(C, lam, n_samples, weights),
            _total_weight=float(n_samples if weights is None else weights.sum()),
        )
        for name in features.keys() - known.keys():
            self.__dict__.pop(name, None)
        if tasks is not None:
            tasks.finish()
        reporter.finish(fits)
        return fits, reporter

    def _followed_by(
        self, loss: LossInfo, classes: Any
    ) -> Callable[[_core.Progress], object] | None:
        """Return what the user wants to be called at each evaluation."""
        if isinstance(self.callback, ScoreHistory):
            return self.callback.begin(self, loss, classes)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"callback: found {self.callback!r}, expected a callable, a "
                "ScoreHistory or None"
            )
        return self.callback

    def _restore(self, scores: ScoreRun, fits: list[_core.Fit]) -> None:
        """Go back to the models of the best scores, where that is asked for.

        Their objectives are known, and what bounds the optimum bounds it still.
        """
        for k, fit in enumerate(fits):
            best = scores.best(k)
            if best is None:
                continue
            gap = best.primal - fit.dual_objective
            if len(fits) == 1:
                self.objective_, self.duality_gap_ = best.primal, gap
            else:
                self.objective_[k], self.duality_gap_[k] = best.primal, gap
            if hasattr(self, "classes_"):
                self.coef_[k], self.intercept_[k] = best.coef, best.intercept
            else:
                self.coef_, self.intercept_ = best.coef, best.intercept

    def _seed(self) -> int:
        seed = self.random_state
        # To set up numpy's generator for one number takes as long as a short fit.
        if isinstance(seed, Integral) and 0 <= int(seed) < 2**32:
            return int(seed)
        try:
            rng = check_random_state(seed)
        except ValueError as error:
            raise ValueError(
                f"random_state: found {seed!r}, expected an int from 0 to 2^32 - 1, a "
                "RandomState or None"
            ) from error
        return int(rng.randint(np.iinfo(np.int32).max))

    def _n_threads(self) -> int:
        if self.n_jobs is not None:
            n_jobs = as_count("n_jobs", self.n_jobs, "an integer other than 0, or None")
            if n_jobs == 0:
                raise ValueError(
                    "n_jobs: found 0, expected an integer other than 0, or None"
                )
        return max(1, int(effective_n_jobs(cast(Any, self.n_jobs))))

    def _start(
        self, labels: Labels | None, n_samples: int, n_problems: int
    ) -> _Start | None:
        """Where the previous fit ended, if that is wanted and there was one."""
        keeps_dual = as_flag("keep_dual", self.keep_dual)
        if not as_flag("warm_start", self.warm_start):
            return None
        if self._starts_from_dual and not keeps_dual:
            raise ValueError(
                "warm_start: found True together with keep_dual=False, expected only "
                "one of the two: a warm start needs the dual values of the previous fit"
            )
        if not self._is_fitted():
            return None
        if hasattr(self, "dual_coef_"):
            start = np.ascontiguousarray(np.atleast_2d(self.dual_coef_))
        elif self._starts_from_dual:
            raise ValueError(
                "warm_start: found a fitted model without dual values, expected one "
                "that has them, as after fit or from a pickle: a file of save has none "
                "(warm_start=False starts afresh)"
            )
        else:
            start = np.zeros((n_problems, n_samples))
        if start.shape != (n_problems, n_samples):
            raise ValueError(
                f"warm_start: found dual values of shape {start.shape} from the "
                f"previous fit, expected {(n_problems, n_samples)}; a warm start needs "
                "the same rows (warm_start=False starts afresh)"
            )
        self._check_classes(labels)
        return (start, *self._models(), self._steps_done())

    def _steps_done(self) -> Floats:
        with naming("_steps", "numbers >= 0, as of a fit"):
            steps = np.array(self._steps, dtype=np.float64)
            if steps.ndim != 1 or not (np.isfinite(steps) & (steps >= 0)).all():
                raise ValueError(f"found {self._steps!r}")
        return steps

    def _is_fitted(self) -> bool:
        return hasattr(self, "coef_")

    def _check_classes(self, labels: Labels | None) -> None:
        """Refuse a warm start from a model of other classes."""
        before = getattr(self, "classes_", np.array([]))
        if labels is not None and not np.array_equal(before, labels.classes):
            raise ValueError(
                f"warm_start: found classes {labels.classes.tolist()}, expected "
                f"{before.tolist()} as in the previous fit (warm_start=False starts "
                "afresh)"
            )

    def _models(self) -> tuple[Floats, Floats]:
        """Coefficients and intercepts, a row and an entry for each problem."""
        coef = self.coef_.toarray() if is_sparse(self.coef_) else self.coef_
        return (
            np.ascontiguousarray(np.atleast_2d(coef), dtype=np.float64),
            np.ascontiguousarray(np.atleast_1d(self.intercept_), dtype=np.float64),
        )

    def _keep(self, fits: list[_core.Fit], labels: Labels | None) -> None:
        """Store what was fitted, in scikit-learn's shapes, all at once."""
        first = fits[0]
        kept: dict[str, Any] = {
            "_steps": [fit.steps for fit in fits],
            "n_iter_": int(np.ceil(max(fit.epochs for fit in fits))),
        }
        if labels is None:
            kept |= {
                "coef_": first.coef,
                "intercept_": first.intercept,
            }
            # Left behind by an earlier fit with a loss for classes.
            self.__dict__.pop("classes_", None)
        else:
            kept |= {
                "classes_": labels.classes,
                "coef_": np.stack([fit.coef for fit in fits]),
                "intercept_": np.array([fit.intercept for fit in fits]),
            }
        if not self.keep_dual:
            # Those of an earlier fit are not of this model.
            self.__dict__.pop("dual_coef_", None)
        elif labels is None:
            kept["dual_coef_"] = first.dual
        else:
            # Of a single problem it is not copied: there are as many values as rows.
            kept["dual_coef_"] = (
                first.dual[np.newaxis]
                if len(fits) == 1
                else np.stack([fit.dual for fit in fits])
            )
        certificates: dict[str, list[Any]] = {
            "objective_": [fit.objective for fit in fits],
            "dual_objective_": [fit.dual_objective for fit in fits],
            "duality_gap_": [fit.gap for fit in fits],
            "stop_reason_": [fit.stop_reason for fit in fits],
        }
        for name, values in certificates.items():
            kept[name] = values[0] if len(fits) == 1 else np.array(values)
        kept["history_"] = (
            first.history if len(fits) == 1 else [fit.history for fit in fits]
        )
        self.__dict__.update(kept)

    def _check_model(self) -> None:
        check_is_fitted(self)
        if _is_classifier(self) != hasattr(self, "classes_"):
            raise NotFittedError(
                f"loss: found {self.loss!r}, expected one of the kind that was fitted; "
                "fit again after changing it"
            )
        if _is_classifier(self):
            n_classes = len(self.classes_)
            expected = n_classes if n_classes > 2 else 1
            if (
                n_classes < 2
                or np.ndim(self.classes_) != 1
                or self.coef_.shape[:1] != (expected,)
            ):
                raise ValueError(
                    f"coef_: found shape {np.shape(self.coef_)} for classes of shape "
                    f"{np.shape(self.classes_)}, expected those of a fit"
                )

    def _prepare(self, X: Any) -> Rows | _Matrix:
        """Check rows to predict for."""
        self._check_model()
        return Given(self, X, reset=False).to_predict()

    def _predictions(self, X: Any) -> Floats:
        """``X @ w + b``, one column for each model."""
        return _core.decision_function(
            self._prepare(X), *self._models(), n_threads=self._n_threads()
        )

    @only_if(_why_no_decision)
    def decision_function(self, X: Any) -> Floats:
        """Compute signed scores, positive for the class they speak for.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the score of ``classes_[1]``, else one for each class.
        """
        scores = self._predictions(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes, or target values.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels for a classifier. For a regressor the expected (or median, or
            quantile) target; for the loss "poisson" that is ``exp(X @ w + b)``.
        """
        check_is_fitted(self)
        loss = require_loss(self.loss)
        numbers: NDArray[Any]
        if loss.task == "classification" and len(getattr(self, "classes_", ())) > 2:
            # Without the scores of all classes at once.
            numbers = _core.predict_classes(
                self._prepare(X), *self._models(), n_threads=self._n_threads()
            )
        else:
            values = self._predictions(X)[:, 0]
            if loss.task == "regression":
                return exp(values) if loss.link == "log" else values
            numbers = (values > 0).astype(np.intp)
        labels: NDArray[Any] = self.classes_[numbers]
        return labels

    @only_if(_why_no_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Estimate the probability of each class; for two losses only.

        For "log", it is that of the logistic model. For "modified_huber", it is the
        score, cut off at -1 and 1 and brought to [0, 1], as by scikit-learn's
        ``SGDClassifier``: often exactly 0 or 1. With more than two classes, the
        one-vs-rest probabilities are divided by their sum (and are equal if all are
        0).

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        if require_loss(self.loss).link == "logit":
            return cast(Floats, np.exp(self.predict_log_proba(X)))
        shares = (np.clip(self._predictions(X), -1.0, 1.0) + 1.0) / 2.0
        if shares.shape[1] == 1:
            return np.hstack([1.0 - shares, shares])
        shares[~shares.any(axis=1)] = 1.0
        return cast(Floats, shares / shares.sum(axis=1, keepdims=True))

    @only_if(_why_no_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Estimate the logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        if require_loss(self.loss).link != "logit":
            with np.errstate(divide="ignore"):
                return cast(Floats, np.log(self.predict_proba(X)))
        scores = self._predictions(X)
        if scores.shape[1] == 1:
            scores = np.hstack([-scores, scores])
        # log(1 / (1 + e^-s)), exact at both ends.
        logs = -np.logaddexp(0.0, -scores)
        if scores.shape[1] > 2:
            logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
        return cast(Floats, logs)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Rate predictions: 1 is perfect.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True classes or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. None takes those of :class:`Data`, if it has weights.

        Returns
        -------
        float
            Accuracy of a classifier; R^2 of a regressor; for the loss "poisson" D^2,
            the share of the Poisson deviance explained, which is R^2's counterpart.
        """
        predicted = self.predict(X)
        loss = require_loss(self.loss)
        classify = loss.task == "classification"
        y = validate_y(y, len(predicted), numeric=not classify)
        weights = as_weights(default_weights(X, sample_weight), len(predicted))
        with naming("y", "labels or numbers like those of the fit"):
            if classify:
                return float(accuracy_score(y, predicted, sample_weight=weights))
            if loss.link == "log":
                return _poisson_d2(y, predicted, weights)
            return float(r2_score(y, predicted, sample_weight=weights))

    def sparsify(self) -> Self:
        """Store ``coef_`` as a CSR matrix, which saves memory if most of it is zero.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Store ``coef_`` as an array again.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if is_sparse(self.coef_):
            dense = self.coef_.toarray()
            self.coef_ = dense if hasattr(self, "classes_") else dense.ravel()
        return self

    def _get_doc_link(self) -> str:
        """Return the page of the class, for scikit-learn's HTML representation."""
        url, cls = _docs_url(), type(self)
        if url is None or not cls.__module__.startswith("sdca_rs."):
            return ""
        return f"{url}/api/sdca_rs.{cls.__name__}.html"

    def __getstate__(self) -> dict[str, Any]:
        state = cast(dict[str, Any], super().__getstate__())
        return {**state, _VERSION: version("sdca-rs")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        # What was pickled before there were versions is read as it is.
        found, ours = state.pop(_VERSION, "0"), version("sdca-rs")
        if _release(found) > _release(ours):
            raise ValueError(
                f"pickle: found a state of sdca-rs {found}, expected one of {ours} or "
                "older: install the newer version to read it"
            )
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        if _is_classifier(self):
            tags.estimator_type = "classifier"
            # Without an intercept both sides of the origin cannot be one class.
            tags.classifier_tags = ClassifierTags(poor_score=not self.fit_intercept)
        else:
            tags.estimator_type = "regressor"
            loss = find_loss(self.loss)
            has_log_link = loss is not None and loss.link == "log"
            # Without an intercept the expected target at the origin would be 1.
            tags.regressor_tags = RegressorTags(
                poor_score=has_log_link and not self.fit_intercept
            )
            tags.target_tags.positive_only = has_log_link
        return tags


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def exp(values: Floats) -> Floats:
    """Return ``e**values``, infinite without a warning where that overflows."""
    with np.errstate(over="ignore"):
        return cast(Floats, np.exp(values))


def _poisson_d2(y: Floats, predicted: Floats, weights: Floats | None) -> float:
    """Return the share of the Poisson deviance that predictions explain.

    As R^2, it is 1 or 0 where there is no deviance to be explained.
    """
    if (y < 0).any():
        raise ValueError(f"y: found {y.min()}, expected finite numbers >= 0")
    mean = np.average(y, weights=weights)
    # y log(y / p) - y + p, half the deviance of a row.
    left = np.average(kl_div(y, predicted), weights=weights)
    total = np.average(kl_div(y, mean), weights=weights)
    if total == 0:
        return float(left == 0)
    return float(1 - left / total)


@contextmanager
def keeping_state(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was if a fit fails or is interrupted."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def choices(**named: Any) -> dict[str, Any]:
    """Check that arguments which name a choice are strings."""
    for name, choice in named.items():
        if not isinstance(choice, str):
            raise TypeError(f"{name}: found {choice!r}, expected a string")
    return named


def one_of(name: str, value: Any, expected: tuple[str, ...]) -> None:
    """Check an argument that names a choice."""
    choices(**{name: value})
    if value not in expected:
        raise ValueError(
            f"{name}: found {value!r}, expected one of {', '.join(expected)}"
        )


def is_auto(value: Any) -> bool:
    """Whether an argument leaves the choice to the solver."""
    return isinstance(value, str) and value == "auto"


def positive_count(name: str, value: Any) -> int:
    """Check an integer >= 1."""
    count = as_count(name, value, "an integer >= 1")
    if count < 1:
        raise ValueError(f"{name}: found {count}, expected an integer >= 1")
    return count


def as_start(name: str, value: Any) -> float | int:
    """Check where averages begin: after a number of steps, or a fraction of the run."""
    expected = "a number in [0, 1), or an integer >= 1 of steps"
    if isinstance(value, Integral) and not isinstance(value, bool):
        steps = as_count(name, value, expected)
        if steps < 0:
            raise ValueError(f"{name}: found {steps}, expected {expected}")
        return steps
    number = as_number(name, value, expected)
    if not 0 <= number < 1:
        raise ValueError(f"{name}: found {value!r}, expected {expected}")
    return number


def as_verbose(value: Any) -> int:
    """Check how much a fit is to print; True is 1."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    count = as_count("verbose", value, "an integer >= 0, or a bool")
    if count < 0:
        raise ValueError(f"verbose: found {count}, expected an integer >= 0, or a bool")
    return count


def _optional(name: str, value: Any, expected: str) -> float | None:
    return None if value is None else as_number(name, value, expected)
