"""What the checks of progress and log messages share: calls beside each other, and the notifications that came.

Must not: decide what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from pactgate.conformance.gateway.check import Check, value_of
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, Frame, ScriptedSide
from pactgate.conformance.gateway.script import ScriptStep, named

PROGRESS: Final = "notifications/progress"
LOG: Final = "notifications/message"
WORK_S: Final = 0.05
"""How long a server works on after it has told something."""
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"


class Notice(Struct, frozen=True):
    """One notification that a client got."""

    index: int
    frame: Frame
    params: dict[str, Any]


def step(progress: str, message: str = "") -> ScriptStep:
    """A server reports progress, if the client gave a token, and works on: the SDKs lose what comes in one read with the response."""
    params = f'"progressToken":@TOKEN@,"progress":{progress}' + (f',"message":"{message}"' if message else "")
    return ScriptStep("notify", data=f'{{"jsonrpc":"2.0","method":"{PROGRESS}","params":{{{params}}}}}', seconds=WORK_S)


def notices(recording: CheckRecording, method: str) -> Iterator[Notice]:
    """The notifications of this method that clients got, on any stream."""
    for index, frame in enumerate(recording.frames):
        if frame.side is ScriptedSide.CLIENT and not frame.is_sent:
            message = value_of(frame)
            if isinstance(message, dict) and message.get("method") == method:
                params = message.get("params")
                yield Notice(index, frame, params if isinstance(params, dict) else {})


async def call_on_all(check: Check, lab: Lab, tokens: tuple[str, ...], tool: int = 0) -> None:
    """Call a tool on every route, at the same time, once with each token."""
    async with lab.listeners(check) as clients:
        calls = [call(check, lab, route, client, token, tool) for route, client in clients.items() for token in tokens]
        await lab.in_turn(calls)


async def call(
    check: Check, lab: Lab, route: ClientRoute, client: ScriptedClient, token: str = "", tool: int = 0
) -> None:
    """Call with a progress token; `@` in it is the server."""
    name = check.tools[tool].name
    meta = f'"progressToken":{named(token, route.server)}' if token else ""
    label = named(name, route.server)
    await client.call(lab.record_on(route), lab.exposed(route, name), meta=meta, label=label, timeout_s=lab.call_s)


def require_progress(lab: Lab) -> None:
    """Raises NotApplicableError where no progress came at all: that is another check's finding."""
    if not any(frame.side is ScriptedSide.CLIENT and f'"{PROGRESS}"' in frame.data for frame in lab.frames):
        raise NotApplicableError("No progress arrives at all (GWP-080).")


def logging_clients(clients: dict[ClientRoute, ScriptedClient]) -> dict[ClientRoute, ScriptedClient]:
    """Those whose gateway announces that it logs. Raises NotApplicableError where there is none."""
    found = {route: client for route, client in clients.items() if '"logging"' in client.opening}
    if not found:
        raise NotApplicableError("It does not announce the capability `logging`.")
    return found


async def set_level(lab: Lab, clients: dict[ClientRoute, ScriptedClient], level: str) -> None:
    """Each legacy client sets the level of its session."""
    for client, route in {client: route for route, client in clients.items() if route.era == "legacy"}.items():
        await client.request(lab.record_on(route), "logging/setLevel", f'"level":"{level}"', timeout_s=lab.call_s)


async def call_with_level(check: Check, lab: Lab, clients: dict[ClientRoute, ScriptedClient], level: str) -> None:
    """Call the first tool on every route; modern clients say the level with the call."""
    calls = []
    for route, client in clients.items():
        meta = f'"{LOG_LEVEL}":"{level}"' if route.era == "modern" and level else ""
        tool, label = lab.exposed(route, check.tools[0].name), named(check.tools[0].name, route.server)
        calls.append(client.call(lab.record_on(route), tool, meta=meta, label=label, timeout_s=lab.call_s))
    await lab.in_turn(calls)
