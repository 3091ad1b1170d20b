"""GWP-143."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedPrompt
from pactgate.conformance.rule import Evidence, RequirementLevel


class UnknownEntryCheck(Check):
    """A client asks with `method` for an entry that `nobody` has; `member` names it."""

    family = Family.ERRORS
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

    Why
        An empty result says that it exists and has nothing in it.

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
