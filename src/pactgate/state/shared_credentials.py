"""The credentials the gateway has at servers, where replicas share a store: one hash of sealed rows, and a lock for each grant.

A row says inside its seal what it is for; its name in the store is a digest. Every write is one step of the store that compares the
generation it replaces, and renews the end of all rows. A lock ends `LOCK_MS` after its holder was heard of last. While the store does not
answer, rows are read as they were read last, and nothing is written or locked. Must not: be used on the path of a call that has a token.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec
from msgspec import Struct

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.credential_store import CredentialStore, SealedRow
from pactgate.state.sealing_keys import SealingKeys

LOCK_MS: Final = 6000
_BEAT_S: Final = 2.0
_LOOK_S: Final = 0.05
_WAIT_S: Final = 1.0
"""The longest wait for the store: who needs it opens a connection to a server or renews a token, over a network too."""
_PAUSE_S: Final = 1.0
"""So long the store is not asked again after it did not answer."""
_KEPT_MS: Final = 180 * 86_400_000
_MAX_KNOWN: Final = 4096
_SCANNED: Final = 200
_PURPOSE: Final = "credential"
_ROWS: Final = "credentials"
_CHANGES: Final = b"changes"

# ARGV: the end, the name by the current key, the generation that is replaced ('' for any), the sealed row, names by older keys.
_WRITE: Final = """
local held = redis.call('HGET', KEYS[1], ARGV[2])
for i = 5, #ARGV do held = held or redis.call('HGET', KEYS[1], ARGV[i]) end
local generation = held and tonumber(string.match(held, '^%d+')) or 0
if ARGV[3] ~= '' and tonumber(ARGV[3]) ~= generation then return 0 end
for i = 5, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('HSET', KEYS[1], ARGV[2], string.format('%d', generation + 1) .. ' ' .. ARGV[4])
redis.call('HINCRBY', KEYS[1], 'changes', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return generation + 1
"""
_REMOVE: Final = """
local gone = redis.call('HDEL', KEYS[1], unpack(ARGV))
if gone > 0 then redis.call('HINCRBY', KEYS[1], 'changes', 1) end
return gone
"""
_TAKE: Final = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0"
_BEAT: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0"
_RELEASE: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"


class _Row(Struct, frozen=True, array_like=True):
    kind: str
    server: str
    name: str
    data: bytes


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Row).decode


class SharedCredentials(CredentialStore):
    """The store of credentials at `url`. Its key is that of the replicas, with which everything they share is sealed."""

    def __init__(self, url: str, prefix: str, keys: SealingKeys) -> None:
        from redis import Redis  # a gateway without replicas starts without it
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError
        from redis.retry import Retry

        super().__init__("")
        self._redis: Any = Redis.from_url(
            url,
            socket_timeout=_WAIT_S,
            socket_connect_timeout=_WAIT_S,
            retry=Retry(NoBackoff(), 0),
            client_name="pactgate-credentials",
        )
        self._errors = (RedisError, OSError)
        self._rows = f"{prefix}:{_ROWS}"
        self._lock = f"{prefix}:credential-lock"
        self._sealing = keys
        self._known: OrderedDict[tuple[str, str, str], SealedRow | None] = OrderedDict()
        self._guard = threading.Lock()
        self._retry_at = 0.0

    @property
    def exists(self) -> bool:
        return True

    def state(self) -> object:
        """Tells one state of the rows from another. Raises STATE_UNAVAILABLE, as every method may."""
        return self._ask(self._redis.hget, self._rows, _CHANGES)

    def check(self) -> None:
        """Say at the start that the key is not the one that rows were sealed with. Raises INVALID_CONFIG."""
        try:
            _, page = self._ask(self._redis.hscan, self._rows, count=_SCANNED)
        except GatewayFailure:
            return  # a store that can't be reached does not stop the start
        for _ in self._opened(page):
            continue

    def read(self, kind: str, server: str, name: str) -> SealedRow | None:
        key, names = (kind, server, name), self._names(kind, server, name)
        try:
            found = self._ask(self._redis.hmget, self._rows, names)
        except GatewayFailure:
            with self._guard:
                if key not in self._known:
                    raise
                return self._known[key]
        value = next((one for one in found if one is not None), None)
        row = None
        if value is not None:
            of, row = self._open_row(value)
            if (of, row.server, row.name) != key:
                raise GatewayFailure(
                    Kind.INVALID_CONFIG, f"The credentials of {server} in the shared store are those of something else."
                )
        with self._guard:
            self._known[key] = row
            self._known.move_to_end(key)
            if len(self._known) > _MAX_KNOWN:
                self._known.popitem(last=False)
        return row

    def rows(self, kind: str) -> list[SealedRow]:
        return sorted((row for _, of, row in self._all() if of == kind), key=lambda row: (row.server, row.name))

    def write(self, kind: str, server: str, name: str, data: bytes, *, replaces: int | None = None) -> int | None:
        sealed = self._sealing.seal(_PURPOSE, _encode(_Row(kind, server, name, data)))
        current, *older = self._names(kind, server, name)
        replaced = "" if replaces is None else replaces
        return self._eval(_WRITE, self._rows, _KEPT_MS, current, replaced, sealed, *older) or None

    def remove(self, server: str, principal: str = "") -> bool:
        """Remove all rows of a server, or those of one principal. Whether there were any."""
        gone = [
            field
            for field, _, row in self._all()
            if row.server == server and principal in ("", row.name.partition(" ")[2])
        ]
        steps = [gone[start : start + _SCANNED] for start in range(0, len(gone), _SCANNED)]
        return sum(self._eval(_REMOVE, self._rows, *step) for step in steps) > 0

    def rotate(self) -> int:
        """Seal every row with the current key and return their number. A row that another process writes meanwhile has it by that."""
        rows = [(kind, row) for _, kind, row in self._all()]
        for kind, row in rows:
            self.write(kind, row.server, row.name, row.data, replaces=row.generation)
        return len(rows)

    @asynccontextmanager
    async def locked(self, server: str, principal: str = "") -> AsyncIterator[None]:
        """Hold the credentials of one server and principal against every replica. The caller bounds it in time."""
        key = f"{self._lock}:{self._sealing.digest(_PURPOSE, server, principal)}"
        token = secrets.token_hex(16)
        while not await asyncio.to_thread(self._eval, _TAKE, key, token, LOCK_MS):  # noqa: ASYNC110 - held elsewhere
            await asyncio.sleep(_LOOK_S)
        beating = asyncio.create_task(self._beat(key, token), name=f"lock of {server}")
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.wait({beating})
            await self._quietly(_RELEASE, key, token)

    async def _beat(self, key: str, token: str) -> None:
        while True:
            await asyncio.sleep(_BEAT_S)
            await self._quietly(_BEAT, key, token, LOCK_MS)

    async def _quietly(self, script: str, key: str, *args: str | int) -> None:
        """For a lock, which ends by itself where the store can't be told."""
        with suppress(GatewayFailure):
            await asyncio.to_thread(self._eval, script, key, *args)

    def _eval(self, script: str, key: str, *args: str | bytes | int) -> int:
        return int(self._ask(self._redis.eval, script, 1, key, *args))

    def _ask(self, command: Callable[..., Any], *args: object, **options: object) -> Any:
        if time.monotonic() < self._retry_at:
            raise _unavailable("not asked again yet")
        try:
            return command(*args, **options)
        except self._errors as problem:
            self._retry_at = time.monotonic() + _PAUSE_S
            raise _unavailable(type(problem).__name__) from problem

    def _all(self) -> Iterator[tuple[bytes, str, SealedRow]]:
        return self._opened(self._ask(self._redis.hgetall, self._rows))

    def _opened(self, found: Mapping[bytes, bytes]) -> Iterator[tuple[bytes, str, SealedRow]]:
        """Name, kind and row of each."""
        return ((field, *self._open_row(value)) for field, value in found.items() if field != _CHANGES)

    def _open_row(self, value: bytes) -> tuple[str, SealedRow]:
        generation, _, sealed = value.partition(b" ")
        opened = self._sealing.open(_PURPOSE, sealed)
        if opened is None:
            raise GatewayFailure(
                Kind.INVALID_CONFIG,
                "The credentials in the shared store were sealed with another key than state.key. Add that key after the current one, "
                "or remove them and sign in again.",
                details={"permanent": True},
            )
        row = _decode(opened)
        return row.kind, SealedRow(row.server, row.name, int(generation), row.data)

    def _names(self, kind: str, server: str, name: str) -> tuple[str, ...]:
        return self._sealing.digests(_PURPOSE, kind, server, name)


def _unavailable(why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.STATE_UNAVAILABLE, f"The shared store, which has the credentials of servers, does not answer ({why})."
    )
