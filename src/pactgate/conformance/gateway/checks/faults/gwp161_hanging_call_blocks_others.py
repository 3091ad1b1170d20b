"""GWP-161."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class HangingCallBlocksOthers(FaultCheck):
    """A call that hangs does not block other servers.

    What it checks
        A tool of a stdio server never answers. A tool of another server is called meanwhile, and has its result within three
        seconds.

    Why
        Then one bad server takes down all of them.

    How to fix
        Give each server a connection, a queue and a limit of its own.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    code = "GWP-161"
    spec = "server/tools#calling-tools"
    tools = (ScriptedTool(name="gwp161_@", steps=(ScriptStep("hang"),)), ScriptedTool(name="gwp161ok_@"))
