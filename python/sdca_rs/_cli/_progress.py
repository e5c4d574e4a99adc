"""What a fit shows on the terminal while it runs."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any

    from typing_extensions import Self

    from sdca_rs._core import Progress

# Seconds between two lines of a terminal, or of a log.
_LIVE, _LOG = 0.2, 5.0


class Watch:
    """Shows the gap and the time left, and lets the first interrupt end the fit early.

    A context manager around a fit, and its callback.
    """

    def __init__(self, tol: float, *, quiet: bool) -> None:
        self._tol = tol
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._begun = self._shown = time.monotonic()
        self._points: dict[int, list[tuple[float, float]]] = {}
        self._is_interrupted = False
        self._handler: Any = None
        self._is_dirty = False

    @property
    def is_interrupted(self) -> bool:
        """Whether the user has ended the fit."""
        return self._is_interrupted

    def __enter__(self) -> Self:
        # Signals can be handled in the main thread only.
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if self._is_dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._is_interrupted:
            raise KeyboardInterrupt
        self._is_interrupted = True
        sys.stderr.write(
            "\ninterrupted: the model so far will be saved (again: stop at once)\n"
        )

    def __call__(self, progress: Progress) -> bool:
        """Take note of an evaluation; True ends the fit."""
        if not self._quiet:
            with self._lock:
                self._show(progress)
        return self._is_interrupted

    def _show(self, progress: Progress) -> None:
        now = time.monotonic()
        share = progress.gap / progress.primal if progress.primal > 0 else math.inf
        points = self._points.setdefault(progress.class_index, [])
        points.append((now - self._begun, share))
        if now - self._shown < (_LIVE if self._live else _LOG):
            return
        self._shown = now
        # Classes may be fitted at the same time, in any order.
        problem = ""
        if progress.class_index > 0:
            problem = f"class {progress.class_index + 1}, "
        line = (
            f"{problem}epoch {progress.epoch:.0f}, gap {share:.1e} of the objective "
            f"(tol {self._tol:g}), {now - self._begun:.0f} s"
        )
        left = time_left(points, self._tol)
        if left is not None:
            line += f", about {duration(left)} left"
        if self._live:
            sys.stderr.write(f"\r\x1b[K{line}")
            self._is_dirty = True
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def time_left(points: list[tuple[float, float]], tol: float) -> float | None:
    """Extrapolate the fall of a gap's logarithm over the last half of its time."""
    seconds, share = points[-1]
    past = next(point for point in points if point[0] >= seconds / 2)
    if not (0 < tol < share < past[1] < math.inf) or past[0] >= seconds:
        return None
    rate = (math.log(past[1]) - math.log(share)) / (seconds - past[0])
    return (math.log(share) - math.log(tol)) / rate


def duration(seconds: float) -> str:
    """Write a time as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
