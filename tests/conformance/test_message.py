"""Exchanges taken apart: who sent what, what it is, and what it says, whatever its shape."""

from __future__ import annotations

from typing import Any

from pactgate.capture.format import RecordedExchange, Side, StreamMessage
from pactgate.conformance.message import ExchangeView, RecordedMessage, Role, as_list, as_object, messages_of
from pactgate.protocol.versions import Era


def view(**parts: Any) -> ExchangeView:
    made = ExchangeView(RecordedExchange(3, **parts), Era.LEGACY, "2025-06-18")
    messages_of(made)
    return made


def answer(body: dict[str, Any]) -> RecordedMessage:
    return view(request={"id": 1, "method": "x"}, response=body).messages[1]


def test_the_id_tells_a_request_from_a_notification() -> None:
    assert view(request={"method": "x", "id": 0}).messages[0].role is Role.REQUEST
    assert view(request={"method": "x"}).messages[0].role is Role.NOTIFICATION
    assert view(request={"method": "x", "id": None}).messages[0].role is Role.NOTIFICATION
    assert view(response={"id": 1, "result": {}}).messages[0].role is Role.RESPONSE


def test_each_message_knows_its_place_and_its_sender() -> None:
    made = view(
        request=[{"method": "a", "id": 1}, {"method": "b"}],
        frames=(StreamMessage({"method": "n"}), StreamMessage({"id": 1}, Side.CLIENT)),
        response=[{"id": 1, "result": {}}],
        sender=Side.SERVER,
    )
    assert [(message.pointer, message.sender.value) for message in made.messages] == [
        ("/request/0", "server"),
        ("/request/1", "server"),
        ("/notifications/0/message", "server"),
        ("/notifications/1/message", "client"),
        ("/response/0", "client"),
    ]
    assert {message.index for message in made.messages} == {3}
    assert made.from_client is made.messages[-1]
    assert made.first_response is made.messages[-1]


def test_an_error_is_no_success_and_null_beside_a_result_is_no_error() -> None:
    assert answer({"result": {}}).is_success
    assert answer({"result": {}, "error": None}).is_success
    assert answer({"error": None}).is_error
    assert not answer({"result": {}, "error": {"code": 1}}).is_success
    assert not answer({}).is_success


def test_members_of_the_wrong_type_are_read_as_nothing() -> None:
    message = view(request={"method": 7, "id": 1, "params": []}).messages[0]
    assert (message.method, message.params, message.meta) == ("", {}, {})
    assert answer({"error": {"code": True}}).code is None
    assert answer({"result": 5}).result == {}
    assert as_object([1]) == {}
    assert as_list({}) == []
