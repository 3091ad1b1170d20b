"""GWP-060."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.names.listed import names_in
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.gateway.under_test import is_named, read_list
from pactgate.conformance.rule import Evidence, RequirementLevel


class PagesLeftOut(Check):
    """Every page of a server is listed.

    What it checks
        A server lists its tools in pages of three; a client of the gateway finds all of them.

    Why
        Tools on later pages are missing without a word, and nobody knows why the model does not use them.

    How to fix
        Follow `nextCursor` until there is none.

    Reference
        Pagination: clients should treat a missing nextCursor as the end; all revisions.
    """

    code = "GWP-060"
    spec = "server/utilities/pagination"
    family = Family.NAMES
    level = RequirementLevel.SHOULD
    servers = ("pg",)
    tools = tuple(ScriptedTool(name=f"gwp060{part}_@") for part in "abcdefgh")

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            await read_list(await lab.client(route), "tools/list", lab.record_on(route))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for route, listed, index in names_in(recording):
            wanted = [f"gwp060{part}_pg" for part in "abcdefgh"]
            missing = [name for name in wanted if not any(is_named(shown, name) for shown in listed)]
            if missing:
                yield self.evidence(
                    index, "/result/tools", f"{route}: {len(missing)} of 8 are missing: {', '.join(missing)}"
                )
