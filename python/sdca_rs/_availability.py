"""Methods that an estimator has or has not, depending on its loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, TypeVar, cast

_Method = TypeVar("_Method", bound=Callable[..., Any])


def only_if(why_not: Callable[[Any], str | None]) -> Callable[[_Method], _Method]:
    """Let a method exist only where ``why_not(estimator)`` has no reason against it.

    scikit-learn's ``available_if`` does the same, but keeps the reason to itself.
    """

    def decorate(method: _Method) -> _Method:
        return cast(_Method, _Conditional(method, why_not))

    return decorate


class _Conditional:
    def __init__(
        self, method: Callable[..., Any], why_not: Callable[[Any], str | None]
    ) -> None:
        self._method = method
        self._why_not = why_not
        update_wrapper(cast(Any, self), method)

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            # The class has the method, for its documentation.
            return self._method
        reason = self._why_not(estimator)
        if reason is not None:
            raise AttributeError(
                f"This {owner.__name__!r} has no attribute "
                f"{self._method.__name__!r}: {reason}"
            )
        return MethodType(self._method, estimator)
