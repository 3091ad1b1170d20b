"""GWP-168."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck, succeeds
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence


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

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from succeeds(self, recording)
        yield from super().judge(recording)
