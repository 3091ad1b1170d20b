"""Tables for people and for other programs.

On a terminal a table fits the width and has colour; in a pipe every column is whole and aligned. Cells go through `core.display`, so
that no control sequence of an upstream reaches the terminal.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pactgate.cli import terminal
from pactgate.cli.terminal import is_terminal, paint
from pactgate.core.display import flat

_CELL_CHARS: Final = 2000
_GAP: Final = 2
_LONG_FLOOR: Final = 10
_FLOOR: Final = 4


class Column(NamedTuple):
    """`styles` maps a cell's text to a colour. A column that `is_long` shrinks first: it is cut, or it `wraps`.

    A terminal narrower than `from_width` does not show the column.
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


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    cells = [[_cell(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]
    if not is_terminal(sys.stdout):
        cells = [[Styled(cell.text or "-", "") for cell in row] for row in cells]
        _draw(columns, cells, None)
        return
    room = terminal.columns()
    shown = [index for index, column in enumerate(columns) if column.from_width <= room]
    _draw([columns[index] for index in shown], [[row[index] for index in shown] for row in cells], room)


def fits(columns: Sequence[Column], longest: int) -> bool:
    """Whether the titles and a first column of this width are shown whole."""
    wanted = max(longest, _width(columns[0].title)) + sum(_GAP + _width(column.title) for column in columns[1:])
    return not is_terminal(sys.stdout) or wanted <= terminal.columns()


def _cell(given: Any, column: Column) -> Styled:
    value = given.text if isinstance(given, Styled) else given
    text = "" if value is None else flat(str(value), _CELL_CHARS)
    return Styled(text, given.style if isinstance(given, Styled) else column.styles.get(text, ""))


def _draw(columns: Sequence[Column], rows: list[list[Styled]], room: int | None) -> None:
    titles = [Styled(column.title, "" if room is None else "bold") for column in columns]
    lines = [titles, *rows]
    widths = [max(_width(cell.text) for cell in cells) for cells in zip(*lines, strict=True)]
    if room is not None:
        widths = _fit(widths, [column.is_long for column in columns], room)
    for line in lines:
        wrapped = [
            _wrap(cell.text, width) if column.wraps else [_shorten(cell.text, width)]
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        for number in range(max(map(len, wrapped))):
            parts = []
            for texts, cell, width, column in zip(wrapped, line, widths, columns, strict=True):
                text = texts[number] if number < len(texts) else ""
                padding = " " * (width - _width(text))
                shown = paint(text, cell.style, sys.stdout) if text and cell.style else text
                parts.append(padding + shown if column.is_number else shown + padding)
            print((" " * _GAP).join(parts).rstrip())


def _fit(widths: list[int], is_long: list[bool], room: int) -> list[int]:
    """Widths that fit the room: long columns shrink first, then the widest, never below a floor. The first column has the names: it
    shrinks only when nothing else can."""
    fitted = [min(width, room) for width in widths]
    long = [index for index, is_one in enumerate(is_long) if is_one]
    for group, floor in ((long, _LONG_FLOOR), (range(1, len(fitted)), _FLOOR), (range(len(fitted)), _FLOOR)):
        while sum(fitted) + _GAP * (len(fitted) - 1) > room and group:
            widest = max(group, key=fitted.__getitem__)
            if fitted[widest] <= floor:
                break
            fitted[widest] -= 1
    return fitted


def _width(text: str) -> int:
    """How many places of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _fitting(text: str, width: int) -> int:
    """How many characters of the text fit the width."""
    used = 0
    for index, character in enumerate(text):
        used += _width(character)
        if used > width:
            return index
    return len(text)


def _shorten(text: str, width: int) -> str:
    return text if _width(text) <= width else text[: _fitting(text, width - 1)] + "…"


def _wrap(text: str, width: int) -> list[str]:
    lines = []
    while (end := _fitting(text, width)) < len(text):
        space = text.rfind(" ", 0, end + 1)
        end = space if space > 0 else max(end, 1)
        lines.append(text[:end].rstrip())
        text = text[end:].lstrip()
    return [*lines, text]
