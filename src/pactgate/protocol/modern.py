"""The modern era: the ladder that admits a request on its own evidence, and the marks a modern result carries.

`classify` climbs in the order the specification's answers imply: envelope, headers against body, version, method, then the
optional members of `_meta`. Each rung says why with the specification's code and the id of the request. It decodes only
what a rung looks at. Must not: remember a request (every one is judged alone) or touch the bytes that are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from pactgate.protocol import messages
from pactgate.protocol.headers import METHOD_HEADER, NAME_HEADER, VERSION_HEADER, decode_value
from pactgate.protocol.messages import Rejection, Request, encode_json
from pactgate.protocol.versions import MODERN_VERSIONS, NAMED_BY, exists, is_foreign

PREFIX: Final = "io.modelcontextprotocol/"
PV: Final = "io.modelcontextprotocol/protocolVersion"
CC: Final = "io.modelcontextprotocol/clientCapabilities"
CI: Final = "io.modelcontextprotocol/clientInfo"
LL: Final = "io.modelcontextprotocol/logLevel"
SI: Final = "io.modelcontextprotocol/serverInfo"
SUB: Final = "io.modelcontextprotocol/subscriptionId"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
PROGRESS_TOKEN: Final = "progressToken"

_ENVELOPE: Final = {PV, CC, CI, LL}

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_PV_TEXT: Final = PV.encode()
_COMPLETE: Final = b'"complete"'
_ERA_MEMBERS: Final = ("resultType", "ttlMs", "cacheScope")
_LABEL_CHARS: Final = 128
_ECHOED_CHARS: Final = 256
_REMEMBERED_BYTES: Final = 2048
_INTEGER: Final = re.compile(rb"-?[0-9]+")


class Route(Struct, frozen=True):
    """An admitted request: what it says of itself. `client` is a name to show, nothing to rely on; `meta` is as received."""

    version: str
    client: str
    capabilities: dict[str, Any]
    meta: dict[str, Raw]
    log_level: str | None


class _Said(Struct, frozen=True):
    """What the `_meta` of a request says, or why its optional members can't be used."""

    version: str
    client: str
    capabilities: dict[str, Any]
    meta: dict[str, Raw]
    log_level: str | None
    problem: str | None


class _Params(Struct):
    meta: Raw = field(name="_meta")
    name: Raw | UnsetType = UNSET
    uri: Raw | UnsetType = UNSET
    taskId: Raw | UnsetType = UNSET  # noqa: N815 - the wire's spelling


_params: Final = msgspec.json.Decoder(_Params)
_text: Final = msgspec.json.Decoder(str)
_object: Final = msgspec.json.Decoder(dict[str, Any])


def classify(request: Request, headers: Mapping[str, list[str]] | None, *, is_open: bool = False) -> Route | Rejection:
    """The ladder up to an unknown method and the optional members of `_meta`. `headers` is None where there are none; `is_open`
    admits methods no revision has, for whoever knows extensions."""
    try:
        text, name = _meta_and_name(request)
    except msgspec.DecodeError:
        return _bad_params(request, "The params need an object _meta.")
    said = _remembered_meta(text) if len(text) <= _REMEMBERED_BYTES else _read_meta(text)
    if isinstance(said, str):
        return _bad_params(request, said)
    version = said.version
    if headers is not None:
        differs = _check_headers(request.method, version, name, headers)
        if differs is not None:
            return Rejection(messages.HEADER_MISMATCH, differs, request.id)
    if version not in MODERN_VERSIONS:
        return _unsupported(request, version)
    if not (exists(request.method, version) or (is_open and is_foreign(request.method))):
        message = f"There is no method {request.method!r} in revision {version}."
        return Rejection(messages.METHOD_NOT_FOUND, message, request.id)
    if said.problem is not None:
        return _bad_params(request, said.problem)
    return Route(version, said.client, said.capabilities, said.meta, said.log_level)


def _meta_and_name(request: Request) -> tuple[bytes, str | None]:
    """The `_meta` of a request, and the name it mirrors into a header, if it has one that is a text. Raises where it has no `_meta`."""
    given, member = request.given, NAMED_BY.get(request.method)
    if given is not None and "_meta" in given:
        name = None if member is None else given.get(member)
        return encode_json(given["_meta"]), name if isinstance(name, str) else None
    params = _params.decode(request.params or b"{}")
    raw: Raw | UnsetType = UNSET if member is None else getattr(params, member)
    if raw is UNSET or not bytes(raw).startswith(b'"'):
        return bytes(params.meta), None
    return bytes(params.meta), _text.decode(raw)


def _read_meta(text: bytes) -> _Said | str:
    """What it says, or what it lacks."""
    try:
        meta = messages.members(text)
    except msgspec.DecodeError:
        return "The params need an object _meta."
    if PV not in meta or CC not in meta:
        return f"The _meta needs {PV} and {CC}."
    try:
        version = _text.decode(meta[PV])
        capabilities = _object.decode(meta[CC])
        client = read_client(meta[CI]) if CI in meta else ""
    except msgspec.DecodeError:
        return f"In _meta, {PV} must be a string, {CC} and {CI} must be objects."
    log_level = _read_level(meta[LL]) if LL in meta else None
    problem = None
    if PROGRESS_TOKEN in meta and not _is_token(bytes(meta[PROGRESS_TOKEN])):
        problem = "The progressToken must be a string or an integer."
    elif log_level is None and LL in meta:
        problem = f"The {LL} must be one of {', '.join(LOG_LEVELS)}."
    return _Said(version, client, capabilities, meta, log_level, problem)


# A client sends the same bytes with each request, unless it asks for progress.
_remembered_meta: Final = lru_cache(maxsize=256)(_read_meta)


def has_envelope(request: Request) -> bool:
    """Whether a request calls itself modern: its `_meta` names a protocol version."""
    if request.given is not None:
        meta = request.given.get("_meta")
        return isinstance(meta, dict) and PV in meta
    params = request.params
    if params is None or (_PV_TEXT not in params and b"\\" not in params):
        return False
    try:
        return PV in messages.members(bytes(_params.decode(params).meta))
    except msgspec.DecodeError:
        return False


def envelope(version: str, client_info: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Raw]:
    """The `_meta` members every request to a modern server carries."""
    return {
        PV: Raw(encode_json(version)),
        CC: Raw(encode_json(capabilities)),
        CI: Raw(encode_json(client_info)),
    }


def is_only_envelope(meta: Mapping[str, Any]) -> bool:
    """Whether a caller's `_meta` says nothing but what describes its own connection."""
    return meta.keys() <= _ENVELOPE


def without_envelope(meta: Mapping[str, Raw]) -> dict[str, Raw]:
    """What of a caller's `_meta` may travel on: all but what describes the caller's own connection."""
    return {key: held for key, held in meta.items() if not key.startswith(PREFIX) and key != PROGRESS_TOKEN}


def complete(result: dict[str, Raw], server_info: bytes, *, cacheable: bool) -> dict[str, Raw]:
    """The result as a modern caller must get it: with a type, an identity (the upstream's own, if it gave one) and cache hints."""
    shaped = dict(result)
    meta = _meta_of(result)
    meta.setdefault(SI, Raw(server_info))
    shaped["_meta"] = Raw(encode_json(meta))
    kind = shaped.setdefault("resultType", Raw(_COMPLETE))
    if cacheable and bytes(kind) == _COMPLETE:
        shaped.setdefault("ttlMs", Raw(b"0"))
        shaped.setdefault("cacheScope", Raw(b'"private"'))
    return shaped


def strip_result(result: dict[str, Raw]) -> dict[str, Raw]:
    """The result as a legacy caller knows it: without the members only modern results have."""
    shaped = {name: held for name, held in result.items() if name not in _ERA_MEMBERS}
    meta = _meta_of(result)
    kept = {key: held for key, held in meta.items() if not key.startswith(PREFIX)}
    if len(kept) == len(meta):
        return shaped
    if kept:
        shaped["_meta"] = Raw(encode_json(kept))
    else:
        del shaped["_meta"]
    return shaped


def read_client(raw: Raw | bytes) -> str:
    """A client's name and version as one short printable text. Raises msgspec.DecodeError for anything but an object."""
    text = bytes(raw)
    return _remembered_label(text) if len(text) <= _REMEMBERED_BYTES else _label(text)


def _label(text: bytes) -> str:
    info = _object.decode(text)
    parts = [part for part in (info.get("name"), info.get("version")) if isinstance(part, str) and part]
    label = "/".join(part[:_LABEL_CHARS] for part in parts)[:_LABEL_CHARS]
    return "".join(letter if letter.isprintable() else "?" for letter in label)


# A client sends the same bytes with each request.
_remembered_label: Final = lru_cache(maxsize=256)(_label)


def _check_headers(method: str, version: str, name: str | None, headers: Mapping[str, list[str]]) -> str | None:
    """Why a header is missing, doubled or differs from the body, or None."""
    if headers.get(VERSION_HEADER) != [version]:
        return f"The header MCP-Protocol-Version must be sent once and equal {PV} in _meta."
    if headers.get(METHOD_HEADER) != [method]:
        return "The header Mcp-Method must be sent once and equal the method of the body."
    names = headers.get(NAME_HEADER, [])
    if len(names) > 1:
        return "The header Mcp-Name was sent more than once."
    if name is None:
        return None  # nothing to compare with: whether the member may be missing is for whoever reads the params
    if names == [name] and name.isascii() and not name.startswith("="):
        return None
    if not names or decode_value(names[0]) != name:
        return f"The header Mcp-Name must be sent and equal the {NAMED_BY[method]} of the params."
    return None


def _unsupported(request: Request, version: str) -> Rejection:
    requested = version[:_ECHOED_CHARS]
    return Rejection(
        messages.UNSUPPORTED_VERSION,
        f"Revision {requested!r} is not served.",
        request.id,
        {"supported": list(MODERN_VERSIONS), "requested": requested},
    )


def _bad_params(request: Request, message: str) -> Rejection:
    return Rejection(messages.INVALID_PARAMS, message, request.id)


def _is_token(raw: bytes) -> bool:
    return raw.startswith(b'"') or _INTEGER.fullmatch(raw) is not None


def _read_level(raw: Raw) -> str | None:
    try:
        level = _text.decode(raw)
    except msgspec.ValidationError:
        return None
    return level if level in LOG_LEVELS else None


def _meta_of(result: Mapping[str, Raw]) -> dict[str, Raw]:
    """The members of a result's `_meta`; none where a server sent something else in its place."""
    raw = result.get("_meta")
    if raw is None or not bytes(raw).startswith(b"{"):
        return {}
    return messages.members(bytes(raw))
