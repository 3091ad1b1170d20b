"""COMP-001."""

from __future__ import annotations

from pactgate.conformance.composition import Composition, is_prefixed
from pactgate.conformance.rule import CompositionRule, quoted


class ToolNamespaceOverlap(CompositionRule):
    """No two servers expose the same unprefixed tool name.

    What it checks
        Among all tools the servers of a capture have listed, on every page, none with a plain name is offered by two of them.
        A name with a prefix, `server__tool` or `server.tool`, is meant to be told apart. Sessions with the same label are one
        server.

    Why
        A client that forgets to put the server's name before the tool's can't tell which of the two is meant, and calls
        whichever comes first.

    How to fix
        Put the servers behind something that prefixes names, as `<server>__tool`; or rename the tool.

    Reference
        Conformance invariants, Multi-server composition safety.
    """

    code = "COMP-001"
    spec = "server/tools#tool-names"
    kind = "tool_namespace_overlap"

    def check(self, composition: Composition) -> None:
        for name, servers in composition.sharing(lambda server: server.tools):
            if not is_prefixed(name):
                self.conflict(name, servers, f"The tool {quoted(name)} is offered by {len(servers)} servers.")
