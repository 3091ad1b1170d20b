from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.inbound.batch import MAX_ELEMENTS, BatchAnswers, is_batch, join, needs_answer, read_batch
from pactgate.protocol import messages
from pactgate.protocol.messages import Notification, Rejection, Request, Response


def read(elements: Any) -> Any:
    return read_batch(elements if isinstance(elements, bytes) else json.dumps(elements).encode())


def ping(id_: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": "ping"}


def test_an_array_is_a_batch_and_nothing_else_is() -> None:
    assert is_batch(b"[]")
    assert is_batch(b" \r\n\t[")
    assert not is_batch(b'{"a":[]}')
    assert not is_batch(b"")


def test_elements_come_in_order_each_judged_alone() -> None:
    elements = read(
        [ping(1), {"jsonrpc": "2.0", "method": "a"}, {"jsonrpc": "2.0", "id": 1, "result": {}}, 7, ping("x")]
    )
    assert [type(element) for element in elements] == [Request, Notification, Response, Rejection, Request]
    assert needs_answer(elements)
    assert not needs_answer(elements[1:3])


@pytest.mark.parametrize(
    ("elements", "code"),
    [
        ([], messages.INVALID_REQUEST),
        ([ping(number) for number in range(MAX_ELEMENTS + 1)], messages.INVALID_REQUEST),
        (b"[1,", messages.PARSE_ERROR),
        (b"[\xff]", messages.PARSE_ERROR),
        (b"[" * 100_000 + b"]" * 100_000, messages.PARSE_ERROR),
        (b"[" * 100_000, messages.PARSE_ERROR),
    ],
)
def test_an_array_that_is_no_batch_is_refused_whole(elements: Any, code: int) -> None:
    refused = read(elements)
    assert isinstance(refused, Rejection)
    assert refused.code == code


def test_a_nested_array_is_refused_as_an_element() -> None:
    [nested] = read([[ping(1)]])
    assert isinstance(nested, Rejection)


def test_initialize_and_ids_used_twice_are_refused_in_place() -> None:
    elements = read([{"jsonrpc": "2.0", "id": 9, "method": "initialize"}, ping(1), ping(1), ping("1")])
    assert [isinstance(element, Rejection) for element in elements] == [True, False, True, False]
    assert [element.id for element in elements] == [b"9", b"1", b"1", b'"1"']


def test_as_many_elements_as_allowed_are_read() -> None:
    assert len(read([ping(number) for number in range(MAX_ELEMENTS)])) == MAX_ELEMENTS


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(noise: bytes) -> None:
    outcome = read_batch(b"[" + noise)
    assert isinstance(outcome, list | Rejection)


def test_answers_are_joined_to_an_array() -> None:
    assert json.loads(join([b"1", b'{"a":2}'])) == [1, {"a": 2}]


def test_answers_come_together_in_the_order_of_their_messages_whatever_comes_first() -> None:
    told: list[bytes | None] = []
    answers = BatchAnswers(told.append)
    first, refused, last = answers.expect(), answers.expect(), answers.expect()
    answers.put(refused, b"2")
    answers.put(last, b"3")
    answers.close()
    assert told == []
    answers.put(first, b"1")
    assert told == [b"[1,2,3]"]


def test_an_answer_that_is_there_before_the_last_message_was_read_does_not_end_the_batch() -> None:
    told: list[bytes | None] = []
    answers = BatchAnswers(told.append)
    answers.put(answers.expect(), b"1")
    assert told == []
    answers.put(answers.expect(), None)
    answers.close()
    assert told == [b"[1]"]


def test_a_batch_whose_every_request_was_cancelled_has_no_answer() -> None:
    told: list[bytes | None] = []
    answers = BatchAnswers(told.append)
    place = answers.expect()
    answers.close()
    answers.put(place, None)
    assert told == [None]


def test_a_batch_of_too_many_values_is_refused_before_it_is_taken_apart() -> None:
    refused = read(b"[%b1]" % (b"1," * 1_000_000))
    assert isinstance(refused, Rejection)
    assert "values" in refused.message
