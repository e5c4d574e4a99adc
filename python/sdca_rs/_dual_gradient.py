"""The estimator of projected gradient ascent on the dual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sdca_rs._base import CertifiedLinearModel, as_start, choices, is_auto
from sdca_rs._core import Solver
from sdca_rs._data import as_number
from sdca_rs._score_history import Callback


class DualGradient(CertifiedLinearModel):
    """Linear model by projected gradient ascent on the dual, with a certificate.

    Minimises what :class:`Sdca` minimises, and is here to be compared with it. Each
    step moves all dual values at once, ::

        a_i = clip(a_i + step * (y_i - x_i @ w(a) - b))

    for losses whose conjugate is linear on an interval, such as "hinge", "absolute"
    and "quantile". For the others the conjugate is kept exact, which makes it the
    proximal form of the step. ``b`` keeps the sum of the dual values at 0.
    Deterministic, whatever the order of the rows.

    Read more in the user guide.

    Parameters
    ----------
    loss : str, default="hinge"
        What to minimise, by name; see :func:`sdca_rs.losses`.
    loss_param, C, lam, fit_intercept : optional
        As for :class:`Sdca`.
    tol : float, default=1e-4
        Stop when ``duality_gap_ <= tol * objective_``; 0 runs all epochs.
    max_iter, max_time : optional
        As for :class:`Sdca`; an epoch is one step.
    class_weight, warm_start, keep_dual : optional
        As for :class:`Sdca`.
    step : float or "auto", default="auto"
        The length of a step. Longer than ``2 lam W / lambda_max``, with the largest
        eigenvalue of ``X' C X`` (of the centred rows, if there is an intercept), it
        need not converge. "auto" estimates that eigenvalue by power iteration and
        shortens steps that turn out to be too long.
    output : {"last", "average", "random"}, default="last"
        The dual point that is returned, and certified on the way.
    average_from : float or int, default=0.5
        Where "average" and "random" start: a fraction of the run, of [0, 1), or a
        number of steps, if an int of 1 or more.
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
        The dual point ``a``, likewise.
    objective_, dual_objective_, duality_gap_, n_iter_, stop_reason_, history_
        As for :class:`Sdca`.
    classes_, n_features_in_, feature_names_in_
        As for :class:`Sdca`.

    See Also
    --------
    Sdca : The method to use. With ``sampling="cyclic"`` it is the coordinate ascent
        over the same box.

    Examples
    --------
    Both roads lead to the same optimum:

    >>> from sklearn.datasets import load_iris
    >>> from sdca_rs import DualGradient, Sdca
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> gradient = DualGradient(loss="hinge", C=0.1).fit(X, y)
    >>> coordinate = Sdca(loss="hinge", C=0.1, sampling="cyclic").fit(X, y)
    >>> bool(gradient.objective_ - coordinate.dual_objective_ < 2e-4)
    True
    """

    def __init__(
        self,
        loss: str = "hinge",
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
        step: float | Literal["auto"] = "auto",
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
        self.step = step
        self.output = output
        self.average_from = average_from
        self.record_every = record_every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _solver(self, seed: int, n_threads: int) -> Solver:
        step = None
        if not is_auto(self.step):
            step = as_number("step", self.step, 'a finite number > 0, or "auto"')
        return Solver.dual_gradient(
            step=step,
            **choices(output=self.output),
            average_from=as_start("average_from", self.average_from),
            seed=seed,
            n_threads=n_threads,
        )
