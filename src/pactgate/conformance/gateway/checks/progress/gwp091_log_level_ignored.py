"""GWP-091."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.checks.progress.notices import (
    LOG,
    WORK_S,
    call_with_level,
    logging_clients,
    notices,
    set_level,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel

_LEVELS = ("info", "error")


class LogLevelIgnored(Check):
    """A client gets no log messages below the level that it asked for, whatever others ask for.

    What it checks
        One client asks for debug, another for error; a tool logs with the levels info and error. The second gets nothing of level info.

    Why
        A client that asked for errors is flooded with what another one wanted to see.

    How to fix
        Keep the level of each client, ask servers for the lowest, and filter.

    Reference
        Logging, Setting Log Level; in 2026-07-28 the level of a request must be respected.
    """

    code = "GWP-091"
    spec = "server/utilities/logging"
    family = Family.PROGRESS
    level = RequirementLevel.SHOULD
    runs_alone = True
    tools = (
        ScriptedTool(
            name="gwp091_@",
            steps=tuple(
                ScriptStep("log", data=f'{{"level":"{level}","data":"{level}"}}', seconds=WORK_S) for level in _LEVELS
            ),
        ),
    )

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as clients, lab.listeners(self) as others:
            strict, curious = logging_clients(clients), logging_clients(others)
            await set_level(lab, strict, "error")
            await set_level(lab, curious, "debug")
            calls = (call_with_level(self, lab, strict, "error"), call_with_level(self, lab, curious, "debug"))
            await asyncio.gather(*calls)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        strict = {
            frame.who
            for frame in recording.frames
            if frame.is_sent and ('"level":"error"' in frame.data or 'logLevel":"error"' in frame.data)
        }
        for notice in notices(recording, LOG):
            if notice.frame.who in strict and notice.params.get("level") == "info":
                route = notice.frame.route
                level = RequirementLevel.MUST if route is not None and route.era == "modern" else self.level
                yield self.evidence(notice.index, "/params/level", f"{route}: info came, error was asked for", level)
        for exchange in recording.exchanges("logging/setLevel"):
            if "error" in plain_value(exchange.response):
                yield self.evidence(exchange.index, "/error", f"{exchange.route}: setting the level failed")
