"""GWP-067."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence


class CallsGoAstray(Check):
    """A call reaches its server, and no other.

    What it checks
        A client calls the tool of each server by its listed name; exactly this server gets exactly one call.

    Why
        A call that is sent twice acts twice; one at another server acts on other data.

    How to fix
        Send each call once, to the server whose tool it is.

    Reference
        Nothing in the specification lets an intermediary send a call twice; all revisions.
    """

    code = "GWP-067"
    spec = "server/tools#calling-tools"
    family = Family.NAMES
    tools = (ScriptedTool(name="gwp067_@"),)

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            client, tool = await lab.client(route), lab.exposed(route, self.tools[0].name)
            await client.call(lab.record_on(route), tool, label=f"gwp067_{route.server}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        servers = dict.fromkeys(exchange.route.server for exchange in recording.exchanges())
        for server in servers:
            calls = [exchange for exchange in recording.exchanges() if exchange.route.server == server]
            got = len(recording.at_server(server, f"gwp067_{server}", is_sent=False))
            if got != len(calls):
                yield self.evidence(calls[-1].index, "", f"{server} was sent {got} calls for {len(calls)}")
