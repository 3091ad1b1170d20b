"""GWP-115."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.checks.asking.questions import ANSWERS, CAPABILITIES, FORM, ask, asking
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.gateway.script import ScriptedTool, named
from pactgate.conformance.rule import Evidence

_ASKED_S = 5.0
_OTHER_S = 8.0


class OpenQuestionBlocksOthers(Check):
    """While a user thinks about a question, the server goes on serving others.

    What it checks
        A client is asked and does not answer yet; another client calls another tool of the same server, and gets its result before the
        first one answers.

    Why
        Users take minutes. A gateway that lets the server wait with them stops everybody.

    How to fix
        Do not hold a lock, a connection or the only session of a server while a client is asked.

    Reference
        Elicitation, User Interaction Model: answers depend on a user; all revisions with elicitation.
    """

    code = "GWP-115"
    spec = "client/elicitation"
    family = Family.ASKING
    runs_alone = True
    tools = (asking("gwp115_@", FORM), ScriptedTool(name="gwp115other_@"))

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self, capabilities=CAPABILITIES) as clients, lab.listeners(self) as others:
            for route, client in clients.items():
                client.answers = ANSWERS
                await self._one(lab, route, client, others[route])

    async def _one(self, lab: Lab, route: ClientRoute, client: ScriptedClient, other: ScriptedClient) -> None:
        client.may_answer.clear()
        client.was_asked.clear()
        calling = lab.start(ask(lab, route, client, self.tools[0].name))
        asked = lab.start(client.was_asked.wait())
        await asyncio.wait([calling, asked], timeout=_ASKED_S, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        name = self.tools[1].name
        tool, label = lab.exposed(route, name), named(name, route.server)
        await other.call(lab.record_on(route), tool, label=label, timeout_s=_OTHER_S)
        client.may_answer.set()
        await calling

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            is_other = exchange.request.label == named(self.tools[1].name, exchange.route.server)
            if is_other and "result" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"{exchange.route}: the other client waits")
