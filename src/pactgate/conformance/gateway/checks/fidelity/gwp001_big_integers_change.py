"""GWP-001."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class BigIntegersChange(FidelityCheck):
    """An integer beyond 2^53 arrives with all its digits.

    What it checks
        A tool answers with 9007199254740993, 18446744073709551616 and -9223372036854775809 in its structured content; the client
        gets the same integers.

    Why
        Identifiers are such numbers. A gateway that reads them as floating point hands out the identifier of something else.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-001"
    spec = "server/tools#tool-result"
    tools = (
        structured(
            "gwp001_@",
            '{"one":9007199254740993,"two":18446744073709551616,"three":-9223372036854775809}',
        ),
    )
    pointers = ("/structuredContent",)
