"""GWP-048."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel
from pactgate.protocol.versions import KNOWN_VERSIONS


class UnknownLegacyVersionRefused(Check):
    """`initialize` with an unknown revision is answered with a known one.

    What it checks
        A legacy client asks for the revision 2099-01-01; it gets a result with a revision that exists.

    Why
        The client then decides whether it can use it. An error leaves it with nothing, an echo with a revision that nobody speaks.

    How to fix
        Answer with the latest revision that the gateway supports.

    Reference
        Lifecycle, Version Negotiation; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-048"
    spec = "basic/lifecycle#version-negotiation"
    family = Family.ERAS
    level = RequirementLevel.MUST
    eras = ("legacy",)
    until = "2025-11-25"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = lab.unopened(route)
            info = '"protocolVersion":"2099-01-01","capabilities":{},"clientInfo":{"name":"gwp","version":"1"}'
            await client.request(lab.record_on(route), "initialize", info)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("initialize"):
            result = plain_value(exchange.response).get("result")
            version = result.get("protocolVersion") if isinstance(result, dict) else None
            if version not in KNOWN_VERSIONS:
                yield self.evidence(exchange.index, "/result/protocolVersion", f"the revision is {version!r:.80}")
