"""What a client of a chaos run takes for a good answer, and what for a broken promise."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.clients import ENVELOPE, judge, last_message, request_id_of

FACTS = {"code": "TOOL_TIMEOUT", "category": "c", "failure_mode": "timeout", "verdict": "may_have_run", "party": "p"}


def result(text: str, **more: Any) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": text}], **more}}


def failed(facts: dict[str, Any]) -> dict[str, Any]:
    return result("it failed", isError=True, _meta={ENVELOPE: {"failure": facts, "requestId": "r1"}})


def test_the_text_of_the_call_is_a_good_answer() -> None:
    assert judge(result("mine"), "mine", must_succeed=True) == ("ok", None)


def test_the_text_of_another_call_is_a_broken_promise() -> None:
    assert "belongs to another call" in (judge(result("hers"), "mine", must_succeed=False)[1] or "")


def test_a_failure_with_its_facts_is_a_good_answer_of_a_fragile_server_only() -> None:
    assert judge(failed(FACTS), "mine", must_succeed=False) == ("timeout", None)
    assert "steady server failed" in (judge(failed(FACTS), "mine", must_succeed=True)[1] or "")
    assert judge({"error": {"code": 1, "data": FACTS}}, "mine", must_succeed=False) == ("timeout", None)


@pytest.mark.parametrize("missing", sorted(FACTS))
def test_a_failure_without_a_fact_is_a_broken_promise(missing: str) -> None:
    facts = {name: fact for name, fact in FACTS.items() if name != missing}
    assert missing in (judge(failed(facts), "mine", must_succeed=False)[1] or "")


@pytest.mark.parametrize("answer", [{}, {"error": {}}, {"error": {"code": 1}}, {"result": None}])
def test_no_facts_at_all_are_a_broken_promise(answer: dict[str, Any]) -> None:
    assert judge(answer, "mine", must_succeed=False)[0] == "no facts"


def test_the_request_id_is_read_from_the_envelope() -> None:
    assert request_id_of(failed(FACTS)) == "r1"
    assert request_id_of({"error": {}}) is None


def test_the_answer_of_a_stream_is_its_last_event() -> None:
    body = b'id: 1\ndata: {"method":"x"}\n\nid: 2\ndata: {"id":1}\n\n'
    assert last_message({"content-type": "text/event-stream"}, body) == {"id": 1}
    assert last_message({}, b"no JSON") == {}
