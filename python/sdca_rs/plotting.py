"""Pictures of how fits converged; drawing needs the extra ``sdca-rs[plot]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sdca_rs._data import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from typing_extensions import Self

    History = Mapping[str, ArrayLike]
    Scale = Literal["linear", "log", "symlog"]
    Run = tuple[Floats, Floats]

# What the axes are called; another key is its own name.
_TITLES = {
    "epoch": "epochs",
    "cpu_seconds": "CPU seconds",
    "primal": "primal objective P",
    "dual": "dual objective D",
    "gap": "duality gap P \N{MINUS SIGN} D",
    "support": "support (nonzero dual values)",
}

# Points of a mean, unless a single run has more. Runs measured in seconds share none of
# theirs, so that together they have far more than a picture shows.
_MAX_POINTS = 1000


class ConvergenceDisplay:
    """How fits converged: gap, objectives or any score against epochs or seconds.

    :meth:`from_estimators` and :meth:`from_histories` draw at once. The display keeps
    the histories, so that :meth:`plot` can draw other quantities of the same runs.

    Repeated runs under one label, such as fits with several seeds, are drawn as their
    mean, with a band between two of their quantiles, both taken at the points of all
    runs together (about 1000 of them, if there are more and no run has more). For this
    each run is interpolated linearly between its evaluations, and counts beyond its
    ends with its first and its last value, those of the models it started from and
    returned. So a run that stops early neither leaves the mean nor hides those that
    take longer. Runs with few evaluations make a crude picture: see ``record_every`` of
    :class:`sdca_rs.Sdca`. The mean is that of the values also on a logarithmic axis,
    where a few slow runs can lift it above the band.

    Parameters
    ----------
    histories : dict of str to dict, or of str to list of dict
        Under each label a run, or a list of repeated runs. A run is a dict of equally
        long arrays, like ``history_`` of an estimator. Further keys, such as scores
        recorded by a callback, can be plotted as well; "phase", whose entries are no
        numbers, is left out. NaN is a value that was not recorded.

    Attributes
    ----------
    histories : dict of str to list of dict of ndarray
        The runs.
    ax_ : matplotlib Axes
        The axes of the last plot, as are the following.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        One line for each label.
    bands_ : list of matplotlib PolyCollection
        One band for each label with repeated runs.
    reference_line_ : matplotlib Line2D or None
        The horizontal line at the reference.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sdca_rs import Sdca
    >>> from sdca_rs.plotting import ConvergenceDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> study = {"tol": 0, "max_iter": 20, "record_every": 1}
    >>> fits = {
    ...     f"C = {C}": [
    ...         Sdca(C=C, random_state=seed, **study).fit(scale(X), y)
    ...         for seed in range(5)
    ...     ]
    ...     for C in (0.01, 0.1)
    ... }
    >>> display = ConvergenceDisplay.from_estimators(fits)
    >>> len(display.lines_), len(display.bands_), display.ax_.get_yscale()
    (2, 2, 'log')

    The same runs against time, and those of one problem above its optimum:

    >>> display.plot(x="seconds").ax_.get_xlabel()
    'seconds'
    >>> above = ConvergenceDisplay.from_estimators(
    ...     fits["C = 0.1"], y="primal", reference="best", distance=True
    ... )
    >>> above.ax_.get_ylabel()
    'primal objective P above the best D'
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: list[Line2D]
    bands_: list[PolyCollection]
    reference_line_: Line2D | None

    def __init__(self, histories: Mapping[str, History | Sequence[History]]) -> None:
        self.histories = {
            label: [_as_history(f"histories[{label!r}]", run) for run in runs]
            for label, runs in _by_label("histories", histories).items()
        }

    @classmethod
    def from_estimators(
        cls,
        estimators: Any,
        *,
        x: str = "epoch",
        y: str = "gap",
        reference: float | Literal["best"] | None = None,
        distance: bool = False,
        quantiles: tuple[float, float] | None = (0.1, 0.9),
        xscale: Scale = "linear",
        yscale: Scale | None = None,
        line_kw: Mapping[str, Any] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw how fitted estimators converged.

        Parameters
        ----------
        estimators : estimator, list of estimators, or dict of str to either
            What was fitted, by label, which without a dict is the name of the class. A
            list holds repeated runs, such as ``cross_validate(...)["estimator"]``. Of a
            Pipeline the last step is taken. From three classes on, each has a line of
            its own, labelled "label, class".
        x, y, reference, distance, quantiles, xscale, yscale, line_kw, ax
            As in :meth:`plot`.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        if not isinstance(estimators, Mapping):
            (first, *_) = _as_list(estimators) or [None]
            estimators = {type(_last_step(first)).__name__: estimators}
        histories: dict[str, list[History]] = {}
        for label, fits in _by_label("estimators", estimators).items():
            for fit in map(_last_step, fits):
                history = _history_of(f"estimators[{label!r}]", fit)
                if isinstance(history, Mapping):
                    histories.setdefault(label, []).append(history)
                    continue
                for name, part in zip(fit.classes_, history, strict=True):
                    histories.setdefault(f"{label}, {name}", []).append(part)
        return cls.from_histories(
            histories,
            x=x,
            y=y,
            reference=reference,
            distance=distance,
            quantiles=quantiles,
            xscale=xscale,
            yscale=yscale,
            line_kw=line_kw,
            ax=ax,
        )

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, History | Sequence[History]],
        *,
        x: str = "epoch",
        y: str = "gap",
        reference: float | Literal["best"] | None = None,
        distance: bool = False,
        quantiles: tuple[float, float] | None = (0.1, 0.9),
        xscale: Scale = "linear",
        yscale: Scale | None = None,
        line_kw: Mapping[str, Any] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw histories, which may have other keys than those of ``history_``.

        Parameters
        ----------
        histories : dict of str to dict, or of str to list of dict
            As in :class:`ConvergenceDisplay`. A list holds repeated runs; but that of a
            fit of several classes holds classes, and belongs to
            :meth:`from_estimators`.
        x, y, reference, distance, quantiles, xscale, yscale, line_kw, ax
            As in :meth:`plot`.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        return cls(histories).plot(
            ax,
            x=x,
            y=y,
            reference=reference,
            distance=distance,
            quantiles=quantiles,
            xscale=xscale,
            yscale=yscale,
            line_kw=line_kw,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        x: str = "epoch",
        y: str = "gap",
        reference: float | Literal["best"] | None = None,
        distance: bool = False,
        quantiles: tuple[float, float] | None = (0.1, 0.9),
        xscale: Scale = "linear",
        yscale: Scale | None = None,
        line_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw one quantity of the histories against another.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        x : str, default="epoch"
            Key of the histories: "epoch", "seconds", "cpu_seconds", or another whose
            values never fall.
        y : str, default="gap"
            Key of the histories: "gap", "primal", "dual", "support", or another.
        reference : float or "best", default=None
            Draw a horizontal line there. "best" is the best bound that the histories
            prove: for "primal" the largest dual objective, which no model is below, and
            for "dual" the smallest primal one. All must be runs on the same problem.
        distance : bool, default=False
            Draw the distance from the reference instead: ``y - reference``, or for
            "dual" ``reference - y``. With "best" that is at least the distance from the
            optimum.
        quantiles : tuple of two floats, default=(0.1, 0.9)
            Ends of the bands of repeated runs; None draws no bands.
        xscale : {"linear", "log", "symlog"}, default="linear"
            Scale of the axis. "log" leaves out what is not positive, such as epoch 0.
            "symlog" shows it, being linear up to the first positive value.
        yscale : {"linear", "log", "symlog"}, default=None
            None is "log" for the gap and for distances, unless nothing is positive, and
            otherwise "linear". What is not positive, such as a gap of 0, lies below any
            logarithmic axis: a triangle at the bottom stands for it.
        line_kw : dict, default=None
            More arguments of matplotlib's ``Axes.plot``.

        Returns
        -------
        ConvergenceDisplay
            The display itself.
        """
        _require_one_of("xscale", xscale, ("linear", "log", "symlog"))
        _require_one_of("yscale", yscale, (None, "linear", "log", "symlog"))
        quantiles = None if quantiles is None else _as_quantiles(quantiles)
        level = None if reference is None else self._level(reference, y)
        if distance and level is None:
            raise ValueError(
                "reference: found None with distance=True, expected 'best' or a number"
            )
        curves = self._curves(x, y, level if distance else None, quantiles)
        if xscale == "log":
            curves = [
                (grid[grid > 0], mean[grid > 0], band[:, grid > 0])
                for grid, mean, band in curves
            ]
        grids = np.concatenate([grid for grid, _, _ in curves])
        means = np.concatenate([mean for _, mean, _ in curves])
        if not (means > 0).any():
            if yscale == "log":
                raise ValueError(
                    f"yscale: found 'log' for {y!r} without a positive value, expected "
                    "'linear' or 'symlog'"
                )
            yscale = yscale or "linear"
        elif yscale is None:
            yscale = "log" if y == "gap" or distance else "linear"

        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    "ConvergenceDisplay: found no matplotlib, expected it installed, "
                    "as by: pip install 'sdca-rs[plot]'"
                ) from error
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_, self.bands_, self.reference_line_ = [], [], None
        _set_scale(ax.set_xscale, xscale, grids)
        _set_scale(ax.set_yscale, yscale, means)
        for label, (grid, mean, band) in zip(self.histories, curves, strict=True):
            # A line to a point far below the axis would fall at once behind the point
            # before it, so that what is not positive seems to be so too early.
            below = (mean <= 0) & (yscale == "log")
            values = np.where(below, np.nan, mean)
            (line,) = ax.plot(grid, values, **{"label": label, **(line_kw or {})})
            self.lines_.append(line)
            color = line.get_color()
            if below.any():
                (marks,) = ax.plot(grid[below], 0 * grid[below], "v", color=color)
                marks.set(transform=ax.get_xaxis_transform(), clip_on=False)
            if len(band):
                self.bands_.append(
                    ax.fill_between(grid, *band, color=color, alpha=0.2, linewidth=0)
                )
        title = _TITLES.get(y, y)
        if level is not None:
            bound = "best P" if y == "dual" else "best D"
            name = bound if reference == "best" else f"reference {level:.6g}"
            if distance:
                title += f" {'below' if y == 'dual' else 'above'} the {name}"
            else:
                self.reference_line_ = ax.axhline(
                    level, color="0.3", linestyle="--", linewidth=1, label=name
                )
        ax.set(xlabel=_TITLES.get(x, x), ylabel=title)
        ax.grid(alpha=0.3)
        ax.margins(x=0.01)
        if xscale == "linear":
            # Rather 1e-4 once than four zeros at each tick.
            ax.ticklabel_format(axis="x", scilimits=(-3, 5))
        counts = {len(runs) for runs in self.histories.values()}
        if len(ax.get_legend_handles_labels()[0]) > 1 or self.bands_:
            ax.legend(title=_legend_title(counts, quantiles), alignment="left")
        return self

    def _curves(
        self,
        x: str,
        y: str,
        origin: float | None,
        quantiles: tuple[float, float] | None,
    ) -> list[tuple[Floats, Floats, Floats]]:
        """Return the points, means and quantiles of each label."""
        self._require_key("x", x)
        self._require_key("y", y)
        curves = []
        for label, runs in self.histories.items():
            points = [_points(f"histories[{label!r}]", run, x, y) for run in runs]
            if origin is not None:
                sign = -1.0 if y == "dual" else 1.0
                points = [(xs, sign * (ys - origin)) for xs, ys in points]
            curves.append(_summarise(points, quantiles))
        return curves

    def _require_key(self, argument: str, key: str) -> None:
        first, *others = (run for runs in self.histories.values() for run in runs)
        common = [name for name in first if all(name in run for run in others)]
        _require_one_of(argument, key, common)

    def _level(self, reference: float | str, y: str) -> float:
        """Return the reference as a number."""
        if not isinstance(reference, str) and np.isfinite(reference):
            return float(reference)
        if reference != "best" or y not in ("primal", "dual"):
            raise ValueError(
                f"reference: found {reference!r} with y={y!r}, expected a finite number"
                " or, for 'primal' and 'dual', 'best'"
            )
        # The best finite value of each run that has any, with its label.
        best: dict[str, list[tuple[float, str]]] = {"primal": [], "dual": []}
        start = 0.0
        for label, runs in self.histories.items():
            for run in runs:
                for key, values in best.items():
                    found = run.get(key, np.empty(0))
                    found = found[np.isfinite(found)]
                    if len(found):
                        pick = found.min if key == "primal" else found.max
                        values.append((float(pick()), label))
                        start = max(start, abs(found[0]))
        for key, values in best.items():
            if not values:
                raise ValueError(
                    f"reference: found 'best' for histories without a finite value of "
                    f"{key!r}, expected one, or a number"
                )
        (primal, low), (dual, high) = min(best["primal"]), max(best["dual"])
        # No dual objective is above a primal one of the same problem, but for rounding,
        # which is that of the values that the runs have started from.
        if dual > primal + 1e-9 * start:
            raise ValueError(
                f"reference: found 'best' for runs on different problems (P is "
                f"{primal:.6g} in {low!r}, and never below {dual:.6g} in {high!r}), "
                "expected one problem, or a number"
            )
        return dual if y == "primal" else primal


def _points(name: str, run: Mapping[str, Floats], x: str, y: str) -> Run:
    """Return what a run has recorded."""
    xs, ys = run[x], run[y]
    recorded = ~np.isnan(ys)
    if not recorded.any():
        raise ValueError(f"y: found nothing but NaN for {y!r} in {name}")
    if not (np.diff(xs) >= 0).all():
        raise ValueError(
            f"x: found {x!r}, which falls in {name}, expected values that never fall, "
            "such as those of 'epoch'"
        )
    return xs[recorded], ys[recorded]


def _summarise(
    runs: list[Run], quantiles: tuple[float, float] | None
) -> tuple[Floats, Floats, Floats]:
    """Return points, the mean of the runs there, and their quantiles, if any."""
    if len(runs) == 1:
        grid, values = runs[0]
        return grid, values, np.empty((0, len(grid)))
    grid = np.unique(np.concatenate([xs for xs, _ in runs]))
    limit = max(_MAX_POINTS, *(len(xs) for xs, _ in runs))
    if len(grid) > limit:
        # By rank, so that there are points where the runs have theirs.
        grid = grid[np.linspace(0, len(grid) - 1, limit).round().astype(np.intp)]
    values = np.stack([np.interp(grid, xs, ys) for xs, ys in runs])
    band = np.empty((0, len(grid)))
    # Between infinite values there is NaN, which is not drawn.
    with np.errstate(invalid="ignore"):
        if quantiles is not None:
            band = np.quantile(values, quantiles, axis=0)
        return grid, values.mean(axis=0), band


def _set_scale(axis: Callable[..., None], scale: Scale, values: Floats) -> None:
    options = {}
    if scale == "symlog":
        sizes = np.abs(values[np.isfinite(values) & (values != 0)])
        options["linthresh"] = min(sizes, default=1.0)
    axis(scale, **options)


def _require_one_of(argument: str, found: object, expected: Sequence[object]) -> None:
    if found not in expected:
        choices = ", ".join(map(repr, expected))
        raise ValueError(f"{argument}: found {found!r}, expected one of {choices}")


def _as_quantiles(quantiles: Any) -> tuple[float, float]:
    low, high = quantiles if np.shape(quantiles) == (2,) else (1, 0)
    if not 0 <= low < high <= 1:
        raise ValueError(
            f"quantiles: found {quantiles!r}, expected None or two numbers (low, high) "
            "with 0 <= low < high <= 1"
        )
    return float(low), float(high)


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _by_label(argument: str, given: Any) -> dict[str, list[Any]]:
    """Return a list for each label, with at least one entry."""
    lists = {}
    if isinstance(given, Mapping):
        lists = {label: _as_list(runs) for label, runs in given.items()}
    if not (lists and all(lists.values())):
        raise ValueError(
            f"{argument}: found {given!r}, expected a dict with at least one label and "
            "at least one run under each"
        )
    return lists


def _as_history(name: str, history: Any) -> dict[str, Floats]:
    if not isinstance(history, Mapping):
        raise TypeError(
            f"{name}: found {type(history).__name__}, expected a dict of arrays"
        )
    # The names of phases are nothing to be drawn.
    arrays = {
        key: np.asarray(values, np.float64)
        for key, values in history.items()
        if key != "phase"
    }
    shapes = {key: array.shape for key, array in arrays.items()}
    length = max(map(np.size, arrays.values()), default=0)
    if length == 0 or set(shapes.values()) != {(length,)}:
        raise ValueError(
            f"{name}: found arrays of shapes {shapes}, expected one length >= 1 for all"
        )
    return arrays


def _last_step(estimator: Any) -> Any:
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def _history_of(name: str, estimator: Any) -> Any:
    if not hasattr(estimator, "history_"):
        if hasattr(estimator, "fit"):
            check_is_fitted(estimator)
        raise TypeError(
            f"{name}: found {type(estimator).__name__} without history_, expected a "
            "fitted estimator of this package, or a Pipeline that ends in one"
        )
    return estimator.history_


def _legend_title(counts: set[int], quantiles: tuple[float, float] | None) -> str:
    if counts == {1}:
        return ""
    title = f"mean of {max(counts)} runs" if len(counts) == 1 else "mean of the runs"
    if quantiles is not None:
        title += ", band {:.3g} to {:.3g} %".format(*(100 * q for q in quantiles))
    return title
