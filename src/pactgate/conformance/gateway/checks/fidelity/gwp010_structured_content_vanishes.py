"""GWP-010."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import RequirementLevel


class StructuredContentVanishes(FidelityCheck):
    """Structured content and content arrive side by side.

    What it checks
        A tool with an output schema answers with both, and with texts that differ; the client gets both.

    Why
        Programs read one, models the other. A tool with an output schema must return structured content, and clients refuse its
        result without.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Tools, Output Schema: a server with an output schema must provide structured results; 2025-06-18 and later.
    """

    code = "GWP-010"
    spec = "server/tools#output-schema"
    level = RequirementLevel.MUST
    tools = (
        ScriptedTool(
            name="gwp010_@",
            members='"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"type":"integer"}}}',
            result='"content":[{"type":"text","text":"in words"}],"structuredContent":{"a":1}',
        ),
    )
    pointers = ("/content", "/structuredContent")
