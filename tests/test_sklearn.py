"""Sdca among the tools of scikit-learn, and the shape of what it gives back."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score, d2_tweedie_score, log_loss, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

from sdca_rs import Sdca, losses

CLASSIFIERS = [loss.name for loss in losses() if loss.task == "classification"]
REGRESSORS = [loss.name for loss in losses() if loss.task == "regression"]
LOSSES = CLASSIFIERS + REGRESSORS

N = 90
rng = np.random.default_rng(0)
X = rng.standard_normal((N, 4))
SCORE = X @ [2.0, -1.0, 0.5, 0.0] + 0.5 * rng.standard_normal(N)
TWO = (SCORE > 0.3).astype(int)
THREE = np.digitize(SCORE, [-1.0, 1.0])
COUNTS = rng.poisson(np.exp(0.3 * SCORE)).astype(float)
WEIGHTS = rng.uniform(0.1, 2.0, N)


def target(loss):
    if loss in CLASSIFIERS:
        return TWO
    return COUNTS if loss == "poisson" else SCORE


def make(loss="hinge", *, tol=1e-2, **params):
    return Sdca(loss=loss, tol=tol, random_state=0, **params)


def fitted(model):
    return {name: v for name, v in vars(model).items() if name.endswith("_")}


def assert_same_fit(model, other):
    """Compare all that was learned, bit for bit, but for the clock."""
    ours, theirs = fitted(model), fitted(other)
    for learned in (ours, theirs):
        history = learned.pop("history_")
        for part in history if isinstance(history, list) else [history]:
            assert len(part["seconds"]) == len(part["epoch"])
    np.testing.assert_equal(ours, theirs)


# --- copies ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_clone_forgets_the_fit_and_keeps_the_settings(loss):
    model = make(loss, C=0.5, max_iter=2000).fit(X, target(loss))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not fitted(copy)
    assert_same_fit(copy.fit(X, target(loss)), model)


@pytest.mark.parametrize("y", [TWO, THREE, TWO.astype(str)], ids=["2", "3", "str"])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_round_trip(y, protocol):
    model = make("log").fit(pd.DataFrame(X, columns=list("abcd")), y)
    copy = pickle.loads(pickle.dumps(model, protocol))
    assert copy.get_params() == model.get_params()
    np.testing.assert_equal(fitted(copy), fitted(model))
    frame = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_array_equal(copy.predict_proba(frame), model.predict_proba(frame))
    copy.set_params(warm_start=True, tol=1e-6, max_iter=10_000).fit(frame, y)
    assert np.all(copy.stop_reason_ == "converged")


@pytest.mark.parametrize("loss", LOSSES)
def test_unfitted_pickle_round_trip(loss):
    copy = pickle.loads(pickle.dumps(make(loss)))
    assert_same_fit(copy.fit(X, target(loss)), make(loss).fit(X, target(loss)))


def test_params_are_kept_as_given_and_unchecked_until_fit():
    weights = {0: 1.0, 1: 2.0}
    model = Sdca(loss="?", C=-1, class_weight=weights)
    assert model.get_params()["class_weight"] is weights
    assert model.set_params(loss="hinge", C=1.0).fit(X, TWO) is model
    assert model.class_weight is weights
    with pytest.raises(ValueError, match="Invalid parameter 'gamma'"):
        model.set_params(gamma=1)


# --- meta-estimators ------------------------------------------------------------------


def test_grid_search_over_losses_and_their_parameters():
    grid = [
        {"loss": ["hinge", "log", "squared_hinge"], "C": [0.01, 1.0]},
        {"loss": ["smooth_hinge"], "loss_param": [0.1, 1.0, None], "lam": [0.1]},
    ]
    search = GridSearchCV(make(), grid, cv=3, error_score="raise").fit(X, THREE)
    assert len(search.cv_results_["params"]) == 9
    assert search.best_score_ > 0.7
    best = make(**search.best_params_).fit(X, THREE)
    assert_same_fit(search.best_estimator_, best)


def test_grid_search_over_regressors():
    grid = [
        {"loss": ["quantile"], "loss_param": [0.1, 0.5]},
        {"loss": ["huber", "epsilon_insensitive"], "loss_param": [0.2], "C": [0.1]},
        {"loss": ["squared", "absolute"]},
    ]
    search = GridSearchCV(make("squared"), grid, cv=3, error_score="raise")
    assert search.fit(X, SCORE).best_score_ > 0.8


def test_pipeline_of_sparse_and_dense_columns():
    colours = rng.choice(["red", "green", "blue"], N)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(colour=colours)
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), list("abcd")),
            ("words", OneHotEncoder(), ["colour"]),
        ],
        sparse_threshold=1.0,
    )
    model = make_pipeline(columns, make("log", C=0.1)).fit(frame, TWO)
    assert sp.issparse(model[:-1].transform(frame))
    assert model.score(frame, TWO) > 0.8
    assert model.set_params(sdca__loss="hinge").fit(frame, TWO).score(frame, TWO) > 0.8
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("loss", LOSSES)
def test_cross_validation(loss):
    model = make(loss, C=0.1)
    scores = cross_val_score(model, X, target(loss), error_score="raise")
    assert scores.shape == (5,)
    assert scores.mean() > (0.1 if loss == "poisson" else 0.7)
    predicted = cross_val_predict(model, sp.csr_matrix(X), target(loss))
    assert predicted.shape == (N,)


def test_learned_attributes_serve_selectors():
    model = make("squared")
    picked = SelectFromModel(model).fit(X, SCORE).get_support()
    assert picked.tolist() == [True, True, False, False]
    ranks = RFE(make("log"), n_features_to_select=2).fit(X, TWO).ranking_
    assert ranks[:2].tolist() == [1, 1]
    model.fit(X, SCORE)
    drop = permutation_importance(model, X, SCORE, random_state=0).importances_mean
    assert drop.argmax() == 0


@pytest.mark.parametrize("loss", CLASSIFIERS)
@pytest.mark.parametrize("y", [TWO, THREE], ids=["2", "3"])
def test_calibration_makes_probabilities(loss, y):
    model = CalibratedClassifierCV(make(loss, C=0.1), cv=3).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert log_loss(y, probabilities) < 0.6
    assert model.score(X, y) > 0.75


@pytest.mark.parametrize("loss", CLASSIFIERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_one_vs_rest_is_that_of_scikit_learn(loss, fit_intercept, store, n_jobs):
    settings = {"fit_intercept": fit_intercept, "C": 0.1}
    y = np.digitize(SCORE, [-2.0, 0.0, 1.0])
    own = make(loss, n_jobs=n_jobs, **settings).fit(store(X), y)
    theirs = OneVsRestClassifier(make(loss, **settings)).fit(store(X), y)
    parts = theirs.estimators_
    for name in ("coef_", "intercept_", "dual_coef_"):
        stacked = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(own, name), stacked)
    assert own.duality_gap_.tolist() == [part.duality_gap_ for part in parts]
    assert own.n_iter_ == max(part.n_iter_ for part in parts)
    np.testing.assert_array_equal(own.predict(X), theirs.predict(X))


def test_one_vs_rest_of_large_data_is_that_of_scikit_learn():
    # Too large for the extra epochs of small data.
    large = np.random.default_rng(1).standard_normal((2000, 5))
    y = np.digitize(large[:, 0] + 0.1 * large[:, 1], [-1.0, 0.0, 1.0])
    for loss in ("hinge", "log"):
        own = make(loss, tol=1e-3, n_jobs=2).fit(large, y)
        theirs = OneVsRestClassifier(make(loss, tol=1e-3)).fit(large, y)
        stacked = np.concatenate([part.coef_ for part in theirs.estimators_])
        np.testing.assert_array_equal(own.coef_, stacked)


def test_other_meta_estimators():
    assert OneVsOneClassifier(make()).fit(X, THREE).score(X, THREE) > 0.8
    both = np.c_[SCORE, COUNTS]
    assert MultiOutputRegressor(make("squared")).fit(X, both).predict(X).shape == (N, 2)
    bag = BaggingRegressor(make("absolute"), n_estimators=3, random_state=0)
    assert bag.fit(X, SCORE).score(X, SCORE) > 0.8
    stack = StackingRegressor([("a", make("huber"))], make("squared"), cv=3)
    assert stack.fit(X, SCORE).score(X, SCORE) > 0.8
    scaled = TransformedTargetRegressor(make("squared"), transformer=StandardScaler())
    assert scaled.fit(X, SCORE).score(X, SCORE) > 0.8


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_voting(voting):
    members = [("a", make("log")), ("b", make("log", C=0.01))]
    if voting == "hard":
        members.append(("c", make("modified_huber")))
    model = VotingClassifier(members, voting=voting).fit(X, THREE)
    assert model.score(X, THREE) > 0.8


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_joblib_workers_give_the_same_bits(backend, n_jobs):
    models = [make(loss, n_jobs=n_jobs) for loss in LOSSES]
    targets = [THREE if loss in CLASSIFIERS else target(loss) for loss in LOSSES]
    parallel = Parallel(n_jobs=2, backend=backend)
    there = parallel(
        delayed(model.fit)(X, y) for model, y in zip(models, targets, strict=True)
    )
    for model, y, other in zip(models, targets, there, strict=True):
        assert_same_fit(clone(model).fit(X, y), other)


def test_one_estimator_predicts_in_many_threads():
    model = make("log").fit(X, THREE)
    parallel = Parallel(n_jobs=4, backend="threading")
    for got in parallel(delayed(model.predict_proba)(X) for _ in range(20)):
        np.testing.assert_array_equal(got, model.predict_proba(X))


def test_metadata_routing_of_sample_weight():
    with config_context(enable_metadata_routing=True):
        routed = make("log", C=0.1).set_fit_request(sample_weight=True)
        routed.set_score_request(sample_weight=True)
        plain = make("log", C=0.1).set_fit_request(sample_weight=False)
        plain.set_score_request(sample_weight=True)
        models = {}
        for name, model in {"routed": routed, "plain": plain}.items():
            search = GridSearchCV(make_pipeline(model), {"sdca__tol": [1e-2]}, cv=3)
            models[name] = search.fit(X, TWO, sample_weight=WEIGHTS).best_estimator_[-1]
            scores = cross_validate(
                model, X, TWO, cv=3, params={"sample_weight": WEIGHTS}
            )
            assert np.isfinite(scores["test_score"]).all()
    weighted = make("log", C=0.1).fit(X, TWO, sample_weight=WEIGHTS)
    assert_same_fit(models["routed"], weighted)
    assert_same_fit(models["plain"], make("log", C=0.1).fit(X, TWO))


# --- frames ---------------------------------------------------------------------------

NAMES = ["a", "b", "c", "d"]
FRAMES = {
    "pandas": lambda array, names: pd.DataFrame(array, columns=names),
    "polars": lambda array, names: pl.DataFrame(array, schema=names),
}


@pytest.mark.parametrize("make_frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("loss", ["log", "squared"])
def test_frames_are_arrays_with_names(make_frame, loss):
    frame = make_frame(X, NAMES)
    model, plain = make(loss).fit(frame, target(loss)), make(loss).fit(X, target(loss))
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    assert model.score(frame, target(loss)) == plain.score(X, target(loss))


@pytest.mark.parametrize("make_frame", FRAMES.values(), ids=FRAMES)
def test_changed_names_are_refused_or_warned_of(make_frame):
    model = make("log").fit(make_frame(X, NAMES), TWO)
    for names in (["a", "b", "d", "c"], ["a", "b", "c", "e"]):
        for method in ("predict", "decision_function", "predict_proba"):
            with pytest.raises(ValueError, match="feature names should match"):
                getattr(model, method)(make_frame(X, names))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)
    plain = make().fit(X, TWO)
    with pytest.warns(UserWarning, match="X has feature names"):
        plain.predict(make_frame(X, NAMES))
    model.fit(make_frame(X, ["p", "q", "r", "s"]), TWO)
    assert model.feature_names_in_.tolist() == ["p", "q", "r", "s"]
    model.fit(X, TWO)
    assert not hasattr(model, "feature_names_in_")


def test_series_are_targets_and_weights_by_position():
    index = rng.permutation(N)
    frame = pd.DataFrame(X, columns=NAMES, index=index)
    for y in (pd.Series(TWO, index=index[::-1]), pl.Series(TWO)):
        for weights in (pd.Series(WEIGHTS, index=index), pl.Series(WEIGHTS)):
            model = make().fit(frame, y, sample_weight=weights)
            plain = make().fit(X, TWO, sample_weight=WEIGHTS)
            np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_frames_of_mixed_and_sparse_columns():
    whole = np.round(X)
    plain = make().fit(whole, TWO)
    mixed = pd.DataFrame(whole, columns=NAMES).astype({"a": "int8", "b": "float32"})
    nullable = pd.DataFrame(whole, columns=NAMES).astype("Int64")
    sparse = pd.DataFrame(whole, columns=NAMES).astype(pd.SparseDtype("float64", 0.0))
    for frame in (mixed, nullable, sparse):
        np.testing.assert_allclose(make().fit(frame, TWO).coef_, plain.coef_, atol=1e-8)


def test_categorical_and_text_series_as_labels():
    words = np.array(["low", "mid", "top"])[THREE]
    plain = make().fit(X, words)
    for y in (pd.Series(words), pd.Series(words, dtype="category"), pl.Series(words)):
        model = make().fit(X, y)
        assert model.classes_.tolist() == ["low", "mid", "top"]
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        assert set(model.predict(X)) == {"low", "mid", "top"}


# --- what a loss makes of the estimator -----------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_kind_follows_the_loss(loss):
    classifier = loss in CLASSIFIERS
    for model in (make(loss), make().set_params(loss=loss), make(loss)):
        assert is_classifier(model) == classifier
        assert is_regressor(model) != classifier
        assert hasattr(model, "decision_function") == classifier
        has_probabilities = loss in ("log", "modified_huber")
        assert hasattr(model, "predict_proba") == has_probabilities
        assert hasattr(model, "predict_log_proba") == has_probabilities
        tags = get_tags(model)
        assert tags.estimator_type == ("classifier" if classifier else "regressor")
        assert (tags.classifier_tags is not None) == classifier
        assert (tags.regressor_tags is not None) != classifier
        assert tags.input_tags.sparse
        assert tags.target_tags.required
        assert tags.target_tags.positive_only == (loss == "poisson")
        model.fit(X, target(loss))
        assert hasattr(model, "classes_") == classifier
        assert hasattr(model, "predict_proba") == has_probabilities


@pytest.mark.parametrize("classes", [TWO, THREE], ids=["2", "3"])
@pytest.mark.parametrize("regressor", REGRESSORS)
def test_one_estimator_changes_its_kind_and_back(regressor, classes):
    model = make("log").fit(X, classes)
    first = pickle.loads(pickle.dumps(model))
    model.set_params(loss=regressor).fit(X, target(regressor))
    assert_same_fit(model, make(regressor).fit(X, target(regressor)))
    assert not hasattr(model, "classes_")
    assert model.predict(X).dtype == np.float64
    model.set_params(loss="log").fit(X, classes)
    assert_same_fit(model, first)


# --- labels ---------------------------------------------------------------------------

LABELS = {
    "words": ["no", "yes", "perhaps"],
    "objects": np.array(["no", "yes", "perhaps"], dtype=object),
    "bools": [False, True],
    "signs": [1, -1],
    "far apart": [-7, 3, 10**12],
    "unsigned": np.array([200, 3, 255], dtype=np.uint8),
    "floats": [0.0, 2.0, -5.0],
    "float32": np.array([1.0, 2.0], dtype=np.float32),
    "empty words": ["", " "],
}


@pytest.mark.parametrize("case", LABELS)
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_labels_of_any_type(case, loss):
    names = np.asarray(LABELS[case])
    codes = TWO if len(names) == 2 else THREE
    y = names[codes]
    model = make(loss).fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.sort(names))
    assert model.classes_.dtype == names.dtype
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    assert model.score(X, y) == np.mean(predicted == y) > 0.7
    # The names do not enter the arithmetic, only their order does.
    plain = make(loss).fit(X, np.searchsorted(np.sort(names), y))
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(np.sort(names)[plain.predict(X)], predicted)
    again = make(loss).fit(X, list(y))
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_a_column_of_labels_is_flattened_with_a_warning():
    with pytest.warns(match="column-vector y was passed"):
        model = make().fit(X, TWO[:, None])
    np.testing.assert_array_equal(model.coef_, make().fit(X, TWO).coef_)


# --- shapes ---------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("loss", "y", "outer"),
    [(loss, TWO, (1,)) for loss in CLASSIFIERS]
    + [(loss, THREE, (3,)) for loss in CLASSIFIERS]
    + [(loss, target(loss), ()) for loss in REGRESSORS],
)
def test_shapes(loss, y, outer, store, fit_intercept):
    model = make(loss, fit_intercept=fit_intercept, C=0.1).fit(store(X), y)
    assert model.coef_.shape == (*outer, 4)
    assert model.dual_coef_.shape == (*outer, N)
    assert np.shape(model.intercept_) == outer
    assert model.coef_.dtype == model.dual_coef_.dtype == np.float64
    assert isinstance(model.n_iter_, int)
    assert model.n_features_in_ == 4
    inner = (3,) if outer == (3,) else ()
    for name in ("objective_", "dual_objective_", "duality_gap_", "stop_reason_"):
        assert np.shape(getattr(model, name)) == inner
    if inner:
        assert len(model.history_) == 3
    else:
        assert set(model.history_) == {
            *("epoch", "seconds", "cpu_seconds"),
            *("primal", "dual", "gap", "support", "phase"),
        }
        assert isinstance(model.objective_, float)
        assert isinstance(model.stop_reason_, str)
    if not outer:
        assert isinstance(model.intercept_, float)
    if not fit_intercept:
        assert not np.any(model.intercept_)
    assert model.predict(store(X)).shape == (N,)
    if outer:
        scores = model.decision_function(store(X))
        assert scores.shape == (N, *inner)
        expected = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(scores, expected[:, 0] if not inner else expected)


# --- predictions ----------------------------------------------------------------------


@pytest.mark.parametrize("y", [TWO, THREE], ids=["2", "3"])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_probabilities(y, scale):
    model = make("log").fit(X, y)
    there = scale * X
    scores, shares = model.decision_function(there), model.predict_proba(there)
    logs = model.predict_log_proba(there)
    assert shares.shape == logs.shape == (N, len(model.classes_))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(logs).all()
    np.testing.assert_array_equal(shares, np.exp(logs))
    assert (shares >= 0).all()
    assert (shares <= 1).all()
    if scores.ndim == 1:
        order = scores.argsort()
        assert (np.diff(shares[order, 1]) >= 0).all()
        assert (np.diff(logs[order, 1]) >= 0).all()
        np.testing.assert_allclose(logs[:, 1] - logs[:, 0], scores, rtol=1e-9)
        np.testing.assert_array_equal(shares[:, 1] > 0.5, scores > 0)
    else:
        # Within a row, the order is that of the scores.
        ranks = scores.argsort(axis=1)
        assert (np.diff(np.take_along_axis(logs, ranks, axis=1)) >= 0).all()
    if scale == 1.0:  # Else several classes may be as good as certain.
        classes = model.classes_[logs.argmax(axis=1)]
        np.testing.assert_array_equal(model.predict(there), classes)


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_predict_is_the_class_of_the_score(loss):
    model = make(loss).fit(X, TWO)
    positive = model.decision_function(X) > 0
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[positive.astype(int)]
    )
    model = make(loss).fit(X, THREE)
    best = model.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[best])


@pytest.mark.parametrize("loss", REGRESSORS)
def test_predict_is_the_target_scale(loss):
    model = make(loss).fit(X, target(loss))
    linear = X @ model.coef_ + model.intercept_
    expected = np.exp(linear) if loss == "poisson" else linear
    np.testing.assert_allclose(model.predict(X), expected)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", LOSSES)
def test_score(loss, weights):
    y = target(loss)
    model = make(loss).fit(X, y)
    predicted = model.predict(X)
    if loss in CLASSIFIERS:
        expected = accuracy_score(y, predicted, sample_weight=weights)
    elif loss == "poisson":
        expected = d2_tweedie_score(y, predicted, sample_weight=weights, power=1)
    else:
        expected = r2_score(y, predicted, sample_weight=weights)
    score = model.score(X, y, sample_weight=weights)
    assert isinstance(score, float)
    assert score == expected
    if weights is not None:
        assert score != model.score(X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_sparsify_and_densify(loss):
    y = THREE if loss in CLASSIFIERS else target(loss)
    model = make(loss).fit(X, y)
    coef, predicted = model.coef_.copy(), model.predict(X)
    assert model.sparsify() is model
    assert sp.issparse(model.coef_)
    assert model.sparsify().coef_.format == "csr"
    np.testing.assert_array_equal(model.predict(X), predicted)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), predicted)
    assert model.densify() is model
    np.testing.assert_array_equal(model.coef_, coef)
    assert model.coef_.shape == coef.shape
    np.testing.assert_array_equal(model.densify().coef_, coef)
    model.sparsify().fit(X, y)
    np.testing.assert_array_equal(model.coef_, coef)


# --- class weights --------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["2", "3"])
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_class_weight_is_a_factor_on_sample_weight(loss, y, weights):
    factors = {0: 2.0, 1: 0.25}
    model = make(loss, C=0.1, class_weight=factors).fit(X, y, sample_weight=weights)
    of_rows = np.array([factors.get(label, 1.0) for label in y])
    by_hand = make(loss, C=0.1).fit(
        X, y, sample_weight=of_rows if weights is None else of_rows * weights
    )
    np.testing.assert_array_equal(model.coef_, by_hand.coef_)
    np.testing.assert_array_equal(model.intercept_, by_hand.intercept_)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["2", "3"])
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_balanced_gives_each_class_the_same_total(loss, y, weights):
    model = make(loss, C=0.1, class_weight="balanced").fit(X, y, sample_weight=weights)
    of_rows = np.ones(N) if weights is None else weights
    totals = np.array([of_rows[y == label].sum() for label in model.classes_])
    balanced = of_rows * (of_rows.sum() / len(totals) / totals)[y]
    by_hand = make(loss, C=0.1).fit(X, y, sample_weight=balanced)
    # Which the weights have by construction.
    np.testing.assert_allclose(balanced.sum(), of_rows.sum())
    np.testing.assert_allclose(model.objective_, by_hand.objective_, rtol=1e-3)
    np.testing.assert_allclose(model.coef_, by_hand.coef_, atol=1e-6)


def test_balanced_weights_count_rows():
    repeats = rng.integers(0, 4, N)
    settings = {"C": 0.1, "class_weight": "balanced", "tol": 1e-10, "max_iter": 10_000}
    weighted = make("log", **settings).fit(X, THREE, sample_weight=repeats)
    repeated = make("log", **settings).fit(X.repeat(repeats, 0), THREE.repeat(repeats))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)


def test_class_weight_by_the_users_labels():
    words = np.array(["low", "mid", "top"])[THREE]
    by_words = make(class_weight={"low": 3.0, "top": 0.5}).fit(X, words)
    by_codes = make(class_weight={0: 3.0, 2: 0.5}).fit(X, THREE)
    np.testing.assert_array_equal(by_words.coef_, by_codes.coef_)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1]),
        np.array([-1.0, 1.0]),
        np.array([-7, 300], dtype=np.int16),
        np.array([250, 3], dtype=np.uint8),
        np.array([True, False]),
        np.array([2.0, 5.0], dtype=np.float32),
        np.array([2**63 + 2048, 2**63], dtype=np.uint64),
    ],
    ids=lambda labels: labels.dtype.name,
)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_two_numbers_are_classes_like_any_others(labels, class_weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    second = X[:, 0] + rng.normal(size=60) > 0.4
    y = labels[second.astype(int)]
    fit = Sdca("log", class_weight=class_weight, random_state=0).fit(X, y)
    assert fit.classes_.dtype == labels.dtype
    assert fit.classes_.tolist() == np.unique(y).tolist()
    # The same names in the same order, which are told by sorting.
    names = np.array(["a", "b"])[np.searchsorted(fit.classes_, y)]
    named = Sdca("log", class_weight=class_weight, random_state=0).fit(X, names)
    np.testing.assert_array_equal(fit.coef_, named.coef_)
    np.testing.assert_array_equal(fit.dual_coef_, named.dual_coef_)
    assert fit.score(X, y) == named.score(X, names)


@pytest.mark.parametrize("y", [[0.5, 1.0, 0.5, 1.0], [0, 1.5, 0, 1.5]])
def test_two_fractions_are_no_classes(y):
    with pytest.raises(ValueError, match=r"y: .*continuous"):
        Sdca("hinge").fit(np.eye(4), y)
