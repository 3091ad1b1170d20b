"""GWP-112."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.checks.asking.questions import ANSWERS, FORM, asking, calls, play_asking
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class RequestStateChanges(Check):
    """A modern server gets back the state that it gave out.

    What it checks
        A tool of a modern server asks with a `requestState` that has quotes, escapes and other scripts; the call that brings the answers
        brings the same state. What the client gets as state in between is the gateway's own business.

    Why
        The server keeps nothing: with another state it starts again, or refuses.

    How to fix
        Keep the state, or seal it whole, and send it back as it was; also for a legacy client, whose rounds the gateway makes.

    Reference
        Multi Round-Trip Requests, Client Requirements: the state must be echoed exactly; 2026-07-28.
    """

    code = "GWP-112"
    spec = "basic/patterns/mrtr"
    family = Family.ASKING
    level = RequirementLevel.MUST
    since = "2026-07-28"
    servers = ("mh", "dh", "ms")
    tools = (asking("gwp112_@", FORM),)

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, ANSWERS)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for route, _, label, index in calls(recording):
            sent = recording.at_server(route.server, label, is_sent=True)
            given = {state for _, frame in sent if (state := _given(plain_value(frame)))}
            retried = 0
            for place, frame in recording.at_server(route.server, label, is_sent=False):
                params = plain_value(frame).get("params")
                if isinstance(params, dict) and "inputResponses" in params:
                    retried += 1
                    if json.dumps(params.get("requestState")) not in given:
                        state = f"{params.get('requestState')!r:.60}"
                        yield self.evidence(place, "/params/requestState", f"{route}: the state came back as {state}")
            if given and not retried:
                yield self.evidence(index, "", f"{route}: no call brought the answers")


def _given(message: dict[str, object]) -> str:
    """The state of an input-required result, as JSON; otherwise nothing."""
    result = message.get("result")
    return json.dumps(result["requestState"]) if isinstance(result, dict) and "requestState" in result else ""
