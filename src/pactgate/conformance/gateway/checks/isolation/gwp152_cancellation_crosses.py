"""GWP-152."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel

_UNDER_WAY_S = 0.2
_IDS = 5


class CancellationCrosses(Check):
    """A client can't cancel the request of another.

    What it checks
        While a legacy client waits for a slow tool, another one cancels a request of the same id. The first one gets its result.

    Why
        Ids are small numbers; anybody could end anybody's calls.

    How to fix
        Look the id up among the requests of the client that cancels.

    Reference
        Cancellation: only requests that were previously issued in the same direction; all legacy revisions.
    """

    code = "GWP-152"
    spec = "basic/utilities/cancellation"
    family = Family.ISOLATION
    level = RequirementLevel.MUST
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp152_@", steps=(ScriptStep("wait", seconds=0.6),)),)

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            record = lab.record_on(route)
            one, other = await lab.new_client(route), await lab.new_client(route)
            call = asyncio.create_task(one.call(record, lab.exposed(route, self.tools[0].name), label="slow"))
            await asyncio.sleep(_UNDER_WAY_S)
            for id_ in range(1, _IDS):
                await other.notify(record, "notifications/cancelled", f'"requestId":{id_}')
            await call

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("slow"):
            if "result" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"{exchange.route}: the call has no result")
