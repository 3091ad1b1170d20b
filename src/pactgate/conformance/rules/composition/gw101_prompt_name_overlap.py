"""GW-101."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.composition import Composition
from pactgate.conformance.names import is_prefixed
from pactgate.conformance.rule import (
    CompositionConflict,
    CompositionRule,
    CompositionSeverity,
    RequirementLevel,
    quoted,
)


class PromptNameOverlap(CompositionRule):
    """No two servers offer a prompt of the same name.

    What it checks
        Among the prompts that the servers of a capture have listed, no name without a prefix stands twice.

    Why
        Prompts have no prefix of their own either; a client shows two entries that can't be told apart, or one.

    How to fix
        Prefix the names by server, or rename one.

    Reference
        Prompts, Data Types; Resources, Data Types.
    """

    code = "GW-101"
    kind = "prompt_name_overlap"
    level = RequirementLevel.SHOULD

    @classmethod
    def check(cls, composition: Composition) -> Iterator[CompositionConflict]:
        for name, servers in composition.sharing(lambda server: server.prompts):
            if is_prefixed(name):
                continue
            labels = [server.label for server in servers]
            text = f"The prompt {quoted(name)} is offered by {len(labels)} servers."
            yield cls.conflict(name, labels, text, CompositionSeverity.WARNING)
