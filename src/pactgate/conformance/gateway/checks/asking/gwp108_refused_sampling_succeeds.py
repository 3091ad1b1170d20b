"""GWP-108."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import SAMPLE, SAMPLING, asking, judge_answers, play_answering
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence

_ANSWER = {SAMPLE: '"error":{"code":-1,"message":"User rejected sampling request"}'}


class RefusedSamplingSucceeds(Check):
    """A user who refuses sampling is seen by the server.

    What it checks
        The client answers a request for sampling with the error -1; the server, of the same era, gets an error with this code and
        message. A modern client has no words for it, and a modern server neither.

    Why
        A server that waits for the answer hangs, one that gets an invented answer goes on.

    How to fix
        Pass the error on as it is.

    Reference
        Sampling, Error Handling: a rejection by the user is -1; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-108"
    spec = "client/sampling#error-handling"
    family = Family.ASKING
    eras = ("legacy",)
    servers = ("lh",)
    tools = (asking("gwp108_@", SAMPLING),)

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, _ANSWER)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, _ANSWER, (SAMPLE,))
