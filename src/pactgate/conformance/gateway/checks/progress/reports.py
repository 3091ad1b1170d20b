"""Progress reaches the client of the call, whole, and under its token."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, value_of
from pactgate.conformance.gateway.checks.progress.notices import (
    PROGRESS,
    call,
    call_on_all,
    notices,
    require_progress,
    step,
)
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.exact_json import MISSING, at, differences, parse, shown
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, ScriptedExchange, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.rule import Evidence, RequirementLevel


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


_PAUSE = ScriptStep("wait", seconds=0.2)


class ProgressReachesAnotherClient(Check):
    """Progress of a call goes to the client that made it, also when two clients chose the same token.

    What it checks
        Two clients call different tools of a server at the same time, both with the token "gwp083" and with equal request ids; each gets
        the progress of its own call only.

    Why
        Clients count their tokens from the same number, so two of them often have the same. Progress messages name files and users.

    How to fix
        Give each call that you send on a token of its own, and keep whose it is.

    Reference
        Progress, Progress Flow: a token is unique among the active requests of its sender, and the gateway is the sender behind.
    """

    code = "GWP-083"
    spec = "basic/utilities/progress"
    tools = (
        ScriptedTool(name="gwp083a_@", steps=(step("1", "for a"), _PAUSE, step("2", "for a"))),
        ScriptedTool(name="gwp083b_@", steps=(step("1", "for b"), _PAUSE, step("2", "for b"))),
    )

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as one, lab.listeners(self) as other:
            await lab.in_turn(self._both(lab, route, one[route], other[route]) for route in one)
        require_progress(lab)

    async def _both(self, lab: Lab, route: ClientRoute, one: ScriptedClient, other: ScriptedClient) -> None:
        token = '"gwp083"'
        await asyncio.gather(call(self, lab, route, one, token, 0), call(self, lab, route, other, token, 1))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        callers = {
            frame.who: frame.label[6]
            for frame in recording.frames
            if frame.side is ScriptedSide.CLIENT and frame.is_sent and frame.label.startswith("gwp083")
        }
        for notice in notices(recording, PROGRESS):
            message, own = notice.params.get("message"), callers.get(notice.frame.who)
            if message in {f"for {other}" for other in callers.values() if other != own}:
                yield self.evidence(
                    notice.index, "/params", f"{notice.frame.route}: the client that called {own} got {message!r:.60}"
                )


class ProgressWithoutToken(Check):
    """A client that gives no progress token gets no progress.

    What it checks
        A client calls without a token a tool that reports progress to those who want it; no notification of progress arrives.

    Why
        A client that did not ask for progress takes an unknown token for an error, and some close the session.

    How to fix
        Where you ask the server for progress for reasons of your own, keep it to yourself.

    Reference
        Progress, Behavior Requirements: notifications must only reference tokens that were provided in an active request; all
        revisions.
    """

    code = "GWP-084"
    spec = "basic/utilities/progress"
    level = RequirementLevel.MUST
    tools = (ScriptedTool(name="gwp084_@", steps=(step("1"),)),)

    async def play(self, lab: Lab) -> None:
        await call_on_all(self, lab, ("",))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for notice in notices(recording, PROGRESS):
            yield self.evidence(notice.index, "/params", f"{notice.frame.route}: progress came without a token")
