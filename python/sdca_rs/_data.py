"""Checks and conversions of data: from what users have to what the core borrows."""

from __future__ import annotations

import re
import reprlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from sdca_rs._core import Rows, has_duplicates
from sdca_rs._losses import LossInfo

if TYPE_CHECKING:
    from sdca_rs._core import _Matrix

Floats = NDArray[np.float64]


def is_sparse(X: Any) -> bool:
    """Whether ``X`` is one of scipy's sparse arrays or matrices."""
    # Not their type predicate, which knows less of them than they are.
    return bool(sp.issparse(X))


def validate_X(
    estimator: Any, X: Any, *, reset: bool, require_finite: bool = True
) -> Any:
    """Check ``X`` as scikit-learn does, before anything is converted.

    C-ordered arrays and CSR matrices of float32 or float64 come back as they are.
    Without ``require_finite``, a fit is to find what is not finite: see
    :func:`naming_not_finite`.
    """
    with naming("X", "numbers in rows and columns"):
        _refuse_masked(X)
        if is_sparse(X):
            X = _safe_sparse(X)
    try:
        # What numpy would warn about on the way is refused by checks that follow.
        with np.errstate(all="ignore"):
            return validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
                ensure_all_finite=require_finite,
            )
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        is_text = "could not convert string" in str(error) and not is_sparse(X)
        found = _find_text(X) if is_text else None
        if found is not None:
            column, text = found
            raise ValueError(
                f"X: found text in column {column!r}, such as {text!r}, expected "
                "numbers: sklearn.preprocessing.OneHotEncoder makes numbers of "
                "categories, within a ColumnTransformer if there are other columns"
            ) from error
        # Its users know scikit-learn's own messages; those of numpy and scipy do not
        # say what they are about.
        if _is_raised_by_scikit_learn(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"X: found something else ({error}), expected numbers in rows and columns"
        ) from error


# Raised in compiled code, which is not seen in a traceback.
_OF_NUMPY = r"could not convert string|float\(\) argument|setting an array element"


def _is_raised_by_scikit_learn(error: BaseException) -> bool:
    """Whether scikit-learn raised the error, and not numpy or scipy, which it calls."""
    is_of_numpy = re.match(_OF_NUMPY, str(error))
    if is_of_numpy or not isinstance(error, TypeError | ValueError):
        return False
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    module = traceback.tb_frame.f_globals.get("__name__", "")
    return str(module).startswith("sklearn.")


def _find_text(X: Any) -> tuple[Any, str] | None:
    """Return the first column that holds text which is no number, and such a text."""
    # A name for each column, of a data frame.
    names = getattr(X, "column_names", getattr(X, "columns", None))
    columns: Iterable[tuple[Any, Any]]
    if names is not None and len(getattr(X, "shape", ())) == 2:
        columns = ((name, np.asarray(X[name])) for name in names)
    else:
        try:
            array = np.asarray(X)
        except ValueError:
            return None
        columns = enumerate(array.T) if array.ndim == 2 else ()
    for name, column in columns:
        if column.dtype.kind not in "OUT":
            continue
        for entry in column.ravel():
            if isinstance(entry, str) and not _is_number(entry):
                return name, str(entry)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@contextmanager
def naming_not_finite(estimator: Any, X: Any) -> Iterator[None]:
    """Say so if what the core cannot go on with are infinities or NaNs in ``X``.

    It finds them as it sums squares, where a pass of their own would take up to a tenth
    of a short fit. The structure of ``X`` must be sound.
    """
    try:
        yield
    except ValueError:
        name = type(estimator).__name__
        # scipy allows spare room behind the last entry, which is none of the matrix.
        values = X.data[: X.indptr[-1]] if is_sparse(X) else X
        try:
            with np.errstate(all="ignore"):
                assert_all_finite(values, input_name="X", estimator_name=name)
        except ValueError as found:
            raise found from None
        raise


def validate_y(y: Any, n_samples: int, *, numeric: bool) -> NDArray[Any]:
    """Check ``y``: one class label or number for each row of ``X``."""
    if y is None:
        raise ValueError(
            "y: found None, expected an array: a fit requires y to be passed, but the "
            "target y is None"
        )
    with naming("y", "class labels, or numbers, one for each row of X"):
        _refuse_masked(y)
        # It costs 30 us, and finds nothing to do in an array of one dimension.
        if type(y) is not np.ndarray or y.ndim != 1:
            y = column_or_1d(y, warn=True)
        if y.dtype.kind in "mM" and np.isnat(y).any():
            raise ValueError("found NaT, which is no time")
        if np.iscomplexobj(y):
            raise ValueError(f"found {y.dtype} numbers. Complex data not supported")
        if numeric:
            y = np.ascontiguousarray(y, dtype=np.float64)
        assert_all_finite(y, input_name="y")
    if len(y) != n_samples:
        raise ValueError(
            f"y: found {len(y)} entries, expected {n_samples}, one for each row of X"
        )
    return cast(NDArray[Any], y)


def _refuse_masked(values: Any) -> None:
    if np.ma.is_masked(values):
        raise ValueError("found a masked array, whose masked entries have no value")


@contextmanager
def naming(argument: str, expected: str) -> Iterator[None]:
    """Make messages of scikit-learn, numpy and scipy name the argument.

    What they warn about on the way, such as numbers beyond float64, is refused by
    checks that follow.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        if type(error) in (TypeError, ValueError) and re.search(
            rf"\b{argument}\b", str(error)
        ):
            raise
        raise kind(
            f"{argument}: found something else ({error}), expected {expected}"
        ) from error


def _safe_sparse(X: Any) -> Any:
    """Return a sparse matrix that scipy can convert without leaving its arrays.

    CSR of float32 or float64 is not converted, and checked by the core. Anything else
    is copied first, so that what has been checked is what will be converted even if
    another thread writes to the user's arrays.
    """
    if X.format == "csr" and X.data.dtype in (np.float32, np.float64):
        return X
    if X.format in ("csr", "csc", "bsr"):
        return _safe_compressed(X)
    if X.format == "lil" and (
        len(X.rows) != X.shape[0] or [*map(len, X.rows)] != [*map(len, X.data)]
    ):
        raise ValueError(
            "found a lil matrix whose rows and data differ in length, expected as many "
            "values as columns in each row"
        )
    if X.format == "dia" and (
        len(X.data) != len(X.offsets) or X.offsets.dtype.kind not in "iu"
    ):
        raise ValueError(
            f"found a dia matrix with {len(X.data)} diagonals and {len(X.offsets)} "
            f"offsets of type {X.offsets.dtype}, expected as many integers"
        )
    copy = X.copy()
    if copy.format == "coo":
        for axis, size in ((copy.row, X.shape[0]), (copy.col, X.shape[-1])):
            if axis.shape != copy.data.shape:
                raise ValueError(
                    f"found a coo matrix with {len(axis)} coordinates for "
                    f"{len(copy.data)} values, expected as many"
                )
            if axis.size and not 0 <= axis.min() <= axis.max() < size:
                raise ValueError(
                    f"found a coo matrix with coordinates from {axis.min()} to "
                    f"{axis.max()}, expected 0 <= coordinate < {size}"
                )
    return copy


def _safe_compressed(X: Any) -> Any:
    """Copy a CSR, CSC or BSR matrix and check its structure by the core.

    scipy's own check misses row pointers whose differences wrap around.
    """
    data, indices, indptr = (np.array(X.data), np.array(X.indices), np.array(X.indptr))
    n_major, n_minor = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        if data.ndim != 3 or 0 in data.shape[1:]:
            raise ValueError(
                f"X.data: found shape {data.shape}, expected blocks in three dimensions"
            )
        n_major, n_minor = n_major // data.shape[1], n_minor // data.shape[2]
    else:
        data = _flat("data", data, n_major)
    indices, indptr = _flat("indices", indices, 0), _flat("indptr", indptr, n_major)
    if indptr.shape != (n_major + 1,):
        raise ValueError(
            f"X.indptr: found shape {indptr.shape}, expected {(n_major + 1,)}"
        )
    if n_major and n_minor:
        has_duplicates((np.zeros(len(data), np.float32), indices, indptr, n_minor))
    return type(X)((data, indices, indptr), shape=X.shape)


def as_matrix(X: Any) -> _Matrix:
    """Hand a validated ``X`` to the core without copying it, to be read once."""
    return _as_tuple(X) if is_sparse(X) else cast("_Matrix", _ready(X))


def examine(
    X: Any, weights: Floats | None = None, *, is_part: bool = False, keep: bool = False
) -> tuple[Any, Rows]:
    """Have the core look through a validated ``X``, once.

    Returns what it has been given with that. Duplicate entries of a CSR matrix are
    summed in a copy: the norm of a row cannot be had from its parts. With ``keep``,
    what fits find out is kept for others; a part of a stream is read only once.
    """
    matrix = as_matrix(X)

    def rows(*, scan: bool) -> Rows:
        return Rows(
            matrix,
            sample_weight=weights,
            scan=scan,
            find_pattern=not is_part,
            keep=keep,
        )

    examined = rows(scan=True)
    if examined.has_duplicates:
        data, indices, indptr = (np.array(part) for part in matrix[:3])
        # Once more, on arrays that nobody else can write.
        has_duplicates((data, indices, indptr, X.shape[1]))
        X = sp.csr_array((data, indices, indptr), shape=X.shape)
        X.sum_duplicates()
        matrix = as_matrix(X)
        examined = rows(scan=False)
    return X, examined


def _as_tuple(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]:
    data, indices, indptr = (
        _ready(_flat(name, getattr(X, name), X.shape[0]))
        for name in ("data", "indices", "indptr")
    )
    if indptr.shape != (X.shape[0] + 1,):
        raise ValueError(
            f"X.indptr: found shape {indptr.shape}, expected {(X.shape[0] + 1,)}, "
            "one more than rows"
        )
    return data, indices, indptr, X.shape[1]


def _flat(name: str, array: Any, rows: int) -> NDArray[Any]:
    if array.ndim != 1:
        raise ValueError(
            f"X.{name}: found shape {array.shape}, expected one dimension ({rows + 1},)"
            if name == "indptr"
            else f"X.{name}: found shape {array.shape}, expected one dimension"
        )
    if name == "data" or array.dtype in (np.int32, np.int64):
        return cast(NDArray[Any], array)
    if array.dtype.kind not in "iu":
        raise TypeError(f"X.{name}: found {array.dtype}, expected integers")
    return cast(NDArray[Any], array.astype(np.int64))


def _ready(array: NDArray[Any]) -> NDArray[Any]:
    return np.require(array, requirements=["C", "A"])


def assert_labels(classes: Any) -> NDArray[Any]:
    """Check that class labels are in one dimension, and none of them missing."""
    labels = np.asarray(classes)
    if labels.ndim != 1:
        raise ValueError(f"found shape {labels.shape}")
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="classes")
    return labels


def as_weights(sample_weight: ArrayLike | None, n_samples: int) -> Floats | None:
    """Convert sample weights to an array, and a number to equal weights."""
    if sample_weight is None:
        return None
    with naming("sample_weight", "numbers"):
        _refuse_masked(sample_weight)
        weights = np.asarray(sample_weight)
        if weights.dtype.kind == "c":
            raise TypeError(f"{weights.dtype}")
        weights = weights.astype(np.float64, copy=False)
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
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.finfo(np.float64).tiny <= total < np.inf:
        raise ValueError(
            f"sample_weight: found a sum of {total:g}, expected one that is neither "
            "infinite nor subnormal"
        )
    return np.ascontiguousarray(weights)


class Labels:
    """Classes and the targets that the core is given for them.

    A row of weight 0 counts as absent: it does not make a class.
    """

    classes: NDArray[Any]
    targets: Floats

    def __init__(
        self, y: NDArray[Any], weights: Floats | None, classes: Any = None
    ) -> None:
        """Find the classes of ``y``, or look for its labels among ``classes``."""
        two = _two_numbers(y) if weights is None and classes is None else None
        if two is not None:
            self.classes, is_second = two
            self.targets = np.where(is_second, 1.0, -1.0)
            self.numbers = is_second.view(np.int8)
            return
        with naming("y", "class labels, or numbers, one for each row of X"):
            # The first rows tell scikit-learn what `y` is, but for fractions. Of more,
            # some versions would warn: see `warn_of_many_classes`.
            kind = type_of_target(y[:20], input_name="y")
            if y.dtype.kind == "f" and (y != np.floor(y)).any():
                kind = "continuous"
            if kind not in ("binary", "multiclass"):
                raise ValueError(
                    f"Unknown label type: {kind}. Maybe you are trying to fit a "
                    "classifier, which expects discrete classes on a regression target "
                    "with continuous values."
                )
        present = y if weights is None else y[weights > 0]
        with naming("y", "class labels of one type"):
            self.classes = np.unique(present) if classes is None else classes
            is_known = classes is None or np.isin(present, classes).all()
        if not is_known:
            unknown = np.setdiff1d(present, self.classes).tolist()
            raise ValueError(f"y: found {unknown}, expected labels of {classes}")
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
        with np.errstate(all="ignore"):
            of_rows = self._factors(class_weight, weights)[self.numbers]
            product = of_rows if weights is None else of_rows * weights
            total = product.sum()
        if not np.isfinite(total):
            raise ValueError(
                f"class_weight: found {class_weight!r}, with which the sum of the "
                f"weights of rows is {total}, expected a finite one"
            )
        return product

    def _factors(self, class_weight: Any, weights: Floats | None) -> Floats:
        n_classes = len(self.classes)
        if isinstance(class_weight, str):
            if class_weight != "balanced":
                raise ValueError(
                    f"class_weight: found {class_weight!r}, "
                    "expected 'balanced', a dict or None"
                )
            # The weight of a row counts it: so do the classes.
            totals = np.bincount(self.numbers, weights, minlength=n_classes)
            factors: Floats = totals.sum() / (n_classes * totals)
            return factors
        if isinstance(class_weight, Mapping):
            known = self.classes.tolist()
            unknown = [label for label in class_weight if label not in known]
            if len(unknown) == len(class_weight) and unknown:
                raise ValueError(
                    f"class_weight: found no class of y among {unknown}, "
                    f"expected keys from {known}"
                )
            return np.array([_class_factor(class_weight.get(k, 1.0), k) for k in known])
        raise ValueError(
            f"class_weight: found {class_weight!r}, expected 'balanced', a dict or None"
        )


def weighed_labels(
    y: NDArray[Any], weights: Floats | None, class_weight: Any
) -> tuple[Labels, Floats | None]:
    """Return classes and the weights of rows with those of their classes.

    A class of weight 0 is absent, as all of its rows are.
    """
    labels = Labels(y, weights)
    weights = labels.weigh(class_weight, weights)
    if isinstance(class_weight, Mapping) and 0 in class_weight.values():
        assert weights is not None
        left = np.unique(y[weights > 0]).tolist()
        if len(left) < 2:
            found = f"one class ({left[0]!r})" if left else "no class"
            raise ValueError(
                f"class_weight: found {class_weight!r}, which leaves {found}, expected "
                "at least two classes of positive weight"
            )
        labels = Labels(y, weights)
    return labels, weights


# Beyond this many classes, fewer rows of each on average make numbers look like values.
_MANY_CLASSES = 20
_FEW_ROWS = 5


def warn_of_many_classes(
    labels: Labels, weights: Floats | None, loss: str, *, stacklevel: int
) -> None:
    """Warn if labels look like the target values of a regression.

    scikit-learn warns from half as many classes as rows on. For numbers that is too
    late: most data for regression have more rows than values.
    """
    n_classes = len(labels.classes)
    if n_classes <= _MANY_CLASSES:
        return
    n_rows = len(labels.targets)
    if weights is not None:
        n_rows = int(np.count_nonzero(weights))
    are_numbers = labels.classes.dtype.kind in "iuf"
    if n_rows >= (_FEW_ROWS if are_numbers else 2) * n_classes:
        return
    warnings.warn(
        f"y: found {n_classes} classes in {n_rows} rows, expected far fewer for the "
        f"loss {loss!r}. `y` could represent a regression problem, not a "
        "classification problem: that is for SdcaRegressor, or a loss such as "
        "'squared'",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def _two_numbers(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """Return the two classes of ``y``, if whole numbers, and where the second is.

    scikit-learn's functions find the same, but take several times as long.
    """
    if y.dtype.kind not in "biuf" or not y.size:
        return None
    low, high = y.min(), y.max()
    if low == high or low != np.floor(low) or high != np.floor(high):
        return None
    is_high = y == high
    if not (is_high | (y == low)).all():
        return None
    return np.array([low, high], dtype=y.dtype), is_high


def _class_factor(factor: Any, label: Any) -> float:
    number = as_number(f"class_weight[{label!r}]", factor, "a finite number >= 0")
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(
            f"class_weight[{label!r}]: found {factor!r}, expected a finite number >= 0"
        )
    return number


def one_vs_rest(labels: Labels) -> list[Floats]:
    """Return the targets of each binary problem, as the core makes them."""
    if len(labels.classes) == 2:
        return [labels.targets]
    return [
        np.where(labels.numbers == k, 1.0, -1.0) for k in range(len(labels.classes))
    ]


def as_number(name: str, value: Any, expected: str) -> float:
    """Convert a setting to a float; ranges are checked by the core."""
    if isinstance(
        value, bool | np.bool_ | str | bytes | bytearray | complex | np.complexfloating
    ):
        raise TypeError(f"{name}: found {value!r}, expected {expected}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: found {value!r}, expected {expected}") from error
    except OverflowError as error:
        raise ValueError(
            f"{name}: found {reprlib.repr(value)}, expected {expected}"
        ) from error


def as_count(name: str, value: Any, expected: str) -> int:
    """Convert a setting to an int."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: found {value!r}, expected {expected}")
    count = int(value.__index__())
    if not -(2**63) <= count < 2**63:
        raise ValueError(
            f"{name}: found {reprlib.repr(count)}, expected {expected} below 2^63"
        )
    return count


def as_flag(name: str, value: Any) -> bool:
    """Convert a setting to a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: found {value!r}, expected True or False")
    return bool(value)


def regularisation(C: Any, lam: Any) -> tuple[float | None, float | None]:
    """Resolve the two ways to say how strongly to regularise: one of them is None."""
    if lam is None:
        return as_number("C", C, "a finite number > 0"), None
    if not (isinstance(C, int | float) and C == 1.0):
        raise ValueError(
            f"C: found {C!r} together with lam={lam!r}, expected only one of the two"
        )
    return None, as_number("lam", lam, "a finite number > 0")


def lam_of(
    C: float | None, lam: float | None, n_samples: int, weights: Floats | None
) -> float:
    """Return lambda for what :func:`regularisation` has resolved."""
    if lam is not None:
        return lam
    assert C is not None
    return 1.0 / (C * (n_samples if weights is None else float(weights.sum())))


def loss_shape(loss: LossInfo, loss_param: Any) -> float | None:
    """Check the type of a loss's shape parameter; its range is checked by the core."""
    if loss_param is None:
        return None
    return as_number("loss_param", loss_param, loss.expected or "None")


def with_constant(X: Any, value: float) -> Any:
    """Append a column of a constant."""
    parts: list[Any] = [X, np.full((X.shape[0], 1), value, dtype=X.dtype)]
    return sp.hstack(parts, format="csr") if is_sparse(X) else np.hstack(parts)
