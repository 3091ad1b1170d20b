"""GWP-092."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.notices import LOG, WORK_S, call_with_level, notices
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel


class LogMessagesUnasked(Check):
    """A modern client that asks for no log messages gets none.

    What it checks
        A modern client calls, without a log level in `_meta`, a tool that logs; no log message arrives, whatever the era of the server.

    Why
        Log messages are opt-in in 2026-07-28. A client that does not know them takes them for a fault.

    How to fix
        Drop the messages of legacy servers unless the request has a log level.

    Reference
        Logging: messages must not be sent for a request without `io.modelcontextprotocol/logLevel`; 2026-07-28.
    """

    code = "GWP-092"
    spec = "server/utilities/logging"
    family = Family.PROGRESS
    level = RequirementLevel.MUST
    since = "2026-07-28"
    eras = ("modern",)
    tools = (
        ScriptedTool(
            name="gwp092_@", steps=(ScriptStep("log", data='{"level":"error","data":"nobody asked"}', seconds=WORK_S),)
        ),
    )

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as clients:
            await call_with_level(self, lab, clients, "")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for notice in notices(recording, LOG):
            yield self.evidence(notice.index, "/params", f"{notice.frame.route}: a log message came")
