"""GWP-114."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
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
    judge_answers,
    play_answering,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence


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
    family = Family.ASKING
    servers = ATTRIBUTABLE
    tools = (asking("gwp114_@", ASK_ROOTS, FORM, SAMPLING),)

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, ANSWERS)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, ANSWERS, (ROOTS, ELICIT, SAMPLE), only=("content", "roots"))
