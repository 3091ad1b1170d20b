"""GWP-140."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Family, FidelityCheck, plain_value
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


class ErrorsBecomeSuccess(FidelityCheck):
    """A call that a server refuses has not succeeded.

    What it checks
        A tool answers with an error of JSON-RPC. The client gets an error, or a result with `isError`.

    Why
        A model that reads a failure as a result goes on as if the action had happened.

    How to fix
        Pass the error on, or turn it into a result with `isError: true`.

    Reference
        Tools, Error Handling; all revisions.
    """

    code = "GWP-140"
    spec = "server/tools#error-handling"
    family = Family.ERRORS
    level = RequirementLevel.MUST
    tools = (ScriptedTool(name="gwp140_@", error='{"code":-32603,"message":"gwp140 went wrong"}'),)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            message = plain_value(exchange.response)
            result = message.get("result")
            if "error" not in message and not (isinstance(result, dict) and result.get("isError") is True):
                yield self.evidence(exchange.index, "", f"{exchange.route}: the call looks as if it had succeeded")
