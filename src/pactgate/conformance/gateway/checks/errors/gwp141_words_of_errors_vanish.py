"""GWP-141."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Family, FidelityCheck
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence


class WordsOfErrorsVanish(FidelityCheck):
    """What a server says of its error reaches the client.

    What it checks
        A tool answers with an error that says what is wrong. These words are in what the client gets, wherever it is.

    Why
        "Internal error" in place of "the invoice 17 is locked by Ann" leaves person and model without a way on.

    How to fix
        Keep the message of the server beside your own.

    Reference
        Base Protocol, Responses: an error has a code and a message; all revisions.
    """

    code = "GWP-141"
    spec = "basic/index#responses"
    family = Family.ERRORS
    tools = (ScriptedTool(name="gwp141_@", error='{"code":-32602,"message":"gwp141: the invoice is locked"}'),)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            response = exchange.response
            if response is None or "gwp141: the invoice is locked" not in response.data:
                yield self.evidence(exchange.index, "", f"{exchange.route}: its words are not in the answer")
