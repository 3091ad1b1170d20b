"""The credentials the gateway has at servers: rows that are each sealed with AES-256-GCM, used by several processes.

What a row is for (kind, server, name) is authenticated with it, so that a row moved elsewhere can't be opened. Must not: be used on the
path of a call that has a token, or give out anything that another key sealed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pactgate.config.sections.state import read_keys
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.credential_keys import KeySource, KeyUnusableError, key_source, new_key
from pactgate.state.credential_rows import CredentialRow, CredentialRows, FileRows, RowsUnusableError

KEY_SUFFIX: Final = ".key"
LOCK_S: Final = 60.0
"""Longer than any process holds credentials: the longest is a refresh."""
_NONCE_BYTES: Final = 12
_KEY: Final = ""
"""Stands for the key itself where a lock wants a server."""


class SealedRow(Struct, frozen=True):
    """One opened row. `generation` counts its writes."""

    server: str
    name: str
    generation: int
    data: bytes


class CredentialStore:
    """Every method but `locked` and `rotate` may wait for the disk or the store that replicas share, never for another network."""

    def __init__(self, rows: CredentialRows, source: KeySource) -> None:
        self._rows = rows
        self._source = source
        self._keys: list[bytes] = []

    @classmethod
    def in_file(cls, path: str, given_key: str | None = None) -> CredentialStore:
        """The store at a path. Without a key that is given, the key file beside it has the key."""
        return cls(FileRows(path), key_source(given_key, f"{path}{KEY_SUFFIX}"))

    @property
    def exists(self) -> bool:
        return self._rows.exists

    def state(self) -> Hashable:
        """Another value after each change."""
        with self._explained():
            return self._rows.state()

    def check(self) -> None:
        """Say at the start that the key is not the one that rows were sealed with. Raises INVALID_CONFIG."""
        if self.exists:
            with self._explained():
                found = self._rows.key_ids()
            for key_id in found:
                self._key_of(key_id)

    def read(self, kind: str, server: str, name: str) -> SealedRow | None:
        """One row, or None. Raises INVALID_CONFIG where it can't be opened."""
        if not self.exists:
            return None
        with self._explained():
            found = self._rows.get(kind, server, name)
        return None if found is None else self._opened(found)

    def rows(self, kind: str) -> list[SealedRow]:
        """All rows of one kind, by server."""
        if not self.exists:
            return []
        with self._explained():
            found = self._rows.of_kind(kind)
        return [self._opened(row) for row in found]

    def write(self, kind: str, server: str, name: str, data: bytes, *, replaces: int | None = None) -> int | None:
        """Write a row and return its generation. With `replaces`, only over that generation (0: no row); None where it is not so."""
        self._loaded_keys()  # without a key, no file is made

        def seal(row: CredentialRow) -> CredentialRow:
            if self._source.is_ours:
                self._keys = []  # another process may have rotated it, and dropped the one that is known here
            return self._sealed(row, data)

        with self._explained():
            return self._rows.put(CredentialRow(kind, server, name, "", b""), replaces, seal)

    def remove(self, server: str, principal: str = "") -> bool:
        """Remove all rows of a server, or those of one principal. Whether there were any."""
        if not self.exists:
            return False
        with self._explained():
            return self._rows.remove(server, principal)

    async def rotate(self) -> int:
        """Seal every row with a new key and return their number. In a key file the old key stays beside the new one until that is done.

        With keys that are given, the first one is the new key and the others are old ones.
        """
        if not self._source.is_ours:
            return await asyncio.to_thread(self._reseal)
        async with self.locked(_KEY):  # the key of another rotation would be lost, and its rows with it
            return await asyncio.to_thread(self._rotate)

    def _rotate(self) -> int:
        self._keys = []  # one that waited for another rotation knows the key before that
        old = [base64.b64encode(key).decode() for key in self._loaded_keys()]
        self._source.replace([new_key(), *old])
        self._keys = []
        count = self._reseal()
        self._source.replace([base64.b64encode(self._loaded_keys()[0]).decode()])
        return count

    def _reseal(self) -> int:
        with self._explained():
            return self._rows.reseal(lambda row: self._sealed(row, self._opened(row).data))

    @asynccontextmanager
    async def locked(self, server: str, principal: str = "", *, within_s: float = LOCK_S) -> AsyncIterator[None]:
        """Hold the credentials of one server and principal against every other process; `within_s` bounds the wait for it. The caller
        bounds how long it holds them."""
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(within_s):
                    await held.enter_async_context(self._rows.locked(server, principal))
            except RowsUnusableError as problem:
                raise self._unusable(problem) from None
            except TimeoutError:
                what = f"those of {server}" if server != _KEY else "its key"
                why = f"another process has been changing {what} for {within_s:g} s. Try again."
                raise self._unusable(RowsUnusableError(why, is_away=True)) from None
            yield

    @property
    def key_id(self) -> str:
        """Names the key that rows are sealed with, without telling it."""
        return _id_of(self._loaded_keys()[0])

    def _sealed(self, row: CredentialRow, data: bytes) -> CredentialRow:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # a gateway without sign-ins starts without it

        key, nonce = self._loaded_keys()[0], secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + AESGCM(key).encrypt(nonce, data, _purpose(row))
        return replace(row, key_id=_id_of(key), sealed=sealed)

    def _opened(self, row: CredentialRow) -> SealedRow:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, sealed = self._key_of(row.key_id), row.sealed
        try:
            data = AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _purpose(row))
        except InvalidTag:
            why = f"the credentials of {row.server} are damaged. Run `pactgate logout {row.server}`."
            raise self._unusable(RowsUnusableError(why)) from None
        return SealedRow(row.server, row.name, row.generation, data)

    def _key_of(self, key_id: str) -> bytes:
        """The key with this id. The source is read again where it has none: another process may have rotated it."""
        for _ in range(2):
            for key in self._loaded_keys():
                if _id_of(key) == key_id:
                    return key
            self._keys = []
        why = (
            f"it was sealed with another key than {self._source.where} has. Restore that key, or remove the file and sign "
            "in again."
        )
        raise self._unusable(RowsUnusableError(why))

    def _loaded_keys(self) -> list[bytes]:
        """The key to seal with, and older ones that rows may still need."""
        keys = self._keys  # another thread may drop them
        if not keys:
            with self._explained():
                keys = self._keys = [*read_keys(self._source.read())]
            if not keys:
                why = f"{self._source.where} is no key: write 32 random bytes as base64 (openssl rand -base64 32)."
                raise self._unusable(RowsUnusableError(why))
        return keys

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except RowsUnusableError as problem:
            raise self._unusable(problem) from None
        except KeyUnusableError as problem:
            raise self._unusable(RowsUnusableError(str(problem))) from None

    def _unusable(self, problem: RowsUnusableError) -> GatewayFailure:
        return GatewayFailure(
            Kind.STATE_UNAVAILABLE if problem.is_away else Kind.INVALID_CONFIG,
            f"{self._rows.where} can't be used: {problem}",
            details={} if problem.is_away else {"permanent": True},
        )


def _id_of(key: bytes) -> str:
    return hashlib.sha256(b"pactgate key id\0" + key).hexdigest()[:16]


def _purpose(row: CredentialRow) -> bytes:
    return b"\0".join(part.encode() for part in (row.kind, row.server, row.name))
