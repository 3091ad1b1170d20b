"""One worker and an owner that answers as it is told: what the worker asks, and what it does when it is asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pactgate.app import Gateway, build
from pactgate.config.model import Config, Listen
from pactgate.core.events import WorkerStarted
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.pipeline.live_configuration import Standing, Wish
from pactgate.workers import listening, packets
from pactgate.workers.crew import Hello, Member
from pactgate.workers.epochs import size_bytes
from pactgate.workers.homes import Place
from pactgate.workers.link import Fds, Link
from pactgate.workers.parcels import pack, unpack
from tests.support.children import descriptors
from tests.support.facing import until
from tests.support.raw_http import RawClient, get

CONFIG = Config(listen=Listen(host="127.0.0.1", port=0))


class Owner:
    """The other end of a worker's link."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.notices: list[str] = []
        self.answer: Callable[[str, Any], Any] = lambda name, body: [[1, True]] if name == "others" else True
        self.end, self.worker_end = packets.pair()
        self.link = Link(self.end, self._notice, self._question, lambda: None)

    def _notice(self, name: str, body: Any, fds: Fds) -> None:
        self.notices.append(name)

    async def _question(self, name: str, body: Any) -> tuple[Any, Fds]:
        self.asked.append((name, body))
        return self.answer(name, body), ()

    async def ask(self, name: str, body: Any = None) -> Any:
        return (await self.link.ask(name, body, timeout_s=5))[0]


class Worker:
    def __init__(self, owner: Owner, member: Member, gateway: Gateway, events: list[Any], port: int) -> None:
        self.owner = owner
        self.member = member
        self.gateway = gateway
        self.events = events
        self.port = port


@asynccontextmanager
async def worker(config: Config = CONFIG) -> AsyncIterator[Worker]:
    before = descriptors()
    owner, stopped, events = Owner(), asyncio.Event(), list[Any]()
    inboxes = [packets.pair() for _ in range(2)]
    epochs = os.memfd_create("epochs")
    os.ftruncate(epochs, size_bytes(2))
    sockets = listening.bind("127.0.0.1", 0)
    host, port = sockets[0].getsockname()
    given = (inboxes[0][0], *(writing for _, writing in inboxes))
    fds = [*(one.dup().detach() for one in given), epochs, *(one.detach() for one in sockets)]
    hello = Hello(Place(0, 2), Standing(config, config, {"naming": ("naming",)}), host, port, "made by the owner")
    member = Member(hello, fds, owner.worker_end, stopped.set)
    gateway = build(config, events.append, member)
    await gateway.serve_http()
    await gateway.start()
    member.ready()
    try:
        yield Worker(owner, member, gateway, events, port)
    finally:
        await gateway.stop(0.0)
        owner.link.close()
        for pair in inboxes:
            listening.close(pair)
    await until(lambda: descriptors() <= before + 1)  # uvloop and asyncio keep one to listen with


async def test_a_worker_serves_at_the_address_it_was_given_and_says_so_to_its_owner() -> None:
    async with worker() as one:
        assert one.gateway.address == f"http://127.0.0.1:{one.port}"
        assert WorkerStarted(1, os.getpid()) in one.events
        await until(lambda: one.owner.notices == ["ready"])
        async with RawClient(one.port) as client:
            assert (await client.ask(get("/health/live"))).status == 200


def test_what_only_one_may_write_has_the_worker_s_name() -> None:
    member = Member.__new__(Member)
    member.place = Place(2, 4)
    assert member.own_file("/logs/audit.jsonl") == str(Path("/logs/audit.worker3.jsonl"))


async def test_a_change_is_made_in_turn_and_agreed_on_with_the_others() -> None:
    async with worker() as one:
        assert one.gateway.configuration.unwritten == ("naming",), "as the owner said"
        done = await one.gateway.configuration.change(Wish(("limits", "maxArraySize"), 5, "ann"))
        assert [name for name, _ in one.owner.asked] == ["turn", "agree"]
        agreed = unpack(one.owner.asked[1][1], Standing)
        assert agreed.config.limits.max_array_size == 5
        assert "limits.maxArraySize" in agreed.unwritten
        assert done.new == 5
        await until(lambda: "turn_over" in one.owner.notices)


async def test_without_a_turn_nothing_is_changed() -> None:
    def refuse(name: str, body: Any) -> Any:
        raise GatewayFailure(Kind.CONFLICT, "another change is under way")

    async with worker() as one:
        one.owner.answer = refuse
        with pytest.raises(GatewayFailure, match="another change"):
            await one.gateway.configuration.change(Wish(("limits", "maxArraySize"), 5, "ann"))
        assert one.gateway.config.limits.max_array_size == CONFIG.limits.max_array_size


async def test_what_others_have_changed_is_taken_over_as_it_stands() -> None:
    async with worker() as one:
        limits = msgspec.structs.replace(CONFIG.limits, max_array_size=9)
        standing = Standing(
            msgspec.structs.replace(CONFIG, limits=limits), CONFIG, {"limits.maxArraySize": ("limits",)}
        )
        assert await one.owner.ask("take_over", pack(standing)) is True
        assert one.gateway.config.limits.max_array_size == 9
        assert one.gateway.configuration.unwritten == ("limits.maxArraySize",)


async def test_a_worker_tells_what_it_has_counted_and_shows_what_all_have() -> None:
    async with worker() as one:
        facts = await one.owner.ask("facts")
        assert facts["calls"] == {"total": 0, "failed": 0}
        assert b"pactgate_connections_handed_over_total 0" in facts["metrics"]
        other = {"metrics": b"# TYPE pactgate_calls_held gauge\npactgate_calls_held 4\n"}
        other |= {"uptimeMs": 5, "calls": {"total": 7, "failed": 2}, "cache": {}, "servers": []}  # type: ignore[dict-item]
        one.owner.answer = lambda name, body: [[1, other if body[0] == "facts" else None]]
        async with RawClient(one.port) as client:
            assert b"pactgate_calls_held 4\n" in (await client.ask(get("/metrics"))).body
            assert (await client.ask(get("/api/status"))).json["calls"] == {"total": 7, "failed": 2}


async def test_calls_of_other_workers_are_listed_and_told() -> None:
    row = {"requestId": "far", "time": "2026", "subject": "anonymous"}
    async with worker() as one:
        one.owner.answer = lambda name, body: [[1, [row] if body[0] == "calls" else row]]
        async with RawClient(one.port) as client:
            assert (await client.ask(get("/api/calls"))).json == {"calls": [row]}
            assert (await client.ask(get("/api/calls/far"))).json == row
        assert await one.member.tell_elsewhere("far") == row
        assert await one.owner.ask("calls") == []
        assert await one.owner.ask("story", "unknown") is None


async def test_an_owner_that_does_not_answer_costs_the_sum_and_not_the_answer() -> None:
    async with worker() as one:
        one.owner.link.close()
        async with RawClient(one.port) as client:
            assert (await client.ask(get("/metrics"))).status == 200


async def test_who_is_away_is_known() -> None:
    async with worker() as one:
        one.owner.link.tell("away", 1)
        await one.owner.ask("calls")
        handover = one.member._handover
        assert handover is not None
        assert handover.away == {1}
        one.owner.link.tell("back", 1)
        await one.owner.ask("calls")
        assert handover.away == set()
