"""The svmlight reader and writer: scikit-learn's results, exact round trips, errors."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.datasets
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sdca_rs import dump_svmlight_file, load_svmlight_file, load_svmlight_files

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture
def path(tmp_path: Any) -> Any:
    return lambda text: _written(tmp_path / "rows.svm", text)


def _written(file: Any, text: str) -> str:
    file.write_bytes(text.encode())
    return str(file)


def both(text: bytes, **options: Any) -> None:
    """Compare with scikit-learn's reader."""
    X, y, *rest = load_svmlight_file(io.BytesIO(text), **options)
    A, b, *more = sklearn.datasets.load_svmlight_file(io.BytesIO(text), **options)
    same_matrix(X, A)
    if options.get("multilabel"):
        assert y == b
    else:
        np.testing.assert_array_equal(y, b, strict=True)
    assert len(rest) == len(more)
    for found, expected in zip(rest, more, strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


def same_matrix(X: Any, A: Any) -> None:
    assert X.shape == A.shape
    assert X.dtype == A.dtype
    np.testing.assert_array_equal(X.data, A.data)
    np.testing.assert_array_equal(X.indices, A.indices)
    np.testing.assert_array_equal(X.indptr, A.indptr)
    assert type(X) is type(A)


# Against scikit-learn.


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("zero_based", ["auto", True, False])
def test_a_file_of_all_that_the_format_has(dtype: Any, zero_based: Any) -> None:
    text = (
        b"# head: 1:2 3:4\n1.5 qid:7 1:2 7:3 # 9:9\n\n  -2 qid:8\t2:1e0 3:-0.0 \r\n"
        b"+3 qid:-9\nnan qid:1 11:12345678901234567890\n"
    )
    if dtype is np.int32:
        text = text.replace(b"12345678901234567890", b"1234567")
    both(text, dtype=dtype, zero_based=zero_based)
    both(text, dtype=dtype, zero_based=zero_based, query_id=True)
    both(text, n_features=30)


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"#\n# 1:1", b"1\n", b"1", b"1 0:1\n", b"1 qid:1\n-1 qid:2"]
)
def test_short_files(text: bytes) -> None:
    both(text)
    both(text, query_id=True)


def test_several_labels() -> None:
    text = b"2,1 1:1\n 3:2\n1.5 2:1 # c\nqid:3 2:1\n"
    both(text, multilabel=True)
    assert load_svmlight_file(io.BytesIO(text), multilabel=True)[1] == [
        (1.0, 2.0),
        (),
        (1.5,),
        (),
    ]


def test_files_share_columns_and_numbering() -> None:
    one_based, zero_based = b"1 1:1 3:1\n", b"1 0:1 1:1\n"
    for texts in ([one_based, zero_based], [one_based, one_based, b"2 9:1\n"]):
        ours = load_svmlight_files([io.BytesIO(text) for text in texts])
        # scikit-learn's.
        expected = sklearn.datasets.load_svmlight_files(
            [io.BytesIO(text) for text in texts]
        )
        for X, A in zip(ours[::2], expected[::2], strict=True):
            same_matrix(X, A)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_valid_files_are_read_as_by_scikit_learn(data: Any) -> None:
    number = st.one_of(
        FINITE.map(repr),
        FINITE.map(lambda x: f"{x:.16g}"),
        st.integers(-(10**25), 10**25).map(str),
        st.sampled_from(["+1", ".5", "1.", "1e5", "-1.5E-3", "inf", "-inf", "nan"]),
    )
    base = data.draw(st.integers(0, 1))
    rows = data.draw(
        st.lists(
            st.tuples(number, st.dictionaries(st.integers(base, 60), number)),
            max_size=8,
        )
    )
    blank = st.sampled_from([" ", "\t", "  ", " \t "])
    end = st.sampled_from(["\n", "\r\n", " \n", " # 1:2 x\n", "\n\n", "\n#\n"])
    text = "".join(
        label
        + "".join(f"{data.draw(blank)}{j}:{row[j]}" for j in sorted(row))
        + data.draw(end)
        for label, row in rows
    )
    both(text.encode(), zero_based=data.draw(st.sampled_from(["auto", True])))


# Round trips.

ROWS = hnp.arrays(
    st.sampled_from([np.float64, np.float32]),
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=9),
    elements=st.one_of(
        st.just(0.0), st.floats(width=32, allow_nan=False, allow_infinity=False)
    ),
)


@given(ROWS, st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_what_is_written_is_read(X: Any, zero_based: bool, sparse: bool) -> None:
    y = np.arange(len(X)) / 3
    file = io.BytesIO()
    rows = sp.csr_matrix(X) if sparse else X
    dump_svmlight_file(rows, y, file, zero_based=zero_based)
    file.seek(0)
    A, b = load_svmlight_file(
        file, n_features=X.shape[1], dtype=X.dtype, zero_based=zero_based
    )
    np.testing.assert_array_equal(A.toarray(), X)
    np.testing.assert_array_equal(b, y)


@given(hnp.arrays(np.float64, (5, 3), elements=FINITE))
@settings(max_examples=80, deadline=None)
def test_doubles_keep_all_bits(X: Any) -> None:
    file = io.BytesIO()
    dump_svmlight_file(X, X[:, 0], file)
    file.seek(0)
    A, b = load_svmlight_file(file, n_features=3, zero_based=True)
    np.testing.assert_array_equal(A.toarray(), X)
    np.testing.assert_array_equal(b, X[:, 0])
    file.seek(0)
    # What is exact can be read by others as well.
    A, _ = sklearn.datasets.load_svmlight_file(file, n_features=3, zero_based=True)
    np.testing.assert_array_equal(A.toarray(), X)


@pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_matrix, sp.csc_array, sp.coo_matrix]
)
@pytest.mark.parametrize(
    "dtype", [np.int64, np.uint8, np.float32, np.float64, np.bool_]
)
@pytest.mark.parametrize("query_id", [None, [3, 1, 2]])
def test_the_text_is_that_of_scikit_learn(kind: Any, dtype: Any, query_id: Any) -> None:
    X = np.array([[0, 1, 0, 12], [0, 0, 0, 0], [7, 0, 250, 1]]).astype(dtype)
    y = [1, -1, 0.5]
    ours, other = io.BytesIO(), io.BytesIO()
    dump_svmlight_file(kind(X), y, ours, zero_based=False, query_id=query_id)
    # It has neither bools nor unsigned integers.
    their_X = X.astype(int) if X.dtype.kind in "bu" else X
    sklearn.datasets.dump_svmlight_file(
        kind(their_X), y, other, zero_based=False, query_id=query_id
    )
    assert ours.getvalue() == other.getvalue()


def test_rows_in_any_order_are_sorted_and_the_matrix_is_left_alone() -> None:
    X = sp.csr_matrix(([1.0, 2.0, 3.0, 4.0], [3, 0, 3, 1], [0, 3, 4]), shape=(2, 4))
    before = X.indices.copy(), X.data.copy()
    file = io.BytesIO()
    dump_svmlight_file(X, [1, 2], file)
    assert file.getvalue() == b"1 0:2 3:4\n2 1:4\n"
    np.testing.assert_array_equal(X.indices, before[0])
    np.testing.assert_array_equal(X.data, before[1])


def test_a_row_without_anything_is_written_so_that_it_is_read() -> None:
    file = io.BytesIO()
    dump_svmlight_file(
        [[0.0, 1.0], [0.0, 0.0]], [[1, 0], [0, 0]], file, multilabel=True
    )
    file.seek(0)
    X, y = load_svmlight_file(file, multilabel=True, zero_based=True)
    assert X.toarray().tolist() == [[0, 1], [0, 0]]
    assert y == [(0.0,), ()]


@pytest.mark.parametrize("extension", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("convert", [str, os.fspath, lambda path: path])
def test_files_by_name(tmp_path: Any, extension: str, convert: Any) -> None:
    path = tmp_path / f"rows{extension}"
    X, y = np.eye(3), [1.0, 2.0, 3.0]
    dump_svmlight_file(X, y, convert(path), comment="by name")
    opened = {"": open, ".gz": gzip.open, ".bz2": bz2.open}[extension]
    with opened(path, "rb") as file:
        assert file.readline().startswith(
            b"# Generated by dump_svmlight_file from sdca"
        )
    A, b = load_svmlight_file(convert(path))
    np.testing.assert_array_equal(A.toarray(), X)
    np.testing.assert_array_equal(b, y)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if not extension:
            A, _ = load_svmlight_file(descriptor)
            np.testing.assert_array_equal(A.toarray(), X)
        # It is still open.
        os.fstat(descriptor)
    finally:
        os.close(descriptor)


def test_a_pipe_is_read(tmp_path: Any) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"1 1:2\n")
    os.close(write_end)
    try:
        X, y = load_svmlight_file(f"/dev/fd/{read_end}")
    except FileNotFoundError:
        pytest.skip("no /dev/fd here")
    finally:
        os.close(read_end)
    assert (X.toarray().tolist(), y.tolist()) == ([[2.0]], [1.0])


# Large files: several chunks, parts, wide indices.


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng = np.random.default_rng(0)
    X = sp.random(20_000, 500, 0.02, "csr", random_state=rng)
    y = rng.integers(-5, 5, 20_000) / 4
    path = tmp_path_factory.mktemp("large") / "rows.svm"
    dump_svmlight_file(X, y, path, zero_based=False)
    # A megabyte and more: chunks are of half a megabyte.
    assert path.stat().st_size > 3 << 20
    return X, y, path


def test_chunks_make_a_whole(large: Any) -> None:
    X, y, path = large
    for source in (path, io.BytesIO(path.read_bytes())):
        A, b = load_svmlight_file(source, n_features=500)
        np.testing.assert_array_equal(A.data, X.data)
        np.testing.assert_array_equal(A.indices, X.indices)
        np.testing.assert_array_equal(A.indptr, X.indptr)
        np.testing.assert_array_equal(b, y)
        assert A.indices.dtype == A.indptr.dtype == np.int32


@pytest.mark.parametrize("from_memory", [False, True])
def test_parts_make_a_whole(large: Any, from_memory: bool) -> None:
    X, y, path = large
    size = path.stat().st_size
    step = size // 7 + 1
    rows, labels = [], []
    for offset in range(0, size, step):
        source = io.BytesIO(path.read_bytes()) if from_memory else path
        A, b = load_svmlight_file(source, n_features=501, offset=offset, length=step)
        rows.append(A)
        labels.append(b)
    # Indices count from 0 in parts, as in scikit-learn.
    whole = sp.vstack(rows).tocsr()
    np.testing.assert_array_equal(whole.indices - 1, X.indices)
    np.testing.assert_array_equal(whole.indptr, X.indptr)
    np.testing.assert_array_equal(whole.data, X.data)
    np.testing.assert_array_equal(np.concatenate(labels), y)


def test_an_error_in_a_large_file_is_found_at_its_line(
    large: Any, tmp_path: Any
) -> None:
    lines = large[2].read_bytes().splitlines(keepends=True)
    lines[17_654] = b"1 3:4 # fine\n0.5 3:4 7:seven\n"
    path = tmp_path / "broken.svm"
    path.write_bytes(b"".join(lines))
    with pytest.raises(ValueError, match=re.escape(f'{path}:17656:11: found "seven"')):
        load_svmlight_file(path)


def test_columns_beyond_32_bits() -> None:
    # Which scikit-learn does not read.
    X, _ = load_svmlight_file(io.BytesIO(b"1 1:1 4000000000:2\n2 2:1\n"))
    assert X.shape == (2, 4_000_000_000)
    assert X.indices.dtype == X.indptr.dtype == np.int64
    assert X.indices.tolist() == [0, 3_999_999_999, 1]
    assert X.indptr.tolist() == [0, 2, 3]
    X, _ = load_svmlight_file(io.BytesIO(b"1 1:1\n"), n_features=2**31 + 5)
    assert X.shape == (1, 2**31 + 5)
    assert X.indices.dtype == np.int64


def test_colons_and_lines_of_comments_take_no_room() -> None:
    text = b"".join(b"# 1:2:3:4\n\n%d 1:%d # :::\n" % (i, i) for i in range(1, 500))
    X, y = load_svmlight_file(io.BytesIO(text))
    assert X.data.tolist() == y.tolist() == list(range(1, 500))
    assert X.data.base is None or X.data.base.size == X.data.size


# Errors.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\nabc 1:2\n", '2:1: found "abc", expected a number, the label'),
        ("1,2 1:2\n", '1:1: found "1,2", expected a single label'),
        ("1 1:2 3\n", '1:7: found "3", expected a colon'),
        ("1 1:a2\n", '1:5: found "a2", expected a number behind the colon'),
        ("1 1:\n", "1:5: found nothing, expected a number behind the colon"),
        (
            "1 2:1 1:1\n",
            '1:7: found "1:1", expected an index larger than the one before',
        ),
        ("1 a:1\n", '1:3: found "a:1", expected index:value'),
        ("1 -1:1\n", '1:3: found "-1:1", expected index:value'),
        ("1 qid:a 1:1\n", '1:3: found "qid:a", expected qid: and an integer'),
        ("1 qid:1 1:1\n2 1:1\n", "2:1: found a row without qid"),
        ("\u00e4 1:1\n", "1:1: found"),
        ("1 1:1_0\n", '1:5: found "1_0"'),
    ],
)
def test_errors_name_the_place(path: Any, text: str, message: str) -> None:
    file = path(text)
    with pytest.raises(ValueError, match=re.escape(f"{file}:{message}")):
        load_svmlight_file(file, query_id=True)
    with pytest.raises(ValueError, match=re.escape(f"f:{message}")):
        load_svmlight_file(io.BytesIO(text.encode()), query_id=True)


def test_index_zero_where_indices_count_from_one(path: Any) -> None:
    with pytest.raises(ValueError, match=r'1:3: found "0:1", expected indices from 1'):
        load_svmlight_file(path("1 0:1\n"), zero_based=False)


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    for options in ({}, {"multilabel": True}, {"query_id": True}):
        with suppress_refusal():
            X, *_ = load_svmlight_file(io.BytesIO(text), **options)
            X.check_format(full_check=True)


@contextmanager
def suppress_refusal() -> Iterator[None]:
    """Let only errors through that do not say where the text is wrong."""
    try:
        yield
    except ValueError as error:
        if not re.match(r"f:\d+:\d+: found .*, expected ", str(error), re.DOTALL):
            raise


def test_missing_files_and_wrong_arguments(tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        load_svmlight_file(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        load_svmlight_file(tmp_path)
    with pytest.raises(TypeError, match="opened in binary mode"):
        load_svmlight_file(io.StringIO("1 1:1\n"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="f: found float"):
        load_svmlight_file(1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="files: found 'a', expected a list"):
        load_svmlight_files("a")
    rows = io.BytesIO(b"1 1:1 5:1\n")
    with pytest.raises(ValueError, match="n_features: found 4 for files of 5 columns"):
        load_svmlight_file(rows, n_features=4)
    with pytest.raises(ValueError, match="n_features is required"):
        load_svmlight_file(rows, offset=3)
    with pytest.raises(ValueError, match="offset: found -1"):
        load_svmlight_file(rows, offset=-1, n_features=3)
    with pytest.raises(TypeError, match="zero_based"):
        load_svmlight_file(rows, zero_based="yes")  # type: ignore[arg-type]


def test_what_cannot_be_written() -> None:
    file = io.BytesIO()
    X = np.ones((2, 2))
    with pytest.raises(ValueError, match="y: found 3 rows, expected 2"):
        dump_svmlight_file(X, [1, 2, 3], file)
    with pytest.raises(ValueError, match="expected y of shape"):
        dump_svmlight_file(X, [[1, 2], [3, 4]], file)
    with pytest.raises(ValueError, match="NaN"):
        dump_svmlight_file([[np.nan]], [1], file)
    with pytest.raises(ValueError, match="query_id: found shape"):
        dump_svmlight_file(X, [1, 2], file, query_id=[1])
    with pytest.raises(ValueError, match="beyond 2\\^53"):
        dump_svmlight_file([[2**60]], [1], file)
    with pytest.raises(ValueError, match="NUL"):
        dump_svmlight_file(X, [1, 2], file, comment="a\0b")
    with pytest.raises(TypeError, match="f: found int"):
        dump_svmlight_file(X, [1, 2], 3)  # type: ignore[arg-type]
    # Nothing was begun.
    assert file.getvalue() == b""


def test_an_error_of_the_file_comes_through() -> None:
    class Full(io.BytesIO):
        def write(self, text: Any) -> int:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        dump_svmlight_file(np.eye(3), [1, 2, 3], Full())


def test_memory_is_that_of_the_result(large: Any) -> None:
    # Chunks share what they hold: no array is larger than its contents.
    X, _ = load_svmlight_file(large[2])
    arrays = (X.data, X.indices, X.indptr)
    assert [a.size if a.base is None else a.base.size for a in arrays] == [
        X.nnz,
        X.nnz,
        X.shape[0] + 1,
    ]
