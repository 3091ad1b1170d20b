"""GWP-168."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class StrangeNotificationsBreak(FaultCheck):
    """Notifications about nothing are ignored.

    What it checks
        A tool of a stdio server cancels a request that nobody sent, and tells the progress of an unknown token. Its call has its
        result.

    Why
        Servers of other revisions, and servers with bugs, send such messages.

    How to fix
        Drop what belongs to nothing.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    code = "GWP-168"
    spec = "server/tools#calling-tools"
    tools = (
        ScriptedTool(
            name="gwp168_@",
            steps=(
                ScriptStep(
                    "raw", '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gwp168"}}'
                ),
                ScriptStep(
                    "raw",
                    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"gwp168","progress":1}}',
                ),
            ),
        ),
        ScriptedTool(name="gwp168ok_@"),
    )
    faulty_succeeds = True
