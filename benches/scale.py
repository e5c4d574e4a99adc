"""Fit a matrix with more than 2^31 entries, to check that all of them count.

Run manually on a machine with 24 GB: ``python benches/scale.py [dense | sparse]``. The
model is known in advance, and differs for the rows beyond entry 2^31.
"""

import resource
import sys
import time

import numpy as np
import scipy.sparse as sp

from sdca_rs import Sdca

# Entries in a row of the sparse matrix.
PER_ROW = 100


def peak():
    """Return the largest size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def dense():
    """Make 22 million rows of 100 columns in float32: 2.2e9 entries, 8.8 GB."""
    n_rows, n_cols = 22_000_000, 100
    rng = np.random.default_rng(0)
    X = np.empty((n_rows, n_cols), np.float32)
    for part in range(0, n_rows, 10**6):
        rng.standard_normal(out=X[part : part + 10**6], dtype=X.dtype)
    return X


def sparse():
    """Make CSR rows of 2.2e9 entries in float32, int64 row pointers: 17.6 GB."""
    n_rows, per_row, n_cols = 22_000_000, PER_ROW, 1000
    rng = np.random.default_rng(0)
    data = np.empty(n_rows * per_row, np.float32)
    indices = np.empty(n_rows * per_row, np.int32)
    step = 10**6
    for part in range(0, n_rows, step):
        here = slice(part * per_row, (part + step) * per_row)
        rng.standard_normal(out=data[here], dtype=np.float32)
        first = rng.integers(0, n_cols // per_row, (step, 1))
        columns = first + (n_cols // per_row) * np.arange(per_row)
        indices[here] = columns.ravel()
    indptr = np.arange(0, n_rows * per_row + 1, per_row)
    X = sp.csr_array((n_rows, n_cols), dtype=np.float32)
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def some_rows(X, rows):
    """Take consecutive rows. scipy would first copy all int32 indices as int64."""
    if isinstance(X, np.ndarray):
        return X[rows]
    start, stop, _ = rows.indices(X.shape[0])
    entries = slice(start * PER_ROW, stop * PER_ROW)
    indptr = np.arange(0, (stop - start) * PER_ROW + 1, PER_ROW, dtype=np.int32)
    arrays = X.data[entries], X.indices[entries], indptr
    return sp.csr_array(arrays, shape=(stop - start, X.shape[1]))


def main(kind):
    """Fit, and compare."""
    X = {"dense": dense, "sparse": sparse}[kind]()
    n_rows, n_cols = X.shape
    w = np.linspace(-1, 1, n_cols)
    y = np.empty(n_rows)
    for part in range(0, n_rows, 10**6):
        rows = slice(part, part + 10**6)
        y[rows] = some_rows(X, rows) @ w
    # Beyond entry 2^31 the labels are flipped, so ignoring these rows would show.
    late = 2**31 // (n_cols if kind == "dense" else PER_ROW)
    y[late:] += 3.0
    n_entries = X.size if kind == "dense" else len(X.data)
    print(
        f"{kind}: {n_rows} x {n_cols}, {n_entries / 2**31:.3f} x 2^31 entries, "
        f"{peak():.1f} GB"
    )
    begun = time.perf_counter()
    fit = Sdca("squared", random_state=0, tol=1e-6).fit(X, y)
    seconds = time.perf_counter() - begun
    print(
        f"{fit.stop_reason_} after {fit.n_iter_} epochs, {seconds:.0f} s, "
        f"gap {fit.duality_gap_ / fit.objective_:.1e} of P, {peak():.1f} GB"
    )
    share = (n_rows - late) / n_rows
    # The columns are independent of the shift: w stays, b is the mean shift.
    off = np.abs(fit.coef_ - w).max()
    print(f"w off by {off:.1e}, b = {fit.intercept_:.6f} where {3 * share:.6f} is due")
    expected = 4.5 * share * (1 - share)
    print(f"P = {fit.objective_:.6f} where {expected:.6f} is due")
    assert fit.stop_reason_ == "converged"
    assert off < 1e-2
    assert abs(fit.intercept_ - 3 * share) < 1e-2
    assert abs(fit.objective_ / expected - 1) < 1e-2
    last = some_rows(X, slice(n_rows - 1000, n_rows))
    found = fit.predict(last)
    assert np.abs(found - (last @ fit.coef_ + fit.intercept_)).max() < 1e-5
    print("sound")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "dense")
