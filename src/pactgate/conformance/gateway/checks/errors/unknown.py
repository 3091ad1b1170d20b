"""Methods and entries that do not exist are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pactgate.conformance.gateway.check import Check, error_code, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedPrompt, ScriptedResource
from pactgate.conformance.rule import Evidence, RequirementLevel


class UnknownMethodAnswered(Check):
    """A method that nobody knows is refused as unknown.

    What it checks
        A client sends the method `gwp142/nobody`. It gets an error of JSON-RPC, with the code -32601 unless the status is 4xx.

    Why
        Clients find out by this code what a server can do. Any other one reads as a fault that may pass.

    How to fix
        Answer -32601.

    Reference
        JSON-RPC 2.0, section 5.1; Streamable HTTP of 2026-07-28: 404 with -32601.
    """

    code = "GWP-142"
    spec = "basic/index#responses"
    level = RequirementLevel.SHOULD

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.request(lab.record_on(route), "gwp142/nobody", label="unknown")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("unknown"):
            response = exchange.response
            code = error_code(exchange)
            if code != -32601 and not (code is not None and response is not None and 400 <= response.status < 500):
                instead = "no error" if code is None else f"the code {code}"
                yield self.evidence(exchange.index, "/error", f"{exchange.route.era} client: it answers with {instead}")


class UnknownEntryCheck(Check):
    """A client asks with `method` for an entry that `nobody` has; `member` names it.

    Why
        An empty result says that it exists and has nothing in it.
    """

    level = RequirementLevel.SHOULD
    method: ClassVar[str]
    member: ClassVar[str]
    nobody: ClassVar[str]

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client, params = await lab.client(route), f'"{self.member}":"{self.nobody}"'
            await client.request(lab.record_on(route), self.method, params, name=self.nobody, label="unknown")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("unknown"):
            if "error" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"{exchange.route.era} client: it is answered without an error")


class UnknownPromptSucceeds(UnknownEntryCheck):
    """A prompt that does not exist is an error.

    What it checks
        A client sends `prompts/get` for a prompt that no server has. It gets an error of JSON-RPC.

    How to fix
        Answer with an error for a prompt that no server has.

    Reference
        Prompts, Error Handling: -32602 for an invalid name; all revisions.
    """

    code = "GWP-143"
    spec = "server/prompts#error-handling"
    prompts = (ScriptedPrompt(name="gwp143_@"),)
    method = "prompts/get"
    member = "name"
    nobody = "gwp143_nobody"


class UnknownResourceSucceeds(UnknownEntryCheck):
    """A resource that does not exist is an error.

    What it checks
        A client sends `resources/read` for a resource that no server has. It gets an error of JSON-RPC.

    How to fix
        Answer with an error for a resource that no server has.

    Reference
        Resources, Error Handling: -32602 in 2026-07-28, -32002 before.
    """

    code = "GWP-144"
    spec = "server/resources#error-handling"
    resources = (ScriptedResource(uri="gwp://gwp144/@"),)
    method = "resources/read"
    member = "uri"
    nobody = "gwp://gwp144/nobody"
