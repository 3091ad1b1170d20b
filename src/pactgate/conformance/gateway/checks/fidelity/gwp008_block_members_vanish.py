"""GWP-008."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class BlockMembersVanish(FidelityCheck):
    """A content block arrives with all its members.

    What it checks
        A tool answers with a text that has annotations, `_meta` and a member that nobody knows; the client gets all of it.

    Why
        Annotations say for whom a text is; other members belong to extensions.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-008"
    spec = "server/tools#tool-result"
    tools = (
        ScriptedTool(
            name="gwp008_@",
            result='"content":[{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5,"x":1},'
            '"_meta":{"example.com/a":1},"x-gwp":true}]',
        ),
    )
    pointers = ("/content",)
