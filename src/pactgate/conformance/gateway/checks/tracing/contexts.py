"""What of the `_meta` of a call reaches the server: trace, state and baggage. Must not: follow a trace."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Final

from pactgate.conformance.gateway.check import FidelityCheck, value_of
from pactgate.conformance.gateway.exact_json import at
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence


class ContextCheck(FidelityCheck):
    """What a client says under `key` of the `_meta` of a call reaches the server."""

    spec = "basic/index#meta"
    key: ClassVar[str]

    @abstractmethod
    def keeps(self, value: str) -> bool:
        """Whether this may be what the server got."""

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        key = self.key
        for exchange in recording.exchanges():
            route = exchange.route
            got = recording.at_server(route.server, exchange.request.label, is_sent=False)
            if not got:
                yield self.evidence(exchange.index, "", f"{route}: the server never got the call")
            for index, frame in got:
                value = at(value_of(frame), f"/params/_meta/{key}")
                if not isinstance(value, str) or not self.keeps(value):
                    came = f"{value:.80}" if isinstance(value, str) else "nothing"
                    yield self.evidence(index, f"/params/_meta/{key}", f"{route}: the server got {came}")


_TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
_PARENT: Final = re.compile(rf"00-{_TRACE}-(?!0{{16}})[0-9a-f]{{16}}-[0-9a-f]{{2}}")


class TraceBreaks(ContextCheck):
    """A trace that begins before the gateway goes on behind it.

    What it checks
        A client calls with `traceparent` in `_meta`; the server gets one of the same trace. The parent may be a span of the gateway.

    Why
        With another trace, or none, nobody sees which call of the agent a slow query belongs to.

    How to fix
        Pass `traceparent` on, or make a span of your own in the same trace.

    Reference
        Base protocol, _meta: `traceparent` in the format of W3C Trace Context; 2026-07-28.
    """

    code = "GWP-120"
    key = "traceparent"
    tools = (ScriptedTool(name="gwp120_@"),)
    meta = f'"traceparent":"00-{_TRACE}-00f067aa0ba902b7-01"'

    @abstractmethod
    def keeps(self, value: str) -> bool:
        return _PARENT.fullmatch(value) is not None


class TraceStateVanishes(ContextCheck):
    """The state of a trace reaches the server.

    What it checks
        A client calls with `traceparent` and `tracestate` in `_meta`; the server gets both entries of the state, in their order. An
        entry of the gateway may stand before them.

    Why
        Tracing systems keep their sampling and their own parents in it.

    How to fix
        Pass `tracestate` on, with your own entry at the left if you have one.

    Reference
        Base protocol, _meta: `tracestate` in the format of W3C Trace Context; 2026-07-28.
    """

    code = "GWP-121"
    key = "tracestate"
    tools = (ScriptedTool(name="gwp121_@"),)
    meta = '"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"gwp=a:1,other@gwp=b2"'

    @abstractmethod
    def keeps(self, value: str) -> bool:
        entries = [entry.strip() for entry in value.split(",")]
        return [entry for entry in entries if entry in ("gwp=a:1", "other@gwp=b2")] == ["gwp=a:1", "other@gwp=b2"]


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

    @abstractmethod
    def keeps(self, value: str) -> bool:
        return {"tenant=gwp%20122;ttl=1", "user=%C3%A9"} <= {entry.strip() for entry in value.split(",")}
