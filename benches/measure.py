"""Time fits from loose to exact, and judge each by the same function."""

from __future__ import annotations

import gc
import json
import os
import platform
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse as sp
from peers import OURS, Peer
from sets import DataSet, MissingDataError, Problem, load, losses_of
from threadpoolctl import threadpool_info

LOOSEST, TIGHTEST = 0.1, 1e-10
# Tolerances decrease by half a power of ten where fits are short, otherwise to the next
# whole power: those are the accuracies that count.
QUICK_FIT = 0.5
ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
MANY_ITERATIONS = 10_000_000
# Fits shorter than this are repeated, and the shortest time counts.
SHORT, REPETITIONS = 0.2, 3
# Time limit of a peer's fit: a multiple of the time in which ours proves an accuracy of
# 1e-6, with a minimum, and never more than the cap. LIBLINEAR through scikit-learn gets
# more, so that large ratios to it are measured rather than bounds.
ROOM, LIBLINEAR_ROOM, LEAST_CAP, PROVEN = 2.0, 10.0, 0.5, 1e-6
# Growth of the number of iterations, if that is varied instead of a tolerance.
GROWTH = 1.5
# This many consecutive fits without progress end a sweep. The primal objective of a
# dual method goes up and down from pass to pass.
PATIENCE = {"tolerance": 5, "iterations": 10}
# Containers at this depth take one line of the file each, not one per item: a solver of
# a row with all its fits, or a fit of a cell.
ONE_LINE_DEPTH = 4
DISTRIBUTIONS = (
    "sdca-rs",
    "numpy",
    "scipy",
    "scikit-learn",
    "liblinear-official",
    "snapml",
    "cyanure",
    "skglm",
    "numba",
)


@dataclass(frozen=True)
class Fit:
    """One timed fit. An objective that is not finite is None."""

    tol: float
    max_iter: int
    seconds: float
    objective: float | None
    n_iter: int | None
    limited: bool


@dataclass
class Record:
    """The results of a solver in a row: its fits, and why the sweep ended."""

    solver: str
    liblinear: bool
    fits: list[Fit] = field(default_factory=list)
    end: str = ""


class OverCapError(Exception):
    """The alarm interrupted a fit."""


def measure_rows(
    keys: Sequence[tuple[str, str, float]],
    peers: Sequence[Peer],
    cap: float,
    done: Callable[[dict[str, Any]], None],
) -> dict[str, str]:
    """Measure each set, loss and C; return the sets that are missing, with reasons."""
    warm_up(peers)
    missing: dict[str, str] = {}
    for name, loss, C in keys:
        try:
            data = load(name)
        except MissingDataError as error:
            if name not in missing:
                print(f"{name} is left out: {error}", flush=True)
            missing[name] = str(error)
            continue
        done(measure_row(Problem(data, loss, C), peers, cap))
    return missing


def measure_row(problem: Problem, peers: Sequence[Peer], cap: float) -> dict[str, Any]:
    """Sweep all solvers of one problem."""
    start = time.perf_counter()
    records: list[Record] = []
    peer_cap = liblinear_cap = cap
    for peer in peers:
        if problem.loss not in peer.losses:
            continue
        its_cap = liblinear_cap if peer.through_liblinear else peer_cap
        if peer.name.startswith(OURS):
            its_cap = cap
        records.append(Sweep(peer, problem, its_cap, lowest(records)).run())
        if peer.name == OURS:
            peer_cap = cap_of_peers(records[-1], cap, ROOM)
            liblinear_cap = cap_of_peers(records[-1], cap, LIBLINEAR_ROOM)
    return {
        "set": problem.data.name,
        "loss": problem.loss,
        "C": problem.C,
        "n_rows": problem.X.shape[0],
        "n_columns": problem.X.shape[1],
        "n_stored": problem.data.n_stored,
        "cap": cap,
        "peer_cap": peer_cap,
        "liblinear_cap": liblinear_cap,
        "seconds": time.perf_counter() - start,
        "solvers": [asdict(record) for record in records],
    }


def cap_of_peers(ours: Record, cap: float, room: float) -> float:
    """Return the time limit of a peer's fit, from our time to prove 1e-6."""
    proofs = [
        fit.seconds for fit in ours.fits if fit.tol <= 1.01 * PROVEN and not fit.limited
    ]
    return min(cap, max(LEAST_CAP, room * min(proofs, default=np.inf)))


def lowest(records: Sequence[Record]) -> float:
    """Return the lowest objective so far."""
    found = (fit.objective for record in records for fit in record.fits)
    return min((value for value in found if value is not None), default=np.inf)


class Sweep:
    """Fits of one solver on one problem, none much longer than the cap.

    The sweep ends when the objective agrees with the lowest of the other solvers to the
    highest accuracy, when the cap would be exceeded, or when several consecutive fits,
    each longer than those before, do not lower the objective.
    """

    def __init__(self, peer: Peer, problem: Problem, cap: float, lowest: float) -> None:
        self.peer = peer
        self.problem = problem
        self.cap = cap
        self.lowest = lowest
        self.record = Record(peer.name, peer.through_liblinear)
        self.best = np.inf
        self.in_vain = 0

    def run(self) -> Record:
        """Run all fits."""
        self.record.end = self.peer.missing or self.peer.unfit(self.problem)
        if self.record.end:
            return self.record
        by_tolerance = self.peer.sweep == "tolerance"
        try:
            steps = self._tolerances() if by_tolerance else self._iterations()
            self.record.end = next((end for end in steps if end), "all tolerances")
        except OverCapError:
            self.record.end = "> cap: interrupted"
        except Exception as error:
            # Any exception of a library is its result, not the end of the benchmark.
            self.record.end = f"failed: {type(error).__name__}: {error}"
        return self.record

    def _tolerances(self) -> Iterator[str]:
        """Decrease tolerances; yield a reason to stop, or nothing, after each fit."""
        if self.peer.bound != "growth":
            yield self._fit(TIGHTEST, 1)
            if self._last.seconds > self.cap:
                yield f"> cap: one iteration takes {self._last.seconds:.3g} s"
        halves = round(-2 * np.log10(LOOSEST))
        while (tol := 10 ** (-halves / 2)) > TIGHTEST / 1.1:
            limit = self._limit()
            end = self._fit(tol, limit)
            while not end and self._last.limited and self._limit() > 1.3 * limit:
                limit = self._limit()
                end = self._fit(tol, limit)
            stopped = self._last.limited and limit < MANY_ITERATIONS
            yield end or ("> cap" if stopped else self._growth_end())
            halves += 1 if self._last.seconds <= QUICK_FIT else 2 - halves % 2

    def _iterations(self) -> Iterator[str]:
        """Increase iterations; yield a reason to stop, or nothing, after each fit."""
        count = 1
        while True:
            end = self._fit(TIGHTEST, count)
            more = max(count + 1, round(GROWTH * count))
            expected = self._last.seconds * more / count
            yield end or ("> cap" if count > 1 and expected > self.cap else "")
            count = more

    def _growth_end(self) -> str:
        """Stop a solver without a time limit if its next fit may take too long."""
        if self.peer.bound != "growth" or len(self.record.fits) < 2:
            return ""
        before, last = (fit.seconds for fit in self.record.fits[-2:])
        return "> cap: predicted" if last * max(1, last / before) > self.cap else ""

    def _limit(self) -> int:
        """Return the number of iterations that take about as long as the cap."""
        if self.peer.bound == "growth":
            return MANY_ITERATIONS
        first, last = self.record.fits[0], self._last
        if last.n_iter is None or last.n_iter < 2:
            each = first.seconds
        else:
            each = (last.seconds - first.seconds) / (last.n_iter - 1)
        within = 1 + (self.cap - first.seconds) / max(each, 1e-9)
        return int(np.clip(within, 2, MANY_ITERATIONS))

    @property
    def _last(self) -> Fit:
        return self.record.fits[-1]

    def _fit(self, tol: float, max_iter: int) -> str:
        """Fit and record; return a reason to stop, or nothing."""
        fit = timed_fit(self.peer, self.problem, tol, max_iter, self.cap)
        again = bool(self.record.fits) and fit.objective == self._last.objective
        self.record.fits.append(fit)
        if fit.objective is None:
            return "failed: diverged" if self.peer.sweep == "tolerance" else ""
        apart = abs(fit.objective - self.lowest)
        if np.isfinite(self.lowest) and apart <= ACCURACIES[-1] * self.lowest:
            return "reached the last accuracy"
        # A tolerance can be too loose to matter, so that the fit is unchanged.
        if fit.objective >= self.best * (1 - 1e-11) and (not again or tol < 1e-6):
            self.in_vain += 1
        else:
            self.in_vain = 0
        self.best = min(self.best, fit.objective)
        return "no progress" if self.in_vain == PATIENCE[self.peer.sweep] else ""


def timed_fit(
    peer: Peer, problem: Problem, tol: float, max_iter: int, cap: float
) -> Fit:
    """Fit, and evaluate the model outside of the solver."""
    seconds = np.inf
    for _ in range(REPETITIONS):
        with quiet() as caught, alarm(2 * cap if peer.bound == "alarm" else 0):
            start = time.perf_counter()
            model = peer.fit(problem, peer.losses[problem.loss], tol, max_iter)
            seconds = min(seconds, time.perf_counter() - start)
        if seconds >= SHORT:
            break
    coef = np.asarray(model.coef_, dtype=np.float64).ravel()
    n_iter = getattr(model, "n_iter_", None)
    n_iter = None if n_iter is None else int(np.max(n_iter))
    warned = any("onverge" in str(w.message) for w in caught)
    objective = problem.objective(coef)
    return Fit(
        tol=tol,
        max_iter=max_iter,
        seconds=seconds,
        objective=objective if np.isfinite(objective) else None,
        n_iter=n_iter,
        limited=warned or (n_iter is not None and n_iter >= max_iter),
    )


@contextmanager
def quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Disable the garbage collector, collect warnings, and ignore overflows."""
    gc.disable()
    try:
        with (
            np.errstate(all="ignore"),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            yield caught
    finally:
        gc.enable()


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Interrupt Python loops after this many seconds; 0 means never."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise OverCapError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def warm_up(peers: Sequence[Peer]) -> None:
    """Make every solver import and compile what it needs, on tiny data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    for peer in peers:
        if peer.missing:
            print(f"{peer.name}: {peer.missing}", flush=True)
            continue
        for loss, name in peer.losses.items():
            for data in (DataSet("tiny", X, y), DataSet("tiny", sp.csr_matrix(X), y)):
                # A failure here occurs again in the measurement and is reported there.
                with quiet(), suppress(Exception):
                    peer.fit(Problem(data, loss, 1.0), name, 1e-2, 5)


def facts(threads: int) -> dict[str, Any]:
    """Describe the machine and the libraries."""
    versions = {name: version(name) for name in DISTRIBUTIONS}
    blas = [pool["internal_api"] for pool in threadpool_info()]
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory_bytes() / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "thread_pools": sorted(set(blas)),
        "threads": threads,
        "versions": versions,
        "date": time.strftime("%Y-%m-%d"),
    }


def version(name: str) -> str:
    """Return the version of a library, or say that it is missing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"not installed (pip install {name})"


def cpu_model() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def memory_bytes() -> int:
    """Return the size of the main memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def save(run: dict[str, Any], path: Path) -> None:
    """Write the results so that an interruption leaves the old or the new file."""
    partial = path.with_suffix(".partial")
    partial.write_text(json_lines(run) + "\n")
    partial.replace(path)


def json_lines(value: Any, depth: int = 0) -> str:
    """Return JSON with one line per item, down to a depth; the keys are strings."""
    if depth == ONE_LINE_DEPTH or not value or not isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, dict):
        pairs = value.items()
        items = [f"{json.dumps(k)}: {json_lines(v, depth + 1)}" for k, v in pairs]
        left, right = "{}"
    else:
        items = [json_lines(item, depth + 1) for item in value]
        left, right = "[]"
    line = "\n" + " " * depth
    lines = f",{line} ".join(items)
    return f"{left}{line} {lines}{line}{right}"


def row_keys(
    sets: Sequence[str], losses: Sequence[str], Cs: Sequence[float]
) -> list[tuple[str, str, float]]:
    """Return the rows of the table: a set, a loss and C."""
    return [
        (name, loss, C)
        for name in sets
        for loss in losses_of(name)
        if loss in losses
        for C in Cs
    ]
