"""GWP-041."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.eras.pairing import judge_pairing, play_pairing
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence


class LegacyClientMissesModernServer(Check):
    """A legacy client calls a tool of a modern server.

    What it checks
        A legacy client lists and calls a tool of each modern server behind the gateway, over HTTP and stdio, and gets its result.

    Why
        Clients and servers move to the new revision one by one. What is between them is where both meet.

    How to fix
        Speak to each server in its own era, and to each client in its own.

    Reference
        Versioning, Compatibility Matrix; the specification asks no gateway to translate.
    """

    code = "GWP-041"
    spec = "basic/versioning"
    family = Family.ERAS
    servers = (
        "mh",
        "ms",
    )
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp041_@"),)
    needs_gateway = True

    async def play(self, lab: Lab) -> None:
        await play_pairing(self, lab)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_pairing(self, recording)
