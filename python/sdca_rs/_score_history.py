"""Scores on held-out rows while a fit runs: recorded, and a reason to stop."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer, get_scorer_names

from sdca_rs import _core
from sdca_rs._core import Progress
from sdca_rs._data import (
    Floats,
    Labels,
    as_flag,
    as_weights,
    loss_shape,
    validate_y,
)
from sdca_rs._handle import Data
from sdca_rs._losses import LossInfo, find_loss, losses, require_loss

# A score of a model, for rows and targets.
_Scorer: TypeAlias = Callable[..., Any]
_Scoring: TypeAlias = str | _Scorer

# The names of what a fit records itself.
_RECORDED = frozenset(
    (
        "epoch",
        "seconds",
        "cpu_seconds",
        "primal",
        "dual",
        "gap",
        "support",
        "phase",
    )
)

# With `|w| = 1` the objective `mean loss + (lam / 2) |w|^2` then is the mean loss.
_NO_LAM = 1e-300


class ScoreHistory:
    """Follows scores on held-out rows while a fit runs; given as its ``callback``.

    At each evaluation of the duality gap, the present model is scored. The scores go
    into the estimator's ``history_``, each under its name, beside the gap;
    :class:`sdca_rs.plotting.ConvergenceDisplay` draws them. It can also stop the run
    when the first score stalls, and have the estimator keep the best model.

    ``record_every`` of the estimator says how often that is. The rows must be as the
    estimator gets them: in a pipeline, transformed by the steps before.

    From three classes on, each class is a problem of its own: its model is scored, and
    stopped, as a classifier of this class (True) against the rest (False).

    Read more in the user guide.

    Parameters
    ----------
    X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
        Held-out rows.
    y : array-like of shape (n_samples,)
        Their class labels or numbers.
    scoring : str, callable, list, dict or None, default=None
        What to follow. A name is a loss of :func:`sdca_rs.losses`, for its mean over
        the rows (which is the better the smaller it is), or a scorer of scikit-learn,
        such as "roc_auc". A callable takes ``(estimator, X, y)`` and returns a number,
        the better the larger. A list has several names, a dict gives names to names or
        callables. A single callable is called "score", as is None, the estimator's own
        ``score``.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights of the rows, passed on as ``sample_weight`` if there are any. None takes
        those of :class:`Data`, if it has weights.
    patience : float, default=None
        Stop the run if the first score has not improved for so many epochs. The
        estimator's ``stop_reason_`` is then "callback". None never stops it.
    restore_best : bool, default=False
        Whether the estimator keeps the model whose first score was best, rather than
        the last one. Its certificate then is that of this model.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.preprocessing import scale
    >>> from sdca_rs import ScoreHistory, SdcaClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(scale(X), y, random_state=0)
    >>> scores = ScoreHistory(X_test, y_test, scoring=["log", "accuracy"])
    >>> model = SdcaClassifier(record_every=1, callback=scores, random_state=0)
    >>> history = model.fit(X, y).history_
    >>> len(history["accuracy"]) == len(history["gap"])
    True
    >>> float(history["accuracy"][-1]) == model.score(X_test, y_test)
    True

    Stop when the mean loss on the held-out rows has not fallen for 5 epochs, and keep
    the best model:

    >>> stop = ScoreHistory(
    ...     X_test, y_test, scoring="log", patience=5, restore_best=True
    ... )
    >>> model = SdcaClassifier(
    ...     C=100, tol=0, record_every=1, callback=stop, random_state=0
    ... ).fit(X, y)
    >>> model.stop_reason_
    'callback'
    >>> best = model.history_["log"].argmin()
    >>> bool(model.objective_ == model.history_["primal"][best])
    True
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        scoring: _Scoring
        | list[str]
        | tuple[str, ...]
        | Mapping[str, _Scoring]
        | None = None,
        sample_weight: ArrayLike | None = None,
        patience: float | None = None,
        restore_best: bool = False,
    ) -> None:
        self.X = X
        self.y = y
        self.scoring = scoring
        self.sample_weight = sample_weight
        self.patience = patience
        self.restore_best = restore_best

    def __repr__(self) -> str:
        settings = [f"{np.shape(self.y)[0] if np.ndim(self.y) else 1} rows"]
        for name in ("scoring", "patience", "restore_best"):
            value = getattr(self, name)
            if value is not None and value is not False:
                settings.append(f"{name}={value!r}")
        return f"ScoreHistory({', '.join(settings)})"

    def __sklearn_clone__(self) -> ScoreHistory:
        # Nothing in it changes: what a fit records belongs to the fit.
        return self

    def begin(self, estimator: Any, loss: LossInfo, classes: Any) -> ScoreRun:
        """Return what follows one fit; for the estimators of this package.

        ``classes`` are those found in the training rows, or None for a regressor.
        """
        data = self.X if isinstance(self.X, Data) else Data(self.X)
        y = validate_y(self.y, data.shape[0], numeric=classes is None)
        weights = (
            data._weights
            if self.sample_weight is None
            else as_weights(self.sample_weight, data.shape[0])
        )
        patience = self.patience
        if patience is not None and not (
            isinstance(patience, Real)
            and not isinstance(patience, bool)
            and patience > 0
        ):
            raise ValueError(
                f"patience: found {patience!r}, expected a number of epochs > 0, or "
                "None"
            )
        rows = _HeldOut(self.X, data, y, weights, classes)
        scores = {
            name: self._score(name, given, estimator, loss)
            for name, given in _by_name(self.scoring).items()
        }
        return ScoreRun(
            estimator,
            rows,
            scores,
            None if patience is None else float(patience),
            as_flag("restore_best", self.restore_best),
        )

    def _score(self, name: str, given: Any, estimator: Any, loss: LossInfo) -> _Score:
        if name in _RECORDED:
            raise ValueError(
                f"scoring: found the name {name!r}, expected another than those that "
                f"history_ has already: {', '.join(sorted(_RECORDED))}"
            )
        if given is None:
            return _Score(_own_score)
        if callable(given):
            return _Score(given, takes_raw=True)
        if not isinstance(given, str):
            raise TypeError(
                f"scoring: found {given!r} for {name!r}, expected the name of a loss "
                "or a scorer, or a callable"
            )
        followed = find_loss(given)
        if followed is not None:
            return _Score(_MeanLoss(followed, estimator, loss), is_loss=True)
        if given not in get_scorer_names():
            # With the suggestion that there may be.
            try:
                require_loss(given)
            except ValueError as error:
                known = str(error).removeprefix("loss: ")
                raise ValueError(
                    f"scoring: {known}, or a name of sklearn.metrics.get_scorer_names()"
                ) from None
        return _Score(get_scorer(given))


# What an estimator takes as ``callback``.
Callback: TypeAlias = Callable[[Progress], object] | ScoreHistory


def _by_name(scoring: Any) -> dict[str, Any]:
    if isinstance(scoring, str):
        return {scoring: scoring}
    if scoring is None or callable(scoring):
        return {"score": scoring}
    if isinstance(scoring, Mapping):
        named = dict(scoring)
    elif isinstance(scoring, (list, tuple)) and all(
        isinstance(name, str) for name in scoring
    ):
        named = {name: name for name in scoring}
    else:
        named = {}
    if not named or not all(isinstance(name, str) for name in named):
        raise TypeError(
            f"scoring: found {scoring!r}, expected a name, a callable, a list of "
            "names, a dict of these by name, or None"
        )
    return named


def _own_score(model: Any, X: Any, y: Any, **weights: Any) -> float:
    return float(model.score(X, y, **weights))


@dataclass
class _HeldOut:
    """Held-out rows, as they were given and checked."""

    X: Any
    data: Data
    y: NDArray[Any]
    weights: Floats | None
    classes: Any

    def of_class(self, k: int) -> _HeldOut:
        """Return them for one problem of several."""
        if self.classes is None or len(self.classes) < 3:
            return self
        return _HeldOut(
            self.X,
            self.data,
            self.y == self.classes[k],
            self.weights,
            np.array([False, True]),
        )

    @cached_property
    def targets(self) -> Floats:
        """What a loss compares predictions with."""
        if self.classes is None:
            return cast(Floats, self.y)
        return Labels(self.y, self.weights, self.classes).targets


@dataclass
class _Score:
    """How to compute a score, and which of two is better."""

    scorer: _Scorer
    # Whether a smaller one is better.
    is_loss: bool = False
    # Whether it gets rows as the user gave them.
    takes_raw: bool = False

    def of(self, name: str, model: Any, rows: _HeldOut) -> float:
        """Score a model."""
        weights = {}
        if rows.weights is not None:
            weights = {"sample_weight": rows.weights}
        if self.is_loss:
            value = self.scorer(model, rows)
        else:
            X = rows.X if self.takes_raw else rows.data
            value = self.scorer(model, X, rows.y, **weights)
        if not isinstance(value, Real):
            raise TypeError(
                f"scoring: found {value!r} as the score {name!r}, expected a number"
            )
        return float(value)


class _MeanLoss:
    """The mean of a loss over held-out rows."""

    def __init__(self, loss: LossInfo, estimator: Any, fitted: LossInfo) -> None:
        if loss.task != fitted.task or (loss.link == "log") != (fitted.link == "log"):
            known = ", ".join(
                other.name
                for other in losses()
                if other.task == fitted.task
                and (other.link == "log") == (fitted.link == "log")
            )
            raise ValueError(
                f"scoring: found {loss.name!r}, expected a loss for the predictions of "
                f"a model with loss {fitted.name!r}, one of {known}"
            )
        self._loss = loss
        # That of the estimator, if it is the same loss, and otherwise the default.
        param = estimator.loss_param if loss == fitted else None
        self._param = loss_shape(loss, param)

    def __call__(self, model: Any, rows: _HeldOut) -> float:
        scores, targets = model._predictions(rows.data)[:, :1], rows.targets
        weights = rows.weights
        if rows.classes is not None:
            # The core wants two classes, which few rows need not have. A loss of a
            # class is one of the margin: each row has a mirror image of the same loss.
            scores, targets = np.vstack([scores, -scores]), np.r_[targets, -targets]
            weights = None if weights is None else np.r_[weights, weights]
        primal, _ = _core.objectives(
            np.ascontiguousarray(scores),
            targets,
            sample_weight=weights,
            loss=self._loss.name,
            loss_param=self._param,
            C=None,
            lam=_NO_LAM,
            fit_intercept=False,
            coef=np.ones(1),
            intercept=0.0,
            dual=None,
        )
        return primal - _NO_LAM / 2


@dataclass
class _Best:
    """The best model so far."""

    score: float
    progress: Progress


@dataclass
class _Problem:
    """What is known of one problem of a fit."""

    rows: _HeldOut
    scores: dict[str, list[float]] = field(default_factory=dict)
    best: _Best | None = None


class ScoreRun:
    """Follows one fit: see :class:`ScoreHistory`."""

    def __init__(
        self,
        estimator: Any,
        rows: _HeldOut,
        scores: dict[str, _Score],
        patience: float | None,
        restore_best: bool,
    ) -> None:
        self._estimator = estimator
        self._rows = rows
        self._scores = scores
        self._patience = patience
        self._restore_best = restore_best
        # By class; each is only touched by the thread that fits it.
        self._problems: dict[int, _Problem] = {}

    def __call__(self, progress: Progress) -> bool:
        """Score the present model; True stops the run."""
        k = progress.class_index
        if k not in self._problems:
            self._problems[k] = _Problem(self._rows.of_class(k))
        problem = self._problems[k]
        model = self._model(progress, problem.rows)
        values = {
            name: score.of(name, model, problem.rows)
            for name, score in self._scores.items()
        }
        for name, value in values.items():
            problem.scores.setdefault(name, []).append(value)
        first, value = next(iter(values.items()))
        if self._scores[first].is_loss:
            value = -value
        best = problem.best
        if best is None or value > best.score or math.isnan(best.score):
            best = problem.best = _Best(value, progress)
        since = progress.epoch - best.progress.epoch
        return self._patience is not None and since >= self._patience

    def _model(self, progress: Progress, rows: _HeldOut) -> Any:
        """Return what the fit would have learned if it ended here."""
        model = copy.copy(self._estimator)
        model.__dict__.pop("classes_", None)
        if rows.classes is None:
            model.__dict__.update(coef_=progress.coef, intercept_=progress.intercept)
        else:
            model.__dict__.update(
                classes_=rows.classes,
                coef_=progress.coef[np.newaxis],
                intercept_=np.array([progress.intercept]),
            )
        return model

    def add_to(self, fits: list[_core.Fit]) -> None:
        """Put the scores into the histories of a fit that has ended."""
        for k, fit in enumerate(fits):
            for name, values in self._problems[k].scores.items():
                fit.history[name] = np.array(values)

    def best(self, k: int) -> Progress | None:
        """Return the model to be kept for a problem, if not the last one."""
        best = self._problems[k].best
        return best.progress if self._restore_best and best is not None else None
