"""GWP-126."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.tracing.credentials import WRONG, header, require_end, uncredited
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


class ChallengeMissing(Check):
    """Who is refused for want of a credential learns which kind is wanted.

    What it checks
        A client comes without a credential, and with a token that nobody gave out; each HTTP 401 has the header `WWW-Authenticate`. A
        gateway that answers neither with 401 is not asked.

    Why
        Clients begin to sign in when they read it. Without it they show an error.

    How to fix
        Send `WWW-Authenticate: Bearer` with every 401.

    Reference
        RFC 9110, 15.5.2: a 401 must have a challenge; Authorization, Token Handling: invalid tokens get 401; 2025-03-26 and later.
    """

    code = "GWP-126"
    spec = "basic/authorization#token-handling"
    family = Family.TRACING
    level = RequirementLevel.MUST
    needs_gateway = True
    tools = (ScriptedTool(name="gwp126_@"),)

    async def play(self, lab: Lab) -> None:
        require_end(lab)
        tries = [(route, headers) for route in lab.addresses(self) for headers in ({}, {"Authorization": WRONG})]
        statuses = {(await uncredited(lab, route, "refused", headers)).status for route, headers in tries}
        if 401 not in statuses:
            raise NotApplicableError("It does not refuse clients without a credential.")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("refused"):
            response = exchange.response
            if response is not None and response.status == 401 and not header(response, "www-authenticate"):
                yield self.evidence(exchange.index, "", f"{exchange.route.era} client: the 401 has no WWW-Authenticate")
