"""GW-105."""

from __future__ import annotations

from pactgate.catalog.lookalikes import drawn, separated
from pactgate.conformance.composition import Composition
from pactgate.conformance.rule import CompositionRule, RequirementLevel, quoted


class NamesLookAlike(CompositionRule):
    """No two servers offer tools whose names look alike.

    What it checks
        Tool names of different servers stay different when letters are replaced by what they are mistaken for: Cyrillic and
        Greek ones for Latin ones, 0 for O, 1 for l, rn for m, - for _. Names that differ only
        in case or in a separator are left to GW-104 and GW-106.

    Why
        A person approves `search`, and a tool that only looks like it is called.

    How to fix
        Use plain ASCII names, and be wary of the server that does not.

    Reference
        Tools, Tool Names; Unicode Technical Standard 39.
    """

    code = "GW-105"
    spec = "server/tools#tool-names"
    kind = "look_alike_names"
    level = RequirementLevel.SHOULD

    def check(self, composition: Composition) -> None:
        for names, servers in composition.alike(drawn):
            if len({separated(name) for name in names}) > 1:
                text = f"The tools {', '.join(map(quoted, names))} look alike."
                self.conflict(names[0], servers, text)
