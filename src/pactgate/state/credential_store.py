"""The credentials the gateway has at servers: one SQLite file, each row sealed with AES-256-GCM, used by several processes.

What a row is for (kind, server, name) is authenticated with it, so that a row moved elsewhere can't be opened. A write names the
generation it replaces and fails where another process was faster. The key is `PACTGATE_KEY`, or a file made on first use. Must not: be
used on the path of a call that has a token, or give out anything that another key sealed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import fcntl
import hashlib
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pactgate.config.file_access import other_writers, read_regular_file
from pactgate.config.problems import UnreadableError, shown_path
from pactgate.core.failures import GatewayFailure, Kind

if TYPE_CHECKING:
    import sqlite3

KEY_VARIABLE: Final = "PACTGATE_KEY"
KEY_SUFFIX: Final = ".key"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_MAX_KEY_FILE_BYTES: Final = 1024
_BUSY_S: Final = 5.0
_LOCK_LOOK_S: Final = 0.02
_TABLE: Final = """
create table if not exists credentials (
    kind text not null, server text not null, name text not null, generation integer not null,
    key_id text not null, sealed blob not null, primary key (kind, server, name)) without rowid"""


class SealedRow(Struct, frozen=True):
    """One opened row. `generation` counts its writes."""

    server: str
    name: str
    generation: int
    data: bytes


class CredentialStore:
    """The file at one path. Every method but `locked` may wait for the disk, never for the network."""

    def __init__(self, path: str, key_text: str | None = None) -> None:
        """`key_text` is the key of the environment. Without one, the key file beside the store holds it."""
        self.path = path
        self._key_text = key_text
        self._keys: list[bytes] = []

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def check(self) -> None:
        """Say at the start that the key is not the one that rows were sealed with. Raises INVALID_CONFIG."""
        if not self.exists:
            return
        with self._connected() as rows:
            found = [str(row[0]) for row in rows.execute("select distinct key_id from credentials")]
        for key_id in found:
            self._key_of(key_id)

    def read(self, kind: str, server: str, name: str) -> SealedRow | None:
        """One row, or None. Raises INVALID_CONFIG where it can't be opened."""
        if not self.exists:
            return None
        query = "select generation, key_id, sealed from credentials where kind = ? and server = ? and name = ?"
        with self._connected() as rows:
            found = rows.execute(query, (kind, server, name)).fetchone()
        return None if found is None else SealedRow(server, name, found[0], self._open(kind, server, name, *found[1:]))

    def rows(self, kind: str) -> list[SealedRow]:
        """All rows of one kind, by server."""
        if not self.exists:
            return []
        query = "select server, name, generation, key_id, sealed from credentials where kind = ? order by server, name"
        with self._connected() as rows:
            found = rows.execute(query, (kind,)).fetchall()
        return [SealedRow(row[0], row[1], row[2], self._open(kind, row[0], row[1], row[3], row[4])) for row in found]

    def write(self, kind: str, server: str, name: str, data: bytes, *, replaces: int | None = None) -> int | None:
        """Write a row and return its generation. With `replaces`, only over that generation (0: no row); None where it is not so."""
        sealed = self._seal(kind, server, name, data)
        with self._connected() as rows, rows:
            rows.execute("begin immediate")
            query = "select generation from credentials where kind = ? and server = ? and name = ?"
            found = rows.execute(query, (kind, server, name)).fetchone()
            generation = 0 if found is None else int(found[0])
            if replaces is not None and replaces != generation:
                return None
            row = (kind, server, name, generation + 1, self.key_id, sealed)
            rows.execute("insert or replace into credentials values (?, ?, ?, ?, ?, ?)", row)
        return generation + 1

    def remove(self, server: str) -> bool:
        """Remove all rows of a server. Whether there were any."""
        if not self.exists:
            return False
        with self._connected() as rows, rows:
            return rows.execute("delete from credentials where server = ?", (server,)).rowcount > 0

    def rotate(self) -> int:
        """Seal every row with a new key and return their number. In a key file the old key stays beside the new one until that is done.

        With a key of the environment, its first one is the new key and the others are old ones.
        """
        if self._key_text is None:
            old = self._loaded_keys()
            self._write_key_file([new_key(), *(base64.b64encode(key).decode() for key in old)], os.replace)
            self._keys = []
        with self._connected() as rows, rows:
            rows.execute("begin immediate")
            found = rows.execute("select kind, server, name, key_id, sealed from credentials").fetchall()
            for kind, server, name, key_id, sealed in found:
                data = self._open(kind, server, name, key_id, sealed)
                change = "update credentials set key_id = ?, sealed = ? where kind = ? and server = ? and name = ?"
                rows.execute(change, (self.key_id, self._seal(kind, server, name, data), kind, server, name))
        if self._key_text is None:
            self._write_key_file([base64.b64encode(self._loaded_keys()[0]).decode()], os.replace)
        return len(found)

    @asynccontextmanager
    async def locked(self, server: str) -> AsyncIterator[None]:
        """Hold the credentials of one server against every other process. The caller bounds it in time; a killed holder frees it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(f"{self.path}.{server}.lock", flags, 0o600)
        except OSError as problem:
            raise self._unusable(f"its lock can't be made: {problem.strerror}.") from None
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(_LOCK_LOOK_S)
            yield
        finally:
            os.close(handle)

    # The file.

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        import sqlite3  # a gateway without sign-ins starts without it

        try:
            self._make_private()
            with closing(sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)) as rows:
                rows.execute("pragma secure_delete = on")
                rows.execute(_TABLE)
                yield rows
        except (OSError, sqlite3.Error) as problem:
            raise self._unusable(f"{problem}.") from None

    def _make_private(self) -> None:
        """The file exists, and only its owner may read and write it."""
        writers = other_writers(self.path) if self.exists else None
        if writers is not None:
            raise self._unusable(f"{writers.who} may write it. {writers.hint}.")
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))

    # The key.

    @property
    def key_id(self) -> str:
        """Names the key that rows are sealed with, without telling it."""
        return _id_of(self._loaded_keys()[0])

    def _seal(self, kind: str, server: str, name: str, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # a gateway without sign-ins starts without it

        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + AESGCM(self._loaded_keys()[0]).encrypt(nonce, data, _purpose(kind, server, name))

    def _open(self, kind: str, server: str, name: str, key_id: str, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key = self._key_of(key_id)
        try:
            return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _purpose(kind, server, name))
        except InvalidTag:
            raise self._unusable(f"the credentials of {server} are damaged. Run `pactgate logout {server}`.") from None

    def _key_of(self, key_id: str) -> bytes:
        """The key with this id. The key file is read again where it has none: another process may have rotated it."""
        for _ in range(2):
            for key in self._loaded_keys():
                if _id_of(key) == key_id:
                    return key
            self._keys = []
        where = KEY_VARIABLE if self._key_text else shown_path(self._key_path)
        raise self._unusable(
            f"it was sealed with another key than {where} has. Restore that key, or remove the file and sign in again."
        )

    def _loaded_keys(self) -> list[bytes]:
        """The key to seal with, and older ones that rows may still need."""
        if not self._keys:
            texts = (self._key_text or self._read_key_file() or self._make_key_file()).replace(",", " ").split()
            found = [read_key(text) for text in texts]
            self._keys = [key for key in found if key is not None]
            if not found or None in found:
                where = KEY_VARIABLE if self._key_text else shown_path(self._key_path)
                raise self._unusable(f"{where} is no key: write 32 random bytes as base64 (openssl rand -base64 32).")
        return self._keys

    @property
    def _key_path(self) -> str:
        return f"{self.path}{KEY_SUFFIX}"

    def _read_key_file(self) -> str | None:
        if not os.path.lexists(self._key_path):
            return None
        writers = other_writers(self._key_path)
        if writers is not None:
            raise self._unusable(f"{writers.who} may write the key file. {writers.hint}.")
        try:
            return read_regular_file(self._key_path, _MAX_KEY_FILE_BYTES).decode("ascii", "replace").strip()
        except UnreadableError as problem:
            raise self._unusable(f"the key file: {problem.message} {problem.hint}") from None

    def _make_key_file(self) -> str:
        """The first process makes the key; one that was slower uses it."""
        text = new_key()
        try:
            self._write_key_file([text], os.link)
        except FileExistsError:
            return self._read_key_file() or text
        except OSError as problem:
            raise self._unusable(f"the key file can't be written: {problem.strerror}.") from None
        return text

    def _write_key_file(self, texts: Sequence[str], place: Callable[[str, str], None]) -> None:
        handle, path = tempfile.mkstemp(dir=os.path.dirname(self._key_path) or ".", prefix=".", suffix=".new")
        try:
            with open(handle, "w", encoding="ascii") as file:
                file.write("".join(f"{text}\n" for text in texts))
                file.flush()
                os.fsync(file.fileno())
            place(path, self._key_path)
        finally:
            with suppress(OSError):
                os.unlink(path)

    def _unusable(self, why: str) -> GatewayFailure:
        return GatewayFailure(
            Kind.INVALID_CONFIG,
            f"The file of credentials {shown_path(self.path)} can't be used: {why}",
            details={"permanent": True},
        )


def _id_of(key: bytes) -> str:
    return hashlib.sha256(b"pactgate key id\0" + key).hexdigest()[:16]


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def read_key(text: str) -> bytes | None:
    """32 bytes, written as base64 or as hexadecimal digits."""
    with suppress(ValueError, binascii.Error):
        if len(text) == 2 * _KEY_BYTES:
            return bytes.fromhex(text)
        key = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
        return key if len(key) == _KEY_BYTES else None
    return None


def _purpose(kind: str, server: str, name: str) -> bytes:
    return b"\0".join(part.encode() for part in (kind, server, name))
