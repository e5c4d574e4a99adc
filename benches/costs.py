"""Costs of a fit apart from accuracy: an epoch, memory, growth with the rows."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp
from measure import facts, quiet, save
from report import markdown_table
from sets import DataSet, Floats, Matrix, MissingDataError, load, losses_of
from sklearn.svm import LinearSVC

from sdca_rs import Sdca

mpl.use("Agg")
import matplotlib.pyplot as plt

# LIBLINEAR cannot shrink in its first pass, and by the third it may have dropped most
# rows, so only its second pass is comparable.
FEW_PASSES = (1, 2)
FEW_EPOCHS = (2, 7)
REPETITIONS = 7
BANDWIDTH_BYTES = 2**29


def shortest(work: Callable[[], object], repetitions: int) -> float:
    """Return the shortest time of several calls."""
    times = []
    with quiet():
        for _ in range(repetitions):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return min(times)


def each(
    fit: Callable[[int], object], counts: tuple[int, int], repetitions: int
) -> float:
    """Return the time of one more iteration, between two numbers of them."""
    few, many = (shortest(partial(fit, n), repetitions) for n in counts)
    return (many - few) / (counts[1] - counts[0])


def epochs_of_ours(X: Matrix, y: Floats) -> Callable[[int], object]:
    """Return plain epochs, evaluated only at the end."""
    return lambda n: Sdca(
        loss="hinge",
        fit_intercept=False,
        tol=0,
        max_iter=n,
        first_epoch="sdca",
        record_every=1000,
        # Passes that visit resting rows less often do more work per visit.
        accelerate=False,
        random_state=0,
    ).fit(X, y)


def passes_of_liblinear(X: Matrix, y: Floats) -> Callable[[int], object]:
    """Return passes of LIBLINEAR's ``-s 3``."""
    return lambda n: LinearSVC(
        loss="hinge", fit_intercept=False, tol=1e-12, max_iter=n, random_state=0
    ).fit(X, y)


def bandwidth() -> float:
    """Return the bytes per second at which numpy reads data larger than the caches."""
    values = np.ones(BANDWIDTH_BYTES // 8)

    def product() -> None:
        values @ values

    # Which of the two is limited only by memory depends on how numpy was built.
    quickest = min(shortest(read, REPETITIONS) for read in (values.sum, product))
    return values.nbytes / quickest


def is_available(name: str) -> bool:
    """Return whether a set is available; if not, print why."""
    try:
        load(name)
    except MissingDataError as error:
        print(f"{name} is left out: {error}")
        return False
    return True


def epochs(names: Sequence[str], out: Path) -> None:
    """Compare an epoch, hinge loss and C = 1, with a pass of LIBLINEAR's ``-s 3``."""
    speed = bandwidth()
    results = [
        epoch_of(load(name), speed)
        for name in names
        if "hinge" in losses_of(name) and is_available(name)
    ]
    head = "set,ns per entry float64,float32,LIBLINEAR pass,LIBLINEAR / float64"
    head += ",LIBLINEAR / float32,of the read bandwidth"
    lines = [head.split(","), ["---"] * 7]
    for r in results:
        ns = [1e9 * r[key] / r["n_stored"] for key in ("float64", "float32", "pass")]
        share = f"{100 * r['share']:.0f} %" if r["dense"] else "-"
        ratios = [f"{ns[2] / own:.2f}" for own in ns[:2]]
        lines.append([r["set"], *(f"{value:.2f}" for value in ns), *ratios, share])
    text = (
        f"One epoch: difference of fits with {FEW_EPOCHS} epochs (ours) and with "
        f"{FEW_PASSES} passes\n(LIBLINEAR, which may shrink a little in the second). "
        f"A large float64 array is read at\n{speed / 1e9:.1f} GB/s.\n\n"
        + markdown_table(lines)
    )
    report("epochs", text, results, out)


def epoch_of(data: DataSet, speed: float) -> dict[str, Any]:
    """Time one epoch of ours in both precisions, and one pass of LIBLINEAR."""
    counted = {}
    for kind in ("float64", "float32"):
        X = data.X.astype(kind)
        counted[kind] = each(epochs_of_ours(X, data.y), FEW_EPOCHS, REPETITIONS)
    liblinear = passes_of_liblinear(data.X, data.y)
    return {
        "set": data.name,
        "n_stored": data.n_stored,
        "dense": not sp.issparse(data.X),
        **counted,
        "pass": each(liblinear, FEW_PASSES, REPETITIONS),
        "share": data.n_bytes / counted["float64"] / speed,
    }


def memory(names: Sequence[str], out: Path) -> None:
    """Measure the peak memory added by a fit, each set in a separate process."""
    context = multiprocessing.get_context("spawn")
    results = []
    for name in names:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            try:
                results.append(pool.submit(memory_of, name).result())
            except MissingDataError as error:
                print(f"{name} is left out: {error}")
    lines = [["set", "loss", "MB of X", "MB added", "of X"], ["---"] * 5]
    lines += [
        [
            r["set"],
            r["loss"],
            f"{r['data'] / 1e6:.1f}",
            f"{r['added'] / 1e6:.1f}",
            f"{100 * r['added'] / r['data']:.0f} %",
        ]
        for r in results
    ]
    text = "Peak of resident memory during a fit, above that before it.\n\n"
    report("memory", text + markdown_table(lines), results, out)


def memory_of(name: str) -> dict[str, Any]:
    """Measure the peak memory added by a fit (Linux only)."""
    data = load(name)
    loss = losses_of(name)[0]
    # Memory for what the first fit imports or starts must not count, nor may the fit
    # reuse memory that was freed but not returned to the system.
    small = np.unique(data.y, return_index=True)[1][:100]
    Sdca(loss=loss, fit_intercept=False).fit(data.X[small], data.y[small])
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    with quiet():
        Sdca(loss=loss, fit_intercept=False, max_iter=20, random_state=0).fit(
            data.X, data.y
        )
    added = max(0, resident("VmHWM") - before)
    return {"set": name, "loss": loss, "data": data.n_bytes, "added": added}


def resident(key: str) -> int:
    """Return a size in bytes from the status of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return 1024 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {key}")


def growth(max_gib: float, out: Path) -> None:
    """Time an epoch as the rows double, as long as X fits in ``max_gib``."""
    results = []
    for make in (dense_rows, sparse_rows):
        n_rows, per_row = 2**12, make(1).n_bytes
        while n_rows * per_row <= max_gib * 2**30:
            results.append(growth_of(make(n_rows)))
            n_rows *= 2
    lines = [["rows", "", "MB", "s per epoch", "ns per entry"], ["---"] * 5]
    lines += [
        [
            f"{r['n_rows']}",
            r["kind"],
            f"{r['n_bytes'] / 1e6:.0f}",
            f"{r['seconds']:.3g}",
            f"{1e9 * r['seconds'] / r['n_stored']:.2f}",
        ]
        for r in results
    ]
    report("growth", markdown_table(lines), results, out)
    draw_growth(results, out / "growth.png")


def growth_of(data: DataSet) -> dict[str, Any]:
    """Time one epoch on generated data."""
    repetitions = REPETITIONS if data.n_bytes < 2**28 else 1
    seconds = each(epochs_of_ours(data.X, data.y), (1, 3), repetitions)
    n_rows = len(data.y)
    print(f"{data.name}, {n_rows} rows: {seconds:.3g} s", flush=True)
    return {
        "kind": data.name,
        "n_rows": n_rows,
        "n_bytes": data.n_bytes,
        "n_stored": data.n_stored,
        "seconds": seconds,
    }


def dense_rows(n_rows: int, n_columns: int = 100) -> DataSet:
    """Generate dense rows with noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    return DataSet("dense", X, np.where(X[:, 0] > rng.standard_normal(n_rows), 1.0, -1))


def sparse_rows(n_rows: int, n_columns: int = 100_000, per_row: int = 50) -> DataSet:
    """Generate rows with one entry in each of equal ranges of columns."""
    rng = np.random.default_rng(0)
    width = n_columns // per_row
    indices = rng.integers(width, size=(n_rows, per_row), dtype=np.int32)
    indices += width * np.arange(per_row, dtype=np.int32)
    indptr = per_row * np.arange(n_rows + 1, dtype=np.int64)
    values = rng.standard_normal(n_rows * per_row)
    shape = (n_rows, n_columns)
    X = sp.csr_matrix((values, indices.ravel(), indptr), shape=shape)
    y = np.where(values[::per_row] > rng.standard_normal(n_rows), 1.0, -1)
    return DataSet("sparse", X, y)


def draw_growth(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw time per entry of an epoch against the size of the data."""
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    for kind in ("dense", "sparse"):
        chosen = [r for r in results if r["kind"] == kind]
        axis.plot(
            [r["n_bytes"] / 2**20 for r in chosen],
            [1e9 * r["seconds"] / r["n_stored"] for r in chosen],
            marker="o",
            label=kind,
        )
    axis.set(xscale="log", xlabel="MiB of X", ylabel="ns per stored entry and epoch")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def report(what: str, text: str, results: list[dict[str, Any]], out: Path) -> None:
    """Print and save."""
    machine = facts(1)
    text = f"{machine['cpu']}, {machine['cores']} cores, {machine['date']}\n\n{text}\n"
    print("\n" + text)
    (out / f"{what}.md").write_text(text)
    save({"facts": machine, "results": results}, out / f"{what}.json")
    print(f"written: {out / what}.json and .md")
