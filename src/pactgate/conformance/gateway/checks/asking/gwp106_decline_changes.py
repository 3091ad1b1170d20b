"""GWP-106."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import (
    ATTRIBUTABLE,
    ELICIT,
    FORM,
    asking,
    judge_answers,
    play_answering,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence

_ANSWER = {ELICIT: '"result":{"action":"decline"}'}


class DeclineChanges(Check):
    """A user who declines is not taken for one who accepts.

    What it checks
        The client answers a form with the action `decline`; the server gets this action, and the client its result.

    Why
        The server may ask in another way after one of the answers, and must not go on after the other.

    How to fix
        Pass the action on as it is.

    Reference
        Elicitation, Response Actions; 2025-06-18 and later.
    """

    code = "GWP-106"
    spec = "client/elicitation#response-actions"
    family = Family.ASKING
    servers = ATTRIBUTABLE
    tools = (asking("gwp106_@", FORM),)

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, _ANSWER)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, _ANSWER, (ELICIT,))
