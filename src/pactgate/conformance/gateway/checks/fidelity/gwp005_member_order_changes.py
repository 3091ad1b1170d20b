"""GWP-005."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class MemberOrderChanges(FidelityCheck):
    """The members of an object arrive in their order.

    What it checks
        A tool answers with an object whose members are in no alphabetical order; the client gets them in this order.

    Why
        Models read the text from the beginning, prompt caches and digests compare it byte by byte.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-005"
    spec = "server/tools#tool-result"
    tools = (
        structured(
            "gwp005_@",
            '{"zebra":1,"apple":2,"10":3,"2":4,"mango":{"z":1,"a":2}}',
        ),
    )
    pointers = ("/structuredContent",)
    as_written = True
