"""GW-103."""

from __future__ import annotations

from pactgate.conformance.composition import Composition
from pactgate.conformance.rule import CompositionRule, quoted


class ToolShadowed(CompositionRule):
    """Where two servers offer a tool of the same name, it is the same tool.

    What it checks
        A tool name that two servers offer, prefixed or not, has the same input and output schema everywhere.

    Why
        A call that reaches the other server is refused for its arguments, or does something else with them: one server
        shadows another.

    How to fix
        Rename one of them, and find out which server began.

    Reference
        Tools, Security Considerations.
    """

    code = "GW-103"
    spec = "server/tools#security-considerations"
    kind = "tool_shadowing"

    def check(self, composition: Composition) -> None:
        for name, servers in composition.sharing(lambda server: server.tools):
            if len({server.tools[name].shape for server in servers}) > 1:
                text = f"The tool {quoted(name)} has a different schema on each of its servers."
                self.conflict(name, servers, text)
