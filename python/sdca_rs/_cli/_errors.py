"""What ends a command with a message instead of a traceback."""


class CommandError(Exception):
    """Input that cannot be used; the message says what was found and expected."""
