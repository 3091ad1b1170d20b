"""JSON and JSONC are read strictly, and every value knows where it stands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.problems import ConfigFindings, ConfigProblem, FilePosition
from pactgate.config.reader import Format, read


def value_of(text: str) -> Any:
    found = ConfigFindings("")
    value = read(text, Format.JSON, found)
    assert found.problems == []
    return value


def problem_of(text: str) -> ConfigProblem:
    found = ConfigFindings("")
    read(text, Format.JSON, found)
    (problem,) = found.problems
    return problem


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES, st.sampled_from([None, 2]))
def test_what_json_writes_is_read_as_json_reads_it(value: Any, indent: int | None) -> None:
    assert value_of(json.dumps(value, indent=indent)) == value


def test_comments_and_trailing_commas_are_fine() -> None:
    text = """// first
    { /* of
         several lines */ "a": [1, 2,], // "b": 3
      "url": "https://x.example/*not a comment*/", }
    /**/ """
    assert value_of(text) == {"a": [1, 2], "url": "https://x.example/*not a comment*/"}


def test_every_value_knows_its_line_and_column_and_those_of_its_key() -> None:
    found = ConfigFindings("")
    read('{\n  "a": [\n    1, "ü", {"b": null}]}', Format.JSON, found)
    assert found.place_of(("a",)) == FilePosition(2, 3)
    assert found.place_of(("a",), at_value=True) == FilePosition(2, 8)
    items = [found.place_of(("a", number)) for number in range(3)]
    assert items == [FilePosition(3, 5), FilePosition(3, 8), FilePosition(3, 13)]
    assert found.place_of(("a", 2, "b")) == FilePosition(3, 14)


def test_a_key_given_twice_is_a_problem_and_reading_goes_on() -> None:
    found = ConfigFindings("")
    node = read('{"a": 1,\n "a": 2, "b": {"c": 1, "c": 2}}', Format.JSON, found)
    assert node is not None
    assert [(problem.path, problem.line, problem.column) for problem in found.problems] == [("a", 2, 2), ("b.c", 2, 24)]
    assert "line 1" in found.problems[0].message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", None),
        (" // nothing\n", None),
        ("{", (1, 2)),
        ('{"a"', (1, 5)),
        ('{"a" 1}', (1, 6)),
        ('{"a": }', (1, 7)),
        ('{"a": 1 "b": 2}', (1, 9)),
        ('{"a": 1}\n}', (2, 1)),
        ("{,}", (1, 2)),
        ("[1,,2]", (1, 4)),
        ("{a: 1}", (1, 2)),
        ("{'a': 1}", (1, 2)),
        ('{"a": yes}', (1, 7)),
        ('{"a": NaN}', (1, 7)),
        ('{"a": -Infinity}', (1, 7)),
        ('{"a": 01}', (1, 7)),
        ('{"a": 1.}', (1, 7)),
        ('{"a": .5}', (1, 7)),
        ('{"a": +5}', (1, 7)),
        ('{"a": 1e}', (1, 7)),
        ('{"a": ٣}', (1, 7)),
        ('{"a": ' + "9" * 5000 + "}", (1, 7)),
        ('{"a": "b', (1, 9)),
        ('{"a": "b\nc"}', (1, 9)),
        ('{"a": "\x1b"}', (1, 8)),
        ('{"a": "C:\\data"}', (1, 10)),
        ('{"a": "\\u12"}', (1, 8)),
        ('{"a": "\\ud800"}', (1, 7)),
        ('{"\\udfff": 1}', (1, 2)),
        ("{} /* open", (1, 4)),
        ("/* open", (1, 1)),
        ("{]", (1, 2)),
        ("[}", (1, 2)),
        ("[" * 100_000, (1, 42)),
        ('{"a":' * 100_000, (1, 206)),
        ("[" + "1," * 60_000 + "]", (1, 100_000)),
        ("\x00", (1, 1)),
    ],
)
def test_what_is_not_json_is_one_problem_at_its_place(text: str, place: tuple[int, int] | None) -> None:
    problem = problem_of(text)
    assert (problem.line, problem.column) == (place or (None, None))


def test_a_pair_of_escaped_surrogates_is_one_character() -> None:
    assert value_of('"\\ud83d\\ude00"') == "😀"


@given(st.text(alphabet='{}[]",:/*\\ \n0123456789.eE+-truefalsnu\x00ü'))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = ConfigFindings("")
    read(text, Format.JSON, found)
    assert () in found.positions or found.problems


@given(st.text(alphabet='{}[]",: \n0123456789.eE+-truefalsn'))
def test_what_the_standard_reader_refuses_is_refused_but_for_commas(text: str) -> None:
    found = ConfigFindings("")
    value = read(text, Format.JSON, found)
    try:
        expected = json.loads(text)
    except ValueError:
        assert found.problems or "," in text
    else:
        assert found.problems or value == expected
