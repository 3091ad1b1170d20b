"""GWP-004."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class NullsVanish(FidelityCheck):
    """A member that is null arrives as null.

    What it checks
        A tool answers with members that are null, in an object and in an array; the client gets them.

    Why
        Null says that a value is known to be absent, and is required by many schemas. Serialisers that drop it break them.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-004"
    spec = "server/tools#tool-result"
    tools = (
        structured(
            "gwp004_@",
            '{"none":null,"list":[null,1,null],"deep":{"none":null}}',
        ),
    )
    pointers = ("/structuredContent",)
