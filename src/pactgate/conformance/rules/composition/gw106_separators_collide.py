"""GW-106."""

from __future__ import annotations

from pactgate.catalog.lookalikes import fold, separated
from pactgate.conformance.composition import Composition
from pactgate.conformance.rule import CompositionRule, RequirementLevel, quoted


class SeparatorsCollide(CompositionRule):
    """No two servers offer tools whose names differ only in the separator, as a.b and a__b do.

    What it checks
        Tool names of different servers stay different when `.` and `__` are taken for the same separator, and `-` for `_`.

    Why
        Both are ways to write a server before its tool, and a gateway may accept either for either.

    How to fix
        Settle on one separator for all servers.

    Reference
        Tools, Tool Names.
    """

    code = "GW-106"
    spec = "server/tools#tool-names"
    kind = "separator_overlap"
    level = RequirementLevel.SHOULD

    def check(self, composition: Composition) -> None:
        for names, servers in composition.alike(separated):
            if len({fold(name) for name in names}) > 1:
                text = f"The tools {', '.join(map(quoted, names))} differ only in the separator."
                self.conflict(names[0], servers, text)
