"""Commands that leave as they come, on one connection to a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pactgate.state.store_connection import StoreConnection
from tests.support.redis_server import RedisServer, needs_redis, slowed

pytestmark = [pytest.mark.interop, needs_redis]


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[StoreConnection]:
    from redis.asyncio import ConnectionPool

    made = ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
    connection = StoreConnection(made)
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


async def test_commands_to_a_store_50_ms_away_do_not_wait_for_each_other(redis: RedisServer) -> None:
    async with slowed(redis.port, 0.05) as port, connected(f"redis://127.0.0.1:{port}/0") as connection:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        answers = []
        for number in range(200):
            answers.append(connection.send("ECHO", str(number)))
            await asyncio.sleep(0)
        assert await asyncio.gather(*answers) == [str(number).encode() for number in range(200)]
        assert loop.time() - begun < 2, "one after the other they would take 10 s"


@pytest.mark.parametrize("protocol", [2, 3])
async def test_both_versions_of_the_protocol_are_spoken(redis: RedisServer, protocol: int) -> None:
    async with connected(f"{redis.url}?protocol={protocol}") as connection:
        script = "redis.call('HSET', KEYS[1], 'a', 1) return redis.call('HGETALL', KEYS[1])"
        assert await connection.send("EVAL", script, 1, "k") == [b"a", b"1"]


async def test_an_error_is_the_answer_of_one_command(redis: RedisServer) -> None:
    async with connected(redis.url) as connection:
        first, second, third = (connection.send(*words) for words in (("ECHO", "a"), ("NO", "SUCH"), ("ECHO", "b")))
        assert await first == b"a"
        assert isinstance(await second, Exception)
        assert await third == b"b"


async def test_a_lost_connection_ends_every_command_at_once_and_takes_no_more(redis: RedisServer) -> None:
    async with connected(redis.url) as connection:
        redis.suspend()
        answers = [connection.send("ECHO", str(number)) for number in range(3)]
        redis.stop()
        assert all(isinstance(found, Exception) for found in await asyncio.gather(*answers))
        assert len(connection) == 0
        assert isinstance(await connection.send("ECHO", "x"), Exception)


async def test_whoever_waits_no_more_does_not_shift_the_answers(redis: RedisServer) -> None:
    async with connected(redis.url) as connection:
        left, stays = connection.send("ECHO", "a"), connection.send("ECHO", "b")
        left.cancel()
        assert await stays == b"b"
