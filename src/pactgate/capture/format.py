"""The format of capture files: one session object or an array of sessions, read exchange by exchange.

A session carries `server_label`, `server_capabilities` (absent means null) and `exchanges`, each with a `request` and, unless
it is a notification or was lost, a `response`. This is the format of mcptest. Our recorder adds members, all optional, and exchanges
without a `request`, which have `seq` or `http`: a late response, a GET. Any other exchange without a request is an error.

session    capture_version (1: every message of either direction is in the file), transport (stdio, http, http+sse),
           transport_id, protocol_version, era (legacy, modern), started_at (when at_ms was 0), closed (true: the connection
           had ended, or the capture ends before it did), shared (true: several clients, whose ids and tokens may coincide), leg (probe: the
           client is a probe, which breaks rules on purpose), missing (messages that came later and are not in the file), noise
           (lines that are no messages)
exchange   direction (of the request: client_to_server, the default, or server_to_client), at_ms and response_at_ms (since the
           start), seq and response_seq (the order of all messages of the session), stream (the stream it travelled on or
           opened), closed_by (client, server: its stream ended without an answer), auth (a digest of the credentials),
           event_id (of the response), notifications (what else travelled on its stream, in order: message, seq, at_ms,
           direction, event_id), http (of the request that carried the client's message: verb, status, request_headers,
           response_headers, response_bytes)

Exchanges are in the order of their requests. A JSON-RPC batch is an array in the place of a message. Unknown members are
ignored; one of ours with an unexpected type counts as absent, and so does null.
Must not: open, check or repair anything. Enforces S3/CAPTURE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from pactgate.capture.json_stream import JsonStream, NotJsonError
from pactgate.protocol.versions import Era

CAPTURE_VERSION: Final = 1
PROBE: Final = "probe"
"""The `leg` of a session with a probe."""

Body = dict[str, Any]
Progress = Callable[[int, int | None], None]
"""Called with the number of bytes read, and the total where that is known."""

_BEYOND_TIME: Final = 2.0**53


class CaptureErrorKind(StrEnum):
    UNREADABLE = "unreadable"
    NOT_JSON = "not_json"
    NOT_A_CAPTURE = "not_a_capture"


class CaptureError(Exception):
    """The capture can't be checked because it can't be read."""

    def __init__(self, kind: CaptureErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Side(StrEnum):
    CLIENT = "client"
    SERVER = "server"

    @property
    def other(self) -> Side:
        return Side.SERVER if self is Side.CLIENT else Side.CLIENT


class RecordedHttp(Struct, frozen=True):
    """The HTTP part of an exchange. Header names are in lower case; a header that was sent twice has two values."""

    verb: str = "POST"
    status: int | None = None
    request_headers: dict[str, list[str]] = {}
    response_headers: dict[str, list[str]] = {}
    response_bytes: int | None = None


class StreamMessage(Struct, frozen=True):
    """A message that travelled on the stream of an exchange."""

    message: Body
    sender: Side = Side.SERVER
    seq: int | None = None
    at_ms: float | None = None
    event_id: str | None = None


class RecordedExchange(Struct, frozen=True):
    """`request` and `response` are messages, batches, or None. `sender` sent the request."""

    index: int
    request: Body | list[Body] | None = None
    response: Body | list[Body] | None = None
    sender: Side = Side.CLIENT
    seq: int | None = None
    response_seq: int | None = None
    at_ms: float | None = None
    response_at_ms: float | None = None
    stream: str | None = None
    closed_by: Side | None = None
    auth: str | None = None
    event_id: str | None = None
    http: RecordedHttp | None = None
    frames: tuple[StreamMessage, ...] = ()


class SessionHead(Struct, frozen=True):
    """The members of a session besides its exchanges."""

    label: str
    capabilities: Body | None = None
    capture_version: int | None = None
    transport: str | None = None
    transport_id: str | None = None
    protocol_version: str | None = None
    era: Era | None = None
    is_closed: bool = False
    is_shared: bool = False
    is_probe: bool = False


class RecordedSession:
    """One session. Its exchanges can be read once, before those of the next session; afterwards the head is complete."""

    def __init__(self, index: int, members: Body, exchanges: Iterator[RecordedExchange]) -> None:
        self.index = index
        self.exchanges = exchanges
        self._members = members

    @property
    def head(self) -> SessionHead:
        """The head as far as it was read: members may follow the exchanges."""
        held = self._members
        label, era = _text(held.get("server_label")), held.get("era")
        return SessionHead(
            label=f"session {self.index + 1}" if label is None else label,
            capabilities=held.get("server_capabilities"),
            capture_version=_whole(held.get("capture_version")),
            transport=_text(held.get("transport")),
            transport_id=_text(held.get("transport_id")),
            protocol_version=_text(held.get("protocol_version")),
            era=Era(era) if era in ("legacy", "modern") else None,
            is_closed=held.get("closed") is True,
            is_shared=held.get("shared") is True,
            is_probe=held.get("leg") == PROBE,
        )


_HEAD: Final = frozenset(
    {"server_label", "server_capabilities", "capture_version", "transport", "transport_id", "protocol_version"}
    | {"era", "closed", "shared", "leg"}
)


def read(chunks: Iterable[bytes]) -> Iterator[RecordedSession]:
    """The sessions of a capture in order. Raises CaptureError, also while exchanges are being read."""
    stream = JsonStream(chunks)
    with _refusing():
        opening = stream.peek()
        if not opening:
            raise CaptureError(CaptureErrorKind.NOT_JSON, "The capture is empty.")
        if opening == "{":
            yield from _session(stream, 0, "the session")
        elif opening == "[":
            for index in stream.items():
                where = f"session {index}"
                if stream.peek() != "{":
                    raise _not_a_capture(f"{where} must be an object")
                yield from _session(stream, index, where)
        else:
            stream.value()
            raise _not_a_capture("it must be a session object or an array of them")
        stream.require_end()


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except NotJsonError as problem:
        raise CaptureError(CaptureErrorKind.NOT_JSON, f"The capture is not JSON: {problem}.") from None


def _session(stream: JsonStream, index: int, where: str) -> Iterator[RecordedSession]:
    members: Body = {}
    names = stream.members()
    for name in names:
        if name == "exchanges" and stream.peek() == "[":
            _require_head(members, where)
            session = RecordedSession(index, members, _exchanges(stream, names, members, where))
            yield session
            for _ in session.exchanges:
                pass
            return
        _take(stream, name, members)
    raise _not_a_capture(f"{where} has no array of exchanges")


def _exchanges(stream: JsonStream, names: Iterator[str], members: Body, where: str) -> Iterator[RecordedExchange]:
    """The exchanges. After the last one the remaining members are added to the head."""
    with _refusing():
        for index in stream.items():
            yield _exchange(stream.value(), index, where)
        for name in names:
            if name == "exchanges":
                raise _not_a_capture(f"{where} has exchanges twice")
            _take(stream, name, members)
        _require_head(members, where)


def _take(stream: JsonStream, name: str, members: Body) -> None:
    value = stream.value()
    if name in _HEAD:
        members[name] = value


def _require_head(members: Body, where: str) -> None:
    label, capabilities = members.get("server_label"), members.get("server_capabilities")
    if not isinstance(label, str | None):
        raise _not_a_capture(f"server_label of {where} must be a string")
    if not isinstance(capabilities, dict | None):
        raise _not_a_capture(f"server_capabilities of {where} must be an object or null")


def _exchange(value: Any, index: int, session: str) -> RecordedExchange:
    where = f"exchange {index} of {session}"
    if not isinstance(value, dict):
        raise _not_a_capture(f"{where} must be an object")
    http = value.get("http")
    request, response = (_message(value.get(name), f"{name} of {where}") for name in ("request", "response"))
    if request is None and not isinstance(http, dict) and _whole(value.get("seq")) is None:
        raise _not_a_capture(f"{where} has no request")
    if len(value) == 2 and request is not None and response is not None:
        return RecordedExchange(index, request, response)  # fast path for most of a large capture
    return RecordedExchange(
        index=index,
        request=request,
        response=response,
        sender=_direction(value.get("direction"), Side.CLIENT),
        seq=_whole(value.get("seq")),
        response_seq=_whole(value.get("response_seq")),
        at_ms=_number(value.get("at_ms")),
        response_at_ms=_number(value.get("response_at_ms")),
        stream=_text(value.get("stream")),
        closed_by=Side(closer) if (closer := value.get("closed_by")) in ("client", "server") else None,
        auth=_text(value.get("auth")),
        event_id=_text(value.get("event_id")),
        http=_http(http) if isinstance(http, dict) else None,
        frames=tuple(_frames(value.get("notifications"))),
    )


def _message(value: Any, where: str) -> Body | list[Body] | None:
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    raise _not_a_capture(f"the {where} must be a message or a batch of messages")


def _frames(value: Any) -> Iterator[StreamMessage]:
    for item in value if isinstance(value, list) else ():
        if not isinstance(item, dict):
            continue
        if not isinstance(item.get("message"), dict):
            yield StreamMessage(item)  # the bare message
            continue
        yield StreamMessage(
            item["message"],
            _direction(item.get("direction"), Side.SERVER),
            _whole(item.get("seq")),
            _number(item.get("at_ms")),
            _text(item.get("event_id")),
        )


def _http(value: Body) -> RecordedHttp:
    verb = value.get("verb")
    return RecordedHttp(
        verb=verb.upper() if isinstance(verb, str) else "POST",
        status=_whole(value.get("status")),
        request_headers=_headers(value.get("request_headers")),
        response_headers=_headers(value.get("response_headers")),
        response_bytes=_whole(value.get("response_bytes")),
    )


def _headers(value: Any) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, held in value.items() if isinstance(value, dict) else ():
        values = held if isinstance(held, list) else [held]
        headers.setdefault(name.lower(), []).extend(text for text in values if isinstance(text, str))
    return headers


def _direction(value: Any, default: Side) -> Side:
    return {"client_to_server": Side.CLIENT, "server_to_client": Side.SERVER}.get(
        value if isinstance(value, str) else "", default
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < _BEYOND_TIME else None


def _not_a_capture(why: str) -> CaptureError:
    return CaptureError(CaptureErrorKind.NOT_A_CAPTURE, f"This is not a capture: {why}.")
