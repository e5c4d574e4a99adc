"""What commands say on standard error. Nothing here takes long to import."""

from __future__ import annotations

import sys

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def say(text: str) -> None:
    """Print a message."""
    print(f"sdca-rs: {text}", file=sys.stderr)


def text_of(value: object) -> str:
    """Write a label or a prediction so that no bit is lost: 1, not 1.0."""
    if isinstance(value, float):
        number = float(value)
        if number.is_integer() and abs(number) < 1e15:
            return str(int(number))
        return repr(number)
    return str(value)


def percent(gap: float, objective: float) -> str:
    """Write how far a model may be above the best."""
    if gap <= 0:
        return "0 %"
    if not 0 < gap <= objective:
        return "any amount"
    share = 100 * gap / objective
    return f"{share:.2g} %" if share < 99 else f"{share:.0f} %"


def shape(n_rows: int, n_columns: int, n_entries: int | None) -> str:
    """Describe a matrix."""
    stored = "" if n_entries is None else f", {n_entries} entries"
    return f"{n_rows} rows, {n_columns} columns{stored}"


def classes(labels: Sequence[object], counts: Sequence[int]) -> str:
    """Describe the classes, if they are few."""
    if len(labels) > 4:
        return f"{len(labels)} classes"
    return "classes " + ", ".join(
        f"{text_of(label)} ({count} rows)"
        for label, count in zip(labels, counts, strict=True)
    )


def certificate(
    objective: Sequence[float],
    dual_objective: Sequence[float],
    reasons: Sequence[str],
    n_iter: int,
) -> str:
    """Describe how a fit ended; of several classes the worst."""
    values = list(zip(objective, dual_objective, strict=True))
    primal, dual = max(values, key=lambda pair: (pair[0] - pair[1]) / (pair[0] or 1.0))
    of_class = f"worst of {len(values)} classes: " if len(values) > 1 else ""
    return (
        f"{', '.join(sorted(set(reasons)))} after {n_iter} epochs: {of_class}objective "
        f"{primal:.6g}, no model is below {dual:.6g}: at most "
        f"{percent(primal - dual, primal)} above the best"
    )


def is_converged(reasons: Sequence[str]) -> bool:
    """Whether all problems reached the tolerance."""
    return set(reasons) <= {"converged", "perfect"}
