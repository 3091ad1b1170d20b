"""GWP-150."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel

_CALLS = 6


def _said(text: str) -> str:
    return f'"content":[{{"type":"text","text":"{text}"}}]'


class AnswersCross(Check):
    """Two clients that use the same ids get their own answers.

    What it checks
        Two clients, whose requests have equal ids, call two tools twelve times at once. Each result is that of the tool that was
        called.

    Why
        Every client counts from one. A gateway that finds the caller by the client's id gives one person what another asked for.

    How to fix
        Number requests to servers yourself.

    Reference
        Base Protocol, Requests: an id is unique for its requestor alone; all revisions.
    """

    code = "GWP-150"
    spec = "basic/index#requests"
    family = Family.ISOLATION
    level = RequirementLevel.MUST
    tools = (
        ScriptedTool(name="gwp150a_@", result=_said("for the first"), steps=(ScriptStep("wait", seconds=0.02),)),
        ScriptedTool(name="gwp150b_@", result=_said("for the second"), steps=(ScriptStep("wait", seconds=0.02),)),
    )

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            record = lab.record_on(route)
            clients = [await lab.new_client(route) for _ in self.tools]
            tools = [lab.exposed(route, tool.name) for tool in self.tools]
            calls = [
                client.call(record, tool, label=label)
                for _ in range(_CALLS)
                for client, tool, label in zip(clients, tools, ("for the first", "for the second"), strict=True)
            ]
            await asyncio.gather(*calls)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for label, other in (("for the first", "for the second"), ("for the second", "for the first")):
            for exchange in recording.exchanges(label):
                response = exchange.response
                if response is not None and f'"{other}"' in response.data:
                    yield self.evidence(
                        exchange.index, "", f"{exchange.route}: the answer is not what was called {label}"
                    )
