"""Pegasos on a stream: the parts of a problem, one after another."""

import itertools
import pickle
import re
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from conftest import CLASSIFIERS, NAMES, REGRESSORS, make_problem, model_of
from sdca_rs import Pegasos, Sdca, certify

# Their slopes have bounds, so that no part decides how long steps are.
BOUNDED = [
    loss
    for loss in NAMES
    if loss
    not in ("squared", "squared_hinge", "squared_epsilon_insensitive", "poisson")
]
CERTIFICATE = [
    "dual_coef_",
    "objective_",
    "dual_objective_",
    "duality_gap_",
    "stop_reason_",
    "history_",
    "n_iter_",
]
every_loss = pytest.mark.parametrize("loss", NAMES)


def make(problem, **settings):
    defaults = {"loss_param": problem.loss_param, "random_state": 0, "lam": 0.1}
    return Pegasos(problem.loss, **(defaults | settings))


def feed(model, problem, parts, *, n_epochs=1):
    classes = [-1.0, 1.0] if problem.loss in CLASSIFIERS else None
    for _, part in itertools.product(range(n_epochs), parts):
        weights = None if problem.weights is None else problem.weights[part]
        model.partial_fit(
            problem.X[part], problem.y[part], classes, sample_weight=weights
        )
    return model


def cut(n, n_parts):
    return np.array_split(np.arange(n), n_parts)


def same(model, other, rel=1e-7):
    return model.coef_ == pytest.approx(
        other.coef_, rel=rel, abs=1e-9
    ) and model.intercept_ == pytest.approx(other.intercept_, rel=rel, abs=1e-9)


# ---------------------------------------------------------------- what it learns

CYCLIC = {"sampling": "cyclic", "fit_intercept": False, "batch_size": 1, "tol": 0.0}


@pytest.mark.parametrize("weights", [None, "fractions"])
@pytest.mark.parametrize("project", [False, True])
@every_loss
def test_calls_on_all_rows_are_epochs_of_fit(loss, project, weights):
    problem = make_problem(loss, weights=weights)
    if weights is not None:
        # Those of a stream count as they are, those of a fit relative to their mean.
        problem = problem.but(weights=problem.c / problem.c[problem.c > 0].mean())
    settings = CYCLIC | {"project": project}
    whole = problem.fit(Pegasos, lam=0.1, max_iter=3, **settings)
    stream = feed(make(problem, **settings), problem, cut(60, 1), n_epochs=3)
    assert same(stream, whole)
    fewer = feed(make(problem, **settings), problem, cut(60, 1), n_epochs=2)
    assert not same(fewer, whole)


@pytest.mark.parametrize("loss", BOUNDED)
def test_weights_do_not_depend_on_where_a_stream_is_cut(loss):
    problem = make_problem(loss)
    problem = problem.but(weights=np.random.default_rng(0).uniform(0.5, 3.0, 60))
    one, many = (
        feed(make(problem, **CYCLIC), problem, cut(60, n_parts)) for n_parts in (1, 60)
    )
    assert same(one, many)
    equal = feed(make(problem, **CYCLIC), problem.but(weights=None), cut(60, 60))
    assert not same(equal, many)


def test_class_weight_counts_in_parts_of_one_class():
    problem = make_problem("hinge")
    settings = CYCLIC | {"class_weight": {1.0: 10.0}}
    one, many = (
        feed(make(problem, **settings), problem, cut(60, n_parts))
        for n_parts in (1, 60)
    )
    assert same(one, many)
    assert not same(one, feed(make(problem, **CYCLIC), problem, cut(60, 60)))


def test_settings_can_change_between_parts():
    problem = make_problem("hinge")
    model = feed(make(problem, **CYCLIC), problem, cut(60, 1))
    before = model.coef_.copy()
    # Steps so short that nothing moves: those of the first part are forgotten.
    model.set_params(learning_rate="constant", eta0=1e-12)
    assert feed(model, problem, cut(60, 1)).coef_ == pytest.approx(before, rel=1e-8)
    for eta0 in (-1.0, 0.0, 100.0):
        model.set_params(eta0=eta0)
        with pytest.raises(ValueError, match="eta0: found"):
            feed(model, problem, cut(60, 1))
    # P(0) = 1 for the hinge, so that the radius is 1 / sqrt(lam).
    model.set_params(learning_rate="pegasos", eta0=None, project=True, lam=1e3)
    feed(model, problem, cut(60, 1))
    assert np.linalg.norm(model.coef_) <= 1 / np.sqrt(1e3) * (1 + 1e-9)


def test_classes_told_again_stay_as_they_were():
    problem = make_problem("hinge")
    labels = problem.y.astype(int)
    model = make(problem).partial_fit(problem.X, labels, classes=[-1, 1])
    model.partial_fit(problem.X, labels, classes=[-1.0, 1.0])
    assert model.classes_.dtype == np.int64


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"batch_size": 5},
        {"learning_rate": "constant", "eta0": 0.01},
        {"learning_rate": "invscaling", "eta0": 0.1},
        {"output": "average"},
        {"output": "average", "batch_size": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("loss", BOUNDED)
def test_it_does_not_matter_where_a_stream_is_cut(loss, settings):
    problem = make_problem(loss)
    settings = CYCLIC | settings
    one = feed(make(problem, **settings), problem, cut(60, 1), n_epochs=2)
    # All of them whole batches.
    for n_parts in (2, 3, 12):
        other = feed(make(problem, **settings), problem, cut(60, n_parts), n_epochs=2)
        assert same(other, one)
    if settings["batch_size"] == 1:
        assert same(
            feed(make(problem, **settings), problem, cut(60, 60), n_epochs=2), one
        )


@pytest.mark.parametrize("loss", BOUNDED)
def test_average_is_the_mean_over_all_steps(loss):
    problem = make_problem(loss)
    settings = CYCLIC | {"average_from": 0.9}
    average = feed(make(problem, output="average", **settings), problem, cut(60, 4))
    last, models = make(problem, **settings), [np.zeros(4)]
    for i in range(60):
        feed(last, problem, [np.array([i])])
        models.append(model_of(last).w)
    # The models before each step.
    assert model_of(average).w == pytest.approx(np.mean(models[:-1], axis=0), rel=1e-7)
    assert not same(average, last, rel=1e-3)
    assert model_of(average).w != pytest.approx(np.mean(models[1:], axis=0), rel=1e-7)
    # The output alone: the stream itself is the same.
    average.set_params(output="last")
    assert same(
        feed(average, problem, cut(60, 4)), feed(last, problem, cut(60, 4)), rel=1e-6
    )


@pytest.mark.parametrize("output", ["last", "average"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@every_loss
def test_a_shuffled_stream_approaches_the_optimum(loss, fit_intercept, output):
    problem, lam = make_problem(loss, 1000), 0.5
    best = problem.fit(lam=lam, fit_intercept=fit_intercept, tol=1e-6)
    settings = {"lam": lam, "fit_intercept": fit_intercept, "output": output}
    excess = []
    model = make(problem, **settings)
    for n_epochs in (1, 20):
        feed(model, problem, cut(1000, 10), n_epochs=n_epochs)
        w, b, _ = model_of(model)
        if not fit_intercept:
            assert b == 0.0
        excess.append(problem.primal(w, b, lam) / best.objective_ - 1)
    assert -1e-6 <= excess[1] < 0.1
    # The first part alone is not as good.
    assert excess[1] < max(excess[0], 0.02)


def test_regression_and_scikit_learn_shapes():
    problem = make_problem("huber", 500)
    model = feed(make(problem), problem, cut(500, 5))
    assert model.coef_.shape == (4,)
    assert isinstance(model.intercept_, float)
    assert not hasattr(model, "classes_")
    assert model.score(problem.X, problem.y) > 0.3
    problem = make_problem("log", 500)
    model = feed(make(problem), problem, cut(500, 5))
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)
    assert model.predict_proba(problem.X).shape == (500, 2)
    assert model.score(problem.X, problem.y) > 0.7


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_several_classes_are_as_many_streams(fit_intercept):
    X, numbers = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, numbers = X[order], numbers[order]
    labels = np.array(["setosa", "versicolor", "virginica"])
    y = labels[numbers]
    settings = {"loss": "log", "lam": 0.01, "sampling": "cyclic"}
    settings["fit_intercept"] = fit_intercept
    models = [Pegasos(**settings) for _ in range(3)]
    together = Pegasos(**settings)
    for part in cut(150, 5) * 4:
        together.partial_fit(X[part], y[part], classes=labels)
        for k, model in enumerate(models):
            model.partial_fit(X[part], y[part] == labels[k], classes=[False, True])
    assert together.classes_.tolist() == labels.tolist()
    assert together.coef_.shape == (3, 4)
    assert together.predict_proba(X).shape == (150, 3)
    assert together.score(X, y) > 0.6
    for k, model in enumerate(models):
        assert together.coef_[k] == pytest.approx(model.coef_[0], rel=1e-9)
        assert together.intercept_[k] == pytest.approx(model.intercept_[0], rel=1e-9)


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    y = rng.integers(3, size=4000)

    def coef(labels, **settings):
        model = Pegasos(lam=0.1, random_state=0, **settings)
        for part in cut(4000, 2):
            model.partial_fit(X[part], labels[part], classes=np.unique(labels))
        return model.coef_.tobytes()

    for labels, batch in ((y > 0, 2000), (y, "auto")):
        serial = coef(labels, batch_size=batch)
        assert coef(labels, batch_size=batch, n_jobs=2) == serial
        assert coef(labels, batch_size=batch, n_jobs=-1) == serial


# ---------------------------------------------------------------- weights


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_class_weight_multiplies_the_weights(loss):
    problem = make_problem(loss, weights="fractions")
    factors = np.where(problem.y > 0, 3.0, 1.0)
    by_class = feed(make(problem, class_weight={1.0: 3.0}), problem, cut(60, 3))
    by_row = problem.but(weights=problem.weights * factors)
    assert same(by_class, feed(make(problem), by_row, cut(60, 3)))
    assert not same(by_class, feed(make(problem), problem, cut(60, 3)))


@every_loss
def test_rows_of_weight_zero_are_absent(loss):
    problem = make_problem(loss, weights="counts")
    there = np.flatnonzero(problem.weights > 0)
    parts = cut(60, 3)
    present = [np.intersect1d(part, there) for part in parts]
    wild = problem.but(X=problem.X.copy(), y=problem.y.copy())
    gone = problem.weights == 0
    wild.X[gone] *= 1e100
    wild.y[gone] = 7.0 if loss in CLASSIFIERS else 1e100
    settings = {"sampling": "cyclic"}
    one = feed(make(problem, **settings), problem, present)
    other = feed(make(problem, **settings), wild, parts)
    assert same(other, one)


def test_lam_is_that_of_the_first_rows_if_C_is_given():
    problem = make_problem("hinge", weights="fractions")
    parts = [np.arange(20), np.arange(20, 60)]
    lam = 1 / (0.5 * problem.weights[:20].sum())
    given = feed(make(problem, lam=lam), problem, parts)
    found = feed(make(problem, lam=None, C=0.5), problem, parts)
    assert same(found, given)
    # And not that of the part at hand.
    other = make(problem, lam=lam)
    feed(other, problem, parts[:1])
    feed(
        other.set_params(lam=1 / (0.5 * problem.weights[20:].sum())), problem, parts[1:]
    )
    assert not same(found, other, rel=1e-4)


# ---------------------------------------------------------------- classes


def test_classes_are_needed_first_and_may_be_told_again():
    problem = make_problem("hinge")
    with pytest.raises(ValueError, match=r"^classes: found None, expected all classes"):
        make(problem).partial_fit(problem.X, problem.y)
    model = make(problem).partial_fit(problem.X, problem.y, classes=[1, -1, 1])
    assert model.classes_.tolist() == [-1, 1]
    model.partial_fit(problem.X, problem.y)
    model.partial_fit(problem.X, problem.y, classes=np.array([1, -1]))
    for classes in ([-1, 1, 2], [0, 1], [1]):
        with pytest.raises(
            ValueError, match=r"^classes: found .*, expected \[-1, 1\] as in the first"
        ):
            model.partial_fit(problem.X, problem.y, classes=classes)
    with pytest.raises(ValueError, match=r"^y: found \[2.*expected labels of"):
        model.partial_fit(problem.X, np.where(problem.y > 0, 2.0, -1.0))
    assert model.classes_.tolist() == [-1, 1]


def test_two_classes_are_needed():
    problem = make_problem("hinge")
    with pytest.raises(ValueError, match="two classes"):
        make(problem).partial_fit(problem.X, np.ones(60), classes=[1])


def test_a_part_may_have_one_class_only():
    problem = make_problem("log", 400)
    order = np.argsort(problem.y)
    model = make(problem, fit_intercept=False)
    for part in cut(400, 20):
        classes = problem.y[order[part]]
        feed(model, problem, [order[part]])
        assert np.isfinite(model.coef_).all()
        assert len(np.unique(classes)) <= 2
    assert model.classes_.tolist() == [-1.0, 1.0]
    # From one class alone the other one is not heard of.
    first = feed(make(problem), problem, [np.flatnonzero(problem.y > 0)])
    assert (first.predict(problem.X) > 0).mean() > 0.5


def test_classes_are_refused_for_a_regressor():
    problem = make_problem("huber")
    with pytest.raises(ValueError, match=r"^classes: found .* because loss 'huber'"):
        make(problem).partial_fit(problem.X, problem.y, classes=[0, 1])


# ---------------------------------------------------------------- between fits


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_goes_on_from_fit(fit_intercept):
    problem = make_problem("hinge", 300)
    settings = {"fit_intercept": fit_intercept, "sampling": "cyclic", "batch_size": 1}
    model = problem.fit(Pegasos, lam=0.1, max_iter=3, tol=0.0, **settings)
    assert all(hasattr(model, name) for name in CERTIFICATE)
    objective = model.objective_
    feed(model, problem, cut(300, 3))
    for name in CERTIFICATE:
        assert not hasattr(model, name)
    if not fit_intercept:
        whole = problem.fit(Pegasos, lam=0.1, max_iter=4, tol=0.0, **settings)
        assert same(model, whole)
    # Steps are short by now: had it begun anew, the model would be far away.
    w, b, _ = model_of(model)
    assert problem.primal(w, b, 0.1) < 1.2 * objective
    # A fit forgets the stream.
    before = deepcopy(model)
    refit = model.set_params(max_iter=3, tol=0.0).fit(problem.X, problem.y)
    assert refit.objective_ == objective
    again = feed(refit, problem, cut(300, 3))
    assert same(again, before, rel=0)
    assert feed(clone(model), problem, cut(300, 3)).coef_ != pytest.approx(model.coef_)


def test_a_warm_fit_goes_on_from_a_stream():
    problem = make_problem("hinge", 300)
    whole = problem.fit(Pegasos, lam=0.1, max_iter=3, **CYCLIC)
    model = feed(make(problem, max_iter=2, **CYCLIC), problem, cut(300, 3))
    cold = clone(model).fit(problem.X, problem.y)
    warm = model.set_params(warm_start=True).fit(problem.X, problem.y)
    assert same(warm, whole)
    assert not same(cold, whole)
    assert all(hasattr(warm, name) for name in CERTIFICATE)
    w, b, a = model_of(warm)
    assert warm.objective_ == pytest.approx(problem.primal(w, b, 0.1), rel=1e-12)
    assert warm.dual_objective_ == pytest.approx(problem.dual(a, 0.1), rel=1e-9)
    # Also on other rows.
    part = slice(0, 200)
    feed(model, problem, cut(300, 3)).fit(problem.X[part], problem.y[part])
    with pytest.raises(ValueError, match=r"^warm_start: found classes \[F"):
        feed(model, problem, cut(300, 3)).fit(problem.X, problem.y > 0)


@pytest.mark.parametrize("loss", ["hinge", "log", "squared", "poisson"])
def test_certify_proves_what_a_stream_has_learned(loss):
    problem = make_problem(loss, 500)
    model = feed(make(problem), problem, cut(500, 10), n_epochs=3)
    proof = certify(model, problem.X, problem.y)
    w, b, _ = model_of(model)
    assert proof.objective == pytest.approx(problem.primal(w, b, 0.1), rel=1e-9)
    # By plain epochs, whose objective stays above the optimum by more than rounding.
    best = problem.fit(lam=0.1, tol=1e-8, accelerate=False)
    assert proof.dual_objective <= best.objective_
    assert proof.gap >= proof.objective - best.objective_ - 1e-12


@pytest.mark.parametrize("loss", ["hinge", "squared", "poisson"])
@pytest.mark.parametrize("output", ["last", "average"])
def test_pickled_between_parts_it_gives_the_same_bits(loss, output):
    problem = make_problem(loss, 300)
    settings = {"output": output, "project": True}
    straight, model = make(problem, **settings), make(problem, **settings)
    for part in cut(300, 6):
        feed(straight, problem, [part])
        model = pickle.loads(pickle.dumps(feed(model, problem, [part])))
    assert model.coef_.tobytes() == straight.coef_.tobytes()
    assert model.intercept_ == straight.intercept_


def test_same_seed_same_bits_and_the_order_is_random():
    problem = make_problem("hinge", 300)

    def coef(**settings):
        return feed(make(problem, **settings), problem, cut(300, 3)).coef_.tobytes()

    for sampling in ("permutation", "random"):
        assert coef(sampling=sampling) == coef(sampling=sampling)
        assert coef(sampling=sampling) != coef(sampling=sampling, random_state=1)
    cyclic = {"sampling": "cyclic"}
    assert coef(**cyclic) == coef(random_state=1, **cyclic)


def test_parts_differ_in_order_if_the_seed_is_not_fixed():
    problem = make_problem("hinge", 300)
    settings = {"random_state": np.random.RandomState(0), "fit_intercept": False}
    model = feed(make(problem, **settings), problem, cut(300, 1), n_epochs=2)
    fixed = feed(make(problem, fit_intercept=False), problem, cut(300, 1), n_epochs=2)
    assert not same(model, fixed)


def test_clone_forgets():
    problem = make_problem("hinge")
    model = feed(make(problem), problem, cut(60, 2))
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        fresh.predict(problem.X)
    assert same(feed(fresh, problem, cut(60, 2)), model, rel=0)


@pytest.mark.parametrize(
    "layout",
    [
        sp.csr_matrix,
        sp.csr_array,
        sp.csc_matrix,
        np.asfortranarray,
        lambda X: pd.DataFrame(X, columns=list("abcd")),
    ],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_storage_makes_no_difference(layout, fit_intercept):
    problem = make_problem("log")
    problem.X[::7] = 0.0
    expected = make(problem, fit_intercept=fit_intercept)
    model = clone(expected)
    for part in cut(60, 3):
        X, y = problem.X[part], problem.y[part]
        expected.partial_fit(X, y, classes=[-1, 1])
        model.partial_fit(layout(X), y, classes=[-1, 1])
    assert same(model, expected)


def test_wide_sparse_parts():
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 100_000), density=1e-4, rng=rng, format="csr")
    y = np.arange(600) % 2
    model = Pegasos(lam=0.01, random_state=0)
    for part in cut(600, 3):
        model.partial_fit(X[part], y[part], classes=[0, 1])
    assert model.coef_.shape == (1, 100_000)
    assert model.score(X, y) > 0.9


def test_sparsify_does_not_end_a_stream():
    problem = make_problem("hinge")
    model = feed(make(problem), problem, cut(60, 2))
    expected = feed(pickle.loads(pickle.dumps(model)), problem, cut(60, 2))
    assert same(feed(model.sparsify(), problem, cut(60, 2)), expected, rel=0)
    fit = problem.fit(Pegasos, lam=0.1, tol=0.0, max_iter=2)
    expected = feed(pickle.loads(pickle.dumps(fit)), problem, cut(60, 2))
    assert same(feed(fit.sparsify(), problem, cut(60, 2)), expected, rel=0)


# ---------------------------------------------------------------- errors

PROBLEM = make_problem("hinge")
X, Y = PROBLEM.X, PROBLEM.y
BAD = {
    "output": ({"output": "random"}, {}, r"^output: found 'random', expected 'last'"),
    "balanced": ({"class_weight": "balanced"}, {}, r"^class_weight: found 'balanced'"),
    "columns": ({}, {"X": X[:, :3]}, r"X has 3 features"),
    "rows": ({}, {"y": Y[:-1]}, r"^y: found 59 entries, expected 60"),
    "nan": ({}, {"X": X * np.nan}, r"X.* NaN"),
    "label": ({}, {"y": Y + 5}, r"^y: found \[4.*expected labels of"),
    "weights": ({}, {"sample_weight": -np.ones(60)}, r"^sample_weight: found -1"),
    "no weight": ({}, {"sample_weight": np.zeros(60)}, r"^sample_weight: found zero"),
    "batch_size": ({"batch_size": 0}, {}, r"^batch_size: found 0, expected an integer"),
    "lam": ({"lam": -1.0}, {}, r"^lam: found -1"),
    "project": ({"project": "yes"}, {}, r"^project: found 'yes', expected True or"),
    "eta0": (
        {"learning_rate": "constant", "eta0": -1.0},
        {},
        r"^eta0: found -1",
    ),
    "loss": ({"loss": "?"}, {}, r"^loss: found '\?'"),
    "task": ({"loss": "squared"}, {}, r"^loss: found 'squared', expected"),
    "classes": ({}, {"classes": [0, 1]}, r"^classes: found \[0, 1\], expected"),
}


@pytest.mark.parametrize("case", [case for case in BAD if case != "eta0"])
def test_a_failure_leaves_the_estimator_as_it_was(case):
    settings, changes, message = BAD[case]
    model = make(PROBLEM).partial_fit(X, Y, classes=[-1, 1])
    model.set_params(**settings)
    before = dict(vars(model))
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        model.partial_fit(**({"X": X, "y": Y} | changes))
    assert vars(model) == before
    model.set_params(**make(PROBLEM).get_params()).partial_fit(X, Y)
    expected = make(PROBLEM).partial_fit(X, Y, classes=[-1, 1]).partial_fit(X, Y)
    assert model.coef_.tobytes() == expected.coef_.tobytes()


@pytest.mark.parametrize(
    "case", [case for case in BAD if case not in ("columns", "task", "classes")]
)
def test_a_failed_first_call_leaves_the_model_unfitted(case):
    settings, changes, message = BAD[case]
    model = make(PROBLEM).set_params(**settings)
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        model.partial_fit(**({"X": X, "y": Y, "classes": [-1, 1]} | changes))
    assert not [name for name in vars(model) if re.search(r"^_[a-z]|_$", name)]


def test_names_of_columns_are_checked():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make(PROBLEM).partial_fit(frame, Y, classes=[-1, 1])
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.set_axis(list("dcba"), axis=1), Y)
    model.partial_fit(frame, Y)


def test_only_pegasos_learns_from_streams():
    assert not hasattr(Sdca(), "partial_fit")
    assert set(CLASSIFIERS) | set(REGRESSORS) == set(NAMES)
