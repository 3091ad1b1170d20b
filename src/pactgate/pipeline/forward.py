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
from pactgate.pipeline.capabilities import has_extensions
from pactgate.pipeline.relaying import Relaying, relay_progress, token_of
from pactgate.pipeline.rules import Rulebook
from pactgate.policy.cache import judge
from pactgate.policy.recall import Lease, Recall
from pactgate.protocol import fitting, messages, modern
from pactgate.protocol.codes import code_for
from pactgate.protocol.hints import STALE, read_hint
from pactgate.protocol.messages import Request, encode_json
from pactgate.protocol.versions import CACHEABLE, LATEST_LEGACY, Era, era_of
from pactgate.state.ports import Lookup
from pactgate.upstreams.peer import UpstreamReplied

_TEXT: Final = msgspec.json.Decoder(str)
_CONTENTS: Final = msgspec.json.Decoder(list[dict[str, Raw]])
_OURS_TO_HANDLE: Final = frozenset(
    {messages.HEADER_MISMATCH, messages.MISSING_CLIENT_CAPABILITY, messages.UNSUPPORTED_VERSION}
)
"""Errors about the request we made, not about the one our caller made."""

ReadOwn = Callable[[str, Caller], bytes | None]
"""The contents of a resource of the gateway itself for one caller, without era members; None when there is none."""


class _Addressed(NamedTuple):
    server: str
    members: dict[str, Raw]
    name: str | None = None
    token: Raw | None = None


class _Answer(NamedTuple):
    """What a server said, and in which revision."""

    text: bytes
    revision: str
    remaining_ms: int | None = None
    """How long a kept answer may still be given; None for a fresh one."""


class Forward:
    """Sends a request to its server, once, under one time limit."""

    def __init__(
        self,
        connections: Connections,
        recall: Recall,
        book: Callable[[], Rulebook],
        relaying: Relaying,
        *,
        read_own: ReadOwn,
        server_info: bytes,
    ) -> None:
        self._connections = connections
        self._recall = recall
        self._book = book
        self._relaying = relaying
        self._read_own = read_own
        self._server_info = server_info

    async def get_prompt(self, ctx: ExecutionContext, request: Request) -> bytes:
        members, meta, token = _params(request)
        name = _text(members, "name", request.method)
        await self._connections.settle()
        prompt = self._connections.catalog.prompts.resolve(name, ctx.caller.scope)
        members["name"] = Raw(encode_json(prompt.name))
        answer = await self._ask(ctx, request, _Addressed(prompt.server, members, prompt.name, token), meta)
        return _fit_prompt(self._shape(answer, request.method, ctx.caller), prompt.server, ctx.caller)

    async def read_resource(self, ctx: ExecutionContext, request: Request) -> bytes:
        members, meta, token = _params(request)
        uri = _text(members, "uri", request.method)
        if uri.startswith(OWN_SCHEME):
            own = _Answer(self._own(uri, ctx.caller), LATEST_LEGACY)
            return self._shape(own, request.method, ctx.caller)
        target = await self._target(uri, ctx.caller.scope)
        members["uri"] = Raw(encode_json(target.uri))
        answer = await self._read(ctx, request, _Addressed(target.server, members, target.uri, token), meta)
        result = self._shape(answer, request.method, ctx.caller)
        return result if ctx.caller.scope is not None else _with_full_uris(result, target.server)

    async def complete(self, ctx: ExecutionContext, request: Request) -> bytes:
        """Completions are asked of the server the reference points at."""
        members, meta, token = _params(request)
        try:
            reference = messages.members(bytes(members["ref"]))
            kind = _TEXT.decode(reference["type"])
        except (KeyError, msgspec.DecodeError):
            raise _bad(request.method, "ref must be an object with a type") from None
        server = await self._rewrite(reference, kind, ctx.caller.scope)
        members["ref"] = Raw(encode_json(reference))
        answer = await self._ask(ctx, request, _Addressed(server, members, token=token), meta)
        return self._shape(answer, request.method, ctx.caller)

    async def pass_on(self, ctx: ExecutionContext, request: Request) -> bytes:
        """A method of tasks or of an extension, as it is, to the one server whose path this is; both must speak the same era."""
        server = ctx.caller.scope
        if server is None:
            raise _not_here(request.method, "it belongs to one server; ask at /mcp/{serverId}")
        session = await self._connections.session(server)
        if session.identity.era is not ctx.caller.era:
            raise _not_here(request.method, f"{server} speaks another era, and this can't be carried between eras")
        if not has_extensions(session.identity.capabilities):
            raise _not_here(request.method, f"{server} does not offer it")
        members, meta, token = _params(request)
        name = _TEXT.decode(members["taskId"]) if bytes(members.get("taskId", Raw(b""))).startswith(b'"') else None
        answer = await self._ask(ctx, request, _Addressed(server, members, name, token), meta)
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
            return _Answer(found.value, found.mark.decode(), found.remaining_ms)
        try:
            answer = await self._ask(ctx, request, to, meta)
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

    async def _ask(self, ctx: ExecutionContext, request: Request, to: _Addressed, meta: Mapping[str, Raw]) -> _Answer:
        """What the server answers, as it wrote it."""
        limit_ms = self._book().server_limit_ms(to.server)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                session = await self._connections.session(to.server)
                level = self._relaying.prepare(ctx.caller, session)
                if level is not None:
                    await level
                text = await session.peer.request(
                    request.method,
                    to.members,
                    meta=self._relaying.stamp(ctx.caller, session, meta),
                    name=to.name,
                    on_progress=relay_progress(ctx.caller.channel, to.token),
                    owner=ctx.caller.subject,
                    on_log=self._relaying.on_log(ctx.caller, session),
                )
        except TimeoutError:
            raise _too_slow(to.server, request.method, limit_ms) from None
        except UpstreamReplied as refusal:
            raise _as_said(refusal, ctx.caller.era, request.method) from refusal
        if not text.startswith(b"{"):
            raise GatewayFailure(
                Kind.MALFORMED_RESULT, f"{to.server} answered {request.method} without an object", server=to.server
            )
        return _Answer(text, session.identity.version)

    def _shape(self, answer: _Answer, method: str, caller: Caller) -> bytes:
        if caller.era is Era.MODERN:
            members = messages.members(answer.text)
            if "ttlMs" in members and method in CACHEABLE:
                _renew_hint(members, answer.remaining_ms)
            return encode_json(modern.complete(members, self._server_info, cacheable=method in CACHEABLE))
        if era_of(answer.revision) is Era.MODERN:
            return encode_json(modern.strip_result(messages.members(answer.text)))
        return answer.text

    def _own(self, uri: str, caller: Caller) -> bytes:
        text = self._read_own(uri, caller)
        if text is None:
            raise GatewayFailure(Kind.UNKNOWN_RESOURCE, f"The gateway has no resource {uri!r}.", details={"uri": uri})
        return text


def _fit_prompt(result: bytes, server: str, caller: Caller) -> bytes:
    """The messages with URIs and content this caller can use; mostly there is nothing to do."""
    if caller.scope is None and b'"resource' in result:
        result = _fit_said(result, lambda content: fitting.name_uris(content, lambda uri: full_uri(server, uri)))
    if b'"audio"' in result or b'"resource_link"' in result:
        result = _fit_said(result, lambda content: fitting.fit_content(content, caller.version))
    return result


def _fit_said(result: bytes, fit: Callable[[Raw], Raw]) -> bytes:
    members = messages.members(result)
    if "messages" in members:
        members["messages"] = fitting.fit_messages(members["messages"], fit)
    return encode_json(members)


def _renew_hint(members: dict[str, Raw], remaining_ms: int | None) -> None:
    """What is left of the time the server gave, as a number a caller can use."""
    hint = read_hint(members) or STALE
    left_ms = hint.ttl_ms if remaining_ms is None else min(hint.ttl_ms, remaining_ms)
    members["ttlMs"] = Raw(b"%d" % left_ms)
    members["cacheScope"] = Raw(b'"public"' if hint.is_public else b'"private"')


def _params(request: Request) -> tuple[dict[str, Raw], dict[str, Raw], Raw | None]:
    """The params without `_meta`, the foreign members of `_meta`, and the token progress goes by."""
    members = messages.members(request.params or b"{}")
    held = members.pop("_meta", None)
    try:
        meta = messages.members(bytes(held)) if held is not None else {}
    except msgspec.DecodeError:
        raise _bad(request.method, "_meta must be an object") from None
    return members, modern.without_envelope(meta), token_of(meta, request.method)


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


def _as_said(refusal: UpstreamReplied, era: Era, method: str) -> GatewayFailure:
    """The server's refusal as the caller's era knows it: its code, message and data beside ours."""
    reply = refusal.reply
    if reply.code in _OURS_TO_HANDLE:
        return refusal
    said: Any = messages.value(reply.data) if reply.data is not None else None
    refusal.message = reply.message
    refusal.number = code_for(reply, era, method)
    if isinstance(said, dict):
        refusal.details = {**refusal.details, **said}
    return refusal


def _not_here(method: str, why: str) -> GatewayFailure:
    return GatewayFailure(Kind.METHOD_NOT_FOUND, f"There is no method {method[:100]!r} here: {why}.")


def _too_slow(server: str, method: str, limit_ms: int) -> GatewayFailure:
    return GatewayFailure(
        Kind.CALL_TIMEOUT,
        f"{server} did not answer {method} within {limit_ms} ms (timeout)",
        server=server,
        operation=method,
        details={"phase": "call", "timeoutMs": limit_ms, "timeout_seconds": limit_ms / 1000},
    )


def _bad(method: str, why: str) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_PARAMS, f"The params of {method} can't be used: {why}.")
