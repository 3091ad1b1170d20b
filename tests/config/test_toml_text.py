"""TOML is read by the standard library; the places of its keys are found in its lines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.problems import ConfigFindings, ConfigProblem, FilePosition
from pactgate.config.reader import Format, read

TEXT = """\
# settings
[listen]
port = 7411
  host   =  "::1"

[mcpServers.files]
command = "serve"
env = { A = "1", B = "2" }
args = [
  "x",
  "y",
]

[mcpServers."crm"]
url = 'https://crm.example'
headers.X-Key = "k"

[[list.of]]
tables = 1
[[list.of]]
tables = 2
"""


def read_of(text: str) -> tuple[Any, ConfigFindings]:
    found = ConfigFindings("")
    value = read(text, Format.TOML, found)
    assert found.problems == []
    return value, found


def problem_of(text: str) -> ConfigProblem:
    found = ConfigFindings("")
    read(text, Format.TOML, found)
    (problem,) = found.problems
    return problem


def test_values_are_those_of_the_file() -> None:
    assert read_of(TEXT)[0]["mcpServers"] == {
        "files": {"command": "serve", "env": {"A": "1", "B": "2"}, "args": ["x", "y"]},
        "crm": {"url": "https://crm.example", "headers": {"X-Key": "k"}},
    }
    assert read_of("")[0] == {}


@pytest.mark.parametrize(
    ("path", "key_place", "place"),
    [
        (("listen",), (2, 2), (2, 2)),
        (("listen", "port"), (3, 1), (3, 8)),
        (("listen", "host"), (4, 3), (4, 13)),
        (("mcpServers",), (6, 2), (6, 2)),
        (("mcpServers", "files"), (6, 2), (6, 2)),
        (("mcpServers", "files", "env"), (8, 1), (8, 7)),
        (("mcpServers", "crm", "headers", "X-Key"), (16, 1), (16, 17)),
    ],
)
def test_a_key_that_begins_a_line_has_its_place(
    path: tuple[str, ...], key_place: FilePosition, place: FilePosition
) -> None:
    _, found = read_of(TEXT)
    assert (found.place_of(path), found.place_of(path, at_value=True)) == (key_place, place)


def test_what_is_inside_a_line_or_list_has_the_place_of_its_key() -> None:
    _, found = read_of(TEXT)
    assert found.place_of(("mcpServers", "files", "env", "B")) == FilePosition(8, 1)
    assert found.place_of(("mcpServers", "files", "args", 1)) == FilePosition(9, 1)


def test_tables_in_a_list_are_told_apart() -> None:
    _, found = read_of(TEXT)
    places = [found.place_of(("list", "of", number, "tables")) for number in range(2)]
    assert places == [FilePosition(19, 1), FilePosition(21, 1)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = ", (1, 5)),
        ("a = 1\nb = \n", (2, 5)),
        ("a = 1\na = 2", (2, 6)),
        ("[a]\n[a]", (2, 3)),
        ("a = yes", (1, 5)),
        ('a = "b', (1, 7)),
        ("a = \x1b", (1, 5)),
        ("x = 1\na = 2024-01-01", (2, 5)),
        ("a = 12:30:00", (1, 5)),
        ("a = " + "9" * 5000, None),
        ("a = " + "[" * 100_000, None),
        ("a = " + "[" * 60 + "]" * 60, (1, 5)),
        ("a." * 200_000 + "a = 1", None),
        ('x = {"a"  .' + ' "a".' * 100_000 + "a = 1}", None),
        ("a = [" + "1," * 60_000 + "]", None),
    ],
)
def test_what_is_not_toml_is_one_problem(text: str, place: tuple[int, int] | None) -> None:
    problem = problem_of(text)
    assert (problem.line, problem.column) == (place or (None, None))


@given(st.text(alphabet="ab.=[]{}\"'#\n\\u0189:-T, ") | st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    found = ConfigFindings("")
    assert read(text, Format.TOML, found) is not None or found.problems
