"""What a fit tells while it runs and when it ends: progress lines and warnings."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from sdca_rs._core import Fit, Progress
from sdca_rs._live_line import open_live_line

# A mean of q = C |x|^2 beyond which coordinate steps get slow: see docs/math.md.
_LARGE_MEAN_Q = 10.0


class Reporter:
    """Prints progress, and passes it on to callbacks.

    As a context it encloses the run.
    """

    def __init__(
        self,
        name: str,
        verbose: int,
        callbacks: Sequence[Callable[[Progress], object]],
        classes: Any,
        *,
        n_problems: int,
        tol: float,
        max_iter: int,
    ) -> None:
        self.classes = classes
        self._name = name
        self._verbose = verbose
        self._callbacks = callbacks
        self._begun = time.perf_counter()
        self._interval = 1.0 if verbose == 1 else 0.1
        self._next_line = self._begun
        # Classes may be fitted in parallel.
        self._lock = Lock()
        self._live = None
        if verbose == 1:
            self._live = open_live_line(f"[{name}]", n_problems, tol, max_iter)

    @property
    def is_needed(self) -> bool:
        """Whether there is anyone to report to."""
        return self._verbose > 0 or bool(self._callbacks)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.close()

    def __call__(self, progress: Progress) -> bool:
        """Report an evaluation; True stops the run."""
        if self._verbose:
            self._print(progress)
        answers = [bool(callback(progress)) for callback in self._callbacks]
        return any(answers)

    def _print(self, progress: Progress) -> None:
        with self._lock:
            now = time.perf_counter()
            if self._live is not None:
                self._live.add(progress, now - self._begun)
            if now < self._next_line:
                return
            self._next_line = now + self._interval
            problem = ""
            if self.classes is not None:
                problem = f" class {self.classes[progress.class_index]}"
            if self._live is not None:
                # Often enough to look at, and seldom enough to cost nothing.
                self._next_line = now + 0.1
                self._live.show(f"{problem} epoch {progress.epoch:g}".lstrip())
                return
        print(
            f"[{self._name}]{problem} epoch {progress.epoch:g}: "
            f"objective {progress.primal:.6g}, {_share(progress.gap, progress.primal)}"
            f", {now - self._begun:.1f} s",
            flush=True,
        )

    def finish(self, fits: list[Fit]) -> None:
        """Print the line that sums up the fit."""
        if not self._verbose:
            return
        worst = max(fits, key=lambda fit: _relative(fit.gap, fit.objective))
        seconds = time.perf_counter() - self._begun
        reasons = sorted({fit.stop_reason for fit in fits})
        if len(fits) == 1:
            what = f"objective {worst.objective:.6g}"
        else:
            what = (
                f"{len(fits)} classes, the worst with objective {worst.objective:.6g}"
            )
        print(
            f"[{self._name}] {', '.join(reasons)} after "
            f"{max(fit.epochs for fit in fits):g} epochs: {what}, "
            f"{_share(worst.gap, worst.objective)}, {seconds:.1f} s",
            flush=True,
        )


def _relative(gap: float, objective: float) -> float:
    if objective > 0:
        return gap / objective
    return math.inf if gap > 0 else 0.0


def _share(gap: float, objective: float) -> str:
    return f"gap {gap:.2e} ({_relative(gap, objective):.2e} of the objective)"


def warn_not_converged(
    name: str, fits: list[Fit], tol: float, classes: Any, *, stacklevel: int
) -> None:
    """Warn with numbers if a fit ended before its tolerance was reached.

    A run that its callback stopped, or one told by tol=0 to use all its epochs, ended
    as its user wished: that is no warning.
    """
    if tol == 0:
        return
    limits = ("max_iter", "max_time", "precision")
    short = [i for i, fit in enumerate(fits) if fit.stop_reason in limits]
    if not short:
        return
    worst = max(short, key=lambda i: _relative(fits[i].gap, fits[i].objective))
    fit = fits[worst]
    problem = ""
    if classes is not None:
        problem = (
            f" for {len(short)} of {len(fits)} classes, the worst "
            f"{classes.tolist()[worst]!r}"
        )
    message = (
        f"{name} did not reach its tolerance{problem}: stopped by {fit.stop_reason} "
        f"after {fit.epochs:g} epochs with duality gap {fit.gap:.3g}, "
        f"{_relative(fit.gap, fit.objective):.3g} of the objective "
        f"{fit.objective:.6g}, where tol={tol:g} was asked. The model is at most that "
        f"far from the optimum. "
        f"What would help: {'; '.join(_advice(name, fit, tol))}."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)


def _advice(name: str, fit: Fit, tol: float) -> list[str]:
    limit = fit.stop_reason
    if limit == "precision":
        return [
            "scaling the columns of X, for example by StandardScaler",
            "a larger tol (rounding keeps the objective and its lower bound where they "
            "are, so that more epochs would not help)",
        ]
    advice = []
    needed = _epochs_needed(fit, tol)
    if needed is None:
        advice.append(f"a larger {limit} or tol (the gap is not falling steadily)")
    elif limit == "max_iter":
        advice.append(
            f"max_iter of about {_rounded(needed)} at the present rate, or a larger tol"
        )
    else:
        factor = needed / max(fit.epochs, 1e-300)
        advice.append(
            f"about {factor:.2g} times max_time at the present rate, or a larger tol"
        )
    if name != "Sdca":
        advice.append("the estimator Sdca, which needs fewer epochs")
    if fit.mean_q > _LARGE_MEAN_Q:
        advice.append(
            f"scaling the columns of X, for example by StandardScaler, or a smaller C "
            f"(the mean of C |x|^2 is {fit.mean_q:.3g}, and beyond {_LARGE_MEAN_Q:g} "
            f"such methods get slow)"
        )
    return advice


def _rounded(count: float) -> int:
    """Round up to two digits: an estimate that can be pasted."""
    digit = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return int(math.ceil(count / digit) * digit)


def _epochs_needed(fit: Fit, tol: float) -> float | None:
    """Extrapolate the fall of the gap over the last half of the run."""
    epochs, gaps = fit.history["epoch"], fit.history["gap"]
    target = tol * fit.objective
    before = int(epochs.searchsorted(0.5 * epochs[-1]))
    if before >= len(epochs) - 1:
        before = len(epochs) - 2
    if before < 0 or not (0 < target < gaps[-1] < gaps[before] < math.inf):
        return None
    # Logarithms one by one: a quotient may overflow.
    last, past = math.log(gaps[-1]), math.log(gaps[before])
    rate = (past - last) / (epochs[-1] - epochs[before])
    needed = epochs[-1] + (last - math.log(target)) / rate if rate > 0 else math.inf
    return float(needed) if needed < math.inf else None
