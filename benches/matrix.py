"""The convergence grid: whether default settings suffice for raw data.

Every cell is one data set, as stored and without scaling, with one loss, one ``C``, and
an intercept or none. Each cell runs the following fits, judged by the same function
outside the solvers, ``P(w, b) = mean(loss) + |w|^2 / (2 C n)``:

- default: ``Sdca`` with default settings and a time limit. The cell is certified if
  the certificate proves a relative gap of 1e-4 and its objective is the model's;
- exact: the same with ``tol=1e-9``, on sets of at most 500 columns;
- plain: ``accelerate=False``, at most 50 epochs. Where that converges, the default
  should take at most 1.2 times as long;
- sklearn: scikit-learn's estimator for the same loss, if there is one, with its default
  settings. It solves a cell if its objective is within 1e-4, relatively, of the lowest
  that any fit found there.

Every fit runs in its own process, which is killed if it takes too long; that, or a
crash, is a result like any other. Times are those of ``fit`` alone, on one thread; fits
below 0.05 s are run three times and the shortest counts. LinearSVC and LinearSVR
regularise their intercept, so with one they solve a slightly different problem.

Data are read from the folder in SDCA_RS_DATA or, where possible, downloaded by
scikit-learn's fetchers; missing sets are listed. Results are saved after each cell.
``--resume`` continues them (and adds kinds of fits that were skipped) and ``--render``
draws them again: ``matrix-LABEL.json``, ``.md`` and
``.png``. Two runs of the same settings on different cells can be merged.

    python benches/matrix.py --quick
    python benches/matrix.py --sets a9a,skin --losses hinge,log --C 1,1e4 --cap 30
    python benches/matrix.py --label all --merge matrix-one.json matrix-two.json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from compare import THREAD_VARIABLES

# Before any import that would start threads.
os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))

import grid_report
import measure
import numpy as np
import scipy.sparse as sp
from sets import (
    BUNDLED,
    EPSILON,
    DataSet,
    Floats,
    MissingDataError,
    Problem,
    is_regression,
    load_raw,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC, LinearSVR

from sdca_rs import Sdca

CLASSIFICATION = ("hinge", "squared_hinge", "smooth_hinge", "log")
REGRESSION = ("squared", "absolute", "huber", "epsilon_insensitive", "quantile")
SETS = (
    *BUNDLED,
    "california_housing",
    "arrhythmia",
    "skin",
    "adult_onehot",
    "a9a",
    "ijcnn1",
    "covtype",
    "bloodcells_lym_neu",
    "gene_all",
    "mnist",
    "debian_long_bin",
    "news20_123gram_bin",
    "nycflights_onehot",
)
CS = (1e-4, 1e-2, 1.0, 1e2, 1e4)
KINDS = ("default", "exact", "plain", "sklearn")
MAX_EXACT_COLUMNS = 500
PLAIN_EPOCHS = 50
# Fits shorter than this are repeated, and the shortest time counts.
SHORT = 0.05
# A certificate's objective counts as the model's if they agree to this.
AGREEMENT = 1e-9

Cell = dict[str, Any]
Result = dict[str, Any]
Fork = multiprocessing.get_context("fork")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="bundled small sets, a cap of 5 s"
    )
    lists: dict[str, Any] = {"type": lambda text: text.split(","), "metavar": "A,B,..."}
    parser.add_argument("--sets", **lists, help="default: all")
    parser.add_argument("--losses", **lists, help="default: all")
    parser.add_argument("--C", **lists, help="default: 1e-4,1e-2,1,1e2,1e4")
    parser.add_argument("--intercept", choices=("on", "off", "both"), default="both")
    parser.add_argument(
        "--cap", type=float, help="max_time of our fits (default: 120; quick: 5)"
    )
    parser.add_argument(
        "--peer-cap",
        type=float,
        help="seconds after which scikit-learn is killed (default: 60; quick: 5)",
    )
    parser.add_argument(
        "--max-iter", type=int, default=Sdca().max_iter, help="default: %(default)s"
    )
    parser.add_argument(
        "--skip",
        **lists,
        default=[],
        help=f"kinds of fits to leave out, of {', '.join(KINDS[1:])}",
    )
    parser.add_argument(
        "--no-peers", action="store_true", help="the same as --skip sklearn"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("benches/record"), help="default: %(default)s"
    )
    parser.add_argument("--label", help="name of the results (default: by options)")
    parser.add_argument(
        "--resume", action="store_true", help="keep the fits that were made"
    )
    parser.add_argument(
        "--render", action="store_true", help="only tables and pictures, from the JSON"
    )
    parser.add_argument(
        "--merge",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="only join these results under the label",
    )
    args = parser.parse_args()
    skipped = {*args.skip, *(["sklearn"] if args.no_peers else [])}
    for name, given, known in (
        ("sets", args.sets, SETS),
        ("losses", args.losses, (*CLASSIFICATION, *REGRESSION)),
        ("skip", skipped, KINDS[1:]),
    ):
        if unknown := set(given or ()) - set(known):
            parser.error(f"--{name}: {unknown} not among {', '.join(known)}")
    args.kinds = [kind for kind in KINDS if kind not in skipped]
    args.sets = args.sets or list(BUNDLED if args.quick else SETS)
    args.losses = args.losses or [*CLASSIFICATION, *REGRESSION]
    args.C = [float(C) for C in args.C or CS]
    args.cap = args.cap or (5.0 if args.quick else 120.0)
    args.peer_cap = args.peer_cap or (5.0 if args.quick else 60.0)
    args.label = args.label or ("quick" if args.quick else "full")
    return args


def main() -> None:
    """Measure, merge or only draw, and report."""
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"matrix-{args.label}.json"
    if args.merge:
        run = merged([json.loads(part.read_text()) for part in args.merge])
        run["label"] = args.label
        measure.save(run, path)
    elif args.render:
        run = json.loads(path.read_text())
    else:
        run = started(args)
        if args.resume and path.exists():
            old = json.loads(path.read_text())
            check_same_conditions([old, run])
            run["cells"] = old["cells"]
        measure_cells(args, run, path)
    if not run["cells"]:
        raise SystemExit("there are no results to show")
    text = grid_report.markdown(run)
    print("\n" + grid_report.summary(run["cells"]))
    path.with_suffix(".md").write_text(text)
    grid_report.draw(run, path.with_suffix(".png"))
    print(f"\nwritten: {path.with_suffix('')}.json, .md and .png")


def started(args: argparse.Namespace) -> dict[str, Any]:
    """Return empty results."""
    return {
        "label": args.label,
        "cap": args.cap,
        "peer_cap": args.peer_cap,
        "max_iter": args.max_iter,
        "facts": measure.facts(1),
        "missing_sets": {},
        "cells": [],
    }


def check_same_conditions(runs: list[dict[str, Any]]) -> None:
    """Refuse to combine results that were measured under different conditions."""

    def conditions(run: dict[str, Any]) -> dict[str, Any]:
        named = {key: run[key] for key in ("cap", "peer_cap", "max_iter")}
        return named | {k: v for k, v in run["facts"].items() if k != "date"}

    first = conditions(runs[0])
    for run in runs[1:]:
        other = conditions(run)
        if differing := [key for key in first if first[key] != other.get(key)]:
            pairs = "; ".join(f"{k}: {first[k]} and {other.get(k)}" for k in differing)
            raise SystemExit(f"results of different conditions: {pairs}")


def merged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Join runs that have no cell in common."""
    check_same_conditions(runs)
    cells = [cell for run in runs for cell in run["cells"]]
    if len({key_of(cell) for cell in cells}) < len(cells):
        raise SystemExit("--merge: the runs have cells in common")
    missing = {name: why for run in runs for name, why in run["missing_sets"].items()}
    return runs[0] | {"cells": cells, "missing_sets": missing}


def key_of(cell: Cell) -> tuple[str, str, float, bool]:
    """Return what identifies a cell."""
    return cell["set"], cell["loss"], cell["C"], cell["intercept"]


def measure_cells(args: argparse.Namespace, run: dict[str, Any], path: Path) -> None:
    """Run all fits of all cells, except those already in the results."""
    warm_up()
    cells = {key_of(cell): cell for cell in run["cells"]}
    for name in args.sets:
        try:
            data = load_raw(name)
        except MissingDataError as error:
            print(f"{name} is left out: {error}", flush=True)
            run["missing_sets"][name] = str(error)
            continue
        for cell in empty_cells(args, data):
            key = key_of(cell)
            if key not in cells:
                cells[key] = cell
                run["cells"].append(cell)
            fill(cells[key], data, args)
            measure.save(run, path)
            print(grid_report.cell_line(cells[key]), flush=True)


def empty_cells(args: argparse.Namespace, data: DataSet) -> Iterator[Cell]:
    """Return the cells of a set."""
    suited = REGRESSION if is_regression(data.name) else CLASSIFICATION
    intercepts = {"on": [True], "off": [False], "both": [False, True]}[args.intercept]
    for loss in suited:
        if loss not in args.losses:
            continue
        for intercept in intercepts:
            for C in args.C:
                yield {
                    "set": data.name,
                    "n_rows": data.X.shape[0],
                    "n_columns": data.X.shape[1],
                    "loss": loss,
                    "C": C,
                    "intercept": intercept,
                    "fits": {},
                }


def fill(cell: Cell, data: DataSet, args: argparse.Namespace) -> None:
    """Run the fits that a cell lacks."""
    problem = Problem(data, cell["loss"], cell["C"])
    fits = cell["fits"]
    for kind in args.kinds:
        estimator = estimator_of(kind, cell, args)
        if kind not in fits and estimator is not None:
            fits[kind] = fit_apart(estimator, problem, limit_of(kind, args))
            if kind == "plain" and grid_report.is_slower(cell):
                # Other work on the machine must not decide this, so repeat both.
                for again in ("default", "plain"):
                    repeated = estimator_of(again, cell, args)
                    result = fit_apart(repeated, problem, limit_of(again, args))
                    fits[again]["seconds"] = min(
                        fits[again]["seconds"], grid_report.seconds_of(result)
                    )


def limit_of(kind: str, args: argparse.Namespace) -> float:
    """Return the seconds after which a fit is killed; ours should end by itself."""
    return float(args.peer_cap if kind == "sklearn" else 2 * args.cap + 30)


def estimator_of(kind: str, cell: Cell, args: argparse.Namespace) -> Any:
    """Return the estimator of a kind of fit, or None if it is not for this cell."""
    loss, C, intercept = cell["loss"], cell["C"], cell["intercept"]
    if kind == "sklearn":
        return sklearn_default(loss, C, intercept)
    if kind == "exact" and cell["n_columns"] > MAX_EXACT_COLUMNS:
        return None
    settings: dict[str, Any] = {
        "default": {"max_iter": args.max_iter},
        "exact": {"max_iter": args.max_iter, "tol": 1e-9},
        "plain": {"max_iter": PLAIN_EPOCHS, "accelerate": False},
    }[kind]
    return Sdca(
        loss, C=C, fit_intercept=intercept, max_time=args.cap, random_state=0
    ).set_params(**settings)


def sklearn_default(loss: str, C: float, intercept: bool) -> Any:
    """Return scikit-learn's estimator for a loss, or None, otherwise with defaults."""
    if loss in ("hinge", "squared_hinge"):
        return LinearSVC(loss=loss, C=C, fit_intercept=intercept)
    if loss == "log":
        return LogisticRegression(C=C, fit_intercept=intercept)
    if loss == "squared":
        return Ridge(alpha=1 / C, fit_intercept=intercept)
    if loss in ("absolute", "epsilon_insensitive"):
        epsilon = 0.0 if loss == "absolute" else EPSILON
        return LinearSVR(epsilon=epsilon, C=C, fit_intercept=intercept)
    return None


def warm_up() -> None:
    """Make every estimator import what it needs, by tiny fits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    for loss in (*CLASSIFICATION, *REGRESSION):
        for estimator in (Sdca(loss), sklearn_default(loss, 1.0, True)):
            if estimator is not None:
                with measure.quiet():
                    estimator.fit(X, y)
                    estimator.fit(sp.csr_matrix(X), y)


def fit_apart(estimator: Any, problem: Problem, limit: float) -> Result:
    """Fit in another process, and evaluate the model in this one."""
    result = in_child(lambda: timed_fit(estimator, problem), limit)
    result["estimator"] = type(estimator).__name__
    if "coef" in result:
        coef, intercept = result.pop("coef"), result.pop("intercept")
        with np.errstate(all="ignore"):
            objective = problem.objective(coef, intercept)
            if "primal" in result:
                result["agrees"] = agrees(problem, coef, intercept, result["primal"])
        result["objective"] = objective if np.isfinite(objective) else None
    return result


def agrees(problem: Problem, coef: Floats, intercept: float, primal: float) -> bool:
    """Return whether a certificate's objective is the model's."""
    objective = problem.objective(coef, intercept)
    apart = abs(objective - primal)
    # The rounding error is computed only where it matters.
    return bool(
        apart <= AGREEMENT * abs(objective)
        or apart <= problem.rounding(coef, intercept)
    )


def timed_fit(estimator: Any, problem: Problem) -> Result:
    """Fit; take the shortest of several times if it is short."""
    seconds = np.inf
    for _ in range(measure.REPETITIONS):
        # scikit-learn's defaults draw from the global state.
        np.random.seed(0)  # noqa: NPY002
        with measure.quiet() as caught:
            start = time.perf_counter()
            estimator.fit(problem.X, problem.y)
            seconds = min(seconds, time.perf_counter() - start)
        if seconds >= SHORT:
            break
    n_iter = getattr(estimator, "n_iter_", None)
    result: Result = {
        "end": getattr(estimator, "stop_reason_", "returned"),
        "seconds": seconds,
        "n_iter": None if n_iter is None else int(np.max(n_iter)),
        "warnings": sorted({w.category.__name__ for w in caught}),
        "coef": np.asarray(estimator.coef_, dtype=np.float64).ravel(),
        "intercept": float(np.ravel(estimator.intercept_)[0]),
    }
    if isinstance(estimator, Sdca):
        result["primal"] = float(estimator.objective_)
        result["gap"] = float(estimator.duality_gap_)
        result["n_evaluations"] = len(estimator.history_["gap"])
    return result


def in_child(work: Callable[[], Result], limit: float) -> Result:
    """Return the result of a forked process, or how it failed."""
    receiver, sender = Fork.Pipe(duplex=False)
    process = Fork.Process(target=send, args=(sender, work), daemon=True)
    process.start()
    sender.close()
    try:
        if receiver.poll(limit):
            result: Result = receiver.recv()
        else:
            process.kill()
            result = {"end": "killed", "limit": limit}
    except EOFError:
        process.join()
        result = {"end": f"crashed with exit code {process.exitcode}"}
    process.join()
    receiver.close()
    return result


def send(sender: Connection, work: Callable[[], Result]) -> None:
    """Send a result, or the exception raised instead."""
    try:
        sender.send(work())
    except Exception as error:
        sender.send({"end": f"failed: {type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
