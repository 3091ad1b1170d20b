"""GW-104."""

from __future__ import annotations

from pactgate.catalog.lookalikes import fold
from pactgate.conformance.composition import Composition
from pactgate.conformance.rule import CompositionRule, RequirementLevel, quoted


class NamesFoldTogether(CompositionRule):
    """No two servers offer tools whose names differ only in case or in the Unicode spelling.

    What it checks
        Tool names of different servers stay different when case and compatible Unicode spellings are ignored.

    Why
        Clients that compare without regard to case call the wrong one; and people can't tell them apart in speech.

    How to fix
        Rename one of them, or prefix the names by server.

    Reference
        Tools, Tool Names.
    """

    code = "GW-104"
    spec = "server/tools#tool-names"
    kind = "folded_name_overlap"
    level = RequirementLevel.SHOULD

    def check(self, composition: Composition) -> None:
        for names, servers in composition.alike(fold):
            text = f"The tools {', '.join(map(quoted, names))} differ only in case or spelling."
            self.conflict(names[0], servers, text)
