"""Sufficient numbers of iterations: what the theorems promise, from the data.

All functions are about the minimum over ``w`` of ::

    P(w) = (1/n) sum_i phi_i(x_i @ w) + (lam/2) |w|^2

for convex losses ``phi_i``, without weights and without an intercept, from the start
``w = 0`` (all dual values 0). Of the problem they need

* ``n_samples``: the number ``n`` of rows;
* ``radius``: an upper bound ``R`` of the norms ``|x_i|``,
  ``sklearn.utils.extmath.row_norms(X).max()``;
* ``lam``: the strength of regularisation; ``lam = 1 / (C n)``;
* ``eps``: how close to the minimum to come, in the units of ``P`` (the ``tol`` of the
  estimators is relative to ``P``);
* ``lipschitz``: ``L`` with ``|phi(p) - phi(q)| <= L |p - q|``, or ``gamma`` such that
  the slope of ``phi`` is ``1/gamma``-Lipschitz. The page on the mathematics lists both
  for every loss of the package;
* ``initial_gap``: an upper bound ``g`` of the duality gap at the start, which is the
  mean of ``phi_i(0) - min phi_i``. The default 1 holds for all losses for classes. For
  regression it depends on the targets: ``abs(y).mean()`` for "absolute",
  ``(y**2).mean() / 2`` for "squared".

A row ``x`` under a loss of constant ``L`` is the row ``L x`` under one of constant 1.
So formulas that were published for ``R = 1`` or ``L = 1`` hold for all ``R`` and ``L``
once these two are put in as the product ``L R``, and ``gamma`` as ``gamma / R^2``.

The numbers are sufficient in expectation (or with the stated probability) over the
random choice of rows, for the worst data there may be. Most fits need far fewer, and
their certificates say so.

References
----------
S. Shalev-Shwartz and T. Zhang, Stochastic dual coordinate ascent methods for
regularized loss minimization, Journal of Machine Learning Research 14, 2013.

S. Shalev-Shwartz and T. Zhang, Accelerated mini-batch stochastic dual coordinate
ascent, Advances in Neural Information Processing Systems 26, 2013.

S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, Pegasos: primal estimated
sub-gradient solver for SVM, Mathematical Programming 127, 2011.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sdca_rs._base import positive_count
from sdca_rs._core import (
    theory_asdca,
    theory_asdca_theta,
    theory_pegasos,
    theory_sdca_lipschitz,
    theory_sdca_lipschitz_summary,
    theory_sdca_sgd,
    theory_sdca_smooth,
    theory_sdca_smooth_averaged,
)
from sdca_rs._data import as_count, as_flag, as_number

__all__ = [
    "AveragedRun",
    "asdca_iterations",
    "asdca_theta",
    "pegasos_iterations",
    "sdca_lipschitz_iterations",
    "sdca_lipschitz_summary",
    "sdca_sgd_iterations",
    "sdca_smooth_averaged_iterations",
    "sdca_smooth_iterations",
]


class AveragedRun(NamedTuple):
    """How long to run, and which iterates to average.

    The output is the mean of the iterates before the steps ``T0 + 1, ..., T``, or one
    of them drawn uniformly.

    Attributes
    ----------
    iterations : int
        ``T``: steps in all, each for one row.
    average_from_step : int
        ``T0``.

    Examples
    --------
    >>> from sdca_rs.theory import AveragedRun
    >>> AveragedRun(iterations=1000, average_from_step=700).average_from
    0.7
    """

    iterations: int
    average_from_step: int

    @property
    def average_from(self) -> float:
        """``T0 / T``, as :class:`sdca_rs.Sdca` wants it.

        A longer run with the same share is sufficient, too: both of its parts are
        longer. So ``T`` may be rounded up to whole epochs.
        """
        return self.average_from_step / self.iterations


def sdca_lipschitz_iterations(
    n_samples: int,
    *,
    lam: float,
    eps: float,
    lipschitz: float = 1.0,
    radius: float = 1.0,
    initial_gap: float = 1.0,
    average_from: float | None = None,
) -> AveragedRun:
    """Bound the iterations of SDCA for a Lipschitz loss and an averaged output.

    The expected duality gap of the output is at most ``eps`` if, with ``G = 4 L^2 R^2``
    and ``t0 = max(0, ceil(n log(2 lam n g / G)))``, ::

        T0 >= t0,   T - T0 >= n,
        (G / (2 lam)) (4 / (2 n + T0 - t0) + 1 / (T - T0)) <= eps.

    The theorem gives half of ``eps`` to either term.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    lam : float
        Strength of regularisation.
    eps : float
        Duality gap to reach.
    lipschitz : float, default=1.0
        Lipschitz constant ``L`` of the loss.
    radius : float, default=1.0
        Largest norm of a row.
    initial_gap : float, default=1.0
        Upper bound ``g`` of the duality gap at the start.
    average_from : float, default=None
        ``T0 / T``, above 0 and below 1, for which to find the smallest ``T``. None
        takes ``T0`` and ``T`` from the theorem.

    Returns
    -------
    AveragedRun
        ``T`` and ``T0``.

    See Also
    --------
    sdca_lipschitz_summary : The simpler, larger bound that is mostly quoted.
    sdca_sgd_iterations : After a first epoch by modified SGD.

    Notes
    -----
    These are the conditions behind Theorem 1 of the reference, for any ``R`` and any
    initial gap; the page on the mathematics derives them. Rows are drawn uniformly with
    replacement: ``sampling="random"``.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Stochastic dual coordinate ascent methods for
    regularized loss minimization, Journal of Machine Learning Research 14, 2013.

    Examples
    --------
    >>> from sdca_rs.theory import sdca_lipschitz_iterations
    >>> sdca_lipschitz_iterations(452, lam=0.05, eps=1e-3)
    AveragedRun(iterations=400193, average_from_step=320193)

    A fit of that length reaches its ``eps``:

    >>> from math import ceil
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import normalize, scale
    >>> from sdca_rs import Sdca
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, n = normalize(scale(X)), len(X)
    >>> run = sdca_lipschitz_iterations(n, lam=0.1, eps=0.01)
    >>> fit = Sdca(
    ...     "hinge", lam=0.1, fit_intercept=False, sampling="random", output="average",
    ...     first_epoch="sdca", average_from=run.average_from, tol=0,
    ...     max_iter=ceil(run.iterations / n), random_state=0,
    ... ).fit(X, y)
    >>> bool(fit.duality_gap_ <= 0.01)
    True
    """
    return AveragedRun(
        *theory_sdca_lipschitz(
            positive_count("n_samples", n_samples),
            _setting(lam, eps, radius, initial_gap),
            _number("lipschitz", lipschitz),
            _share(average_from, "a number in (0, 1), or None"),
        )
    )


def sdca_lipschitz_summary(
    n_samples: int,
    *,
    lam: float,
    eps: float,
    lipschitz: float = 1.0,
    radius: float = 1.0,
    initial_gap: float = 1.0,
) -> AveragedRun:
    """Bound the iterations of SDCA for a Lipschitz loss in the form mostly quoted.

    ::

        T = n + max(0, ceil(n log(lam n g / (2 L^2 R^2)))) + 20 L^2 R^2 / (lam eps)

    It is the theorem of :func:`sdca_lipschitz_iterations` without the ``2 n`` steps
    that are saved there.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    lam : float
        Strength of regularisation.
    eps : float
        Duality gap to reach.
    lipschitz : float, default=1.0
        Lipschitz constant ``L`` of the loss.
    radius : float, default=1.0
        Largest norm of a row.
    initial_gap : float, default=1.0
        Upper bound ``g`` of the duality gap at the start.

    Returns
    -------
    AveragedRun
        ``T`` and ``T0``.

    See Also
    --------
    sdca_lipschitz_iterations : The theorem itself.

    Notes
    -----
    This is Theorem 1 of the reference, which has ``R = 1`` and ``g = 1``.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Stochastic dual coordinate ascent methods for
    regularized loss minimization, Journal of Machine Learning Research 14, 2013.

    Examples
    --------
    >>> from sdca_rs.theory import sdca_lipschitz_summary
    >>> sdca_lipschitz_summary(452, lam=0.05, eps=1e-3).iterations
    401549
    >>> sdca_lipschitz_summary(48842, lam=0.1, eps=1e-3).iterations
    629840
    """
    return AveragedRun(
        *theory_sdca_lipschitz_summary(
            positive_count("n_samples", n_samples),
            _setting(lam, eps, radius, initial_gap),
            _number("lipschitz", lipschitz),
        )
    )


def sdca_sgd_iterations(
    n_samples: int,
    *,
    lam: float,
    eps: float,
    lipschitz: float = 1.0,
    radius: float = 1.0,
    average_from: float | None = None,
) -> AveragedRun:
    """Bound the iterations of SDCA for a Lipschitz loss that begins by modified SGD.

    That epoch leaves the dual objective ``2 L^2 R^2 log(e n) / (lam n)`` below its
    maximum, or less. From there the bound is that of :func:`sdca_lipschitz_iterations`,
    whose ``t0`` becomes ``ceil(n log(log(e n)))``. ``T`` and ``T0`` count the first
    epoch as ``n`` iterations.

    It is the smaller bound if ``lam n`` is large beside ``L^2 R^2 log(e n)``.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    lam : float
        Strength of regularisation.
    eps : float
        Duality gap to reach.
    lipschitz : float, default=1.0
        Lipschitz constant ``L`` of the loss.
    radius : float, default=1.0
        Largest norm of a row.
    average_from : float, default=None
        ``T0 / T``, above 0 and below 1, for which to find the smallest ``T``. None
        takes ``T0`` and ``T`` from the theorem.

    Returns
    -------
    AveragedRun
        ``T`` and ``T0``.

    See Also
    --------
    sdca_lipschitz_iterations : Without modified SGD.

    Notes
    -----
    This is the theorem of the reference on SDCA that starts from modified SGD, for any
    ``R``. It assumes that the rows were drawn independently from one distribution, and
    its expectation is over them as well. The estimator does it with
    ``first_epoch="sgd", sampling="random"``.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Stochastic dual coordinate ascent methods for
    regularized loss minimization, Journal of Machine Learning Research 14, 2013.

    Examples
    --------
    >>> from sdca_rs.theory import sdca_lipschitz_iterations, sdca_sgd_iterations
    >>> sdca_sgd_iterations(48842, lam=0.1, eps=1e-3).iterations
    280532
    >>> sdca_lipschitz_iterations(48842, lam=0.1, eps=1e-3).iterations
    492156
    """
    return AveragedRun(
        *theory_sdca_sgd(
            positive_count("n_samples", n_samples),
            _setting(lam, eps, radius),
            _number("lipschitz", lipschitz),
            _share(average_from, "a number in (0, 1), or None"),
        )
    )


def sdca_smooth_iterations(
    n_samples: int,
    *,
    lam: float,
    eps: float,
    gamma: float,
    radius: float = 1.0,
    initial_gap: float = 1.0,
) -> int:
    """Bound the iterations of SDCA for a smooth loss and its last iterate.

    With ``k = n + R^2 / (lam gamma)``, the expected duality gap after ``T`` steps is at
    most ``k g exp(-T / k)``, and so at most ``eps`` for ::

        T >= k log(k g / eps).

    Parameters
    ----------
    n_samples : int
        Number of rows.
    lam : float
        Strength of regularisation.
    eps : float
        Duality gap to reach.
    gamma : float
        The slope of the loss is ``1/gamma``-Lipschitz.
    radius : float, default=1.0
        Largest norm of a row.
    initial_gap : float, default=1.0
        Upper bound ``g`` of the duality gap at the start.

    Returns
    -------
    int
        ``T``: steps, each for one row; 0 if the start is good enough.

    See Also
    --------
    sdca_smooth_averaged_iterations : The mean of the last iterates, or one of them.

    Notes
    -----
    This is Theorem 2 of the reference, for any ``R`` and any initial gap. Rows are
    drawn uniformly with replacement: ``sampling="random"``.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Stochastic dual coordinate ascent methods for
    regularized loss minimization, Journal of Machine Learning Research 14, 2013.

    Examples
    --------
    The loss "log" has ``gamma = 4`` and starts with a gap of ``log(2)``.

    >>> from sdca_rs.theory import sdca_smooth_iterations
    >>> sdca_smooth_iterations(1000, lam=0.01, eps=1e-3, gamma=4, initial_gap=0.6932)
    13811
    """
    return theory_sdca_smooth(
        positive_count("n_samples", n_samples),
        _setting(lam, eps, radius, initial_gap),
        _number("gamma", gamma),
    )


def sdca_smooth_averaged_iterations(
    n_samples: int,
    *,
    lam: float,
    eps: float,
    gamma: float,
    radius: float = 1.0,
    initial_gap: float = 1.0,
    average_from: float | None = None,
) -> AveragedRun:
    """Bound the iterations of SDCA for a smooth loss and an averaged output.

    With ``k = n + R^2 / (lam gamma)``, the expected duality gap of the output is at
    most ``eps`` if ::

        T > T0 >= k log(k g / ((T - T0) eps)).

    ``T`` is smallest for ``T - T0 = k``: then it is ``k (1 + log(g / eps))``.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    lam : float
        Strength of regularisation.
    eps : float
        Duality gap to reach.
    gamma : float
        The slope of the loss is ``1/gamma``-Lipschitz.
    radius : float, default=1.0
        Largest norm of a row.
    initial_gap : float, default=1.0
        Upper bound ``g`` of the duality gap at the start.
    average_from : float, default=None
        ``T0 / T``, at least 0 and below 1, for which to find the smallest ``T``. None
        takes the best one.

    Returns
    -------
    AveragedRun
        ``T`` and ``T0``.

    See Also
    --------
    sdca_smooth_iterations : The last iterate.

    Notes
    -----
    This is the second part of Theorem 2 of the reference, for any ``R`` and any initial
    gap. Rows are drawn uniformly with replacement: ``sampling="random"``.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Stochastic dual coordinate ascent methods for
    regularized loss minimization, Journal of Machine Learning Research 14, 2013.

    Examples
    --------
    >>> from sdca_rs.theory import sdca_smooth_averaged_iterations
    >>> sdca_smooth_averaged_iterations(1000, lam=0.01, eps=1e-3, gamma=4)
    AveragedRun(iterations=8106, average_from_step=7081)
    >>> run = sdca_smooth_averaged_iterations(
    ...     1000, lam=0.01, eps=1e-3, gamma=4, average_from=0.5
    ... )
    >>> run.iterations, run.average_from
    (10762, 0.5)
    """
    return AveragedRun(
        *theory_sdca_smooth_averaged(
            positive_count("n_samples", n_samples),
            _setting(lam, eps, radius, initial_gap),
            _number("gamma", gamma),
            _share(average_from, "a number in [0, 1), or None"),
        )
    )


def asdca_theta(
    n_samples: int,
    *,
    batch_size: int,
    lam: float,
    gamma: float,
    radius: float = 1.0,
) -> float:
    """Return the step parameter ``theta`` of accelerated mini-batch SDCA.

    With ``m`` rows in a batch and ``s = gamma lam n / R^2``, ::

        theta = (1/4) min(1, sqrt(s / m), s).

    Parameters
    ----------
    n_samples : int
        Number ``n`` of rows.
    batch_size : int
        Number ``m`` of rows in a batch, at most ``n``.
    lam : float
        Strength of regularisation.
    gamma : float
        The slope of the loss is ``1/gamma``-Lipschitz.
    radius : float, default=1.0
        Largest norm of a row.

    Returns
    -------
    float
        ``theta``, above 0 and at most 1/4.

    See Also
    --------
    asdca_iterations : How many batches suffice with it.

    Notes
    -----
    This is the rule of the reference, for any ``R``. Its fourth term
    ``s^(2/3) / m^(1/3)`` is ``sqrt(s / m)^(2/3) s^(1/3)``: a mean of two others, and so
    never smaller than both.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Accelerated mini-batch stochastic dual
    coordinate ascent, Advances in Neural Information Processing Systems 26, 2013.

    Examples
    --------
    >>> from sdca_rs.theory import asdca_theta
    >>> asdca_theta(10_000, batch_size=100, lam=1e-4, gamma=1)
    0.025
    """
    n = positive_count("n_samples", n_samples)
    return theory_asdca_theta(
        n,
        _batch(batch_size, n),
        _number("lam", lam),
        _number("gamma", gamma),
        _number("radius", radius),
    )


def asdca_iterations(
    n_samples: int,
    *,
    batch_size: int,
    lam: float,
    eps: float,
    gamma: float,
    radius: float = 1.0,
    initial_gap: float = 1.0,
) -> int:
    """Bound the iterations of accelerated mini-batch SDCA for a smooth loss.

    With ``theta`` of :func:`asdca_theta` and batches of ``m`` rows, the expectation of
    ``P(w) - min P`` after ``T`` batches is at most ``(1 - theta m / n)^T g``, and so at
    most ``eps`` for ::

        T >= n / (theta m) log(g / eps).

    Parameters
    ----------
    n_samples : int
        Number ``n`` of rows.
    batch_size : int
        Number ``m`` of rows in a batch, at most ``n``.
    lam : float
        Strength of regularisation.
    eps : float
        Distance of ``P`` from its minimum to reach.
    gamma : float
        The slope of the loss is ``1/gamma``-Lipschitz.
    radius : float, default=1.0
        Largest norm of a row.
    initial_gap : float, default=1.0
        Upper bound ``g`` of the duality gap at the start, where it is
        ``P - min P + max D - D``.

    Returns
    -------
    int
        ``T``: batches; ``T m / n`` is the number of epochs. 0 if the start is good
        enough.

    Notes
    -----
    This is the theorem of the reference, for any ``R`` and any initial gap.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Accelerated mini-batch stochastic dual
    coordinate ascent, Advances in Neural Information Processing Systems 26, 2013.

    Examples
    --------
    If ``lam n`` is small, batches that many processors can share cost little beyond
    the factor 4 of ``theta``: here in steps of 1 row, of 1 and of 100.

    >>> from sdca_rs.theory import asdca_iterations, sdca_smooth_iterations
    >>> problem = {"lam": 1e-6, "eps": 1e-3, "gamma": 1}
    >>> sdca_smooth_iterations(10_000, **problem)
    20940549
    >>> asdca_iterations(10_000, batch_size=1, **problem)
    27631022
    >>> asdca_iterations(10_000, batch_size=100, **problem)
    276311
    """
    n = positive_count("n_samples", n_samples)
    return theory_asdca(
        n,
        _batch(batch_size, n),
        _setting(lam, eps, radius, initial_gap),
        _number("gamma", gamma),
    )


def pegasos_iterations(
    *,
    lam: float,
    eps: float,
    lipschitz: float = 1.0,
    radius: float = 1.0,
    project: bool = False,
    initial_gap: float = 1.0,
    delta: float | None = None,
) -> int:
    """Bound the iterations of Pegasos for a Lipschitz loss.

    They depend neither on the number of rows nor on the size of the batches. With ::

        c = 4 L^2 R^2               without projection,
        c = (sqrt(lam g) + L R)^2   if each iterate is projected to |w|^2 <= g / lam,

    the expectation of ``P - min P``, at the mean of the iterates before the steps
    ``1, ..., T`` or at one of them drawn uniformly, is at most ::

        c (1 + log(T)) / (2 lam T),

    and with probability ``1 - delta`` at least half of these iterates have
    ``P - min P`` at most ::

        42 c log(T / delta) / (lam T).

    Parameters
    ----------
    lam : float
        Strength of regularisation.
    eps : float
        Distance of ``P`` from its minimum to reach.
    lipschitz : float, default=1.0
        Lipschitz constant ``L`` of the loss.
    radius : float, default=1.0
        Largest norm of a row.
    project : bool, default=False
        Whether each iterate is projected to the ball. It contains the minimiser.
    initial_gap : float, default=1.0
        Upper bound ``g`` of the duality gap at ``w = 0``, on which the ball depends;
        with ``delta`` it must bound ``phi_i(0) - min phi_i`` of every row.
    delta : float, default=None
        None takes the bound in expectation. A number, above 0 and below 1, takes the
        other one.

    Returns
    -------
    int
        The smallest ``T`` from which on the bound is at most ``eps``.

    Notes
    -----
    The reference has both for the hinge, where ``L = 1`` and ``g = 1``. The first
    follows from subgradients of norm at most ``sqrt(c)``: without projection all
    iterates have ``lam |w| <= L R``, and in the ball ``lam |w| <= sqrt(lam g)``. The
    minimiser ``w*`` is in the ball because ``P`` is strongly
    convex and at least ``(lam/2) |w|^2`` above ``D`` of the start, so that
    ``g >= (P(0) - P(w*)) + (P(w*) - D) >= lam |w*|^2``.

    The second is stated for ``R >= 1`` and ``lam <= 1/4``. Replacing ``w`` by a
    multiple of it changes ``R^2`` and ``lam`` alike and nothing else, and ``R`` may be
    any upper bound. So what it needs is ``L R >= 2 sqrt(lam g)``, and a smaller
    ``L R`` is raised to that.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, Pegasos: primal
    estimated sub-gradient solver for SVM, Mathematical Programming 127, 2011.

    Examples
    --------
    >>> from sdca_rs.theory import pegasos_iterations
    >>> pegasos_iterations(lam=0.05, eps=1e-3)
    570146
    >>> pegasos_iterations(lam=0.05, eps=1e-3, project=True)
    197538
    >>> pegasos_iterations(lam=0.05, eps=1e-3, project=True, delta=0.1)
    24282713
    """
    expected = "a number above 0 and below 1, or None"
    return theory_pegasos(
        _setting(lam, eps, radius, initial_gap),
        _number("lipschitz", lipschitz),
        as_flag("project", project),
        None if delta is None else as_number("delta", delta, expected),
    )


def _setting(
    lam: Any, eps: Any, radius: Any, initial_gap: Any = 1.0
) -> tuple[float, float, float, float]:
    return (
        _number("lam", lam),
        _number("eps", eps),
        _number("radius", radius),
        _number("initial_gap", initial_gap),
    )


def _number(name: str, value: Any) -> float:
    return as_number(name, value, "a finite number > 0")


def _share(average_from: Any, expected: str) -> float | None:
    if average_from is None:
        return None
    return as_number("average_from", average_from, expected)


def _batch(batch_size: Any, n: int) -> int:
    return as_count("batch_size", batch_size, f"an integer from 1 to n_samples={n}")
