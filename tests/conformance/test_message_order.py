"""Messages in the order they passed: by their numbers where there are some, by exchanges otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.capture.format import read
from pactgate.capture.source import chunks_of_value
from pactgate.conformance import message_order
from pactgate.conformance.message import ExchangeView
from pactgate.conformance.message_order import MessageOrder
from pactgate.protocol.versions import Era


def passed(*exchanges: dict[str, Any]) -> list[str]:
    """The names of the messages in order."""
    session = next(read(chunks_of_value({"exchanges": list(exchanges)})))
    queue = MessageOrder()
    messages = []
    for exchange in session.exchanges:
        messages += queue.take(ExchangeView(exchange, Era.LEGACY, None))
    messages += queue.rest()
    return [message.body["name"] for message in messages]


def test_without_numbers_an_exchange_is_over_before_the_next_begins() -> None:
    first = {"request": {"name": "a"}, "notifications": [{"message": {"name": "n"}}], "response": {"name": "A"}}
    assert passed(first, {"request": {"name": "b"}, "response": {"name": "B"}}) == ["a", "n", "A", "b", "B"]


def test_numbers_tell_what_came_between() -> None:
    first = {"request": {"name": "a"}, "seq": 1, "response": {"name": "A"}, "response_seq": 4}
    second = {"request": {"name": "b"}, "seq": 2, "response": {"name": "B"}, "response_seq": 3}
    assert passed(first, second) == ["a", "b", "B", "A"]


def test_what_follows_an_answer_on_its_stream_comes_after_it() -> None:
    late = [{"message": {"name": "late"}, "seq": 9}]
    assert passed(
        {"request": {"name": "a"}, "seq": 1, "response": {"name": "A"}, "response_seq": 2, "notifications": late}
    ) == [
        "a",
        "A",
        "late",
    ]


def test_an_exchange_without_numbers_ends_the_wait() -> None:
    first = {"request": {"name": "a"}, "seq": 1, "response": {"name": "A"}, "response_seq": 9}
    assert passed(first, {"request": {"name": "b"}}) == ["a", "A", "b"]


def test_no_more_is_held_back_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_order, "_MAX_WAITING", 1)
    exchanges = [
        {"request": {"name": f"q{n}"}, "seq": n, "response": {"name": f"a{n}"}, "response_seq": 100 + n}
        for n in range(3)
    ]
    assert passed(*exchanges) == ["q0", "q1", "a0", "q2", "a1", "a2"]
