"""GWP-014."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import structured


class LoneSurrogatesBreak(FidelityCheck):
    """Half a surrogate pair does not break the result.

    What it checks
        A tool answers with the escape of half a surrogate pair; the client gets a result, and the text beside it.

    Why
        Servers that cut text by length send such escapes. JSON allows them; a gateway that fails at them loses the whole result.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    code = "GWP-014"
    spec = "server/tools#tool-result"
    tools = (structured("gwp014_@", '{"half":"\\ud83d","beside":"whole"}'),)
    runs_alone = True
    """A gateway may lose its connection to the server by such an answer; that is told once."""
    answer_s = 6.0
    """The gateways that give no answer should not cost a run its time."""
    pointers = ("/structuredContent/beside",)
