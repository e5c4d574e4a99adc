"""What each mechanism of the acceleration earns: fits with one of them switched off.

The extension is compiled with the feature ``ablation``, once, below ``build/ablation``;
then the environment names the mechanisms that are not used. A row is a data set, loss,
``C`` and tolerance, scaled and without an intercept, or (``raw``) as stored and with
one. Where a fit without a mechanism has the same epochs, objective and gap, it never
came into play, and the ratio is 1 without a look at the clock. Elsewhere it is the
processor time without over the processor time with it, the shortest of up to three
turns each. A fit without a mechanism is stopped at three times the time of the one with
it: then the row is lost, and its ratio a lower bound.

    python benches/ablation.py                     all rows, in random order
    python benches/ablation.py --without Momentum,Sample --sets a9a,mnist
    python benches/ablation.py --minutes 40

Data are looked for in the folder that SDCA_RS_DATA names. The table is printed, and
written to ``ablation-LABEL.md`` and ``.json`` in the folder of ``--out``.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import random
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from compare import THREAD_VARIABLES

# Before anything is imported that would start threads.
os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))

import numpy as np
from package import compile_package
from sets import BUNDLED, FULL, ONLY_RAW, MissingDataError, load, load_raw, losses_of

ROOT = Path(__file__).resolve().parent.parent
MECHANISMS = (
    "ShortPasses",
    "Momentum",
    "OuterLoop",
    "Newton",
    "NewtonFromZero",
    "Columns",
    "Sample",
    "Rows",
    "ConjugateGradients",
    "PredictedDual",
    "ModifiedSgd",
)
# Fits that take longer than this are left out, and turns that end sooner are repeated.
LONGEST, SHORT = 6.0, 0.3


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    lists: dict[str, Any] = {"type": lambda text: text.split(","), "metavar": "A,B,.."}
    parser.add_argument("--without", **lists, default=list(MECHANISMS))
    parser.add_argument("--sets", **lists, help="default: all")
    parser.add_argument("--minutes", type=float, default=1e9, help="then it ends")
    parser.add_argument("--label", default="full")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "ablation")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


@functools.cache
def data_of(name: str, raw: bool) -> Any:
    """Load a data set, once."""
    return (load_raw if raw else load)(name)


def fit(job: dict[str, Any], without: str, cap: float) -> dict[str, Any]:
    """Make a fit without the mechanisms that are named."""
    import sdca_rs

    os.environ["SDCA_RS_WITHOUT"] = without
    data = data_of(job["set"], job["raw"])
    model = sdca_rs.Sdca(
        job["loss"],
        C=job["C"],
        tol=job["tol"],
        fit_intercept=job["raw"],
        max_time=cap,
        random_state=0,
    )
    begun, cpu_begun = time.perf_counter(), time.process_time()
    model.fit(data.X, data.y)
    gap = np.max(np.divide(model.duality_gap_, model.objective_))
    return {
        "seconds": time.process_time() - cpu_begun,
        "wall": time.perf_counter() - begun,
        "is_certified": bool(gap <= job["tol"] * (1 + 1e-9)),
        "result": [float(np.sum(model.n_iter_)), float(np.sum(model.objective_)), gap],
    }


def jobs(sets: list[str] | None) -> list[dict[str, Any]]:
    """Return all rows, in random order."""
    found = []
    for raw in (False, True):
        for name in (*FULL, *(ONLY_RAW if raw else ()), *BUNDLED):
            if sets is not None and name not in sets:
                continue
            tols = (1e-4,) if raw else (1e-4, 1e-6)
            strengths = (1.0, 100.0, 1e4) if raw else (0.01, 1.0, 100.0, 1e4)
            for loss, c, tol in itertools.product(losses_of(name), strengths, tols):
                job = {"set": name, "loss": loss, "C": c, "tol": tol, "raw": raw}
                found.append(job)
    random.Random(5).shuffle(found)
    return found


def measure(job: dict[str, Any], mechanisms: list[str]) -> dict[str, Any] | None:
    """Make the fits of a row."""
    with_all = fit(job, "", LONGEST)
    if with_all["wall"] > LONGEST or not with_all["is_certified"]:
        return None
    turns = 3 if with_all["seconds"] < SHORT else 1
    cap = 3 * with_all["wall"] + 0.2
    shortest, rows = with_all["seconds"], {}
    for name in mechanisms:
        without = fit(job, name, cap)
        if without["result"] == with_all["result"]:
            rows[name] = {"ratio": 1.0, "same": True, "is_certified": True}
            continue
        times = [without["seconds"]]
        for _ in range(turns - 1):
            shortest = min(shortest, fit(job, "", LONGEST)["seconds"])
            times.append(fit(job, name, cap)["seconds"])
        certified = without["is_certified"]
        rows[name] = {"seconds": min(times), "same": False, "is_certified": certified}
    for row in rows.values():
        if not row["same"]:
            row["ratio"] = row["seconds"] / shortest
    return {"job": job, "seconds": shortest, "without": rows}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table as Markdown."""
    head = (
        "without",
        "geometric mean",
        "rows that differ",
        "in these",
        "largest",
        "lost",
    )
    lines = [" | ".join(("", *head, "")).strip(), "|" + "---|" * len(head)]
    for name in dict.fromkeys(name for row in rows for name in row["without"]):
        found = [row["without"][name] for row in rows if name in row["without"]]
        ratios = np.array([one["ratio"] for one in found])
        differ = np.array([not one["same"] for one in found])
        among = np.exp(np.mean(np.log(ratios[differ]))) if differ.any() else 1.0
        cells = (
            name,
            f"{np.exp(np.mean(np.log(ratios))):.3f}",
            f"{differ.sum()} of {len(found)}",
            f"{among:.2f}",
            f"{ratios.max():.1f}",
            str(sum(not one["is_certified"] for one in found)),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def work(args: argparse.Namespace) -> None:
    """Measure in the process that has the package on its path."""
    warnings.simplefilter("ignore")
    until = time.monotonic() + 60 * args.minutes
    rows: list[dict[str, Any]] = []
    for job in jobs(args.sets):
        if time.monotonic() > until:
            break
        try:
            data_of(job["set"], job["raw"])
        except MissingDataError:
            continue
        row = measure(job, args.without)
        if row is not None:
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    path = args.out / f"ablation-{args.label}"
    path.with_suffix(".json").write_text(json.dumps(rows))
    text = table(rows)
    path.with_suffix(".md").write_text(text + "\n")
    print(text)


def main() -> None:
    """Build, and measure in a process of its own."""
    args = arguments()
    if args.worker:
        work(args)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    folder = ROOT / "build" / "ablation"
    package = compile_package(
        ROOT, folder / "target", folder / "package", "python,ablation"
    )
    environment = dict(os.environ, PYTHONPATH=str(package))
    command = [sys.executable, __file__, "--worker", *sys.argv[1:]]
    raise SystemExit(subprocess.call(command, env=environment))


if __name__ == "__main__":
    main()
