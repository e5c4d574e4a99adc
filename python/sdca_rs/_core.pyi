from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Fit",
    "Progress",
    "decision_function",
    "fit",
    "has_duplicates",
    "losses",
    "objectives",
]

# A C-contiguous array, or (data, indices, indptr, n_cols) of a CSR matrix.
_Matrix: TypeAlias = (
    NDArray[np.float64]
    | NDArray[np.float32]
    | tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]
)

class _Loss(TypedDict):
    name: str
    formula: str
    target: str
    link: str
    param: str | None
    default: float | None
    expected: str | None

@final
class Fit:
    @property
    def coef(self) -> NDArray[np.float64]: ...
    @property
    def intercept(self) -> float: ...
    @property
    def dual(self) -> NDArray[np.float64]: ...
    @property
    def objective(self) -> float: ...
    @property
    def dual_objective(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def epochs(self) -> float: ...
    @property
    def stop_reason(self) -> str: ...
    @property
    def mean_q(self) -> float: ...
    @property
    def history(self) -> dict[str, NDArray[Any]]: ...

@final
class Progress:
    @property
    def class_index(self) -> int: ...
    @property
    def epoch(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def primal(self) -> float: ...
    @property
    def dual(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def support(self) -> int: ...
    @property
    def coef(self) -> NDArray[np.float64]: ...
    @property
    def intercept(self) -> float: ...

def losses() -> list[_Loss]: ...
def has_duplicates(X: _Matrix) -> bool: ...
def fit(
    X: _Matrix,
    y: NDArray[np.float64],
    *,
    sample_weight: NDArray[np.float64] | None,
    n_classes: int,
    loss: str,
    loss_param: float | None,
    C: float | None,
    lam: float | None,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    max_time: float | None,
    record_every: float | None,
    sampling: str,
    output: str,
    average_from: float,
    first_epoch: str,
    seed: int,
    n_threads: int,
    start: NDArray[np.float64] | None,
    report: Callable[[Progress], object] | None,
) -> list[Fit]: ...
def objectives(
    X: _Matrix,
    y: NDArray[np.float64],
    *,
    sample_weight: NDArray[np.float64] | None,
    loss: str,
    loss_param: float | None,
    C: float | None,
    lam: float | None,
    fit_intercept: bool,
    coef: NDArray[np.float64],
    intercept: float,
    dual: NDArray[np.float64] | None,
) -> tuple[float, float]: ...
def decision_function(
    X: _Matrix, coef: NDArray[np.float64], intercept: NDArray[np.float64]
) -> NDArray[np.float64]: ...
