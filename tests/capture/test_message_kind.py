"""What a recorder must know of a message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.capture.message_kind import batch_items, classify


def seen(text: bytes) -> tuple[Any, ...] | None:
    found = classify(text, None)
    return (
        None
        if found is None
        else (found.keys, found.request_keys, found.method, found.is_response, found.expects_response)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"id":1,"method":"a"}', ((1,), (1,), "a", False, True)),
        (b'{"method":"a"}', ((None,), (), "a", False, False)),
        (b'{"id":"x","result":{}}', (("x",), (), "", True, False)),
        (b'{"id":null,"error":{}}', ((None,), (), "", True, False)),
        (b'{"id":" ","method":"a"}', ((None,), (), "a", False, True)),
        (b'{"id":1.5,"method":"a"}', ((None,), (), "a", False, True)),
        (b'{"id":true,"method":"a"}', ((None,), (), "a", False, True)),
        (b'{"id":1,"method":5}', ((1,), (1,), "", False, True)),
        (b"{}", ((None,), (), "", True, False)),
        (b' [{"id":1,"method":"a"},{"method":"b"}]', ((1, None), (1,), "a", False, True)),
        (b'[{"id":1,"result":{}},{"id":2,"result":{}}]', ((1, 2), (), "", True, False)),
        ('{"id":1,"result":"ü"}'.encode(), ((1,), (), "", True, False)),
    ],
)
def test_what_a_message_is(text: bytes, expected: tuple[Any, ...]) -> None:
    assert seen(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"3",
        b"[]",
        b"[1]",
        b"hello",
        b'{"a":',
        b'{"a":1}{"b":2}',
        b'{"a":"\xff"}',
        b'{"a":' + b"[" * 200 + b"]" * 200 + b"}",
    ],
)
def test_what_is_no_message_or_too_deep_is_none(text: bytes) -> None:
    assert classify(text, None) is None


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            "method": st.text(),
            "x": st.lists(st.integers()),
        },
    )
)
def test_the_quick_way_and_the_careful_one_agree(message: dict[str, Any]) -> None:
    text = json.dumps(message).encode()
    assert seen(text) == seen(b" " + text)  # a blank in front is read with care


def test_secrets_are_taken_out_of_the_text_and_nothing_else_changes() -> None:
    for text in (b'{"id":1,"method":"abc"}', b'{"method":"abc"}', b'[{"id":1,"method":"abc"}]'):
        plain, masked = classify(text, None), classify(text, lambda given: given.replace(b"abc", b"***"))
        assert plain is not None
        assert masked is not None
        assert (plain.data, b"abc" in masked.data) == (text, False)
        assert (masked.keys, masked.method) == (plain.keys, "abc")


def test_a_batch_has_elements_and_a_message_is_its_own() -> None:
    assert batch_items(b' [{"a":1} , {"b":2}]') == [b'{"a":1}', b'{"b":2}']
    assert batch_items(b'{"a":1}') == [b'{"a":1}']
