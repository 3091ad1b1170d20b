"""GWP-033."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ContentOrderChanges(FidelityCheck):
    """Content blocks arrive in their order, equal ones included.

    What it checks
        A tool answers with six blocks, two of them equal; the client gets six in the same order.

    Why
        Text and pictures refer to each other by their order.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-033"
    spec = "server/tools#tool-result"
    tools = (
        ScriptedTool(
            name="gwp033_@",
            result='"content":[{"type":"text","text":"3"},{"type":"text","text":"1"},{"type":"text","text":"1"},'
            '{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":""},{"type":"text","text":"2"}]',
        ),
    )
    pointers = ("/content",)
