"""The estimator of full-batch subgradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sdca_rs._base import CertifiedLinearModel, as_start, is_auto, one_of
from sdca_rs._core import Solver
from sdca_rs._data import as_number
from sdca_rs._score_history import Callback

_LEARNING_RATES = ("auto", "pegasos", "constant", "invscaling")
_OUTPUTS = ("best", "last", "average", "random")


class Subgradient(CertifiedLinearModel):
    """Linear model by subgradient descent on the primal, with a certificate.

    Minimises what :class:`Sdca` minimises, and is here to be compared with it. Each
    step goes down the subgradient of all rows, ::

        w = w - eta * (lam * w + (1/W) sum_i c_i loss'(x_i @ w + b, y_i) x_i)

    with the best ``b`` for the present ``w``, and the best iterate is kept.
    Deterministic, whatever the order of the rows. For a smooth loss, with the default
    step, this is gradient descent.

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
        As for :class:`Sdca`; an epoch is one step.
    class_weight, warm_start, keep_dual : optional
        As for :class:`Sdca`. Without dual values, a warm start goes on from ``coef_``.
    learning_rate : {"auto", "pegasos", "constant", "invscaling"}, default="auto"
        The length ``eta`` of step ``t``: ``1 / (lam t)``, ``eta0`` or
        ``eta0 / t**power_t``. "auto" is "pegasos" for a loss with kinks and "constant"
        for one without. For a loss without bounded slope "pegasos" is
        ``1 / (lam (t + t0))``, as for :class:`Pegasos`.
    eta0 : float, default=None
        At most ``1 / lam``. None is ``1 / (lam + R / gamma)``, with the largest
        eigenvalue ``R`` of ``X' C X / W`` (of the centred rows, if there is an
        intercept) and the bound ``1 / gamma`` of the curvature of the loss (1 if it
        has kinks).
    power_t : float, default=0.5
        The exponent of "invscaling", of (0, 1].
    output : {"best", "last", "average", "random"}, default="best"
        The iterate that is returned, and certified on the way. "average" and "random"
        are over those after ``T0``.
    average_from : float or int, default=0.5
        ``T0`` as a fraction of the run, of [0, 1), or as a number of steps, if an int
        of 1 or more.
    record_every : float, default=None
        As for :class:`Sdca`.
    n_jobs : int, default=None
        Number of threads, for large data or, from three classes on, for the classes;
        also for predictions. None is 1, -1 is one for each processor. The result does
        not depend on it.
    random_state : int, RandomState instance or None, default=None
        The seed of ``output="random"``.
    verbose, callback : optional
        As for :class:`Sdca`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), (n_classes, n_features) or (n_features,)
        ``w``, as for :class:`Sdca`.
    intercept_ : ndarray of shape (1,) or (n_classes,), or float
        ``b``, likewise.
    dual_coef_ : ndarray of shape (1, n_samples), (n_classes, n_samples) or (n_samples,)
        The dual point ``a`` of the certificate: the mean of the negative slopes that
        have led to ``coef_``, or those at ``coef_``, whichever bounds the optimum
        better; with ``output="best"`` the one with the highest bound so far.
    objective_, dual_objective_, duality_gap_, n_iter_, stop_reason_, history_
        As for :class:`Sdca`.
    classes_, n_features_in_, feature_names_in_
        As for :class:`Sdca`.

    See Also
    --------
    Sdca : The method to use.
    Pegasos : The same with the subgradient of a few rows at a time.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sdca_rs import Subgradient
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Subgradient(loss="absolute", C=10, tol=1e-2).fit(X, y)
    >>> model.stop_reason_
    'converged'
    """

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
        learning_rate: Literal["auto", "pegasos", "constant", "invscaling"] = "auto",
        eta0: float | None = None,
        power_t: float = 0.5,
        output: Literal["best", "last", "average", "random"] = "best",
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
        one_of("learning_rate", self.learning_rate, _LEARNING_RATES)
        one_of("output", self.output, _OUTPUTS)
        eta0 = self.eta0
        if eta0 is not None:
            eta0 = as_number("eta0", eta0, "a number > 0, or None")
        return Solver.subgradient(
            learning_rate=None if is_auto(self.learning_rate) else self.learning_rate,
            eta0=eta0,
            power_t=as_number("power_t", self.power_t, "a number of (0, 1]"),
            output=None if self.output == "best" else self.output,
            average_from=as_start("average_from", self.average_from),
            seed=seed,
            n_threads=n_threads,
        )
