"""Children run once for several borrowers: real processes, borrowed through the channel workers use."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from pactgate.config.sections.limits import Limits
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.demo import pocket
from pactgate.protocol.messages import encode_json, value
from pactgate.upstreams.dialer import Dialer, Session
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.lent import Loan
from pactgate.upstreams.process.child_reaper import Guardian
from pactgate.workers.lending import Lending
from tests.support.children import children, descriptors
from tests.support.loops import on_both_loops
from tests.support.processes import running_children
from tests.support.servers import methods, scripted

POCKET = Path(pocket.__file__)


class Lender:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.lending = Lending(self.events.append, Limits())

    async def lend(self, config: ServerConfig) -> Loan:
        facts, (descriptor,) = await self.lending.lend(config)
        return Loan(descriptor, facts["pid"], facts["sandbox"])

    async def borrow(self, config: ServerConfig) -> Session:
        """As a worker does."""
        dialer = Dialer(
            config,
            client=HttpClient(),
            guardian=Guardian(),
            emit=self.events.append,
            client_info={"name": "tests", "version": "1"},
            max_frame_bytes=Limits().max_upstream_frame_bytes,
            lend=self.lend,
        )
        return await asyncio.wait_for(dialer.dial(), 10)


@asynccontextmanager
async def lender() -> AsyncIterator[Lender]:
    before = descriptors(), children()
    one = Lender()
    try:
        yield one
    finally:
        await one.lending.close()
    assert (descriptors(), children()) == before


async def call(session: Session, tool: str, **arguments: Any) -> str:
    members = {"name": Raw(encode_json(tool)), "arguments": Raw(encode_json(arguments))}
    text: str = value(await asyncio.wait_for(session.peer.request("tools/call", members), 5))["content"][0]["text"]
    return text


@pytest.mark.parametrize("era", ["legacy", "modern", "dual"])
@on_both_loops
async def test_two_borrowers_have_one_child_in_either_era_which_is_greeted_once(tmp_path: Path, era: str) -> None:
    log = tmp_path / "log"
    config = scripted(options={"era": era, "log": str(log)})
    async with lender() as one:
        sessions = await asyncio.gather(*(one.borrow(config) for _ in range(2)))
        assert {session.identity.era.value for session in sessions} == {"legacy" if era == "legacy" else "modern"}
        pids = {await call(session, "pid") for session in sessions}
        assert pids == {str(session.pid) for session in sessions}
        assert len(running_children()) == len(pids) == 1
        greetings = [method for method in methods(log) if method in ("initialize", "server/discover")]
        assert len(greetings) == len(set(greetings))
        assert [session.peer.channel.answers_in_send for session in sessions] == [False, False]
        await sessions[0].peer.close()
        assert await call(sessions[1], "echo", text="still here") == "still here"
        await sessions[1].peer.close()
        assert running_children() == [], "who let go last has waited for its end"


@on_both_loops
async def test_a_death_is_told_to_all_and_the_next_to_ask_has_it_started_again_once() -> None:
    config = scripted()
    async with lender() as one:
        sessions = [await one.borrow(config) for _ in range(2)]
        with pytest.raises(GatewayFailure, match="ended with exit code 7"):
            await call(sessions[0], "crash")
        reason = await asyncio.wait_for(sessions[1].peer.ended(), 5)
        assert reason.kind is Kind.CONNECTION_LOST
        assert reason.details["exitCode"] == 7
        again = await asyncio.gather(*(one.borrow(config) for _ in range(2)))
        assert len({await call(session, "pid") for session in again}) == 1
        for session in (*sessions, *again):
            await session.peer.close()


async def test_a_server_that_dies_of_the_probe_is_greeted_the_old_way_by_all() -> None:
    config = scripted(options={"exit_on_probe": True})
    async with lender() as one:
        sessions = await asyncio.gather(*(one.borrow(config) for _ in range(2)))
        assert {session.identity.era.value for session in sessions} == {"legacy"}
        assert len({await call(session, "pid") for session in sessions}) == 1
        for session in sessions:
            await session.peer.close()


async def test_other_settings_are_another_child_and_what_is_looked_up_elsewhere_is_not() -> None:
    config = scripted()
    async with lender() as one:
        sessions = [
            await one.borrow(config),
            await one.borrow(replace(config, request_timeout_ms=1234)),
            await one.borrow(replace(config, env={"OTHER": "1"})),
        ]
        assert len({await call(session, "pid") for session in sessions}) == 2
        assert len(one.lending) == 2
        for session in sessions:
            await session.peer.close()


async def test_a_file_of_python_tools_is_run_once_too() -> None:
    async with lender() as one:
        sessions = [await one.borrow(ServerConfig(id="pocket", tools=str(POCKET))) for _ in range(2)]
        assert [session.is_ours for session in sessions] == [True, True]
        assert {session.effects_level for session in sessions} == {"observed"}
        assert len({session.pid for session in sessions}) == len(running_children()) == 1
        assert await call(sessions[0], "fib", n=10) == await call(sessions[1], "fib", n=10)
        for session in sessions:
            await session.peer.close()


async def test_a_program_that_can_t_be_started_is_said_as_it_would_be_without_workers() -> None:
    async with lender() as one:
        with pytest.raises(GatewayFailure, match="was not found on PATH") as refused:
            await one.borrow(ServerConfig(id="files", command="no-such-program-anywhere"))
        assert refused.value.details["permanent"]


async def test_a_request_as_large_as_a_caller_may_send_passes() -> None:
    async with lender() as one:
        session = await one.borrow(scripted())
        text = "x" * (Limits().max_upstream_frame_bytes - 1000)
        assert await call(session, "echo", text=text) == text
        await session.peer.close()


async def test_a_borrower_that_vanishes_leaves_the_child_to_the_others() -> None:
    config = scripted()
    async with lender() as one:
        kept = await one.borrow(config)
        loan = await one.lend(config)
        os.close(loan.descriptor)
        assert await call(kept, "echo", text="on") == "on"
        await kept.peer.close()
