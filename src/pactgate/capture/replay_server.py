"""Serves the responses of a recorded session: a request gets the response that the same request got when it was recorded.

Requests are the same if their methods and parameters are equal, in any order of members and without `_meta`, which describes the client;
a handshake and a discovery are matched by method alone. Recorded responses are given in order, then the last one again. Only the
id is rewritten. A request that was not recorded gets an error. Notifications of the server are not replayed.
Must not: read files or listen. Enforces requirement 5.7 (replay).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from pactgate.capture.format import Body, RecordedExchange, RecordedHttp, RecordedSession, Side
from pactgate.protocol import messages

BY_METHOD: Final = frozenset({"initialize", "server/discover"})
MAX_HELD_BYTES: Final = 256 * 1024 * 1024


class CaptureTooLargeError(ValueError):
    """The session has more responses than may be held in memory."""


class RecordedCall(Struct, frozen=True):
    """One request of the client with its response."""

    index: int
    request: Body
    answer: Body
    http: RecordedHttp | None = None

    @property
    def method(self) -> str:
        return str(self.request.get("method", ""))

    @property
    def params(self) -> Body:
        params = self.request.get("params")
        return params if isinstance(params, dict) else {}


class ReplayServer:
    """The recorded responses of one session."""

    def __init__(self, recorded: Iterable[RecordedCall]) -> None:
        self._tracks: dict[str, list[RecordedCall]] = {}
        self._next: dict[str, int] = {}
        self.count = 0
        for each in recorded:
            self._tracks.setdefault(key_of(each.request), []).append(each)
            self.count += 1

    def find(self, request: Body) -> RecordedCall | None:
        """The recorded call for this request: the first one not used yet, else the last one again."""
        key = key_of(request)
        track = self._tracks.get(key)
        if track is None:
            return None
        place = min(self._next.get(key, 0), len(track) - 1)
        self._next[key] = place + 1
        return track[place]

    def answer(self, request: Body) -> Body:
        """The response to a request, with its id."""
        found = self.find(request)
        if found is not None:
            return {**found.answer, "id": request.get("id")}
        method = request.get("method")
        if method == "ping":
            return {"jsonrpc": "2.0", "id": request.get("id"), "result": {}}  # ping has only one response
        known = any(each.method == method for track in self._tracks.values() for each in track)
        code = messages.INVALID_PARAMS if known else messages.METHOD_NOT_FOUND
        why = "with these parameters" if known else "at all"
        text = f"The capture has no answer: {str(method)[:100]} was not recorded {why}."
        return {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": text}}

    def answer_encoded(self, data: bytes) -> bytes | None:
        """The encoded response to an encoded message or batch; None where it expects none."""
        if not data.strip():
            return None
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            why = {"code": messages.PARSE_ERROR, "message": "This is not JSON."}
            return _encoded({"jsonrpc": "2.0", "id": None, "error": why})
        if isinstance(message, list):
            answers = [self.answer(each) for each in message if _wants_answer(each)]
            return _encoded(answers) if answers else None
        return _encoded(self.answer(message)) if _wants_answer(message) else None


def _wants_answer(message: Any) -> bool:
    return isinstance(message, dict) and "method" in message and message.get("id") is not None


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "surrogatepass")


def key_of(request: Body) -> str:
    method = request.get("method")
    if method in BY_METHOD:
        return json.dumps([method])
    params = request.get("params")
    told = {name: value for name, value in params.items() if name != "_meta"} if isinstance(params, dict) else {}
    return json.dumps([method, told], sort_keys=True, default=str)


def recorded_in(session: RecordedSession) -> Iterator[RecordedCall]:
    """The client's requests with responses, in the order of the requests. Late responses are found by their ids."""
    waiting: dict[str, tuple[int, Body, RecordedHttp | None]] = {}
    held_bytes = 0
    for exchange in session.exchanges:
        for each in _pairs(exchange, waiting):
            held_bytes += len(json.dumps([each.request, each.answer], default=str))
            if held_bytes > MAX_HELD_BYTES:
                raise CaptureTooLargeError(f"The session has more than {MAX_HELD_BYTES} bytes of answers.")
            yield each


def _pairs(
    exchange: RecordedExchange, waiting: dict[str, tuple[int, Body, RecordedHttp | None]]
) -> Iterator[RecordedCall]:
    if exchange.sender is Side.CLIENT:
        for request in _each(exchange.request):
            if "method" in request and request.get("id") is not None:
                waiting[_id(request)] = (exchange.index, request, exchange.http)
    answers = [frame.message for frame in exchange.frames if frame.sender is Side.SERVER]
    answers += _each(exchange.response) if exchange.sender is Side.CLIENT else []
    for answer in answers:
        if "method" in answer:
            continue
        found = waiting.pop(_id(answer), None)
        if found is None and exchange.sender is Side.CLIENT and isinstance(exchange.request, dict):
            found = waiting.pop(_id(exchange.request), None)  # a response of the same exchange counts, whatever its id
        if found is not None:
            yield RecordedCall(found[0], found[1], answer, found[2])


def _id(message: Body) -> str:
    return json.dumps(message.get("id"), default=str)


def _each(value: Any) -> list[Body]:
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    return [value] if isinstance(value, dict) else []
