"""What the checks of the pairings of eras share: a call on every route that should be there. Must not: know which pairing it is."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.gateway.script import named
from pactgate.conformance.rule import Evidence


class PairingCheck(Check):
    """Clients of the first of `eras` call a tool of every one of `servers`."""

    spec = "basic/versioning"
    family = Family.ERAS

    async def play(self, lab: Lab) -> None:
        """Call the first tool of every server that is behind the gateway. A route that is not there is recorded as missing."""
        if self.needs_gateway:
            lab.require_gateway()
        servers = [server for server in self.servers if lab.has(server)]
        if not servers or self.eras[0] not in lab.gateway.eras:
            raise NotApplicableError(lab.reason(self.eras, self.servers))
        for server in servers:
            route = ClientRoute(self.eras[0], server)
            label = named(self.tools[0].name, server)
            if lab.gateway.find(route, "tools/list", self.tools[0].name) is None:
                lab.record_missing(route, label)
            else:
                client = await lab.client(route)
                await client.call(lab.record_on(route), lab.exposed(route, self.tools[0].name), label=label)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            response = exchange.response
            result = plain_value(response).get("result")
            members = result if isinstance(result, dict) else {}
            if not isinstance(members.get("content"), list) or members.get("isError"):
                why = response.label if response is not None and not response.data else "the call has no result"
                yield self.evidence(exchange.index, "/result", f"{exchange.route}: {why}")
            elif not recording.at_server(exchange.route.server, exchange.request.label, is_sent=False):
                yield self.evidence(exchange.index, "/result", f"{exchange.route}: the server never got the call")
