"""A server's questions go to the call they belong to, or to nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.unanswered import UnansweredError
from pactgate.protocol.era_bridge import COMPLETED, Question
from pactgate.protocol.messages import ErrorReply, Request
from pactgate.upstreams import server_request_router
from pactgate.upstreams.server_request_router import (
    MAX_OF_A_CALL,
    MAX_OPEN,
    MAX_QUESTION_BYTES,
    MAX_URLS,
    ServerRequestRouter,
)
from tests.support.eventually import eventually


class Asker:
    """Answers with its own name when it is let go."""

    def __init__(self, name: str, owner: str | None = None, failure: GatewayFailure | None = None) -> None:
        self.name = name
        self.owner = owner
        self.failure = failure
        self.go = asyncio.Event()
        self.asked: list[Question] = []
        self.told: list[tuple[str, bytes]] = []

    async def ask(self, question: Question) -> bytes:
        self.asked.append(question)
        await self.go.wait()
        if self.failure is not None:
            raise self.failure
        return json.dumps({"by": self.name}).encode()

    def tell(self, method: str, params: bytes) -> None:
        self.told.append((method, params))


class Table:
    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.asked = ServerRequestRouter(self._reply, self._reply_later)

    async def _reply(self, text: bytes) -> None:
        self._reply_later(text)

    def _reply_later(self, text: bytes) -> None:
        self.replies.append(json.loads(text))

    def take(
        self, id_: int, method: str = "roots/list", params: bytes | None = None, for_request: int | None = None
    ) -> Any:
        text = self.asked.take(Request(b"%d" % id_, id_, method, params), for_request)
        return None if text is None else json.loads(text)

    async def settled(self) -> None:
        await eventually(lambda: not self.asked)


@pytest.fixture
async def table() -> AsyncIterator[Table]:
    made = Table()
    yield made
    await made.asked.close()


async def test_ping_is_answered_and_what_is_no_question_refused_whoever_calls(table: Table) -> None:
    assert table.take(1, "ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}
    table.asked.begin(7, Asker("a"))
    assert table.take(2, "tasks/get")["error"]["code"] == -32601


async def test_the_stream_that_brings_a_question_says_whose_it_is(table: Table) -> None:
    askers = {number: Asker(str(number)) for number in range(1, 4)}
    for number, asker in askers.items():
        asker.go.set()
        table.asked.begin(number, asker)
    for number in (3, 1, 2):
        assert table.take(100 + number, for_request=number) is None
    await table.settled()
    assert {reply["id"]: reply["result"]["by"] for reply in table.replies} == {101: "1", 102: "2", 103: "3"}
    assert table.take(9, for_request=55)["error"]["code"] == -32600


async def test_beside_any_stream_the_only_call_is_meant_and_among_several_callers_nobody(table: Table) -> None:
    assert table.take(1)["error"]["code"] == -32601
    first, second = Asker("a"), Asker("b")
    table.asked.begin(1, first)
    assert table.take(2) is None
    table.asked.begin(2, second)
    refused = table.take(3)
    assert refused["error"]["code"] == -32600
    assert "which one" in refused["error"]["message"]
    table.asked.answered(1)
    assert table.take(4) is None
    await asyncio.sleep(0)
    assert (len(first.asked), len(second.asked)) == (0, 1)


@pytest.mark.parametrize(("owners", "is_asked"), [(("s", "s"), True), (("s", "t"), False), (("s", None), False)])
async def test_several_calls_of_one_owner_have_one_caller(
    table: Table, owners: tuple[str | None, str | None], is_asked: bool
) -> None:
    for number, owner in enumerate(owners):
        table.asked.begin(number, Asker("x", owner))
    assert (table.take(1) is None) is is_asked


async def test_a_call_that_was_given_up_may_still_ask_so_for_a_while_no_other_caller_is_taken_for_its_own(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        table.asked.begin(number, Asker("x"))
    table.asked.given_up(1)
    assert table.take(10)["error"]["code"] == -32600
    assert table.take(11, for_request=2) is None
    table.asked.answered(1)
    assert table.take(12) is None
    monkeypatch.setattr(server_request_router, "STRAY_S", 0.0)
    table.asked.begin(3, Asker("y"))
    table.asked.given_up(3)
    assert table.take(13) is None


async def test_only_so_many_given_up_calls_are_remembered(table: Table) -> None:
    for number in range(server_request_router.MAX_STRAYS + 5):
        table.asked.begin(number, Asker("x"))
        table.asked.given_up(number)
    assert len(table.asked.strays) == server_request_router.MAX_STRAYS


async def test_why_there_is_no_answer_is_told_to_the_server(table: Table) -> None:
    own = Asker("a", failure=UnansweredError("refused", ErrorReply(None, -1, "User rejected", b'{"x":1}')))
    other = Asker("b", failure=GatewayFailure(Kind.INTERNAL, "a mistake"))
    for number, asker in ((1, own), (2, other)):
        asker.go.set()
        table.asked.begin(number, asker)
        table.take(number, for_request=number)
    await table.settled()
    errors = {reply["id"]: reply["error"] for reply in table.replies}
    assert errors[1] == {"code": -1, "message": "User rejected", "data": {"x": 1}}
    assert errors[2] == {"code": -32603, "message": "a mistake"}


async def test_a_call_that_ends_makes_its_questions_moot_and_says_so(table: Table) -> None:
    table.asked.begin(1, Asker("a"))
    table.take(10, "elicitation/create", b"{}")
    table.take(11, "roots/list")
    await asyncio.sleep(0)
    table.asked.answered(1)
    await table.settled()
    said = {reply["id"]: reply.get("result") or reply["error"]["code"] for reply in table.replies}
    assert said == {10: {"action": "cancel"}, 11: -32603}


async def test_a_withdrawn_question_is_not_answered(table: Table) -> None:
    asker = Asker("a")
    table.asked.begin(1, asker)
    table.take(10)
    await asyncio.sleep(0)
    table.asked.withdraw(10)
    table.asked.withdraw("nothing")
    await table.settled()
    table.asked.answered(1)
    assert table.replies == []


async def test_the_end_of_a_call_does_not_cut_off_an_answer_on_its_way() -> None:
    sent, may_finish = asyncio.Event(), asyncio.Event()
    replies: list[bytes] = []

    async def slowly(text: bytes) -> None:
        sent.set()
        await may_finish.wait()
        replies.append(text)

    made, asker = ServerRequestRouter(slowly, replies.append), Asker("a")
    asker.go.set()
    made.begin(1, asker)
    made.take(Request(b"9", 9, "roots/list"), None)
    await asyncio.wait_for(sent.wait(), 5)
    made.answered(1)
    may_finish.set()
    await eventually(lambda: replies)
    assert json.loads(replies[0])["result"] == {"by": "a"}
    await made.close()


async def test_questions_are_bounded_at_once_by_call_and_by_size(table: Table) -> None:
    asker = Asker("a")
    table.asked.begin(1, asker)
    for number in range(MAX_OPEN):
        assert table.take(number) is None
    assert table.take(0)["error"]["code"] == -32600
    assert "wait" in table.take(MAX_OPEN)["error"]["message"]
    asker.go.set()
    await table.settled()
    for number in range(MAX_OPEN, MAX_OF_A_CALL):
        assert table.take(number) is None
        await table.settled()
    assert "at most" in table.take(MAX_OF_A_CALL)["error"]["message"]
    table.asked.begin(2, asker)
    assert table.take(1, params=b"{" + b" " * MAX_QUESTION_BYTES + b"}", for_request=2)["error"]["code"] == -32602
    assert table.take(2, for_request=2) is None


async def test_the_end_of_a_visit_is_told_to_whoever_was_sent_there(table: Table) -> None:
    asker, other = Asker("a"), Asker("b")
    table.asked.begin(1, asker)
    table.asked.begin(2, other)
    table.take(10, "elicitation/create", b'{"mode":"url","elicitationId":"e1"}', for_request=1)
    done = b'{"elicitationId":"e1"}'
    for params in (done, done, b'{"elicitationId":"e2"}', b"[]", b"{}"):
        table.asked.completed(params)
    assert asker.told == [(COMPLETED, done)]
    assert other.told == []


async def test_only_so_many_visits_are_remembered(table: Table) -> None:
    for number in range(MAX_URLS + 1):
        asker = Asker("a")
        asker.go.set()
        table.asked.begin(number, asker)
        table.take(number, "elicitation/create", b'{"elicitationId":"e%d"}' % number, for_request=number)
        await table.settled()
        table.asked.answered(number)
        if number == 0:
            first = asker
    table.asked.completed(b'{"elicitationId":"e0"}')
    table.asked.completed(b'{"elicitationId":"e%d"}' % MAX_URLS)
    assert (first.told, len(asker.told)) == ([], 1)
