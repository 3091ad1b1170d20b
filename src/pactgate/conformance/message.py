"""One exchange and its messages as rules see them: sender, era and revision, and the request that a response belongs to.

Must not: check anything, or change what was recorded.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from typing import Any, ClassVar, Final

from msgspec import Struct

from pactgate.capture.format import Body, RecordedExchange, Side
from pactgate.conformance.bounded import Key, id_key
from pactgate.conformance.http import BAD_REQUEST
from pactgate.protocol.messages import HEADER_MISMATCH
from pactgate.protocol.modern import LOG_LEVELS
from pactgate.protocol.versions import Era

META: Final = "_meta"
_NOTHING: Final[Body] = {}


class Role(StrEnum):
    REQUEST = "request"
    NOTIFICATION = "notice"
    RESPONSE = "answer"


MessageKind = tuple[Side, Role, bool]
"""The sender, the role, and whether the message is a response with a result."""

EVERYTHING: Final[frozenset[MessageKind]] = frozenset(product(Side, Role, (False, True)))
FROM_CLIENT: Final = frozenset(kind for kind in EVERYTHING if kind[0] is Side.CLIENT)
FROM_SERVER: Final = EVERYTHING - FROM_CLIENT
REQUESTS: Final = frozenset(kind for kind in EVERYTHING if kind[1] is Role.REQUEST)
NOTIFICATIONS: Final = frozenset(kind for kind in EVERYTHING if kind[1] is Role.NOTIFICATION)
RESPONSES: Final = EVERYTHING - REQUESTS - NOTIFICATIONS
RESULTS: Final = frozenset(kind for kind in RESPONSES if kind[2])


class ExchangeView(Struct, eq=False):
    """One exchange with its era. `version` is None where the capture does not say the revision."""

    exchange: RecordedExchange
    era: Era
    version: str | None
    messages: list[RecordedMessage] = []
    _requests: dict[Key | None, RecordedMessage] | None = None

    pointer: ClassVar[str] = ""

    @property
    def requests(self) -> dict[Key | None, RecordedMessage]:
        """The requests of a batch by their ids."""
        if self._requests is None:
            self._requests = {m.key: m for m in self.messages if m.role is Role.REQUEST and m.frame is None}
        return self._requests

    @property
    def index(self) -> int:
        return self.exchange.index

    @property
    def is_modern(self) -> bool:
        return self.era is Era.MODERN

    @property
    def from_client(self) -> RecordedMessage | None:
        """The client's own message of this exchange: its request or notification, or its response to the server."""
        for message in self.messages:
            if message.sender is Side.CLIENT and message.frame is None:
                return message
        return None

    @property
    def first_response(self) -> RecordedMessage | None:
        for message in self.messages:
            if message.role is Role.RESPONSE and message.frame is None:
                return message
        return None

    @property
    def is_refused_by_http(self) -> bool:
        """Whether the HTTP status refused the request, which is an answer whatever the body is."""
        http = self.exchange.http
        return http is not None and http.status is not None and http.status >= BAD_REQUEST

    @property
    def is_refused_for_headers(self) -> bool:
        """Whether the server refused the request because its headers differ from its body."""
        http, answer = self.exchange.http, self.first_response
        is_bad = http is not None and http.status == BAD_REQUEST
        return is_bad and (answer is None or answer.code == HEADER_MISMATCH)


class RecordedMessage(Struct, eq=False):
    """One message. `request` is the request of a response; `frame` is the index of a message on the stream of an exchange."""

    view: ExchangeView
    pointer: str
    body: Body
    sender: Side
    seq: int | None = None
    at_ms: float | None = None
    event_id: str | None = None
    frame: int | None = None
    request: RecordedMessage | None = None
    is_repeated_id: bool = False
    role: Role = Role.RESPONSE

    def __post_init__(self) -> None:
        if "method" in self.body:
            self.role = Role.NOTIFICATION if self.body.get("id") is None else Role.REQUEST

    @property
    def index(self) -> int:
        return self.view.exchange.index

    @property
    def is_from_client(self) -> bool:
        return self.sender is Side.CLIENT

    @property
    def is_modern(self) -> bool:
        return self.view.era is Era.MODERN

    @property
    def version(self) -> str | None:
        return self.view.version

    @property
    def method(self) -> str:
        """The method of the message, or of the request it responds to, or ""."""
        if self.role is Role.RESPONSE:
            return self.request.method if self.request is not None else ""
        method = self.body["method"]
        return method if isinstance(method, str) else ""

    @property
    def kind(self) -> MessageKind:
        return self.sender, self.role, self.role is Role.RESPONSE and self.is_success

    @property
    def key(self) -> Key | None:
        return id_key(self.body.get("id"))

    @property
    def params(self) -> Body:
        return as_object(self.body.get("params"))

    @property
    def meta(self) -> Body:
        return as_object(self.params.get(META))

    @property
    def is_error(self) -> bool:
        return self.body.get("error") is not None or ("error" in self.body and "result" not in self.body)

    @property
    def is_success(self) -> bool:
        return "result" in self.body and not self.is_error

    @property
    def result(self) -> Body:
        return as_object(self.body.get("result"))

    @property
    def error(self) -> Body:
        return as_object(self.body.get("error"))

    @property
    def code(self) -> int | None:
        """The code of an error response, where it is an integer."""
        code = self.error.get("code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    def request_params(self) -> Body:
        """The parameters of the request that this message responds to."""
        return self.request.params if self.request is not None else _NOTHING

    def request_meta(self) -> Body:
        return self.request.meta if self.request is not None else _NOTHING


def as_object(value: Any) -> Body:
    return value if isinstance(value, dict) else _NOTHING


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def log_rank(level: Any) -> int | None:
    """The position of a log level, or None where it is none."""
    return LOG_LEVELS.index(level) if isinstance(level, str) and level in LOG_LEVELS else None


def messages_of(view: ExchangeView) -> list[RecordedMessage]:
    """All messages of an exchange in file order: request, messages on its stream, response."""
    exchange = view.exchange
    found = [
        RecordedMessage(view, place, body, exchange.sender, exchange.seq, exchange.at_ms)
        for place, body in _bodies("/request", exchange.request)
    ]
    found += [
        RecordedMessage(
            view,
            f"/notifications/{number}/message",
            frame.message,
            frame.sender,
            frame.seq,
            frame.at_ms,
            frame.event_id,
            number,
        )
        for number, frame in enumerate(exchange.frames)
    ]
    answers = [
        RecordedMessage(
            view, place, body, exchange.sender.other, exchange.response_seq, exchange.response_at_ms, exchange.event_id
        )
        for place, body in _bodies("/response", exchange.response)
    ]
    view.messages = found + answers
    return view.messages


def _bodies(place: str, value: Body | list[Body] | None) -> list[tuple[str, Body]]:
    if isinstance(value, list):
        return [(f"{place}/{number}", body) for number, body in enumerate(value)]
    return [] if value is None else [(place, value)]
