"""Print the sizes of a stored model with many classes.

    SDCA_RS_DATA=FOLDER python benches/model_sizes.py

fits a support vector machine to the sections of Debian packages (`debian_sections.npz`
of the folder) and stores it in the ways that docs/guide.md lists.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sdca_rs import Sdca


def main() -> None:
    """Print a line for each way."""
    with np.load(Path(os.environ["SDCA_RS_DATA"]) / "debian_sections.npz") as stored:
        columns = np.cumsum(stored["dindices"].astype(np.int64)).astype(np.int32)
        values = np.broadcast_to(stored["data"].astype(float), columns.shape).copy()
        X = sp.csr_matrix(
            (values, columns, stored["indptr"].astype(np.int32)),
            shape=tuple(stored["shape"]),
        )
        y = stored["y"]
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, {len(np.unique(y))} classes")
    for keep_dual in (True, False):
        model = Sdca("hinge", C=0.5, tol=1e-2, keep_dual=keep_dual, random_state=0)
        model.fit(X, y)
        show(f"pickle, keep_dual={keep_dual}", len(pickle.dumps(model)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        show("save", path.stat().st_size)
    show("pickle after sparsify", len(pickle.dumps(model.sparsify())))


def show(how: str, n_bytes: int) -> None:
    """Print a size."""
    print(f"{how:24} {n_bytes / 1e6:5.1f} MB")


if __name__ == "__main__":
    main()
