"""Tables and pictures of the measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from measure import ACCURACIES
from peers import OURS, SNAPML

mpl.use("Agg")
import matplotlib.pyplot as plt

Row = dict[str, Any]
Run = dict[str, Any]

CONVENTIONS = """\
Time of `fit` alone, in seconds, conversion of the data included, until the objective
is within the given relative distance of the lowest that any solver found in that row.
The objective of every model is computed by one function, outside the solvers:
P(w) = mean(loss) + |w|^2 / (2 C n). There is no intercept, as LIBLINEAR would
regularise it. Tolerances are swept from 1e-1 to 1e-10 by factors of 10, or of 3.2 where
fits take less than half a second (for SGD and Snap ML the number of passes, by a factor
of 1.5); the shortest fit that is accurate enough counts. Fits of less than 0.2 s are
done three times and the shortest time counts. No fit is meant to exceed the cap, nor a
peer's fit twice the time in which ours proves 1e-6, or ten times for LIBLINEAR through
scikit-learn (but 0.5 s are granted): for a peer that does not arrive by then the table
gives a bound.
Imports and the compilation of skglm take place before, on tiny data. A row is measured
by one process in one run; with ``--resume`` a table can be of several."""


def best_objective(row: Row) -> float:
    """Return the lowest objective of a row."""
    return min(value for solver in row["solvers"] for _, value in _points(solver))


def _points(solver: dict[str, Any]) -> list[tuple[float, float]]:
    """Return seconds and objective of all fits that gave a model."""
    fits = solver["fits"]
    return [(f["seconds"], f["objective"]) for f in fits if f["objective"] is not None]


def time_to(row: Row, solver: dict[str, Any], accuracy: float) -> float:
    """Return the seconds of the shortest fit that is accurate enough, or infinity."""
    best = best_objective(row)
    reached = (s for s, value in _points(solver) if value - best <= accuracy * best)
    return min(reached, default=np.inf)


def ours_and_peers(row: Row, accuracy: float) -> tuple[float, dict[str, float]]:
    """Return our time, and those of all others."""
    times = {s["solver"]: time_to(row, s, accuracy) for s in row["solvers"]}
    return times.pop(OURS, np.inf), times


def first_of(times: dict[str, float]) -> tuple[str, float]:
    """Return the fastest and its time."""
    return min(times.items(), key=lambda item: item[1], default=("none", np.inf))


def liblinear_time(row: Row, accuracy: float) -> float:
    """Return the time of LIBLINEAR through scikit-learn in the better of its forms."""
    forms = (s for s in row["solvers"] if s["liblinear"])
    return min((time_to(row, s, accuracy) for s in forms), default=np.inf)


def ratio_text(
    peer: float, ours: float, row: Row, *, peer_cap: str = "peer_cap"
) -> str:
    """Say how many times longer the peer takes; a bound if one hits its cap."""
    if np.isinf(peer) and np.isinf(ours):
        return "-"
    if np.isinf(peer):
        return f"> {row[peer_cap] / ours:.3g}"
    if np.isinf(ours):
        return f"< {peer / row['cap']:.2g}"
    return f"{peer / ours:.3g}"


def seconds_text(seconds: float) -> str:
    """Write a time, or a dash if it is unknown."""
    return "-" if np.isinf(seconds) else f"{seconds:.3g}"


def row_name(row: Row) -> str:
    """Name a row."""
    return f"{row['set']}, {row['loss']}, C = {row['C']:g}"


def markdown(run: Run) -> str:
    """Return facts, conventions, table and summary."""
    parts = [facts_text(run), CONVENTIONS]
    if run["facts"]["threads"] > 1:
        parts += [threads_table(run)]
    else:
        rows = run["rows"]
        parts += [summary(rows), brief_table(rows), table(rows), accuracy_table(rows)]
    parts += [failures(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def facts_text(run: Run) -> str:
    """Describe machine and libraries."""
    facts = run["facts"]
    versions = ", ".join(f"{name} {v}" for name, v in facts["versions"].items())
    return (
        f"# Time to accuracy: {run['label']}\n\n"
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, "
        f"{facts['system']}, Python {facts['python']}, threads: {facts['threads']}, "
        f"cap: {run['cap']:g} s, {facts['date']}.\n{versions}."
    )


def brief_table(rows: Sequence[Row]) -> str:
    """Return a line for each set and loss: our time, and the best peer's."""
    by_C = sorted({row["C"] for row in rows})
    places = {(row["set"], row["loss"], row["C"]): row for row in rows}
    head = ["set", "loss"]
    for C in by_C:
        head += [f"C = {C:g}: ours, s", "peer / ours, 1e-4", "1e-6"]
    lines = [head, ["---"] * len(head)]
    for name, loss in dict.fromkeys((row["set"], row["loss"]) for row in rows):
        line = [name, loss]
        for C in by_C:
            row = places.get((name, loss, C))
            line += ["", "", ""] if row is None else brief(row)
        lines.append(line)
    text = (
        "Seconds of ours to 1e-4, and the time of the fastest peer to 1e-4 and to 1e-6"
    )
    text += " in\nunits of ours: above 1 ours is first."
    return f"## In short\n\n{text}\n\n{markdown_table(lines)}"


def brief(row: Row) -> list[str]:
    """Write our time to 1e-4, and the fastest peer's relative to ours."""
    cells = [seconds_text(ours_and_peers(row, 1e-4)[0])]
    for accuracy in (1e-4, 1e-6):
        ours, peers = ours_and_peers(row, accuracy)
        cells.append(ratio_text(first_of(peers)[1], ours, row))
    return cells


def table(rows: Sequence[Row]) -> str:
    """Return one line for each row."""
    head = ["set", "loss", "C"]
    for target in ("1e-4", "1e-6"):
        head += [f"ours to {target}", "best peer", "its time", "peer / ours"]
    head += ["LIBLINEAR in sklearn / ours, 1e-4", "peers without 1e-4"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        line = [row["set"], row["loss"], f"{row['C']:g}"]
        for accuracy in (1e-4, 1e-6):
            ours, peers = ours_and_peers(row, accuracy)
            name, seconds = first_of(peers)
            line += [
                seconds_text(ours),
                "-" if np.isinf(seconds) else name,
                seconds_text(seconds),
                ratio_text(seconds, ours, row),
            ]
        ours, _ = ours_and_peers(row, 1e-4)
        theirs = liblinear_time(row, 1e-4)
        ratio = ratio_text(theirs, ours, row, peer_cap="liblinear_cap")
        line += [ratio, without(row)]
        lines.append(line)
    return "## All rows\n\n" + markdown_table(lines)


def markdown_table(lines: Iterable[Sequence[str]]) -> str:
    """Join cells."""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def without(row: Row) -> str:
    """List the peers that do not reach 1e-4, each with the reason."""
    late = [s for s in row["solvers"] if np.isinf(time_to(row, s, 1e-4))]
    return "; ".join(f"{s['solver']} ({s['end'].partition(':')[0]})" for s in late)


def accuracy_table(rows: Sequence[Row]) -> str:
    """Return the times of all solvers to all accuracies."""
    head = ["set", "loss", "C", "solver", *(f"{a:.0e}" for a in ACCURACIES), "end"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        for solver in row["solvers"]:
            times = [seconds_text(time_to(row, solver, a)) for a in ACCURACIES]
            key = [row["set"], row["loss"], f"{row['C']:g}", solver["solver"]]
            lines.append([*key, *times, solver["end"].replace("\n", " ")[:60]])
    return "## All solvers\n\n" + markdown_table(lines)


def summary(rows: Sequence[Row]) -> str:
    """Count the rows in which we are first, and say where we are not."""
    lines = ["## Summary", ""]
    for accuracy in (1e-4, 1e-6):
        first, lost, nobody = [], [], 0
        for row in rows:
            ours, peers = ours_and_peers(row, accuracy)
            name, seconds = first_of(peers)
            if np.isinf(ours) and np.isinf(seconds):
                nobody += 1
            elif ours <= seconds:
                first.append(row)
            else:
                ratio = ratio_text(seconds, ours, row)
                lost.append(f"  - {row_name(row)}: {name}, peer / ours {ratio}")
        lines.append(
            f"- to {accuracy:.0e} {OURS} is first in {len(first)} of {len(rows)} rows"
            f" ({nobody} in which nobody arrives)"
            + ("; a peer is first in:" if lost else ".")
        )
        lines += lost
    return "\n".join([*lines, speed_up(rows)])


def speed_up(rows: Sequence[Row]) -> str:
    """Return the geometric mean of the speed-up over LIBLINEAR in scikit-learn."""
    ratios, bounds = [], 0
    for row in rows:
        ours, theirs = ours_and_peers(row, 1e-4)[0], liblinear_time(row, 1e-4)
        offered = any(s["liblinear"] for s in row["solvers"])
        if not offered or (np.isinf(ours) and np.isinf(theirs)):
            continue
        bounds += np.isinf(ours) or np.isinf(theirs)
        ratios.append(min(theirs, row["liblinear_cap"]) / min(ours, row["cap"]))
    if not ratios:
        return ""
    mean = np.exp(np.mean(np.log(ratios)))
    return (
        f"- geometric mean of LIBLINEAR in scikit-learn (the better of dual and primal)"
        f" / {OURS} to 1e-4, {len(ratios)} rows: {mean:.3g}. In {bounds} of them one of"
        " the two does not arrive and counts as if it took the cap; rows where neither"
        " does are left out."
    )


def threads_table(run: Run) -> str:
    """Compare several threads with one, for ours and the best of Snap ML."""
    threads = run["facts"]["threads"]
    head = ["set", "loss", "C", "accuracy"]
    for name in (OURS, SNAPML):
        head += [f"{name}, 1", f"{name}, {threads}", "speed-up"]
    lines = [head, ["---"] * len(head)]
    for row in run["rows"]:
        for accuracy in (1e-4, 1e-6):
            line = [row["set"], row["loss"], f"{row['C']:g}", f"{accuracy:.0e}"]
            for name in (OURS, SNAPML):
                one, several = (
                    best_of(row, accuracy, name, threaded) for threaded in (False, True)
                )
                ratio = ratio_text(one, several, row)
                line += [seconds_text(one), seconds_text(several), ratio]
            lines.append(line)
    return markdown_table(lines)


def best_of(row: Row, accuracy: float, library: str, threaded: bool) -> float:
    """Return the shortest time of a library's solvers with one or several threads."""
    return min(
        (
            time_to(row, s, accuracy)
            for s in row["solvers"]
            if s["solver"].startswith(library)
            and s["solver"].endswith("threads") == threaded
        ),
        default=np.inf,
    )


def failures(run: Run) -> str:
    """Say what is missing, and why."""
    lines = [f"- {name}: {why}" for name, why in run["missing_sets"].items()]
    seen: dict[str, list[str]] = {}
    for row in run["rows"]:
        for s in row["solvers"]:
            if s["end"].startswith(("failed", "skipped", "not installed")):
                reason = s["end"].replace("\n", " ")
                seen.setdefault(f"{s['solver']}: {reason}", []).append(row_name(row))
    lines += [f"- {why} [{'; '.join(where)}]" for why, where in seen.items()]
    return "## Missing\n\n" + "\n".join(lines) if lines else ""


def draw(run: Run, path: Path) -> None:
    """Draw time against accuracy, one panel per row, with our line thick."""
    rows = run["rows"]
    names = list(dict.fromkeys(s["solver"] for row in rows for s in row["solvers"]))
    styles = dict(zip(names, _styles(), strict=False))
    columns = min(6, len(rows))
    lines = -(-len(rows) // columns)
    figure, axes = plt.subplots(
        lines,
        columns,
        figsize=(max(3 * columns, 9), 2.6 * lines + 1.4),
        layout="constrained",
        squeeze=False,
    )
    for axis in axes.flat[len(rows) :]:
        axis.set_axis_off()
    handles: dict[str, Any] = {}
    for axis, row in zip(axes.flat, rows, strict=False):
        handles |= draw_row(axis, row, styles)
    figure.supxlabel("relative distance to the lowest objective of the row")
    figure.supylabel("seconds of fit")
    shown = [name for name in names if name in handles]
    figure.legend(
        handles=[handles[name] for name in shown],
        labels=shown,
        loc="outside upper center",
        ncols=max(3, columns),
        fontsize=7,
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _styles() -> list[dict[str, Any]]:
    colors = mpl.color_sequences["tab10"]
    styles: list[dict[str, Any]] = [{"color": "black", "lw": 2.8, "zorder": 5}]
    return styles + [
        {"color": color, "lw": 1.0, "ls": dash}
        for dash in ("-", "--", ":")
        for color in colors
    ]


def draw_row(axis: Any, row: Row, styles: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Draw the shortest time to every accuracy that a solver reached."""
    best, handles = best_objective(row), {}
    for solver in row["solvers"]:
        points = [
            (max(value / best - 1, 1e-9), seconds)
            for seconds, value in _points(solver)
            if value < 2 * best
        ]
        # Starting with the most accurate, keep only fits shorter than all before.
        frontier: list[tuple[float, float]] = []
        for distance, seconds in sorted(points):
            if not frontier or seconds < frontier[-1][1]:
                frontier.append((distance, seconds))
        if frontier:
            (handles[solver["solver"]],) = axis.plot(
                *zip(*frontier, strict=True),
                marker="." if len(frontier) == 1 else None,
                **styles[solver["solver"]],
            )
    axis.set(xscale="log", yscale="log", xlim=(0.3, 5e-10))
    axis.set_title(row_name(row), fontsize=7)
    axis.tick_params(labelsize=6)
    axis.grid(alpha=0.3)
    return handles
