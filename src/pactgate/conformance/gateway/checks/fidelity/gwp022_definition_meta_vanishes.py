"""GWP-022."""

from __future__ import annotations

from pactgate.conformance.gateway.check import DefinitionCheck
from pactgate.conformance.gateway.script import ScriptedTool


class DefinitionMetaVanishes(DefinitionCheck):
    """The `_meta` of a tool definition arrives.

    What it checks
        A definition has a key of another organisation in `_meta`; it is listed with it. Further keys are no failure.

    Why
        Interfaces inside of hosts, and registries, hang on such keys.

    How to fix
        Pass the definition on as the server wrote it; change its name only.

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
