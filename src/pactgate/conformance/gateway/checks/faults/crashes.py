"""A server that crashes is started again, and its call ends."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck, fails_soon
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence


class CrashIsNotMended(FaultCheck):
    """A server that crashes is started again.

    What it checks
        A tool ends the process of its stdio server. The server answers again within twenty seconds; a tool of another server has
        its result within three seconds.

    Why
        Otherwise its tools are gone until somebody restarts the gateway, and many clients never list again.

    How to fix
        Start the server again, with a pause that grows.
    """

    code = "GWP-162"
    tools = (ScriptedTool(name="gwp162_@", steps=(ScriptStep("crash"),)), ScriptedTool(name="gwp162ok_@"))
    comes_back = True


class CrashLeavesItsCallWaiting(FaultCheck):
    """A call whose server crashes ends with an error.

    What it checks
        A tool ends the process of its stdio server. Its call ends with an error within four seconds.

    Why
        The client would wait for its own limit, a minute or more, for what can't come any more.

    How to fix
        End the calls of a connection when it ends.
    """

    code = "GWP-163"
    spec = "server/tools#error-handling"
    tools = (ScriptedTool(name="gwp163_@", steps=(ScriptStep("crash"),)), ScriptedTool(name="gwp163ok_@"))
    comes_back = True

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from fails_soon(self, recording)
