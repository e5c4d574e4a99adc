"""The solvers to compare, each set up for the same problem in its own parameters.

Ours is ``P(w) = mean(loss) + lam/2 |w|^2`` with ``lam = 1 / (C n)``, so that ``C n P``
is scikit-learn's and LIBLINEAR's ``C sum(loss) + |w|^2 / 2``. The others need:

- squared loss: ours is ``(p - y)^2 / 2``, so Ridge's ``alpha`` is ``1 / C``, and
  support vector regression, whose squared loss is not halved, gets ``C / 2``;
- absolute loss: support vector regression with ``epsilon = 0``;
- SGD: ``alpha = lam``; weights of the second half of the run are averaged, which is its
  best setting at equal passes; squared losses need the rate ``invscaling``;
- cyanure: ``lambda_1 = lam``; its squared hinge is half of ours: ``lam / 2``;
- Snap ML: ``regularizer = 1 / C``;
- skglm: ``L2(alpha=lam)``; its LinearSVC takes ``C``, and more and shorter subproblems
  than the default, which does not converge.

No solver fits an intercept. Only LIBLINEAR and SGD have the absolute loss with an L2
penalty: scikit-learn's QuantileRegressor and skglm's quantile regression have an L1
penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sets import Floats, Problem

from sdca_rs import Sdca

OURS = "sdca-rs"
SNAPML = "snapml"
# More would need more than 800 MB for the matrix of second derivatives.
MAX_HESSIAN_COLUMNS = 10_000


@dataclass(frozen=True)
class Fitted:
    """The result of a solver that is not an estimator."""

    coef_: Floats
    n_iter_: int | None = None


@dataclass(frozen=True)
class Peer:
    """A solver, and how to sweep it from loose to exact.

    Attributes
    ----------
    name, distribution : str
        Its display name and its name on PyPI.
    losses : mapping of str to str
        The losses that it can minimise: our name, its name.
    fit : callable
        Takes the problem, its own name of the loss, tolerance and limit of iterations;
        returns something with ``coef_`` and perhaps ``n_iter_``.
    sweep : {"tolerance", "iterations"}
        What is varied.
    bound : {"iterations", "alarm", "growth"}
        How a fit is kept within the cap: by its limit of iterations; also by an alarm,
        which interrupts Python loops; or by a prediction from earlier fits.
    needs_hessian : bool
        Whether it forms a matrix of columns times columns.
    through_liblinear : bool
        Whether this is LIBLINEAR through scikit-learn.
    """

    name: str
    distribution: str
    losses: Mapping[str, str]
    fit: Callable[[Problem, str, float, int], Any]
    sweep: Literal["tolerance", "iterations"] = "tolerance"
    bound: Literal["iterations", "alarm", "growth"] = "iterations"
    needs_hessian: bool = False
    through_liblinear: bool = False
    missing: str = field(init=False, default="")

    def __post_init__(self) -> None:
        try:
            metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            reason = f"not installed (pip install {self.distribution})"
            object.__setattr__(self, "missing", reason)

    def unfit(self, problem: Problem) -> str:
        """Return why it is not tried on a problem, or nothing."""
        columns = problem.X.shape[1]
        if self.needs_hessian and columns > MAX_HESSIAN_COLUMNS:
            return f"skipped: {columns} x {columns} matrix"
        return ""


def same(*names: str) -> dict[str, str]:
    """Return losses that a library names as we do."""
    return {name: name for name in names}


def sdca(n_jobs: int | None = None) -> Peer:
    """Ours, with default settings."""

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        return Sdca(
            loss=loss,
            C=problem.C,
            fit_intercept=False,
            tol=tol,
            max_iter=max_iter,
            n_jobs=n_jobs,
            random_state=0,
        ).fit(problem.X, problem.y)

    every = same("hinge", "squared_hinge", "log", "squared", "absolute")
    return Peer(_threaded(OURS, n_jobs), "sdca-rs", every, fit)


def _threaded(name: str, n_jobs: int | None) -> str:
    return name if n_jobs is None else f"{name}, {n_jobs} threads"


def linear_svc(dual: bool) -> Peer:
    """LIBLINEAR's support vector machines."""
    from sklearn.svm import LinearSVC

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        return LinearSVC(
            loss=loss,
            C=problem.C,
            dual=dual,
            fit_intercept=False,
            tol=tol,
            max_iter=max_iter,
            random_state=0,
        ).fit(problem.X, problem.y)

    offered = same("hinge", "squared_hinge") if dual else same("squared_hinge")
    name = f"LinearSVC {'dual' if dual else 'primal'}"
    return Peer(name, "scikit-learn", offered, fit, through_liblinear=True)


def linear_svr(dual: bool) -> Peer:
    """LIBLINEAR's support vector regression without a tube."""
    from sklearn.svm import LinearSVR

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        return LinearSVR(
            loss=loss,
            epsilon=0,
            C=problem.C / 2 if problem.loss == "squared" else problem.C,
            dual=dual,
            fit_intercept=False,
            tol=tol,
            max_iter=max_iter,
            random_state=0,
        ).fit(problem.X, problem.y)

    offered = {"squared": "squared_epsilon_insensitive"}
    if dual:
        offered["absolute"] = "epsilon_insensitive"
    name = f"LinearSVR {'dual' if dual else 'primal'}"
    return Peer(name, "scikit-learn", offered, fit, through_liblinear=True)


def logistic(solver: str, dual: bool = False) -> Peer:
    """scikit-learn's logistic regression."""
    from sklearn.linear_model import LogisticRegression

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        return LogisticRegression(
            solver=loss,
            C=problem.C,
            dual=dual,
            fit_intercept=False,
            tol=tol,
            max_iter=max_iter,
            random_state=0,
        ).fit(problem.X, problem.y)

    through_liblinear = solver == "liblinear"
    form = (" dual" if dual else " primal") if through_liblinear else ""
    return Peer(
        f"LogisticRegression {solver}{form}",
        "scikit-learn",
        {"log": solver},
        fit,
        bound="alarm" if solver in ("lbfgs", "newton-cholesky") else "iterations",
        needs_hessian=solver == "newton-cholesky",
        through_liblinear=through_liblinear,
    )


def ridge(solver: str) -> Peer:
    """scikit-learn's ridge regression."""
    from sklearn.linear_model import Ridge

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        return Ridge(
            alpha=1 / problem.C,
            solver=loss,
            fit_intercept=False,
            tol=tol,
            max_iter=max_iter,
            random_state=0,
        ).fit(problem.X, problem.y)

    exact = solver == "cholesky"
    return Peer(
        f"Ridge {solver}",
        "scikit-learn",
        {"squared": solver},
        fit,
        bound="growth" if exact else "iterations",
        needs_hessian=exact,
    )


def sgd() -> Peer:
    """scikit-learn's SGD, averaging the second half of its steps."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        classifies = problem.loss in ("hinge", "squared_hinge", "log")
        # The optimal rate diverges if gradients are unbounded.
        is_square = problem.loss in ("squared_hinge", "squared")
        kind = SGDClassifier if classifies else SGDRegressor
        return kind(
            loss=loss,
            alpha=problem.lam,
            epsilon=0,
            average=max(2, max_iter * len(problem.y) // 2),
            learning_rate="invscaling" if is_square else "optimal",
            eta0=0.01,
            fit_intercept=False,
            tol=None,
            max_iter=max_iter,
            random_state=0,
        ).fit(problem.X, problem.y)

    offered = same("hinge", "squared_hinge") | {
        "log": "log_loss",
        "squared": "squared_error",
        "absolute": "epsilon_insensitive",
    }
    return Peer("SGD averaged", "scikit-learn", offered, fit, sweep="iterations")


def liblinear(name: str, solvers: Mapping[str, str]) -> Peer:
    """LIBLINEAR through its own interface, which has no setting for the passes.

    It ends its dual methods after 300 passes and continues with a primal method if
    there is one for the same problem.
    """

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Fitted:
        from liblinear.liblinearutil import parameter, train
        from liblinear.liblinearutil import problem as as_problem

        C = problem.C / 2 if problem.loss == "squared" else problem.C
        options = parameter(f"-s {loss} -c {C!r} -e {tol!r} -p 0 -B -1 -q")
        # It reads a dense matrix entry by entry, in Python.
        model = train(as_problem(problem.y, sp.csr_matrix(problem.X)), options)
        coef = np.array(model.w[: model.nr_feature])
        # The first label in the data is the positive one.
        is_regression = problem.loss in ("squared", "absolute")
        return Fitted(coef if is_regression else coef * model.label[0])

    return Peer(name, "liblinear-official", solvers, fit, bound="growth")


def snap(model: str, losses: Mapping[str, str], dual: bool, n_jobs: int | None) -> Peer:
    """Snap ML, varying the number of passes."""

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        import snapml

        how: dict[str, Any] = (
            {"loss": loss} if model == "SupportVectorMachine" else {"dual": dual}
        )
        return getattr(snapml, model)(
            regularizer=1 / problem.C,
            fit_intercept=False,
            tol=0.0,
            max_iter=max_iter,
            n_jobs=n_jobs or 1,
            random_state=0,
            **how,
        ).fit(problem.X, problem.y)

    name = f"{SNAPML} {model} {'dual' if dual else 'primal'}"
    return Peer(_threaded(name, n_jobs), "snapml", losses, fit, sweep="iterations")


def snaps(n_jobs: int | None = None) -> list[Peer]:
    """All of Snap ML."""
    machine = same("hinge", "squared_hinge")
    return [
        snap("SupportVectorMachine", machine, True, n_jobs),
        snap("LogisticRegression", same("log"), True, n_jobs),
        snap("LogisticRegression", same("log"), False, n_jobs),
        snap("LinearRegression", same("squared"), True, n_jobs),
        snap("LinearRegression", same("squared"), False, n_jobs),
    ]


def cyanure(solver: str) -> Peer:
    """Cyanure: variance reduction, accelerated by extrapolation or quasi-Newton."""

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        from cyanure.estimators import Classifier, Regression

        common = {
            "penalty": "l2",
            "fit_intercept": False,
            "solver": solver,
            "tol": tol,
            "max_iter": max_iter,
            "verbose": False,
            "n_threads": 1,
        }
        if problem.loss == "squared":
            model = Regression(lambda_1=problem.lam, **common)
        else:
            factor = 1 / 2 if problem.loss == "squared_hinge" else 1
            model = Classifier(loss=loss, lambda_1=factor * problem.lam, **common)
        return model.fit(problem.X, problem.y)

    offered = {"squared_hinge": "sqhinge", "log": "logistic", "squared": "square"}
    return Peer(f"cyanure {solver}", "cyanure", offered, fit)


def skglm_svc() -> Peer:
    """Skglm's coordinate descent on working sets of the dual."""

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Any:
        from skglm import LinearSVC

        return LinearSVC(
            C=problem.C, max_iter=max_iter, max_epochs=50, tol=tol, fit_intercept=False
        ).fit(problem.X, problem.y)

    return Peer("skglm LinearSVC", "skglm", same("hinge"), fit, bound="alarm")


def skglm_lbfgs() -> Peer:
    """Skglm's L-BFGS, called without an estimator, as those know no L2 penalty."""

    def fit(problem: Problem, loss: str, tol: float, max_iter: int) -> Fitted:
        from skglm import datafits
        from skglm.penalties import L2
        from skglm.solvers import LBFGS

        sparse = sp.issparse(problem.X)
        X = problem.X.tocsc() if sparse else np.asfortranarray(problem.X)
        solver = LBFGS(max_iter=max_iter, tol=tol)
        datafit = getattr(datafits, loss)()
        coef, path, _ = solver.solve(X, problem.y, datafit, L2(problem.lam))
        return Fitted(coef, len(path))

    offered = {"log": "Logistic", "squared": "Quadratic"}
    return Peer("skglm LBFGS", "skglm", offered, fit, bound="alarm")


def all_peers() -> list[Peer]:
    """Return all solvers, ours first."""
    svm = {"hinge": "3", "squared_hinge": "1", "log": "7"}
    return [
        sdca(),
        linear_svc(dual=True),
        linear_svc(dual=False),
        logistic("liblinear", dual=True),
        logistic("liblinear"),
        logistic("lbfgs"),
        logistic("newton-cholesky"),
        logistic("saga"),
        linear_svr(dual=True),
        linear_svr(dual=False),
        ridge("cholesky"),
        ridge("lsqr"),
        ridge("sag"),
        sgd(),
        liblinear("liblinear dual", svm | {"squared": "12", "absolute": "13"}),
        liblinear(
            "liblinear primal", {"squared_hinge": "2", "log": "0", "squared": "11"}
        ),
        *snaps(),
        cyanure("auto"),
        skglm_svc(),
        skglm_lbfgs(),
    ]


def threaded_peers(n_jobs: int) -> list[Peer]:
    """Return the solvers that can use threads, each with one and with several."""
    return [sdca(), sdca(n_jobs), *snaps(), *snaps(n_jobs)]
