"""GWP-065."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.names.listed import names_in
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.gateway.under_test import read_list
from pactgate.conformance.rule import Evidence

_USABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class NamesUnusable(Check):
    """The names that are listed can be used by models.

    What it checks
        Every listed name of our tools has 1 to 64 characters out of letters, digits, `_` and `-`.

    Why
        The APIs of models accept such names only. A gateway that puts `server.` or `server:` before them makes tools that can be
        seen and not used.

    How to fix
        Join with `_` or `-`, and shorten what becomes too long.

    Reference
        Tools, Tool Names allow 128 characters and a dot; clients in use accept 64 and no dot.
    """

    code = "GWP-065"
    spec = "server/tools#tool-names"
    family = Family.NAMES
    tools = (ScriptedTool(name="gwp065_a_name_of_forty_characters_____@"),)

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            await read_list(await lab.client(route), "tools/list", lab.record_on(route))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for route, listed, index in names_in(recording):
            for name in listed:
                if "gwp" in name.lower() and not _USABLE.fullmatch(name):
                    yield self.evidence(index, "/result/tools", f"{route}: {name[:100]!r} is no name for a model")
                    break
