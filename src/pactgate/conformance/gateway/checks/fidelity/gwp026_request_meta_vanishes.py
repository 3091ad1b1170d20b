"""GWP-026."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class RequestMetaVanishes(FidelityCheck):
    """The `_meta` of a request reaches the server, keys of others included.

    What it checks
        A client calls with a key of another organisation in `_meta`; the server gets it as it was. Further keys are no failure.

    Why
        Tenants, experiments and extensions travel in `_meta`.

    How to fix
        Pass on the keys that you do not own.

    Reference
        Base protocol, _meta; all revisions.
    """

    code = "GWP-026"
    spec = "basic/index#meta"
    tools = (ScriptedTool(name="gwp026_@"),)
    meta = '"example.com/tenant":{"n":1,"none":null}'
    request_pointers = ("/_meta/example.com~1tenant",)
