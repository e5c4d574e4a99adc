"""Every fit ends in time, and answers an interrupt, whatever its shape and scale.

The fits run in children, several in each. Where a child gives no answer it is killed
and the next one goes on. This is no benchmark: limits are generous, and what was
measured is printed (``pytest -rP``). ``SDCA_RS_LONG=1`` runs all combinations.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sdca_rs
from conftest import CLASSIFIERS, NAMES, REGRESSORS, SMOOTH

LONG = os.environ.get("SDCA_RS_LONG") == "1"
SEED = int(os.environ.get("SDCA_RS_SEED", time.time_ns() % 10**9 if LONG else 0))

pytestmark = pytest.mark.timeout(4 * 3600 if LONG else 300)

# Seconds that a fit is given. It shall end within twice that and half a second.
MAX_TIME = 0.2
LIMIT = 2 * MAX_TIME + 0.5
# How many times the limit a busy machine may take.
PATIENCE = 4.0

# Seconds until an interrupt is answered: 0.2 are promised, the rest is patience.
ANSWER = 1.0
# Interrupts come up to so many seconds after the start of a fit.
MOMENTS = 0.5

# A child that is silent for so many seconds hangs.
SILENCE = 40.0

SOLVERS = ["Sdca", "Asdca", "Pegasos", "Subgradient", "DualGradient"]
SHAPES = ["tall", "wide", "square", "columns", "sparse", "classes"]
SCALES = ["plain", "raw columns", "large C", "small C", "large targets"]


# ------------------------------------------------------------------ in the child


@lru_cache
def make_rows(shape: str) -> tuple[Any, Any]:
    """Generate rows, and a score for each of them."""
    rng = np.random.default_rng(0)
    if shape == "sparse":
        n, d, stored = 100_000, 50_000, 20
        # Some columns are much more frequent than others.
        indices = (d * rng.random((n, stored)) ** 3).astype(np.int32)
        data = rng.standard_normal(n * stored)
        indptr = np.arange(0, n * stored + 1, stored)
        X = sp.csr_array((data, indices.ravel(), indptr), shape=(n, d))
        X.sum_duplicates()
    else:
        n, d = {
            "tall": (200_000, 20),
            "wide": (50, 20_000),
            "square": (3_000, 3_000),
            # A Cholesky factorisation takes seconds.
            "columns": (5_000, 3_500),
            "classes": (20_000, 100),
        }[shape]
        X = rng.standard_normal((n, d))
    score = X @ (rng.standard_normal(d) / np.sqrt(20)) + 0.5 * rng.standard_normal(n)
    return X, score


@lru_cache(maxsize=1)
def make_scaled_rows(shape: str) -> Any:
    """Return the same rows with columns from 1e-8 to 1e8."""
    X, _ = make_rows(shape)
    sizes = 10.0 ** np.random.default_rng(1).uniform(-8, 8, X.shape[1])
    return sp.csr_array(X.multiply(sizes)) if sp.issparse(X) else X * sizes


def make_job(job: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return an estimator, and what it is to be fitted to."""
    shape, loss, scale = job["shape"], job["loss"], job["scale"]
    X, score = make_rows(shape)
    if scale == "raw columns":
        X = make_scaled_rows(shape)
    weights = None
    if shape == "classes":
        y = np.clip(score * 10, -20, 20).round()
    elif loss in CLASSIFIERS:
        y = np.where(score > 0, 1.0, -1.0)
    elif loss == "poisson":
        y = np.exp(np.clip(score, -5, 5)).round()
    else:
        y = score
    if scale == "large targets":
        if loss in CLASSIFIERS:
            weights = np.full(len(y), 1e100)
        else:
            y = y * (1e10 if loss == "poisson" else 1e100)
    settings = {"Asdca": {"batch_size": 20}}.get(job["solver"], {})
    estimator = getattr(sdca_rs, job["solver"])(
        loss,
        C={"large C": 1e8, "small C": 1e-8}.get(scale, 1.0),
        # Small enough to be out of reach.
        tol=1e-300,
        max_iter=10**9,
        max_time=MAX_TIME,
        n_jobs=job["n_jobs"],
        random_state=0,
        **settings,
    )
    return estimator, X, y, weights


def time_fit(job: dict[str, Any]) -> dict[str, Any]:
    estimator, *data = make_job(job)
    begun = time.perf_counter()
    try:
        estimator.fit(*data)
        outcome = np.unique(estimator.stop_reason_).tolist()
    except ValueError as error:
        outcome = [str(error)]
    return {"seconds": time.perf_counter() - begun, "outcome": outcome}


def bits(estimator: Any) -> list[bytes]:
    parts = estimator.coef_, estimator.intercept_, estimator.dual_coef_
    return [np.asarray(part).tobytes() for part in parts]


def interrupt_fits(job: dict[str, Any]) -> dict[str, Any]:
    """Interrupt fits at random moments, and look at what they leave."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    moments = random.Random(f"{job}")
    estimator, *data = make_job(job)
    endless = {"max_time": None, "tol": 1e-300, "max_iter": 10**9}
    short = {"max_time": None, "tol": 0.0, "max_iter": 2}
    expected = bits(estimator.set_params(**short).fit(*data))
    waited, problems, finished = [], [], 0
    for _ in range(job["count"]):
        before = dict(vars(estimator.set_params(**endless)))
        sent, ended = [], False

        def send(sent: list[float] = sent) -> None:
            time.sleep(moments.uniform(0.0, job["moments"]))
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        sender = threading.Thread(target=send)
        try:
            # The interrupt may come before the fit has begun, too.
            sender.start()
            estimator.fit(*data)
            ended = True
            # The interrupt comes here, then.
            sender.join()
            time.sleep(10.0)
        except KeyboardInterrupt:
            waited.append(time.perf_counter() - sent[0])
        except ValueError as error:
            problems.append(str(error))
            with contextlib.suppress(KeyboardInterrupt):
                time.sleep(10.0)
        else:
            problems.append("there was no interrupt")
        sender.join()
        finished += ended
        after = vars(estimator)
        if not ended and (
            after.keys() != before.keys()
            or any(after[name] is not before[name] for name in before)
        ):
            problems.append("the estimator has changed")
        if bits(estimator.set_params(**short).fit(*data)) != expected:
            problems.append("the next fit differs")
        print(json.dumps("alive"), flush=True)
    return {"waited": waited, "problems": problems, "finished": finished}


def main() -> None:
    warnings.simplefilter("ignore")
    for job in json.loads(sys.argv[1]):
        print(json.dumps("alive"), flush=True)
        result = interrupt_fits(job) if "count" in job else time_fit(job)
        print(json.dumps(result), flush=True)


# ------------------------------------------------------------------ in the parent


def run_jobs(jobs: list[dict[str, Any]]) -> list[Any]:
    """Run jobs in a child, and in another one from where it hung or crashed.

    Of a job that did not end the result is a string.
    """
    results: list[Any] = []
    while len(results) < len(jobs):
        results += run_until_trouble(jobs[len(results) :])
    return results


def run_until_trouble(jobs: list[dict[str, Any]]) -> list[Any]:
    child = subprocess.Popen(
        [sys.executable, __file__, json.dumps(jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in child.stdout:
            lines.put(line)
        lines.put(None)

    errors: list[str] = []
    readers = [
        threading.Thread(target=read),
        threading.Thread(target=lambda: errors.append(child.stderr.read())),
    ]
    for reader in readers:
        reader.start()
    results: list[Any] = []
    trouble = ""
    try:
        while len(results) < len(jobs) and not trouble:
            try:
                line = lines.get(timeout=SILENCE)
            except queue.Empty:
                trouble = f"no answer for {SILENCE:g} s"
                break
            if line is None:
                child.wait()
                trouble = f"ended with {child.returncode}"
            elif (result := json.loads(line)) != "alive":
                results.append(result)
    finally:
        # Also one that takes no notice of signals.
        child.kill()
        child.wait()
        for reader in readers:
            reader.join()
        child.stdout.close()
        child.stderr.close()
    if trouble:
        results.append(f"{trouble} {' '.join(errors)[-1000:]}".strip())
    return results


def name_of(job: dict[str, Any]) -> str:
    parts = [job["solver"], job["loss"], job["shape"], job["scale"]]
    return ", ".join([*parts, f"n_jobs={job['n_jobs']}"])


def losses_of(solver: str, shape: str) -> list[str]:
    losses = SMOOTH if solver == "Asdca" else NAMES
    return [loss for loss in losses if shape != "classes" or loss not in REGRESSORS]


def jobs_of(shape: str) -> list[dict[str, Any]]:
    """Return all combinations, or some with every loss and every solver."""
    pairs = [(s, loss) for s in SOLVERS for loss in losses_of(s, shape)]
    k = SHAPES.index(shape)
    if LONG:
        return [
            {"solver": s, "loss": loss, "shape": shape, "scale": scale, "n_jobs": n}
            for scale in SCALES
            for s, loss in pairs
            for n in (1, 2)
        ]
    # Sdca has more to do than the others, and it has all losses in all shapes.
    chosen = [
        pair
        for number, pair in enumerate(pairs)
        if pair[0] == "Sdca" or shape == "classes" or number % 5 == k
    ]
    jobs = [
        {
            "solver": solver,
            "loss": loss,
            "shape": shape,
            "scale": SCALES[(number + k) % len(SCALES)],
            "n_jobs": 1 + (number + k) // 2 % 2,
        }
        for number, (solver, loss) in enumerate(chosen)
    ]
    # So that scaled rows are made once.
    return sorted(jobs, key=lambda job: job["scale"])


@pytest.mark.parametrize("shape", SHAPES)
def test_every_fit_ends_in_time(shape):
    jobs = jobs_of(shape)
    late = []
    measured = []
    for job, result in zip(jobs, run_jobs(jobs), strict=True):
        name = name_of(job)
        if isinstance(result, str):
            late.append(f"{name}: {result}")
            continue
        ratio = result["seconds"] / LIMIT
        measured.append((ratio, f"{ratio:5.2f} {name}: {result['outcome']}"))
        if ratio > PATIENCE:
            late.append(f"{name}: {result['seconds']:.2f} s for max_time={MAX_TIME}")
    measured.sort(reverse=True)
    print(f"\nseconds per limit of {LIMIT:g} s, {len(jobs)} fits, the slowest:")
    print("\n".join(text for _, text in measured[: 1000 if LONG else 12]))
    assert not late, "\n".join(late)


def interrupts_of(shape: str) -> list[dict[str, Any]]:
    """Return about 10 interrupts of each solver in all shapes together, or 120."""
    k = SHAPES.index(shape)
    jobs = []
    for number, solver in enumerate(SOLVERS):
        losses = losses_of(solver, shape)
        jobs += [
            {
                "solver": solver,
                "loss": losses[(number + 5 * k + turn) % len(losses)],
                "shape": shape,
                "scale": SCALES[(number + k + turn) % 4],
                "n_jobs": 1 + (k + turn) % 2,
                "count": 4 if LONG else 1 if shape == "classes" else 2,
                "seed": SEED,
                "moments": MOMENTS,
            }
            for turn in range(5 if LONG else 1)
        ]
    if shape in ("square", "columns"):
        # Newton's method is at work for seconds.
        jobs += [
            {**jobs[0], "loss": loss, "scale": scale, "moments": 2.0}
            for loss, scale in [("squared", "large C"), ("log", "plain")]
        ]
    return jobs


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to itself")
@pytest.mark.parametrize("shape", SHAPES)
def test_interrupts_are_answered_at_any_moment(shape):
    jobs = interrupts_of(shape)
    problems = []
    waits = []
    for job, result in zip(jobs, run_jobs(jobs), strict=True):
        name = name_of(job)
        if isinstance(result, str):
            problems.append(f"{name}: {result}")
            continue
        problems += [f"{name}: {problem}" for problem in result["problems"]]
        waits += [(seconds, name) for seconds in result["waited"]]
        if result["finished"]:
            print(f"{name}: {result['finished']} ended before the interrupt")
    waits.sort(reverse=True)
    print("\nseconds from an interrupt to its exception, the longest:")
    print("\n".join(f"{seconds:6.3f} {name}" for seconds, name in waits[:12]))
    problems += [
        f"{name}: answered after {seconds:.2f} s"
        for seconds, name in waits
        if seconds > ANSWER
    ]
    assert not problems, "\n".join(problems)


if __name__ == "__main__":
    main()
