"""GWP-027."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class RequestMembersVanish(FidelityCheck):
    """A member of the params that nobody knows reaches the server.

    What it checks
        A client calls with a member `x-gwp` beside `arguments`; the server gets it.

    Why
        Extensions add members to requests. A gateway that knows one revision only cuts them off.

    How to fix
        Pass on the members that you do not know.

    Reference
        Schema reference, CallToolRequest; all revisions.
    """

    code = "GWP-027"
    spec = "schema#calltoolrequestparams"
    tools = (ScriptedTool(name="gwp027_@"),)
    params = '"x-gwp":{"kept":[1,null]}'
    request_pointers = ("/x-gwp",)
