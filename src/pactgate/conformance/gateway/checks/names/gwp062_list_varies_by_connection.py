"""GWP-062."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.names.listed import names_in
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.gateway.under_test import read_list
from pactgate.conformance.rule import Evidence, RequirementLevel


class ListVariesByConnection(Check):
    """A list does not depend on the connection.

    What it checks
        Two clients without any difference list the tools in turns, twice each; all four lists have the same names.

    Why
        A client that sees other tools after it connects again calls what is not there.

    How to fix
        Make the list from what is configured and who asks, and from nothing else.

    Reference
        Statelessness: lists must not depend on the connection in 2026-07-28; clients of other revisions rely on it.
    """

    code = "GWP-062"
    spec = "server/tools#listing-tools"
    family = Family.NAMES
    level = RequirementLevel.SHOULD
    tools = (ScriptedTool(name="gwp062a_@"), ScriptedTool(name="gwp062b_@"))

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            clients = [await lab.new_client(route), await lab.new_client(route)]
            for client in clients * 2:
                await read_list(client, "tools/list", lab.record_on(route))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        first: dict[str, list[str]] = {}
        for route, listed, index in names_in(recording):
            known = first.setdefault(str(route), listed)
            if set(known) != set(listed):
                other = sorted(set(known) ^ set(listed))[:5]
                yield self.evidence(index, "/result/tools", f"{route}: not in both lists: {', '.join(other)}")
