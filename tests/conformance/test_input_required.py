"""Which question a retry belongs to."""

from __future__ import annotations

from typing import Any

from pactgate.capture.format import RecordedExchange
from pactgate.conformance.input_required import InputRequiredTracker, arguments_of, is_retry, target_of
from pactgate.conformance.message import ExchangeView, RecordedMessage, messages_of
from pactgate.protocol.versions import Era


def exchange(id_: int, params: dict[str, Any], result: dict[str, Any] | None = None) -> list[RecordedMessage]:
    asked = {"id": id_, "method": "tools/call", "params": params}
    view = ExchangeView(
        RecordedExchange(id_, asked, None if result is None else {"id": id_, "result": result}),
        Era.MODERN,
        "2026-07-28",
    )
    messages = messages_of(view)
    for message in messages[1:]:
        message.request = messages[0]
    return messages


def test_a_retry_finds_the_question_with_its_state() -> None:
    rounds = InputRequiredTracker()
    for number, state in enumerate(("s1", "s2"), 1):
        rounds.ask(exchange(number, {"name": "pay"}, {"resultType": "input_required", "requestState": state})[1])
    (retry,) = exchange(3, {"name": "pay", "requestState": "s1"})
    parent = rounds.parent(retry)
    assert parent is not None
    assert (parent.key, parent.state) == (1, "s1")
    assert is_retry(retry)


def test_a_question_without_a_state_is_found_by_what_it_was_about() -> None:
    rounds = InputRequiredTracker()
    asked = {"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}, "odd": 7}}
    rounds.ask(exchange(1, {"name": "pay", "arguments": {"n": 1}}, asked)[1])
    (retry,) = exchange(2, {"name": "pay", "inputResponses": {}})
    parent = rounds.parent(retry)
    assert parent is not None
    assert parent.kinds == {"q": "roots/list"}
    assert arguments_of(retry) != parent.arguments
    (other,) = exchange(3, {"name": "other", "inputResponses": {}})
    assert rounds.parent(other) is None
    assert target_of(other) == "other"


def test_a_state_is_known_only_after_it_was_given_out() -> None:
    rounds = InputRequiredTracker()
    assert rounds.issued("s") is None
    rounds.ask(exchange(1, {"name": "pay"}, {"resultType": "input_required", "requestState": "s"})[1])
    assert rounds.issued("s") is not None
    assert rounds.issued(["s"]) is None


def test_more_questions_than_fit_are_admitted() -> None:
    rounds = InputRequiredTracker()
    for number in range(1001):
        rounds.ask(exchange(number, {"name": f"t{number}"}, {"resultType": "input_required", "requestState": "s"})[1])
    assert rounds.has_forgotten
