"""Draw the figure of the front page from the record of the comparison.

    python benches/front.py

reads ``benches/record/compare-full.json`` and writes ``docs/images/speed.png``: for
each library, the time that its fastest solver takes to within 1e-4 of the optimum, in
units of the time of sdca-rs, one dot for each problem. An open triangle is a bound: the
library had not arrived when it was stopped, after so many times our own time.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from peers import OURS
from report import Row, time_to

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
ACCURACY = 1e-4
# The beginning of a solver's name, and the name of its library.
LIBRARIES = {
    "SGD": "scikit-learn\nSGD",
    "LinearSV": "scikit-learn\nLIBLINEAR",
    "LogisticRegression liblinear": "scikit-learn\nLIBLINEAR",
    "LogisticRegression": "scikit-learn\nlbfgs, saga, …",
    "Ridge": "scikit-learn\nlbfgs, saga, …",
    "liblinear": "LIBLINEAR 2.50",
    "snapml": "Snap ML",
    "cyanure": "Cyanure",
    "skglm": "skglm",
}


def library_of(solver: str) -> str:
    """Return the library of a solver."""
    return next(name for start, name in LIBRARIES.items() if solver.startswith(start))


def ratios(row: Row) -> dict[str, tuple[float, bool]]:
    """Return how many times as long each library takes, and whether it arrived."""
    [ours] = (time_to(row, s, ACCURACY) for s in row["solvers"] if s["solver"] == OURS)
    arrivals: dict[str, float] = {}
    bounds: dict[str, float] = {}
    for solver in row["solvers"]:
        tried = any(fit["objective"] is not None for fit in solver["fits"])
        if solver["solver"] == OURS or not tried:
            continue
        name = library_of(solver["solver"])
        seconds = time_to(row, solver, ACCURACY)
        if np.isfinite(seconds):
            arrivals[name] = min(seconds, arrivals.get(name, np.inf))
        else:
            cap = row["liblinear_cap" if solver["liblinear"] else "peer_cap"]
            bounds[name] = max(cap, bounds.get(name, 0.0))
    found = {name: (seconds / ours, False) for name, seconds in bounds.items()}
    return found | {name: (seconds / ours, True) for name, seconds in arrivals.items()}


def draw(rows: list[Row], path: Path) -> None:
    """Draw one line of dots for each library."""
    by_library: dict[str, list[tuple[float, bool]]] = {}
    for row in rows:
        for name, entry in ratios(row).items():
            by_library.setdefault(name, []).append(entry)
    names = sorted(by_library, key=lambda n: np.median([r for r, _ in by_library[n]]))
    figure, axis = plt.subplots(figsize=(6.2, 3.7), layout="constrained")
    rng = np.random.default_rng(0)
    for height, name in enumerate(reversed(names)):
        entries = by_library[name]
        values = np.array([ratio for ratio, _ in entries])
        arrived = np.array([ok for _, ok in entries])
        at = height + rng.uniform(-0.22, 0.22, len(values))
        faster = arrived & (values < 1)
        for which, style in (
            (arrived & ~faster, {"marker": "o", "color": "#1f6f8b", "alpha": 0.55}),
            (faster, {"marker": "o", "color": "#d1495b"}),
            (~arrived, {"marker": ">", "facecolors": "none", "edgecolors": "#8a8f98"}),
        ):
            axis.scatter(values[which], at[which], s=18, linewidths=0.8, **style)
        median = np.median(values)
        # A bound below the median may stand for a time above it.
        bound = "" if arrived[values <= median].all() else "≥ "
        axis.plot([median, median], [height - 0.36, height + 0.36], "k", lw=1.6)
        axis.annotate(
            f"{bound}{median:.2g}x",
            (1, height),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
        )
    axis.axvline(1, color="#1a936f", lw=2)
    axis.annotate(
        "sdca-rs",
        (1, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        color="#1a936f",
        weight="bold",
    )
    axis.annotate(
        "median",
        (1, 1),
        xycoords="axes fraction",
        xytext=(6, 4),
        textcoords="offset points",
        fontsize=10,
    )
    axis.set(
        xscale="log",
        xlabel="time to within 0.01 % of the optimum, sdca-rs = 1",
        yticks=range(len(names)),
        ylim=(-0.6, len(names) - 0.4),
    )
    axis.set_yticklabels(list(reversed(names)), fontsize=10)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.grid(axis="x", alpha=0.3)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(left=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=180)
    plt.close(figure)


def main() -> None:
    """Read the record and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    record = ROOT / "benches" / "record" / "compare-full.json"
    parser.add_argument("--record", type=Path, default=record)
    picture = ROOT / "docs" / "images" / "speed.png"
    parser.add_argument("--out", type=Path, default=picture)
    args = parser.parse_args()
    run: dict[str, Any] = json.loads(args.record.read_text())
    draw(run["rows"], args.out)
    print(f"picture: {args.out}, {len(run['rows'])} problems")


if __name__ == "__main__":
    main()
