"""GWP-110."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.checks.asking.questions import (
    ANSWERS,
    ASK_ROOTS,
    FORM,
    SAMPLING,
    asking,
    play_asking,
    questions,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.rule import Evidence, RequirementLevel


class ClientWithoutCapabilityAsked(Check):
    """A client that can't be asked is not asked, and its call ends.

    What it checks
        A client that declares no capabilities calls tools that ask for sampling, for a form and for roots. It gets no question, and each
        call ends with a result or an error.

    Why
        A client without the capability can't answer: the call hangs, or the user sees an error that he can't explain.

    How to fix
        Declare to a server what the client of the call declares; answer a question that comes anyway with an error.

    Reference
        Lifecycle, Operation: only capabilities that were negotiated may be used; in 2026-07-28, input requests of kinds that the
        request declares.
    """

    code = "GWP-110"
    spec = "basic/lifecycle#operation"
    family = Family.ASKING
    level = RequirementLevel.MUST
    tools = (asking("gwp110s_@", SAMPLING), asking("gwp110e_@", FORM), asking("gwp110r_@", ASK_ROOTS))

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, ANSWERS, capabilities="{}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for asked in questions(recording, ScriptedSide.CLIENT):
            yield self.evidence(asked.index, "", f"{asked.frame.route}: the client was asked {asked.method}")
        for exchange in recording.exchanges():
            if '"tools/call"' in exchange.request.data and not plain_value(exchange.response):
                label = exchange.response.label if exchange.response is not None else "no response"
                yield self.evidence(exchange.index, "", f"{exchange.route}: {label}")
