"""What the checks of trace contexts share: what of the `_meta` of a call reached the server. Must not: follow a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pactgate.conformance.gateway.check import Family, FidelityCheck, value_of
from pactgate.conformance.gateway.exact_json import at
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence


class ContextCheck(FidelityCheck):
    """What a client says under `key` of the `_meta` of a call reaches the server."""

    family = Family.TRACING
    spec = "basic/index#meta"
    key: ClassVar[str]

    def keeps(self, value: str) -> bool:
        """Whether this may be what the server got."""
        raise NotImplementedError

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
