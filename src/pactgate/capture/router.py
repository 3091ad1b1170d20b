"""Finds the recorded session of an HTTP request where many clients use one address.

A legacy session has its own id, which the response to `initialize` gives. Requests without an id belong to the latest session that
was opened without one. Modern requests have no sessions and are kept together by their path. On the HTTP+SSE transport, recognised by
its `endpoint` event, requests and events are plain messages. Bounded: the least recently used session is closed to make room.
Must not: decide what is written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pactgate.capture.redaction import HeaderBlock, Redaction
from pactgate.capture.session_writer import SessionWriter
from pactgate.core.recording import Headers
from pactgate.protocol.modern import PROTOCOL_VERSION_KEY
from pactgate.protocol.versions import LEGACY_VERSIONS

MAX_SESSIONS: Final = 128
_PV_DATA: Final = PROTOCOL_VERSION_KEY.encode()
_MODERN: Final = "modern"
_WITHOUT_ID: Final = "without id"
_ENDPOINT: Final = b"event: endpoint"

_SessionKey = tuple[str, str]
"""A path, and how sessions of that path are told apart."""


class _RoutedRequest(Struct):
    """An HTTP request in flight. `is_transport`: it belongs to the HTTP+SSE transport."""

    writer: SessionWriter
    key: _SessionKey
    verb: str
    is_opening: bool = False
    is_transport: bool = False


class SessionRouter:
    """`begin` makes the writer of a new session from a path and whether the session is modern."""

    def __init__(self, redaction: Redaction, begin: Callable[[str, bool], SessionWriter]) -> None:
        self._redaction = redaction
        self._begin = begin
        self._writers: OrderedDict[_SessionKey, SessionWriter] = OrderedDict()
        self._requests: dict[int, _RoutedRequest] = {}
        self._sse_transport: tuple[str, SessionWriter] | None = None
        """The path and the session of the latest HTTP+SSE stream."""

    def message(self, at_ms: float, data: bytes, from_client: bool) -> None:
        raise NotImplementedError("an address carries requests, not messages")

    def requested(self, at_ms: float, number: int, verb: str, path: str, headers: Headers, body: bytes) -> None:
        block = self._redaction.block(headers)
        sse = self._sse_transport
        if sse is not None and verb == "POST" and block.session is None and _PV_DATA not in body:
            self._requests[number] = _RoutedRequest(sse[1], (path, _WITHOUT_ID), verb, is_transport=True)
            sse[1].message(at_ms, body, True)
            return
        key, is_opening = self._key(path, block, body)
        is_new = is_opening or (key[1] == _WITHOUT_ID and sse is not None and sse[0] == path)
        writer = self._writer(key, is_new=is_new)
        self._writers.move_to_end(key)
        self._requests[number] = _RoutedRequest(writer, key, verb, is_opening)
        writer.requested(at_ms, number, verb, path, headers, body)

    def answered(self, at_ms: float, number: int, status: int, headers: Headers, body: bytes) -> None:
        request = self._requests.pop(number, None)
        if request is None or request.is_transport:
            return
        if request.is_opening:
            self._set_id(request, headers)
        request.writer.answered(at_ms, number, status, headers, body)
        if request.verb == "DELETE" and status < 300 and self._writers.get(request.key) is request.writer:
            del self._writers[request.key]
            request.writer.close()

    def streaming(self, number: int, status: int, headers: Headers) -> None:
        request = self._requests.get(number)
        if request is not None:
            if request.is_opening:
                self._set_id(request, headers)
            request.writer.streaming(number, status, headers)

    def events(self, at_ms: float, number: int, data: bytes) -> None:
        request = self._requests.get(number)
        if request is None:
            return
        if request.verb == "GET" and not request.is_transport and data[:256].lstrip().startswith(_ENDPOINT):
            request.is_transport = True
            self._sse_transport = (request.key[0], request.writer)
        request.writer.events(at_ms, number, data)

    def ended(self, number: int, by_client: bool) -> None:
        request = self._requests.pop(number, None)
        if request is not None:
            request.writer.ended(number, by_client)

    def keep(self) -> None:
        for writer in self._writers.values():
            writer.keep()

    def sync(self) -> None:
        for writer in self._writers.values():
            writer.sync()

    def restart(self, missing: int) -> None:
        """Messages were lost: close every session. Whatever comes next begins a new one."""
        self._requests.clear()
        self.close(missing)

    def close(self, missing: int = 0) -> None:
        writers = [*self._writers.values()]
        self._writers.clear()
        self._sse_transport = None
        for writer in writers:
            writer.close(missing)

    def _key(self, path: str, block: HeaderBlock, body: bytes) -> tuple[_SessionKey, bool]:
        """The session of a request, and whether the request opens it."""
        if block.session is not None:
            return (path, "id " + block.session), False
        if (block.version is not None and block.version not in LEGACY_VERSIONS) or _PV_DATA in body:
            return (path, _MODERN), False
        return (path, _WITHOUT_ID), b'"initialize"' in body[:4096]

    def _writer(self, key: _SessionKey, *, is_new: bool) -> SessionWriter:
        """The writer of a session. Modern requests of a path begin another file when theirs is full."""
        writer = self._writers.get(key)
        if writer is not None and not is_new and (writer.is_open or key[1] != _MODERN):
            return writer
        if writer is not None:
            self._writers.pop(key).close()
        elif len(self._writers) >= MAX_SESSIONS:
            self._writers.popitem(last=False)[1].close()
        writer = self._writers[key] = self._begin(key[0], key[1] == _MODERN)
        return writer

    def _set_id(self, request: _RoutedRequest, headers: Headers) -> None:
        """Take the id that the response to `initialize` gives to the session: later requests find the session by it."""
        given = self._redaction.block(headers).session
        if given is None or self._writers.get(request.key) is not request.writer:
            return
        del self._writers[request.key]
        request.key = (request.key[0], "id " + given)
        self._writers[request.key] = request.writer
