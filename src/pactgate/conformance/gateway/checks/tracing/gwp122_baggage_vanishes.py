"""GWP-122."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Family, FidelityCheck
from pactgate.conformance.gateway.checks.tracing.contexts import judge_context
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence


class BaggageVanishes(FidelityCheck):
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
    spec = "basic/index#meta"
    family = Family.TRACING
    tools = (ScriptedTool(name="gwp122_@"),)
    meta = '"baggage":"tenant=gwp%20122;ttl=1,user=%C3%A9"'

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_context(self, recording, "baggage", _keeps)


def _keeps(value: str) -> bool:
    return {"tenant=gwp%20122;ttl=1", "user=%C3%A9"} <= {entry.strip() for entry in value.split(",")}
