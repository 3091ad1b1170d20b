"""GWP-070."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.names.change import judge_change, play_change
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel


class ChangeNotToldToLegacyClient(Check):
    """A legacy client hears that a list of tools has changed.

    What it checks
        A server adds a tool and notifies; within five seconds the client gets `notifications/tools/list_changed` on the stream of
        its session, and then finds the new tool in the list.

    Why
        Without it clients show the tools of yesterday until they are started again. A gateway that does not announce `listChanged`
        is not asked.

    How to fix
        Pass the notification on, and read the list of the server again before.

    Reference
        Tools, List Changed Notification; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-070"
    spec = "server/tools#list-changed-notification"
    family = Family.NAMES
    level = RequirementLevel.SHOULD
    servers = ("lh",)
    eras = ("legacy",)
    runs_alone = True
    tools = (
        ScriptedTool(name="gwp070_@", steps=(ScriptStep(do="show"),)),
        ScriptedTool(name="gwp070new_@", is_hidden=True),
    )

    async def play(self, lab: Lab) -> None:
        await play_change(self, lab)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_change(self, recording)
