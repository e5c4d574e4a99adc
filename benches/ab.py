"""Compare the speed of two revisions of sdca-rs, fit by fit, in one run.

Each revision is checked out and compiled with the release profile, once, below
``build/ab``; ``.`` is the current working tree. One process for each revision then runs
the same fits. The two take turns and alternate who goes first, because the speed of the
machine may drift. A row is one data set, loss, ``C``, tolerance and number of threads.
Its ratio is the shortest time of the base divided by the shortest of the head, so above
1 the head is faster; the quartiles of the ratios of single turns are shown next to it.
With one thread, times are those of the processor.

Epochs, stop reason and objective are compared too; any difference is reported.

    python benches/ab.py HEAD~1
    python benches/ab.py BASE --head . --sets a9a,skin --C 1,100 --repeats 9
    python benches/ab.py BASE --study          the other solvers, for some epochs
    python benches/ab.py BASE --raw            data as stored, with an intercept

Data are read from the folder in SDCA_RS_DATA. The table is printed and written to
``build/ab/LABEL.md``, or to the file given by ``--out``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from compare import THREAD_VARIABLES

# Before any import that would start threads.
os.environ.update(dict.fromkeys(THREAD_VARIABLES, "2"))

import numpy as np
from package import compile_package
from sets import BUNDLED, FULL, ONLY_RAW, MissingDataError, load, load_raw, losses_of

ROOT = Path(__file__).resolve().parent.parent
# Number of epochs with --study, which times steps, not convergence.
STUDY_EPOCHS = 5
STUDY: dict[str, dict[str, Any]] = {
    "Pegasos": {"batch_size": 1},
    "Asdca": {"batch_size": 100},
    "Subgradient": {},
    "DualGradient": {},
}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", nargs="?", help="the revision to compare with")
    parser.add_argument("--head", default=".", help="default: the working tree")
    lists: dict[str, Any] = {"type": lambda text: text.split(","), "metavar": "A,B,.."}
    parser.add_argument("--sets", **lists, help="default: all")
    parser.add_argument("--losses", **lists, help="default: those of the set")
    parser.add_argument("--C", **lists, default=["0.01", "1", "100"])
    parser.add_argument("--tol", **lists, default=["1e-4", "1e-6"])
    parser.add_argument("--threads", **lists, default=["1"])
    parser.add_argument("--raw", action="store_true", help="nothing scaled, intercept")
    parser.add_argument("--study", action="store_true", help="the other solvers")
    parser.add_argument("--repeats", type=int, default=5, help="turns (default: 5)")
    parser.add_argument(
        "--cap",
        type=float,
        default=10.0,
        help="seconds of a row after which no more turns begin (default: 10)",
    )
    parser.add_argument("--out", type=Path, help="file for the table")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def build(revision: str) -> Path:
    """Compile a revision; return the folder to add to the path."""
    if revision == ".":
        name, source = "tree", ROOT
    else:
        command = ["git", "rev-parse", "--short=12", f"{revision}^{{commit}}"]
        name = subprocess.check_output(command, cwd=ROOT, text=True).strip()
        source = ROOT / "build" / "ab" / f"source-{name}"
        if not source.exists():
            source.parent.mkdir(parents=True, exist_ok=True)
            command = ["git", "worktree", "prune"]
            subprocess.check_call(command, cwd=ROOT)
            command = ["git", "worktree", "add", "--detach", str(source), name]
            subprocess.check_call(command, cwd=ROOT)
    folder = ROOT / "build" / "ab"
    return compile_package(
        source, folder / f"target-{name}", folder / f"package-{name}"
    )


class Worker:
    """A process that runs fits with one of the two revisions."""

    def __init__(self, package: Path) -> None:
        """Start it."""
        environment = dict(os.environ, PYTHONPATH=str(package))
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run a fit, and return its time and result."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process ended at {job}")
        result: dict[str, Any] = json.loads(answer)
        return result


def work() -> None:
    """Run the fits that are requested on standard input."""
    import sdca_rs

    warnings.simplefilter("ignore")
    for line in sys.stdin:
        job = json.loads(line)
        data = (load_raw if job["raw"] else load)(job["set"])
        solver = getattr(sdca_rs, job["solver"])
        settings = dict(job["settings"], random_state=job["seed"])
        model = solver(job["loss"], **settings)
        # What else the machine does counts less in the time that the processor takes.
        n_jobs = settings.get("n_jobs", 1)
        clock = time.thread_time if n_jobs == 1 else time.perf_counter
        begun = clock()
        model.fit(data.X, data.y)
        seconds = clock() - begun
        answer = {
            "seconds": seconds,
            "epochs": float(np.max(model.n_iter_)),
            "objective": float(np.sum(model.objective_)),
            "stop": str(model.stop_reason_),
        }
        print(json.dumps(answer), flush=True)


def jobs(args: argparse.Namespace, name: str) -> list[dict[str, Any]]:
    """Return the rows of a data set."""
    chosen = []
    losses = [loss for loss in losses_of(name) if loss in (args.losses or [loss])]
    for loss, c in itertools.product(losses, args.C):
        common = {"set": name, "loss": loss, "raw": args.raw}
        if args.study:
            for solver, settings in STUDY.items():
                if solver == "Asdca" and loss in ("hinge", "absolute"):
                    continue
                fixed = {"C": float(c), "tol": 0.0, "max_iter": STUDY_EPOCHS}
                fixed |= settings
                chosen.append(dict(common, solver=solver, settings=fixed))
            continue
        for tol, threads in itertools.product(args.tol, args.threads):
            settings = {
                "C": float(c),
                "tol": float(tol),
                "n_jobs": int(threads),
                "fit_intercept": args.raw,
                "max_time": 60.0,
            }
            chosen.append(dict(common, solver="Sdca", settings=settings))
    return chosen


def measure(
    job: dict[str, Any], workers: tuple[Worker, Worker], args: argparse.Namespace
) -> dict[str, Any]:
    """Run the fits of a row in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    same, last = True, []
    begun = time.perf_counter()
    for turn in range(args.repeats):
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        answers: dict[int, dict[str, Any]] = {}
        for k in order:
            answers[k] = workers[k].ask(dict(job, seed=turn))
            times[k].append(answers[k].pop("seconds"))
        last = [answers[0], answers[1]]
        close = abs(last[0]["objective"] - last[1]["objective"])
        scale = max(abs(last[0]["objective"]), 1e-300)
        same &= last[0]["epochs"] == last[1]["epochs"]
        same &= last[0]["stop"] == last[1]["stop"] and close <= 1e-9 * scale
        if time.perf_counter() - begun > args.cap:
            break
    ratios = np.divide(times[0], times[1])
    low, high = np.percentile(ratios, [25, 75])
    return {
        "base": min(times[0]),
        "head": min(times[1]),
        "ratio": min(times[0]) / min(times[1]),
        "spread": (float(low), float(high)),
        "same": same,
        "answers": last,
    }


def describe(job: dict[str, Any], row: dict[str, Any]) -> str:
    """Return a line of the table."""
    settings = job["settings"]
    name = job["solver"] if job["solver"] != "Sdca" else f"{settings['tol']:g}"
    if settings.get("n_jobs", 1) > 1:
        name += f", {settings['n_jobs']} threads"
    base, head = row["answers"]
    note = ""
    if not row["same"]:
        note = f"{base['epochs']:g} {base['stop']}, {head['epochs']:g} {head['stop']}"
    low, high = row["spread"]
    cells = [
        job["set"],
        job["loss"],
        f"{settings['C']:g}",
        name,
        f"{1e3 * row['base']:.3g}",
        f"{1e3 * row['head']:.3g}",
        f"{row['ratio']:.3f}",
        f"{low:.2f}-{high:.2f}",
        note,
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = """\
| set | loss | C | to | base, ms | head, ms | ratio | turns | epochs, if they differ |
|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Build, measure, and print."""
    args = arguments()
    if args.worker:
        work()
        return
    if args.base is None:
        raise SystemExit("name the revision to compare with")
    packages = [build(args.base), build(args.head)]
    workers = (Worker(packages[0]), Worker(packages[1]))
    names = args.sets or [*FULL, *(ONLY_RAW if args.raw else ()), *BUNDLED]
    lines, logs = [HEADER], []
    print(HEADER)
    for name in names:
        try:
            (load_raw if args.raw else load)(name)
        except MissingDataError as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
            continue
        for job in jobs(args, name):
            row = measure(job, workers, args)
            logs.append(np.log(row["ratio"]))
            lines.append(describe(job, row))
            print(lines[-1], flush=True)
    overall = np.exp(np.mean(logs))
    mean = f"\n{len(logs)} rows, geometric mean of the ratios {overall:.3f}"
    print(mean)
    head = "the working tree" if args.head == "." else args.head
    title = f"{args.base} against {head}: above 1 the latter is faster.\n"
    out = args.out or ROOT / "build" / "ab" / "ab.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join([title, *lines, mean]) + "\n")


if __name__ == "__main__":
    main()
