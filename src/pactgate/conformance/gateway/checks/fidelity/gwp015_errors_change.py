"""GWP-015."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ErrorsChange(FidelityCheck):
    """An error arrives with its code and data.

    What it checks
        A tool answers with an error that has a code of its own and data; the client gets the same code and data.

    Why
        Clients decide by the code whether to try again, to sign in or to ask. An error as a text, or with another code, can only be
        shown.

    How to fix
        Pass the error object of the server on.

    Reference
        JSON-RPC 2.0, Error object; all revisions.
    """

    code = "GWP-015"
    spec = "basic/index#responses"
    tools = (
        ScriptedTool(
            name="gwp015_@",
            error='{"code":-31999,"message":"gwp says no","data":{"reason":"gwp","n":7}}',
        ),
    )
    member = "error"
    pointers = ("/code", "/data")
