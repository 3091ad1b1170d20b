"""What happens now, as one event stream per open console: finished calls that its filter keeps, and servers that changed.

The gateway's events are listened to only while somebody reads. An event costs a call one append; rows are made, filtered, encoded once for
all and written a few times a second. Nobody reads thousands of rows a second: a reader gets the newest of what its filter keeps, as does
one that is too slow, and is told how many it lost. Bounded: readers, and what waits for each.
Must not: show a reader the calls of another principal, or wait for a reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from msgspec import Raw, Struct

from pactgate.core import events
from pactgate.core.context import ExecutionRecord
from pactgate.core.events import Emit, Event, RequestFinished
from pactgate.core.principal import Principal
from pactgate.inbound.call_filter import CallFilter, keep_all
from pactgate.inbound.http_exchange import EventStream, HttpExchange
from pactgate.inbound.replies import MAX_WAITING_BYTES
from pactgate.policy.access import sees_everything, shown_row
from pactgate.protocol.messages import encode_json

MAX_READERS: Final = 20
MAX_RECORDS: Final = 1000
MAX_WAITING_ROWS: Final = 100
FLUSH_S: Final = 0.2
_CALL: Final = "tools/call"
_OF_SERVERS: Final[frozenset[type[Event]]] = frozenset(
    {
        events.ServerConnecting,
        events.ServerConnected,
        events.ServerDisconnected,
        events.ServerHung,
        events.ServerFailed,
        events.ServerDiscovered,
        events.DiscoveryFailed,
        events.ConfigurationReloaded,
        events.ConfigurationChanged,
        events.EntriesChanged,
        events.ToolChanged,
    }
)


class CallRows(Protocol):
    """Makes the rows of finished calls, without secrets."""

    def rows(self, records: Sequence[ExecutionRecord]) -> list[dict[str, Any]]: ...


class _Reader(Struct, eq=False):
    exchange: HttpExchange
    stream: EventStream
    subject: str | None
    """Whose calls it sees; None for everybody's."""
    principal: Principal
    keeps: CallFilter
    waiting: deque[Raw]
    lost: int = 0

    @property
    def takes_all(self) -> bool:
        return self.subject is None and self.keeps is keep_all

    def put(self, rows: Sequence[dict[str, Any]], encoded: list[Raw | None]) -> None:
        """Take the newest rows that this reader is shown. What another reader has encoded is not encoded again."""
        kept = [at for at, row in enumerate(rows) if self.subject in (None, row["subject"]) and self.keeps(row)]
        newest = kept[-MAX_WAITING_ROWS:]
        self.lost += len(kept) - len(newest) + max(0, len(self.waiting) + len(newest) - MAX_WAITING_ROWS)
        for at in newest:
            text = encoded[at]
            if text is None:
                text = encoded[at] = Raw(encode_json(rows[at]))
            self.waiting.append(text)


class CallStreams:
    """`listen` and `unlisten` attach and detach a listener of all events; `servers` gives the rows of the servers that exist for a client,
    as they are now.
    """

    def __init__(
        self,
        rows: CallRows,
        servers: Callable[[Principal], list[dict[str, Any]]],
        *,
        listen: Callable[[Emit], None],
        unlisten: Callable[[], None],
    ) -> None:
        self._rows = rows
        self._servers = servers
        self._listen = listen
        self._unlisten = unlisten
        self._readers: list[_Reader] = []
        self._records: deque[ExecutionRecord] = deque(maxlen=MAX_RECORDS)
        self._dropped = 0
        self._has_server_news = False
        self._timer: asyncio.TimerHandle | None = None
        self._flushed_at = 0.0

    def open(self, exchange: HttpExchange, principal: Principal, keeps: CallFilter) -> bool:
        """Answer with a stream. False where there are too many."""
        self._forget_closed()
        if len(self._readers) >= MAX_READERS:
            return False
        subject = None if sees_everything(principal.roles) else principal.shown
        stream = exchange.open_stream()
        reader = _Reader(exchange, stream, subject, principal, keeps, deque(maxlen=MAX_WAITING_ROWS))
        if not self._readers:
            self._listen(self._emit)
        self._readers.append(reader)
        exchange.on_disconnect = self._forget_closed
        self._write_servers(reader)
        return True

    def close(self) -> None:
        """End every stream."""
        for reader in self._readers:
            reader.stream.close()
        self._forget_closed()

    def _emit(self, event: Event) -> None:
        if isinstance(event, RequestFinished):
            if event.record.method != _CALL:
                return
            self._dropped += len(self._records) == MAX_RECORDS
            self._records.append(event.record)
        elif type(event) in _OF_SERVERS:
            self._has_server_news = True
        else:
            return
        self._flush_soon()

    def _flush_soon(self) -> None:
        """The first event is told at once, so that a server is seen to go even if it is back soon; what follows is told together."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._flushed_at + FLUSH_S), self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._flushed_at = asyncio.get_running_loop().time()
        self._forget_closed()
        records, dropped, has_news = list(self._records), self._dropped, self._has_server_news
        self._records.clear()
        self._dropped, self._has_server_news = 0, False
        if all(reader.takes_all for reader in self._readers):
            dropped += max(0, len(records) - MAX_WAITING_ROWS)
            records = records[-MAX_WAITING_ROWS:]
        rows = self._rows.rows(records)
        encoded: list[Raw | None] = [None] * len(rows)
        for reader in self._readers:
            reader.put(rows, encoded)
            reader.lost += dropped
            self._write(reader, has_news=has_news)
        if self._has_server_news or any(reader.waiting for reader in self._readers):
            self._flush_soon()

    def _write(self, reader: _Reader, *, has_news: bool) -> None:
        if reader.stream.unsent_bytes > MAX_WAITING_BYTES:
            self._has_server_news |= has_news  # it is told when it has read on
            return
        if has_news:
            self._write_servers(reader)
        if reader.waiting or reader.lost:
            facts = {"calls": list(reader.waiting), "lost": reader.lost}
            reader.waiting.clear()
            reader.lost = 0
            reader.stream.write(_event(b"calls", facts))

    def _write_servers(self, reader: _Reader) -> None:
        """What happened to each server is long, and read for one of them at a time."""
        rows = [shown_row(row, reader.principal.roles) for row in self._servers(reader.principal)]
        for row in rows:
            row.pop("history", None)
        reader.stream.write(_event(b"servers", {"servers": rows}))

    def _forget_closed(self) -> None:
        had_some = bool(self._readers)
        self._readers = [one for one in self._readers if one.stream.is_open]
        if had_some and not self._readers:
            self._unlisten()
            self._records.clear()
            self._dropped, self._has_server_news = 0, False
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None


def _event(name: bytes, facts: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name, encode_json(facts))
