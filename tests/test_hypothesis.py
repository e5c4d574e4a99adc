"""Whatever is given: a result, or an error that names the argument.

The law, for all estimators and ``certify``: a call has a result, or raises a
ValueError, TypeError or MemoryError whose message names the argument that is wrong. No
numpy warning comes out, what was given is not changed, no number of a model is NaN or
infinite, and the certificate is one: ``dual_objective_`` is not above ``objective_``,
and "converged" means what it says.

By default the examples are the same in each run, a few hundred for each law. With
SDCA_RS_LONG=1 in the environment they are random, and twenty times as many::

    SDCA_RS_LONG=1 pytest tests/test_hypothesis.py

A failure prints its example, and in a long run a ``@reproduce_failure`` to go with it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from copy import copy
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from sklearn.exceptions import (
    ConvergenceWarning,
    DataConversionWarning,
    UndefinedMetricWarning,
)

from conftest import CLASSIFIERS, FORMULAS, LOSSES, NAMES, SMOOTH
from sdca_rs import Asdca, DualGradient, Pegasos, Sdca, Subgradient, certify

LONG = os.environ.get("SDCA_RS_LONG") == "1"

# A hang in compiled code is out of reach of a signal: a thread ends the run.
pytestmark = pytest.mark.timeout(3600 if LONG else 120, method="thread")

ESTIMATORS = [Sdca, Asdca, Pegasos, Subgradient, DualGradient]
PAIRS = [(e, loss) for e in ESTIMATORS for loss in NAMES if e is not Asdca] + [
    (Asdca, loss) for loss in SMOOTH
]


def examples(count: int) -> Any:
    return settings(
        max_examples=20 * count if LONG else count,
        derandomize=not LONG,
        database=None,
        deadline=None,
        print_blob=LONG,
        suppress_health_check=list(HealthCheck),
    )


# --- the law --------------------------------------------------------------------------

ALLOWED = [
    ConvergenceWarning,
    DataConversionWarning,
    # Of scikit-learn's scores, for a single row.
    UndefinedMetricWarning,
    sp.SparseEfficiencyWarning,
]
# What numbers that are too large for each other are told, whichever is the culprit.
# scikit-learn's own messages about X name no argument.
SCIKIT_LEARN = (
    "^(Found array with |Expected 2D (array|input)|Complex data not supported"
    "|np.matrix is not supported|Unable to convert array)"
)
TOO_LARGE = r"X: found numbers for which|^(learning_rate|eta0): found steps so long"
OTHERS = f"{TOO_LARGE}|{SCIKIT_LEARN}"


def fingerprint(value: Any) -> Any:
    """Return all bytes that a value refers to."""
    if sp.issparse(value):
        parts = {k: v for k, v in vars(value).items() if not k.startswith("_has_")}
        return type(value), fingerprint(parts)
    if isinstance(value, np.ma.MaskedArray):
        return fingerprint([value.data, np.ma.getmaskarray(value)])
    if isinstance(value, np.ndarray):
        told = value.dtype, value.shape, value.strides, value.flags.writeable
        if value.dtype.hasobject:
            return told, [fingerprint(item) for item in np.asarray(value).ravel()]
        return told, value.tobytes()
    if isinstance(value, dict):
        return [(fingerprint(k), fingerprint(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return [fingerprint(item) for item in value]
    return type(value), repr(value)


def obey(
    names: list[str], function: Callable[..., Any], *args: Any, **named: Any
) -> Any:
    """Call a function as the law demands; None if it refuses by one of the names."""
    before = fingerprint([args, named])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in ALLOWED:
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "The number of unique classes is greater")
        result = refusal = None
        try:
            result = function(*args, **named)
        except MemoryError:
            pass
        except (ValueError, TypeError) as error:
            refusal = error
    if refusal is not None:
        words = "|".join(map(re.escape, names))
        told = re.search(rf"(?<!\w)({words})(?!\w)|{OTHERS}", str(refusal))
        assert told, f"{type(refusal).__name__} does not name {words}: {refusal}"
    assert fingerprint([args, named]) == before, "what was given has been changed"
    return result


def dense(X: Any) -> Any:
    """Return the rows as plain numbers; only for an X that was accepted."""
    if sp.issparse(X) and hasattr(X, "indptr"):
        # scipy can do less with odd types of indices than we accept.
        X = copy(X)
        X.indices, X.indptr = X.indices.astype("i8"), X.indptr.astype("i8")
    with np.errstate(all="ignore"):
        return np.asarray(X.toarray() if sp.issparse(X) else X).astype(float)


def check_fit(model: Any, X: Any, y: Any, weights: Any = None) -> None:
    """Check what a fit says of itself."""
    note(f"{model!r}: {model.stop_reason_}")
    for name in ("coef_", "intercept_", "dual_coef_", "objective_"):
        assert np.isfinite(getattr(model, name)).all(), name
    X = dense(X)
    c = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    c = np.broadcast_to(c, len(X))
    classes = getattr(model, "classes_", None)
    if classes is None:
        targets = [np.asarray(y).astype(float).ravel()]
    else:
        y = np.asarray(y).ravel()
        targets = [
            np.where(y == k, 1.0, -1.0)
            for k in (classes if len(classes) > 2 else classes[1:])
        ]
        if isinstance(model.class_weight, dict):
            with np.errstate(over="ignore"):
                for k, factor in model.class_weight.items():
                    c = np.where(y == k, c * factor, c)
    models = zip(
        targets,
        np.atleast_2d(model.coef_),
        np.atleast_1d(model.intercept_),
        np.atleast_2d(model.dual_coef_),
        np.atleast_1d(model.objective_),
        np.atleast_1d(model.dual_objective_),
        np.atleast_1d(model.stop_reason_),
        strict=True,
    )
    for target, w, b, a, P, D, reason in models:
        there = c > 0
        rows = X[there], target[there], c[there], a[there]
        rounding = noise(model, *rows, w, b, P, D)
        assert not np.isnan(D)
        assert P + rounding >= D, (P, D, rounding)
        if reason == "converged":
            assert float(model.tol) * P >= P - D
        elif reason == "perfect":
            # Or nothing beside P without coefficients, from which the fit began.
            formula, at_zero = FORMULAS[model.loss], np.zeros(there.sum())
            shape = model.loss_param or LOSSES[model.loss].default
            with np.errstate(over="ignore"):
                first = np.average(
                    formula.value(at_zero, rows[1], shape), weights=rows[2]
                )
            assert max(rounding, np.finfo(float).eps * first) >= P - D
        else:
            assert reason in ("max_iter", "precision", "callback")


def noise(
    model: Any, X: Any, y: Any, c: Any, a: Any, w: Any, b: Any, P: float, D: float
) -> float:
    """Return more than what rounding does to the difference of P and D."""
    formula = FORMULAS[model.loss]
    shape = LOSSES[model.loss].default
    if model.loss_param is not None:
        shape = float(model.loss_param)
    with np.errstate(all="ignore"):
        total = c.sum()
        lam = 1 / (float(model.C) * total) if model.lam is None else float(model.lam)
        p, size = X @ w + b, abs(X) @ abs(w) + abs(b) + abs(y)
        values = abs(formula.value(p, y, shape))
        conjugates = abs(formula.conjugate(a, y, shape))
        # At most that, for the losses of this package.
        slopes = 4 + 2 * np.sqrt(values + abs(P))
        if model.loss == "poisson":
            slopes = np.exp(p) + y
            # Terms y log(y) are part of both.
            values = values + y * (1 + abs(np.log(np.maximum(y, 1e-300))))
            conjugates = conjugates + values
        each = 1e-13 * (values + conjugates) + 1e-14 * (slopes + abs(a)) * size
        lost = 1e-15 * (c * abs(a)) @ abs(X) / (lam * total)
        of_dual = X.T @ (c * a) / (lam * total)
        square = lam * (abs(of_dual) @ lost + lost @ lost)
        sum_a = 1e-14 * (c @ abs(a)) / total * (abs(b) + 1)
        sum_of_all = 1e-12 * (abs(P) + abs(D)) + c @ each / total + square + sum_a
    return float(sum_of_all) if np.isfinite(sum_of_all) else np.inf


# --- numbers --------------------------------------------------------------------------

seeds = st.integers(0, 2**32 - 1)
WILD = [
    *(0.0, -0.0, 5e-324, 1e-310, 2.3e-308, 1e-200, 1e-160, 1e-20, 1e-8, 0.1),
    *(1.0, -1.0, 3.0, 1e8, -1e12, 1e20, 1e75, 1e100, 1.4e154, -1e160, 1e250),
    *(1e300, 1e308, -1e308, 1.7976931348623157e308),
]
exponents = st.sampled_from([-320, -300, -160, -100, -20, -5, 5, 20, 75, 100, 160, 300])
KINDS = ["plain", "plain", "ties", "one value", "wild", "large columns", "large rows"]


@st.composite
def numbers(draw: Any, shape: Any, kinds: Any = KINDS) -> Any:
    """Draw finite numbers of all sizes."""
    rng, kind = np.random.default_rng(draw(seeds)), draw(st.sampled_from(kinds))
    made = rng.normal(size=shape)
    if kind == "ties":
        made = rng.integers(-2, 3, size=shape).astype(float)
    elif kind == "one value":
        made = np.full(shape, draw(st.sampled_from(WILD)))
    elif kind == "wild":
        made = rng.choice(WILD, size=shape)
    elif kind == "large columns":
        made *= rng.choice([0, 1, 10.0 ** draw(exponents)], size=shape[-1:])
    elif kind == "large rows":
        made[:1] *= 10.0 ** draw(exponents)
    return np.clip(np.nan_to_num(made), -1.7e308, 1.7e308)


shapes = st.tuples(st.integers(2, 9), st.integers(1, 5))
pairs = st.sampled_from(PAIRS)


def targets_of(loss: str, n: int, seed: int, n_classes: int = 2) -> Any:
    """Make classes that are all there, or numbers, as a loss wants them."""
    rng = np.random.default_rng(seed)
    if loss in CLASSIFIERS:
        return rng.permutation(np.arange(n) % min(n_classes, n))
    return abs(rng.normal(size=n)) if loss == "poisson" else rng.normal(size=n)


def quick(estimator: Any, loss: str, **params: Any) -> Any:
    """Make an estimator that will end soon, whatever the data."""
    return estimator(loss, **({"max_iter": 15, "random_state": 0} | params))


quick_params = st.fixed_dictionaries(
    {
        "C": st.sampled_from([1.0, 1.0, 1e-6, 1e3, 1e12]),
        "tol": st.sampled_from([1e-2, 1e-4, 1e-10, 0.0]),
        "fit_intercept": st.booleans(),
        "max_iter": st.sampled_from([1, 3, 40]),
    }
)

# --- rows -----------------------------------------------------------------------------

DTYPES = [
    *("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"),
    *("f2", "f4", "f8", ">f4", ">f8", ">i4", "longdouble", "c8", "c16"),
    *("O", "U", "S", "M8[s]", "m8[s]"),
]
# Entries of lists and of arrays of objects.
ODD = [
    *(None, "a", "1.5", "\ud800", b"2", b"\xff", 1j, True, [1], object(), np.nan),
    *(10**400, -(10**30), Fraction(1, 3), Decimal("1e400"), np.float32(1)),
    *(np.longdouble("1e4000"), np.datetime64("2020-01-01"), np.inf, float("1e308")),
]


def gaps(array: Any) -> Any:
    return np.repeat(array, 2, axis=0)[::2]


def backwards(array: Any) -> Any:
    return np.flip(np.flip(array).copy())


def read_only(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


def misaligned(array: Any) -> Any:
    if array.dtype.hasobject or not array.dtype.itemsize:
        return array
    buffer = b"\0" + array.tobytes()
    return np.frombuffer(buffer, array.dtype, offset=1).reshape(array.shape)


def masked(array: Any) -> Any:
    return np.ma.array(array, mask=np.arange(array.size).reshape(array.shape) % 3 == 0)


def matrix_class(array: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asmatrix(array)


WAYS = [
    np.ascontiguousarray,
    np.asfortranarray,
    gaps,
    lambda array: gaps(array.T).T,
    backwards,
    read_only,
    misaligned,
    masked,
    matrix_class,
    lambda array: array.tolist(),
    lambda array: array[0],
    lambda array: array[None],
    lambda array: array[:0],
    lambda array: array[:, :0],
    lambda array: array[:1],
    lambda array: array[0, 0],
]
USUAL = WAYS[:8]


def cast(array: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dtype in ("M8[s]", "m8[s]"):
            array = np.clip(array, -1e9, 1e9).astype("i8")
        return array.astype(dtype)


@st.composite
def arrays(draw: Any, shape: Any) -> Any:
    """Draw an array of any type and layout, perhaps with what is not a number."""
    array = cast(draw(numbers(shape)), draw(st.sampled_from(DTYPES)))
    if array.dtype.kind in "fcO" and draw(st.integers(0, 3)) == 0:
        spoilers = ODD if array.dtype.kind == "O" else [np.nan, np.inf, -np.inf]
        array.ravel()[0 : array.size : 3] = np.nan  # So that a view is written.
        array.flat[draw(st.integers(0, array.size - 1))] = draw(
            st.sampled_from(spoilers)
        )
    return draw(st.sampled_from(USUAL + WAYS))(array)


FORMATS = ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"]
SPARSE_DTYPES = ["?", "i1", "i4", "i8", "u8", "f4", "f8", "longdouble", "c16"]
INDEX_DTYPES = ["i4", "i8", "i2", "u4", "u8", "u1", ">i4"]


def unsorted(matrix: Any) -> None:
    for name in ("data", "indices"):
        parts = np.split(getattr(matrix, name), matrix.indptr[1:-1])
        setattr(matrix, name, np.concatenate([part[::-1] for part in parts]))
    matrix.has_sorted_indices = False


def duplicated(matrix: Any) -> None:
    for name in ("data", "indices"):
        setattr(matrix, name, np.repeat(getattr(matrix, name), 2))
    matrix.indptr = matrix.indptr * 2
    matrix.has_canonical_format = False


def roomy(matrix: Any) -> None:
    matrix.data = np.append(matrix.data, cast(np.full(3, 1e300), matrix.data.dtype))
    matrix.indices = np.append(matrix.indices, np.full(3, 2**31 - 1, "i4"))


def explicit_zeros(matrix: Any) -> None:
    matrix.data = matrix.data.copy()
    matrix.data[::2] = 0


def frozen(matrix: Any) -> None:
    for name in ("data", "indices", "indptr"):
        setattr(matrix, name, read_only(getattr(matrix, name)))


def as_before(matrix: Any) -> None:
    pass


TWISTS = [as_before, unsorted, duplicated, roomy, explicit_zeros, frozen]


def sparse_of(array: Any, form: str, kind: str, index: str, twist: Any) -> Any:
    """Store an array; index types and twists only if there are index arrays."""
    made = getattr(sp, f"{form}_{kind}")(array)
    if form in ("csr", "csc", "bsr"):
        if form != "bsr":
            twist(made)
        made.indices = made.indices.astype(index)
        made.indptr = made.indptr.astype(index)
    elif form == "coo":
        made.row, made.col = made.row.astype(index), made.col.astype(index)
    return made


@st.composite
def sparse_matrices(draw: Any, shape: Any) -> Any:
    array = draw(numbers(shape))
    array[np.random.default_rng(draw(seeds)).random(shape) < 0.4] = 0.0
    dtype = draw(st.sampled_from(SPARSE_DTYPES))
    array = cast(array, dtype)
    if np.dtype(dtype).kind == "f" and draw(st.integers(0, 4)) == 0:
        array[-1, -1] = draw(st.sampled_from([np.nan, np.inf]))
    return sparse_of(
        array,
        draw(st.sampled_from(FORMATS)),
        draw(st.sampled_from(["matrix", "array"])),
        draw(st.sampled_from(INDEX_DTYPES)),
        draw(st.sampled_from(TWISTS)),
    )


def nested_lists(shape: Any) -> Any:
    entry = st.one_of(st.sampled_from(WILD), st.sampled_from(ODD))
    n, d = shape
    rows = st.lists(entry, min_size=d, max_size=d) | st.lists(entry, max_size=3)
    return st.lists(rows, min_size=n, max_size=n)


ODD_X = [
    *(None, 3.0, "rows", b"rows", object(), {}, {"a": [1]}, [], [[]], [[1], [2, 3]]),
    *(sp.csr_array(np.arange(4.0)), sp.coo_array(np.ones((2, 2, 2))), iter([])),
    *(sp.csr_array((0, 3)), sp.csr_array((3, 0)), np.zeros((2, 2), dtype=[("a", int)])),
]


@st.composite
def any_X(draw: Any, shape: Any) -> Any:
    return draw(
        st.one_of(
            arrays(shape),
            arrays(shape),
            sparse_matrices(shape),
            sparse_matrices(shape),
            nested_lists(shape),
            st.sampled_from(ODD_X),
        )
    )


@examples(300)
@given(st.data(), pairs, shapes, seeds, quick_params)
def test_any_rows_are_used_or_refused(data, pair, shape, seed, params):
    estimator, loss = pair
    X = data.draw(any_X(shape))
    y = targets_of(loss, shape[0], seed, 2 + seed % 2)
    model = obey(["X"], quick(estimator, loss, **params).fit, X, y)
    if model is not None:
        check_fit(model, X, y)
        for method in ("predict", "decision_function", "predict_proba"):
            if hasattr(model, method):
                result = obey(["X"], getattr(model, method), X)
                assert result is not None
                assert not np.isnan(np.asarray(result, dtype=float)).any()


# --- targets --------------------------------------------------------------------------

LABELS = {
    "ints": lambda rng, n: rng.integers(0, 3, n),
    "strings": lambda rng, n: rng.choice(["a", "b", "\u00e9"], n),
    "bytes": lambda rng, n: rng.choice([b"a", b"\xff"], n),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "objects": lambda rng, n: rng.choice(np.array(["a", "b"], dtype=object), n),
    "whole floats": lambda rng, n: rng.choice([-1.0, 1.0, 1e308, -1e308], n),
    "single": lambda rng, n: rng.integers(0, 2, n).astype("f2"),
    "huge ints": lambda rng, n: rng.choice(np.array([2**63, 2**64 - 1], "u8"), n),
    "signed zeros": lambda rng, n: rng.choice([0.0, -0.0, 1.0], n),
    "dates": lambda rng, n: rng.integers(0, 2, n).astype("M8[s]"),
    "one class": lambda rng, n: np.zeros(n),
    "many classes": lambda rng, n: np.arange(n) * 10**12,
    "floats": lambda rng, n: rng.normal(size=n),
    "counts": lambda rng, n: rng.poisson(2.0, n),
    "mixed": lambda rng, n: np.array([1, "a", None, 2.5] * n, dtype=object)[:n],
    "odd": lambda rng, n: np.array([*ODD, *ODD][:n], dtype=object),
    "column": lambda rng, n: rng.integers(0, 2, (n, 1)),
    "two columns": lambda rng, n: rng.integers(0, 2, (n, 2)),
    "too long": lambda rng, n: rng.integers(0, 2, n + 1),
    "too short": lambda rng, n: rng.integers(0, 2, n - 1),
    "empty": lambda rng, n: np.array([]),
    "structured": lambda rng, n: np.zeros(n, dtype=[("a", int)]),
    "complex": lambda rng, n: rng.normal(size=n) + 1j,
    "longdouble": lambda rng, n: np.array([1, "1e4000"] * n, dtype="longdouble")[:n],
    "sparse": lambda rng, n: sp.csr_array(rng.integers(0, 2, (1, n))),
    "masked": lambda rng, n: masked(rng.integers(0, 2, n)),
    "ragged": lambda rng, n: [[1]] * (n - 1) + [[1, 2]],
    "scalar": lambda rng, n: 1.0,
    "None": lambda rng, n: None,
    "a string": lambda rng, n: "y" * n,
}


@st.composite
def any_y(draw: Any, n: int) -> Any:
    kind = draw(st.sampled_from([*LABELS, "numbers", "numbers", "odd entry"]))
    note(f"y is {kind}")
    if kind == "numbers":
        y = draw(numbers((n,)))
        if draw(st.booleans()):
            y = abs(y)
    elif kind == "odd entry":
        y = np.random.default_rng(draw(seeds)).integers(0, 2, n).astype(object)
        y[draw(st.integers(0, n - 1))] = draw(st.sampled_from(ODD))
    else:
        y = LABELS[kind](np.random.default_rng(draw(seeds)), n)
    if isinstance(y, np.ndarray) and y.size:
        y = draw(st.sampled_from([np.copy, gaps, read_only, misaligned, np.array]))(y)
        y = y.tolist() if draw(st.integers(0, 4)) == 0 else y
    return y


@examples(300)
@given(st.data(), pairs, shapes, seeds, quick_params)
def test_any_targets_are_used_or_refused(data, pair, shape, seed, params):
    estimator, loss = pair
    X = np.random.default_rng(seed).normal(size=shape)
    y = data.draw(any_y(shape[0]))
    model = obey(["y"], quick(estimator, loss, **params).fit, X, y)
    if model is not None:
        check_fit(model, X, y)
        assert obey([], model.predict, X).shape == (shape[0],)


# --- weights --------------------------------------------------------------------------


@st.composite
def any_weights(draw: Any, n: int) -> Any:
    """Draw weights, of which most are fine."""
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(["fine", "wild", "zeros", "spoilt", "array", "odd"]))
    note(f"weights are {kind}")
    if kind == "odd":
        odd = ["balanced", {}, [], [1.0], np.nan, -1.0, 0.0, True, 7, *ODD]
        return draw(st.sampled_from(odd))
    if kind == "array":
        return draw(arrays((n, 1)))[:, 0] if n > 20 else draw(arrays((1, n)))
    weights = rng.uniform(0.1, 2.0, n)
    if kind == "wild":
        weights = abs(rng.choice(WILD, n))
    elif kind == "zeros":
        weights *= rng.random(n) < 0.5
    elif kind == "spoilt":
        bad = [np.nan, np.inf, -1.0, -5e-324, 1e308, 5e-324]
        weights[draw(st.integers(0, n - 1))] = draw(st.sampled_from(bad))
    scale = draw(st.sampled_from([1.0, 1.0, 1e-300, 1e-320, 1e200, 1e308]))
    with np.errstate(over="ignore"):
        weights = weights * scale
    dtypes = ["f8", "f8", "f4", "f2", "i8", "?", "O", "U", "longdouble", "c16"]
    weights = cast(weights, draw(st.sampled_from(dtypes)))
    weights = draw(st.sampled_from([np.copy, gaps, read_only, masked]))(weights)
    return weights.tolist() if draw(st.integers(0, 4)) == 0 else weights


@examples(300)
@given(st.data(), pairs, shapes, seeds, quick_params)
def test_any_weights_are_used_or_refused(data, pair, shape, seed, params):
    estimator, loss = pair
    X = np.random.default_rng(seed).normal(size=shape)
    y = targets_of(loss, shape[0], seed, 2 + seed % 2)
    weights = data.draw(any_weights(shape[0]))
    if loss in CLASSIFIERS:
        balanced = st.sampled_from([None, None, "balanced", {0: 3.0}, {1: 1e200}])
        params["class_weight"] = data.draw(balanced)
    # Weights decide which classes there are, and with C what lambda is.
    names = ["sample_weight", "y", "C", "class_weight"]
    model = obey(names, quick(estimator, loss, **params).fit, X, y, weights)
    if model is not None and params.get("class_weight") != "balanced":
        check_fit(model, X, y, weights)


# --- settings -------------------------------------------------------------------------

ODD_NUMBERS = [
    *(0, -1.0, np.nan, np.inf, -np.inf, 5e-324, 1e-310, 1e-300, 1e300, 1e308),
    *(10**400, "1", None, True, 1j, np.complex64(1 + 1j), [1.0], np.array([1.0])),
    *(np.array(0.5), Fraction(1, 2), Decimal("0.5"), np.float16(0.5), "auto", b"1"),
    *(np.longdouble("1e-4000"), np.longdouble("1e4000"), object(), 1, 2),
]
# None of them makes a run long.
ODD_COUNTS = [
    *(0, -1, 2**63, -(2**63), 10**30, 1.5, "3", None, True, np.nan, [3], "auto"),
    *(np.int8(3), np.uint64(2**64 - 1), np.array(3), np.float64(3)),
]
ODD_FLAGS = [np.True_, 1, 0, "yes", None, [], np.array([True])]
ODD_WORDS = ["?", "", None, 1, b"last", np.str_("last"), ["last"], "auto", "best"]
ODD_CLASS_WEIGHTS = [
    *("even", 2, [1, 2], {}, {7: 1.0}, {0: -1}, {0: np.nan}, {0: np.inf}, {0: "a"}),
    *({0: 0}, {0: 0, 1: 0}, {0: 10**400}, {0: 1e308, 1: 1e308}, {0: 1e-320}),
    *({0: None}, {0: 1e300}, {0: True}, {"0": 1.0}, {None: 1.0}, {0: 1e-300, 7: 1}),
]
FINE = {
    "loss_param": [None],
    "C": [1.0, 0.1, 100.0],
    "lam": [None],
    "fit_intercept": [True, False],
    "tol": [1e-3, 1e-8, 0.0],
    "max_iter": [1, 7, 30],
    "max_time": [None, 1e9],
    "class_weight": [None],
    "warm_start": [False, True],
    "sampling": ["permutation", "random", "cyclic"],
    "output": ["last", "average", "random"],
    "average_from": [0.5, 0.0, 0.99, 3],
    "first_epoch": ["auto", "sdca", "sgd"],
    "accelerate": [True, False],
    "record_every": [None, 0.3, 1],
    "n_jobs": [None, 1, 2],
    "verbose": [0],
    "callback": [None, lambda progress: False, lambda progress: progress.epoch > 2],
    "batch_size": [1, 2],
    "theta": ["auto", 0.5],
    "project": [False, True],
    "learning_rate": ["pegasos", "constant", "invscaling"],
    "eta0": [None, 1e-3],
    "power_t": [0.5, 1.0],
    "step": ["auto", 1e-3],
}
ODD_SETTINGS = {
    **dict.fromkeys(
        ["loss_param", "C", "lam", "average_from", "theta", "eta0", "power_t", "step"],
        ODD_NUMBERS,
    ),
    "tol": ODD_NUMBERS,
    **dict.fromkeys(["max_iter", "n_jobs"], ODD_COUNTS),
    "verbose": [-1, 1.5, "a", None, True, 2**63],
    "batch_size": [*ODD_COUNTS, 10**6, 2**62],
    # Nothing that depends on the clock.
    "max_time": [0, -1.0, np.nan, np.inf, 1e300, "a", True, 1j, [1.0], 10**400],
    "record_every": ODD_NUMBERS,
    **dict.fromkeys(
        ["fit_intercept", "warm_start", "keep_dual", "accelerate", "project"],
        ODD_FLAGS,
    ),
    **dict.fromkeys(["sampling", "output", "first_epoch", "learning_rate"], ODD_WORDS),
    "class_weight": ["balanced", {0: 2.0}, *ODD_CLASS_WEIGHTS],
    "callback": [
        3,
        "a",
        lambda progress: None,
        lambda: None,
        lambda progress: np.array([1, 2]),
    ],
    "random_state": ["a", 1.5, -1, 2**40, [], np.array([1, 2]), True, np.int8(3)],
    "loss": ["Hinge", "", None, 3, ["hinge"], np.str_("hinge"), np.array(["a", "b"])],
}


@st.composite
def any_settings(draw: Any, estimator: Any, loss: str) -> dict[str, Any]:
    """Draw settings, all fine but one."""
    known = list(estimator().get_params())
    chosen = {name: draw(st.sampled_from(FINE[name])) for name in known if name in FINE}
    chosen |= {"loss": loss, "random_state": 0}
    name = draw(st.sampled_from(known))
    value = draw(st.sampled_from(ODD_SETTINGS[name]))
    if name == "class_weight" and loss not in CLASSIFIERS:
        return chosen
    note(f"{name}={value!r}")
    if name == "lam":
        chosen["C"] = 1.0
    return chosen | {name: value}


def raised_by_callback(chosen: dict[str, Any]) -> bool:
    """Whether the callback cannot take what it is given, or answers no truth."""
    return chosen.get("callback") in ODD_SETTINGS["callback"][3:]


@examples(400)
@given(st.data(), pairs, shapes, seeds)
def test_any_settings_are_used_or_refused(data, pair, shape, seed):
    estimator, loss = pair
    X = np.random.default_rng(seed).normal(size=shape)
    y = targets_of(loss, shape[0], seed, 2 + seed % 2)
    chosen = data.draw(any_settings(estimator, loss))
    model = estimator(**chosen)
    # What a callback raises comes out as it is. A warning for an absurd step length
    # names the settings that decide it.
    names = [*chosen, "takes 0 positional", "truth value"]
    if isinstance(chosen["loss"], str) and chosen["loss"] != loss:
        # One of another task.
        names.append("y")
    if chosen.get("class_weight") is not None:
        # It may leave one class only.
        names.append("y")
    for _ in range(2):
        if obey(names, model.fit, X, y) is None:
            assert not hasattr(model, "coef_")
            return
        if not isinstance(chosen.get("class_weight"), str):
            check_fit(model, X, y)


def fine(estimator: Any, loss: str) -> dict[str, Any]:
    return {k: v[0] for k, v in FINE.items() if k in estimator().get_params()}


@examples(400)
@given(st.data(), pairs)
def test_refusals_name_the_setting_that_is_wrong(data, pair):
    """Only one is odd, and all others are as they are by default."""
    estimator, loss = pair
    name = data.draw(st.sampled_from(list(estimator().get_params())))
    value = data.draw(st.sampled_from(ODD_SETTINGS[name]))
    if raised_by_callback({name: value}):
        return
    X = np.random.default_rng(0).normal(size=(8, 3))
    y = targets_of(loss, 8, 0)
    model = quick(estimator, loss).set_params(**{name: value})
    # A loss of another task; weights that are all gone.
    others = {"class_weight": ["y"], "loss": ["y", "loss_param"]}
    obey([name, *others.get(name, [])], model.fit, X, y)


# --- wild numbers ---------------------------------------------------------------------


@st.composite
def wild_problem(draw: Any, loss: str) -> Any:
    """Draw finite rows, targets and weights of all sizes."""
    n, d = draw(shapes)
    X = draw(numbers((n, d)))
    if loss in CLASSIFIERS:
        y = targets_of(loss, n, draw(seeds), draw(st.sampled_from([2, 2, 3])))
    else:
        y = draw(numbers((n,)))
        y = abs(y) if loss == "poisson" else y
    weights = draw(st.none() | numbers((n,)).map(abs))
    return X, y, weights


wild_params = st.fixed_dictionaries(
    {
        "C": st.sampled_from([1.0, 1e-12, 1e-3, 1e3, 1e12, 1e100, 1e-100]),
        "tol": st.sampled_from([1e-2, 1e-4, 1e-10, 1e-300, 0.0]),
        "fit_intercept": st.booleans(),
        "max_iter": st.sampled_from([1, 3, 50]),
    }
)


@examples(500)
@given(st.data(), pairs, wild_params)
def test_wild_numbers_have_a_true_certificate(data, pair, params):
    estimator, loss = pair
    X, y, weights = data.draw(wild_problem(loss))
    names = ["X", "y", "sample_weight", "C"]
    model = obey(names, quick(estimator, loss, **params).fit, X, y, weights)
    if model is not None:
        check_fit(model, X, y, weights)


@examples(300)
@given(st.data(), pairs, wild_params)
def test_no_model_is_worse_than_a_constant(data, pair, params):
    estimator, loss = pair
    X, y, weights = data.draw(wild_problem(loss))
    if loss in CLASSIFIERS:
        y = np.minimum(y, 1)
    # With tol=0 a fit shows where the algorithm ends.
    assume(params["tol"] > 0)
    names = ["X", "y", "sample_weight", "C"]
    model = obey(names, quick(estimator, loss, **params).fit, X, y, weights)
    if model is not None:
        check_not_worse_than_a_constant(model, y, weights)


def check_not_worse_than_a_constant(model: Any, y: Any, weights: Any) -> None:
    c = np.ones(len(y)) if weights is None else weights
    there = c > 0
    c, t = c[there] / c.max(), y[there].astype(float)
    if model.loss in CLASSIFIERS:
        t = 2 * t - 1
    formula, shape = FORMULAS[model.loss], LOSSES[model.loss].default
    with np.errstate(all="ignore"):
        constants = [0.0]
        if model.fit_intercept:
            levels = np.append(t, np.average(t, weights=c))
            constants += [*(np.log(levels) if model.loss == "poisson" else levels)]
        values = [
            np.average(formula.value(np.full_like(t, b), t, shape), weights=c)
            for b in constants
        ]
        best, size = max(np.nanmin(values), 0.0), np.max(abs(t))
        # The intercept is the best one up to a small part of the tolerance.
        part = 1e-9 + min(0.01 * model.tol, 1e-4)
        rounding = part * best + 1e-13 * size * (1 + np.sqrt(best)) + 1e-300
        rounding += 1e-26 * size**2
        if model.loss == "poisson":
            rounding += 1e-12 * size * np.log1p(size)
    assert model.objective_ <= best + rounding


# --- what a fitted model does ---------------------------------------------------------


@cache
def fitted(estimator: Any, loss: str, n_classes: int) -> Any:
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = targets_of(loss, 30, 1, n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return quick(estimator, loss, C=10.0).fit(X, y)


fitted_models = st.builds(lambda p, k: fitted(*p, k), pairs, st.sampled_from([2, 3]))
PREDICTIONS = ["predict", "decision_function", "predict_proba", "predict_log_proba"]


@examples(300)
@given(st.data(), fitted_models, st.integers(1, 6), st.sampled_from(PREDICTIONS))
def test_predictions_for_any_rows_are_given_or_refused(data, model, n, method):
    if not hasattr(model, method):
        method = "predict"
    X = data.draw(any_X((n, 3)))
    result = obey(["X"], getattr(model, method), X)
    if result is not None:
        assert len(result) == np.shape(X)[0]
        assert not np.isnan(np.asarray(result, dtype=float)).any()


@examples(200)
@given(st.data(), fitted_models, st.sampled_from(PREDICTIONS))
def test_predictions_for_wild_rows_are_numbers(data, model, method):
    """They may overflow, but not to NaN, and probabilities stay probabilities."""
    if not hasattr(model, method):
        method = "predict"
    X = data.draw(numbers((data.draw(st.integers(1, 6)), 3)))
    result = obey(["X"], getattr(model, method), X)
    if result is None:
        return
    assert not np.isnan(np.asarray(result, dtype=float)).any()
    if method == "predict_proba":
        assert ((result >= 0) & (result <= 1)).all()
        np.testing.assert_allclose(result.sum(axis=1), 1.0)


@examples(250)
@given(st.data(), fitted_models, st.integers(1, 8))
def test_scores_are_given_or_refused(data, model, n):
    X = np.random.default_rng(3).normal(size=(n, 3))
    y = targets_of(model.loss, n, 4)
    weights = None
    which = data.draw(st.sampled_from(["y", "sample_weight", "both"]))
    if which != "sample_weight":
        y = data.draw(any_y(n))
    if which != "y":
        weights = data.draw(any_weights(n))
    names = ["y", "sample_weight"] if which == "both" else [which]
    score = obey(names, model.score, X, y, weights)
    assert score is None or isinstance(score, float)


# --- streams --------------------------------------------------------------------------

ODD_CLASSES = [
    *(None, [], [0], [0, 1], [1, 0, 0], [0, 1, 2], ["a", "b"], [0, "a"], 5, "classes"),
    *([0, 1, np.nan], [0, 1, None], [[0, 1]], [[0], [1, 2]], [0, 1j], [0, 1, 10**400]),
    *([True, False], [0.0, 1.0], {0: 1}, {0, 1}, np.array([0, 1], dtype=object)),
]


@examples(200)
@given(st.data(), st.sampled_from(NAMES), st.sampled_from(["last", "average"]))
def test_any_stream_is_used_or_refused(data, loss, output):
    model = Pegasos(loss, lam=0.1, random_state=0, output=output)
    for _ in range(data.draw(st.integers(1, 3))):
        n = data.draw(st.integers(1, 6))
        rng = np.random.default_rng(data.draw(seeds))
        X, y = rng.normal(size=(n, 3)), targets_of(loss, n, 0)
        classes = [0, 1] if loss in CLASSIFIERS else None
        weights, odd = None, data.draw(st.sampled_from(["none", "X", "y", "w", "c"]))
        if odd == "X":
            X = data.draw(any_X((n, 3)))
        elif odd == "y":
            y = data.draw(any_y(n))
        elif odd == "w":
            weights = data.draw(any_weights(n))
        elif odd == "c":
            classes = data.draw(st.sampled_from(ODD_CLASSES))
        names = {
            "none": [],
            "X": ["X"],
            "y": ["y"],
            "w": ["sample_weight", "y"],
            "c": ["classes", "y"],
        }
        # Later parts must go with the first.
        told = [*names[odd], "X has", "as in the first call"]
        before = fingerprint(vars(model))
        if obey(told, model.partial_fit, X, y, classes, weights) is None:
            assert fingerprint(vars(model)) == before
        else:
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(model.intercept_).all()


# --- certificates of others -----------------------------------------------------------


@examples(200)
@given(st.data(), pairs, seeds)
def test_any_certificate_is_given_or_refused(data, pair, seed):
    estimator, loss = pair
    model = fitted(estimator, loss, 2)
    n = data.draw(st.integers(2, 8))
    X = np.random.default_rng(seed).normal(size=(n, 3))
    y = targets_of(loss, n, seed)
    named: dict[str, Any] = {}
    odd = data.draw(st.sampled_from(["X", "y", "sample_weight", "settings"]))
    if odd == "X":
        X = data.draw(any_X((n, 3)))
    elif odd == "y":
        y = data.draw(any_y(n))
    elif odd == "sample_weight":
        named[odd] = data.draw(any_weights(n))
    else:
        odd = data.draw(
            st.sampled_from(
                ["C", "lam", "loss_param", "tol", "max_iter", "fit_intercept"]
            )
        )
        named[odd] = data.draw(st.sampled_from(ODD_SETTINGS[odd]))
    # C and weights make lambda; classes of the model are those of y.
    names = {"sample_weight": ["sample_weight", "y", "C"], "X": ["X"], "y": ["y"]}
    proof = obey(names.get(odd, [odd]), certify, model, X, y, **named)
    if proof is not None:
        # Of a model that does not fit, the objective may overflow.
        assert not np.isnan(proof.objective).any()
        assert np.isfinite(proof.dual_objective).all()
        size = abs(proof.objective) + abs(proof.dual_objective)
        assert np.all(proof.gap >= -1e-9 * size)


# --- malformed structure --------------------------------------------------------------

BAD_INDICES = [-1, -(2**31), 5, 6, 100, 10**8, 2**31 - 1]
BAD_ROWS = [[10**8, 0], [-1], [0] * 1000, ["a"], [3, 2], [0, 0], []]


@st.composite
def malformed(draw: Any) -> Any:
    """Spoil a sparse matrix after it was made, so that scipy does not see it."""
    form = draw(st.sampled_from(["csr", "csc", "coo", "bsr", "lil", "dia"]))
    array = (
        np.random.default_rng(draw(seeds)).integers(-2, 3, size=(6, 4)).astype(float)
    )
    array[0] = 1.0
    made = getattr(sp, f"{form}_{draw(st.sampled_from(['matrix', 'array']))}")(array)
    if form in ("csr", "csc", "coo"):
        made = made.astype(draw(st.sampled_from(["f8", "f4", "i8", "longdouble"])))
    names = {
        "csr": ["data", "indices", "indptr"],
        "csc": ["data", "indices", "indptr"],
        "bsr": ["data", "indices", "indptr"],
        "coo": ["data", "row", "col"],
        "lil": ["data", "rows"],
        "dia": ["data", "offsets"],
    }
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(names[form]))
        part = getattr(made, name)
        how = draw(st.sampled_from(["number", "shorter", "longer", "axis", "type"]))
        at = draw(st.integers(0, max(len(part) - 1, 0)))
        if how == "number" and len(part):
            bad = draw(st.sampled_from(BAD_ROWS if form == "lil" else BAD_INDICES))
            part[at] = bad if form == "lil" else cast(np.array(bad), part.dtype)
        elif how == "shorter":
            setattr(made, name, part[:at])
        elif how == "longer":
            setattr(made, name, np.concatenate([part, part[-1:], part[-1:]]))
        elif how == "axis" and form not in ("dia", "lil"):
            setattr(made, name, part[:, None])
        elif how == "type" and form != "lil":
            odd_types = ["f8", "?", "O", "c16", "u8", "i2"]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                setattr(made, name, cast(part, draw(st.sampled_from(odd_types))))
    return made


def check_malformed() -> None:
    """Run as a program: a crash ends a process."""

    @examples(400)
    @given(malformed(), st.sampled_from(["fit", "predict", "partial_fit", "certify"]))
    def check(X: Any, method: str) -> None:
        shown = {k: v for k, v in vars(X).items() if not k.startswith("_has_")}
        print(f"{method} of {type(X).__name__}: {shown}", flush=True)
        y, model = np.arange(6) % 2, fitted_to_four()
        if method == "fit":
            obey(["X"], quick(Sdca, "log").fit, X, y)
        elif method == "predict":
            obey(["X"], model.predict, X)
        elif method == "certify":
            obey(["X"], certify, model, X, y)
        else:
            obey(["X"], Pegasos("log", lam=1.0).partial_fit, X, y, [0, 1])

    check()


@cache
def fitted_to_four() -> Any:
    X = np.random.default_rng(0).normal(size=(6, 4))
    return Sdca("log", random_state=0).fit(X, np.arange(6) % 2)


def test_malformed_matrices_are_used_or_refused():
    done = subprocess.run(
        [sys.executable, "-c", "import test_hypothesis as t; t.check_malformed()"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=3000 if LONG else 100,
        check=False,
    )
    shown = f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    assert done.returncode == 0, shown
    assert "panicked" not in done.stderr, shown
