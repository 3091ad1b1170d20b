"""GWP-025."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ArgumentNotationChanges(FidelityCheck):
    """Arguments keep their order and the notation of their numbers.

    What it checks
        A client calls with members in no alphabetical order, 1.0 and 1E+2; the server gets them as they were written.

    Why
        Servers sign and digest arguments, and some languages tell 1 and 1.0 apart.

    How to fix
        Pass the text of the arguments on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change arguments; all revisions.
    """

    code = "GWP-025"
    spec = "server/tools#calling-tools"
    tools = (ScriptedTool(name="gwp025_@"),)
    arguments = '{"zebra":1.0,"apple":1,"10":1E+2,"2":[]}'
    request_pointers = ("/arguments",)
    as_written = True
