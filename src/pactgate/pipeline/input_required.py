"""Input-required results and the answers to them: reading both, and the failures for those that break the protocol or our bounds.

Must not: send anything, or decide who is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.values import Caller
from pactgate.pipeline.upstream_request import UpstreamRequest
from pactgate.protocol import era_bridge, messages
from pactgate.protocol.era_bridge import RESPONSES, InputRequiredResult
from pactgate.protocol.messages import Response
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.peer import UpstreamReplyError

MAX_ROUNDS: Final = 20


def may_be_input_required(session: Session, response: Response) -> bool:
    """Whether an answer has to be looked at: a modern server may ask even a caller that can't be asked, to come again later."""
    return session.asks_by_result and response.simple is None and era_bridge.INPUT_REQUIRED_MARK in response.result


def read_answers(request: UpstreamRequest) -> dict[str, bytes]:
    try:
        return era_bridge.read_answers(request.responses)
    except msgspec.DecodeError:
        raise GatewayFailure(
            Kind.INVALID_PARAMS, f"{RESPONSES} must be an object of answers, each an object."
        ) from None


def read_input_required(request: UpstreamRequest, text: bytes) -> InputRequiredResult | None:
    try:
        return era_bridge.read_input_required(text)
    except msgspec.DecodeError as problem:
        raise _faulty(request, str(problem)) from problem


def require_declared(request: UpstreamRequest, found: InputRequiredResult, declared: Mapping[str, Any]) -> None:
    for question in found.questions.values():
        refusal = era_bridge.why_not(question, declared)
        if refusal is not None:
            raise _faulty(request, f"it asks what its client did not offer ({refusal[1]})")


def _faulty(request: UpstreamRequest, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.MALFORMED_RESULT,
        f"{request.server} answered {request.method} with a round of questions that breaks the protocol: {why}",
        server=request.server,
        operation=request.method,
        verdict=Verdict.MAY_HAVE_RUN,
    )


def asks_for_ever(request: UpstreamRequest) -> GatewayFailure:
    return GatewayFailure(
        Kind.MALFORMED_RESULT,
        f"{request.server} has asked for input {MAX_ROUNDS} times without answering {request.method}; the call has ended",
        server=request.server,
        operation=request.method,
        verdict=Verdict.MAY_HAVE_RUN,
    )


def too_large(server: str, method: str, max_bytes: int) -> GatewayFailure:
    """An input-required result is never truncated: one that is too large is a failure."""
    return GatewayFailure(
        Kind.RESPONSE_TOO_LARGE,
        f"{server} answered {method} with questions of more than {max_bytes} bytes (response.maxResponseBytes)",
        server=server,
        operation=method,
    )


def map_upstream_error(refusal: UpstreamReplyError, caller: Caller) -> GatewayFailure:
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
