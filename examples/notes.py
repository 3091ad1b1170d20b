"""Notes, one per line in a file beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from pactgate import Call, ToolError, tool

FILE = Path("notes.txt")


class Note(Struct):
    number: int
    text: str


@tool(category="mutation", idempotent=False, effects=["filesystem.write"])
def add_note(text: Annotated[str, Meta(min_length=1, max_length=500)]) -> Note:
    """Write a note down.

    Args:
        text: What to remember; one line.
    """
    line = " ".join(text.split())
    with FILE.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    return Note(len(_lines()), line)


@tool(
    category="query",
    idempotent=True,
    effects=["filesystem.read"],
    errors={"NO_SUCH_NOTE": "There is no note with this number."},
)
def read_note(number: Annotated[int, Meta(ge=1)]) -> Note:
    """Read one note.

    Args:
        number: Which one, counted from 1.
    """
    lines = _lines()
    if number > len(lines):
        raise ToolError(
            "NO_SUCH_NOTE", f"There is no note {number}; the last one is {len(lines)}.", {"count": len(lines)}
        )
    return Note(number, lines[number - 1])


@tool(category="scan", idempotent=True, effects=["filesystem.read"])
async def find_notes(word: str, call: Call) -> list[Note]:
    """Find the notes that have a word in them, whatever its case.

    Args:
        word: What to look for.
    """
    lines = _lines()
    found = []
    for number, line in enumerate(lines, 1):
        await call.progress(number, len(lines))
        if word.lower() in line.lower():
            found.append(Note(number, line))
    return found


def _lines() -> list[str]:
    return FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
