"""What the checks of credentials share: calls with headers that end at the gateway, and requests without credentials.

Must not: put a credential of the operator into a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pactgate.conformance.gateway.check import Check
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, Frame, ScriptedSide
from pactgate.conformance.gateway.script import named
from pactgate.conformance.rule import Evidence

WRONG: Final = "Bearer gwp-nobody-gave-this-out-2f9d1c7b4e6a8053"
REFUSED: Final = (401, 403)


def require_end(lab: Lab) -> None:
    if lab.gateway.is_direct:
        raise NotApplicableError("Without a gateway between, the server itself is who the client's headers are for.")


async def play_headers(check: Check, lab: Lab, headers: Mapping[str, str]) -> None:
    """Call on every route with these headers. Raises NotApplicableError where all of the calls are refused."""
    require_end(lab)
    served = []
    for route in lab.routes(check):
        name = check.tools[0].name
        tool, label = lab.exposed(route, name), named(name, route.server)
        client = await lab.client(route)
        frame = await client.call(lab.record_on(route), tool, label=label, headers=headers, timeout_s=lab.call_s)
        served.append(frame.status not in REFUSED)
    if not any(served):
        raise NotApplicableError("It refuses a call with these headers; give it a credential with --header.")


def judge_header(check: Check, recording: CheckRecording, name: str) -> Iterator[Evidence]:
    """No server was sent a header of this name: it has no credentials at the scripted servers, so it would be the client's."""
    for index, frame in enumerate(recording.frames):
        if frame.side is ScriptedSide.SERVER and not frame.is_sent and header(frame, name):
            yield check.evidence(index, "", f"{frame.who} got the header {name}")


async def uncredited(lab: Lab, route: ClientRoute, label: str, headers: Mapping[str, str | None]) -> Frame:
    """A first request of a client that has none of the operator's credentials."""
    client = ScriptedClient(lab.gateway.http, lab.gateway.urls[route.server], route.era)
    info = '"clientInfo":{"name":"gwp","version":"1"}'
    members = f'"protocolVersion":"{client.version}","capabilities":{{}},{info}' if route.era == "legacy" else ""
    method = "initialize" if route.era == "legacy" else "server/discover"
    return await client.request(
        lab.record_on(route), method, members, label=label, headers=headers, timeout_s=lab.call_s
    )


def header(frame: Frame, name: str) -> str:
    """The first header of this name, or nothing."""
    return next((value for key, value in frame.headers if key.lower() == name), "")
