"""GW-104."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.catalog.lookalikes import fold
from pactgate.conformance.composition import Composition
from pactgate.conformance.rule import (
    CompositionConflict,
    CompositionRule,
    CompositionSeverity,
    RequirementLevel,
    quoted,
)


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
    kind = "folded_name_overlap"
    level = RequirementLevel.SHOULD

    @classmethod
    def check(cls, composition: Composition) -> Iterator[CompositionConflict]:
        for names, labels in composition.alike(fold):
            text = f"The tools {', '.join(map(quoted, names))} differ only in case or spelling."
            yield cls.conflict(names[0], labels, text, CompositionSeverity.WARNING)
