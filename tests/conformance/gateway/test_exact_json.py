"""Values are compared as they were written."""

from __future__ import annotations

import pytest

from pactgate.conformance.gateway.exact_json import MISSING, at, differences, parse


def differ(one: str, other: str, *, as_written: bool = False) -> list[tuple[str, str]]:
    return list(differences(parse(one), parse(other), as_written=as_written))


@pytest.mark.parametrize("text", ["1e400", "9007199254740993", "1e-400"])
def test_a_number_is_equal_to_itself_however_large(text: str) -> None:
    assert differ(text, text, as_written=True) == []


def test_a_number_that_a_double_would_round_is_another_number() -> None:
    assert differ("9007199254740993", "9007199254740992") == [("", "9007199254740993 arrived as 9007199254740992")]


def test_notation_and_order_count_only_as_written() -> None:
    assert differ('{"b":1.0,"a":1}', '{"a":1e0,"b":1}') == []
    places = [place for place, _ in differ('{"b":1.0,"a":1}', '{"a":1,"b":1}', as_written=True)]
    assert places == ["", "/b"]


def test_a_number_is_no_text_and_null_is_not_nothing() -> None:
    assert differ('{"a":1}', '{"a":"1"}')
    assert differ('{"a":null}', "{}") == [("/a", "null was lost")]
    assert differ("{}", '{"a":null}') == [("/a", "null was added")]


def test_a_pointer_finds_a_value_or_nothing() -> None:
    value = parse('{"a/b":[{"~":true}]}')
    assert at(value, "/a~1b/0/~0") is True
    assert at(value, "/a~1b/1") is MISSING
