"""The one place where a call leaves the gateway: once, under the upstream's own name, in the upstream's own era.

A call waits here for its turn where a server has as many as it may have. A call whose server may ask its caller
something goes by way of `asking`. Must not: repeat anything (D6, S4/NONGOALS). The caller's arguments go out as the
bytes that came in.
"""

from __future__ import annotations

from collections.abc import Awaitable

from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.core.failures import GatewayFailure
from pactgate.pipeline.call import Call
from pactgate.pipeline.notification_relay import Relaying, relay_progress
from pactgate.pipeline.server_requests import Asking, Outcome, as_said, too_large
from pactgate.pipeline.upstream_request import Errand, Headers
from pactgate.policy.overload import Overload
from pactgate.policy.result_cache import Recall
from pactgate.protocol import headers, messages
from pactgate.protocol.era_bridge import RESPONSES, ROUND_MARK, STATE
from pactgate.protocol.versions import MODERN
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.in_process import UNDER_WAY
from pactgate.upstreams.peer import UpstreamReplied
from pactgate.upstreams.pending import Sent, Sink


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

    def begin(self, call: Call, sink: Sink) -> Sent | None:
        """The same for a call that is sure to wait for nothing but its answer. An error the server gives is told to the sink as it came."""
        server, caller = call.bound.tool.server, call.ctx.caller
        session = self._connections.connected(server)
        if session is None or session.is_inside or session.may_be_private:
            return None
        is_silent = self._relaying.is_silent(caller, session)
        if (
            STATE in call.members
            or RESPONSES in call.members
            or not (is_silent or self._relaying.is_heard(caller, session))
        ):
            return None
        told = self._asking.plainly(caller, server, session) if caller.capabilities else b""
        if told is None or not self._overload.try_enter(server):
            return None
        sent: Sent | None = None
        try:
            mirrored = _begin(call, session)
            token = call.progress_token
            sent = session.peer.begin(
                sink,
                call.members,
                name=call.bound.tool.name,
                meta=call.meta if is_silent else self._relaying.stamp(caller, session, call.meta),
                headers=mirrored,
                on_progress=None if token is None else relay_progress(caller.channel, token),
                owner=caller.subject,
                on_log=None if is_silent else self._relaying.on_log(caller, session),
                capabilities=told or None,
            )
        finally:
            if sent is None:
                call.is_sent = False
                self._overload.leave(server)
        call.session = session
        return sent

    def end(self, call: Call) -> None:
        server = call.bound.tool.server
        self._overload.leave(server)
        if call.bound.plan.is_writer:
            self._recall.drop_server(server, by=call.lease)

    def as_told(self, call: Call, failure: GatewayFailure) -> GatewayFailure:
        return as_said(failure, call.ctx.caller) if isinstance(failure, UpstreamReplied) else failure

    def came_back(self, call: Call) -> Awaitable[None] | None:
        """A modern server may have asked something instead of answering."""
        if call.plain is None and _may_be_round(call):
            return self._resume(call)
        self.end(call)
        return None

    async def _resume(self, call: Call) -> None:
        assert call.session is not None, "set when it was begun"
        try:
            self._keep(call, await self._asking.resume(self._errand(call), call.session, call.result))
        except UpstreamReplied as refusal:
            raise as_said(refusal, call.ctx.caller) from refusal
        finally:
            self.end(call)

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
        result = await session.peer.request(
            "tools/call",
            call.members,
            meta=self._relaying.stamp(caller, session, call.meta),
            on_progress=relay_progress(caller.channel, call.progress_token),
            owner=caller.subject,
            on_log=self._relaying.on_log(caller, session),
            name=call.bound.tool.name,
            headers=mirrored,
        )
        call.take(result)
        if call.plain is None and _may_be_round(call):
            self._keep(call, await self._asking.resume(self._errand(call), session, call.result))

    def _errand(self, call: Call) -> Errand:
        tool, caller = call.bound.tool, call.ctx.caller
        assert call.patience is not None, "a call leaves under its time limit"
        call.members = {**call.members, "name": call.bound.wire_name}
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
        call.take(outcome.text)
        call.is_round = outcome.is_round
        if outcome.is_round and len(outcome.text) > call.bound.max_result_bytes:
            raise too_large(call.bound.tool.server, "tools/call", call.bound.max_result_bytes)


def _may_be_round(call: Call) -> bool:
    """For a result that is not of the ordinary shape, which would say that it is complete."""
    return call.upstream_era is MODERN and ROUND_MARK in call.result


def _begin(call: Call, session: Session) -> Headers:
    """Note where the call goes, in the moment it does."""
    rules = call.bound
    call.upstream_era = session.identity.era
    call.ctx.upstream_revision = session.identity.version
    call.ctx.effects_level = session.effects_level
    call.members = {**call.members, "name": rules.wire_name}
    call.is_sent = True
    return _mirrored(call) if rules.tool.header_params and session.is_modern_http else ()


def _mirrored(call: Call) -> Headers:
    return headers.mirror(call.bound.tool.header_params, messages.value(call.members.get("arguments", Raw(b"{}"))))
