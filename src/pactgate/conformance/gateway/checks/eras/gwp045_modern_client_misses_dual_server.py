"""GWP-045."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.eras.pairing import PairingCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ModernClientMissesDualServer(PairingCheck):
    """A modern client calls a tool of a dual-era server.

    What it checks
        A modern client lists and calls a tool of each dual-era server behind the gateway, over HTTP and stdio, and gets its result.

    Why
        It is the least that a gateway does.

    How to fix
        Speak to each server in its own era, and to each client in its own.

    Reference
        Versioning, Compatibility Matrix; the specification asks no gateway to translate.
    """

    code = "GWP-045"
    servers = ("dh",)
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp045_@"),)
