"""GWP-021."""

from __future__ import annotations

from pactgate.conformance.gateway.check import DefinitionCheck
from pactgate.conformance.gateway.script import ScriptedTool


class TitlesAndIconsVanish(DefinitionCheck):
    """Title, description and icons of a tool arrive.

    What it checks
        A definition has a title, a description of two lines and an icon; it is listed with them.

    Why
        People choose by the title, the model by the description.

    How to fix
        Pass the definition on as the server wrote it; change its name only.

    Reference
        Tools, Tool; icons since 2025-11-25.
    """

    code = "GWP-021"
    spec = "server/tools#tool"
    tools = (
        ScriptedTool(
            name="gwp021_@",
            members='"title":"A title","description":"One line.\\nAnother: caf\\u00e9.","icons":[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48"]}],"inputSchema":{"type":"object"}',
        ),
    )
    pointers = ("/title", "/description", "/icons")
