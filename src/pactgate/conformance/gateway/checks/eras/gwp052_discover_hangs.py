"""GWP-052."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.rule import Evidence


class DiscoverHangs(Check):
    """`server/discover` is answered at once, so that clients of both eras can fall back.

    What it checks
        A client sends `server/discover` with all headers of the modern era; within five seconds there is a result, a JSON-RPC
        error, or HTTP 400, 404 or 405.

    Why
        Clients that speak both eras send it first. They fall back on such an answer, and not on silence, a 5xx or a closed
        connection.

    How to fix
        Refuse what you do not know with an error of JSON-RPC.

    Reference
        Streamable HTTP, Backward Compatibility; 2026-07-28.
    """

    code = "GWP-052"
    spec = "basic/transports/streamable-http"
    family = Family.ERAS
    eras = ("legacy", "modern")

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = lab.unopened(ClientRoute("modern", route.server))
            await client.request(lab.record_on(route), "server/discover", timeout_s=5)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("server/discover"):
            response = exchange.response
            message = plain_value(response)
            is_told = "result" in message or "error" in message
            if response is None or not (is_told or response.status in (400, 404, 405)) or response.status >= 500:
                what = "nothing" if response is None or not response.status else f"HTTP {response.status}"
                yield self.evidence(exchange.index, "", f"the answer is {what}")
