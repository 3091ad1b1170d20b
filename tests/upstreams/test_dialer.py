"""One attempt to connect: the right channel, the right era, nothing left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Dialer, Session
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.process.child_reaper import ChildReaper
from tests.support.processes import running_children
from tests.support.servers import scripted


@asynccontextmanager
async def dialed(config: ServerConfig) -> AsyncIterator[Session]:
    child_reaper, client = ChildReaper(), HttpClient()
    info = {"name": "tests", "version": "0"}
    dialer = Dialer(
        config,
        client=client,
        child_reaper=child_reaper,
        emit=lambda event: None,
        client_info=info,
        max_frame_bytes=2**20,
    )
    try:
        async with asyncio.timeout(10):
            session = await dialer.dial()
        try:
            yield session
        finally:
            await session.peer.close()
    finally:
        await client.close()
        await child_reaper.close()


@pytest.mark.parametrize(
    ("speaks", "asked", "era"),
    [
        ("legacy", "auto", Era.LEGACY),
        ("modern", "auto", Era.MODERN),
        ("dual", "auto", Era.MODERN),
        ("dual", "legacy", Era.LEGACY),
        ("dual", "modern", Era.MODERN),
    ],
)
async def test_the_era_of_a_child_process_is_found_or_taken_from_the_settings(
    speaks: str, asked: str, era: Era
) -> None:
    async with dialed(scripted(options={"era": speaks}, era=asked)) as session:
        assert session.identity.era is era
        assert session.transport == "stdio"
        assert session.pid in running_children()
    assert running_children() == []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_legacy_revision_a_server_answers_with_is_spoken(version: str) -> None:
    async with dialed(scripted(options={"version": version})) as session:
        assert session.identity.version == version


@pytest.mark.parametrize(("speaks", "asked"), [("legacy", "modern"), ("modern", "legacy")])
async def test_an_era_the_server_does_not_speak_fails_and_leaves_no_process(speaks: str, asked: str) -> None:
    with pytest.raises(GatewayFailure):
        async with dialed(scripted(options={"era": speaks}, era=asked)):
            pass
    assert running_children() == []


async def test_nothing_listening_is_a_failed_connection() -> None:
    with pytest.raises(GatewayFailure) as caught:
        async with dialed(ServerConfig(id="web", url="http://127.0.0.1:9/mcp")):
            pass
    assert caught.value.kind is Kind.CONNECTION_FAILED
