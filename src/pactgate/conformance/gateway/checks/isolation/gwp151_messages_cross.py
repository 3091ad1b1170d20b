"""GWP-151."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel


def _telling(text: str) -> tuple[ScriptStep, ...]:
    message = f'{{"level":"error","data":"{text}"}}'
    return (
        ScriptStep("notify", f'{{"jsonrpc":"2.0","method":"notifications/message","params":{message}}}'),
        ScriptStep("wait", seconds=0.1),
    )


class MessagesCross(Check):
    """What a server says during a call is heard by nobody else.

    What it checks
        Two clients call tools that send log messages. Neither gets a message of the other's call on its own.

    Why
        Log messages quote arguments and results.

    How to fix
        Relay what belongs to a call on the stream of that call.

    Reference
        Streamable HTTP: messages on a stream relate to the request of this stream; all revisions.
    """

    code = "GWP-151"
    spec = "basic/transports/streamable-http"
    family = Family.ISOLATION
    level = RequirementLevel.SHOULD
    tools = (
        ScriptedTool(name="gwp151a_@", steps=_telling("said to the first")),
        ScriptedTool(name="gwp151b_@", steps=_telling("said to the second")),
    )

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            record = lab.record_on(route)
            clients = [await lab.new_client(route) for _ in self.tools]
            names = [lab.exposed(route, tool.name) for tool in self.tools]
            await asyncio.gather(
                *(
                    client.call(record, name, label=label)
                    for client, name, label in zip(clients, names, ("first", "second"), strict=True)
                )
            )

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for own, other in (("first", "second"), ("second", "first")):
            for exchange in recording.exchanges(own):
                if any(f"said to the {other}" in frame.data for frame in exchange.received):
                    yield self.evidence(exchange.index, "", f"{exchange.route}: a message of the other call came")
