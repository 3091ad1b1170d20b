"""The one place where a call leaves the gateway: once, under the upstream's own name, in the upstream's own era.

Must not: repeat anything (D6, S4/NONGOALS). The caller's arguments go out as the bytes that came in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.core.model import CallerChannel
from pactgate.pipeline.tool_call import Call
from pactgate.protocol import headers, messages
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.connect import Session

PROGRESS: Final = "notifications/progress"


class Dispatch:
    """Send the call to its server, once, and keep the answer as the server wrote it."""

    name = "dispatch"

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def __call__(self, call: Call) -> None:
        tool = call.bound_tool
        session = self._connections.connected(tool.server) or await self._connections.session(tool.server)
        token = call.progress_token
        call.upstream_era = session.identity.era
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
    params = call.bound_tool.header_params
    if not params or not session.is_modern_http:
        return ()
    return headers.mirror(params, messages.value(call.members.get("arguments", Raw(b"{}"))))
