"""What the examples share: arguments, data, and where pictures go."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp

mpl.use("Agg")


class MissingDataError(Exception):
    """A data set cannot be had here; the message says how to get it."""


def arguments(description: str, name: str) -> argparse.Namespace:
    """Read the command line: ``--quick`` for reduced sizes, ``--out`` for a folder."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="reduced sizes: seconds, not minutes"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/examples") / name,
        help="folder for the pictures (default: %(default)s)",
    )
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def data_file(name: str) -> Path:
    """Return the path of a file in the folder that ``SDCA_RS_DATA`` names."""
    folder = os.environ.get("SDCA_RS_DATA")
    if not folder:
        raise MissingDataError(
            f"{name} is looked for in the folder that SDCA_RS_DATA names, and "
            "SDCA_RS_DATA is not set"
        )
    path = Path(folder) / name
    if not path.exists():
        raise MissingDataError(f"SDCA_RS_DATA={folder} holds no {name}")
    return path


def load(name: str):
    """Load ``X, y`` from ``name.npz`` in the folder that ``SDCA_RS_DATA`` names.

    Dense sets hold ``X, y``; sparse ones ``data`` (one value, if all are the same),
    ``dindices`` (differences of the column indices), ``indptr``, ``shape`` and ``y``.
    """
    with np.load(data_file(f"{name}.npz")) as file:
        if "X" in file:
            return file["X"].astype(np.float64), file["y"]
        indices = np.cumsum(file["dindices"], dtype=np.int64).astype(np.int32)
        data = np.broadcast_to(file["data"].astype(np.float64), indices.shape).copy()
        matrix = (data, indices, file["indptr"].astype(np.int32))
        return sp.csr_matrix(matrix, shape=tuple(file["shape"])), file["y"]


def load_or_fetch(name: str, fetch):
    """Load a set, or else have ``fetch()`` download it by scikit-learn's fetchers."""
    try:
        return load(name)
    except MissingDataError as missing:
        # A network that answers nothing must not hold up the rest.
        socket.setdefaulttimeout(20)
        try:
            return fetch()
        except Exception as error:
            raise MissingDataError(
                f"{missing}; nor can it be downloaded ({type(error).__name__}: {error})"
            ) from error


def skip(what: str, error: MissingDataError) -> None:
    """Say clearly that a part is left out, and why."""
    print(f"\n--- {what} is left out: {error}", file=sys.stderr)


def save(figure, folder: Path, name: str) -> None:
    """Write a picture and say where it is."""
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")
