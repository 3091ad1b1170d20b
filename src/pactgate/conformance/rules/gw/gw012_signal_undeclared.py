"""GW-012."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.capabilities import has
from pactgate.conformance.message import FROM_SERVER, NOTIFICATIONS, RecordedMessage
from pactgate.conformance.rule import RequiredEvidence, RequirementLevel, SessionRule

_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/message": ("logging",),
}


class SignalUndeclared(SessionRule):
    """A server signals changes, updates and logs only where it advertised that.

    What it checks
        `list_changed` needs `listChanged` of its capability, `notifications/resources/updated` needs `resources.subscribe`,
        and `notifications/message` needs `logging`, which is a MUST.

    Why
        Clients install listeners by the capabilities; other signals are lost.

    How to fix
        Advertise what you send.

    Reference
        Tools, Prompts, Resources, Logging: Capabilities; all revisions.
    """

    code = "GW-012"
    category = "capability"
    needs = RequiredEvidence.SERVER_MESSAGES
    selects = NOTIFICATIONS & FROM_SERVER
    methods = frozenset(_NEEDED)

    def prepare(self) -> None:
        self._first: dict[str, RecordedMessage] = {}

    def on_message(self, message: RecordedMessage) -> None:
        self._first.setdefault(message.method, message)

    def at_end(self) -> None:
        advertised = self.session.advertised
        for method, message in self._first.items():
            if advertised is None:
                self.unjudged("The capture does not tell what the server advertised.")
                continue
            self.seen += 1
            if not has(advertised, *_NEEDED[method]):
                level = RequirementLevel.MUST if method == "notifications/message" else RequirementLevel.SHOULD
                name = ".".join(_NEEDED[method])
                self.fault(message, "/method", f"The server sends {method}, but did not advertise {name}.", level)
