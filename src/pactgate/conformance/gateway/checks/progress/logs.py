"""Log messages reach whom they are for, at the level that was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, RefusalCheck, plain_value, value_of
from pactgate.conformance.gateway.checks.progress.notices import (
    LOG,
    LOG_LEVEL,
    WORK_S,
    call_with_level,
    logging_clients,
    notices,
    set_level,
)
from pactgate.conformance.gateway.exact_json import MISSING, at, differences
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedExchange, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.rule import Evidence, RequirementLevel


class LogMessagesChange(Check):
    """A log message of a server arrives with its level and data.

    What it checks
        A client asks for messages of the level debug and calls a tool that logs one; it arrives with its level and its data as they
        were, and with a logger that still has the name of the server's. Where `logging` is not announced, this is not asked; nor is it
        of servers over stdio, whose messages do not say which call they are about.

    Why
        Warnings of servers are what users look for when something goes wrong.

    How to fix
        Pass the level on, and the messages back to the client of the call.

    Reference
        Logging, Log Message Notifications; all revisions.
    """

    code = "GWP-090"
    spec = "server/utilities/logging"
    servers = ("lh", "mh", "dh")
    runs_alone = True
    tools = (
        ScriptedTool(
            name="gwp090_@",
            steps=(
                ScriptStep(
                    "log",
                    data='{"level":"warning","logger":"gwp090","data":{"n":9007199254740993,"none":null,"a":["\\u00e9"]}}',
                    seconds=WORK_S,
                ),
            ),
        ),
    )

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as clients:
            asked = logging_clients(clients)
            await set_level(lab, asked, "debug")
            await call_with_level(self, lab, asked, "debug")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            if exchange.request.label == named(self.tools[0].name, exchange.route.server):
                yield from self._of(exchange, recording)

    def _of(self, exchange: ScriptedExchange, recording: CheckRecording) -> Iterator[Evidence]:
        """A message on the stream of the call, or on that of the session."""
        who, route = exchange.request.who, exchange.route
        server = recording.at_server(route.server, exchange.request.label, is_sent=True)
        written = [value_of(frame) for _, frame in server if f'"{LOG}"' in frame.data]
        came = [notice for notice in notices(recording, LOG) if notice.frame.who == who]
        near = [n for n in came if n.frame.exchange == exchange.request.exchange or n.frame.label == "listen"]
        if not written or not near:
            what = "the message did not arrive" if written else "the server was not asked for messages"
            yield self.evidence(exchange.index, "", f"{route}: {what}")
            return
        for pointer in ("/level", "/data"):
            sent, got = at(written[0], f"/params{pointer}"), near[0].params.get(pointer[1:], MISSING)
            for where, how in differences(sent, got, f"/params{pointer}"):
                yield self.evidence(near[0].index, where, f"{route}: {how}")
        if "gwp090" not in str(near[0].params.get("logger")):
            yield self.evidence(near[0].index, "/params/logger", f"{route}: the logger has lost its name")


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


class LogMessagesUnasked(Check):
    """A modern client that asks for no log messages gets none.

    What it checks
        A modern client calls, without a log level in `_meta`, a tool that logs; no log message arrives, whatever the era of the server.

    Why
        Log messages are opt-in in 2026-07-28. A client that does not know them takes them for a fault.

    How to fix
        Drop the messages of legacy servers unless the request has a log level.

    Reference
        Logging: messages must not be sent for a request without `io.modelcontextprotocol/logLevel`; 2026-07-28.
    """

    code = "GWP-092"
    spec = "server/utilities/logging"
    level = RequirementLevel.MUST
    since = "2026-07-28"
    eras = ("modern",)
    tools = (
        ScriptedTool(
            name="gwp092_@", steps=(ScriptStep("log", data='{"level":"error","data":"nobody asked"}', seconds=WORK_S),)
        ),
    )

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as clients:
            await call_with_level(self, lab, clients, "")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for notice in notices(recording, LOG):
            yield self.evidence(notice.index, "/params", f"{notice.frame.route}: a log message came")


class LogMessagesReachOthers(Check):
    """A log message about a call does not reach a client that did not make it.

    What it checks
        Two legacy clients ask for messages; one calls a tool that logs on the stream of the call. The other, which listens, gets nothing.

    Why
        Log messages have arguments, file names and users in them.

    How to fix
        Send a message that came on the stream of a call to the client of that call only.

    Reference
        Streamable HTTP: what a server sends on the stream of a request relates to that request; 2025-03-26 to 2025-11-25.
    """

    code = "GWP-093"
    spec = "basic/transports#sending-messages-to-the-server"
    eras = ("legacy",)
    servers = ("lh", "mh", "dh")
    runs_alone = True
    tools = (
        ScriptedTool(
            name="gwp093_@", steps=(ScriptStep("log", data='{"level":"error","data":"of one call"}', seconds=WORK_S),)
        ),
    )

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as clients, lab.listeners(self) as others:
            asked = logging_clients(clients)
            await set_level(lab, asked, "debug")
            await set_level(lab, logging_clients(others), "debug")
            await call_with_level(self, lab, asked, "debug")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        callers = {
            frame.who
            for frame in recording.frames
            if frame.side is ScriptedSide.CLIENT and frame.is_sent and '"tools/call"' in frame.data
        }
        for notice in notices(recording, LOG):
            if notice.frame.who not in callers:
                yield self.evidence(
                    notice.index, "/params", f"{notice.frame.route}: a client that called nothing got it"
                )


class UnknownLogLevelAccepted(RefusalCheck):
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
    refused = "level"
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
