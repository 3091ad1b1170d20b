"""Sends a call to its server: once, under the name that the server uses, in the era of the server.

The call waits here for a free slot of its server, and for a server that is not connected yet. The arguments go out as the bytes that came
in. Must not: send a call twice (D6, S4/NONGOALS).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.core.context import CONNECTION, QUEUE, ExecutionContext
from pactgate.core.contract import CALLER_KEY
from pactgate.core.values import Caller
from pactgate.pipeline.call import Call
from pactgate.pipeline.capabilities import relayable_of
from pactgate.pipeline.deadline import Deadline
from pactgate.pipeline.input_required import map_upstream_error, too_large
from pactgate.pipeline.notification_relay import relay_progress
from pactgate.pipeline.server_requests import ServerRequestBridge
from pactgate.pipeline.timing import timed
from pactgate.pipeline.upstream_request import Headers, UpstreamRequest
from pactgate.policy.overload import Overload
from pactgate.policy.result_cache import ResultCache
from pactgate.protocol import headers, messages
from pactgate.protocol.era_bridge import ELICIT, Question, why_not
from pactgate.protocol.messages import Response, encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.in_process import CURRENT_CALL
from pactgate.upstreams.notification_router import OnProgress
from pactgate.upstreams.peer import UpstreamReplyError
from pactgate.upstreams.pending import in_task


class Dispatch:
    """Send the call to its server, once, and keep the answer as the server wrote it."""

    name = "dispatch"

    def __init__(
        self,
        connections: Connections,
        overload: Overload,
        results: ResultCache,
        bridge: ServerRequestBridge,
        on_write: Callable[[str], Awaitable[None] | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_write` tells other replicas that a call may have changed something, before its answer leaves; None: nobody need know."""
        self._on_write = on_write
        self._connections = connections
        self._overload = overload
        self._results = results
        self._bridge = bridge
        self._clock = clock

    async def __call__(self, call: Call) -> None:
        server, subject = call.policy.tool.server, call.ctx.caller.principal.key
        turn = self._overload.enter(server, subject)
        if turn is not None:
            await timed(call.ctx, QUEUE, turn)
        try:
            session = self._connections.connected(server) or await self._wait_for(server, call.ctx)
            if session.is_inside:
                await self._send_inside(call, session)
            else:
                request = _upstream_request(call)
                response = await self._bridge.exchange(request, session)
                if response.simple is not None:
                    call.take(response)
                else:
                    _take(call, request, await self._bridge.complete(request, response))
        except UpstreamReplyError as reply:
            raise map_upstream_error(reply, call.ctx.caller) from reply
        finally:
            call.ctx.received_at = self._clock()
            self._overload.leave(server, subject)
            if call.is_sent and call.policy.cache.is_writer:
                self._results.drop_server(server, by=call.ticket)  # whatever came back, it may have changed something
                if self._on_write is not None and (telling := self._on_write(server)) is not None:
                    await telling

    async def _wait_for(self, server: str, ctx: ExecutionContext) -> Session:
        await in_task()
        return await timed(ctx, CONNECTION, self._connections.session(server))

    async def _send_inside(self, call: Call, session: Session) -> None:
        """A server inside the gateway may know whose call it is; no other ever learns it."""
        await in_task()  # a context variable of its own
        before = CURRENT_CALL.set(call.ctx)
        try:
            request = _upstream_request(call)
            response = await self._bridge.exchange(request, session)
            _take(call, request, await self._bridge.complete(request, response))
        finally:
            CURRENT_CALL.reset(before)


def _take(call: Call, request: UpstreamRequest, response: Response) -> None:
    call.take(response)
    if call.simple is None:
        call.session = request.session
    if request.is_input_required:
        call.is_input_required = True
        if call.result_bytes > call.policy.max_result_bytes:
            raise too_large(call.policy.tool.server, "tools/call", call.policy.max_result_bytes)


def _upstream_request(call: Call) -> UpstreamRequest:
    tool = call.policy.tool
    assert call.deadline is not None, "a call leaves under its time limit"
    if call.caller_limit_ms is not None:
        call.deadline.full_ms = call.policy.limit.ms
    call.members["name"] = call.policy.wire_name
    meta = call.meta
    if tool.contract is not None and tool.contract.takes_call:
        meta = {**meta, CALLER_KEY: Raw(encode_json(_facts(call.ctx.caller, call.policies.input_timeout_ms)))}
    hears_nothing = call.progress_token is None and call.policies.progress_timeout_ms is None
    return UpstreamRequest(
        ctx=call.ctx,
        caller=call.ctx.caller,
        server=tool.server,
        method="tools/call",
        members=call.members,
        meta=meta,
        name=tool.name,
        on_progress=None if hears_nothing else _on_progress(call, call.deadline),
        deadline=call.deadline,
        on_send=partial(_note_sent, call),
        on_asked=call.release_ticket,
    )


def _facts(caller: Caller, answer_ms: int) -> dict[str, Any]:
    """What a Python tool may know of whose call it answers: never a credential."""
    principal = caller.principal
    question = Question(ELICIT, b"{}")
    return {
        "name": principal.shown,
        "client": caller.client,
        "roles": sorted(principal.roles),
        "groups": sorted(principal.groups),
        "answerMs": answer_ms,
        "canBeAsked": why_not(question, relayable_of(caller, Era.MODERN)) is None,
    }


def _on_progress(call: Call, deadline: Deadline) -> OnProgress | None:
    """What is done with progress: it goes to the caller that asked for it, and extends the time limit where that is configured."""
    token, longest_ms = call.progress_token, call.policies.progress_timeout_ms
    relay = None if token is None else relay_progress(call.ctx.caller.channel, token)
    if longest_ms is None or longest_ms <= call.limit.ms:
        return relay

    def extend(members: dict[str, Raw]) -> None:
        deadline.extend(longest_ms)
        if relay is not None:
            relay(members)

    return extend


def _note_sent(call: Call, session: Session) -> Headers:
    """Note where the call goes, in the moment it does."""
    policy = call.policy
    call.upstream_era = session.identity.era
    call.ctx.upstream_revision = session.identity.version
    call.ctx.effects_level = session.effects_level or policy.effects_level
    call.is_sent = True
    if not policy.tool.header_params or not session.is_modern_http:
        return ()
    return headers.mirror(policy.tool.header_params, messages.value(call.members.get("arguments", Raw(b"{}"))))
