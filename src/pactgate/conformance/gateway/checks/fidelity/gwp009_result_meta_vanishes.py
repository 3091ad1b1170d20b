"""GWP-009."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ResultMetaVanishes(FidelityCheck):
    """The `_meta` of a result arrives, keys of others included.

    What it checks
        A tool answers with two keys of other organisations in `_meta`; the client gets both as they were. Further keys are no
        failure.

    Why
        `_meta` is how servers and clients extend the protocol without asking those between them.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again. Add keys of your own under your own
        prefix.

    Reference
        Base protocol, _meta; all revisions.
    """

    code = "GWP-009"
    spec = "basic/index#meta"
    tools = (ScriptedTool(name="gwp009_@", meta='"example.com/a":{"n":1,"none":null},"example.org/b":"x"'),)
    pointers = ("/_meta/example.com~1a", "/_meta/example.org~1b")
