from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pactgate.config.sections.oauth import Introspection, Issuer
from pactgate.inbound.oauth import introspection
from pactgate.inbound.oauth.introspection import Introspector, ProviderDownError
from pactgate.inbound.oauth.provider import Provider
from pactgate.inbound.oauth.token_form import TokenRefusedError
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.documents import DocumentClient
from tests.support.facing import Clock
from tests.support.identity_provider import INTROSPECTION, IdentityProvider

OWN = Introspection(client_id="gateway", client_secret="of-the-gateway")


@asynccontextmanager
async def asking(server: IdentityProvider, clock: Clock) -> AsyncIterator[Introspector]:
    client = HttpClient()
    issuer = Issuer(issuer=server.issuer, audiences=("a",), introspection=OWN)
    provider = Provider(issuer, DocumentClient(client, "auth.issuers", [server.issuer]).fetch)
    introspector = Introspector(provider, OWN, clock)
    try:
        yield introspector
    finally:
        introspector.close()
        await client.close()


async def test_equal_tokens_are_asked_about_once_at_a_time() -> None:
    async with IdentityProvider() as server, asking(server, Clock()) as introspector:
        server.active["a b&c"] = {"active": True, "sub": "ann"}
        found = await asyncio.gather(*(introspector.ask("a b&c", b"1") for _ in range(20)))
        assert {one["sub"] for one in found} == {"ann"}
        assert server.asked.count(INTROSPECTION) == 1


async def test_a_client_that_goes_away_takes_nobody_with_it() -> None:
    release = asyncio.Event()
    async with IdentityProvider() as server, asking(server, Clock()) as introspector:
        server.gate = release.wait
        server.active["t"] = {"active": True}
        first, second = (asyncio.create_task(introspector.ask("t", b"1")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        release.set()
        assert (await second)["active"]


async def test_a_refusal_is_remembered_for_a_while() -> None:
    clock = Clock()
    async with IdentityProvider() as server, asking(server, clock) as introspector:
        for _ in range(3):
            with pytest.raises(TokenRefusedError):
                await introspector.ask("t", b"1")
        assert server.asked.count(INTROSPECTION) == 1
        clock.now += introspection.INACTIVE_S
        server.active["t"] = {"active": True}
        assert (await introspector.ask("t", b"1"))["active"]


async def test_no_more_refusals_are_remembered_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introspection, "MAX_INACTIVE", 3)
    async with IdentityProvider() as server, asking(server, Clock()) as introspector:
        for number in range(5):
            with pytest.raises(TokenRefusedError):
                await introspector.ask(str(number), bytes([number]))
        assert [introspector.is_inactive(bytes([number])) for number in range(5)] == [False, False, True, True, True]


async def test_a_provider_that_is_down_is_left_alone_for_a_moment() -> None:
    clock = Clock()
    async with IdentityProvider() as server, asking(server, clock) as introspector:
        await server.stop()
        for _ in range(3):
            with pytest.raises(ProviderDownError):
                await introspector.ask("t", b"1")
        await server.start()
        server.active["t"] = {"active": True}
        with pytest.raises(ProviderDownError):
            await introspector.ask("t", b"1")
        clock.now += introspection.DOWN_S
        assert (await introspector.ask("t", b"1"))["active"]
