"""The client session: own ids, answers matched once, progress and cancellation passed on, nothing an upstream sends can hurt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Raw

from pactgate.core.events import Event, InternalFailure, UpstreamNoise
from pactgate.core.failures import GatewayFailure, Kind, Party, Verdict
from pactgate.protocol import messages
from pactgate.protocol.era_bridge import Question
from pactgate.protocol.messages import Response
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era
from pactgate.upstreams.peer import Peer, UpstreamReplyError
from tests.support.eventually import eventually
from tests.support.scripted_channel import ScriptedChannel
from tests.support.stepping import Stepped

INFO = {"name": "pactgate", "version": "0"}
PV = "io.modelcontextprotocol/protocolVersion"
CC = "io.modelcontextprotocol/clientCapabilities"


class Talk:
    def __init__(self, channel: ScriptedChannel) -> None:
        self.channel = channel
        self.events: list[Event] = []
        self.peer = Peer("files", channel, self.events.append, INFO)

    async def ask(self, method: str = "tools/call", **more: Any) -> bytes:
        return (await self.send(method, **more)).result

    async def send(self, method: str = "tools/call", **more: Any) -> Response:
        return await self.peer.send(method, {"name": Raw(b'"x"')}, **more)


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    made = Talk(ScriptedChannel())
    await made.peer.open()
    made.peer.settle(Era.LEGACY, LATEST_LEGACY)
    yield made
    await made.peer.close()


async def test_an_answer_is_returned_as_the_bytes_the_upstream_wrote(talk: Talk) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    talk.channel.say(b'{"jsonrpc":"2.0","id":1,"result":{"big":18446744073709551616,  "f":0.30000000000000004}}')
    assert await asking == b'{"big":18446744073709551616,  "f":0.30000000000000004}'


async def test_answers_in_any_order_reach_the_request_they_belong_to(talk: Talk) -> None:
    asked = [asyncio.create_task(talk.ask()) for _ in range(50)]
    await talk.channel.until_sent(50)
    for message in reversed(talk.channel.sent):
        talk.channel.say({"id": message["id"], "result": {"for": message["id"]}})
    answers = [json.loads(answer)["for"] for answer in await asyncio.gather(*asked)]
    assert answers == [message["id"] for message in talk.channel.sent]
    assert len(set(answers)) == 50


async def test_foreign_doubled_and_wrongly_typed_ids_are_dropped(talk: Talk) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    talk.channel.say({"id": 999, "result": {"wrong": True}})
    talk.channel.say({"id": "1", "result": {"wrong": True}})
    talk.channel.say({"id": 1, "result": {"right": True}})
    talk.channel.say({"id": 1, "result": {"second": True}})
    assert json.loads(await asking) == {"right": True}


async def test_an_error_answer_keeps_what_the_upstream_said(talk: Talk) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    talk.channel.say({"id": 1, "error": {"code": -5, "message": "no", "data": {"big": 1}}})
    with pytest.raises(UpstreamReplyError) as caught:
        await asking
    assert caught.value.kind is Kind.UPSTREAM_ERROR
    assert (caught.value.server, caught.value.operation) == ("files", "tools/call")
    assert caught.value.reply.code == -5
    assert json.loads(caught.value.reply.data or b"") == {"big": 1}


@pytest.mark.parametrize(("code", "verdict"), [(-32601, Verdict.DID_NOT_RUN), (-32000, Verdict.MAY_HAVE_RUN)])
async def test_a_refused_method_did_not_run_and_any_other_error_may_have(
    talk: Talk, code: int, verdict: Verdict
) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    talk.channel.say({"id": 1, "error": {"code": code, "message": "no"}})
    with pytest.raises(UpstreamReplyError) as caught:
        await asking
    assert caught.value.verdict is verdict


async def test_a_legacy_request_carries_foreign_meta_and_no_envelope(talk: Talk) -> None:
    talk.channel._script = lambda message: {"id": message["id"], "result": {}}
    await talk.ask(meta={"com.example/x": Raw(b"null")})
    await talk.ask()
    assert talk.channel.sent[0]["params"]["_meta"] == {"com.example/x": None}
    assert "_meta" not in talk.channel.sent[1]["params"]


async def test_a_modern_request_carries_a_fresh_envelope_beside_foreign_meta() -> None:
    talk = Talk(ScriptedChannel(lambda message: {"id": message["id"], "result": {}}))
    await talk.peer.open()
    talk.peer.settle(Era.MODERN, LATEST_MODERN)
    await talk.ask(meta={"com.example/x": Raw(b"1")})
    await talk.ask()
    first, second = (message["params"]["_meta"] for message in talk.channel.sent)
    assert first[PV] == second[PV] == LATEST_MODERN
    assert first["com.example/x"] == 1
    assert second["io.modelcontextprotocol/clientInfo"] == INFO
    assert second["io.modelcontextprotocol/clientCapabilities"] == {}
    await talk.peer.close()


async def test_progress_goes_to_the_request_whose_token_it_names_and_to_no_other(talk: Talk) -> None:
    heard: list[dict[str, Raw]] = []
    asking = asyncio.create_task(talk.ask(on_progress=heard.append))
    other = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(2)
    token = talk.channel.sent[0]["params"]["_meta"]["progressToken"]
    for odd in ("nobody", 12345, None, [1], token):
        talk.channel.say({"method": "notifications/progress", "params": {"progressToken": odd, "progress": 1}})
    talk.channel.say({"method": "notifications/progress", "params": {"progress": 1}})
    talk.channel.say({"id": 1, "result": {}})
    talk.channel.say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 2}})
    talk.channel.say({"id": 2, "result": {}})
    await asyncio.gather(asking, other)
    assert [bytes(item["progress"]) for item in heard] == [b"1"]


async def test_cancelling_a_request_tells_the_upstream_and_drops_the_late_answer(talk: Talk) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await talk.channel.until_sent(2)
    told = talk.channel.sent[1]
    assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", 1)
    talk.channel.say({"id": 1, "result": {"late": True}})
    again = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(3)
    talk.channel.say({"id": talk.channel.sent[2]["id"], "result": {"fresh": True}})
    assert json.loads(await again) == {"fresh": True}


async def test_where_closing_cancels_and_for_initialize_nothing_is_said() -> None:
    talk = Talk(ScriptedChannel(closing_cancels=True))
    await talk.peer.open()
    plain = Talk(ScriptedChannel())
    await plain.peer.open()
    asking = [asyncio.create_task(talk.ask()), asyncio.create_task(plain.ask("initialize", cancellable=False))]
    await talk.channel.until_sent(1)
    await plain.channel.until_sent(1)
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    await asyncio.sleep(0)
    assert len(talk.channel.sent) == len(plain.channel.sent) == 1
    await talk.peer.close()
    await plain.peer.close()


async def test_a_lost_channel_fails_everything_in_flight_at_once_and_refuses_what_comes_later(talk: Talk) -> None:
    asked = [asyncio.create_task(talk.ask()) for _ in range(3)]
    await talk.channel.until_sent(3)
    talk.channel.lose(GatewayFailure(Kind.CONNECTION_LOST, "files exited"))
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(item, GatewayFailure) and item.kind is Kind.CONNECTION_LOST for item in results)
    assert len({id(item) for item in results}) == 3
    assert not talk.peer.is_open
    assert (await talk.peer.ended()).message == "files exited"
    with pytest.raises(GatewayFailure) as caught:
        await talk.ask()
    assert caught.value.verdict is Verdict.DID_NOT_RUN
    assert len(talk.channel.sent) == 3


async def test_a_send_that_fails_names_the_server_and_the_operation(talk: Talk) -> None:
    talk.channel.refuses = GatewayFailure(Kind.CONNECTION_LOST, "broken pipe")
    with pytest.raises(GatewayFailure) as caught:
        await talk.ask()
    assert (caught.value.server, caught.value.operation) == ("files", "tools/call")


async def test_an_exchange_that_ends_without_its_answer_is_an_invalid_frame() -> None:
    talk = Talk(ScriptedChannel(lambda message: {"id": 77, "result": {}}, answers_in_send=True))
    await talk.peer.open()
    with pytest.raises(GatewayFailure) as caught:
        await talk.ask()
    assert caught.value.kind is Kind.INVALID_FRAME
    await talk.peer.close()


async def test_a_servers_ping_is_answered_and_any_other_question_refused(talk: Talk) -> None:
    talk.channel.say({"id": "p", "method": "ping"})
    talk.channel.say({"id": 5, "method": "sampling/createMessage", "params": {}})
    await talk.channel.until_sent(2)
    assert talk.channel.sent[0] == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert talk.channel.sent[1]["error"]["code"] == -32601


async def test_a_server_that_floods_us_with_questions_can_not_fill_our_memory() -> None:
    channel = ScriptedChannel()
    talk = Talk(channel)
    await talk.peer.open()
    for number in range(10_000):
        channel.say({"id": number, "method": "roots/list"})
    assert len(talk.peer._background) <= 64
    await talk.peer.close()


async def test_what_can_not_be_read_is_noted_and_harms_nobody(talk: Talk) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    for odd in (
        b"nonsense",
        b"[]",
        b"{}",
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}',
        b"\xff",
        b"1",
    ):
        talk.channel.say(odd)
    talk.channel.say({"id": 1, "result": {}})
    assert await asking == b"{}"
    assert len([event for event in talk.events if isinstance(event, UpstreamNoise)]) == 6


async def test_notices_go_to_whoever_listens(talk: Talk) -> None:
    heard: list[str] = []
    talk.channel.say({"method": "notifications/tools/list_changed"})
    talk.peer.on_notice = lambda notification: heard.append(notification.method)
    talk.channel.say({"method": "notifications/tools/list_changed"})
    assert heard == ["notifications/tools/list_changed"]


async def test_closing_fails_what_waits_and_closes_the_channel() -> None:
    talk = Talk(ScriptedChannel())
    await talk.peer.open()
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    await talk.peer.close()
    with pytest.raises(GatewayFailure):
        await asking
    assert talk.channel.is_closed


def tagged(method: str, id_: Any) -> dict[str, Any]:
    return {"method": method, "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": id_}}}


async def test_what_is_tagged_with_a_listen_goes_to_whoever_listens_and_the_rest_to_nobody_in_particular(
    talk: Talk,
) -> None:
    heard: list[str] = []
    others: list[str] = []
    talk.peer.on_notice = lambda notice: others.append(notice.method)
    listening = asyncio.create_task(
        talk.ask("subscriptions/listen", on_change=lambda notice: heard.append(notice.method))
    )
    await talk.channel.until_sent(1)
    for id_, method in (
        (1, "notifications/a"),
        ("1", "notifications/b"),
        (9, "notifications/c"),
        (1, "notifications/d"),
    ):
        talk.channel.say(tagged(method, id_))
    talk.channel.say({"method": "notifications/e", "params": {"_meta": 7}})
    assert (heard, others) == (["notifications/a", "notifications/d"], [f"notifications/{each}" for each in "bce"])
    talk.channel.say({"id": 1, "result": {"resultType": "complete"}})
    assert json.loads(await listening) == {"resultType": "complete"}


async def test_a_server_may_end_a_listen_by_cancelling_it_and_nothing_else(talk: Talk) -> None:
    listening = asyncio.create_task(talk.ask("subscriptions/listen", on_change=lambda notice: None))
    calling = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(2)
    for id_ in (2, "1", 1):
        talk.channel.say({"method": "notifications/cancelled", "params": {"requestId": id_}})
    assert await listening == b"{}"
    assert not calling.done()
    talk.channel.say({"id": 2, "result": {}})
    assert await calling == b"{}"


LOG = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}


async def test_a_log_message_on_the_stream_of_a_request_is_that_requests(talk: Talk) -> None:
    heard: list[int] = []
    asked = [asyncio.create_task(talk.ask(owner=f"o{n}", on_log=lambda notice, n=n: heard.append(n))) for n in (1, 2)]
    await talk.channel.until_sent(2)
    text = json.dumps({"jsonrpc": "2.0", **LOG}).encode()
    for stream in (2, 1, 7, None):
        talk.peer.receive(text, stream)
    assert heard == [2, 1]
    assert talk.peer.unattributed_logs == 2
    for id_ in (1, 2):
        talk.channel.say({"id": id_, "result": {}})
    await asyncio.gather(*asked)


async def test_a_log_message_beside_any_stream_is_of_the_only_request_under_way(talk: Talk) -> None:
    heard: list[str] = []
    asking = asyncio.create_task(talk.ask(owner="me", on_log=lambda notice: heard.append("mine")))
    await talk.channel.until_sent(1)
    talk.channel.say(LOG)
    other = asyncio.create_task(talk.ask(owner="me"))
    await talk.channel.until_sent(2)
    talk.channel.say(LOG)  # now there are two
    talk.channel.say({"id": 2, "result": {}})
    await other
    talk.channel.say(LOG)
    assert heard == ["mine", "mine"]
    talk.channel.say({"id": 1, "result": {}})
    await asking
    talk.channel.say(LOG)
    assert talk.peer.unattributed_logs == 2


# What the upstream asks back


class Answering:
    owner = None

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.told: list[str] = []

    async def ask(self, question: Question) -> bytes:
        self.asked.append(question)
        return b'{"roots":[]}'

    def tell(self, method: str, params: bytes) -> None:
        self.told.append(method)


async def test_a_question_goes_to_whoever_answers_for_the_call_and_the_answer_to_the_upstream(talk: Talk) -> None:
    asker = Answering()
    asking = asyncio.create_task(talk.ask(asker=asker))
    await talk.channel.until_sent(1)
    talk.channel.say({"id": "q", "method": "roots/list"})
    await talk.channel.until_sent(2)
    assert talk.channel.sent[1] == {"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}
    talk.channel.say({"method": "notifications/elicitation/complete", "params": {"elicitationId": "e"}})
    talk.channel.say({"id": 1, "result": {}})
    await asking
    assert asker.asked == [Question("roots/list")]


async def test_a_question_in_one_breath_with_the_answer_is_after_the_call(talk: Talk) -> None:
    asker = Answering()
    asking = asyncio.create_task(talk.ask(asker=asker))
    await talk.channel.until_sent(1)
    talk.channel.say({"id": 1, "result": {}})
    talk.channel.say({"id": "q", "method": "roots/list"})
    await asking
    await talk.channel.until_sent(2)
    assert talk.channel.sent[1]["error"]["code"] == -32601
    assert asker.asked == []


async def test_an_upstream_can_take_its_question_back(talk: Talk) -> None:
    class Slow(Answering):
        async def ask(self, question: Question) -> bytes:
            await super().ask(question)
            await asyncio.Event().wait()
            return b""

    asker = Slow()
    asking = asyncio.create_task(talk.ask(asker=asker))
    await talk.channel.until_sent(1)
    talk.channel.say({"id": "q", "method": "roots/list"})
    await eventually(lambda: asker.asked)
    unfit: tuple[dict[str, Any], ...] = ({"requestId": "q"}, {"requestId": []}, {})
    for params in unfit:
        talk.channel.say({"method": "notifications/cancelled", "params": params})
    talk.channel.say({"id": 1, "result": {}})
    await asking
    talk.peer.tell("notifications/roots/list_changed")
    await talk.channel.until_sent(2)
    assert [message.get("method") for message in talk.channel.sent[1:]] == ["notifications/roots/list_changed"]


async def test_a_modern_upstream_is_told_the_callers_capabilities_with_the_request() -> None:
    talk = Talk(ScriptedChannel(lambda message: {"id": message["id"], "result": {}}))
    await talk.peer.open()
    talk.peer.settle(Era.MODERN, LATEST_MODERN)
    await talk.ask(capabilities=b'{"roots":{}}')
    await talk.ask()
    told = [message["params"]["_meta"][CC] for message in talk.channel.sent]
    assert told == [{"roots": {}}, {}]
    await talk.peer.close()


# Without a task


@pytest.fixture
async def modern_talk() -> AsyncIterator[Talk]:
    made = Talk(ScriptedChannel())
    await made.peer.open()
    made.peer.settle(Era.MODERN, LATEST_MODERN)
    yield made
    await made.peer.close()


async def test_a_request_without_a_task_waits_for_nothing_but_its_answer_and_has_it_when_it_is_read(
    modern_talk: Talk,
) -> None:
    stepped = Stepped(modern_talk.send())
    assert stepped.waits_on_the_spot
    assert len(modern_talk.channel.sent) == 1
    modern_talk.channel.say({"id": 1, "result": {"content": [], "isError": False}})
    (response,) = stepped.told
    assert json.loads(response.result) == {"content": [], "isError": False}
    assert response.simple is not None
    modern_talk.channel.say({"id": 1, "result": {"content": [1]}})
    assert len(stepped.told) == 1
    assert modern_talk.peer.is_idle


async def test_a_request_without_a_task_says_what_one_in_a_task_says(modern_talk: Talk) -> None:
    talk = modern_talk
    talk.channel._script = lambda message: {"id": message["id"], "result": {}}
    for more in ({}, {"meta": {"com.example/x": Raw(b"1")}}, {"capabilities": b'{"sampling":{}}'}):
        assert len(Stepped(talk.send(**more)).told) == 1
        await asyncio.create_task(talk.send(**more))
        first, second = talk.channel.sent[-2:]
        assert {**first, "id": 0} == {**second, "id": 0}


async def test_a_request_returns_the_bytes_of_what_send_returns_read(talk: Talk) -> None:
    talk.channel._script = lambda message: {"id": message["id"], "result": {"content": [], "n": 1}}
    response = await talk.send()
    assert (response.key, response.simple) == (1, None)
    assert await talk.peer.request("tools/call", {}) == response.result


async def test_a_request_that_is_refused_unanswered_or_cut_off_says_who_and_what(modern_talk: Talk) -> None:
    talk = modern_talk
    refused = Stepped(talk.send())
    talk.channel.say({"id": 1, "error": {"code": -5, "message": "no"}})
    talk.channel.answers_in_send = True
    unanswered = Stepped(talk.send())
    talk.channel.answers_in_send = False
    lost = Stepped(talk.send())
    talk.channel.lose(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
    failures = [stepped.told[0] for stepped in (refused, unanswered, lost)]
    assert isinstance(failures[0], UpstreamReplyError)
    assert [failure.kind for failure in failures] == [Kind.UPSTREAM_ERROR, Kind.INVALID_FRAME, Kind.CONNECTION_LOST]
    assert {(failure.server, failure.operation) for failure in failures[:2]} == {("files", "tools/call")}
    assert failures[2].operation == "tools/call"
    assert talk.peer.is_idle


async def test_cancelling_a_request_without_a_task_tells_the_server_and_nobody_else(modern_talk: Talk) -> None:
    stepped = Stepped(modern_talk.send())
    stepped.cancel()
    modern_talk.channel.say({"id": 1, "result": {}})
    await modern_talk.channel.until_sent(2)
    assert modern_talk.channel.sent[1]["params"]["requestId"] == 1
    assert [type(told) for told in stepped.told] == [asyncio.CancelledError]
    assert modern_talk.peer.is_idle


async def test_progress_of_a_request_without_a_task_is_relayed_until_it_is_answered(modern_talk: Talk) -> None:
    heard: list[Any] = []
    stepped = Stepped(modern_talk.send(on_progress=heard.append))
    assert modern_talk.channel.sent[0]["params"]["_meta"]["progressToken"] == 1
    for progress in (1, 2):
        params = {"progressToken": 1, "progress": progress}
        modern_talk.channel.say({"method": "notifications/progress", "params": params})
        modern_talk.channel.say({"id": 1, "result": {}})
    assert heard == [{"progress": Raw(b"1")}]
    assert len(stepped.told) == 1


async def test_what_can_not_be_sent_leaves_nothing_behind(modern_talk: Talk) -> None:
    talk = modern_talk
    talk.channel.refuses = GatewayFailure(Kind.INVALID_REQUEST, "unsendable")
    (failure,) = Stepped(talk.send(on_progress=lambda members: None, asker=Answering())).told
    assert (failure.message, failure.server) == ("unsendable", "files")
    assert talk.peer.is_idle
    talk.channel.refuses = None
    talk.channel.lose(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
    (late,) = Stepped(talk.send()).told
    assert late.verdict is Verdict.DID_NOT_RUN
    assert talk.channel.sent == []


async def test_a_request_that_goes_on_may_send_the_next_from_the_readers_stack(modern_talk: Talk) -> None:
    async def twice() -> list[bytes]:
        return [await modern_talk.ask(), await modern_talk.ask()]

    stepped = Stepped(twice())
    modern_talk.channel.say({"id": 1, "result": {"n": 1}})
    assert len(modern_talk.channel.sent) == 2
    modern_talk.channel.say({"id": 2, "result": {"n": 2}})
    assert [[json.loads(text)["n"] for text in told] for told in stepped.told] == [[1, 2]]


# Listeners that raise


def raising(*_: object) -> None:
    raise RuntimeError("a bug of a listener")


PROGRESS = {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}


@pytest.mark.parametrize(
    ("listeners", "notice"),
    [
        ({"on_progress": raising}, PROGRESS),
        ({"on_log": raising, "owner": "a"}, LOG),
        ({"on_change": raising}, tagged("notifications/tools/list_changed", 1)),
        ({}, {"method": "notifications/tools/list_changed"}),
    ],
    ids=["progress", "log", "change", "notice"],
)
async def test_a_listener_that_raises_loses_no_answer_that_was_read_with_its_notification(
    talk: Talk, listeners: dict[str, Any], notice: dict[str, Any]
) -> None:
    """One chunk of a pipe: the notification first, the answers behind it."""
    talk.peer.on_notice = raising
    asked = [asyncio.create_task(talk.ask(**listeners)), asyncio.create_task(talk.ask(owner="b"))]
    await talk.channel.until_sent(2)
    chunk = [notice, {"id": 2, "result": {}}, notice, {"id": 1, "result": {}}]
    faults: list[Exception] = []
    for message in chunk:
        try:
            talk.peer.receive(json.dumps({"jsonrpc": "2.0", **message}).encode(), 1 if message is LOG else None)
        except RuntimeError as fault:
            faults.append(fault)
    async with asyncio.timeout(5):
        assert await asyncio.gather(*asked) == [b"{}", b"{}"]
    assert faults == [], "a reader would have lost what stands behind it in the chunk"
    assert talk.peer.is_idle


async def test_an_end_of_the_channel_reaches_every_request_whatever_each_does_with_it(talk: Talk) -> None:
    stepped = [Stepped(talk.send()) for _ in range(3)]
    tasks = [asyncio.create_task(talk.send()) for _ in range(2)]
    await talk.channel.until_sent(5)
    talk.channel.lose(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
    assert [told.kind for each in stepped for told in each.told] == [Kind.CONNECTION_LOST] * 3
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(item, GatewayFailure) for item in results)


async def test_an_answer_with_a_member_twice_fails_its_request_at_once(talk: Talk) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    talk.channel.say(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true,"isError":false}}')
    with pytest.raises(GatewayFailure, match="twice") as refused:
        await asking
    assert (refused.value.kind, refused.value.party) == (Kind.MALFORMED_RESULT, Party.UPSTREAM)


@pytest.mark.parametrize(
    "inside",
    [
        b'"_meta":{"dev.pactgate/page":1,"a":1,"a":2}',
        b'"_meta":{"dev.pactgate/page":1},"isError":true,"isError":false',
        b'"structuredContent":{"a":1,"a":2},"_meta":{"dev.pactgate/page":1}',
    ],
)
async def test_removing_our_own_meta_does_not_hide_a_key_that_stands_twice(talk: Talk, inside: bytes) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    talk.channel.say(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],%b}}' % inside)
    with pytest.raises(GatewayFailure, match="twice"):
        await asking


async def test_a_fault_in_one_message_stays_with_it_and_the_next_one_is_read(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    decode = messages.decode_from_upstream

    def decode_or_break(data: bytes) -> Any:
        return 1 // 0 if b"boom" in data else decode(data)

    monkeypatch.setattr(messages, "decode_from_upstream", decode_or_break)
    talk.channel.say(b'{"jsonrpc":"2.0","id":9,"result":"boom"}')
    talk.channel.say(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert await asking == b"{}"
    assert [type(event) for event in talk.events] == [InternalFailure]


async def test_large_data_of_an_error_is_left_out_and_its_size_said(talk: Talk) -> None:
    asking = asyncio.create_task(talk.ask())
    await talk.channel.until_sent(1)
    data = b"[%b1]" % (b"1," * 100_000)
    talk.channel.say(b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":%b}}' % data)
    with pytest.raises(UpstreamReplyError) as refused:
        await asking
    assert refused.value.details["upstream"] == {"code": -1, "message": "no", "dataBytes": len(data)}
    assert refused.value.reply.data is None
