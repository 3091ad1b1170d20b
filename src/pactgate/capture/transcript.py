"""One session put together from what passed: requests with their answers, in the order of the requests, ready to be written.

An exchange waits until its answer has come, but not for ever: what is held is bounded in number and bytes, and beyond that the oldest
is given out as it stands; a later answer then stands on its own, as the format allows. What belongs to a standing stream does not
wait at all. What is no message is counted, not kept. Must not: write, or look at a clock.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.capture.exchange_record import ExchangeRecord, HttpRecord, frame, quoted
from pactgate.capture.message_kind import Key, MessageKind, batch_items, classify
from pactgate.capture.redaction import Redaction
from pactgate.core.recording import Headers
from pactgate.protocol import messages
from pactgate.protocol.framing import EventDecoder, Oversized, ServerEvent
from pactgate.protocol.modern import PV

MAX_HELD: Final = 256
MAX_HELD_BYTES: Final = 4 * 1024 * 1024
MAX_FRAMES: Final = 1000
MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
_MAX_OPEN: Final = 10_000
_STANDING: Final = "subscriptions/listen"
_HANDSHAKES: Final = ("initialize", "server/discover")
_DRAFT_BYTES: Final = 256
_HTTP_BYTES: Final = 600
_PV_TEXT: Final = PV.encode()
_VERBS: Final = {verb: quoted(verb) for verb in ("POST", "GET", "DELETE")}


class _Hop(Struct):
    """One HTTP request, and the exchange it makes."""

    draft: ExchangeRecord
    http: HttpRecord
    stream: str | None = None
    decoder: EventDecoder | None = None


class Transcript:
    def __init__(self, redaction: Redaction) -> None:
        self.noise_count = 0
        self.version: str | None = None
        self.is_modern = False
        self._redaction = redaction
        self._capabilities: Raw | None = None
        self._seq = 0
        self._waiting: deque[ExchangeRecord] = deque()
        self._held_bytes = 0
        self._open: dict[tuple[bool, Key], ExchangeRecord] = {}
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
        turn: list[bytes] = []
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
        self._message(at_ms, classify(text, self._redaction.ahead), from_client)

    # HTTP.

    def requested(self, at_ms: float, number: int, verb: str, headers: Headers, body: bytes) -> None:
        block = self._redaction.block(headers)
        seen = classify(body, self._redaction.ahead) if body else None
        http = HttpRecord(_VERBS.get(verb) or quoted(verb), block.shown)
        draft = self._begin(at_ms, True, http, block.auth)
        self._hops[number] = _Hop(draft, http)
        if seen is None:
            self.noise_count += bool(body)
        elif seen.is_answer:
            draft.from_client = False
            draft.response, draft.response_seq, draft.response_at_ms = seen.text, draft.seq, at_ms
            for key in seen.keys:
                self._open.pop((False, key), None)
            self._grow(draft, len(seen.text))
        else:
            self._ask(draft, seen)

    def answered(self, at_ms: float, number: int, status: int, headers: Headers, body: bytes) -> None:
        hop = self._hops.pop(number, None)
        if hop is None:
            return
        block = self._redaction.block(headers)
        hop.http.status, hop.http.response_headers, hop.http.response_bytes = status, block.shown, len(body)
        hop.draft.is_done = True
        if not body or not block.is_json:
            return
        seen = classify(body, self._redaction.ahead)
        if seen is None:
            self.noise_count += 1
        else:
            self._reply(hop, at_ms, seen, None)

    def streaming(self, at_ms: float, number: int, status: int, headers: Headers) -> None:
        hop = self._hops.get(number)
        if hop is None:
            return
        hop.stream = hop.draft.stream = f"s{number}"
        hop.decoder = EventDecoder(MAX_EVENT_BYTES)
        hop.http.status, hop.http.response_headers = status, self._redaction.block(headers).shown
        hop.draft.is_done = hop.http.verb != b'"POST"' or hop.draft.method == _STANDING

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
                self._message(at_ms, classify(event.data, self._redaction.message), False)

    def ended(self, at_ms: float, number: int, by_client: bool) -> None:
        hop = self._hops.pop(number, None)
        if hop is None:
            return
        draft = hop.draft
        if draft.from_client and draft.request is not None and draft.response is None and not draft.is_given:
            draft.closed_by = "client" if by_client else "server"
        draft.is_done = True

    # Inside.

    def _message(self, at_ms: float, seen: MessageKind | None, from_client: bool) -> None:
        if seen is None:
            self.noise_count += 1
        elif seen.is_answer:
            self._answer(at_ms, seen, from_client=from_client)
        else:
            draft = self._begin(at_ms, from_client)
            self._ask(draft, seen)
            draft.is_done = not seen.wants_answer

    def _begin(
        self, at_ms: float, from_client: bool, http: HttpRecord | None = None, auth: bytes | None = None
    ) -> ExchangeRecord:
        self._seq += 1
        size_bytes = _DRAFT_BYTES if http is None else _DRAFT_BYTES + _HTTP_BYTES
        draft = ExchangeRecord(self._seq, at_ms, from_client, size_bytes, http, auth)
        self._waiting.append(draft)
        self._held_bytes += size_bytes
        return draft

    def _grow(self, draft: ExchangeRecord, size_bytes: int) -> None:
        draft.size_bytes += size_bytes
        if not draft.is_given:
            self._held_bytes += size_bytes

    def _ask(self, draft: ExchangeRecord, seen: MessageKind) -> None:
        draft.request, draft.method, draft.key = seen.text, seen.method, seen.keys[-1]
        draft.size_bytes += len(seen.text)
        self._held_bytes += len(seen.text)
        if self.version is None and not self.is_modern and draft.from_client and _PV_TEXT in seen.text:
            self.is_modern = True
        for key in seen.asked if len(self._open) < _MAX_OPEN else ():
            self._open[draft.from_client, key] = draft

    def _answer(self, at_ms: float, seen: MessageKind, *, from_client: bool) -> None:
        """An answer on a connection that carries messages only: it goes to its request, or stands alone."""
        drafts = [self._open.pop((not from_client, key), None) for key in seen.keys]
        draft = next((found for found in drafts if found is not None), None)
        if draft is not None and draft.method in _HANDSHAKES:
            self._note_facts(draft, seen)
        if draft is None or draft.is_given or draft.response is not None:
            draft = self._begin(at_ms, not from_client)
        else:
            self._seq += 1
        self._put_answer(draft, at_ms, seen)
        draft.is_done = True

    def _reply(self, hop: _Hop, at_ms: float, seen: MessageKind, event_id: str | None) -> None:
        """What an HTTP request brought: its answer, or something that travelled beside it."""
        draft = hop.draft
        is_its_own = seen.is_answer and (draft.key in seen.keys or seen.keys == (None,))
        for key in seen.keys if seen.is_answer else ():
            asked = self._open.pop((True, key), None)
            if asked is not None and asked.method in _HANDSHAKES:
                self._note_facts(asked, seen)
        if is_its_own and not draft.is_given and draft.from_client and draft.response is None:
            self._seq += 1
            draft.event_id = event_id
            self._put_answer(draft, at_ms, seen)
        else:
            self._beside(hop, at_ms, seen, event_id)

    def _put_answer(self, draft: ExchangeRecord, at_ms: float, seen: MessageKind) -> None:
        draft.response, draft.response_seq, draft.response_at_ms = seen.text, self._seq, at_ms
        draft.size_bytes += len(seen.text)
        self._held_bytes += len(seen.text)

    def _event(self, hop: _Hop, at_ms: float, event: ServerEvent) -> None:
        if event.event != "message" or not event.data:
            return
        seen = classify(event.data, self._redaction.message)
        if seen is None:
            self.noise_count += 1
        else:
            self._reply(hop, at_ms, seen, event.id)

    def _beside(self, hop: _Hop, at_ms: float, seen: MessageKind, event_id: str | None) -> None:
        """A message on the stream of an exchange; one that was given out already goes on in another with the same stream."""
        draft = hop.draft
        if draft.is_done or draft.is_given or len(draft.frames) >= MAX_FRAMES:
            draft = self._begin(at_ms, True, hop.http)
            draft.stream = hop.stream
            draft.is_done = True
        else:
            self._seq += 1
        draft.frames += [frame(text, self._seq, at_ms, event_id) for text in batch_items(seen.text)]
        self._grow(draft, len(seen.text))
        for key in seen.asked if len(self._open) < _MAX_OPEN else ():
            self._open[False, key] = draft

    def _note_facts(self, request: ExchangeRecord, seen: MessageKind) -> None:
        """What an answer to a handshake or a discovery says of the server."""
        try:
            members = messages.members(bytes(messages.members(batch_items(seen.text)[0])["result"]))
        except (msgspec.DecodeError, KeyError):
            return
        capabilities = members.get("capabilities")
        if capabilities is not None and bytes(capabilities).lstrip()[:1] == b"{":
            self._capabilities = Raw(bytes(capabilities))
        version = messages.value(members["protocolVersion"]) if "protocolVersion" in members else None
        if request.from_client and request.method == "initialize" and isinstance(version, str):
            self.version = version
