"""Builds the exchanges of one session from the messages that passed: each request with its response, in the order of the requests.

An exchange waits for its response, within bounds: beyond a number of exchanges or bytes the oldest is given out as it is, and a later
response then stands alone, as the format allows. Exchanges of a standing stream do not wait. Data that is not a message is
counted and not kept. Messages and headers are put into the file as the JSON they are, after `Redaction` removed the secrets.
Must not: write to the disk, or look at a clock.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.capture.message_kind import ClassifiedMessage, Key, batch_items, classify
from pactgate.capture.redaction import Redaction
from pactgate.core.recording import Headers
from pactgate.protocol import messages
from pactgate.protocol.framing import EventDecoder, OversizedError, ServerEvent
from pactgate.protocol.modern import PROTOCOL_VERSION_KEY

MAX_HELD: Final = 256
MAX_HELD_BYTES: Final = 4 * 1024 * 1024
MAX_STREAM_MESSAGES: Final = 1000
MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
_MAX_OPEN: Final = 10_000
_STANDING: Final = "subscriptions/listen"
_HANDSHAKES: Final = ("initialize", "server/discover")
_EXCHANGE_BYTES: Final = 256
_HTTP_BYTES: Final = 600
_TO_CLIENT: Final = "server_to_client"
_PV_DATA: Final = PROTOCOL_VERSION_KEY.encode()
_encode: Final = msgspec.json.Encoder().encode


class HttpPart(Struct, omit_defaults=True, gc=False):
    """The HTTP request of an exchange, and the head of its response, as members of the file."""

    verb: str
    request_headers: Raw
    status: int | None = None
    response_headers: Raw | None = None
    response_bytes: int | None = None


class StreamMessagePart(Struct, omit_defaults=True, gc=False):
    """A message that travelled on the stream of an exchange, as members of the file."""

    message: Raw
    seq: int
    at_ms: float
    event_id: str | None = None


class ExchangePart(Struct, omit_defaults=True, gc=False):
    """The members of an exchange in the file. Messages are the bytes that passed. `direction` is None for client to server."""

    seq: int
    at_ms: float
    direction: str | None = None
    request: Raw | None = None
    response: Raw | None = None
    response_seq: int | None = None
    response_at_ms: float | None = None
    http: HttpPart | None = None
    auth: str | None = None
    stream: str | None = None
    closed_by: str | None = None
    event_id: str | None = None
    notifications: list[StreamMessagePart] | None = None


class _Pending(Struct, gc=False):
    """An exchange on its way to the file. `is_done`: nothing more comes; `is_given`: it was given out and can't change.

    `is_transport`: its stream is that of the HTTP+SSE transport, which carries every message of the server.
    """

    part: ExchangePart
    size_bytes: int
    key: Key = None
    method: str = ""
    is_done: bool = False
    is_given: bool = False
    decoder: EventDecoder | None = None
    is_transport: bool = False

    @property
    def from_client(self) -> bool:
        return self.part.direction is None


class Transcript:
    """HTTP requests are named by a `number` that the caller chooses; times are milliseconds since the start of the session."""

    def __init__(self, redaction: Redaction) -> None:
        self.noise_count = 0
        self.version: str | None = None
        self.is_modern = False
        self._redaction = redaction
        self._capabilities: Raw | None = None
        self._seq = 0
        self._waiting: deque[_Pending] = deque()
        self._held_bytes = 0
        self._open: dict[tuple[bool, Key], _Pending] = {}
        self._requests: dict[int, _Pending] = {}

    def facts(self) -> dict[str, Any]:
        """The members of the session that are known so far."""
        found: dict[str, Any] = {"server_capabilities": self._capabilities}
        if self.version is not None:
            found |= {"protocol_version": self.version, "era": "legacy"}
        elif self.is_modern:
            found |= {"era": "modern"}
        if self.noise_count:
            found["noise"] = self.noise_count
        return found

    def ready(self) -> list[bytes]:
        """The exchanges that are final, as JSON. Each is given once."""
        final: list[bytes] = []
        waiting = self._waiting
        while waiting and (waiting[0].is_done or len(waiting) > MAX_HELD or self._held_bytes > MAX_HELD_BYTES):
            exchange = waiting.popleft()
            exchange.is_given = True
            self._held_bytes -= exchange.size_bytes
            final.append(_encode(exchange.part))
        return final

    def held(self) -> list[bytes]:
        """The exchanges that still wait, as they are now."""
        return [_encode(exchange.part) for exchange in self._waiting]

    def message(self, at_ms: float, data: bytes, from_client: bool) -> None:
        """A message on a connection that carries nothing but messages."""
        self._add_message(at_ms, classify(data, self._redaction.ahead), from_client)

    def requested(self, at_ms: float, number: int, verb: str, _path: str, headers: Headers, body: bytes) -> None:
        block = self._redaction.block(headers)
        message = classify(body, self._redaction.ahead) if body else None
        exchange = self._begin(at_ms, True, HttpPart(verb, block.shown(body)), block.auth)
        self._requests[number] = exchange
        if message is None:
            self.noise_count += bool(body)
        elif message.is_response:
            exchange.part.direction = _TO_CLIENT
            for key in message.keys:
                self._open.pop((False, key), None)
            self._set_response(exchange, at_ms, message)
        else:
            self._set_request(exchange, message)

    def answered(self, at_ms: float, number: int, status: int, headers: Headers, body: bytes) -> None:
        exchange = self._requests.pop(number, None)
        if exchange is None:
            return
        block = self._redaction.block(headers)
        self._set_http(exchange, status, block.shown(body)).response_bytes = len(body)
        exchange.is_done = True
        if not body or not block.is_json:
            return
        message = classify(body, self._redaction.ahead)
        if message is None:
            self.noise_count += 1
        else:
            self._add_http_message(exchange, at_ms, message, None)

    def streaming(self, number: int, status: int, headers: Headers) -> None:
        exchange = self._requests.get(number)
        if exchange is None:
            return
        exchange.part.stream = f"s{number}"
        exchange.decoder = EventDecoder(MAX_EVENT_BYTES)
        http = self._set_http(exchange, status, self._redaction.block(headers).shown(None))
        exchange.is_done = http.verb != "POST" or exchange.method == _STANDING

    def events(self, at_ms: float, number: int, data: bytes) -> None:
        """A part of an event stream."""
        exchange = self._requests.get(number)
        if exchange is None or exchange.decoder is None:
            return
        try:
            events = exchange.decoder.feed(data)
        except OversizedError:
            self.noise_count += 1
            exchange.decoder = None
            return
        for event in events:
            if event.event == "endpoint":
                exchange.is_transport = True
            elif event.event == "message" and event.data:
                self._add_event(exchange, at_ms, event)

    def ended(self, number: int, by_client: bool) -> None:
        exchange = self._requests.pop(number, None)
        if exchange is None:
            return
        is_unanswered = exchange.part.request is not None and exchange.part.response is None
        if exchange.from_client and is_unanswered and not exchange.is_given:
            exchange.part.closed_by = "client" if by_client else "server"
        exchange.is_done = True

    def _add_event(self, exchange: _Pending, at_ms: float, event: ServerEvent) -> None:
        message = classify(event.data, self._redaction.message)
        if exchange.is_transport:
            self._add_message(at_ms, message, False)
        elif message is None:
            self.noise_count += 1
        else:
            self._add_http_message(exchange, at_ms, message, event.id)

    def _add_message(self, at_ms: float, message: ClassifiedMessage | None, from_client: bool) -> None:
        if message is None:
            self.noise_count += 1
        elif message.is_response:
            self._add_response(at_ms, message, from_client=from_client)
        else:
            exchange = self._begin(at_ms, from_client)
            self._set_request(exchange, message)
            exchange.is_done = not message.expects_response

    def _add_response(self, at_ms: float, message: ClassifiedMessage, *, from_client: bool) -> None:
        """Add a response to its request. One without a request, or with one that was given out, becomes its own exchange."""
        found = [self._open.pop((not from_client, key), None) for key in message.keys]
        exchange = next((each for each in found if each is not None), None)
        if exchange is not None and exchange.method in _HANDSHAKES:
            self._read_handshake(exchange, message)
        if exchange is None or exchange.is_given or exchange.part.response is not None:
            exchange = self._begin(at_ms, not from_client)
        else:
            self._seq += 1
        self._set_response(exchange, at_ms, message)
        exchange.is_done = True

    def _add_http_message(
        self, exchange: _Pending, at_ms: float, message: ClassifiedMessage, event_id: str | None
    ) -> None:
        """Add a message that an HTTP response carried: the response to its request, or another message on its stream."""
        is_its_own = message.is_response and (exchange.key in message.keys or message.keys == (None,))
        for key in message.keys if message.is_response else ():
            asked = self._open.pop((True, key), None)
            if asked is not None and asked.method in _HANDSHAKES:
                self._read_handshake(asked, message)
        part = exchange.part
        if is_its_own and not exchange.is_given and part.direction is None and part.response is None:
            self._seq += 1
            part.event_id = event_id
            self._set_response(exchange, at_ms, message)
        else:
            self._add_stream_message(exchange, at_ms, message, event_id)

    def _add_stream_message(
        self, exchange: _Pending, at_ms: float, message: ClassifiedMessage, event_id: str | None
    ) -> None:
        """Add a message to the stream of an exchange. One that was given out continues in another exchange of the same stream."""
        part = exchange.part
        stream, held = part.stream, part.notifications or []
        if exchange.is_done or exchange.is_given or len(held) >= MAX_STREAM_MESSAGES:
            exchange, held = self._begin(at_ms, True, part.http), []
            exchange.part.stream = stream
            exchange.is_done = True
        else:
            self._seq += 1
        held += [StreamMessagePart(Raw(data), self._seq, at_ms, event_id) for data in batch_items(message.data)]
        exchange.part.notifications = held
        self._grow(exchange, len(message.data))
        self._await_response(exchange, message, from_client=False)

    def _begin(
        self, at_ms: float, from_client: bool, http: HttpPart | None = None, auth: str | None = None
    ) -> _Pending:
        self._seq += 1
        size_bytes = _EXCHANGE_BYTES if http is None else _EXCHANGE_BYTES + _HTTP_BYTES
        direction = None if from_client else _TO_CLIENT
        exchange = _Pending(ExchangePart(self._seq, at_ms, direction, http=http, auth=auth), size_bytes)
        self._waiting.append(exchange)
        self._held_bytes += size_bytes
        return exchange

    def _set_http(self, exchange: _Pending, status: int, headers: Raw) -> HttpPart:
        http = exchange.part.http
        assert http is not None
        http.status, http.response_headers = status, headers
        return http

    def _set_request(self, exchange: _Pending, message: ClassifiedMessage) -> None:
        exchange.part.request = Raw(message.data)
        exchange.method, exchange.key = message.method, message.keys[-1]
        self._grow(exchange, len(message.data))
        if self.version is None and not self.is_modern and exchange.from_client and _PV_DATA in message.data:
            self.is_modern = True
        self._await_response(exchange, message, from_client=exchange.from_client)

    def _set_response(self, exchange: _Pending, at_ms: float, message: ClassifiedMessage) -> None:
        part = exchange.part
        part.response, part.response_seq, part.response_at_ms = Raw(message.data), self._seq, at_ms
        self._grow(exchange, len(message.data))

    def _await_response(self, exchange: _Pending, message: ClassifiedMessage, *, from_client: bool) -> None:
        if len(self._open) < _MAX_OPEN:
            for key in message.request_keys:
                self._open[from_client, key] = exchange

    def _grow(self, exchange: _Pending, size_bytes: int) -> None:
        exchange.size_bytes += size_bytes
        if not exchange.is_given:
            self._held_bytes += size_bytes

    def _read_handshake(self, request: _Pending, message: ClassifiedMessage) -> None:
        """Take version and capabilities from the response to `initialize` or `server/discover`."""
        try:
            members = messages.members(bytes(messages.members(batch_items(message.data)[0])["result"]))
        except (msgspec.DecodeError, KeyError):
            return
        capabilities = members.get("capabilities")
        if capabilities is not None and bytes(capabilities).lstrip()[:1] == b"{":
            self._capabilities = Raw(bytes(capabilities))
        version = messages.value(members["protocolVersion"]) if "protocolVersion" in members else None
        if request.from_client and request.method == "initialize" and isinstance(version, str):
            self.version = version
