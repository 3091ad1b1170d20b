"""GWP-034."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import Tool


class UndeclaredStructuredContentVanishes(FidelityCheck):
    """Structured content arrives from a tool without an output schema.

    What it checks
        A tool declares no output schema and returns structured content; the client gets it.

    Why
        Servers return structured content without declaring it. A gateway that passes on only what is declared loses the result.

    How to fix
        Pass the result on as the server wrote it.

    Reference
        Tools, Structured Content: an output schema is optional; since 2025-06-18.
    """

    code = "GWP-034"
    spec = "server/tools#structured-content"
    tools = (
        Tool(name="gwp034_@", result='"content":[{"type":"text","text":"in words"}],"structuredContent":{"a":34}'),
    )
    pointers = ("/content", "/structuredContent")
