"""GWP-166."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class FloodHurtsOthers(FaultCheck):
    """A server that floods hurts no other.

    What it checks
        A tool of a stdio server writes 20,000 notifications before it answers. A call of another server has its result within three
        seconds, and afterwards the flooding server answers too.

    Why
        A loop in one server must not take the processor, or the memory, of all of them.

    How to fix
        Bound what is kept for each server, and drop notifications nobody waits for.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    code = "GWP-166"
    spec = "server/tools#calling-tools"
    tools = (
        ScriptedTool(
            name="gwp166_@",
            steps=(
                ScriptStep(
                    "raw",
                    '{"jsonrpc":"2.0","method":"notifications/gwp166","params":{"filler":"0123456789"}}',
                    count=20_000,
                ),
            ),
        ),
        ScriptedTool(name="gwp166ok_@"),
    )
    comes_back = True
