"""GWP-101."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import (
    ANSWERS,
    ATTRIBUTABLE,
    FORM,
    asking,
    judge_questions,
    play_asking,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence


class FormElicitationChanges(Check):
    """A form that a server wants filled in reaches the client as it was.

    What it checks
        A tool asks for elicitation with a message and a schema; the client of the call gets both, in the order of the server, with
        every keyword.

    Why
        Clients make a form from the schema. With a keyword less, they send what the server refuses.

    How to fix
        Pass the question on as it is; change only how the era of the client spells a question.

    Reference
        Elicitation, Form Mode; 2025-06-18 and later.
    """

    code = "GWP-101"
    spec = "client/elicitation"
    family = Family.ASKING
    servers = ATTRIBUTABLE
    tools = (asking("gwp101_@", FORM),)

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, ANSWERS)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_questions(self, recording)
