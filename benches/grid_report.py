"""Report on the convergence grid: counts, lists, a table and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from report import markdown_table

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgb
from matplotlib.patches import Patch

Cell = dict[str, Any]
Fit = dict[str, Any]
Run = dict[str, Any]
Colour = tuple[float, float, float]

# Promised relative gaps of the default and the exact fits.
TARGET, EXACT = 1e-4, 1e-9
# Cells with at most this many columns are counted separately: default settings should
# suffice there.
FEW_COLUMNS = 3000
# How much longer than the plain algorithm the default may take where the latter is
# quick; differences below the slack, in seconds, are noise.
RATIO, SLACK = 1.2, 1e-3

GREEN, GREY, BLACK = "#3a9d5d", "#c8c8c8", "#222222"
REDS = LinearSegmentedColormap.from_list("reds", ["#fdd9a0", "#f08a3c", "#a50f15"])
SHADES = LogNorm(TARGET, 1, clip=True)

CONVENTIONS = """\
Data raw as stored, nothing scaled; seconds of `fit` alone, one thread, each fit in a
process of its own. `P(w, b) = mean(loss) + |w|^2 / (2 C n)`, computed by one function
outside the solvers. *Certified*: the fit with default settings (and `max_time`)
returned a relative duality gap of at most 1e-4, and the objective that it names is that
of its model. *Solved by scikit-learn*: the default of its estimator for this loss came
within 1e-4, relatively, of the lowest objective that any fit of the cell found.
LinearSVC and LinearSVR regularise their intercept, so that with an intercept they solve
a slightly different problem: that they miss this one there is no fault of theirs. For
smooth_hinge, huber and quantile scikit-learn has no estimator of this objective."""


def seconds_of(fit: Fit) -> float:
    """Return the time of a fit, infinite if it never returned."""
    return float(fit.get("seconds", np.inf))


def relative_gap(fit: Fit) -> float:
    """Return the gap relative to the objective, infinite if there is no gap."""
    primal, gap = fit.get("primal", np.inf), fit.get("gap", np.inf)
    if not np.isfinite(primal + gap):
        return np.inf
    if gap <= 0:
        return 0.0
    return float(gap / primal) if primal > 0 else np.inf


def is_certified(fit: Fit, tol: float = TARGET) -> bool:
    """Return whether a fit proved the target for the model that it returned."""
    return bool(fit.get("agrees", False)) and relative_gap(fit) <= tol


def lowest(cell: Cell) -> float:
    """Return the lowest known objective."""
    found = (fit.get("objective") for fit in cell["fits"].values())
    return min((value for value in found if value is not None), default=np.inf)


def distance(cell: Cell, fit: Fit) -> float:
    """Return the relative distance of a model from the lowest objective."""
    objective, best = fit.get("objective"), lowest(cell)
    if objective is None:
        return np.inf
    if objective <= best:
        return 0.0
    return float(objective / best - 1) if best > 0 else np.inf


def is_slower(cell: Cell) -> bool:
    """Return whether the default takes longer than it should."""
    default, plain = (cell["fits"].get(kind, {}) for kind in ("default", "plain"))
    both = "seconds" in default and plain.get("end") == "converged"
    return both and seconds_of(default) > RATIO * seconds_of(plain)


def contradictions(cell: Cell) -> list[str]:
    """List contradicted certificates: a bug, here or in the solver."""
    found = []
    for kind, fit in cell["fits"].items():
        if "primal" not in fit:
            continue
        if not fit["agrees"]:
            found.append(
                f"{kind}: names the objective {fit['primal']!r}, but that of its model "
                f"is {fit['objective']!r}"
            )
        elif lowest(cell) < fit["primal"] - fit["gap"] - EXACT * abs(fit["primal"]):
            found.append(
                f"{kind}: proves the bound {fit['primal'] - fit['gap']!r}, but a model "
                f"has the objective {lowest(cell)!r}"
            )
        tol = EXACT if kind == "exact" else TARGET
        if fit["end"] == "converged" and relative_gap(fit) > tol:
            found.append(
                f"{kind}: says converged with the gap {fit['gap']!r} of objective "
                f"{fit['primal']!r}"
            )
    return found


def cell_name(cell: Cell) -> str:
    """Name a cell."""
    intercept = "intercept" if cell["intercept"] else "no intercept"
    return f"{cell['set']}, {cell['loss']}, C = {cell['C']:g}, {intercept}"


def fit_text(fit: Fit) -> str:
    """Describe how one of our fits ended."""
    if "primal" not in fit:
        return ended(fit)
    return (
        f"{fit['end']}, relative gap {relative_gap(fit):.1e}, {fit['n_iter']} epochs, "
        f"{fit['seconds']:.3g} s"
    )


def ended(fit: Fit) -> str:
    """Say why there is no model."""
    if fit["end"] == "killed":
        return f"killed after {fit['limit']:g} s"
    return " ".join(str(fit["end"]).split())


def cell_line(cell: Cell) -> str:
    """Describe a cell in one line of progress output."""
    parts = [cell_name(cell)]
    for kind, fit in cell["fits"].items():
        if kind == "sklearn":
            text = f"distance {distance(cell, fit):.1e}, {seconds_of(fit):.3g} s"
            parts.append(f"{kind}: {text if 'seconds' in fit else ended(fit)}")
        else:
            parts.append(f"{kind}: {fit_text(fit)}")
    return " | ".join(parts + [f"CONTRADICTION {c}" for c in contradictions(cell)])


def markdown(run: Run) -> str:
    """Return facts, conventions, summary and table."""
    facts, cells = run["facts"], run["cells"]
    head = (
        f"# The convergence grid: {run['label']}\n\n"
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, "
        f"{facts['system']}, Python {facts['python']}, threads: {facts['threads']}, "
        f"max_time: {run['cap']:g} s, max_iter: {run['max_iter']}, scikit-learn is "
        f"killed after {run['peer_cap']:g} s, {facts['date']}.\n"
        + ", ".join(f"{name} {v}" for name, v in facts["versions"].items())
        + "."
    )
    missing = [f"- {k} is missing: {v}" for k, v in run["missing_sets"].items()]
    parts = [head, CONVENTIONS, "\n".join(missing), summary(cells), table(cells)]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(cells: Sequence[Cell]) -> str:
    """Say how often each promise is kept, and where it is not."""
    lines = ["## Summary", ""]
    wrong = [f"{cell_name(c)}: {text}" for c in cells for text in contradictions(c)]
    if wrong:
        lines += listing(f"**CONTRADICTED CERTIFICATES: {len(wrong)}**", wrong)
    few = [cell for cell in cells if cell["n_columns"] <= FEW_COLUMNS]
    many = [cell for cell in cells if cell["n_columns"] > FEW_COLUMNS]
    for part, what in ((few, "at most"), (many, "more than")):
        lines += kept_lines(
            part, "default", TARGET, f"certified, {what} {FEW_COLUMNS} columns"
        )
    lines += kept_lines(cells, "exact", EXACT, "certified to 1e-9 with tol=1e-9")
    lines += plain_lines(cells)
    lines += sklearn_lines(cells)
    return "\n".join(lines)


def listing(head: str, items: Sequence[str]) -> list[str]:
    """Return a point and those below it."""
    return [f"- {head}" + (":" if items else "."), *(f"  - {item}" for item in items)]


def kept_lines(cells: Iterable[Cell], kind: str, tol: float, what: str) -> list[str]:
    """Count the certified cells, and say how the others ended."""
    tried = [cell for cell in cells if kind in cell["fits"]]
    if not tried:
        return []
    failed = [cell for cell in tried if not is_certified(cell["fits"][kind], tol)]
    return listing(
        f"{what}: {len(tried) - len(failed)} of {len(tried)} cells",
        [f"{cell_name(cell)}: {fit_text(cell['fits'][kind])}" for cell in failed],
    )


def plain_lines(cells: Iterable[Cell]) -> list[str]:
    """Compare with the plain algorithm where that converges in few epochs."""
    quick = [c for c in cells if c["fits"].get("plain", {}).get("end") == "converged"]
    if not quick:
        return []
    slower = [cell for cell in quick if is_slower(cell)]

    def times(cell: Cell) -> tuple[float, float]:
        return seconds_of(cell["fits"]["default"]), seconds_of(cell["fits"]["plain"])

    items, within_slack = [], 0
    for cell in slower:
        ours, plain = times(cell)
        within_slack += ours - plain <= SLACK
        if ours - plain > SLACK:
            items.append(
                f"{cell_name(cell)}: {ours:.3g} s against {plain:.3g} s, "
                f"{ours / plain:.2f} times"
            )
    lines = listing(
        f"plain SDCA converges within 50 epochs in {len(quick)} cells; the default "
        f"takes at most {RATIO:g} times as long in {len(quick) - len(slower)} of them, "
        f"longer but by less than {SLACK * 1e3:g} ms in {within_slack}, and longer by "
        f"more in {len(items)}",
        items,
    )
    ratios = [np.divide(*times(cell)) for cell in quick]
    return [*lines, f"- median time of the default / plain there: {median(ratios)}."]


def sklearn_lines(cells: Iterable[Cell]) -> list[str]:
    """Compare with scikit-learn, where it solves a cell and where not."""
    lines: list[str] = []
    solved, unsolved = [], []
    tried = [cell for cell in cells if "sklearn" in cell["fits"]]
    for intercept in (False, True):
        part = [cell for cell in tried if cell["intercept"] == intercept]
        n_solved = warned = killed = 0
        for cell in part:
            peer, ours = cell["fits"]["sklearn"], cell["fits"]["default"]
            certified = is_certified(ours)
            seconds = seconds_of(ours) if certified else np.inf
            if distance(cell, peer) <= TARGET:
                n_solved += 1
                solved.append(seconds / peer["seconds"])
            else:
                warned += "ConvergenceWarning" in peer.get("warnings", ())
                killed += peer["end"] == "killed"
                given_up = peer.get("seconds", peer.get("limit"))
                if given_up is not None:
                    unsolved.append(seconds / given_up)
        if part:
            lines.append(
                f"- scikit-learn's defaults solve {n_solved} of {len(part)} cells "
                f"with{'' if intercept else 'out'} an intercept; in the others they "
                f"warn in {warned} and are killed in {killed}."
            )
    for ratios, where in (
        (solved, "scikit-learn in cells that it solves"),
        (unsolved, "scikit-learn's time to give up in those that it does not"),
    ):
        if ratios:
            lines.append(
                f"- median time of ours / {where}: {median(ratios)} ({len(ratios)} "
                f"cells, {sum(np.isinf(ratios))} in which ours is not certified count "
                "as infinite)."
            )
    return lines


def median(values: Sequence[float]) -> str:
    """Write a median and quartiles."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], method="nearest")
    return f"{middle:.3g} (quartiles {low:.2g} and {high:.2g})"


def rows_of(cells: Iterable[Cell]) -> list[tuple[str, str]]:
    """Return sets and losses in the order of their appearance, set by set."""
    losses: dict[str, dict[str, None]] = {}
    for cell in cells:
        losses.setdefault(cell["set"], {})[cell["loss"]] = None
    return [(name, loss) for name, of_set in losses.items() for loss in of_set]


def columns_of(cells: Iterable[Cell]) -> list[tuple[bool, float]]:
    """Return the combinations of intercept and C, sorted."""
    return sorted({(cell["intercept"], cell["C"]) for cell in cells})


def by_place(cells: Iterable[Cell]) -> dict[tuple[str, str, bool, float], Cell]:
    """Return the cells by row and column."""
    return {(c["set"], c["loss"], c["intercept"], c["C"]): c for c in cells}


def table(cells: Sequence[Cell]) -> str:
    """Return a line for each set and loss, a column for each C and intercept."""
    columns, places = columns_of(cells), by_place(cells)
    head = ["set", "loss"]
    head += [f"{C:g}{', b' if intercept else ''}" for intercept, C in columns]
    lines = [head, ["---"] * len(head)]
    for row in rows_of(cells):
        found = (places.get((*row, *column)) for column in columns)
        lines.append([*row, *("" if c is None else marks(c) for c in found)])
    return (
        "## All cells\n\n"
        "Columns: C, and b if there is an intercept. Ours / scikit-learn: seconds if "
        "certified or solved; else in brackets the relative gap or distance that was "
        "reached, with T for `max_time`, I for `max_iter`, W for a ConvergenceWarning, "
        "K for killed and X for failed or crashed; - if there is no such estimator.\n\n"
        + markdown_table(lines)
    )


def marks(cell: Cell) -> str:
    """Write the result of a cell as briefly as possible."""
    letters = {"max_time": "T", "max_iter": "I", "killed": "K", "converged": "!"}
    ours, peer = cell["fits"]["default"], cell["fits"].get("sklearn")
    if is_certified(ours):
        mark = f"{ours['seconds']:.2g}"
    else:
        mark = bracket(relative_gap(ours), letters.get(ours["end"], "X"))
    if peer is None:
        return f"{mark} / -"
    if distance(cell, peer) <= TARGET:
        return f"{mark} / {peer['seconds']:.2g}"
    warned = "W" if "ConvergenceWarning" in peer.get("warnings", ()) else ""
    letter = warned if "seconds" in peer else letters.get(peer["end"], "X")
    return f"{mark} / {bracket(distance(cell, peer), letter)}"


def bracket(reached: float, letter: str) -> str:
    """Write what was reached instead of the target, and why the fit ended."""
    number = f"{reached:.0e}" if np.isfinite(reached) else ""
    return f"({' '.join(part for part in (number, letter) if part)})"


def draw(run: Run, path: Path) -> None:
    """Draw our grid next to that of scikit-learn."""
    cells = run["cells"]
    rows, columns = rows_of(cells), columns_of(cells)
    height = 2.6 + 0.19 * len(rows)
    figure, axes = plt.subplots(
        1,
        2,
        figsize=(max(4.2 + 0.7 * len(columns), 9), height),
        sharey=True,
        layout="constrained",
    )
    titles = (f"sdca-rs: {n_text(cells, ours_good)} certified", sklearn_title(cells))
    for axis, title, colour in zip(
        axes, titles, (ours_colour, sklearn_colour), strict=True
    ):
        draw_grid(axis, by_place(cells), rows, columns, colour)
        axis.set_title(title, fontsize=9)
    label_rows(axes[0], rows)
    bar = figure.colorbar(
        mpl.cm.ScalarMappable(SHADES, REDS),
        ax=axes,
        location="bottom",
        shrink=0.6,
        aspect=50,
        pad=0.1 / height,
        extend="max",
    )
    bar.set_label(
        "not reached: relative gap (left), relative distance to the lowest "
        "objective (right)",
        fontsize=8,
    )
    bar.ax.tick_params(labelsize=7)
    figure.legend(
        handles=[
            Patch(color=GREEN, label="certified / solved to 1e-4"),
            Patch(color=BLACK, label="no model (killed, crashed, not finite)"),
            Patch(color=GREY, label="no such estimator, or not tried"),
        ],
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        frameon=False,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def ours_good(cell: Cell) -> bool:
    """Return whether the default fit of a cell is certified."""
    return is_certified(cell["fits"]["default"])


def n_text(cells: Sequence[Cell], good: Callable[[Cell], bool]) -> str:
    """Write how many of the cells are good."""
    return f"{sum(good(cell) for cell in cells)} of {len(cells)}"


def sklearn_title(cells: Iterable[Cell]) -> str:
    """Write how many of the cells that it supports scikit-learn solves."""
    tried = [cell for cell in cells if "sklearn" in cell["fits"]]
    good = n_text(tried, lambda c: distance(c, c["fits"]["sklearn"]) <= TARGET)
    return f"scikit-learn's default: {good} solved"


def ours_colour(cell: Cell) -> Colour:
    """Return the colour of one of our cells."""
    fit = cell["fits"]["default"]
    return to_rgb(GREEN) if is_certified(fit) else shade(relative_gap(fit))


def sklearn_colour(cell: Cell) -> Colour:
    """Return the colour of a cell of scikit-learn."""
    fit = cell["fits"].get("sklearn")
    if fit is None:
        return to_rgb(GREY)
    reached = distance(cell, fit)
    return to_rgb(GREEN) if reached <= TARGET else shade(reached)


def shade(reached: float) -> Colour:
    """Return a red that is darker the farther the target."""
    return to_rgb(REDS(SHADES(reached)) if np.isfinite(reached) else BLACK)


def draw_grid(
    axis: Any,
    places: dict[tuple[str, str, bool, float], Cell],
    rows: Sequence[tuple[str, str]],
    columns: Sequence[tuple[bool, float]],
    colour: Callable[[Cell], Colour],
) -> None:
    """Draw a square for each cell, and lines between the sets."""
    picture = np.ones((len(rows), len(columns), 3))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            if cell := places.get((*row, *column)):
                picture[i, j] = colour(cell)
    axis.imshow(picture, aspect="auto", interpolation="nearest")
    axis.set_xticks(range(len(columns)), [f"{C:g}" for _, C in columns], fontsize=7)
    axis.set_yticks([])
    axis.tick_params(length=0)
    axis.hlines(np.arange(len(rows)) - 0.5, *axis.get_xlim(), color="white", lw=0.8)
    axis.vlines(np.arange(len(columns)) - 0.5, *axis.get_ylim(), color="white", lw=0.8)
    for i in starts([name for name, _ in rows])[1:]:
        axis.axhline(i - 0.5, color="black", lw=0.8)
    edges = [*starts([intercept for intercept, _ in columns]), len(columns)]
    for first, end in pairwise(edges):
        if first:
            axis.axvline(first - 0.5, color="black", lw=1.6)
        text = "intercept" if columns[first][0] else "no intercept"
        axis.annotate(
            f"C, {text}",
            ((first + end - 1) / 2, 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -18),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8,
        )


def starts(values: Sequence[object]) -> list[int]:
    """Return where values differ from those before them."""
    return [i for i, value in enumerate(values) if not i or value != values[i - 1]]


def label_rows(axis: Any, rows: Sequence[tuple[str, str]]) -> None:
    """Write the losses beside the rows, and the sets beside those."""
    axis.set_yticks(range(len(rows)), [loss for _, loss in rows], fontsize=7)
    edges = [*starts([name for name, _ in rows]), len(rows)]
    for first, end in pairwise(edges):
        axis.annotate(
            rows[first][0],
            (0, (first + end - 1) / 2),
            xycoords=("axes fraction", "data"),
            xytext=(-95, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8,
        )
