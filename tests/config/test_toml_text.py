"""TOML is read by the standard library; the places of its keys are found in its lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.problems import ConfigFindings, ConfigProblem, FilePosition
from pactgate.config.reader import Format, read
from pactgate.config.tree import ConfigNode
from tests.config.writing import plain

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


def tree_of(text: str) -> ConfigNode:
    found = ConfigFindings("")
    node = read(text, Format.TOML, found)
    assert node is not None
    assert found.problems == []
    return node


def problem_of(text: str) -> ConfigProblem:
    found = ConfigFindings("")
    read(text, Format.TOML, found)
    (problem,) = found.problems
    return problem


def test_values_are_those_of_the_file() -> None:
    assert plain(tree_of(TEXT))["mcpServers"] == {
        "files": {"command": "serve", "env": {"A": "1", "B": "2"}, "args": ["x", "y"]},
        "crm": {"url": "https://crm.example", "headers": {"X-Key": "k"}},
    }
    assert plain(tree_of("")) == {}


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
    node = tree_of(TEXT)
    for key in path:
        node = node.value[key]
    assert (node.key_place, node.place) == (key_place, place)


def test_what_is_inside_a_line_or_list_has_the_place_of_its_key() -> None:
    files = tree_of(TEXT).value["mcpServers"].value["files"]
    assert files.value["env"].value["B"].anchor == FilePosition(8, 1)
    assert files.value["args"].value[1].anchor == FilePosition(9, 1)


def test_tables_in_a_list_are_told_apart() -> None:
    first, second = tree_of(TEXT).value["list"].value["of"].value
    assert (first.value["tables"].key_place, second.value["tables"].key_place) == (
        FilePosition(19, 1),
        FilePosition(21, 1),
    )


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
