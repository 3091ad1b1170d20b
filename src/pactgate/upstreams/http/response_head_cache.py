"""Heads of answers that come again byte for byte, so that reading them once is enough.

A server that is asked the same kind of thing mostly says the same before its body; what the parser found in those bytes then is what
it would find now. Known are only whole plain answers: 200, JSON, of a stated length, on a connection that is kept. Anything else is
the parser's. Must not: judge a head itself.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from pactgate.upstreams.http.response import HttpResponse

_MOST: Final = 256
_MAX_HEAD_BYTES: Final = 1024
"""Together at most a quarter of a MiB, and as much again for what was read in them."""
_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"[0-9]{1,9}")
_KEEP_ALIVE: Final = re.compile(rb"timeout\s*=\s*(\d{1,6})", re.IGNORECASE)


class Known(Struct, frozen=True, gc=False):
    """A head: where it ends, how much follows, what it says. The headers are shared: nobody may change them."""

    end: int
    length: int
    headers: dict[bytes, bytes]
    hint_s: float | None


class Heads:
    """For all connections of a process: what bytes mean does not depend on who sent them."""

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, data: bytes) -> Known | None:
        """What is known of the answer that begins with these bytes, and has no more of them than it says."""
        end = data.find(_END)
        known = self._known.get(data[:end]) if end > 0 else None
        return known if known is not None and known.end + known.length >= len(data) else None

    def note(self, data: bytes, response: HttpResponse) -> None:
        """An answer the parser has read; `data` is the first piece it came in."""
        end = data.find(_END)
        length = response.headers.get(b"content-length", b"")
        if not 0 < end <= _MAX_HEAD_BYTES or response.status != 200 or not _LENGTH.fullmatch(length):
            return
        if b"transfer-encoding" in response.headers or b"content-encoding" in response.headers:
            return
        if not response.is_json or not data.startswith(b"HTTP/1.1 200 "):
            return
        if int(length) != len(response.body) or not response.body.startswith(data[end + len(_END) :]):
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[data[:end]] = Known(end + len(_END), int(length), response.headers, self.hint(response.headers))

    @staticmethod
    def hint(headers: dict[bytes, bytes]) -> float | None:
        """How long the server says it keeps an idle connection."""
        said = headers.get(b"keep-alive")
        found = None if said is None else _KEEP_ALIVE.search(said)
        return float(found[1]) if found else None
