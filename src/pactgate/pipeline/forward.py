"""Methods that are passed to the one server they are about: prompts/get, resources/read, completion/complete.

Names and URIs are rewritten to the server's own on the way in; contents carry full URIs on the way out. What the server refuses is refused
with the server's own code, message and data. Must not: interpret, cache or repeat anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.catalog.uris import OWN_SCHEME, Target, full_uri
from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.model import Caller
from pactgate.pipeline.asking import Asking, Outcome, as_said, may_be_round, needs_asking, too_large
from pactgate.pipeline.deadline import Deadline
from pactgate.pipeline.errand import Errand, Headers
from pactgate.pipeline.rules import Rulebook
from pactgate.policy.cache import judge
from pactgate.policy.recall import Lease, Recall
from pactgate.protocol import messages, modern
from pactgate.protocol.bridge import ROUND_METHODS
from pactgate.protocol.messages import Request, encode_json
from pactgate.protocol.versions import CACHEABLE, LATEST_LEGACY, Era, era_of
from pactgate.state.ports import Lookup
from pactgate.upstreams.connect import Session
from pactgate.upstreams.peer import UpstreamReplied

_TEXT: Final = msgspec.json.Decoder(str)
_CONTENTS: Final = msgspec.json.Decoder(list[dict[str, Raw]])
_OURS_TO_HANDLE: Final = frozenset({messages.HEADER_MISMATCH, messages.UNSUPPORTED_VERSION})
"""Errors about the request we made, not about the one our caller made."""

ReadOwn = Callable[[str, Caller], bytes | None]
"""The contents of a resource of the gateway itself for one caller, without era members; None when there is none."""


class _Addressed(NamedTuple):
    server: str
    members: dict[str, Raw]
    name: str | None = None


class _Answer(NamedTuple):
    """What a server said, and in which revision. A round asks its caller for input instead."""

    text: bytes
    revision: str
    is_round: bool = False


class Forward:
    """Sends a request to its server, once, under one time limit."""

    def __init__(
        self,
        connections: Connections,
        recall: Recall,
        book: Callable[[], Rulebook],
        asking: Asking,
        *,
        read_own: ReadOwn,
        server_info: bytes,
    ) -> None:
        self._connections = connections
        self._recall = recall
        self._book = book
        self._asking = asking
        self._read_own = read_own
        self._server_info = server_info

    async def get_prompt(self, ctx: ExecutionContext, request: Request) -> bytes:
        members, meta = _params(request)
        name = _text(members, "name", request.method)
        await self._connections.settle()
        prompt = self._connections.catalog.prompts.resolve(name, ctx.caller.scope)
        members["name"] = Raw(encode_json(prompt.name))
        answer = await self._ask(ctx, request, _Addressed(prompt.server, members, prompt.name), meta)
        return self._shape(answer, request.method, ctx.caller)

    async def read_resource(self, ctx: ExecutionContext, request: Request) -> bytes:
        members, meta = _params(request)
        uri = _text(members, "uri", request.method)
        if uri.startswith(OWN_SCHEME):
            own = _Answer(self._own(uri, ctx.caller), LATEST_LEGACY)
            return self._shape(own, request.method, ctx.caller)
        target = await self._target(uri, ctx.caller.scope)
        members["uri"] = Raw(encode_json(target.uri))
        answer = await self._read(ctx, request, _Addressed(target.server, members, target.uri), meta)
        result = self._shape(answer, request.method, ctx.caller)
        is_ready = ctx.caller.scope is not None or answer.is_round
        return result if is_ready else _with_full_uris(result, target.server)

    async def complete(self, ctx: ExecutionContext, request: Request) -> bytes:
        """Completions are asked of the server the reference points at."""
        members, meta = _params(request)
        try:
            reference = messages.members(bytes(members["ref"]))
            kind = _TEXT.decode(reference["type"])
        except (KeyError, msgspec.DecodeError):
            raise _bad(request.method, "ref must be an object with a type") from None
        server = await self._rewrite(reference, kind, ctx.caller.scope)
        members["ref"] = Raw(encode_json(reference))
        answer = await self._ask(ctx, request, _Addressed(server, members), meta)
        return self._shape(answer, request.method, ctx.caller)

    async def _rewrite(self, reference: dict[str, Raw], kind: str, scope: str | None) -> str:
        await self._connections.settle()
        if kind == "ref/prompt":
            prompt = self._connections.catalog.prompts.resolve(_text(reference, "name", kind), scope)
            reference["name"] = Raw(encode_json(prompt.name))
            return prompt.server
        if kind == "ref/resource":
            target = await self._target(_text(reference, "uri", kind), scope)
            reference["uri"] = Raw(encode_json(target.uri))
            return target.server
        raise _bad("completion/complete", f"a reference can't be of type {kind[:40]!r}")

    async def _target(self, uri: str, scope: str | None) -> Target:
        """The server of a listed resource, or of a template's own text (completions name the template)."""
        await self._connections.settle()
        catalog, servers = self._connections.catalog, self._connections.servers
        try:
            return catalog.resources.resolve(uri, servers, scope)
        except GatewayFailure as failure:
            if failure.kind is not Kind.UNKNOWN_RESOURCE:
                raise
            return catalog.templates.resolve(uri, servers, scope)

    async def _read(self, ctx: ExecutionContext, request: Request, to: _Addressed, meta: Mapping[str, Raw]) -> _Answer:
        """A resource, kept where its server says for how long and for whom; equal reads at the same time are one."""
        plan = self._book().of_reads(to.server)
        if len(to.members) > 1 or meta:  # a read that says more than its URI may be answered otherwise
            return await self._ask(ctx, request, to, meta)
        found = self._recall.ask(plan.keys(ctx.caller.subject, bytes(to.members["uri"])), to.server)
        if not isinstance(found, Lookup | Lease):
            found = await found
        if isinstance(found, Lookup):
            ctx.is_cached = True
            return _Answer(found.value, found.mark.decode())
        try:
            answer = await self._ask(ctx, request, to, meta, found.decline)
            worth = judge(plan, answer.text)
            if worth is not None:
                mark = answer.revision.encode()
                found.keep(answer.text, ttl_ms=worth.ttl_ms, mark=mark, is_public=worth.is_public)
        except asyncio.CancelledError:
            found.hand_over()
            raise
        finally:
            found.decline()  # the first word counts
        return answer

    async def _ask(
        self,
        ctx: ExecutionContext,
        request: Request,
        to: _Addressed,
        meta: Mapping[str, Raw],
        on_asked: Callable[[], None] = lambda: None,
    ) -> _Answer:
        """What the server answers, as it wrote it; or what it asks, where the method can."""
        limit_ms = self._book().server_limit_ms(to.server)
        input_ms = self._book().input_timeout_ms
        deadline = Deadline(limit_ms, input_ms)
        try:
            outcome = await self._send(ctx.caller, request, to, meta, deadline, on_asked)
        except asyncio.CancelledError:
            if not deadline.ended_it():
                raise
            if deadline.is_waiting_for_caller:
                raise _unanswered(to.server, request.method, input_ms) from None
            raise _too_slow(to.server, request.method, limit_ms) from None
        except UpstreamReplied as refusal:
            raise _as_said(refusal, ctx.caller) from refusal
        finally:
            deadline.close()
        if not outcome.text.startswith(b"{"):
            raise GatewayFailure(
                Kind.MALFORMED_RESULT, f"{to.server} answered {request.method} without an object", server=to.server
            )
        if outcome.is_round and len(outcome.text) > self._book().max_response_bytes:
            raise too_large(to.server, request.method, self._book().max_response_bytes)
        return _Answer(outcome.text, outcome.session.identity.version, outcome.is_round)

    async def _send(
        self,
        caller: Caller,
        request: Request,
        to: _Addressed,
        meta: Mapping[str, Raw],
        deadline: Deadline,
        on_asked: Callable[[], None],
    ) -> Outcome:
        session = await self._connections.session(to.server)
        if request.method not in ROUND_METHODS:
            return Outcome(await session.peer.request(request.method, to.members, meta=meta, name=to.name), session)
        errand = Errand(
            caller,
            to.server,
            request.method,
            to.members,
            meta=meta,
            name=to.name,
            on_progress=None,
            patience=deadline,
            begin=_no_headers,
            on_asked=on_asked,
        )
        if session.may_be_private or needs_asking(caller, to.members):
            return await self._asking.run(errand)
        text = await session.peer.request(request.method, to.members, meta=meta, name=to.name)
        return (
            await self._asking.resume(errand, session, text) if may_be_round(session, text) else Outcome(text, session)
        )

    def _shape(self, answer: _Answer, method: str, caller: Caller) -> bytes:
        if caller.era is Era.MODERN:
            members = messages.members(answer.text)
            return encode_json(modern.complete(members, self._server_info, cacheable=method in CACHEABLE))
        if era_of(answer.revision) is Era.MODERN:
            return encode_json(modern.strip_result(messages.members(answer.text)))
        return answer.text

    def _own(self, uri: str, caller: Caller) -> bytes:
        text = self._read_own(uri, caller)
        if text is None:
            raise GatewayFailure(Kind.UNKNOWN_RESOURCE, f"The gateway has no resource {uri!r}.", details={"uri": uri})
        return text


def _no_headers(session: Session) -> Headers:
    return ()


def _params(request: Request) -> tuple[dict[str, Raw], dict[str, Raw]]:
    """The params without `_meta`, and the foreign members of `_meta`."""
    members = messages.members(request.params or b"{}")
    held = members.pop("_meta", None)
    try:
        meta = messages.members(bytes(held)) if held is not None else {}
    except msgspec.DecodeError:
        raise _bad(request.method, "_meta must be an object") from None
    return members, modern.without_envelope(meta)


def _text(members: Mapping[str, Raw], name: str, method: str) -> str:
    try:
        return _TEXT.decode(members[name])
    except (KeyError, msgspec.DecodeError):
        raise _bad(method, f"{name} must be a text") from None


def _with_full_uris(result: bytes, server: str) -> bytes:
    """The contents under the URIs that lead back to their server."""
    members = messages.members(result)
    try:
        contents = _CONTENTS.decode(members["contents"])
        for item in contents:
            item["uri"] = Raw(encode_json(full_uri(server, _TEXT.decode(item["uri"]))))
    except (KeyError, msgspec.DecodeError):
        raise GatewayFailure(
            Kind.MALFORMED_RESULT, f"{server} answered resources/read without contents that have URIs", server=server
        ) from None
    members["contents"] = Raw(encode_json(contents))
    return encode_json(members)


def _as_said(refusal: UpstreamReplied, caller: Caller) -> GatewayFailure:
    """The server's refusal as the caller's era knows it: its code, message and data beside ours."""
    reply = refusal.reply
    if reply.code == messages.MISSING_CLIENT_CAPABILITY:
        return as_said(refusal, caller)
    if reply.code in _OURS_TO_HANDLE or (reply.code == messages.URL_REQUIRED and caller.era is Era.MODERN):
        return refusal
    said: Any = messages.value(reply.data) if reply.data is not None else None
    refusal.message = reply.message
    refusal.number = reply.code
    if caller.era is Era.MODERN and reply.code == messages.RESOURCE_NOT_FOUND:
        refusal.number = messages.INVALID_PARAMS
    if isinstance(said, dict):
        refusal.details = {**refusal.details, **said}
    return refusal


def _too_slow(server: str, method: str, limit_ms: int) -> GatewayFailure:
    return GatewayFailure(
        Kind.CALL_TIMEOUT,
        f"{server} did not answer {method} within {limit_ms} ms (timeout)",
        server=server,
        operation=method,
        details={"phase": "call", "timeoutMs": limit_ms, "timeout_seconds": limit_ms / 1000},
    )


def _unanswered(server: str, method: str, limit_ms: int) -> GatewayFailure:
    return GatewayFailure(
        Kind.INPUT_UNANSWERED,
        f"{server} asked its caller for input to {method} and had no answer within {limit_ms} ms (timeouts.inputTimeoutMs)",
        server=server,
        operation=method,
        details={"phase": "input", "timeoutMs": limit_ms},
    )


def _bad(method: str, why: str) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_PARAMS, f"The params of {method} can't be used: {why}.")
