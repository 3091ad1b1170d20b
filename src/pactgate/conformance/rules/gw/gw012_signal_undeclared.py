"""GW-012."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.capabilities import NeededCapabilityRule
from pactgate.conformance.message import FROM_SERVER, NOTIFICATIONS
from pactgate.conformance.rule import RequiredEvidence, RequirementLevel

_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/message": ("logging",),
}


class SignalUndeclared(NeededCapabilityRule):
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
    spec = "server/tools#capabilities"
    category = "capability"
    needs = RequiredEvidence.SERVER_MESSAGES
    selects = NOTIFICATIONS & FROM_SERVER
    needed = _NEEDED
    sentence = "The server sends {method}, but did not advertise {capability}."
    methods = frozenset(_NEEDED)

    def level_of(self, method: str) -> RequirementLevel | None:
        return None if method == "notifications/message" else RequirementLevel.SHOULD
