"""What servers write to stderr and send as log messages: the last lines of each server, for administrators and for the gateway's own log.

Bounded per server in lines, in bytes and in lines a second; what is beyond that is counted and left out. Lines are kept as they came and
are masked and made safe when they are shown. Must not: show a line to anybody but an administrator: it may be about any caller.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from logging import DEBUG, INFO
from typing import Any, Final, NamedTuple

import msgspec

from pactgate.core.display import cut, flat, visible
from pactgate.core.masking import Mask
from pactgate.telemetry.log import LOGGER, MAX_MESSAGE_CHARS
from pactgate.telemetry.log_handler import stamp

MAX_LINES: Final = 1000
MAX_BYTES: Final = 262_144
MAX_LINE_BYTES: Final = 8192
MAX_SHOWN: Final = 500
"""Lines of one answer."""
_BURST: Final = 1000.0
_PER_SECOND: Final = 500.0
_MAX_LEVEL_CHARS: Final = 20
STDERR: Final = "stderr"
MESSAGE: Final = "message"


class _Line(NamedTuple):
    number: int
    at: float
    stream: str
    level: str
    data: bytes


class _Ring:
    """The last lines of one server."""

    def __init__(self, now: float) -> None:
        self.lines: deque[_Line] = deque()
        self.size_bytes = 0
        self.written = 0
        self.left_out = 0
        self._tokens = _BURST
        self._seen_at = now

    def may_take(self, now: float) -> bool:
        self._tokens = min(_BURST, self._tokens + (now - self._seen_at) * _PER_SECOND)
        self._seen_at = now
        if self._tokens < 1:
            self.left_out += 1
            return False
        self._tokens -= 1
        return True

    def add(self, at: float, stream: str, level: str, data: bytes) -> _Line:
        self.written += 1
        line = _Line(self.written, at, stream, level, data[:MAX_LINE_BYTES])
        self.lines.append(line)
        self.size_bytes += len(line.data)
        while len(self.lines) > MAX_LINES or self.size_bytes > MAX_BYTES:
            self.size_bytes -= len(self.lines.popleft().data)
        return line


class _Message(msgspec.Struct):
    level: Any = None
    logger: Any = None
    data: msgspec.Raw = msgspec.Raw(b"null")


_message: Final = msgspec.json.Decoder(_Message)


class ServerLogs:
    """Takes lines of servers (`upstreams.channel.OutputLog`). `shown_always` names servers whose lines are logged at level INFO."""

    def __init__(
        self,
        mask: Mask,
        *,
        shown_always: Collection[str] = (),
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shown_always = shown_always
        self._mask = mask
        self._wall = wall
        self._clock = clock
        self._rings: dict[str, _Ring] = {}

    def wrote(self, server: str, lines: Sequence[bytes]) -> None:
        """A server has written whole lines to stderr."""
        for line in lines:
            self._take(server, STDERR, "", line)

    def said(self, server: str, params: bytes) -> None:
        """A server has sent `notifications/message`."""
        try:
            message = _message.decode(params)
        except (msgspec.DecodeError, RecursionError):
            return
        level = message.level if isinstance(message.level, str) else ""
        data = bytes(message.data)
        if data.startswith(b'"'):
            data = msgspec.json.decode(data, type=str).encode("utf-8", "backslashreplace")
        prefix = f"{message.logger}: ".encode() if isinstance(message.logger, str) else b""
        self._take(server, MESSAGE, level[:_MAX_LEVEL_CHARS], prefix[:MAX_LINE_BYTES] + data)

    def keep_only(self, servers: Collection[str]) -> None:
        """Forget servers that are not configured any more."""
        self._rings = {name: ring for name, ring in self._rings.items() if name in servers}

    def read(self, server: str, after: int) -> dict[str, Any]:
        """The lines of a server with a number above `after`, the last ones if there are many; `last` is where to go on."""
        ring = self._rings.get(server)
        if ring is None:
            return {"lines": [], "last": 0, "leftOut": 0}
        found = [line for line in ring.lines if line.number > after][-MAX_SHOWN:]
        return {"lines": [self._shown(line) for line in found], "last": ring.written, "leftOut": ring.left_out}

    def _take(self, server: str, stream: str, level: str, data: bytes) -> None:
        ring = self._rings.get(server)
        if ring is None:
            ring = self._rings[server] = _Ring(self._clock())
        if not ring.may_take(self._clock()):
            return
        line = ring.add(self._wall(), stream, level, data)
        importance = INFO if server in self.shown_always else DEBUG
        if LOGGER.isEnabledFor(importance):
            self._log(server, line, importance)

    def _log(self, server: str, line: _Line, importance: int) -> None:
        text = self._text(line)
        facts = {"server": server, "stream": line.stream, **({"level": line.level} if line.level else {}), "text": text}
        shown = cut(f"{server}| {text}", MAX_MESSAGE_CHARS)
        extra = {"event": "ServerOutput", "facts": facts}
        record = LOGGER.makeRecord(LOGGER.name, importance, "(unknown file)", 0, shown, (), None, extra=extra)
        LOGGER.handle(record)

    def _shown(self, line: _Line) -> dict[str, Any]:
        return {
            "number": line.number,
            "time": stamp(line.at),
            "stream": line.stream,
            "level": flat(line.level, _MAX_LEVEL_CHARS),
            "text": self._text(line),
        }

    def _text(self, line: _Line) -> str:
        """Masked before it is cut. Indentation stays, for tracebacks."""
        text = line.data.decode("utf-8", "backslashreplace")
        return cut(visible(self._mask.start(text, MAX_MESSAGE_CHARS)).replace("\n", "\\n"), MAX_MESSAGE_CHARS)
