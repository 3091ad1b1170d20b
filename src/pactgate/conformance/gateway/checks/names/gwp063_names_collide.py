"""GWP-063."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.names.listed import names_in
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.gateway.under_test import read_list
from pactgate.conformance.rule import Evidence, RequirementLevel


class NamesCollide(Check):
    """No name is listed twice.

    What it checks
        The servers behind the gateway have a tool of the same name; in the list of the gateway each name stands once.

    Why
        A client that gets two tools of one name refuses both, or calls either.

    How to fix
        Put the id of the server before the names.

    Reference
        Tools, Tool Names: names should be unique within a server; 2025-11-25 and later.
    """

    code = "GWP-063"
    spec = "server/tools#tool-names"
    family = Family.NAMES
    level = RequirementLevel.SHOULD
    tools = (ScriptedTool(name="gwp063same"),)

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            await read_list(await lab.client(route), "tools/list", lab.record_on(route))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for route, listed, index in names_in(recording):
            twice = sorted({name for name in listed if listed.count(name) > 1})
            if twice:
                yield self.evidence(index, "/result/tools", f"{route}: listed more than once: {', '.join(twice[:5])}")
