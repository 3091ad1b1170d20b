"""Many servers, none of which can hurt the others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pactgate.config.server_settings import ServerConfig
from tests.pipeline.conftest import open_gateway, text_of
from tests.support.eventually import eventually
from tests.support.processes import running_children
from tests.support.servers import UNLIMITED, methods, scripted

BROKEN = ServerConfig(id="broken", command="no-such-program-anywhere", max_retries=0)


@pytest.mark.requirement("S0/ECO-002")
async def test_hung_and_broken_servers_leave_the_healthy_ones_listed_and_callable() -> None:
    hung = scripted("hung", options={"hang": "handshake"}, era="legacy")
    mute = scripted("mute", options={"hang": "list"})
    async with open_gateway(hung, mute, BROKEN, scripted("good")) as inside:
        assert text_of(await inside.call("good.echo", {"text": "hi"})) == "hi"
        assert {tool.server for tool in inside.gateway.connections.unfiltered.tools.entries()} == {"good"}
        missing = inside.gateway.connections.missing()
    assert set(missing) == {"hung", "mute", "broken"}


@pytest.mark.requirement("S0/ECO-002")
async def test_when_all_servers_fail_the_list_is_empty_and_every_one_says_why() -> None:
    other = ServerConfig(id="other", command="no-other-program-anywhere", max_retries=0)
    async with open_gateway(BROKEN, other) as inside:
        await inside.ask("tools/list")
        rows = inside.gateway.connections.rows()
    assert [row["status"] for row in rows] == ["error", "error"]
    assert all(row["lastError"] for row in rows)


async def test_another_order_of_the_servers_in_the_configuration_is_applied_without_a_restart() -> None:
    async with open_gateway(scripted("a"), scripted("b")) as inside:
        await inside.ask("tools/list")
        await inside.gateway.connections.apply([scripted("b"), scripted("a")], naming="double_underscore")
        assert [tool.server for tool in inside.gateway.connections.unfiltered.tools.entries()] == ["b"] * 10 + [
            "a"
        ] * 10


@pytest.mark.requirement("S0/ECO-201")
async def test_tools_of_a_disabled_server_are_unknown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(enabled=False, options={"log": str(log)})) as inside:
        reply = await inside.call("files.echo")
        row = inside.gateway.connections.rows()[0]
    assert reply.error is not None
    assert reply.error.data["failure_mode"] == "unknown_tool"
    assert row["status"] == "disabled"
    assert not log.exists()


async def test_one_process_per_server_after_many_calls_as_after_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    servers = scripted("a", options={"log": str(log)}), scripted("b")
    async with open_gateway(*servers, rate_limits=UNLIMITED) as inside:
        pid = text_of(await inside.call("a.pid"))
        await inside.call("b.pid")
        assert len(running_children()) == 2
        for _ in range(200):
            assert text_of(await inside.call("a.pid")) == pid
        assert len(running_children()) == 2
    assert running_children() == []
    assert methods(log).count("initialize") == 1


@pytest.mark.requirement("S0/ECO-201")
async def test_enabling_connects_and_disabling_ends_process_calls_and_tools() -> None:
    async with open_gateway(scripted(enabled=False)) as inside:
        connections = inside.gateway.connections
        assert running_children() == []
        await connections.set_enabled("files", True)
        assert text_of(await inside.call("files.echo", {"text": "on"})) == "on"
        calling = asyncio.create_task(inside.call("files.slow", {"ms": 60000}))
        await inside.call("files.echo", {"text": "the slow one is under way"})
        await connections.set_enabled("files", False)
        failed = await calling
        assert connections.rows()[0]["status"] == "disabled"
        assert connections.rows()[0]["toolCount"] == 0
        assert running_children() == []
        unknown = await inside.call("files.echo")
    assert failed.result is not None
    assert b"connection_lost" in failed.result
    assert unknown.error is not None
    assert unknown.error.data["failure_mode"] == "unknown_tool"


@pytest.mark.requirement("S0/ECO-201")
async def test_disabling_in_the_middle_of_connecting_ends_disabled_without_a_process() -> None:
    async with open_gateway(scripted(options={"hang": "handshake"}, era="legacy")) as inside:
        await eventually(running_children)
        await inside.gateway.connections.set_enabled("files", False)
        assert inside.gateway.connections.rows()[0]["status"] == "disabled"
        assert running_children() == []


@pytest.mark.requirement("S4/SIB-5")
async def test_a_new_configuration_touches_only_the_servers_it_is_about() -> None:
    keep, change, drop = scripted("keep"), scripted("change"), scripted("drop")
    async with open_gateway(keep, change, drop) as inside:
        pids = {id_: text_of(await inside.call(f"{id_}.pid")) for id_ in ("keep", "change", "drop")}
        calling = asyncio.create_task(inside.call("keep.slow", {"ms": 300}))
        changed = scripted("change", options={"tools": ["extra"]})
        done = await inside.gateway.connections.apply([scripted("new"), keep, changed], naming="double_underscore")
        assert (done.added, done.removed, done.changed) == (("new",), ("drop",), ("change",))
        assert text_of(await inside.call("keep.pid")) == pids["keep"]
        assert text_of(await inside.call("change.extra")) == "extra"
        assert text_of(await inside.call("change.pid")) != pids["change"]
        assert text_of(await inside.call("new.echo", {"text": "hi"})) == "hi"
        assert text_of(await calling) == "slow"
        gone = await inside.call("drop.echo")
        assert gone.error is not None
        assert len(running_children()) == 3
        assert list(inside.gateway.connections.servers) == ["new", "keep", "change"]


async def test_turning_a_server_off_and_on_in_the_configuration_keeps_its_place() -> None:
    async with open_gateway(scripted("a"), scripted("b")) as inside:
        await inside.call("a.pid")
        off = await inside.gateway.connections.apply([scripted("a", enabled=False), scripted("b")], naming="dot")
        assert off.changed == ("a",)
        assert inside.gateway.connections.rows()[0]["status"] == "disabled"
        await inside.gateway.connections.apply([scripted("a"), scripted("b")], naming="dot")
        assert text_of(await inside.call("a.echo", {"text": "back"})) == "back"
        assert inside.gateway.connections.unfiltered.tools.entries()[0].server == "a"
