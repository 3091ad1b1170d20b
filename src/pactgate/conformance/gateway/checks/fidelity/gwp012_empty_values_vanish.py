"""GWP-012."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class EmptyValuesVanish(FidelityCheck):
    """Empty strings, arrays and objects arrive.

    What it checks
        A tool answers with an empty text, array, object and an empty member name; the client gets them.

    Why
        Empty is an answer: no rows, no text. Serialisers that drop it break schemas with `required`.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-012"
    spec = "server/tools#tool-result"
    tools = (structured("gwp012_@", '{"text":"","list":[],"object":{},"":"empty name"}'),)
    pointers = ("/structuredContent",)
