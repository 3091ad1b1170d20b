"""The result of one check of `pactgate doctor`, with a hint for the next step."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class FindingLevel(StrEnum):
    """`warn` works, but may not be intended; `fail` does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """`topic` is machine, configuration, gateway, composition, or the id of a server after `server:`."""

    topic: str
    level: FindingLevel
    text: str
    hint: str = ""


def ok(topic: str, text: str) -> Finding:
    return Finding(topic, FindingLevel.OK, text)


def warn(topic: str, text: str, hint: str = "") -> Finding:
    return Finding(topic, FindingLevel.WARN, text, hint)


def fail(topic: str, text: str, hint: str) -> Finding:
    return Finding(topic, FindingLevel.FAIL, text, hint)
