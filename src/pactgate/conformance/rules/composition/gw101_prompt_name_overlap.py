"""GW-101."""

from __future__ import annotations

from pactgate.conformance.composition import Composition, is_prefixed
from pactgate.conformance.rule import CompositionRule, RequirementLevel, quoted


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
    spec = "server/prompts#data-types"
    kind = "prompt_name_overlap"
    level = RequirementLevel.SHOULD

    def check(self, composition: Composition) -> None:
        for name, servers in composition.sharing(lambda server: server.prompts):
            if is_prefixed(name):
                continue
            text = f"The prompt {quoted(name)} is offered by {len(servers)} servers."
            self.conflict(name, servers, text)
