"""Reads whole requests from pieces of bytes, without sockets or clocks.

A reader takes one request at a time, in pieces of any size. The work is linear in the bytes, and the reader keeps no more than the limits.
Must not: be fed again after `BadRequestError`, because nobody knows where the next request starts.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pactgate.inbound.http_grammar import BadRequestError, ChunkedBody, RequestHead, check_request_line, parse_head
from pactgate.inbound.server_limits import ServerLimits
from pactgate.protocol.http_head import RepeatedHeads, split_length

_HEAD_END: Final = b"\r\n\r\n"
_MAX_HEADS: Final = 4
_MAX_HEAD_BYTES: Final = 4096
"""Access tokens of identity providers have 1 to 3 KB."""


class Ready(Struct, frozen=True, gc=False):
    """A whole request, and the bytes behind it."""

    head: RequestHead
    body: bytes
    rest: bytes


class RequestHeadCache:
    """Memoizes the heads of one connection, by their bytes without Content-Length: a client sends the same head with each request.

    Saves about 17 us of CPU per request: parsing, and the checks of the frontend, which are kept in `RequestHead.mcp`. Bound: 4 heads of
    at most 4 KiB; a modern client sends one for each tool.
    """

    def __init__(self) -> None:
        self._heads: RepeatedHeads[RequestHead] = RepeatedHeads(_MAX_HEADS)
        self.find = self._heads.find

    def read(self, raw: bytes, limits: ServerLimits) -> tuple[RequestHead, int | None]:
        """A head that is not known, and the length of the body this request announces. Raises `BadRequestError`."""
        head = parse_head(raw, max_headers=limits.max_headers, max_target_bytes=limits.max_target_bytes)
        # A proof of possession (RFC 9449) is good for one request, so its head is checked each time.
        may_repeat = len(raw) <= _MAX_HEAD_BYTES and "dpop" not in head.headers
        split = split_length(raw) if may_repeat else None
        if split is not None and head.length == split[1]:
            self._heads.note(split[0], split[2], head)
        return head, head.length


class RequestReader:
    """`head` is set while its body is being read."""

    __slots__ = (
        "_body",
        "_chunks",
        "_heads",
        "_is_line_known",
        "_kept",
        "_length",
        "_limits",
        "_pieces",
        "_scanned",
        "head",
    )

    def __init__(self, limits: ServerLimits, heads: RequestHeadCache) -> None:
        self._limits = limits
        self._heads = heads
        self._length = 0
        self._kept = bytearray()
        self._scanned = 0
        self._pieces = 0
        self._is_line_known = False
        self._body = self._kept
        self._chunks: ChunkedBody | None = None
        self.head: RequestHead | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no part of a request has come."""
        return self.head is None and not self._kept

    @property
    def has_begun_now(self) -> bool:
        """Whether the last piece was the first one of a head that is not complete."""
        return self._pieces == 1

    @property
    def received_bytes(self) -> int:
        """How much of the body has come, without chunk lines: those could be sent for ever."""
        return len(self._body if self._chunks is None else self._chunks.body)

    def feed(self, data: bytes) -> Ready | None:
        """The request as soon as it is whole. Raises `BadRequestError`."""
        if self.head is not None:
            return self._read_body(self.head, data)
        if self._kept:
            self._kept += data
            if self._kept.find(_HEAD_END, max(0, self._scanned - 3)) < 0:
                self._check_unfinished_head()
                return None
            data = bytes(self._kept)
            self._forget_head()
        limits = self._limits
        length: int | None
        if (found := self._heads.find(data)) is not None:
            head, digits, end = found
            length = int(digits)
        elif (read := self._read_new_head(data)) is not None:
            head, length, data, end = read
        else:
            return None
        if length is None:
            self._chunks = ChunkedBody(limits.max_request_bytes)
        elif length > limits.max_request_bytes:
            raise BadRequestError(413, f"The body is longer than {limits.max_request_bytes} bytes.")
        elif len(data) - end >= length:
            return Ready(head, data[end : end + length], data[end + length :])
        else:
            self._body = bytearray()
        self.head = head
        self._length = length or 0
        return self._read_body(head, data[end:])

    def _read_new_head(self, data: bytes) -> tuple[RequestHead, int | None, bytes, int] | None:
        """A head that was not read before, the length of its body, the bytes without empty lines and where the head ends in them."""
        data = data.removeprefix(b"\r\n")  # one empty line before a request is passed over (RFC 9112 2.2)
        end = data.find(_HEAD_END) + len(_HEAD_END)
        if end < len(_HEAD_END):
            if data:
                self._kept += data
                self._check_unfinished_head()
            return None
        if end > self._limits.max_head_bytes:
            raise self._head_too_long()
        head, length = self._heads.read(data[:end], self._limits)
        return head, length, data, end

    def _forget_head(self) -> None:
        self._kept.clear()
        self._scanned = self._pieces = 0
        self._is_line_known = False

    def _check_unfinished_head(self) -> None:
        """Check the part of a head that has come: a head that is malformed or too long is refused before its end."""
        self._pieces += 1
        fresh = bytes(self._kept[max(0, self._scanned - 1) :])
        self._scanned = len(self._kept)
        if not self._is_line_known:
            self._is_line_known = check_request_line(self._kept, fresh, self._limits.max_target_bytes)
        if fresh.count(b"\n") - fresh.startswith(b"\n") > fresh.count(b"\r\n"):
            raise BadRequestError(400, "Lines of a request end in CRLF.")
        if len(self._kept) > self._limits.max_head_bytes:
            raise self._head_too_long()

    def _head_too_long(self) -> BadRequestError:
        return BadRequestError(431, f"The head of a request may have at most {self._limits.max_head_bytes} bytes.")

    def _read_body(self, head: RequestHead, data: bytes) -> Ready | None:
        if self._chunks is not None:
            body, rest = self._chunks.body, self._chunks.feed(data)
        else:
            body = self._body
            missing = self._length - len(body)
            body += data[:missing]
            rest = data[missing:] if len(data) >= missing else None
        if rest is None:
            return None
        self.head = self._chunks = None
        self._body = self._kept
        return Ready(head, bytes(body), rest)
