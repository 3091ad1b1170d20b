"""JSON taken apart piece by piece: the same values however the text is cut, exact numbers, and an end to everything."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.capture import json_stream
from pactgate.capture.json_stream import JsonStream, NotJsonError

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


def pieces(text: bytes, size: int) -> list[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@given(values, st.integers(1, 9), st.booleans())
def test_a_value_is_the_same_however_its_text_is_cut(value: Any, size: int, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    stream = JsonStream(pieces(text, size))
    assert stream.value() == value
    stream.require_end()


@given(st.dictionaries(st.text(), values, max_size=4), st.integers(1, 9))
def test_members_can_be_taken_one_by_one(value: dict[str, Any], size: int) -> None:
    stream = JsonStream(pieces(json.dumps(value, indent=1).encode(), size))
    assert {name: stream.value() for name in stream.members()} == value
    stream.require_end()


@given(st.lists(values, max_size=4), st.integers(1, 9))
def test_items_can_be_taken_one_by_one(value: list[Any], size: int) -> None:
    stream = JsonStream(pieces(json.dumps(value).encode(), size))
    assert [stream.value() for _ in stream.items()] == value


@given(st.binary(max_size=40), st.integers(1, 5))
def test_bytes_that_are_not_json_are_refused_and_nothing_else_happens(text: bytes, size: int) -> None:
    stream = JsonStream(pieces(text, size))
    try:
        stream.value()
        stream.require_end()
    except NotJsonError:
        with pytest.raises((ValueError, RecursionError)):
            json.loads(text, parse_constant=lambda name: [][0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_other_encodings_and_byte_order_marks_are_read(encoding: str, size: int) -> None:
    stream = JsonStream(pieces('{"a": "\u00e9\U0001f600"}'.encode(encoding), size))
    assert stream.value() == {"a": "\u00e9\U0001f600"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18446744073709551616", 2**64),
        ("0.30000000000000004", 0.30000000000000004),
        ("1.50", 1.5),
        ("1E2", 100.0),
        ("0.1000000000000000055511151231257827", Decimal("0.1000000000000000055511151231257827")),
        ("1e400", Decimal("1e400")),
        ("9" * 5000, Decimal("9" * 5000)),
    ],
)
def test_numbers_keep_their_value(text: str, value: Any) -> None:
    read = JsonStream([f"[{text}]".encode()]).value()[0]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a"',
        b"[1,]",
        b"nul",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b'"\n"',
        b'"\xff"',
        b"\xff\xfe{",
        b"{'a':1}",
        b"1" * 3 + b"x",
    ],
)
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(NotJsonError):
        _whole(JsonStream(pieces(text, 2)))


def _whole(stream: JsonStream) -> None:
    stream.value()
    stream.require_end()


def test_a_mistake_is_found_where_it_is_and_not_at_the_end_of_a_large_text() -> None:
    def text() -> Any:
        yield b'[{"a": 1} {"b": 2}' + b" " * 100
        raise AssertionError("the rest was read")

    with pytest.raises(NotJsonError, match="character 10"):
        JsonStream(text()).value()


@pytest.mark.parametrize("depth", [300, 100_000])
def test_endless_nesting_ends(depth: int) -> None:
    with pytest.raises(NotJsonError, match="nested"):
        JsonStream([b"[" * depth + b"]" * depth]).value()


def test_one_value_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_VALUE_CHARS", 1000)
    with pytest.raises(NotJsonError, match="longer than 1000"):
        JsonStream(pieces(b'"' + b"x" * 10_000 + b'"', 100)).value()


def test_the_brackets_of_one_value_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_BIG_CHARS", 1000)
    monkeypatch.setattr(json_stream, "_MAX_BRACKETS", 1000)
    with pytest.raises(NotJsonError, match="brackets"):
        JsonStream(pieces(b"[" + b"[]," * 10_000, 100)).value()


def test_what_was_taken_is_forgotten() -> None:
    stream = JsonStream(pieces(b"[" + b'"xxxxxxxxxx",' * 1000 + b"1]", 64))
    for _ in stream.items():
        stream.value()
        assert len(stream._text) < 200
