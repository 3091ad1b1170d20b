"""A console gets what happens, filtered at the gateway, and is told what it lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pactgate.core.events import RequestFinished, ServerDisconnected
from pactgate.inbound.call_stream import MAX_READERS, MAX_RECORDS, MAX_WAITING_ROWS
from tests.support.callers import caller, context
from tests.support.consoles import ADMIN, USER, ServedConsole, serving_console
from tests.support.eventually import eventually
from tests.support.raw_http import RawClient, get


async def opened(console: ServedConsole, client: RawClient, secret: str = ADMIN, query: str = "") -> dict[str, Any]:
    """Open a stream; returns its first event."""
    await client.send(get(f"/api/stream{query}", **await console.session(secret)))
    assert (await client.head()).status == 200
    return await told(client)


async def told(client: RawClient) -> dict[str, Any]:
    event = await client.event()
    assert event is not None
    facts: dict[str, Any] = msgspec.json.decode(event.data)
    return facts


def finished(subject: str, tool: str, method: str = "tools/call") -> RequestFinished:
    record = context(method, caller(key=subject)).seal(0.0)
    return RequestFinished(msgspec.structs.replace(record, tool=tool))


async def test_a_stream_begins_with_the_servers_and_tells_of_changes() -> None:
    async with serving_console() as console, console.served.client() as client:
        assert [row["serverId"] for row in (await opened(console, client))["servers"]] == ["files"]
        console.servers = [{"serverId": "files", "status": "error", "lastError": "gone"}]
        console.emit(ServerDisconnected("files", "gone", "UPSTREAM_UNAVAILABLE"))
        assert (await told(client))["servers"] == console.servers


async def test_only_an_administrator_sees_the_calls_of_others() -> None:
    async with serving_console() as console, console.served.client() as admin, console.served.client() as user:
        await opened(console, admin, ADMIN)
        await opened(console, user, USER)
        console.emit(finished("app", "files.mine"))
        console.emit(finished("other", "files.theirs"))
        console.emit(finished("other", "", "tools/list"))
        assert [row["tool"] for row in (await told(admin))["calls"]] == ["files.mine", "files.theirs"]
        assert [row["tool"] for row in (await told(user))["calls"]] == ["files.mine"]


async def test_the_filter_is_applied_at_the_gateway() -> None:
    async with serving_console() as console, console.served.client() as client:
        await opened(console, client, query="?filter=tool:web.*")
        for tool in ("files.read", "web.get", "files.write"):
            console.emit(finished("app", tool))
        assert [row["tool"] for row in (await told(client))["calls"]] == ["web.get"]


async def test_what_comes_too_fast_is_dropped_and_counted() -> None:
    async with serving_console() as console, console.served.client() as client:
        await opened(console, client)
        for number in range(MAX_RECORDS + 7):
            console.emit(finished("app", f"files.t{number}"))
        facts = await told(client)
        assert (len(facts["calls"]), facts["lost"]) == (MAX_WAITING_ROWS, MAX_RECORDS + 7 - MAX_WAITING_ROWS)
        assert facts["calls"][-1]["tool"] == f"files.t{MAX_RECORDS + 6}"


async def test_what_comes_fast_is_filtered_before_it_is_dropped() -> None:
    async with serving_console() as console, console.served.client() as plain, console.served.client() as filtered:
        await opened(console, plain)
        await opened(console, filtered, query="?filter=tool:rare")
        console.emit(finished("app", "files.rare"))
        for _ in range(MAX_RECORDS - 1):
            console.emit(finished("app", "files.read"))
        facts = await told(filtered)
        assert ([row["tool"] for row in facts["calls"]], facts["lost"]) == (["files.rare"], 0)
        facts = await told(plain)
        assert (len(facts["calls"]), facts["lost"]) == (MAX_WAITING_ROWS, MAX_RECORDS - MAX_WAITING_ROWS)


async def test_a_reader_that_is_slow_loses_the_oldest_rows_and_is_told_how_many() -> None:
    async with serving_console() as console, console.served.client() as slow, console.served.client() as quick:
        await opened(console, slow)
        await opened(console, quick)
        slow.transport.pause_reading()
        sent = 0
        while not any(reader.lost for reader in console.streams._readers):
            for _ in range(MAX_WAITING_ROWS):
                console.emit(finished("app", "x" * 20_000))
            sent += MAX_WAITING_ROWS
            assert len((await told(quick))["calls"]) == MAX_WAITING_ROWS, "nobody waits for the slow one"
        slow.transport.resume_reading()
        seen = lost = 0
        while seen + lost < sent:
            facts = await told(slow)
            seen, lost = seen + len(facts["calls"]), lost + facts["lost"]
        assert (seen + lost, lost > 0) == (sent, True)


async def test_nothing_listens_when_nobody_reads() -> None:
    async with serving_console() as console:
        assert console.listeners == []
        async with console.served.client() as client:
            await opened(console, client)
            assert len(console.listeners) == 1
            console.emit(finished("app", "files.read"))
        await eventually(lambda: not console.listeners)


async def test_there_is_room_for_so_many_consoles() -> None:
    async with serving_console() as console:
        session = await console.session()
        clients = [console.served.client() for _ in range(MAX_READERS)]
        try:
            for client in clients:
                await client.__aenter__()
                await client.send(get("/api/stream", **session))
                assert (await client.head()).status == 200
            refused = await console.read("/api/stream", session)
            assert (refused.status, refused.header("retry-after")) == (503, "5")
        finally:
            for client in clients:
                await client.close()
        await eventually(lambda: not console.listeners)
        async with console.served.client() as client:
            await opened(console, client)


@pytest.mark.parametrize("query", ["?filter=tol:x", "?filter=ms:%3Ex"])
async def test_a_wrong_filter_is_refused(query: str) -> None:
    async with serving_console() as console:
        assert (await console.read(f"/api/stream{query}", await console.session())).status == 400
