"""Calls whose servers may ask back, over all four pairings of eras.

Legacy to legacy: the question is put to the caller as it came. Legacy caller, modern server: each question of a round
is put to the caller, and the round is answered. Modern caller, legacy server: the call is parked and the caller gets
a round of ours. Modern to modern: the round is passed on, its state under our seal. Only the caller of the very call
is ever asked, and only what it declared. What no pairing can carry is a failure that says so. Must not: answer for a
caller, or send a call twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.values import Caller
from pactgate.pipeline.notification_relay import Relaying
from pactgate.pipeline.question_relay import Relay, all_of
from pactgate.pipeline.suspended_calls import Parked, ParkingLot
from pactgate.pipeline.upstream_request import Errand
from pactgate.policy.state_tokens import Seals, refused
from pactgate.protocol import era_bridge, messages
from pactgate.protocol.era_bridge import RESPONSES, STATE, Round
from pactgate.protocol.messages import Notification, encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.peer import UpstreamReplied

MAX_ROUNDS: Final = 20
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_PARKED: Final = "parked"
_UPSTREAM: Final = "upstream"
_AGAIN: Final = "again"
"""What a sealed state continues: a call that waits, a round of the server's own, or nothing: the call is simply made again."""
_text: Final = msgspec.json.Decoder(str)


class Outcome(NamedTuple):
    """What the server answered, or a round of questions for a modern caller; and the session it came from."""

    text: bytes
    session: Session
    is_round: bool = False


class Asking:
    """Sends errands. `input_s` is how long one call may wait for its caller."""

    def __init__(
        self,
        connections: Connections,
        relaying: Relaying,
        *,
        clock: Callable[[], float],
        input_s: Callable[[], float],
    ) -> None:
        self._connections = connections
        self._relaying = relaying
        self._input_s = input_s
        self._seals = Seals(clock)
        self._lot = ParkingLot()

    @property
    def parked_count(self) -> int:
        return len(self._lot)

    async def close(self) -> None:
        await self._lot.close()

    def notice(self, caller: Caller, notification: Notification) -> None:
        """A legacy caller's roots have changed: told to the servers it has a session with, which may have asked for them."""
        if notification.method == era_bridge.ROOTS_CHANGED:
            for supervisor in self._connections.servers.values():
                for session in supervisor.caller_sessions.of(caller):
                    session.peer.tell(notification.method)

    def plainly(self, caller: Caller, server: str, session: Session) -> bytes | None:
        """What a server is told of a caller that can be asked, where the call may go like any other; None where it has to `run`."""
        is_modern = session.identity.era is Era.MODERN
        if session.peer.capabilities or (caller.era is Era.MODERN and not is_modern):
            return None
        if self._connections.wants_own_session(server, caller, _relayable(caller, Era.LEGACY)):
            return None
        declared = _relayable(caller, Era.MODERN) if is_modern else {}
        return encode_json(declared) if declared else b""

    async def run(self, errand: Errand) -> Outcome:
        caller = errand.caller
        inner = None
        if errand.state is not None and caller.era is Era.MODERN:
            opened = self._seals.open(_state(errand.state), errand.binding())
            if opened.kind == _PARKED:
                return await self._continue(errand, opened.content)
            inner = opened.content if opened.kind == _UPSTREAM else None
            if opened.kind == _AGAIN:
                errand.responses = None
        capabilities = _relayable(caller, Era.LEGACY)
        session = await self._connections.session_for(errand.server, caller, capabilities)
        if session.identity.era is Era.MODERN:
            return await self._ask_modern(errand, session, inner)
        if caller.era is Era.MODERN:
            if errand.responses is not None or inner is not None:
                raise refused("nothing waits for these answers")
            try:
                return await self._ask_and_park(errand, session)
            except UpstreamReplied as refusal:
                return self._visit_first(errand, session, refusal)
        return await self._ask_legacy(errand, session)

    async def send(
        self, errand: Errand, session: Session, members: Mapping[str, Raw], asker: Relay | Parked | None = None
    ) -> bytes:
        """The one place where an errand leaves. What is said of a parked call is for whoever waits for it at that moment."""
        caller = errand.caller
        level = self._relaying.prepare(caller, session)
        if level is not None:
            await level
        on_progress, on_log = errand.on_progress, self._relaying.on_log(caller, session)
        if isinstance(asker, Parked):
            on_progress, on_log = (None if on_progress is None else asker.progress), asker.log
        declared = _relayable(caller, Era.MODERN) if session.identity.era is Era.MODERN else {}
        return await session.peer.request(
            errand.method,
            members,
            meta=self._relaying.stamp(caller, session, errand.meta),
            on_progress=on_progress,
            owner=caller.subject,
            on_log=on_log,
            name=errand.name,
            headers=errand.begin(session),
            asker=asker,
            capabilities=encode_json(declared) if declared else None,
        )

    # A legacy server.

    async def _ask_legacy(self, errand: Errand, session: Session) -> Outcome:
        """A legacy caller: what the server asks is put to it as it came. Members of other eras mean nothing here and pass."""
        foreign = {RESPONSES: errand.responses, STATE: errand.state}
        members = errand.members | {name: held for name, held in foreign.items() if held is not None}
        asker = Relay(errand, session.peer.capabilities) if session.peer.capabilities else None
        return Outcome(await self.send(errand, session, members, asker), session)

    async def _ask_and_park(self, errand: Errand, session: Session) -> Outcome:
        if not session.peer.capabilities:
            return Outcome(await self.send(errand, session, errand.members), session)
        parked = Parked(errand.caller.subject, session, self._input_s())
        parked.begin(asyncio.get_running_loop().create_task(self.send(errand, session, errand.members, parked)))
        return await self._await(errand, parked)

    async def _continue(self, errand: Errand, mark: str) -> Outcome:
        """The caller of a parked call has come back. Nothing is consumed before everything about the request is right."""
        parked = self._lot.find(mark, errand.caller.subject)
        if parked is None:
            raise refused("the call it belongs to was continued already, or has ended")
        answers = _answers(errand)
        self._lot.take(mark)
        errand.begin(parked.session)
        parked.answer(answers)
        try:
            return await self._await(errand, parked)
        except UpstreamReplied as refusal:
            return self._visit_first(errand, parked.session, refusal)

    async def _await(self, errand: Errand, parked: Parked) -> Outcome:
        parked.capabilities = _relayable(errand.caller, Era.LEGACY)
        parked.on_progress = errand.on_progress
        parked.on_log = self._relaying.on_log(errand.caller, parked.session)
        try:
            text = await parked.outcome()
        except asyncio.CancelledError:
            parked.end()
            raise
        finally:
            parked.on_progress = parked.on_log = None
        if parked.was_asked:
            errand.on_asked()
        if text is not None:
            return Outcome(text, parked.session)
        life_s = parked.input_s
        asked = dict(parked.questions)
        state = self._seals.seal(_PARKED, self._lot.park(parked), errand.binding(), life_s)
        return Outcome(era_bridge.encode_round(asked, state), parked.session, is_round=True)

    def _visit_first(self, errand: Errand, session: Session, refusal: UpstreamReplied) -> Outcome:
        """A legacy server that refuses until its caller has been to a URL: asked as a round, after which the call is made again."""
        urls = era_bridge.read_urls(refusal.reply)
        capabilities = _relayable(errand.caller, Era.LEGACY)
        if not urls or any(era_bridge.why_not(url, capabilities) is not None for url in urls):
            raise refusal
        questions = {f"input-{number}": url for number, url in enumerate(urls, 1)}
        state = self._seals.seal(_AGAIN, "", errand.binding(), self._input_s())
        return Outcome(era_bridge.encode_round(questions, state), session, is_round=True)

    # A modern server.

    async def resume(self, errand: Errand, session: Session, text: bytes) -> Outcome:
        """Go on from a server's first answer that may be a round."""
        return await self._rounds(errand, session, dict(errand.members), text)

    async def _ask_modern(self, errand: Errand, session: Session, inner: str | None) -> Outcome:
        caller = errand.caller
        if caller.era is Era.LEGACY and (errand.state is not None or errand.responses is not None):
            raise GatewayFailure(
                Kind.INVALID_PARAMS, f"{STATE} and {RESPONSES} do not exist in revision {caller.version}."
            )
        members = dict(errand.members)
        if errand.responses is not None:
            _answers(errand)
            members[RESPONSES] = errand.responses
        if inner is not None:
            members[STATE] = Raw(encode_json(inner))
        return await self._rounds(errand, session, members, None)

    async def _rounds(self, errand: Errand, session: Session, members: dict[str, Raw], text: bytes | None) -> Outcome:
        declared = _relayable(errand.caller, Era.MODERN)
        for number in range(MAX_ROUNDS):
            if text is None:
                text = await self.send(errand, session, members)
            found = _read_round(errand, text)
            if found is None:
                return Outcome(text, session)
            _require_declared(errand, found, declared)
            errand.on_asked()
            if errand.caller.era is Era.MODERN:
                return Outcome(self._sealed(errand, text, found), session, is_round=True)
            members = await self._answered(errand, found, number)
            text = None
        raise _asks_for_ever(errand)

    def _sealed(self, errand: Errand, text: bytes, found: Round) -> bytes:
        if found.state is None:
            return text
        return era_bridge.with_state(text, self._seals.seal(_UPSTREAM, found.state, errand.binding(), self._input_s()))

    async def _answered(self, errand: Errand, found: Round, number: int) -> dict[str, Raw]:
        """The request again, with what a legacy caller answers to all questions of the round."""
        members = dict(errand.members)
        if found.questions:
            relay = Relay(errand, _relayable(errand.caller, Era.MODERN))
            keys = list(found.questions)
            answers = await all_of(relay.ask_for_round(found.questions[key]) for key in keys)
            members[RESPONSES] = Raw(encode_json(dict(zip(keys, map(Raw, answers), strict=True))))
        else:
            await asyncio.sleep(min(_FIRST_PAUSE_S * 2**number, _LONGEST_PAUSE_S))
        if found.state is not None:
            members[STATE] = Raw(encode_json(found.state))
        return members


def needs_asking(caller: Caller, members: Mapping[str, Raw]) -> bool:
    """Whether a request has to go this way: its caller can be asked, or comes back from a round."""
    return bool(caller.capabilities) or STATE in members or RESPONSES in members


def may_be_round(session: Session, text: bytes) -> bool:
    """Whether an answer has to be looked at: a modern server may ask even a caller that can't be asked, to come again later."""
    return session.identity.era is Era.MODERN and era_bridge.ROUND_MARK in text


def as_said(refusal: UpstreamReplied, caller: Caller) -> GatewayFailure:
    """A refusal that tells the caller what to do, with its own number where the caller's era knows it; any other as it is."""
    reply = refusal.reply
    is_url = reply.code == messages.URL_REQUIRED and caller.era is Era.LEGACY
    if reply.code != messages.MISSING_CLIENT_CAPABILITY and not is_url:
        return refusal
    data = messages.value(reply.data) if reply.data is not None else None
    return GatewayFailure(
        Kind.MISSING_CAPABILITY,
        reply.message,
        server=refusal.server,
        operation=refusal.operation,
        number=reply.code,
        details=data if isinstance(data, dict) else {},
    )


def _relayable(caller: Caller, towards: Era) -> dict[str, Any]:
    if not caller.capabilities or (caller.era is Era.LEGACY and not caller.channel.can_ask):
        return {}
    follows_tasks = caller.scope is not None and caller.era is towards
    return era_bridge.relayable(caller.capabilities, caller.version, towards=towards, follows_tasks=follows_tasks)


def _state(raw: Raw) -> str:
    try:
        return _text.decode(raw)
    except msgspec.DecodeError:
        raise refused("it is not a text") from None


def _answers(errand: Errand) -> dict[str, bytes]:
    try:
        return era_bridge.read_answers(errand.responses)
    except msgspec.DecodeError:
        raise GatewayFailure(
            Kind.INVALID_PARAMS, f"{RESPONSES} must be an object of answers, each an object."
        ) from None


def _read_round(errand: Errand, text: bytes) -> Round | None:
    try:
        return era_bridge.read_round(text)
    except msgspec.DecodeError as problem:
        raise _faulty(errand, str(problem)) from problem


def _require_declared(errand: Errand, found: Round, declared: Mapping[str, Any]) -> None:
    for question in found.questions.values():
        refusal = era_bridge.why_not(question, declared)
        if refusal is not None:
            raise _faulty(errand, f"it asks what its caller did not offer ({refusal[1]})")


def _faulty(errand: Errand, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.MALFORMED_RESULT,
        f"{errand.server} answered {errand.method} with a round of questions that breaks the protocol: {why}",
        server=errand.server,
        operation=errand.method,
        verdict=Verdict.MAY_HAVE_RUN,
    )


def _asks_for_ever(errand: Errand) -> GatewayFailure:
    return GatewayFailure(
        Kind.MALFORMED_RESULT,
        f"{errand.server} has asked for input {MAX_ROUNDS} times without answering {errand.method}; the call has ended",
        server=errand.server,
        operation=errand.method,
        verdict=Verdict.MAY_HAVE_RUN,
    )


def too_large(server: str, method: str, max_bytes: int) -> GatewayFailure:
    """A round is passed on whole or not at all."""
    return GatewayFailure(
        Kind.RESPONSE_TOO_LARGE,
        f"{server} answered {method} with questions of more than {max_bytes} bytes (response.maxResponseBytes)",
        server=server,
        operation=method,
    )
