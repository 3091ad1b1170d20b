"""GWP-061."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.names.listed import names_in
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.gateway.under_test import read_list
from pactgate.conformance.rule import Evidence, RequirementLevel


class OrderVaries(Check):
    """A list has the same order each time.

    What it checks
        A client lists the tools three times; the names come in the same order.

    Why
        Prompt caches compare text from its beginning: a list that moves makes every request of the model expensive.

    How to fix
        Sort, or keep the order of configuration; never that of the answers.

    Reference
        Tools, Listing Tools: servers should return tools in a deterministic order; 2026-07-28.
    """

    code = "GWP-061"
    spec = "server/tools#listing-tools"
    family = Family.NAMES
    level = RequirementLevel.SHOULD
    tools = (ScriptedTool(name="gwp061a_@"), ScriptedTool(name="gwp061b_@"))

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            for _ in range(3):
                await read_list(await lab.client(route), "tools/list", lab.record_on(route))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        first: dict[str, list[str]] = {}
        for route, listed, index in names_in(recording):
            known = first.setdefault(str(route), listed)
            if known != listed and sorted(known) == sorted(listed):
                yield self.evidence(index, "/result/tools", f"{route}: the same names came in another order")
