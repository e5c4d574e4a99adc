"""The optimum is the one that independent solvers find."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import xlogy
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.svm import LinearSVC, LinearSVR

from conftest import CLASSIFIERS, NAMES, make_problem, model_of

TIGHT = {"tol": 1e-9}


def assert_same_optimum(problem, ours, w, b, lam):
    """Compare with the model ``w, b`` of an oracle.

    The objectives agree, and the oracle does not beat our lower bound. The coefficients
    are as close as strong convexity tells from both distances to that bound.
    """
    model = model_of(ours)
    found, theirs = problem.primal(model.w, model.b, lam), problem.primal(w, b, lam)
    bound = ours.dual_objective_
    assert ours.stop_reason_ == "converged"
    assert ours.objective_ == pytest.approx(found, rel=1e-12)
    assert found == pytest.approx(theirs, rel=1e-8)
    assert bound <= theirs * (1 + 1e-12)
    # Rounding can hide a gap of 1e-14.
    radius = sum(
        np.sqrt(2 * (max(value - bound, 0.0) + 1e-14 * found) / lam)
        for value in (found, theirs)
    )
    assert np.linalg.norm(model.w - w) <= radius
    # So that the line before says something.
    assert radius <= 0.01 * np.linalg.norm(w)


# ---------------------------------------------------------------- closed form


@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_solves_the_normal_equations(fit_intercept, weights):
    problem = make_problem("squared", weights=weights)
    X, y, c, lam = problem.X, problem.y, problem.c, 0.05
    columns = np.column_stack([X, np.ones(len(y))]) if fit_intercept else X
    # The penalty is lam W |w|^2 / 2, and none on the intercept.
    penalty = np.zeros(columns.shape[1])
    penalty[: X.shape[1]] = lam * c.sum()
    normal = columns.T @ (c[:, None] * columns) + np.diag(penalty)
    solution = np.linalg.solve(normal, columns.T @ (c * y))
    w, b = solution[: X.shape[1]], solution[X.shape[1] :].sum()
    ours = problem.fit(lam=lam, fit_intercept=fit_intercept, **TIGHT)
    assert_same_optimum(problem, ours, w, b, lam)
    assert ours.coef_ == pytest.approx(w, rel=1e-6)
    assert ours.intercept_ == pytest.approx(b, rel=1e-6)


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_log_is_logistic_regression(fit_intercept, weights):
    problem = make_problem("log", weights=weights)
    C = 0.5
    theirs = LogisticRegression(
        C=C, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-12
    ).fit(problem.X, problem.y, problem.weights)
    ours = problem.fit(C=C, fit_intercept=fit_intercept, **TIGHT)
    w, b, _ = model_of(theirs)
    assert_same_optimum(problem, ours, w, b, problem.lam_of(C))
    assert ours.predict_proba(problem.X) == pytest.approx(
        theirs.predict_proba(problem.X), abs=1e-6
    )


@pytest.mark.parametrize("weights", [None, "fractions"])
def test_three_classes_are_three_logistic_regressions(weights):
    problem = make_problem("log", weights=weights)
    problem = problem.but(y=np.digitize(problem.X[:, 0], [-0.5, 0.7]))
    C = 0.5
    ours = problem.fit(C=C, **TIGHT)
    assert ours.classes_.tolist() == [0, 1, 2]
    for k in ours.classes_:
        one = problem.but(y=np.where(problem.y == k, 1.0, -1.0))
        theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12).fit(
            one.X, one.y, one.weights
        )
        w, b, _ = model_of(theirs)
        assert ours.objective_[k] == pytest.approx(
            one.primal(w, b, one.lam_of(C)), rel=1e-8
        )
        assert ours.coef_[k] == pytest.approx(w, rel=1e-4, abs=1e-4)
        assert ours.intercept_[k] == pytest.approx(b, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hinges_are_linear_svc(loss, weights):
    # Its intercept is regularised, so without one; dual, because hinge has no other.
    problem = make_problem(loss, weights=weights)
    C = 0.1
    theirs = LinearSVC(
        C=C,
        loss=loss,
        dual=True,
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**7,
        random_state=0,
    ).fit(problem.X, problem.y, problem.weights)
    ours = problem.fit(C=C, fit_intercept=False, **TIGHT)
    w, b, _ = model_of(theirs)
    assert_same_optimum(problem, ours, w, b, problem.lam_of(C))


@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_insensitive_losses_are_linear_svr(loss, weights):
    problem = make_problem(loss, weights=weights)
    C = 0.1
    theirs = LinearSVR(
        C=C,
        loss=loss,
        epsilon=problem.loss_param,
        dual=True,
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**7,
        random_state=0,
    ).fit(problem.X, problem.y, problem.weights)
    ours = problem.fit(C=C, fit_intercept=False, **TIGHT)
    w, b, _ = model_of(theirs)
    assert_same_optimum(problem, ours, w, b, problem.lam_of(C))


@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_squared_is_ridge(fit_intercept, weights):
    problem = make_problem("squared", weights=weights)
    lam = 0.05
    # The objective of Ridge is a sum over the rows.
    theirs = Ridge(
        alpha=lam * problem.c.sum(), fit_intercept=fit_intercept, solver="cholesky"
    ).fit(problem.X, problem.y, problem.weights)
    ours = problem.fit(lam=lam, fit_intercept=fit_intercept, **TIGHT)
    w, b, _ = model_of(theirs)
    assert_same_optimum(problem, ours, w, b, lam)


@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_poisson_is_poisson_regressor(fit_intercept, weights):
    problem = make_problem("poisson", weights=weights)
    lam = 0.05
    theirs = PoissonRegressor(
        alpha=lam, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-12
    ).fit(problem.X, problem.y, problem.weights)
    ours = problem.fit(lam=lam, fit_intercept=fit_intercept, **TIGHT)
    w, b, _ = model_of(theirs)
    assert_same_optimum(problem, ours, w, b, lam)
    assert ours.predict(problem.X) == pytest.approx(theirs.predict(problem.X), rel=1e-6)


# ---------------------------------------------------------------- a conic solver


def split_of(loss, t):
    """Give a piecewise quadratic loss as the cheapest way to split a residual.

    The residual, ``1 - y p`` of a label and ``y - p`` otherwise, is ``middle + above -
    below`` with ``|middle| <= size`` and the others not negative. The price of a part
    ``v`` is ``linear v + quadratic v^2 / 2``. Returns the size and the three prices.
    """
    free = (0.0, 0.0)
    return {
        "hinge": (0.0, free, (1.0, 0.0), free),
        "squared_hinge": (0.0, free, (0.0, 2.0), free),
        "smooth_hinge": (np.inf, (0.0, 1 / t), (1.0, 0.0), free),
        "modified_huber": (np.inf, (0.0, 2.0), (4.0, 0.0), free),
        "squared": (0.0, free, (0.0, 1.0), (0.0, 1.0)),
        "absolute": (0.0, free, (1.0, 0.0), (1.0, 0.0)),
        "huber": (np.inf, (0.0, 1.0), (t, 0.0), (t, 0.0)),
        "epsilon_insensitive": (t, free, (1.0, 0.0), (1.0, 0.0)),
        "squared_epsilon_insensitive": (t, free, (0.0, 2.0), (0.0, 2.0)),
        "quantile": (0.0, free, (t, 0.0), (1 - t, 0.0)),
    }[loss]


class ConeProgram:
    """``min z.P z / 2 + q.z`` where ``rhs - A z`` lies in cones, for clarabel.

    ``z`` is ``w``, ``b`` and then as many blocks of one variable for each row of X as
    are needed.
    """

    def __init__(self, problem, lam, n_blocks, *, fit_intercept):
        self.n, self.d = problem.X.shape
        self.share = problem.c / problem.c.sum()
        size = self.d + 1 + n_blocks * self.n
        self.eye = sp.identity(size, format="csr")
        self.quadratic = np.zeros(size)
        self.quadratic[: self.d] = lam
        self.linear = np.zeros(size)
        self.parts = []
        # The predictions p as a linear map of z.
        self.p = (
            sp.csr_matrix(problem.X) @ self.eye[: self.d]
            + sp.csr_matrix(np.ones((self.n, 1))) @ self.eye[[self.d]]
        )
        if not fit_intercept:
            self.require(self.eye[[self.d]], 0.0, clarabel.ZeroConeT)

    def block(self, k):
        """Return block ``k`` as a linear map of z."""
        start = self.d + 1 + k * self.n
        return self.eye[start : start + self.n]

    def charge(self, rows, linear, quadratic=0.0):
        """Add the weighted mean of the prices of the variables in ``rows``."""
        self.linear += rows.T @ (self.share * linear)
        self.quadratic += rows.T @ (self.share * quadratic)

    def require(self, A, rhs, cone):
        """Demand that ``rhs - A z`` is in the cone."""
        n = A.shape[0]
        self.parts.append((A, np.broadcast_to(rhs, n), [cone(n)]))

    def require_exp(self, x, x_rhs, z):
        """Demand that ``exp(x_rhs - x z) <= z z`` in each row."""
        A = sp.kron(x, [[1.0], [0.0], [0.0]]) - sp.kron(z, [[0.0], [0.0], [1.0]])
        rhs = np.kron(np.broadcast_to(x_rhs, self.n), [1.0, 0.0, 0.0])
        rhs[1::3] = 1.0
        self.parts.append((A, rhs, [clarabel.ExponentialConeT()] * self.n))

    def solve(self):
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
        # The default, 1e-8, is too much for a few thousand exponential cones.
        settings.static_regularization_constant = 1e-10
        solution = clarabel.DefaultSolver(
            sp.diags(self.quadratic, format="csc"),
            self.linear,
            sp.vstack([A for A, _, _ in self.parts], format="csc"),
            np.concatenate([rhs for _, rhs, _ in self.parts]),
            [cone for _, _, cones in self.parts for cone in cones],
            settings,
        ).solve()
        assert solution.status == clarabel.SolverStatus.Solved
        z = np.array(solution.x)
        return z[: self.d], z[self.d], solution.obj_val


def solve_cone_program(problem, lam, *, fit_intercept):
    """Return ``w``, ``b`` and the optimum of a problem stated anew."""
    y = problem.y
    if problem.loss == "poisson":
        # s >= exp(p)
        program = ConeProgram(problem, lam, 1, fit_intercept=fit_intercept)
        s = program.block(0)
        program.require_exp(-program.p, 0.0, s)
        program.charge(s, 1.0)
        program.charge(program.p, -y)
        w, b, value = program.solve()
        return w, b, value + program.share @ (xlogy(y, y) - y)
    if problem.loss == "log":
        # exp(-y p - s) + exp(-s) <= 1
        program = ConeProgram(problem, lam, 3, fit_intercept=fit_intercept)
        s, first, second = (program.block(k) for k in range(3))
        program.require_exp(sp.diags(y) @ program.p + s, 0.0, first)
        program.require_exp(s, 0.0, second)
        program.require(first + second, 1.0, clarabel.NonnegativeConeT)
        program.charge(s, 1.0)
        return program.solve()
    size, *prices = split_of(problem.loss, problem.loss_param or 1.0)
    program = ConeProgram(problem, lam, 3, fit_intercept=fit_intercept)
    middle, above, below = blocks = [program.block(k) for k in range(3)]
    if problem.loss in CLASSIFIERS:
        residual, offset = -sp.diags(y) @ program.p, 1.0
    else:
        residual, offset = -program.p, y
    program.require(middle + above - below - residual, offset, clarabel.ZeroConeT)
    for part in (above, below):
        program.require(-part, 0.0, clarabel.NonnegativeConeT)
    if size == 0.0:
        program.require(middle, 0.0, clarabel.ZeroConeT)
    elif np.isfinite(size):
        program.require(middle, size, clarabel.NonnegativeConeT)
        program.require(-middle, size, clarabel.NonnegativeConeT)
    for block, (linear, quadratic) in zip(blocks, prices, strict=True):
        program.charge(block, linear, quadratic)
    return program.solve()


# Small data is treated apart.
@pytest.mark.parametrize("n", [60, 600])
@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", NAMES)
def test_cone_program_has_the_same_optimum(loss, fit_intercept, weights, n):
    problem, lam = make_problem(loss, n, weights=weights), 0.05
    w, b, value = solve_cone_program(problem, lam, fit_intercept=fit_intercept)
    assert problem.primal(w, b, lam) == pytest.approx(value, rel=1e-8)
    ours = problem.fit(lam=lam, fit_intercept=fit_intercept, **TIGHT)
    assert_same_optimum(problem, ours, w, b, lam)
