"""Which recorded session an HTTP request belongs to, where many clients share one address.

A legacy session has an id of its own, given in the answer to `initialize`; what has no id is the latest session that was opened without
one; modern requests know no sessions and are kept together by their path. On the older HTTP+SSE transport, told by its `endpoint`
event, requests and answers are plain messages. Bounded: the session unused for the longest time is closed to make room.
Must not: decide what is written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pactgate.capture.redaction import HeaderBlock, Redaction
from pactgate.capture.session_writer import SessionWriter
from pactgate.core.recording import Headers
from pactgate.protocol.modern import PV
from pactgate.protocol.versions import LEGACY_VERSIONS

MAX_SESSIONS: Final = 128
_PV_TEXT: Final = PV.encode()
_MODERN: Final = "modern"
_NAMELESS: Final = "nameless"
_ENDPOINT: Final = b"event: endpoint"


class _Hop(Struct):
    scribe: SessionWriter
    place: tuple[str, str]
    verb: str
    is_opening: bool = False
    is_plain: bool = False


class SessionRouter:
    """`begin` makes the scribe of a new session from a path and whether it is a modern one."""

    def __init__(self, redaction: Redaction, begin: Callable[[str, bool], SessionWriter]) -> None:
        self._redaction = redaction
        self._begin = begin
        self._scribes: OrderedDict[tuple[str, str], SessionWriter] = OrderedDict()
        self._hops: dict[int, _Hop] = {}
        self._standing: tuple[str, SessionWriter] | None = None
        """The path and the session of the latest HTTP+SSE stream."""

    def requested(self, at_ms: float, number: int, verb: str, path: str, headers: Headers, body: bytes) -> None:
        named = self._redaction.block(headers)
        standing = self._standing
        if standing is not None and verb == "POST" and named.session is None and _PV_TEXT not in body:
            self._hops[number] = _Hop(standing[1], (path, _NAMELESS), verb, is_plain=True)
            standing[1].take("message", at_ms, body, True)
            return
        place, is_opening = self._place(path, named, body)
        scribe = self._scribes.get(place)
        if scribe is None or not scribe.is_open or place[1] == _NAMELESS:
            is_new = place[1] == _NAMELESS and (is_opening or (standing is not None and standing[0] == path))
            scribe = self._scribe(place, path, is_new=is_new)
        self._scribes.move_to_end(place)
        self._hops[number] = _Hop(scribe, place, verb, is_opening)
        scribe.take("requested", at_ms, number, verb, headers, body)

    def answered(self, at_ms: float, number: int, status: int, headers: Headers, body: bytes) -> None:
        hop = self._hops.pop(number, None)
        if hop is None or hop.is_plain:
            return
        if hop.is_opening:
            self._name(hop, headers)
        hop.scribe.take("answered", at_ms, number, status, headers, body)
        if hop.verb == "DELETE" and status < 300 and self._scribes.get(hop.place) is hop.scribe:
            del self._scribes[hop.place]
            hop.scribe.close()

    def streaming(self, at_ms: float, number: int, status: int, headers: Headers) -> None:
        hop = self._hops.get(number)
        if hop is not None:
            if hop.is_opening:
                self._name(hop, headers)
            hop.scribe.take("streaming", at_ms, number, status, headers)

    def events(self, at_ms: float, number: int, data: bytes) -> None:
        hop = self._hops.get(number)
        if hop is None:
            return
        if hop.verb == "GET" and not hop.is_plain and data[:256].lstrip().startswith(_ENDPOINT):
            hop.is_plain = True
            self._standing = (hop.place[0], hop.scribe)
        hop.scribe.take("plain_events" if hop.is_plain else "events", at_ms, number, data)

    def ended(self, at_ms: float, number: int, by_client: bool) -> None:
        hop = self._hops.pop(number, None)
        if hop is not None:
            hop.scribe.take("ended", at_ms, number, by_client)

    def sync(self) -> None:
        for scribe in self._scribes.values():
            scribe.sync()

    def cut(self, missing: int) -> None:
        """Something was lost: what is recorded so far is closed, and whatever comes begins anew."""
        self._hops.clear()
        self.close(missing)

    def close(self, missing: int = 0) -> None:
        scribes = [*self._scribes.values()]
        self._scribes.clear()
        self._standing = None
        for scribe in scribes:
            scribe.close(missing)

    def _place(self, path: str, named: HeaderBlock, body: bytes) -> tuple[tuple[str, str], bool]:
        """Which session, and whether this request opens it."""
        if named.session is not None:
            return (path, "id " + named.session), False
        if _PV_TEXT in body or (named.version is not None and named.version not in LEGACY_VERSIONS):
            return (path, _MODERN), False
        return (path, _NAMELESS), b'"initialize"' in body[:4096]

    def _scribe(self, place: tuple[str, str], path: str, *, is_new: bool) -> SessionWriter:
        scribe = self._scribes.get(place)
        is_full = scribe is not None and not scribe.is_open and place[1] == _MODERN
        if scribe is not None and (is_full or is_new):
            del self._scribes[place]
            scribe.close()
            scribe = None
        if scribe is None:
            while len(self._scribes) >= MAX_SESSIONS:
                self._scribes.popitem(last=False)[1].close()
            scribe = self._scribes[place] = self._begin(path, place[1] == _MODERN)
        return scribe

    def _name(self, hop: _Hop, headers: Headers) -> None:
        """The answer to `initialize` names the session; from now on requests find it by that name."""
        given = self._redaction.block(headers).session
        if given is None or self._scribes.get(hop.place) is not hop.scribe:
            return
        del self._scribes[hop.place]
        hop.place = (hop.place[0], "id " + given)
        self._scribes[hop.place] = hop.scribe
