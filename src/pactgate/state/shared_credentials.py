"""The rows of the credential store in Redis or Valkey, for replicas (`CredentialRows`).

One hash has all rows, so that every script has one key, as a cluster wants; each compares and writes in one step and renews the end of all.
A row is sealed as a whole, and its name is a digest: what is stored says neither server nor caller. A lock ends `LOCK_S` after its holder
was heard of last. While the store does not answer, a row is read as it was read last, and nothing is written or locked. Asked from
threads, a few times in an hour, so with a client of its own. Must not: repeat a command.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from pactgate.state.credential_rows import CredentialRow, Reseal, RowsUnusableError
from pactgate.state.sealing_keys import SealingKeys

LOCK_S: Final = 6.0
_BEATS: Final = 3
"""So often in `LOCK_S` the holder of a lock says that it lives."""
_WAIT_S: Final = 1.0
_PAUSE_S: Final = 1.0
"""So long the store is not asked again after it did not answer."""
_LOOK_S: Final = 0.05
_KEPT_MS: Final = 180 * 86_400_000
_MAX_KNOWN: Final = 4096
_STEP: Final = 200
_PURPOSE: Final = "credential row"
_CHANGES: Final = b"changes"

# ARGV: the end, the generation that is replaced ('' for any), the sealed row, its name by the current key, and those by older keys.
_PUT: Final = """
local held = false
for i = 4, #ARGV do held = held or redis.call('HGET', KEYS[1], ARGV[i]) end
local generation = held and tonumber(string.match(held, '^%d+')) or 0
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= generation then return 0 end
for i = 5, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('HSET', KEYS[1], ARGV[4], string.format('%d', generation + 1) .. ' ' .. ARGV[3])
redis.call('HINCRBY', KEYS[1], 'changes', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return generation + 1"""
_RESEAL: Final = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
return 1"""
_REMOVE: Final = """
local gone = redis.call('HDEL', KEYS[1], unpack(ARGV))
if gone > 0 then redis.call('HINCRBY', KEYS[1], 'changes', 1) end
return gone"""
_LOCK: Final = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0"
_BEAT: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0"
_UNLOCK: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[str, str, str, str, bytes]).decode


class SharedRows:
    """`url` may hold a password. Names of keys begin with `prefix`. `keys` are those of the replicas."""

    where = "The store of credentials (state.url)"
    exists = True

    def __init__(self, url: str, prefix: str, keys: SealingKeys) -> None:
        self._url = url
        self._rows = f"{prefix}:credentials"
        self._lock = f"{prefix}:credential-lock"
        self._keys = keys
        self._client: Any = None
        self._retry_at = 0.0
        self._known: OrderedDict[tuple[str, ...], CredentialRow | None] = OrderedDict()
        self._guard = threading.Lock()

    def state(self) -> Hashable:
        found: Hashable = self._ask("hget", self._rows, _CHANGES)
        return found

    def key_ids(self) -> set[str]:
        return {row.key_id for row, _, _ in self._all()}

    def get(self, kind: str, server: str, name: str) -> CredentialRow | None:
        key = (kind, server, name)
        try:
            found = self._ask("hmget", self._rows, self._names(*key))
        except RowsUnusableError:
            with self._guard:
                if key not in self._known:
                    raise
                return self._known[key]
        value = next((one for one in found if one is not None), None)
        row = None if value is None else self._row(value)
        if row is not None and (row.kind, row.server, row.name) != key:
            raise RowsUnusableError(f"the credentials of {server} are those of something else.")
        with self._guard:
            self._known[key] = row
            self._known.move_to_end(key)
            if len(self._known) > _MAX_KNOWN:
                self._known.popitem(last=False)
        return row

    def of_kind(self, kind: str) -> list[CredentialRow]:
        found = [row for row, _, _ in self._all() if row.kind == kind]
        return sorted(found, key=lambda row: (row.server, row.name))

    def put(self, row: CredentialRow, replaces: int | None, seal: Reseal) -> int | None:
        expected = "" if replaces is None else replaces
        names = self._names(row.kind, row.server, row.name)
        return self._run(_PUT, self._rows, _KEPT_MS, expected, self._kept(seal(row)), *names) or None

    def remove(self, server: str, principal: str) -> bool:
        gone = [field for row, field, _ in self._all() if row.server == server and principal in ("", row.principal)]
        steps = (gone[start : start + _STEP] for start in range(0, len(gone), _STEP))
        return sum(self._run(_REMOVE, self._rows, *step) for step in steps) > 0

    def reseal(self, change: Reseal) -> int:
        """A row that is written in this moment has the new key already, if its writer knows it."""
        count = 0
        for row, field, value in self._all():
            new = b"%d %b" % (row.generation, self._kept(change(row)))
            count += self._run(_RESEAL, self._rows, field, value, self._names(row.kind, row.server, row.name)[0], new)
        return count

    @asynccontextmanager
    async def locked(self, server: str, principal: str) -> AsyncIterator[None]:
        name, mark = f"{self._lock}:{self._names(server, principal)[0]}", secrets.token_hex(16)
        while not await asyncio.to_thread(self._run, _LOCK, name, mark, int(LOCK_S * 1000)):  # noqa: ASYNC110 - held elsewhere
            await asyncio.sleep(_LOOK_S)
        beating = asyncio.create_task(self._beat(name, mark), name=f"lock of {server}")
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.wait({beating})
            with suppress(RowsUnusableError):  # it ends by itself
                await asyncio.to_thread(self._run, _UNLOCK, name, mark)

    async def _beat(self, name: str, mark: str) -> None:
        while True:
            await asyncio.sleep(LOCK_S / _BEATS)
            with suppress(RowsUnusableError):
                await asyncio.to_thread(self._run, _BEAT, name, mark, int(LOCK_S * 1000))

    def _all(self) -> list[tuple[CredentialRow, bytes, bytes]]:
        """Each row with its name and its value in the store."""
        found: dict[bytes, bytes] = self._ask("hgetall", self._rows)
        return [(self._row(value), field, value) for field, value in found.items() if field != _CHANGES]

    def _names(self, *parts: str) -> list[str]:
        """The names that each of the keys gives, that of the current one first."""
        return [hmac.digest(key, _encode(parts), "sha256").hex()[:32] for key in self._keys.keys(_PURPOSE)]

    def _kept(self, row: CredentialRow) -> bytes:
        return self._keys.seal(_PURPOSE, _encode((row.kind, row.server, row.name, row.key_id, row.sealed)))

    def _row(self, value: bytes) -> CredentialRow:
        generation, _, sealed = value.partition(b" ")
        opened = self._keys.open(_PURPOSE, sealed)
        if opened is None:
            raise RowsUnusableError(
                "it was sealed with another key than state.key has. Restore that key, or sign in again."
            )
        return CredentialRow(*_decode(opened), int(generation))

    def _run(self, script: str, key: str, *args: str | bytes | int) -> int:
        return int(self._ask("eval", script, 1, key, *args))

    def _ask(self, command: str, *args: object) -> Any:
        from redis import Redis, RedisError
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        if self._client is None:
            self._client = Redis.from_url(
                self._url, socket_timeout=_WAIT_S, socket_connect_timeout=_WAIT_S, retry=Retry(NoBackoff(), 0)
            )
        if time.monotonic() < self._retry_at:
            raise RowsUnusableError("it did not answer a moment ago.", is_away=True)
        try:
            return getattr(self._client, command)(*args)
        except (RedisError, OSError) as problem:
            self._retry_at = time.monotonic() + _PAUSE_S
            raise RowsUnusableError(f"it does not answer ({type(problem).__name__}).", is_away=True) from None
