"""GWP-016."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ToolErrorsChange(FidelityCheck):
    """A failed tool call is still a failed tool call.

    What it checks
        A tool answers with `isError: true` and a text; the client gets a result with both, not an error and not a success.

    Why
        The model sees the text and corrects itself. Without the flag the failure looks like a success.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Tools, Error Handling; all revisions.
    """

    code = "GWP-016"
    spec = "server/tools#error-handling"
    tools = (ScriptedTool(name="gwp016_@", result='"content":[{"type":"text","text":"disk full"}],"isError":true'),)
    pointers = ("/content", "/isError")
