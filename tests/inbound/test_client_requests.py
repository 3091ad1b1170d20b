"""What a client is asked: one answer each, from that client, within bounds."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pactgate.core.unanswered import UnansweredError
from pactgate.inbound.client_requests import MAX_OPEN, PendingClientRequests
from pactgate.protocol.messages import ErrorReply, Response


class Wire:
    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.sent: list[dict[str, Any]] = []

    def __call__(self, text: bytes) -> bool:
        self.sent.append(json.loads(text))
        return self.works


async def asked(questions: PendingClientRequests, wire: Wire) -> asyncio.Task[bytes]:
    task = asyncio.create_task(questions.ask("roots/list", b"{}", wire))
    await asyncio.sleep(0)
    return task


async def test_an_answer_is_taken_once_by_its_id() -> None:
    questions, wire = PendingClientRequests(), Wire()
    first, second = await asked(questions, wire), await asked(questions, wire)
    one, two = (message["id"] for message in wire.sent)
    assert one != two
    questions.take(Response(two, b'{"n":2}'))
    questions.take(Response(two, b'{"n":3}'))
    questions.take(Response("unknown", b"{}"))
    questions.take(ErrorReply(None, 1, "to nothing"))
    questions.take(Response(one, b'{"n":1}'))
    assert (await first, await second) == (b'{"n":1}', b'{"n":2}')
    assert len(questions) == 0


async def test_a_refusal_is_kept_as_the_client_said_it() -> None:
    questions, wire = PendingClientRequests(), Wire()
    task = await asked(questions, wire)
    reply = ErrorReply(wire.sent[0]["id"], -1, "no", b"{}")
    questions.take(reply)
    with pytest.raises(UnansweredError) as caught:
        await task
    assert caught.value.reply is reply


async def test_an_answer_that_is_no_object_is_none() -> None:
    questions, wire = PendingClientRequests(), Wire()
    task = await asked(questions, wire)
    questions.take(Response(wire.sent[0]["id"], b"[1]"))
    with pytest.raises(UnansweredError):
        await task


async def test_a_client_out_of_reach_or_gone_does_not_answer() -> None:
    with pytest.raises(UnansweredError):
        await PendingClientRequests().ask("roots/list", b"{}", Wire(works=False))
    questions = PendingClientRequests()
    task = await asked(questions, Wire())
    questions.close()
    with pytest.raises(UnansweredError):
        await task


async def test_a_question_nobody_waits_for_any_more_is_withdrawn() -> None:
    questions, wire = PendingClientRequests(), Wire()
    task = await asked(questions, wire)
    task.cancel()
    await asyncio.wait({task})
    question, withdrawal = wire.sent
    assert withdrawal["method"] == "notifications/cancelled"
    assert withdrawal["params"]["requestId"] == question["id"]
    assert len(questions) == 0


async def test_a_client_has_no_more_questions_before_it_than_may_be() -> None:
    questions, wire = PendingClientRequests(), Wire()
    tasks = [await asked(questions, wire) for _ in range(MAX_OPEN)]
    with pytest.raises(UnansweredError):
        await questions.ask("roots/list", b"{}", wire)
    questions.take(Response(wire.sent[0]["id"], b"{}"))
    await tasks[0]
    tasks.append(await asked(questions, wire))
    for message in wire.sent[1:]:
        questions.take(Response(message["id"], b"{}"))
    await asyncio.gather(*tasks)
