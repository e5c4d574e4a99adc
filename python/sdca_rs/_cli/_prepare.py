"""From what was read to the matrix of a model: the columns, their codes and scales."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sdca_rs._cli._errors import CommandError
from sdca_rs._cli._read import Column, Table, listed
from sdca_rs._data import Floats, is_sparse

# A text column with more categories than that, most of them in a single row, names rows
# rather than describes them.
_MANY = 1000


@dataclass
class Preparation:
    """How the rows of a file become those of a model. It is kept with the model."""

    # Of a file with indices: whether they count from 0.
    zero_based: bool = False
    target: str | None = None
    # Of a table: the columns in their order, text with its categories.
    columns: list[tuple[str, list[str] | None]] | None = None
    # Columns of numbers are shifted by the one and divided by the other.
    mean: Floats | None = None
    scale: Floats | None = None
    # The value of a last column, whose coefficient is a regularised intercept.
    bias: float | None = None
    # How often a category was met that training did not have, for a note.
    unknown: dict[str, int] = field(default_factory=dict, compare=False)
    ignored: int = field(default=0, compare=False)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to keep."""
        return any(
            value not in (None, False)
            for value in (self.zero_based, self.target, self.bias)
        ) or not (self.columns is None and self.mean is None and self.scale is None)

    def names(self) -> list[str] | None:
        """Names of the columns of the matrix, if they have names."""
        if self.columns is None:
            return None
        names = [name for name, categories in self.columns if categories is None]
        for name, categories in self.columns:
            names += [f"{name}={category}" for category in categories or ()]
        return names + ["(bias)"] * (self.bias is not None)

    # A model's file.

    def to_json(self) -> dict[str, Any]:
        """Return what a model's file holds."""
        columns = None
        if self.columns is not None:
            columns = [
                {"name": name}
                if categories is None
                else {"name": name, "categories": categories}
                for name, categories in self.columns
            ]
        return {
            "zero_based": self.zero_based,
            "target": self.target,
            "columns": columns,
            "mean": None if self.mean is None else self.mean.tolist(),
            "scale": None if self.scale is None else self.scale.tolist(),
            "bias": self.bias,
        }

    @classmethod
    def from_json(cls, record: Any) -> Preparation:
        """Read what a model's file holds. What is wrong is a ValueError."""
        expected = set(cls().to_json())
        if not isinstance(record, dict) or set(record) != expected:
            raise ValueError(
                f"input: found {record!r:.60}, expected an object of "
                f"{', '.join(sorted(expected))}"
            )
        columns = None
        if record["columns"] is not None:
            columns = [_column_of(entry) for entry in _list(record, "columns")]
        bias, target = record["bias"], record["target"]
        if not (bias is None or isinstance(bias, int | float)):
            raise ValueError(f"input.bias: found {bias!r}, expected a number or null")
        if not (target is None or isinstance(target, str)):
            raise ValueError(f"input.target: found {target!r}, expected text or null")
        return cls(
            zero_based=record["zero_based"] is True,
            target=target,
            columns=columns,
            mean=_numbers(record, "mean"),
            scale=_numbers(record, "scale"),
            bias=None if bias is None else float(bias),
        )

    # Rows.

    def fit(self, table: Table, *, standardise: bool, bias: float | None) -> Any:
        """Learn from the rows of training, and return the matrix."""
        self.bias = bias
        if table.columns is None:
            self.zero_based = table.zero_based
            X = table.X
        else:
            if not table.columns:
                raise CommandError(
                    f"{table.path}: found no column besides the target, expected some"
                )
            self.columns = [
                (column.name, _categories(table.path, column))
                for column in table.columns
            ]
            X = self._numbers(table)
        if standardise:
            self._learn_scales(X)
        return self._finish(table, X)

    def apply(self, table: Table, n_features: int) -> Any:
        """Return the matrix of other rows for a model of so many columns."""
        self.unknown, self.ignored = {}, 0
        if self.columns is not None:
            if table.columns is None:
                raise CommandError(
                    f"{table.path}: found a matrix, expected a table with the columns "
                    f"of the model: {listed([name for name, _ in self.columns])}"
                )
            return self._finish(table, self._numbers(table))
        X = _matrix_of_numbers(table) if table.columns is not None else table.X
        wanted = n_features - (self.bias is not None)
        if X.shape[1] != wanted:
            X = self._with_width(table, X, wanted)
        return self._finish(table, X)

    def _with_width(self, table: Table, X: Any, wanted: int) -> Any:
        if not is_sparse(X):
            raise CommandError(
                f"{table.path}: found {X.shape[1]} columns, expected {wanted} as in "
                "training"
            )
        if X.shape[1] > wanted:
            # Training did not have them, so their coefficients are 0.
            self.ignored = int(X.shape[1] - wanted)
            return X[:, :wanted]
        return sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], wanted))

    def _numbers(self, table: Table) -> Floats:
        """Return the columns of numbers, in the order of training."""
        assert self.columns is not None
        assert table.columns is not None
        given = {column.name: column for column in table.columns}
        missing = [name for name, _ in self.columns if name not in given]
        if missing:
            raise CommandError(
                f"{table.path}: found no column {listed(missing)}, expected those of "
                f"training (there are {listed(list(given))})"
            )
        chosen = [given[name] for name, kind in self.columns if kind is None]
        for column in chosen:
            if column.is_text:
                raise CommandError(
                    f"{table.path}: column {column.name!r}: found text such as "
                    f"{column.values[0]!r}, expected numbers as in training"
                )
        if not chosen:
            return np.empty((table.n_rows, 0))
        return np.column_stack([column.values for column in chosen])

    def _learn_scales(self, X: Any) -> None:
        if is_sparse(X):
            # Shifted columns would have no zeros.
            n_rows = X.shape[0]
            mean = np.asarray(X.mean(axis=0)).ravel()
            squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() / n_rows
            scale = np.sqrt(np.maximum(squares - mean**2, 0.0))
        else:
            mean = X.mean(axis=0, dtype=np.float64)
            scale = X.std(axis=0, dtype=np.float64)
            self.mean = mean
        # As scikit-learn: a column that is constant but for rounding stays.
        tiny = 10 * np.finfo(np.float64).eps * np.abs(mean)
        scale[~(scale > tiny)] = 1.0
        self.scale = scale

    def _finish(self, table: Table, X: Any) -> Any:
        if self.scale is not None:
            if len(self.scale) != X.shape[1]:
                raise CommandError(
                    f"{table.path}: found {X.shape[1]} columns of numbers, expected "
                    f"{len(self.scale)} as in training"
                )
            if is_sparse(X):
                X = sp.csr_matrix(X @ sp.diags(1.0 / self.scale))
            else:
                X = (X - self.mean) / self.scale
        blocks: list[Any]
        codes = self._codes(table)
        if codes:
            blocks = [sp.csr_matrix(X), *codes]
            X = sp.hstack(blocks, format="csr")
        if self.bias is not None:
            last = np.full((X.shape[0], 1), self.bias)
            blocks = [X, last]
            X = sp.hstack(blocks, format="csr") if is_sparse(X) else np.hstack(blocks)
        return sp.csr_matrix(X) if is_sparse(X) else np.ascontiguousarray(X)

    def _codes(self, table: Table) -> list[Any]:
        """Return a column for each category of each text column."""
        if self.columns is None or table.columns is None:
            return []
        given = {column.name: column for column in table.columns}
        codes = []
        for name, categories in self.columns:
            if categories is None:
                continue
            number = {category: k for k, category in enumerate(categories)}
            values = given[name].values
            if not given[name].is_text:
                values = np.array([f"{value:g}" for value in values], dtype=object)
            found = np.array([number.get(value, -1) for value in values.tolist()])
            known = np.flatnonzero(found >= 0)
            if len(known) < len(found):
                self.unknown[name] = len(found) - len(known)
            shape = (len(found), len(categories))
            ones = np.ones(len(known))
            codes.append(sp.csr_matrix((ones, (known, found[known])), shape=shape))
        return codes


def split_target(table: Table, target: str | None, *, required: bool) -> str | None:
    """Take the target out of the columns of a table, and return its name.

    Of other files, the targets come with the rows.
    """
    if table.columns is None:
        if target is not None:
            raise CommandError(
                f"--target: found {target!r} for {table.path}, expected none: rows "
                "come with their labels"
            )
        if table.y is None and required:
            raise CommandError(
                f"{table.path}: found no array y, expected the targets: numpy.savez("
                "..., y=y)"
            )
        return None
    names = [column.name for column in table.columns]
    if target is None:
        if not required:
            return None
        raise CommandError(
            f"--target: found none, expected the name of the column to predict, or its "
            f"number from 1; {table.path} has {listed(names)}"
        )
    name = target
    if target not in names and target.isascii() and target.isdigit():
        number = int(target)
        if 1 <= number <= len(table.names):
            name = table.names[number - 1]
    if name not in names:
        if not required:
            return None
        raise CommandError(
            f"--target: found {target!r}, expected a column of {table.path}: "
            f"{listed(names)}"
        )
    column = table.columns.pop(names.index(name))
    table.y = _labels(column.values)
    return name


def _labels(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(str) if values.dtype == object else values


def _categories(path: str, column: Column) -> list[str] | None:
    if not column.is_text:
        return None
    categories = sorted(set(column.values.tolist()))
    if len(categories) > max(_MANY, len(column.values) // 2):
        raise CommandError(
            f"{path}: column {column.name!r}: found {len(categories)} different texts "
            f"in {len(column.values)} rows, expected categories: leave out a column "
            f"that names rows (--drop {column.name})"
        )
    return categories


def _matrix_of_numbers(table: Table) -> Floats:
    assert table.columns is not None
    for column in table.columns:
        if column.is_text:
            raise CommandError(
                f"{table.path}: column {column.name!r}: found text such as "
                f"{column.values[0]!r}, expected numbers only, as this model was "
                "trained on a matrix without names"
            )
    return np.column_stack([column.values for column in table.columns])


def _list(record: dict[str, Any], key: str) -> list[Any]:
    if not isinstance(record[key], list):
        raise ValueError(f"input.{key}: found {record[key]!r:.60}, expected a list")
    return list(record[key])


def _numbers(record: dict[str, Any], key: str) -> Floats | None:
    if record[key] is None:
        return None
    try:
        numbers = np.array(_list(record, key), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"input.{key}: found no numbers ({error})") from error
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"input.{key}: found no finite numbers, expected a list")
    return numbers


def _column_of(entry: Any) -> tuple[str, list[str] | None]:
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        categories = entry.get("categories")
        if categories is None:
            return entry["name"], None
        if isinstance(categories, list) and all(
            isinstance(category, str) for category in categories
        ):
            return entry["name"], categories
    raise ValueError(
        f"input.columns: found {entry!r:.60}, expected name and categories"
    )
