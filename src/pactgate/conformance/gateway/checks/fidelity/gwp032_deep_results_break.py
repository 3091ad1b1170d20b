"""GWP-032."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class DeepResultsBreak(FidelityCheck):
    """A result of fifty levels arrives.

    What it checks
        A tool answers with an array nested fifty times; the client gets it.

    Why
        Trees, syntax and documents are as deep.

    How to fix
        Raise the limit, or refuse what is deeper with an error that says so.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-032"
    spec = "server/tools#tool-result"
    tools = (
        structured(
            "gwp032_@",
            '{"deep":' + "[" * 50 + "]" * 50 + "}",
        ),
    )
    pointers = ("/structuredContent",)
