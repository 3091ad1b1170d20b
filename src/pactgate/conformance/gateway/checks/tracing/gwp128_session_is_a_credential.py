"""GWP-128."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.tracing.credentials import REFUSED, require_end, uncredited
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


class SessionIsACredential(Check):
    """A session, or a connection, does not stand for the credential of its client.

    What it checks
        A client opens a session with the credential of the operator (`--header`), and sends a further request of the session without it;
        a modern client does so on its connection. Neither gets a result. A gateway that needs no credential is not asked.

    Why
        Session ids stand in logs and in URLs of tools. Who reads one could act as its user.

    How to fix
        Check the credential of every request.

    Reference
        Security Best Practices, Session Hijacking: sessions must not be used for authentication; every inbound request must be verified.
    """

    code = "GWP-128"
    spec = "basic/security_best_practices#session-hijacking"
    family = Family.TRACING
    level = RequirementLevel.MUST
    needs_gateway = True
    tools = (ScriptedTool(name="gwp128_@"),)

    async def play(self, lab: Lab) -> None:
        require_end(lab)
        for route in lab.addresses(self):
            if (await uncredited(lab, route, "refused", {})).status not in REFUSED:
                raise NotApplicableError("It does not refuse clients without a credential.")
            client, record = await lab.new_client(route), lab.record_on(route)
            await client.request(record, "tools/list", label="with", timeout_s=lab.call_s)
            without = dict.fromkeys(lab.gateway.identity)
            await client.request(record, "tools/list", label="without", headers=without, timeout_s=lab.call_s)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("without"):
            if exchange.response is not None and '"result"' in exchange.response.data:
                yield self.evidence(
                    exchange.index, "/result", f"{exchange.route.era} client: it was served without a credential"
                )
