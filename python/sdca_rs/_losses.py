"""The losses of the compiled core, as Python sees them."""

from difflib import get_close_matches
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from sdca_rs import _core

# What `SdcaClassifier` and `SdcaRegressor` take, scikit-learn's names included.
ClassifierLoss: TypeAlias = Literal[
    "hinge",
    "squared_hinge",
    "smooth_hinge",
    "log",
    "log_loss",
    "modified_huber",
]
RegressorLoss: TypeAlias = Literal[
    "squared",
    "squared_error",
    "absolute",
    "absolute_error",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "quantile",
    "poisson",
]

# scikit-learn's names for losses that have another name here.
ALIASES = {
    "log_loss": "log",
    "squared_error": "squared",
    "absolute_error": "absolute",
}

# What else they are called: suggested, but not accepted.
_ELSEWHERE = {
    "logistic": "log",
    "logit": "log",
    "cross_entropy": "log",
    "binary_crossentropy": "log",
    "svm": "hinge",
    "l2": "squared",
    "mse": "squared",
    "least_squares": "squared",
    "ridge": "squared",
    "l1": "absolute",
    "mae": "absolute",
    "pinball": "quantile",
}


class LossInfo(NamedTuple):
    """A loss and its one shape parameter.

    Attributes
    ----------
    name : str
        The value to give for ``loss``. scikit-learn's names "log_loss",
        "squared_error" and "absolute_error" are taken for "log", "squared" and
        "absolute".
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
    """Return the loss of this name, or of this alias, or None."""
    if not isinstance(name, str):
        return None
    name = ALIASES.get(name, name)
    return next((loss for loss in losses() if loss.name == name), None)


def require_loss(name: object, task: str | None = None) -> LossInfo:
    """Return the loss of this name, or say which there are for the task."""
    loss = find_loss(name)
    if loss is not None and task in (None, loss.task):
        return loss
    known = [loss.name for loss in losses() if task in (None, loss.task)]
    found = repr(name)
    if loss is not None:
        found += f", which is for {loss.task}"
    elif guess := _guess(name, known):
        found += f" (did you mean {guess!r}?)"
    raise ValueError(f"loss: found {found}, expected one of {', '.join(known)}")


def _guess(name: object, known: list[str]) -> str | None:
    """Return the loss that an unknown name is meant to be, as far as one can tell."""
    if not isinstance(name, str):
        return None
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    names = {loss: loss for loss in known} | {
        other: loss for other, loss in (_ELSEWHERE | ALIASES).items() if loss in known
    }
    closest = get_close_matches(plain, names, n=1)
    return names[closest[0]] if closest else None
