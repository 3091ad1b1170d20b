"""GWP-043."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.eras.pairing import PairingCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ModernClientMissesModernServer(PairingCheck):
    """A modern client calls a tool of a modern server.

    What it checks
        A modern client lists and calls a tool of each modern server behind the gateway, over HTTP and stdio, and gets its result.

    Why
        It is the least that a gateway does.

    How to fix
        Speak to each server in its own era, and to each client in its own.

    Reference
        Versioning, Compatibility Matrix; the specification asks no gateway to translate.
    """

    code = "GWP-043"
    servers = (
        "mh",
        "ms",
    )
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp043_@"),)
