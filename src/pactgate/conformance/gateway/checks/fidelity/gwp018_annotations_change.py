"""GWP-018."""

from __future__ import annotations

from pactgate.conformance.gateway.check import DefinitionCheck
from pactgate.conformance.gateway.script import ScriptedTool


class AnnotationsChange(DefinitionCheck):
    """The annotations of a tool arrive.

    What it checks
        A definition has all four hints and one that nobody knows; it is listed with all of them as they are.

    Why
        Clients ask before they call a destructive tool. A lost hint asks for nothing, or for everything.

    How to fix
        Pass the definition on as the server wrote it; change its name only.

    Reference
        Schema reference, ToolAnnotations; 2025-03-26 and later.
    """

    code = "GWP-018"
    spec = "schema#toolannotations"
    tools = (
        ScriptedTool(
            name="gwp018_@",
            members='"inputSchema":{"type":"object"},"annotations":{"title":"T","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"x-gwp":1}',
        ),
    )
    pointers = ("/annotations",)
