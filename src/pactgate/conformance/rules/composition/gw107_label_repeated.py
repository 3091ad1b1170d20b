"""GW-107."""

from __future__ import annotations

from pactgate.conformance.composition import Composition
from pactgate.conformance.rule import CompositionRule, CompositionSeverity, RequirementLevel, quoted


class LabelRepeated(CompositionRule):
    """Every session of a capture has a label of its own.

    What it checks
        No `server_label` stands twice. Sessions with the same label count as one server, so that conflicts between them are
        not seen.

    Why
        Two servers under one label hide each other's collisions.

    How to fix
        Label sessions by what was really spoken to; leave it if it was the same server twice.

    Reference
        Capture format, server_label.
    """

    code = "GW-107"
    kind = "duplicate_label"
    level = RequirementLevel.SHOULD

    def check(self, composition: Composition) -> None:
        for label, server in composition.servers.items():
            if server.session_count > 1:
                text = f"{server.session_count} sessions have the label {quoted(label)}."
                self.conflict(label, [server], text, CompositionSeverity.INFO)
