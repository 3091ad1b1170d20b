"""GWP-105."""

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

_ANSWER = {
    ELICIT: ('"result":{"action":"accept","content":{"b":"","a":9007199254740993,"c":true,"d":1.0,"e":"\\u00e9\\n"}}')
}


class AcceptedFormChanges(Check):
    """What a user filled in reaches the server as it was.

    What it checks
        The client accepts a form with text, numbers, booleans, and an empty value; the server gets every value as it was, and the client
        its result.

    Why
        A server that gets 1 for true, or nothing for an empty value, does something else than the user said.

    How to fix
        Pass the answer on as it is.

    Reference
        Elicitation, Response Actions; 2025-06-18 and later.
    """

    code = "GWP-105"
    spec = "client/elicitation#response-actions"
    family = Family.ASKING
    servers = ATTRIBUTABLE
    tools = (asking("gwp105_@", FORM),)

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, _ANSWER)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, _ANSWER, (ELICIT,))
