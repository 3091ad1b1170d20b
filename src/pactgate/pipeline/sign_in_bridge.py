"""Asks the caller of a request for a sign-in of its own to a server, as far as its client can be asked.

A modern client with URL elicitation gets an input-required result, one of 2025-11-25 an `elicitation/create`, and every other one the
failure with the link. "Accept" means only that the link is opened, so the request waits for the sign-in. Must not: make a sign-in, or
ask a client that did not say that it can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from pactgate.core.failures import GatewayFailure, Party
from pactgate.core.principal import Principal
from pactgate.core.unanswered import UnansweredError
from pactgate.core.values import Caller
from pactgate.pipeline.question_relay import QuestionRelay
from pactgate.pipeline.upstream_request import UpstreamRequest
from pactgate.protocol import era_bridge
from pactgate.protocol.era_bridge import ELICIT, INPUT_REQUIRED_METHODS, Question
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.oauth.steps import OF_CALLER, authorization_required

HOLD_S: Final = 30.0
"""How long a request that comes again waits for its sign-in, before its client is asked once more."""
_NO_LINK: Final = (
    "Its client has to call with a token or key, and the gateway needs an address for browsers (`auth.resource`)."
)


class Links(Protocol):
    """Where callers sign in. `upstreams/oauth/connect.py` has the one there is."""

    async def link(self, server: str, principal: Principal) -> str | None:
        """The address to open; None where there is none for this caller."""

    async def wait(self, server: str, principal: Principal, within_s: float) -> None:
        """Wait until a caller has signed in, or for so long."""


class _Answer(Struct):
    action: str = ""


class WantedSignIn(Struct, frozen=True):
    """What to ask, and the failure of a request whose client does not do it."""

    question: Question
    failure: GatewayFailure


class SignInBridge:
    """`links` makes the links at which callers sign in; it is asked at the first that somebody needs."""

    def __init__(self, links: Callable[[], Links]) -> None:
        self._links = links

    async def wanted(self, request: UpstreamRequest, failure: GatewayFailure) -> WantedSignIn:
        """What to ask the client of this request. Raises the failure, with the link in it, where the client can't be asked."""
        server, caller = request.server, request.caller
        link = await self._links().link(server, caller.principal)
        told = failure.again()
        told.party = Party.CALLER
        if link is None:
            told.reword(lambda text: f"{text} {_NO_LINK}")
            raise told.again() from None
        told.reword(lambda text: f"{text} Open {link} and call again.")
        told.details = {**told.details, "connectUrl": link}
        message = f"{server} needs a sign-in of your own. Open the link only if you asked for this call."
        question = Question(ELICIT, encode_json({"mode": "url", "url": link, "message": message}))
        if not _can_ask(request, question):
            raise told.again() from None
        return WantedSignIn(question, told)

    async def ask(self, request: UpstreamRequest, wanted: WantedSignIn, input_s: float) -> None:
        """Ask a legacy client, and wait until its user has signed in. Raises where it does not."""
        relay = QuestionRelay(request, _capabilities(request.caller))
        try:
            answer = await relay.ask(wanted.question)
        except UnansweredError:
            raise wanted.failure.again() from None
        if not _is_accepted(answer):
            raise wanted.failure.again()
        with request.deadline.waiting_for_client():
            await self._links().wait(request.server, request.caller.principal, input_s)

    async def wait_after(self, request: UpstreamRequest, answer: bytes | None) -> None:
        """A modern client comes again. Raises where its user has declined."""
        if answer is None or not _is_accepted(answer):
            raise authorization_required(request.server, "it was declined.", next_step="Call again to be asked again.")
        with request.deadline.waiting_for_client():
            await self._links().wait(request.server, request.caller.principal, HOLD_S)


def is_callers(failure: GatewayFailure) -> bool:
    """Whether a failure is one that a sign-in of the caller itself mends."""
    return OF_CALLER in failure.details


def _capabilities(caller: Caller) -> Mapping[str, Any]:
    if caller.era is Era.LEGACY and not caller.channel.can_ask:
        return {}
    return era_bridge.relayable(caller.capabilities, caller.version, towards=caller.era)


def _can_ask(request: UpstreamRequest, question: Question) -> bool:
    is_allowed = request.caller.era is Era.LEGACY or request.method in INPUT_REQUIRED_METHODS
    return is_allowed and era_bridge.why_not(question, _capabilities(request.caller)) is None


def _is_accepted(answer: bytes) -> bool:
    try:
        return msgspec.json.decode(answer, type=_Answer).action == "accept"
    except msgspec.DecodeError:
        return False
