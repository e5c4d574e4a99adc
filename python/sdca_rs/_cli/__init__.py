"""The command line: ``sdca-rs`` or ``python -m sdca_rs``."""

from __future__ import annotations

import os
import sys

from sdca_rs._cli import _train
from sdca_rs._cli._errors import CommandError
from sdca_rs._cli._options import FAILURE, INTERRUPTED, SUCCESS, parse
from sdca_rs._cli._report import say

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments; None takes those of the process.

    Returns
    -------
    int
        0 success, 1 failure, 2 wrong usage, 3 not converged, 130 interrupted.
    """
    try:
        args = parse(argv)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else FAILURE
    try:
        if args.command == "train":
            code = _train.train(args)
        else:
            # It takes longer to import than many models to train.
            from sdca_rs._cli import _commands

            code = getattr(_commands, args.command)(args)
        sys.stdout.flush()
        return int(code)
    except BrokenPipeError:
        # Whoever reads standard output has had enough, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SUCCESS
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except (CommandError, ValueError, TypeError, MemoryError, OSError) as error:
        say(str(error) or "found not enough memory")
        return FAILURE
