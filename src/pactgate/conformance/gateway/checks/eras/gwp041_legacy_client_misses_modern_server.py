"""GWP-041."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.eras.pairing import PairingCheck
from pactgate.conformance.gateway.script import ScriptedTool


class LegacyClientMissesModernServer(PairingCheck):
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
    servers = (
        "mh",
        "ms",
    )
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp041_@"),)
    needs_gateway = True
