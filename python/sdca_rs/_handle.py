"""Data that are checked and prepared once, for as many calls as there may be."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sdca_rs._data import (
    Floats,
    as_matrix,
    as_weights,
    examine,
    is_sparse,
    validate_X,
)

if TYPE_CHECKING:
    from sdca_rs._core import Rows, _Matrix


class Data:
    """Rows that are checked and prepared once, to take the place of ``X``.

    ``fit``, ``partial_fit``, the methods that predict, ``score`` and :func:`certify`
    take it where they take ``X``, with the same results to the last bit. What they
    would do each time is then done once: the checks of the numbers and of the
    structure of a sparse matrix, a conversion if one is needed, and, at the first fit
    that needs it, what depends on rows and weights alone (norms, mean row, column
    statistics). Nothing depends on targets, loss or regularisation: use one for a path
    of ``C``, several losses, or a fit with its certificate and predictions.

    Read more in the user guide.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows. Arrays in C order and CSR matrices (int32 or int64 indices) of float32 or
        float64 are used where they lie; anything else is converted once. Do not change
        them while this object is in use: what has been prepared would not follow, and
        certificates would be of no data at all.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights of the rows, of which a copy is kept. They hold wherever no others are
        given. Others given to ``fit``, and a ``class_weight``, make it find norms and
        mean row afresh for that fit.

    Attributes
    ----------
    shape : tuple of two int
        Numbers of rows and columns.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if all are strings. Estimators take them from here.

    See Also
    --------
    certify : The certificate of any fitted linear model.

    Notes
    -----
    Threads may share it. A pickle holds the rows, and prepares them again when it is
    read.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sdca_rs import Data, Sdca, certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> data = Data(scale(X))
    >>> for C in (0.01, 0.1, 1.0):
    ...     model = Sdca("log", C=C, random_state=0).fit(data, y)
    ...     print(f"{model.objective_:.3f} {model.score(data, y):.3f}")
    0.234 0.954
    0.116 0.981
    0.066 0.988
    >>> bool(certify(model, data, y).gap <= 1e-4 * model.objective_)
    True

    Some of the rows are data again, so that folds can be made of them:

    >>> from sklearn.model_selection import cross_val_score
    >>> model = Sdca("log", random_state=0)
    >>> print(cross_val_score(model, data, y, cv=3).round(2))
    [0.98 0.97 0.97]
    """

    shape: tuple[int, int]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    # No rows, with as many columns, and their names if they have names.
    _columns: Any
    _X: Any
    _weights: Floats | None
    _rows: Rows

    def __init__(self, X: Any, *, sample_weight: ArrayLike | None = None) -> None:
        if isinstance(X, Data):
            raise TypeError("X: found Data, expected an array or a sparse matrix")
        checked = _Checked()
        valid = validate_X(checked, X, reset=True)
        n_rows, n_columns = valid.shape
        self.shape = (int(n_rows), int(n_columns))
        self.n_features_in_ = self.shape[1]
        if hasattr(checked, "feature_names_in_"):
            self._columns = _without_rows(X)
            self.feature_names_in_ = checked.feature_names_in_
        else:
            self._columns = np.empty((0, self.n_features_in_))
        weights = as_weights(sample_weight, self.shape[0])
        # It may be the user's own, which is read each time.
        self._weights = None if weights is None else weights.copy()
        self._X, self._rows = examine(valid, self._weights, keep=True)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Data:
        """Return some of the rows, with their weights, as data of their own.

        Parameters
        ----------
        rows : slice, array-like of int or bool, or one of these and an ellipsis
            The rows, as numpy takes them. They are copied, unless they are a slice of
            an array.

        Returns
        -------
        Data
            The rows.
        """
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            if rows.size == 0:
                rows = rows.astype(np.intp)
            if rows.ndim != 1 or rows.dtype.kind not in "iub":
                raise IndexError(
                    f"rows: found an index of shape {rows.shape} and type "
                    f"{rows.dtype}, expected a slice, integers or a mask"
                )
        part = self._X[rows]
        if part.shape[0] == 0:
            raise IndexError("rows: found none, expected one at least")
        found = object.__new__(Data)
        found.__dict__.update(self.__dict__)
        found.shape = (int(part.shape[0]), self.shape[1])
        found._weights = None if self._weights is None else self._weights[rows].copy()
        found._X, found._rows = examine(part, found._weights, keep=True)
        return found

    def __repr__(self) -> str:
        kind = "sparse" if is_sparse(self._X) else "dense"
        weighted = "" if self._weights is None else ", weighted"
        n_rows, n_columns = self.shape
        return f"<Data: {n_rows} {kind} rows of {n_columns} columns{weighted}>"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_rows"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._X, self._rows = examine(self._X, self._weights, keep=True)


class _Checked(BaseEstimator):  # type: ignore[misc]
    """Receives the attributes that scikit-learn's validation sets."""

    feature_names_in_: NDArray[Any]


# The name that its error messages use.
_Checked.__name__ = "Data"


def _without_rows(X: Any) -> Any:
    head = getattr(X, "head", None)
    # A part of a frame would keep all of it.
    return X if head is None else copy.deepcopy(head(0))


class Given:
    """What a method has been given as ``X``: rows, :class:`Data`, or another of these.

    Rows are examined when they are first asked for, which is after all that is cheaper
    to check.
    """

    # What messages are about, without duplicates once it has been examined.
    X: Any
    n_samples: int
    weights: Floats | None
    _rows: Rows | None

    def __init__(
        self, estimator: Any, X: Any, *, reset: bool, require_finite: bool = True
    ) -> None:
        """Check ``X`` for an estimator as :func:`validate_X` does, as far as needed."""
        if isinstance(X, Data):
            # Their number and names: the rows have been checked.
            validate_data(estimator, X._columns, reset=reset, skip_check_array=True)
            self.X, self.weights, self._rows = X._X, X._weights, X._rows
            self.n_samples = X.shape[0]
        elif isinstance(X, Given):
            validate_data(estimator, X.X, reset=reset, skip_check_array=True)
            self.X, self.weights, self._rows = X.X, X.weights, X._rows
            self.n_samples = X.n_samples
        else:
            self.X = validate_X(
                estimator, X, reset=reset, require_finite=require_finite
            )
            self.weights = self._rows = None
            self.n_samples = int(self.X.shape[0])

    def weigh(self, sample_weight: ArrayLike | None) -> Floats | None:
        """Return the weights that are given or, without any, those of the data."""
        if sample_weight is None:
            return self.weights
        return as_weights(sample_weight, self.n_samples)

    def others(self, weights: Floats | None) -> Floats | None:
        """Return weights for the core, which knows those of the data."""
        return None if weights is self.weights else weights

    def rows(self, *, is_part: bool = False) -> Rows:
        """Return rows to be read often, or the next part of a stream."""
        if self._rows is None:
            _, self._rows = examine(self.X, is_part=is_part)
        return self._rows

    def to_predict(self) -> Rows | _Matrix:
        """Return rows to be read once."""
        return as_matrix(self.X) if self._rows is None else self._rows


def default_weights(X: Any, sample_weight: ArrayLike | None) -> ArrayLike | None:
    """Return the weights that are given or, without any, those of data."""
    if sample_weight is None and isinstance(X, Data):
        return X._weights
    return sample_weight
