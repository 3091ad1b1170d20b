"""Every method of the protocol with the revisions it exists in: requests and notifications, in both directions.

`protocol.versions` lists what this gateway serves; this table lists what may occur between any two peers.
"""

from __future__ import annotations

from typing import Final

from pactgate.protocol.versions import KNOWN_VERSIONS

_LETTERS: Final = dict(zip("ABCDE", KNOWN_VERSIONS, strict=True))


def _in(letters: str) -> frozenset[str]:
    return frozenset(_LETTERS[letter] for letter in letters)


REVISIONS: Final[dict[str, frozenset[str]]] = {
    "initialize": _in("ABCD"),
    "server/discover": _in("E"),
    "ping": _in("ABCD"),
    "tools/list": _in("ABCDE"),
    "tools/call": _in("ABCDE"),
    "prompts/list": _in("ABCDE"),
    "prompts/get": _in("ABCDE"),
    "resources/list": _in("ABCDE"),
    "resources/templates/list": _in("ABCDE"),
    "resources/read": _in("ABCDE"),
    "resources/subscribe": _in("ABCD"),
    "resources/unsubscribe": _in("ABCD"),
    "subscriptions/listen": _in("E"),
    "completion/complete": _in("ABCDE"),
    "logging/setLevel": _in("ABCD"),
    "sampling/createMessage": _in("ABCDE"),
    "roots/list": _in("ABCDE"),
    "elicitation/create": _in("CDE"),
    "tasks/get": _in("DE"),
    "tasks/cancel": _in("DE"),
    "tasks/result": _in("D"),
    "tasks/list": _in("D"),
    "tasks/update": _in("E"),
    "notifications/initialized": _in("ABCD"),
    "notifications/cancelled": _in("ABCDE"),
    "notifications/progress": _in("ABCDE"),
    "notifications/message": _in("ABCDE"),
    "notifications/tools/list_changed": _in("ABCDE"),
    "notifications/prompts/list_changed": _in("ABCDE"),
    "notifications/resources/list_changed": _in("ABCDE"),
    "notifications/resources/updated": _in("ABCDE"),
    "notifications/subscriptions/acknowledged": _in("E"),
    "notifications/roots/list_changed": _in("ABCD"),
    "notifications/elicitation/complete": _in("D"),
    "notifications/tasks/status": _in("D"),
    "notifications/tasks": _in("E"),
}

LISTS: Final = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
"""The four list methods: the member of the result that holds the items, and the member that identifies an item."""

CHANGE_SIGNALS: Final = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
    "resources/templates/list": "notifications/resources/list_changed",
}

INPUT_METHODS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""Requests from a server to a client: as messages of their own, or inside an `input_required` result."""

INPUT_TAKERS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Requests whose result may be `input_required`, and the parameter that names their subject."""

MADE_UP: Final = "pactgate-probe"
"""How every name and URI begins that the probe makes up."""
