"""GWP-042."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.eras.pairing import PairingCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ModernClientMissesLegacyServer(PairingCheck):
    """A modern client calls a tool of a legacy server.

    What it checks
        A modern client lists and calls a tool of each legacy server behind the gateway, over HTTP and stdio, and gets its result.

    Why
        Clients and servers move to the new revision one by one. What is between them is where both meet.

    How to fix
        Speak to each server in its own era, and to each client in its own.

    Reference
        Versioning, Compatibility Matrix; the specification asks no gateway to translate.
    """

    code = "GWP-042"
    servers = (
        "lh",
        "ls",
    )
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp042_@"),)
    needs_gateway = True
