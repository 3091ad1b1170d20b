"""Adapts the result of a forwarded request to the client: members of its era, cache hints, URIs, content that its version knows.

An error keeps the message and data of the server, under the code of the client's era. Pure. Must not: change anything that the era or
the merged view does not require.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from pactgate.catalog.uris import full_uri
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Caller
from pactgate.pipeline.input_required import map_upstream_error
from pactgate.protocol import downgrade, messages, modern
from pactgate.protocol.cache_hints import STALE, read_hint
from pactgate.protocol.error_codes import code_for
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import CACHEABLE, Era, era_of
from pactgate.upstreams.peer import UpstreamReplyError

_TEXT: Final = msgspec.json.Decoder(str)
_CONTENTS: Final = msgspec.json.Decoder(list[dict[str, Raw]])
_OURS_TO_HANDLE: Final = frozenset({messages.HEADER_MISMATCH, messages.UNSUPPORTED_VERSION})
"""Errors about the request we made, not about the one our caller made."""


class ForwardedResult(NamedTuple):
    """The result of a server and its protocol version. An input-required result asks the client for input instead."""

    data: bytes
    revision: str
    remaining_ms: int | None = None
    """How long a cached result may still be given; None for a fresh one."""
    is_input_required: bool = False


def shape(answer: ForwardedResult, method: str, caller: Caller, server_info: bytes) -> bytes:
    """The result with the members of the client's era, and without those of the other era."""
    if caller.era is Era.MODERN:
        members = messages.members(answer.data)
        if "ttlMs" in members and method in CACHEABLE:
            _renew_hint(members, answer.remaining_ms)
        return encode_json(modern.complete(members, server_info, cacheable=method in CACHEABLE))
    if era_of(answer.revision) is Era.MODERN:
        return encode_json(modern.strip_result(messages.members(answer.data)))
    return answer.data


def fit_prompt(result: bytes, server: str, caller: Caller) -> bytes:
    """The prompt with URIs and content that this client can use. Most prompts need no change."""
    if caller.scope is None and b'"resource' in result:
        result = _fit_said(result, lambda content: downgrade.name_uris(content, lambda uri: full_uri(server, uri)))
    if b'"audio"' in result or b'"resource_link"' in result:
        result = _fit_said(result, lambda content: downgrade.fit_content(content, caller.version))
    return result


def with_full_uris(result: bytes, server: str) -> bytes:
    """The result of a read, with URIs that lead back to the server."""
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


def refused_with(refusal: UpstreamReplyError, caller: Caller, method: str) -> GatewayFailure:
    """The error of the server under the code of the client's era, with the message and data of the server beside ours."""
    reply = refusal.reply
    if reply.code == messages.MISSING_CLIENT_CAPABILITY:
        return map_upstream_error(refusal, caller)
    if reply.code in _OURS_TO_HANDLE or (reply.code == messages.URL_REQUIRED and caller.era is Era.MODERN):
        return refusal
    said: Any = messages.value(reply.data) if reply.data is not None else None
    refusal.message = reply.message
    refusal.number = code_for(reply, caller.era, method)
    if isinstance(said, dict):
        refusal.details = {**refusal.details, **said}
    return refusal


def _fit_said(result: bytes, fit: Callable[[Raw], Raw]) -> bytes:
    members = messages.members(result)
    if "messages" in members:
        members["messages"] = downgrade.fit_messages(members["messages"], fit)
    return encode_json(members)


def _renew_hint(members: dict[str, Raw], remaining_ms: int | None) -> None:
    """Replace the time to live by what is left of it."""
    hint = read_hint(members) or STALE
    left_ms = hint.ttl_ms if remaining_ms is None else min(hint.ttl_ms, remaining_ms)
    members["ttlMs"] = Raw(b"%d" % left_ms)
    members["cacheScope"] = Raw(b'"public"' if hint.is_public else b'"private"')
