"""Tables: whole in a pipe, fitted to a terminal."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from pactgate.cli import table
from pactgate.cli.table import Column, Styled, show_table

COLUMNS = (
    Column("NAME"),
    Column("COUNT", is_number=True),
    Column("WIDE ONLY", from_width=100),
    Column("NOTE", is_long=True, wraps=True),
)
ROWS = [["one", 1, "x", "a note of several words"], ["日本語", 20, None, Styled("short", "red")]]


def test_a_pipe_gets_every_column_whole_and_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(COLUMNS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "NAME    COUNT  WIDE ONLY  NOTE",
        "one         1  x          a note of several words",
        "日本語     20  -          short",
    ]


def test_a_terminal_gets_what_fits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "is_terminal", lambda stream: stream is sys.stdout)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((30, 24)))
    show_table(COLUMNS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "NAME    COUNT  NOTE",
        "one         1  a note of",
        "               several words",
        "日本語     20  short",
    ]


@pytest.mark.parametrize("width", [1, 5, 9, 30])
def test_a_long_word_is_cut_or_wrapped_to_the_width(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "is_terminal", lambda stream: True)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((width, 24)))
    show_table((Column("A"), Column("B", is_long=True)), [["x" * 50, "y" * 50]])
    room = max(width, 2 * 4 + 2)  # a column never shrinks below its floor
    assert max(map(len, capsys.readouterr().out.splitlines())) <= room
