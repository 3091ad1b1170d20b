"""GWP-002."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class HugeNumbersChange(FidelityCheck):
    """A number beyond the range of a double arrives as it was sent.

    What it checks
        A tool answers with 1e400, 1e-400 and a number of eighty digits; the client gets the same numbers, neither infinity nor zero
        nor text.

    Why
        JSON sets no bound to a number. A gateway that reads it as a double writes text that is no JSON, or another number.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-002"
    spec = "server/tools#tool-result"
    tools = (
        structured(
            "gwp002_@",
            '{"huge":1e400,"tiny":1e-400,"long":' + "7" * 80 + "}",
        ),
    )
    pointers = ("/structuredContent",)
