"""Definitions of tools are listed as the server wrote them."""

from __future__ import annotations

from pactgate.conformance.gateway.check import DefinitionCheck
from pactgate.conformance.gateway.script import ScriptedTool


class DefinitionMembersVanish(DefinitionCheck):
    """A tool definition arrives with members that nobody knows.

    What it checks
        A definition has a member `x-gwp`; it is listed with it.

    Why
        Extensions describe tools by further members, and clients that know them rely on them.

    Reference
        Schema reference, Tool; all revisions.
    """

    code = "GWP-017"
    spec = "schema#tool"
    tools = (ScriptedTool(name="gwp017_@", members='"inputSchema":{"type":"object"},"x-gwp":{"kept":[1,null]}'),)
    pointers = ("/x-gwp",)


class AnnotationsChange(DefinitionCheck):
    """The annotations of a tool arrive.

    What it checks
        A definition has all four hints and one that nobody knows; it is listed with all of them as they are.

    Why
        Clients ask before they call a destructive tool. A lost hint asks for nothing, or for everything.

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


class InputSchemaChanges(DefinitionCheck):
    """An input schema arrives with every keyword.

    What it checks
        An input schema has `$defs`, `$ref`, `oneOf`, `default`, `examples`, bounds and a keyword that nobody knows; it is listed
        with all of them.

    Why
        The model fills in arguments by this schema. Generators of schemas know a part of the keywords and lose the rest.

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


class OutputSchemaChanges(DefinitionCheck):
    """An output schema arrives.

    What it checks
        A definition has an output schema with nested properties and bounds; it is listed with it.

    Why
        Clients validate structured content by it, and generate code from it.

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


class TitlesAndIconsVanish(DefinitionCheck):
    """Title, description and icons of a tool arrive.

    What it checks
        A definition has a title, a description of two lines and an icon; it is listed with them.

    Why
        People choose by the title, the model by the description.

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


class DefinitionMetaVanishes(DefinitionCheck):
    """The `_meta` of a tool definition arrives.

    What it checks
        A definition has a key of another organisation in `_meta`; it is listed with it. Further keys are no failure.

    Why
        Interfaces inside of hosts, and registries, hang on such keys.

    Reference
        Base protocol, _meta; 2025-06-18 and later for tools.
    """

    code = "GWP-022"
    spec = "basic/index#meta"
    tools = (
        ScriptedTool(
            name="gwp022_@",
            members='"inputSchema":{"type":"object"},"_meta":{"example.com/ui":{"resource":"ui://x","n":1}}',
        ),
    )
    pointers = ("/_meta/example.com~1ui",)
