"""The one place where a call leaves the gateway: once, under the upstream's own name, in the upstream's own era.

A call waits here for its turn where a server has as many as it may have. Must not: repeat anything (D6, S4/NONGOALS). The caller's
arguments go out as the bytes that came in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.core.model import CallerChannel
from pactgate.pipeline.tool_call import Call
from pactgate.policy.overload import Overload
from pactgate.policy.recall import Recall
from pactgate.protocol import headers, messages
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.connect import Session
from pactgate.upstreams.inside import UNDER_WAY

PROGRESS: Final = "notifications/progress"


class Dispatch:
    """Send the call to its server, once, and keep the answer as the server wrote it."""

    name = "dispatch"

    def __init__(self, connections: Connections, overload: Overload, recall: Recall) -> None:
        self._connections = connections
        self._overload = overload
        self._recall = recall

    async def __call__(self, call: Call) -> None:
        server = call.bound.tool.server
        turn = self._overload.enter(server)
        if turn is not None:
            await turn
        try:
            session = self._connections.connected(server) or await self._connections.session(server)
            await (self._send_inside(call, session) if session.is_inside else self._send(call, session))
        finally:
            self._overload.leave(server)
            if call.is_sent and call.bound.plan.is_writer:
                self._recall.drop_server(server, by=call.lease)  # whatever came back, it may have changed something

    async def _send_inside(self, call: Call, session: Session) -> None:
        """A server inside the gateway may know whose call it is; no other ever learns it."""
        before = UNDER_WAY.set(call.ctx)
        try:
            await self._send(call, session)
        finally:
            UNDER_WAY.reset(before)

    async def _send(self, call: Call, session: Session) -> None:
        tool, token = call.bound.tool, call.progress_token
        call.upstream_era = session.identity.era
        call.ctx.upstream_revision = session.identity.version
        call.ctx.effects_level = session.effects_level
        call.members["name"] = Raw(encode_json(tool.name))
        call.is_sent = True
        call.result = await session.peer.request(
            "tools/call",
            call.members,
            meta=call.meta,
            on_progress=None if token is None else _relay(call.ctx.caller.channel, token),
            name=tool.name,
            headers=_mirrored(call, session),
        )


def _relay(channel: CallerChannel, token: Raw) -> Callable[[dict[str, Raw]], None]:
    """Progress for the caller, under the token the caller chose."""

    def relay(members: dict[str, Raw]) -> None:
        told: dict[str, Any] = {"progressToken": token, **members}
        channel.notify(PROGRESS, encode_json(told))

    return relay


def _mirrored(call: Call, session: Session) -> tuple[tuple[str, str], ...]:
    params = call.bound.tool.header_params
    if not params or not session.is_modern_http:
        return ()
    return headers.mirror(params, messages.value(call.members.get("arguments", Raw(b"{}"))))
