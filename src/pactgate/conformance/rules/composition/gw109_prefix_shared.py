"""GW-109."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.composition import Composition
from pactgate.conformance.names import is_prefixed
from pactgate.conformance.rule import CompositionConflict, CompositionRule, quoted


class PrefixShared(CompositionRule):
    """No two servers expose the same tool name with the same prefix.

    What it checks
        A name that looks prefixed, `server__tool` or `server.tool`, is offered by one server only. COMP-001 takes such names
        for told apart; here they are looked at as they are.

    Why
        One of the two servers claims the other's name, or both use a prefix that says nothing.

    How to fix
        Let the gateway set the prefix, by server.

    Reference
        Tools, Tool Names.
    """

    code = "GW-109"
    kind = "prefixed_name_overlap"

    @classmethod
    def check(cls, composition: Composition) -> Iterator[CompositionConflict]:
        for name, servers in composition.sharing(lambda server: server.tools):
            if is_prefixed(name):
                labels = [server.label for server in servers]
                yield cls.conflict(
                    name, labels, f"The prefixed tool {quoted(name)} is offered by {len(labels)} servers."
                )
