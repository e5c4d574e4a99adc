from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

VERSION: str

__all__ = [
    "VERSION",
    "Fit",
    "Progress",
    "Rows",
    "Solver",
    "Stream",
    "Table",
    "Trained",
    "decision_function",
    "fit",
    "has_duplicates",
    "losses",
    "objectives",
    "partial_fit",
    "predict_classes",
    "read_svmlight",
    "theory_asdca",
    "theory_asdca_theta",
    "theory_pegasos",
    "theory_sdca_lipschitz",
    "theory_sdca_lipschitz_summary",
    "theory_sdca_sgd",
    "theory_sdca_smooth",
    "theory_sdca_smooth_averaged",
    "train_svmlight",
    "write_svmlight",
]

# A C-contiguous array, or (data, indices, indptr, n_cols) of a CSR matrix.
_Matrix: TypeAlias = (
    NDArray[np.float64]
    | NDArray[np.float32]
    | tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]
)

# Coefficients and intercept.
_Model: TypeAlias = tuple[NDArray[np.float64], float]
# The mean row, and five numbers.
_Scales: TypeAlias = tuple[
    NDArray[np.float64], tuple[float, float, float, float, float]
]

# lam, eps, radius and initial_gap.
_Setting: TypeAlias = tuple[float, float, float, float]

class _Loss(TypedDict):
    name: str
    formula: str
    target: str
    link: str
    param: str | None
    default: float | None
    expected: str | None

@final
class Solver:
    @staticmethod
    def sdca(
        *,
        sampling: str,
        output: str,
        average_from: float,
        first_epoch: str,
        accelerate: bool,
        seed: int,
        n_threads: int,
    ) -> Solver: ...
    @staticmethod
    def asdca(
        *,
        batch_size: int,
        sampling: str,
        theta: float | None,
        output: str,
        average_from: float,
        seed: int,
        n_threads: int,
    ) -> Solver: ...
    @staticmethod
    def pegasos(
        *,
        batch_size: int | None,
        sampling: str,
        project: bool,
        learning_rate: str,
        eta0: float | None,
        power_t: float,
        output: str,
        average_from: float,
        seed: int,
        n_threads: int,
    ) -> Solver: ...
    @staticmethod
    def subgradient(
        *,
        learning_rate: str | None,
        eta0: float | None,
        power_t: float,
        output: str | None,
        average_from: float,
        seed: int,
        n_threads: int,
    ) -> Solver: ...
    @staticmethod
    def dual_gradient(
        *,
        step: float | None,
        output: str,
        average_from: float,
        seed: int,
        n_threads: int,
    ) -> Solver: ...

@final
class Table:
    @property
    def data(self) -> NDArray[Any]: ...
    @property
    def indices(self) -> NDArray[Any]: ...
    @property
    def indptr(self) -> NDArray[Any]: ...
    @property
    def targets(self) -> NDArray[np.float64]: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_entries(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def from_one(self) -> bool: ...
    @property
    def labels(self) -> NDArray[np.float64]: ...
    @property
    def label_ends(self) -> NDArray[np.int64]: ...
    @property
    def query_ids(self) -> NDArray[np.int64]: ...

@final
class Trained:
    @property
    def n_rows(self) -> int: ...
    @property
    def n_entries(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def zero_based(self) -> bool: ...
    @property
    def span(self) -> tuple[float, float]: ...
    @property
    def classes(self) -> list[float]: ...
    @property
    def counts(self) -> list[int]: ...
    @property
    def coef(self) -> list[list[float]]: ...
    @property
    def intercept(self) -> list[float]: ...
    @property
    def objective(self) -> list[float]: ...
    @property
    def dual_objective(self) -> list[float]: ...
    @property
    def gap(self) -> list[float]: ...
    @property
    def epochs(self) -> list[float]: ...
    @property
    def steps(self) -> list[float]: ...
    @property
    def stop_reason(self) -> list[str]: ...

@final
class Stream:
    def __new__(
        cls,
        steps: float,
        last: _Model,
        mean: _Model,
        scales: _Scales | None,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[float, _Model, _Model, _Scales | None]: ...
    @property
    def steps(self) -> float: ...
    @property
    def last(self) -> _Model: ...
    @property
    def mean(self) -> _Model: ...

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
    def steps(self) -> float: ...
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
    def cpu_seconds(self) -> float: ...
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

@final
class Rows:
    def __new__(
        cls,
        X: _Matrix,
        *,
        sample_weight: NDArray[np.float64] | None,
        scan: bool,
        find_pattern: bool,
        keep: bool,
    ) -> Self: ...
    @property
    def has_duplicates(self) -> bool: ...

def read_svmlight(
    text: str | NDArray[np.uint8],
    name: str,
    *,
    single: bool,
    multilabel: bool,
    zero_based: bool | None,
    query_id: bool,
    offset: int,
    length: int | None,
    n_threads: int,
) -> Table: ...
def train_svmlight(
    path: str,
    *,
    seed: int,
    classify: bool,
    zero_based: bool | None,
    loss: str,
    loss_param: float | None,
    C: float,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    max_time: float | None,
    n_threads: int,
    report: Callable[[Progress], bool] | None,
    report_after: float,
) -> Trained | None: ...
def write_svmlight(
    X: Rows | _Matrix,
    labels: NDArray[np.float64],
    write: Callable[[bytes], object],
    *,
    label_ends: NDArray[np.int64] | None,
    query_id: NDArray[np.int64] | None,
    zero_based: bool,
    n_threads: int,
) -> None: ...
def losses() -> list[_Loss]: ...
def has_duplicates(X: _Matrix) -> bool: ...
def fit(
    X: Rows | _Matrix,
    y: NDArray[np.float64],
    *,
    solver: Solver,
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
    n_threads: int,
    start: tuple[
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
        NDArray[np.float64],
    ]
    | None,
    report: Callable[[Progress], object] | None,
) -> list[Fit]: ...
def partial_fit(
    X: Rows | _Matrix,
    y: NDArray[np.float64],
    *,
    solver: Solver,
    sample_weight: NDArray[np.float64] | None,
    n_classes: int,
    loss: str,
    loss_param: float | None,
    lam: float,
    fit_intercept: bool,
    streams: list[Stream] | None,
) -> list[Stream]: ...
def objectives(
    X: Rows | _Matrix,
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
    X: Rows | _Matrix,
    coef: NDArray[np.float64],
    intercept: NDArray[np.float64],
    *,
    n_threads: int,
) -> NDArray[np.float64]: ...
def predict_classes(
    X: Rows | _Matrix,
    coef: NDArray[np.float64],
    intercept: NDArray[np.float64],
    *,
    n_threads: int,
) -> NDArray[np.int64]: ...
def theory_sdca_lipschitz(
    n_samples: int, setting: _Setting, lipschitz: float, average_from: float | None
) -> tuple[int, int]: ...
def theory_sdca_lipschitz_summary(
    n_samples: int, setting: _Setting, lipschitz: float
) -> tuple[int, int]: ...
def theory_sdca_sgd(
    n_samples: int, setting: _Setting, lipschitz: float, average_from: float | None
) -> tuple[int, int]: ...
def theory_sdca_smooth(n_samples: int, setting: _Setting, gamma: float) -> int: ...
def theory_sdca_smooth_averaged(
    n_samples: int, setting: _Setting, gamma: float, average_from: float | None
) -> tuple[int, int]: ...
def theory_asdca_theta(
    n_samples: int, batch_size: int, lam: float, gamma: float, radius: float
) -> float: ...
def theory_asdca(
    n_samples: int, batch_size: int, setting: _Setting, gamma: float
) -> int: ...
def theory_pegasos(
    setting: _Setting, lipschitz: float, project: bool, delta: float | None
) -> int: ...
