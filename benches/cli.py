"""Time ``sdca-rs train`` against LIBLINEAR's ``train``: read, train and save.

Run ``python benches/cli.py`` with ``liblinear-train`` (Debian's liblinear-tools) or
``train`` on the PATH, or its place in ``LIBLINEAR_TRAIN``. The data are a9a, if
``SDCA_RS_DATA`` names a folder with it, otherwise generated rows of its size, and a
generated file of a million rows. ``--out FILE`` also writes the table there.

Both minimise the same objective, without an intercept, each with its default tolerance.
How far their models are from the best is what ``sdca-rs certify`` prints for both. Runs
take turns; the shortest counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import sets

import sdca_rs

# LIBLINEAR's solver types for a loss: that on the dual, and that on the primal, which
# stops early by default, so also with a tenth of its tolerance.
TYPES = {
    "log": ("-s 7", "-s 0", "-s 0 -e 0.001"),
    "squared_hinge": ("-s 1", "-s 2", "-s 2 -e 0.001"),
    "hinge": ("-s 3",),
}
OURS = (sys.executable, "-m", "sdca_rs")


class Run(NamedTuple):
    """What a process took: seconds, and seconds of processors."""

    wall: float
    cpu: float


def generated(n_rows: int, n_columns: int, per_row: int) -> tuple[Any, Any]:
    """Make sparse rows and labels of a noisy linear model."""
    rng = np.random.default_rng(0)
    columns = np.minimum(
        (n_columns * rng.random((n_rows, per_row)) ** 2).astype(np.int32), n_columns - 1
    )
    values = rng.random((n_rows, per_row)).round(4) + 1e-4
    indptr = np.arange(0, n_rows * per_row + 1, per_row)
    X = sp.csr_matrix((values.ravel(), columns.ravel(), indptr), (n_rows, n_columns))
    X.sum_duplicates()
    score = X @ rng.normal(size=n_columns) + 0.5 * rng.normal(size=n_rows)
    return X, np.where(score > np.median(score), 1.0, -1.0)


def liblinear() -> str:
    """Return the program."""
    given = os.environ.get("LIBLINEAR_TRAIN")
    found = given or shutil.which("liblinear-train") or shutil.which("train")
    if found is None:
        sys.exit("liblinear-train: found none; see the head of this file")
    return found


def timed(command: tuple[str, ...]) -> Run:
    """Run a program."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return Run(wall, usage.ru_utime + usage.ru_stime)


def peak(command: tuple[str, ...]) -> float:
    """Return the largest size of a program in MB; a large parent would count."""
    code = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    small = (sys.executable, "-S", "-c", code, *command)
    done = subprocess.run(small, capture_output=True, check=True)
    return int(done.stdout) / 1e3


def above(data: Path, model: Path, loss: str, C: float) -> str:
    """Return how far a model is above the best, at most."""
    command = [*OURS, "certify", data, model, "-c", f"{C}", "-l", loss, "-e", "1e-7"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"at most (\S+) % above", done.stdout)
    return found[1] if found else "?"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--losses", nargs="*", default=list(TYPES), choices=TYPES)
    parser.add_argument("-c", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=10**6, help="of the large file")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    program = liblinear()
    lines = [
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, "
        f"sdca-rs {sdca_rs.__version__}, {args.turns} turns, "
        f"{time.strftime('%Y-%m-%d')}. C = {args.c:g}, no intercept, default "
        "tolerances. Read, train and save.",
        "",
        "| data | MB | loss | command | s | of processors | MB at most "
        "| above the best at most |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data in files(folder, args.rows):
            for loss in args.losses:
                lines += rows(data, loss, args.c, program, args.turns)
                print(f"{data.stem}, {loss}: done", file=sys.stderr)
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if args.out is not None:
        args.out.write_text(text)


def files(folder: Path, n_rows: int) -> list[Path]:
    """Write the data."""
    try:
        a9a = sets.load("a9a")
        small = a9a.X, a9a.y
    except sets.MissingDataError:
        small = generated(32_561, 123, 14)
    large = generated(n_rows, 20_000, 12)
    paths = []
    for name, (X, y) in (("a9a", small), (f"{n_rows} rows", large)):
        paths.append(folder / f"{name}.svm".replace(" ", "-"))
        sdca_rs.dump_svmlight_file(X, y, paths[-1], zero_based=False)
    return paths


def rows(data: Path, loss: str, C: float, program: str, turns: int) -> list[str]:
    """Time the commands in turns, and describe each in a line."""
    ours, other = data.with_suffix(".json"), data.with_suffix(".model")
    common = ("-c", f"{C}", str(data))
    plain = (*OURS, "train", "-q", "-l", loss, "--no-intercept", *common, str(ours))
    commands = {
        f"`sdca-rs train -l {loss} --no-intercept`": (plain, ours),
        f"`sdca-rs train -l {loss} --no-intercept -j 1`": ((*plain, "-j", "1"), ours),
    }
    for options in TYPES[loss]:
        theirs = (program, "-q", *options.split(), *common, str(other))
        commands[f"`liblinear-train {options}`"] = (theirs, other)
    times: dict[str, list[Run]] = {name: [] for name in commands}
    gaps, sizes = {}, {}
    for turn in range(turns):
        for name, (command, model) in commands.items():
            times[name].append(timed(command))
            if turn == 0:
                gaps[name], sizes[name] = above(data, model, loss, C), peak(command)
    size = data.stat().st_size / 1e6
    lines = []
    for name, runs in times.items():
        wall, cpu = (min(run[k] for run in runs) for k in (0, 1))
        lines.append(
            f"| {data.stem} | {size:.0f} | {loss} | {name} | {wall:.3f} | "
            f"{cpu:.3f} | {sizes[name]:.0f} | {gaps[name]} % |"
        )
    return lines


if __name__ == "__main__":
    main()
