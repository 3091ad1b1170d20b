"""A lazy server costs nothing until it is called, is listed all the same, and loses no call when it falls asleep."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from pactgate.catalog.lazy_start import LazyStart
from pactgate.catalog.supervisor import Supervisor
from pactgate.config.sections.lock import LockSection
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import Kind, Reply
from pactgate.core.values import ServerStatus
from pactgate.upstreams.dialer import Session
from tests.catalog.test_definition_pins import (
    STATE,
    approved,
    calls,
    changed,
    kind_of,
    lockable,
    relist,
    tools_of,
    write,
)
from tests.pipeline.conftest import Inside, open_gateway, text_of
from tests.support.eventually import eventually
from tests.support.servers import UNLIMITED


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def lazy(file: Path, era: str = "legacy") -> ServerConfig:
    write(file, STATE)
    return replace(lockable(file, era), start="lazy", idle_timeout_ms=300)


def pid(inside: Inside) -> int | None:
    found = inside.gateway.connections.rows()[0]["pid"]
    assert found is None or isinstance(found, int)
    return found


def is_asleep(inside: Inside) -> bool:
    return inside.gateway.connections.servers["crm"].is_asleep


async def listed_before(config: ServerConfig) -> None:
    async with open_gateway(config) as inside:
        assert await tools_of(inside) == ["find", "refund", "say_changed"]  # the first list ever is whole
        await eventually(lambda: is_asleep(inside))


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_it_is_listed_at_once_started_by_a_call_and_ended_when_idle(tmp_path: Path, era: str) -> None:
    config = lazy(tmp_path / "state.json", era)
    await listed_before(config)
    async with open_gateway(config) as inside:
        async with asyncio.timeout(5):
            assert await tools_of(inside) == ["find", "refund", "say_changed"]
        assert (is_asleep(inside), pid(inside)) == (True, None)
        assert inside.gateway.connections.missing() == {}
        assert inside.gateway.connections.instructions_of("crm") == "Be brief."
        assert text_of(await inside.call("crm__find")) == "find"
        child = pid(inside)
        assert child is not None
        await eventually(lambda: is_asleep(inside))
        await eventually(lambda: not os.path.exists(f"/proc/{child}"))
        assert inside.gateway.connections.servers["crm"].status is ServerStatus.DISCONNECTED
        assert text_of(await inside.call("crm__refund")) == "refund"
        assert pid(inside) not in (None, child)


async def test_no_call_is_lost_in_the_moment_it_falls_asleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(lazy(tmp_path / "state.json"), idle_timeout_ms=100)
    await listed_before(config)
    fall_asleep, under_way, late = Supervisor._fall_asleep, list[asyncio.Task[Reply]](), list[asyncio.Task[bytes]]()
    async with open_gateway(config, rate_limits=UNLIMITED) as inside:

        def called_meanwhile(supervisor: Supervisor, session: Session, start: LazyStart) -> None:
            if len(late) < 3:
                under_way.extend(asyncio.create_task(inside.call("crm__find")) for _ in range(10))
                fall_asleep(supervisor, session, start)
                late.append(asyncio.create_task(session.peer.request("ping", {})))  # had found the session before
            else:
                fall_asleep(supervisor, session, start)

        monkeypatch.setattr(Supervisor, "_fall_asleep", called_meanwhile)
        await inside.call("crm__find")
        await eventually(lambda: len(late) == 3 and is_asleep(inside))
        assert {text_of(reply) for reply in await asyncio.gather(*under_way)} == {"find"}
        assert await asyncio.gather(*late) == [b"{}"] * 3


async def test_a_list_that_changed_while_it_slept_is_taken_over_at_its_next_start(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    config = lazy(file)
    await listed_before(config)
    write(file, {**STATE, "tools": STATE["tools"][1:]})
    async with open_gateway(config) as inside:
        assert "refund" in await tools_of(inside)
        await inside.call("crm__find")
        await eventually(lambda: "refund" not in str(inside.gateway.snapshot()["tools"]))


async def test_what_is_known_of_it_is_compared_with_the_lock_file_too(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    config = lazy(file)
    pins = {"crm": (await approved(replace(config, start="eager"))).pins()}
    write(file, changed(title="Other"))
    async with open_gateway(config) as inside:
        await relist(inside)
        await eventually(lambda: is_asleep(inside))
    async with open_gateway(config, lock=LockSection(mode="hold"), pins=pins) as inside:
        assert await tools_of(inside) == ["find", "say_changed"]
        assert kind_of(await inside.call("crm__refund")) is Kind.DEFINITION_CHANGED
        assert calls(file) == []


async def test_a_file_that_says_nonsense_is_not_believed(tmp_path: Path) -> None:
    config = lazy(tmp_path / "state.json")
    await listed_before(config)
    (known,) = (tmp_path / "pactgate" / "lists").glob("*.json")
    for text in ("", "{", '{"version":1,"era":"x"}', "null"):
        known.write_text(text)
        await listed_before(config)


async def test_a_server_that_can_not_start_says_so(tmp_path: Path) -> None:
    config = ServerConfig(id="crm", command="/no/such/program", start="lazy", max_retries=0)
    async with open_gateway(config) as inside:
        await inside.gateway.connections.settle()
        assert "crm" in inside.gateway.connections.missing()
        assert not is_asleep(inside)
