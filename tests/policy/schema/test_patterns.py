"""What patterns may cost, read from their texts."""

from __future__ import annotations

import random
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.policy.schema.patterns import BYTES, ENGINE, MAX_CHARS, MAX_PLACES, Unusable, read_pattern

CHEAP = 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "^(a+)+$",
        r"^\d{4}-\d{2}-\d{2}$",
        r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        r"^[\w.-]{1,255}$",
        r"^[^\[\]]+$",
        r"^\p{L}+\u{1F600}?$",
        "^/?[a-z]+(/[a-z]+)*$",
        r"\S+@\S+",
        "(?<name>x)|(?:y)",
    ],
)
def test_ordinary_patterns_are_cheap(text: str) -> None:
    pattern = read_pattern(text)
    assert (pattern.cost, pattern.max_chars) == (CHEAP, None)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("[01]*1[01]{1000}x", 1003),
        ("[01]*1[01]{0,1000}x", 1003),
        ("[01]*1[01]{1000,}x", 1003),
        ("([01]*1[01]{20}){5}x", 111),
        ("a{50}{50}", 2500),
        ("^" + "[01]?" * 50 + "1[01]{50}$", 101),
        ("^(?:[01]{20}|[01]{21})*$", 41),
        ("^([01]{20})*x", 21),
        ("^x|[01]{50}", 51),
    ],
)
def test_many_places_behind_something_of_variable_length_are_costly(text: str, places: int) -> None:
    pattern = read_pattern(text)
    assert (pattern.places, pattern.cost) == (places, 10 * places)


@pytest.mark.parametrize("text", ["[]a{9000}]", "[[:alpha:]]", "(?i)x", "(((", ")(", "[a&&[b]]"])
def test_what_can_not_be_read_with_certainty_is_taken_to_be_costly(text: str) -> None:
    assert read_pattern(text).cost >= 10_000


@pytest.mark.parametrize(
    ("text", "max_chars"),
    [
        ("^(?!x)y", 1024),
        ("(?=.*[A-Z])(?=.*[0-9]).{8,}", 1024),
        ("(?<=a)b", 1024),
        ("(?<!a)b", 1024),
        ("(?:(?!--)[a-z])?", 1024),
        ("(?:(?!--)[a-z])+", 256),
        ("((?!--)[a-z]){2,5}", 256),
        (r"(a+)\1", 256),
        (r"(?<n>a+)\k<n>", 256),
    ],
)
def test_look_around_and_back_references_are_for_short_texts(text: str, max_chars: int) -> None:
    assert read_pattern(text).max_chars == max_chars


@pytest.mark.parametrize("text", ["(?=a(?!b))", "(?!(x(?<=y)))", "a" * (MAX_CHARS + 1)])
def test_what_can_not_be_bounded_is_refused(text: str) -> None:
    with pytest.raises(Unusable):
        read_pattern(text)


def test_places_never_overflow() -> None:
    assert read_pattern("(" * 9 + "a" + "{999999})" * 9).places == MAX_PLACES + 1


def validator(text: str) -> Any:
    return jsonschema_rs.Draft202012Validator({"pattern": text}, pattern_options=ENGINE, offline=True)


@pytest.mark.parametrize(
    ("text", "alphabet"),
    [
        ("[01]*1[01]{15}x", "01"),
        ("[01]*1[01]{200}x", "01"),
        (".*é.{200}x", "éa"),
        ("([01]*1[01]{20}){5}x", "01"),
        ("^(?:[01]{20}|[01]{21})*$", "01"),
        (r"\S*1\S{30}x", "01"),
    ],
)
def test_no_text_costs_more_than_was_read(text: str, alphabet: str) -> None:
    """With room for a machine three times slower than the one that was measured; the best of several, as others may be at work."""
    value = "".join(random.Random(3).choices(alphabet, k=30_000))
    judge = validator(text)
    judge.is_valid(value)
    expected_s = len(value.encode()) / BYTES * read_pattern(text).cost * 10e-9
    assert min(thread_time_of(judge, value) for _ in range(7)) < 3 * expected_s + 0.002


def thread_time_of(judge: Any, value: str) -> float:
    began = time.thread_time()
    judge.is_valid(value)
    return time.thread_time() - began


@given(st.text("ab01()[]{}*+?|^$\\.,=!<>:-PkduQ", max_size=40))
def test_every_text_can_be_read_as_a_pattern(text: str) -> None:
    try:
        pattern = read_pattern(text)
    except Unusable:
        return
    assert 0 <= pattern.places <= MAX_PLACES + 1
    assert pattern.cost >= CHEAP
    try:
        judge = validator(text)
    except jsonschema_rs.ValidationError:
        return
    for value in ("", "ab01", "aaaa" * 60, "0101" * 60):
        judge.is_valid(value)
