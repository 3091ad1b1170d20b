"""Calls that wait for their callers: each belongs to one, is continued once, and never waits for ever."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.unanswered import UnansweredError
from pactgate.pipeline import suspended_calls
from pactgate.pipeline.suspended_calls import SuspendedCall, SuspendedCalls
from pactgate.pipeline.upstream_request import UpstreamRequest
from pactgate.protocol.era_bridge import Question
from pactgate.protocol.messages import Notification
from pactgate.upstreams.dialer import Session
from tests.support.asking import ALL, asker

ROOTS = Question("roots/list", b"{}")


def parked(subject: str = "ada", server: str = "files", input_s: float = 5.0) -> SuspendedCall:
    session = cast(Session, SimpleNamespace(peer=SimpleNamespace(server=server)))
    request = SimpleNamespace(caller=asker(key=subject), method="tools/call", name="x")
    made = SuspendedCall(cast(UpstreamRequest, request), session, input_s)
    made.capabilities = ALL
    return made


def waits_for_ever(made: SuspendedCall) -> asyncio.Task[Any]:
    async def run() -> Any:
        await asyncio.Event().wait()
        return b""

    task = asyncio.create_task(run())
    made.begin(task)
    return task


async def test_a_question_answer_and_outcome_go_round_the_call() -> None:
    made = parked()

    async def call() -> Any:
        return await made.ask(ROOTS) + await made.ask(ROOTS)

    made.begin(asyncio.create_task(call()))
    for key in ("input-1", "input-2"):
        assert await made.outcome() is None
        assert made.questions == {key: ROOTS}
        made.answer({"other": b"?", key: key.encode()})
    assert await made.outcome() == b"input-1input-2"
    assert made.was_asked


async def test_what_is_said_of_it_is_for_whoever_waits_at_that_moment() -> None:
    made, heard = parked(), list[Any]()
    said = Notification("notifications/message", b"{}")
    made.log(said)
    made.progress({})
    made.on_log = made.on_progress = heard.append
    made.log(said)
    made.progress({})
    assert heard == [said, {}]


async def test_a_withdrawn_question_is_no_news() -> None:
    made, may_end = parked(), asyncio.Event()

    async def call() -> Any:
        question = asyncio.create_task(made.ask(ROOTS))
        await asyncio.sleep(0)
        question.cancel()
        await asyncio.wait({question})
        await may_end.wait()
        return b"done"

    made.begin(asyncio.create_task(call()))
    waiting = asyncio.create_task(made.outcome())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    may_end.set()
    assert await waiting == b"done"


async def test_what_was_not_declared_is_refused_without_a_round() -> None:
    made = parked()
    made.capabilities = {"elicitation": {}}
    with pytest.raises(UnansweredError) as caught:
        await made.ask(ROOTS)
    assert caught.value.reply.code == -32601
    assert not made.questions


async def test_progress_goes_to_whoever_waits_now() -> None:
    made, seen = parked(), list[Any]()
    made.progress({})
    made.on_progress = seen.append
    made.progress({})
    made.tell("notifications/elicitation/complete", b"{}")
    assert seen == [{}]


async def test_a_mark_opens_once_and_for_its_subject() -> None:
    lot, made = SuspendedCalls(), parked()
    task = waits_for_ever(made)
    mark = lot.suspend(made)
    assert lot.find(mark, "eve") is None
    assert lot.find(mark, "ada") is made
    assert lot.take(mark) is made
    assert made.input_s < 5.0
    assert lot.find(mark, "ada") is None
    second = lot.suspend(made)
    assert second != mark
    await lot.close()
    assert task.cancelled()
    assert len(lot) == 0


async def test_the_calls_of_a_subject_that_may_no_longer_call_are_ended() -> None:
    lot, made, other = SuspendedCalls(), parked("ada"), parked("eve")
    task, others = waits_for_ever(made), waits_for_ever(other)
    mark, kept = lot.suspend(made), lot.suspend(other)
    lot.forget(lambda suspended: suspended.subject == "ada")
    await asyncio.wait({task}, timeout=5)
    assert task.cancelled()
    assert lot.find(mark, "ada") is None
    assert lot.find(kept, "eve") is other
    assert not others.done()
    await lot.close()


async def test_one_that_nobody_comes_back_for_is_ended() -> None:
    lot, made = SuspendedCalls(), parked(input_s=0.01)
    task = waits_for_ever(made)
    lot.suspend(made)
    await asyncio.wait({task}, timeout=5)
    assert task.cancelled()
    assert len(lot) == 0


@pytest.mark.parametrize(
    ("bound", "subject", "server"),
    [
        ("MAX_SUSPENDED", "ada", "mail"),
        ("MAX_SUSPENDED", "eve", "files"),
        ("MAX_OF_ONE", "ada", "mail"),
        ("MAX_AT_SERVER", "eve", "files"),
    ],
)
async def test_their_number_is_bounded_in_all_by_caller_and_by_server(
    monkeypatch: pytest.MonkeyPatch, bound: str, subject: str, server: str
) -> None:
    monkeypatch.setattr(suspended_calls, bound, 1)
    lot, first, second = SuspendedCalls(), parked(), parked(subject, server)
    tasks = [waits_for_ever(first), waits_for_ever(second)]
    lot.suspend(first)
    with pytest.raises(GatewayFailure) as caught:
        lot.suspend(second)
    assert (caught.value.kind, caught.value.verdict) == (Kind.OVERLOADED, Verdict.MAY_HAVE_RUN)
    await asyncio.wait({tasks[1]}, timeout=5)
    assert tasks[1].cancelled()
    assert not tasks[0].done()
    await lot.close()


async def test_a_caller_that_answers_nothing_leaves_room_at_a_server_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suspended_calls, "MAX_AT_SERVER", 8)
    lot = SuspendedCalls()

    def suspend(subject: str) -> None:
        made = parked(subject)
        waits_for_ever(made)
        lot.suspend(made)

    for _ in range(6):
        suspend("ada")
    with pytest.raises(GatewayFailure):
        suspend("ada")
    suspend("eve")
    assert len(lot) == 7
    await lot.close()


async def test_a_failure_nobody_fetches_warns_nobody() -> None:
    lot, made = SuspendedCalls(), parked()

    async def fails() -> Any:
        raise GatewayFailure(Kind.CONNECTION_LOST, "gone")

    task = asyncio.create_task(fails())
    made.begin(task)
    lot.suspend(made)
    await asyncio.wait({task})
    with pytest.raises(GatewayFailure):
        await made.outcome()
    await lot.close()
