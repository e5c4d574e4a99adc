"""certify() proves of any model what is true, and refuses what it does not know."""

from copy import deepcopy
from inspect import signature
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    SGDClassifier,
)
from sklearn.svm import LinearSVC, LinearSVR

from conftest import CLASSIFIERS, LOSSES, NAMES, SHAPES, make_problem, model_of
from sdca_rs import Sdca, certify

with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
with_and_without_weights = pytest.mark.parametrize("weights", [None, "fractions"])
every_loss = pytest.mark.parametrize("loss", NAMES)

TIGHT = {"tol": 1e-9}


def certify_on(problem, estimator, **settings):
    settings = {"sample_weight": problem.weights, "max_iter": 10**6, **settings}
    return certify(estimator, problem.X, problem.y, **settings)


def assert_certifies(proof, problem, estimator, lam, *, tol=1e-4):
    """Check a proof of one model against formulas and against the true optimum."""
    w, b, _ = model_of(estimator)
    value = problem.primal(w, b, lam)
    assert proof.objective == pytest.approx(value, rel=1e-12)
    assert proof.gap == proof.objective - proof.dual_objective
    best = problem.fit(lam=lam, fit_intercept=estimator.fit_intercept, **TIGHT)
    # Not above any model's objective, and at most tol below the optimum.
    assert proof.dual_objective <= best.objective_ * (1 + 1e-13)
    assert proof.dual_objective >= best.dual_objective_ - 2 * tol * best.objective_
    assert proof.gap >= value - best.objective_ - 1e-13 * value


# ---------------------------------------------------------------- our estimators


@pytest.mark.parametrize("strength", [{"C": 0.3}, {"lam": 0.2}], ids=["C", "lam"])
@with_and_without_weights
@with_and_without_intercept
@every_loss
def test_own_estimators_keep_their_certificate(loss, fit_intercept, weights, strength):
    problem = make_problem(loss, weights=weights)
    settings = {"fit_intercept": fit_intercept, "tol": 0.0, "max_iter": 3, **strength}
    fit = problem.fit(**settings)
    proof = certify_on(problem, fit)
    size = abs(fit.objective_) + abs(fit.dual_objective_)
    assert proof.objective == pytest.approx(fit.objective_, rel=1e-12)
    assert proof.dual_objective == pytest.approx(fit.dual_objective_, abs=1e-12 * size)
    assert proof.gap == proof.objective - proof.dual_objective
    assert all(isinstance(number, float) for number in proof)
    assert proof.gap > 1e-6 * size


@pytest.mark.parametrize("class_weight", [{1.0: 4.0}, "balanced"])
@with_and_without_weights
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_own_class_weight_is_multiplied_in(loss, weights, class_weight):
    problem = make_problem(loss, weights=weights)
    fit = problem.fit(C=0.3, class_weight=class_weight)
    proof = certify_on(problem, fit)
    assert proof.objective == pytest.approx(fit.objective_, rel=1e-12)
    assert proof.dual_objective == pytest.approx(fit.dual_objective_, rel=1e-12)
    plain = problem.fit(C=0.3)
    assert proof.objective != pytest.approx(plain.objective_, rel=1e-6)


def three_classes(loss, weights=None):
    problem = make_problem(loss, weights=weights)
    names = np.array(["one", "three", "two"])
    return problem.but(y=names[np.digitize(problem.X[:, 0], [-0.5, 0.7])])


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@with_and_without_weights
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_three_classes_have_three_certificates(loss, weights, layout):
    problem = three_classes(loss, weights)
    problem = problem.but(X=layout(problem.X))
    fit = problem.fit(C=0.3, class_weight={"two": 2.0}, tol=0.0, max_iter=20)
    proof = certify_on(problem, fit)
    assert proof.objective == pytest.approx(fit.objective_, rel=1e-12)
    assert proof.dual_objective == pytest.approx(fit.dual_objective_, rel=1e-9)
    assert proof.gap.shape == (3,)
    assert np.array_equal(proof.gap, proof.objective - proof.dual_objective)


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_sparsified_models_and_sparse_rows_prove_the_same(loss):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(C=0.3)
    proof = certify_on(problem, fit)
    sparse = deepcopy(fit).sparsify()
    assert sp.issparse(sparse.coef_)
    assert certify_on(problem, sparse) == proof
    for layout in (sp.csr_matrix, sp.csc_matrix, sp.coo_array):
        of_sparse = certify_on(problem.but(X=layout(problem.X)), fit)
        assert of_sparse == pytest.approx(proof, rel=1e-12, abs=1e-14)


@with_and_without_intercept
@every_loss
def test_gap_of_a_worse_model_is_at_least_its_distance(loss, fit_intercept):
    problem = make_problem(loss, weights="fractions")
    lam = 0.1
    best = problem.fit(lam=lam, fit_intercept=fit_intercept, **TIGHT)
    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-1, 1.0):
        worse = deepcopy(best)
        worse.coef_ = best.coef_ + size * rng.normal(size=best.coef_.shape)
        # Half-way duals as well.
        for share in (1.0, 0.5):
            worse.dual_coef_ = share * best.dual_coef_
            proof = certify_on(problem, worse)
            assert_certifies(proof, problem, worse, lam, tol=2.0)
            assert proof.gap > 0
        assert proof.dual_objective < best.dual_objective_


@pytest.mark.parametrize("settings", [{"C": 1.0}, {"lam": 0.01}, {"C": 0.05}])
@every_loss
def test_what_is_given_overrides_the_estimator(loss, settings):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(lam=0.1)
    proof = certify_on(problem, fit, **settings)
    lam = settings.get("lam") or problem.lam_of(settings["C"])
    # The duals of the fit bound this problem too, if not tightly.
    assert_certifies(proof, problem, fit, lam, tol=1e9)


@every_loss
def test_model_without_intercept_is_certified_among_those_with(loss):
    problem = make_problem(loss, weights="fractions")
    fit = problem.fit(lam=0.1, fit_intercept=False)
    proof = certify_on(problem, fit, fit_intercept=True)
    best = problem.fit(lam=0.1, **TIGHT)
    assert proof.objective == pytest.approx(fit.objective_, rel=1e-12)
    assert proof.dual_objective <= best.objective_ * (1 + 1e-13)
    excess = fit.objective_ - best.objective_
    assert excess > 1e-3 * fit.objective_
    assert proof.gap >= excess - 1e-13 * fit.objective_


def test_model_with_intercept_is_not_certified_among_those_without():
    # It may be better than all of them: that would be a negative gap.
    problem = make_problem("squared")
    for model in (problem.fit(lam=0.1), Ridge(6.0).fit(problem.X, problem.y)):
        with pytest.raises(ValueError, match="intercept"):
            certify_on(problem, model, fit_intercept=False)


def test_another_loss_gets_its_own_bound():
    problem = make_problem("log")
    fit = problem.fit(lam=0.1)
    for loss in CLASSIFIERS:
        other = problem.but(loss=loss)
        proof = certify_on(other, fit, loss=loss, loss_param=other.loss_param, tol=1e-6)
        assert_certifies(proof, other, fit, 0.1, tol=1e-6)


@pytest.mark.parametrize("loss", list(SHAPES))
def test_another_shape_is_certified_with_a_finite_bound(loss):
    problem = make_problem(loss)
    fit = problem.fit(lam=0.1)
    for shape in (0.05, 0.95):
        proof = certify_on(problem, fit, loss_param=shape)
        best = problem.fit(lam=0.1, loss_param=shape, **TIGHT)
        assert np.isfinite(proof.dual_objective)
        assert proof.dual_objective <= best.objective_ * (1 + 1e-13)


@every_loss
def test_other_rows_are_certified_too(loss):
    problem = make_problem(loss)
    fit = problem.fit(lam=0.1)
    # Fewer rows, and as many others.
    for other in (make_problem(loss, 40, seed=6), make_problem(loss, seed=5)):
        proof = certify_on(other, fit)
        assert np.isfinite(proof.dual_objective)
        assert_certifies(proof, other, fit, 0.1, tol=1e9)


# ---------------------------------------------------------------- scikit-learn's


def scikit_learn(kind, total_weight, **settings):
    """Return an estimator, the loss it minimises, and its lam for a total weight."""
    svr = {"C": 0.1, "max_iter": 10**6, "epsilon": 0.3, "random_state": 0}
    svc = {"C": 0.1, "max_iter": 10**6, "random_state": 0}
    estimator, loss = {
        "svc": (LinearSVC(loss="hinge", **svc), "hinge"),
        "svc2": (LinearSVC(**svc), "squared_hinge"),
        "svr": (LinearSVR(**svr), "epsilon_insensitive"),
        "svr2": (
            LinearSVR(loss="squared_epsilon_insensitive", **svr),
            "squared_epsilon_insensitive",
        ),
        "logistic": (LogisticRegression(C=0.1), "log"),
        "ridge": (Ridge(alpha=20.0), "squared"),
        "poisson": (PoissonRegressor(alpha=0.2), "poisson"),
    }[kind]
    if kind == "poisson":
        lam = estimator.alpha
    elif kind == "ridge":
        lam = estimator.alpha / total_weight
    else:
        lam = 1 / (estimator.C * total_weight)
    return estimator.set_params(**settings), loss, lam


KINDS = ["svc", "svc2", "svr", "svr2", "logistic", "ridge", "poisson"]


@with_and_without_weights
@with_and_without_intercept
@pytest.mark.parametrize("kind", KINDS)
def test_known_estimators_need_no_explanation(kind, fit_intercept, weights):
    _, loss, _ = scikit_learn(kind, 1.0)
    problem = make_problem(loss, weights=weights)
    estimator, _, lam = scikit_learn(kind, problem.c.sum(), fit_intercept=fit_intercept)
    estimator.fit(problem.X, problem.y, problem.weights)
    proof = certify_on(problem, estimator)
    assert_certifies(proof, problem, estimator, lam)
    # LIBLINEAR regularises the intercept: that is not this objective's optimum.
    exact = kind not in ("svc", "svc2", "svr", "svr2") or not fit_intercept
    assert proof.gap <= (1e-3 if exact else 0.2) * proof.objective


@pytest.mark.parametrize("kind", KINDS)
def test_number_as_sample_weight_is_the_weight_of_each_row(kind):
    _, loss, _ = scikit_learn(kind, 1.0)
    problem = make_problem(loss, weights=None)
    weights = np.full(len(problem.y), 2.0)
    estimator, _, lam = scikit_learn(kind, weights.sum())
    estimator.fit(problem.X, problem.y, weights)
    proof = certify(estimator, problem.X, problem.y, sample_weight=2.0)
    assert_certifies(proof, problem, estimator, lam)
    assert proof == certify(estimator, problem.X, problem.y, sample_weight=weights)


@pytest.mark.parametrize("weights", [[2] * 60, (2.0,) * 60], ids=["list", "tuple"])
def test_weights_and_targets_may_be_lists(weights):
    problem = make_problem("squared")
    ridge = Ridge(alpha=20.0).fit(problem.X, problem.y, weights)
    proof = certify(
        ridge, problem.X.tolist(), problem.y.tolist(), sample_weight=weights
    )
    assert_certifies(proof, problem, ridge, 20.0 / 120.0)


@pytest.mark.parametrize("class_weight", [{1.0: 4.0}, "balanced"])
@pytest.mark.parametrize("kind", ["svc", "svc2", "logistic"])
def test_class_weight_of_known_estimators_is_multiplied_in(kind, class_weight):
    _, loss, _ = scikit_learn(kind, 1.0)
    problem = make_problem(loss)
    estimator, _, _ = scikit_learn(
        kind, 1.0, fit_intercept=False, class_weight=class_weight
    )
    estimator.set_params(tol=1e-8).fit(problem.X, problem.y)
    positive = problem.y > 0
    factors = {1.0: 4.0, -1.0: 1.0}
    if class_weight == "balanced":
        factors = {y: 30 / (problem.y == y).sum() for y in (1.0, -1.0)}
    weighted = problem.but(weights=np.where(positive, factors[1.0], factors[-1.0]))
    proof = certify_on(problem, estimator)
    assert_certifies(proof, weighted, estimator, 1 / (estimator.C * weighted.c.sum()))
    assert proof.gap <= 1e-3 * proof.objective


@pytest.mark.parametrize("kind", ["svc", "svc2"])
def test_three_classes_of_linear_svc(kind):
    _, loss, _ = scikit_learn(kind, 1.0)
    problem = three_classes(loss)
    estimator, _, lam = scikit_learn(kind, 60.0, fit_intercept=False)
    estimator.fit(problem.X, problem.y)
    proof = certify_on(problem, estimator)
    for k, name in enumerate(estimator.classes_):
        one = problem.but(y=np.where(problem.y == name, 1.0, -1.0))
        value = one.primal(estimator.coef_[k], 0.0, lam)
        assert proof.objective[k] == pytest.approx(value, rel=1e-12)
        assert 0 <= proof.gap[k] <= 1e-3 * value
        best = one.fit(lam=lam, fit_intercept=False, **TIGHT)
        assert proof.dual_objective[k] <= best.objective_ * (1 + 1e-13)


def test_sparse_rows_and_models_of_scikit_learn():
    problem = make_problem("log")
    logistic = LogisticRegression(C=0.1).fit(problem.X, problem.y)
    proof = certify_on(problem, logistic)
    of_sparse = certify_on(
        problem.but(X=sp.csr_matrix(problem.X)), deepcopy(logistic).sparsify()
    )
    assert of_sparse == pytest.approx(proof, rel=1e-4, abs=1e-4 * proof.objective)
    assert of_sparse.objective == pytest.approx(proof.objective, rel=1e-12)


def test_tol_and_max_iter_are_those_of_the_bound():
    problem = make_problem("log", 800)
    logistic = LogisticRegression(C=1.0, tol=1e-10).fit(problem.X, problem.y)
    tols = (1e-1, 1e-3, 1e-8)
    proofs = [certify_on(problem, logistic, tol=tol) for tol in tols]
    for proof, tol in zip(proofs, tols, strict=True):
        assert proof.gap <= tol * proof.objective
    gaps = [proof.gap for proof in proofs]
    # Not negative, but for rounding.
    assert -1e-15 <= gaps[-1] <= 1e-7
    # Less is done where less is asked for.
    assert min(gaps[:2]) > 1e3 * gaps[-1]
    with pytest.warns(ConvergenceWarning):
        short = certify_on(problem, logistic, tol=1e-8, max_iter=1)
    # The bound is loose then, but a bound.
    assert short.gap > gaps[-1]
    assert short.objective == pytest.approx(certify_on(problem, logistic).objective)


# ---------------------------------------------------------------- any other


def test_unknown_estimators_are_certified_by_what_is_said_of_them():
    problem = make_problem("hinge", weights="fractions")
    lam = 0.1
    sgd = SGDClassifier(alpha=lam, random_state=0).fit(
        problem.X, problem.y, sample_weight=problem.weights
    )
    proof = certify_on(problem, sgd, loss="hinge", lam=lam)
    assert_certifies(proof, problem, sgd, lam)
    C = 1 / (lam * problem.c.sum())
    assert certify_on(problem, sgd, loss="hinge", C=C) == pytest.approx(
        proof, rel=1e-9, abs=1e-12
    )


@every_loss
def test_any_object_with_coefficients_will_do(loss):
    problem = make_problem(loss)
    model = SimpleNamespace(coef_=np.full(4, 0.1), intercept_=0.2, fit_intercept=True)
    if LOSSES[loss].task == "classification":
        model.classes_ = np.array([-1.0, 1.0])
    proof = certify_on(
        problem, model, loss=loss, loss_param=problem.loss_param, lam=0.1
    )
    assert_certifies(proof, problem, model, 0.1)


def test_unknown_estimator_needs_a_loss_and_a_strength():
    problem = make_problem("hinge")
    sgd = SGDClassifier(random_state=0).fit(problem.X, problem.y)
    for given in ({}, {"loss": "hinge"}, {"C": 1.0}):
        with pytest.raises(ValueError, match=r"estimator: found SGDClassifier.*loss"):
            certify_on(problem, sgd, **given)
    with pytest.raises(ValueError, match=r"loss: found 'hinges' .*'hinge'.* one of"):
        certify_on(problem, sgd, loss="hinges", C=1.0)
    with pytest.raises(ValueError, match=r"C: found 2\.0 together with lam"):
        certify_on(problem, sgd, loss="hinge", C=2.0, lam=0.1)


def elastic_net(l1_ratio):
    settings = {"l1_ratio": l1_ratio, "solver": "saga", "tol": 0.1}
    # Before scikit-learn 1.8, the ratio alone did nothing.
    if signature(LogisticRegression).parameters["l1_ratio"].default is None:
        settings["penalty"] = "elasticnet"
    return LogisticRegression(**settings)


# LogisticRegressionCV announces changes of its defaults.
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        elastic_net(1.0),
        elastic_net(0.5),
        LinearSVC(penalty="l1", max_iter=10**5),
        LogisticRegressionCV(Cs=2, cv=2),
        Ridge(positive=True),
    ],
    ids=["l1", "elastic net", "svc l1", "cv", "positive"],
)
def test_another_objective_of_a_known_class_is_not_taken_for_the_known_one(estimator):
    problem = make_problem("log")
    estimator.fit(problem.X, problem.y)
    # Told what to prove, it can.
    proof = certify_on(problem, estimator, loss="log", lam=0.1)
    assert_certifies(proof, problem, estimator, 0.1)
    with pytest.raises(ValueError, match=r"estimator: found .* not\s+known"):
        certify_on(problem, estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(C=0.1),
        LinearSVC(multi_class="crammer_singer", C=0.1, random_state=0, max_iter=10**6),
    ],
    ids=["multinomial", "Crammer-Singer"],
)
def test_joint_models_of_three_classes_are_not_one_vs_rest(estimator):
    problem = three_classes("log")
    estimator.fit(problem.X, problem.y)
    with pytest.raises(ValueError, match=r"estimator: found .* not\s+known"):
        certify_on(problem, estimator)


def test_wrong_classes_are_refused():
    problem = make_problem("hinge")
    fit = problem.fit(lam=0.1)
    for wrong in (problem.y + 1.0, np.where(problem.y > 0, "a", "b")):
        with pytest.raises(ValueError, match="y: found classes"):
            certify(fit, problem.X, wrong)
    three = three_classes("hinge")
    with pytest.raises(ValueError, match="y: found classes"):
        certify(fit, three.X, three.y)
    with pytest.raises(ValueError, match="y: found one class"):
        certify(fit, problem.X, np.ones(60))


def test_wrong_shapes_are_refused():
    problem = make_problem("squared")
    fit = problem.fit()
    with pytest.raises(ValueError, match="expected 3"):
        certify(fit, problem.X[:, :3], problem.y)
    with pytest.raises(ValueError, match="y: found 59 entries, expected 60"):
        certify(fit, problem.X, problem.y[:-1])
    with pytest.raises(ValueError, match="sample_weight: found shape"):
        certify(fit, problem.X, problem.y, sample_weight=np.ones(59))
    with pytest.raises(ValueError, match=r"sample_weight: found -1\.0 at row 3"):
        certify(fit, problem.X, problem.y, sample_weight=1.0 - 2.0 * np.eye(60)[3])
    with pytest.raises(ValueError, match=r"(?i)1d array"):
        certify(Ridge().fit(problem.X, problem.X), problem.X, problem.X)


def test_unfitted_estimators_are_refused():
    problem = make_problem("squared")
    for estimator in (Sdca("squared"), Ridge()):
        with pytest.raises(NotFittedError):
            certify_on(problem, estimator)


def test_nothing_is_changed():
    problem = make_problem("squared", weights="fractions")
    before = deepcopy((problem.X, problem.y, problem.weights))
    for estimator in (problem.fit(), Ridge().fit(problem.X, problem.y)):
        state = deepcopy(vars(estimator))
        certify_on(problem, estimator)
        certify_on(problem, estimator, loss="absolute", C=0.1)
        assert vars(estimator).keys() == state.keys()
        assert np.array_equal(estimator.coef_, state["coef_"])
        assert (
            estimator.get_params()
            == type(estimator)(
                **{name: state[name] for name in estimator.get_params()}
            ).get_params()
        )
    for array, old in zip((problem.X, problem.y, problem.weights), before, strict=True):
        assert np.array_equal(array, old)
