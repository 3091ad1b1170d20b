"""GWP-046."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class DiscoverIncomplete(Check):
    """`server/discover` says what a client needs to go on.

    What it checks
        A modern client asks `server/discover`; the result has `supportedVersions` with 2026-07-28, `capabilities` with `tools`, a
        `resultType`, and both cache hints.

    Why
        It is the one method that every modern server has, and the first that clients of both eras send.

    How to fix
        Answer it from what the gateway offers as a whole.

    Reference
        Versioning, server/discover; Caching; 2026-07-28.
    """

    code = "GWP-046"
    spec = "server/discover"
    family = Family.ERAS
    level = RequirementLevel.MUST
    eras = ("modern",)
    since = "2026-07-28"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            await lab.unopened(route).request(lab.record_on(route), "server/discover")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            result = plain_value(exchange.response).get("result")
            members = result if isinstance(result, dict) else {}
            versions, capabilities = members.get("supportedVersions"), members.get("capabilities")
            if not isinstance(versions, list) or "2026-07-28" not in versions:
                yield self.evidence(
                    exchange.index, "/result/supportedVersions", f"2026-07-28 is not in {versions!r:.80}"
                )
            if not isinstance(capabilities, dict) or "tools" not in capabilities:
                yield self.evidence(exchange.index, "/result/capabilities", "tools are listed but not announced")
            for name in ("resultType", "ttlMs", "cacheScope"):
                if name not in members:
                    yield self.evidence(exchange.index, f"/result/{name}", f"{name} is missing")
