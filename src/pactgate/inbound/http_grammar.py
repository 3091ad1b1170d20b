"""The grammar of an HTTP/1.1 request, without sockets: the head, and chunked bodies.

llhttp splits the head into tokens. This module adds the checks that llhttp leaves open (request line, versions, target forms, one meaning
for the body's length), so that no two readers can disagree on where a request ends. Everything is bounded and linear in the bytes fed.
Must not: answer, wait, or look at what a header means to MCP. Enforces the framing half of the request smuggling rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import httptools

if TYPE_CHECKING:
    from pactgate.core.principal import Principal
    from pactgate.inbound.request_head import McpRequestHead

METHODS: Final = frozenset({"GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"})
"""Methods that reach the router; it answers 405 where one has no meaning."""

MAX_CHUNKS: Final = 500_000
MAX_CHUNK_LINE: Final = 272

_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])")
_CHUNK_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[\t\x20-\x7e\x80-\xff]*)?")
_CHUNK_LINE_START: Final = re.compile(rb"(?:[0-9A-Fa-f]{1,8}(?:;[\t\x20-\x7e\x80-\xff]*)?\r?)?")
_VISIBLE: Final = bytes(range(0x20, 0x7F))
_KNOWN_NAMES: Final[dict[bytes, str]] = {}
_MAX_KNOWN_NAMES: Final = 256


class BadRequestError(Exception):
    """The bytes are no request that the gateway accepts. The connection can't be used any more."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class EncodedClaims(NamedTuple):
    """What the replica that owns a request is told of its head."""

    principal: Principal
    owner: str
    data: bytes


class RequestHead:
    """One request's head. `length` is the announced body length, or None when the body is chunked."""

    __slots__ = (
        "complete",
        "expects_continue",
        "forwarded",
        "headers",
        "is_http10",
        "keep_alive",
        "length",
        "mcp",
        "method",
        "path",
        "url",
    )

    def __init__(self, method: str, *, is_http10: bool) -> None:
        self.method = method
        self.is_http10 = is_http10
        self.url = b""
        self.path = ""
        self.headers: dict[str, list[str]] = {}
        self.length: int | None = 0
        self.keep_alive = not is_http10
        self.expects_continue = False
        self.complete = False
        self.mcp: McpRequestHead | None = None
        """The result of the frontend's checks, kept because a client repeats its heads."""
        self.forwarded: EncodedClaims | None = None
        """Kept for the same reason."""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        key = _KNOWN_NAMES.get(name) or _lower(name)
        text = value.decode("latin-1").strip(" \t")
        if key in self.headers:
            self.headers[key].append(text)
        else:
            self.headers[key] = [text]

    def on_headers_complete(self) -> None:
        self.complete = True


def _lower(name: bytes) -> str:
    key = name.decode("latin-1").lower()
    if len(_KNOWN_NAMES) < _MAX_KNOWN_NAMES and len(name) <= 64:
        _KNOWN_NAMES[name] = key
    return key


def check_request_line(start: bytearray, fresh: bytes, max_target_bytes: int) -> bool:
    """Check the beginning of a head that is not complete: a peer that does not speak HTTP/1 is refused at once, not after a timeout.

    `fresh` is the part of `start` that has not been checked before. Returns whether the whole line has come; raises `BadRequestError`.
    """
    end = start.find(b"\r\n", 0, max_target_bytes + 64)
    if end >= 0:
        _read_request_line(bytes(start[:end]), max_target_bytes)
        return True
    if fresh.translate(None, _VISIBLE) not in (b"", b"\r"):
        raise BadRequestError(400, "This is not an HTTP/1.1 request line.")
    if len(start) >= max_target_bytes + 64:
        raise BadRequestError(414, f"The request target is longer than {max_target_bytes} bytes.")
    return False


def parse_head(raw: bytes, *, max_headers: int, max_target_bytes: int) -> RequestHead:
    """Parse and check a complete head, with its empty line. Raises `BadRequestError`."""
    line, _, _ = raw.partition(b"\r\n")
    head = _read_request_line(line, max_target_bytes)
    if raw.count(b"\n") - 2 > max_headers:
        raise BadRequestError(431, f"A request may have at most {max_headers} header lines.")
    try:
        httptools.HttpRequestParser(head).feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # an offer to switch protocols, which a server may leave unanswered (RFC 9110 7.8)
    except httptools.HttpParserError as problem:
        raise BadRequestError(400, f"The request head is malformed: {problem}.") from None
    if not head.complete:
        raise BadRequestError(400, "The request head is malformed.")
    _read_framing(head)
    _read_target(head)
    return head


def _read_request_line(line: bytes, max_target_bytes: int) -> RequestHead:
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise BadRequestError(400, "This is not an HTTP/1.1 request line.")
    method, target, major, minor = match.groups()
    if len(target) > max_target_bytes:
        raise BadRequestError(414, f"The request target is longer than {max_target_bytes} bytes.")
    if major != b"1" or minor not in b"01":
        if method == b"PRI":
            raise BadRequestError(400, "HTTP/2 is not spoken here; use HTTP/1.1.")
        raise BadRequestError(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    name = method.decode()
    if name not in METHODS:
        raise BadRequestError(405, "This method is not served here.")
    return RequestHead(name, is_http10=minor == b"0")


def _read_framing(head: RequestHead) -> None:
    """Read the length of the body, and refuse every head that two readers could understand differently (RFC 9112 6.3)."""
    headers = head.headers
    lengths, codings = headers.get("content-length"), headers.get("transfer-encoding")
    if codings is not None:
        if lengths is not None or head.is_http10 or len(codings) != 1 or codings[0].lower() != "chunked":
            raise BadRequestError(
                400, "Transfer-Encoding must be exactly `chunked`, on HTTP/1.1, without Content-Length."
            )
        head.length = None
    elif lengths is not None:
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) <= 18):
            raise BadRequestError(400, "Content-Length must be one decimal number.")
        head.length = int(lengths[0])
    connection = headers.get("connection")
    if connection is not None:
        options = {option.strip().lower() for value in connection for option in value.split(",")}
        head.keep_alive = "close" not in options and (not head.is_http10 or "keep-alive" in options)
    expectation = headers.get("expect")
    if expectation is not None and not head.is_http10:
        if [value.lower() for value in expectation] != ["100-continue"]:
            raise BadRequestError(417, "The only expectation met here is 100-continue.")
        head.expects_continue = True


def _read_target(head: RequestHead) -> None:
    """Read the path as it was sent. The absolute form of a target must name the same host as `Host`."""
    target = head.url.decode("latin-1")
    if not target.startswith("/"):
        scheme, found, rest = target.partition("://")
        authority, slash, path = rest.partition("/")
        hosts = head.headers.get("host", [])
        if not found or scheme.lower() != "http" or [authority.lower()] != [host.lower() for host in hosts]:
            raise BadRequestError(400, "The request target must be a path, or a URL of the host named in `Host`.")
        target = slash + path
    if "#" in target:
        raise BadRequestError(400, "A request target has no fragment.")
    head.path = target.partition("?")[0]


class ChunkedBody:
    """Decodes a chunked body, strictly: sizes are 1 to 8 hex digits, lines end in CRLF, extensions are short, trailers are refused."""

    __slots__ = ("_chunks", "_closing", "_due", "_kept", "_last", "_max_bytes", "body")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.body = bytearray()
        self._kept = b""
        self._due = 0
        self._closing = False
        self._last = False
        self._chunks = 0

    def feed(self, data: bytes) -> bytes | None:
        """Returns None until the body is complete, then the bytes behind it. Raises `BadRequestError`."""
        if self._kept:
            data = self._kept + data
            self._kept = b""
        position, end = 0, len(data)
        while position < end:
            if self._due:
                piece = data[position : position + self._due]
                self.body += piece
                self._due -= len(piece)
                position += len(piece)
                self._closing = not self._due
            elif self._closing or self._last:
                if not self._line_end(data, position):
                    break
                position += 2
                self._closing = False
                if self._last:
                    return data[position:]
            else:
                after = self._size_line(data, position)
                if after is None:
                    break
                position = after
        self._kept = data[position:]
        return None

    def _line_end(self, data: bytes, position: int) -> bool:
        """Whether CRLF stands here; False while only its first half has come."""
        found = data[position : position + 2]
        if found == b"\r\n":
            return True
        if found == b"\r":
            return False
        if self._last:
            raise BadRequestError(400, "Trailers are not taken.")
        raise BadRequestError(400, "A chunk is longer than it said.")

    def _size_line(self, data: bytes, position: int) -> int | None:
        line_end = data.find(b"\r\n", position, position + MAX_CHUNK_LINE)
        if line_end < 0:
            if len(data) - position >= MAX_CHUNK_LINE or _CHUNK_LINE_START.fullmatch(data, position) is None:
                raise BadRequestError(
                    400, "A chunk's size must be 1 to 8 hexadecimal digits on a line that ends in CRLF."
                )
            return None
        match = _CHUNK_LINE.fullmatch(data, position, line_end)
        if match is None:
            raise BadRequestError(400, "A chunk's size must be 1 to 8 hexadecimal digits on a line that ends in CRLF.")
        self._due = int(match[1], 16)
        self._last = not self._due
        self._chunks += 1
        if len(self.body) + self._due > self._max_bytes:
            raise BadRequestError(413, f"The body is longer than {self._max_bytes} bytes.")
        if self._chunks > MAX_CHUNKS:
            raise BadRequestError(413, f"The body comes in more than {MAX_CHUNKS} chunks.")
        return line_end + 2
