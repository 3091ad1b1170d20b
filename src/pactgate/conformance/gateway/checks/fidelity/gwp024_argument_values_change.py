"""GWP-024."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ArgumentValuesChange(FidelityCheck):
    """Nulls, empty values and text in arguments reach the server.

    What it checks
        A client calls with null, empty values, an empty member name, escapes and a deep value; the server gets the same.

    Why
        Null often means "delete this". Dropped or filled in, the call does something else.

    How to fix
        Pass the text of the arguments on, instead of a value that was parsed and written again. Fill in no defaults.

    Reference
        Nothing in the specification lets an intermediary change arguments; all revisions.
    """

    code = "GWP-024"
    spec = "server/tools#calling-tools"
    tools = (ScriptedTool(name="gwp024_@"),)
    arguments = (
        '{"none":null,"text":"caf\\u00e9 \\ud83d\\ude00 \\u0000","list":[],"object":{},"":"empty name",'
        '"deep":{"a":{"b":{"c":{"d":[[null]]}}}},"a/b~c":true}'
    )
    request_pointers = ("/arguments",)
