"""GWP-003."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class NumberNotationChanges(FidelityCheck):
    """A number keeps its notation.

    What it checks
        A tool answers with 1.0, 1, 1E+2, 0.30000000000000004 and -0; the client gets the same digits.

    Why
        Some languages tell integers and floating point numbers apart by the notation, and signatures and digests are made of the
        text.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-003"
    spec = "server/tools#tool-result"
    tools = (
        structured(
            "gwp003_@",
            '{"float":1.0,"integer":1,"exponent":1E+2,"digits":0.30000000000000004,"minus":-0}',
        ),
    )
    pointers = ("/structuredContent",)
    as_written = True
