"""Calls whose servers may ask back, over all four pairings of eras.

Legacy to legacy: the question is put to the caller as it came. Legacy caller, modern server: each question of a round
is put to the caller, and the round is answered. Modern caller, legacy server: the call is suspended and the caller gets
a round of ours. Modern to modern: the round is passed on, its state under our seal. Only the caller of the very call
is ever asked, and only what it declared. What no pairing can carry is a failure that says so. Must not: answer for a
caller, or send a call twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.catalog.uris import full_uri
from pactgate.core.context import CONNECTION
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Caller
from pactgate.pipeline.capabilities import relayable_of
from pactgate.pipeline.input_required import (
    MAX_ROUNDS,
    asks_for_ever,
    may_be_input_required,
    read_answers,
    read_input_required,
    require_declared,
)
from pactgate.pipeline.notification_relay import NotificationRelay
from pactgate.pipeline.question_relay import QuestionRelay, all_of
from pactgate.pipeline.sign_in_bridge import SignInBridge, is_callers
from pactgate.pipeline.suspended_calls import SuspendedCall, SuspendedCalls
from pactgate.pipeline.timing import timed
from pactgate.pipeline.upstream_request import UpstreamRequest
from pactgate.policy.permissions.rules import Grant
from pactgate.policy.state_tokens import SignedState, StateSigner, refused
from pactgate.protocol import era_bridge
from pactgate.protocol.era_bridge import RESPONSES, STATE, InputRequiredResult
from pactgate.protocol.messages import Notification, Response, encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.peer import UpstreamReplyError
from pactgate.upstreams.pending import in_task

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_SUSPENDED: Final = "parked"
_UPSTREAM: Final = "upstream"
_AGAIN: Final = "again"
"""What a sealed state continues: a call that waits, a round of the server's own, or nothing: the call is simply made again."""
_SIGN_IN: Final = "sign-in"
_text: Final = msgspec.json.Decoder(str)


UseOnce = Callable[[str, float, float], Awaitable[bool]]
"""Whether a state, which was sealed then, is used for the first time; it is remembered for so many seconds."""


class ServerRequestBridge:
    """Sends requests of callers. `input_s` is how long one call may wait for its caller, `replica` the id of this process."""

    def __init__(
        self,
        connections: Connections,
        relay: NotificationRelay,
        *,
        signer: StateSigner,
        clock: Callable[[], float] = time.monotonic,
        input_s: Callable[[], float],
        replica: str = "",
        use_once: UseOnce | None = None,
        sign_ins: SignInBridge | None = None,
    ) -> None:
        self._sign_ins = sign_ins
        self._connections = connections
        self._relay = relay
        self._clock = clock
        self._input_s = input_s
        self._signer = signer
        self._replica = replica
        self._use_once = use_once
        self._suspended = SuspendedCalls()

    @property
    def suspended_count(self) -> int:
        return len(self._suspended)

    def forget(self, subject: str) -> None:
        """End what waits for a subject that may no longer call."""
        self._suspended.forget(lambda suspended: suspended.subject == subject)

    def recheck(self) -> None:
        """Permissions have changed: end suspended calls of what their callers may not use any more."""
        self._suspended.forget(lambda suspended: not self._may_go_on(suspended))

    def _may_go_on(self, suspended: SuspendedCall) -> bool:
        catalog, server, name = (
            self._connections.catalog_for(suspended.caller),
            suspended.session.peer.server,
            suspended.name,
        )
        if catalog.access is None or name is None:
            return True
        full_name = f"{server}.{name}"
        if suspended.method == "tools/call":
            return full_name in catalog.access.tools
        if suspended.method == "prompts/get":
            return full_name in catalog.access.prompts
        return isinstance(catalog.access.of_uri(server, full_uri(server, name)), Grant)

    async def close(self) -> None:
        await self._suspended.close()

    def notice(self, caller: Caller, notification: Notification) -> None:
        """A legacy caller's roots have changed: told to the servers it has a session with, which may have asked for them."""
        if notification.method == era_bridge.ROOTS_CHANGED:
            for supervisor in self._connections.servers.values():
                shared = supervisor.session
                is_callers = shared is not None and shared.identity.era is Era.LEGACY and shared.peer.capabilities
                for session in [*supervisor.caller_sessions.of(caller), *([shared] if shared and is_callers else [])]:
                    session.peer.tell(notification.method)

    def exchange(self, request: UpstreamRequest, session: Session) -> Awaitable[Response]:
        """Send a request once, and bridge what its server asks back. `session` is the shared one of the server.

        An answer that is not of the ordinary shape is for `complete`.
        """
        if session.is_lists_alone and not request.is_continuation:
            own = self._connections.signed_in_session(request.server, request.caller)
            return self.run(request) if own is None else self._send_signed_in(request, own)
        is_asked_nothing = not request.caller.capabilities or self._goes_directly(request, session)
        if session.may_be_private or request.is_continuation or not is_asked_nothing:
            return self.run(request)
        return self.send(request, session, request.members)

    async def _send_signed_in(self, request: UpstreamRequest, session: Session) -> Response:
        """In the caller's own session. Where its grant has just ended nothing ran, and its client is asked."""
        try:
            return await self.send(request, session, request.members)
        except GatewayFailure as failure:
            if not is_callers(failure):
                raise
        return await self.run(request)

    async def complete(self, request: UpstreamRequest, response: Response) -> Response:
        """The answer to a request that `exchange` has sent, after everything its server asked for first."""
        if request.is_bridged or not may_be_input_required(request.session, response):
            return response
        return await self._ask_until_complete(request, request.session, request.members, response)

    def _goes_directly(self, request: UpstreamRequest, session: Session) -> bool:
        """Whether the shared session will do: its server can't ask this caller anything in a request of its own."""
        caller = request.caller
        is_legacy = not session.asks_by_result
        if (is_legacy and session.peer.capabilities) or (is_legacy and caller.era is Era.MODERN):
            return False
        return not self._connections.wants_own_session(request.server, caller, relayable_of(caller, Era.LEGACY))

    def session_key(self, server: str, caller: Caller) -> str | None:
        """What tells the caller's own session with a server from all others; None where the shared session serves its requests."""
        return self._connections.session_key(server, caller, relayable_of(caller, Era.LEGACY))

    async def run(self, request: UpstreamRequest) -> Response:
        """Send a request in the session of its caller. One that needs a sign-in of the caller asks for it first, where that is possible."""
        request.is_bridged = True
        await in_task()
        try:
            return await self._run(request)
        except GatewayFailure as failure:
            if self._sign_ins is None or not is_callers(failure):
                raise
            wanted = await self._sign_ins.wanted(request, failure)
        if request.caller.era is Era.MODERN:
            state = self._signer.seal(_AGAIN, _SIGN_IN, request.binding(), self._input_s())
            return _input_required(request, era_bridge.encode_input_required({_SIGN_IN: wanted.question}, state))
        await self._sign_ins.ask(request, wanted, self._input_s())
        try:
            return await self._run(request)
        except GatewayFailure as failure:
            if is_callers(failure):
                raise wanted.failure.again() from None
            raise

    async def _run(self, request: UpstreamRequest) -> Response:
        caller = request.caller
        inner = None
        if request.state is not None and caller.era is Era.MODERN:
            opened = self._signer.open(_state(request.state), request.binding())
            if opened.kind == _SUSPENDED:
                if opened.owner != self._replica:
                    raise _replica_lost(request)
                return await self._continue(request, opened.content)
            inner = await self._begin_again(request, request.state, opened)
        capabilities = relayable_of(caller, Era.LEGACY)
        session = await timed(
            request.ctx, CONNECTION, self._connections.session_for(request.server, caller, capabilities)
        )
        if session.asks_by_result:
            return await self._ask_modern(request, session, inner)
        if caller.era is Era.MODERN:
            if request.responses is not None or inner is not None:
                raise refused("nothing waits for these answers")
            try:
                return await self._ask_and_suspend(request, session)
            except UpstreamReplyError as refusal:
                return self._visit_first(request, refusal)
        return await self._ask_legacy(request, session)

    async def _begin_again(self, request: UpstreamRequest, state: Raw, opened: SignedState) -> str | None:
        """A caller comes again with answers. Returns the state of its server, for a round of that server's own."""
        life_s = self._signer.life_left_s(opened)
        if self._use_once is not None and not await self._use_once(_state(state), opened.sealed_at, life_s):
            raise refused("it was used already, or the gateways have lost whether it was")
        if opened.kind == _UPSTREAM:
            return opened.content
        answers, request.responses = read_answers(request), None
        if opened.content == _SIGN_IN and self._sign_ins is not None:
            await self._sign_ins.wait_after(request, answers.get(_SIGN_IN))
        return None

    def send(
        self,
        request: UpstreamRequest,
        session: Session,
        members: Mapping[str, Raw],
        asker: QuestionRelay | SuspendedCall | None = None,
    ) -> Awaitable[Response]:
        """The one place where a request of a caller leaves. What is said of a suspended call is for whoever waits for it then."""
        caller, meta, on_progress, on_log = request.caller, request.meta, request.on_progress, None
        if not self._relay.is_silent(caller, session):
            setting = self._relay.prepare(caller, session)
            if setting is not None:
                return self._send_after(setting, request, session, members, asker)
            meta, on_log = self._relay.stamp(caller, session, meta), self._relay.on_log(caller, session)
        if isinstance(asker, SuspendedCall):
            on_progress, on_log = (None if on_progress is None else asker.progress), asker.log
        declared = {}
        if caller.capabilities and session.identity.era is Era.MODERN:
            declared = relayable_of(caller, Era.MODERN)
        request.session, ctx = session, request.ctx
        if ctx.trace is not None:
            meta = ctx.trace.carried(meta)
        if not ctx.sent_at:
            ctx.sent_at = self._clock()
        return session.peer.send(
            request.method,
            members,
            meta=meta,
            on_progress=on_progress,
            owner=caller.session or caller.principal.key,
            on_log=on_log,
            name=request.name,
            headers=request.on_send(session),
            asker=asker,
            capabilities=encode_json(declared) if declared else None,
            limit=request.deadline,
        )

    async def _send_after(
        self,
        setting: Awaitable[None],
        request: UpstreamRequest,
        session: Session,
        members: Mapping[str, Raw],
        asker: QuestionRelay | SuspendedCall | None,
    ) -> Response:
        """A legacy server is told the log level first."""
        await setting
        return await self.send(request, session, members, asker)

    # A legacy server.

    async def _ask_legacy(self, request: UpstreamRequest, session: Session) -> Response:
        """A legacy caller: what the server asks is put to it as it came. Members of other eras mean nothing here and pass."""
        foreign = {RESPONSES: request.responses, STATE: request.state}
        members = request.members | {name: held for name, held in foreign.items() if held is not None}
        asker = QuestionRelay(request, session.peer.capabilities) if session.peer.capabilities else None
        return await self.send(request, session, members, asker)

    async def _ask_and_suspend(self, request: UpstreamRequest, session: Session) -> Response:
        if not session.peer.capabilities:
            return await self.send(request, session, request.members)
        suspended = SuspendedCall(request, session, self._input_s())
        sending = self.send(request, session, request.members, suspended)
        suspended.begin(asyncio.ensure_future(sending))
        return await self._await(request, suspended)

    async def _continue(self, request: UpstreamRequest, mark: str) -> Response:
        """The caller of a suspended call has come back. Nothing is consumed before everything about the request is right."""
        suspended = self._suspended.find(mark, request.caller.principal.key)
        if suspended is None:
            raise refused("the call it belongs to was continued already, or has ended")
        answers = read_answers(request)
        self._suspended.take(mark)
        request.on_send(suspended.session)
        request.ctx.sent_at = self._clock()
        suspended.answer(answers)
        try:
            return await self._await(request, suspended)
        except UpstreamReplyError as refusal:
            return self._visit_first(request, refusal)

    async def _await(self, request: UpstreamRequest, suspended: SuspendedCall) -> Response:
        request.session = suspended.session
        suspended.capabilities = relayable_of(request.caller, Era.LEGACY)
        suspended.on_progress = request.on_progress
        suspended.on_log = self._relay.on_log(request.caller, suspended.session)
        try:
            response = await suspended.outcome()
        except asyncio.CancelledError:
            suspended.end()
            raise
        finally:
            suspended.on_progress = suspended.on_log = None
        if suspended.was_asked:
            request.on_asked()
        if response is not None:
            return response
        life_s = suspended.input_s
        asked = dict(suspended.questions)
        mark = self._suspended.suspend(suspended)
        state = self._signer.seal(_SUSPENDED, mark, request.binding(), life_s, self._replica)
        return _input_required(request, era_bridge.encode_input_required(asked, state))

    def _visit_first(self, request: UpstreamRequest, refusal: UpstreamReplyError) -> Response:
        """A legacy server that refuses until its caller has been to a URL: asked as input, after which the call is made again."""
        urls = era_bridge.read_urls(refusal.reply)
        capabilities = relayable_of(request.caller, Era.LEGACY)
        if not urls or any(era_bridge.why_not(url, capabilities) is not None for url in urls):
            raise refusal
        questions = {f"input-{number}": url for number, url in enumerate(urls, 1)}
        state = self._signer.seal(_AGAIN, "", request.binding(), self._input_s())
        return _input_required(request, era_bridge.encode_input_required(questions, state))

    # A modern server.

    async def _ask_modern(self, request: UpstreamRequest, session: Session, inner: str | None) -> Response:
        caller = request.caller
        if caller.era is Era.LEGACY and (request.state is not None or request.responses is not None):
            raise GatewayFailure(
                Kind.INVALID_PARAMS, f"{STATE} and {RESPONSES} do not exist in protocol version {caller.version}."
            )
        members = dict(request.members)
        if request.responses is not None:
            read_answers(request)
            members[RESPONSES] = request.responses
        if inner is not None:
            members[STATE] = Raw(encode_json(inner))
        return await self._ask_until_complete(request, session, members, None)

    async def _ask_until_complete(
        self, request: UpstreamRequest, session: Session, members: dict[str, Raw], response: Response | None
    ) -> Response:
        """Go on from a server's first answer, or from none, until its result is complete."""
        await in_task()
        declared = relayable_of(request.caller, Era.MODERN)
        for number in range(MAX_ROUNDS):
            if response is None:
                response = await self.send(request, session, members)
            found = read_input_required(request, response.result)
            if found is None:
                return response
            require_declared(request, found, declared)
            request.on_asked()
            if request.caller.era is Era.MODERN:
                return _input_required(request, self._sealed(request, response.result, found))
            members = await self._answered(request, found, number)
            response = None
        raise asks_for_ever(request)

    def _sealed(self, request: UpstreamRequest, text: bytes, found: InputRequiredResult) -> bytes:
        if found.state is None:
            return text
        return era_bridge.with_state(
            text, self._signer.seal(_UPSTREAM, found.state, request.binding(), self._input_s())
        )

    async def _answered(self, request: UpstreamRequest, found: InputRequiredResult, number: int) -> dict[str, Raw]:
        """The request again, with what a legacy caller answers to all questions of the round."""
        members = dict(request.members)
        if found.questions:
            relay = QuestionRelay(request, relayable_of(request.caller, Era.MODERN))
            keys = list(found.questions)
            answers = await all_of(relay.ask_for_round(found.questions[key]) for key in keys)
            members[RESPONSES] = Raw(encode_json(dict(zip(keys, map(Raw, answers), strict=True))))
        else:
            await asyncio.sleep(min(_FIRST_PAUSE_S * 2**number, _LONGEST_PAUSE_S))
        if found.state is not None:
            members[STATE] = Raw(encode_json(found.state))
        return members


def _input_required(request: UpstreamRequest, result: bytes) -> Response:
    request.is_input_required = True
    return Response(0, result)


def _state(raw: Raw) -> str:
    try:
        return _text.decode(raw)
    except msgspec.DecodeError:
        raise refused("it is not a text") from None


def _replica_lost(request: UpstreamRequest) -> GatewayFailure:
    return GatewayFailure(
        Kind.REPLICA_LOST,
        f"The gateway replica in which this call of {request.server} waited has gone, and the call with it. Executed: unknown. "
        "Look whether the action happened before you call again.",
        server=request.server,
        operation=request.method,
    )
