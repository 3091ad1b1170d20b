"""GWP-034."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class StructuredContentAloneVanishes(FidelityCheck):
    """Structured content arrives also from a tool that returns nothing else and declares no output schema.

    What it checks
        A tool without an output schema returns structured content and an empty `content`; the client gets it.

    Why
        Servers do so. A gateway that passes on only what is declared, or only what has a text beside it, loses the whole result.

    How to fix
        Pass the result on as the server wrote it.

    Reference
        Tools, Structured Content: the text beside it is a SHOULD, the output schema optional; since 2025-06-18.
    """

    code = "GWP-034"
    spec = "server/tools#structured-content"
    tools = (ScriptedTool(name="gwp034_@", result='"content":[],"structuredContent":{"a":34}'),)
    pointers = ("/structuredContent",)
