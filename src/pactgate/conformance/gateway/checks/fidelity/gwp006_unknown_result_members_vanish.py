"""GWP-006."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class UnknownResultMembersVanish(FidelityCheck):
    """A member of a result that nobody knows arrives.

    What it checks
        A tool answers with a member `x-gwp` beside `content`; the client gets it.

    Why
        Revisions and extensions add members. A gateway that knows one revision only cuts off what clients and servers agreed on.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Schema reference, Result: a result may have further members; all revisions.
    """

    code = "GWP-006"
    spec = "schema#result"
    tools = (ScriptedTool(name="gwp006_@", result='"content":[],"x-gwp":{"kept":[1,null]}'),)
    pointers = ("/x-gwp",)
