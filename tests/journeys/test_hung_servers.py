"""A server that stops answering is noticed and replaced; a slow server is not mistaken for one that hangs. Real processes throughout."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.config.sections.limits import Timeouts
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import ServerConnected, ServerHung
from pactgate.upstreams.dialer import Session
from tests.pipeline.conftest import Inside, open_gateway
from tests.support.children import Witness
from tests.support.eventually import elapsed, eventually
from tests.support.hearers import Ear, changing, legacy_caller
from tests.support.processes import children_of, descendants_of
from tests.support.servers import UNLIMITED, scripted

LIGHT_SERVER = Path(__file__).with_name("light_server.py")
CALL_MS = 300
CONNECT_MS = 1000
SHORT: dict[str, Any] = {"request_timeout_ms": CALL_MS, "connection_timeout_ms": CONNECT_MS}
AGAIN_S = 15.0
"""How long after the first timeout the tools of a frozen server may be missing."""


def light(server: str, manner: str, **settings: Any) -> ServerConfig:
    """A server that works on one request at a time."""
    arguments = ("-I", "-S", str(LIGHT_SERVER), manner)
    return ServerConfig(id=server, command=sys.executable, args=arguments, **{**SHORT, **settings})


@asynccontextmanager
async def gateway(*servers: ServerConfig, **overrides: int) -> AsyncIterator[Inside]:
    """`overrides` are time limits of tools in milliseconds."""
    timeouts = Timeouts(tool_overrides=overrides)
    async with open_gateway(*servers, timeouts=timeouts, rate_limits=UNLIMITED) as inside:
        for server in servers:
            supervisor = inside.gateway.connections.servers[server.id]
            await eventually(lambda one=supervisor: one.lists.has_answered)  # type: ignore[misc]
        yield inside


def session_of(inside: Inside, server: str) -> Session:
    session = inside.gateway.connections.servers[server].session
    assert session is not None
    return session


def pid_of(inside: Inside, server: str) -> int:
    pid = session_of(inside, server).pid
    assert pid is not None
    return pid


def freeze(pid: int) -> list[int]:
    """Stop a process and its descendants. Returns all of them."""
    stopped = [pid, *descendants_of(pid)]
    for one in stopped:
        os.kill(one, signal.SIGSTOP)
    return stopped


async def call(inside: Inside, tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return await inside.gateway.invoke(tool, arguments, **more)


def text_of(envelope: dict[str, Any]) -> str:
    assert envelope["success"], envelope
    return str(envelope["data"]["content"][0]["text"])


def failure_of(envelope: dict[str, Any]) -> tuple[str, str]:
    assert not envelope["success"], envelope
    return envelope["error"]["context"]["failure_mode"], envelope["error"]["context"]["verdict"]


def hung(inside: Inside) -> list[str]:
    return [event.server for event in inside.events if isinstance(event, ServerHung)]


async def until_it_answers(inside: Inside, tool: str) -> float:
    """Call a tool until it answers. Returns how long that took."""
    began = time.monotonic()

    async def answers() -> bool:
        return bool((await call(inside, tool, {"text": "hello"}))["success"])

    await eventually(answers, within_s=AGAIN_S)
    return time.monotonic() - began


@pytest.mark.parametrize(
    "server", [light("files", "stubborn"), scripted(era="modern", options={"era": "modern"}, **SHORT)]
)
async def test_the_tools_of_a_frozen_server_answer_again_and_nothing_of_the_frozen_one_is_left(
    server: ServerConfig,
) -> None:
    async with gateway(server) as inside:
        frozen = freeze(pid_of(inside, "files"))
        with Witness(frozen) as witness:
            assert failure_of(await call(inside, "files.echo")) == ("timeout", "may_have_run")
            assert await until_it_answers(inside, "files.echo") < AGAIN_S
            assert hung(inside) == ["files"]
            assert pid_of(inside, "files") not in frozen
            assert witness.living_after(0.01) == set()


async def test_the_calls_that_are_with_a_frozen_server_end_with_their_verdict() -> None:
    async with gateway(light("files", "healthy"), **{"files.slow": 60_000}) as inside:
        freeze(pid_of(inside, "files"))
        short = asyncio.create_task(call(inside, "files.echo"))
        await elapsed(0.05)
        long = asyncio.create_task(call(inside, "files.slow"))
        assert failure_of(await short) == ("timeout", "may_have_run")
        reply = await long
        assert failure_of(reply) == ("connection_lost", "may_have_run")
        assert "hangs" in reply["error"]["message"]


async def test_the_neighbours_of_a_frozen_server_are_as_quick_as_before() -> None:
    async def quickest(inside: Inside, until: asyncio.Task[Any]) -> float:
        """The p90 in seconds of calls to the neighbour, one after the other."""
        took = []
        while not until.done():
            began = time.monotonic()
            assert text_of(await call(inside, "near.echo", {"text": "hello"})) == "hello"
            took.append(time.monotonic() - began)
            await elapsed(0.002)
        return statistics.quantiles(took, n=10)[8]  # a busy machine holds up one or the other

    async with gateway(light("files", "healthy"), light("near", "healthy", request_timeout_ms=10_000)) as inside:
        before_s = await quickest(inside, asyncio.create_task(elapsed(0.5)))
        freeze(pid_of(inside, "files"))
        callers = [asyncio.create_task(until_it_answers(inside, "files.echo")) for _ in range(8)]
        during_s = await quickest(inside, asyncio.create_task(asyncio.wait(callers)))
        assert all(caller.result() < AGAIN_S for caller in callers)
        assert during_s < max(0.25, 5 * before_s), (before_s, during_s)


async def test_a_slow_tool_goes_on_while_other_tools_of_its_server_answer_or_time_out() -> None:
    """The slow tool takes several times as long as a check, as one of 60 s does beside the defaults."""
    overrides = {"files.slow": 60_000}
    async with gateway(scripted(options={"tools": ["slow2"]}, **SHORT), **overrides) as inside:
        pid = pid_of(inside, "files")
        slow = asyncio.create_task(call(inside, "files.slow", {"ms": 2000}))
        while not slow.done():
            assert failure_of(await call(inside, "files.slow2", {"ms": 60_000, "deaf": True}))[0] == "timeout"
            assert (await call(inside, "files.echo", {"text": "quick"}))["success"]
        assert text_of(await slow) == "slow"
        assert pid_of(inside, "files") == pid
        assert hung(inside) == []


async def test_a_server_that_is_busy_with_one_long_call_is_not_ended_before_the_limit_of_that_call() -> None:
    async with gateway(light("files", "healthy"), **{"files.slow": 60_000}) as inside:
        pid = pid_of(inside, "files")
        slow = asyncio.create_task(call(inside, "files.slow", {"ms": 1800, "text": "done"}))
        await elapsed(0.1)
        while not slow.done():
            beside = await call(inside, "files.echo")
            assert slow.done() or failure_of(beside)[0] == "timeout"
            await asyncio.wait({slow}, timeout=0.2)
        assert text_of(await slow) == "done"
        await until_it_answers(inside, "files.echo")
        assert pid_of(inside, "files") == pid
        assert hung(inside) == []


async def test_a_server_that_is_busy_beyond_the_limit_of_its_only_call_is_replaced() -> None:
    async with gateway(light("files", "healthy")) as inside:
        pid = pid_of(inside, "files")
        assert failure_of(await call(inside, "files.slow", {"ms": 60_000}))[0] == "timeout"
        assert await until_it_answers(inside, "files.echo") < AGAIN_S
        assert pid_of(inside, "files") != pid


async def test_a_client_with_a_short_limit_of_its_own_can_not_have_a_server_ended() -> None:
    async with gateway(light("files", "healthy"), **{"files.slow": 60_000}) as inside:
        pid = pid_of(inside, "files")
        assert failure_of(await call(inside, "files.slow", {"ms": 1500}, timeout_ms=100))[0] == "timeout"
        await elapsed(1.5)
        assert text_of(await call(inside, "files.echo", {"text": "hello"})) == "hello"
        assert pid_of(inside, "files") == pid


async def test_a_frozen_server_is_noticed_by_a_listing_too() -> None:
    async with gateway(light("files", "healthy")) as inside:
        with Witness(freeze(pid_of(inside, "files"))) as witness:
            await inside.gateway.connections.discover(force=True)
            await eventually(lambda: hung(inside) == ["files"])
            await until_it_answers(inside, "files.echo")
            assert witness.living_after(0.01) == set()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "data://a"}),
        ("prompts/get", {"name": "greet"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_frozen_server_is_noticed_by_every_request_of_a_client(method: str, params: dict[str, Any]) -> None:
    options = {"resources": ["data://a"], "prompts": ["greet"]}
    async with gateway(scripted(options=options, **SHORT)) as inside:
        freeze(pid_of(inside, "files"))
        assert (await inside.ask(method, params=params)).error is not None
        await eventually(lambda: hung(inside) == ["files"])


async def test_a_frozen_server_is_noticed_by_a_subscription() -> None:
    async with gateway(replace(changing("a", "legacy"), **SHORT)) as inside:
        freeze(pid_of(inside, "a"))
        await inside.ask("resources/subscribe", who=legacy_caller(Ear(), "s1"), params={"uri": "data://a"})
        await eventually(lambda: hung(inside) == ["a"])


async def test_a_frozen_process_of_one_client_is_ended_and_the_next_call_gets_a_new_one() -> None:
    async with gateway(light("files", "healthy", isolation="session")) as inside:
        shared = pid_of(inside, "files")
        assert (await call(inside, "files.echo"))["success"]
        [own] = [pid for pid in children_of(os.getpid()) if pid != shared and is_light(pid)]
        with Witness(freeze(own)) as witness:
            assert failure_of(await call(inside, "files.echo"))[0] == "timeout"
            await eventually(lambda: not witness.living_after(0.01), within_s=AGAIN_S)
        assert hung(inside) == ["files"]
        assert (await call(inside, "files.echo"))["success"]
        assert pid_of(inside, "files") == shared


def is_light(pid: int) -> bool:
    return LIGHT_SERVER.name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_a_server_that_does_not_answer_is_shown_before_it_is_ended() -> None:
    async with gateway(light("files", "healthy")) as inside:
        freeze(pid_of(inside, "files"))
        await call(inside, "files.echo")
        await eventually(lambda: session_of(inside, "files").peer.is_unanswered)
        [row] = inside.gateway.connections.rows()
        assert row["status"] == "connected"
        assert row["trouble"] == row["lastError"] == "does not answer; the gateway is checking whether it hangs"
        await eventually(lambda: sum(isinstance(event, ServerConnected) for event in inside.events) == 2)
        [row] = inside.gateway.connections.rows()
        assert row["status"] == "connected"


async def test_a_frozen_server_that_no_longer_reads_is_replaced_too() -> None:
    """Its pipe is full, so that the probe itself has to wait."""
    async with gateway(light("files", "healthy")) as inside:
        freeze(pid_of(inside, "files"))
        large = {"text": "x" * 40_000}
        replies = await asyncio.gather(*(call(inside, "files.echo", large) for _ in range(6)))
        assert {failure_of(reply)[0] for reply in replies} == {"timeout"}
        assert await until_it_answers(inside, "files.echo") < AGAIN_S


@pytest.mark.parametrize(
    "broken",
    ['{"content":[', '{"content":[{"type":"text","text":"a\ttab"}]', '{}}{"jsonrpc":"2.0","id":1,"result":{}'],
    ids=["not closed", "control character", "two messages"],
)
async def test_a_broken_answer_ends_its_own_call_at_once(broken: str) -> None:
    async with gateway(scripted(request_timeout_ms=8000), **{"files.slow": 60_000}) as inside:
        other = asyncio.create_task(call(inside, "files.slow", {"ms": 500}))
        async with asyncio.timeout(4):
            reply = await call(inside, "files.raw", {"text": broken})
        assert failure_of(reply) == ("invalid_frame", "may_have_run")
        assert text_of(await other) == "slow"
