"""What is shown of a running gateway: true, complete, and free of what must not be shown."""

from __future__ import annotations

import sys

from msgspec.structs import replace

from pactgate.app import Gateway
from pactgate.config.definition_lock import LISTS, ServerPins
from pactgate.config.model import Config
from pactgate.config.sections.lock import LockSection
from pactgate.config.server_settings import ServerConfig


def configured() -> Config:
    server = ServerConfig(
        id="pad", command=sys.executable, args=("-m", "pactgate.demo.scratchpad"), env={"TOKEN": "s3cret-value"}
    )
    return Config(servers={"pad": server}, secrets=("s3cret-value",))


async def test_the_snapshot_shows_servers_tools_calls_and_cache_but_no_command_line() -> None:
    async with Gateway.open(configured()) as gateway:
        await gateway.discover()
        shown = gateway.snapshot()
    assert [row["serverId"] for row in shown["servers"]] == ["pad"]
    assert shown["servers"][0]["toolCount"] == len(shown["tools"]) > 0
    assert shown["uptimeMs"] >= 0
    assert {"calls", "cache", "rateLimits"} <= shown.keys()
    assert "scratchpad.py" not in str(shown)
    assert "s3cret-value" not in str(shown)


async def test_the_tools_are_decoded_once_for_each_catalog() -> None:
    async with Gateway.open(configured()) as gateway:
        await gateway.discover()
        assert gateway.snapshot()["tools"] is gateway.snapshot()["tools"]


async def test_every_gauge_is_a_number_under_our_own_prefix() -> None:
    async with Gateway.open(configured()) as gateway:
        lines = gateway.facts.render_metrics()[0].decode().splitlines()
    samples = [line for line in lines if line and not line.startswith("#")]
    assert samples
    for line in samples:
        name, number = line.rsplit(" ", 1)
        assert name.startswith("pactgate_")
        float(number)
    assert any(line.startswith("pactgate_cache_size_bytes ") for line in samples)


async def test_a_tool_says_whether_its_definition_is_as_approved() -> None:
    pins = {"pad": ServerPins(identity=(), name=None, instructions=None, digests={listing: {} for listing in LISTS})}
    async with Gateway.open(configured()) as gateway:
        await gateway.discover()
        assert {row["lock"] for row in gateway.snapshot()["tools"]} == {None}
    settings = replace(configured(), lock=LockSection(mode="report"), pins=pins)
    async with Gateway.open(settings) as gateway:
        await gateway.discover()
        assert {row["lock"] for row in gateway.snapshot()["tools"]} == {"changed"}
