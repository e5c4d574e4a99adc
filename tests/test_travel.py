"""Models that travel: to scikit-learn, into files, lean, and onto paper."""

import builtins
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import sdca_rs
from sdca_rs import (
    Asdca,
    Data,
    DualGradient,
    Pegasos,
    Sdca,
    Subgradient,
    certify,
    drop_in,
    load,
    losses,
)

SOLVERS = (Sdca, Asdca, Pegasos, Subgradient, DualGradient)
CLASSIFYING = [loss.name for loss in losses() if loss.task == "classification"]
REGRESSING = [loss.name for loss in losses() if loss.task == "regression"]
TIGHT = {"tol": 1e-13, "max_iter": 20_000, "random_state": 0}


def make_rows(n_samples=60, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_samples, n_features)) * [1, 0.5, 2, 1][:n_features] + 0.3


def make_targets(X, loss, n_classes=2, seed=1):
    """Noisy ones, so that no loss is fitted without an error."""
    rng = np.random.default_rng(seed)
    scores = X @ [1, -1, 0.5, 0][: X.shape[1]] + rng.normal(size=len(X))
    if loss in REGRESSING:
        return rng.poisson(np.exp(scores / 4)) if loss == "poisson" else 3 + scores
    labels = np.array(["ham", "eggs", "spam"])
    return labels[np.digitize(scores, [0.5] if n_classes == 2 else [-0.5, 1])]


def fitted(loss, n_classes=2, estimator=Sdca, X=None, **params):
    X = make_rows() if X is None else X
    y = make_targets(X, loss, n_classes)
    params = {"C": 0.5, "random_state": 0, **params}
    return estimator(loss, **params).fit(X, y), X, y


KINDS = [
    *((loss, k) for loss in CLASSIFYING for k in (2, 3)),
    *((loss, 0) for loss in REGRESSING),
]


# to_sklearn


STOCK = {
    ("hinge", 2): "LinearSVC",
    ("squared_hinge", 2): "LinearSVC",
    ("smooth_hinge", 2): "LinearSVC",
    ("log", 2): "LogisticRegression",
    ("log", 3): "SGDClassifier",
    ("modified_huber", 2): "SGDClassifier",
    ("squared", 0): "Ridge",
    ("absolute", 0): "LinearSVR",
    ("huber", 0): "SGDRegressor",
    ("epsilon_insensitive", 0): "LinearSVR",
    ("squared_epsilon_insensitive", 0): "LinearSVR",
    ("quantile", 0): "QuantileRegressor",
    ("poisson", 0): "PoissonRegressor",
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("loss", "n_classes"), KINDS)
def test_the_stock_estimator_predicts_the_same(loss, n_classes, fit_intercept):
    model, X, _ = fitted(loss, n_classes, fit_intercept=fit_intercept)
    stock = model.to_sklearn()
    expected = STOCK.get((loss, n_classes)) or STOCK[loss, 2]
    assert type(stock).__name__ == expected
    assert type(stock).__module__.startswith("sklearn.")
    check_is_fitted(stock)
    X = np.vstack([X, 30 * X, np.zeros((1, X.shape[1]))])
    for rows in (X, sp.csr_array(X)):
        if n_classes:
            assert (stock.predict(rows) == model.predict(rows)).all()
            np.testing.assert_allclose(
                stock.decision_function(rows),
                model.decision_function(rows),
                rtol=1e-12,
                atol=1e-12,
            )
        else:
            np.testing.assert_allclose(
                stock.predict(rows), model.predict(rows), rtol=1e-12, atol=1e-12
            )
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(
                stock.predict_proba(rows), model.predict_proba(rows), atol=1e-12
            )
    if loss == "log":
        assert hasattr(stock, "predict_proba")
    assert stock.n_features_in_ == 4
    assert not hasattr(stock, "feature_names_in_")
    assert stock.fit_intercept is fit_intercept
    if n_classes:
        assert (stock.classes_ == model.classes_).all()
        assert stock.classes_.dtype == model.classes_.dtype
    if stock.n_iter_ is not None:
        assert np.all(stock.n_iter_ == model.n_iter_)


@pytest.mark.parametrize("estimator", SOLVERS)
def test_all_solvers_have_a_stock_estimator(estimator):
    model, X, _ = fitted("log", 3, estimator, max_iter=3, tol=1.0)
    stock = model.to_sklearn()
    assert (stock.predict(X) == model.predict(X)).all()


def test_the_stock_estimator_of_a_stream():
    X = make_rows()
    y = make_targets(X, "log")
    for lam in (0.1, None):
        stream = Pegasos("log", lam=lam, random_state=0)
        stream.partial_fit(X, y, classes=["ham", "eggs"])
        stock = stream.to_sklearn()
        assert (stock.predict(X) == stream.predict(X)).all()
        # Nobody knows how many rows there are: as much regularisation as for one.
        assert stock.get_params()["C"] == (10 if lam else 1)


@pytest.mark.parametrize("how", ["C", "lam"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["log", "squared", "poisson"])
def test_the_stock_estimator_fits_the_same_problem(loss, weighted, how):
    """scikit-learn's own solver, with the parameters of the export, is the oracle."""
    X = make_rows()
    y = make_targets(X, loss)
    weights = np.arange(len(y)) % 3 + 0.5 if weighted else None
    params = {"C": 0.03} if how == "C" else {"lam": 0.3}
    if loss == "log":
        params["class_weight"] = {"ham": 2.0, "eggs": 1.0}
    model = Sdca(loss, **params, **TIGHT).fit(X, y, sample_weight=weights)
    stock = clone(model.to_sklearn())
    if loss != "squared":
        stock.set_params(tol=1e-10, max_iter=10_000)
    if how == "lam" and loss == "log":
        # The sum of weights in C is that of rows times classes.
        counts = np.ones(len(y)) if weights is None else weights
        total = counts @ np.where(y == "ham", 2.0, 1.0)
        expected = pytest.approx(1 / (0.3 * total), rel=1e-14)
        assert stock.get_params()["C"] == expected
    stock.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(stock.coef_, model.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(stock.intercept_, model.intercept_, rtol=1e-5)


def test_parameters_of_the_other_stock_estimators():
    def exported(loss, **params):
        return fitted(loss, 2, lam=0.25, C=1.0, **params)[0].to_sklearn().get_params()

    # 1 / (lam W) with 60 rows.
    C = pytest.approx(1 / 15)
    assert exported("hinge")["C"] == C
    assert exported("hinge")["loss"] == "hinge"
    assert exported("squared_hinge")["loss"] == "squared_hinge"
    assert exported("absolute")["epsilon"] == 0
    assert exported("epsilon_insensitive", loss_param=0.3)["epsilon"] == 0.3
    assert exported("epsilon_insensitive")["epsilon"] == 0.1
    assert exported("quantile", loss_param=0.3)["quantile"] == 0.3
    assert exported("huber")["epsilon"] == 1.35
    assert exported("huber")["alpha"] == 0.25
    assert exported("modified_huber")["alpha"] == 0.25
    # What made the attributes has left nothing behind.
    assert exported("huber")["max_iter"] == 1000
    assert exported("huber")["random_state"] is None


def test_the_export_draws_no_random_number_and_shares_nothing():
    model, X, _ = fitted("modified_huber", 3)
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    stock = model.to_sklearn()
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    scores = model.decision_function(X)
    for name in ("coef_", "intercept_", "classes_"):
        getattr(stock, name)[:] = getattr(stock, name)[0]
    assert (model.decision_function(X) == scores).all()
    assert len(set(model.classes_)) == 3


def test_the_stock_estimator_does_not_need_this_package():
    for loss, n_classes in KINDS:
        stock = fitted(loss, n_classes)[0].to_sklearn()
        kept = pickle.dumps(stock)
        assert b"sdca" not in kept
        assert repr(pickle.loads(kept)) == repr(stock) == repr(clone(stock))


def test_the_stock_estimator_knows_names_of_columns():
    data = load_iris(as_frame=True)
    model = Sdca("log", random_state=0).fit(data.data, data.target)
    stock = model.to_sklearn()
    # A warning would be an error.
    assert (stock.predict(data.data) == model.predict(data.data)).all()
    with pytest.raises(ValueError, match="feature names"):
        stock.predict(data.data.iloc[:, ::-1])


def test_an_export_of_many_classes():
    X = np.arange(120.0)[:, np.newaxis]
    for loss in ("hinge", "log"):
        model = Sdca(loss, max_iter=1, tol=1e3).fit(X, np.arange(120) // 6)
        assert (model.to_sklearn().predict(X) == model.predict(X)).all()


def test_a_sparse_coef_is_exported():
    for loss in ("hinge", "log", "squared"):
        model, X, _ = fitted(loss)
        expected = model.predict(X)
        got = model.sparsify().to_sklearn().predict(X)
        if loss == "squared":
            np.testing.assert_allclose(got, expected, rtol=1e-12)
        else:
            assert (got == expected).all()


@pytest.mark.parametrize(
    "call", ["to_sklearn", "summary", "coef_table", lambda m: m.save("x.json")]
)
def test_an_estimator_that_is_not_fitted_is_refused(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    method = call if callable(call) else lambda model: getattr(model, call)()
    with pytest.raises(NotFittedError):
        method(Sdca())
    model, _, _ = fitted("hinge")
    with pytest.raises(NotFittedError, match=r"^loss: found 'squared'"):
        method(model.set_params(loss="squared"))
    assert not list(tmp_path.iterdir())


# save and load


def assert_same_model(one, other):
    """Compare all bits of what a file holds."""
    assert type(one) is type(other)
    lost = {"callback": None}
    params, others = ({**each.get_params(), **lost} for each in (one, other))
    # Of several targets, `alpha` is an array after loading.
    np.testing.assert_array_equal(params.pop("alpha", None), others.pop("alpha", None))
    assert params == others
    for name in (
        "coef_",
        "intercept_",
        "classes_",
        "objective_",
        "dual_objective_",
        "duality_gap_",
        "stop_reason_",
        "n_iter_",
        "n_features_in_",
        "feature_names_in_",
        "_steps",
        "_lam",
        "_total_weight",
        "_constant",
        "_target_ndim",
        "solver_",
    ):
        assert hasattr(one, name) == hasattr(other, name), name
        if hasattr(one, name):
            a, b = getattr(one, name), getattr(other, name)
            assert type(a) is type(b), name
            if sp.issparse(a):
                assert a.shape == b.shape
                assert a.format == b.format == "csr"
                a, b = a.toarray(), b.toarray()
            if isinstance(a, np.ndarray):
                assert a.shape == b.shape
                assert a.dtype == b.dtype, name
                if a.dtype.kind == "f":
                    a, b = a.view(np.int64), b.view(np.int64)
            assert np.all(a == b), name


@pytest.mark.parametrize(("loss", "n_classes"), KINDS)
def test_a_loaded_model_is_the_saved_one_to_the_last_bit(loss, n_classes, tmp_path):
    for estimator in SOLVERS if loss == "smooth_hinge" else (Sdca,):
        model, X, y = fitted(loss, n_classes, estimator, tol=0.05)
        model.save(tmp_path / "model.json")
        loaded = load(str(tmp_path / "model.json"))
        assert_same_model(model, loaded)
        assert (loaded.predict(X) == model.predict(X)).all()
        assert loaded.score(X, y) == model.score(X, y)
        proof = certify(loaded, X, y)
        np.testing.assert_allclose(proof.objective, model.objective_, rtol=1e-13)
        # Again, and into a file of the same bytes.
        loaded.save(tmp_path / "again.json")
        first, second = (tmp_path / f"{name}.json" for name in ("model", "again"))
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        ["Ærø", '"\n', "日本"],
        [-3, 7],
        [0, 1, 2**62],
        [False, True],
        [-1.0, 1.0],
        [1.0, 2.0, 4.0],
        np.array(["a", "b"], dtype=object),
        np.array([1, 2], dtype=np.int8),
        np.array([1, 2, 3], dtype=np.uint64),
        np.array([0.0, 2.0], dtype=np.float32),
    ],
    ids=str,
)
def test_classes_of_all_types_come_back(labels, tmp_path):
    X = make_rows(30)
    y = np.asarray(labels)[np.arange(30) % len(labels)]
    model = Sdca(random_state=0, max_iter=2, tol=1.0).fit(X, y)
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert_same_model(model, loaded)
    assert loaded.predict(X).dtype == y.dtype


def test_parameters_of_all_types_come_back(tmp_path):
    X = make_rows(30)
    y = np.arange(30) % 2
    model = Sdca(
        np.str_("log"),
        C=np.float32(0.1),
        class_weight={np.int64(0): 2, 1: 0.1},
        max_iter=np.int64(50),
        fit_intercept=np.bool_(True),
        max_time=np.inf,
        random_state=np.random.RandomState(0),
        callback=print,
        n_jobs=1,
        record_every=30,
    )
    model.set_params(callback=lambda progress: False).fit(X, y)
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.get_params()["C"] == float(np.float32(0.1))
    assert loaded.class_weight == {0: 2, 1: 0.1}
    assert [type(label) for label in loaded.class_weight] == [int, int]
    assert loaded.fit_intercept is True
    assert loaded.max_iter == 50
    # What is no part of a model, and what means the same.
    assert loaded.random_state is loaded.callback is loaded.max_time is None
    assert (loaded.predict_proba(X) == model.predict_proba(X)).all()
    again = loaded.set_params(random_state=0).fit(X, y)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-4)


def test_a_file_is_json_with_names_and_version(tmp_path):
    data = load_iris(as_frame=True)
    model = Sdca("log", random_state=0).fit(data.data, data.target_names[data.target])
    model.save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert record["sdca_rs_version"] == sdca_rs.__version__
    assert record["estimator"] == "Sdca"
    assert record["feature_names_in"] == list(data.data.columns)
    assert record["classes"]["labels"] == ["setosa", "versicolor", "virginica"]
    assert record["coef"]["rows"] == model.coef_.tolist()
    assert record["certificate"]["duality_gap"] == model.duality_gap_.tolist()
    # A line for each key, in braces.
    assert len(text.splitlines()) == len(record) + 2


def test_many_zeros_take_no_place(tmp_path):
    n_features = 20_000
    X = sp.csr_array(
        (np.ones(40), (np.arange(40), np.arange(40) * 499)), shape=(40, n_features)
    )
    y = np.arange(40) % 4
    model = Sdca(random_state=0).fit(X, y)
    assert np.count_nonzero(model.coef_) <= 160
    model.coef_[0, 0] = -0.0
    path = tmp_path / "model.json"
    model.save(path)
    assert path.stat().st_size < 12_000
    assert_same_model(model, load(path))
    model.sparsify().save(path)
    assert_same_model(model, load(path))
    assert (load(path).densify().coef_ == model.coef_.toarray()).all()
    regressor = Sdca("absolute", random_state=0).fit(X, y).sparsify()
    regressor.save(path)
    assert_same_model(regressor, load(path))
    assert load(path).densify().coef_.shape == (n_features,)


def test_a_stream_comes_back_and_goes_on(tmp_path):
    X = make_rows()
    y = make_targets(X, "log")
    stream = Pegasos("log", lam=0.1, random_state=0)
    stream.partial_fit(X, y, classes=["ham", "eggs"])
    stream.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert_same_model(stream, loaded)
    loaded.partial_fit(X, y)
    assert loaded._steps == [2 * len(y)]


def test_what_is_not_proved_comes_back(tmp_path):
    model, _, _ = fitted("log", 3)
    model.dual_objective_[1], model.duality_gap_[1] = -np.inf, np.inf
    model.save(tmp_path / "model.json")
    assert_same_model(model, load(tmp_path / "model.json"))


def test_a_loaded_model_says_what_is_missing(tmp_path):
    model, X, y = fitted("hinge", warm_start=True)
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    with pytest.raises(AttributeError, match="neither partial_fit nor load has dual"):
        _ = loaded.dual_coef_
    with pytest.raises(ValueError, match=r"^warm_start: found .* without dual values"):
        loaded.fit(X, y)
    assert_same_model(model, loaded)
    assert hasattr(loaded.set_params(warm_start=False).fit(X, y), "dual_coef_")


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    class Mine(Sdca):
        pass

    model, _, _ = fitted("hinge")
    path = tmp_path / "model.json"
    mine = Mine(random_state=0).fit(make_rows(), make_targets(make_rows(), "hinge"))
    with pytest.raises(TypeError, match="found Mine, expected one of Asdca, "):
        mine.save(path)
    model.set_params(n_jobs=1 + 2j)
    with pytest.raises(TypeError, match=r"^n_jobs: found \(1\+2j\)"):
        model.save(path)
    model.set_params(n_jobs=None, class_weight={b"ham": 1})
    with pytest.raises(TypeError, match=r"^class_weight: found b'ham'"):
        model.save(path)
    model.set_params(class_weight=None)
    for classes in (
        np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"),
        np.array([b"a", b"b"]),
        np.array([b"a", b"b"], dtype=object),
    ):
        model.classes_ = classes
        with pytest.raises(TypeError, match=r"^classes_: found labels of type"):
            model.save(path)
    assert not path.exists()


def test_the_schema_has_the_keys_of_a_file(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "model_format.md").read_text()
    (schema,) = re.findall(r"```json\n(.*?)```", page, flags=re.S)
    schema = json.loads(schema)
    fitted("log", 3)[0].save(tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert schema["required"] == list(record)
    # `sdca-rs train` adds the last one, where rows need to be prepared.
    assert list(schema["properties"]) == [*record, "input"]
    for key in ("classes", "coef", "training", "certificate"):
        part = schema["properties"][key]
        assert part["required"] == list(part["properties"]) == list(record[key])
        assert part["additionalProperties"] is False
        assert f"`{key}`" in page
        for name in record[key]:
            assert f"`{name}`" in page


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """What a file holds of a model with three classes."""
    path = tmp_path_factory.mktemp("travel") / "model.json"
    fitted("log", 3)[0].save(path)
    return json.loads(path.read_text(encoding="utf-8"))


def changed(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(record):
        part = record
        for key in keys:
            part = part[key]
        if value is KeyError:
            del part[last]
        else:
            part[last] = value

    return change


MALFORMED = [
    (changed("format", "tree"), 'no "format": "sdca-rs model"'),
    (changed("format_version", "1"), "format_version: found '1', expected int"),
    (changed("format_version", True), "format_version: found True, expected int"),
    (changed("format_version", 0), "format_version: found 0"),
    (changed("extra", 1), r"the file: found \['extra'\], expected only"),
    (changed("coef", KeyError), "the file: found no coef"),
    (changed("estimator", "os"), "estimator: found 'os', expected one of Asdca, "),
    (changed("estimator", "BaseEstimator"), "estimator: found 'BaseEstimator'"),
    (changed("estimator", ["Sdca"]), "estimator: found .*expected str"),
    (changed("params", [1]), r"params: found \[1\], expected an object"),
    (changed("params", "__class__", 1), r"params: found \['__class__'\]"),
    (changed("params", "loss", "hinged"), "loss: found 'hinged'"),
    (changed("params", "loss", "squared"), "classes: found .*expected null"),
    (changed("params", "C", [1]), r"params.C: found \[1\]"),
    (changed("params", "class_weight", [[1]]), "class_weight: found 1 entries"),
    (changed("params", "class_weight", [[1, "a"]]), "class_weight: found 'a'"),
    (changed("params", "class_weight", [[[], 1]]), r"class_weight: found \[\]"),
    (changed("n_features_in", 0), "n_features_in: found 0"),
    (changed("n_features_in", 2**63), "n_features_in: found 9"),
    (changed("n_features_in", 3), "coef.rows: found 4 entries, expected 3"),
    (changed("feature_names_in", ["a"]), "feature_names_in: found 1 entries"),
    (changed("feature_names_in", [1] * 4), "feature_names_in: found 1, expected str"),
    (changed("classes", None), "classes: found None, expected labels"),
    (changed("classes", "dtype", "O8"), "classes.dtype: found 'O8'"),
    (changed("classes", "dtype", []), "classes.dtype: found "),
    (changed("classes", "dtype", "int8"), "classes.labels: found 'eggs', expected int"),
    (changed("classes", {"dtype": "int8", "labels": [1, 2, 300]}), "300|range|bounds"),
    (changed("classes", {"dtype": "bool", "labels": [True, True]}), "different labels"),
    (changed("classes", {"dtype": "object", "labels": ["a", 1]}), "different labels"),
    (
        changed("classes", "labels", ["spam", "eggs", "ham"]),
        "different labels in order",
    ),
    (changed("classes", "labels", ["eggs"]), "expected at least two"),
    (changed("classes", "labels", ["eggs", "ham"]), "coef.rows: found 3 entries"),
    (changed("coef", "storage", "csc"), "coef.storage: found 'csc'"),
    (changed("coef", "storage", "sparse"), r"coef.rows: found \[.*expected an object"),
    (changed("coef", "rows", 0, 0, "1.5"), "coef.rows: found '1.5', expected int or"),
    (changed("coef", "rows", 0, 0, True), "coef.rows: found True"),
    (changed("coef", "rows", 0, 0, None), "coef.rows: found None"),
    (changed("coef", "rows", 0, 0, 10**400), "too large|convert"),
    (
        changed(
            "coef", {"storage": "csr", "rows": [{"columns": [0], "values": []}] * 3}
        ),
        "coef.rows.values: found 0 entries, expected 1",
    ),
    *(
        (
            changed(
                "coef",
                {
                    "storage": storage,
                    "rows": [{"columns": columns, "values": [1] * len(columns)}] * 3,
                },
            ),
            "coef.rows.columns: found",
        )
        for storage in ("csr", "sparse")
        for columns in ([4], [-1], [1, 1], [2, 1], [0.5], [2**64])
    ),
    (changed("intercept", [0.0]), "intercept: found 1 entries, expected 3"),
    (changed("training", "lam", 0), "training: found .*expected numbers > 0"),
    (changed("training", "lam", "1"), "training: found '1'"),
    (changed("training", "lam", [1.0]), "training.lam: found 1 entries, expected 3"),
    (changed("training", "total_weight", -1), "training: found"),
    (changed("training", "intercept_scaling", 0), "training: found"),
    (changed("training", "target_ndim", 2), "target_ndim: found 2, expected 1 for"),
    (changed("training", "target_ndim", None), "target_ndim: found None, expected int"),
    (changed("training", KeyError), "the file: found no training"),
    (changed("training", "target_ndim", KeyError), "training: found no target_ndim"),
    (changed("training", "steps", [-1, 0, 0]), "training: found"),
    (changed("certificate", []), "certificate: found "),
    (changed("certificate", "n_iter", 1.5), "certificate.n_iter: found 1.5"),
    (changed("certificate", "n_iter", [1]), "certificate.n_iter: found 1 entries"),
    (changed("certificate", "n_iter", [1, 2, "3"]), "certificate.n_iter: found '3'"),
    (changed("certificate", "objective", [1]), "certificate.objective: found 1 entr"),
    (
        changed("certificate", "objective", ["a"] * 3),
        "certificate.objective: found 'a'",
    ),
    (
        changed("certificate", "stop_reason", [1] * 3),
        "certificate.stop_reason: found 1",
    ),
]


@pytest.mark.parametrize(("change", "message"), MALFORMED)
def test_a_malformed_file_is_refused(change, message, record, tmp_path):
    record = json.loads(json.dumps(record))
    change(record)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^path: .*model\.json: .*({message})"):
        load(path)


def test_a_number_beyond_all_floats_is_refused(record, tmp_path):
    path = tmp_path / "model.json"
    text = json.dumps({**record, "intercept": [0, 0, 7e7]})
    path.write_text(text.replace("70000000.0", "7e777"), encoding="utf-8")
    with pytest.raises(ValueError, match="intercept: found a number that is not fini"):
        load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found no JSON"),
        (b"\x80\x04\x95", "found no JSON"),
        (pickle.dumps({}), "found no JSON"),
        (b"{", "found no JSON"),
        (b"[" * 100_000, "found no JSON"),
        (b"[]", 'found no "format"'),
        (b'"sdca-rs model"', 'found no "format"'),
        (b'{"format": NaN}', "found NaN, expected JSON"),
        (b'{"format": 1, "format": 1}', "found the key 'format' twice"),
        (b'{"format": 1e999}', 'found no "format"'),
        (b"1" * 5000, "(found no|Exceeds)"),
    ],
)
def test_what_is_no_model_is_refused(content, message, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^path: .*model\.json: .*{message}"):
        load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere.json")


def test_a_newer_file_is_refused_with_both_versions(record, tmp_path):
    # Whatever else has changed in it.
    newer = {"format": record["format"], "format_version": 2, "sdca_rs_version": "9.1"}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(newer), encoding="utf-8")
    message = rf"version 2 of the format.*'9\.1'.*at most 1.*{sdca_rs.__version__}"
    with pytest.raises(ValueError, match=message):
        load(path)


def test_a_parameter_that_is_newer_than_the_file_has_its_default(record, tmp_path):
    record = json.loads(json.dumps(record))
    del record["params"]["keep_dual"]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    assert load(path).keep_dual is True


def test_a_failed_save_leaves_the_old_file(tmp_path):
    model, _, _ = fitted("hinge")
    path = tmp_path / "model.json"
    model.save(path)
    before = path.read_bytes()
    model.set_params(n_jobs=object())
    with pytest.raises(TypeError, match="n_jobs"):
        model.save(path)
    assert path.read_bytes() == before


# keep_dual


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", SOLVERS)
def test_without_dual_values_all_else_is_the_same(estimator, n_classes):
    params = {"tol": 0.1}
    full, X, y = fitted("smooth_hinge", n_classes, estimator, **params)
    lean, _, _ = fitted("smooth_hinge", n_classes, estimator, keep_dual=False, **params)
    assert not hasattr(lean, "dual_coef_")
    assert set(vars(full)) - set(vars(lean)) == {"dual_coef_"}
    assert (full.coef_ == lean.coef_).all()
    assert np.all(full.duality_gap_ == lean.duality_gap_)
    proof = certify(lean, X, y)
    np.testing.assert_allclose(proof.objective, full.objective_, rtol=1e-13)
    assert np.all(proof.gap < 0.2 * proof.objective)
    spared = len(pickle.dumps(full)) - len(pickle.dumps(lean))
    assert spared >= full.dual_coef_.nbytes
    copied = pickle.loads(pickle.dumps(lean))
    assert not hasattr(copied, "dual_coef_")
    assert (copied.predict(X) == full.predict(X)).all()


def test_a_regressor_without_dual_values():
    lean, X, y = fitted("quantile", keep_dual=False)
    assert not hasattr(lean, "dual_coef_")
    assert certify(lean, X, y).gap <= 2e-4 * lean.objective_


def test_missing_dual_values_say_why():
    with pytest.raises(AttributeError, match=r"has no attribute 'dual_coef_'$"):
        _ = Sdca().dual_coef_
    lean, X, y = fitted("hinge", keep_dual=False)
    with pytest.raises(AttributeError, match="keep_dual=False drops the dual values"):
        _ = lean.dual_coef_
    stream = Pegasos(lam=1).partial_fit(X, y, classes=["ham", "eggs"])
    with pytest.raises(AttributeError, match="neither partial_fit nor load"):
        _ = stream.dual_coef_
    assert Sdca.dual_coef_ is not None


def test_a_fit_without_dual_values_drops_earlier_ones():
    model, X, y = fitted("hinge")
    model.set_params(keep_dual=False, C=2).fit(X, y)
    assert not hasattr(model, "dual_coef_")


@pytest.mark.parametrize("estimator", [Sdca, Asdca, DualGradient])
def test_a_warm_start_needs_dual_values(estimator):
    model, X, y = fitted("smooth_hinge", 2, estimator, tol=0.1)
    model.set_params(warm_start=True, keep_dual=False)
    for unable in (model, clone(model)):
        with pytest.raises(ValueError, match=r"^warm_start: found True together with"):
            unable.fit(X, y)
    assert hasattr(model, "dual_coef_")


@pytest.mark.parametrize("estimator", [Pegasos, Subgradient])
def test_a_method_on_the_primal_starts_without_dual_values(estimator):
    params = {"warm_start": True, "keep_dual": False, "max_iter": 20, "tol": 0}
    model, X, y = fitted("log", 2, estimator, **params)
    steps, first = model._steps, model.objective_
    model.fit(X, y)
    assert model._steps == [2 * steps[0]]
    assert model.history_["primal"][0] == pytest.approx(first, rel=1e-12)
    assert model.objective_ < first
    assert not hasattr(model, "dual_coef_")


def test_keep_dual_is_a_flag():
    with pytest.raises(TypeError, match=r"^keep_dual: found 1, expected True or False"):
        fitted("hinge", keep_dual=1)


# coef_table


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("estimator", [Sdca, Subgradient])
@pytest.mark.parametrize(("loss", "n_classes"), KINDS)
def test_the_optimum_is_within_the_bounds(loss, n_classes, estimator, fit_intercept):
    params = {"fit_intercept": fit_intercept, "C": 0.1}
    X = make_rows(200)
    best, _, y = fitted(loss, n_classes, X=X, **params, **TIGHT)
    rough, _, _ = fitted(
        loss, n_classes, estimator, X=X, **params, tol=0.05, output="last"
    )
    without, table = rough.coef_table(), rough.coef_table(X, y)
    optimum = best.coef_table()["coef"].to_numpy()
    off = np.abs(optimum - table["coef"].to_numpy())
    error = table["max_error"].to_numpy()
    # The optimum is one to 1e-13 of its objective, too.
    slack = best.coef_table()["max_error"].fillna(1e-6).to_numpy()
    assert (off <= error + slack).all()
    is_intercept = (table["feature"] == "(intercept)").to_numpy()
    assert is_intercept.sum() == fit_intercept * len(np.atleast_1d(rough.objective_))
    loose = without["max_error"].to_numpy()
    assert np.isnan(loose[is_intercept]).all()
    assert (error[~is_intercept] <= loose[~is_intercept]).all()


def test_rows_make_the_bound_tighter_by_the_root_of_two():
    """At ``w = w(a)``, ``gap >= lam |w - w*|^2``."""
    model, X, y = fitted("hinge", X=make_rows(400), accelerate=False, tol=0.01)
    expected = np.sqrt(model.duality_gap_ / model._lam)
    errors = model.coef_table(X, y)["max_error"][:-1]
    np.testing.assert_allclose(errors, expected, rtol=1e-9)
    loose = model.coef_table()["max_error"][:-1]
    np.testing.assert_allclose(loose, np.sqrt(2) * expected, rtol=1e-9)


def test_the_table_has_features_and_classes_in_order():
    data = load_iris(as_frame=True)
    y = data.target_names[data.target]
    model = Sdca("log", random_state=0).fit(data.data, y)
    table = model.coef_table(data.data, y)
    assert list(table) == ["feature", "class", "coef", "max_error", "std_error"]
    names = [*data.data.columns, "(intercept)"]
    assert table["feature"].tolist() == names * 3
    assert table["class"].tolist() == [name for name in model.classes_ for _ in names]
    wide = table.pivot(index="class", columns="feature", values="coef")
    assert (wide[names[:-1]].to_numpy() == model.coef_).all()
    assert (wide["(intercept)"].to_numpy() == model.intercept_).all()
    two, X, y = fitted("hinge", fit_intercept=False)
    assert list(two.coef_table(X, y)) == ["feature", "coef", "max_error"]
    assert two.coef_table()["feature"].tolist() == ["x0", "x1", "x2", "x3"]
    sparse = two.coef_table()["coef"]
    assert (two.sparsify().coef_table()["coef"] == sparse).all()


def test_the_table_without_pandas(monkeypatch):
    model, X, y = fitted("log", 3)
    expected = model.coef_table(X, y)
    import_any = builtins.__import__

    def import_other(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return import_any(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", import_other)
    table = model.coef_table(X, y)
    assert isinstance(table, np.ndarray)
    assert list(table.dtype.names) == list(expected)
    assert len(table) == len(expected)
    for name in table.dtype.names:
        assert table[name].tolist() == expected[name].tolist()


def design(X, fit_intercept=True):
    return np.column_stack([X, np.ones(len(X))]) if fit_intercept else X


def test_standard_errors_without_penalty_are_those_of_least_squares():
    X = make_rows() * [100, 1, 0.1, 1]
    y = make_targets(X, "squared")
    X += [0, 1e5, 0, 0]
    model = Sdca("squared", lam=1e-10, random_state=0, tol=1e-9).fit(X, y)
    Z = design(X)
    solution, squares, _, _ = np.linalg.lstsq(Z, y, rcond=None)
    # A mean far from 0 has ruined the inverse of Z'Z, but not that of R.
    inverse = np.linalg.inv(np.linalg.qr(Z)[1])
    covariance = squares[0] / (len(y) - 5) * inverse @ inverse.T
    table = model.coef_table(X, y)
    np.testing.assert_allclose(table["coef"], solution, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        table["std_error"], np.sqrt(np.diag(covariance)), rtol=1e-6
    )


@pytest.mark.parametrize("loss", ["log", "poisson"])
def test_standard_errors_without_penalty_are_those_of_maximum_likelihood(loss):
    """Maximised by scipy, with the curvature from differences of the gradient."""
    X = make_rows(300)
    y = make_targets(X, loss)
    model = Sdca(loss, lam=1e-10, **TIGHT).fit(X, y)
    Z = design(X)
    t = (y == model.classes_[1]) * 1.0 if loss == "log" else y

    def mean(theta):
        return 1 / (1 + np.exp(-Z @ theta)) if loss == "log" else np.exp(Z @ theta)

    def gradient(theta):
        return Z.T @ (mean(theta) - t)

    def value(theta):
        scores = Z @ theta
        total = np.logaddexp(0, scores) if loss == "log" else np.exp(scores)
        return total.sum() - t @ scores

    ml = minimize(value, np.zeros(5), jac=gradient, method="BFGS", tol=1e-9).x
    step = 1e-5 * np.eye(5)
    information = [(gradient(ml + h) - gradient(ml - h)) / 2e-5 for h in step]
    table = model.coef_table(X, y)
    np.testing.assert_allclose(table["coef"], ml, rtol=1e-3, atol=1e-4)
    expected = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(table["std_error"], expected, rtol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_standard_errors_of_ridge_are_those_of_a_linear_map(fit_intercept):
    """The coefficients are ``A y``, so their covariance is ``s^2 A A'``, exactly."""
    X = make_rows(12)
    y = make_targets(X, "squared")
    lam = 0.2
    model = Sdca("squared", lam=lam, fit_intercept=fit_intercept, **TIGHT).fit(X, y)
    # Column i of A from a fit to a unit vector.
    columns = []
    for unit in np.eye(len(y)):
        fit = clone(model).fit(X, unit)
        intercept = [fit.intercept_] if fit_intercept else []
        columns.append([*fit.coef_, *intercept])
    A = np.array(columns).T
    hat = design(X, fit_intercept) @ A
    residuals = y - hat @ y
    variance = residuals @ residuals / (len(y) - np.trace(hat))
    expected = np.sqrt(variance * np.diag(A @ A.T))
    table = model.coef_table(X, y)
    np.testing.assert_allclose(table["std_error"], expected, rtol=1e-5)


@pytest.mark.parametrize("loss", ["log", "poisson"])
def test_standard_errors_are_a_sandwich_of_the_penalised_hessian(loss):
    model, X, y = fitted(loss, C=0.02)
    Z = design(X)
    p = Z @ np.append(model.coef_, model.intercept_)
    v = np.exp(p) if loss == "poisson" else 1 / (2 + np.exp(p) + np.exp(-p))
    fisher = Z.T @ np.diag(v) @ Z
    hessian = fisher + np.diag([50.0] * 4 + [0.0])
    inverse = np.linalg.inv(hessian)
    expected = np.sqrt(np.diag(inverse @ fisher @ inverse))
    np.testing.assert_allclose(model.coef_table(X, y)["std_error"], expected, rtol=1e-9)


@pytest.mark.parametrize("loss", ["log", "squared", "poisson"])
def test_weights_are_counts_for_standard_errors(loss):
    X = make_rows()
    y = make_targets(X, loss)
    counts = np.arange(len(y)) % 3
    params = {"lam": 0.1, **TIGHT}
    weighted = Sdca(loss, **params).fit(X, y, sample_weight=counts)
    X2, y2 = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    repeated = Sdca(loss, **params).fit(X2, y2).coef_table(X2, y2)
    table = weighted.coef_table(X, y, sample_weight=counts)
    # Rows of weight 0 count for nothing, however long they are.
    for name in ("coef", "std_error"):
        np.testing.assert_allclose(table[name], repeated[name], rtol=1e-6)
    in_handle = weighted.coef_table(Data(X, sample_weight=counts), y)
    assert (in_handle.to_numpy() == table.to_numpy()).all()


@pytest.mark.parametrize("loss", ["log", "squared", "poisson"])
def test_storage_does_not_change_the_table(loss):
    X = make_rows(100).astype(np.float32)
    y = make_targets(X, loss)
    model = Sdca(loss, random_state=0, tol=1e-6).fit(X, y)
    expected = model.coef_table(X, y)
    columns = ["coef", "max_error", "std_error"]
    for rows in (sp.csr_array(X), sp.csc_array(X), X.astype(float), Data(X)):
        table = model.coef_table(rows, y)
        np.testing.assert_allclose(table[columns], expected[columns], rtol=1e-5)


def test_many_rows_are_taken_block_by_block(monkeypatch):
    model, X, y = fitted("log")
    expected = model.coef_table(X, y)["std_error"]
    monkeypatch.setattr("sdca_rs._summary._BLOCK", 4 * 7)
    np.testing.assert_allclose(model.coef_table(X, y)["std_error"], expected, rtol=1e-9)


def test_class_weights_count_in_the_table():
    X = make_rows()
    y = make_targets(X, "log")
    model = Sdca("log", class_weight="balanced", random_state=0).fit(X, y)
    factors = len(y) / (2 * np.array([np.sum(y == label) for label in model.classes_]))
    weights = factors[(y == model.classes_[1]).astype(int)]
    same = Sdca("log", random_state=0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(
        model.coef_table(X, y)["std_error"],
        same.coef_table(X, y, sample_weight=weights)["std_error"],
        rtol=1e-3,
    )


def test_other_rows_than_those_of_the_fit_are_refused():
    model, X, y = fitted("log")
    for rows, targets, weights in (
        (X[:-1], y[:-1], None),
        (X + 1, y, None),
        (X, np.roll(y, 1), None),
        (X, y, np.arange(len(y))),
    ):
        with pytest.raises(ValueError, match=r"^X, y: found an objective of"):
            model.coef_table(rows, targets, sample_weight=weights)
    with pytest.raises(ValueError, match=r"^y: found classes"):
        model.coef_table(X, y == "ham")
    with pytest.raises(ValueError, match=r"^y: found None, expected both of X and y"):
        model.coef_table(X)
    with pytest.raises(ValueError, match=r"^X: found None, expected both of X and y"):
        model.coef_table(y=y)


def test_nothing_is_proved_of_a_stream():
    X = make_rows()
    y = make_targets(X, "log")
    stream = Pegasos("log", lam=0.1, random_state=0)
    table = stream.partial_fit(X, y, classes=["ham", "eggs"]).coef_table(X, y)
    assert table["max_error"].isna().all()
    assert (table["std_error"] > 0).all()


def test_standard_errors_that_there_are_not_are_nan():
    # As many parameters as rows.
    X, y = np.eye(3), np.array([1.0, 2.0, 4.0])
    model = Sdca("squared", lam=1e-18, fit_intercept=False, **TIGHT).fit(X, y)
    assert model.coef_table(X, y)["std_error"].isna().all()
    # Classes so far apart that no row has a doubt.
    model, X, y = fitted("log")
    model.coef_ *= 1e6
    del model.objective_, model.duality_gap_
    assert model.coef_table(X, y)["std_error"].isna().all()


# summary


def test_the_summary_holds_the_certificate():
    data = load_iris(as_frame=True)
    X, y = data.data[50:], data.target_names[data.target[50:]]
    model = Sdca("smooth_hinge", C=0.25, random_state=0).fit(X, y)
    text = model.summary()
    for part in (
        "Sdca\n",
        "loss            smooth_hinge (gamma = 1)\n",
        "lam = 0.04 (C = 0.25)",
        "classes         versicolor (-1), virginica (+1)\n",
        f"intercept       {model.intercept_[0]:.4g}",
        f"objective       {model.objective_:.6g}",
        f"lower bound     {model.dual_objective_:.6g}",
        f"gap             {model.duality_gap_:.1e}",
        f"converged, after {model.n_iter_} epoch",
        f"each within {model.coef_table()['max_error'][0]:.1e} of its best value",
        f"petal width (cm)    {model.coef_[0, 3]:.4g}",
    ):
        assert part in text, part
    assert max(map(len, text.splitlines())) <= 80
    # By size.
    lines = model.summary(max_features=2).splitlines()[-3:]
    assert lines[0] == "  largest 2 of 4 coefficients"
    sizes = [abs(float(line.split()[-1])) for line in lines[1:]]
    assert sizes == sorted(sizes, reverse=True)
    assert "coefficients\n" not in model.summary(max_features=0)


def test_the_summary_of_several_classes():
    model, _, _ = fitted("log", 3)
    lines = model.summary(max_features=1).splitlines()
    for k, name in enumerate(model.classes_):
        first, second = [line.split() for line in lines if f"  {name} " in line[:7]]
        assert first[1] == f"{model.intercept_[k]:.4g}"
        assert first[-1] == model.stop_reason_[k]
        j = np.abs(model.coef_[k]).argmax()
        assert second[1:] == [f"x{j}", f"{model.coef_[k, j]:.4g}"]
    names = [f"a column with the name {j}" for j in range(4)]
    model.feature_names_in_ = np.array(names, dtype=object)
    text = model.summary()
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("\n        ") == 3
    assert "largest" not in model.summary(max_features=0)


@pytest.mark.parametrize("estimator", SOLVERS)
def test_every_model_has_a_summary(estimator, tmp_path):
    model, _, _ = fitted("squared", 0, estimator, tol=0.5, lam=1.0, C=1.0)
    text = model.summary()
    assert text.startswith(estimator.__name__)
    assert "lam = 1\n" in text
    model.save(tmp_path / "model.json")
    assert load(tmp_path / "model.json").summary() == text


def test_the_summary_of_a_stream_and_of_many_zeros():
    X = np.zeros((20, 3))
    X[:, 1] = np.arange(20)
    stream = Pegasos("hinge", lam=1).partial_fit(X, X[:, 1] > 10, classes=[False, True])
    text = stream.summary()
    assert "none after partial_fit" in text
    assert "3, 2 of 3 coefficients are 0" in text
    assert "x1" in text
    assert "x0" not in text
    many = Sdca(max_iter=5, tol=1.0).fit(X, np.arange(20) % 9)
    assert "9: 0, 1, 2, 3, 4, ..., 8\n" in many.summary()


def test_max_features_is_a_count():
    model, _, _ = fitted("hinge")
    with pytest.raises(ValueError, match=r"^max_features: found -1, expected an int"):
        model.summary(max_features=-1)
    with pytest.raises(TypeError, match=r"^max_features: found 1.5"):
        model.summary(max_features=1.5)


# The classes of `drop_in`


def make_drop_ins():
    X = make_rows()
    two, three = (make_targets(X, "log", k) for k in (2, 3))
    numbers = make_targets(X, "squared")
    matrix = np.column_stack([numbers, np.abs(numbers), X @ [1, 2, 3, 4]])
    labels = (matrix > [2, 3, 4]).astype(int)
    return {
        "svc": (drop_in.LinearSVC(), two),
        "svc, 3 classes": (
            drop_in.LinearSVC("l2", "hinge", intercept_scaling=5, class_weight={}),
            three,
        ),
        "svc, free": (drop_in.LinearSVC(intercept_scaling=np.inf), three),
        "svc, none": (drop_in.LinearSVC(fit_intercept=False), three),
        "svr": (drop_in.LinearSVR(epsilon=0.1, C=0.1), numbers),
        "svr, none": (drop_in.LinearSVR(fit_intercept=False, C=0.1), numbers),
        "log": (drop_in.LogisticRegression(C=0.3, class_weight="balanced"), two),
        "log, liblinear": (
            drop_in.LogisticRegression(solver="liblinear", intercept_scaling=0.3),
            two,
        ),
        "quantile": (
            drop_in.QuantileRegressor(penalty="l2", alpha=0.1, quantile=0.3),
            numbers,
        ),
        "ridge": (drop_in.Ridge(alpha=2.0), numbers),
        "ridge, column": (drop_in.Ridge(), numbers[:, np.newaxis]),
        "ridge, matrix": (drop_in.Ridge(alpha=[1.0, 2.0, 30.0]), matrix),
        "ridge, matrix, none": (drop_in.Ridge(fit_intercept=False), matrix),
        "classes": (drop_in.RidgeClassifier(), two),
        "3 classes": (drop_in.RidgeClassifier(class_weight="balanced"), three),
        "labels": (drop_in.RidgeClassifier(alpha=[1.0, 2.0, 30.0]), labels),
        "2 labels": (drop_in.RidgeClassifier(fit_intercept=False), labels[:, :2]),
    }


DROP_INS = make_drop_ins()


@pytest.fixture(params=DROP_INS)
def drop(request):
    """Return a model that is not fitted, rows and targets."""
    model, y = DROP_INS[request.param]
    return clone(model), make_rows(), y


def test_the_stock_estimator_of_a_drop_in_is_its_original(drop):
    model, X, y = drop
    stock = model.fit(X, y).to_sklearn()
    assert type(stock).__name__ == type(model).__name__
    assert type(stock).__module__.startswith("sklearn.")
    for rows in (X, sp.csr_array(X)):
        for method in ("predict", "decision_function", "predict_proba"):
            assert hasattr(stock, method) == hasattr(model, method)
            if not hasattr(model, method):
                continue
            ours, theirs = (getattr(each, method)(rows) for each in (model, stock))
            assert ours.shape == theirs.shape
            if ours.dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
            else:
                assert (ours == theirs).all()
    expected = {**stock.get_params(), **model.get_params()}
    if model.get_params().get("intercept_scaling") == np.inf:
        expected["intercept_scaling"] = 1
    for name, value in stock.get_params().items():
        assert np.all(value == expected[name]) or name in ("penalty", "l1_ratio")
    if not isinstance(model, drop_in.QuantileRegressor):
        again = clone(stock).fit(X, y)
        assert again.coef_.shape == stock.coef_.shape
        off = 0.05 if model.get_params().get("intercept_scaling") == np.inf else 0.01
        np.testing.assert_allclose(again.coef_, stock.coef_, atol=off)


def test_a_drop_in_comes_back_to_the_last_bit(drop, tmp_path):
    model, X, y = drop
    model.fit(X, y).save(tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert record["estimator"] == f"drop_in.{type(model).__name__}"
    loaded = load(tmp_path / "model.json")
    assert_same_model(model, loaded)
    assert (loaded.predict(X) == model.predict(X)).all()
    loaded.save(tmp_path / "again.json")
    first, second = (tmp_path / f"{name}.json" for name in ("model", "again"))
    assert first.read_bytes() == second.read_bytes()
    assert loaded.summary() == model.summary()
    bounds, expected = (each.coef_table()["max_error"] for each in (loaded, model))
    np.testing.assert_array_equal(bounds, expected)
    again = loaded.fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("alpha", [[1, 2.5], (1.0, 2.0), np.array([3.0]), np.array(2)])
def test_all_kinds_of_alpha_come_back(alpha, tmp_path):
    X = make_rows()
    model = drop_in.Ridge(alpha=alpha).fit(X, X[:, :2])
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert_same_model(model, loaded)
    assert loaded.summary() == model.summary()


def test_sparse_coefficients_of_a_drop_in(drop, tmp_path):
    model, X, y = drop
    expected = model.fit(X, y).predict(X)
    shape = model.coef_.shape
    model.sparsify().save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert_same_model(model, loaded)
    stock = model.to_sklearn().predict(X)
    if is_classifier(model):
        assert (stock == expected).all()
    else:
        np.testing.assert_allclose(stock, expected, atol=1e-12)
    assert loaded.densify().coef_.shape == shape


LOSSES = {
    "hinge": lambda p, t, _: np.maximum(0, 1 - t * p),
    "squared_hinge": lambda p, t, _: np.maximum(0, 1 - t * p) ** 2,
    "log": lambda p, t, _: np.logaddexp(0, -t * p),
    "squared": lambda p, t, _: (p - t) ** 2 / 2,
    "epsilon_insensitive": lambda p, t, eps: np.maximum(0, abs(p - t) - eps),
    "quantile": lambda p, t, q: np.maximum(q * (t - p), (q - 1) * (t - p)),
}


@pytest.mark.parametrize("with_dual", [True, False])
@pytest.mark.parametrize("size", [1e-3, 0.3])
def test_the_optimum_of_a_drop_in_is_within_the_bounds(drop, size, with_dual):
    """At other coefficients, with the objective there and the best lower bound."""
    model, X, y = drop
    weights = np.random.default_rng(5).uniform(0.5, 2.0, size=len(X))
    best = model.fit(X, y, weights).coef_table(X, y, sample_weight=weights)
    constant, loss = model._constant, LOSSES[model.loss]
    targets, counts, _ = model._targets_of(y, weights, len(X))
    coefs, intercepts = model._models()
    lams = np.broadcast_to(model._lam, len(coefs))
    rng = np.random.default_rng(6)
    coefs += size * rng.normal(size=coefs.shape)
    objectives = np.empty(len(coefs))
    for k, (w, t, lam) in enumerate(zip(coefs, targets, lams, strict=True)):

        def mean(b, w=w, t=t, lam=lam):
            losses = loss(X @ w + b, t, model.loss_param)
            penalty = 0.0 if constant is None else (b / constant) ** 2
            return np.average(losses, weights=counts) + lam / 2 * (w @ w + penalty)

        if constant is not None:
            intercepts[k] += size * rng.normal()
        elif model.fit_intercept:
            # It is the best one of these coefficients.
            around = (intercepts[k] - 5, intercepts[k] + 5)
            found = minimize_scalar(mean, bounds=around, options={"xatol": 1e-10})
            intercepts[k] = found.x
        objectives[k] = mean(intercepts[k])
    gaps = objectives - np.atleast_1d(model.dual_objective_)
    several = len(coefs) > 1
    model.objective_ = objectives if several else objectives[0]
    model.duality_gap_ = gaps if several else gaps[0]
    model.__dict__.update(model._in_shape(coefs, intercepts))
    if not with_dual:
        del model.dual_coef_
    for rows in ((), (X, y)):
        table = model.coef_table(*rows, sample_weight=weights if rows else None)
        off = np.abs(table["coef"] - best["coef"]).to_numpy()
        error = table["max_error"].to_numpy()
        is_intercept = (table["feature"] == "(intercept)").to_numpy()
        assert is_intercept.sum() == model.fit_intercept * len(coefs)
        is_known = (~is_intercept) | bool(rows) | (constant is not None)
        assert np.isnan(error[~is_known]).all()
        slack = best["max_error"].to_numpy() + 1e-6
        assert (off <= error + slack)[is_known].all()
        # They are no larger than need be.
        assert (off / error)[~is_intercept].max() > 0.02
        if constant is not None:
            assert (off / error)[is_intercept].max() > 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_regularised_intercept_is_a_coefficient(is_sparse, dtype):
    """The table is that of rows with one more column, whose values are the scaling."""
    X, scaling = make_rows().astype(dtype), 0.3
    y = make_targets(X, "log")
    weights = np.random.default_rng(3).integers(1, 4, size=len(X)).astype(float)
    model = drop_in.LogisticRegression(
        solver="liblinear", intercept_scaling=scaling, tol=1e-7
    )
    rows = sp.csr_array(X) if is_sparse else X
    model.fit(rows, y, weights)
    table = model.coef_table(Data(rows, sample_weight=weights), y)
    wide = np.column_stack([X, np.full(len(X), scaling, dtype)]).astype(float)
    p = model.predict_proba(X)[:, 1]
    fisher = (wide.T * (weights * p * (1 - p))) @ wide
    inverse = np.linalg.inv(fisher + np.eye(5))
    expected = np.sqrt(np.diag(inverse @ fisher @ inverse))
    expected[-1] *= scaling
    np.testing.assert_allclose(table["std_error"], expected, rtol=1e-5)
    assert table["max_error"].iloc[-1] <= 0.31 * np.sqrt(2e-12 / model._lam)


def test_the_table_of_several_targets_is_one_for_each():
    model, y = DROP_INS["ridge, matrix"]
    X = make_rows()
    table = clone(model).fit(X, y).coef_table(X, y)
    assert list(table) == ["feature", "target", "coef", "max_error", "std_error"]
    for target, alpha in enumerate(model.alpha):
        alone = drop_in.Ridge(alpha=alpha).fit(X, y[:, target])
        expected = alone.coef_table(X, y[:, target])
        part = table[table["target"] == target].reset_index(drop=True)
        np.testing.assert_allclose(part[["coef"]], expected[["coef"]], rtol=1e-7)
        np.testing.assert_allclose(part["std_error"], expected["std_error"], rtol=1e-7)


def test_the_table_of_classes_by_least_squares_has_no_standard_errors():
    for kind, name in (("classes", None), ("3 classes", "class"), ("labels", "label")):
        model, y = DROP_INS[kind]
        X = make_rows()
        table = clone(model).fit(X, y).coef_table(X, y)
        several = [] if name is None else [name]
        assert list(table) == ["feature", *several, "coef", "max_error"]


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("ridge, matrix", np.ones(60), "y: found 1 targets for each row, expected 3"),
        ("ridge", np.ones((60, 2)), "y: found 2 targets for each row, expected 1"),
        ("ridge, matrix", np.ones((60, 3)), "X, y: found an objective of"),
        ("3 classes", np.arange(60) % 3, "y: found classes"),
        ("svc", np.arange(60) % 2, "y: found classes"),
    ],
)
def test_other_targets_than_those_of_a_drop_in_are_refused(kind, y, message):
    model, targets = DROP_INS[kind]
    X = make_rows()
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, targets).coef_table(X, y)


def test_summaries_of_drop_ins(drop):
    model, X, y = drop
    text = model.fit(X, y).summary(max_features=2)
    assert text.startswith(f"{type(model).__name__}\n")
    assert ("regularised, intercept" in text) == (model._constant is not None)
    n_models = len(model._models()[0])
    assert ("largest coefficients" in text) == (n_models > 1)
    if n_models > 1:
        kind = "target"
        if is_classifier(model):
            kind = "class" if np.ndim(y) == 1 else "label"
        assert f"\n  {kind} " in text
    else:
        assert "tol^2 1.0e-" in text


def test_a_drop_in_that_is_not_fitted_is_refused(drop, tmp_path):
    model, _, _ = drop
    for method in (model.to_sklearn, model.summary, model.coef_table):
        with pytest.raises(NotFittedError):
            method()
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("svc", changed("estimator", "LinearSVC"), "estimator: found 'LinearSVC'"),
        ("svc", changed("estimator", "drop_in.os"), "estimator: found 'drop_in.os'"),
        ("svc", changed("params", "loss", "log"), "loss: found 'log', expected one of"),
        ("ridge", changed("params", "alpha", ["1"]), "params.alpha: found '1'"),
        ("ridge", changed("params", "alpha", [[1]]), r"params.alpha: found \[1\]"),
        ("ridge", changed("training", "target_ndim", 3), "target_ndim: found 3, exp"),
        ("ridge, matrix", changed("training", "target_ndim", 1), "coef.rows: found 3"),
        ("ridge, matrix", changed("intercept", []), "coef.rows: found 3 entries"),
        ("ridge, matrix", changed("intercept", [0, 1]), "coef.rows: found 3 entries"),
        ("classes", changed("classes", None), "classes: found None, expected labels"),
        ("3 classes", changed("training", "lam", [1, 2]), "training.lam: found 2"),
    ],
)
def test_a_malformed_file_of_a_drop_in_is_refused(kind, change, message, tmp_path):
    model, y = DROP_INS[kind]
    path = tmp_path / "model.json"
    clone(model).fit(make_rows(), y).save(path)
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^path: .*model\.json: .*({message})"):
        load(path)


def test_a_subclass_of_a_drop_in_can_be_exported_but_not_saved(tmp_path):
    class Mine(drop_in.Ridge):
        pass

    X = make_rows()
    model = Mine().fit(X, make_targets(X, "squared"))
    assert type(model.to_sklearn()).__name__ == "Ridge"
    with pytest.raises(TypeError, match=r"found Mine, expected one of .*drop_in.Ridge"):
        model.save(tmp_path / "model.json")
