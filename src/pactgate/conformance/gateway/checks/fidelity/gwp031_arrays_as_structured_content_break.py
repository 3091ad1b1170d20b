"""GWP-031."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ArraysAsStructuredContentBreak(FidelityCheck):
    """Structured content that is no object arrives at a modern client.

    What it checks
        A tool of a modern server answers with an array as structured content; a modern client gets it.

    Why
        Since 2026-07-28 structured content is any JSON value.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Tools, Structured Content; 2026-07-28.
    """

    code = "GWP-031"
    spec = "server/tools#structured-content"
    servers = ("mh", "dh", "ms")
    eras = ("modern",)
    since = "2026-07-28"
    tools = (ScriptedTool(name="gwp031_@", result='"content":[],"structuredContent":[1,"two",null]'),)
    pointers = ("/structuredContent",)
