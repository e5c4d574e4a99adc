"""Files of data: svmlight, CSV, Parquet and npz."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib
import math
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sdca_rs._cli._errors import CommandError
from sdca_rs._cli._formats import format_of
from sdca_rs._data import Floats
from sdca_rs._svmlight import load_one

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}

# Rows of a CSV file that decide what a column holds, and that are converted at a time.
_BLOCK = 50_000

# How messages call a cell with nothing in it.
_EMPTY = "an empty cell"


@dataclass
class Column:
    """A column of a table: numbers or text."""

    name: str
    values: NDArray[Any]

    @property
    def is_text(self) -> bool:
        """Whether it holds text."""
        return self.values.dtype == object


@dataclass
class Table:
    """What was read: columns with names, or a matrix, and perhaps targets."""

    path: str
    columns: list[Column] | None = None
    # Of all columns of the file, also of those that are left out.
    names: tuple[str, ...] = ()
    X: Any = None
    y: NDArray[Any] | None = None
    zero_based: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self.columns is None:
            return int(self.X.shape[0])
        return len(self.columns[0].values) if self.columns else 0


@dataclass(frozen=True)
class Format:
    """What the options say of a file."""

    name: str | None = None
    delimiter: str | None = None
    header: bool = True
    zero_based: bool | None = None
    # Names of columns that are text whatever they look like.
    categorical: tuple[str, ...] = ()
    # Names of columns to leave out, and of the only ones to read, if not all.
    drop: tuple[str, ...] = ()
    only: frozenset[str] | None = None

    def wants(self, name: str) -> bool:
        """Whether to read a column."""
        if name in self.drop:
            return False
        return self.only is None or name in self.only


def read(path: str, given: Format) -> Table:
    """Read a file of any of the formats."""
    name = given.name or format_of(path)
    if path != "-" and not os.path.exists(path):
        raise CommandError(f"{path}: found no such file, expected the name of one")
    readers = {
        "svmlight": _read_svmlight,
        "csv": _read_csv,
        "parquet": _read_parquet,
        "npz": _read_npz,
    }
    try:
        table = readers[name](path, given)
    except (OSError, EOFError) as error:
        text = str(error)
        prefix = "" if path in text else f"{path}: "
        raise CommandError(f"{prefix}{text}") from error
    if table.n_rows == 0:
        raise CommandError(f"{path}: found no rows, expected at least one")
    return table


def _read_svmlight(path: str, given: Format) -> Table:
    try:
        X, y, zero_based = load_one(
            sys.stdin.buffer if path == "-" else path, given.zero_based
        )
    except ValueError as error:
        hint = ""
        if given.name is None and path != "-":
            hint = (
                " (read as svmlight because of its name; --format csv, parquet or npz "
                "says otherwise)"
            )
        raise CommandError(f"{error}{hint}") from error
    return Table(path, X=X, y=y, zero_based=zero_based)


# CSV.


def _read_csv(path: str, given: Format) -> Table:
    with _text_of(path) as file:
        delimiter = given.delimiter or _delimiter_of(path, file)
        rows = _numbered_rows(path, csv.reader(file, delimiter=delimiter, strict=True))
        first = next(rows, None)
        if first is None:
            raise CommandError(f"{path}: found no text, expected a table")
        if given.header:
            names = _names(path, first[1])
        else:
            names = [str(number) for number in range(1, len(first[1]) + 1)]
            rows = _before(first, rows)
        _check_drop(path, given, names)
        wanted = [j for j, name in enumerate(names) if given.wants(name)]
        parts: dict[int, list[NDArray[Any]]] = {j: [] for j in wanted}
        kinds: dict[int, bool] | None = None
        while block := list(islice(rows, _BLOCK)):
            for line, cells in block:
                if len(cells) != len(names):
                    raise CommandError(
                        f"{path}:{line}: found {len(cells)} cells, expected "
                        f"{len(names)} as in the first line (delimiter {delimiter!r})"
                    )
            columns = list(zip(*(cells for _, cells in block), strict=True))
            lines = [line for line, _ in block]
            if kinds is None:
                kinds = {
                    j: names[j] in given.categorical
                    or _is_text(path, names[j], columns[j], lines)
                    for j in wanted
                }
            for j, is_text in kinds.items():
                if is_text:
                    parts[j].append(np.array(columns[j], dtype=object))
                else:
                    parts[j].append(_numbers(path, names[j], columns[j], lines))
    columns_read = [
        Column(names[j], np.concatenate(values) if values else np.empty(0))
        for j, values in parts.items()
    ]
    return Table(path, columns=columns_read, names=tuple(names))


def _check_drop(path: str, given: Format, names: list[str]) -> None:
    for option, chosen in (
        ("--drop", given.drop),
        ("--categorical", given.categorical),
    ):
        for name in chosen:
            if name not in names and given.only is None:
                raise CommandError(
                    f"{option}: found {name!r}, expected a column of {path}: "
                    f"{listed(names)}"
                )


def listed(names: list[str], at_most: int = 12) -> str:
    """Return names for a message, if they are not too many."""
    shown = ", ".join(names[:at_most])
    return shown if len(names) <= at_most else f"{shown}, ... ({len(names)} in all)"


@contextmanager
def _text_of(path: str) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdin
        return
    opener = _OPENERS.get(os.path.splitext(path.lower())[1], open)
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        yield file


def _delimiter_of(path: str, file: IO[str]) -> str:
    if ".tsv" in path.lower():
        return "\t"
    if not file.seekable():
        return ","
    head = file.readline()
    file.seek(0)
    # The usual ones, by how often they occur.
    return max(",;\t|", key=head.count)


def _numbered_rows(path: str, reader: Any) -> Iterator[tuple[int, list[str]]]:
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise CommandError(
            f"{path}:{reader.line_num}: found no CSV ({error}), expected a table"
        ) from error
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{path}:{reader.line_num + 1}: found bytes that are not UTF-8, expected "
            "text in UTF-8"
        ) from error


def _before(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _names(path: str, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if all(_number(name) is not None for name in names):
        raise CommandError(
            f"{path}:1: found numbers in the first line, expected the names of the "
            "columns (--no-header reads a file without names)"
        )
    for name in names:
        if names.count(name) > 1:
            raise CommandError(
                f"{path}:1: found the column name {name!r} twice, expected it once"
            )
    return names


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    # Python reads 1_000, which nobody writes into a table.
    return None if "_" in cell else number


def _is_text(path: str, name: str, cells: Any, lines: list[int]) -> bool:
    """Tell from the first rows whether a column holds text."""
    distinct = {cell.strip() for cell in cells} - {""}
    texts = [cell for cell in distinct if _number(cell) is None]
    if not texts:
        return False
    if 2 * len(texts) <= len(distinct) and len(distinct) > 2:
        # A few words among numbers, such as N/A or a question mark.
        line = next(
            line
            for line, cell in zip(lines, cells, strict=True)
            if cell.strip() in texts
        )
        raise CommandError(
            f"{path}:{line}: column {name!r}: found {texts[0]!r} among numbers, "
            f"expected numbers only: fill it in, leave the column out (--drop {name}) "
            f"or take all of it as text (--categorical {name})"
        )
    return True


def _numbers(path: str, name: str, cells: Any, lines: list[int]) -> Floats:
    try:
        values = np.array(cells, dtype=np.float64)
        if np.isfinite(values).all():
            return values
    except ValueError:
        pass
    for line, cell in zip(lines, cells, strict=True):
        number = _number(cell)
        if number is None or not math.isfinite(number):
            found = repr(cell) if cell.strip() else _EMPTY
            raise CommandError(
                f"{path}:{line}: column {name!r}: found {found}, expected a number: "
                f"{_advice(name)}"
            )
    return np.array([_number(cell) for cell in cells], dtype=np.float64)


def _advice(name: str) -> str:
    return f"fill it in, drop the row, or leave the column out (--drop {name})"


# Parquet.


def _read_parquet(path: str, given: Format) -> Table:
    for library, reader in (
        ("pyarrow", _with_pyarrow),
        ("polars", _with_polars),
        ("pandas", _with_pandas),
    ):
        try:
            importlib.import_module(library)
            columns = reader(path)
        except ImportError:
            # pandas needs an engine, too.
            continue
        except Exception as error:
            text = " ".join(str(error).split())
            raise CommandError(
                f"{path}: found no Parquet that {library} can read ({text})"
            ) from error
        _check_drop(path, given, [name for name, _ in columns])
        return Table(
            path,
            columns=[
                _checked(path, name, values, name in given.categorical)
                for name, values in columns
                if given.wants(name)
            ],
            names=tuple(name for name, _ in columns),
        )
    raise CommandError(
        f"{path}: found no library that reads Parquet, expected one of pyarrow, polars "
        "and pandas with an engine: pip install pyarrow"
    )


def _with_pyarrow(path: str) -> list[tuple[str, Any]]:
    table = importlib.import_module("pyarrow.parquet").read_table(path)
    return [(name, table[name].to_numpy()) for name in table.column_names]


def _with_polars(path: str) -> list[tuple[str, Any]]:
    table = importlib.import_module("polars").read_parquet(path)
    return [(series.name, series.to_numpy()) for series in table]


def _with_pandas(path: str) -> list[tuple[str, Any]]:
    table = importlib.import_module("pandas").read_parquet(path)
    return [(str(name), table[name].to_numpy()) for name in table.columns]


def _checked(path: str, name: str, array: NDArray[Any], as_text: bool) -> Column:
    if array.dtype.kind in "biuf" and not as_text:
        numbers = array.astype(np.float64)
        odd = ~np.isfinite(numbers)
        if odd.any():
            _refuse(path, name, int(odd.argmax()), None, "a number")
        return Column(name, numbers)
    values = array.tolist()
    kinds = {type(value) for value in values}
    is_text = as_text or str in kinds
    allowed = (str, bool, int, float) if as_text else (str,)
    for row, value in enumerate(values):
        if not isinstance(value, allowed if is_text else (bool, int, float)):
            expected = "text" if is_text else "a number"
            _refuse(path, name, row, value, expected)
    if is_text:
        return Column(name, np.array([str(value) for value in values], dtype=object))
    return Column(name, np.array(values, dtype=np.float64))


def _refuse(path: str, name: str, row: int, value: Any, expected: str) -> None:
    found = "nothing" if value is None else repr(value)
    raise CommandError(
        f"{path}: column {name!r}: found {found} in row {row + 1}, expected "
        f"{expected}: {_advice(name)}"
    )


# npz.


def _read_npz(path: str, given: Format) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise CommandError(
            f"{path}: found no arrays that can be read ({error}), expected an npz file "
            "with X and y, or one of scipy.sparse.save_npz"
        ) from error
    y = arrays.get("y")
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise CommandError(
                f"{path}: X: found shape {X.shape} of {X.dtype}, expected a matrix of "
                "numbers"
            )
        X = np.ascontiguousarray(X, dtype=_float_type(X))
    elif {"data", "indices", "indptr", "shape"} <= arrays.keys():
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        kind = arrays.get("format", np.array(b"csr")).item()
        by_column = kind in (b"csc", "csc")
        make = sp.csc_matrix if by_column else sp.csr_matrix
        try:
            X = make(parts, shape=tuple(arrays["shape"].tolist()))
            X.check_format(full_check=True)
        except ValueError as error:
            raise CommandError(f"{path}: found no sparse matrix ({error})") from error
        X = sp.csr_matrix(X, dtype=_float_type(X))
    else:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise CommandError(
            f"{path}: found the arrays {found}, expected X and y, or those of "
            "scipy.sparse.save_npz and y"
        )
    if y is not None and y.shape != (X.shape[0],):
        raise CommandError(
            f"{path}: y: found shape {y.shape}, expected ({X.shape[0]},), one entry "
            "for each row of X"
        )
    return Table(path, X=X, y=y)


def _float_type(values: Any) -> Any:
    return np.float32 if values.dtype == np.float32 else np.float64
