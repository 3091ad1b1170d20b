"""GWP-122."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.tracing.contexts import ContextCheck
from pactgate.conformance.gateway.script import ScriptedTool


class BaggageVanishes(ContextCheck):
    """Baggage reaches the server.

    What it checks
        A client calls with `baggage` in `_meta`; the server gets both entries, with their property and escapes. Further entries are no
        failure.

    Why
        Tenants and experiments travel in it, from the agent to the database.

    How to fix
        Pass `baggage` on.

    Reference
        Base protocol, _meta: `baggage` in the format of W3C Baggage; 2026-07-28.
    """

    code = "GWP-122"
    key = "baggage"
    tools = (ScriptedTool(name="gwp122_@"),)
    meta = '"baggage":"tenant=gwp%20122;ttl=1,user=%C3%A9"'

    def keeps(self, value: str) -> bool:
        return {"tenant=gwp%20122;ttl=1", "user=%C3%A9"} <= {entry.strip() for entry in value.split(",")}
