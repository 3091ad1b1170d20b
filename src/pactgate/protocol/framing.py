"""Where one message ends and the next begins: lines of JSON, and server-sent events. Incremental and bounded.

Bytes may arrive in any pieces; the work is linear in their number however they are cut, and what is kept between two
pieces never exceeds the bound (checked as the bytes come in, not when the frame is complete). After `OversizedError` a decoder
must not be fed again: where the next frame starts is no longer known.
Must not: look inside a frame.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

KEEPALIVE: Final = b":\n\n"
"""An event stream's comment: readers must ignore it, and intermediaries see that the connection lives."""

_BLANKS: Final = b" \t\r"
_BOM: Final = b"\xef\xbb\xbf"
_MAX_RETRY_DIGITS: Final = 12


class OversizedError(Exception):
    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"a frame is larger than {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class LineDecoder:
    """Newline-delimited JSON. Blanks around a line are dropped, and so are lines of nothing else."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        end = data.find(b"\n")
        if end < 0:
            self._keep(data)
            return []
        lines: list[bytes] = []
        start = 0
        if self._kept:
            self._keep(data[:end])
            self._add(bytes(self._kept), lines)
            self._kept.clear()
            start, end = end + 1, data.find(b"\n", end + 1)
        while end >= 0:
            self._add(data[start:end], lines)
            start, end = end + 1, data.find(b"\n", end + 1)
        if start < len(data):
            self._keep(data[start:])
        return lines

    def _keep(self, piece: bytes) -> None:
        if len(self._kept) + len(piece) > self._max_bytes:
            self._kept.clear()  # whoever holds the decoder may live on: the bytes must not
            raise OversizedError(self._max_bytes)
        self._kept += piece

    def _add(self, line: bytes, lines: list[bytes]) -> None:
        if len(line) > self._max_bytes:
            raise OversizedError(self._max_bytes)
        line = line.strip(_BLANKS)
        if line:
            lines.append(line)


class ServerEvent(Struct, frozen=True):
    """One event. `id` is what this event said, None if nothing; `data` is empty for one that only brings id or retry."""

    event: str
    data: bytes
    id: str | None
    retry_ms: int | None


class EventDecoder:
    """Server-sent events as the WHATWG describes them, except that an event with an id or a retry but no data is told.

    The bound is on one event: its data and the line being read.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept = bytearray()
        self._at_start = True
        self._after_cr = False
        self._event = ""
        self._id: str | None = None
        self._retry_ms: int | None = None
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, data: bytes) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        size = len(data)
        start = 1 if self._after_cr and data.startswith(b"\n") else 0
        self._after_cr = self._after_cr and not data
        lf, cr = data.find(b"\n", start), data.find(b"\r", start)
        while lf >= 0 or cr >= 0:
            if cr < 0 or 0 <= lf < cr:
                end, following = lf, lf + 1
            else:
                end, following = cr, cr + 2 if lf == cr + 1 else cr + 1
                self._after_cr = following == size and lf != cr + 1
            self._line(data, start, end, events)
            start = following
            # Each mark is searched for again only once it is passed, so that a text without one is scanned once.
            if 0 <= lf < start:
                lf = data.find(b"\n", start)
            if 0 <= cr < start:
                cr = data.find(b"\r", start)
        if start < size:
            self._require_room(len(self._kept) + size - start)
            self._kept += data[start:]
        return events

    def _line(self, data: bytes, start: int, end: int, events: list[ServerEvent]) -> None:
        if self._kept or self._at_start:
            self._kept += data[start:end]
            data = bytes(self._kept)
            self._kept.clear()
            start = len(_BOM) if self._at_start and data.startswith(_BOM) else 0
            end = len(data)
            self._at_start = False
        if start == end:
            self._end_event(events)
            return
        self._require_room(end - start)
        colon = data.find(b":", start, end)
        if colon == start:
            return
        name_end = end if colon < 0 else colon
        value_start = min(name_end + 1, end)
        if data.startswith(b" ", value_start, end):
            value_start += 1
        self._field(data[start:name_end], data[value_start:end])

    def _field(self, name: bytes, value: bytes) -> None:
        if name == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
        elif name == b"event":
            self._event = value.decode(errors="replace")
        elif name == b"id" and b"\x00" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self._retry_ms = int(value)

    def _end_event(self, events: list[ServerEvent]) -> None:
        if self._data or self._id is not None or self._retry_ms is not None:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(ServerEvent(self._event or "message", data, self._id, self._retry_ms))
        self._event = ""
        self._id = self._retry_ms = None
        self._data = []
        self._data_bytes = 0

    def _require_room(self, more_bytes: int) -> None:
        if self._data_bytes + more_bytes > self._max_bytes:
            self._kept.clear()
            self._data.clear()
            raise OversizedError(self._max_bytes)


def encode_event(
    data: bytes,
    *,
    id: str | None = None,  # noqa: A002 - the name of the field
    event: str | None = None,
    retry_ms: int | None = None,
) -> bytes:
    """One event. Line breaks of any kind inside the data become line feeds for the reader; in JSON both are white space."""
    head = ""
    for name, value in (("id", id), ("event", event)):
        if value is not None:
            if "\n" in value or "\r" in value or "\x00" in value:
                raise ValueError(f"the {name} of an event can't hold a line break or NUL")
            head += f"{name}: {value}\n"
    if retry_ms is not None:
        head += f"retry: {retry_ms}\n"
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\n" in data:
        data = data.replace(b"\n", b"\ndata: ")
    return b"%bdata: %b\n\n" % (head.encode(), data)
