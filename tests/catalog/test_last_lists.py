"""A gateway lists the moment it starts what its servers listed last; a call waits for its server, and the server has the last word."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.app import Gateway, build
from pactgate.config.definition_lock import LockFile, lock_path, lock_text
from pactgate.config.load import load
from pactgate.core.events import DefinitionsDiffered, Event, ToolChanged
from pactgate.core.failures import Kind
from tests.catalog.test_definition_pins import SERVER, STATE, approved, changed, kind_of, tools_of, write
from tests.pipeline.conftest import Inside, short_pauses, text_of
from tests.support.eventually import eventually

SLOW_S = 1.5


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with a server that takes its time to start."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write(tmp_path / "state.json", STATE)
    return configured(tmp_path)


@pytest.fixture
def gone(config: Path) -> Callable[[], None]:
    """Takes away what the server needs to start."""

    def take() -> None:
        (config.parent / "state.json").unlink()
        configured(config.parent, retries=0)

    return take


def configured(folder: Path, *, retries: int = 3, **settings: Any) -> Path:
    program = [sys.executable, str(SERVER), "legacy", str(folder / "state.json")]
    slowly = ["-c", f'[ -e "$0" ] && sleep {SLOW_S}; exec "$@"', str(folder / "slow"), *program]
    path = folder / "pactgate.json"
    path.write_text(
        json.dumps({"mcpServers": {"crm": {"command": "sh", "args": slowly, "maxRetries": retries}}, **settings})
    )
    path.chmod(0o600)
    return path


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Inside]:
    events: list[Event] = []
    with short_pauses():
        gateway: Gateway = build(load(path, environ={}, overrides={}), events.append)
        await gateway.start()
        try:
            yield Inside(gateway, events)
        finally:
            await gateway.stop()


async def listed_before(path: Path, *, is_slow: bool = False) -> None:
    async with opened(path) as inside:
        await inside.gateway.connections.settle()
        assert await tools_of(inside) == ["find", "refund", "say_changed"]
        await eventually(lambda: any((path.parent / "state").rglob("*.json")))
    if is_slow:
        (path.parent / "slow").touch()


async def test_it_is_listed_at_once_and_a_call_waits_for_the_server(config: Path) -> None:
    await listed_before(config, is_slow=True)
    async with opened(config) as inside:
        async with asyncio.timeout(SLOW_S / 2):
            assert await tools_of(inside) == ["find", "refund", "say_changed"]
        connections = inside.gateway.connections
        assert connections.connected("crm") is None
        assert connections.missing() == {}
        assert connections.instructions_of("crm") == "Be brief."
        assert text_of(await inside.call("crm__find")) == "find"
        assert connections.connected("crm") is not None


async def test_what_has_changed_meanwhile_is_taken_over_and_is_no_event(config: Path) -> None:
    await listed_before(config)
    write(config.parent / "state.json", changed(description="Other."))
    async with opened(config) as inside:
        assert "refund" in await tools_of(inside)
        await eventually(lambda: "Other." in str(inside.gateway.snapshot()["tools"]))
        assert [one for one in inside.events if isinstance(one, ToolChanged)] == []


async def test_a_server_that_can_not_be_started_any_more_loses_its_tools_and_says_why(
    config: Path, gone: Callable[[], None]
) -> None:
    await listed_before(config)
    gone()
    async with opened(config) as inside:
        await eventually(lambda: "ended with exit code" in inside.gateway.connections.missing().get("crm", ""))
        assert await tools_of(inside) == []


async def test_the_lists_of_the_last_run_are_compared_with_the_lock_file_at_once(config: Path) -> None:
    path = config
    async with opened(path) as inside:
        await inside.gateway.connections.settle()
        pins = await approved(inside.gateway.config.servers["crm"])
    write(path.parent / "state.json", changed(title="Other"))
    async with opened(path) as inside:  # the changed list becomes the last one
        await inside.gateway.connections.settle()
        await eventually(lambda: "Other" in str(inside.gateway.snapshot()["tools"]))
        await eventually(lambda: any("Other" in one.read_text() for one in (path.parent / "state").rglob("*.json")))
    (path.parent / "slow").touch()
    configured(path.parent, lock={"mode": "hold"})
    lock_path(path).write_text(lock_text(LockFile(servers={"crm": pins})))
    async with opened(path) as inside:
        async with asyncio.timeout(SLOW_S / 2):
            assert await tools_of(inside) == ["find", "say_changed"]
        assert kind_of(await inside.call("crm__refund")) is Kind.DEFINITION_CHANGED
        assert any(isinstance(one, DefinitionsDiffered) for one in inside.events)


async def test_a_list_that_is_asked_for_comes_from_the_server(config: Path) -> None:
    """`check --live` and `lock` must not take the last run for the server."""
    await listed_before(config)
    write(config.parent / "state.json", {**STATE, "tools": STATE["tools"][1:]})
    async with opened(config) as inside:
        (row,) = (await inside.gateway.discover()).server_results
        assert (row.status, row.tool_count) == ("success", 2)
