"""Time the svmlight reader and writer against scikit-learn's, in turns.

Run ``python benches/svmlight.py`` for a generated file of about 130 MB, or name files
or sets of ``sets.py``: ``SDCA_RS_DATA=F python benches/svmlight.py covtype``.
``--out FILE`` also writes the table there.

A turn reads the file with each reader, and the median of the ratios of the turns
counts: what else the machine does meanwhile slows both.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sets
import sklearn
from sklearn import datasets

import sdca_rs


def generated() -> tuple[Any, Any]:
    """Make rows of the size of covtype: 580 thousand with 12 entries of 16 digits."""
    rng = np.random.default_rng(0)
    X = sp.random(580_000, 54, 12 / 54, "csr", random_state=rng)
    return X, rng.choice([-1.0, 1.0], X.shape[0])


def file_of(name: str | None, folder: Path) -> Path:
    """Return a file with these data."""
    if name is not None and Path(name).is_file():
        return Path(name)
    if name is None:
        X, y = generated()
    else:
        data = sets.load(name)
        X, y = data.X, data.y
    path = folder / f"{name or 'generated'}.svm"
    sdca_rs.dump_svmlight_file(X, y, path, zero_based=False)
    return path


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the time that work takes, and that of the processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    taken = time.perf_counter() - wall, time.process_time() - cpu
    del result
    return taken


def peak(module: str, path: Path) -> float:
    """Return what reading the file adds to a process at most, in MB (on Linux)."""
    code = (
        f"from {module} import load_svmlight_file as load; "
        "status = lambda: open('/proc/self/status').read(); "
        "peak = lambda: int(status().split('VmHWM:')[1].split()[0]); "
        f"before = peak(); load({str(path)!r}); print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return int(done.stdout) / 1e3


def row(
    path: Path,
    what: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    n: int,
) -> str:
    """Time two functions in turns."""
    ours()
    turns = [(seconds(ours), seconds(theirs)) for _ in range(n)]
    wall, cpu = (
        statistics.median(turn[1][k] / turn[0][k] for turn in turns) for k in (0, 1)
    )
    best = [min(turn[side][0] for turn in turns) for side in (0, 1)]
    size = path.stat().st_size / 1e6
    return (
        f"| {path.stem} | {size:.0f} | {what} | {best[0]:.3f} | {best[1]:.3f} | "
        f"{wall:.1f} | {cpu:.1f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="files or data sets")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--no-write", action="store_true", help="time the readers only")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines = [
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, "
        f"sdca-rs {sdca_rs.__version__}, scikit-learn {sklearn.__version__}, "
        f"{args.turns} turns, {time.strftime('%Y-%m-%d')}",
        "",
        "| file | MB | what | ours s | scikit-learn s | ratio | of processor time |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    memory = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names or [None]:
            path = file_of(name, Path(folder))
            X, y = sdca_rs.load_svmlight_file(path)
            A, b = datasets.load_svmlight_file(path)
            assert (X != A).nnz == 0
            assert (y == b).all()
            size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes) / 1e6
            del A, b
            lines.append(
                row(
                    path,
                    "read",
                    lambda path=path: sdca_rs.load_svmlight_file(path),
                    lambda path=path: datasets.load_svmlight_file(path),
                    args.turns,
                )
            )
            ours, theirs = (peak(m, path) for m in ("sdca_rs", "sklearn.datasets"))
            memory.append(f"| {path.stem} | {size:.0f} | {ours:.0f} | {theirs:.0f} |")
            if not args.no_write:
                target = Path(folder) / "out.svm"

                def write(dump: Any, X: Any = X, y: Any = y, to: Path = target) -> None:
                    dump(X, y, str(to), zero_based=False)

                lines.append(
                    row(
                        path,
                        "write",
                        lambda: write(sdca_rs.dump_svmlight_file),
                        lambda: write(datasets.dump_svmlight_file),
                        min(args.turns, 3),
                    )
                )
    lines += [
        "",
        "Memory that reading adds to a process, in MB:",
        "",
        "| file | the result | ours | scikit-learn |",
        "| --- | --- | --- | --- |",
        *memory,
    ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if args.out is not None:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
