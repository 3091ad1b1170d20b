"""The revisions of MCP, the two eras they fall into, and which method exists where.

A method that is not in `METHODS` for a revision does not exist there: absence is the version gate.
"""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Final


class Era(StrEnum):
    """*legacy* opens with a handshake and has sessions; *modern* carries everything in each request."""

    LEGACY = "legacy"
    MODERN = "modern"


# For the way of every call: to look a member up in its enum costs as much as calling a function.
LEGACY: Final = Era.LEGACY
MODERN: Final = Era.MODERN

LEGACY_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS: Final = ("2026-07-28",)
KNOWN_VERSIONS: Final = LEGACY_VERSIONS + MODERN_VERSIONS
LATEST_LEGACY: Final = LEGACY_VERSIONS[-1]
LATEST_MODERN: Final = MODERN_VERSIONS[-1]
BATCHING_VERSION: Final = "2025-03-26"
"""The only revision whose messages may come in arrays."""

_EVERYWHERE: Final = frozenset(KNOWN_VERSIONS)
_LEGACY: Final = frozenset(LEGACY_VERSIONS)
_MODERN: Final = frozenset(MODERN_VERSIONS)
_TASKS: Final = frozenset({LATEST_LEGACY})

METHODS: Final[dict[str, frozenset[str]]] = {
    "initialize": _LEGACY,
    "ping": _LEGACY,
    "server/discover": _MODERN,
    "tools/list": _EVERYWHERE,
    "tools/call": _EVERYWHERE,
    "prompts/list": _EVERYWHERE,
    "prompts/get": _EVERYWHERE,
    "resources/list": _EVERYWHERE,
    "resources/templates/list": _EVERYWHERE,
    "resources/read": _EVERYWHERE,
    "resources/subscribe": _LEGACY,
    "resources/unsubscribe": _LEGACY,
    "subscriptions/listen": _MODERN,
    "completion/complete": _EVERYWHERE,
    "logging/setLevel": _LEGACY,
    "tasks/get": _TASKS | _MODERN,
    "tasks/cancel": _TASKS | _MODERN,
    "tasks/update": _MODERN,
    "tasks/result": _TASKS,
    "tasks/list": _TASKS,
}
"""Requests a client may send to a server."""

GROUPS: Final = ("groups/list", "groups/get")
"""Requests of a draft extension, `io.modelcontextprotocol/groups`: no revision has them. They are about all servers, never about one."""

CACHEABLE: Final = frozenset(
    {"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)
"""Methods whose complete modern results carry `ttlMs` and `cacheScope`."""

NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/cancel": "taskId",
    "tasks/update": "taskId",
}
"""The parameter a modern HTTP request mirrors into `Mcp-Name`."""


def era_of(version: str) -> Era | None:
    if version in _LEGACY:
        return Era.LEGACY
    return Era.MODERN if version in _MODERN else None


def exists(method: str, version: str) -> bool:
    return version in METHODS.get(method, ())


_OF_SERVERS: Final = ("sampling/createMessage", "elicitation/create", "roots/list")
_RESERVED: Final = ("notifications/", "tasks/")
"""What begins so is the protocol's, whether or not any revision has it."""
_MAX_METHOD_CHARS: Final = 200


def is_foreign(method: str) -> bool:
    """A method no revision has: perhaps an extension's.

    A name that only looks like one of the protocol's is not: a lax server could read it as that one, past everything that is checked here.
    """
    if len(method) > _MAX_METHOD_CHARS:
        return False
    folded = _fold(method)
    return folded not in _FOLDED and not folded.startswith(_RESERVED)


def _fold(method: str) -> str:
    """A method as a server may read it that ignores case, compatibility forms, white space and invisible characters."""
    shown = "".join(letter for letter in method if unicodedata.category(letter)[0] not in "CZ")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", shown).casefold())


_FOLDED: Final = frozenset(map(_fold, (*METHODS, *_OF_SERVERS)))


def negotiate(requested: str) -> str:
    """What a legacy server answers to `initialize`: the version asked for if it is known, else the newest it has."""
    return requested if requested in _LEGACY else LATEST_LEGACY
