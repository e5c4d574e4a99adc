"""The first fit of a newcomer: the two faces, names of losses, and what goes wrong."""

import os
import subprocess
import sys
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import (
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.utils._available_if import available_if

import sdca_rs
from sdca_rs import (
    Asdca,
    Data,
    DualGradient,
    Pegasos,
    Sdca,
    SdcaClassifier,
    SdcaRegressor,
    Subgradient,
    certify,
    losses,
)
from sdca_rs._losses import ALIASES, ClassifierLoss, RegressorLoss

CLASSIFIERS = [loss.name for loss in losses() if loss.task == "classification"]
REGRESSORS = [loss.name for loss in losses() if loss.task == "regression"]
FACES = [
    *((SdcaClassifier, loss) for loss in CLASSIFIERS),
    *((SdcaRegressor, loss) for loss in REGRESSORS),
]

IRIS, SPECIES = load_iris(return_X_y=True)
VIRGINICA = SPECIES == 2
WORDS = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
LENGTHS = IRIS[:, 0]


def target(face):
    return SPECIES if face is SdcaClassifier else LENGTHS


# --- the two faces --------------------------------------------------------------------


def test_the_types_have_every_loss_of_their_task_and_its_aliases():
    for literal, names in (
        (ClassifierLoss, CLASSIFIERS),
        (RegressorLoss, REGRESSORS),
    ):
        aliases = [alias for alias, loss in ALIASES.items() if loss in names]
        assert set(get_args(literal)) == {*names, *aliases}
    for face, literal in (
        (SdcaClassifier, ClassifierLoss),
        (SdcaRegressor, RegressorLoss),
    ):
        assert get_type_hints(face.__init__)["loss"] == literal


def test_they_take_what_sdca_takes():
    whole = signature(Sdca).parameters
    for face, loss, without in (
        (SdcaClassifier, "log", set()),
        (SdcaRegressor, "squared", {"class_weight"}),
    ):
        ours = signature(face).parameters
        assert list(ours) == [name for name in whole if name not in without]
        assert ours["loss"].default == loss
        for name, parameter in ours.items():
            if name != "loss":
                assert parameter.default == whole[name].default
                assert parameter.kind == parameter.KEYWORD_ONLY
        given = {
            name: object() for name in ours if name not in ("loss", "class_weight")
        }
        model = face(**given)
        assert model.get_params() == face().get_params() | given


@pytest.mark.parametrize(("face", "loss"), FACES)
def test_they_are_sdca_for_one_task(face, loss):
    model = face(loss, random_state=0)
    classify = face is SdcaClassifier
    assert isinstance(model, ClassifierMixin if classify else RegressorMixin)
    assert is_classifier(model) == classify != is_regressor(model)
    plain = Sdca(loss, random_state=0).fit(IRIS, target(face))
    model.fit(IRIS, target(face))
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(IRIS), plain.predict(IRIS))
    assert model.score(IRIS, target(face)) == plain.score(IRIS, target(face))
    assert hasattr(model, "predict_proba") == hasattr(plain, "predict_proba")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    certificate = certify(model, IRIS, target(face))
    assert np.all(certificate.gap <= 2e-4 * certificate.objective)
    weighted = Data(IRIS, sample_weight=np.arange(150.0))
    assert model.score(weighted, target(face)) == plain.score(
        IRIS, target(face), sample_weight=np.arange(150.0)
    )


@pytest.mark.parametrize(
    ("face", "loss", "known"),
    [
        *((SdcaClassifier, loss, CLASSIFIERS) for loss in (*REGRESSORS, "hinged")),
        *((SdcaRegressor, loss, REGRESSORS) for loss in (*CLASSIFIERS, "squarred")),
    ],
)
def test_a_loss_of_the_other_task_is_refused(face, loss, known):
    model = face(loss)
    # It stays what it is.
    assert is_classifier(model) == (face is SdcaClassifier)
    expected = f"^loss: found '{loss}'.*, expected one of {', '.join(known)}$"
    with pytest.raises(ValueError, match=expected):
        model.fit(IRIS, target(face))


def check_types(tmp_path, root, code):
    snippet = tmp_path / "snippet.py"
    snippet.write_text(code)
    source = Path(sdca_rs.__file__).parents[1]
    # As the lint: with its cache, mypy need not read all of numpy and scipy again.
    options = [
        f"--config-file={root / 'pyproject.toml'}",
        f"--cache-dir={root / '.mypy_cache'}",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *options, snippet.name],
        env=os.environ | {"MYPYPATH": str(source)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert not done.stderr, done.stderr
    return [line for line in lines if line.startswith("snippet.py")]


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_knows_losses_and_attributes(tmp_path, pytestconfig):
    found = check_types(
        tmp_path,
        pytestconfig.rootpath,
        """
from typing import assert_type, Any
import numpy as np
from numpy.typing import NDArray
from sdca_rs import Pegasos, ScoreHistory, Sdca, SdcaClassifier, SdcaRegressor

SdcaClassifier(loss="log_loss", verbose=True, average_from=100)
SdcaRegressor(loss="absolute_error")
Sdca(loss="any string")
model = SdcaRegressor().fit(np.eye(2), [1.0, 2.0])
assert_type(model, SdcaRegressor)
assert_type(model.coef_, NDArray[np.float64])
assert_type(model.intercept_, float)
assert_type(model.duality_gap_, float)
assert_type(model.stop_reason_, str)
SdcaClassifier(callback=ScoreHistory(np.eye(2), [0, 1], scoring={"a": "log"}))
Pegasos().fit(np.eye(2), [0, 1], coef_init=[1.0, 2.0])
SdcaClassifier(loss="hinged")
SdcaClassifier(loss="squared")
SdcaRegressor(loss="hinge")
SdcaRegressor(class_weight="balanced")
""",
    )
    # The last four lines, and nothing else.
    lines = [int(line.split(":")[1]) for line in found if ": error:" in line]
    assert lines == [18, 19, 20, 21], found
    assert "Literal['hinged']" in found[0]


# --- names of losses ------------------------------------------------------------------


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("estimator", [Sdca, Asdca, Pegasos, Subgradient, DualGradient])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_names_are_the_same_losses(estimator, alias):
    if estimator is Asdca and ALIASES[alias] == "absolute":
        pytest.skip("it is not smooth")
    y = VIRGINICA if ALIASES[alias] == "log" else LENGTHS
    ours, theirs = (
        estimator(loss, max_iter=20, random_state=0).fit(IRIS, y)
        for loss in (ALIASES[alias], alias)
    )
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    assert theirs.loss == alias
    assert certify(theirs, IRIS, y) == certify(ours, IRIS, y)


def test_every_loss_of_scikit_learns_linear_models_is_known():
    # But for "perceptron", which has no minimum of its own.
    known = {*CLASSIFIERS, *REGRESSORS, *ALIASES}
    for estimator in (SGDClassifier,):
        theirs = estimator._parameter_constraints["loss"][0].options
        assert theirs - known == {"perceptron"}


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("hinged", "hinge"),
        ("Hinge", "hinge"),
        ("squaredhinge", "squared_hinge"),
        ("smooth-hinge", "smooth_hinge"),
        ("logistic", "log"),
        ("Log Loss", "log"),
        ("MSE", "squared"),
        ("sqaured_error", "squared"),
        ("mae", "absolute"),
        ("pinball", "quantile"),
        ("poison", "poisson"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name, guess):
    message = rf"^loss: found '{name}' \(did you mean '{guess}'\?\), expected one of "
    with pytest.raises(ValueError, match=message):
        Sdca(name).fit(IRIS, VIRGINICA)


@pytest.mark.parametrize("name", ["", "xyz", None, 3])
def test_nothing_is_suggested_where_nothing_is_near(name):
    with pytest.raises(ValueError, match=rf"^loss: found {name!r}, expected one of "):
        Sdca(name).fit(IRIS, VIRGINICA)


# --- a classifier of numbers ----------------------------------------------------------


def test_many_numbers_as_classes_are_warned_of():
    X, y = load_diabetes(return_X_y=True)
    message = (
        r"^y: found 214 classes in 442 rows, .* 'hinge'\. `y` could represent a "
        "regression problem, not a classification problem.*SdcaRegressor"
    )
    for model in (Sdca(tol=1.0), SdcaClassifier("hinge", tol=1.0)):
        with pytest.warns(UserWarning, match=message) as caught:
            model.fit(X, y)
        # It is about the call of `fit`, and there is only one.
        assert [record.filename for record in caught] == [__file__]
    Sdca("squared").fit(X, y)


def repeated(n_classes, n_rows, kind=int):
    return np.resize(np.arange(n_classes), n_rows).astype(kind)


@pytest.mark.parametrize(
    ("y", "warns"),
    [
        # Fewer than five rows for each number, beyond 20 numbers.
        (repeated(21, 104), True),
        (repeated(21, 105), False),
        (repeated(20, 40), False),
        (repeated(21, 104, float), True),
        # As scikit-learn does for other labels.
        (repeated(21, 41, str), True),
        (repeated(21, 42, str), False),
        (repeated(2, 42), False),
    ],
)
@pytest.mark.parametrize("estimator", [Sdca, Pegasos])
def test_what_is_warned_of(estimator, y, warns, recwarn):
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    estimator(tol=1.0, max_iter=1).fit(X, y)
    assert [record.category for record in recwarn] == [UserWarning] * warns


def test_absent_rows_make_no_classes_to_be_warned_of(recwarn):
    y = repeated(30, 60)
    Sdca(tol=1.0).fit(np.eye(60), y, sample_weight=y < 3)
    assert not recwarn.list


def test_a_stream_is_not_warned_of(recwarn):
    y = repeated(30, 30)
    Pegasos(lam=1.0).partial_fit(np.eye(30), y, classes=y)
    assert not recwarn.list


# --- probabilities --------------------------------------------------------------------


@pytest.mark.parametrize("y", [VIRGINICA, SPECIES, WORDS], ids=["2", "3", "words"])
def test_modified_huber_gives_the_probabilities_of_sgdclassifier(y):
    model = SdcaClassifier("modified_huber", C=10, random_state=0).fit(IRIS, y)
    theirs = SGDClassifier("modified_huber").fit(IRIS, y)
    theirs.coef_, theirs.intercept_ = model.coef_, model.intercept_
    # Far away all classes may have a score below -1.
    rows = np.vstack([IRIS, 100 * IRIS, -100 * IRIS, np.zeros((1, 4))])
    expected = theirs.predict_proba(rows)
    found = model.predict_proba(rows)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-15)
    assert (found == 0).any()
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(model.predict_log_proba(rows), np.log(found))


def test_rows_that_no_class_wants_belong_to_all_alike():
    model = SdcaClassifier("modified_huber").fit(IRIS, SPECIES)
    model.coef_, model.intercept_ = np.zeros((3, 4)), np.array([-5.0, -1.0, -2.0])
    np.testing.assert_array_equal(model.predict_proba(IRIS[:1]), [[1 / 3] * 3])


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smooth_hinge"])
def test_a_loss_without_probabilities_says_which_have_them(loss, method):
    for model in (Sdca(loss), Pegasos(loss), SdcaClassifier(loss).fit(IRIS, SPECIES)):
        assert not hasattr(model, method)
        message = (
            f"^This '{type(model).__name__}' has no attribute '{method}': loss '{loss}'"
            " .*'log' and 'modified_huber'.*sklearn.calibration.CalibratedClassifierCV"
        )
        with pytest.raises(AttributeError, match=message):
            getattr(model, method)
    calibrated = CalibratedClassifierCV(SdcaClassifier(loss), cv=2)
    assert calibrated.fit(IRIS, SPECIES).predict_proba(IRIS).shape == (150, 3)


def test_a_regressor_has_no_methods_of_classifiers():
    for model in (Sdca("squared"), SdcaRegressor("hinge")):
        for method in ("decision_function", "predict_proba", "predict_log_proba"):
            assert not hasattr(model, method)
            with pytest.raises(AttributeError, match="it is a regressor: use predict"):
                getattr(model, method)


def test_conditional_methods_are_as_scikit_learns():
    """Of the class the method is there, with its name, signature and docstring."""

    class Theirs:
        @available_if(lambda self: True)
        def predict_proba(self, X):
            """Tell."""

    ours = Sdca.predict_proba
    assert ours.__name__ == Theirs.predict_proba.__name__
    assert list(signature(ours).parameters) == ["self", "X"]
    assert "probability" in ours.__doc__
    model = Sdca("log").fit(IRIS, VIRGINICA)
    np.testing.assert_array_equal(ours(model, IRIS), model.predict_proba(IRIS))


# --- messages about X -----------------------------------------------------------------

NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame(IRIS, columns=NAMES)


@pytest.fixture(scope="module")
def fitted():
    """Our model and one of scikit-learn, fitted to a data frame."""
    return [
        model.fit(FRAME, SPECIES) for model in (SdcaClassifier(), RidgeClassifier())
    ]


def messages_of(call, *models):
    found = []
    for model in models:
        with pytest.raises((TypeError, ValueError)) as caught:
            call(model)
        message = str(caught.value).replace(type(model).__name__, "Model")
        found.append((type(caught.value), message))
    return found


@pytest.mark.parametrize(
    "rows",
    [
        IRIS[:, 0],
        IRIS[None],
        3.0,
        IRIS[:, :2],
        IRIS[:0],
        sp.csr_array(IRIS[:, :3]),
        IRIS + 1j,
        FRAME[["b", "a", "c", "d"]],
        FRAME.rename(columns={"a": "e"}),
        FRAME.assign(e="text"),
        pl.DataFrame(IRIS[:, :3], schema=NAMES[:3]),
    ],
    ids=lambda rows: str(np.shape(rows)),
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_messages_are_scikit_learns(rows, fitted):
    ours, theirs = messages_of(lambda model: model.predict(rows), *fitted)
    assert ours == theirs


def test_messages_of_data_are_scikit_learns(fitted):
    model, theirs = fitted
    for rows in (FRAME[["b", "a", "c", "d"]], FRAME[["a", "b"]]):
        ((_, ours),) = messages_of(lambda m, rows=rows: m.predict(Data(rows)), model)
        ((_, expected),) = messages_of(lambda m, rows=rows: m.predict(rows), theirs)
        assert ours == expected


TEXTS = FRAME.assign(c=np.where(VIRGINICA, "red", "blue"))


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        (TEXTS, "'c'"),
        (TEXTS.astype({"c": "category"}), "'c'"),
        (TEXTS.astype({"c": object}), "'c'"),
        (pl.from_pandas(TEXTS), "'c'"),
        (TEXTS.to_numpy(), "2"),
        (TEXTS.to_numpy().astype(str), "2"),
        (TEXTS.to_numpy().tolist(), "2"),
    ],
    ids=["pandas", "category", "object", "polars", "array", "str", "list"],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_column_of_text_is_named(rows, column):
    message = (
        rf"^X: found text in column {column}, such as 'blue', expected numbers: .*"
        "OneHotEncoder.*ColumnTransformer"
    )
    with pytest.raises(ValueError, match=message):
        SdcaClassifier().fit(rows, SPECIES)
    with pytest.raises(ValueError, match=message):
        Data(rows)
    model = SdcaClassifier().fit(FRAME if column == "'c'" else IRIS, SPECIES)
    with pytest.raises(ValueError, match=message):
        model.predict(rows)


def test_texts_of_numbers_are_numbers():
    text = FRAME.astype(str).astype(object)
    model = SdcaClassifier(random_state=0).fit(text, SPECIES)
    plain = SdcaClassifier(random_state=0).fit(FRAME, SPECIES)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


# --- classes of weight 0 --------------------------------------------------------------


@pytest.mark.parametrize("loss", CLASSIFIERS)
@pytest.mark.parametrize("y", [SPECIES, WORDS], ids=["numbers", "words"])
def test_rows_of_a_class_of_weight_0_are_absent(loss, y):
    absent = y[0]
    settings = {"C": 0.1, "random_state": 0, "tol": 1e-8, "max_iter": 10_000}
    model = SdcaClassifier(loss, class_weight={absent: 0}, **settings).fit(IRIS, y)
    without = SdcaClassifier(loss, **settings).fit(IRIS[y != absent], y[y != absent])
    np.testing.assert_array_equal(model.classes_, without.classes_)
    assert absent not in model.classes_
    np.testing.assert_allclose(model.objective_, without.objective_, rtol=1e-7)
    np.testing.assert_allclose(model.coef_, without.coef_, atol=1e-3)
    assert not model.dual_coef_[:, y == absent].any()


@pytest.mark.parametrize(
    ("class_weight", "left"),
    [
        ({0: 0, 1: 0}, r"one class \(2\)"),
        ({0: 0.0, 1: 0, 2: 0.0}, "no class"),
    ],
)
def test_weights_of_0_must_leave_two_classes(class_weight, left):
    message = f"^class_weight: found .*, which leaves {left}, expected at least two"
    with pytest.raises(ValueError, match=message):
        SdcaClassifier(class_weight=class_weight).fit(IRIS, SPECIES)


# --- for students ---------------------------------------------------------------------

STUDY = {"tol": 0, "max_iter": 4, "random_state": 0, "output": "average"}


def mean_of_iterates(estimator, settings, first, steps):
    """Average the models before the steps ``first + 1 .. steps``."""
    models = []

    def keep(progress):
        models.append(np.append(progress.coef, progress.intercept))

    study = settings | {"output": "last", "callback": keep, "record_every": 1 / 10}
    estimator(**study).fit(IRIS[45:55], SPECIES[45:55])
    assert len(models) == steps + 1
    return np.mean(models[first:steps], axis=0)


@pytest.mark.parametrize("first", [1, 7, 39])
def test_averages_begin_after_a_number_of_steps(first):
    """Of the models without an intercept; each of 40 steps is on one of 10 rows."""
    settings = STUDY | {"batch_size": 1, "fit_intercept": False}
    model = Pegasos(average_from=first, **settings).fit(IRIS[45:55], SPECIES[45:55])
    expected = mean_of_iterates(Pegasos, settings, first, 40)[:-1]
    np.testing.assert_allclose(model.coef_[0], expected, rtol=1e-10)


@pytest.mark.parametrize("estimator", [Sdca, Asdca, Pegasos, Subgradient, DualGradient])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_number_of_steps_is_a_fraction_of_the_run(estimator):
    """Subgradient and DualGradient make one step in an epoch, Sdca one for each row."""
    epoch = {Sdca: 60, Asdca: 6, Pegasos: 60}.get(estimator, 1)
    more = {
        # Only so is the last iterate that of the same run.
        Sdca: {"accelerate": False},
        Asdca: {"batch_size": 10},
        Pegasos: {"batch_size": 1},
    }.get(estimator, {})
    rows = slice(40, 100)

    def fit(average_from, output="average"):
        return estimator(
            "smooth_hinge",
            average_from=average_from,
            **(STUDY | more | {"output": output}),
        ).fit(IRIS[rows], VIRGINICA[rows] | (SPECIES[rows] == 0))

    for number in (int, np.int64):
        by_count, by_fraction = fit(number(2 * epoch)), fit(0.5)
        np.testing.assert_array_equal(by_count.coef_, by_fraction.coef_)
    if epoch > 1:
        # Zero steps are the whole run, and one step is not.
        np.testing.assert_array_equal(fit(0).coef_, fit(0.0).coef_)
        assert (fit(1).coef_ != fit(0).coef_).any()
    # A run that ends before is at its last iterate.
    np.testing.assert_array_equal(fit(4 * epoch).coef_, fit(0.5, "last").coef_)


@pytest.mark.parametrize(
    ("loss", "y"),
    [("log", VIRGINICA), ("log", SPECIES), ("squared", LENGTHS)],
    ids=["2", "3", "numbers"],
)
def test_pegasos_starts_where_it_is_told(loss, y):
    good = Sdca(loss, C=0.1, tol=1e-10).fit(IRIS, y)
    first = {}

    def keep(progress):
        first.setdefault(progress.class_index, progress)

    model = Pegasos(
        loss,
        C=0.1,
        learning_rate="constant",
        tol=0,
        max_iter=1,
        callback=keep,
        random_state=0,
    )

    def starts(**start):
        first.clear()
        model.fit(IRIS, y, **start)
        primal = np.squeeze([first[k].primal for k in sorted(first)])
        return np.squeeze([first[k].coef for k in sorted(first)]), primal

    w, primal = starts(coef_init=good.coef_, intercept_init=good.intercept_)
    np.testing.assert_allclose(w, np.squeeze(good.coef_), rtol=1e-12)
    np.testing.assert_allclose(primal, good.objective_, rtol=1e-6)
    assert np.all(starts()[1] > 1.05 * primal)
    if np.ndim(primal) == 0:
        # One problem needs no axis of its own.
        flat = np.ravel(good.coef_).tolist()
        again, primal_again = starts(
            coef_init=flat, intercept_init=float(np.squeeze(good.intercept_))
        )
        np.testing.assert_array_equal(again, w)
        assert primal_again == primal
    # Without one of the two, it is 0.
    np.testing.assert_array_equal(starts(coef_init=good.coef_)[0], w)
    assert not starts(intercept_init=good.intercept_)[0].any()


def test_a_given_start_takes_precedence_over_a_warm_one():
    model = Pegasos(
        learning_rate="constant", tol=0, max_iter=2, warm_start=True, random_state=0
    )
    again = clone(model).fit(IRIS, VIRGINICA, coef_init=np.ones(4))
    model.fit(IRIS, VIRGINICA).fit(IRIS, VIRGINICA, coef_init=np.ones(4))
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model._steps == again._steps


@pytest.mark.parametrize("learning_rate", ["pegasos", "constant", "invscaling"])
def test_a_start_at_0_is_a_cold_one(learning_rate):
    model = Pegasos(learning_rate=learning_rate, tol=0, max_iter=3, random_state=0)
    cold = clone(model).fit(IRIS, SPECIES)
    model.fit(IRIS, SPECIES, coef_init=np.zeros((3, 4)), intercept_init=np.zeros(3))
    np.testing.assert_allclose(model.coef_, cold.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, cold.intercept_, rtol=1e-12)
    assert model._steps == cold._steps


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (
            {"coef_init": np.ones(3)},
            r"coef_init: found shape \(3,\), expected \(1, 4\)",
        ),
        ({"coef_init": "a"}, "coef_init: "),
        ({"coef_init": [0, 0, 0, np.nan]}, "coef_init: found NaN"),
        ({"intercept_init": [1, 2]}, r"intercept_init: found shape \(2,\)"),
        ({"intercept_init": np.inf}, "intercept_init: found NaN or inf"),
    ],
)
def test_a_bad_start_is_refused(start, message):
    model = Pegasos()
    with pytest.raises(ValueError, match=message):
        model.fit(IRIS, VIRGINICA, **start)
    assert not hasattr(model, "coef_")
    with pytest.raises(
        ValueError, match=r"coef_init: found shape \(4,\), expected \(3"
    ):
        model.fit(IRIS, SPECIES, coef_init=np.ones(4))
