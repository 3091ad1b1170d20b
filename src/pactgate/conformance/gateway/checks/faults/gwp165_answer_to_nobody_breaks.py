"""GWP-165."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class AnswerToNobodyBreaks(FaultCheck):
    """An answer to a question that nobody asked is ignored.

    What it checks
        A tool of a stdio server first sends a response with an unknown id, then its own. Its call has its result, and so has a call
        of another server.

    Why
        Late answers after a timeout look just like this.

    How to fix
        Drop responses whose id you do not wait for.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    code = "GWP-165"
    spec = "server/tools#calling-tools"
    tools = (
        ScriptedTool(name="gwp165_@", steps=(ScriptStep("raw", '{"jsonrpc":"2.0","id":"gwp165-nobody","result":{}}'),)),
        ScriptedTool(name="gwp165ok_@"),
    )
    faulty_succeeds = True
