"""The losses, as far as plain training asks for them: quick to import."""

from sdca_rs import _core


def loss_names() -> list[str]:
    """Return the names of all losses."""
    return [entry["name"] for entry in _core.losses()]


def is_for_classes(loss: str) -> bool:
    """Whether a loss is for classes."""
    return any(
        entry["name"] == loss and entry["target"] == "label" for entry in _core.losses()
    )
