"""The command line: ``sdca-rs`` or ``python -m sdca_rs``."""

from sdca_rs._cli._commands import main

__all__ = ["main"]
