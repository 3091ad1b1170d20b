"""Input-required results: state, questions and rounds pass."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.checks.asking.questions import (
    ANSWERS,
    ASK_ROOTS,
    ATTRIBUTABLE,
    ELICIT,
    FORM,
    ROOTS,
    SAMPLE,
    SAMPLING,
    asking,
    calls,
    judge_answers,
    play_answering,
    play_asking,
)
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


class QuestionsOfARoundLost(Check):
    """Several questions at once are all answered, each by its own answer.

    What it checks
        A tool asks for a form, for sampling and for roots at the same time; the server gets the right answer to each of them, and the
        client its result.

    Why
        A server that waits for three answers and gets one, or gets them exchanged, hangs or does the wrong thing.

    How to fix
        Keep each question by its key or id until it is answered; go on when all are.

    Reference
        Multi Round-Trip Requests, Client Requirements: all input requests must be fulfilled before the retry; legacy servers may ask
        several requests at once in all revisions.
    """

    code = "GWP-113"
    spec = "basic/patterns/mrtr"
    level = RequirementLevel.MUST
    servers = ATTRIBUTABLE
    tools = (asking("gwp113_@", {"form": FORM, "model": SAMPLING, "folders": ASK_ROOTS}),)

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, ANSWERS)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, ANSWERS, tuple(ANSWERS), only=("content", "roots"))


class LaterRoundsLost(Check):
    """A server may ask again after it was answered.

    What it checks
        A tool asks for roots, then for a form, then for sampling, each after the answer to the one before; the server gets every answer,
        and the client its result.

    Why
        Dialogs have several steps. A gateway that expects one question leaves the call hanging at the second.

    How to fix
        Go on asking until the result is complete, within a bound.

    Reference
        Multi Round-Trip Requests: a retry may be answered by another input-required result; 2026-07-28. Legacy servers may ask again in
        all revisions.
    """

    code = "GWP-114"
    spec = "basic/patterns/mrtr"
    servers = ATTRIBUTABLE
    tools = (asking("gwp114_@", ASK_ROOTS, FORM, SAMPLING),)

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, ANSWERS)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, ANSWERS, (ROOTS, ELICIT, SAMPLE), only=("content", "roots"))
