"""Data sets of the benchmark, and the problem that all solvers must solve."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import (
    fetch_california_housing,
    fetch_covtype,
    fetch_openml,
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
)

Floats: TypeAlias = NDArray[np.float64]
# An array or a CSR matrix, and targets as stored.
Matrix: TypeAlias = Any
Targets: TypeAlias = NDArray[Any]
Raw: TypeAlias = tuple[Matrix, Targets]

CLASSIFICATION = ("hinge", "squared_hinge", "log")
REGRESSION = ("squared", "absolute")
# The digit to distinguish from all others.
DIGIT = 8
# Default shape parameters of the losses that have one.
GAMMA, DELTA, EPSILON, QUANTILE = 1.0, 1.35, 0.1, 0.5


class MissingDataError(Exception):
    """A data set is not available; the message says why."""


@dataclass(frozen=True)
class DataSet:
    """A data set; class labels are -1 and +1."""

    name: str
    X: Matrix
    y: Floats

    @property
    def n_bytes(self) -> int:
        """Size of ``X``."""
        X = self.X
        parts = (X.data, X.indices, X.indptr) if sp.isspmatrix_csr(X) else (X,)
        return sum(part.nbytes for part in parts)

    @property
    def n_stored(self) -> int:
        """Stored entries of ``X``: all, or those of a sparse matrix."""
        return int(self.X.nnz if sp.isspmatrix_csr(self.X) else self.X.size)


@dataclass(frozen=True)
class Problem:
    """Minimise ``mean(loss) + |w|^2 / (2 C n)``."""

    data: DataSet
    loss: str
    C: float

    @property
    def X(self) -> Matrix:
        """The rows."""
        return self.data.X

    @property
    def y(self) -> Floats:
        """The targets."""
        return self.data.y

    @cached_property
    def lam(self) -> float:
        """The factor of ``|w|^2 / 2`` relative to the mean of the losses."""
        return 1 / (self.C * len(self.y))

    def objective(self, w: Floats, b: float = 0.0) -> float:
        """Return ``P(w, b)``, by which every solver is judged."""
        p = self.X @ w + b
        return float(losses(self.loss, p, self.y).mean() + self.lam / 2 * (w @ w))

    def rounding(self, w: Floats, b: float = 0.0) -> float:
        """Return how much rounding of the predictions may change ``P(w, b)``."""
        p = self.X @ w + b
        apart = 8 * np.finfo(np.float64).eps * (abs(self.X) @ np.abs(w) + abs(b))
        above, below = (losses(self.loss, q, self.y) for q in (p + apart, p - apart))
        return float(np.abs(above - below).mean())


def losses(loss: str, p: Floats, y: Floats) -> Floats:
    """Return the loss of every row with prediction ``p`` and target ``y``."""
    if loss == "hinge":
        return np.maximum(0, 1 - y * p)
    if loss == "squared_hinge":
        return np.maximum(0, 1 - y * p) ** 2
    if loss == "smooth_hinge":
        short = np.maximum(0, 1 - y * p)
        return np.where(short <= GAMMA, short**2 / (2 * GAMMA), short - GAMMA / 2)
    if loss == "log":
        return np.logaddexp(0, -y * p)
    if loss == "squared":
        return (p - y) ** 2 / 2
    if loss == "absolute":
        return np.abs(p - y)
    if loss == "huber":
        off = np.abs(p - y)
        return np.where(off <= DELTA, off**2 / 2, DELTA * off - DELTA**2 / 2)
    if loss == "epsilon_insensitive":
        return np.maximum(0, np.abs(p - y) - EPSILON)
    if loss == "quantile":
        return np.maximum(QUANTILE * (y - p), (QUANTILE - 1) * (y - p))
    raise ValueError(f"loss: found {loss!r}")


@lru_cache(maxsize=1)
def load(name: str) -> DataSet:
    """Load a set by its name in ``SETS``, or say why it is missing.

    Pixels are scaled to 0..1 and some columns standardised, and so are numeric targets,
    because no solver in the comparison fits an intercept.
    """
    source = SETS[name]
    X, y = source.read(name)
    y = _standardised(y) if source.label is None else source.label(y)
    return DataSet(name, source.scale(X), y)


@lru_cache(maxsize=1)
def load_raw(name: str) -> DataSet:
    """Load a set as stored, without scaling, or say why it is missing."""
    source = SETS[name]
    X, y = source.read(name)
    if not sp.issparse(X):
        X = np.ascontiguousarray(X, dtype=np.float64)
    y = y.astype(np.float64) if source.label is None else source.label(y)
    return DataSet(name, X, y)


def is_regression(name: str) -> bool:
    """Return whether the targets of a set are numbers."""
    return SETS[name].label is None


def losses_of(name: str) -> tuple[str, ...]:
    """Return the losses for a set."""
    return REGRESSION if is_regression(name) else CLASSIFICATION


def _stored(name: str) -> Raw:
    """Read ``name.npz`` from the folder in ``SDCA_RS_DATA``.

    Dense sets hold ``X, y``; sparse ones ``data`` (one value if all are equal),
    ``dindices`` (differences of the column indices), ``indptr``, ``shape`` and ``y``.
    """
    folder = os.environ.get("SDCA_RS_DATA")
    if not folder:
        raise MissingDataError("SDCA_RS_DATA, the folder with the data, is not set")
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        raise MissingDataError(f"the folder SDCA_RS_DATA holds no {path.name}")
    with np.load(path) as file:
        if "X" in file:
            return file["X"].astype(np.float64), file["y"]
        indices = np.cumsum(file["dindices"], dtype=np.int64).astype(np.int32)
        data = np.broadcast_to(file["data"].astype(np.float64), indices.shape).copy()
        matrix = (data, indices, file["indptr"].astype(np.int32))
        return sp.csr_matrix(matrix, shape=tuple(file["shape"])), file["y"]


def _stored_or(fetch: Callable[[], Raw]) -> Callable[[str], Raw]:
    """Read a set, or download it with ``fetch()``, one of scikit-learn's fetchers."""

    def read(name: str) -> Raw:
        try:
            return _stored(name)
        except MissingDataError as missing:
            # A network that does not respond must not block the rest.
            socket.setdefaulttimeout(20)
            try:
                return fetch()
            except Exception as error:
                raise MissingDataError(
                    f"{missing}; nor can it be downloaded "
                    f"({type(error).__name__}: {error})"
                ) from error

    return read


def _covtype() -> Raw:
    """Download covtype, class 2 against the rest, columns scaled to 0..1."""
    X, y = fetch_covtype(return_X_y=True, n_retries=1)
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1)
    order = np.random.default_rng(0).permutation(len(y))
    return sp.csr_matrix(X[order]), np.where(y[order] == 2, 1, -1)


def _mnist() -> Raw:
    """Download the handwritten digits."""
    X, y = fetch_openml(
        "mnist_784", version=1, as_frame=False, return_X_y=True, n_retries=1
    )
    return X.astype(np.float64), y.astype(int)


def _skin() -> Raw:
    """Download the skin colours; class 1 is skin."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # announces a second attempt
        X, y = fetch_openml(
            "skin-segmentation",
            version=1,
            parser="liac-arff",
            as_frame=False,
            return_X_y=True,
            n_retries=1,
        )
    return X.astype(np.float64), np.where(y == "1", 1, -1)


def _california() -> Raw:
    """Download the house values."""
    X, y = fetch_california_housing(return_X_y=True, n_retries=1)
    return X, y


def _signs(y: Targets) -> Floats:
    return np.where(np.asarray(y) > 0, 1.0, -1.0)


def _is(label: int) -> Callable[[Targets], Floats]:
    return lambda y: np.where(y == label, 1.0, -1.0)


def _as_stored(X: Matrix) -> Matrix:
    return X


def _bytes(X: Matrix) -> Matrix:
    return X / 255


def _by_largest(X: Matrix) -> Matrix:
    return X / X.max()


def _standardised(values: NDArray[Any]) -> Floats:
    spread = values.std(axis=0)
    centred: Floats = values - values.mean(axis=0)
    return centred / np.where(spread > 0, spread, 1)


def _bundled(loader: Callable[..., Raw]) -> Callable[[str], Raw]:
    return lambda name: loader(return_X_y=True)


@dataclass(frozen=True)
class _Source:
    """How to read a set, convert its labels to -1 and +1, and scale it.

    If ``label`` is None, the targets are numbers.
    """

    read: Callable[[str], Raw]
    label: Callable[[Targets], Floats] | None = _signs
    scale: Callable[[Matrix], Matrix] = _as_stored


SETS = {
    "a9a": _Source(_stored),
    "ijcnn1": _Source(_stored),
    "covtype": _Source(_stored_or(_covtype)),
    "debian_long_bin": _Source(_stored),
    "debian_paths_bin": _Source(_stored),
    "news20_123gram_bin": _Source(_stored),
    "skin": _Source(_stored_or(_skin), scale=_bytes),
    "mnist": _Source(_stored_or(_mnist), _is(DIGIT), _by_largest),
    "bloodcells_lym_neu": _Source(_stored, scale=_bytes),
    "nycflights_onehot": _Source(_stored, None),
    "california_housing": _Source(_stored_or(_california), None, _standardised),
    "arrhythmia": _Source(_stored, scale=_standardised),
    "adult_onehot": _Source(_stored, scale=_standardised),
    "gene_all": _Source(_stored, scale=_standardised),
    "breast_cancer": _Source(_bundled(load_breast_cancer), scale=_standardised),
    "wine": _Source(_bundled(load_wine), _is(0), _standardised),
    "digits": _Source(_bundled(load_digits), _is(DIGIT), _by_largest),
    "diabetes": _Source(_bundled(load_diabetes), None, _standardised),
}
BUNDLED = ("breast_cancer", "wine", "digits", "diabetes")
QUICK = ("a9a", "ijcnn1", "california_housing")
# Of interest only without scaling; the comparison has enough sets without them.
ONLY_RAW = ("arrhythmia", "adult_onehot", "gene_all")
FULL = tuple(name for name in SETS if name not in (*BUNDLED, *ONLY_RAW))
