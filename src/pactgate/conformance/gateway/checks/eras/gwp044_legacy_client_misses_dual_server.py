"""GWP-044."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.eras.pairing import PairingCheck
from pactgate.conformance.gateway.script import ScriptedTool


class LegacyClientMissesDualServer(PairingCheck):
    """A legacy client calls a tool of a dual-era server.

    What it checks
        A legacy client lists and calls a tool of each dual-era server behind the gateway, over HTTP and stdio, and gets its result.

    Why
        It is the least that a gateway does.

    How to fix
        Speak to each server in its own era, and to each client in its own.

    Reference
        Versioning, Compatibility Matrix; the specification asks no gateway to translate.
    """

    code = "GWP-044"
    servers = ("dh",)
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp044_@"),)
