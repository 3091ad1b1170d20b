"""A recorder that also tells the probe what passed: which ids were answered, and the session id of an HTTP server.

The probe sends messages that no client of ours can send, so it waits for their responses here. Must not: change what is recorded.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from pactgate.conformance.http import SESSION_HEADER
from pactgate.core.recording import ConnectionRecorder, Headers, HttpExchangeRecorder

PADDING: Final = b"x" * (5 * 1024 * 1024)
"""Makes a body larger than servers allow. It is not recorded."""
_SESSION: Final = SESSION_HEADER.encode("ascii")


class _MessageId(msgspec.Struct):
    id: Any = None


_id_of: Final = msgspec.json.Decoder(_MessageId)


class ProbeRecorder:
    """Passes everything on to the recorder of the connection."""

    def __init__(self, inner: ConnectionRecorder) -> None:
        self.session_id: str | None = None
        self._inner = inner
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def answered(self, id_: str) -> None:
        """Wait until a message with this id came from the server. The caller sets the time limit."""
        waiter = self._waiting[id_] = asyncio.get_running_loop().create_future()
        try:
            await waiter
        finally:
            del self._waiting[id_]

    def passed(self, data: bytes, *, from_client: bool) -> None:
        self._inner.passed(data, from_client=from_client)
        if not from_client and self._waiting:
            try:
                id_ = _id_of.decode(data).id
            except msgspec.DecodeError:
                return
            waiter = self._waiting.get(id_) if isinstance(id_, str) else None
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> HttpExchangeRecorder:
        return _Exchange(self, self._inner.requested(verb, path, headers, body.replace(PADDING, b"(5 MiB)")))

    def closed(self) -> None:
        self._inner.closed()


class _Exchange:
    def __init__(self, owner: ProbeRecorder, inner: HttpExchangeRecorder) -> None:
        self._owner = owner
        self._inner = inner

    def answered(self, status: int, headers: Headers, body: bytes) -> None:
        self._look(headers)
        self._inner.answered(status, headers, body)

    def streaming(self, status: int, headers: Headers) -> None:
        self._look(headers)
        self._inner.streaming(status, headers)

    def events(self, data: bytes) -> None:
        self._inner.events(data)

    def ended(self, *, by_client: bool) -> None:
        self._inner.ended(by_client=by_client)

    def _look(self, headers: Headers) -> None:
        """The client's responses have their headers as a mapping of bytes."""
        if self._owner.session_id is None and isinstance(headers, dict):
            value = headers.get(_SESSION)
            if isinstance(value, bytes):
                self._owner.session_id = value.decode("latin-1")
