"""Models in files, with what their rows need."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

import numpy as np

import sdca_rs
from sdca_rs._base import CertifiedLinearModel
from sdca_rs._cli._errors import CommandError
from sdca_rs._cli._liblinear import Liblinear, is_liblinear, read_liblinear
from sdca_rs._cli._prepare import Preparation
from sdca_rs._cli._train import replacing

# The key that this module adds to what `save` writes.
_KEY = "input"


def save(model: CertifiedLinearModel, preparation: Preparation, path: str) -> None:
    """Write a model; one that needs no preparation as `save` does."""
    names = preparation.names()
    if names is not None:
        model.__dict__["feature_names_in_"] = np.array(names, dtype=object)
    with replacing(path) as draft:
        model.save(draft)
        if preparation.is_needed:
            _add(draft, preparation)


def _add(path: str, preparation: Preparation) -> None:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # A line for each key, as in the rest of the file.
    entry = json.dumps(preparation.to_json(), allow_nan=False)
    body = text.rstrip().removesuffix("}").rstrip()
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{body},\n"{_KEY}": {entry}\n}}\n')


def read(path: str) -> tuple[Any, Preparation, Liblinear | None]:
    """Read a model of ours or of LIBLINEAR."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}, expected a model") from error
    if is_liblinear(content):
        liblinear = read_liblinear(path)
        return liblinear.model, liblinear.preparation, liblinear
    try:
        record = json.loads(content)
    except ValueError as error:
        raise CommandError(
            f"{path}: found no JSON ({error}), expected a model of sdca-rs train or of "
            "LIBLINEAR (DATA comes first, MODEL second)"
        ) from error
    preparation = Preparation()
    plain = path
    with tempfile.TemporaryDirectory() as folder:
        try:
            if isinstance(record, dict) and _KEY in record:
                preparation = Preparation.from_json(record.pop(_KEY))
                plain = os.path.join(folder, "model.json")
                with open(plain, "w", encoding="utf-8") as file:
                    json.dump(record, file)
            model = sdca_rs.load(plain)
        except ValueError as error:
            raise CommandError(str(error).replace(plain, path)) from error
    return model, preparation, None


def without_names(model: Any) -> Any:
    """Let a model take rows without names: they were put in order by their names."""
    vars(model).pop("feature_names_in_", None)
    return model
