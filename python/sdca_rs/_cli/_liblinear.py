"""Model files of LIBLINEAR, and what its solver types minimise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sdca_rs._cli._errors import CommandError
from sdca_rs._cli._prepare import Preparation
from sdca_rs._cli._solver_types import SOLVER_TYPES, SolverType
from sdca_rs._sdca import Sdca

_BY_NAME = {kind.name: kind for kind in SOLVER_TYPES.values()}

# A file of more coefficients has a header that is wrong.
_MOST = 2**40


class Liblinear(NamedTuple):
    """A model of LIBLINEAR: as ours, and what its file says."""

    model: Sdca
    preparation: Preparation
    kind: SolverType

    def facts(self) -> dict[str, str]:
        """Return what there is to be said, for `inspect`."""
        bias = self.preparation.bias
        classes = getattr(self.model, "classes_", None)
        facts = {
            "solver type": self.kind.name,
            "loss": self.kind.loss or f"none of ours: {self.kind.why}",
            "features": str(self.model.coef_.shape[-1] - (bias is not None)),
            "bias": (
                "none"
                if bias is None
                else f"{bias:g}, with a regularised coefficient for each problem"
            ),
        }
        if classes is not None:
            facts["classes"] = ", ".join(f"{label:g}" for label in classes)
        zeros = int((self.model.coef_ == 0).sum())
        facts["coefficients"] = f"{self.model.coef_.size}, {zeros} of them 0"
        return facts


def is_liblinear(head: bytes) -> bool:
    """Whether a file that begins so is a model of LIBLINEAR."""
    return head.startswith(b"solver_type ")


def read_liblinear(path: str) -> Liblinear:
    """Read a model that LIBLINEAR's `train` has written."""
    try:
        with open(path, encoding="ascii") as file:
            return _parse(path, iter(enumerate(file, start=1)))
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{path}: found bytes beyond ASCII, expected a model of LIBLINEAR"
        ) from error


def _parse(path: str, lines: Any) -> Liblinear:
    def fail(line: int, found: str, expected: str) -> CommandError:
        return CommandError(f"{path}:{line}: found {found}, expected {expected}")

    header: dict[str, tuple[int, list[str]]] = {}
    at = 0
    for at, text in lines:
        key, *values = text.split() or [""]
        if key == "w":
            break
        if key not in ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho"):
            raise fail(at, repr(text.strip()), "a header line of a model of LIBLINEAR")
        header[key] = (at, values)
    else:
        raise fail(at, "the end of the file", "a line w")

    def entry(key: str) -> tuple[int, str]:
        if key not in header or len(header[key][1]) != 1:
            raise fail(at, f"no {key} with one value", "one")
        line, [value] = header[key]
        return line, value

    def number(key: str, kind: type) -> Any:
        line, value = entry(key)
        try:
            return kind(value)
        except ValueError as error:
            raise fail(line, repr(value), f"a number, {key}") from error

    line, name = entry("solver_type")
    if name not in _BY_NAME:
        raise fail(line, repr(name), f"one of {', '.join(_BY_NAME)}")
    kind = _BY_NAME[name]
    if name == "ONECLASS_SVM":
        raise fail(line, name, "a classifier or a regressor")
    n_class, n_feature = number("nr_class", int), number("nr_feature", int)
    bias = number("bias", float)
    classify = "SVR" not in name
    labels: list[float] = []
    if classify:
        line, texts = header.get("label", (at, []))
        try:
            labels = [float(text) for text in texts]
        except ValueError as error:
            raise fail(line, repr(" ".join(texts)), "numbers as labels") from error
        if len(labels) != n_class or len(set(labels)) < max(2, n_class):
            raise fail(line, f"the labels {texts}", f"{n_class} different ones")
    n_rows = n_feature + (bias >= 0)
    n_models = n_class if classify and (n_class > 2 or name == "MCSVM_CS") else 1
    if not (0 < n_rows * n_models < _MOST):
        raise fail(at, f"{n_feature} features and {n_class} classes", "fewer, or some")
    rows = []
    for at, text in lines:
        try:
            row = [float(value) for value in text.split()]
        except ValueError as error:
            raise fail(at, repr(text.strip()[:60]), "numbers") from error
        if not row:
            continue
        if len(row) != n_models or not np.isfinite(row).all():
            raise fail(at, f"{len(row)} numbers", f"{n_models} finite coefficients")
        rows.append(row)
    if len(rows) != n_rows:
        raise fail(at, f"{len(rows)} rows of coefficients", f"{n_rows}")
    coef = np.array(rows).T
    # A loss that is not ours has no part in predictions, but for probabilities.
    loss = kind.loss or ("log" if name == "L1R_LR" else "hinge")
    model = Sdca(loss, fit_intercept=False)
    if not classify:
        fitted = {"coef_": np.ascontiguousarray(coef[0]), "intercept_": 0.0}
    else:
        order = np.argsort(labels, kind="stable")
        if n_class == 2:
            # One model, for the label that comes first, or two of Crammer and Singer.
            first = coef[0] - coef[1] if len(coef) == 2 else coef[0]
            coef = first[np.newaxis] * (1.0 if order[0] == 1 else -1.0)
        else:
            coef = coef[order]
        fitted = {
            "classes_": np.array(labels)[order],
            "coef_": np.ascontiguousarray(coef),
            "intercept_": np.zeros(len(coef)),
        }
    model.__dict__.update(fitted, n_features_in_=n_rows)
    return Liblinear(model, Preparation(bias=bias if bias >= 0 else None), kind)
