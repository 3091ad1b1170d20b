from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.inbound.oauth import key_set
from pactgate.inbound.oauth.key_set import KeyDocument, KeyStore, PublicKey
from pactgate.inbound.oauth.token_form import TokenRefusedError
from tests.support.eventually import eventually
from tests.support.facing import Clock
from tests.support.identity_provider import public_jwk


def keys_of(*ids: str) -> dict[str, Any]:
    return {"keys": [public_jwk(ec.generate_private_key(ec.SECP256R1()), kid=id_) for id_ in ids]}


class Provider:
    """Gives out `keys`, or fails while they are None."""

    def __init__(self, *ids: str, max_age_s: float | None = None) -> None:
        self.keys: dict[str, Any] | None = keys_of(*ids)
        self.max_age_s = max_age_s
        self.asked = 0
        self.wait: Callable[[], Awaitable[object]] | None = None

    async def __call__(self) -> KeyDocument:
        self.asked += 1
        if self.wait is not None:
            await self.wait()
        if self.keys is None:
            raise GatewayFailure(Kind.CONNECTION_FAILED, "it is down")
        return KeyDocument(self.keys, self.max_age_s)


async def find(store: KeyStore, id_: str) -> PublicKey:
    found = store.find(id_)
    while not isinstance(found, PublicKey):
        await asyncio.wait((found,))
        found = store.find(id_)
    return found


async def test_keys_are_fetched_once_however_many_ask() -> None:
    provider = Provider("a")
    store = KeyStore(provider)
    found = await asyncio.gather(*(find(store, "a") for _ in range(50)))
    assert (provider.asked, len(set(map(id, found)))) == (1, 1)


async def test_an_unknown_key_is_asked_about_every_half_minute_at_most() -> None:
    provider, clock = Provider("a"), Clock()
    store = KeyStore(provider, clock=clock)
    await find(store, "a")
    for _ in range(3):
        with pytest.raises(TokenRefusedError):
            await find(store, "b")
    assert provider.asked == 2
    provider.keys = keys_of("a", "b")
    clock.now += key_set.UNKNOWN_KEY_GAP_S
    await find(store, "b")
    assert provider.asked == 3


async def test_old_keys_are_used_while_they_are_fetched_again() -> None:
    provider, clock, release = Provider("a", max_age_s=1.0), Clock(), asyncio.Event()
    store = KeyStore(provider, clock=clock)
    before = await find(store, "a")
    provider.wait = release.wait
    clock.now += key_set.MIN_AGE_S - 1
    assert store.find("a") is before
    assert provider.asked == 1, "a minute is the least"
    clock.now += 1
    assert store.find("a") is before
    await eventually(lambda: provider.asked == 2)
    release.set()
    await eventually(lambda: store.find("a") is not before)


async def test_keys_are_used_for_a_day_while_the_provider_is_down_and_not_longer() -> None:
    provider, clock = Provider("a", max_age_s=3600.0), Clock()
    store = KeyStore(provider, clock=clock)
    before = await find(store, "a")
    provider.keys = None
    clock.now += 3600 + key_set.STALE_S - 1
    assert await find(store, "a") is before
    await eventually(lambda: store.trouble == "it is down")
    clock.now += 1 + key_set.RETRY_S
    with pytest.raises(TokenRefusedError, match="can't be fetched"):
        await find(store, "a")


async def test_a_provider_that_is_down_is_not_asked_again_at_once() -> None:
    provider, clock = Provider("a"), Clock()
    provider.keys = None
    store = KeyStore(provider, clock=clock)
    for _ in range(10):
        with pytest.raises(TokenRefusedError):
            await find(store, "a")
    assert provider.asked == 1
    provider.keys = keys_of("a")
    clock.now += key_set.RETRY_S
    await find(store, "a")


async def test_a_withdrawn_key_is_told_of() -> None:
    provider, clock, told = Provider("a", "b"), Clock(), list[int]()
    store = KeyStore(provider, clock=clock)
    store.on_removed = lambda: told.append(1)
    await find(store, "a")
    provider.keys = keys_of("a", "b", "c")
    await find(store, "c")
    assert told == []
    provider.keys = keys_of("c", "d")
    clock.now += key_set.UNKNOWN_KEY_GAP_S
    await find(store, "d")
    assert told == [1]


async def test_an_empty_key_set_does_not_replace_a_good_one() -> None:
    provider, clock = Provider("a"), Clock()
    store = KeyStore(provider, clock=clock)
    before = await find(store, "a")
    provider.keys = {"keys": []}
    with pytest.raises(TokenRefusedError):
        await find(store, "b")
    assert await find(store, "a") is before


def test_configured_keys_are_never_fetched() -> None:
    store = KeyStore(None, given=keys_of("a"))
    assert isinstance(store.find("a"), PublicKey)
    with pytest.raises(TokenRefusedError):
        store.find("b")
