"""GWP-094."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, error_code, INVALID_PARAMS, plain_value
from pactgate.conformance.gateway.checks.progress.notices import LOG_LEVEL, logging_clients
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


class UnknownLogLevelAccepted(Check):
    """A log level that does not exist is refused.

    What it checks
        A client asks for the level "loud", in `logging/setLevel` or in the `_meta` of a call; it gets the error -32602.

    Why
        A client that believes its level was set waits for messages that never come.

    How to fix
        Check the level before anything is sent on.

    Reference
        Logging, Error Handling: an invalid log level is -32602; all revisions.
    """

    code = "GWP-094"
    spec = "server/utilities/logging#error-handling"
    family = Family.PROGRESS
    level = RequirementLevel.SHOULD
    servers = ("lh", "mh", "ls", "ms")
    tools = (ScriptedTool(name="gwp094_@"),)

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as clients:
            for route, client in logging_clients(clients).items():
                record = lab.record_on(route)
                if route.era == "modern":
                    tool = lab.exposed(route, self.tools[0].name)
                    await client.call(record, tool, meta=f'"{LOG_LEVEL}":"loud"', label="level", timeout_s=lab.call_s)
                else:
                    params = '"level":"loud"'
                    await client.request(record, "logging/setLevel", params, label="level", timeout_s=lab.call_s)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("level"):
            code = error_code(exchange)
            if code != INVALID_PARAMS:
                instead = "no error" if code is None else f"the code {code}"
                yield self.evidence(exchange.index, "/error/code", f"{exchange.route}: it answers with {instead}")
