"""Each value is written for its place: every style of OpenAPI, and nothing that could leave its place."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pactgate.upstreams.rest.parameter_styles import UnwritableError, header_value, path_value, query_pairs
from tests.support.each import each

COLORS = ["blue", "black"]
RGB = {"R": 100, "G": 200}


def written(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, COLORS, "blue,black"),
        ("simple", True, COLORS, "blue,black"),
        ("simple", False, RGB, "R,100,G,200"),
        ("simple", True, RGB, "R=100,G=200"),
        ("label", False, "blue", ".blue"),
        ("label", False, COLORS, ".blue,black"),
        ("label", True, COLORS, ".blue.black"),
        ("label", False, RGB, ".R,100,G,200"),
        ("label", True, RGB, ".R=100.G=200"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, COLORS, ";color=blue,black"),
        ("matrix", True, COLORS, ";color=blue;color=black"),
        ("matrix", False, RGB, ";color=R,100,G,200"),
        ("matrix", True, RGB, ";R=100;G=200"),
    ],
)
def test_a_path_knows_three_styles(style: str, explode: bool, value: Any, expected: str) -> None:
    assert path_value(written(value), "color", style, explode) == expected


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("form", True, "blue", "color=blue"),
        ("form", True, "", "color="),
        ("form", True, COLORS, "color=blue&color=black"),
        ("form", False, COLORS, "color=blue,black"),
        ("form", True, RGB, "R=100&G=200"),
        ("form", False, RGB, "color=R,100,G,200"),
        ("spaceDelimited", False, COLORS, "color=blue%20black"),
        ("spaceDelimited", True, COLORS, "color=blue&color=black"),
        ("pipeDelimited", False, COLORS, "color=blue%7Cblack"),
        ("pipeDelimited", False, RGB, "color=R%7C100%7CG%7C200"),
        ("deepObject", True, RGB, "color%5BR%5D=100&color%5BG%5D=200"),
        ("form", True, True, "color=true"),
        ("form", True, 1.5, "color=1.5"),
        ("form", True, None, ""),
        ("form", True, [], ""),
        ("form", False, [], ""),
        ("form", True, {}, ""),
        ("form", False, {}, ""),
        ("form", True, "a&b=c#d e/é", "color=a%26b%3Dc%23d%20e%2F%C3%A9"),
    ],
)
def test_a_query_knows_four_styles(style: str, explode: bool, value: Any, expected: str) -> None:
    assert "&".join(query_pairs(written(value), "color", style, explode)) == expected


def test_numbers_are_written_as_the_caller_wrote_them() -> None:
    text = b"123456789012345678901234567890.10"
    assert path_value(Raw(text), "n", "simple", False) == text.decode()
    assert list(query_pairs(Raw(b"[1e400]"), "n", "form", True)) == ["n=1e400"]


TRAVERSALS = [
    *(
        "../x",
        "..",
        ".",
        "..%2fx",
        "..%2Fx",
        "%2e%2e",
        "%2e%2e/x",
        "a/b",
        "/etc/passwd",
        "//host",
        "//host/x",
        ";x",
        "a;b=c",
    ),
    *("a%3bb", "%00", "\x00", "a\r\nX: 1", "a\nb", "\\", "..\\x", "%5c..", "%252e%252e%252f", "", "\x7f"),
]
"""The values of the traversal table that have no safe spelling in a path. `?q` and `#f` have one, and are encoded."""


@each("value", TRAVERSALS)
@each("style", ["simple", "label", "matrix"])
@each("wrapped", [lambda value: value, lambda value: [value], lambda value: {"k": value}])
def test_a_value_that_could_move_about_in_a_path_is_refused(value: str, style: str, wrapped: Any) -> None:
    with pytest.raises(UnwritableError):
        path_value(written(wrapped(value)), "id", style, True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("?q", "%3Fq"), ("#f", "%23f"), ("a b", "a%20b"), ("100%", "100%25"), ("ü@:", "%C3%BC%40%3A")],
)
def test_what_a_path_can_carry_is_encoded(value: str, expected: str) -> None:
    assert path_value(written(value), "id", "simple", False) == expected


@pytest.mark.parametrize("value", [None, [], {}, [[1]], {"a": {"b": 1}}, [None]])
def test_what_has_no_spelling_in_a_path_is_refused(value: Any) -> None:
    with pytest.raises(UnwritableError):
        path_value(written(value), "id", "simple", False)


@pytest.mark.parametrize("value", [[[1]], {"a": {"b": 1}}, [{}], [None]])
def test_nested_values_do_not_go_into_a_query(value: Any) -> None:
    with pytest.raises(UnwritableError):
        list(query_pairs(written(value), "q", "form", True))


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(UnwritableError):
        list(query_pairs(Raw(b'"\\ud800"'), "q", "form", True))


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "\x00", "é", " a", "a ", "\t", "a\x7f"])
def test_a_header_can_not_be_broken_out_of(value: str) -> None:
    with pytest.raises(UnwritableError):
        header_value(written(value), False)


@pytest.mark.parametrize(
    ("value", "expected"), [("a b", "a b"), (3, "3"), ([1, 2], "1,2"), (RGB, "R,100,G,200"), (None, None), ("", "")]
)
def test_a_header_is_written_plainly(value: Any, expected: str | None) -> None:
    assert header_value(written(value), False) == expected


@pytest.mark.parametrize("value", [["a,b"], {"k": "a=b"}, [""]])
def test_a_list_in_a_header_that_could_be_read_in_two_ways_is_refused(value: Any) -> None:
    with pytest.raises(UnwritableError):
        header_value(written(value), True)


@given(st.text(max_size=60))
def test_a_query_value_comes_back_as_it_was(text: str) -> None:
    (pair,) = query_pairs(Raw(json.dumps(text).encode()), "key&=", "form", True)
    assert parse_qsl(pair, keep_blank_values=True, separator="&") == [("key&=", text)]


@given(st.text(min_size=1, max_size=60))
def test_a_path_value_comes_back_as_it_was_or_is_refused(text: str) -> None:
    try:
        segment = path_value(Raw(json.dumps(text).encode()), "id", "simple", False)
    except UnwritableError:
        return
    assert "/" not in segment
    assert segment not in (".", "..")
    assert unquote(segment) == text
