"""GWP-090."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, value_of
from pactgate.conformance.gateway.checks.progress.notices import (
    LOG,
    WORK_S,
    call_with_level,
    logging_clients,
    notices,
    set_level,
)
from pactgate.conformance.gateway.exact_json import MISSING, at, differences
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedExchange
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.rule import Evidence


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
    family = Family.PROGRESS
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
