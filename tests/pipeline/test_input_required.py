"""Rounds of questions and answers that break the protocol end their call, and the failure says whose fault it is."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from pactgate.core.failures import Reply
from pactgate.core.values import Caller
from pactgate.pipeline.input_required import MAX_ROUNDS, map_upstream_error
from pactgate.protocol.messages import ErrorReply
from pactgate.protocol.versions import Era
from pactgate.upstreams.peer import UpstreamReplyError
from tests.pipeline.conftest import open_gateway
from tests.support.asking import ALL, SAID, Client, asker, asking


def body(reply: Reply) -> dict[str, Any]:
    assert reply.result is not None, reply.error
    decoded: dict[str, Any] = json.loads(reply.result)
    return decoded


def client(who: Caller) -> Client:
    return cast(Client, who.channel)


@pytest.mark.parametrize("era", list(Era))
async def test_a_modern_server_that_asks_what_nobody_offered_is_at_fault(era: Era) -> None:
    who = asker(era, capabilities={"elicitation": {}})
    async with open_gateway(asking(era="modern")) as inside:
        for caller in (who, asker(era, capabilities={})):
            result = body(await inside.call("asking.strange", who=caller))
            failure = result["_meta"]["dev.pactgate/envelope"]["failure"]
            assert (failure["failure_mode"], failure["party"]) == ("malformed_result", "upstream")
    assert client(who).asked == []


async def test_a_modern_server_that_asks_for_ever_is_given_up() -> None:
    who = asker()
    async with open_gateway(asking(era="modern")) as inside:
        result = body(await inside.call("asking.forever", who=who))
    assert result["isError"] is True
    assert f"{MAX_ROUNDS} times" in result["content"][0]["text"]
    assert len(client(who).asked) == MAX_ROUNDS


async def test_answers_to_no_question_start_nothing() -> None:
    async with open_gateway(asking()) as inside:
        reply = await inside.call("asking.ask", who=asker(Era.MODERN), inputResponses={"input-1": SAID})
    assert reply.error is not None
    assert reply.error.code == -32602


@pytest.mark.parametrize("era", list(Era))
@pytest.mark.parametrize("capabilities", [{}, ALL])
async def test_a_missing_capability_is_told_to_the_caller_with_its_own_code(
    era: Era, capabilities: dict[str, Any]
) -> None:
    required: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
    async with open_gateway(asking(era="modern")) as inside:
        reply = await inside.call(
            "asking.refuse", {"code": -32021, "data": required}, who=asker(era, capabilities=capabilities)
        )
    assert reply.error is not None
    assert reply.error.code == -32021
    assert reply.error.data["requiredCapabilities"] == {"sampling": {}}
    assert reply.error.data["verdict"] == "did_not_run"


def test_a_url_to_visit_is_a_refusal_with_a_number_for_those_whose_era_has_it() -> None:
    refusal = UpstreamReplyError("crm", "tools/call", ErrorReply(None, -32042, "Sign in"))
    assert map_upstream_error(refusal, asker(Era.LEGACY)).number == -32042
    assert map_upstream_error(refusal, asker(Era.MODERN)) is refusal
