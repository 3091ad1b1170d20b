"""GWP-019."""

from __future__ import annotations

from pactgate.conformance.gateway.check import DefinitionCheck
from pactgate.conformance.gateway.script import ScriptedTool


class InputSchemaChanges(DefinitionCheck):
    """An input schema arrives with every keyword.

    What it checks
        An input schema has `$defs`, `$ref`, `oneOf`, `default`, `examples`, bounds and a keyword that nobody knows; it is listed
        with all of them.

    Why
        The model fills in arguments by this schema. Generators of schemas know a part of the keywords and lose the rest.

    How to fix
        Pass the definition on as the server wrote it; change its name only.

    Reference
        Tools, Tool: the schema is any JSON Schema 2020-12; all revisions.
    """

    code = "GWP-019"
    spec = "server/tools#tool"
    tools = (
        ScriptedTool(
            name="gwp019_@",
            members='"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},"properties":{"tree":{"$ref":"#/$defs/n"},"one":{"oneOf":[{"type":"string","minLength":1},{"type":"null"}]},"max":{"type":"integer","maximum":100,"default":1,"examples":[2]},"x":{"x-gwp":true}},"required":["one"],"additionalProperties":false}',
        ),
    )
    pointers = ("/inputSchema",)
