"""Sessions of single callers: opened when needed, kept apart, bounded, ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pactgate.catalog import caller_sessions
from pactgate.catalog.caller_sessions import CallerSessions
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.principal import Principal
from pactgate.core.values import Caller
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.negotiate import Identity
from pactgate.upstreams.peer import Peer
from tests.support.asking import ALL, asker
from tests.support.scripted_channel import ScriptedChannel

FORM: dict[str, Any] = {"elicitation": {}}


async def session(
    era: Era = Era.LEGACY, transport: str = "http", capabilities: Mapping[str, Any] | None = None
) -> Session:
    version = LATEST_LEGACY if era is Era.LEGACY else LATEST_MODERN
    peer = Peer("files", ScriptedChannel(), lambda event: None, {}, capabilities)
    await peer.open()
    peer.settle(era, version)
    return Session(peer, Identity(era, version, {}, {}), transport, 1.0)


class Dialer:
    """Opens sessions without a wire, or fails as told."""

    def __init__(self) -> None:
        self.opened: list[Session] = []
        self.failure: GatewayFailure | None = None
        self.may_open = asyncio.Event()
        self.may_open.set()

    async def dial_for(self, principal: Principal, like: Session, capabilities: Mapping[str, Any], era: Era) -> Session:
        await self.may_open.wait()
        if self.failure is not None:
            raise self.failure
        self.opened.append(await session(capabilities=capabilities))
        return self.opened[-1]


class Made:
    def __init__(self, settings: dict[str, Any], shared: Session) -> None:
        self.dialer = Dialer()
        self.shared = shared
        config = ServerConfig(id="files", **settings)
        self.sessions = CallerSessions(config, self.dialer, lambda notice: None)  # type: ignore[arg-type]

    async def acquire(self, who: Caller, capabilities: Mapping[str, Any] = FORM) -> Session:
        return await self.sessions.acquire(self.shared, who, capabilities)


@asynccontextmanager
async def made(era: Era = Era.LEGACY, transport: str = "http", **settings: Any) -> AsyncIterator[Made]:
    both = Made({"url": "http://a.example"} | settings, await session(era, transport))
    try:
        yield both
    finally:
        await both.sessions.close()
        assert all(not opened.peer.is_open for opened in both.dialer.opened)


@pytest.mark.parametrize(
    ("settings", "shared", "caller", "capabilities", "wanted"),
    [
        ({"url": "http://a.example"}, Era.LEGACY, Era.LEGACY, FORM, True),
        ({"url": "http://a.example"}, Era.LEGACY, Era.MODERN, FORM, True),
        ({"url": "http://a.example"}, Era.LEGACY, Era.LEGACY, {}, False),
        ({"url": "http://a.example"}, Era.LEGACY, Era.MODERN, {"extensions": {"a/b": {}}}, False),
        ({"url": "http://a.example", "isolation": "shared"}, Era.LEGACY, Era.LEGACY, FORM, False),
        ({"url": "http://a.example", "isolation": "session"}, Era.LEGACY, Era.LEGACY, {}, True),
        ({"command": "x"}, Era.LEGACY, Era.LEGACY, FORM, False),
        ({"command": "x", "isolation": "session"}, Era.LEGACY, Era.MODERN, FORM, True),
        ({"url": "http://a.example"}, Era.MODERN, Era.MODERN, FORM, False),
        ({"url": "http://a.example"}, Era.MODERN, Era.LEGACY, FORM, True),
        ({"url": "http://a.example", "era": "modern"}, Era.MODERN, Era.LEGACY, FORM, False),
        ({"url": "http://a.example", "isolation": "session"}, Era.MODERN, Era.LEGACY, {}, False),
    ],
)
async def test_who_gets_a_session_of_its_own(
    settings: dict[str, Any], shared: Era, caller: Era, capabilities: dict[str, Any], wanted: bool
) -> None:
    both = Made(settings, await session(shared))
    assert both.sessions.is_wanted(both.shared, asker(caller), capabilities) is wanted
    both.shared.transport = "inside"
    assert not both.sessions.is_wanted(both.shared, asker(caller), capabilities)


async def test_callers_share_a_session_only_if_nobody_can_tell_them_apart() -> None:
    async with made() as both:
        first = await both.acquire(asker(session="s1"))
        assert first.peer.capabilities == FORM
        assert await both.acquire(asker(session="s1")) is first
        others = [
            await both.acquire(asker(session="s2")),
            await both.acquire(asker(session="s1"), ALL),
            ada := await both.acquire(asker(Era.MODERN, key="ada")),
            await both.acquire(asker(Era.MODERN, key="eve")),
            await both.acquire(asker(Era.MODERN, key="ada"), ALL),
        ]
        assert len({id(each) for each in [first, *others]}) == 6
        assert await both.acquire(asker(Era.MODERN, key="ada")) is ada
        assert len(both.sessions.of(asker(session="s1"))) == 2
        assert both.sessions.of(asker(session="s")) == []


async def test_the_sessions_of_a_subject_that_may_no_longer_call_end() -> None:
    async with made() as both:
        adas = await both.acquire(asker(Era.MODERN, key="ada"))
        eves = await both.acquire(asker(Era.MODERN, key="eve"))
        both.sessions.forget("ada")
        assert len(both.sessions) == 1
        assert await both.acquire(asker(Era.MODERN, key="eve")) is eves
        assert await both.acquire(asker(Era.MODERN, key="ada")) is not adas


async def test_calls_at_the_same_time_open_one_session() -> None:
    async with made() as both:
        both.dialer.may_open.clear()
        calls = [asyncio.create_task(both.acquire(asker(session="s1"))) for _ in range(5)]
        for _ in range(5):
            await asyncio.sleep(0)
        calls[0].cancel()
        both.dialer.may_open.set()
        lent = await asyncio.gather(*calls[1:])
        assert len({id(each) for each in lent}) == len(both.dialer.opened) == 1


async def test_a_session_that_has_ended_is_opened_anew() -> None:
    async with made() as both:
        first = await both.acquire(asker(session="s1"))
        first.peer.lost(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
        assert await both.acquire(asker(session="s1")) is not first


async def test_why_it_can_not_be_opened_is_said_and_forgotten() -> None:
    async with made() as both:
        both.dialer.failure = GatewayFailure(Kind.CONNECTION_FAILED, "no")
        with pytest.raises(GatewayFailure) as caught:
            await both.acquire(asker(session="s1"))
        assert (caught.value.kind, caught.value.verdict) == (Kind.CONNECTION_FAILED, Verdict.DID_NOT_RUN)
        both.dialer.failure = None
        await both.acquire(asker(session="s1"))


async def test_one_that_does_not_open_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with made(connection_timeout_ms=10) as both:
        both.dialer.may_open.clear()
        with pytest.raises(GatewayFailure) as caught:
            await both.acquire(asker(session="s1"))
        assert caught.value.kind is Kind.CONNECT_TIMEOUT


async def test_a_modern_server_without_a_handshake_serves_from_the_shared_session() -> None:
    async with made(Era.MODERN) as both:
        both.dialer.failure = GatewayFailure(Kind.CONNECTION_FAILED, "just now")
        assert await both.acquire(asker()) is both.shared
        assert both.sessions.is_wanted(both.shared, asker(), FORM)
        both.dialer.failure = GatewayFailure(Kind.HTTP_STATUS, "400")
        assert await both.acquire(asker()) is both.shared
        assert not both.sessions.is_wanted(both.shared, asker(), FORM)
        assert both.sessions.is_wanted(await session(Era.MODERN), asker(), FORM)


async def test_the_longest_unused_makes_room_unless_all_are_busy() -> None:
    async with made(max_sessions_per_client=2) as both:
        first, second = [await both.acquire(asker(session=name)) for name in ("s1", "s2")]
        busy = asyncio.create_task(first.peer.request("tools/call", {}))
        await asyncio.sleep(0)
        third = await both.acquire(asker(session="s3"))
        assert (first.peer.is_open, len(both.sessions)) == (True, 2)
        await asyncio.sleep(0)
        assert not second.peer.is_open
        also = asyncio.create_task(third.peer.request("tools/call", {}))
        await asyncio.sleep(0)
        with pytest.raises(GatewayFailure) as caught:
            await both.acquire(asker(session="s4"))
        assert caught.value.kind is Kind.OVERLOADED
        assert "2 sessions of this client" in caught.value.message
        for task in (busy, also):
            task.cancel()
        await asyncio.wait({busy, also})


async def test_forty_sessions_of_one_principal_end_none_of_another() -> None:
    async with made(isolation="session", command="x", url=None) as both:
        bobs = await both.acquire(asker(session="b1", key="bob"))
        for number in range(40):
            await both.acquire(asker(session=f"a{number}", key="alice"))
            await asyncio.sleep(0)
        assert bobs.peer.is_open
        assert await both.acquire(asker(session="b1", key="bob")) is bobs
        assert len(both.sessions) == 1 + 16


async def test_every_principal_finds_room_for_its_first_session_until_all_places_are_taken() -> None:
    async with made(max_sessions_per_client=24, isolation="session", command="x", url=None) as both:
        counts = []
        for who in ("alice", "carol", "dave", "erin"):
            for number in range(30):
                await both.acquire(asker(session=f"{who}{number}", key=who))
                await asyncio.sleep(0)
            counts.append(len(both.sessions))
        assert counts == [24, 30, 31, 32]


async def test_a_principal_without_a_session_is_refused_when_others_have_all_of_them() -> None:
    async with made() as both:
        both.sessions.max_count = 1
        hers = await both.acquire(asker(session="s1", key="alice"))
        with pytest.raises(GatewayFailure) as caught:
            await both.acquire(asker(session="s2", key="bob"))
        assert caught.value.kind is Kind.OVERLOADED
        assert "1 sessions of other clients" in caught.value.message
        assert hers.peer.is_open


async def test_sessions_that_are_slow_to_end_count_until_they_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = asyncio.Event()

    async def slowly(held: object) -> None:
        await may_end.wait()

    monkeypatch.setattr(caller_sessions, "_end", slowly)
    both = Made({"url": "http://a.example", "max_sessions_per_client": 2}, await session())
    for number in range(4):
        await both.acquire(asker(session=f"s{number}", key="alice"))
    with pytest.raises(GatewayFailure) as caught:
        await both.acquire(asker(session="s4", key="alice"))
    assert "still ending" in caught.value.message
    await both.acquire(asker(session="s5", key="bob"))
    may_end.set()
    await both.sessions.close()


async def test_the_idle_and_the_ended_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with made() as both:
        idle = await both.acquire(asker(session="s1"))
        both.sessions.sweep()
        assert len(both.sessions) == 1
        monkeypatch.setattr(caller_sessions, "IDLE_S", 0.0)
        busy = await both.acquire(asker(session="s2"))
        request = asyncio.create_task(busy.peer.request("tools/call", {}))
        await asyncio.sleep(0)
        both.sessions.sweep()
        assert both.sessions.of(asker(session="s1")) == []
        assert both.sessions.of(asker(session="s2")) == [busy]
        busy.peer.lost(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
        await asyncio.wait({request})
        assert request.exception() is not None
        both.sessions.sweep()
        assert len(both.sessions) == 0
        await asyncio.sleep(0)
        assert not idle.peer.is_open


async def test_closing_ends_what_is_being_opened() -> None:
    async with made() as both:
        both.dialer.may_open.clear()
        lending = asyncio.create_task(both.acquire(asker(session="s1")))
        await asyncio.sleep(0)
        await both.sessions.close()
        with pytest.raises(GatewayFailure) as caught:
            await lending
        assert caught.value.kind is Kind.CONNECTION_FAILED
