"""The losses of the compiled core, as Python sees them."""

from functools import cache
from typing import NamedTuple

from sdca_rs import _core


class LossInfo(NamedTuple):
    """A loss and its one shape parameter.

    Attributes
    ----------
    name : str
        The value to give for ``loss``.
    task : {"classification", "regression"}
        What an estimator with this loss is.
    formula : str
        The loss of a row with target ``y`` (classes are -1 and +1) and prediction
        ``p``.
    param : str or None
        What ``loss_param`` means, if the loss takes one.
    default : float or None
        The value used for ``loss_param=None``.
    expected : str or None
        The values that are allowed.
    link : {"identity", "logit", "log"}
        What ``p`` is: the prediction itself, the log-odds of the second class, or the
        logarithm of the expected target.
    """

    name: str
    task: str
    formula: str
    param: str | None
    default: float | None
    expected: str | None
    link: str


@cache
def losses() -> tuple[LossInfo, ...]:
    """List all losses.

    Returns
    -------
    tuple of LossInfo

    Examples
    --------
    >>> from sdca_rs import losses
    >>> [loss.name for loss in losses() if loss.task == "classification"]
    ['hinge', 'squared_hinge', 'smooth_hinge', 'log', 'modified_huber']
    """
    return tuple(
        LossInfo(
            name=entry["name"],
            task="classification" if entry["target"] == "label" else "regression",
            formula=entry["formula"],
            param=entry["param"],
            default=entry["default"],
            expected=entry["expected"],
            link=entry["link"],
        )
        for entry in _core.losses()
    )


def find_loss(name: object) -> LossInfo | None:
    """Return the loss of this name, or None."""
    if not isinstance(name, str):
        return None
    return next((loss for loss in losses() if loss.name == name), None)


def require_loss(name: object) -> LossInfo:
    """Return the loss of this name, or say which there are."""
    loss = find_loss(name)
    if loss is None:
        known = ", ".join(loss.name for loss in losses())
        raise ValueError(f"loss: found {name!r}, expected one of {known}")
    return loss
