"""Pictures show what the histories say, and refuse what has no picture."""

import subprocess
import sys
from io import BytesIO

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import make_problem
from sdca_rs import Sdca
from sdca_rs.plotting import ConvergenceDisplay

mpl.use("Agg")

STUDY = {"tol": 0.0, "max_iter": 8, "record_every": 0.5}


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def fits():
    problem = make_problem("hinge")
    return [problem.fit(random_state=seed, **STUDY) for seed in range(7)]


def history(gap, epoch=None, **more):
    epoch = np.arange(len(gap)) if epoch is None else epoch
    return {"epoch": np.array(epoch), "gap": np.array(gap)} | more


def draw(histories, ax, **options):
    """Draw, and let matplotlib do all of its work."""
    if not isinstance(histories, dict) or "gap" in histories:
        histories = {"run": histories}
    display = ConvergenceDisplay.from_histories(histories, ax=ax, **options)
    display.figure_.savefig(BytesIO())
    return display


def points(line):
    return np.array(line.get_data())


def ends(band):
    """Return lower and upper end of a band at its points."""
    (path,) = band.get_paths()
    vertices = path.vertices
    xs = np.unique(vertices[:, 0])
    ys = [vertices[vertices[:, 0] == x, 1] for x in xs]
    return xs, np.array([(y.min(), y.max()) for y in ys]).T


# ---------------------------------------------------------------- what is drawn


@pytest.mark.parametrize("x", ["epoch", "seconds"])
@pytest.mark.parametrize("y", ["gap", "primal", "dual", "support"])
def test_single_runs_are_drawn_as_recorded(fits, ax, x, y):
    labels = {f"seed {i}": fit for i, fit in enumerate(fits[:3])}
    display = ConvergenceDisplay.from_estimators(labels, x=x, y=y, ax=ax)
    assert [line.get_label() for line in display.lines_] == list(labels)
    for line, fit in zip(display.lines_, fits, strict=False):
        np.testing.assert_array_equal(points(line), [fit.history_[x], fit.history_[y]])
    assert display.bands_ == []
    assert display.reference_line_ is None
    assert (ax.get_xscale(), ax.get_yscale()) == (
        "linear",
        "log" if y == "gap" else "linear",
    )
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_runs_at_the_same_epochs_are_not_interpolated(fits, ax):
    display = ConvergenceDisplay.from_estimators(
        {"seeds": fits}, quantiles=(0.25, 0.75), ax=ax
    )
    gaps = np.array([fit.history_["gap"] for fit in fits])
    (line,), (band,) = display.lines_, display.bands_
    epochs = fits[0].history_["epoch"]
    np.testing.assert_allclose(points(line), [epochs, gaps.mean(axis=0)], rtol=1e-12)
    xs, quantiles = ends(band)
    np.testing.assert_array_equal(xs, epochs)
    expected = np.quantile(gaps, [0.25, 0.75], axis=0)
    np.testing.assert_allclose(quantiles, expected, rtol=1e-12)
    assert ax.get_legend().get_title().get_text() == "mean of 7 runs, band 25 to 75 %"


def test_runs_at_other_points_meet_on_those_of_all(ax):
    runs = [history([8.0, 4.0, 2.0], [0, 2, 4]), history([6.0, 3.0], [0, 3])]
    display = draw([*runs], ax, quantiles=(0.0, 1.0))
    # The second run keeps its last value.
    first, second = [8.0, 4.0, 3.0, 2.0], [6.0, 4.0, 3.0, 3.0]
    mean = np.mean([first, second], axis=0)
    np.testing.assert_allclose(points(display.lines_[0]), [[0, 2, 3, 4], mean])
    _, quantiles = ends(display.bands_[0])
    np.testing.assert_allclose(quantiles, np.sort([first, second], axis=0))


def test_a_run_counts_from_its_start_with_its_first_value(ax):
    runs = [history([8.0, 4.0], [1, 3]), history([6.0, 2.0], [2, 3])]
    display = draw([*runs], ax, quantiles=None)
    np.testing.assert_allclose(points(display.lines_[0]), [[1, 2, 3], [7, 6, 3]])
    assert display.bands_ == []


def test_many_points_are_thinned_but_not_those_of_one_run(ax):
    rng = np.random.default_rng(0)
    runs = [
        history(np.exp(-t), t) for t in np.sort(rng.uniform(0, 5, (100, 60)), axis=1)
    ]
    xs, ys = points(draw(runs, ax).lines_[0])
    assert len(xs) == 1000
    times = np.concatenate([run["epoch"] for run in runs])
    assert (xs[0], xs[-1]) == (times.min(), times.max())
    assert (np.diff(ys) < 0).all()
    long = history(np.ones(3000))
    assert len(points(draw([long, long], ax).lines_[0])[0]) == 3000
    assert len(points(draw(long, ax).lines_[0])[0]) == 3000


def test_extra_keys_are_plotted_where_they_were_recorded(ax):
    error = [0.5, np.nan, 0.25, np.nan]
    display = draw(history([1, 1, 1, 1], test_error=error), ax, y="test_error")
    np.testing.assert_array_equal(points(display.lines_[0]), [[0, 2], [0.5, 0.25]])
    assert ax.get_yscale() == "linear"
    assert ax.get_ylabel() == "test_error"


def test_a_display_draws_again(fits):
    display = ConvergenceDisplay.from_estimators(fits[0])
    first = display.ax_
    assert display.plot(y="dual") is display
    assert display.ax_ is not first
    assert display.figure_ is display.ax_.figure
    np.testing.assert_array_equal(
        points(display.lines_[0])[1], fits[0].history_["dual"]
    )
    for drawn in first, display.ax_:
        plt.close(drawn.figure)


def test_line_kw_goes_to_matplotlib(fits, ax):
    display = ConvergenceDisplay.from_estimators(
        fits, ax=ax, line_kw={"color": "k", "marker": "."}
    )
    assert display.lines_[0].get_color() == "k"
    assert isinstance(display.bands_[0], PolyCollection)
    np.testing.assert_array_equal(display.bands_[0].get_facecolor()[0], [0, 0, 0, 0.2])


# ---------------------------------------------------------------- axes


def test_symlog_shows_what_log_leaves_out(ax):
    run = history([1.0, 2.0, 3.0], [0.0, 0.25, 1.0])
    display = draw(run, ax, xscale="symlog")
    np.testing.assert_array_equal(points(display.lines_[0])[0], [0.0, 0.25, 1.0])
    assert ax.get_xscale() == "symlog"
    assert ax.get_xlim()[0] <= 0
    # Linear up to the first positive value, logarithmic from there.
    assert ax.xaxis.get_transform().linthresh == 0.25
    display = draw([run, run], ax, xscale="log")
    np.testing.assert_array_equal(points(display.lines_[0]), [[0.25, 1], [2, 3]])
    assert len(ends(display.bands_[0])[0]) == 2
    assert ax.get_xscale() == "log"


@pytest.mark.parametrize("n_runs", [1, 3])
def test_values_below_a_log_axis_are_marked(ax, n_runs):
    gap = [1.0, 1e-4, -1e-17, 1e-6, 0.0]
    display = draw([history(gap)] * n_runs, ax)
    xs, ys = points(display.lines_[0])
    np.testing.assert_array_equal(xs, range(5))
    expected = np.where(np.array(gap) > 0, gap, np.nan)
    np.testing.assert_allclose(ys, expected, rtol=1e-12)
    (marks,) = set(ax.lines) - set(display.lines_)
    np.testing.assert_array_equal(points(marks), [[2, 4], [0, 0]])
    assert marks.get_color() == display.lines_[0].get_color()
    # In fractions of the axis: at its bottom, which the values do not reach.
    bottom = ax.transAxes.transform([0, 0])[1]
    np.testing.assert_allclose(
        marks.get_transform().transform(marks.get_xydata())[:, 1], bottom
    )
    low, high = ax.get_ylim()
    assert 1e-8 < low < 1e-6 < 1 < high < 10


def test_other_axes_show_values_that_are_not_positive(ax):
    gap = [1.0, -1e-3, 0.0]
    for yscale in "linear", "symlog":
        display = draw(history(gap), ax, yscale=yscale)
        np.testing.assert_array_equal(points(display.lines_[0])[1], gap)
        assert ax.get_yscale() == yscale


def test_without_positive_values_the_axis_is_linear(ax):
    display = draw(history([0.0, -1e-17]), ax)
    assert ax.get_yscale() == "linear"
    np.testing.assert_array_equal(points(display.lines_[0])[1], [0.0, -1e-17])
    with pytest.raises(ValueError, match=r"yscale: found 'log' for 'gap' without"):
        draw(history([0.0, -1e-17]), ax, yscale="log")


def test_infinite_values_are_left_out_without_a_warning(ax):
    runs = [history([np.inf, np.inf, 1.0]), history([np.inf, 2.0, 1.0])]
    display = draw(runs, ax)
    assert points(display.lines_[0])[1][-1] == 1.0
    assert np.isfinite(ax.get_ylim()).all()


# ---------------------------------------------------------------- reference


@pytest.mark.parametrize("y", ["primal", "dual"])
def test_best_is_the_bound_that_the_histories_prove(fits, ax, y):
    primal = min(fit.history_["primal"].min() for fit in fits)
    dual = max(fit.history_["dual"].max() for fit in fits)
    best = dual if y == "primal" else primal
    labels = {"a": fits[:3], "b": fits[3:]}
    display = ConvergenceDisplay.from_estimators(labels, y=y, reference="best", ax=ax)
    assert set(display.reference_line_.get_ydata()) == {best}
    display.plot(ax, y=y, reference="best", distance=True)
    assert display.reference_line_ is None
    assert ax.get_yscale() == "log"
    for line, some in zip(display.lines_, labels.values(), strict=True):
        values = np.mean([fit.history_[y] for fit in some], axis=0)
        np.testing.assert_allclose(points(line)[1], abs(values - best), rtol=1e-9)
    optimum = make_problem("hinge").fit(tol=1e-10).objective_
    for line, some in zip(display.lines_, labels.values(), strict=True):
        values = np.mean([fit.history_[y] for fit in some], axis=0)
        assert (points(line)[1] >= abs(values - optimum) * (1 - 1e-6)).all()


def test_a_number_is_a_reference_for_everything(ax):
    display = draw(history([1.0, 0.5]), ax, reference=0.25)
    assert set(display.reference_line_.get_ydata()) == {0.25}
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["run", "reference 0.25"]
    display = draw(history([1.0, 0.5]), ax, reference=0.25, distance=True)
    np.testing.assert_array_equal(points(display.lines_[0])[1], [0.75, 0.25])


def test_best_refuses_runs_on_different_problems(ax):
    easy, hard = make_problem("hinge"), make_problem("hinge", seed=1)
    fits = {"easy": easy.fit(C=1.0, tol=1e-8), "hard": hard.fit(C=0.01, tol=1e-8)}
    with pytest.raises(ValueError, match=r"on different problems .* in 'easy'.*'hard'"):
        ConvergenceDisplay.from_estimators(fits, y="primal", reference="best", ax=ax)
    # Each of them alone is proved to its own optimum, up to rounding.
    for fit in fits.values():
        ConvergenceDisplay.from_estimators(fit, y="primal", reference="best", ax=ax)


def test_best_passes_over_rounding_and_over_what_is_missing(ax):
    above = np.nextafter(0.5, 1)
    exact = history([1.0, 0.0], primal=[1.0, 0.5], dual=[0.0, above])
    # Another solver, that proves nothing, and a run without a usable bound.
    other = {"epoch": [0, 1], "primal": [1.0, 0.75]}
    void = history([np.inf] * 2, primal=[1.0, np.nan], dual=[-np.inf, np.nan])
    runs = {"exact": exact, "other": other, "void": void}
    display = draw(runs, ax, y="primal", reference="best")
    assert set(display.reference_line_.get_ydata()) == {above}
    for alone in other, void:
        with pytest.raises(ValueError, match=r"without a finite value of 'dual'"):
            draw({"a": alone}, ax, y="primal", reference="best")
    perfect = history([1.0, 0.0], primal=[1.0, 1e-17], dual=[0.0, 2e-17])
    draw(perfect, ax, y="primal", reference="best")


# ---------------------------------------------------------------- estimators


def test_estimators_come_alone_in_lists_and_in_pipelines(fits, ax):
    problem = make_problem("hinge")
    pipe = make_pipeline(StandardScaler(), make_pipeline(Sdca(random_state=0, **STUDY)))
    pipe.fit(problem.X, problem.y)
    display = ConvergenceDisplay.from_estimators(pipe, ax=ax)
    (line,) = display.lines_
    assert line.get_label() == "Sdca"
    np.testing.assert_array_equal(points(line)[1], pipe[-1][-1].history_["gap"])
    assert ax.get_legend() is None

    folds = cross_validate(pipe, problem.X, problem.y, return_estimator=True)
    display = ConvergenceDisplay.from_estimators(folds["estimator"], ax=ax)
    assert list(display.histories) == ["Sdca"]
    assert len(display.histories["Sdca"]) == 5
    assert ax.get_legend().get_title().get_text() == "mean of 5 runs, band 10 to 90 %"
    display = ConvergenceDisplay.from_estimators({"a": fits, "b": fits[0]}, ax=ax)
    assert (len(display.lines_), len(display.bands_)) == (2, 1)
    assert ax.get_legend().get_title().get_text() == "mean of the runs, band 10 to 90 %"


def test_each_of_several_classes_has_a_line(ax):
    X, number = load_iris(return_X_y=True)
    kind = np.array(["x", "y", "z"])[number]
    fits = [Sdca("log", random_state=seed, **STUDY).fit(X, kind) for seed in range(2)]
    display = ConvergenceDisplay.from_estimators({"iris": fits}, ax=ax)
    labels = [line.get_label() for line in display.lines_]
    assert labels == ["iris, x", "iris, y", "iris, z"]
    for k, line in enumerate(display.lines_):
        gaps = [fit.history_[k]["gap"] for fit in fits]
        np.testing.assert_allclose(points(line)[1], np.mean(gaps, axis=0), rtol=1e-12)


def test_estimators_without_a_history_are_refused(fits, ax):
    problem = make_problem("hinge")
    for unfitted in Sdca(), make_pipeline(StandardScaler(), Sdca()):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ConvergenceDisplay.from_estimators({"a": [fits[0], unfitted]}, ax=ax)
    other = LogisticRegression().fit(problem.X, problem.y)
    with pytest.raises(TypeError, match=r"\['b'\]: found LogisticRegression without"):
        ConvergenceDisplay.from_estimators({"b": other}, ax=ax)
    with pytest.raises(TypeError, match="found str without history_"):
        ConvergenceDisplay.from_estimators("Sdca", ax=ax)
    for nothing in [], {}, {"a": []}:
        with pytest.raises(ValueError, match=r"estimators: found .* at least one"):
            ConvergenceDisplay.from_estimators(nothing, ax=ax)


# ---------------------------------------------------------------- errors

RUN = history([2.0, 1.0], primal=[3.0, 2.0], dual=[1.0, 1.0], nan=[np.nan] * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": "time"}, r"x: found 'time', expected one of 'epoch', 'gap', 'primal', "),
        ({"y": "score"}, r"y: found 'score', expected one of 'epoch', 'gap', 'primal'"),
        ({"x": "primal"}, r"x: found 'primal', which falls in histories\['a'\]"),
        ({"y": "nan"}, r"y: found nothing but NaN for 'nan' in histories\['a'\]"),
        ({"xscale": "logit"}, r"xscale: found 'logit', expected one of 'linear', "),
        ({"xscale": None}, r"xscale: found None, expected one of 'linear', "),
        ({"yscale": "logit"}, r"yscale: found 'logit', expected one of None, 'linear'"),
        ({"quantiles": (0.9, 0.1)}, r"quantiles: found \(0.9, 0.1\), expected None or"),
        ({"quantiles": (0.1, 1.1)}, r"quantiles: found \(0.1, 1.1\), expected None or"),
        ({"quantiles": 0.5}, r"quantiles: found 0.5, expected None or"),
        ({"quantiles": (0.1, 0.5, 0.9)}, r"quantiles: found .*, expected None or"),
        ({"distance": True}, r"reference: found None with distance=True, expected"),
        (
            {"reference": "best"},
            r"reference: found 'best' with y='gap', expected a fin",
        ),
        ({"reference": "P"}, r"reference: found 'P' with y='gap', expected a finite"),
        ({"reference": np.inf}, r"reference: found inf with y='gap', expected a fin"),
    ],
)
def test_errors_name_the_argument(options, message, ax):
    with pytest.raises(ValueError, match=message):
        draw({"a": RUN}, ax, **options)
    # Nothing was drawn.
    assert not ax.lines


def test_keys_are_those_of_all_runs(ax):
    with pytest.raises(ValueError, match=r"y: found 'primal', expected .* 'gap'$"):
        draw({"a": RUN, "b": history([1.0])}, ax, y="primal")


@pytest.mark.parametrize(
    ("histories", "error", "message"),
    [
        ({}, ValueError, r"histories: found {}, expected a dict with at least one"),
        ([RUN], ValueError, r"histories: found \[.*\], expected a dict with at least"),
        ({"a": []}, ValueError, r"histories: found .* at least one run under each"),
        ({"a": [RUN, 1]}, TypeError, r"histories\['a'\]: found int, expected a dict"),
        ({"a": {}}, ValueError, r"histories\['a'\]: found arrays of shapes {}, expec"),
        ({"a": history([])}, ValueError, r"\['a'\]: found arrays of .*one length >= 1"),
        (
            {"a": history([1.0], [0, 1])},
            ValueError,
            r"found arrays of shapes {'epoch': \(2,\), 'gap': \(1,\)}, expected one",
        ),
        ({"a": history([[1.0], [2.0]])}, ValueError, r"'gap': \(2, 1\)}, expected one"),
    ],
)
def test_histories_that_are_none_are_refused(histories, error, message):
    with pytest.raises(error, match=message):
        ConvergenceDisplay(histories)


def test_a_refused_plot_opens_no_figure():
    before = plt.get_fignums()
    with pytest.raises(ValueError, match="y: found"):
        ConvergenceDisplay({"a": RUN}).plot(y="score")
    assert plt.get_fignums() == before


# ---------------------------------------------------------------- without matplotlib

WITHOUT = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Block())
import sdca_rs
from sdca_rs.plotting import ConvergenceDisplay

display = ConvergenceDisplay({"a": {"epoch": [0, 1], "gap": [1, 0.5]}})
try:
    display.plot()
except ImportError as error:
    print(error)
"""


def test_the_package_needs_matplotlib_only_to_draw():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert "pip install 'sdca-rs[plot]'" in run.stdout


def test_importing_does_not_load_matplotlib():
    code = "import sys, sdca_rs.plotting; print('matplotlib' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"
