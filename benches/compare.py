"""Compare time to accuracy with other libraries, on the same objective.

For each data set, loss and C, each solver is swept from loose to exact, and the time of
``fit`` alone, including conversions, is set against the relative distance of the
model's objective from the lowest that any solver found. One function outside the
solvers computes the objective::

    P(w) = mean(loss) + |w|^2 / (2 C n)

No solver fits an intercept, which LIBLINEAR would regularise. Pixels in bytes are
divided by 255. Dense columns of regression sets are standardised, and so are the
targets of both regression sets (nycflights_onehot keeps its columns), because without
an intercept most of the objective would be the mean of the targets. mnist is the digit
8 against the rest. See ``peers.py`` for the settings of each library. Tiny fits import
every library, and trigger its compilation, before the first measurement.

Data are read from the folder in SDCA_RS_DATA or, where possible, downloaded by
scikit-learn's fetchers; missing sets are listed. Results are saved after each row.
``--resume`` continues them and ``--render`` draws them again:
``compare-LABEL.json``, ``.md`` and ``.png``.

    python benches/compare.py --quick
    python benches/compare.py --sets a9a,ijcnn1 --losses hinge,log --cap 10
    python benches/compare.py --threads 2
    python benches/compare.py --epochs --memory --growth

The last line measures other costs instead: an epoch compared with a pass of LIBLINEAR,
peak memory, and the time per epoch as the number of rows doubles.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="few small sets, C = 1, a short cap"
    )
    lists: dict[str, Any] = {"type": lambda text: text.split(","), "metavar": "A,B,..."}
    parser.add_argument("--sets", **lists, help="default: all")
    parser.add_argument("--losses", **lists, help="default: all")
    parser.add_argument("--C", **lists, help="default: 0.01,1,100")
    parser.add_argument(
        "--solvers", **lists, help="only those whose names begin like one of these"
    )
    parser.add_argument(
        "--cap", type=float, help="seconds that a fit may take (default: 20; quick: 1)"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="compare so many with one"
    )
    parser.add_argument("--epochs", action="store_true", help="cost of one epoch")
    parser.add_argument("--memory", action="store_true", help="peak memory of a fit")
    parser.add_argument(
        "--growth", action="store_true", help="time per epoch against rows"
    )
    parser.add_argument(
        "--max-gib", type=float, help="largest data of --growth (default: 8; quick: 1)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("benches/record"), help="default: %(default)s"
    )
    parser.add_argument("--label", help="name of the results (default: by options)")
    parser.add_argument(
        "--resume", action="store_true", help="keep the rows that were measured"
    )
    parser.add_argument(
        "--render", action="store_true", help="only tables and pictures, from the JSON"
    )
    return parser.parse_args()


def main() -> None:
    """Set the number of threads before any import that would start them."""
    args = arguments()
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.label is None:
        form = "quick" if args.quick else "full"
        args.label = form if args.threads == 1 else f"{form}-{args.threads}-threads"
    if args.epochs or args.memory or args.growth:
        measure_costs(args)
    else:
        compare(args)


def chosen_sets(args: argparse.Namespace) -> list[str]:
    """Return the names of the sets."""
    from sets import BUNDLED, FULL, QUICK, SETS

    if args.sets:
        if unknown := set(args.sets) - set(SETS):
            raise SystemExit(f"--sets: {unknown} not among {', '.join(SETS)}")
        return list(args.sets)
    if args.quick:
        return list(QUICK if os.environ.get("SDCA_RS_DATA") else BUNDLED)
    return list(FULL)


def measure_costs(args: argparse.Namespace) -> None:
    """Measure costs other than the time to accuracy."""
    import costs

    if args.epochs:
        costs.epochs(chosen_sets(args), args.out)
    if args.memory:
        costs.memory(chosen_sets(args), args.out)
    if args.growth:
        costs.growth(args.max_gib or (1 if args.quick else 8), args.out)


def compare(args: argparse.Namespace) -> None:
    """Measure all (remaining) rows, and report."""
    import measure
    import report
    from peers import all_peers, threaded_peers
    from sets import CLASSIFICATION, REGRESSION

    path = args.out / f"compare-{args.label}.json"
    run: dict[str, Any] = {"rows": [], "missing_sets": {}}
    if args.resume or args.render:
        run = json.loads(path.read_text())
    if not args.render:
        run["label"] = args.label
        run["cap"] = args.cap or (1 if args.quick else 20)
        run["facts"] = measure.facts(args.threads)
        print(report.facts_text(run), report.CONVENTIONS, sep="\n\n", flush=True)
        Cs = [
            float(C) for C in args.C or (["1"] if args.quick else ["0.01", "1", "100"])
        ]
        losses = args.losses or (*CLASSIFICATION, *REGRESSION)
        keys = measure.row_keys(chosen_sets(args), losses, Cs)
        old = {(row["set"], row["loss"], row["C"]) for row in run["rows"]}
        peers = all_peers() if args.threads == 1 else threaded_peers(args.threads)
        if args.solvers:
            peers = [p for p in peers if p.name.startswith(tuple(args.solvers))]

        def done(row: dict[str, Any]) -> None:
            run["rows"].append(row)
            measure.save(run, path)
            print(f"{report.row_name(row)}: {row['seconds']:.1f} s", flush=True)

        left = [key for key in keys if key not in old]
        run["missing_sets"] = measure.measure_rows(left, peers, run["cap"], done)
        measure.save(run, path)
    if run["rows"]:
        text = report.markdown(run)
        print("\n" + text)
        path.with_suffix(".md").write_text(text)
        report.draw(run, path.with_suffix(".png"))
        print(f"written: {path.with_suffix('')}.json, .md and .png")


if __name__ == "__main__":
    main()
