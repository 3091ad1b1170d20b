"""GW-109."""

from __future__ import annotations

from pactgate.conformance.composition import Composition, is_prefixed
from pactgate.conformance.rule import CompositionRule, quoted


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
    spec = "server/tools#tool-names"
    kind = "prefixed_name_overlap"

    def check(self, composition: Composition) -> None:
        for name, servers in composition.sharing(lambda server: server.tools):
            if is_prefixed(name):
                self.conflict(name, servers, f"The prefixed tool {quoted(name)} is offered by {len(servers)} servers.")
