"""Errors of servers: they stay errors, say what the server said, and nothing of the gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, FidelityCheck, plain_value
from pactgate.conformance.gateway.lab import Lab
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
    level = RequirementLevel.MUST
    tools = (ScriptedTool(name="gwp140_@", error='{"code":-32603,"message":"gwp140 went wrong"}'),)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            message = plain_value(exchange.response)
            result = message.get("result")
            if "error" not in message and not (isinstance(result, dict) and result.get("isError") is True):
                yield self.evidence(exchange.index, "", f"{exchange.route}: the call looks as if it had succeeded")


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
    tools = (ScriptedTool(name="gwp141_@", error='{"code":-32602,"message":"gwp141: the invoice is locked"}'),)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            response = exchange.response
            if response is None or "gwp141: the invoice is locked" not in response.data:
                yield self.evidence(exchange.index, "", f"{exchange.route}: its words are not in the answer")


_INTERNAL = re.compile(
    r"Traceback \(most recent|site-packages|node_modules|panicked at|goroutine \d+|"
    r"File \\?\"/|\bat .{1,80}\.(?:js|ts|go|rs):\d+"
)


class InternalsShown(Check):
    """An error shows nothing of the inside of the gateway.

    What it checks
        A client calls an unknown tool, sends an unknown cursor and a name of the wrong type. No answer has a stack trace or the
        path of a source file.

    Why
        Paths, versions and frames help an attacker and nobody else.

    How to fix
        Write traces into the log, and the sentence alone into the answer.

    Reference
        Nothing in the specification; what is not for clients does not belong into answers.
    """

    code = "GWP-145"
    spec = "basic/index#responses"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client, record = await lab.client(route), lab.record_on(route)
            await client.call(record, "gwp145_nobody", label="wrong")
            await client.request(record, "tools/list", '"cursor":"gwp145"', label="wrong")
            await client.request(record, "tools/call", '"name":[145]', name="gwp145", label="wrong")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("wrong"):
            found = _INTERNAL.search("".join(frame.data for frame in exchange.received))
            if found is not None:
                yield self.evidence(exchange.index, "", f"{exchange.route.era} client: it is shown {found[0]!r}")
