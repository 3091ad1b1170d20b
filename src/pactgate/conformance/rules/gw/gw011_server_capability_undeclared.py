"""GW-011."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.capabilities import NeededCapabilityRule
from pactgate.conformance.message import FROM_CLIENT, REQUESTS, RecordedMessage
from pactgate.conformance.rule import LegacyRule

_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "resources/subscribe": ("resources", "subscribe"),
    "resources/unsubscribe": ("resources", "subscribe"),
    "logging/setLevel": ("logging",),
    "completion/complete": ("completions",),
    "tasks/get": ("tasks",),
    "tasks/result": ("tasks",),
    "tasks/cancel": ("tasks",),
    "tasks/list": ("tasks",),
}
_WITHOUT_COMPLETIONS: Final = "2024-11-05"


class ServerCapabilityUndeclared(NeededCapabilityRule, LegacyRule):
    """A client subscribes, sets log levels, completes and handles tasks only where the server advertised that.

    What it checks
        `resources/subscribe` needs `resources.subscribe`, `logging/setLevel` needs `logging`, `completion/complete` needs
        `completions` (which 2024-11-05 does not have), `tasks/*` needs `tasks`.

    Why
        What was not advertised may be answered with anything.

    How to fix
        Look at the capabilities in the answer to `initialize` before you ask.

    Reference
        Lifecycle, Operation; revisions 2024-11-05 to 2025-11-25, a MUST since 2025-06-18.
    """

    code = "GW-011"
    spec = "basic/lifecycle#operation"
    category = "capability"
    must_since = "2025-06-18"
    selects = REQUESTS & FROM_CLIENT
    needed = _NEEDED
    sentence = "The client sends {method}, but {capability} was not advertised."
    methods = frozenset(_NEEDED)

    def on_message(self, message: RecordedMessage) -> None:
        is_free = message.method == "completion/complete" and message.version in (_WITHOUT_COMPLETIONS, None)
        if not is_free:
            super().on_message(message)
