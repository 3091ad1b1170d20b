"""GWP-023."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ArgumentNumbersChange(FidelityCheck):
    """Numbers in arguments reach the server.

    What it checks
        A client calls with integers beyond 2^53 and numbers beyond a double; the server gets the same numbers.

    Why
        An identifier that changes on its way selects something else, which is then read, or deleted.

    How to fix
        Pass the text of the arguments on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change arguments; all revisions.
    """

    code = "GWP-023"
    spec = "server/tools#calling-tools"
    tools = (ScriptedTool(name="gwp023_@"),)
    arguments = '{"id":9007199254740993,"wide":18446744073709551616,"huge":1e400,"digits":0.30000000000000004}'
    request_pointers = ("/arguments",)
