"""Files in the svmlight format, read and written in parallel."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from os import PathLike
from typing import IO, Any, Literal, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn import get_config
from sklearn.utils import check_array

from sdca_rs import _core
from sdca_rs._data import Floats, as_count, as_flag, as_matrix, is_sparse

File: TypeAlias = str | PathLike[str] | int | IO[bytes]

# It has no types of its own.
_check_array: Any = check_array

# Larger integers are not all floats, as which a file's numbers are read.
_MOST = 2**53


def load_svmlight_file(
    f: File,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    multilabel: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    query_id: bool = False,
    offset: int = 0,
    length: int = -1,
) -> tuple[Any, ...]:
    r"""Read a file in the svmlight (libsvm) format, on all processors.

    Parameters and results are those of :func:`sklearn.datasets.load_svmlight_file`.
    What cannot be read is an error that names file, line and column.

    Parameters
    ----------
    f : str, path-like, file-like or int
        A file, by its name, opened in binary mode, or a file descriptor. Those whose
        names end in ".gz" or ".bz2" are decompressed.
    n_features : int, default=None
        Number of columns. None takes as many as occur.
    dtype : dtype, default=float64
        Type of the values: float32 and float64 are read as such, and others converted.
    multilabel : bool, default=False
        Whether a row may have any number of labels, separated by commas.
    zero_based : bool or "auto", default="auto"
        Whether the first column has index 0 or 1 in the file. "auto" says 0 if there
        is an index 0 or if ``offset`` or ``length`` is given, and otherwise 1.
    query_id : bool, default=False
        Whether to return the query ids (``qid:3``), which are otherwise skipped.
    offset : int, default=0
        Unless it is 0, leave out lines that begin at this byte or before it.
    length : int, default=-1
        If it is positive, leave out lines that begin more than so many bytes behind
        ``offset``.

    Returns
    -------
    X : CSR matrix of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,), or list of tuples of float
        The labels; with ``multilabel`` those of each row, sorted.
    query_id : ndarray of shape (n_samples,)
        Only with ``query_id=True``; empty if there are none in the file.

    See Also
    --------
    load_svmlight_files : Several files, with the same number of columns.
    dump_svmlight_file : Write such a file.

    Notes
    -----
    Numbers are those nearest to the text, also in float32, where scikit-learn rounds
    twice. What scikit-learn reads but the format does not have is refused: numbers with
    underscores, signs of indices, and query ids in some rows only.

    Examples
    --------
    >>> from io import BytesIO
    >>> from sdca_rs import load_svmlight_file
    >>> X, y = load_svmlight_file(BytesIO(b"-1 1:0.5 3:2 # a comment\n1 2:1\n"))
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([-1.,  1.])
    >>> load_svmlight_file(BytesIO(b"1 2:0.5\n1 2:abc\n"))
    Traceback (most recent call last):
        ...
    ValueError: f:2:5: found "abc", expected a number behind the colon
    """
    return tuple(
        load_svmlight_files(
            [f],
            n_features=n_features,
            dtype=dtype,
            multilabel=multilabel,
            zero_based=zero_based,
            query_id=query_id,
            offset=offset,
            length=length,
        )
    )


def load_svmlight_files(
    files: Sequence[File],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    multilabel: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    query_id: bool = False,
    offset: int = 0,
    length: int = -1,
) -> list[Any]:
    r"""Read several files as :func:`load_svmlight_file` does one.

    All matrices get the same number of columns, and "auto" takes all files for
    one-based or none.

    Parameters
    ----------
    files : sequence of str, path-like, file-like or int
        The files.
    n_features, dtype, multilabel, zero_based, query_id, offset, length
        As in :func:`load_svmlight_file`.

    Returns
    -------
    list
        ``[X1, y1, X2, y2, ...]``, or with query ids ``[X1, y1, q1, X2, y2, q2, ...]``.

    See Also
    --------
    load_svmlight_file : A single file.

    Examples
    --------
    >>> from io import BytesIO
    >>> from sdca_rs import load_svmlight_files
    >>> train, test = BytesIO(b"1 4:1\n-1 2:1\n"), BytesIO(b"1 2:1\n")
    >>> X, y, X_test, y_test = load_svmlight_files([train, test])
    >>> X.shape, X_test.shape
    ((2, 4), (1, 4))
    """
    if isinstance(files, str | PathLike):
        raise TypeError(f"files: found {files!r}, expected a list of files")
    if n_features is not None:
        n_features = as_count("n_features", n_features, "an integer >= 1, or None")
        if n_features < 1:
            raise ValueError(
                f"n_features: found {n_features}, expected an integer >= 1, or None"
            )
    offset = as_count("offset", offset, "an integer >= 0")
    length = as_count("length", length, "an integer")
    if offset < 0:
        raise ValueError(f"offset: found {offset}, expected an integer >= 0")
    is_auto = isinstance(zero_based, str) and zero_based == "auto"
    if not is_auto:
        zero_based = as_flag("zero_based", zero_based)
    if offset != 0 or length > 0:
        if n_features is None:
            raise ValueError(
                "n_features: found None, expected the number of columns: n_features is "
                "required when offset or length is specified, as a part of a file need "
                "not have all"
            )
        if is_auto:
            zero_based, is_auto = True, False
    dtype = np.dtype(dtype)
    with_queries = as_flag("query_id", query_id)
    with_lists = as_flag("multilabel", multilabel)
    tables = [
        _read(
            file,
            single=dtype == np.float32,
            multilabel=with_lists,
            zero_based=None if is_auto else bool(zero_based),
            query_id=with_queries,
            offset=offset,
            length=length if length > 0 else None,
        )
        for file in files
    ]
    from_one = all(table.from_one for table in tables)
    # Where the file alone looked one-based, columns are to be counted from zero.
    shifts = [table.from_one and not from_one for table in tables]
    found = [
        table.n_features + shift for table, shift in zip(tables, shifts, strict=True)
    ]
    width = max(found, default=1) if n_features is None else n_features
    if found and max(found) > width:
        raise ValueError(
            f"n_features: found {width} for files of {max(found)} columns, expected no "
            "fewer than there are"
        )
    result: list[Any] = []
    for table, shift in zip(tables, shifts, strict=True):
        result += _matrix(table, shift, width, dtype), _labels(table, with_lists)
        if with_queries:
            result.append(table.query_ids)
    return result


def load_one(file: File, zero_based: bool | None) -> tuple[Any, Floats, bool]:
    """Read a file for the command line: rows, labels, and whether it counts from 0."""
    table = _read(
        file,
        single=False,
        multilabel=False,
        zero_based=zero_based,
        query_id=False,
        offset=0,
        length=None,
    )
    counts_from_zero = table.n_entries > 0 and not table.from_one
    X = _matrix(table, False, table.n_features, np.float64)
    return X, _labels(table, False), counts_from_zero


def _read(file: File, **settings: Any) -> _core.Table:
    if isinstance(file, str | PathLike):
        path = os.fspath(file)
        extension = os.path.splitext(path)[1]
        if extension not in _COMPRESSED:
            # For an error of Python's own, which names the file.
            with open(path, "rb"):
                pass
            return _core.read_svmlight(path, path, n_threads=cpu_count(), **settings)
        with _COMPRESSED[extension](path, "rb") as opened:
            return _read_opened(cast(IO[bytes], opened), path, **settings)
    if isinstance(file, int):
        with open(file, "rb", closefd=False) as opened:
            return _read_opened(opened, f"file descriptor {file}", **settings)
    if not hasattr(file, "read"):
        raise TypeError(
            f"f: found {type(file).__name__}, expected a name, a path, a file opened "
            "in binary mode or a file descriptor"
        )
    name = getattr(file, "name", "f")
    return _read_opened(file, name if isinstance(name, str) else "f", **settings)


_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def _read_opened(
    file: IO[bytes], name: str, *, offset: int, length: int | None, **settings: Any
) -> _core.Table:
    if offset:
        file.seek(offset)
        # A line that begins at the offset or before it.
        skipped = len(file.readline())
        length = None if length is None else length - skipped
    buffer = io.BytesIO()
    try:
        if length is None:
            shutil.copyfileobj(file, buffer, 1 << 20)
        elif length >= 0:
            # A line that begins at the last of these bytes is to be read to its end.
            buffer.write(file.read(length + 1))
            buffer.write(file.readline())
    except TypeError as error:
        raise TypeError(
            f"f: found {name} opened as text, expected a file opened in binary mode"
        ) from error
    text = np.frombuffer(buffer.getbuffer(), dtype=np.uint8)
    return _core.read_svmlight(
        text,
        name,
        offset=0,
        length=None if length is None else max(length, 0),
        n_threads=cpu_count(),
        **settings,
    )


def _matrix(table: _core.Table, shift: bool, width: int, dtype: Any) -> Any:
    data = np.asarray(_first(table.data, table.n_entries), dtype=dtype)
    indices = _first(table.indices, table.n_entries)
    indptr = _first(table.indptr, table.n_rows + 1)
    if shift:
        indices += 1
    # scikit-learn lets users choose since 1.8 or so.
    is_array = get_config().get("sparse_interface") == "sparray"
    kind = sp.csr_array if is_array else sp.csr_matrix
    return kind((data, indices, indptr), shape=(table.n_rows, width))


def _labels(table: _core.Table, multilabel: bool) -> Any:
    if not multilabel:
        return _first(table.targets, table.n_rows)
    labels = table.labels.tolist()
    ends = table.label_ends.tolist()
    return [
        tuple(labels[start:end]) for start, end in zip([0, *ends], ends, strict=False)
    ]


def _first(array: NDArray[Any], length: int) -> NDArray[Any]:
    # There is more room than was needed if comments hold colons or lines are empty.
    if len(array) > length:
        array.resize(length, refcheck=False)
    return array


def dump_svmlight_file(
    X: Any,
    y: ArrayLike,
    f: str | PathLike[str] | IO[bytes],
    *,
    zero_based: bool = True,
    comment: str | bytes | None = None,
    query_id: ArrayLike | None = None,
    multilabel: bool = False,
) -> None:
    """Write rows and labels in the svmlight (libsvm) format, on all processors.

    Parameters are those of :func:`sklearn.datasets.dump_svmlight_file`. Numbers are
    written as short as is possible without losing a bit: read as the type that they
    had, they are the same. Zeros of dense rows are left out.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
        Numbers; with ``multilabel`` a row of indicators for each sample, whose columns
        are the labels.
    f : str, path-like or file-like
        A file, by its name or opened in binary mode. One whose name ends in ".gz" or
        ".bz2" is compressed.
    zero_based : bool, default=True
        Whether the first column gets the index 0 or 1. LIBLINEAR and LIBSVM need 1.
    comment : str or bytes, default=None
        Lines at the top, behind two that say what wrote the file. Some programs do not
        read files with comments.
    query_id : array-like of shape (n_samples,), default=None
        Integers.
    multilabel : bool, default=False
        Whether ``y`` holds indicators. A row with neither labels nor entries gets an
        entry of 0, as readers skip empty lines.

    See Also
    --------
    load_svmlight_file : Read such a file.

    Examples
    --------
    >>> from io import BytesIO
    >>> from sdca_rs import dump_svmlight_file
    >>> file = BytesIO()
    >>> dump_svmlight_file([[0.1, 0], [0, 1 / 3]], [1, -1], file, zero_based=False)
    >>> print(file.getvalue().decode(), end="")
    1 1:0.1
    -1 2:0.3333333333333333
    """
    zero_based = as_flag("zero_based", zero_based)
    head = _head(comment, zero_based)
    X = _check_array(X, accept_sparse="csr", dtype="numeric", order="C")
    # Sparse rows may be those of the user: the core sorts copies of them.
    X = _as_floats("X", X)
    labels, ends = _labels_to_write(y, as_flag("multilabel", multilabel))
    n_rows = len(labels) if ends is None else len(ends)
    if n_rows != X.shape[0]:
        raise ValueError(
            f"y: found {n_rows} rows, expected {X.shape[0]}: X.shape[0] and y.shape[0] "
            "should be the same"
        )
    ids = None
    if query_id is not None:
        ids = np.ascontiguousarray(query_id)
        if ids.shape != (n_rows,) or ids.dtype.kind not in "iu":
            raise ValueError(
                f"query_id: found shape {ids.shape} of {ids.dtype}, expected query_id "
                f"of shape (n_samples,), {n_rows} integers"
            )
        ids = ids.astype(np.int64)
    with _opened_to_write(f) as file:
        file.write(head)
        _core.write_svmlight(
            as_matrix(X),
            labels,
            file.write,
            label_ends=ends,
            query_id=ids,
            zero_based=zero_based,
            n_threads=cpu_count(),
        )


def _head(comment: str | bytes | None, zero_based: bool) -> bytes:
    if comment is None:
        return b""
    if isinstance(comment, bytes):
        # For the error if it is not ASCII.
        comment = comment.decode("ascii")
    elif not isinstance(comment, str):
        raise TypeError(f"comment: found {comment!r}, expected a string or None")
    if "\0" in comment:
        raise ValueError("comment: found a NUL byte, expected text without")
    base = "zero" if zero_based else "one"
    lines = [
        f"Generated by dump_svmlight_file from sdca-rs {version('sdca-rs')}",
        f"Column indices are {base}-based",
        "",
        *comment.splitlines(),
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines).encode()


def _as_floats(name: str, values: Any) -> Any:
    """Return numbers as float32 or float64, without changing any."""
    kind = values.dtype.kind
    if values.dtype in (np.float32, np.float64):
        return values
    if kind == "f" and values.dtype.itemsize <= 8:
        return values.astype(np.float32)
    if kind in "iu":
        stored = values.data if is_sparse(values) else values
        if stored.size and max(-int(stored.min()), int(stored.max())) > _MOST:
            raise ValueError(
                f"{name}: found integers beyond 2^53, expected smaller ones: as the "
                "floats that files are read as, they would change"
            )
    elif kind not in "bf":
        raise ValueError(f"{name}: found {values.dtype}, expected numbers")
    return values.astype(np.float64)


def _labels_to_write(
    y: Any, multilabel: bool
) -> tuple[Floats, NDArray[np.int64] | None]:
    """Return the labels of all rows and, if there are several, where each row ends."""
    y = _check_array(y, accept_sparse="csr", ensure_2d=False, dtype="numeric")
    if multilabel:
        if y.ndim != 2:
            raise ValueError(
                f"y: found shape {y.shape}, expected (n_samples, n_labels)"
            )
        indicators = sp.csr_array(y, copy=True)
        indicators.sum_duplicates()
        indicators.eliminate_zeros()
        return (
            indicators.indices.astype(np.float64),
            indicators.indptr[1:].astype(np.int64),
        )
    if is_sparse(y):
        if y.shape[1] != 1:
            raise ValueError(
                f"y: found shape {y.shape}, expected y of shape (n_samples, 1)"
            )
        y = y.toarray().ravel()
    if y.ndim != 1:
        raise ValueError(f"y: found shape {y.shape}, expected y of shape (n_samples,)")
    return np.ascontiguousarray(_as_floats("y", y), dtype=np.float64), None


@contextmanager
def _opened_to_write(f: Any) -> Iterator[IO[bytes]]:
    if hasattr(f, "write"):
        yield f
        return
    if not isinstance(f, str | PathLike):
        raise TypeError(
            f"f: found {type(f).__name__}, expected a name, a path or a file opened in "
            "binary mode"
        )
    extension = os.path.splitext(os.fspath(f))[1]
    with _COMPRESSED.get(extension, open)(f, "wb") as file:
        yield file
