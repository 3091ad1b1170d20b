"""A user signs in at one replica, by the link of another, and all replicas call with the sign-in and renew it once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pactgate.state.credential_keys import new_key
from tests.journeys.test_caller_sign_in import ALICE, Place, age, served
from tests.support.eventually import eventually
from tests.support.redis_server import RedisServer, needs_redis
from tests.support.sign_in_server import Browser, SignInServer, sign_in_server

pytestmark = [pytest.mark.interop, needs_redis]


@pytest.fixture
def server() -> Iterator[SignInServer]:
    with sign_in_server() as state:
        state.lists_for_nobody = True
        yield state


def has_store(place: Place) -> bool:
    return bool(place.gateway.snapshot()["state"]["store"] == "ok")


async def test_a_sign_in_at_one_replica_is_one_at_all(redis: RedisServer, server: SignInServer, tmp_path: Path) -> None:
    state = {"state": {"url": redis.url, "key": new_key()}}
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    async with served(server, folders[0], more=state) as one, served(server, folders[1], more=state) as other:
        for place in (one, other):
            await eventually(partial(has_store, place))
        link = (await one.link(ALICE)).replace(one.address, other.address)
        page = await asyncio.to_thread(Browser("Alice").send, link, ALICE)
        assert page.status == 200, page.text
        assert [await place.call(ALICE) for place in (one, other)] == ["done for Alice"] * 2
        server.expire_tokens()
        age(one)
        assert await asyncio.gather(one.call(ALICE), other.call(ALICE)) == ["done for Alice"] * 2
        assert len(server.refreshes) == 1
        assert one.kept == other.kept == {"alice"}
        assert not list(folders[1].glob("*.credentials")), "nothing is in a file"
