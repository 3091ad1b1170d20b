"""GWP-082."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.notices import (
    PROGRESS,
    call_on_all,
    notices,
    require_progress,
)
from pactgate.conformance.gateway.exact_json import MISSING, at, differences, parse
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedExchange
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.rule import Evidence

_MEMBERS = ("0.5", '"total":2,"message":"first \\u00e9"'), ("1", '"total":2'), ("1.25", '"message":"third"')
_STEPS = tuple(
    ScriptStep(
        "notify",
        data=f'{{"jsonrpc":"2.0","method":"{PROGRESS}","params":{{"progressToken":@TOKEN@,"progress":{number},{more}}}}}',
    )
    for number, more in _MEMBERS
)


class ProgressReportsChange(Check):
    """Progress arrives in its order, before the result, with its numbers, total and message.

    What it checks
        A server reports progress three times, once with a fraction, once without a total, once without a message. What arrives has the
        same members with the same values, in the same order, and before the result.

    Why
        Clients show the message and the share of the total. What comes after the result belongs to nothing any more.

    How to fix
        Change nothing in a notification but its token, and send it on the stream of the request before the response.

    Reference
        Progress, Progress Flow and Behavior Requirements: progress must increase and stop after completion; all revisions.
    """

    code = "GWP-082"
    spec = "basic/utilities/progress"
    family = Family.PROGRESS
    tools = (ScriptedTool(name="gwp082_@", steps=_STEPS),)

    async def play(self, lab: Lab) -> None:
        await call_on_all(self, lab, ('"gwp082-@"',))
        require_progress(lab)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            if exchange.request.label == named(self.tools[0].name, exchange.route.server):
                yield from self._of(exchange, recording)

    def _of(self, exchange: ScriptedExchange, recording: CheckRecording) -> Iterator[Evidence]:
        """The reports are compared one by one with those that were sent; that some are missing is for GWP-080."""
        steps = [parse(step.data.replace("@TOKEN@", "0")) for step in self.tools[0].steps]
        for notice in notices(recording, PROGRESS):
            is_own = notice.params.get("progressToken") == f"gwp082-{exchange.route.server}"
            if not is_own or notice.frame.who != exchange.request.who:
                continue
            if exchange.response is not None and notice.index > exchange.index:
                yield self.evidence(notice.index, "", f"{exchange.route}: progress came after the result")
            tried = [list(self._differences(sent, notice.params)) for sent in steps]
            if not tried:
                yield self.evidence(notice.index, "", f"{exchange.route}: a report came twice, or out of order")
                continue
            best = min(tried, key=len)
            steps = steps[tried.index(best) + 1 :]
            for where, how in best:
                yield self.evidence(notice.index, f"/params{where}", f"{exchange.route}: {how}")

    def _differences(self, sent: object, got: dict[str, object]) -> Iterator[tuple[str, str]]:
        for pointer in ("/progress", "/total", "/message"):
            one, other = at(sent, f"/params{pointer}"), got.get(pointer[1:], MISSING)
            yield from differences(one, other, pointer)
