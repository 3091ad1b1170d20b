"""GWP-167."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class FrozenServerHurtsOthers(FaultCheck):
    """A server that stands still hurts no other, and is used again when it goes on.

    What it checks
        A stdio server does nothing for two seconds. A call of another server has its result within three seconds, and afterwards
        the frozen one answers.

    Why
        A laptop that swaps, a garbage collector, a debugger: servers stand still, and go on.

    How to fix
        Never wait for one server on the way of another.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    code = "GWP-167"
    spec = "server/tools#calling-tools"
    tools = (ScriptedTool(name="gwp167_@", steps=(ScriptStep("freeze", seconds=2.0),)), ScriptedTool(name="gwp167ok_@"))
    comes_back = True
