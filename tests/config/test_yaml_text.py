"""YAML makes values and nothing else, with the words of YAML 1.2, within bounds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.problems import ConfigFindings, ConfigProblem, FilePosition
from pactgate.config.reader import Format, read


def value_of(text: str) -> Any:
    found = ConfigFindings("")
    value = read(text, Format.YAML, found)
    assert found.problems == []
    return value


def problem_of(text: str) -> ConfigProblem:
    found = ConfigFindings("")
    read(text, Format.YAML, found)
    (problem,) = found.problems
    return problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("7411", 7411),
        ("-3", -3),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9" * 301, "9" * 301),
        ("'7411'", "7411"),
        ('"true"', "true"),
        ("${VAR}", "${VAR}"),
        ("=", "="),
        ("!!str 5", "5"),
        ("!!int 5", 5),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(text: str, value: Any) -> None:
    assert value_of(f"a: {text}") == {"a": value}


def test_a_key_without_a_value_has_none() -> None:
    assert value_of("a:\nb: 1") == {"a": None, "b": 1}


def test_every_value_knows_its_line_and_column_and_those_of_its_key() -> None:
    found = ConfigFindings("")
    read("# top\na:\n  - 1\n  - b: x\n", Format.YAML, found)
    assert found.place_of(("a",)) == FilePosition(2, 1)
    assert found.place_of(("a",), at_value=True) == FilePosition(3, 3)
    assert found.place_of(("a", 1, "b")) == FilePosition(4, 5)
    assert found.place_of(("a", 1, "b"), at_value=True) == FilePosition(4, 8)


def test_aliases_are_followed() -> None:
    assert value_of("a: &env {X: y}\nb: *env") == {"a": {"X": "y"}, "b": {"X": "y"}}


def test_an_alias_has_its_own_place_and_aliases_count_as_levels() -> None:
    found = ConfigFindings("")
    read("a: &x [1]\nb: *x\n", Format.YAML, found)
    assert found.place_of(("b", 0), at_value=True) == FilePosition(2, 4)
    deep = "a: &a " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 11 + "*a" + "]" * 11
    assert "nested more than 40" in problem_of(deep).message


def test_it_reads_the_same_without_the_parser_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x [1, {b: c}]\nd: *x\ne: |\n  f\n\ng:\n"
    fast, slow = ConfigFindings(""), ConfigFindings("")
    value = read(text, Format.YAML, fast)
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert read(text, Format.YAML, slow) == value
    assert slow.positions == fast.positions
    assert problem_of('a: "\\UFFFFFFFF"').line is None


def test_a_key_given_twice_is_a_problem_and_reading_goes_on() -> None:
    found = ConfigFindings("")
    assert read("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n", Format.YAML, found) is not None
    assert [(problem.path, problem.line, problem.column) for problem in found.problems] == [("b.c", 4, 3), ("a", 5, 1)]


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefghij", "bcdefghijk", strict=True)
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", None),
        ("# nothing\n", None),
        ("a: [1", (2, 1)),
        ("a: b: c", (1, 5)),
        ("a:\n\t- b", (2, 1)),
        ("a: *nobody", (1, 4)),
        ("a: 1\n---\nb: 2\n", (2, 1)),
        ("a: !!python/object/apply:os.system ['true']", (1, 4)),
        ("a: !!python/name:os.system", (1, 4)),
        ("a: !own 5", (1, 4)),
        ("a: !!binary aGk=", (1, 4)),
        ("a: !!set {x: null}", (1, 4)),
        ("a: !!int five", (1, 4)),
        ("5: x", (1, 1)),
        ("true: x", (1, 1)),
        ("? [a, b]\n: x", (1, 3)),
        ('a: "\\ud800"', (1, 7)),
        ('"\\udfff": a', (1, 4)),
        ("a: 1\nb: \x00", (2, 4)),
        ("a: 1\nb: \x1b", (2, 4)),
        ('a: "\\UFFFFFFFF"', (1, 7)),
        ("%YAML 1." + "9" * 5000 + "\n---\na: 1", (1, 18)),
        ("a: &a [*a]", (1, 8)),
        ("&a {b: *a}", (1, 8)),
        (LAUGHS, (5, 23)),
        ("[" * 100_000, (1, 41)),
        ("- " * 100_000, (1, 81)),
        ("".join(f"k{number}: 1\n" for number in range(30_000)), (25_000, 9)),
    ],
)
def test_what_is_not_plain_yaml_is_one_problem(text: str, place: tuple[int, int] | None) -> None:
    problem = problem_of(text)
    assert (problem.line, problem.column) == (place or (None, None))


NAMES = st.text(alphabet="abcXYZ_-", min_size=1, max_size=8).filter(lambda name: name.strip("-") != "")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_what_a_yaml_writer_writes_is_read_back(value: Any) -> None:
    assert value_of(yaml.safe_dump({"top": value})) == {"top": value}


@given(st.text(alphabet="ab:-? []{}&*!|>'\"%#\n\\uUx0189\t~,@`") | st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    found = ConfigFindings("")
    read(text, Format.YAML, found)
    assert () in found.positions or found.problems
