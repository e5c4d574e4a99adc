"""What a fit tells while it runs: lines, a live line, and scikit-learn's callbacks."""

import io
import math
import re
import sys
import threading
from contextlib import redirect_stdout, suppress
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdca_rs import (
    Asdca,
    DualGradient,
    Pegasos,
    Sdca,
    SdcaClassifier,
    SdcaRegressor,
    Subgradient,
)
from sdca_rs._live_line import Way, open_live_line

IRIS, SPECIES = load_iris(return_X_y=True)
VIRGINICA = SPECIES == 2
LENGTHS = IRIS[:, 0]

# Every whole epoch is evaluated, and there are only a few.
FEW = {"max_iter": 6, "tol": 0, "record_every": 1, "random_state": 0}


# --- lines ----------------------------------------------------------------------------


@pytest.mark.parametrize("verbose", [True, np.True_, 1])
def test_true_is_1(verbose, capsys):
    SdcaClassifier(verbose=verbose).fit(IRIS, VIRGINICA)
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"\[SdcaClassifier\] epoch 0: objective .*, gap ", lines[0])
    assert re.match(r"\[SdcaClassifier\] converged after ", lines[-1])


@pytest.mark.parametrize("verbose", [False, np.False_, 0])
def test_false_is_0(verbose, capsys):
    SdcaClassifier(verbose=verbose).fit(IRIS, VIRGINICA)
    assert capsys.readouterr().out == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def in_terminal(estimator, y):
    """Fit as in a terminal, and return what it shows."""
    terminal = Terminal()
    with redirect_stdout(terminal), suppress(RuntimeError):
        estimator.fit(IRIS, y)
    return terminal.getvalue()


@pytest.mark.parametrize("y", [VIRGINICA, SPECIES], ids=["2", "3"])
@pytest.mark.parametrize("tol", [1e-10, 0])
def test_a_terminal_shows_one_live_line(y, tol):
    pytest.importorskip("tqdm")
    before = threading.active_count()
    model = SdcaClassifier("hinge", C=100, tol=tol, max_iter=300, verbose=True)
    text = in_terminal(model, y)
    # One line that is overwritten and wiped, and the one that sums up.
    *live, last = text.split("\r")
    assert text.count("\n") == 1
    assert re.match(r"\[SdcaClassifier\] (converged|max_iter|perfect)", last)
    shown = [line for line in live if "gap" in line]
    assert shown
    for line in shown:
        assert re.match(
            r"\[SdcaClassifier\] (class \d )?epoch \d+, relative gap \d.*\| +\d+%", line
        )
    assert live[-1].strip() == ""
    assert threading.active_count() == before


def test_the_line_is_wiped_where_a_fit_fails():
    pytest.importorskip("tqdm")

    def fail(progress):
        if progress.epoch > 0:
            raise RuntimeError("told to")

    text = in_terminal(SdcaClassifier(verbose=True, callback=fail, tol=0), VIRGINICA)
    assert "gap" in text
    assert text.split("\r")[-1].strip() == ""


def test_without_tqdm_a_terminal_gets_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    lines = in_terminal(SdcaClassifier(verbose=True), VIRGINICA).splitlines()
    assert lines[0].startswith("[SdcaClassifier] epoch 0: objective")


def test_two_prints_lines_in_a_terminal_too():
    assert "\r" not in in_terminal(SdcaClassifier(verbose=2), VIRGINICA)


def test_a_notebook_has_a_live_line(monkeypatch):
    pytest.importorskip("tqdm")

    class ZMQInteractiveShell:
        config = ()

    ipython = SimpleNamespace(get_ipython=ZMQInteractiveShell)
    assert open_live_line("fit", 1, 1e-4, 10) is None
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    line = open_live_line("fit", 1, 1e-4, 10)
    assert line is not None
    line.close()


def at(epoch, gap, primal=1.0):
    return SimpleNamespace(epoch=epoch, gap=gap, primal=primal, class_index=0)


def test_the_time_left_follows_the_rate_of_the_gap():
    """A gap that falls tenfold in each second needs as many as there are digits."""
    way = Way(1e-6, 10_000)
    for second in range(5):
        way.add(at(10 * second, 10.0**-second), float(second))
        if second:
            assert way.seconds_left() == pytest.approx(6 - second)
            assert way.done == pytest.approx(second / 6)
    # It has slowed down: the last half counts.
    way.add(at(60, 10**-4.1), 6.0)
    assert way.seconds_left() == pytest.approx(1.9 / (1.1 / 3))


def test_the_time_left_is_at_most_that_of_the_epochs():
    way = Way(1e-300, 100)
    for second in range(5):
        way.add(at(10 * second, 10.0**-second), float(second))
    assert way.seconds_left() == pytest.approx(6)
    assert way.done == pytest.approx(0.4)
    exact = Way(0.0, 100)
    exact.add(at(0, 1.0), 0.0)
    assert exact.seconds_left() is None
    exact.add(at(25, 0.5), 5.0)
    assert exact.seconds_left() == pytest.approx(15)
    assert exact.done == 0.25


@pytest.mark.parametrize("gap", [math.inf, math.nan, 0.0, -1e-17, 2.0])
def test_no_gap_spoils_the_line(gap):
    way = Way(1e-4, 100)
    way.add(at(0, gap), 0.0)
    way.add(at(1, gap), 1.0)
    assert 0 <= way.done <= 1
    left = way.seconds_left()
    assert left is None or 0 <= left < math.inf


# --- scikit-learn's callbacks ---------------------------------------------------------


class Recorder:
    """Notes what it is told, and stops a task when asked to."""

    def __init__(self, stop_after=None):
        self.events = []
        self.stop_after = stop_after

    def setup(self, estimator, context):
        self.events.append(("setup", path(context), None))

    def teardown(self, estimator, context):
        self.events.append(("teardown", path(context), None))

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(("begin", path(context), X))

    def on_fit_task_end(
        self,
        estimator,
        context,
        *,
        X=None,
        y=None,
        metadata=None,
        fitted_estimator=None,
    ):
        self.events.append(("end", path(context), fitted_estimator))
        if fitted_estimator is not None:
            assert X is not None
            assert len(y) == len(fitted_estimator.predict(X))
            self.metadata = metadata
        return context.task_name == "epoch" and context.task_id + 1 == self.stop_after


def path(context):
    names = []
    while context is not None:
        names.append(f"{context.task_name} {context.task_id}")
        context = context.parent
    return tuple(reversed(names))


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback")


def assert_well_nested(events):
    """Every task begins within its parent, and ends when its parts have."""
    (setup, *tasks, teardown) = events
    assert setup[0] == "setup"
    assert teardown[0] == "teardown"
    begun = set()
    done = set()
    for kind, task, _ in tasks:
        if kind == "begin":
            assert task not in begun | done
            assert task[:-1] in begun | {()}
            begun.add(task)
        else:
            begun.remove(task)
            done.add(task)
            assert not any(other[: len(task)] == task for other in begun)
    assert not begun
    return done


@pytest.mark.parametrize("estimator", [Sdca, Asdca, Pegasos, Subgradient, DualGradient])
@pytest.mark.parametrize("y", [VIRGINICA, LENGTHS], ids=["classes", "numbers"])
def test_epochs_are_tasks(callbacks, estimator, y):
    recorder = Recorder()
    loss = "squared" if y is LENGTHS else "squared_hinge"
    model = estimator(loss, **FEW).set_callbacks(recorder).fit(IRIS, y)
    done = assert_well_nested(recorder.events)
    # The one that would have come next is empty.
    epochs = {("fit 0", f"epoch {k}") for k in range(model.n_iter_ + 1)}
    assert done == {("fit 0",), *epochs}
    ended = [(task, fitted) for kind, task, fitted in recorder.events if kind == "end"]
    assert ended[-1][0] == ("fit 0",)
    for _, fitted in (ended[-1], [e for e in ended if e[1] is not None][-2]):
        np.testing.assert_array_equal(fitted.predict(IRIS), model.predict(IRIS))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_classes_are_tasks_that_have_the_epochs(callbacks, n_jobs):
    recorder = Recorder()
    names = np.array(["a", "b", "c"])[SPECIES]
    frame = pd.DataFrame(IRIS, columns=list("pqrs"))
    weights = np.arange(150.0)
    model = SdcaClassifier(n_jobs=n_jobs, **FEW).set_callbacks(recorder)
    model.fit(frame, names, sample_weight=weights)
    done = assert_well_nested(recorder.events)
    classes = [("fit 0", f"class {name} {k}") for k, name in enumerate("abc")]
    epochs = {(*task, f"epoch {e}") for task in classes for e in range(7)}
    assert done == {("fit 0",), *classes, *epochs}
    assert recorder.metadata["sample_weight"] is weights
    # One class after the other, and then the whole.
    if n_jobs == 1:
        events = [(task, kind) for kind, task, _ in recorder.events if task in classes]
        assert events == [(task, kind) for task in classes for kind in ("begin", "end")]
    (kind, task, fitted) = recorder.events[-2]
    assert (kind, task) == ("end", ("fit 0",))
    np.testing.assert_array_equal(fitted.coef_, model.coef_)


def test_epochs_without_an_evaluation_have_no_model(callbacks):
    recorder = Recorder()
    settings = FEW | {"record_every": 3}
    SdcaClassifier("hinge", **settings).set_callbacks(recorder).fit(IRIS, VIRGINICA)
    with_model = [
        task[-1]
        for kind, task, fitted in recorder.events
        if kind == "end" and fitted is not None
    ]
    assert with_model == ["epoch 2", "epoch 5", "fit 0"]
    assert len(assert_well_nested(recorder.events)) == 8


@pytest.mark.parametrize("y", [VIRGINICA, SPECIES, LENGTHS], ids=["2", "3", "numbers"])
def test_callbacks_change_no_bit(callbacks, y):
    model = SdcaRegressor() if y is LENGTHS else SdcaClassifier()
    model.set_params(**FEW)
    plain = clone(model).fit(IRIS, y)
    model.set_callbacks(Recorder()).fit(IRIS, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert np.all(model.duality_gap_ == plain.duality_gap_)
    assert set(vars(model)) - set(vars(plain)) == {"_skl_callbacks"}


@pytest.mark.parametrize("y", [VIRGINICA, SPECIES], ids=["2", "3"])
def test_a_callback_stops_the_run(callbacks, y):
    model = SdcaClassifier("hinge", **FEW).set_callbacks(Recorder(stop_after=3))
    model.fit(IRIS, y)
    assert model.n_iter_ == 3
    assert np.all(model.stop_reason_ == "callback")


def test_a_failing_callback_leaves_the_model_as_it_was(callbacks):
    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("told to")

    failing = Failing()
    model = SdcaClassifier(**FEW).fit(IRIS, VIRGINICA).set_callbacks(failing)
    before = dict(vars(model))
    with pytest.raises(RuntimeError, match="told to"):
        model.fit(IRIS, SPECIES)
    assert vars(model) == before
    assert failing.events[-1][0] == "teardown"


@pytest.mark.parametrize("y", [VIRGINICA, SPECIES], ids=["2", "3"])
def test_scoring_monitor_follows_the_run(callbacks, y):
    monitor = callbacks.ScoringMonitor(scoring=["accuracy", "neg_log_loss"])
    weights = np.arange(150.0)
    frame = pd.DataFrame(IRIS, columns=list("pqrs"))
    model = SdcaClassifier(**FEW).set_callbacks(monitor)
    model.fit(frame, y, sample_weight=weights)
    scores = [
        row
        for row in monitor.get_logs().data
        if row["task_id_path"] == (0,) or row["task_name"] == "epoch"
    ]
    n_problems = 1 if y is VIRGINICA else 3
    assert len(scores) == 1 + n_problems * len(
        np.atleast_1d(model.history_)[0]["gap"][1:]
    )
    expected = {
        "accuracy": model.score(frame, y, weights),
        "neg_log_loss": -log_loss(y, model.predict_proba(frame), sample_weight=weights),
    }
    for row in (scores[0], scores[-1]):
        for name, score in expected.items():
            assert row[name] == pytest.approx(score)


def test_scoring_monitor_follows_a_regression(callbacks):
    monitor = callbacks.ScoringMonitor(scoring="r2")
    # What an earlier fit was is no matter.
    model = Sdca("log", **FEW).fit(IRIS, VIRGINICA).set_params(loss="squared")
    model.set_callbacks(monitor).fit(IRIS, LENGTHS)
    assert monitor.get_logs().data[-1]["r2"] == model.score(IRIS, LENGTHS)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.filterwarnings("ignore:.*does not support callbacks")
def test_callbacks_work_within_a_search(callbacks, n_jobs, capsys):
    pytest.importorskip("rich")
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    model = SdcaClassifier(**FEW).set_callbacks(monitor)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"sdcaclassifier__C": [0.1, 1.0]},
        cv=2,
        n_jobs=n_jobs,
        error_score="raise",
    )
    search.set_callbacks(callbacks.ProgressBar(max_propagation_depth=None))
    search.fit(IRIS, SPECIES)
    runs = monitor.get_logs(select="all")
    whole = [row for row in runs[-1].data if row["task_name"] == "fit"]
    # Of all rows, and of four splits, which are deeper in the tree.
    assert len(whole) == 5
    assert whole[0]["accuracy"] == search.best_estimator_.score(IRIS, SPECIES)
    out = capsys.readouterr().out
    assert "GridSearchCV - fit" in out
    assert "SdcaClassifier - class 2" in out


def test_progress_bars_are_those_of_scikit_learns_own_models(callbacks, capsys):
    pytest.importorskip("rich")
    for model in (SdcaRegressor(**FEW), SdcaClassifier(**FEW)):
        bar = callbacks.ProgressBar()
        model.set_callbacks(bar).fit(IRIS, VIRGINICA)
        out = capsys.readouterr().out
        assert f"{type(model).__name__} - fit" in out
        assert "100%" in out
    LogisticRegression(max_iter=1000).set_callbacks(callbacks.ProgressBar()).fit(
        IRIS, VIRGINICA
    )
    assert "LogisticRegression - fit" in capsys.readouterr().out
