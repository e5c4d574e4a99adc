"""Models in JSON files, of the format that the documentation describes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.metadata import version
from itertools import pairwise
from numbers import Integral
from os import PathLike, fspath
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sdca_rs._data import Floats, is_sparse

if TYPE_CHECKING:
    from sdca_rs._base import CertifiedLinearModel

_FORMAT = "sdca-rs model"
# To be raised by every change, as an older version refuses keys that it does not know.
_FORMAT_VERSION = 1

_KEYS = (
    "format",
    "format_version",
    "sdca_rs_version",
    "estimator",
    "params",
    "n_features_in",
    "feature_names_in",
    "classes",
    "coef",
    "intercept",
    "training",
    "certificate",
)
_TRAINING = ("lam", "total_weight", "steps", "target_ndim", "intercept_scaling")
_CERTIFICATE = (
    "objective",
    "dual_objective",
    "duality_gap",
    "stop_reason",
    "n_iter",
)

# Types of labels, and what JSON makes of them.
_LABELS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "object": (str, bool, int, float),
    "bool": (bool,),
    **{f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (int, float) for bits in (16, 32, 64)},
}

_Item = TypeVar("_Item")


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model."""
    known = _estimators()
    estimator = next((name for name in known if known[name] is type(model)), None)
    if estimator is None:
        raise TypeError(
            f"estimator: found {type(model).__name__}, expected one of "
            f"{', '.join(known)}: a subclass can be pickled"
        )
    certificate = None
    if hasattr(model, "duality_gap_"):
        certificate = {
            "objective": _numbers_or_none(model.objective_),
            "dual_objective": _numbers_or_none(model.dual_objective_),
            "duality_gap": _numbers_or_none(model.duality_gap_),
            "stop_reason": np.atleast_1d(model.stop_reason_).tolist(),
            "n_iter": np.asarray(model.n_iter_).tolist(),
        }
    names = getattr(model, "feature_names_in_", None)
    record = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "sdca_rs_version": version("sdca-rs"),
        "estimator": estimator,
        "params": _params_to_json(model.get_params(deep=False)),
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "classes": _classes_to_json(getattr(model, "classes_", None)),
        "coef": _coef_to_json(model.coef_),
        "intercept": model._models()[1].tolist(),
        "training": {
            "lam": np.asarray(model._lam, dtype=np.float64).tolist(),
            "total_weight": getattr(model, "_total_weight", None),
            "steps": [float(steps) for steps in model._steps],
            "target_ndim": model._target_ndim,
            "intercept_scaling": model._constant,
        },
        "certificate": certificate,
    }
    # A line for each key: one can read it, and compare two files.
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in record.items()
    )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    Path(path).write_text(text, encoding="utf-8")


def load(path: str | PathLike[str]) -> CertifiedLinearModel:
    """Read a model that was written by :meth:`Sdca.save`.

    Nothing in the file is run as code, and nothing but a model can come out. It
    predicts to the last bit what the saved model predicted. It has no ``dual_coef_``
    and no ``history_``, so :func:`certify` makes a fit of its own, and a warm start is
    refused by solvers that need dual values.

    Parameters
    ----------
    path : str or path-like
        A file of ``save``.

    Returns
    -------
    estimator
        Of the class that was saved, with the same parameters.

    Raises
    ------
    ValueError
        If the file is no such file, is damaged, or was written by a newer version in a
        format that is not known yet.

    See Also
    --------
    Sdca.save : Write the file; an example is there.
    """
    content = Path(path).read_bytes()
    try:
        return _model_of(_parse(content))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"path: {fspath(path)}: {error}") from error


def _estimators() -> dict[str, type[CertifiedLinearModel]]:
    """Return the public estimators by the names that they have in files."""
    # They import this module.
    import sdca_rs
    from sdca_rs._base import CertifiedLinearModel

    drop_in = sdca_rs.drop_in
    named = {
        **{name: getattr(sdca_rs, name) for name in sdca_rs.__all__},
        **{f"drop_in.{name}": getattr(drop_in, name) for name in drop_in.__all__},
    }
    return {
        name: entry
        for name, entry in named.items()
        if isinstance(entry, type) and issubclass(entry, CertifiedLinearModel)
    }


# To JSON.


def _params_to_json(params: dict[str, Any]) -> dict[str, Any]:
    return {name: _param_to_json(name, value) for name, value in params.items()}


def _param_to_json(name: str, value: Any) -> Any:
    # These have to do with a fit, and not with its model.
    if name == "callback" or (
        name == "random_state" and not isinstance(value, Integral)
    ):
        return None
    # No limit, and no penalty: JSON has no infinity.
    if name in ("max_time", "intercept_scaling") and value == math.inf:
        return None
    # Of several targets there may be one for each.
    if name == "alpha" and isinstance(value, list | tuple | np.ndarray):
        entries = np.ravel(value).tolist()
        return [_scalar(name, entry) for entry in entries]
    # Nor has it keys but strings.
    if name == "class_weight" and isinstance(value, Mapping):
        return [[_scalar(name, entry) for entry in pair] for pair in value.items()]
    return _scalar(name, value)


def _scalar(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        # A subclass may have a representation of its own.
        return float(value)
    raise TypeError(
        f"{name}: found {value!r}, expected a finite number, a string, a bool or None, "
        "which a model file can hold"
    )


def _numbers_or_none(values: Any) -> list[float | None]:
    return [
        value if math.isfinite(value) else None
        for value in np.atleast_1d(values).astype(np.float64).tolist()
    ]


def _classes_to_json(classes: NDArray[Any] | None) -> dict[str, Any] | None:
    if classes is None:
        return None
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    labels = classes.tolist()
    if name not in _LABELS or not _are(labels, _LABELS[name]):
        raise TypeError(
            f"classes_: found labels of type {classes.dtype}, expected strings, "
            "integers, floats or bools, which a model file can hold"
        )
    return {"dtype": name, "labels": labels}


def _coef_to_json(coef: Any) -> dict[str, Any]:
    is_csr = is_sparse(coef)
    if not is_csr:
        coef = np.atleast_2d(coef)
        # A negative zero is no zero: all bits are kept.
        is_stored = (coef != 0) | np.signbit(coef)
        if 2 * np.count_nonzero(is_stored) > coef.size:
            return {"storage": "dense", "rows": coef.tolist()}
        rows = [
            (np.flatnonzero(chosen), row[chosen])
            for chosen, row in zip(is_stored, coef, strict=True)
        ]
    else:
        coef = sp.csr_array(coef, copy=True)
        coef.sum_duplicates()
        rows = [
            (coef.indices[start:end], coef.data[start:end])
            for start, end in zip(coef.indptr[:-1], coef.indptr[1:], strict=True)
        ]
    return {
        "storage": "csr" if is_csr else "sparse",
        "rows": [
            {"columns": columns.tolist(), "values": values.tolist()}
            for columns, values in rows
        ],
    }


# From JSON. What is wrong is a ValueError, to which the path is added.


def _parse(content: bytes) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"found {constant}, expected JSON, which has no such number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ValueError(f"found the key {twice!r} twice, expected it once")
        return record

    try:
        return json.loads(
            content.decode("utf-8"), parse_constant=refuse, object_pairs_hook=unique
        )
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"found no JSON ({error}), expected a file of save") from error


def _model_of(record: Any) -> CertifiedLinearModel:
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError(f'found no "format": "{_FORMAT}", expected a file of save')
    found = _is("format_version", record.get("format_version"), int)
    if found > _FORMAT_VERSION:
        raise ValueError(
            f"found version {found} of the format, written by sdca-rs "
            f"{short(record.get('sdca_rs_version'))}, expected at most "
            f"{_FORMAT_VERSION}: install the newer version to read it (this one is "
            f"{version('sdca-rs')})"
        )
    if found < 1:
        raise ValueError(f"format_version: found {found}, expected an integer >= 1")
    _check_input(record.pop("input", None))
    _has_keys("the file", record, _KEYS)
    _is("sdca_rs_version", record["sdca_rs_version"], str)
    model = _estimator_of(record["estimator"], record["params"])
    n_features = _is("n_features_in", record["n_features_in"], int)
    if not 1 <= n_features < 2**63:
        raise ValueError(f"n_features_in: found {n_features}, expected an integer >= 1")
    fitted: dict[str, Any] = {"n_features_in_": n_features}
    names = record["feature_names_in"]
    if names is not None:
        names = _list_of("feature_names_in", names, (str,), n_features)
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    is_classifier = model._classifies()
    if is_classifier != (record["classes"] is not None):
        raise ValueError(
            f"classes: found {short(record['classes'])}, expected "
            f"{'labels' if is_classifier else 'null'} for the loss {model.loss!r}"
        )
    classes = _classes_of(record["classes"]) if is_classifier else None
    _has_keys("training", record["training"], _TRAINING)
    n_problems = _n_problems(model, record, classes)
    coef = _coef_of(record["coef"], n_problems, n_features)
    intercepts = _floats("intercept", record["intercept"], n_problems)
    if classes is not None:
        fitted["classes_"] = classes
    fitted |= _training_of(record["training"], n_problems)
    if record["certificate"] is not None:
        fitted |= _certificate_of(record["certificate"], n_problems)
    model.__dict__.update(fitted)
    model.__dict__.update(model._in_shape(coef, intercepts))
    return model


def _n_problems(
    model: CertifiedLinearModel, record: dict[str, Any], classes: Any
) -> int:
    """Return how many models there are in one."""
    ndim = record["training"]["target_ndim"]
    allowed = (1, 2) if model._takes_matrix else (1,)
    if _is("training.target_ndim", ndim, int) not in allowed:
        raise ValueError(
            f"training.target_ndim: found {ndim}, expected "
            f"{' or '.join(map(str, allowed))} for {record['estimator']}"
        )
    if ndim == 1:
        return len(classes) if classes is not None and len(classes) > 2 else 1
    if classes is not None:
        return len(classes)
    # As many as there are intercepts: what else there is must agree.
    return max(1, len(_list_of("intercept", record["intercept"], None)))


def _check_input(found: Any) -> None:
    """Refuse a model of the command line whose rows it must prepare."""
    if found is None:
        return
    plain = {"zero_based", "target", "columns"}
    if isinstance(found, dict):
        needed = sorted(key for key in found.keys() - plain if found[key] is not None)
        if '"categories"' in json.dumps(found.get("columns")):
            needed.append("categories")
        if not needed:
            return
        found = ", ".join(needed)
    raise ValueError(
        f"input: found rows to be prepared ({found}), expected rows as they are: apply "
        "this model by the command sdca-rs predict"
    )


def _estimator_of(name: Any, params: Any) -> CertifiedLinearModel:
    known = _estimators()
    if _is("estimator", name, str) not in known:
        raise ValueError(
            f"estimator: found {short(name)}, expected one of {', '.join(known)}"
        )
    expected = known[name]().get_params(deep=False)
    # A parameter that is not there is newer than the file, and has its default.
    if not isinstance(params, dict):
        raise ValueError(f"params: found {short(params)}, expected an object")
    unknown = [key for key in params if key not in expected]
    if unknown:
        raise ValueError(
            f"params: found {short(unknown)}, expected parameters of {name}"
        )
    weight = params.get("class_weight")
    if isinstance(weight, list):
        pairs = [_list_of("params.class_weight", pair, None, 2) for pair in weight]
        for label, factor in pairs:
            _one_of_types("params.class_weight", label, _LABELS["object"])
            _one_of_types("params.class_weight", factor, (int, float))
        params = {**params, "class_weight": dict(pairs)}
    if isinstance(params.get("alpha"), list):
        alpha = params["alpha"]
        params = {**params, "alpha": _floats("params.alpha", alpha, len(alpha))}
    if "intercept_scaling" in params and params["intercept_scaling"] is None:
        params = {**params, "intercept_scaling": math.inf}
    for key, value in params.items():
        if key != "class_weight" and isinstance(value, dict | list):
            raise ValueError(
                f"params.{key}: found {short(value)}, expected no structure"
            )
    model = known[name](**params)
    model._check_settings()
    return model


def _classes_of(record: Any) -> NDArray[Any]:
    _has_keys("classes", record, ("dtype", "labels"))
    name = record["dtype"]
    if not isinstance(name, str) or name not in _LABELS:
        raise ValueError(
            f"classes.dtype: found {short(name)}, expected one of {', '.join(_LABELS)}"
        )
    labels = _list_of("classes.labels", record["labels"], _LABELS[name])
    if len(labels) < 2:
        raise ValueError(
            f"classes.labels: found {short(labels)}, expected at least two"
        )
    classes = np.array(labels, dtype=name)
    if classes.tolist() != labels:
        raise ValueError(
            f"classes.labels: found {short(labels)}, expected values of {name}"
        )
    try:
        is_sorted = all(a < b for a, b in pairwise(labels))
    except TypeError:
        is_sorted = False
    if not is_sorted:
        raise ValueError(
            f"classes.labels: found {short(labels)}, expected different labels in order"
        )
    return classes


def _coef_of(record: Any, n_problems: int, n_features: int) -> Any:
    _has_keys("coef", record, ("storage", "rows"))
    storage = record["storage"]
    if storage not in ("dense", "sparse", "csr"):
        raise ValueError(
            f"coef.storage: found {short(storage)}, expected dense, sparse or csr"
        )
    rows = _list_of("coef.rows", record["rows"], None, n_problems)
    if storage == "dense":
        return np.stack([_floats("coef.rows", row, n_features) for row in rows])
    parts = [_sparse_row(row, n_features) for row in rows]
    if storage == "sparse":
        coef = np.zeros((n_problems, n_features))
        for row, (columns, values) in zip(coef, parts, strict=True):
            row[columns] = values
        return coef
    indptr = np.cumsum([0, *(len(columns) for columns, _ in parts)])
    columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sp.csr_matrix((values, columns, indptr), shape=(n_problems, n_features))


def _sparse_row(row: Any, n_features: int) -> tuple[NDArray[np.int64], Floats]:
    _has_keys("coef.rows", row, ("columns", "values"))
    columns = _list_of("coef.rows.columns", row["columns"], (int,))
    is_increasing = all(a < b for a, b in pairwise(columns))
    if columns and not (is_increasing and columns[0] >= 0 and columns[-1] < n_features):
        raise ValueError(
            "coef.rows.columns: found columns out of order or range, expected "
            f"increasing ones below {n_features}"
        )
    values = _floats("coef.rows.values", row["values"], len(columns))
    return np.array(columns, dtype=np.int64), values


def _training_of(record: Any, n_problems: int) -> dict[str, Any]:
    total, constant = record["total_weight"], record["intercept_scaling"]
    steps = _floats("training.steps", record["steps"], n_problems)
    lam = record["lam"]
    lams = _list_of("training.lam", lam, None, n_problems) if _is_list(lam) else [lam]
    positive = lams + [value for value in (total, constant) if value is not None]
    if not (
        (_floats("training", positive, len(positive)) > 0).all() and (steps >= 0).all()
    ):
        raise ValueError(
            f"training: found {short(record)}, expected numbers > 0, and steps >= 0"
        )
    return {
        "_lam": np.array(lam, dtype=np.float64) if _is_list(lam) else float(lam),
        "_total_weight": None if total is None else float(total),
        "_steps": steps.tolist(),
        "_target_ndim": record["target_ndim"],
        "_constant": None if constant is None else float(constant),
    }


def _certificate_of(record: Any, n_problems: int) -> dict[str, Any]:
    _has_keys("certificate", record, _CERTIFICATE)
    # Where nothing was proved there is no number.
    unknown = {"objective": np.inf, "dual_objective": -np.inf, "duality_gap": np.inf}
    n_iter = record["n_iter"]
    if _is_list(n_iter):
        n_iter = _list_of("certificate.n_iter", n_iter, (int,), n_problems)
    else:
        _is("certificate.n_iter", n_iter, int)
    fitted: dict[str, Any] = {
        "n_iter_": np.array(n_iter, dtype=np.int32) if _is_list(n_iter) else n_iter
    }
    for key, without in unknown.items():
        values = _list_of(f"certificate.{key}", record[key], None, n_problems)
        numbers = [without if value is None else value for value in values]
        given = [value for value in values if value is not None]
        _floats(f"certificate.{key}", given, len(given))
        fitted[f"{key}_"] = np.array(numbers, dtype=np.float64)
    reasons = _list_of(
        "certificate.stop_reason", record["stop_reason"], (str,), n_problems
    )
    fitted["stop_reason_"] = np.array(reasons)
    if n_problems > 1:
        return fitted
    return {
        key: value if key == "n_iter_" else value.tolist()[0]
        for key, value in fitted.items()
    }


def _is(name: str, value: Any, kind: type[_Item]) -> _Item:
    _one_of_types(name, value, (kind,))
    return cast(_Item, value)


def _one_of_types(name: str, value: Any, kinds: tuple[type, ...]) -> None:
    # The very type: a bool is an int only to Python.
    if type(value) not in kinds:
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{name}: found {short(value)}, expected {expected}")


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _are(values: list[Any], kinds: tuple[type, ...]) -> bool:
    return all(type(value) in kinds for value in values)


def _has_keys(name: str, record: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(record, dict):
        raise ValueError(f"{name}: found {short(record)}, expected an object")
    missing = [key for key in keys if key not in record]
    if missing:
        raise ValueError(f"{name}: found no {', '.join(missing)}, expected all keys")
    unknown = [key for key in record if key not in keys]
    if unknown:
        raise ValueError(f"{name}: found {short(unknown)}, expected only {keys}")


def _list_of(
    name: str, values: Any, kinds: tuple[type, ...] | None, length: int | None = None
) -> list[Any]:
    if not isinstance(values, list):
        raise ValueError(f"{name}: found {values!r}, expected a list")
    if length is not None and len(values) != length:
        raise ValueError(f"{name}: found {len(values)} entries, expected {length}")
    if kinds is not None and not _are(values, kinds):
        wrong = next(value for value in values if type(value) not in kinds)
        _one_of_types(name, wrong, kinds)
    return values


def _floats(name: str, values: Any, length: int) -> Floats:
    numbers = np.array(_list_of(name, values, (int, float), length), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name}: found a number that is not finite, expected others")
    return numbers
