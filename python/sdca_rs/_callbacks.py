"""scikit-learn's own callbacks, which it has from version 1.9 on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sdca_rs._core import Progress

_Method = TypeVar("_Method", bound=Callable[..., Any])

if TYPE_CHECKING:
    from typing_extensions import Self

    class CallbackSupportMixin:
        """Takes scikit-learn's callbacks."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set callbacks, or without any forget them."""
            return self

    def with_callbacks(method: _Method) -> _Method:
        """Let callbacks end with the method."""
        return method

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """Nothing: this scikit-learn has no callbacks."""

        def with_callbacks(method):
            """Add a frame to the stack, as scikit-learn's decorator does."""

            @wraps(method)
            def call(*args, **kwargs):
                return method(*args, **kwargs)

            return call


__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]


class _Run:
    """One problem: its task, the epoch that is under way, and how many are done."""

    def __init__(self, task: Any, *, is_root: bool) -> None:
        self.task = task
        self.is_root = is_root
        self.thread = get_ident()
        self.epoch: Any = None
        self.done = 0


class FitTasks:
    """Tells scikit-learn's callbacks of a fit: its classes, and their epochs.

    The task "fit" has a subtask for each epoch or, from three classes on, one for each
    class, which has the epochs. An epoch in which the model is not evaluated ends
    without data, so that a scorer passes it over.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, classes: Any
    ) -> None:
        """Begin the task "fit"; ``classes`` is None for a regressor."""
        self._estimator = estimator
        self._classes = classes
        self._n_problems = 1 if classes is None or len(classes) < 3 else len(classes)
        self._data = {"X": X, "y": y}
        if sample_weight is not None:
            self._data["metadata"] = {"sample_weight": sample_weight}
        if classes is None:
            # Left behind by an earlier fit with a loss for classes.
            estimator.__dict__.pop("classes_", None)
        # One more than there are epochs: the next one begins as one ends.
        self._max_epochs = int(estimator.max_iter)
        shape = (self._n_problems, estimator.n_features_in_)
        self._coef: NDArray[np.float64] = np.zeros(shape)
        self._intercept = np.zeros(self._n_problems)
        self._runs: dict[int, _Run] = {}
        # Classes may be fitted in parallel.
        self._lock = Lock()
        is_single = self._n_problems == 1
        self._root = estimator._init_callback_context(
            max_subtasks=self._max_epochs + 1 if is_single else self._n_problems,
            sequential_subtasks=is_single,
        )
        self._begin(self._root)

    def __call__(self, progress: Progress) -> bool:
        """Report an evaluation; True stops the run."""
        with self._lock:
            k = progress.class_index
            run = self._runs.get(k) or self._begin_run(k)
            self._coef[k], self._intercept[k] = progress.coef, progress.intercept
            stop = False
            new = min(int(progress.epoch), self._max_epochs) - run.done
            for left in reversed(range(new)):
                stop |= self._end(run.epoch, with_model=left == 0)
                run.done += 1
                self._begin_epoch(run)
            return stop

    def finish(self) -> None:
        """End all tasks; the estimator is fitted."""
        for run in self._runs.values():
            self._end_run(run)
        self._root.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes={}, **self._data
        )

    def _begin_run(self, k: int) -> _Run:
        is_single = self._n_problems == 1
        if not is_single:
            # A thread that begins a class has done the one before.
            for other in self._runs.values():
                if other.thread == get_ident():
                    self._end_run(other)
        task = self._root
        if not is_single:
            task = task.subcontext(
                task_name=f"class {self._classes[k]}",
                task_id=k,
                max_subtasks=self._max_epochs + 1,
            )
            self._begin(task)
        run = self._runs[k] = _Run(task, is_root=is_single)
        self._begin_epoch(run)
        return run

    def _begin_epoch(self, run: _Run) -> None:
        run.epoch = run.task.subcontext(task_name="epoch")
        self._begin(run.epoch)

    def _end_run(self, run: _Run) -> None:
        if run.epoch is None:
            return
        self._end(run.epoch, with_model=False)
        run.epoch = None
        if not run.is_root:
            self._end(run.task, with_model=True)

    def _begin(self, task: Any) -> None:
        task.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def _end(self, task: Any, *, with_model: bool) -> bool:
        if not with_model:
            return bool(task.call_on_fit_task_end(estimator=self._estimator))
        return bool(
            task.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=self._model,
                **self._data,
            )
        )

    def _model(self) -> dict[str, Any]:
        """Return what a fit that ended here would have learned.

        The coefficients of classes that are still to come are 0.
        """
        if self._classes is None:
            return {
                "coef_": self._coef[0].copy(),
                "intercept_": float(self._intercept[0]),
            }
        return {
            "classes_": self._classes,
            "coef_": self._coef.copy(),
            "intercept_": self._intercept.copy(),
        }
