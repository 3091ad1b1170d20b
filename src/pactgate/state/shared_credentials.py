"""The rows of the credential store in Redis or Valkey, for replicas (`CredentialRows`).

One hash has all rows; scripts compare and write in one step. Asked from threads, a few times in an hour, so with a client of its own. A
lock ends by itself after a while, where its holder was killed. Must not: repeat a command.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import msgspec

from pactgate.state.credential_rows import CredentialRow, Reseal, RowsUnusableError

LOCK_S: Final = 45.0
"""Longer than anybody holds a lock (`server_grant.RENEW_S`)."""
_WAIT_S: Final = 2.0
_LOOK_S: Final = 0.1
_PUT: Final = """
local found = redis.call('HGET', KEYS[1], ARGV[1])
local generation = found and tonumber(string.match(found, '^(%d+) ')) or 0
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= generation then return -1 end
redis.call('HSET', KEYS[1], ARGV[1], (generation + 1) .. ' ' .. ARGV[3])
redis.call('INCR', KEYS[2])
return generation + 1"""
_RESEAL: Final = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1"""
_REMOVE: Final = """
local gone = redis.call('HDEL', KEYS[1], unpack(ARGV))
if gone > 0 then redis.call('INCR', KEYS[2]) end
return gone"""
_UNLOCK: Final = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"


class SharedRows:
    """`url` may hold a password. Names of keys begin with `prefix`."""

    where = "The store of credentials (state.url)"
    exists = True

    def __init__(self, url: str, prefix: str) -> None:
        self._url = url
        self._prefix = prefix
        self._rows = f"{prefix}:credentials"
        self._changes = f"{prefix}:credentials:changes"
        self._client: Any = None

    def state(self) -> Hashable:
        found: Hashable = self._ask(lambda redis: redis.get(self._changes))
        return found

    def key_ids(self) -> set[str]:
        return {row.key_id for row, _ in self._all()}

    def get(self, kind: str, server: str, name: str) -> CredentialRow | None:
        field = _field(kind, server, name)
        kept = self._ask(lambda redis: redis.hget(self._rows, field))
        return None if kept is None else _row(field, kept)

    def of_kind(self, kind: str) -> list[CredentialRow]:
        found = [row for row, _ in self._all() if row.kind == kind]
        return sorted(found, key=lambda row: (row.server, row.name))

    def put(self, row: CredentialRow, replaces: int | None) -> int | None:
        keys, expected = (self._rows, self._changes), "" if replaces is None else str(replaces)
        field = _field(row.kind, row.server, row.name)
        generation = self._ask(lambda redis: redis.eval(_PUT, 2, *keys, field, expected, _kept(row)))
        return None if generation < 0 else int(generation)

    def remove(self, server: str, principal: str) -> bool:
        rows = [row for row, _ in self._all() if row.server == server and principal in ("", row.principal)]
        fields = [_field(row.kind, row.server, row.name) for row in rows]
        if not fields:
            return False
        return bool(self._ask(lambda redis: redis.eval(_REMOVE, 2, self._rows, self._changes, *fields)))

    def reseal(self, change: Reseal) -> int:
        """A row that is written in this moment has the new key already, if its writer knows it."""
        count = 0
        for row, kept in self._all():
            field, sealed = _field(row.kind, row.server, row.name), b"%d %b" % (row.generation, _kept(change(row)))
            count += self._ask(partial(_reseal, self._rows, field, kept, sealed))
        return count

    @asynccontextmanager
    async def locked(self, server: str, principal: str) -> AsyncIterator[None]:
        name, mark = f"{self._rows}:lock:{server} {principal}", secrets.token_hex(16)
        while True:
            if await asyncio.to_thread(self._take, name, mark):
                break
            await asyncio.sleep(_LOOK_S)
        try:
            yield
        finally:
            await asyncio.shield(asyncio.to_thread(self._ask, lambda redis: redis.eval(_UNLOCK, 1, name, mark)))

    def _take(self, name: str, mark: str) -> bool:
        return bool(self._ask(lambda redis: redis.set(name, mark, nx=True, px=int(LOCK_S * 1000))))

    def _all(self) -> list[tuple[CredentialRow, bytes]]:
        found = self._ask(lambda redis: redis.hgetall(self._rows))
        return [(_row(field, kept), kept) for field, kept in found.items()]

    def _ask(self, command: Callable[[Any], Any]) -> Any:
        from redis import Redis, RedisError
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        if self._client is None:
            self._client = Redis.from_url(
                self._url, socket_timeout=_WAIT_S, socket_connect_timeout=_WAIT_S, retry=Retry(NoBackoff(), 0)
            )
        try:
            return command(self._client)
        except (RedisError, OSError) as problem:
            raise RowsUnusableError(f"it does not answer ({type(problem).__name__}).", is_away=True) from None


def _reseal(rows: str, field: bytes, kept: bytes, sealed: bytes, redis: Any) -> int:
    return int(redis.eval(_RESEAL, 1, rows, field, kept, sealed))


def _field(kind: str, server: str, name: str) -> bytes:
    return msgspec.json.encode([kind, server, name])


def _kept(row: CredentialRow) -> bytes:
    return row.key_id.encode() + b" " + row.sealed


def _row(field: bytes, kept: bytes) -> CredentialRow:
    kind, server, name = msgspec.json.decode(field, type=tuple[str, str, str])
    generation, key_id, sealed = kept.split(b" ", 2)
    return CredentialRow(kind, server, name, key_id.decode(), sealed, int(generation))
