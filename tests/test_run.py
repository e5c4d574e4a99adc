"""The course of a fit: reproducible, observable, interruptible, honest at its end."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning

from sdca_rs import Progress, Sdca, losses

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def binary():
    return make_classification(
        n_samples=600, n_features=12, n_informative=6, flip_y=0.1, random_state=3
    )


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.mark.parametrize("sampling", ["permutation", "random", "cyclic"])
@pytest.mark.parametrize("output", ["last", "average", "random"])
def test_same_seed_same_bits(binary, sampling, output):
    def fit(seed):
        est = Sdca(sampling=sampling, output=output, random_state=seed, max_iter=9)
        return est.set_params(tol=0).fit(*binary)

    one, again, other = fit(1), fit(1), fit(2)
    assert one.coef_.tobytes() == again.coef_.tobytes()
    assert one.dual_coef_.tobytes() == again.dual_coef_.tobytes()
    if sampling != "cyclic" or output == "random":
        assert one.coef_.tobytes() != other.coef_.tobytes()


def test_random_state_instance_and_none(binary):
    a = Sdca(random_state=np.random.RandomState(5), tol=0, max_iter=3).fit(*binary)
    b = Sdca(random_state=np.random.RandomState(5), tol=0, max_iter=3).fit(*binary)
    assert a.coef_.tobytes() == b.coef_.tobytes()
    Sdca(random_state=None, tol=1e-2).fit(*binary)


def test_classes_in_parallel_give_the_same_bits(digits):
    X, y = digits

    def fit(n_jobs):
        return Sdca(loss="log", n_jobs=n_jobs, random_state=0).fit(X, y)

    serial = fit(None)
    for n_jobs in (1, 2, 3, -1):
        assert fit(n_jobs).coef_.tobytes() == serial.coef_.tobytes()
    assert serial.score(X, y) > 0.95


@pytest.mark.parametrize(
    "store",
    [np.float64, np.float32, sp.csr_matrix, lambda X: sp.csr_matrix(X, dtype="f")],
    ids=["float64", "float32", "csr", "float32 csr"],
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_predictions_in_parallel_give_the_same_bits(store, n_classes):
    rng = np.random.default_rng(0)
    # Enough entries for many threads; some rows are empty.
    X = rng.standard_normal((100_003, 30)) * (rng.random((100_003, 1)) < 0.9)
    X, y = store(X), rng.integers(n_classes, size=300)
    model = Sdca("log", tol=0.1, random_state=0).fit(X[:300], y)

    def bits(n_jobs):
        model.set_params(n_jobs=n_jobs)
        ways = model.decision_function, model.predict, model.predict_proba
        return [way(X).tobytes() for way in ways]

    serial = bits(None)
    for n_jobs in (1, 2, 3, -1):
        assert bits(n_jobs) == serial
    product = X @ model.coef_.T + model.intercept_
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, np.squeeze(product), atol=1e-5)


def test_fits_in_many_threads_do_not_disturb_each_other(digits):
    X, y = digits
    expected = Sdca(random_state=0).fit(X, y == 8).coef_
    found = [None] * 8

    def work(k):
        found[k] = Sdca(random_state=0, n_jobs=1 + k % 2).fit(X, y == 8).coef_

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(coef.tobytes() == expected.tobytes() for coef in found)


def test_history_tells_the_run(binary):
    est = Sdca(loss="log", tol=1e-6, random_state=0).fit(*binary)
    history = est.history_
    assert sorted(history) == [
        "cpu_seconds",
        "dual",
        "epoch",
        "gap",
        "phase",
        "primal",
        "seconds",
        "support",
    ]
    assert len({len(column) for column in history.values()}) == 1
    assert history["epoch"][0] == 0
    assert (np.diff(history["epoch"]) > 0).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    assert (np.diff(history["cpu_seconds"]) >= 0).all()
    assert (np.diff(history["dual"]) > -1e-12).all()
    np.testing.assert_array_equal(history["primal"] - history["dual"], history["gap"])
    assert history["primal"][-1] == est.objective_
    assert history["gap"][-1] == est.duality_gap_
    assert history["support"][-1] == np.count_nonzero(est.dual_coef_)
    assert est.n_iter_ == np.ceil(history["epoch"][-1])


@pytest.mark.parametrize("every", [0.01, 0.3, 1, 2.5])
def test_record_every_is_met_and_changes_no_bit(binary, every):
    plain = Sdca(tol=0, max_iter=5, random_state=0).fit(*binary)
    recorded = Sdca(tol=0, max_iter=5, record_every=every, random_state=0).fit(*binary)
    assert recorded.coef_.tobytes() == plain.coef_.tobytes()
    expected = np.append(np.arange(0, 5, every), 5.0)
    np.testing.assert_allclose(recorded.history_["epoch"], expected, atol=0.51 / 600)


@pytest.mark.parametrize("every", [0.3, 1, 7])
@pytest.mark.parametrize(
    ("loss", "C", "phase"),
    [("hinge", 1e-4, "plain"), ("hinge", 1.0, "newton"), ("log", 100.0, "newton")],
)
def test_recording_changes_no_bit_of_an_accelerated_run(loss, C, phase, every):
    X, y = make_classification(n_samples=3000, n_features=30, random_state=0)
    settings = {"loss": loss, "C": C, "tol": 1e-9, "max_iter": 300, "random_state": 0}
    plain = Sdca(**settings).fit(X, y)
    recorded = Sdca(record_every=every, **settings).fit(X, y)
    assert phase in plain.history_["phase"]
    assert phase in recorded.history_["phase"]
    assert recorded.coef_.tobytes() == plain.coef_.tobytes()
    assert recorded.dual_coef_.tobytes() == plain.dual_coef_.tobytes()
    assert recorded.duality_gap_ == plain.duality_gap_
    assert recorded.n_iter_ == plain.n_iter_
    assert recorded.stop_reason_ == plain.stop_reason_
    # The last line is about the result.
    assert recorded.history_["gap"][-1] == recorded.duality_gap_


def test_recording_changes_no_bit_of_text_in_several_classes():
    rng = np.random.default_rng(0)
    X = sp.random_array((700, 1000), density=0.02, format="csr", rng=rng)
    y = rng.integers(0, 3, 700)
    for C, phase in ((0.05, "plain"), (100.0, "proximal")):
        settings = {"loss": "hinge", "C": C, "tol": 1e-4, "random_state": 0}
        plain = Sdca(**settings).fit(X, y)
        recorded = Sdca(record_every=1, **settings).fit(X, y)
        assert any(phase in h["phase"] for h in recorded.history_)
        assert recorded.coef_.tobytes() == plain.coef_.tobytes()
        assert np.array_equal(recorded.n_iter_, plain.n_iter_)


def test_evaluations_are_few_in_a_long_run():
    X, y = make_classification(n_samples=3000, n_features=30, random_state=0)
    est = Sdca(tol=0, max_iter=300, random_state=0).fit(X, y)
    # An evaluation costs about an epoch at most.
    assert 5 <= len(est.history_["epoch"]) <= 0.1 * 300 + 5


def test_tol_decides_how_long_a_run_is(binary):
    X, y = binary
    tols = (1e-1, 1e-2, 1e-3)
    for accelerate in (True, False):
        settings = {"accelerate": accelerate, "random_state": 0}
        runs = [Sdca(tol=tol, **settings).fit(X, y) for tol in tols]
        for est, tol in zip(runs, tols, strict=True):
            assert est.stop_reason_ == "converged"
            assert est.duality_gap_ <= tol * est.objective_
    # The second-order finish may begin the earlier, the more there is to do.
    assert runs[0].n_iter_ < runs[1].n_iter_ < runs[2].n_iter_


def test_small_data_are_solved_to_rounding_unless_studied():
    X, y = make_classification(n_samples=60, n_features=5, random_state=1, flip_y=0.2)
    a, b = (Sdca(loss="log", random_state=seed).fit(X, y) for seed in (0, 1))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)
    np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=1e-9)
    studied = Sdca(loss="log", output="average", random_state=0).fit(X, y)
    assert studied.stop_reason_ == "converged"
    assert studied.n_iter_ < a.n_iter_
    assert studied.history_["gap"][-2] > 1e-4 * studied.history_["primal"][-2]


def test_modified_sgd_helps_where_auto_takes_it(binary):
    X, y = binary

    def objective_after_one(first_epoch, C):
        est = Sdca("log", tol=0, max_iter=1, C=C, first_epoch=first_epoch)
        return est.set_params(random_state=0).fit(X, y).objective_

    # mean |x|^2 is about 20: q of 0.02, and of 20.
    easy, hard = 1e-3, 1.0
    assert objective_after_one("auto", easy) == objective_after_one("sgd", easy)
    assert objective_after_one("auto", hard) == objective_after_one("sdca", hard)
    assert objective_after_one("sgd", easy) < objective_after_one("sdca", easy)


@pytest.mark.parametrize("output", ["average", "random"])
def test_averaged_and_random_outputs_converge_with_their_own_certificate(
    binary, output
):
    est = Sdca(output=output, sampling="random", tol=1e-2, random_state=0).fit(*binary)
    assert est.stop_reason_ == "converged"
    assert 0 <= est.duality_gap_ <= 1e-2 * est.objective_
    last = Sdca(tol=1e-6, random_state=0).fit(*binary)
    assert est.objective_ >= last.dual_objective_
    assert est.dual_objective_ <= last.objective_


def test_warm_start_along_a_path_of_c(digits):
    X, y = digits[0], digits[1] == 8
    warm = Sdca(loss="log", warm_start=True, record_every=1, random_state=0)
    total = 0
    for C in (0.1, 0.12, 0.15, 0.2):
        warm.set_params(C=C).fit(X, y)
        assert warm.stop_reason_ == "converged"
        total += warm.n_iter_ if C > 0.1 else 0
    cold = sum(
        Sdca(loss="log", C=C, record_every=1, random_state=0).fit(X, y).n_iter_
        for C in (0.12, 0.15, 0.2)
    )
    assert total < cold
    warm.fit(X, y)
    assert warm.n_iter_ == 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log"])
def test_a_warm_path_takes_fewer_epochs_than_cold_fits(digits, loss):
    X, y = digits
    warm = Sdca(loss, warm_start=True, random_state=0)
    epochs = {"warm": 0, "cold": 0}
    for C in np.logspace(-2, 2, 9):
        epochs["warm"] += warm.set_params(C=C).fit(X, y).n_iter_
        epochs["cold"] += clone(warm).fit(X, y).n_iter_
    assert epochs["warm"] < epochs["cold"]


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_fits_of_one_epoch_go_on_where_the_last_one_ended(digits, loss, C):
    X, y = digits[0], digits[1] % 2
    est = Sdca(loss, C=C, max_iter=1, warm_start=True, random_state=0, tol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gaps = [est.fit(X, y).duality_gap_ / est.objective_ for _ in range(60)]
    assert gaps[-1] < 0.05 * gaps[0]


def test_warm_start_serves_other_losses_and_several_classes(digits):
    X, y = digits
    est = Sdca(loss="hinge", warm_start=True, tol=1e-2, random_state=0).fit(X, y)
    for loss in ("log", "squared_hinge", "smooth_hinge"):
        est.set_params(loss=loss).fit(X, y)
        assert (est.stop_reason_ == "converged").all()


# ------------------------------------------------------ callback, verbose, warnings


def test_callback_sees_and_stops(binary):
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.epoch >= 3

    est = Sdca(tol=1e-12, record_every=1, callback=callback, random_state=0)
    est.fit(*binary)
    assert est.stop_reason_ == "callback"
    assert est.n_iter_ == 3
    assert all(isinstance(progress, Progress) for progress in seen)
    assert [progress.epoch for progress in seen] == [0, 1, 2, 3]
    last = seen[-1]
    assert last.gap == est.duality_gap_
    assert last.primal == est.objective_
    np.testing.assert_array_equal(last.coef, est.coef_[0])
    assert last.intercept == est.intercept_[0]
    assert "epoch=3" in repr(last)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callback_of_several_classes(digits, n_jobs):
    seen = set()
    X, y = digits

    def callback(progress):
        seen.add(progress.class_index)

    Sdca(loss="log", tol=1e-2, n_jobs=n_jobs, callback=callback).fit(X, y)
    assert seen == set(range(10))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_callback_comes_through(digits, n_jobs):
    X, y = digits

    def callback(progress):
        raise LookupError("mine")

    est = Sdca(tol=1e-9, n_jobs=n_jobs, callback=callback)
    with pytest.raises(LookupError, match="mine"):
        est.fit(X, y)
    est.set_params(callback=None, tol=1e-1).fit(X, y)
    assert est.score(X, y) > 0.8


def test_callback_can_return_an_object_without_truth(binary):
    with pytest.raises(ValueError, match="ambiguous"):
        Sdca(callback=lambda progress: progress.coef > 0).fit(*binary)


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose_writes_few_readable_lines(binary, capfd, verbose):
    est = Sdca(tol=0, max_iter=200, record_every=0.1, verbose=verbose, random_state=0)
    begun = time.perf_counter()
    est.fit(*binary)
    seconds = time.perf_counter() - begun
    out = capfd.readouterr().out.splitlines()
    # 2000 evaluations; a line a second or ten, the first, and the last.
    assert 2 <= len(out) <= 3 + seconds * (1 if verbose == 1 else 10)
    assert out[0].startswith("[Sdca] epoch 0: objective ")
    assert "gap" in out[0]
    assert out[-1].startswith("[Sdca] max_iter after 200 epochs: objective")


def test_verbose_names_classes(digits, capfd):
    X, y = digits
    Sdca(tol=1e-1, verbose=1, random_state=0).fit(X, y)
    out = capfd.readouterr().out.splitlines()
    assert out[0].startswith("[Sdca] class 0 epoch 0:")
    assert "10 classes, the worst with objective" in out[-1]


def test_silent_by_default(binary, capfd):
    Sdca(tol=1e-2, random_state=0).fit(*binary)
    assert capfd.readouterr() == ("", "")


def test_not_converged_warns_with_numbers_and_advice(binary):
    X, y = binary
    est = Sdca(max_iter=7, tol=1e-6, C=10, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        est.fit(X, y)
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    relative = est.duality_gap_ / est.objective_
    for part in (
        "Sdca did not reach its tolerance",
        "stopped by max_iter after 7 epochs",
        f"duality gap {est.duality_gap_:.3g}",
        f"{relative:.3g} of the objective",
        "tol=1e-06",
        "scaling the columns",
        f"smaller C (the mean of C |x|^2 is {10 * mean_square(X):.3g}",
    ):
        assert part in text
    assert est.stop_reason_ == "max_iter"


def mean_square(X):
    return ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()


def test_the_warning_names_the_worst_class(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match=r"for \d+ of 10 classes, the worst \d"):
        est = Sdca(max_iter=3, tol=1e-6, random_state=0).fit(X, y)
    assert set(est.stop_reason_) == {"max_iter"}


def test_max_time_stops_and_warns(binary):
    # Not accelerated, and hard: a gap that rounding makes 0 must not end it before.
    est = Sdca(
        C=1e4,
        max_time=0.05,
        max_iter=10**9,
        tol=1e-300,
        accelerate=False,
        random_state=0,
    )
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        est.fit(*binary)
    assert est.stop_reason_ == "max_time"
    assert est.duality_gap_ < est.history_["gap"][0]


def test_tol_zero_and_callbacks_are_wishes_not_failures(binary):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Sdca(tol=0, max_iter=2).fit(*binary).stop_reason_ == "max_iter"


@pytest.mark.parametrize(
    "loss", [loss.name for loss in losses() if loss.task == "regression"]
)
def test_constant_targets_end_at_once(loss):
    X = np.arange(6000.0).reshape(3000, 2) % 7
    for value in (0.0, 3.0):
        est = Sdca(loss=loss, random_state=0).fit(X, np.full(3000, value))
        assert est.stop_reason_ == "converged"
        assert np.isfinite(est.coef_).all()
        np.testing.assert_allclose(est.predict(X), value, atol=0.1001)


# --------------------------------------------------------------------------- interrupts

INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np
    from sdca_rs import Sdca

    rng = np.random.default_rng(0)
    X = rng.normal(size=({n}, {d}))
    y = rng.integers({classes}, size={n})
    Sdca(tol=0.5).fit(X[:100], y[:100])  # everything is loaded
    est = Sdca(tol=1e-300, accelerate=False, max_iter=10**9, n_jobs={n_jobs}, C=1e3)
    sent = []

    def send():
        time.sleep(0.5)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send).start()
    try:
        est.fit(X, y)
    except KeyboardInterrupt:
        print("waited", time.perf_counter() - sent[0])
    else:
        print("not interrupted")
    assert not hasattr(est, "coef_")
    est.set_params(tol=0.5).fit(X[:200], y[:200])
    print("next", est.coef_.shape)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to itself")
@pytest.mark.parametrize(
    ("n", "d", "classes", "n_jobs"),
    [(3000, 20, 2, None), (400_000, 200, 2, None), (3000, 20, 5, 1), (3000, 20, 5, 2)],
    ids=["many epochs", "one long epoch", "classes", "classes in parallel"],
)
def test_interrupt_comes_through_and_the_next_fit_works(n, d, classes, n_jobs):
    code = textwrap.dedent(INTERRUPTED).format(n=n, d=d, classes=classes, n_jobs=n_jobs)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("waited ")
    # 0.2 s is promised; the rest is for a busy machine.
    assert float(first.split()[1]) < 1.0
    assert second.startswith("next ")


def test_other_threads_run_during_a_fit():
    X, y = make_classification(n_samples=20000, n_features=50, random_state=0)
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        with pytest.warns(ConvergenceWarning):
            Sdca(max_time=0.5, max_iter=10**9, tol=1e-300, accelerate=False).fit(X, y)
    finally:
        done.set()
        thread.join()
    # Were the interpreter held for the whole fit, there would be next to none.
    assert len(ticks) > 20


def test_signal_handlers_run_during_a_fit():
    if not hasattr(signal, "setitimer"):
        return
    X, y = make_classification(n_samples=5000, n_features=20, random_state=0)
    calls = []
    old = signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.warns(ConvergenceWarning):
            Sdca(max_time=1.0, max_iter=10**9, tol=1e-300, accelerate=False).fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    # Looked at every 0.1 s: several times in a second even on a busy machine.
    assert len(calls) >= 3


def test_fork_after_a_parallel_fit_is_safe(digits):
    if not hasattr(os, "fork"):
        return
    code = textwrap.dedent(
        """
        import multiprocessing as mp
        import numpy as np
        from sdca_rs import Sdca

        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 4))
        y = rng.integers(3, size=300)

        def fit(_):
            return Sdca(n_jobs=2, random_state=0).fit(X, y).coef_.sum()

        expected = fit(0)
        with mp.get_context("fork").Pool(2) as pool:
            assert pool.map(fit, range(4)) == [expected] * 4
        print("done")
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "done\n"


def test_sparse_and_dense_take_the_same_course(binary):
    X, y = binary
    dense = Sdca(tol=1e-8, max_iter=5000, random_state=0).fit(X, y)
    sparse = Sdca(tol=1e-8, max_iter=5000, random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(dense.objective_, sparse.objective_, rtol=1e-8)


def test_max_time_is_shared_by_the_classes():
    X, y = make_classification(
        n_samples=4000, n_features=20, n_informative=8, n_classes=4, random_state=0
    )
    est = Sdca(max_time=0.4, max_iter=10**9, tol=1e-300, random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        est.fit(X, y)
    # Seconds of work, which the load of the machine can only make fewer epochs.
    spent = [history["seconds"][-1] for history in est.history_]
    assert set(est.stop_reason_) == {"max_time"}
    assert max(spent) < 0.3


def test_a_failed_fit_leaves_the_fitted_model(binary):
    X, y = binary
    est = Sdca(tol=1e-2, random_state=0).fit(X, y)
    before = dict(vars(est))
    with pytest.raises(ValueError, match="one class"):
        est.fit(X[:, :3], np.ones(len(y)))
    assert vars(est) == before
