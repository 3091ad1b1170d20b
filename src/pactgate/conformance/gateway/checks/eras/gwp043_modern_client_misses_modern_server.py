"""GWP-043."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.eras.pairing import judge_pairing, play_pairing
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence


class ModernClientMissesModernServer(Check):
    """A modern client calls a tool of a modern server.

    What it checks
        A modern client lists and calls a tool of each modern server behind the gateway, over HTTP and stdio, and gets its result.

    Why
        It is the least that a gateway does.

    How to fix
        Speak to each server in its own era, and to each client in its own.

    Reference
        Versioning, Compatibility Matrix; the specification asks no gateway to translate.
    """

    code = "GWP-043"
    spec = "basic/versioning"
    family = Family.ERAS
    servers = (
        "mh",
        "ms",
    )
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp043_@"),)

    async def play(self, lab: Lab) -> None:
        await play_pairing(self, lab)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_pairing(self, recording)
