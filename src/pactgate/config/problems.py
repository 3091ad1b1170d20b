"""Problems of a configuration, with position and suggestion, and the error that carries all of them.

Must not: stop at the first problem, or repeat a value that may be a secret. Text from a file is shown escaped and cut, so that
a file can't move the cursor of a terminal. Enforces S4/F4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from msgspec import Struct

from pactgate.core.failures import GatewayFailure, Kind

Path = tuple[str | int, ...]

SHOWN_PROBLEMS: Final = 50
"""The rest are counted."""
_SHOWN_CHARACTERS: Final = 60
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_$-]{1,60}")


class FilePosition(NamedTuple):
    """Line and column in a file, both from 1."""

    line: int
    column: int


class ValueFault(NamedTuple):
    """A problem of one value, without its position."""

    message: str
    hint: str = ""


class ConfigProblem(Struct, frozen=True):
    """One problem. `path` names the setting as the reference page does; line and column are absent where there is no file."""

    path: str
    message: str
    hint: str = ""
    line: int | None = None
    column: int | None = None
    file: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        where = " ".join(part for part in (place, self.path) if part)
        text = f"{self.message} {self.hint}".rstrip()
        return f"{where}: {text}" if where else text


class ConfigFindings:
    """Collects the problems and warnings of one source, in order."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[ConfigProblem] = []
        self.warnings: list[ConfigProblem] = []

    def add(self, path: Path, place: FilePosition | None, message: str, hint: str = "") -> None:
        self.problems.append(self._problem(path, place, message, hint))

    def warn(self, path: Path, place: FilePosition | None, message: str, hint: str = "") -> None:
        self.warnings.append(self._problem(path, place, message, hint))

    def _problem(self, path: Path, place: FilePosition | None, message: str, hint: str) -> ConfigProblem:
        line, column = place or (None, None)
        return ConfigProblem(spell(path), message, hint, line, column, self.file)


class ConfigurationError(GatewayFailure):
    """Every problem of a configuration: as text for people, and as details for programs."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0)))
        facts = [
            {
                name: value
                for name in ConfigProblem.__struct_fields__
                if (value := getattr(problem, name)) not in (None, "")
            }
            for problem in self.problems[:SHOWN_PROBLEMS]
        ]
        super().__init__(Kind.INVALID_CONFIG, self._text(), details={"problems": facts})

    def _text(self) -> str:
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if hidden := len(self.problems) - len(lines):
            lines.append(f"and {hidden} more.")
        return "\n".join(lines)


class EditError(Exception):
    """`why` is a sentence; `lines` are what to add by hand, if that helps."""

    def __init__(self, why: str, lines: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.lines = lines


def spell(path: Path) -> str:
    """`mcpServers.files.args[2]`; keys that are not plain words are quoted, as `mcpServers["my.server"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text


def show(value: Any) -> str:
    """A value of a file for printing: JSON in ASCII, cut."""
    text = json.dumps(value[: _SHOWN_CHARACTERS + 1] if isinstance(value, str) else value)
    if len(text) > _SHOWN_CHARACTERS:
        text = text[: _SHOWN_CHARACTERS - 3] + "..."
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    # Imported here: a good configuration never needs it.
    import difflib

    by_folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word[:_SHOWN_CHARACTERS].casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None
