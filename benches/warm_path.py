"""What warm starts gain along a path of C.

    SDCA_RS_DATA=FOLDER python benches/warm_path.py [--sets A,B] [--losses A,B]

fits ten values of ``C`` from 0.01 to 10, once each by itself (cold) and once with
``warm_start=True``, from the smallest on and from the largest on. The table gives the
seconds of ``fit`` over the whole path, the shortest of ``--repeats`` runs in turns, the
epochs, and the ratio of the seconds, cold / warm: above 1 warm starts gain. Rows are
prepared once for all (``Data``). A set that is missing is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from report import markdown_table
from sets import MissingDataError, is_regression, load

from sdca_rs import Data, Sdca

CLASSIFY = ("hinge", "squared_hinge", "smooth_hinge", "log")
REGRESS = ("squared", "absolute", "huber", "quantile", "epsilon_insensitive")
SETS = ("a9a", "ijcnn1", "covtype", "debian_long_bin", "california_housing", "digits")
PATH = np.geomspace(0.01, 10, 10)


def run(data: Data, y: Any, loss: str, path: Sequence[float], warm: bool) -> Any:
    """Fit the path; return seconds and epochs."""
    model = Sdca(loss, warm_start=warm, random_state=0, max_iter=10_000)
    seconds, epochs = 0.0, 0
    for C in path:
        if not warm:
            model = Sdca(loss, random_state=0, max_iter=10_000)
        model.set_params(C=C)
        start = time.perf_counter()
        model.fit(data, y)
        seconds += time.perf_counter() - start
        epochs += model.n_iter_
    return seconds, epochs


def row(name: str, loss: str, repeats: int) -> list[str]:
    """Measure one set and loss."""
    stored = load(name)
    data = Data(stored.X)
    ways = {
        "cold": (PATH, False),
        "up": (PATH, True),
        "down": (PATH[::-1], True),
    }
    best: dict[str, tuple[float, int]] = {}
    for _ in range(repeats):
        for way, (path, warm) in ways.items():
            found = run(data, stored.y, loss, path, warm)
            best[way] = min(found, best.get(way, found))
    cold = best["cold"]
    line = [name, loss, f"{cold[0]:.3g} s, {cold[1]}"]
    for way in ("up", "down"):
        seconds, epochs = best[way]
        line += [f"{seconds:.3g} s, {epochs}", f"{cold[0] / seconds:.2f}"]
    return line


def main() -> None:
    """Measure, print and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--losses", default=",".join((*CLASSIFY, *REGRESS)))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benches/record"))
    args = parser.parse_args()
    lines = [
        ["set", "loss", "cold", "warm, C rising", "gain", "warm, C falling", "gain"],
        ["---", "---", "---", "---", "---:", "---", "---:"],
    ]
    for name in args.sets.split(","):
        with suppress(MissingDataError):
            wanted = REGRESS if is_regression(name) else CLASSIFY
            for loss in (loss for loss in wanted if loss in args.losses.split(",")):
                lines.append(row(name, loss, args.repeats))
                print(*lines[-1], sep="; ", flush=True)
    head = (
        "# Warm starts along a path of C",
        "Seconds of `fit` and epochs over ten values of C from 0.01 to 10, and how\n"
        "many times as long the cold fits take.",
    )
    text = "\n\n".join((*head, markdown_table(lines)))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "warm-path.md").write_text(text + "\n")
    print("\n" + text)


if __name__ == "__main__":
    main()
