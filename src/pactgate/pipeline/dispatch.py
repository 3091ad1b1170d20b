"""The one place where a call leaves the gateway: once, under the upstream's own name, in the upstream's own era.

A call waits here for its turn where a server has as many as it may have. Must not: repeat anything (D6, S4/NONGOALS). The caller's
arguments go out as the bytes that came in.
"""

from __future__ import annotations

from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.pipeline.relaying import Relaying, relay_progress
from pactgate.pipeline.tool_call import Call
from pactgate.policy.overload import Overload
from pactgate.policy.recall import Recall
from pactgate.protocol import headers, messages
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.connect import Session


class Dispatch:
    """Send the call to its server, once, and keep the answer as the server wrote it."""

    name = "dispatch"

    def __init__(self, connections: Connections, overload: Overload, recall: Recall, relaying: Relaying) -> None:
        self._connections = connections
        self._overload = overload
        self._recall = recall
        self._relaying = relaying

    async def __call__(self, call: Call) -> None:
        server = call.bound.tool.server
        turn = self._overload.enter(server)
        if turn is not None:
            await turn
        try:
            session = self._connections.connected(server) or await self._connections.session(server)
            level = self._relaying.prepare(call.ctx.caller, session)
            if level is not None:
                await level
            await self._send(call, session)
        finally:
            self._overload.leave(server)
            if call.is_sent and call.bound.plan.is_writer:
                self._recall.drop_server(server, by=call.lease)  # whatever came back, it may have changed something

    async def _send(self, call: Call, session: Session) -> None:
        tool, caller = call.bound.tool, call.ctx.caller
        call.upstream_era = session.identity.era
        call.ctx.upstream_revision = session.identity.version
        call.members["name"] = Raw(encode_json(tool.name))
        call.is_sent = True
        call.result = await session.peer.request(
            "tools/call",
            call.members,
            meta=self._relaying.stamp(caller, session, call.meta),
            on_progress=relay_progress(caller.channel, call.progress_token),
            owner=caller.subject,
            on_log=self._relaying.on_log(caller, session),
            name=tool.name,
            headers=_mirrored(call, session),
        )


def _mirrored(call: Call, session: Session) -> tuple[tuple[str, str], ...]:
    params = call.bound.tool.header_params
    if not params or not session.is_modern_http:
        return ()
    return headers.mirror(params, messages.value(call.members.get("arguments", Raw(b"{}"))))
