"""GWP-081."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, value_of
from pactgate.conformance.gateway.checks.progress.notices import (
    PROGRESS,
    call_on_all,
    notices,
    require_progress,
    step,
)
from pactgate.conformance.gateway.exact_json import MISSING, at, differences, shown
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


class ProgressTokenChanges(Check):
    """Progress has the token that the client gave.

    What it checks
        A client calls with a string and with an integer as progress token; every notification has one of its tokens, of the same type.

    Why
        Clients find the call by the token. With another token, or a number as a string, progress is lost or is shown for another call.

    How to fix
        Keep the token of the client as it is, beside the token that you give the server.

    Reference
        Progress, Behavior Requirements: notifications must only reference tokens that were provided in an active request; all
        revisions.
    """

    code = "GWP-081"
    spec = "basic/utilities/progress"
    family = Family.PROGRESS
    level = RequirementLevel.MUST
    tools = (ScriptedTool(name="gwp081_@", steps=(step("1"),)),)

    async def play(self, lab: Lab) -> None:
        await call_on_all(self, lab, ('"gwp081"', "81"))
        require_progress(lab)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for notice in notices(recording, PROGRESS):
            token = notice.params.get("progressToken", MISSING)
            given = [
                at(value_of(frame), "/params/_meta/progressToken")
                for frame in recording.frames
                if frame.side is ScriptedSide.CLIENT and frame.is_sent and frame.who == notice.frame.who
            ]
            if not any(own is not MISSING and not list(differences(own, token)) for own in given):
                came = "no token" if token is MISSING else f"the token {shown(token)}"
                yield self.evidence(notice.index, "/params/progressToken", f"{notice.frame.route}: it came with {came}")
