"""Which era does this server speak: probe, then handshake.

Sends `server/discover` first; a result or a modern error settles *modern*, anything else but a refusal of our credentials
means `initialize`.
A probe that stays unanswered is left open while `initialize` is tried, so that a slow modern server is still recognised. The older
HTTP+SSE transport is not tried here but by whoever made the channel, on `NotStreamableHttpError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.core.display import cut
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages, modern
from pactgate.protocol.cache_hints import STALE, Hint, read_hint
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, LEGACY_VERSIONS, MODERN_VERSIONS, Era
from pactgate.upstreams.peer import Peer, UpstreamReplyError

PROBE_TIMEOUT_S: Final = 2.0
_MODERN_ERRORS: Final = frozenset(
    {messages.HEADER_MISMATCH, messages.MISSING_CLIENT_CAPABILITY, messages.UNSUPPORTED_VERSION}
)
_REFUSED_CREDENTIALS: Final = frozenset({401, 403})
_SAID_CHARS: Final = 300
_MAX_IDENTITY_BYTES: Final = 256 * 1024


class Identity(Struct, frozen=True):
    """What a server said of itself when it was connected."""

    era: Era
    version: str
    server_info: dict[str, Any]
    capabilities: dict[str, Any]
    instructions: str | None = None
    hint: Hint = STALE
    """How long this may be taken for true, from the moment it was said."""
    issuer: str | None = None
    """Who signs the gateway in there, if somebody does."""


class _DiscoverResult(Struct):
    supportedVersions: list[str]  # noqa: N815 - the wire's spelling
    capabilities: dict[str, Any] = {}
    instructions: str | None = None
    meta: dict[str, Any] = msgspec.field(name="_meta", default={})
    serverInfo: dict[str, Any] | None = None  # noqa: N815 - where servers of the draft still put it


class _InitializeResult(Struct):
    protocolVersion: str  # noqa: N815 - the wire's spelling
    capabilities: dict[str, Any] = {}
    serverInfo: dict[str, Any] = {}  # noqa: N815
    instructions: str | None = None


_discovered: Final = msgspec.json.Decoder(_DiscoverResult)
_initialized: Final = msgspec.json.Decoder(_InitializeResult)


class _NotModernError(Exception):
    """The probe was answered, and the answer is not a modern one."""


async def negotiate(peer: Peer, era: Era | None) -> Identity:
    """Agree with the server behind `peer` on an era and a version; `era` None means find out. Bounded by the caller's timeout."""
    if era is Era.MODERN:
        try:
            return await _discover(peer)
        except _NotModernError as problem:
            raise _unusable(peer, "is set to era modern and is not", str(problem)) from problem
    if era is Era.LEGACY:
        return await _initialize(peer)
    return await _find_out(peer)


async def _find_out(peer: Peer) -> Identity:
    probe = asyncio.create_task(_discover(peer))
    try:
        done, _ = await asyncio.wait({probe}, timeout=PROBE_TIMEOUT_S)
        if done:
            try:
                return probe.result()
            except _NotModernError:
                return await _initialize_or_probe_again(peer)
        return await _race(peer, probe)
    finally:
        await _end(probe)


async def _race(peer: Peer, probe: asyncio.Task[Identity]) -> Identity:
    """The probe is slow. A handshake goes out beside it; the first good answer decides."""
    handshake = asyncio.create_task(_initialize(peer))
    try:
        await asyncio.wait({probe, handshake}, return_when=asyncio.FIRST_COMPLETED)
        if probe.done() and not probe.cancelled() and probe.exception() is None:
            return probe.result()
        if not handshake.done():
            await asyncio.wait({handshake})
        refusal = handshake.exception()
        if refusal is not None and _names_modern(refusal):
            return await _discover(peer)
        return handshake.result()
    except _NotModernError as problem:
        raise _unusable(peer, "speaks no revision we know", str(problem)) from problem
    finally:
        await _end(handshake)


async def _initialize_or_probe_again(peer: Peer) -> Identity:
    try:
        return await _initialize(peer)
    except UpstreamReplyError as refusal:
        if not _names_modern(refusal):
            raise
    try:
        return await _discover(peer)
    except _NotModernError as problem:
        raise _unusable(peer, "speaks no revision we know", str(problem)) from problem


async def _discover(peer: Peer, *, may_repeat: bool = True) -> Identity:
    envelope = modern.envelope(LATEST_MODERN, peer.client_info, {})
    try:
        text = _bounded(peer, "server/discover", await peer.request("server/discover", {}, meta=envelope))
        found = _discovered.decode(text)
    except UpstreamReplyError as refusal:
        if may_repeat and _names_modern(
            refusal
        ):  # it speaks our version after all: asking is not calling, so once more
            return await _discover(peer, may_repeat=False)
        raise _judge_refusal(peer, refusal) from refusal
    except GatewayFailure as failure:
        if _is_era_evidence(failure):
            raise _NotModernError(failure.message) from failure
        raise
    except msgspec.DecodeError as problem:
        raise _NotModernError(f"its discovery result can't be read: {problem}") from problem
    version = next((known for known in reversed(MODERN_VERSIONS) if known in found.supportedVersions), None)
    if version is None:
        raise _NotModernError(f"it offers {', '.join(found.supportedVersions) or 'no version'}")
    peer.settle(Era.MODERN, version)
    info = found.meta.get(modern.SERVER_INFO_KEY) or found.serverInfo or {}
    hint = read_hint(messages.members(text)) or STALE
    return Identity(Era.MODERN, version, _as_object(info), found.capabilities, found.instructions, hint)


def _judge_refusal(peer: Peer, refusal: UpstreamReplyError) -> Exception:
    """-32020..-32022 can only come from a modern server; of these only a version it shares with us can still be mended."""
    if refusal.reply.code not in _MODERN_ERRORS:
        return _NotModernError(refusal.message)
    supported = _supported(refusal)
    if any(version in LEGACY_VERSIONS for version in supported):
        return _NotModernError(f"it offers {', '.join(supported)}")
    return _unusable(peer, "is modern but refused us", f"{refusal.message}; it supports {supported}")


def _is_era_evidence(failure: GatewayFailure) -> bool:
    """A refusal of credentials and a broken connection say nothing about the era; an odd answer does."""
    if failure.kind is Kind.HTTP_STATUS:
        return failure.details.get("status") not in _REFUSED_CREDENTIALS
    return failure.kind is Kind.INVALID_FRAME


async def _initialize(peer: Peer) -> Identity:
    members = {
        "protocolVersion": Raw(encode_json(LATEST_LEGACY)),
        "capabilities": Raw(encode_json(peer.capabilities)),
        "clientInfo": Raw(encode_json(peer.client_info)),
    }
    text = _bounded(peer, "initialize", await peer.request("initialize", members, cancellable=False))
    try:
        agreed = _initialized.decode(text)
    except msgspec.DecodeError as problem:
        raise _unusable(peer, "answered initialize with something unreadable", str(problem)) from problem
    if agreed.protocolVersion not in LEGACY_VERSIONS:
        raise _unusable(peer, "wants a protocol version that is not one we know", repr(agreed.protocolVersion))
    peer.settle(Era.LEGACY, agreed.protocolVersion)
    await peer.notify("notifications/initialized")
    return Identity(Era.LEGACY, agreed.protocolVersion, agreed.serverInfo, agreed.capabilities, agreed.instructions)


def _bounded(peer: Peer, method: str, result: bytes) -> bytes:
    """The result, if it is not too large to be kept and shown to every client: names, capabilities, instructions."""
    if len(result) > _MAX_IDENTITY_BYTES:
        raise _unusable(peer, f"answered {method} with more than {_MAX_IDENTITY_BYTES} bytes", f"{len(result)} bytes")
    return result


def _names_modern(refusal: BaseException) -> bool:
    return (
        isinstance(refusal, UpstreamReplyError)
        and refusal.reply.code == messages.UNSUPPORTED_VERSION
        and any(version in MODERN_VERSIONS for version in _supported(refusal))
    )


def _supported(refusal: UpstreamReplyError) -> list[str]:
    data = messages.value(refusal.reply.data) if refusal.reply.data else None
    listed = data.get("supported") if isinstance(data, Mapping) else None
    return [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []


def _as_object(info: Any) -> dict[str, Any]:
    return info if isinstance(info, dict) else {}


def _unusable(peer: Peer, what: str, said: str) -> GatewayFailure:
    """Trying again can't mend it: the two sides share no revision. `said` may quote the server."""
    public = f"{peer.server} {what}"
    return GatewayFailure(
        Kind.CONNECTION_FAILED,
        f"{public}: {cut(said, _SAID_CHARS)}",
        server=peer.server,
        operation="connect",
        details={"permanent": True},
        public=public,
    )


async def _end(task: asyncio.Task[Identity]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
