"""What goes wrong around a fit never harms the interpreter, nor the estimator.

What could crash runs in children: a function of this file whose name is given.
``SDCA_RS_LONG=1`` runs more of it.
"""

from __future__ import annotations

import collections
import copy
import faulthandler
import gc
import itertools
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sdca_rs import Asdca, DualGradient, Pegasos, Sdca, Subgradient, certify
from sdca_rs._core import Stream

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.timeout(1200 if os.environ.get("SDCA_RS_LONG") == "1" else 240),
]

LONG = os.environ.get("SDCA_RS_LONG") == "1"

SOLVERS = [Sdca, Asdca, Pegasos, Subgradient, DualGradient]

# All that may come of what is broken, beside a result.
ERRORS = (ValueError, TypeError, RuntimeError, MemoryError)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
unix_only = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def make_data(n: int = 300, d: int = 5, classes: int = 2, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.digitize(X[:, 0] + rng.standard_normal(n), np.linspace(-1, 1, classes - 1))
    return X, y


def make_estimator(solver: Any = Sdca, **settings: Any) -> Any:
    """Return an estimator that will do many evaluations."""
    if solver is Sdca:
        settings = {"accelerate": False} | settings
    elif solver is Asdca:
        settings = {"batch_size": 10} | settings
    defaults = {"tol": 1e-300, "max_iter": 20, "record_every": 1, "random_state": 0}
    return solver("smooth_hinge", **(defaults | {"C": 100.0} | settings))


def bits(estimator: Any) -> tuple[bytes, ...]:
    parts = estimator.coef_, estimator.intercept_, estimator.dual_coef_
    return tuple(np.asarray(part).tobytes() for part in parts)


def is_unchanged(estimator: Any, before: dict[str, Any]) -> bool:
    after = vars(estimator)
    return after.keys() == before.keys() and all(
        after[name] is before[name] for name in before
    )


def assert_consistent(estimator: Any, X: Any, y: Any) -> None:
    """All attributes are of one fit, to these data."""
    n_models = 1 if len(estimator.classes_) == 2 else len(estimator.classes_)
    assert estimator.coef_.shape == (n_models, X.shape[1])
    assert estimator.n_features_in_ == X.shape[1]
    assert estimator.dual_coef_.shape == (n_models, X.shape[0])
    assert np.shape(estimator.objective_) == np.shape(estimator.duality_gap_)
    proof = certify(estimator, X, y)
    np.testing.assert_allclose(proof.objective, estimator.objective_, rtol=1e-9)
    np.testing.assert_allclose(
        proof.dual_objective, estimator.dual_objective_, rtol=1e-9
    )


def run_child(name: str, *arguments: Any, seconds: float = 120.0) -> str:
    """Run a function of this file in a child and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", __file__, name]
        + [repr(argument) for argument in arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return verdict(name, done.returncode, f"{done.stdout}\n{done.stderr}")


def run_fork(name: str, *arguments: Any, seconds: float = 120.0) -> str:
    """Do the same in a fork, which need not import all anew."""
    if sys.platform != "linux":
        return run_child(name, *arguments, seconds=seconds)
    receiver, sender = os.pipe()
    with warnings.catch_warnings():
        # There may be threads of a library.
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        # It would tell of crashes where pytest can be seen.
        faulthandler.disable()
        os.close(receiver)
        os.dup2(sender, 1)
        os.dup2(sender, 2)
        code = 1
        try:
            sys.stdout = sys.stderr = open(sender, "w", buffering=1)  # noqa: SIM115
            warnings.simplefilter("ignore")
            globals()[name](*arguments)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(sender)
    told = b""
    until = time.monotonic() + seconds
    with open(receiver, "rb", buffering=0) as pipe:
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                told += b"\nno end"
                os.kill(pid, signal.SIGKILL)
                break
            part = pipe.read(1 << 16)
            if not part:
                break
            told += part
    _, status = os.waitpid(pid, 0)
    return verdict(name, os.waitstatus_to_exitcode(status), told.decode())


def verdict(name: str, code: int, told: str) -> str:
    told = told if len(told) < 6000 else f"{told[:1500]}\n...\n{told[-4500:]}"
    if code != 0:
        pytest.fail(f"{name} ended with {code}:\n{told}", pytrace=False)
    return told


# AttributeError: a method that the estimator does not have, as of a regressor.
ACCEPTED = (*ERRORS, AttributeError)


def outcome_of(function: Any) -> str:
    """Call a function and say what came of it."""
    try:
        with np.errstate(all="ignore"):
            function()
    except ACCEPTED as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    except BaseException as error:
        return f"WRONG {type(error).__name__}: {str(error)[:150]}"
    return "a result"


# ------------------------------------------------------------------ callbacks


class Mine(Exception):
    """An error that nobody else raises."""


class MineToo(BaseException):
    """The same for what is no error."""


RAISED = [
    Mine,
    MineToo,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    StopIteration,
    MemoryError,
    ConvergenceWarning,
]


@pytest.mark.parametrize("at", [0, 1, 7])
@pytest.mark.parametrize(("classes", "n_jobs"), [(2, 1), (3, 1), (3, 2)])
@pytest.mark.parametrize("kind", RAISED)
def test_what_a_callback_raises_comes_through(kind, classes, n_jobs, at):
    X, y = make_data(classes=classes)
    estimator = make_estimator(n_jobs=n_jobs)
    expected = bits(estimator.fit(X, y))
    error = kind("mine")
    counted = itertools.count()

    def callback(progress):
        if next(counted) >= at:
            raise error

    before = dict(vars(estimator.set_params(callback=callback)))
    with pytest.raises(kind) as caught:
        estimator.fit(X, y)
    # Several threads may raise; of one it is the very error.
    assert caught.value is error
    assert is_unchanged(estimator, before)
    assert bits(estimator.set_params(callback=None).fit(X, y)) == expected


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [Mine, KeyboardInterrupt, SystemExit])
def test_what_a_callback_raises_comes_through_all_solvers(kind, solver):
    X, y = make_data()
    estimator = make_estimator(solver)
    expected = bits(estimator.fit(X, y))

    def callback(progress):
        if progress.epoch >= 3:
            raise kind("mine")

    before = dict(vars(estimator.set_params(callback=callback)))
    with pytest.raises(kind):
        estimator.fit(X, y)
    assert is_unchanged(estimator, before)
    assert bits(estimator.set_params(callback=None).fit(X, y)) == expected


class Odd:
    """Has no truth."""

    def __init__(self, truth: Any) -> None:
        self.truth = truth

    def __bool__(self) -> Any:
        return self.truth()


class Endless:
    """Has a length that is none."""

    def __len__(self) -> int:
        return -1


def raise_mine() -> None:
    raise Mine("no truth")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Odd(raise_mine), Mine),
        (Odd(lambda: 3), TypeError),
        (Odd(sys.exit), SystemExit),
        (Endless(), ValueError),
        (np.array([True, False]), ValueError),
    ],
    ids=["raises", "no bool", "exits", "length", "array"],
)
def test_an_answer_without_truth_is_the_error_of_asking(answer, error, n_jobs, classes):
    X, y = make_data(classes=classes)
    estimator = make_estimator(n_jobs=n_jobs, callback=lambda progress: answer)
    before = dict(vars(estimator))
    with pytest.raises(error):
        estimator.fit(X, y)
    assert is_unchanged(estimator, before)


def test_a_callback_that_sleeps_uses_the_time_up():
    X, y = make_data()
    calls = []

    def callback(progress):
        calls.append(progress)
        time.sleep(0.2)

    estimator = make_estimator(max_time=0.1, max_iter=10**9, callback=callback)
    estimator.fit(X, y)
    assert estimator.stop_reason_ == "max_time"
    # The start, what followed it, and the end.
    assert len(calls) <= 3


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callback_may_refit_another_estimator(n_jobs, classes):
    X, y = make_data(classes=classes)
    estimator = make_estimator(n_jobs=n_jobs)
    expected = bits(estimator.fit(X, y))
    found = []

    def callback(progress):
        other = make_estimator(n_jobs=n_jobs, max_iter=20)
        found.append(bits(other.fit(X, y)))

    estimator.set_params(callback=callback).fit(X, y)
    assert bits(estimator) == expected
    assert set(found) == {expected}


@pytest.mark.parametrize("columns", [5, 3])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_callback_may_refit_the_same_estimator(classes, n_jobs, columns):
    X, y = make_data(classes=classes)
    other_X, other_y = make_data(100, columns, 4, seed=1)
    estimator = make_estimator(n_jobs=n_jobs)
    expected = bits(estimator.fit(X, y))
    lock = threading.Lock()
    depth = []

    def callback(progress):
        # Once in the other fit, too.
        if len(depth) < 6 and lock.acquire(blocking=False):
            depth.append(progress.epoch)
            try:
                estimator.fit(other_X, other_y)
            finally:
                lock.release()

    estimator.set_params(callback=callback).fit(X, y)
    assert len(depth) == 6
    # The fit that ended last.
    assert bits(estimator) == expected
    assert_consistent(estimator, X, y)


class Copier:
    """A callback that can be pickled, and copies its estimator in all ways."""

    estimator: Any = None
    copies: list[Any]

    def __init__(self) -> None:
        self.copies = []

    def __getstate__(self) -> dict[str, Any]:
        # Copies have no copies.
        return {"copies": []}

    def __call__(self, progress: Any) -> bool:
        ways = (
            clone,
            copy.copy,
            copy.deepcopy,
            lambda estimator: pickle.loads(pickle.dumps(estimator)),
        )
        way = ways[len(self.copies) % len(ways)]
        self.copies.append(None)
        self.copies[-1] = way(self.estimator)
        gc.collect()
        return False


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_callback_may_copy_and_pickle_the_estimator(classes, solver):
    X, y = make_data(classes=classes)
    estimator = make_estimator(solver, max_iter=5)
    expected = bits(estimator.fit(X, y))
    copier = Copier()
    estimator.set_params(callback=copier)
    copier.estimator = estimator
    estimator.fit(X, y)
    assert bits(estimator) == expected
    assert len(copier.copies) >= 6
    for copied in copier.copies[:8]:
        assert bits(copied.set_params(callback=None).fit(X, y)) == expected


def test_progress_may_be_kept():
    X, y = make_data()
    kept = []
    estimator = make_estimator(callback=lambda progress: kept.append(progress))
    estimator.fit(X, y)
    del X, y
    gc.collect()
    last = estimator.coef_[0].copy()
    for progress in kept:
        progress.coef[:] = np.nan
        assert repr(progress)
    # What a callback has written into is its own.
    np.testing.assert_array_equal(estimator.coef_[0], last)


# ------------------------------------------------------------------ processes


def fit_some(seed: int) -> tuple[bytes, ...]:
    X, y = make_data(classes=4)
    return bits(make_estimator(n_jobs=2, random_state=seed).fit(X, y))


def child_fork(during: bool) -> None:
    """Fork after a fit with threads, or in a callback of one, and fit in the forks."""
    expected = fit_some(0)
    pids = []

    def fork() -> None:
        pid = os.fork()
        if pid:
            pids.append(pid)
            return
        # The other threads are not here.
        try:
            ok = fit_some(0) == expected
        except BaseException:
            traceback.print_exc()
            ok = False
        os._exit(0 if ok else 7)

    def callback(progress: Any) -> None:
        if progress.epoch == 5:
            fork()

    if during:
        X, y = make_data(classes=4)
        estimator = make_estimator(n_jobs=2, callback=callback).fit(X, y)
        assert bits(estimator) == expected
        # A fit of one problem whose evaluations are shared by threads.
        X, y = make_data(200_000, 20)
        make_estimator(n_jobs=2, max_iter=6, callback=callback).fit(X, y)
        assert len(pids) == 5
    else:
        for _ in range(4):
            fork()
            fit_some(1)
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        assert status == 0, status


@unix_only
@pytest.mark.parametrize("during", [False, True])
def test_forks_can_fit(during):
    run_child("child_fork", during)


def child_processes(method: str) -> None:
    """Fit in processes, while a thread of this one fits, too."""
    expected = fit_some(0)
    stop = threading.Event()

    def keep_fitting() -> None:
        while not stop.is_set():
            assert fit_some(0) == expected

    thread = threading.Thread(target=keep_fitting)
    thread.start()
    try:
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(fit_some, [0] * 6) == [expected] * 6
    finally:
        stop.set()
        thread.join()


@unix_only
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_can_fit_while_others_do(method):
    run_child("child_processes", method)


# ------------------------------------------------------------------ threads


def child_two_threads(classes: int, rounds: int) -> None:
    """Fit one estimator from two threads at the same time."""
    first, second = make_data(classes=classes), make_data(classes=classes, seed=1)
    estimator = make_estimator(n_jobs=2, max_iter=3)
    names = [
        "coef_",
        "intercept_",
        "dual_coef_",
        "objective_",
        "dual_objective_",
        "duality_gap_",
    ]

    def outcome() -> tuple[bytes, ...]:
        return tuple(np.asarray(getattr(estimator, name)).tobytes() for name in names)

    outcomes = []
    for data in (first, second):
        estimator.fit(*data)
        outcomes.append(outcome())
    # Threads take turns as often as they can.
    sys.setswitchinterval(1e-6)
    mixed = 0
    for _ in range(rounds):
        errors = []
        start = threading.Barrier(2)

        def fit(data: Any, errors: list[Any] = errors, start: Any = start) -> None:
            start.wait()
            try:
                estimator.fit(*data)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=fit, args=(d,)) for d in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        mixed += outcome() not in outcomes
    assert not mixed, f"{mixed} of {rounds} have attributes of both fits"


@pytest.mark.parametrize("classes", [2, 3])
def test_two_threads_that_fit_one_estimator_leave_one_of_both_fits(classes):
    run_fork("child_two_threads", classes, 3000 if LONG else 400)


def child_predict_while_fitting(seconds: float) -> None:
    """Predict by an estimator that another thread fits, to two and three classes."""
    two, three = make_data(classes=2), make_data(classes=3)
    estimator = make_estimator(max_iter=2).fit(*two)
    stop = threading.Event()
    sys.setswitchinterval(1e-6)

    def keep_fitting() -> None:
        while not stop.is_set():
            estimator.fit(*two)
            estimator.fit(*three)

    thread = threading.Thread(target=keep_fitting)
    thread.start()
    found = collections.Counter()
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            found[outcome_of(lambda: estimator.predict(two[0]))] += 1
    finally:
        stop.set()
        thread.join()
    # Attributes of two fits may not fit together.
    print(found)
    assert not [outcome for outcome in found if "Panic" in outcome]


def test_predictions_during_a_fit_do_not_crash():
    run_fork("child_predict_while_fitting", 20.0 if LONG else 2.0)


# What a writer writes into arrays of numbers, and of indices.
NUMBERS = [0.0, -1.0, 1e300, -1e300, np.inf, np.nan, 5e-324, 1e-150]
INDICES = [0, 1, -1, 2**31 - 1, -(2**31), 10**6, 20]


def child_writer(storage: str, what: str, seconds: float) -> None:
    """Fit while another thread writes into the data."""
    X, y = make_data(3000, 20, 3)
    weights = np.ones(len(y))
    if storage == "single":
        X = X.astype(np.float32)
    elif storage != "double":
        X = sp.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.3))
        index_type = np.int64 if storage == "csr64" else np.int32
        X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    targets = {"two": (y > 0) * 2.0 - 1.0, "three": y.astype(float), "number": X @ X.T}
    targets["number"] = np.asarray(X[:, [0]].sum(axis=1), dtype=float).ravel()
    arrays = {
        "X": X if isinstance(X, np.ndarray) else X.data,
        "y": None,
        "weights": weights,
        "indices": getattr(X, "indices", None),
        "indptr": getattr(X, "indptr", None),
    }
    stop = threading.Event()
    current: list[Any] = [arrays[what]]

    def write() -> None:
        rng = np.random.default_rng(1)
        while not stop.is_set():
            array = current[0]
            if array is None:
                continue
            flat = array.reshape(-1)
            k = rng.integers(len(flat), size=50)
            old = flat[k].copy()
            values = INDICES if array.dtype.kind == "i" else NUMBERS
            with np.errstate(all="ignore"):
                flat[k] = np.array(values)[rng.integers(len(values), size=50)]
            if rng.random() < 0.9:
                # The data are sound again when the next fit begins, mostly.
                flat[k] = old

    clean = {name: None if a is None else a.copy() for name, a in arrays.items()}
    found = collections.Counter()
    writer = threading.Thread(target=write)
    writer.start()
    until = time.monotonic() + seconds
    cases = itertools.cycle(
        itertools.product(SOLVERS, ["two", "three", "number"], [1, 2], [True, False])
    )
    try:
        while time.monotonic() < until:
            solver, target, n_jobs, intercept = next(cases)
            loss = "squared" if target == "number" else "smooth_hinge"
            settings = {"batch_size": 10} if solver is Asdca else {}
            estimator = solver(
                loss,
                fit_intercept=intercept,
                n_jobs=n_jobs,
                C=100.0,
                max_iter=10,
                max_time=0.2,
                random_state=0,
                **settings,
            )
            y = targets[target].copy()
            for name, array in arrays.items():
                if array is not None:
                    array[...] = clean[name]
            if what == "y":
                current[0] = y
            try:
                estimator.fit(X, y, weights)
                found["result"] += 1
                estimator.predict(X)
                found["prediction"] += 1
            except ERRORS as error:
                found[f"{type(error).__name__}: {str(error)[:40]}"] += 1
    finally:
        stop.set()
        writer.join()
    print(sum(found.values()), found.most_common(8))


@pytest.mark.parametrize(
    ("storage", "what"),
    [
        ("double", "X"),
        ("single", "X"),
        ("double", "y"),
        ("double", "weights"),
        ("csr32", "X"),
        ("csr32", "indices"),
        ("csr64", "indices"),
        ("csr32", "indptr"),
        ("csr64", "indptr"),
    ],
)
def test_a_thread_that_writes_into_the_data_crashes_nothing(storage, what):
    print(run_fork("child_writer", storage, what, 20.0 if LONG else 1.0))


def child_many_jobs(n_jobs: int) -> None:
    for classes, n in [(2, 300), (5, 300), (2, 100_000)]:
        X, y = make_data(n, 20, classes)
        one, many = (make_estimator(n_jobs=k, max_iter=3) for k in (1, n_jobs))
        assert bits(one.fit(X, y)) == bits(many.fit(X, y))
        scores = [estimator.decision_function(X).tobytes() for estimator in (one, many)]
        assert scores[0] == scores[1]


@pytest.mark.parametrize("n_jobs", [64, 300])
def test_more_jobs_than_cores_change_nothing(n_jobs):
    run_fork("child_many_jobs", n_jobs)


def child_absurd_jobs(n_jobs: int) -> None:
    """Ask for more threads than the system grants."""
    import resource

    limit = address_space() + (1 << 29)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    X, y = make_data(100_000, 20, 2)
    estimator = make_estimator(max_iter=3)
    expected = bits(estimator.fit(X, y))
    estimator.set_params(n_jobs=n_jobs)
    try:
        found = bits(estimator.fit(X, y))
        assert found == expected
    except ERRORS as error:
        print(repr(error)[:300])
    # Those that were granted end, and give back their stacks, in their own time.
    for _ in range(3000):
        if len(os.listdir("/proc/self/task")) == 1:
            break
        time.sleep(0.01)
    assert bits(estimator.set_params(n_jobs=2).fit(X, y)) == expected


@linux_only
@pytest.mark.parametrize("n_jobs", [2**15, 2**40])
def test_more_threads_than_there_can_be_are_an_error_or_fewer(n_jobs):
    print(run_fork("child_absurd_jobs", n_jobs))


# ------------------------------------------------------------------ memory


def address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def memory_job(name: str) -> Any:
    """Return a function that needs memory, and has what it is given already."""
    settings = {"tol": 1e-6, "max_iter": 3, "random_state": 0}
    if name.startswith("fit"):
        _, solver, shape = name.split()
        n, d, classes = {
            "tall": (200_000, 10, 2),
            "wide": (60, 100_000, 2),
            "newton": (1500, 1000, 2),
            "classes": (60_000, 4, 20),
            "sparse": (200_000, 1000, 2),
        }[shape]
        X, y = make_data(n, 1 if shape == "sparse" else d, classes)
        if shape == "sparse":
            indices = np.random.default_rng(0).integers(d, size=n, dtype=np.int32)
            indptr = np.arange(n + 1, dtype=np.int32)
            X = sp.csr_array((X[:, 0].copy(), indices, indptr), shape=(n, d))
        if shape == "newton":
            X *= np.geomspace(1e-3, 1e3, d)
            settings |= {"C": 1e3, "max_iter": 8}
        more: dict[str, Any] = {}
        if solver == "averaged":
            solver, more = "Sdca", {"output": "average"}
        elif solver == "threads":
            solver, more = "Sdca", {"n_jobs": 2}
        elif solver == "Asdca":
            more = {"batch_size": 100}
        kind = {kind.__name__: kind for kind in SOLVERS}[solver]
        return lambda: bits(kind("squared_hinge", **settings, **more).fit(X, y))
    if name == "partial_fit":
        X, y = make_data(200_000, 10, 3)
        return lambda: bits_of_stream(X, y)
    if name == "certify":
        X, y = make_data(200_000, 10, 2)
        model = Sdca(**settings).fit(X, y)
        return lambda: certify(model, X, y)
    # Predictions by many models: all scores at once would be too many.
    X, y = make_data(20_000, 2, 2)
    model = Sdca("log", **settings).fit(X[:2000], np.arange(2000) % 1000)
    X = np.tile(X, (40, 1))
    return lambda: getattr(model, name)(X)[:10].tobytes()


def bits_of_stream(X: Any, y: Any) -> tuple[bytes, bytes]:
    model = Pegasos(lam=0.1, random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    return model.coef_.tobytes(), model.intercept_.tobytes()


def child_memory(names: list[str], margins: list[int]) -> None:
    """Do jobs within a little more memory than is in use, each time in a fork."""
    wrong = []
    for name in names:
        job = memory_job(name)
        is_fit = name.startswith("fit")
        expected = within_memory(job, 1 << 40) if is_fit else ""
        outcomes = []
        for margin in margins:
            outcome = within_memory(job, margin)
            if not outcome.startswith(("Error", "WRONG")):
                is_same = outcome == expected or not is_fit
                outcome = "a result" if is_same else "WRONG another result"
            outcomes.append(outcome)
            print(name, margin, outcome[:150], flush=True)
            if "WRONG" in outcome:
                wrong.append(f"{name}, {margin} bytes: {outcome}")
        # The limits are where they have an effect.
        if outcomes[0] == "a result":
            wrong.append(f"{name}: no effect")
        del job
        gc.collect()
    if wrong:
        sys.exit("\n".join(wrong))


def within_memory(job: Any, margin: int) -> str:
    """Fork, do a job within a limit, and something else thereafter."""
    import resource

    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        faulthandler.disable()
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        limit = address_space() + margin
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        try:
            outcome = f"{zlib.crc32(repr(job()).encode())}"
        except MemoryError as error:
            outcome = f"Error {error!r}"
        except ValueError as error:
            # A thread needs memory, too.
            outcome = f"{'Error' if 'n_jobs' in str(error) else 'WRONG'} {error!r}"
        except BaseException as error:
            outcome = f"WRONG {error!r}"
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
        X, y = make_data()
        if Sdca(n_jobs=2).fit(X, y).score(X, y) < 0.5:
            outcome = "WRONG what followed"
        os.write(sender, outcome[:500].encode())
        os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as pipe:
        outcome = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return outcome if code == 0 else f"WRONG ended with {code}"


FITS = [
    "fit Sdca tall",
    "fit Sdca wide",
    "fit Sdca newton",
    "fit Sdca classes",
    "fit Sdca sparse",
    "fit averaged tall",
    "fit threads classes",
    "fit threads tall",
    "fit Asdca tall",
    "fit Pegasos tall",
    "fit Subgradient tall",
    "fit DualGradient tall",
    "partial_fit",
    "certify",
]


def limits_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a child take arrays from the system, where a limit counts."""
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "32768")
    # Where the system refuses, the heap of another thread may have room: libraries
    # such as pyarrow have threads.
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")


@linux_only
@pytest.mark.parametrize("names", [FITS[:4], FITS[4:8], FITS[8:]])
def test_without_memory_a_fit_is_a_memory_error_or_succeeds(names, monkeypatch):
    limits_count(monkeypatch)
    margins = [int(2**k) for k in np.linspace(12, 27, 200 if LONG else 10)]
    print(run_child("child_memory", names, margins))


@linux_only
def test_without_memory_predictions_are_a_memory_error_or_succeed(monkeypatch):
    limits_count(monkeypatch)
    # The scores of 800,000 rows by 1,000 models take 6.4 GB.
    names = ["predict", "decision_function", "predict_proba"]
    told = run_child("child_memory", names, [2**16, 2**24, 2**30])
    assert "predict 1073741824 a result" in told


# ------------------------------------------------------------------ pickles

# Rows of the data that were fitted.
N = 60

SHAPES_OF_NUMBERS = [
    None,
    0.5,
    "text",
    [],
    {},
    np.zeros(0),
    np.zeros((0, 5)),
    np.zeros((0, 0)),
    np.zeros(1),
    np.zeros(4),
    np.zeros(5),
    np.zeros(6),
    np.zeros((1, 4)),
    np.zeros((1, 5)),
    np.zeros((1, 6)),
    np.zeros((5, 1)),
    np.zeros((2, 5)),
    np.zeros((3, 5)),
    np.zeros((3, N)),
    np.zeros((1, N - 1)),
    np.zeros((1, N + 1)),
    np.zeros(N),
    np.zeros((1, N, 1)),
    np.array(1.0),
    np.full((1, 5), np.nan),
    np.full((1, N), np.inf),
    np.full((1, N), 1e300),
    np.full((1, N), -7.0),
    np.full((3, N), 7.0),
    np.zeros((1, N), dtype=object),
    np.zeros((1, N), dtype="f4"),
    np.zeros((1, N), dtype=complex),
    np.zeros((1, N), dtype="U3"),
    np.zeros((N, 3)).T,
    np.zeros((6, 2 * N))[::2, ::2],
    sp.csr_array(np.ones((1, 5))),
    sp.csr_array(np.ones((3, 4))),
    sp.coo_array(np.ones((1, N))),
]

STEPS = [
    None,
    5,
    "text",
    [],
    [-1],
    [0],
    [2**63],
    [2**64],
    [2**64 - 1],
    ["text"],
    [1.5],
    [1, 2],
    [1, 2, 3],
    (7,),
    np.array([3]),
]


def streams() -> list[Any]:
    def model(n: int, value: float = 0.0) -> Any:
        return np.full(n, value), value

    numbers = fitted("stream")[0]._streams[0].__getnewargs__()[3][1]

    def scales(n: int, value: float = 1.0) -> Any:
        return np.full(n, value), (value,) * len(numbers)

    sizes = itertools.product([0, 1, 4, 5, 6], [4, 5], [None, 0, 4, 5, 6])
    found = [
        Stream(3, model(last), model(mean), None if n is None else scales(n))
        for last, mean, n in sizes
    ]
    for value in (np.nan, np.inf, -1.0, 0.0, 1e300):
        found.append(Stream(3, model(5, value), model(5), scales(5)))
        found.append(Stream(3, model(5), model(5, value), scales(5)))
        found.append(Stream(3, model(5), model(5), scales(5, value)))
    found += [
        Stream(steps, model(5), model(5), s)
        for steps in (0, 2**63, 2**64 - 1, -1.0, 1e300, np.inf, np.nan)
        for s in (scales(5), None)
    ]
    return found


def tampered_streams() -> list[Any]:
    one = streams()
    good = Stream(3, (np.zeros(5), 0.0), (np.zeros(5), 0.0), None)
    return [
        None,
        5,
        [],
        [None],
        ["text"],
        [good, good],
        [good] * 3,
        *[[stream] for stream in one],
        *[[good, stream, good] for stream in one[::7]],
    ]


def fitted(kind: str) -> tuple[Any, Any, Any]:
    """Return a fitted estimator, and the data for what it may do next."""
    classes = 3 if "classes" in kind else 2
    X, y = make_data(N, 5, classes)
    if kind.startswith("stream"):
        model = Pegasos(lam=0.1, random_state=0, output="average")
        return model.partial_fit(X, y, classes=np.unique(y)), X, y
    if kind == "numbers":
        return Sdca("squared", max_iter=3, tol=0.0).fit(X, X[:, 0]), X, X[:, 0]
    solver = Pegasos if "Pegasos" in kind else Sdca
    return solver("log", max_iter=3, tol=0.0).fit(X, y), X, y


def use(estimator: Any, X: Any, y: Any) -> list[Any]:
    """Return what an estimator with strange attributes can do, each a function."""

    def warm() -> None:
        estimator.set_params(warm_start=True).fit(X, y)
        assert np.isfinite(estimator.coef_).all()
        assert np.isfinite(estimator.objective_).all()

    uses = [
        lambda: estimator.predict(X),
        lambda: estimator.decision_function(X),
        lambda: estimator.predict_proba(X),
        lambda: estimator.score(X, y),
        lambda: certify(estimator, X, y),
        lambda: copy.deepcopy(estimator).sparsify().predict(X),
        lambda: copy.deepcopy(estimator).sparsify().densify(),
        lambda: repr(estimator),
        lambda: pickle.dumps(estimator),
        lambda: clone(estimator).fit(X, y),
    ]
    if hasattr(estimator, "partial_fit"):
        uses.append(lambda: copy.deepcopy(estimator).partial_fit(X, y))
    return [*uses, warm]


def child_pickles(kind: str, names: list[str]) -> None:
    """Use estimators whose pickles somebody has changed."""
    found = collections.Counter()
    wrong = []
    for name in names:
        if name == "_streams":
            values = tampered_streams()
        else:
            values = STEPS if name == "_steps" else SHAPES_OF_NUMBERS
        for value in values:
            estimator, X, y = fitted(kind)
            vars(estimator)[name] = value
            try:
                strange = pickle.loads(pickle.dumps(estimator))
            except ACCEPTED as error:
                found[type(error).__name__] += 1
                continue
            for number, function in enumerate(use(strange, X, y)):
                outcome = outcome_of(function)
                found[outcome.split(":")[0]] += 1
                if outcome.startswith("WRONG"):
                    shown = " ".join(repr(value).split())[:60]
                    wrong.append(f"{name} = {shown}, use {number}: {outcome}")
    print(found)
    assert not wrong, "\n".join([f"{len(wrong)} of {sum(found.values())}", *wrong[:40]])


ATTRIBUTES = ["coef_", "intercept_", "dual_coef_", "_steps", "n_features_in_"]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("two", ATTRIBUTES),
        ("two", ["classes_"]),
        ("classes", ATTRIBUTES),
        ("classes", ["classes_"]),
        ("numbers", ATTRIBUTES),
        ("Pegasos", ATTRIBUTES),
        ("stream", ["coef_", "intercept_", "_lam"]),
        ("stream", ["_steps"]),
        ("stream", ["_streams"]),
        ("stream of classes", ["_streams"]),
    ],
)
def test_pickles_with_wrong_shapes_are_an_error_or_work(kind, names):
    run_fork("child_pickles", kind, names)


def test_a_pickle_cut_short_or_of_other_bytes_is_an_error():
    estimator, X, _ = fitted("two")
    whole = pickle.dumps(estimator)
    for end in range(0, len(whole), max(1, len(whole) // (2000 if LONG else 200))):
        with pytest.raises(Exception):  # noqa: B017, PT011
            pickle.loads(whole[:end])
    assert pickle.loads(whole).predict(X).tobytes() == estimator.predict(X).tobytes()


def test_a_failed_load_leaves_nothing_behind():
    for state in (None, 5, [], {"coef_": None}, {"loss": 3}):
        estimator = Sdca.__new__(Sdca)
        try:
            estimator.__setstate__(state)
        except ACCEPTED:
            continue
        with pytest.raises(ACCEPTED):
            estimator.predict(np.zeros((2, 2)))


def main() -> None:
    warnings.simplefilter("ignore")
    name, *arguments = sys.argv[1:]
    globals()[name](*[eval(argument) for argument in arguments])


if __name__ == "__main__":
    main()
