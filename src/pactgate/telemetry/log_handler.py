"""The handler and the two formats of the log lines that `serve` writes: text for people, JSON for programs.

A line never blocks the gateway: where the reader does not keep up it is dropped and counted. Lines are bounded in length, and no
character in them moves a cursor. Must not: be used for an embedder, who has handlers of their own.
"""

from __future__ import annotations

import logging
import os
import select
import time
from typing import Any, Final

import msgspec

from pactgate.core.display import SHORT_ID_CHARS, cut, flat, visible
from pactgate.telemetry.log import LOGGER, MAX_MESSAGE_CHARS

MAX_LINE_BYTES: Final = 4096
"""One page: a pipe that is ready takes it whole."""


def stamp(now: float) -> str:
    """A time of the wall clock: UTC, to the millisecond (RFC 3339)."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"


class LineWriter:
    """Writes whole lines to a descriptor: a terminal, a file, or a pipe that may have no reader. Never waits."""

    def __init__(self, fd: int) -> None:
        self.dropped = 0
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def write(self, line: bytes) -> None:
        ready = self._poll.poll(0)
        if not ready or ready[0][1] != select.POLLOUT:
            self.dropped += 1
            return
        try:
            os.write(self._fd, line)
        except OSError:
            self.dropped += 1  # the reader went away between the two calls, or the disk is full
        else:
            self.dropped = 0


class LineHandler(logging.Handler):
    """Writes records as lines. `hidden` names events that are shown in another way."""

    def __init__(self, fd: int, *, as_json: bool, hidden: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter() if as_json else TextFormatter())
        self._lines = LineWriter(fd)
        self._hidden = hidden

    def emit(self, record: logging.LogRecord) -> None:
        if record.__dict__.get("event") not in self._hidden:
            record.__dict__["dropped"] = self._lines.dropped
            self._lines.write(self.format(record).encode() + b"\n")

    def install(self, level: int) -> None:
        """Make this the handler of the gateway's log lines, from `level` on, and of what the event loop says in its own name."""
        for logger in (LOGGER, logging.getLogger("asyncio")):
            for handler in [each for each in logger.handlers if isinstance(each, LineHandler)]:
                logger.removeHandler(handler)
            logger.addHandler(self)
        LOGGER.setLevel(level)
        LOGGER.propagate = False


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        message = record.getMessage()
        id_ = (record.__dict__.get("facts") or {}).get("request_id")
        if id_:
            message = message.replace(id_, id_[:SHORT_ID_CHARS])
        text = f"{stamp} {record.levelname:<7} {flat(message, MAX_MESSAGE_CHARS)}"
        if dropped := record.__dict__.get("dropped"):
            text += f" ({dropped} lines lost: the reader was too slow)"
        if record.exc_text:
            text += "\n" + visible(record.exc_text)
        encoded = text.encode()
        if len(encoded) < MAX_LINE_BYTES:
            return text
        return encoded[: MAX_LINE_BYTES - 4].decode(errors="ignore") + "..."


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        now, held = record.created, record.__dict__
        head = {"time": stamp(now), "level": record.levelname.lower(), "event": held.get("event", record.name)}
        facts: dict[str, Any] = dict(held.get("facts") or {"message": flat(record.getMessage(), MAX_MESSAGE_CHARS)})
        if held.get("dropped"):
            facts["dropped"] = held["dropped"]
        line = msgspec.json.encode({**head, **facts})
        if len(line) >= MAX_LINE_BYTES:
            # A character is at most six bytes as JSON, so this always fits.
            line = msgspec.json.encode({**head, "cut": cut(msgspec.json.encode(facts).decode(), MAX_LINE_BYTES // 8)})
        return line.decode()
