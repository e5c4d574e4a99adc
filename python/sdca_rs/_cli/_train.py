"""``sdca-rs train``: plain training on an svmlight file, and the way to all the rest.

Reading, training and writing are done here without numpy and scikit-learn, which take
longer to import than a model of some ten thousand rows to train. The model is the same
to the last bit as the one of :mod:`sdca_rs._cli._commands`.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import contextmanager, suppress

from sdca_rs import _core
from sdca_rs._cli import _report
from sdca_rs._cli._errors import CommandError
from sdca_rs._cli._formats import COMPRESSED, format_of
from sdca_rs._cli._light import is_for_classes
from sdca_rs._cli._options import NOT_CONVERGED, SUCCESS
from sdca_rs._cli._progress import Watch
from sdca_rs._cli._report import say
from sdca_rs._cli._solver_types import SOLVER_TYPES

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator
    from typing import Any

# Nothing is reported before: a report needs numpy.
_SECONDS = 0.5


def train(args: Namespace) -> int:
    """Train as the arguments say, write the model, and return the exit code."""
    if args.model is None:
        args.model = _model_path(args.data)
    args.loss = _loss_of(args)
    if _is_plain(args):
        code = _train_plainly(args)
        if code is not None:
            return code
    # It takes longer to import than many models to train.
    from sdca_rs._cli import _commands

    return _commands.train(args)


def _model_path(data: str) -> str:
    if data == "-":
        raise CommandError("MODEL: found none, expected a name, as the data have none")
    return os.path.basename(data) + ".json"


def _loss_of(args: Namespace) -> str:
    if args.solver_type is None:
        return args.loss or "log"
    if args.loss is not None:
        raise CommandError("-s: found together with --loss, expected one of the two")
    kind = SOLVER_TYPES.get(args.solver_type)
    if kind is None:
        known = ", ".join(str(number) for number in SOLVER_TYPES)
        raise CommandError(f"-s: found {args.solver_type}, expected one of {known}")
    if kind.loss is None:
        raise CommandError(
            f"-s: found {args.solver_type} ({kind.name}), expected a type that is not "
            f"{kind.why}"
        )
    return kind.loss


def _is_plain(args: Namespace) -> bool:
    return (
        (args.format or format_of(args.data)) == "svmlight"
        and os.path.splitext(args.data.lower())[1] not in COMPRESSED
        and os.path.isfile(args.data)
        and len(args.C) == 1
        and args.bias is None
        and not any(
            (args.cv, args.standardise, args.class_weight, args.target, args.drop)
        )
        and not args.categorical
    )


def _train_plainly(args: Namespace) -> int | None:
    """Train without numpy; None if the file holds something out of the ordinary."""
    classify = is_for_classes(args.loss)
    n_threads = n_threads_of(args.jobs)
    with Watch(args.tol, quiet=args.quiet) as watch:
        trained = _core.train_svmlight(
            args.data,
            seed=args.seed,
            classify=classify,
            zero_based=args.zero_based,
            loss=args.loss,
            loss_param=args.loss_param,
            C=args.C[0],
            fit_intercept=args.intercept,
            tol=args.tol,
            max_iter=args.max_iter,
            max_time=args.max_time,
            n_threads=n_threads,
            report=watch,
            report_after=_SECONDS,
        )
    if trained is None:
        return None
    with replacing(args.model) as draft, open(draft, "w", encoding="utf-8") as file:
        file.write(_lines(_record(args, trained)))
    n_iter = math.ceil(max(trained.epochs))
    if not args.quiet:
        say(f"{args.data}: {_described(trained)}")
    return finish(
        args, trained.objective, trained.dual_objective, trained.stop_reason, n_iter
    )


def finish(
    args: Namespace,
    objective: list[float],
    dual_objective: list[float],
    reasons: list[str],
    n_iter: int,
) -> int:
    """Say how a fit ended, and return the exit code."""
    if not args.quiet:
        say(_report.certificate(objective, dual_objective, reasons, n_iter))
        say(f"wrote {args.model}")
    if _report.is_converged(reasons):
        return SUCCESS
    say(
        f"warning: the gap is more than {args.tol:g} of the objective. What may help: "
        "--standardise, a larger --max-iter, a smaller -c, or a larger --tol"
    )
    return NOT_CONVERGED


def n_threads_of(jobs: int) -> int:
    """Return a number of threads, as joblib counts them."""
    if jobs > 0:
        return jobs
    affinity: Callable[[int], set[int]] | None
    affinity = getattr(os, "sched_getaffinity", None)
    n_processors = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, n_processors + 1 + jobs)


def _described(trained: _core.Trained) -> str:
    shape = _report.shape(trained.n_rows, trained.n_features, trained.n_entries)
    if trained.classes:
        return f"{shape}, {_report.classes(trained.classes, trained.counts)}"
    low, high = trained.span
    return f"{shape}, targets from {low:g} to {high:g}"


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Give a draft that replaces a file once it is complete."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: found no folder {folder}, expected one")
    draft = os.path.join(folder, f".{os.path.basename(path)}.{os.getpid()}")
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


# The file of a model: what `save` writes.


def _record(args: Namespace, trained: _core.Trained) -> dict[str, Any]:
    record: dict[str, Any] = {
        "format": "sdca-rs model",
        "format_version": 1,
        "sdca_rs_version": _core.VERSION,
        "estimator": "Sdca",
        # The others have their defaults.
        "params": {
            "loss": args.loss,
            "loss_param": args.loss_param,
            "C": args.C[0],
            "fit_intercept": args.intercept,
            "tol": args.tol,
            "max_iter": args.max_iter,
            "max_time": args.max_time,
            "n_jobs": args.jobs,
            "random_state": args.seed,
        },
        "n_features_in": trained.n_features,
        "feature_names_in": None,
        "classes": {
            "dtype": "int64",
            "labels": [int(label) for label in trained.classes],
        }
        if trained.classes
        else None,
        "coef": _coef(trained.coef),
        "intercept": trained.intercept,
        "training": {
            "lam": 1.0 / (args.C[0] * trained.n_rows),
            "total_weight": float(trained.n_rows),
            "steps": trained.steps,
            "target_ndim": 1,
            "intercept_scaling": None,
        },
        "certificate": {
            "objective": trained.objective,
            "dual_objective": trained.dual_objective,
            "duality_gap": trained.gap,
            "stop_reason": trained.stop_reason,
            "n_iter": math.ceil(max(trained.epochs)),
        },
    }
    if trained.zero_based:
        record["input"] = {
            "zero_based": True,
            "target": None,
            "columns": None,
            "mean": None,
            "scale": None,
            "bias": None,
        }
    return record


def _lines(record: dict[str, Any]) -> str:
    # A line for each key: one can read it, and compare two files.
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in record.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _coef(rows: list[list[float]]) -> dict[str, Any]:
    chosen = [
        # A negative zero is no zero.
        [j for j, value in enumerate(row) if value or math.copysign(1.0, value) < 0]
        for row in rows
    ]
    if 2 * sum(map(len, chosen)) > sum(map(len, rows)):
        return {"storage": "dense", "rows": rows}
    return {
        "storage": "sparse",
        "rows": [
            {"columns": columns, "values": [row[j] for j in columns]}
            for columns, row in zip(chosen, rows, strict=True)
        ],
    }
