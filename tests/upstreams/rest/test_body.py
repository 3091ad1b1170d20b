"""Bodies: JSON from the caller's own bytes, forms, texts, bytes; what was left out is not sent."""

from __future__ import annotations

import email
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pactgate.upstreams.rest.body import FORM, MULTIPART, from_members, from_whole
from pactgate.upstreams.rest.parameter_styles import UnwritableError
from tests.support.rest_api import raw


def test_json_is_made_of_the_bytes_the_caller_wrote() -> None:
    body = from_members("application/json", {"n": Raw(b"12345678901234567890.10"), "none": Raw(b"null")})
    assert body.data == b'{"n":12345678901234567890.10,"none":null}'
    assert from_whole("application/vnd.api+json", {}, Raw(b"[1.10]")).data == b"[1.10]"


def test_a_form_has_lists_item_by_item_and_tables_as_json() -> None:
    body = from_members(FORM, raw({"a": "x y&z", "b": [1, 2], "c": {"d": 1}, "e": None, "f": True}))
    assert parse_qsl(body.data.decode()) == [("a", "x y&z"), ("b", "1"), ("b", "2"), ("c", '{"d": 1}'), ("f", "true")]
    assert from_whole(FORM, {}, Raw(b'{"a":1}')).data == b"a=1"


@given(st.dictionaries(st.text(min_size=1, max_size=10), st.text(max_size=30), min_size=1, max_size=5))
def test_a_form_is_read_back_as_it_was(fields: dict[str, str]) -> None:
    body = from_members(FORM, raw(fields))
    assert parse_qsl(body.data.decode(), keep_blank_values=True) == list(fields.items())


def parts_of(content_type: str, data: bytes) -> list[Message]:
    whole = email.message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + data)
    assert not whole.defects
    parts = whole.get_payload()
    assert isinstance(parts, list)
    return [part for part in parts if isinstance(part, Message)]


@given(
    st.dictionaries(
        st.from_regex(r"\A[a-z ]{1,9}\Z"), st.text(alphabet='ab-\r\n"é:', max_size=40), min_size=1, max_size=4
    )
)
def test_a_multipart_form_can_not_be_broken_out_of(fields: dict[str, str]) -> None:
    body = from_members(MULTIPART, raw(fields))
    parts = parts_of(body.content_type, body.data)
    assert [part.get_param("name", header="content-disposition") for part in parts] == list(fields)


def test_a_multipart_form_names_the_type_of_a_table() -> None:
    body = from_members(MULTIPART, raw({"a": {"b": 1}, "c": "x"}))
    table, text = parts_of(body.content_type, body.data)
    assert table.get_content_type() == "application/json"
    assert text.get_payload() == "x"


@pytest.mark.parametrize("name", ['a"', "a\r\nX: 1", "\x00"])
def test_a_name_that_could_break_out_of_a_multipart_form_is_refused(name: str) -> None:
    with pytest.raises(UnwritableError):
        from_members(MULTIPART, raw({name: "x"}))


@pytest.mark.parametrize(
    ("content_type", "schema", "value", "expected"),
    [
        ("text/plain", {}, "héllo", "héllo".encode()),
        ("text/csv", {}, 3, b"3"),
        ("application/octet-stream", {"format": "binary"}, "AAEC", b"\x00\x01\x02"),
        ("image/png", {"contentEncoding": "base64"}, "AAEC", b"\x00\x01\x02"),
    ],
)
def test_other_bodies_are_one_argument(content_type: str, schema: Any, value: Any, expected: bytes) -> None:
    body = from_whole(content_type, schema, raw({"x": value})["x"])
    assert (body.content_type, body.data) == (content_type, expected)


@pytest.mark.parametrize(
    ("content_type", "schema", "value"),
    [
        ("text/plain", {}, {"a": 1}),
        ("image/png", {"format": "byte"}, "not base64!"),
        (FORM, {}, [1]),
        (MULTIPART, {}, "x"),
    ],
)
def test_what_can_not_be_such_a_body_is_refused(content_type: str, schema: Any, value: Any) -> None:
    with pytest.raises(UnwritableError):
        from_whole(content_type, schema, raw({"x": value})["x"])
