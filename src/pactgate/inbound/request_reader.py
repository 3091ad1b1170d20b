"""From pieces of bytes to whole requests, without sockets or clocks.

Takes one request at a time, whatever pieces it comes in; the work is linear in the bytes, and what is kept never exceeds the limits.
After `BadRequest` a reader must not be fed again: where the next request starts is no longer known.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pactgate.inbound.http_grammar import BadRequest, ChunkedBody, Head, check_request_line, parse_head
from pactgate.inbound.server_limits import ServerLimits

_HEAD_END: Final = b"\r\n\r\n"
_REMEMBERED_BYTES: Final = 2048
"""Longer heads are read anew each time: what an idle connection keeps should be small."""


_SMALL_BYTES: Final = 16 * 1024


class Ready(Struct, frozen=True, gc=False):
    """A whole request, and the bytes behind it."""

    head: Head
    body: bytes
    rest: bytes


class RequestReader:
    """`head` is set while its body is being read; `received_bytes` counts what of the body has come, chunk lines included."""

    __slots__ = (
        "_body",
        "_chunks",
        "_is_line_known",
        "_kept",
        "_known",
        "_known_text",
        "_limits",
        "_scanned",
        "head",
        "received_bytes",
    )

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._kept = bytearray()
        self._scanned = 0
        self._is_line_known = False
        self._body = self._kept
        self._chunks: ChunkedBody | None = None
        self._known_text = b""
        self._known: Head | None = None
        self.head: Head | None = None
        self.received_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether no part of a request has come."""
        return self.head is None and not self._kept

    def known(self, data: bytes) -> Ready | None:
        """The request that is exactly these bytes, if its head is the last one again and it is small; None for any other."""
        known = self._known
        if known is None or known.length is None or self._kept or self.head is not None:
            return None
        end = len(self._known_text)
        if end + known.length != len(data) or known.length > _SMALL_BYTES or not data.startswith(self._known_text):
            return None
        return Ready(known, data[end:], b"")

    def feed(self, data: bytes) -> Ready | None:
        """The request as soon as it is whole. Raises `BadRequest`."""
        if self.head is not None:
            return self._read_body(self.head, data)
        if self._kept:
            self._kept += data
            if self._kept.find(_HEAD_END, max(0, self._scanned - 3)) < 0:
                self._check_unfinished_head()
                return None
            data = bytes(self._kept)
            self._forget_head()
        return self._read_head(data)

    def _forget_head(self) -> None:
        self._kept.clear()
        self._scanned = 0
        self._is_line_known = False

    def _read_head(self, data: bytes) -> Ready | None:
        if data.startswith(b"\r\n"):
            data = data[2:]  # one empty line before a request is passed over (RFC 9112 2.2)
        found = data.find(_HEAD_END)
        if found < 0:
            if data:
                self._kept += data
                self._check_unfinished_head()
            return None
        end = found + 4
        limits = self._limits
        if end > limits.max_head_bytes:
            raise self._head_too_long()
        head = self._parse(data[:end])
        length = head.length
        if length is None:
            self._chunks = ChunkedBody(limits.max_request_bytes)
        elif length > limits.max_request_bytes:
            raise BadRequest(413, f"The body is longer than {limits.max_request_bytes} bytes.")
        elif len(data) - end >= length:
            return Ready(head, data[end : end + length], data[end + length :])
        else:
            self._body = bytearray()
        self.head = head
        self.received_bytes = 0
        return self._read_body(head, data[end:])

    def _parse(self, text: bytes) -> Head:
        """A client that keeps its connection mostly sends the same head again, byte for byte: then it means the same."""
        if text == self._known_text and self._known is not None:
            return self._known
        limits = self._limits
        head = parse_head(text, max_headers=limits.max_headers, max_target_bytes=limits.max_target_bytes)
        if len(text) <= _REMEMBERED_BYTES:
            self._known_text, self._known = text, head
        return head

    def _check_unfinished_head(self) -> None:
        """Say early what can be said early; a head that is too long is refused before its end is seen."""
        fresh = bytes(self._kept[max(0, self._scanned - 1) :])
        self._scanned = len(self._kept)
        if not self._is_line_known:
            self._is_line_known = check_request_line(self._kept, fresh, self._limits.max_target_bytes)
        if fresh.count(b"\n") - fresh.startswith(b"\n") > fresh.count(b"\r\n"):
            raise BadRequest(400, "Lines of a request end in CRLF.")
        if len(self._kept) > self._limits.max_head_bytes:
            raise self._head_too_long()

    def _head_too_long(self) -> BadRequest:
        return BadRequest(431, f"The head of a request may have at most {self._limits.max_head_bytes} bytes.")

    def _read_body(self, head: Head, data: bytes) -> Ready | None:
        self.received_bytes += len(data)
        if self._chunks is not None:
            body, rest = self._chunks.body, self._chunks.feed(data)
        else:
            body = self._body
            missing = (head.length or 0) - len(body)
            body += data[:missing]
            rest = data[missing:] if len(data) >= missing else None
        if rest is None:
            return None
        self.head = self._chunks = None
        self._body = self._kept
        return Ready(head, bytes(body), rest)
