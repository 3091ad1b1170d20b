"""GWP-160."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class HangingCallBlocksItsServer(FaultCheck):
    """A call that hangs does not block the other calls of its server.

    What it checks
        A tool of a stdio server never answers. Another tool of the same server is called meanwhile, and has its result within three
        seconds.

    Why
        With one request at a time, the slowest tool decides for all. Servers answer in any order; nothing has to wait.

    How to fix
        Send requests as they come, and match the answers by id.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    code = "GWP-160"
    spec = "server/tools#calling-tools"
    tools = (ScriptedTool(name="gwp160_@", steps=(ScriptStep("hang"),)), ScriptedTool(name="gwp160ok_@"))
    beside = "ls"
