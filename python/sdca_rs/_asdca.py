"""The estimator of accelerated mini-batch SDCA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sdca_rs._base import (
    CertifiedLinearModel,
    as_start,
    choices,
    is_auto,
    positive_count,
)
from sdca_rs._core import Solver
from sdca_rs._data import as_number
from sdca_rs._score_history import Callback


class Asdca(CertifiedLinearModel):
    """Linear model by accelerated mini-batch SDCA, with a certificate.

    Minimises what :class:`Sdca` minimises, for the smooth losses only: a loss with
    kinks is refused. Each step changes the dual values of ``batch_size`` rows at once,
    all from the same model, which threads can share. On one thread :class:`Sdca` is
    the faster one.

    Read more in the user guide.

    Parameters
    ----------
    loss : str, default="smooth_hinge"
        What to minimise, by name: one of "squared_hinge", "smooth_hinge", "log",
        "modified_huber", "squared", "huber" and "squared_epsilon_insensitive".
    loss_param, C, lam, fit_intercept : optional
        As for :class:`Sdca`.
    tol : float, default=1e-4
        Stop when ``duality_gap_ <= tol * objective_``, as for :class:`Sdca`.
    max_iter : int, default=10000
        Stop after this many epochs, each of which visits as many rows as there are.
    max_time : float, default=None
        As for :class:`Sdca`.
    class_weight, warm_start, keep_dual : optional
        As for :class:`Sdca`.
    batch_size : int, default=100
        Rows changed in a step, at most all.
    sampling : {"random", "permutation", "cyclic"}, default="random"
        Draw the different rows of each batch anew, as the theorem wants it, or cut each
        epoch, in a new random order or in the order of the data, into batches.
    theta : float or "auto", default="auto"
        The weight of the new in a step, of (0, 1]. "auto" is the theorem's choice,
        :func:`sdca_rs.theory.asdca_theta`.
    output : {"last", "average", "random"}, default="last"
        What is returned, and certified on the way: the last model and dual point, or
        the mean of the dual points after ``T0`` or one drawn from them, with its model.
    average_from : float or int, default=0.5
        ``T0`` as a fraction of the run, of [0, 1), or as a number of steps, if an int
        of 1 or more.
    record_every : float, default=None
        As for :class:`Sdca`.
    n_jobs : int, default=None
        Number of threads, for large batches or, from three classes on, for the classes;
        also for predictions. None is 1, -1 is one for each processor. The result does
        not depend on it.
    random_state, verbose, callback : optional
        As for :class:`Sdca`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), (n_classes, n_features) or (n_features,)
        ``w``, as for :class:`Sdca`.
    intercept_ : ndarray of shape (1,) or (n_classes,), or float
        ``b``, the best one for this ``w``.
    dual_coef_ : ndarray of shape (1, n_samples), (n_classes, n_samples) or (n_samples,)
        The dual point ``a`` of the certificate. With ``output="last"``, ``coef_`` lags
        behind its model.
    objective_, dual_objective_, duality_gap_, n_iter_, stop_reason_, history_
        As for :class:`Sdca`.
    classes_, n_features_in_, feature_names_in_
        As for :class:`Sdca`.

    See Also
    --------
    Sdca : The method for one row at a time, and for all losses.
    sdca_rs.theory.asdca_iterations : How many steps suffice.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Accelerated mini-batch stochastic dual coordinate
    ascent, Advances in Neural Information Processing Systems 26, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sdca_rs import Asdca
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = Asdca(loss="log", C=0.1, batch_size=10, random_state=0).fit(X, y)
    >>> model.stop_reason_
    'converged'
    >>> Asdca(loss="hinge").fit(X, y)
    Traceback (most recent call last):
        ...
    ValueError: loss: found "hinge", expected a smooth loss such as "smooth_hinge"
    """

    def __init__(
        self,
        loss: str = "smooth_hinge",
        *,
        loss_param: float | None = None,
        C: float = 1.0,
        lam: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        max_time: float | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        warm_start: bool = False,
        keep_dual: bool = True,
        batch_size: int = 100,
        sampling: Literal["random", "permutation", "cyclic"] = "random",
        theta: float | Literal["auto"] = "auto",
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
        self.theta = theta
        self.output = output
        self.average_from = average_from
        self.record_every = record_every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _solver(self, seed: int, n_threads: int) -> Solver:
        theta = None
        if not is_auto(self.theta):
            theta = as_number("theta", self.theta, 'a number of (0, 1], or "auto"')
        return Solver.asdca(
            batch_size=positive_count("batch_size", self.batch_size),
            theta=theta,
            **choices(sampling=self.sampling, output=self.output),
            average_from=as_start("average_from", self.average_from),
            seed=seed,
            n_threads=n_threads,
        )
