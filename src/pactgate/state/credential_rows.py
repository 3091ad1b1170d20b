"""The rows of the credential store, as they lie there: the port, and the one in a SQLite file that several processes use.

A write names the generation it replaces and fails where another process was faster. Must not: know what a row says, or be used on the path
of a call that has a token.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from pactgate.config.file_access import file_state, other_writers, replacing
from pactgate.config.problems import shown_path

if TYPE_CHECKING:
    import sqlite3

_BUSY_S: Final = 5.0
_LOCK_LOOK_S: Final = 0.02
_LOCK_SLOTS: Final = 32
_TABLE: Final = """
create table if not exists credentials (
    kind text not null, server text not null, name text not null, generation integer not null,
    key_id text not null, sealed blob not null, primary key (kind, server, name)) without rowid"""


class RowsUnusableError(Exception):
    """Why the rows can't be used. `is_away`: perhaps later."""

    def __init__(self, why: str, *, is_away: bool = False) -> None:
        super().__init__(why)
        self.is_away = is_away


class CredentialRow(Struct, frozen=True):
    """One row. `name` begins with a URL; what follows a blank is whose it is. `generation` counts its writes."""

    kind: str
    server: str
    name: str
    key_id: str
    sealed: bytes
    generation: int = 0

    @property
    def principal(self) -> str:
        return self.name.partition(" ")[2]


Reseal = Callable[[CredentialRow], CredentialRow]


class CredentialRows(Protocol):
    """Every method but `locked` may wait for the disk or for a store. Raises RowsUnusableError."""

    where: str
    """What it is, in messages."""

    @property
    def exists(self) -> bool:
        """Whether there may be rows. Looking makes none."""

    def state(self) -> Hashable:
        """Another value after each change."""

    def key_ids(self) -> set[str]:
        """The keys that rows are sealed with."""

    def get(self, kind: str, server: str, name: str) -> CredentialRow | None:
        """One row."""

    def of_kind(self, kind: str) -> list[CredentialRow]:
        """All rows of one kind, by server."""

    def put(self, row: CredentialRow, replaces: int | None, seal: Reseal) -> int | None:
        """Write a row and return its generation. With `replaces`, only over that generation (0: no row); None where it is not so.

        `seal` gives the row as it is written, while no other process changes seals."""

    def remove(self, server: str, principal: str) -> bool:
        """Remove the rows of a server, or those of one principal. Whether there were any."""

    def reseal(self, change: Reseal) -> int:
        """Write every row as it is after a change of its seal. Returns their number."""

    def locked(self, server: str, principal: str) -> AbstractAsyncContextManager[None]:
        """Hold the credentials of one server and principal against every other process. The caller bounds it in time; a killed holder
        frees it."""


class FileRows:
    """The file at one path, with mode 0600."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.where = f"The file of credentials {shown_path(path)}"

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def state(self) -> Hashable:
        return file_state(self.path)

    def key_ids(self) -> set[str]:
        with self._connected() as rows:
            return {str(row[0]) for row in rows.execute("select distinct key_id from credentials")}

    def get(self, kind: str, server: str, name: str) -> CredentialRow | None:
        query = "select key_id, sealed, generation from credentials where kind = ? and server = ? and name = ?"
        with self._connected() as rows:
            found = rows.execute(query, (kind, server, name)).fetchone()
        return None if found is None else CredentialRow(kind, server, name, *found)

    def of_kind(self, kind: str) -> list[CredentialRow]:
        query = "select kind, server, name, key_id, sealed, generation from credentials where kind = ? order by server, name"
        with self._connected() as rows:
            return [CredentialRow(*row) for row in rows.execute(query, (kind,)).fetchall()]

    def put(self, row: CredentialRow, replaces: int | None, seal: Reseal) -> int | None:
        with self._connected() as rows, rows:
            rows.execute("begin immediate")
            query = "select generation from credentials where kind = ? and server = ? and name = ?"
            found = rows.execute(query, (row.kind, row.server, row.name)).fetchone()
            generation = 0 if found is None else int(found[0])
            if replaces is not None and replaces != generation:
                return None
            row = seal(row)
            values = (row.kind, row.server, row.name, generation + 1, row.key_id, row.sealed)
            rows.execute("insert or replace into credentials values (?, ?, ?, ?, ?, ?)", values)
        return generation + 1

    def remove(self, server: str, principal: str) -> bool:
        with self._connected() as rows, rows:
            rows.execute("begin immediate")
            query = "select kind, server, name, key_id, sealed, generation from credentials where server = ?"
            found = [CredentialRow(*row) for row in rows.execute(query, (server,)).fetchall()]
            gone = [(row.kind, server, row.name) for row in found if principal in ("", row.principal)]
            rows.executemany("delete from credentials where kind = ? and server = ? and name = ?", gone)
        return bool(gone)

    def reseal(self, change: Reseal) -> int:
        with self._connected() as rows, rows:
            rows.execute("begin immediate")
            query = "select kind, server, name, key_id, sealed, generation from credentials"
            found = [change(CredentialRow(*row)) for row in rows.execute(query).fetchall()]
            for row in found:
                update = "update credentials set key_id = ?, sealed = ? where kind = ? and server = ? and name = ?"
                rows.execute(update, (row.key_id, row.sealed, row.kind, row.server, row.name))
        return len(found)

    @asynccontextmanager
    async def locked(self, server: str, principal: str) -> AsyncIterator[None]:
        """The files of locks are few, so principals may have to wait for each other."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        slot = f".{hashlib.sha256(principal.encode()).digest()[0] % _LOCK_SLOTS:02}" if principal else ""
        try:
            handle = os.open(f"{self.path}.{server}{slot}.lock", flags, 0o600)
        except OSError as problem:
            raise RowsUnusableError(f"its lock can't be made: {problem.strerror}.") from None
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
            raise RowsUnusableError(f"{problem}.") from None

    def _make_private(self) -> None:
        """The file exists, and only its owner may read and write it. A file that is there is not opened: closing it would end the locks
        that SQLite has on it in other threads of this process."""
        writers = other_writers(self.path)
        if writers is not None:
            raise RowsUnusableError(f"{writers.who} may write it. {writers.hint}.")
        if os.path.islink(self.path):
            raise RowsUnusableError("it is a link.")
        if not self.exists:
            with suppress(FileExistsError), replacing(self.path, os.link):  # another process may be faster
                pass
