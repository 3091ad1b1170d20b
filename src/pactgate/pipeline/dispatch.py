"""The one place where a call leaves the gateway: once, under the upstream's own name, in the upstream's own era.

A call waits here for its turn where a server has as many as it may have. A call whose server may ask its caller
something goes by way of `asking`. Must not: repeat anything (D6, S4/NONGOALS). The caller's arguments go out as the
bytes that came in.
"""

from __future__ import annotations

from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.pipeline.asking import Asking, Outcome, as_said, too_large
from pactgate.pipeline.errand import Errand, Headers
from pactgate.pipeline.relaying import Relaying, relay_progress
from pactgate.pipeline.tool_call import Call
from pactgate.policy.overload import Overload
from pactgate.policy.recall import Recall
from pactgate.protocol import headers, messages
from pactgate.protocol.bridge import RESPONSES, ROUND_MARK, STATE
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.connect import Session
from pactgate.upstreams.inside import UNDER_WAY
from pactgate.upstreams.peer import UpstreamReplied


class Dispatch:
    """Send the call to its server, once, and keep the answer as the server wrote it."""

    name = "dispatch"

    def __init__(
        self, connections: Connections, overload: Overload, recall: Recall, relaying: Relaying, asking: Asking
    ) -> None:
        self._connections = connections
        self._overload = overload
        self._recall = recall
        self._relaying = relaying
        self._asking = asking

    async def __call__(self, call: Call) -> None:
        server = call.bound.tool.server
        turn = self._overload.enter(server)
        if turn is not None:
            await turn
        try:
            session = self._connections.connected(server) or await self._connections.session(server)
            members = call.members
            if session.is_inside:
                await self._send_inside(call, session)
            elif session.may_be_private or call.ctx.caller.capabilities or STATE in members or RESPONSES in members:
                self._keep(call, await self._asking.run(self._errand(call)))
            else:
                await self._send(call, session)
        except UpstreamReplied as refusal:
            raise as_said(refusal, call.ctx.caller) from refusal
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
        caller = call.ctx.caller
        level = self._relaying.prepare(caller, session)
        if level is not None:
            await level
        mirrored = _begin(call, session)
        call.result = await session.peer.request(
            "tools/call",
            call.members,
            meta=self._relaying.stamp(caller, session, call.meta),
            on_progress=relay_progress(caller.channel, call.progress_token),
            owner=caller.subject,
            on_log=self._relaying.on_log(caller, session),
            name=call.bound.tool.name,
            headers=mirrored,
        )
        if call.upstream_era is Era.MODERN and ROUND_MARK in call.result:
            self._keep(call, await self._asking.resume(self._errand(call), session, call.result))

    def _errand(self, call: Call) -> Errand:
        tool, caller = call.bound.tool, call.ctx.caller
        assert call.patience is not None, "a call leaves under its time limit"
        call.members["name"] = Raw(encode_json(tool.name))
        return Errand(
            caller,
            tool.server,
            "tools/call",
            call.members,
            meta=call.meta,
            name=tool.name,
            on_progress=relay_progress(caller.channel, call.progress_token),
            patience=call.patience,
            begin=lambda session: _begin(call, session),
            on_asked=lambda: call.lease.decline() if call.lease is not None else None,
        )

    def _keep(self, call: Call, outcome: Outcome) -> None:
        call.result, call.is_round = outcome.text, outcome.is_round
        if outcome.is_round and len(outcome.text) > call.bound.max_result_bytes:
            raise too_large(call.bound.tool.server, "tools/call", call.bound.max_result_bytes)


def _begin(call: Call, session: Session) -> Headers:
    """Note where the call goes, in the moment it does."""
    tool = call.bound.tool
    call.upstream_era = session.identity.era
    call.ctx.upstream_revision = session.identity.version
    call.ctx.effects_level = session.effects_level
    call.members["name"] = Raw(encode_json(tool.name))
    call.is_sent = True
    return _mirrored(call) if tool.header_params and session.is_modern_http else ()


def _mirrored(call: Call) -> Headers:
    return headers.mirror(call.bound.tool.header_params, messages.value(call.members.get("arguments", Raw(b"{}"))))
