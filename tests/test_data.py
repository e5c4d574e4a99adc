"""Data that are checked and prepared once give what rows give, to the last bit."""

import copy
import gc
import pickle
import re
import threading
import warnings
import weakref

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import sdca_rs._data
import sdca_rs._handle
from sdca_rs import (
    Asdca,
    Data,
    DualGradient,
    Pegasos,
    Sdca,
    Subgradient,
    certify,
)

N_ROWS, N_COLS = 80, 7
rng = np.random.default_rng(0)
X = rng.standard_normal((N_ROWS, N_COLS)) * (rng.random((N_ROWS, N_COLS)) < 0.6)
NOISY = X @ rng.standard_normal(N_COLS) + rng.standard_normal(N_ROWS)
LABELS = np.sign(NOISY)
KINDS = np.digitize(NOISY, [-0.5, 0.5])
WEIGHTS = rng.integers(0, 4, N_ROWS).astype(float)
TARGETS = {"hinge": LABELS, "log": KINDS, "squared": NOISY, "absolute": NOISY}
ONES = (X != 0) * 0.3


def csr(array=X, index=np.int32, dtype=np.float64):
    made = sp.csr_matrix(array, dtype=dtype)
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def with_duplicates():
    made = csr()
    return sp.csr_matrix(
        (np.repeat(made.data / 2, 2), np.repeat(made.indices, 2), made.indptr * 2),
        X.shape,
    )


WAYS = {
    "dense": lambda: X,
    "float32": lambda: X.astype(np.float32),
    "F order": lambda: np.asfortranarray(X),
    "list": lambda: X.tolist(),
    "CSR": csr,
    "CSR, int64, float32": lambda: csr(index=np.int64, dtype=np.float32),
    "CSR of integers": lambda: csr(np.sign(X), dtype=np.int64),
    "CSC": lambda: sp.csc_array(X),
    "pattern": lambda: csr(ONES),
    "pattern, int64": lambda: csr(ONES, index=np.int64),
    "duplicates": with_duplicates,
    "pandas": lambda: pd.DataFrame(X, columns=list("abcdefg")),
}
ways = pytest.mark.parametrize("way", WAYS)


def assert_same(one, other):
    names = ("coef_", "intercept_", "dual_coef_", "objective_", "duality_gap_")
    for name in (*names, "dual_objective_", "n_iter_", "stop_reason_", "classes_"):
        np.testing.assert_array_equal(
            getattr(one, name, None), getattr(other, name, None), err_msg=name
        )
    assert one.n_features_in_ == other.n_features_in_
    names = [getattr(est, "feature_names_in_", None) for est in (one, other)]
    np.testing.assert_array_equal(*names)


@pytest.fixture
def counted(monkeypatch):
    """Count validations, and how often the core looks through a structure."""
    counts = {"validate": 0, "scan": 0}

    def validate(*arguments, **options):
        counts["validate"] += not options.get("skip_check_array", False)
        return of_sklearn(*arguments, **options)

    def rows(*arguments, scan, **options):
        counts["scan"] += scan
        return of_core(*arguments, scan=scan, **options)

    def has_duplicates(matrix):
        counts["scan"] += 1
        return scan_of_core(matrix)

    of_sklearn = sdca_rs._data.validate_data
    of_core, scan_of_core = sdca_rs._data.Rows, sdca_rs._data.has_duplicates
    monkeypatch.setattr(sdca_rs._data, "validate_data", validate)
    monkeypatch.setattr(sdca_rs._handle, "validate_data", validate)
    monkeypatch.setattr(sdca_rs._data, "Rows", rows)
    monkeypatch.setattr(sdca_rs._data, "has_duplicates", has_duplicates)
    return counts


# --- the same bits --------------------------------------------------------------------


@ways
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", TARGETS)
def test_fits_have_the_same_bits(loss, fit_intercept, way):
    rows, y = WAYS[way](), TARGETS[loss]
    data = Data(rows)
    for C in (0.01, 1.0):
        est = Sdca(loss, C=C, fit_intercept=fit_intercept, random_state=0)
        plain = clone(est).fit(rows, y)
        assert_same(plain, clone(est).fit(data, y))
        weighted = clone(est).fit(rows, y, sample_weight=WEIGHTS)
        assert_same(weighted, clone(est).fit(data, y, sample_weight=WEIGHTS))
        # What other weights had it find out must not be left behind.
        assert_same(plain, clone(est).fit(data, y))


@pytest.mark.parametrize("way", ["dense", "CSR", "pattern"])
@pytest.mark.parametrize("solver", [Asdca, DualGradient, Pegasos, Subgradient])
def test_all_solvers_take_it(solver, way):
    rows = WAYS[way]()
    data = Data(rows, sample_weight=WEIGHTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain, other = (
            solver("log", max_iter=20, random_state=0).fit(given, LABELS, weights)
            for given, weights in ((rows, WEIGHTS), (data, None))
        )
    assert_same(plain, other)


@ways
def test_predictions_have_the_same_bits(way):
    rows = WAYS[way]()
    data = Data(rows)
    if way == "duplicates":
        # Sums of halves are rounded in another way than sums of wholes.
        rows.sum_duplicates()
    for loss, y in (("log", LABELS), ("log", KINDS), ("squared", NOISY)):
        est = Sdca(loss, random_state=0).fit(data, y)
        methods = ["predict", "decision_function", "predict_proba", "predict_log_proba"]
        for name in methods[: 1 if loss == "squared" else 4]:
            method = getattr(est, name)
            np.testing.assert_array_equal(method(data), method(rows), err_msg=name)
        assert est.score(data, y) == est.score(rows, y)


@pytest.mark.parametrize("way", ["dense", "CSR", "pattern", "duplicates"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_certificates_have_the_same_bits(weights, way):
    rows = WAYS[way]()
    data = Data(rows, sample_weight=weights)
    for est, y in (
        (Sdca("log", random_state=0), KINDS),
        (Sdca("log", random_state=0, class_weight="balanced"), LABELS),
        (LogisticRegression(), LABELS),
    ):
        est.fit(rows, y, sample_weight=weights)
        plain = certify(est, rows, y, sample_weight=weights)
        np.testing.assert_array_equal(certify(est, data, y), plain)


@pytest.mark.parametrize("way", ["dense", "CSR", "pattern", "duplicates", "pandas"])
def test_streams_have_the_same_bits(way):
    rows = WAYS[way]()
    data = Data(rows, sample_weight=WEIGHTS)
    streams = [Pegasos("log", lam=0.1, random_state=0) for _ in range(2)]
    for _ in range(3):
        streams[0].partial_fit(rows, KINDS, [0, 1, 2], WEIGHTS)
        streams[1].partial_fit(data, KINDS, [0, 1, 2])
        np.testing.assert_array_equal(streams[0].coef_, streams[1].coef_)
        np.testing.assert_array_equal(streams[0].intercept_, streams[1].intercept_)


def test_a_warm_path_has_the_same_bits():
    data, paths = Data(csr()), []
    for rows in (csr(), data):
        est = Sdca("log", warm_start=True, random_state=0)
        paths.append(
            [est.set_params(C=C).fit(rows, KINDS).coef_ for C in (0.01, 0.1, 1.0)]
        )
    np.testing.assert_array_equal(*paths)


# --- once -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["dense", "CSR", "pattern", "pandas"])
@pytest.mark.parametrize("y", [LABELS, KINDS], ids=["two", "three"])
def test_a_fit_scans_once(counted, y, way):
    Sdca(random_state=0).fit(WAYS[way](), y)
    assert counted == {"validate": 1, "scan": 1}


@pytest.mark.parametrize("way", ["CSC", "CSR of integers"])
def test_what_scipy_converts_is_scanned_before_that_too(counted, way):
    Sdca(random_state=0).fit(WAYS[way](), LABELS)
    assert counted == {"validate": 1, "scan": 2}


def test_duplicates_are_scanned_again_before_scipy_sums_them(counted):
    # The second scan is of a copy that no one else can write.
    Sdca(random_state=0).fit(with_duplicates(), LABELS)
    assert counted["scan"] == 2


@pytest.mark.parametrize("rows", [X, csr(), csr(ONES)], ids=["dense", "CSR", "pattern"])
def test_certify_scans_once(counted, rows):
    est = LogisticRegression().fit(rows, LABELS)
    certify(est, rows, LABELS)
    assert counted == {"validate": 1, "scan": 1}


@pytest.mark.parametrize("way", ["dense", "CSR", "pattern", "duplicates", "pandas"])
def test_data_are_checked_once(counted, way):
    data = Data(WAYS[way]())
    assert counted["validate"] == 1
    before = dict(counted)
    for C in (0.01, 1.0):
        est = Sdca("log", C=C, random_state=0).fit(data, KINDS)
        est.fit(data, KINDS, sample_weight=WEIGHTS)
        est.set_params(class_weight="balanced").fit(data, KINDS)
        est.predict_proba(data)
        est.score(data, KINDS)
        certify(est, data, KINDS)
    certify(LogisticRegression().fit(X, LABELS), data, LABELS)
    Pegasos("log", lam=0.1).partial_fit(data, LABELS, [-1, 1])
    assert counted == before


@pytest.mark.parametrize("wide", [X, csr()], ids=["dense", "CSR"])
def test_rows_are_borrowed(wide):
    data = Data(wide)
    assert data._X is wide
    assert Sdca(random_state=0).fit(data, LABELS).n_features_in_ == N_COLS


def test_the_arrays_live_as_long_as_the_data():
    rows = X.copy()
    alive = weakref.ref(rows)
    data = Data(rows)
    expected = Sdca(random_state=0).fit(rows, LABELS)
    del rows
    gc.collect()
    assert alive() is not None
    assert_same(expected, Sdca(random_state=0).fit(data, LABELS))
    del data
    gc.collect()
    assert alive() is None


# --- weights --------------------------------------------------------------------------


def test_its_weights_hold_where_no_others_are_given():
    data = Data(X, sample_weight=WEIGHTS)
    est = Sdca("squared", random_state=0)
    assert_same(
        clone(est).fit(X, NOISY, sample_weight=WEIGHTS), clone(est).fit(data, NOISY)
    )
    others = np.roll(WEIGHTS, 1)
    fitted = clone(est).fit(data, NOISY, sample_weight=others)
    assert_same(clone(est).fit(X, NOISY, sample_weight=others), fitted)
    assert fitted.score(data, NOISY) == fitted.score(X, NOISY, WEIGHTS)
    assert fitted.score(data, NOISY, others) == fitted.score(X, NOISY, others)
    classifier = Sdca("log", class_weight={0: 2.0}, random_state=0)
    assert_same(
        clone(classifier).fit(X, KINDS, sample_weight=WEIGHTS),
        clone(classifier).fit(data, KINDS),
    )


def test_its_weights_are_a_copy():
    weights = WEIGHTS.copy()
    data = Data(X, sample_weight=weights)
    weights[:] = np.nan
    est = Sdca(random_state=0)
    assert_same(
        clone(est).fit(X, LABELS, sample_weight=WEIGHTS), clone(est).fit(data, LABELS)
    )


def test_one_weight_is_that_of_all_rows():
    est = Sdca(random_state=0)
    assert_same(
        clone(est).fit(X, LABELS, sample_weight=2.0),
        clone(est).fit(Data(X, sample_weight=2.0), LABELS),
    )


# --- names, and scikit-learn ----------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_are_remembered_and_compared(frame):
    names = list("abcdefg")
    named = frame(dict(zip(names, X.T, strict=True)))
    data = Data(named)
    assert data.feature_names_in_.tolist() == names
    est = Sdca(random_state=0).fit(data, LABELS)
    assert est.feature_names_in_.tolist() == names
    est.predict(data)
    est.predict(named)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        est.predict(Data(X))
    with pytest.raises(ValueError, match="feature names should match"):
        est.predict(Data(named[names[::-1]]))
    est.fit(Data(X), LABELS)
    assert not hasattr(est, "feature_names_in_")
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        est.predict(data)


def test_the_number_of_columns_is_compared():
    est = Sdca(random_state=0).fit(Data(X), LABELS)
    assert est.n_features_in_ == N_COLS
    with pytest.raises(ValueError, match="X has 6 features, but Sdca is expecting 7"):
        est.predict(Data(X[:, :6].copy()))


def test_grid_search_and_parameters_are_as_ever():
    est = Sdca("log", random_state=0).fit(Data(X), LABELS)
    assert clone(est).get_params() == est.get_params()
    search = GridSearchCV(clone(est), {"C": [0.1, 1.0]}, cv=2).fit(X, LABELS)
    assert search.best_score_ > 0.5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "rows",
    [
        slice(5, 60, 2),
        slice(10, 70),
        np.flatnonzero(LABELS > -2)[::3],
        LABELS[::-1] > 0,
        [3, 1, 4, 1, 5, 79, -1],
    ],
    ids=["strided", "slice", "indices", "mask", "repeated"],
)
def test_some_of_the_rows_are_data_of_their_own(way, rows):
    made = WAYS[way]()
    data = Data(made, sample_weight=WEIGHTS)
    part = data[rows]
    whole = made if sp.issparse(made) else np.asarray(made)
    expected = Data(whole[rows], sample_weight=WEIGHTS[rows])
    assert part.shape == expected.shape == (len(part), N_COLS)
    y = NOISY[rows]
    found, due = (Sdca("squared", random_state=0).fit(d, y) for d in (part, expected))
    np.testing.assert_array_equal(found.coef_, due.coef_)
    assert found.duality_gap_ == due.duality_gap_
    assert found.score(part, y) == due.score(expected, y)
    # The whole is what it was.
    assert len(data) == N_ROWS


def test_folds_of_data_are_folds_of_rows():
    grid = {"C": [0.01, 0.1, 1.0]}
    for made in (X, csr()):
        searches = [
            GridSearchCV(Sdca("log", random_state=0), grid, cv=3).fit(given, LABELS)
            for given in (made, Data(made))
        ]
        scores = [search.cv_results_["mean_test_score"] for search in searches]
        np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3, "found an index of shape ()"),
        (np.zeros((2, 2), int), "shape (2, 2)"),
        (np.zeros(3), "type float64, expected a slice, integers or a mask"),
        ([], "found none"),
        (slice(5, 5), "found none"),
        ([N_ROWS], "out of"),
    ],
)
def test_rows_that_are_none_are_refused(rows, message):
    for made in (X, csr()):
        with pytest.raises(IndexError, match=re.escape(message)):
            Data(made)[rows]


# --- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        (np.where(X.max() == X, np.nan, X), ValueError, "Input X contains NaN"),
        (csr(np.where(X.max() == X, np.inf, X)), ValueError, "Input X contains inf"),
        (X[:0], ValueError, "Found array with 0 sample"),
        (X[0], ValueError, "Expected 2D array"),
        ("text", ValueError, "could not convert string to float: 'text'"),
        (Data(X), TypeError, "X: found Data"),
    ],
)
def test_rows_are_refused_at_once(bad, kind, message):
    with pytest.raises(kind, match=message):
        Data(bad)


def test_weights_are_refused_at_once():
    with pytest.raises(ValueError, match=r"sample_weight: found shape \(3,\)"):
        Data(X, sample_weight=[1, 2, 3])
    with pytest.raises(ValueError, match="sample_weight: found -1"):
        Data(X, sample_weight=-1)


def test_a_stray_column_is_refused_at_once():
    bad = csr()
    bad.indices[3] = N_COLS
    with pytest.raises(ValueError, match=f"found column {N_COLS}"):
        Data(bad)


def test_targets_are_checked_against_it():
    with pytest.raises(ValueError, match=f"y: found 3 entries, expected {N_ROWS}"):
        Sdca().fit(Data(X), LABELS[:3])


# --- changed in place, shared, and elsewhere ------------------------------------------


def spoil_column(matrix):
    matrix.indices[5] = 10**6


def shorten(matrix):
    # It gives memory back, and may move.
    matrix.data.resize(10, refcheck=False)
    matrix.indices.resize(10, refcheck=False)


@pytest.mark.parametrize("rows", [csr(), csr(ONES)], ids=["CSR", "pattern"])
@pytest.mark.parametrize("change", [spoil_column, shorten])
def test_sparse_arrays_changed_in_place_are_no_danger(change, rows):
    rows = rows.copy()
    # Arrays that own their memory, which numpy then moves when told to.
    rows.data, rows.indices = rows.data.copy(), rows.indices.copy()
    data = Data(rows)
    est = Sdca("log", random_state=0).fit(data, LABELS)
    change(rows)
    for call in (
        lambda: est.fit(data, LABELS),
        lambda: est.predict(data),
        lambda: certify(est, data, LABELS),
    ):
        with pytest.raises(ValueError, match=r"X\.ind(ices|ptr): found"):
            call()


def test_dense_arrays_changed_in_place_are_no_danger():
    rows = X.copy()
    data = Data(rows)
    rows.resize((N_ROWS // 2, N_COLS), refcheck=False)
    with pytest.raises(ValueError, match="X: found arrays that have been changed"):
        Sdca().fit(data, LABELS)
    rows.resize(N_COLS, refcheck=False)
    with pytest.raises(ValueError, match="X: found arrays that have been changed"):
        Sdca().fit(data, LABELS)


def test_memory_that_has_moved_is_found_where_it_is():
    rows = X.copy()
    data = Data(rows)
    shape, far = rows.shape, 10**7
    expected = Sdca(random_state=0).fit(data, LABELS)
    rows.resize(far, refcheck=False)
    rows.resize(shape, refcheck=False)
    assert_same(expected, Sdca(random_state=0).fit(data, LABELS))


@pytest.mark.parametrize("way", ["dense", "CSR", "pattern"])
def test_threads_share_it(way):
    rows = WAYS[way]()
    expected = {C: Sdca("log", C=C, random_state=0).fit(rows, KINDS) for C in (0.1, 1)}
    data, found = Data(rows), []

    def work(C):
        barrier.wait()
        for _ in range(5):
            est = Sdca("log", C=C, random_state=0).fit(data, KINDS)
            found.append((C, est, est.decision_function(data)))

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=work, args=(C,)) for C in (0.1, 1, 0.1, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    for C, est, scores in found:
        assert_same(expected[C], est)
        np.testing.assert_array_equal(scores, expected[C].decision_function(rows))


@ways
def test_pickles_and_copies_are_prepared_again(way):
    data = Data(WAYS[way](), sample_weight=WEIGHTS)
    expected = Sdca("log", random_state=0).fit(data, KINDS)
    for other in (pickle.loads(pickle.dumps(data)), copy.copy(data)):
        assert repr(other) == repr(data)
        assert_same(expected, Sdca("log", random_state=0).fit(other, KINDS))


def test_it_says_what_it_holds():
    assert repr(Data(X)) == "<Data: 80 dense rows of 7 columns>"
    shown = repr(Data(csr(), sample_weight=WEIGHTS))
    assert shown == "<Data: 80 sparse rows of 7 columns, weighted>"
    assert Data(csr()).shape == X.shape
