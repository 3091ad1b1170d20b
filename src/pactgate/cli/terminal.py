"""What people see: tables, problems, a sign of life. Colour only on a terminal, and everything shown is fit to be shown.

On a terminal tables are drawn by rich; elsewhere they are aligned columns, whole, for other programs. Whatever an upstream or a file said
goes through `core.display` first, so that no control sequence reaches the terminal (T29). Must not: import rich before a table needs it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, TextIO

from pactgate.core.display import flat, visible

_CELL_CHARS: Final = 2000
_QUIET_S: Final = 1.0
"""What takes less time than this needs no sign of life."""
_WORD_CHARS: Final = 6
_NARROWEST: Final = 20
_FRAMES: Final = "|/-\\"
_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Column(NamedTuple):
    """`styles` gives a colour by what the cell says. Where there is no room a column that `is_long` is cut, or `wraps`.

    A terminal narrower than `from_width` does without the column; whoever reads a pipe gets every one.
    """

    title: str
    styles: Mapping[str, str] = {}
    is_long: bool = False
    wraps: bool = False
    is_number: bool = False
    from_width: int = 0


class Styled(NamedTuple):
    """A cell with a colour of its own."""

    text: Any
    style: str


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, style: str, stream: TextIO) -> str:
    """Our own words in colour, where there is colour. Never for text of others."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if has_colour(stream) else text


def prepare_output() -> None:
    """A character the terminal has no code for is spelt out, never a traceback; a stream that was closed leads nowhere."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # The lowest free descriptor is the closed one: no socket may ever take its place and receive our lines.
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str = "") -> None:
    print(visible(text))


def say_json(value: Any) -> None:
    """ASCII only: no terminal can be moved by it, every program can read it."""
    print(json.dumps(value, indent=2))


def compact(value: Any) -> str:
    """A value on one line, for people."""
    return json.dumps(value, ensure_ascii=False)


def problem(message: str, hint: str = "") -> None:
    """What went wrong and what to do about it, on standard error."""
    print(f"{paint('error:', 'red', sys.stderr)} {visible(message)}", file=sys.stderr)
    if hint:
        print(visible(hint), file=sys.stderr)


def warning(message: str) -> None:
    print(f"{paint('warning:', 'yellow', sys.stderr)} {visible(message)}", file=sys.stderr)


def title(text: str) -> None:
    print(paint(flat(text, _CELL_CHARS), "bold", sys.stdout))


def item(word: str, style: str, text: str, hint: str = "") -> None:
    """A line of a list: a word in colour, a sentence, and below it what to do. Wrapped where a person reads it."""
    print(f"  {paint(f'{word:<{_WORD_CHARS}}', style, sys.stdout)} {_hanging(text)}")
    if hint:
        print(f"  {' ' * _WORD_CHARS} {_hanging(hint)}")


def _hanging(text: str) -> str:
    shown, indent = flat(text, _CELL_CHARS), _WORD_CHARS + 3
    if not is_terminal(sys.stdout):
        return shown
    width = max(shutil.get_terminal_size().columns - indent, _NARROWEST)
    return f"\n{' ' * indent}".join(textwrap.wrap(shown, width, break_on_hyphens=False)) or shown


def table(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    cells = [[_cell(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]
    if is_terminal(sys.stdout):
        _draw(columns, cells)
    else:
        _align(columns, [[cell.text for cell in row] for row in cells])


def _cell(given: Any, column: Column) -> Styled:
    value = given.text if isinstance(given, Styled) else given
    text = "" if value is None else flat(str(value), _CELL_CHARS)
    return Styled(text, given.style if isinstance(given, Styled) else column.styles.get(text, ""))


def _align(columns: Sequence[Column], rows: list[list[str]]) -> None:
    lines = [[column.title for column in columns], *([cell or "-" for cell in row] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        padded = [
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        print("  ".join(padded).rstrip())


def _draw(columns: Sequence[Column], rows: list[list[Styled]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    system: Literal["auto"] | None = "auto" if has_colour(sys.stdout) else None
    console = Console(color_system=system, highlight=False, emoji=False, markup=False)
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    shown = [place for place, column in enumerate(columns) if column.from_width <= console.width]
    for column in (columns[place] for place in shown):
        drawn.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            no_wrap=not column.wraps,
            overflow="fold" if column.wraps else "ellipsis",
            ratio=1 if column.is_long else None,
        )
    for row in rows:
        drawn.add_row(*(Text(row[place].text, style=row[place].style) for place in shown))
    drawn.expand = any(columns[place].is_long for place in shown)
    console.print(drawn)


class Spinner:
    """A sign of life on standard error, from the second second on, and only on a terminal."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._turn, daemon=True)

    def tell(self, message: str) -> None:
        self._message = message

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _turn(self) -> None:
        turns, pause_s = 0, _QUIET_S
        while not self._done.wait(pause_s):
            pause_s = 0.1
            sys.stderr.write(f"\r\x1b[K{_FRAMES[turns % len(_FRAMES)]} {flat(self._message, 70)}")
            sys.stderr.flush()
            turns += 1
        if turns:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def spinner(message: str) -> Iterator[Spinner | None]:
    """None where nobody watches."""
    if not is_terminal(sys.stderr):
        yield None
        return
    turning = Spinner(message)
    turning.start()
    try:
        yield turning
    finally:
        turning.stop()
