"""What clients say beside a request holds for their own session, and for nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.conformance.gateway.server_dialogue import (
    PREFIX,
    STATE,
    Dialogue,
    ScriptedCall,
    questions_of,
    rounds_done,
)


def call(
    method: str, params: dict[str, Any], *, session: str = "one", is_modern: bool = False, id_: int = 1
) -> ScriptedCall:
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
    return ScriptedCall(message, is_modern, lambda data: None, "e", session)


def test_a_cancellation_ends_the_call_of_its_own_session_and_is_labelled_for_it() -> None:
    dialogue, calls = Dialogue(), [call("tools/call", {"name": "slow"}, session=one) for one in ("one", "two")]
    for each in calls:
        dialogue.begin(each)
    assert dialogue.cancel(call("notifications/cancelled", {"requestId": 1}, session="two")) == "slow"
    assert [each.cancelled.is_set() for each in calls] == [False, True]
    dialogue.end(calls[0])
    assert dialogue.cancel(call("notifications/cancelled", {"requestId": 1}, session="one")) == ""
    assert not calls[0].cancelled.is_set()


def test_a_log_level_holds_for_a_legacy_session_and_for_one_modern_request() -> None:
    dialogue = Dialogue()
    assert dialogue.set_level(call("logging/setLevel", {"level": "error"}))
    assert not dialogue.set_level(call("logging/setLevel", {"level": "loud"}))
    assert not dialogue.takes(call("tools/call", {}), "info")
    assert dialogue.takes(call("tools/call", {}, session="two"), "info")
    modern = call("tools/call", {"_meta": {f"{PREFIX}logLevel": "info"}}, is_modern=True)
    assert dialogue.takes(modern, "info")
    assert not dialogue.takes(call("tools/call", {}, is_modern=True), "emergency")


@pytest.mark.parametrize("is_modern", [False, True])
def test_what_a_client_has_not_declared_is_missing(is_modern: bool) -> None:
    declared: dict[str, Any] = {"elicitation": {}, "roots": {}}
    dialogue = Dialogue()
    dialogue.open(call("initialize", {"capabilities": declared}))
    asking = call("tools/call", {"_meta": {f"{PREFIX}clientCapabilities": declared}}, is_modern=is_modern)
    questions = questions_of(
        '{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url"}},'
        '"c":{"method":"sampling/createMessage"},"d":{"method":"elicitation/create","params":{}}}'
    )
    assert dialogue.missing(asking, questions) == {"elicitation": {"url": {}}, "sampling": {}}


@pytest.mark.parametrize(("state", "done"), [(f"{STATE}2", 2), (None, 0), ("something else", 0), (f"{STATE}x", 0)])
def test_the_state_says_how_many_rounds_are_done(state: str | None, done: int) -> None:
    assert rounds_done(call("tools/call", {} if state is None else {"requestState": state})) == done
