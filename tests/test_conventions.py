r"""scikit-learn's conventions, on the version that is installed.

Where versions differ, the oracle is an estimator of scikit-learn itself. On the oldest
supported version::

    python -m venv build/oldest
    build/oldest/bin/pip install ".[test]" "scikit-learn==1.6.*" "pandas<3"
    build/oldest/bin/python -m pytest -p no:cacheprovider tests/test_conventions.py \
        tests/test_first_fit.py tests/test_progress.py tests/test_score_history.py
"""

import re
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.fixes import parse_version

import sdca_rs._base
from sdca_rs import Pegasos, ScoreHistory, Sdca, SdcaClassifier, SdcaRegressor

IRIS, SPECIES = load_iris(return_X_y=True)
NAMES = ["a", "b", "c", "d"]
WEIGHTS = np.linspace(0.0, 2.0, 150)
FRAME = pd.DataFrame(IRIS, columns=NAMES)


def make(**settings):
    return SdcaClassifier(random_state=0, **settings)


# --- metadata routing -----------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("estimator", [Sdca, SdcaClassifier])
def test_weights_are_routed_through_a_pipeline_and_a_search(estimator, routing):
    model = estimator(lam=0.1, tol=0.1, random_state=0)
    weighed = clone(model).set_fit_request(sample_weight=True)
    weighed.set_score_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, weighed)
    pipeline.fit(IRIS, SPECIES, sample_weight=WEIGHTS)
    scaled = StandardScaler().fit_transform(IRIS)
    expected = clone(model).fit(scaled, SPECIES, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(pipeline[-1].coef_, expected.coef_)

    name = type(model).__name__.lower()
    search = GridSearchCV(
        pipeline,
        {f"{name}__lam": [0.1, 1.0]},
        scoring=make_scorer(accuracy_score).set_score_request(sample_weight=True),
    )
    search.fit(IRIS, SPECIES, sample_weight=WEIGHTS)
    again = clone(search.best_estimator_)[-1].fit(scaled, SPECIES, WEIGHTS)
    np.testing.assert_array_equal(search.best_estimator_[-1].coef_, again.coef_)


def test_weights_are_routed_to_scores(routing):
    weighed = make().set_fit_request(sample_weight=False)
    weighed.set_score_request(sample_weight=True)
    scores = cross_validate(
        weighed,
        IRIS,
        SPECIES,
        cv=[(np.arange(150), np.arange(150))],
        params={"sample_weight": WEIGHTS},
        return_estimator=True,
    )
    (model,) = scores["estimator"]
    assert scores["test_score"][0] == model.score(IRIS, SPECIES, WEIGHTS)
    assert scores["test_score"][0] != model.score(IRIS, SPECIES)


def test_what_nobody_asked_for_is_refused(routing):
    with pytest.raises(Exception, match=r"sample_weight.* but are not explicitly set"):
        cross_validate(make(), IRIS, SPECIES, params={"sample_weight": WEIGHTS})


def test_the_start_of_pegasos_is_routed(routing):
    model = Pegasos(
        learning_rate="constant", tol=0, max_iter=1, random_state=0
    ).set_fit_request(coef_init=True)
    start = np.ones((3, 4))
    pipeline = make_pipeline(model).fit(IRIS, SPECIES, coef_init=start)
    expected = clone(model).fit(IRIS, SPECIES, coef_init=start)
    np.testing.assert_array_equal(pipeline[-1].coef_, expected.coef_)


# --- set_output, frames and sparse arrays ---------------------------------------------


def test_outputs_of_transformers_bring_names():
    text = FRAME.assign(d=np.where(SPECIES == 2, "red", "blue"))
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b", "c"]),
        (OneHotEncoder(sparse_output=False, drop="if_binary"), ["d"]),
        verbose_feature_names_out=False,
    )
    pipeline = make_pipeline(columns, make()).set_output(transform="pandas")
    pipeline.fit(text, SPECIES)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c", "d_red"]
    plain = clone(pipeline).set_output(transform="default").fit(text, SPECIES)
    assert not hasattr(plain[-1], "feature_names_in_")
    np.testing.assert_array_equal(pipeline[-1].coef_, plain[-1].coef_)


def frame_of(library):
    if library == "pandas":
        return FRAME
    module = pytest.importorskip(library)
    if library == "polars":
        return module.DataFrame(IRIS, schema=NAMES)
    if library == "pyarrow":
        return module.table(dict(zip(NAMES, IRIS.T, strict=True)))
    return module.from_native(FRAME)


LIBRARIES = ["pandas", "polars", "pyarrow", "narwhals"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_are_as_to_scikit_learn(library):
    frame = frame_of(library)
    model = make().fit(frame, SPECIES)
    np.testing.assert_array_equal(model.coef_, make().fit(IRIS, SPECIES).coef_)
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame))
    # Their names, if this scikit-learn knows frames of this library.
    theirs = Ridge().fit(frame, SPECIES)
    ours = getattr(model, "feature_names_in_", None)
    np.testing.assert_array_equal(ours, getattr(theirs, "feature_names_in_", None))
    is_new = parse_version(sklearn.__version__) >= parse_version("1.9")
    if library == "pandas" or (is_new and library != "narwhals"):
        assert ours.tolist() == NAMES


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_column_of_text_is_named_in_every_frame(library):
    frame = frame_of(library)
    texts = ["red"] * 150
    if library == "pandas":
        frame = frame.assign(colour=texts)
    elif library == "polars":
        frame = frame.hstack([type(frame["a"])("colour", texts)])
    elif library == "pyarrow":
        frame = frame.append_column("colour", [texts])
    else:
        frame = sys.modules["narwhals"].from_native(FRAME.assign(colour=texts))
    with pytest.raises(ValueError, match=r"^X: found text in column 'colour', such as"):
        make().fit(frame, SPECIES)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_are_targets(library):
    module = pytest.importorskip(library)
    words = np.array(["x", "y", "z"])[SPECIES].tolist()
    make_column = module.Series if library != "pyarrow" else module.chunked_array
    column = make_column(words) if library != "pyarrow" else make_column([words])
    model = make().fit(IRIS, column)
    assert model.classes_.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(model.coef_, make().fit(IRIS, words).coef_)


@pytest.mark.parametrize(
    "store", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_matrix]
)
def test_sparse_arrays_are_rows(store):
    model = make(tol=1e-8).fit(store(IRIS), SPECIES)
    dense = make(tol=1e-8).fit(IRIS, SPECIES)
    np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-4)
    np.testing.assert_array_equal(model.predict(store(IRIS)), model.predict(IRIS))


# --- representations ------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SdcaClassifier, SdcaRegressor, Sdca, Pegasos])
def test_the_html_representation_links_to_the_docs(estimator, monkeypatch):
    monkeypatch.setattr(sdca_rs._base, "_docs_url", lambda: "https://docs.example")
    name = estimator.__name__
    text = estimator_html_repr(make_pipeline(StandardScaler(), estimator(C=2.0)))
    assert f'href="https://docs.example/api/sdca_rs.{name}.html"' in text
    assert re.search(r"StandardScaler", text)
    fitted = estimator(C=2.0, tol=0, max_iter=1).fit(IRIS, SPECIES)
    assert fitted._repr_html_().count("https://docs.example/api/") >= 1


def test_without_an_address_there_is_no_link(monkeypatch):
    monkeypatch.setattr(sdca_rs._base, "_docs_url", lambda: None)
    text = estimator_html_repr(make())
    assert "SdcaClassifier" in text
    assert "/api/" not in text


def test_the_address_is_that_of_the_metadata(monkeypatch):
    class Metadata:
        def get_all(self, name):
            assert name == "Project-URL"
            return self.urls

    monkeypatch.setattr(sdca_rs._base, "metadata", lambda name: Metadata())
    find = sdca_rs._base._docs_url.__wrapped__
    for urls, expected in (
        (None, None),
        (["Source, https://s.example"], None),
        (["Source, https://s.example", "Documentation, https://d.example/"],) * 1
        + ("https://d.example",),
    ):
        Metadata.urls = urls
        assert find() == expected


def test_settings_are_shown_as_given():
    history = ScoreHistory(IRIS, SPECIES, scoring="accuracy")
    model = make(loss="log_loss", callback=history)
    text = "ScoreHistory(150 rows, scoring=&#x27;accuracy&#x27;)"
    assert text in estimator_html_repr(model)
    assert "'log_loss'" in repr(SdcaClassifier("log_loss", C=2))


# --- scorers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["accuracy", "roc_auc_ovr", "neg_log_loss", "f1_macro", "top_k_accuracy"]
)
def test_scorers_take_a_classifier(name):
    model = make().fit(FRAME, SPECIES)
    assert np.isfinite(get_scorer(name)(model, FRAME, SPECIES))


@pytest.mark.parametrize("name", ["r2", "neg_mean_absolute_error"])
def test_scorers_take_a_regressor(name):
    model = SdcaRegressor().fit(FRAME, IRIS[:, 0])
    assert np.isfinite(get_scorer(name)(model, FRAME, IRIS[:, 0]))
