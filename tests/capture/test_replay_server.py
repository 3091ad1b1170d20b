"""A recorded session that answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pactgate.capture.format import read
from pactgate.capture.replay_server import CaptureTooLargeError, ReplayServer, recorded_in


def cassette(*exchanges: dict[str, Any]) -> ReplayServer:
    (made,) = [ReplayServer(recorded_in(session)) for session in read([json.dumps({"exchanges": exchanges}).encode()])]
    return made


def exchange(method: str, result: Any, id_: Any = 1, **params: Any) -> dict[str, Any]:
    return {
        "request": {"jsonrpc": "2.0", "id": id_, "method": method, "params": params},
        "response": {"jsonrpc": "2.0", "id": id_, "result": result},
    }


def ask(made: ReplayServer, method: str, id_: Any = 7, **params: Any) -> Any:
    answer = made.answer({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
    assert answer["id"] == id_
    return answer.get("result", answer.get("error", {}).get("code"))


def test_an_answer_is_found_by_method_and_parameters_whatever_their_order_and_the_callers_meta() -> None:
    made = cassette(
        exchange("tools/call", "one", name="a", arguments={"x": 1, "y": 2}), exchange("tools/call", "two", name="b")
    )
    assert ask(made, "tools/call", arguments={"y": 2, "x": 1}, name="a", _meta={"progressToken": 5}) == "one"
    assert ask(made, "tools/call", id_="text", name="b") == "two"


def test_the_first_answer_not_given_yet_wins_then_the_last_is_given_again() -> None:
    made = cassette(*(exchange("a", number) for number in range(3)))
    assert [ask(made, "a") for _ in range(5)] == [0, 1, 2, 2, 2]


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_an_introduction_is_matched_by_its_method_alone(method: str) -> None:
    assert ask(cassette(exchange(method, "hello", client="one")), method, client="another") == "hello"


def test_what_was_not_recorded_is_an_error_and_never_a_guess() -> None:
    made = cassette(exchange("tools/call", "one", name="a", arguments={"x": 1}))
    assert ask(made, "tools/call", name="a", arguments={"x": True}) == -32602
    assert ask(made, "tools/call", name="a", arguments={"x": 1.5}) == -32602
    assert ask(made, "tools/list") == -32601
    assert ask(made, "ping") == {}


def test_errors_are_answers_too() -> None:
    refused = {**exchange("a", None), "response": {"jsonrpc": "2.0", "id": 1, "error": {"code": -5, "message": "no"}}}
    assert ask(cassette(refused), "a") == -5


def test_late_answers_and_answers_on_other_streams_are_found_by_their_ids() -> None:
    late = {"request": {"id": 1, "method": "a"}}
    made = cassette(
        late,
        {"request": {"id": 2, "method": "b"}},
        {"http": {"verb": "GET"}, "notifications": [{"message": {"id": 2, "result": "beside"}}]},
        {"seq": 9, "response": {"id": 1, "result": "late"}},
    )
    assert [ask(made, "a"), ask(made, "b")] == ["late", "beside"]


def test_requests_of_the_server_answer_nothing() -> None:
    asked = {**exchange("sampling/createMessage", {}), "direction": "server_to_client"}
    assert ask(cassette(asked), "sampling/createMessage") == -32601


def test_texts_batches_and_nonsense_are_answered_as_they_came() -> None:
    made = cassette(exchange("a", "yes"))
    batch = b'[{"id":1,"method":"a","params":{}},{"method":"notifications/x"},{"id":2,"method":"a"}]'
    assert [each["result"] for each in json.loads(made.answer_encoded(batch) or b"")] == ["yes", "yes"]
    assert made.answer_encoded(b'{"method":"notifications/x"}') is None
    assert made.answer_encoded(b"  \n") is None
    assert made.answer_encoded(b'{"id":1,"result":{}}') is None
    assert json.loads(made.answer_encoded(b"nonsense") or b"")["error"]["code"] == -32700


def test_a_session_too_large_to_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactgate.capture.replay_server.MAX_HELD_BYTES", 100)
    with pytest.raises(CaptureTooLargeError):
        cassette(*(exchange("a", "x" * 50) for _ in range(3)))
