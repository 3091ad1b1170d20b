"""What the checks of trace contexts share: what of the `_meta` of a call reached the server. Must not: follow a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pactgate.conformance.gateway.check import Check, value_of
from pactgate.conformance.gateway.exact_json import at
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence


def judge_context(
    check: Check, recording: CheckRecording, key: str, keeps: Callable[[str], bool]
) -> Iterator[Evidence]:
    """`keeps` says whether this may be what the server got under this key."""
    for exchange in recording.exchanges():
        route = exchange.route
        got = recording.at_server(route.server, exchange.request.label, is_sent=False)
        if not got:
            yield check.evidence(exchange.index, "", f"{route}: the server never got the call")
        for index, frame in got:
            value = at(value_of(frame), f"/params/_meta/{key}")
            if not isinstance(value, str) or not keeps(value):
                came = f"{value:.80}" if isinstance(value, str) else "nothing"
                yield check.evidence(index, f"/params/_meta/{key}", f"{route}: the server got {came}")
