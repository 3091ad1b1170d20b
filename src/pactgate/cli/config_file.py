"""The configuration file of a command: found, loaded, and its problems printed with their places."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pactgate.cli import terminal
from pactgate.cli.errors import CommandError
from pactgate.config.load import find, load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigProblem, ConfigurationError
from pactgate.core.display import visible


class InvalidConfigError(CommandError):
    """The configuration can't be used; every problem is listed."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__(f"{len(problems)} problem{'s' * (len(problems) != 1)} in the configuration.")
        self.problems = problems

    def show(self) -> None:
        for problem in self.problems:
            place = problem.file if problem.line is None else f"{problem.file}:{problem.line}:{problem.column}"
            where = "  ".join(part for part in (place, problem.path) if part)
            if where:
                print(terminal.paint(visible(where), "bold", sys.stderr), file=sys.stderr)
            print(f"  {visible(problem.message)}", file=sys.stderr)
            if problem.hint:
                print(f"  {visible(problem.hint)}", file=sys.stderr)
        super().show()


def find_config(given: str | None) -> Path | None:
    """The file given with `--config`, else the one of this folder or of the user, if there is one."""
    if given is not None:
        return Path(given)
    try:
        return find(Path.cwd(), os.environ)
    except ConfigurationError as error:
        raise InvalidConfigError(error.problems) from None


def load_config(
    path: Path | None, overrides: Mapping[str, Any] | None = None, *, only: Collection[str] | None = None
) -> Config:
    """The configuration in a file; the defaults without one. With `only`, needs the variables of these sections alone."""
    try:
        return load(path, environ=os.environ, overrides=overrides or {}, only=only)
    except ConfigurationError as error:
        raise InvalidConfigError(error.problems) from None


def show_warnings(config: Config) -> None:
    for problem in (*config.warnings, *config.unresolved):
        terminal.warning(str(problem))
