"""A key that `pactgate keys` revokes on one machine is refused on another one, which has a key file of its own. Real gateways and Redis."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Served, run, write_config
from tests.replicas.cluster import KEY
from tests.support.eventually import eventually_blocking
from tests.support.facing import initialize, modern
from tests.support.raw_http import Answer, RawClient, get, post, request
from tests.support.redis_server import RedisServer, needs_redis

pytestmark = [pytest.mark.interop, needs_redis, pytest.mark.timeout(60)]

STATED_S = 2.0


class Machines:
    """Two folders with one configuration and one key of `ci` in a key file each; gateways are started as a test wants."""

    def __init__(self, folder: Path, redis: RedisServer, stack: ExitStack) -> None:
        self.here, self.there = folder / "here", folder / "there"
        self._stack = stack
        for machine in (self.here, self.there):
            machine.mkdir()
            write_config(machine, {}, state={"url": redis.url})
        self.keys = [run(self.here, "keys", "add", name, PACTGATE_KEY=KEY).stdout.strip() for name in ("ci", "ops")]
        shutil.copy2(self.here / "pactgate.keys", self.there)

    def serve(self, machine: Path) -> Served:
        served = self._stack.enter_context(Served(machine, PACTGATE_KEY=KEY))
        assert served.url
        return served

    async def revoke(self) -> str:
        """What the command complained of. In a thread: it has a loop of its own."""
        done = await asyncio.to_thread(run, self.here, "keys", "revoke", "ci", PACTGATE_KEY=KEY)
        assert (done.returncode, done.stdout) == (0, f"Revoked: {self.keys[0][3:11]}.\n")
        return done.stderr


@pytest.fixture
def machines(tmp_path: Path, redis: RedisServer) -> Iterator[Machines]:
    with ExitStack() as stack:
        yield Machines(tmp_path, redis, stack)


def port(served: Served) -> int:
    return int(served.url.rpartition(":")[2])


async def ask(served: Served, data: bytes) -> Answer:
    async with RawClient(port(served)) as client:
        return await client.ask(data)


async def status(served: Served, key: str) -> int:
    return (await ask(served, modern("tools/list", authorization=f"Bearer {key}"))).status


async def until_refused(served: Served, key: str) -> None:
    while await status(served, key) == 200:
        pass  # each is a request with an answer; the test has a limit of its own


async def sign_in(served: Served, key: str) -> dict[str, str]:
    """The headers of the console, signed in."""
    page = {"host": f"127.0.0.1:{port(served)}", "sec-fetch-site": "same-origin"}
    sent = {"authorization": f"Bearer {key}", "x-pactgate-console": "none", "content-length": "0", **page}
    answer = await ask(served, request("POST", "/console/session", {**sent, "content-type": "application/json"}))
    assert answer.status == 200, answer.body
    cookie = (answer.header("set-cookie") or "").partition(";")[0]
    return {**page, "cookie": cookie, "x-pactgate-console": answer.json["key"]}


async def shared(served: Served, key: str) -> dict[str, Any]:
    found: dict[str, Any] = (await ask(served, get("/health", authorization=f"Bearer {key}"))).json["state"]
    return found


async def until_store_is_away(served: Served, key: str) -> None:
    while (await shared(served, key))["store"] == "ok":
        pass


async def test_a_key_revoked_here_is_refused_there_in_time_and_what_it_had_opened_there_ends(
    machines: Machines,
) -> None:
    key, other = machines.keys
    there = machines.serve(machines.there)
    bearer = {"authorization": f"Bearer {key}"}
    session = {
        **bearer,
        "mcp_session_id": (await ask(there, post(initialize(), **bearer))).header("mcp-session-id") or "",
    }
    console = await sign_in(there, key)
    async with RawClient(port(there)) as listener, RawClient(port(there)) as page:
        await listener.send(get("/mcp", accept="text/event-stream", **session))
        await page.send(request("GET", "/api/stream", console))
        assert [(await client.head()).status for client in (listener, page)] == [200, 200]
        assert await machines.revoke() == ""
        began = time.monotonic()
        await until_refused(there, key)
        assert time.monotonic() - began < STATED_S
        for client in (listener, page):
            while await client.event() is not None:
                pass  # what was said before
    assert await status(there, key) == 401
    assert (await ask(there, request("GET", "/api/calls", console))).status == 401
    assert await status(there, other) == 200
    assert (await shared(there, other))["revokedKeys"] == 1
    assert b"pactgate_revoked_keys 1" in (await ask(there, get("/metrics", authorization=f"Bearer {other}"))).body


async def test_a_store_that_lost_everything_is_told_again_by_the_gateway_whose_file_lists_the_key(
    machines: Machines, redis: RedisServer
) -> None:
    key, other = machines.keys
    here = machines.serve(machines.here)
    await machines.revoke()
    await until_refused(here, key)
    redis.stop()
    await until_store_is_away(here, other)
    assert (await shared(here, other))["withoutStore"]["revokedKeys"] == "local"
    redis.start()
    eventually_blocking(lambda: redis.command("EXISTS", "pactgate:revoked"))
    there = machines.serve(machines.there)
    assert [await status(there, one) for one in (key, other)] == [401, 200], "before it has served anybody"


async def test_while_the_store_hangs_no_call_waits_and_the_command_says_that_it_could_not_be_told(
    machines: Machines, redis: RedisServer
) -> None:
    key, other = machines.keys
    here, there = machines.serve(machines.here), machines.serve(machines.there)
    redis.suspend()
    await until_store_is_away(there, other)
    assert "could not be told" in await machines.revoke()
    await until_refused(here, key)
    began = time.monotonic()
    for _ in range(20):
        assert await status(there, key) == await status(there, other) == 200
    assert time.monotonic() - began < 3.0, "forty that waited for the store took 4 s"
    redis.resume()
    await until_refused(there, key)
    assert await status(there, other) == 200


def test_a_command_without_the_key_of_the_replicas_revokes_and_says_who_tells_them(machines: Machines) -> None:
    done = run(machines.here, "keys", "revoke", "ci")
    assert (done.returncode, "PACTGATE_KEY" in done.stderr, "tells it when it can" in done.stderr) == (0, True, True)
    assert [one["id"] for one in json.loads((machines.here / "pactgate.keys").read_text())["revoked"]]


async def test_the_list_of_another_machine_shows_what_was_revoked_here_and_says_when_it_can_not(
    machines: Machines, redis: RedisServer
) -> None:
    def listed() -> tuple[list[tuple[bool, bool]], str]:
        """Of each key whether it was revoked and whether it has an end."""
        done = run(machines.there, "keys", "list", "--json", PACTGATE_KEY=KEY)
        rows = json.loads(done.stdout)["keys"]
        return [(one["revoked"], one["expires"] is not None) for one in rows], done.stderr

    assert await asyncio.to_thread(listed) == ([(False, False), (False, False)], "")
    await machines.revoke()
    assert await asyncio.to_thread(listed) == ([(True, False), (False, False)], "")
    await asyncio.to_thread(run, machines.here, "keys", "rotate", "ops", "--overlap", "1h", PACTGATE_KEY=KEY)
    assert await asyncio.to_thread(listed) == ([(True, False), (False, True)], "")
    shown = await asyncio.to_thread(run, machines.there, "keys", "list", PACTGATE_KEY=KEY)
    assert shown.stdout.count("revoked elsewhere") == 1
    redis.stop()
    rows, said = await asyncio.to_thread(listed)
    assert ([is_revoked for _, is_revoked in rows], "could not be asked" in said) == ([False, False], True)


async def test_the_rows_say_neither_which_key_nor_whose(machines: Machines, redis: RedisServer) -> None:
    await machines.revoke()
    rows = redis.command("HGETALL", "pactgate:revoked")
    stored = b"".join((*rows, *rows.values()))
    assert len(rows) == 1
    assert not any(word in stored for word in (b"ci", machines.keys[0][3:11].encode()))
    assert all(life_ms > 0 for life_ms in redis.keys().values())
