"""One child, several workers: whose message is whose. No sockets, no clock of its own; frames in, frames out.

Requests get ids nobody else has, and progress tokens and listens with them; answers find the way back by these. The child is greeted
once: its answer to a handshake serves all who ask the same. What it says of its lists goes to everybody. What could be about one caller
(a log message, a question) goes on only where it is certain whose it is, by the rules `upstreams/peer.py` and
`upstreams/server_request_router.py` have
for callers. Must not: let one worker hear what was meant for another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec import DecodeError, Raw, Struct

from pactgate.core.contract import REPORT_METHOD
from pactgate.protocol import messages, modern
from pactgate.protocol.era_bridge import QUESTIONS
from pactgate.protocol.messages import ErrorReply, Notification, Request, Response, encode_json

LATE_LOG_S: Final = 5.0
STRAY_S: Final = 30.0
MAX_STRAYS: Final = 1024
MAX_QUESTIONS: Final = 256
_HANDSHAKES: Final = ("initialize", "server/discover")
_CANCELLED: Final = "notifications/cancelled"
_SUBSCRIBE: Final = "resources/subscribe"
_UNSUBSCRIBE: Final = "resources/unsubscribe"
_SET_LEVEL: Final = "logging/setLevel"
_NOTHING: Final = b"{}"
_START: Final = b'{"jsonrpc":"2.0","id":'
_PLAIN_CALL: Final = b',"method":"tools/call","params":'
_LONGEST_ID: Final = 20
_TOKEN: Final = b"progressToken"


class Out(NamedTuple):
    """What is to be sent on: frames to the child, and frames to seats by their number."""

    to_child: tuple[bytes, ...] = ()
    to_seats: tuple[tuple[int, bytes], ...] = ()
    is_answer: bool = False


class _Call(Struct):
    """A request under way. `seat` is None once nobody waits for it; the child may still talk about it for a while."""

    seat: int | None
    id: bytes
    method: str
    token: Raw | None
    given_up_at: float | None = None
    owner: int | None = None
    """The seat it came from, also after that gave it up; None where the seat is no more."""


class _Greeting(Struct):
    """One handshake with the child, and who else waits for what it says."""

    waiting: list[tuple[int, bytes]]
    answer: Response | ErrorReply | None = None


class Sharing:
    """The conversation of one child with all its seats, which are numbers."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.unattributed_count = 0
        self._clock = clock
        self._seats: dict[int, None] = {}
        self._last_id = 0
        self._calls: dict[str | int, _Call] = {}
        self._strays: dict[str | int, None] = {}
        self._greetings: dict[tuple[str, bytes | None], _Greeting] = {}
        self._greeted: dict[str | int, _Greeting] = {}
        self._is_initialized = False
        self._uris: dict[str, set[int]] = {}
        self._level: int | None = None
        self._questions: dict[str | int, int] = {}
        self._talking: int | None = None
        self._talking_since = -LATE_LOG_S

    def __len__(self) -> int:
        """Requests somebody waits for."""
        return sum(call.seat is not None for call in self._calls.values())

    def join(self, seat: int) -> None:
        self._seats[seat] = None

    def leave(self, seat: int) -> Out:
        """A worker is gone, or wants nothing more of this child: what it waited for is cancelled."""
        self._seats.pop(seat, None)
        told = [self._give_up(key) for key, call in tuple(self._calls.items()) if call.seat == seat]
        for call in self._calls.values():
            if call.owner == seat:
                call.owner = None
        for greeting in self._greetings.values():
            greeting.waiting = [one for one in greeting.waiting if one[0] != seat]
        for question in [key for key, asked in self._questions.items() if asked == seat]:
            del self._questions[question]
            text = "whoever could have answered is gone"
            told.append(messages.encode_error(encode_json(question), messages.INTERNAL_ERROR, text))
        for uri in [uri for uri, seats in self._uris.items() if seats == {seat}]:
            del self._uris[uri]
            told.append(self._mint(None, b"null", _UNSUBSCRIBE, encode_json({"uri": uri}), None))
        for seats in self._uris.values():
            seats.discard(seat)
        return Out(tuple(told))

    # From a worker.

    def from_seat(self, seat: int, frame: bytes) -> Out:
        if frame.startswith(_START) and _TOKEN not in frame:
            end = frame.find(_PLAIN_CALL, len(_START), len(_START) + _LONGEST_ID + len(_PLAIN_CALL))
            if end > 0:
                return self._pass_on(seat, frame[len(_START) : end], frame[end:])
        message = messages.decode_from_upstream(frame)
        if isinstance(message, Request):
            return self._ask(seat, message)
        if isinstance(message, Notification):
            return self._tell(seat, message, frame)
        if isinstance(message, Response | ErrorReply) and self._questions.get(message.key or "") == seat:
            del self._questions[message.key or ""]
            return Out((frame,))
        return Out()

    def _pass_on(self, seat: int, id_: bytes, rest: bytes) -> Out:
        """A tool call as our own `Peer` writes it, which nearly every frame is: only its id changes."""
        self._note(seat)
        self._last_id += 1
        self._calls[self._last_id] = _Call(seat, id_, "tools/call", None, None, seat)
        return Out((b"%b%d%b" % (_START, self._last_id, rest),))

    def _ask(self, seat: int, request: Request) -> Out:
        if request.method in _HANDSHAKES:
            return self._greet(seat, request)
        if request.method in (_SUBSCRIBE, _UNSUBSCRIBE, _SET_LEVEL) and self._is_settled(seat, request):
            return Out((), ((seat, messages.encode_result(request.id, _NOTHING)),))
        self._note(seat)
        token, params = None, request.params
        if params is not None and _TOKEN in params:
            token, params = _with_token(params, self._last_id + 1)
        return Out((self._mint(seat, request.id, request.method, params, token),))

    def _mint(self, seat: int | None, id_: bytes, method: str, params: bytes | None, token: Raw | None) -> bytes:
        self._last_id += 1
        self._calls[self._last_id] = _Call(seat, id_, method, token, None, seat)
        return messages.encode_request(b"%d" % self._last_id, method, params)

    def _greet(self, seat: int, request: Request) -> Out:
        asked = {method for method, _ in self._greetings}
        if request.method not in asked and (self._is_initialized or asked == {"initialize"}):
            text = "it was greeted in the legacy era"  # some servers exit at anything else
            return Out((), ((seat, messages.encode_error(request.id, messages.METHOD_NOT_FOUND, text)),))
        greeting = self._greetings.get((request.method, request.params))
        if greeting is None:
            greeting = self._greetings[request.method, request.params] = _Greeting([(seat, request.id)])
            self._last_id += 1
            self._greeted[self._last_id] = greeting
            return Out((messages.encode_request(b"%d" % self._last_id, request.method, request.params),))
        if greeting.answer is None:
            greeting.waiting.append((seat, request.id))
            return Out()
        return Out((), ((seat, _answer(request.id, greeting.answer)),))

    def _is_settled(self, seat: int, request: Request) -> bool:
        """Whether the child need not be told, as another worker has said the same or still needs the contrary."""
        given = _members(request.params)
        if request.method == _SET_LEVEL:
            level = _text(given.get("level"))
            if level not in modern.LOG_LEVELS:
                return False
            rank = modern.LOG_LEVELS.index(level)
            if self._level is not None and self._level <= rank:
                return True
            self._level = rank
            return False
        uri = _text(given.get("uri"))
        if uri is None:
            return False
        if request.method == _SUBSCRIBE:
            self._uris.setdefault(uri, set()).add(seat)
            return False
        left = self._uris.get(uri, set())
        left.discard(seat)
        if not left:
            self._uris.pop(uri, None)
        return bool(left)

    def _tell(self, seat: int, notification: Notification, frame: bytes) -> Out:
        if notification.method == "notifications/initialized":
            was, self._is_initialized = self._is_initialized, True
            return Out() if was else Out((frame,))
        if notification.method != _CANCELLED:
            return Out((frame,))
        raw = _members(notification.params).get("requestId")
        for key, call in self._calls.items():
            if call.seat == seat and raw is not None and call.id == bytes(raw):
                return Out((self._give_up(key),))
        for greeting in self._greetings.values():
            greeting.waiting = [one for one in greeting.waiting if one != (seat, bytes(raw or b""))]
        return Out()

    def _give_up(self, key: str | int) -> bytes:
        call = self._calls[key]
        call.seat, call.given_up_at = None, self._clock()
        self._strays[key] = None
        if len(self._strays) > MAX_STRAYS:
            oldest = next(iter(self._strays))
            del self._strays[oldest]
            self._calls.pop(oldest, None)
        params = encode_json({"requestId": key, "reason": "the caller gave up"})
        return messages.encode_notification(_CANCELLED, params)

    def _note(self, seat: int) -> None:
        if seat != self._talking:
            if self._talking is not None:
                self._talking_since = self._clock()
            self._talking = seat

    # From the child.

    def from_child(self, frame: bytes) -> Out:
        message = messages.decode_from_upstream(frame)
        if isinstance(message, Response | ErrorReply):
            return self._answered(message)
        if isinstance(message, Notification):
            return self._heard(message, frame)
        if isinstance(message, Request):
            return self._asked(message, frame)
        return Out((), tuple((seat, frame) for seat in tuple(self._seats)[:1]))  # one worker says what is wrong with it

    def _answered(self, message: Response | ErrorReply) -> Out:
        if message.key is None:
            return Out((), (), is_answer=True)
        greeting = self._greeted.pop(message.key, None)
        if greeting is not None:
            greeting.answer = message
            waiting, greeting.waiting = greeting.waiting, []
            return Out((), tuple((seat, _answer(id_, message)) for seat, id_ in waiting), is_answer=True)
        call = self._calls.pop(message.key, None)
        self._strays.pop(message.key, None)
        if call is None or call.seat is None:
            return Out((), (), is_answer=True)
        return Out((), ((call.seat, _answer(call.id, message)),), is_answer=True)

    def _heard(self, notification: Notification, frame: bytes) -> Out:
        method, given = notification.method, _members(notification.params)
        if method == "notifications/progress":
            call = self._named(given.get("progressToken"))
            if call is None or call.seat is None or call.token is None:
                return Out()
            return _say(call.seat, method, {**given, "progressToken": call.token})
        if method == "notifications/message":
            seat = self._only_seat(at_most=1)
            if seat is None or self._clock() - self._talking_since < LATE_LOG_S:
                self.unattributed_count += 1
                return Out()
            return Out((), ((seat, frame),))
        if method == _CANCELLED:
            return self._withdrawn(given, frame)
        listen = self._tagged(method, given)
        if listen is not None:
            return listen
        return Out((), tuple((seat, frame) for seat in self._hearers(method, given)))

    def _hearers(self, method: str, given: dict[str, Raw]) -> tuple[int, ...]:
        """Whoever did not subscribe to what was updated passes it on to nobody; it may be a part of what another did."""
        everybody = tuple(self._seats)
        if method == REPORT_METHOD and _text(given.get("tool")):
            return everybody[:1]  # what a runner saw a tool do is an event, and told once
        return everybody

    def _withdrawn(self, given: dict[str, Raw], frame: bytes) -> Out:
        """The child ends a listen, or no longer wants to know what it asked."""
        raw = given.get("requestId")
        call = self._named(raw)
        if call is not None and call.seat is not None:
            seat, id_ = call.seat, Raw(call.id)
            self._calls.pop(messages.id_key(bytes(raw or b"")) or 0, None)
            return _say(seat, _CANCELLED, {**given, "requestId": id_})
        key = None if raw is None else messages.id_key(bytes(raw))
        asked = None if key is None else self._questions.get(key)
        return Out() if asked is None else Out((), ((asked, frame),))

    def _tagged(self, method: str, given: dict[str, Raw]) -> Out | None:
        """A notification that belongs to a listen, under the id its worker gave it. None where it has no such mark."""
        meta = _members(bytes(given.get("_meta", Raw(_NOTHING))))
        mark = meta.get(modern.SUB)
        if mark is None:
            return None
        call = self._named(mark)
        if call is None or call.seat is None:
            return Out()
        return _say(call.seat, method, {**given, "_meta": {**meta, modern.SUB: Raw(call.id)}})

    def _asked(self, request: Request, frame: bytes) -> Out:
        if request.method == "ping":
            return Out((messages.encode_result(request.id, _NOTHING),))
        seat = self._only_seat()
        if request.method not in QUESTIONS or seat is None:
            code = messages.INVALID_REQUEST if self._calls else messages.METHOD_NOT_FOUND
            text = f"{request.method} can't be answered: it is not certain whose call it belongs to"
            return Out((messages.encode_error(request.id, code, text),))
        if len(self._questions) >= MAX_QUESTIONS or request.key in self._questions:
            return Out((messages.encode_error(request.id, messages.INTERNAL_ERROR, "too many questions are open"),))
        self._questions[request.key] = seat
        return Out((), ((seat, frame),))

    def _named(self, raw: Raw | None) -> _Call | None:
        key = None if raw is None else messages.id_key(bytes(raw))
        return None if key is None else self._calls.get(key)

    def _only_seat(self, at_most: int | None = None) -> int | None:
        """The one worker all requests under way belong to, those included that it gave up lately."""
        until = self._clock() - STRAY_S
        active = [
            call
            for call in self._calls.values()
            if call.method != modern.LISTEN and (call.given_up_at is None or call.given_up_at > until)
        ]
        owners = {call.owner for call in active}
        if len(owners) != 1 or (at_most is not None and len(active) > at_most):
            return None
        owner = owners.pop()
        return owner if owner in self._seats else None


def _answer(id_: bytes, message: Response | ErrorReply) -> bytes:
    if isinstance(message, Response):
        return messages.encode_result(id_, message.result)
    data = None if message.data is None else Raw(message.data)
    return messages.encode_error(id_, message.code, message.message, data)


def _say(seat: int, method: str, given: dict[str, Any]) -> Out:
    return Out((), ((seat, messages.encode_notification(method, encode_json(given))),))


def _with_token(params: bytes, token: int) -> tuple[Raw | None, bytes]:
    """The progress token that was there, if there was one, and the parameters with another in its place."""
    given = _members(params)
    meta = _members(bytes(given.get("_meta", Raw(_NOTHING))))
    before = meta.get("progressToken")
    if before is None:
        return None, params
    return before, encode_json({**given, "_meta": {**meta, "progressToken": token}})


def _members(text: bytes | None) -> dict[str, Raw]:
    try:
        return messages.members(text or _NOTHING)
    except DecodeError:
        return {}


def _text(raw: Raw | None) -> str | None:
    value = None if raw is None else messages.value(raw)
    return value if isinstance(value, str) else None
