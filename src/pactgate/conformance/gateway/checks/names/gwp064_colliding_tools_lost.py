"""GWP-064."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.gateway.under_test import is_named
from pactgate.conformance.rule import Evidence, RequirementLevel


class CollidingToolsLost(Check):
    """Tools of one name on several servers can all be called.

    What it checks
        Every server has a tool of the same name; a client calls everything that the gateway lists for it, and each server is called
        once.

    Why
        Where names collide, gateways keep one of the tools, often another one each time.

    How to fix
        Keep all of them apart by the id of the server.

    Reference
        Tools, Tool Names: aggregators should disambiguate names; 2026-07-28.
    """

    code = "GWP-064"
    spec = "server/tools#tool-names"
    family = Family.NAMES
    level = RequirementLevel.SHOULD
    needs_gateway = True
    tools = (ScriptedTool(name="gwp064same"),)

    async def play(self, lab: Lab) -> None:
        lab.require_aggregate()
        for route in lab.addresses(self):
            client, listing = await lab.client(route), lab.gateway.listing(route)
            names = listing.entries.get("tools/list", {}) if listing is not None else {}
            for name in names:
                if is_named(name, "gwp064same"):
                    await client.call(lab.record_on(route), name, label="same")
            for server in lab.connected(self, route.era):
                await client.call(
                    lab.record_on(route), lab.exposed(server, "gwpready_@"), label=f"there {server.server}"
                )

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for era in dict.fromkeys(exchange.route.era for exchange in recording.exchanges("same")):
            calls = [exchange for exchange in recording.exchanges("same") if exchange.route.era == era]
            servers = [e for e in recording.exchanges() if e.request.label.startswith("there") and e.route.era == era]
            good = [exchange for exchange in calls if "result" in plain_value(exchange.response)]
            if len(good) != len(servers):
                text = f"{era} client: {len(servers)} servers have the tool, {len(good)} answered"
                yield self.evidence(calls[-1].index, "", text)
        hit = [frame.who for frame in recording.frames if frame.side is ScriptedSide.SERVER and not frame.is_sent]
        eras = {exchange.route.era for exchange in recording.exchanges("same")}
        for server in sorted(set(hit)):
            if hit.count(server) > len(eras):
                yield self.evidence(0, "", f"{server} was called {hit.count(server)} times, by {len(eras)} clients")
        if not eras:
            yield self.evidence(0, "", "no tool of this name is listed")
