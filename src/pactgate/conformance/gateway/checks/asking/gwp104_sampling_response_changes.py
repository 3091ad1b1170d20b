"""GWP-104."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import (
    ATTRIBUTABLE,
    SAMPLE,
    SAMPLING,
    asking,
    judge_answers,
    play_answering,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence

_ANSWER = {
    SAMPLE: (
        '"result":{"role":"assistant","content":{"type":"text","text":"\\u00e9\\n","annotations":{"priority":0.25}},'
        '"model":"gwp","stopReason":"something new"}'
    )
}


class SamplingResponseChanges(Check):
    """The answer of the model of the client reaches the server as it was.

    What it checks
        The client answers a request for sampling with text, model and stop reason; the server gets every member as it was, and the
        client its result.

    Why
        Servers decide by the model and the reason why it stopped.

    How to fix
        Pass the answer on as it is.

    Reference
        Sampling, Creating Messages; all revisions.
    """

    code = "GWP-104"
    spec = "client/sampling#creating-messages"
    family = Family.ASKING
    servers = ATTRIBUTABLE
    tools = (asking("gwp104_@", SAMPLING),)

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, _ANSWER)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, _ANSWER, (SAMPLE,))
