"""Questions reach the legacy caller under its own time, and only those it declared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from pactgate.core.unanswered import UnansweredError
from pactgate.pipeline.question_relay import QuestionRelay, all_of
from pactgate.pipeline.upstream_request import UpstreamRequest
from pactgate.protocol.era_bridge import Question
from pactgate.protocol.messages import ErrorReply
from tests.support.asking import ALL, Client, asker
from tests.support.callers import context


class Watch:
    """Notes when the caller's time runs."""

    def __init__(self) -> None:
        self.is_paused = False

    @contextmanager
    def waiting_for_client(self) -> Iterator[None]:
        self.is_paused = True
        try:
            yield
        finally:
            self.is_paused = False


def made(answer: Any, capabilities: dict[str, Any] = ALL) -> tuple[QuestionRelay, Client, list[bool]]:
    watch, paused, asked = Watch(), list[bool](), list[bool]()

    def answers(method: str, params: Any) -> Any:
        paused.append(watch.is_paused)
        return answer

    who = asker(answer=answers)
    errand = UpstreamRequest(
        context(who=who),
        who,
        "files",
        "tools/call",
        {},
        meta={},
        name=None,
        on_progress=None,
        deadline=watch,
        on_send=lambda session: (),
        on_asked=lambda: asked.append(True),
    )
    return QuestionRelay(errand, capabilities), cast(Client, who.channel), paused


async def test_the_callers_time_runs_while_it_is_asked() -> None:
    relay, client, paused = made({"roots": []})
    assert await relay.ask(Question("roots/list")) == b'{"roots":[]}'
    assert paused == [True]
    assert client.asked == [("roots/list", {})]


async def test_each_visit_to_a_url_gets_an_id_of_its_own() -> None:
    relay, client, _ = made({"action": "accept"})
    for _ in range(2):
        await relay.ask(Question("elicitation/create", b'{"mode":"url","url":"https://a.example"}'))
    first, second = (params["elicitationId"] for _, params in client.asked)
    assert first != second


async def test_what_was_not_declared_is_not_asked() -> None:
    relay, client, _ = made({}, {"roots": {}})
    with pytest.raises(UnansweredError) as caught:
        await relay.ask(Question("sampling/createMessage", b"{}"))
    assert caught.value.reply.code == -32601
    assert client.asked == []


async def test_for_a_round_a_refused_form_is_a_cancelled_one_and_any_other_refusal_ends_the_call() -> None:
    relay, _, _ = made(ErrorReply(None, -1, "no"))
    assert await relay.ask_for_round(Question("elicitation/create", b"{}")) == b'{"action":"cancel"}'
    with pytest.raises(UnansweredError) as caught:
        await relay.ask_for_round(Question("roots/list"))
    assert (caught.value.server, caught.value.operation) == ("files", "tools/call")


async def test_notices_about_a_question_reach_its_caller() -> None:
    relay, client, _ = made({})
    relay.tell("notifications/elicitation/complete", b"{}")
    assert client.notes == [("notifications/elicitation/complete", b"{}")]


async def test_of_several_questions_the_first_failure_ends_the_others() -> None:
    cancelled = asyncio.Event()

    async def waits() -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return b""

    async def fails() -> bytes:
        raise UnansweredError("no")

    with pytest.raises(UnansweredError):
        await all_of([waits(), fails()])
    assert cancelled.is_set()
