"""What the checks of the front door share: bad requests to every address, and an ordinary one after them. Must not: know a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from msgspec import Struct

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedExchange
from pactgate.conformance.rule import Evidence

META: Final = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},'
    '"io.modelcontextprotocol/clientInfo":{"name":"gwp","version":"1"}}'
)
BAD: Final = "bad"
AFTER: Final = "after"
_ANSWER_S: Final = 8.0


class BadRequest(Struct, frozen=True):
    """`data` is the body, byte for byte; `headers` are set, or left out (None). `method` goes into the modern headers."""

    data: str
    headers: Mapping[str, str | None] = {}
    method: str = "tools/list"


class FrontDoorCheck(Check):
    """Each bad request is refused, and the request after it is answered."""

    needs_gateway = True
    legacy: ClassVar[tuple[BadRequest, ...]] = ()
    modern: ClassVar[tuple[BadRequest, ...]] = ()
    """What clients of this era send."""

    async def play(self, lab: Lab) -> None:
        lab.require_gateway("Without a gateway between, the front door is that of the server.")
        for route in lab.addresses(self):
            record = lab.record_on(route)
            client = await lab.new_client(route)
            for bad in self.modern if route.era == "modern" else self.legacy:
                sent = client.send(record, bad.data, bad.method, label=BAD, headers=bad.headers, timeout_s=_ANSWER_S)
                async for _ in sent:
                    continue
            await client.request(record, "tools/list", label=AFTER, timeout_s=_ANSWER_S)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges(BAD):
            why = self.why_wrong(exchange)
            if why:
                yield self.evidence(exchange.index, "", f"{exchange.route.era} client: {why}")
        for exchange in recording.exchanges(AFTER):
            if "result" not in plain_value(exchange.response):
                yield self.evidence(
                    exchange.index, "", f"{exchange.route.era} client: the request after it has no result"
                )

    def why_wrong(self, exchange: ScriptedExchange) -> str:
        """What is wrong with the answer to a bad request, or nothing."""
        if is_refused(exchange):
            return ""
        is_fault = exchange.response is not None and exchange.response.status >= 500
        return f"{'it fails' if is_fault else 'it is not refused'}: {answer_to(exchange)}"


def is_refused(exchange: ScriptedExchange) -> bool:
    """Whether the answer is an error of JSON-RPC, or a status that blames the client."""
    response = exchange.response
    if response is None or response.status >= 500:
        return False
    return "error" in plain_value(response) or 400 <= response.status < 500


def answer_to(exchange: ScriptedExchange) -> str:
    response = exchange.response
    if response is None or not response.status:
        return "nothing came back" if response is None else response.label
    return f"HTTP {response.status} {response.data[:80]}".strip()
