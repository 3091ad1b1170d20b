"""GWP-100."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import (
    ANSWERS,
    ATTRIBUTABLE,
    SAMPLING,
    asking,
    judge_questions,
    play_asking,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence


class SamplingRequestChanges(Check):
    """A server that asks the model of the client is heard as it asked.

    What it checks
        A tool asks for sampling with preferences, a system prompt and metadata; the client of the call gets the request, or an
        input-required result, with every member as it was.

    Why
        A client whose model gets another prompt, or no limit of tokens, answers another question. Where questions are dropped, the
        call hangs.

    How to fix
        Pass the question on as it is; change only how the era of the client spells a question.

    Reference
        Sampling, Creating Messages; all revisions.
    """

    code = "GWP-100"
    spec = "client/sampling#creating-messages"
    family = Family.ASKING
    servers = ATTRIBUTABLE
    tools = (asking("gwp100_@", SAMPLING),)

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, ANSWERS)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_questions(self, recording)
