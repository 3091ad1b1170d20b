"""GWP-020."""

from __future__ import annotations

from pactgate.conformance.gateway.check import DefinitionCheck
from pactgate.conformance.gateway.script import ScriptedTool


class OutputSchemaChanges(DefinitionCheck):
    """An output schema arrives.

    What it checks
        A definition has an output schema with nested properties and bounds; it is listed with it.

    Why
        Clients validate structured content by it, and generate code from it.

    How to fix
        Pass the definition on as the server wrote it; change its name only.

    Reference
        Tools, Output Schema; 2025-06-18 and later.
    """

    code = "GWP-020"
    spec = "server/tools#output-schema"
    tools = (
        ScriptedTool(
            name="gwp020_@",
            members='"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer","minimum":1}}},"maxItems":5}},"required":["rows"]}',
        ),
    )
    pointers = ("/outputSchema",)
