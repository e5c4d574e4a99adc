"""One line that tells how far a fit has come, in a terminal or a notebook."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

from sdca_rs._core import Progress


def open_live_line(
    title: str, n_problems: int, tol: float, max_iter: int
) -> LiveLine | None:
    """Return the line, where it can be shown.

    tqdm draws it, if it is installed: everybody has it who likes such lines, and a fit
    without it prints lines that say the same. So it need not be installed for all.
    """
    if not (_is_notebook() or sys.stdout.isatty()):
        return None
    try:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets it takes plain text, and says so.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return LiveLine(tqdm, title, n_problems, tol, max_iter)


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class LiveLine:
    """Shows what part of the way from the first gap to the tolerance is done."""

    def __init__(
        self, tqdm: Any, title: str, n_problems: int, tol: float, max_iter: int
    ) -> None:
        class Bar(tqdm):  # type: ignore[misc]
            # It would start a thread, to refresh what does not change.
            monitor_interval = 0

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._bar = Bar(
                total=float(n_problems),
                desc=title,
                leave=False,
                file=sys.stdout,
                dynamic_ncols=True,
                bar_format="{desc} |{bar}| {percentage:3.0f}%",
            )
        self._title = title
        self._ways = [Way(tol, max_iter) for _ in range(n_problems)]
        self._last = self._ways[0]

    def add(self, progress: Progress, seconds: float) -> None:
        """Take note of an evaluation."""
        self._last = self._ways[progress.class_index]
        self._last.add(progress, seconds)

    def show(self, where: str) -> None:
        """Draw the line anew."""
        way = self._last
        done = sum(each.done for each in self._ways)
        self._bar.n = done
        left = way.seconds_left()
        if len(self._ways) > 1:
            # The classes to come take as long as those before.
            share = done / len(self._ways)
            left = way.seconds * (1 - share) / share if share > 0 else None
        tail = "" if left is None else f", {_duration(left)} left"
        self._bar.set_description_str(
            f"{self._title} {where}, relative gap {way.gap:.1e}{tail}", refresh=True
        )

    def close(self) -> None:
        """Wipe the line."""
        self._bar.close()


class Way:
    """The way of one problem: its gap, relative to the objective, over time."""

    def __init__(self, tol: float, max_iter: int) -> None:
        self._tol = tol
        self._max_iter = max_iter
        # Seconds, epochs, and logarithms of gaps where there are any.
        self._points: list[tuple[float, float, float]] = []
        self.gap = math.inf
        self.seconds = 0.0

    def add(self, progress: Progress, seconds: float) -> None:
        """Take note of an evaluation, so many seconds after the start."""
        self.seconds = seconds
        if progress.gap > 0 and progress.primal > 0:
            self.gap = progress.gap / progress.primal
        elif progress.gap <= 0:
            self.gap = 0.0
        level = math.log(self.gap) if 0 < self.gap < math.inf else math.nan
        self._points.append((seconds, progress.epoch, level))

    @property
    def done(self) -> float:
        """How much of the way is behind, from 0 to 1."""
        if not self._points:
            return 0.0
        _, epoch, level = self._points[-1]
        by_epochs = min(1.0, epoch / self._max_iter)
        if self._tol <= 0:
            return by_epochs
        if self.gap <= self._tol:
            return 1.0
        first = next((lvl for _, _, lvl in self._points if not math.isnan(lvl)), level)
        whole = first - math.log(self._tol)
        by_gap = (first - level) / whole if whole > 0 else 0.0
        return max(by_epochs, min(1.0, by_gap)) if math.isfinite(by_gap) else by_epochs

    def seconds_left(self) -> float | None:
        """Extrapolate the fall of the gap, or the epochs, over the last half."""
        seconds, epoch, level = self._points[-1]
        half = [p for p in self._points if p[0] <= seconds / 2] or self._points[:1]
        past_seconds, past_epoch, past_level = half[-1]
        if not (epoch > past_epoch and seconds > past_seconds):
            return None
        time = seconds - past_seconds
        at_most = (self._max_iter - epoch) * time / (epoch - past_epoch)
        if self._tol <= 0:
            return at_most
        fall = past_level - level
        if not fall > 0:
            return None
        return max(0.0, min(at_most, (level - math.log(self._tol)) * time / fall))


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
