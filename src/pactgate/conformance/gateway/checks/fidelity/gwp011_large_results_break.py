"""GWP-011."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class LargeResultsBreak(FidelityCheck):
    """A result of 512 KiB arrives whole.

    What it checks
        A tool answers with a text of 512 KiB; the client gets every character.

    Why
        Files and pages are of this size. A gateway that cuts them without a word hands out half a file as the whole.

    How to fix
        Raise the limit, or refuse what is larger with an error that says so.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-011"
    spec = "server/tools#tool-result"
    tools = (
        ScriptedTool(name="gwp011_@", result=f'"content":[{{"type":"text","text":"{"0123456789abcdef" * 32768}"}}]'),
    )
    pointers = ("/content",)
