"""A request that lands at the wrong replica: two served endpoints, and real sockets between them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.principal import Principal
from pactgate.inbound.auth import Guard
from pactgate.inbound.hop import HOP_PATH, HopReceiver, HopResponse, HopSender
from pactgate.inbound.hop_message import HopClaims, HopVerifier, encode_hop
from pactgate.pipeline.running_request import RunningRequest
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import LATEST_MODERN
from pactgate.state.owned_ids import OwnedIds, new_replica_id
from pactgate.state.sealing_keys import SealingKeys
from pactgate.upstreams.http.hop_client import HopClient
from tests.support.facing import META, Served, call, credentials, listening, message, modern, serving, until
from tests.support.raw_http import RawClient, get, post, request, spelled

KEYS = SealingKeys(bytes(32))
HOP_KEY = KEYS.keys("hop")[0]
TOKENS = {"first-token-of-ada": ("ada", frozenset({"admin"}))}


class Pair:
    """`here` gets the requests, `there` owns what they are about."""

    def __init__(self, here: Served, there: Served, hop_port: int, replica: str, receiver: HopReceiver) -> None:
        self.here = here
        self.there = there
        self.hop_port = hop_port
        self.replica = replica
        self.receiver = receiver


@asynccontextmanager
async def pair(**guard: Any) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        ids = [new_replica_id(), new_replica_id()]
        served = []
        for replica in ids:
            one = await stack.enter_async_context(
                serving(guard=Guard(host="127.0.0.1", **(guard or {"anonymous": True})))
            )
            one.frontend.sessions.new_id = OwnedIds(KEYS, replica).new
            served.append(one)
        here, there = served
        receiver = HopReceiver(
            HopVerifier(KEYS.keys("hop"), ids[1], time.time), there.frontend.serve_forwarded, there.events.append
        )
        _, port, _ = await stack.enter_async_context(listening(receiver.handle, admit=receiver.admit))
        client, barrier = HopClient(HOP_PATH), FaultBarrier(here.events.append)
        stack.push_async_callback(client.close)
        here.frontend.hops = HopSender(
            replica=ids[0],
            key=HOP_KEY,
            owner_of=OwnedIds(KEYS, ids[0]).owner_of,
            addresses=lambda: {ids[1]: f"127.0.0.1:{port}"},
            send=client.send,
            drive=lambda relay, work: RunningRequest(relay, barrier, work),
            has_session=here.frontend.sessions.has,
            emit=here.events.append,
        )
        yield Pair(here, there, port, ids[1], receiver)


async def event(client: RawClient) -> bytes:
    found = await client.event()
    assert found is not None
    return found.data


async def test_a_request_is_answered_by_its_owner_with_its_principal_and_without_its_credentials() -> None:
    async with pair(credentials=credentials(TOKENS)) as two:
        headers = {"authorization": "Bearer first-token-of-ada"}
        session = await two.there.session(**headers)
        answer = await two.here.ask(post(call("echo", {"text": "x"}), **session))
        assert answer.status == 200
        assert answer.json["result"]["arguments"] == {"text": "x"}
        caller = two.there.kernel.callers[-1]
        assert caller.principal == Principal("ada", frozenset({"admin"}))
        assert caller.peer == "127.0.0.1"
        assert two.here.kernel.callers == []


async def test_a_stream_comes_through_as_it_is_said() -> None:
    async with pair() as two:
        session = await two.there.session()
        async with two.here.client() as client:
            await client.send(post(call("stepwise"), **session))
            assert (await client.head()).status == 200
            assert b'"progress":1' in await event(client)
            two.there.kernel.release.set()
            assert b'"progress":2' in await event(client)
            assert b'"done":true' in await event(client)


async def test_many_and_large_events_come_through_whole_and_in_order() -> None:
    async with pair() as two:
        session = await two.there.session()
        async with two.here.client() as client:
            await client.send(post(call("steps", {"count": 20, "padding": 9000}), **session))
            await client.head()
            for step in range(20):
                assert b'"progress":%d,' % step in await event(client)
            assert b'"done":true' in await event(client)


async def test_a_client_that_goes_away_is_gone_for_the_owner() -> None:
    async with pair() as two:
        session = await two.there.session()
        async with two.here.client() as client:
            await client.send(post(call("hang"), **session))
            await asyncio.wait_for(two.there.kernel.started.wait(), 5)
        await asyncio.wait_for(two.there.kernel.cancelled.wait(), 5)


async def test_a_client_whose_token_is_taken_away_is_stopped_at_the_owner_too() -> None:
    async with pair(credentials=credentials(TOKENS)) as two:
        session = await two.there.session(authorization="Bearer first-token-of-ada")
        async with two.here.client() as client:
            await client.send(post(call("hang"), **session))
            await asyncio.wait_for(two.there.kernel.started.wait(), 5)
            two.here.frontend.replace_guard(Guard(host="127.0.0.1"))
            answer = await client.answer()
            assert answer.status == 401
            assert answer.json["error"]["data"]["failure_mode"] == "cancelled"
            assert answer.json["error"]["data"]["verdict"] == "may_have_run"
        await asyncio.wait_for(two.there.kernel.cancelled.wait(), 5)


async def test_what_an_owner_can_not_be_reached_for_is_said_with_its_verdict() -> None:
    async with pair() as two:
        session = await two.there.session()
        assert two.here.frontend.hops is not None
        two.here.frontend.hops._addresses = lambda: {two.replica: "127.0.0.1:1"}
        answer = await two.here.ask(post(call("echo"), **session))
        assert answer.status == 404
        assert answer.json["error"]["data"]["failure_mode"] == "unknown_session"
        assert answer.json["id"] == 1


async def test_a_fault_on_the_way_stays_with_its_request() -> None:
    async def broken(address: str, message: bytes) -> HopResponse:
        raise LookupError("a fault of ours")

    async with pair() as two:
        session = await two.there.session()
        sender = two.here.frontend.hops
        assert sender is not None
        send, sender._send = sender._send, broken
        assert (await two.here.ask(post(call("echo"), **session))).status == 500
        assert "InternalFailure" in [type(one).__name__ for one in two.here.events]
        sender._send = send
        assert (await two.here.ask(post(call("echo"), **session))).status == 200


async def test_a_session_is_unknown_when_its_replica_was_started_again_at_the_same_address() -> None:
    async with pair() as two:
        session = await two.there.session()
        two.receiver._verifier = HopVerifier(KEYS.keys("hop"), new_replica_id(), time.time)
        answer = await two.here.ask(post(call("echo"), **session))
        assert answer.status == 404
        assert answer.json["error"]["data"]["failure_mode"] == "unknown_session"


async def test_a_session_of_a_replica_that_is_not_known_any_more_is_unknown() -> None:
    async with pair() as two:
        session = await two.there.session()
        assert two.here.frontend.hops is not None
        two.here.frontend.hops._addresses = dict
        for method in ("POST", "DELETE"):
            sent = (
                post(call("echo"), **session)
                if method == "POST"
                else request("DELETE", "/mcp", spelled({"host": "127.0.0.1", **session}))
            )
            answer = await two.here.ask(sent)
            assert answer.status == 404


async def test_a_listening_stream_leads_to_the_owner() -> None:
    async with pair() as two:
        session = await two.there.session()
        async with two.here.client() as client:
            await client.send(get("/mcp", accept="text/event-stream", **session))
            await client.head()
            (owned,) = two.there.frontend.sessions.all()
            await until(lambda: owned.is_listening)
            owned.notify("notifications/message", b'{"data":"x"}')
            assert b'"data":"x"' in await event(client)


async def test_a_request_makes_one_hop_at_most() -> None:
    """The claims name a session that neither has: the receiver says so itself."""
    async with pair() as two:
        strange = OwnedIds(KEYS, new_replica_id()).new()
        claims = HopClaims(
            sender="aa",
            receiver=two.replica,
            method="POST",
            path="/mcp",
            headers={
                "content-type": ["application/json"],
                "accept": ["application/json"],
                "mcp-session-id": [strange],
            },
            principal=Principal("ada"),
            peer="192.0.2.1",
        )
        message = encode_hop(HOP_KEY, encode_json(claims), encode_json(call("echo")), sent_at=time.time(), serial=1)
        async with RawClient(two.hop_port) as client:
            head = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (HOP_PATH.encode(), len(message))
            assert (await client.ask(head + message)).status == 404
            assert (await client.ask(head + message)).status == 421, "a replay"


async def test_a_request_about_a_task_leads_to_its_owner_and_a_tool_call_never_does_by_the_id_of_one() -> None:
    async with pair() as two:
        task = {"taskId": OwnedIds(KEYS, two.replica).new()}
        sender = two.here.frontend.hops
        assert sender is not None
        params = {"_meta": META, **task}
        about = {"mcp_protocol_version": LATEST_MODERN, "mcp_method": "tasks/get", "mcp_name": task["taskId"]}
        await two.here.ask(post(message("tasks/get", params), **about))
        assert (sender.sent, two.receiver.received) == (1, 1)
        assert (await two.here.ask(modern("tools/call", name="echo", arguments=task))).status == 200
        refused = await two.here.ask(post(message("tasks/get", params), **{**about, "mcp_method": "tools/call"}))
        assert refused.status == 400, "its head says something else"
        assert sender.sent == 1


async def test_clients_that_repeat_their_heads_stay_apart_at_the_owner_also_after_its_rights_have_changed() -> None:
    tokens = {**TOKENS, "first-token-of-bob": ("bob", frozenset[str]())}
    async with pair(credentials=credentials(tokens)) as two, two.here.client() as ada, two.here.client() as bob:
        clients = [(name, one, f"Bearer first-token-of-{name}") for name, one in (("ada", ada), ("bob", bob))]
        sessions = {name: await two.there.session(authorization=token) for name, _, token in clients}
        for _ in range(3):
            for name, client, _ in clients:
                answer = await client.ask(post(call("echo", {"name": name}), **sessions[name]))
                assert answer.json["result"]["arguments"] == {"name": name}
            assert [caller.principal.key for caller in two.there.kernel.callers[-2:]] == ["ada", "bob"]
            two.there.frontend.replace_guard(Guard(host="127.0.0.1", credentials=credentials(tokens)))


async def test_nobody_is_served_at_the_address_for_replicas_without_a_signature() -> None:
    async with pair() as two:
        for sent, status in (
            (post(call("echo"), HOP_PATH), 421),
            (post(call("echo")), 404),
            (get("/health"), 404),
            (get(HOP_PATH), 200),
        ):
            async with RawClient(two.hop_port) as client:
                assert (await client.ask(sent)).status == status
        assert two.there.kernel.callers == []
