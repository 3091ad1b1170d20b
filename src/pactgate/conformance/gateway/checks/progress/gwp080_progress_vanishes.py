"""GWP-080."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.notices import PROGRESS, call_on_all, notices, step
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, named
from pactgate.conformance.rule import Evidence


class ProgressVanishes(Check):
    """Progress that a server reports arrives at the client.

    What it checks
        A client calls with a progress token; the server reports progress three times, and three notifications arrive.

    Why
        Clients show progress, and give a call more time while it makes some. Without it, long calls are given up.

    How to fix
        Send the server a token of your own, and pass on what it reports under the token of the client.

    Reference
        Progress, Progress Flow: how often progress is reported is open; all revisions.
    """

    code = "GWP-080"
    spec = "basic/utilities/progress"
    family = Family.PROGRESS
    tools = (ScriptedTool(name="gwp080_@", steps=(step("1"), step("2"), step("3"))),)

    async def play(self, lab: Lab) -> None:
        await call_on_all(self, lab, ('"gwp080-@"',))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            if exchange.request.label == named(self.tools[0].name, exchange.route.server):
                came = [
                    notice
                    for notice in notices(recording, PROGRESS)
                    if notice.frame.who == exchange.request.who
                    and notice.params.get("progressToken") == f"gwp080-{exchange.route.server}"
                ]
                if len(came) != 3:
                    yield self.evidence(exchange.index, "", f"{exchange.route}: {len(came)} of 3 notifications arrived")
