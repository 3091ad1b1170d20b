"""GWP-164."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class GarbageEndsTheServer(FaultCheck):
    """Lines that are no messages do not end a server.

    What it checks
        A tool of a stdio server writes three lines that are not JSON before it answers. Its call has its result, and so has a call
        of another server.

    Why
        Programs print: a warning of a library, a progress bar. Servers are not to do it, and do.

    How to fix
        Skip and log what can't be read.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    code = "GWP-164"
    spec = "server/tools#calling-tools"
    tools = (
        ScriptedTool(name="gwp164_@", steps=(ScriptStep("raw", "Downloading model ... 34 %", count=3),)),
        ScriptedTool(name="gwp164ok_@"),
    )
    faulty_succeeds = True
