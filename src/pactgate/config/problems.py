"""Problems of a configuration, with position and suggestion, the error that carries all of them, and the bounds of every reader.

Must not: stop at the first problem, or repeat a value that may be a secret. Text from a file is shown escaped and cut, so that
a file can't move the cursor of a terminal. Enforces S4/F4.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from msgspec import Struct

from pactgate.core.display import flat
from pactgate.core.failures import GatewayFailure, Kind

Path = tuple[str | int, ...]

MAX_DEPTH: Final = 40
MAX_VALUES: Final = 50_000
SHOWN_PROBLEMS: Final = 50
"""The rest are counted."""
_SHOWN_CHARACTERS: Final = 60
_PATH_CHARS: Final = 500
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_$-]{1,60}")


class FilePosition(NamedTuple):
    """Line and column in a file, both from 1."""

    line: int
    column: int


class ValuePosition(NamedTuple):
    """The offsets of one value in its text, and of its key; an item of a list has none. TOML, which another library edits, has no end."""

    start: int
    end: int = 0
    key_start: int | None = None


class LineIndex:
    """Turns offsets of a text into lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> FilePosition:
        line = bisect_right(self._starts, offset)
        return FilePosition(line, offset - self._starts[line - 1] + 1)


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
    """Collects the problems and warnings of one source, in order. The reader of the source notes its lines and the positions of its values.

    A problem has the position of its key, or, with `at_value`, of its value. A path that is not in the source has the position
    of the nearest object around it.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines = LineIndex("")
        self.positions: dict[Path, ValuePosition] = {}
        self.problems: list[ConfigProblem] = []
        self.warnings: list[ConfigProblem] = []

    def add(self, path: Path, message: str, hint: str = "", *, at_value: bool = False) -> None:
        self.add_at(self.place_of(path, at_value=at_value), path, message, hint)

    def add_at(self, place: FilePosition | None, path: Path, message: str, hint: str = "") -> None:
        self.problems.append(self._problem(place, path, message, hint))

    def add_duplicate(self, place: FilePosition | None, path: Path) -> None:
        """Add the problem of a key that was given before."""
        first = self.place_of(path)
        where = f" (first in line {first.line})" if first else ""
        self.add_at(place, path, f"This key is given twice{where}.", "Keep one of them.")

    def problem(self, path: Path, message: str, hint: str = "") -> ConfigProblem:
        """A problem with its position that is not added."""
        return self._problem(self.place_of(path, at_value=True), path, message, hint)

    def warn(self, path: Path, message: str, hint: str = "", *, at_value: bool = False) -> None:
        self.warnings.append(self._problem(self.place_of(path, at_value=at_value), path, message, hint))

    def rename(self, before: Path, after: Path) -> None:
        """From now on the values at and below a path are known by another one."""
        length = len(before)
        moved = {path: at for path, at in self.positions.items() if path[:length] == before}
        self.positions |= {(*after, *path[length:]): at for path, at in moved.items()}

    def place_of(self, path: Path, *, at_value: bool = False) -> FilePosition | None:
        while path and path not in self.positions:
            path = path[:-1]
        if not path:
            return None
        start, _, key_start = self.positions[path]
        return self.lines.place(start if at_value or key_start is None else key_start)

    def _problem(self, place: FilePosition | None, path: Path, message: str, hint: str) -> ConfigProblem:
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


class UnreadableError(Exception):
    """The text can't be read any further."""

    def __init__(self, message: str, hint: str = "", place: FilePosition | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.place = place


class EditError(Exception):
    """`why` is a sentence; `lines` are what to add by hand, if that helps."""

    def __init__(self, why: str, lines: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.lines = lines


def require_encodable(text: str, place: FilePosition | None) -> None:
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UnreadableError("This string has half of a surrogate pair.", "Write the character itself.", place)


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


def shown_path(path: str) -> str:
    """The path of a file, whole, for people."""
    return flat(path, _PATH_CHARS)


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
