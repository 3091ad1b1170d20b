"""Questions and rounds in both eras' words."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from pactgate.protocol import era_bridge
from pactgate.protocol.era_bridge import MAX_IN_A_ROUND, Question
from pactgate.protocol.messages import ErrorReply
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era

ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {"listChanged": True}}


def question(method: str, **params: Any) -> Question:
    return Question(method, json.dumps(params).encode())


@pytest.mark.parametrize(
    ("capabilities", "version", "towards", "kept"),
    [
        ({}, LATEST_MODERN, Era.MODERN, {}),
        (ALL, LATEST_LEGACY, Era.LEGACY, ALL),
        (ALL, LATEST_LEGACY, Era.MODERN, {**ALL, "roots": {}}),
        (ALL, "2025-06-18", Era.LEGACY, {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}),
        (ALL, "2025-03-26", Era.MODERN, {"sampling": {}, "roots": {}}),
        ({"sampling": True, "roots": None, "elicitation": []}, LATEST_LEGACY, Era.MODERN, {}),
        ({"tasks": {}, "experimental": {"x": {}}}, LATEST_LEGACY, Era.MODERN, {}),
        ({"extensions": {"io.modelcontextprotocol/tasks": {}}}, LATEST_MODERN, Era.MODERN, {}),
        ({"extensions": {"a.b/c": {"d": 1}}}, LATEST_MODERN, Era.MODERN, {"extensions": {"a.b/c": {"d": 1}}}),
        ({"extensions": 7}, LATEST_MODERN, Era.MODERN, {}),
    ],
)
def test_only_what_can_be_honoured_is_told_on(
    capabilities: dict[str, Any], version: str, towards: Era, kept: dict[str, Any]
) -> None:
    assert era_bridge.relayable(capabilities, version, towards=towards) == kept
    assert era_bridge.can_be_asked(kept) is bool(kept.keys() & {"sampling", "elicitation", "roots"})


def test_tasks_are_told_on_for_whoever_can_follow_them() -> None:
    declared: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}, "x": {}}}
    assert era_bridge.relayable(declared, LATEST_MODERN, towards=Era.MODERN, follows_tasks=True) == declared
    assert era_bridge.relayable(declared, LATEST_MODERN, towards=Era.MODERN) == {"extensions": {"x": {}}}


@pytest.mark.parametrize(
    ("asked", "capabilities", "code"),
    [
        (question("elicitation/create"), {"elicitation": {}}, None),
        (question("elicitation/create", mode="form"), {"elicitation": {"form": {}}}, None),
        (question("elicitation/create", mode="form"), {"elicitation": {"url": {}}}, -32602),
        (question("elicitation/create", mode="url"), {"elicitation": {"url": {}}}, None),
        (question("elicitation/create", mode="url"), {"elicitation": {}}, -32602),
        (question("elicitation/create"), {"sampling": {}}, -32601),
        (question("sampling/createMessage"), {"sampling": {}}, None),
        (question("sampling/createMessage", tools=[]), {"sampling": {}}, -32602),
        (question("sampling/createMessage", toolChoice={}), {"sampling": {}}, -32602),
        (question("sampling/createMessage", tools=[]), {"sampling": {"tools": {}}}, None),
        (Question("roots/list"), {"roots": {}}, None),
        (Question("roots/list", b"[]"), {"roots": {}}, -32602),
        (Question("roots/list"), {"roots": None}, -32601),
        (Question("tools/call"), ALL, -32601),
    ],
)
def test_a_question_is_covered_by_what_was_declared_or_refused(
    asked: Question, capabilities: dict[str, Any], code: int | None
) -> None:
    refusal = era_bridge.why_not(asked, capabilities)
    assert (refusal[0] if refusal else None) == code


def test_a_legacy_request_loses_what_modern_revisions_do_not_have_and_nothing_else() -> None:
    asked = question(
        "elicitation/create",
        mode="url",
        url="https://a.example",
        elicitationId="e",
        task={"ttl": 1},
        odd=[None],
        _meta={"progressToken": 1, "io.modelcontextprotocol/related-task": {}, "com.example/k": 1},
    )
    written = json.loads(era_bridge.encode_input_required({"k": asked, "r": Question("roots/list", b"{}")}, "s"))
    assert written == {
        "resultType": "input_required",
        "requestState": "s",
        "inputRequests": {
            "k": {
                "method": "elicitation/create",
                "params": {"mode": "url", "url": "https://a.example", "odd": [None], "_meta": {"com.example/k": 1}},
            },
            "r": {"method": "roots/list"},
        },
    }


def test_a_modern_question_gets_what_the_callers_revision_needs() -> None:
    url = question("elicitation/create", mode="url", url="https://a.example", message="m")
    assert json.loads(era_bridge.for_legacy(url, LATEST_LEGACY, "mine"))["elicitationId"] == "mine"
    own = question("elicitation/create", mode="url", elicitationId="theirs")
    assert json.loads(era_bridge.for_legacy(own, LATEST_LEGACY, "mine"))["elicitationId"] == "theirs"
    form = question("elicitation/create", mode="form", message="m", _meta={"progressToken": 1})
    assert json.loads(era_bridge.for_legacy(form, LATEST_LEGACY, "")) == {"mode": "form", "message": "m"}
    assert json.loads(era_bridge.for_legacy(form, "2025-06-18", "")) == {"message": "m"}
    assert era_bridge.for_legacy(Question("roots/list"), LATEST_LEGACY, "") == b"{}"


def test_a_round_is_told_from_a_result_by_its_type_alone() -> None:
    assert era_bridge.read_input_required(b'{"content":[]}') is None
    assert era_bridge.read_input_required(b'{"resultType":"complete","content":["input_required"]}') is None
    assert era_bridge.read_input_required(b'{"content":["input_required"],"resultType":7}') is None
    found = era_bridge.read_input_required(
        b'{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"x"}'
    )
    assert found is not None
    assert (found.questions, found.state) == ({"a": Question("roots/list")}, "x")


@pytest.mark.parametrize(
    "rest",
    [
        "",
        ',"inputRequests":{}',
        ',"inputRequests":[]',
        ',"inputRequests":{"a":{}}',
        ',"inputRequests":{"a":{"method":"roots/list","params":[]}}',
        ',"requestState":7',
        ',"inputRequests":' + json.dumps({str(n): {"method": "roots/list"} for n in range(MAX_IN_A_ROUND + 1)}),
    ],
)
def test_a_round_that_asks_nothing_or_wrongly_is_no_round(rest: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        era_bridge.read_input_required(b'{"resultType":"input_required"' + rest.encode() + b"}")


def test_a_servers_round_keeps_every_byte_but_its_state() -> None:
    text = b'{"resultType":"input_required","inputRequests":{"a":{"method":"x","odd":18446744073709551616}},"requestState":"s"}'
    assert era_bridge.with_state(text, "t") == text.replace(b'"s"', b'"t"')


def test_answers_are_objects_by_key() -> None:
    assert era_bridge.read_answers(None) == {}
    assert era_bridge.read_answers(Raw(b'{"a":{"n":18446744073709551616}}')) == {"a": b'{"n":18446744073709551616}'}
    for wrong in (b"[]", b'{"a":1}', b"null"):
        with pytest.raises(msgspec.DecodeError):
            era_bridge.read_answers(Raw(wrong))


def test_urls_are_read_from_the_one_error_that_names_them() -> None:
    (url,) = era_bridge.read_urls(
        ErrorReply(1, -32042, "", b'{"elicitations":[{"url":"https://a.example","message":"m"}]}')
    )
    assert json.loads(url.params or b"") == {"mode": "url", "url": "https://a.example", "message": "m"}
    many = json.dumps({"elicitations": [{}] * (MAX_IN_A_ROUND + 1)}).encode()
    for reply in (
        ErrorReply(1, -32042, ""),
        ErrorReply(1, -32042, "", b'{"elicitations":7}'),
        ErrorReply(1, -32042, "", many),
        ErrorReply(1, -32603, "", b'{"elicitations":[{}]}'),
    ):
        assert era_bridge.read_urls(reply) == []
