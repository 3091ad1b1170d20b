"""GWP-162."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class CrashIsNotMended(FaultCheck):
    """A server that crashes is started again.

    What it checks
        A tool ends the process of its stdio server. The server answers again within twenty seconds; a tool of another server has
        its result within three seconds.

    Why
        Otherwise its tools are gone until somebody restarts the gateway, and many clients never list again.

    How to fix
        Start the server again, with a pause that grows.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    code = "GWP-162"
    spec = "server/tools#calling-tools"
    tools = (ScriptedTool(name="gwp162_@", steps=(ScriptStep("crash"),)), ScriptedTool(name="gwp162ok_@"))
    comes_back = True
