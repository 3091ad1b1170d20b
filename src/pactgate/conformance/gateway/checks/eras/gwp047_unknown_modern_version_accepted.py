"""GWP-047."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class UnknownModernVersionAccepted(Check):
    """A modern request of an unknown revision is refused with those that are supported.

    What it checks
        A modern client sends a request of the revision 2099-01-01; it gets HTTP 400 and the error -32022, with `supported` that has
        2026-07-28, and `requested`.

    Why
        A client takes a revision out of this list and goes on. With any other answer it takes the gateway for a legacy one, or
        gives up.

    How to fix
        Check the revision of each request before anything else.

    Reference
        Versioning, Protocol Version Negotiation; 2026-07-28.
    """

    code = "GWP-047"
    spec = "basic/versioning"
    family = Family.ERAS
    level = RequirementLevel.MUST
    eras = ("modern",)
    since = "2026-07-28"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = lab.unopened(route)
            client.version = "2099-01-01"
            await client.request(lab.record_on(route), "tools/list")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            response = exchange.response
            error = plain_value(response).get("error")
            members = error if isinstance(error, dict) else {}
            if members.get("code") != -32022 or response is None or response.status != 400:
                status = 0 if response is None else response.status
                yield self.evidence(exchange.index, "", f"it answers HTTP {status} with the code {members.get('code')}")
                continue
            data = members.get("data")
            supported = data.get("supported") if isinstance(data, dict) else None
            if not isinstance(supported, list) or "2026-07-28" not in supported:
                yield self.evidence(exchange.index, "/error/data/supported", f"2026-07-28 is not in {supported!r:.80}")
