"""Bad input is refused: by name, with what was found and what was expected."""

import contextlib
import re
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from sdca_rs import Asdca, DualGradient, Pegasos, Sdca, Subgradient, losses

LOSSES = [loss.name for loss in losses()]
REFUSALS = (TypeError, ValueError)

rng = np.random.default_rng(0)
X = rng.standard_normal((20, 3))
LABELS = (X[:, 0] > 0).astype(int)
VALUES = np.abs(X[:, 0]) + 1.0
Y = {
    loss.name: LABELS if loss.task == "classification" else VALUES for loss in losses()
}


def ours(name, found="", expected=""):
    """Match a message of the package, which has one form."""
    name, found, expected = map(re.escape, (name, found, expected))
    return rf"(?s)^{name}: found {found}.*expected .*{expected}"


def tells(name, *parts):
    """Match any message with the argument's name, as a word, and with all parts."""
    words = [rf"(?<!\w){re.escape(name)}(?!\w)", *map(re.escape, parts)]
    return "(?s)" + "".join(f"(?=.*{word})" for word in words)


def spoilt(array, value, at=2):
    array = np.array(array, dtype=np.result_type(array, value))
    array[at] = value
    return array


def short(value):
    return repr(value)[:20]


# --- settings -------------------------------------------------------------------------

NUMBER = "a finite number > 0"
TOL = "a finite number >= 0"
COUNT = "an integer >= 1"
BALANCED = "'balanced', a dict or None"
JOBS = "an integer other than 0, or None"
FRACTION = "a number in [0, 1), or an integer >= 1 of steps"
FLAG = "True or False"
ORDERS = "one of permutation, random, cyclic"
OUTPUTS = "one of last, average, random"
EPOCHS = "one of auto, sdca, sgd"

SETTINGS = [
    ("C", 0, ValueError, "0", NUMBER),
    ("C", -1.5, ValueError, "-1.5", NUMBER),
    ("C", np.nan, ValueError, "NaN", NUMBER),
    ("C", np.inf, ValueError, "inf", NUMBER),
    ("C", 10**400, REFUSALS, "1", NUMBER),
    ("C", 1e-320, ValueError, "", "neither 0 nor infinite"),
    ("C", "1", TypeError, "'1'", NUMBER),
    ("C", None, TypeError, "None", NUMBER),
    ("C", True, TypeError, "True", NUMBER),
    ("C", [1.0, 2.0], TypeError, "[1.0, 2.0]", NUMBER),
    ("C", 1j, TypeError, "1j", NUMBER),
    ("lam", 0, ValueError, "0", NUMBER),
    ("lam", -1.5, ValueError, "-1.5", NUMBER),
    ("lam", np.nan, ValueError, "NaN", NUMBER),
    ("lam", np.inf, ValueError, "inf", NUMBER),
    ("lam", 1e-320, ValueError, "", ""),
    ("lam", "1", TypeError, "'1'", NUMBER),
    ("lam", True, TypeError, "True", NUMBER),
    ("class_weight", "even", ValueError, "'even'", BALANCED),
    ("class_weight", 2, ValueError, "2", BALANCED),
    ("class_weight", [1, 2], ValueError, "[1, 2]", BALANCED),
    ("class_weight", {7: 1.0}, ValueError, "no class of y among [7]", "[0, 1]"),
    ("tol", -1, ValueError, "-1", TOL),
    ("tol", np.nan, ValueError, "NaN", TOL),
    ("tol", np.inf, ValueError, "inf", TOL),
    ("tol", "a", TypeError, "'a'", TOL),
    ("tol", None, TypeError, "None", TOL),
    ("max_iter", 0, ValueError, "0", COUNT),
    ("max_iter", -1, ValueError, "-1", COUNT),
    ("max_iter", 10**30, REFUSALS, "1", "an integer"),
    ("max_iter", 2.5, TypeError, "2.5", COUNT),
    ("max_iter", "a", TypeError, "'a'", COUNT),
    ("max_iter", None, TypeError, "None", COUNT),
    ("max_time", 0, ValueError, "0", "seconds > 0, or None"),
    ("max_time", -1, ValueError, "-1", "seconds > 0, or None"),
    ("max_time", np.nan, ValueError, "NaN", "seconds > 0, or None"),
    ("max_time", "a", TypeError, "'a'", "seconds > 0, or None"),
    ("record_every", 0, ValueError, "0", "epochs > 0, or None"),
    ("record_every", -1, ValueError, "-1", "epochs > 0, or None"),
    ("record_every", np.inf, ValueError, "inf", "epochs > 0, or None"),
    ("record_every", "a", TypeError, "'a'", "epochs > 0, or None"),
    ("average_from", -0.1, ValueError, "-0.1", FRACTION),
    ("average_from", 1.0, ValueError, "1", FRACTION),
    ("average_from", -1, ValueError, "-1", FRACTION),
    ("average_from", True, TypeError, "True", FRACTION),
    ("average_from", np.nan, ValueError, "nan", FRACTION),
    ("average_from", "a", TypeError, "'a'", FRACTION),
    ("sampling", "shuffled", ValueError, '"shuffled"', ORDERS),
    ("sampling", None, TypeError, "None", "a string"),
    ("output", "first", ValueError, '"first"', OUTPUTS),
    ("output", 1, TypeError, "1", "a string"),
    ("first_epoch", "adam", ValueError, '"adam"', EPOCHS),
    ("first_epoch", b"sgd", TypeError, "b'sgd'", "a string"),
    ("n_jobs", 0, ValueError, "0", JOBS),
    ("n_jobs", 1.5, TypeError, "1.5", JOBS),
    ("n_jobs", "all", TypeError, "'all'", JOBS),
    ("verbose", -1, ValueError, "-1", "an integer >= 0"),
    ("verbose", 1.5, TypeError, "1.5", "an integer >= 0"),
    ("callback", 3, TypeError, "3", "a callable, a ScoreHistory or None"),
    ("fit_intercept", 1, TypeError, "1", FLAG),
    ("fit_intercept", "yes", TypeError, "'yes'", FLAG),
    ("fit_intercept", None, TypeError, "None", FLAG),
    ("warm_start", 1, TypeError, "1", FLAG),
    ("accelerate", 1, TypeError, "1", FLAG),
    ("accelerate", "yes", TypeError, "'yes'", FLAG),
    ("accelerate", None, TypeError, "None", FLAG),
]


@pytest.mark.parametrize(
    ("name", "value", "error", "found", "expected"),
    SETTINGS,
    ids=[f"{name}={short(value)}" for name, value, *_ in SETTINGS],
)
def test_bad_setting_is_refused(name, value, error, found, expected):
    with pytest.raises(error, match=ours(name, found, expected)):
        Sdca(**{name: value}).fit(X, LABELS)


@pytest.mark.parametrize("C", [2.0, 0.5, None, np.array([1.0, 2.0])], ids=short)
def test_C_and_lam_exclude_each_other(C):
    with pytest.raises(REFUSALS, match=ours("C", repr(C), "only one of the two")):
        Sdca(C=C, lam=0.1).fit(X, LABELS)


@pytest.mark.parametrize(
    "value", ["a", 1.5, -1, 2**40, [], np.random.PCG64(0)], ids=short
)
def test_bad_random_state_is_refused(value):
    with pytest.raises(REFUSALS, match=tells("random_state")):
        Sdca(random_state=value).fit(X, LABELS)


@pytest.mark.parametrize("loss", ["Hinge", "", None, 3, ["hinge"]], ids=short)
def test_unknown_loss_is_refused_with_the_known_ones(loss):
    with pytest.raises(ValueError, match=ours("loss", repr(loss), ", ".join(LOSSES))):
        Sdca(loss=loss).fit(X, LABELS)


OUT_OF_RANGE = {
    "a finite number > 0": [0, -1, np.nan, np.inf],
    "a finite number >= 0": [-1, np.nan, np.inf],
    "a number strictly between 0 and 1": [0, 1, -0.5, 1.5, np.nan],
}


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        pytest.param(loss, value, id=f"{loss.name}-{value}")
        for loss in losses()
        if loss.param is not None
        for value in OUT_OF_RANGE[loss.expected]
    ],
)
def test_loss_param_out_of_range_is_refused(loss, value):
    found = "NaN" if np.isnan(value) else str(value)
    expected = f"{loss.param} to be {loss.expected} for loss "
    with pytest.raises(ValueError, match=ours("loss_param", found, expected)):
        Sdca(loss=loss.name, loss_param=value).fit(X, Y[loss.name])


@pytest.mark.parametrize("loss", losses(), ids=lambda loss: loss.name)
@pytest.mark.parametrize("value", ["a", True, [0.5]], ids=short)
def test_loss_param_must_be_a_number(loss, value):
    expected = loss.expected or "None"
    with pytest.raises(TypeError, match=ours("loss_param", repr(value), expected)):
        Sdca(loss=loss.name, loss_param=value).fit(X, Y[loss.name])


@pytest.mark.parametrize("loss", [loss.name for loss in losses() if not loss.param])
def test_loss_param_is_refused_where_there_is_none(loss):
    expected = f'None, because loss "{loss}" has no shape parameter'
    with pytest.raises(ValueError, match=ours("loss_param", "0.5", expected)):
        Sdca(loss=loss, loss_param=0.5).fit(X, Y[loss])


@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf, "a", None, True], ids=short)
def test_class_weight_must_not_be_negative(factor):
    expected = "a finite number >= 0"
    with pytest.raises(REFUSALS, match=ours("class_weight[1]", repr(factor), expected)):
        Sdca(class_weight={1: factor}).fit(X, LABELS)


def test_class_weights_of_too_large_a_sum_are_refused():
    message = ours("class_weight", "{0: 1e+308, 1: 1e+308}", "a finite one")
    with pytest.raises(ValueError, match=message):
        Sdca(class_weight={0: 1e308, 1: 1e308}).fit(X, LABELS)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0}], ids=short)
def test_class_weight_is_refused_for_a_regressor(class_weight):
    message = ours("class_weight", repr(class_weight), "None, because loss 'squared'")
    with pytest.raises(ValueError, match=message):
        Sdca(loss="squared", class_weight=class_weight).fit(X, VALUES)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("x", "y", "C"),
    [
        (1.0, 1.0, 1e300),
        (1e75, 1.0, 1e150),
        (1e75, 1.0, 1e300),
        (1e150, 1.0, 1e150),
        (1e-150, 1e300, 1.0),
        (1e-300, 1e10, 1e300),
        (1.0, 1e300, 1e-150),
        (1.0, 1e300, 1e300),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_numbers_too_large_are_refused_or_owned_up_to(x, y, C, loss, fit_intercept):
    model = Sdca(
        loss=loss, C=C, fit_intercept=fit_intercept, max_iter=20, random_state=0
    )
    targets = LABELS if Y[loss] is LABELS else VALUES * y
    with contextlib.suppress(ValueError):
        model.fit(X * x, targets)
        for name in ("coef_", "intercept_", "objective_"):
            assert not np.isnan(getattr(model, name)).any(), name
        assert model.stop_reason_ == "max_iter" or np.isfinite(model.duality_gap_)


# --- X --------------------------------------------------------------------------------

WORDS = [["a", "b", "c"]] * 20
# Of wrong shapes scikit-learn's own messages tell, which do not name the argument.
BAD_X = {
    "nan": (spoilt(X, np.nan), ["X", "NaN"]),
    "inf": (spoilt(X, np.inf), ["X", "infinity"]),
    "float32 inf": (spoilt(X, -np.inf).astype(np.float32), ["X", "infinity"]),
    "sparse nan": (sp.csr_matrix(spoilt(X, np.nan)), ["X", "NaN"]),
    "sparse inf": (sp.csr_array(spoilt(X, np.inf)), ["X", "infinity"]),
    "1-D": (X[:, 0], ["2D", "1D"]),
    "3-D": (X[None], ["dim 3"]),
    "scalar": (3.0, ["2D", "scalar"]),
    "no rows": (X[:0], ["0", "minimum of 1"]),
    "no rows, sparse": (sp.csr_matrix((0, 3)), ["0", "minimum of 1"]),
    "no columns": (X[:, :0], ["0", "minimum of 1"]),
    "no columns, sparse": (sp.csr_matrix((20, 0)), ["0", "minimum of 1"]),
    "words": (WORDS, ["X", "column 0", "'a'", "OneHotEncoder"]),
    "words, str": (np.array(WORDS), ["X", "'a'"]),
    "words, object": (np.array(WORDS, dtype=object), ["X", "'a'", "expected numbers"]),
    "words, frame": (pd.DataFrame(WORDS), ["X", "'a'"]),
    "complex": (X + 1j, ["Complex data not supported"]),
    "complex, sparse": (sp.csr_matrix(X + 1j), ["Complex data not supported"]),
    "None": (None, ["2D"]),
}


@pytest.mark.parametrize("case", BAD_X)
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_bad_X_is_refused_by_fit(case, loss):
    bad, parts = BAD_X[case]
    y = Y[loss][:0] if case.startswith("no rows") else Y[loss]
    with pytest.raises(REFUSALS, match=tells(*parts)):
        Sdca(loss=loss).fit(bad, y)


@pytest.mark.parametrize("case", [case for case in BAD_X if "columns" not in case])
@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_bad_X_is_refused_by_predictions(case, method):
    bad, parts = BAD_X[case]
    model = Sdca(loss="log").fit(X, LABELS)
    with pytest.raises(REFUSALS, match=tells(*parts)):
        getattr(model, method)(bad)


STORAGES = {
    "dense": lambda bad: spoilt(X, bad),
    "float32": lambda bad: spoilt(X, bad).astype(np.float32),
    "csr": lambda bad: sp.csr_array(spoilt(X, bad)),
    "one value in each row": lambda bad: sp.csr_array(spoilt(1.0 * (X > 0), bad)),
}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("solver", [Sdca, Pegasos, Asdca, Subgradient, DualGradient])
def test_what_is_not_finite_is_refused_by_every_solver(solver, storage, bad):
    """Their sums of squares find it, also in a row of weight 0, or without time."""
    stored = STORAGES[storage](bad)
    for loss, y in (("log", LABELS), ("log", np.arange(20) % 3), ("squared", VALUES)):
        for fit_intercept in (False, True):
            for sample_weight, max_time in (
                (None, None),
                (None, 1e-9),
                (spoilt(np.ones(20), 0.0), None),
            ):
                model = solver(
                    loss=loss, fit_intercept=fit_intercept, max_time=max_time
                )
                with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
                    model.fit(stored, y, sample_weight)


def test_rows_too_long_for_their_norm_are_refused():
    with pytest.raises(ValueError, match=ours("X")):
        Sdca().fit(spoilt(X, 1e200), LABELS)


# --- y --------------------------------------------------------------------------------

BAD_Y = {
    "nan label": ("hinge", spoilt(LABELS, np.nan), tells("y", "NaN")),
    "inf label": ("hinge", spoilt(LABELS, np.inf), tells("y", "infinity")),
    "nan": ("squared", spoilt(VALUES, np.nan), tells("y", "NaN")),
    "inf": ("squared", spoilt(VALUES, np.inf), tells("y", "infinity")),
    "too short": ("hinge", LABELS[:-1], tells("y", "20", "19")),
    "too long": ("squared", np.ones(21), tells("y", "20", "21")),
    "two columns": ("hinge", np.c_[LABELS, LABELS], tells("y", "1d", "(20, 2)")),
    "two targets": ("squared", np.c_[VALUES, VALUES], tells("y", "1d", "(20, 2)")),
    "scalar": ("squared", 1.0, tells("y", "1d", "()")),
    "None": ("hinge", None, tells("y", "None")),
    "complex label": ("hinge", LABELS + 1j, tells("y", "Complex")),
    "complex": ("squared", VALUES + 1j, tells("y", "Complex")),
    "words": ("squared", np.array(["a", "b"] * 10), tells("y", "'a'")),
    "words, object": ("squared", np.array(["a"] * 20, object), tells("y", "'a'")),
    "numbers for classes": ("hinge", VALUES, tells("y", "continuous")),
    "mixed labels": ("hinge", np.array([1, "a"] * 10, object), tells("y")),
    "one class": ("hinge", np.ones(20), ours("y", "one class (1.0)", "at least two")),
    "one word": ("log", ["no"] * 20, ours("y", "one class ('no')", "at least two")),
    "negative count": (
        "poisson",
        spoilt(VALUES, -0.5, at=7),
        ours("y", "-0.5 at row 7", 'finite numbers >= 0 for loss "poisson"'),
    ),
}


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_y_is_refused(case):
    loss, y, message = BAD_Y[case]
    with pytest.raises(REFUSALS, match=message):
        Sdca(loss=loss).fit(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0}], ids=short)
def test_one_class_after_zero_weights_is_refused(class_weight):
    message = ours("y", "one class (1)", "at least two classes")
    with pytest.raises(ValueError, match=message):
        Sdca(class_weight=class_weight).fit(X, LABELS, sample_weight=LABELS)


def test_class_weight_for_an_absent_class_only_is_refused():
    y = spoilt(LABELS, 7)
    message = ours("class_weight", "no class of y among [7]", "[0, 1]")
    with pytest.raises(ValueError, match=message):
        Sdca(class_weight={7: 2.0}).fit(X, y, sample_weight=y < 2)


# --- sample_weight --------------------------------------------------------------------

ONES = np.ones(20)
BAD_WEIGHTS = {
    "nan": (spoilt(ONES, np.nan), "nan at row 2", "finite weights >= 0"),
    "inf": (spoilt(ONES, np.inf), "inf at row 2", "finite weights >= 0"),
    "negative": (spoilt(ONES, -0.5), "-0.5 at row 2", "finite weights >= 0"),
    "all zero": (np.zeros(20), "zero for every weight", "a positive one"),
    "infinite sum": (np.full(20, 1e308), "a sum of inf", "neither infinite nor"),
    "subnormal sum": (np.full(20, 1e-310), "a sum of 2e-309", "nor subnormal"),
    "too short": (ONES[:-1], "shape (19,)", "(20,), one for each row of X"),
    "too long": (np.ones(21), "shape (21,)", "(20,), one for each row of X"),
    "2-D": (ONES[:, None], "shape (20, 1)", "(20,), one for each row of X"),
    "negative number": (-1.0, "-1.0", "finite weights >= 0"),
    "zero": (0.0, "zero for every weight", "a positive one"),
    "nan number": (np.nan, "nan", "finite weights >= 0"),
    "word": ("balanced", "", "numbers"),
    "words": (["a"] * 20, "", "numbers"),
    "ragged": ([[1], [2, 3]], "", "numbers"),
    "complex": (ONES + 1j, "", ""),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
@pytest.mark.parametrize("loss", ["hinge", "poisson"])
def test_bad_sample_weight_is_refused(case, loss):
    weights, found, expected = BAD_WEIGHTS[case]
    with pytest.raises(REFUSALS, match=ours("sample_weight", found, expected)):
        Sdca(loss=loss).fit(X, Y[loss], sample_weight=weights)


# --- order of calls -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "call"),
    [
        (loss.name, method)
        for loss in losses()
        for method in ("predict", "decision_function", "predict_proba", "score")
        if hasattr(Sdca(loss=loss.name), method)
    ]
    + [("hinge", "sparsify"), ("squared", "densify")],
)
def test_not_fitted_is_an_error(loss, call):
    arguments = {"score": (X, Y[loss]), "sparsify": (), "densify": ()}.get(call, (X,))
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(Sdca(loss=loss), call)(*arguments)


@pytest.mark.parametrize(
    "store", [np.asarray, sp.csr_matrix, sp.coo_array, pd.DataFrame]
)
@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_other_number_of_columns_is_refused(store, n_columns):
    model = Sdca().fit(X, LABELS)
    message = tells("X", f"{n_columns} features", "3 features")
    with pytest.raises(ValueError, match=message):
        model.predict(store(np.ones((5, n_columns))))


@pytest.mark.parametrize("n_rows", [19, 21])
def test_warm_start_with_other_rows_is_refused(n_rows):
    model = Sdca(warm_start=True).fit(X, LABELS)
    message = ours("warm_start", "dual values of shape (1, 20)", f"(1, {n_rows})")
    with pytest.raises(ValueError, match=message):
        model.fit(np.resize(X, (n_rows, 3)), np.resize(LABELS, n_rows))


@pytest.mark.parametrize(
    ("labels", "found", "expected"),
    [
        (LABELS + 1, "classes [1, 2]", "the previous fit"),
        (np.arange(20) % 3, "dual values of shape (1, 20)", "(3, 20)"),
    ],
    ids=["renamed", "more"],
)
def test_warm_start_with_other_classes_is_refused(labels, found, expected):
    model = Sdca(warm_start=True).fit(X, LABELS)
    with pytest.raises(ValueError, match=ours("warm_start", found, expected)):
        model.fit(X, labels)


# --- what a failed fit leaves behind --------------------------------------------------


class Boom(Exception):
    pass


def raises(error):
    def callback(progress):
        raise error

    return callback


FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
WIDER = pd.DataFrame(np.c_[X, X], columns=list("abcdef"))
RENAMED = FRAME.set_axis(["p", "q", "r"], axis=1)
FAILURES = {
    "setting": ({"C": -1.0}, FRAME, LABELS, None),
    "setting, other columns": ({"C": -1.0}, WIDER, LABELS, None),
    "setting, other names": ({"C": -1.0}, RENAMED, LABELS, None),
    "setting, no names": ({"max_iter": 0}, X, LABELS, None),
    "loss": ({"loss": "?"}, WIDER, LABELS, None),
    "loss_param": ({"loss_param": 1.0}, WIDER, LABELS, None),
    "loss of another task": ({"loss": "poisson"}, WIDER, -VALUES, None),
    "class_weight": ({"class_weight": "?"}, WIDER, LABELS, None),
    "X": ({}, WIDER * np.nan, LABELS, None),
    "length": ({}, WIDER, LABELS[:-1], None),
    "one class": ({}, WIDER, LABELS * 0, None),
    "weights": ({}, WIDER, LABELS, -ONES),
    "warm_start": ({"warm_start": True}, WIDER[:-1], LABELS[:-1], None),
    "callback": ({"callback": raises(Boom())}, WIDER, LABELS, None),
    "interrupt": ({"callback": raises(KeyboardInterrupt())}, WIDER, LABELS, None),
}


def learned(model):
    return {k: deepcopy(v) for k, v in vars(model).items() if k.endswith("_")}


@pytest.mark.parametrize("case", FAILURES)
def test_failed_refit_keeps_the_old_fit(case):
    settings, frame, y, weights = FAILURES[case]
    model = Sdca(random_state=0).fit(FRAME, LABELS)
    before, scores = learned(model), model.decision_function(FRAME)
    with pytest.raises((*REFUSALS, Boom, KeyboardInterrupt)):
        model.set_params(**settings).fit(frame, y, sample_weight=weights)
    np.testing.assert_equal(learned(model), before)
    model.set_params(**{name: Sdca().get_params()[name] for name in settings})
    np.testing.assert_array_equal(model.decision_function(FRAME), scores)


@pytest.mark.parametrize("case", [case for case in FAILURES if case != "warm_start"])
def test_failed_first_fit_leaves_the_model_unfitted(case):
    settings, frame, y, weights = FAILURES[case]
    model = Sdca(**settings)
    with pytest.raises((*REFUSALS, Boom, KeyboardInterrupt)):
        model.fit(frame, y, sample_weight=weights)
    assert learned(model) == {}
    with pytest.raises(NotFittedError, match="not fitted"):
        model.predict(frame)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("error", [Boom("told"), KeyboardInterrupt(), ValueError("x")])
def test_what_a_callback_raises_comes_out_as_it_is(error, n_jobs):
    model = Sdca(callback=raises(error), n_jobs=n_jobs)
    with pytest.raises(type(error)) as caught:
        model.fit(X, np.arange(20) % 3)
    assert caught.value is error
