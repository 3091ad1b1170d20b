"""One session put together from what passed: requests with their answers, in the order of the requests, ready to be written.

An exchange waits until its answer has come, but not for ever: what is held is bounded in number and bytes, and beyond that the oldest
is given out as it stands; a later answer then stands on its own, as the format allows. What belongs to a standing stream does not
wait at all. What is no message is counted, not kept. Must not: write, or look at a clock.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.capture.draft import Draft, Http, Key, frame
from pactgate.capture.redaction import Redaction
from pactgate.core.tap import Headers
from pactgate.protocol import messages
from pactgate.protocol.framing import EventDecoder, Oversized, ServerEvent
from pactgate.protocol.modern import PV

MAX_HELD: Final = 256
MAX_HELD_BYTES: Final = 4 * 1024 * 1024
MAX_FRAMES: Final = 1000
MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
_MAX_DEPTH: Final = 150
_MAX_OPEN: Final = 10_000
_STANDING: Final = frozenset({"subscriptions/listen"})
_HTTP_BYTES: Final = 600
_PV_TEXT: Final = PV.encode()


class _Glance(Struct):
    """As much of a message as tells what it is."""

    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


_one: Final = msgspec.json.Decoder(_Glance)
_many: Final = msgspec.json.Decoder(list[_Glance])


class _Hop:
    """One HTTP request, and the exchange it makes."""

    __slots__ = ("decoder", "draft", "http", "stream")

    def __init__(self, draft: Draft, http: Http) -> None:
        self.draft = draft
        self.http = http
        self.stream: str | None = None
        self.decoder: EventDecoder | None = None


class _Seen:
    """One message or batch, looked at once. `text` has no secrets in it."""

    __slots__ = ("is_answer", "keys", "parts", "text")

    def __init__(self, text: bytes, parts: list[_Glance]) -> None:
        self.text = text
        self.parts = parts
        self.keys: list[Key] = [None if part.id is UNSET else messages.id_key(bytes(part.id)) for part in parts]
        self.is_answer = all(part.method is UNSET for part in parts)

    @property
    def wants_answer(self) -> bool:
        return any(part.method is not UNSET and part.id is not UNSET for part in self.parts)

    @property
    def method(self) -> str:
        raw = self.parts[0].method
        return "" if raw is UNSET else bytes(raw).decode("utf-8", "replace").strip('"')


class Transcript:
    def __init__(self, redaction: Redaction) -> None:
        self.noise_count = 0
        self.version: str | None = None
        self.is_modern = False
        self._redaction = redaction
        self._capabilities: Raw | None = None
        self._seq = 0
        self._waiting: deque[Draft] = deque()
        self._held_bytes = 0
        self._open: dict[tuple[bool, Key], Draft] = {}
        self._hops: dict[int, _Hop] = {}

    def facts(self) -> dict[str, Any]:
        """What the session turned out to be, as far as it is known."""
        found: dict[str, Any] = {"server_capabilities": self._capabilities}
        if self.version is not None:
            found |= {"protocol_version": self.version, "era": "legacy"}
        elif self.is_modern:
            found |= {"era": "modern"}
        if self.noise_count:
            found["noise"] = self.noise_count
        return found

    def ready(self) -> list[bytes]:
        """The exchanges whose turn has come. Each is given once."""
        turn = []
        waiting = self._waiting
        while waiting and (waiting[0].is_done or len(waiting) > MAX_HELD or self._held_bytes > MAX_HELD_BYTES):
            draft = waiting.popleft()
            draft.is_given = True
            self._held_bytes -= draft.size_bytes
            turn.append(draft.encode())
        return turn

    def held(self) -> list[bytes]:
        """What still waits, as it stands now."""
        return [draft.encode() for draft in self._waiting]

    # A connection that carries messages only.

    def message(self, at_ms: float, text: bytes, from_client: bool) -> None:
        self._message(at_ms, self._look(text), from_client=from_client)

    # HTTP.

    def requested(self, at_ms: float, number: int, verb: str, headers: Headers, body: bytes) -> None:
        block = self._redaction.block(headers)
        seen = self._look(body) if body else None
        draft = self._begin(at_ms, from_client=True)
        draft.auth = block.auth
        draft.http = Http(verb, block.shown)
        self._grow(draft, _HTTP_BYTES)
        if seen is not None and seen.is_answer:
            draft.from_client = False
            draft.response, draft.response_seq, draft.response_at_ms = seen.text, draft.seq, at_ms
            for key in seen.keys:
                self._open.pop((False, key), None)
            self._grow(draft, len(seen.text))
        elif seen is not None:
            self._ask(draft, seen)
        self._hops[number] = _Hop(draft, draft.http)

    def answered(self, at_ms: float, number: int, status: int, headers: Headers, body: bytes) -> None:
        hop = self._hops.pop(number, None)
        if hop is None:
            return
        block = self._redaction.block(headers)
        hop.http.status, hop.http.response_headers, hop.http.response_bytes = status, block.shown, len(body)
        hop.draft.is_done = True
        seen = self._look(body) if body and block.is_json else None
        if seen is not None:
            self._reply(hop, at_ms, seen, None)

    def streaming(self, at_ms: float, number: int, status: int, headers: Headers) -> None:
        hop = self._hops.get(number)
        if hop is None:
            return
        hop.stream = hop.draft.stream = f"s{number}"
        hop.decoder = EventDecoder(MAX_EVENT_BYTES)
        hop.http.status, hop.http.response_headers = status, self._redaction.block(headers).shown
        hop.draft.is_done = hop.http.verb != "POST" or hop.draft.method in _STANDING

    def events(self, at_ms: float, number: int, data: bytes) -> None:
        hop = self._hops.get(number)
        if hop is None or hop.decoder is None:
            return
        try:
            events = hop.decoder.feed(data)
        except Oversized:
            self.noise_count += 1
            hop.decoder = None
            return
        for event in events:
            self._event(hop, at_ms, event)

    def plain_events(self, at_ms: float, number: int, data: bytes) -> None:
        """Events of the older HTTP+SSE transport: one stream brings everything, as a pipe does."""
        hop = self._hops.get(number)
        if hop is None or hop.decoder is None:
            return
        try:
            events = hop.decoder.feed(data)
        except Oversized:
            self.noise_count += 1
            return
        for event in events:
            if event.event == "message" and event.data:
                self._message(at_ms, self._look(event.data, is_whole=False), from_client=False)

    def ended(self, at_ms: float, number: int, by_client: bool) -> None:
        hop = self._hops.pop(number, None)
        if hop is None:
            return
        draft = hop.draft
        if draft.from_client and draft.request is not None and draft.response is None and not draft.is_given:
            draft.closed_by = "client" if by_client else "server"
        draft.is_done = True

    # Inside.

    def _look(self, text: bytes, *, is_whole: bool = True) -> _Seen | None:
        """`is_whole`: these are the bytes as they were noted, not pieces of a stream put together."""
        try:
            if not text.isascii():
                text.decode()
            parts = [_one.decode(text)] if text[:1] == b"{" or text.lstrip()[:1] != b"[" else _many.decode(text)
            if not parts or messages.check_shape(text, _MAX_DEPTH) is not None:
                raise msgspec.DecodeError
            return _Seen(self._redaction.ahead(text) if is_whole else self._redaction.message(text), parts)
        except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
            self.noise_count += 1
            return None

    def _message(self, at_ms: float, seen: _Seen | None, *, from_client: bool) -> None:
        if seen is None:
            return
        if seen.is_answer:
            self._answer(at_ms, seen, from_client=from_client)
        else:
            draft = self._begin(at_ms, from_client=from_client)
            self._ask(draft, seen)
            draft.is_done = not seen.wants_answer

    def _begin(self, at_ms: float, *, from_client: bool) -> Draft:
        self._seq += 1
        draft = Draft(self._seq, at_ms, from_client=from_client)
        self._waiting.append(draft)
        self._held_bytes += draft.size_bytes
        return draft

    def _grow(self, draft: Draft, size_bytes: int) -> None:
        draft.size_bytes += size_bytes
        if not draft.is_given:
            self._held_bytes += size_bytes

    def _ask(self, draft: Draft, seen: _Seen) -> None:
        draft.request = seen.text
        draft.method = seen.method
        self._grow(draft, len(seen.text))
        if draft.from_client and _PV_TEXT in seen.text:
            self.is_modern = True
        for part, key in zip(seen.parts, seen.keys, strict=True):
            if part.method is not UNSET and key is not None and len(self._open) < _MAX_OPEN:
                self._open[draft.from_client, key] = draft
                draft.key = key

    def _answer(self, at_ms: float, seen: _Seen, *, from_client: bool) -> None:
        """An answer on a connection that carries messages only: it goes to its request, or stands alone."""
        drafts = [self._open.pop((not from_client, key), None) for key in seen.keys]
        draft = next((found for found in drafts if found is not None), None)
        self._note_facts(draft, seen)
        if draft is None or draft.is_given or draft.response is not None:
            draft = self._begin(at_ms, from_client=not from_client)
        else:
            self._seq += 1
        self._put_answer(draft, at_ms, seen, None)
        draft.is_done = True

    def _reply(self, hop: _Hop, at_ms: float, seen: _Seen, event_id: str | None) -> None:
        """What an HTTP request brought: its answer, or something that travelled beside it."""
        draft = hop.draft
        is_its_own = seen.is_answer and (draft.key in seen.keys or seen.keys == [None])
        for key in seen.keys if seen.is_answer else ():
            self._note_facts(self._open.pop((True, key), None), seen)
        if is_its_own and not draft.is_given and draft.from_client and draft.response is None:
            self._seq += 1
            self._put_answer(draft, at_ms, seen, event_id)
        else:
            self._beside(hop, at_ms, seen, event_id)

    def _put_answer(self, draft: Draft, at_ms: float, seen: _Seen, event_id: str | None) -> None:
        draft.response, draft.response_seq, draft.response_at_ms = seen.text, self._seq, at_ms
        draft.event_id = event_id
        self._grow(draft, len(seen.text))

    def _event(self, hop: _Hop, at_ms: float, event: ServerEvent) -> None:
        if event.event != "message" or not event.data:
            return
        seen = self._look(event.data, is_whole=False)
        if seen is not None:
            self._reply(hop, at_ms, seen, event.id)

    def _beside(self, hop: _Hop, at_ms: float, seen: _Seen, event_id: str | None) -> None:
        """A message on the stream of an exchange; one that was given out already goes on in another with the same stream."""
        draft = hop.draft
        if draft.is_done or draft.is_given or len(draft.frames) >= MAX_FRAMES:
            draft = self._begin(at_ms, from_client=True)
            draft.http, draft.stream = hop.http, hop.stream
            draft.is_done = True
            self._grow(draft, _HTTP_BYTES)
        else:
            self._seq += 1
        draft.frames += [frame(text, self._seq, at_ms, event_id) for text in _elements(seen)]
        self._grow(draft, len(seen.text))
        for part, key in zip(seen.parts, seen.keys, strict=True):
            if part.method is not UNSET and key is not None and len(self._open) < _MAX_OPEN:
                self._open[False, key] = draft

    def _note_facts(self, request: Draft | None, seen: _Seen) -> None:
        """What an answer to a handshake or a discovery says of the server."""
        if request is None or request.method not in ("initialize", "server/discover") or not request.from_client:
            return
        result = seen.parts[0].result
        if result is UNSET:
            return
        try:
            members = messages.members(bytes(result))
        except msgspec.DecodeError:
            return
        capabilities = members.get("capabilities")
        if capabilities is not None and bytes(capabilities).lstrip()[:1] == b"{":
            self._capabilities = Raw(self._redaction.message(bytes(capabilities)))
        version = messages.value(members["protocolVersion"]) if "protocolVersion" in members else None
        if request.method == "initialize" and isinstance(version, str):
            self.version = version


def _elements(seen: _Seen) -> list[bytes]:
    if seen.text.lstrip()[:1] != b"[":
        return [seen.text]
    return [bytes(part) for part in msgspec.json.decode(seen.text, type=list[Raw])]
