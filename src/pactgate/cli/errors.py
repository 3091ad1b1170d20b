"""The error that ends a command: what is wrong, what to do about it, and the exit code."""

from __future__ import annotations

from pactgate.cli import terminal


class CommandError(Exception):
    """Exit code 2 means a wrong invocation or configuration, 1 a failure."""

    def __init__(self, message: str, hint: str = "", *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def show(self) -> None:
        """Print the error on standard error."""
        terminal.problem(self.message, self.hint)
