"""A change of the file of keys is felt within a second, on what is open too; the use of keys is noted rarely."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from pactgate.core.api_key import read_id
from pactgate.core.events import ConfigurationRefused, Event
from pactgate.core.failures import GatewayFailure
from pactgate.inbound import key_watch
from pactgate.inbound.auth import Guard
from pactgate.inbound.key_watch import KeyWatch
from pactgate.state.key_file import KeyFile, KeyRing, RevokedKey, add_key, revoke_key, rotate_key
from pactgate.state.revoked_keys import RevokedKeys
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore, StoreScript
from tests.support.eventually import eventually
from tests.support.facing import Served, message, modern, serving
from tests.support.raw_http import get, post


class Wall:
    """The wall clock, some days on."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


class Rows:
    """A store that has these keys as revoked."""

    def __init__(self) -> None:
        self.keys = SealingKeys(bytes(32))
        self._rows: dict[str | bytes, bytes] = {}

    async def run(self, script: StoreScript, key: str, most: int, *args: Any) -> list[bytes]:
        self._rows |= dict(zip(args[::2], args[1::2], strict=True))
        return list(self._rows.values())

    def replica(self) -> RevokedKeys:
        return RevokedKeys(cast("SharedStore", self), self.keys)


class Watched:
    """A served frontend whose keys are those of a file."""

    def __init__(self, folder: Path, wall: Wall, revoked: RevokedKeys | None = None) -> None:
        self.file = KeyFile(str(folder / "keys"))
        self.events: list[Event] = []
        self.key = self.make("ci")
        self.watch = KeyWatch(self.file.path, self._changed, self.events.append, revoked=revoked, wall=wall)
        self.served: Served | None = None
        self._wall = wall

    def make(self, name: str) -> str:
        texts = []

        def edit(ring: KeyRing) -> KeyRing:
            after, text = add_key(ring, name, now=time.time(), expires=None, groups=(), roles=())
            texts.append(text)
            return after

        self.file.change(edit)
        return texts[0]

    def rotate(self, overlap_s: float) -> str:
        texts = []

        def edit(ring: KeyRing) -> KeyRing:
            after, text = rotate_key(ring, "ci", now=time.time(), expires=None, overlap_s=overlap_s)
            texts.append(text)
            return after

        self.file.change(edit)
        return texts[0]

    def guard(self) -> Guard:
        return Guard(host="127.0.0.1", sources=[self.watch.source], wall=self._wall)

    def _changed(self) -> None:
        assert self.served is not None
        self.served.frontend.replace_guard(self.guard())

    def last_used(self) -> str | None:
        ring = self.file.read()
        assert ring is not None
        return ring.keys[0].last_used


@pytest.fixture(autouse=True)
def looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_watch, "LOOK_S", 0.05)


@asynccontextmanager
async def watching(folder: Path, revoked: RevokedKeys | None = None) -> AsyncIterator[tuple[Served, Watched, Wall]]:
    wall = Wall()
    watched = Watched(folder, wall, revoked)
    async with serving(guard=watched.guard()) as served:
        watched.served = served
        watched.watch.start()
        try:
            yield served, watched, wall
        finally:
            await watched.watch.close()


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def test_a_revoked_key_is_refused_on_an_open_connection_session_and_stream(tmp_path: Path) -> None:
    async with watching(tmp_path) as (served, watched, _), served.client() as client, served.client() as listener:
        headers = bearer(watched.key)
        assert (await client.ask(modern("tools/call", name="echo", **headers))).status == 200
        session = await served.session(**headers)
        await listener.send(get("/mcp", accept="text/event-stream", **session))
        assert (await listener.head()).status == 200
        revoked_at = time.monotonic()
        watched.file.change(lambda ring: revoke_key(ring, "ci", now=time.time()))
        assert await listener.event() is None
        assert time.monotonic() - revoked_at < 2.0
        assert (await client.ask(modern("tools/call", name="echo", **headers))).status == 401
        assert (await served.ask(post(message("ping"), **session))).status == 401
        assert len(served.frontend.sessions.all()) == 0


async def test_a_key_that_another_replica_has_revoked_ends_as_if_the_file_here_had_changed(tmp_path: Path) -> None:
    rows = Rows()
    there, here = rows.replica(), rows.replica()
    async with watching(tmp_path, here) as (served, watched, _), served.client() as listener:
        other = bearer(watched.make("ops"))
        watched.watch.look()
        session = await served.session(**bearer(watched.key))
        await listener.send(get("/mcp", accept="text/event-stream", **session))
        assert (await listener.head()).status == 200
        there.publish([RevokedKey(id=str(read_id(watched.key)))])
        assert await there.exchange(1.0, 0)
        assert not await here.exchange(1.0, 1)
        assert await listener.event() is None
        assert (await served.ask(modern("tools/call", name="echo", **bearer(watched.key)))).status == 401
        assert (await served.ask(modern("tools/call", name="echo", **other))).status == 200
        assert len(served.frontend.sessions.all()) == 0
        watched.make("third")
        watched.watch.look()
        assert (await served.ask(modern("tools/call", name="echo", **bearer(watched.key)))).status == 401


async def test_what_the_file_lists_is_told_and_a_key_that_was_rotated_elsewhere_ends_when_it_does_there(
    tmp_path: Path,
) -> None:
    rows = Rows()
    there, here = rows.replica(), rows.replica()
    async with watching(tmp_path, here) as (served, watched, wall):
        ask = modern("tools/call", name="echo", **bearer(watched.key))
        there.publish([RevokedKey(id=str(read_id(watched.key)), ends=int(time.time() + 3600))])
        await there.exchange(1.0, 0)
        await here.exchange(1.0, 1)
        assert (await served.ask(ask)).status == 200
        wall.ahead_s = 3601
        assert (await served.ask(ask)).status == 401
        watched.file.change(lambda ring: revoke_key(ring, "ci", now=time.time()))
        watched.watch.look()
        assert await here.exchange(1.0, 1)
        await there.exchange(1.0, 2)
        assert there.end_of(str(read_id(watched.key))) == 0


async def test_a_rotated_key_keeps_the_session_of_its_caller(tmp_path: Path) -> None:
    async with watching(tmp_path) as (served, watched, _):
        session = await served.session(**bearer(watched.key))
        fresh = watched.rotate(overlap_s=3600)
        await eventually(lambda: len(watched.watch.source.expiries()) == 1)
        for key in (watched.key, fresh):
            answer = await served.ask(post(message("ping"), **{**session, **bearer(key)}))
            assert answer.status == 200
        watched.rotate(overlap_s=0)

        async def is_refused() -> bool:
            return (await served.ask(post(message("ping"), **{**session, **bearer(watched.key)}))).status == 401

        await eventually(is_refused)


async def test_the_first_use_of_a_day_is_noted_and_then_no_more(tmp_path: Path) -> None:
    async with watching(tmp_path) as (served, watched, wall), served.client() as client:
        ask = modern("tools/call", name="echo", **bearer(watched.key))
        assert (await client.ask(ask)).status == 200
        today = await eventually(watched.last_used)
        state = watched.file.state()
        assert (await client.ask(ask)).status == 200
        watched.watch.look()
        assert watched.file.state() == state
        wall.ahead_s = 86400.0
        watched.watch.look()
        assert (await client.ask(ask)).status == 200, "on a connection that stayed open"
        await watched.watch.close()
        assert str(watched.last_used()) > str(today)


async def test_the_use_of_a_second_key_is_noted_after_that_of_the_first(tmp_path: Path) -> None:
    async with watching(tmp_path) as (served, watched, _):
        other = watched.make("ops")
        await eventually(lambda: len(watched.watch.source.holders()) == 2)
        assert (await served.ask(modern("tools/call", name="echo", **bearer(watched.key)))).status == 200
        await eventually(watched.last_used)
        watched.watch.look()
        assert (await served.ask(modern("tools/call", name="echo", **bearer(other)))).status == 200
        await watched.watch.close()
        ring = watched.file.read()
        assert ring is not None
        assert all(key.last_used for key in ring.keys)


async def test_a_file_that_cant_be_read_any_more_changes_nothing_and_is_reported_once(tmp_path: Path) -> None:
    async with watching(tmp_path) as (served, watched, _):
        (tmp_path / "keys").write_bytes(b"{")
        watched.watch.look()
        watched.watch.look()
        assert [type(event) for event in watched.events] == [ConfigurationRefused]
        assert (await served.ask(modern("tools/call", name="echo", **bearer(watched.key)))).status == 200


async def test_a_file_that_cant_be_written_still_says_who_may_call(tmp_path: Path) -> None:
    async with watching(tmp_path) as (served, watched, _):
        (tmp_path / "keys.lock").unlink()
        (tmp_path / "keys.lock").mkdir()  # no lock can be taken
        assert (await served.ask(modern("tools/call", name="echo", **bearer(watched.key)))).status == 200
        await watched.watch.close()
        assert watched.last_used() is None


def test_a_file_that_cant_be_read_at_the_start_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"{")
    with pytest.raises(GatewayFailure, match="damaged"):
        KeyWatch(str(tmp_path / "keys"), lambda: None, lambda event: None)
