"""Scores on held-out rows: recorded, drawn, and a reason to stop."""

import copy
import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate

from conftest import CLASSIFIERS, FORMULAS, LOSSES, REGRESSORS, SHAPES
from sdca_rs import (
    Asdca,
    Data,
    DualGradient,
    Pegasos,
    ScoreHistory,
    Sdca,
    SdcaClassifier,
    SdcaRegressor,
    Subgradient,
)
from sdca_rs.plotting import ConvergenceDisplay

mpl.use("Agg")

IRIS, SPECIES = load_iris(return_X_y=True)
# Half of the rows is held out.
X, X_TEST = IRIS[::2], IRIS[1::2]
Y = {
    "2": np.array(["no", "yes"])[(SPECIES == 1).astype(int)],
    "3": SPECIES,
    "numbers": IRIS[:, 0],
}
WEIGHTS = np.linspace(0.5, 2, 75)
FEW = {"max_iter": 6, "tol": 0, "record_every": 1, "random_state": 0}
ESTIMATORS = [Sdca, Asdca, Pegasos, Subgradient, DualGradient]


def followed(estimator, kind, *, X_test=X_TEST, X=X, **scores):
    """Fit half of the rows, and follow the other half."""
    history = ScoreHistory(X_test, Y[kind][1::2], **scores)
    return estimator.set_params(callback=history).fit(X, Y[kind][::2])


# --- what is recorded -----------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("output", ["last", "average"])
def test_scores_are_those_of_the_model_at_each_evaluation(estimator, output):
    loss = "squared_hinge"
    models = []

    def keep(progress):
        models.append((progress.coef, progress.intercept))

    settings = FEW | {"output": output}
    plain = estimator(loss, **settings, callback=keep).fit(X, Y["2"][::2])
    model = followed(
        estimator(loss, **settings), "2", scoring=["hinge", "accuracy", "roc_auc"]
    )
    history = model.history_
    assert len(models) == len(history["gap"])
    y = Y["2"][1::2]
    for i, (w, b) in enumerate(models):
        scores = X_TEST @ w + b
        assert history["roc_auc"][i] == roc_auc_score(y, scores)
        predicted = np.where(scores > 0, "yes", "no")
        assert history["accuracy"][i] == accuracy_score(y, predicted)
        expected = FORMULAS["hinge"].value(scores, np.where(y == "yes", 1, -1), None)
        assert history["hinge"][i] == pytest.approx(expected.mean(), rel=1e-12)
    # It only looks on.
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert [*history] == [*plain.history_, "hinge", "accuracy", "roc_auc"]


def fitted_with(loss, kind, scoring, **settings):
    settings = {"loss_param": SHAPES.get(loss)} | FEW | settings
    return followed(
        Sdca(loss, **settings), kind, scoring=scoring, sample_weight=WEIGHTS
    )


@pytest.mark.parametrize("kind", ["2", "3"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_loss_of_classifiers_can_be_followed(name, kind):
    model = fitted_with("log", kind, name)
    y = Y[kind][1::2]
    last = [model.history_] if kind == "2" else model.history_
    for k, history in enumerate(last):
        of_class = y == (model.classes_[1] if kind == "2" else model.classes_[k])
        scores = X_TEST @ model.coef_[k] + model.intercept_[k]
        shape = LOSSES[name].default
        values = FORMULAS[name].value(scores, np.where(of_class, 1, -1), shape)
        expected = np.average(values, weights=WEIGHTS)
        assert history[name][-1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", [name for name in REGRESSORS if name != "poisson"])
def test_every_loss_of_regressors_can_be_followed(name):
    for loss in ("squared", name):
        model = fitted_with(loss, "numbers", [name, "r2"])
        # The shape is that of the estimator, if it is its loss.
        shape = SHAPES.get(name) if loss == name else LOSSES[name].default
        y = Y["numbers"][1::2]
        values = FORMULAS[name].value(model.predict(X_TEST), y, shape)
        expected = np.average(values, weights=WEIGHTS)
        assert model.history_[name][-1] == pytest.approx(expected, rel=1e-10)
        r2 = get_scorer("r2")(model, X_TEST, y, sample_weight=WEIGHTS)
        assert model.history_["r2"][-1] == pytest.approx(r2, rel=1e-12)


def test_the_loss_of_counts():
    model = fitted_with("poisson", "numbers", {"loss": "poisson", "d2": None})
    y = Y["numbers"][1::2]
    p = X_TEST @ model.coef_ + model.intercept_
    expected = np.average(FORMULAS["poisson"].value(p, y, None), weights=WEIGHTS)
    assert model.history_["loss"][-1] == pytest.approx(expected, rel=1e-10)
    assert model.history_["d2"][-1] == model.score(X_TEST, y, WEIGHTS)


@pytest.mark.parametrize("kind", ["2", "3"])
def test_held_out_rows_need_not_have_all_classes(kind):
    label = "yes" if kind == "2" else 1
    history = ScoreHistory(X_TEST[:1], [label], scoring=["hinge", "accuracy"])
    model = SdcaClassifier(callback=history, **FEW).fit(X, Y[kind][::2])
    p = np.ravel(model.decision_function(X_TEST[:1]))
    signs = [1] if kind == "2" else [-1, 1, -1]
    histories = [model.history_] if kind == "2" else model.history_
    for score, sign, found in zip(p, signs, histories, strict=True):
        loss = FORMULAS["hinge"].value(score, sign, None)
        assert found["hinge"][-1] == pytest.approx(loss, rel=1e-12)
        assert found["accuracy"][-1] == float(sign * score > 0)


def test_a_loss_of_0_is_0():
    """The rows are so far away that no margin is short."""
    far = np.array([[1e6], [-1e6]])
    history = ScoreHistory(far, [1, 0], scoring="hinge")
    model = SdcaClassifier(callback=history).fit([[1.0], [-1.0]] * 5, [1, 0] * 5)
    assert model.history_["hinge"][-1] == 0.0


@pytest.mark.parametrize("scoring", ["log_loss", "log"])
def test_an_alias_keeps_its_name(scoring):
    model = followed(SdcaClassifier(**FEW), "2", scoring=scoring)
    assert scoring in model.history_


def frame_first(model, X, y):
    assert isinstance(X, pd.DataFrame)
    return X.iloc[0, 0] + len(y)


@pytest.mark.parametrize(
    ("scoring", "names"),
    [
        (None, ["score"]),
        (frame_first, ["score"]),
        ("accuracy", ["accuracy"]),
        (("log", "accuracy"), ["log", "accuracy"]),
        ({"a": "log", "b": frame_first, "c": "roc_auc"}, ["a", "b", "c"]),
    ],
)
def test_scores_have_names(scoring, names):
    frames = [pd.DataFrame(part, columns=list("abcd")) for part in (X, X_TEST)]
    model = followed(
        SdcaClassifier(**FEW), "2", scoring=scoring, X=frames[0], X_test=frames[1]
    )
    assert [*model.history_][-len(names) :] == names
    if "score" in names and scoring is None:
        assert model.history_["score"][-1] == model.score(frames[1], Y["2"][1::2])
    if "b" in names:
        assert model.history_["b"].tolist() == [X_TEST[0, 0] + 75] * 7


@pytest.mark.parametrize("store", [sp.csr_array, Data, np.asfortranarray])
def test_rows_may_be_stored_in_any_way(store):
    plain = followed(SdcaClassifier(**FEW), "3", scoring=["log", "accuracy"])
    other = followed(
        SdcaClassifier(**FEW), "3", scoring=["log", "accuracy"], X_test=store(X_TEST)
    )
    for ours, theirs in zip(other.history_, plain.history_, strict=True):
        np.testing.assert_allclose(ours["log"], theirs["log"], rtol=1e-12)
        np.testing.assert_array_equal(ours["accuracy"], theirs["accuracy"])


def test_data_bring_their_weights():
    weighted = Data(X_TEST, sample_weight=WEIGHTS)
    model = followed(SdcaClassifier(**FEW), "2", scoring=None, X_test=weighted)
    last = model.history_["score"][-1]
    assert last == model.score(X_TEST, Y["2"][1::2], WEIGHTS)
    assert last != model.score(X_TEST, Y["2"][1::2])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_of_several_classes_is_scored_against_the_rest(n_jobs):
    model = followed(
        SdcaClassifier(n_jobs=n_jobs, **FEW), "3", scoring=["accuracy", "roc_auc"]
    )
    y = Y["3"][1::2]
    scores = model.decision_function(X_TEST)
    for k, history in enumerate(model.history_):
        assert history["accuracy"][-1] == np.mean((scores[:, k] > 0) == (y == k))
        assert history["roc_auc"][-1] == roc_auc_score(y == k, scores[:, k])


# --- stopping and going back ----------------------------------------------------------


def overfitted(estimator=SdcaClassifier, *, kind="2", seed=1, **settings):
    """Return an estimator that fits noise, with rows, and rows that show it."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(240, 50))
    noisy = rows[:, 0] + rng.normal(size=240)
    y = noisy > 0 if kind == "2" else np.digitize(noisy, [-0.8, 0.8])
    model = estimator(
        **{
            "loss": "log",
            "C": 1e4,
            "tol": 0,
            "accelerate": False,
            "max_iter": 60,
            "record_every": 1,
            "random_state": 0,
        }
        | settings
    )
    return model, (rows[:80], y[:80]), (rows[80:], y[80:])


@pytest.mark.parametrize("patience", [1, 3.5, 10])
@pytest.mark.parametrize("scoring", ["log", "roc_auc"])
def test_the_run_stops_when_the_score_stalls(scoring, patience):
    model, rows, test = overfitted()
    whole = clone(model).set_params(callback=ScoreHistory(*test, scoring=scoring))
    scores = whole.fit(*rows).history_[scoring] * (-1 if scoring == "log" else 1)
    # The first epoch at which the best is so long ago.
    epochs = np.arange(61)
    best = np.array([scores[: e + 1].argmax() for e in epochs])
    stop = int(epochs[epochs - best >= patience][0])
    assert stop < 60
    history = ScoreHistory(*test, scoring=[scoring, "accuracy"], patience=patience)
    model.set_params(callback=history).fit(*rows)
    assert (model.stop_reason_, model.n_iter_) == ("callback", stop)
    np.testing.assert_array_equal(
        model.history_["gap"], whole.history_["gap"][: stop + 1]
    )
    # Which is not the best model.
    assert model.objective_ == model.history_["primal"][-1]


@pytest.mark.parametrize("patience", [None, 5])
@pytest.mark.parametrize("scoring", ["log", "accuracy", None])
@pytest.mark.parametrize("kind", ["2", "3"])
def test_the_best_model_is_given_back(kind, scoring, patience):
    model, rows, test = overfitted(kind=kind)
    history = ScoreHistory(*test, scoring=scoring, patience=patience, restore_best=True)
    plain = clone(model)
    model.set_params(callback=history).fit(*rows)
    name = scoring or "score"
    histories = [model.history_] if kind == "2" else model.history_
    test_scores = np.atleast_2d(model.decision_function(test[0]).T)
    for k, kept in enumerate(histories):
        values = kept[name] * (-1 if scoring == "log" else 1)
        best = values.argmax()
        assert best < len(values) - 1
        # The certificate is that of the model.
        primal, gap = np.ravel(model.objective_)[k], np.ravel(model.duality_gap_)[k]
        assert primal == kept["primal"][best]
        assert gap == primal - np.ravel(model.dual_objective_)[k] > 0
        is_class = np.where(test[1] == model.classes_[k if kind == "3" else 1], 1, -1)
        if scoring == "log":
            found = FORMULAS["log"].value(test_scores[k], is_class, None).mean()
        else:
            found = np.mean((test_scores[k] > 0) == (is_class > 0))
        assert found == pytest.approx(kept[name][best], rel=1e-12)
        # Stopped there, the run returns the same model.
        stopped = clone(plain).set_params(max_iter=max(int(best), 1), tol=0)
        if kind == "2" and best > 0:
            stopped.fit(*rows)
            np.testing.assert_allclose(model.coef_, stopped.coef_, rtol=1e-9)
            np.testing.assert_allclose(model.objective_, stopped.objective_)


def test_the_best_of_a_regression_is_given_back():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 30))
    y = rows[:, 0] + 3 * rng.normal(size=200)
    history = ScoreHistory(
        rows[40:], y[40:], scoring="squared", restore_best=True, patience=5
    )
    model = SdcaRegressor(
        C=1e4, tol=0, accelerate=False, record_every=0.25, callback=history
    ).fit(rows[:40], y[:40])
    best = model.history_["squared"].argmin()
    error = np.mean((model.predict(rows[40:]) - y[40:]) ** 2) / 2
    assert error == pytest.approx(model.history_["squared"][best])
    assert isinstance(model.intercept_, float)
    assert model.objective_ == model.history_["primal"][best]


def test_a_score_of_nan_is_never_the_best():
    scores = iter([np.nan, 1.0, np.nan, 0.5, 0.2, 0.1, 0.1])
    model = followed(
        SdcaClassifier(**FEW),
        "2",
        scoring=lambda *_: next(scores),
        restore_best=True,
    )
    assert model.objective_ == model.history_["primal"][1]


# --- among scikit-learn's tools, and in pictures --------------------------------------


def test_it_is_shared_by_clones_and_searches():
    history = ScoreHistory(X_TEST, Y["2"][1::2], scoring="accuracy")
    model = SdcaClassifier(callback=history, **FEW)
    assert clone(model).callback is history
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, Y["2"][::2])
    assert len(search.best_estimator_.history_["accuracy"]) == 7
    runs = cross_validate(model, X, Y["2"][::2], cv=2, return_estimator=True)
    first, second = (fit.history_["accuracy"] for fit in runs["estimator"])
    assert (first != second).any()


def test_it_travels():
    model = followed(SdcaClassifier(**FEW), "2", scoring=["log", "accuracy"])
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        again = other.fit(X, Y["2"][::2]).history_
        np.testing.assert_array_equal(again["log"], model.history_["log"])


def test_its_repr_is_short():
    history = ScoreHistory(X_TEST, Y["2"][1::2], scoring="log", patience=3)
    assert repr(history) == "ScoreHistory(75 rows, scoring='log', patience=3)"
    assert repr(ScoreHistory([[1]], [1], restore_best=True)) == (
        "ScoreHistory(1 rows, restore_best=True)"
    )


@pytest.mark.parametrize("kind", ["2", "3"])
def test_convergence_display_draws_scores(kind):
    fits = [
        followed(SdcaClassifier(**FEW | {"random_state": seed}), kind, scoring="log")
        for seed in range(2)
    ]
    display = ConvergenceDisplay.from_estimators({"fit": fits}, y="log")
    assert display.ax_.get_ylabel() == "log"
    assert len(display.lines_) == (1 if kind == "2" else 3)
    line = display.lines_[0].get_ydata()
    first = [fit.history_ if kind == "2" else fit.history_[0] for fit in fits]
    np.testing.assert_allclose(line, np.mean([h["log"] for h in first], axis=0))
    mpl.pyplot.close("all")


# --- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "settings", "error", "message"),
    [
        (SdcaClassifier(), {"scoring": "acuracy"}, ValueError, "scoring: .*acuracy"),
        (SdcaClassifier(), {"scoring": "hinged"}, ValueError, "did you mean 'hinge'"),
        (SdcaClassifier(), {"scoring": "squared"}, ValueError, "scoring: .*'log', one"),
        (SdcaClassifier(), {"scoring": 3}, TypeError, "scoring: found 3"),
        (SdcaClassifier(), {"scoring": []}, TypeError, r"scoring: found \[\]"),
        (SdcaClassifier(), {"scoring": [len]}, TypeError, "scoring: found"),
        (SdcaClassifier(), {"scoring": {"a": 1}}, TypeError, "found 1 for 'a'"),
        (SdcaClassifier(), {"scoring": {"gap": "log"}}, ValueError, "the name 'gap'"),
        (SdcaClassifier(), {"scoring": lambda *_: "x"}, TypeError, "found 'x' as the"),
        (SdcaClassifier(), {"patience": 0}, ValueError, "patience: found 0"),
        (SdcaClassifier(), {"patience": "a"}, ValueError, "patience: found 'a'"),
        (SdcaClassifier(), {"patience": True}, ValueError, "patience: found True"),
        (SdcaClassifier(), {"restore_best": 1}, TypeError, "restore_best: found 1"),
        (SdcaClassifier(), {"sample_weight": [1]}, ValueError, "sample_weight: found"),
        (SdcaClassifier(), {"X_test": X_TEST[:, 0]}, ValueError, "Expected 2D array"),
        (SdcaClassifier(), {"X_test": X_TEST[:3]}, ValueError, "y: found 75 entries"),
        (SdcaClassifier(), {"X_test": X_TEST[:, :2]}, ValueError, "X has 2 features"),
    ],
)
def test_bad_settings_are_refused(estimator, settings, error, message):
    with pytest.raises(error, match=message):
        followed(clone(estimator), "2", **settings)


def test_a_loss_must_fit_the_predictions():
    with pytest.raises(
        ValueError, match="'hinge', expected a loss for the predictions"
    ):
        followed(SdcaRegressor(), "numbers", scoring="hinge")
    with pytest.raises(ValueError, match=r"'poisson', one of poisson$"):
        followed(SdcaRegressor("poisson"), "numbers", scoring="absolute")


def test_labels_must_be_known_to_a_loss():
    history = ScoreHistory(X_TEST, ["maybe"] * 75, scoring="log")
    with pytest.raises(ValueError, match=r"y: found \['maybe'\], expected labels of"):
        SdcaClassifier(callback=history).fit(X, Y["2"][::2])
