"""The estimator of Pegasos and plain SGD."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sdca_rs import _core
from sdca_rs._base import (
    CertifiedLinearModel,
    _Start,
    as_start,
    choices,
    is_auto,
    keeping_state,
    positive_count,
)
from sdca_rs._core import Solver, Stream
from sdca_rs._data import (
    Floats,
    Labels,
    as_flag,
    as_number,
    assert_labels,
    lam_of,
    loss_shape,
    naming,
    regularisation,
    validate_y,
)
from sdca_rs._handle import Given
from sdca_rs._losses import require_loss
from sdca_rs._score_history import Callback

if TYPE_CHECKING:
    from typing_extensions import Self


class Pegasos(CertifiedLinearModel):
    """Linear model by stochastic subgradient descent, with a certificate.

    Minimises what :class:`Sdca` minimises. Each step goes down the subgradient of
    ``batch_size`` rows, with length ``1 / (lam t)`` in step ``t``: for "hinge", without
    an intercept, this is the published Pegasos. Other step lengths make it plain SGD.
    It comes close to the optimum fast and reaches it slowly; :class:`Sdca` does both
    fast. :meth:`partial_fit` learns from a stream.

    Read more in the user guide.

    Parameters
    ----------
    loss : str, default="hinge"
        What to minimise, by name; see :func:`sdca_rs.losses`.
    loss_param, C, lam, fit_intercept : optional
        As for :class:`Sdca`.
    tol : float, default=1e-3
        Stop when ``duality_gap_ <= tol * objective_``; 0 runs all epochs.
    max_iter, max_time : optional
        As for :class:`Sdca`; an epoch visits as many rows as there are.
    class_weight, warm_start, keep_dual : optional
        As for :class:`Sdca`. A warm start goes on with the next step, also after
        :meth:`partial_fit`; it needs no dual values.
    batch_size : int or "auto", default="auto"
        Rows in a step, at most all. "auto" is 1, but all rows for :meth:`fit` with at
        most 100 of them, so that the order of so few rows does not matter.
    sampling : {"permutation", "random", "cyclic"}, default="permutation"
        Cut each epoch into batches, after a random permutation or in the order of the
        data, or draw each row with replacement.
    project : bool, default=False
        Whether to keep ``w`` in a ball that holds the optimum, of radius
        ``sqrt(P(0) / lam)`` with the objective ``P(0)`` of the best constant
        prediction. The loss "poisson" always is: nothing else bounds its steps.
    learning_rate : {"pegasos", "constant", "invscaling"}, default="pegasos"
        The length of step ``t``: ``1 / (lam t)``, ``eta0`` or ``eta0 / t**power_t``.
        For the losses without bounded slope ("squared", "squared_hinge",
        "squared_epsilon_insensitive" and "poisson") "pegasos" is
        ``1 / (lam (t + t0))``, where ``t0`` makes the first step as long as a constant
        one: without it they overflow.
    eta0 : float, default=None
        At most ``1 / lam``. None is ``1 / (lam + R / gamma)``, with the bound
        ``1 / gamma`` of the curvature of the loss (1 if it has kinks) and ``R`` from
        the largest ``|x_i|^2`` (of the centred rows, if there is an intercept) for
        batches of one row to their mean for one of all rows. For "invscaling", whose
        steps get shorter anyway, a larger one is often better.
    power_t : float, default=0.5
        The exponent of "invscaling", of (0, 1].
    output : {"last", "average", "random"}, default="last"
        The model that is returned, and certified on the way: the last one, the mean of
        those after ``T0``, or one drawn from them.
    average_from : float or int, default=0.5
        ``T0`` as a fraction of the run, of [0, 1), or as a number of steps, if an int
        of 1 or more.
    record_every : float, default=None
        As for :class:`Sdca`.
    n_jobs : int, default=None
        Number of threads, for large batches or, from three classes on, for the classes
        (not by :meth:`partial_fit`); also for predictions. None is 1, -1 is one for
        each processor. The result does not depend on it.
    random_state, verbose, callback : optional
        As for :class:`Sdca`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), (n_classes, n_features) or (n_features,)
        ``w``, as for :class:`Sdca`.
    intercept_ : ndarray of shape (1,) or (n_classes,), or float
        ``b``, the best one for this ``w`` (after :meth:`partial_fit`, that of the
        steps).
    dual_coef_ : ndarray of shape (1, n_samples), (n_classes, n_samples) or (n_samples,)
        The dual point ``a`` of the certificate: the negative slopes at ``coef_``, or
        their mean over the steps, whichever bounds the optimum better. Its model is not
        ``coef_``.
    objective_, dual_objective_, duality_gap_, n_iter_, stop_reason_, history_
        As for :class:`Sdca`. There are none after :meth:`partial_fit`, which does not
        know all rows: see :func:`certify`.
    classes_, n_features_in_, feature_names_in_
        As for :class:`Sdca`.

    See Also
    --------
    Sdca : The method to use for data that are at hand.
    sdca_rs.theory.pegasos_iterations : How many steps suffice.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, Pegasos: primal estimated
    sub-gradient solver for SVM, Mathematical Programming 127, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sdca_rs import Pegasos
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = Pegasos(lam=0.01, output="average", tol=0.01, random_state=0).fit(X, y)
    >>> model.stop_reason_
    'converged'

    From a stream:

    >>> stream = Pegasos(lam=0.01, random_state=0)
    >>> for part in range(0, len(y), 50):
    ...     rows = slice(part, part + 50)
    ...     stream = stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    >>> stream.score(X, y) > 0.9
    True
    """

    # What is known of a stream, for each problem, and its regularisation.
    _streams: list[Stream]

    _starts_from_dual = False

    def __init__(
        self,
        loss: str = "hinge",
        *,
        loss_param: float | None = None,
        C: float = 1.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        warm_start: bool = False,
        keep_dual: bool = True,
        batch_size: int | Literal["auto"] = "auto",
        sampling: Literal["permutation", "random", "cyclic"] = "permutation",
        project: bool = False,
        learning_rate: Literal["pegasos", "constant", "invscaling"] = "pegasos",
        eta0: float | None = None,
        power_t: float = 0.5,
        output: Literal["last", "average", "random"] = "last",
        average_from: float = 0.5,
        record_every: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.loss = loss
        self.loss_param = loss_param
        self.C = C
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.keep_dual = keep_dual
        self.batch_size = batch_size
        self.sampling = sampling
        self.project = project
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.output = output
        self.average_from = average_from
        self.record_every = record_every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _solver(self, seed: int, n_threads: int) -> Solver:
        batch_size = None
        if not is_auto(self.batch_size):
            batch_size = positive_count("batch_size", self.batch_size)
        eta0 = self.eta0
        if eta0 is not None:
            eta0 = as_number("eta0", eta0, "a number > 0, or None")
        return Solver.pegasos(
            batch_size=batch_size,
            project=as_flag("project", self.project),
            **choices(
                sampling=self.sampling,
                learning_rate=self.learning_rate,
                output=self.output,
            ),
            eta0=eta0,
            power_t=as_number("power_t", self.power_t, "a number of (0, 1]"),
            average_from=as_start("average_from", self.average_from),
            seed=seed,
            n_threads=n_threads,
        )

    def _keep(self, fits: list[_core.Fit], labels: Labels | None) -> None:
        super()._keep(fits, labels)
        # A stream would go on from here.
        self.__dict__.pop("_streams", None)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Fit the model and certify it.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Training rows, as for :meth:`Sdca.fit`.
        y : array-like of shape (n_samples,)
            Class labels of any type, or numbers, as the loss demands.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A weight counts its row: weight 2 is the row twice, weight 0 is the row
            absent. None takes those of :class:`Data`, if it has weights.
        coef_init : array-like, default=None
            The coefficients to start from, of the shape of ``coef_``; None is 0. They
            take precedence over a warm start. The first step of length ``1 / lam``, as
            by ``learning_rate="pegasos"``, forgets them, but for the rows that it
            goes down from: they matter for the other step lengths.
        intercept_init : float or array-like, default=None
            The intercepts to start from, likewise.

        Returns
        -------
        self
            The fitted estimator.
        """
        start = None
        if coef_init is not None or intercept_init is not None:
            start = partial(self._start_at, coef_init, intercept_init)
        return self._certified_fit(X, y, sample_weight, start)

    def _start_at(
        self,
        coef_init: ArrayLike | None,
        intercept_init: ArrayLike | None,
        n_samples: int,
        n_problems: int,
    ) -> _Start:
        """Return a start with this model, before any step."""
        n_features: int = self.n_features_in_
        return (
            np.zeros((n_problems, n_samples)),
            _given("coef_init", coef_init, (n_problems, n_features)),
            _given("intercept_init", intercept_init, (n_problems,)),
            np.zeros(n_problems),
        )

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go once over the next rows of a stream.

        Goes on from where the last call, or :meth:`fit`, ended. All rows of a stream
        belong to one problem: give ``lam``, which does not depend on how many they
        are. (With ``C``, ``lam`` is ``1 / (C W)`` with the weight ``W`` of the first
        rows.) Weights count as they are: those of a stream should have mean 1. All
        rows so far decide how the intercept is scaled, and the default of ``eta0``; a
        part with fewer rows than ``batch_size`` takes a part of a step. Other settings
        may change between calls. With ``output="average"`` the model is the mean over
        all steps, whatever ``average_from``.

        Parameters
        ----------
        X : {array-like, sparse matrix, Data} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their class labels or numbers.
        classes : array-like of shape (n_classes,), default=None
            All classes of the stream. Needed by the first call, and by a classifier
            only.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self
            The updated estimator.
        """
        with keeping_state(self):
            self._partial_fit(X, y, classes, sample_weight)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        loss = require_loss(self.loss)
        classify = loss.task == "classification"
        begins = not self._is_fitted()
        if not begins and classify != hasattr(self, "classes_"):
            raise ValueError(
                f"loss: found {self.loss!r}, expected that of the earlier parts"
            )
        if self.output == "random":
            raise ValueError(
                "output: found 'random', expected 'last' or 'average' for partial_fit"
            )
        given = Given(self, X, reset=begins)
        y = validate_y(y, given.n_samples, numeric=not classify)
        weights = given.weigh(sample_weight)
        labels: Labels | None = None
        if classify:
            labels = Labels(y, weights, self._stream_classes(classes))
            if isinstance(self.class_weight, str):
                raise ValueError(
                    f"class_weight: found {self.class_weight!r}, expected a dict or "
                    "None for partial_fit, which does not know all rows"
                )
            weights = labels.weigh(self.class_weight, weights)
        elif classes is not None:
            raise ValueError(
                f"classes: found {classes!r}, expected None, because loss "
                f"{self.loss!r} has no classes"
            )
        lam = self._stream_lam(begins, given.n_samples, weights)
        n_classes = 0 if labels is None else len(labels.classes)
        n_threads = self._n_threads()
        streams = _core.partial_fit(
            given.rows(is_part=True),
            y if labels is None else labels.targets,
            solver=self._solver(self._seed(), n_threads if n_classes <= 2 else 1),
            sample_weight=given.others(weights),
            n_classes=n_classes,
            loss=loss.name,
            loss_param=loss_shape(loss, self.loss_param),
            lam=lam,
            fit_intercept=as_flag("fit_intercept", self.fit_intercept),
            streams=None if begins else self._earlier(),
        )
        # What certified an earlier model says nothing about this one.
        for name in (
            "dual_coef_",
            "objective_",
            "dual_objective_",
            "duality_gap_",
            "stop_reason_",
            "history_",
            "n_iter_",
        ):
            self.__dict__.pop(name, None)
        self._streams, self._lam, self._total_weight = streams, lam, None
        self._steps = [stream.steps for stream in streams]
        models = [s.mean if self.output == "average" else s.last for s in streams]
        if labels is None:
            ((self.coef_, self.intercept_),) = models
        else:
            self.classes_ = labels.classes
            self.coef_ = np.stack([coef for coef, _ in models])
            self.intercept_ = np.array([intercept for _, intercept in models])

    def _stream_classes(self, classes: Any) -> Any:
        known = getattr(self, "classes_", None)
        if classes is None:
            if known is None:
                raise ValueError(
                    "classes: found None, expected all classes of the stream in the "
                    "first call of partial_fit"
                )
            return known
        with naming("classes", "all class labels, of one type, in one dimension"):
            classes = np.unique(assert_labels(classes))
        if known is not None and not np.array_equal(known, classes):
            raise ValueError(
                f"classes: found {classes.tolist()}, expected {known.tolist()} as in "
                "the first call, or None"
            )
        return classes if known is None else known

    def _stream_lam(self, begins: bool, n_samples: int, weights: Any) -> float:
        C, lam = regularisation(self.C, self.lam)
        if lam is None and not begins:
            return self._lam
        return lam_of(C, lam, n_samples, weights)

    def _earlier(self) -> list[Stream]:
        if hasattr(self, "_streams"):
            return self._streams
        # The model of `fit`, as the first part of a stream.
        coef, intercept = self._models()
        return [
            Stream(steps, (w, b), (w, b), None)
            for steps, w, b in zip(self._steps, coef, intercept.tolist(), strict=True)
        ]


def _given(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> Floats:
    """Check a part of a start, where one problem needs no axis of its own."""
    if value is None:
        return np.zeros(shape)
    with naming(name, "numbers"):
        array = np.array(value, dtype=np.float64)
    if array.shape != shape and (shape[0] > 1 or array.shape != shape[1:]):
        also = f" or {shape[1:]}" if shape[0] == 1 else ""
        raise ValueError(f"{name}: found shape {array.shape}, expected {shape}{also}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: found NaN or infinity, expected finite numbers")
    return np.ascontiguousarray(array.reshape(shape))
