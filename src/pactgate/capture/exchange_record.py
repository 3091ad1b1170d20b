"""One exchange on its way to the file: what is known of it, and how that is written.

Messages and headers are JSON already and are put in as they are: whoever fills a draft has checked them and taken the secrets out.
Must not: check or hide anything.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from pactgate.capture.message_kind import Key


class HttpRecord(Struct, gc=False):
    """The HTTP request of an exchange, and the head of its answer."""

    verb: bytes
    request_headers: bytes
    status: int | None = None
    response_headers: bytes = b"{}"
    response_bytes: int | None = None

    def encode(self) -> bytes:
        if self.status is None:
            return b'{"verb":%b,"request_headers":%b}' % (self.verb, self.request_headers)
        known = (self.verb, self.request_headers, self.status, self.response_headers)
        length = b"" if self.response_bytes is None else b',"response_bytes":%d' % self.response_bytes
        return b'{"verb":%b,"request_headers":%b,"status":%d,"response_headers":%b%b}' % (*known, length)


class ExchangeRecord(Struct, gc=False):
    """`from_client` is the direction of its request. `is_done`: nothing more comes; `is_given`: it is on its way, too late for more."""

    seq: int
    at_ms: float
    from_client: bool
    size_bytes: int
    http: HttpRecord | None = None
    auth: bytes | None = None
    request: bytes | None = None
    response: bytes | None = None
    response_seq: int = 0
    response_at_ms: float = 0.0
    stream: str | None = None
    closed_by: str | None = None
    event_id: str | None = None
    frames: list[bytes] = []
    key: Key = None
    method: str = ""
    is_done: bool = False
    is_given: bool = False

    def encode(self) -> bytes:
        text = b'{"seq":%d,"at_ms":%.3f' % (self.seq, self.at_ms)
        if not self.from_client:
            text += b',"direction":"server_to_client"'
        if self.request is not None:
            text = b'%b,"request":%b' % (text, self.request)
        if self.response is not None:
            answer = (text, self.response, self.response_seq, self.response_at_ms)
            text = b'%b,"response":%b,"response_seq":%d,"response_at_ms":%.3f' % answer
        if self.http is not None:
            text = b'%b,"http":%b' % (text, self.http.encode())
        if self.auth is not None:
            text = b'%b,"auth":%b' % (text, self.auth)
        if self.stream or self.closed_by or self.event_id is not None or self.frames:
            text += self._encode_stream()
        return text + b"}"

    def _encode_stream(self) -> bytes:
        texts = {"stream": self.stream, "closed_by": self.closed_by, "event_id": self.event_id}
        parts = [b',"%b":%b' % (name.encode(), quoted(text)) for name, text in texts.items() if text is not None]
        if self.frames:
            parts.append(b',"notifications":[' + b",".join(self.frames) + b"]")
        return b"".join(parts)


def frame(message: bytes, seq: int, at_ms: float, event_id: str | None) -> bytes:
    """What travelled on the stream of an exchange."""
    event = b"" if event_id is None else b',"event_id":' + quoted(event_id)
    return b'{"message":%b,"seq":%d,"at_ms":%.3f%b}' % (message, seq, at_ms, event)


def quoted(text: str) -> bytes:
    return msgspec.json.encode(text)
