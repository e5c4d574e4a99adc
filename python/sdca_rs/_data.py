"""Checks and conversions of data: from what users have to what the core borrows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from sdca_rs._core import has_duplicates
from sdca_rs._losses import LossInfo

if TYPE_CHECKING:
    from sdca_rs._core import _Matrix

Floats = NDArray[np.float64]


def validate_X(estimator: Any, X: Any, **options: Any) -> Any:
    """Check ``X`` (and ``y``, if given) as scikit-learn does, before any conversion.

    C-ordered arrays and CSR matrices of float32 or float64 come back as they are.
    """
    check_structure(X)
    try:
        return validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            **options,
        )
    except (TypeError, ValueError) as error:
        # numpy says what it could not convert, but not in which argument.
        if getattr(X, "dtype", None) == object and "X" not in str(error):
            raise type(error)(f"X: found {error}, expected numbers") from error
        raise


def check_structure(X: Any) -> None:
    """Refuse sparse matrices that scipy would read or write out of bounds.

    CSR needs no conversion and is checked by the core.
    """
    if not sp.issparse(X):
        return
    try:
        if X.format in ("csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format == "coo":
            for axis, size in zip(X.coords, X.shape, strict=True):
                if axis.size and not 0 <= axis.min() <= axis.max() < size:
                    raise ValueError(
                        f"found coordinates from {axis.min()} to {axis.max()}, "
                        f"expected 0 <= coordinate < {size}"
                    )
    except ValueError as error:
        raise ValueError(f"X: malformed {X.format} matrix: {error}") from error


def as_matrix(X: Any, *, unique: bool) -> _Matrix:
    """Hand a validated ``X`` to the core without copying it.

    With ``unique``, duplicate entries of a CSR matrix are summed in a copy: the norm
    of a row cannot be had from its parts.
    """
    if not sp.issparse(X):
        return cast("_Matrix", _ready(X))
    matrix = _as_tuple(X)
    if unique and has_duplicates(matrix):
        X = X.copy()
        X.sum_duplicates()
        matrix = _as_tuple(X)
    return matrix


def _as_tuple(X: Any) -> _Matrix:
    indices, indptr = (
        array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)
        for array in (X.indices, X.indptr)
    )
    if indptr.shape != (X.shape[0] + 1,):
        raise ValueError(
            f"X.indptr: found shape {indptr.shape}, expected {(X.shape[0] + 1,)}, "
            "one more than rows"
        )
    return _ready(X.data), _ready(indices), _ready(indptr), X.shape[1]


def _ready(array: NDArray[Any]) -> NDArray[Any]:
    return np.require(array, requirements=["C", "A"])


def as_weights(sample_weight: ArrayLike | None, n_samples: int) -> Floats | None:
    """Convert sample weights to an array, and a number to equal weights."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"sample_weight: found {error}, expected numbers") from error
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight: found shape {weights.shape}, expected {(n_samples,)}, "
            "one for each row of X"
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight: found {weights[bad[0]]} at row {bad[0]}, "
            "expected finite weights >= 0"
        )
    if not weights.any():
        raise ValueError(
            "sample_weight: found zero for every weight, expected a positive one"
        )
    return np.ascontiguousarray(weights)


class Labels:
    """Classes and the targets that the core is given for them.

    A row of weight 0 counts as absent: it does not make a class.
    """

    classes: NDArray[Any]
    targets: Floats

    def __init__(self, y: NDArray[Any], weights: Floats | None) -> None:
        present = y if weights is None else y[weights > 0]
        self.classes = np.unique(present)
        if len(self.classes) < 2:
            found = ", ".join(repr(label) for label in self.classes.tolist())
            raise ValueError(
                f"y: found one class ({found}) among the rows of positive weight, "
                "expected at least two classes"
            )
        numbers = np.searchsorted(self.classes, y)
        # An absent row may have a label beyond all classes: any number will do.
        self.numbers = np.minimum(numbers, len(self.classes) - 1)
        if len(self.classes) == 2:
            self.targets = np.where(self.numbers == 1, 1.0, -1.0)
        else:
            self.targets = self.numbers.astype(np.float64)

    def weigh(self, class_weight: Any, weights: Floats | None) -> Floats | None:
        """Multiply the weights of rows by those of their classes."""
        if class_weight is None:
            return weights
        n_classes = len(self.classes)
        if isinstance(class_weight, str):
            if class_weight != "balanced":
                raise ValueError(
                    f"class_weight: found {class_weight!r}, "
                    "expected 'balanced', a dict or None"
                )
            # The weight of a row counts it: so do the classes.
            totals = np.bincount(self.numbers, weights, minlength=n_classes)
            factors = totals.sum() / (n_classes * totals)
        elif isinstance(class_weight, dict):
            known = self.classes.tolist()
            unknown = [label for label in class_weight if label not in known]
            if len(unknown) == len(class_weight) and unknown:
                raise ValueError(
                    f"class_weight: found no class of y among {unknown}, "
                    f"expected keys from {known}"
                )
            factors = np.array(
                [_class_factor(class_weight.get(k, 1.0), k) for k in known]
            )
        else:
            raise ValueError(
                f"class_weight: found {class_weight!r}, "
                "expected 'balanced', a dict or None"
            )
        of_rows: Floats = factors[self.numbers]
        return of_rows if weights is None else of_rows * weights


def _class_factor(factor: Any, label: Any) -> float:
    number = as_number(f"class_weight[{label!r}]", factor, "a finite number > 0")
    if not (np.isfinite(number) and number > 0):
        raise ValueError(
            f"class_weight[{label!r}]: found {factor!r}, expected a finite number > 0"
        )
    return number


def as_number(name: str, value: Any, expected: str) -> float:
    """Convert a setting to a float; ranges are checked by the core."""
    if isinstance(value, bool | np.bool_ | str | bytes | complex):
        raise TypeError(f"{name}: found {value!r}, expected {expected}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: found {value!r}, expected {expected}") from error


def as_count(name: str, value: Any, expected: str) -> int:
    """Convert a setting to an int."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: found {value!r}, expected {expected}")
    return int(value.__index__())


def as_flag(name: str, value: Any) -> bool:
    """Convert a setting to a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: found {value!r}, expected True or False")
    return bool(value)


def regularisation(C: Any, lam: Any) -> dict[str, float | None]:
    """Resolve the two ways to say how strongly to regularise."""
    if lam is None:
        return {"C": as_number("C", C, "a finite number > 0"), "lam": None}
    if C != 1.0:
        raise ValueError(
            f"C: found {C!r} together with lam={lam!r}, expected only one of the two"
        )
    return {"C": None, "lam": as_number("lam", lam, "a finite number > 0")}


def as_targets(y: NDArray[Any]) -> Floats:
    """Convert the targets of a regression."""
    return np.ascontiguousarray(y, dtype=np.float64)


def loss_shape(loss: LossInfo, loss_param: Any) -> float | None:
    """Check the type of a loss's shape parameter; its range is checked by the core."""
    if loss_param is None:
        return None
    return as_number("loss_param", loss_param, loss.expected or "None")
