"""GWP-049."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence


class OlderRevisionsRefused(Check):
    """A client of each legacy revision is answered in it.

    What it checks
        Clients ask for 2025-11-25, 2025-06-18 and 2025-03-26; each gets its own revision, and can list the tools.

    Why
        Many clients in use are older than the newest server. Where another revision comes back, some of them disconnect.

    How to fix
        Support the revisions that clients in use ask for.

    Reference
        Lifecycle, Version Negotiation: which revisions a server supports is its own choice; 2025-03-26 to 2025-11-25.
    """

    code = "GWP-049"
    spec = "basic/lifecycle#version-negotiation"
    family = Family.ERAS
    eras = ("legacy",)
    until = "2025-11-25"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            for version in ("2025-11-25", "2025-06-18", "2025-03-26"):
                client = await lab.new_client(route, version=version)
                await client.request(lab.record_on(route), "tools/list", label=f"list in {version}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("initialize"):
            asked = plain_value(exchange.request)["params"]
            result = plain_value(exchange.response).get("result")
            got = result.get("protocolVersion") if isinstance(result, dict) else None
            wanted = asked.get("protocolVersion") if isinstance(asked, dict) else None
            if got != wanted:
                yield self.evidence(
                    exchange.index, "/result/protocolVersion", f"{wanted} was answered with {got!r:.80}"
                )
        for exchange in recording.exchanges():
            if exchange.request.label.startswith("list in") and "result" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"{exchange.request.label} failed")
