"""The estimator of stochastic dual coordinate ascent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sdca_rs._base import CertifiedLinearModel, as_start, choices
from sdca_rs._core import Solver
from sdca_rs._data import as_flag
from sdca_rs._score_history import Callback


class Sdca(CertifiedLinearModel):
    """Linear model by stochastic dual coordinate ascent, with a certificate.

    Minimises, for rows ``x_i``, targets ``y_i`` and weights ``c_i`` with sum ``W``, ::

        P(w, b) = (1/W) sum_i c_i loss(x_i @ w + b, y_i) + (lam/2) |w|^2

    with ``lam = 1 / (C W)``. The fit ends when the duality gap, recomputed from all
    rows, proves that ``P`` is within ``tol`` of the best possible value, relative to
    itself. The loss decides what the estimator is: a classifier (one-vs-rest for more
    than two classes) or a regressor.

    Read more in the user guide.

    Parameters
    ----------
    loss : str, default="hinge"
        What to minimise, by name: "hinge" is the support vector machine, "log"
        logistic regression, "squared" ridge regression, "quantile" quantile
        regression. :func:`sdca_rs.losses` lists all with their formulas. The names
        that scikit-learn has for them are taken as well.
    loss_param : float, default=None
        The shape parameter of a loss that has one, such as the width of a Huber loss
        or the quantile of "quantile"; :func:`sdca_rs.losses` names it and the default.
    C : float, default=1.0
        Inverse strength of regularisation, as in scikit-learn:
        ``C sum_i c_i loss_i + |w|^2 / 2`` has the same minimiser.
    lam : float, default=None
        The strength ``lam`` itself. Excludes ``C``.
    fit_intercept : bool, default=True
        Whether to fit ``b``, exactly and without regularising it. Otherwise it is 0.
    tol : float, default=1e-4
        Stop when ``duality_gap_ <= tol * objective_``; 0 runs all epochs. On small data
        (such as 150 rows of 4 columns or 60 of 30) a fit goes on for up to a few
        milliseconds, which usually makes it exact to rounding, unless
        ``output`` or a warm start is asked for.
    max_iter : int, default=1000
        Stop after this many epochs, each of as many visits as there are rows. An
        iteration of Newton's method (see ``accelerate``) counts as two epochs.
    max_time : float, default=None
        Stop after this many seconds; several classes share them. The only parameter
        that can make results differ between runs.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows. "balanced" gives every class the
        same total weight; a class of weight 0 is absent.
    warm_start : bool, default=False
        Start from the dual values of the previous fit, which must have had the same
        rows and classes. Loss, regularisation and targets may differ.
    keep_dual : bool, default=True
        Whether to store ``dual_coef_``: as many numbers as there are rows, for each
        class, which most of a pickle may be made of. Without it, predictions and
        certificate are the same; :func:`certify` needs a fit of its own, and a warm
        start is refused.
    sampling : {"permutation", "random", "cyclic"}, default="permutation"
        The rows of an epoch: all in a new random order, as many drawn with
        replacement, or all in the order of the data, which can be very slow.
    output : {"last", "average", "random"}, default="last"
        The dual point that is returned, and certified on the way: the last one, the
        mean of those after ``T0``, or one drawn from those after ``T0``. The last two
        are those of the theorems; they need the memory of a few more dual points.
    average_from : float or int, default=0.5
        ``T0`` as a fraction of the run, of [0, 1), or as a number of steps, if an int
        of 1 or more.
    first_epoch : {"auto", "sdca", "sgd"}, default="auto"
        How a cold start goes through its first epoch: like all others, or by modified
        SGD, which helps if regularisation is strong. "auto" takes it if ``C`` times
        the mean of ``|x_i|^2`` (of the centred rows, if there is an intercept) is at
        most 0.1.
    accelerate : bool, default=True
        Whether rows whose dual values have come to rest are visited less often and, if
        ``tol > 0`` and the gap falls too slowly, passes get momentum, an outer loop of
        proximal point steps is put around them, or Newton's method takes over. That
        makes many fits several times shorter, and does not touch the certificate.
        ``history_`` tells when the latter two were at work. False follows the published
        algorithm exactly, as do ``sampling="random"`` and any ``output`` but "last".
    record_every : float, default=None
        Evaluate the gap after every multiple of this many epochs, which may be a
        fraction such as 0.01, and add it to ``history_``, for studies of convergence.
        None records the evaluations that the solver itself makes, which are spaced so
        that they cost little. It changes nothing else: the result has the same bits.
    n_jobs : int, default=None
        Number of classes fitted at the same time or, if there is but one problem, of
        threads that share evaluations and the Newton's method of ``accelerate`` on
        large data; also of threads that share predictions. None is 1, -1 is one for
        each processor. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        The seed of the order of the rows: an int is the seed itself. The same seed
        gives the same bits.
    verbose : int or bool, default=0
        1 or True shows how far the fit has come: in a terminal or notebook, if tqdm is
        installed, one live line with the gap and an estimate of the time left, and
        elsewhere at most one line per second. 2 prints at most ten lines per second.
    callback : callable or ScoreHistory, default=None
        Called with a :class:`sdca_rs.Progress` at each evaluation of the gap; a true
        answer stops the fit. With ``n_jobs`` it is called from several threads. A
        :class:`sdca_rs.ScoreHistory` adds scores on held-out rows to ``history_``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), (n_classes, n_features) or (n_features,)
        ``w``: of a classifier for two classes, for more, and of a regressor.
    intercept_ : ndarray of shape (1,) or (n_classes,), or float
        ``b``, likewise.
    dual_coef_ : ndarray of shape (1, n_samples), (n_classes, n_samples) or (n_samples,)
        The dual point ``a``, likewise. It defines ``coef_``,
        ``w = sum_i c_i a_i x_i / (lam W)``, except where the outer loop or the Newton's
        method of ``accelerate`` has a ``w`` of its own and the one of ``a`` is not
        within ``tol``; the two then differ by ``sqrt(2 duality_gap_ / lam)`` at most.
        With ``keep_dual=False`` there is none.
    objective_ : float or ndarray of shape (n_classes,)
        ``P`` at the fitted model. From three classes on, this and the following hold
        one entry for each class.
    dual_objective_ : float or ndarray
        ``D`` at ``dual_coef_``: no model has a smaller objective.
    duality_gap_ : float or ndarray
        ``objective_ - dual_objective_``.
    n_iter_ : int
        Epochs done, of the class that took most; see ``max_iter``.
    stop_reason_ : str or ndarray
        "converged", "max_iter", "max_time", "callback", "perfect" (objective and gap
        are 0 up to rounding, which keeps their ratio above ``tol``), or "precision"
        (rounding keeps ``P`` and ``D`` where they are, short of ``tol``: more epochs
        would not help).
    history_ : dict of ndarray, or a list of such dicts
        All evaluations: epoch, seconds (of work, evaluations left out), cpu_seconds
        (of processor time), primal, dual, gap, support (number of dual values other
        than zero), and phase, what the steps before it were: "plain" (coordinate
        ascent), "sgd" (a first epoch), "momentum", "proximal" (the outer loop) or
        "newton". A :class:`sdca_rs.ScoreHistory` adds its scores.
    classes_ : ndarray of shape (n_classes,)
        The classes; classifiers only.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if all are strings.

    See Also
    --------
    SdcaClassifier, SdcaRegressor : The same for one task each, with types for it.
    certify : The certificate of any fitted linear model.
    sklearn.svm.LinearSVC : Regularises the intercept; stops without a certificate.
    sklearn.linear_model.LogisticRegression : The loss "log" by other methods.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, Stochastic dual coordinate ascent methods for
    regularized loss minimization, Journal of Machine Learning Research 14, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sdca_rs import Sdca
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svm = make_pipeline(StandardScaler(), Sdca(loss="hinge", random_state=0))
    >>> svm.fit(X, y).score(X, y) > 0.98
    True
    >>> svm[-1].stop_reason_
    'converged'
    >>> bool(svm[-1].duality_gap_ <= 1e-4 * svm[-1].objective_)
    True

    A regressor, because of its loss:

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> upper = Sdca(loss="quantile", loss_param=0.9, random_state=0).fit(X, y)
    >>> float((y <= upper.predict(X)).mean().round(2))
    0.9
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
        sampling: Literal["permutation", "random", "cyclic"] = "permutation",
        output: Literal["last", "average", "random"] = "last",
        average_from: float = 0.5,
        first_epoch: Literal["auto", "sdca", "sgd"] = "auto",
        accelerate: bool = True,
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
        self.sampling = sampling
        self.output = output
        self.average_from = average_from
        self.first_epoch = first_epoch
        self.accelerate = accelerate
        self.record_every = record_every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _solver(self, seed: int, n_threads: int) -> Solver:
        return Solver.sdca(
            **choices(
                sampling=self.sampling,
                output=self.output,
                first_epoch=self.first_epoch,
            ),
            average_from=as_start("average_from", self.average_from),
            accelerate=as_flag("accelerate", self.accelerate),
            seed=seed,
            n_threads=n_threads,
        )
