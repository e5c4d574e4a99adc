"""What hostile use has found: a test for each, which fails without the mend."""

import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import xlogy

from conftest import FORMULAS, LOSSES, NAMES, SMOOTH, make_problem
from sdca_rs import Asdca, DualGradient, Pegasos, Sdca, Subgradient

every_loss = pytest.mark.parametrize("loss", NAMES)
every_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
SOLVERS = [Sdca, Asdca, Pegasos, Subgradient, DualGradient]


def with_every_solver(losses):
    """Parametrize over the solvers and those of the losses that they take."""
    pairs = [
        (s, loss)
        for s in SOLVERS
        for loss in losses
        if s is not Asdca or loss in SMOOTH
    ]
    ids = [f"{solver.__name__}-{loss}" for solver, loss in pairs]
    return pytest.mark.parametrize(("solver", "loss"), pairs, ids=ids)


may_not_converge = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)


def targets_for(loss, y):
    return np.maximum(y, 0.0) if LOSSES[loss].link == "log" else y


def objective_at_zero(loss, y, *, fit_intercept):
    """Minimise P over b where there are no coefficients, on a fine grid."""
    value = FORMULAS[loss].value
    b = np.linspace(-5, 5, 20001) if fit_intercept else np.zeros(1)
    shape = LOSSES[loss].default
    return value(b[:, np.newaxis], y, shape).mean(axis=1).min()


# ------------------------------------------------------- one huge column, wide data


def wide_with_one_huge_column(size):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 300))
    X[:, 0] = rng.uniform(0.1, 1, 40) * size
    return X, np.sign(X[:, 1] + X[:, 2] + rng.normal(size=40))


@every_intercept
@every_loss
@pytest.mark.parametrize("size", [1e8, 1e9, 1e11])
def test_one_huge_column_of_wide_data_does_not_hide_the_others(
    size, loss, fit_intercept
):
    X, y = wide_with_one_huge_column(size)
    y = targets_for(loss, y)
    fit = Sdca(loss, fit_intercept=fit_intercept, random_state=0).fit(X, y)
    assert fit.stop_reason_ == "converged"
    # Where that column is of size 1e6, products of rows have the digits for all.
    X[:, 0] *= 1e6 / size
    easy = Sdca(loss, fit_intercept=fit_intercept, random_state=0).fit(X, y)
    assert fit.objective_ == pytest.approx(easy.objective_, rel=1e-3)


def test_a_column_of_unix_times_does_no_harm():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2000))
    y = X[:, :5].sum(axis=1) > 0
    times = 1.6e9 + rng.uniform(0, 1e8, 120)
    fit = Sdca("log", random_state=0).fit(np.column_stack([X, times]), y)
    assert fit.stop_reason_ == "converged"
    assert fit.score(np.column_stack([X, times]), y) == 1.0


def test_poisson_on_wide_data_of_large_numbers_converges():
    rng = np.random.default_rng(0)
    X = 1e8 * rng.normal(size=(20, 200))
    fit = Sdca("poisson", random_state=0).fit(X, rng.poisson(3, 20))
    assert fit.stop_reason_ in ("converged", "perfect")
    assert fit.objective_ < 1e-12


# --------------------------------------------------------- never worse than no model


@every_intercept
@with_every_solver(NAMES)
@pytest.mark.parametrize("scale", [1.0, 1e5, 1e12])
@may_not_converge
def test_no_model_is_worse_than_none(scale, solver, loss, fit_intercept):
    problem = make_problem(loss, 30, 3)
    best = objective_at_zero(loss, problem.y, fit_intercept=fit_intercept)
    settings = {"fit_intercept": fit_intercept, "random_state": 0, "C": 10.0}
    for max_iter in (1, 2, 7):
        fit = solver(loss, max_iter=max_iter, **settings).fit(
            problem.X * scale, problem.y
        )
        assert fit.objective_ <= best * (1 + 1e-9)
        assert fit.history_["primal"][-1] == fit.objective_
        assert fit.history_["gap"][-1] == fit.duality_gap_


@may_not_converge
def test_a_warm_start_from_a_bad_model_is_not_worse_than_none():
    problem = make_problem("log", 30, 3)
    model = Subgradient("log", warm_start=True, random_state=0, max_iter=1)
    model.fit(problem.X, problem.y)
    model.coef_ = 1e6 * np.ones((1, 3))
    model.set_params(learning_rate="constant", eta0=1e-12)
    fit = model.fit(problem.X, problem.y)
    best = objective_at_zero("log", problem.y, fit_intercept=True)
    assert fit.objective_ <= best * (1 + 1e-9)


@may_not_converge
def test_an_objective_that_overflows_is_refused_for_a_tolerance_of_0_too():
    # No model is put in the place of that which has none: tol=0 asks for what the
    # algorithm ends with.
    X, y = np.array([[-4.3125], [4.6875]]), np.array([1.7976931348623157e308, 6.9e48])
    fit = Sdca("huber", C=4e5, tol=0, max_iter=4, random_state=0)
    with pytest.raises(ValueError, match="the objective overflows"):
        fit.fit(X, y, sample_weight=np.array([0.1875, 0.0625]))


@may_not_converge
@pytest.mark.parametrize("record_every", [1, 0.3, 7.5])
def test_converged_is_what_is_returned_not_what_it_has_replaced(record_every):
    # With a lambda of 1e-306 the bound that came with the model that converged is
    # worth nothing for the one without coefficients, which is better.
    X, y = np.array([[-0.0625], [5], [5], [-0.0625]]), np.array([1, 1, -1, 1])
    fit = Sdca(
        "log",
        lam=9.999999999999992e-307,
        tol=0.999,
        max_iter=32,
        record_every=record_every,
        sampling="cyclic",
        first_epoch="sdca",
        random_state=0,
    )
    fit.fit(X, y, sample_weight=np.array([0.0625, 5, 5, 0.0625]))
    is_within = fit.duality_gap_ <= 0.999 * fit.objective_
    assert is_within == (fit.stop_reason_ == "converged")


@may_not_converge
@pytest.mark.parametrize("seed", range(6))
def test_rows_that_weigh_next_to_nothing_may_come_first_in_the_modified_sgd(seed):
    X, y = np.zeros((3, 1)), np.array([1, 1, -1])
    weights = np.array([3.552021838898748e125, 2.2250738585072014e-308, 0.1])
    fit = Sdca("hinge", lam=2.8e-128, first_epoch="sgd", tol=0, max_iter=2)
    fit.set_params(random_state=seed, accelerate=False).fit(X, y, sample_weight=weights)
    assert np.isfinite(fit.dual_coef_).all()
    assert np.isfinite(fit.duality_gap_)


# --------------------------------------------------------------------- large counts


def test_large_counts_are_not_taken_for_a_perfect_fit():
    X, y = np.arange(6.0)[:, np.newaxis], np.arange(1, 7) * 1e14
    fit = Sdca("poisson", tol=1e-6).fit(X, y)
    assert fit.stop_reason_ == "converged"
    assert -1e-12 * fit.objective_ <= fit.duality_gap_ <= 1e-6 * fit.objective_
    assert fit.n_iter_ > 0


@pytest.mark.parametrize("size", [1e8, 1e10, 1e12, 1e14])
def test_the_lower_bound_of_large_counts_is_below_the_objective(size):
    X = np.arange(6.0)[:, np.newaxis]
    y = size * np.exp(0.3 * X[:, 0])
    fit = Sdca("poisson", tol=1e-6).fit(X, y)
    assert fit.stop_reason_ == "converged"
    assert -1e-12 * fit.objective_ <= fit.duality_gap_ <= 1e-6 * fit.objective_


def test_the_conjugate_of_poisson_does_not_cancel():
    # By a sum of (a/y)^k / (k (k-1)), which has no terms to cancel.
    y, a = 1e12, 37.5
    s = a / y
    series = y * sum(s**k / (k * (k - 1)) for k in range(2, 6)) - a * np.log(y)
    naive = (xlogy(y - a, y - a) - (y - a)) - (xlogy(y, y) - y)
    assert abs(naive - series) > 1e-4
    # D of one row without an intercept is -phi*(-a) - (lam/2) w(a)^2.
    fit = Sdca("poisson", lam=1.0, fit_intercept=False, tol=1e-9).fit([[1.0]], [y])
    a = fit.dual_coef_[0]
    s = a / y
    expected = -(y * ((1 - s) * np.log1p(-s) + s) - a * np.log(y)) - a**2 / 2
    assert fit.dual_objective_ == pytest.approx(expected, rel=1e-10)


def test_subnormal_weights_are_balanced_or_refused():
    X, y = np.arange(4.0)[:, np.newaxis], [0, 0, 1, 1]
    weights = np.array([1.0, 1.0, 3e-310, 5e-311])
    fit = Sdca("log").fit(X, y, weights)
    a = np.ravel(fit.dual_coef_)
    terms = weights * a
    assert abs(terms.sum()) <= 1e-12 * np.abs(terms).sum()
    with pytest.raises(ValueError, match="sample_weight: found a sum of 1e-310"):
        Sdca("log", lam=1.0).fit(X, y, np.full(4, 2.5e-311))


# ------------------------------------------------------------------------- overflow


@every_intercept
@with_every_solver(["squared", "squared_epsilon_insensitive", "absolute", "huber"])
@may_not_converge
def test_targets_whose_objective_overflows_end(loss, solver, fit_intercept):
    X, y = np.random.default_rng(0).normal(size=(2, 3)), [1e308, -1e308]
    model = solver(loss, fit_intercept=fit_intercept, random_state=0)
    if loss.startswith("squared"):
        with pytest.raises(ValueError, match="objective without coefficients"):
            model.fit(X, y)
        return
    refused = pytest.raises(ValueError, match="overflow")
    try:
        model.fit(X, y)
    except ValueError as error:
        with refused:
            raise error
    else:
        assert np.isfinite(model.objective_)


def test_huge_weights_end():
    X = np.random.default_rng(0).normal(size=(30, 3))
    fit = Sdca("squared_epsilon_insensitive").fit(X, X[:, 0], np.full(30, 1e200))
    assert fit.stop_reason_ in ("converged", "perfect")


# --------------------------------------------------------------------------- memory

OUT_OF_MEMORY = """
    import resource
    import numpy as np
    from sdca_rs import Sdca

    rng = np.random.default_rng(0)
    rows, classes = rng.normal(size=(60, 3)), np.arange(60) % 20
    model = Sdca("hinge", random_state=0).fit(rows, classes)
    before = model.coef_.copy()
    few, many = rng.normal(size=(100, 3)), rng.normal(size=(10**6, 3))
    expected = model.predict(few)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
    # 10^6 x 20 scores take 160 MB, the numbers of classes 8.
    for work in (
        lambda: model.decision_function(many),
        lambda: model.fit(np.ones((10**5, 3)), np.arange(10**5) % 500),
    ):
        try:
            work()
        except MemoryError as error:
            print("MemoryError", bool(str(error)))
        assert (model.coef_ == before).all()
        assert (model.predict(few) == expected).all()
    print(len(model.predict(many)))
"""


def run_child(script):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_memory_that_is_not_to_be_had_is_a_MemoryError():
    child = run_child(OUT_OF_MEMORY)
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines() == ["MemoryError True"] * 2 + ["1000000"]


def test_classes_are_predicted_without_the_scores_of_all():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    model = Sdca("log", random_state=0, n_jobs=2).fit(X, np.arange(500) % 7)
    expected = model.classes_[model.decision_function(X).argmax(axis=1)]
    for rows in (X, sp.csr_array(X), X.astype(np.float32)):
        found = model.predict(rows)
        assert (found == expected).mean() > 0.99
    assert (model.predict(X) == expected).all()


# ------------------------------------------------------------ interrupts within steps


def square():
    """Return a problem whose Newton's method has a system of 3000 unknowns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3200, 2990))
    return X, np.sign(X[:, 0] + rng.normal(size=3200))


def test_a_factorisation_is_interrupted():
    X, y = square()
    answered = []

    def interrupt(*_):
        answered.append(time.perf_counter())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        # The system is set up by now, or being solved.
        signal.setitimer(signal.ITIMER_REAL, 2.0)
        begun = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            Sdca("log", C=1e4, tol=1e-14, random_state=0).fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # 0.2 s are promised, and much more is granted to a slow machine.
    assert answered[0] - begun < 2.0 + 2.0


@may_not_converge
def test_a_factorisation_keeps_to_max_time():
    X, y = square()
    begun = time.perf_counter()
    fit = Sdca("log", C=1e4, tol=1e-14, max_time=0.2, random_state=0).fit(X, y)
    assert fit.stop_reason_ == "max_time"
    assert time.perf_counter() - begun < 5.0


# --------------------------------------------------------------------------- Pegasos


def test_the_last_batch_of_an_epoch_weighs_no_more_than_its_rows():
    off = []
    for n in (1000, 1001, 1499):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 5))
        y = np.sign(X[:, 0] + 0.5 * rng.normal(size=n))
        best = Sdca("hinge", lam=0.01, tol=1e-8).fit(X, y).objective_
        fit = Pegasos(lam=0.01, batch_size=500, max_iter=100, tol=0, random_state=0)
        off.append(fit.fit(X, y).objective_ - best)
    assert max(off) < 0.01


@may_not_converge
def test_random_batches_are_never_short():
    X = np.random.default_rng(0).normal(size=(7, 2))
    y = np.sign(X[:, 0])
    settings = {"sampling": "random", "batch_size": 5, "tol": 0, "random_state": 0}
    fit = Pegasos(max_iter=3, **settings).fit(X, y)
    # Two full steps in each epoch.
    assert fit._steps == [6]


@pytest.mark.parametrize("loss", ["hinge", "log", "squared_hinge"])
@pytest.mark.parametrize("sampling", ["permutation", "cyclic"])
def test_a_stream_may_begin_with_few_rows_of_one_class(loss, sampling):
    # As in scikit-learn's own test of SGDClassifier.
    X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]])
    y = np.array([1, 1, 1, 2, 2, 2])
    T = np.array([[-1, -1], [2, 2], [3, 2]])
    wrong = 0
    for seed in range(100):
        model = Pegasos(loss, lam=0.01, sampling=sampling, random_state=seed)
        model.partial_fit(X[:2], y[:2], classes=[1, 2])
        model.partial_fit(X[2:], y[2:])
        wrong += list(model.predict(T)) != [1, 2, 2]
    assert wrong == 0


def test_a_projection_is_not_to_nothing_after_a_part_of_one_class():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    model = Pegasos(lam=0.01, project=True, random_state=0)
    model.partial_fit(X[y == 0][:3], y[y == 0][:3], classes=[0, 1])
    for part in range(0, 400, 40):
        model.partial_fit(X[part : part + 40], y[part : part + 40])
    assert model.score(X, y) > 0.9


def test_the_size_of_parts_does_not_change_the_weight_of_rows():
    problem = make_problem("log", 60, 3)
    settings = {"lam": 0.1, "fit_intercept": False, "batch_size": 500}
    model = Pegasos("log", sampling="cyclic", **settings)
    w, seen = np.zeros(3), 0
    for part in np.array_split(np.arange(60), [7, 9, 40]):
        X, y = problem.X[part], problem.y[part]
        model.partial_fit(X, y, classes=[-1, 1])
        seen += len(part)
        slopes = -y / (1 + np.exp(y * (X @ w)))
        w = (1 - len(part) / seen) * w - X.T @ slopes / (0.1 * seen)
        assert model.coef_[0] == pytest.approx(w, rel=1e-9)


TAMPERED = {
    "mean": lambda n, v, m: (1.0, (np.zeros(n), 0.0), (np.zeros(1), 0.0), None),
    "last": lambda n, v, m: (1.0, (np.zeros(9), 0.0), (np.zeros(n), 0.0), None),
    "scales": lambda n, v, m: (1.0, v, m, (np.zeros(1), (1.0, 1.0, 1.0, 1.0, 1.0))),
    "steps": lambda n, v, m: (float("nan"), v, m, None),
}


@pytest.mark.parametrize("part", TAMPERED)
def test_a_tampered_stream_is_refused(part):
    problem = make_problem("hinge", 20, 4)
    model = Pegasos(lam=0.1).partial_fit(problem.X, problem.y, classes=[-1, 1])
    (stream,) = model._streams
    contents = TAMPERED[part](4, stream.last, stream.mean)
    model._streams = [type(stream)(*contents)]
    with pytest.raises(ValueError, match="found"):
        model.partial_fit(problem.X, problem.y)


# --------------------------------------------------------------- the modified SGD


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_modified_sgd_takes_the_published_step(loss):
    problem, lam = make_problem(loss, 25, 3), 0.5
    settings = {"sampling": "cyclic", "fit_intercept": False, "tol": 0, "lam": lam}
    fit = Sdca(loss, first_epoch="sgd", max_iter=1, **settings)
    fit.fit(problem.X, problem.y)
    a = np.zeros(25)
    for t in range(1, 26):
        x, y = problem.X[t - 1], problem.y[t - 1]
        # w^(t-1) = (1 / (lam (t - 1))) sum of the rows before.
        w = problem.X.T @ a / (lam * max(t - 1, 1))
        z, q = x @ w, x @ x / (lam * t)
        if loss == "hinge":
            a[t - 1] = y * np.clip((1 - y * z) / q, 0, 1)
        else:
            low, high = 0.0, 1.0
            for _ in range(100):
                b = (low + high) / 2
                low, high = (
                    (b, high) if b < 1 / (1 + np.exp(y * z + q * b)) else (low, b)
                )
            a[t - 1] = y * low
    assert np.ravel(fit.dual_coef_) == pytest.approx(a, abs=1e-9)


# ------------------------------------------------------------------------ small ones


@may_not_converge
@pytest.mark.parametrize("tol", [1e-310, 5e-324, 1e-200])
def test_a_tiny_tolerance_does_not_throw_the_fit_away(tol):
    problem = make_problem("hinge")
    fit = Sdca("hinge", tol=tol, max_iter=20, accelerate=False, random_state=0)
    fit.fit(problem.X, problem.y)
    assert fit.stop_reason_ == "max_iter"
    assert np.isfinite(fit.objective_)


def test_a_warning_made_an_error_does_not_throw_the_fit_away():
    problem = make_problem("hinge")
    fit = Sdca("hinge", tol=1e-12, max_iter=2, accelerate=False, random_state=0)
    with pytest.raises(Warning, match="did not reach its tolerance"):
        fit.fit(problem.X, problem.y)
    assert fit.stop_reason_ == "max_iter"


def test_a_class_of_weight_0_is_absent():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.arange(90) % 3
    fit = Sdca("log", class_weight={0: 0}, random_state=0).fit(X, y)
    rest = Sdca("log", random_state=0).fit(X[y > 0], y[y > 0])
    assert fit.classes_.tolist() == [1, 2]
    assert fit.coef_ == pytest.approx(rest.coef_, rel=1e-3)
    assert fit.objective_ == pytest.approx(rest.objective_, rel=1e-4)
    with pytest.raises(ValueError, match="one class"):
        Sdca("log", class_weight={0: 0, 1: 0}).fit(X, y)
    with pytest.raises(ValueError, match=r"class_weight\[0\]: found -1, expected"):
        Sdca("log", class_weight={0: -1}).fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_a_perfect_fit_says_so(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 100))
    y = np.sign(X[:, 0])
    reasons = set()
    for C in (1e4, 1e8, 1e12, 1e15):
        fit = Sdca(loss, C=C, random_state=0).fit(X, y)
        reasons.add(fit.stop_reason_)
        if fit.stop_reason_ == "converged":
            assert fit.duality_gap_ <= 1e-4 * fit.objective_
        else:
            assert fit.stop_reason_ == "perfect"
            assert fit.objective_ < 1e-12
    assert "converged" in reasons


@pytest.mark.parametrize(
    ("y", "mean", "expected"),
    [([2, 2, 2], [2, 2, 2], 1.0), ([2, 2], [2, 3], 0.0), ([0, 0], [1, 1], 0.0)],
)
def test_score_of_constant_counts(y, mean, expected):
    X = np.log(np.array(mean, dtype=float))[:, np.newaxis]
    model = Sdca("poisson", fit_intercept=False).fit(X + 1, np.array(mean))
    model.coef_ = np.array([1.0])
    assert model.score(X, y) == expected


def test_pickles_carry_the_version():
    import sdca_rs

    problem = make_problem("log")
    model = Sdca("log", random_state=0).fit(problem.X, problem.y)
    state = model.__getstate__()
    assert state["_sdca_rs_version"] == sdca_rs.__version__
    again = pickle.loads(pickle.dumps(model))
    assert not hasattr(again, "_sdca_rs_version")
    assert (again.coef_ == model.coef_).all()
    # One from before there was a version.
    del state["_sdca_rs_version"]
    old = Sdca.__new__(Sdca)
    old.__setstate__(state)
    assert (old.predict(problem.X) == model.predict(problem.X)).all()
    state["_sdca_rs_version"] = "99.0.0"
    with pytest.raises(ValueError, match=r"pickle: found a state of sdca-rs 99\.0\.0"):
        old.__setstate__(state)


@may_not_converge
def test_threads_may_write_what_is_read():
    # Wrong numbers or an error, but no crash: it is documented as undefined.
    problem = make_problem("log", 4000, 20)
    X, stop = np.ascontiguousarray(problem.X), threading.Event()

    def write():
        while not stop.is_set():
            X[:] = problem.X
            X[::7] *= -1.0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for seed in range(5):
            Sdca("log", C=100, random_state=seed, n_jobs=2).fit(X, problem.y)
    except ValueError:
        pass
    finally:
        stop.set()
        writer.join()
