"""The commands that need numpy and scikit-learn."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold

from sdca_rs import _certify
from sdca_rs._cli import _model
from sdca_rs._cli._errors import CommandError
from sdca_rs._cli._liblinear import Liblinear
from sdca_rs._cli._options import NOT_CONVERGED, SUCCESS
from sdca_rs._cli._prepare import Preparation, split_target
from sdca_rs._cli._progress import Watch
from sdca_rs._cli._read import Format, Table, read
from sdca_rs._cli._report import classes, is_converged, percent, say, shape, text_of
from sdca_rs._cli._train import finish
from sdca_rs._data import is_sparse
from sdca_rs._handle import Data
from sdca_rs._losses import require_loss
from sdca_rs._sdca import Sdca

# Numbers of more than so many values are hardly classes.
_CLASSES = 100


# train


def train(args: Namespace) -> int:
    """Train on data of any format, with all options."""
    loss = args.loss
    table = read(args.data, _format(args))
    target = split_target(table, args.target, required=True)
    preparation = Preparation(target=target)
    bias = None if args.bias is None or args.bias < 0 else float(args.bias)
    X = preparation.fit(table, standardise=args.standardise, bias=bias)
    y = _targets(table, loss)
    if len(args.C) > 1 and not args.cv:
        raise CommandError(
            f"-c: found {len(args.C)} values, expected one, or --cv to choose by"
        )
    settings: dict[str, Any] = {
        "loss": loss,
        "loss_param": args.loss_param,
        "fit_intercept": args.bias is None and args.intercept,
        "tol": args.tol,
        "max_iter": args.max_iter,
        "max_time": args.max_time,
        "class_weight": _class_weight(args, loss, y),
        "n_jobs": args.jobs,
        "random_state": args.seed,
    }
    if not args.quiet:
        n_entries = int(X.nnz) if is_sparse(X) else None
        what = shape(X.shape[0], X.shape[1], n_entries)
        say(f"{args.data}: {what}, {_described(y, loss)}")
    C = _choose(args, X, y, settings) if args.cv else args.C[0]
    model = Sdca(**settings, C=C)
    with Watch(args.tol, quiet=args.quiet) as watch, warnings.catch_warnings():
        # It is said in other words below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(callback=watch).fit(X, y)
    model.set_params(callback=None)
    _model.save(model, preparation, args.model)
    return finish(
        args,
        np.atleast_1d(model.objective_).tolist(),
        np.atleast_1d(model.dual_objective_).tolist(),
        np.atleast_1d(model.stop_reason_).tolist(),
        model.n_iter_,
    )


def _format(args: Namespace, **others: Any) -> Format:
    settings: dict[str, Any] = {
        "name": args.format,
        "delimiter": args.delimiter,
        "header": args.header,
        "zero_based": args.zero_based,
    }
    if hasattr(args, "drop"):
        settings["drop"] = tuple(args.drop)
        settings["categorical"] = tuple(args.categorical)
    return Format(**(settings | others))


def _described(y: NDArray[Any], loss: str) -> str:
    if require_loss(loss).task == "regression":
        return f"targets from {y.min():g} to {y.max():g}"
    labels, counts = np.unique(y, return_counts=True)
    return classes(labels.tolist(), counts.tolist())


def _targets(table: Table, loss: str) -> NDArray[Any]:
    y = table.y
    assert y is not None
    if require_loss(loss).task == "regression":
        if y.dtype.kind not in "biuf":
            raise CommandError(
                f"{table.path}: found the target {str(y[0])!r}, expected numbers for "
                f"the loss {loss!r} (--loss log, for example, is for classes)"
            )
        return y.astype(np.float64)
    if y.dtype.kind == "f":
        n_values = len(np.unique(y))
        many = n_values > _CLASSES or 2 * n_values > len(y)
        if n_values > 2 and (many or (y != np.round(y)).any()):
            raise CommandError(
                f"{table.path}: found {n_values} different numbers as targets, "
                f"expected classes for the loss {loss!r}: for regression say --loss "
                "squared, absolute, huber, quantile or poisson"
            )
        if (y == np.round(y)).all() and (abs(y) < 2**53).all():
            # Labels as one writes them: 1, not 1.0.
            return y.astype(np.int64)
    return y


def _class_weight(args: Namespace, loss: str, y: NDArray[Any]) -> Any:
    if not args.class_weight:
        return None
    if require_loss(loss).task == "regression":
        raise CommandError(f"-w: found for the loss {loss!r}, which has no classes")
    if args.class_weight == ["balanced"]:
        return "balanced"
    labels = {text_of(label): label for label in np.unique(y).tolist()}
    weights = {}
    for entry in args.class_weight:
        label, _, factor = entry.rpartition("=")
        if label not in labels:
            raise CommandError(
                f"-w: found the label {label!r}, expected one of {', '.join(labels)}"
            )
        try:
            weights[labels[label]] = float(factor)
        except ValueError as error:
            raise CommandError(
                f"-w: found the weight {factor!r}, expected a number"
            ) from error
    return weights


def _choose(
    args: Namespace, X: Any, y: NDArray[Any], settings: dict[str, Any]
) -> float:
    """Choose C by cross-validation; within a fold, from one C to the next."""
    grid = sorted(args.C)
    classify = require_loss(settings["loss"]).task == "classification"
    splitter: Any
    if classify:
        _, counts = np.unique(y, return_counts=True)
        if args.cv > counts.max():
            raise CommandError(
                f"--cv: found {args.cv} folds for classes of at most {counts.max()} "
                "rows, expected fewer"
            )
        splitter = StratifiedKFold(args.cv, shuffle=True, random_state=args.seed)
    else:
        if args.cv > len(y):
            raise CommandError(f"--cv: found {args.cv} folds for {len(y)} rows")
        splitter = KFold(args.cv, shuffle=True, random_state=args.seed)
    scores = np.empty((len(grid), args.cv))
    short = 0
    with warnings.catch_warnings():
        # A class with fewer rows than folds.
        warnings.simplefilter("ignore")
        for fold, (train, test) in enumerate(splitter.split(X, y)):
            data, held_out = Data(X[train]), Data(X[test])
            model = Sdca(**settings, warm_start=True)
            for k, C in enumerate(grid):
                model.set_params(C=C).fit(data, y[train])
                scores[k, fold] = model.score(held_out, y[test])
                short += not is_converged(np.atleast_1d(model.stop_reason_).tolist())
    means = scores.mean(axis=1)
    best = int(means.argmax())
    if not args.quiet:
        name = _score_name(settings["loss"])
        print(f"{'C':>10}  {name} ({args.cv} folds)", file=sys.stderr)
        for k, C in enumerate(grid):
            spread = scores[k].std()
            chosen = "  *" if k == best and len(grid) > 1 else ""
            print(f"{C:>10g}  {means[k]:.4f} +- {spread:.4f}{chosen}", file=sys.stderr)
        if len(grid) > 1 and best in (0, len(grid) - 1):
            side = "smaller" if best == 0 else "larger"
            say(f"note: the best C is at the end of the grid; try {side} ones")
        if short:
            say(
                f"note: {short} of {scores.size} fits did not reach the tolerance; "
                "--max-iter lets them go on"
            )
    return float(grid[best])


def _score_name(loss: str) -> str:
    info = require_loss(loss)
    if info.task == "classification":
        return "accuracy"
    return "D^2" if info.link == "log" else "R^2"


# predict


def predict(args: Namespace) -> int:
    """Write predictions."""
    model, preparation, _ = _model.read(args.model)
    table = read(args.data, _format_of_model(args, preparation))
    target = args.target or (preparation.target if table.columns is not None else None)
    split_target(table, target, required=args.target is not None)
    X = preparation.apply(table, int(model.n_features_in_))
    _note_differences(args, preparation)
    _model.without_names(model)
    model.set_params(n_jobs=args.jobs)
    if args.proba and not hasattr(model, "predict_proba"):
        raise CommandError(
            f"--proba: found a model of the loss {model.loss!r}, which has no "
            "probabilities, expected one of the loss 'log' (--scores writes signed "
            "distances)"
        )
    if args.scores and not hasattr(model, "classes_"):
        raise CommandError(
            f"--scores: found a model of the loss {model.loss!r}, expected a classifier"
        )
    predicted = model.predict(X)
    numbers = None
    if args.proba:
        numbers = model.predict_proba(X)
    elif args.scores:
        numbers = model.decision_function(X)
        if numbers.ndim == 1:
            numbers = numbers[:, np.newaxis]
    labels = getattr(model, "classes_", None)
    text = _lines(predicted, numbers, labels)
    if args.output in (None, "-"):
        sys.stdout.write(text)
    else:
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(text)
    if not args.quiet and table.y is not None:
        _say_score(model, table.y, predicted)
    return SUCCESS


def _format_of_model(args: Namespace, preparation: Preparation) -> Format:
    others: dict[str, Any] = {}
    if args.zero_based is None:
        others["zero_based"] = preparation.zero_based
    if preparation.columns is not None:
        names = {name for name, _ in preparation.columns}
        others["categorical"] = tuple(
            name for name, categories in preparation.columns if categories is not None
        )
        target = args.target or preparation.target
        others["only"] = frozenset(names | {target} if target else names)
        if not args.header:
            others["only"] = None
    return _format(args, **others)


def _note_differences(args: Namespace, preparation: Preparation) -> None:
    if args.quiet:
        return
    if preparation.ignored:
        say(
            f"note: left out {preparation.ignored} columns that the training data did "
            "not have"
        )
    for name, count in preparation.unknown.items():
        say(
            f"note: column {name!r}: {count} rows with a category that the training "
            "data did not have count as none of the categories"
        )


def _lines(predicted: Any, numbers: Any, labels: Any) -> str:
    first = [text_of(value) for value in predicted.tolist()]
    if numbers is None:
        return "".join(f"{value}\n" for value in first)
    shown = labels if numbers.shape[1] > 1 else labels[1:]
    head = " ".join(["labels", *(text_of(label) for label in shown.tolist())])
    rows = (
        f"{value} {' '.join(map(repr, row))}\n"
        for value, row in zip(first, numbers.tolist(), strict=True)
    )
    return f"{head}\n{''.join(rows)}"


def _say_score(model: Any, y: NDArray[Any], predicted: NDArray[Any]) -> None:
    info = require_loss(model.loss)
    if info.task == "classification":
        right = int(np.sum(_comparable(y) == _comparable(predicted)))
        say(f"accuracy {100 * right / len(y):.2f} % ({right} of {len(y)} rows)")
    elif y.dtype.kind in "biuf" and len(y) > 1:
        if info.link == "log":
            if (y >= 0).all() and y.any():
                score = d2_tweedie_score(y, predicted, power=1)
                say(f"D^2 {score:.4f} of the Poisson deviance ({len(y)} rows)")
        else:
            say(f"R^2 {r2_score(y, predicted):.4f} ({len(y)} rows)")


def _comparable(labels: NDArray[Any]) -> NDArray[Any]:
    return np.array([text_of(label) for label in labels.tolist()])


# certify


def certify(args: Namespace) -> int:
    """Print a certificate."""
    model, preparation, liblinear = _model.read(args.model)
    table = read(args.data, _format_of_model(args, preparation))
    target = args.target or (preparation.target if table.columns is not None else None)
    split_target(table, target, required=True)
    settings = _settings_of(args, model, liblinear)
    X = preparation.apply(table, int(model.n_features_in_))
    _note_differences(args, preparation)
    y = _targets(table, settings["loss"])
    _model.without_names(model)
    if hasattr(model, "classes_"):
        y = _like(y, model.classes_, args.data)
    proof = _certify.certify(
        model, X, y, tol=args.tol, max_iter=args.max_iter, **settings
    )
    print(_proof(proof, settings, model, liblinear is not None))
    share = np.atleast_1d(proof.gap / np.maximum(proof.objective, 1e-300)).max()
    if args.at_most is not None and not share <= args.at_most:
        say(
            f"the gap is {share:.2g} of the objective, above --at-most {args.at_most:g}"
        )
        return NOT_CONVERGED
    return SUCCESS


def _settings_of(
    args: Namespace, model: Any, liblinear: Liblinear | None
) -> dict[str, Any]:
    C = args.C[0] if args.C else None
    if args.C and len(args.C) > 1:
        raise CommandError(f"-c: found {len(args.C)} values, expected one")
    if liblinear is None:
        strength = {"lam": model.lam} if model.lam else {"C": model.C}
        return {
            "loss": args.loss or model.loss,
            "loss_param": args.loss_param
            if args.loss_param is not None or args.loss is not None
            else model.loss_param,
            **({"C": C} if C else strength),
        }
    loss = args.loss or liblinear.kind.loss
    if loss is None:
        raise CommandError(
            f"{args.model}: found {liblinear.kind.name}, which minimises "
            f"{liblinear.kind.why}, expected a type with a loss of ours (--loss "
            "certifies it as a model of another)"
        )
    if C is None:
        raise CommandError(
            f"-c: found none, expected the C that {args.model} was trained with: "
            "LIBLINEAR's files do not say (its default is 1)"
        )
    settings = {"loss": loss, "C": C, "fit_intercept": False}
    param = args.loss_param
    if param is None and require_loss(loss).param == "epsilon":
        # LIBLINEAR's own default.
        param = 0.1
    return settings | {"loss_param": param}


def _like(y: NDArray[Any], classes: NDArray[Any], path: str) -> NDArray[Any]:
    """Return labels as the very ones of a model."""
    known = {text_of(label): label for label in classes.tolist()}
    texts = [text_of(label) for label in y.tolist()]
    strange = next((text for text in texts if text not in known), None)
    if strange is not None:
        raise CommandError(
            f"{path}: found the label {strange!r}, expected those of the model: "
            f"{', '.join(known)}"
        )
    return np.array([known[text] for text in texts], dtype=classes.dtype)


def _proof(
    proof: _certify.Certificate,
    settings: dict[str, Any],
    model: Any,
    is_liblinear: bool,
) -> str:
    C = settings.get("C")
    lam = settings.get("lam")
    strength = f"C = {C:g}" if lam is None else f"lam = {lam:g}"
    lines = [f"loss {settings['loss']}, {strength}"]
    labels = getattr(model, "classes_", ())
    rows = zip(
        np.atleast_1d(proof.objective),
        np.atleast_1d(proof.dual_objective),
        np.atleast_1d(proof.gap),
        strict=True,
    )
    for k, (primal, dual, gap) in enumerate(rows):
        of_class = f"class {text_of(labels[k])}: " if len(labels) > 2 else ""
        lines.append(
            f"{of_class}objective {primal:.9g}, no model is below {dual:.9g}: "
            f"at most {percent(gap, primal)} above the best"
        )
    if is_liblinear and model.n_features_in_:
        lines.append(
            "of LIBLINEAR's objective divided by C times the rows; a bias is one more "
            "column there, whose coefficient is regularised like the others"
        )
    return "\n".join(lines)


# inspect


def inspect(args: Namespace) -> int:
    """Print what is in a model."""
    model, preparation, liblinear = _model.read(args.model)
    if liblinear is not None:
        print("LIBLINEAR")
        facts = liblinear.facts()
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"  {name:{width}}  {value}")
        return SUCCESS
    print(model.summary(max_features=args.top))
    for line in _described_input(preparation):
        print(line)
    return SUCCESS


def _described_input(preparation: Preparation) -> list[str]:
    if not preparation.is_needed:
        return []
    lines = ["", "  input"]
    if preparation.target is not None:
        lines.append(f"    target        {preparation.target}")
    if preparation.columns is not None:
        numbers = [name for name, kind in preparation.columns if kind is None]
        lines.append(f"    numbers       {', '.join(numbers) or 'none'}")
        for name, categories in preparation.columns:
            if categories is not None:
                shown = ", ".join(categories[:6]) + (
                    ", ..." if len(categories) > 6 else ""
                )
                lines.append(f"    categories    {name}: {shown} ({len(categories)})")
    if preparation.scale is not None:
        how = (
            "divided by their deviations"
            if preparation.mean is None
            else "standardised"
        )
        lines.append(f"    scales        numbers are {how}")
    if preparation.bias is not None:
        lines.append(f"    bias          a last column of {preparation.bias:g}")
    if preparation.zero_based:
        lines.append("    indices       count from 0")
    return lines
