"""GWP-007."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class UnknownContentTypesBreak(FidelityCheck):
    """A content block of a type that nobody knows arrives.

    What it checks
        A tool answers with a text and a block of the type `hologram`; the client gets both.

    Why
        A new type of content reaches clients that know it only if what is between does not need to know it. Often the whole result
        is lost.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-007"
    spec = "server/tools#tool-result"
    tools = (
        ScriptedTool(
            name="gwp007_@",
            result='"content":[{"type":"text","text":"a"},{"type":"hologram","layers":[1,2]}]',
        ),
    )
    pointers = ("/content",)
