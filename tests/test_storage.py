"""Rows mean the same however they are stored, are borrowed, and are never trusted."""

import pickle
import re
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sdca_rs import Sdca

N_ROWS, N_COLS = 60, 6
rng = np.random.default_rng(0)
# Small whole numbers, which every number type holds exactly; some rows are empty.
X = rng.integers(-4, 5, size=(N_ROWS, N_COLS)) * (rng.random((N_ROWS, N_COLS)) < 0.5)
X[[0, 7, N_ROWS - 1]] = 0
X = X.astype(np.float64)
NOISY = X @ rng.standard_normal(N_COLS) + rng.standard_normal(N_ROWS)
Y = {
    "hinge": np.sign(NOISY),
    "log": np.digitize(NOISY, [-2.0, 2.0]),
    "squared": NOISY,
}


def exact(loss):
    """Return an estimator that goes on until only rounding is left."""
    return Sdca(loss=loss, C=0.05, tol=0, max_iter=300, random_state=0)


def in_new_process(function, *arguments):
    """Call a function of this file where a crash is seen as an exit code."""
    code = f"import test_storage; test_storage.{function.__name__}(*{arguments!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    shown = f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert done.returncode == 0, shown
    assert "panicked" not in done.stderr, shown
    return done.stdout


# --- all ways to store the same rows --------------------------------------------------


def changed(matrix, **attributes):
    for name, value in attributes.items():
        setattr(matrix, name, value)
    return matrix


def csr(array=X, *, index=np.int32, pointer=None, dtype=np.float64):
    """Return a CSR matrix with exactly these types, which scipy would not all keep."""
    made = sp.csr_matrix(array, dtype=dtype)
    return changed(
        made,
        indices=made.indices.astype(index),
        indptr=made.indptr.astype(pointer or index),
    )


def per_entry(matrix, change):
    return changed(matrix, data=change(matrix.data), indices=change(matrix.indices))


def gaps(array):
    return np.repeat(array, 2, axis=0)[::2]


def misaligned(array):
    """Copy an array to an address that is no multiple of its item size."""
    buffer = b"\0" + array.tobytes()
    return np.frombuffer(buffer, array.dtype, offset=1).reshape(array.shape)


def swapped(array):
    return array.astype(array.dtype.newbyteorder())


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def with_spare_room(matrix):
    # Entries behind the last one that would be fatal if they were read.
    return changed(
        matrix,
        data=np.append(matrix.data, [1e300] * 3),
        indices=np.append(matrix.indices, np.full(3, -7, matrix.indices.dtype)),
    )


def unsorted(matrix):
    data, indices = [], []
    for row in range(matrix.shape[0]):
        here = slice(matrix.indptr[row], matrix.indptr[row + 1])
        data.append(matrix.data[here][::-1])
        indices.append(matrix.indices[here][::-1])
    return type(matrix)(
        (np.concatenate(data), np.concatenate(indices), matrix.indptr), matrix.shape
    )


def with_duplicates(kind, order):
    """Return CSR rows in which each entry comes as two halves, side by side or not."""
    made = sp.csr_matrix(X)
    data, indices = [], []
    for row in range(N_ROWS):
        here = slice(made.indptr[row], made.indptr[row + 1])
        both = np.repeat if order == "sorted" else np.tile
        data.append(both(made.data[here] / 2, 2))
        indices.append(both(made.indices[here], 2))
    return kind(
        (np.concatenate(data), np.concatenate(indices), made.indptr * 2), X.shape
    )


def with_zeros():
    """Return CSR rows that store each entry, zeros too."""
    columns = np.tile(np.arange(N_COLS), N_ROWS)
    return sp.csr_matrix((X.ravel(), columns, N_COLS * np.arange(N_ROWS + 1)), X.shape)


WAYS = {
    "list": lambda: X.tolist(),
    "F order": lambda: np.asfortranarray(X),
    "row gaps": lambda: gaps(X),
    "column gaps": lambda: gaps(X.T).T,
    "column gaps in C order": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "rows backwards": lambda: X[::-1].copy()[::-1],
    "backwards": lambda: X[::-1, ::-1].copy()[::-1, ::-1],
    "part of a wider array": lambda: np.hstack([X, X])[:, :N_COLS],
    "misaligned": lambda: misaligned(X),
    "misaligned float32": lambda: misaligned(X.astype(np.float32)),
    "misaligned F order": lambda: misaligned(X.T).T,
    "other byte order": lambda: swapped(X),
    "other byte order float32": lambda: swapped(X.astype(np.float32)),
    "read-only": lambda: read_only(X),
    "csr, misaligned": lambda: per_entry(csr(), misaligned),
    "csr, all misaligned": lambda: changed(
        per_entry(csr(), misaligned), indptr=misaligned(csr().indptr)
    ),
    "csr, gaps": lambda: changed(per_entry(csr(), gaps), indptr=gaps(csr().indptr)),
    "csr, other byte order": lambda: changed(
        per_entry(csr(), swapped), indptr=swapped(csr().indptr)
    ),
    "csr, read-only": lambda: changed(
        per_entry(csr(), read_only), indptr=read_only(csr().indptr)
    ),
    "csr, int16 indices": lambda: csr(index=np.int16),
    "csr, uint32 indices": lambda: csr(index=np.uint32),
    "csr, spare room": lambda: with_spare_room(csr()),
    "csr, spare room, integers": lambda: changed(
        csr(),
        data=np.append(csr().data, [9, 9, 9]).astype(np.int64),
        indices=np.append(csr().indices, np.zeros(3, np.int32)),
    ),
    "csr, unsorted": lambda: unsorted(csr()),
    "csr, unsorted int64": lambda: unsorted(csr(index=np.int64)),
    "csr, explicit zeros": with_zeros,
    "csr, duplicates": lambda: with_duplicates(sp.csr_matrix, "sorted"),
    "csr, duplicates apart": lambda: with_duplicates(sp.csr_matrix, "apart"),
    "csr_array, duplicates": lambda: with_duplicates(sp.csr_array, "apart"),
    "csr, duplicates, read-only": lambda: per_entry(
        with_duplicates(sp.csr_matrix, "apart"), read_only
    ),
    "csr, duplicates, float32": lambda: with_duplicates(sp.csr_matrix, "sorted").astype(
        np.float32
    ),
    "coo, duplicates": lambda: with_duplicates(sp.csr_matrix, "apart").tocoo(),
    "csc, duplicates": lambda: per_entry(
        sp.csc_matrix(sp.vstack([csr() / 2] * 2)[:N_ROWS] * 2), np.copy
    ),
    "csc, unsorted": lambda: unsorted(csr(X.T)).T,
    "csc, spare room": lambda: with_spare_room(sp.csc_matrix(X)),
    "bsr, blocks": lambda: sp.bsr_matrix(X, blocksize=(4, 3)),
    **{
        f"csr, {np.dtype(dtype)}, {np.dtype(index)}, {np.dtype(pointer)}": (
            lambda dtype=dtype, index=index, pointer=pointer: csr(
                dtype=dtype, index=index, pointer=pointer
            )
        )
        for dtype in (np.float32, np.float64)
        for index in (np.int32, np.int64)
        for pointer in (np.int32, np.int64)
    },
    **{
        f"{form}_{kind}": lambda form=form, kind=kind: getattr(sp, f"{form}_{kind}")(X)
        for form in ("csr", "csc", "coo", "dia", "lil", "bsr", "dok")
        for kind in ("matrix", "array")
    },
}


def check_same(stored, reference=X, losses=("hinge", "log", "squared")):
    """Compare fits and predictions with those of a dense float64 copy."""
    bytes_before = pickle.dumps(stored)
    for loss in losses:
        model = exact(loss).fit(stored, Y[loss])
        expected = exact(loss).fit(reference, Y[loss])
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8, atol=1e-8)
        if loss != "hinge":  # Where it is unique.
            np.testing.assert_allclose(
                model.intercept_, expected.intercept_, rtol=1e-8, atol=1e-8
            )
        np.testing.assert_allclose(
            model._predictions(stored), model._predictions(reference), atol=1e-12
        )
    assert pickle.dumps(stored) == bytes_before


@pytest.mark.parametrize("way", WAYS)
def test_storage_does_not_matter_and_is_left_alone(way):
    check_same(WAYS[way]())


@pytest.mark.parametrize(
    "dtype",
    ["bool", "i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "longdouble", "O"],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_number_type_does_not_matter(dtype, order):
    stored = np.abs(X).astype(dtype, order=order)
    check_same(stored, stored.astype(np.float64))


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "u1", "i2", "i4", "i8", "u8", "f4", "f8", "longdouble"]
)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_array])
def test_sparse_number_type_does_not_matter(dtype, kind):
    dense = np.abs(X).astype(dtype)
    check_same(kind(dense), dense.astype(np.float64))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaled", [False, True], ids=["ones", "scaled rows"])
def test_rows_of_one_value_each_fit_as_the_same_dense_rows(scaled, dtype, index):
    rows = (X > 0.3).astype(dtype)
    rows[3] = 0
    if scaled:
        rows *= np.linspace(-1, 2, N_ROWS, dtype=dtype)[:, np.newaxis]
    check_same(csr(rows, dtype=dtype, index=index), rows.astype(np.float64))


@pytest.mark.parametrize("n_columns", [1, 2, 7, 8, 9, 33])
@pytest.mark.parametrize("loss", ["hinge", "log", "squared"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_float32_is_as_exact_as_the_same_numbers_in_float64(store, loss, n_columns):
    single = np.random.default_rng(1).standard_normal((N_ROWS, n_columns), np.float32)
    double = single.astype(np.float64)
    a, b = (exact(loss).fit(store(x), Y[loss]) for x in (single, double))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        a._predictions(store(single)), a._predictions(double), atol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_mapped_arrays(tmp_path, dtype):
    np.save(tmp_path / "X.npy", X.astype(dtype))
    check_same(np.load(tmp_path / "X.npy", mmap_mode="r"))
    made = csr(dtype=dtype)
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(made, name))
        setattr(made, name, np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    assert isinstance(made.data, np.memmap)
    check_same(made)


def test_memory_mapped_file_of_raw_numbers(tmp_path):
    path = tmp_path / "raw"
    path.write_bytes(b"head" + X.tobytes())
    check_same(np.memmap(path, np.float64, mode="r", offset=4, shape=X.shape))


@pytest.mark.parametrize("order", ["sorted", "apart"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_duplicates_are_summed_in_a_copy(kind, order):
    stored = with_duplicates(kind, order)
    assert not stored.has_canonical_format
    before = {name: (id(v), pickle.dumps(v)) for name, v in vars(stored).items()}
    exact("hinge").fit(stored, Y["hinge"]).predict(stored)
    after = {name: (id(v), pickle.dumps(v)) for name, v in vars(stored).items()}
    assert after == before
    assert not stored.has_canonical_format


def test_matrix_without_entries():
    for loss in ("hinge", "log", "squared"):
        check_same(sp.csr_matrix(X.shape), np.zeros(X.shape), [loss])
        model = exact(loss).fit(sp.csr_array(X.shape), Y[loss])
        np.testing.assert_array_equal(model.coef_, np.zeros_like(model.coef_))


def test_y_and_weights_are_left_alone():
    for loss, y in Y.items():
        weights = np.arange(N_ROWS, dtype=np.float32)
        before = pickle.dumps((y, weights))
        exact(loss).fit(X, y, sample_weight=weights)
        assert pickle.dumps((y, weights)) == before
        exact(loss).fit(X, read_only(y), sample_weight=read_only(weights))


# --- borrowed, not copied -------------------------------------------------------------


def peak():
    """Return the most memory that this process has held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike ru_maxrss, this does not begin with what the parent process held.
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def large_dense(n_rows, dtype):
    made = np.empty((n_rows, 200), dtype)
    np.random.default_rng(0).random(out=made, dtype=dtype)
    return made, made.nbytes


def large_csr(n_rows):
    per_row = 133
    data = np.empty((n_rows, per_row))
    indices = np.empty((n_rows, per_row), np.int32)
    np.random.default_rng(0).random(out=data)
    for row in range(0, n_rows, 1000):
        shift = np.arange(row, min(row + 1000, n_rows))[:, None] % (200 - per_row)
        indices[row : row + 1000] = np.arange(per_row) + shift
    indptr = np.arange(0, data.size + 1, per_row, dtype=np.int32)
    made = sp.csr_matrix((data.ravel(), indices.ravel(), indptr), (n_rows, 200))
    return made, data.nbytes + indices.nbytes + indptr.nbytes


LARGE = {
    "float64": lambda n_rows: large_dense(n_rows, np.float64),
    "float32": lambda n_rows: large_dense(2 * n_rows, np.float32),
    "csr": large_csr,
}


def use(matrix, labels):
    """Yield the name of each use of a matrix after it."""
    for loss in ("hinge", "squared"):
        model = Sdca(loss=loss, max_iter=2, tol=0.1, random_state=0)
        model.fit(matrix, labels)
        yield f"{loss} fit"
        model.predict(matrix)
        yield f"{loss} predict"
        if loss == "hinge":
            model.decision_function(matrix)
            yield "decision_function"
            model.set_params(n_jobs=2).decision_function(matrix)
            yield "decision_function in two threads"


def measure(storage):
    warnings.simplefilter("ignore", ConvergenceWarning)
    small, _ = LARGE[storage](1000)
    list(use(small, np.arange(small.shape[0]) % 2))
    matrix, size = LARGE[storage](250_000)
    labels = np.arange(matrix.shape[0]) % 2
    assert size > 395e6
    before = peak()
    for name in use(matrix, labels):
        more = (peak() - before) / size
        print(f"{name}: {100 * more:.1f} % of X")
        assert more < 0.1
    # The measure does see what it should.
    copy = np.ones(size // 5, np.uint8)
    assert peak() - before > 0.15 * copy.nbytes * 5


@pytest.mark.parametrize("storage", LARGE)
def test_rows_are_borrowed(storage):
    in_new_process(measure, storage)


# --- malformed matrices ---------------------------------------------------------------


def put(name, at, value):
    """Overwrite one number of an array of a matrix."""

    def spoil(matrix):
        getattr(matrix, name)[at] = value

    return spoil


def cut(*names):
    """Take away the end of arrays of a matrix."""

    def spoil(matrix):
        for name in names:
            setattr(matrix, name, getattr(matrix, name)[:-1])

    return spoil


def column_of(name):
    """Give an array of a matrix a second axis."""

    def spoil(matrix):
        setattr(matrix, name, getattr(matrix, name)[:, None])

    return spoil


def longer_indptr(matrix):
    matrix.indptr = np.append(matrix.indptr, matrix.indptr[-1:])


def wrapped(matrix):
    # As if 4 * 10^9 entries had been counted in 32 bits.
    matrix.indptr = np.linspace(0, 4e9, N_ROWS + 1).astype(np.int64).astype(np.int32)


NNZ = np.count_nonzero(X)
COLUMN = f"0 <= column < {N_COLS}"
MALFORMED = {
    "column 6": (put("indices", 5, 6), "X.indices", "column 6", COLUMN),
    "column 2^31 - 1": (put("indices", -1, 2**31 - 1), "X.indices", "2147483", COLUMN),
    "column -1": (put("indices", 0, -1), "X.indices", "column -1", COLUMN),
    "column -2^31": (put("indices", 9, -(2**31)), "X.indices", "-2147483", COLUMN),
    "decreases": (put("indptr", 10, 10**8), "X.indptr", "100000000", "decrease"),
    "decreases below 0": (put("indptr", 10, -9), "X.indptr", "-9 after", "decrease"),
    "starts at 1": (put("indptr", 0, 1), "X.indptr", "1 at position 0", "0"),
    "starts at -1": (put("indptr", 0, -1), "X.indptr", "-1 at position 0", "0"),
    "ends past": (
        put("indptr", -1, 10**8),
        "X.indptr",
        "100000000 non-zeros",
        f"at most {NNZ}",
    ),
    "ends one past": (
        put("indptr", -1, NNZ + 1),
        "X.indptr",
        f"{NNZ + 1} non-zeros",
        f"at most {NNZ}",
    ),
    "indices too short": (cut("indices"), "X.indptr", str(NNZ), "length of X.indices"),
    "data too short": (cut("data"), "X.indptr", str(NNZ), "length of X.data"),
    "both too short": (cut("indices", "data"), "X.indptr", str(NNZ), "at most"),
    "indptr too short": (cut("indptr"), "X.indptr", "shape (60,)", "(61,)"),
    "indptr too long": (longer_indptr, "X.indptr", "shape (62,)", "(61,)"),
    "indptr 2-D": (column_of("indptr"), "X.indptr", "shape (61, 1)", "(61,)"),
    "indices 2-D": (column_of("indices"), "X.indices", f"shape ({NNZ}, 1)", ""),
    "data 2-D": (column_of("data"), "X.data", f"shape ({NNZ}, 1)", ""),
    "wrapped": (wrapped, "X.indptr", "-", "never to decrease (more than 2^31 - 1"),
}


def parts_of(message):
    return "(?s)" + ".*".join(map(re.escape, message))


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_malformed_csr_is_refused(case, dtype, index):
    spoil, name, found, expected = MALFORMED[case]
    message = "^" + parts_of([f"{name}: found", found, "expected", expected])[4:]
    spoilt = csr(dtype=dtype, index=index)
    spoil(spoilt)
    for loss in ("hinge", "log", "squared"):
        with pytest.raises(ValueError, match=message):
            Sdca(loss=loss).fit(spoilt, Y[loss])
        model = Sdca(loss=loss).fit(X, Y[loss])
        with pytest.raises(ValueError, match=message):
            model.predict(spoilt)


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_csr_with_duplicates_is_refused(case):
    spoil, name, _, _ = MALFORMED[case]
    spoilt = with_duplicates(sp.csr_matrix, "apart")
    spoil(spoilt)
    if case == "ends one past":  # This one has twice the entries.
        spoilt.indptr[-1] = 2 * NNZ + 1
    with pytest.raises(ValueError, match=rf"^{re.escape(name)}: found .*, expected "):
        exact("hinge").fit(spoilt, Y["hinge"])


# What scipy would convert and may read or write out of bounds: for a new process.
CONVERTED = {
    "csr of integers": (lambda: sp.csr_matrix(X.astype(np.int64)), MALFORMED),
    "csr of long doubles": (lambda: sp.csr_matrix(X, dtype=np.longdouble), MALFORMED),
    "csc": (
        lambda: sp.csc_matrix(X),
        {
            "row too large": [put("indices", 3, N_ROWS)],
            "row far too large": [put("indices", 3, 10**8)],
            "row negative": [put("indices", 3, -(10**8))],
            "decreases": [put("indptr", 2, 10**8)],
            "decreases below 0": [put("indptr", 2, -(10**8))],
            "starts at 1": [put("indptr", 0, 1)],
            "ends past": [put("indptr", -1, 10**8)],
            "indices too short": [cut("indices")],
            "data too short": [cut("data")],
            "indptr too short": [cut("indptr")],
            "indptr too long": [longer_indptr],
        },
    ),
    "coo": (
        lambda: sp.coo_matrix(X),
        {
            "row too large": [put("row", 3, N_ROWS)],
            "row far too large": [put("row", 3, 10**8)],
            "row negative": [put("row", 3, -1)],
            "column too large": [put("col", 3, N_COLS)],
            "column far too large": [put("col", 3, 10**8)],
            "column negative": [put("col", 3, -(10**8))],
            "data too short": [cut("data")],
            "rows too short": [cut("row")],
            "columns too short": [cut("col")],
        },
    ),
    "bsr": (
        lambda: sp.bsr_matrix(X, blocksize=(2, 2)),
        {
            "column too large": [put("indices", 3, 10**8)],
            "column negative": [put("indices", 3, -(10**8))],
            "decreases": [put("indptr", 2, 10**8)],
            "data too short": [cut("data")],
        },
    ),
    "lil": (
        lambda: sp.lil_matrix(X),
        {
            "column too large": [put("rows", 2, [0, 10**8])],
            "column negative": [put("rows", 2, [-(10**8), 0])],
            "indices too long": [put("rows", 2, [0] * 1000)],
            "data too long": [put("data", 2, [1.0] * 1000)],
            "rows too short": [cut("rows")],
        },
    ),
    "dia": (lambda: sp.dia_matrix(X), {"data too short": [cut("data")]}),
}
for form in ("csc", "coo"):
    make, spoilers = CONVERTED[form]
    CONVERTED[f"{form}_array"] = (
        lambda form=form: getattr(sp, f"{form}_array")(X),
        spoilers,
    )


def convert_malformed(form):
    make, spoilers = CONVERTED[form]
    model = Sdca().fit(X, Y["hinge"])
    accepted = []
    for case, (spoil, *expected) in spoilers.items():
        message = parts_of(expected or ["X"])
        for call in ("fit", "predict"):
            # The last line shown tells where a crash was.
            print(f"{case}, {call}", end=": ", flush=True)
            spoilt = make()
            spoil(spoilt)
            try:
                if call == "fit":
                    Sdca().fit(spoilt, Y["hinge"])
                else:
                    model.predict(spoilt)
            except ValueError as error:
                print(error, flush=True)
                if not re.search(message, str(error)):
                    accepted.append(f"{case}, {call}: {error}, expected {message}")
            else:
                print("accepted", flush=True)
                accepted.append(f"{case}, {call}")
    assert not accepted, "\n".join(accepted)


@pytest.mark.parametrize("form", CONVERTED)
def test_malformed_matrix_is_refused_before_scipy_converts_it(form):
    in_new_process(convert_malformed, form)


# --- data that another thread writes --------------------------------------------------


def race_csr(order):
    """Return CSR rows, perhaps with duplicates, and good and bad values for them."""
    made = sp.random(20_000, 20, 0.4, format="csr", random_state=0)
    if order == "duplicates":
        # In the last row, so that all have been looked at before they are copied.
        made.indices[made.indptr[-2] :] = 3
    top = made.indptr[-1]
    return made, {
        "indices": ([0, 7, 19], [20, 2**31 - 1, -1, -(2**31)]),
        "indptr": ([0, top // 2, top], [top + 1, 10**8, 2**31 - 1, -1, -(2**31)]),
        "data": ([0.0, 1.0, -3.0], [np.nan, np.inf, -np.inf, 1e308, 5e-324]),
    }


def race(storage, target, n_fits):
    warnings.simplefilter("ignore")
    if storage == "dense":
        matrix = np.random.default_rng(0).standard_normal((20_000, 20))
        array = matrix.reshape(-1)
        good, bad = race_csr("")[1]["data"]
    else:
        matrix, values = race_csr(storage)
        array = getattr(matrix, target)
        good, bad = values[target]
    n_rows = matrix.shape[0]
    done = threading.Event()

    def scribble():
        random = np.random.default_rng(1)
        while not done.is_set():
            at = random.integers(array.size)
            values = random.choice(bad), random.choice(good), array[at].copy()
            # Asleep, it lets the fit see each value for a while.
            for value, seconds in zip(values, [1e-5, 1e-5, 1e-4], strict=True):
                array[at] = value
                time.sleep(seconds)

    writer = threading.Thread(target=scribble)
    writer.start()
    results, errors = 0, set()
    try:
        for i in range(n_fits):
            loss, y = [
                ("hinge", np.arange(n_rows) % 2),
                ("log", np.arange(n_rows) % 3),
                ("squared", np.linspace(-1, 1, n_rows)),
                ("poisson", np.linspace(0, 1, n_rows)),
            ][i % 4]
            model = Sdca(loss=loss, tol=0, max_iter=3, n_jobs=i % 2 + 1, random_state=i)
            try:
                model.fit(matrix, y)
                model.predict(matrix)
                results += 1
            except ValueError as error:
                errors.add(re.sub(r"-?\d+", "#", str(error))[:80])
    finally:
        done.set()
        writer.join()
    print(f"{results} results of {n_fits}, else:", *sorted(errors), sep="\n")


@pytest.mark.parametrize(
    ("storage", "target"),
    [
        ("dense", "values"),
        ("unique", "data"),
        ("unique", "indices"),
        ("unique", "indptr"),
        ("duplicates", "data"),
        ("duplicates", "indices"),
        ("duplicates", "indptr"),
    ],
)
def test_writing_during_a_fit_gives_a_result_or_a_value_error(storage, target):
    in_new_process(race, storage, target, 100)
