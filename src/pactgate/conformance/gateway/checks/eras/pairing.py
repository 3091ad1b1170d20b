"""Every pairing of eras: a call on every route that should be there."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.gateway.script import ScriptedTool, named
from pactgate.conformance.rule import Evidence


class PairingCheck(Check):
    """Clients of the first of `eras` call a tool of every one of `servers`.

    Why
        It is the least that a gateway does.

    How to fix
        Speak to each server in its own era, and to each client in its own.

    Reference
        Versioning, Compatibility Matrix; the specification asks no gateway to translate.
    """

    spec = "basic/versioning"

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


class LegacyClientMissesLegacyServer(PairingCheck):
    """A legacy client calls a tool of a legacy server.

    What it checks
        A legacy client lists and calls a tool of each legacy server behind the gateway, over HTTP and stdio, and gets its result.
    """

    code = "GWP-040"
    servers = ("lh", "ls")
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp040_@"),)


class LegacyClientMissesModernServer(PairingCheck):
    """A legacy client calls a tool of a modern server.

    What it checks
        A legacy client lists and calls a tool of each modern server behind the gateway, over HTTP and stdio, and gets its result.

    Why
        Clients and servers move to the new revision one by one. What is between them is where both meet.
    """

    code = "GWP-041"
    servers = ("mh", "ms")
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp041_@"),)
    needs_gateway = True


class ModernClientMissesLegacyServer(PairingCheck):
    """A modern client calls a tool of a legacy server.

    What it checks
        A modern client lists and calls a tool of each legacy server behind the gateway, over HTTP and stdio, and gets its result.

    Why
        Clients and servers move to the new revision one by one. What is between them is where both meet.
    """

    code = "GWP-042"
    servers = ("lh", "ls")
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp042_@"),)
    needs_gateway = True


class ModernClientMissesModernServer(PairingCheck):
    """A modern client calls a tool of a modern server.

    What it checks
        A modern client lists and calls a tool of each modern server behind the gateway, over HTTP and stdio, and gets its result.
    """

    code = "GWP-043"
    servers = ("mh", "ms")
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp043_@"),)


class LegacyClientMissesDualServer(PairingCheck):
    """A legacy client calls a tool of a dual-era server.

    What it checks
        A legacy client lists and calls a tool of each dual-era server behind the gateway, over HTTP and stdio, and gets its result.
    """

    code = "GWP-044"
    servers = ("dh",)
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp044_@"),)


class ModernClientMissesDualServer(PairingCheck):
    """A modern client calls a tool of a dual-era server.

    What it checks
        A modern client lists and calls a tool of each dual-era server behind the gateway, over HTTP and stdio, and gets its result.
    """

    code = "GWP-045"
    servers = ("dh",)
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp045_@"),)
