"""What `pactgate doctor` found: one line each, good or bad, and what to do next."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """`warn` works, and may not be what was wanted; `fail` does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """`topic` is machine, configuration, gateway, composition, or the id of a server after `server:`."""

    topic: str
    level: Level
    text: str
    hint: str = ""


def ok(topic: str, text: str) -> Finding:
    return Finding(topic, Level.OK, text)


def warn(topic: str, text: str, hint: str = "") -> Finding:
    return Finding(topic, Level.WARN, text, hint)


def fail(topic: str, text: str, hint: str) -> Finding:
    return Finding(topic, Level.FAIL, text, hint)
