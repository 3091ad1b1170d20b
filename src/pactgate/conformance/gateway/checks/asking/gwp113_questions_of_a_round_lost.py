"""GWP-113."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import (
    ANSWERS,
    ASK_ROOTS,
    ATTRIBUTABLE,
    FORM,
    SAMPLING,
    asking,
    judge_answers,
    play_answering,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


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
    family = Family.ASKING
    level = RequirementLevel.MUST
    servers = ATTRIBUTABLE
    tools = (asking("gwp113_@", {"form": FORM, "model": SAMPLING, "folders": ASK_ROOTS}),)

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, ANSWERS)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, ANSWERS, tuple(ANSWERS), only=("content", "roots"))
