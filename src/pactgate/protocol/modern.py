"""The modern era: the ladder that admits a request on its own evidence, and the marks a modern result carries.

`classify` climbs in the order the specification's answers imply: envelope, headers against body, version, method, then the
optional members of `_meta`. Each rung says why with the specification's code and the id of the request. It decodes only
what a rung looks at. Must not: remember a request (every one is judged alone) or touch the bytes that are passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.protocol import messages
from pactgate.protocol.headers import METHOD_HEADER, NAME_HEADER, VERSION_HEADER, decode_value
from pactgate.protocol.messages import Rejection, Request, encode_json
from pactgate.protocol.versions import GROUPS, MODERN_VERSIONS, NAMED_BY, exists, is_foreign

PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID_KEY: Final = "io.modelcontextprotocol/subscriptionId"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
PROGRESS_TOKEN: Final = "progressToken"

_ENVELOPE: Final = {PROTOCOL_VERSION_KEY, CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY}

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_VERSION_KEY_BYTES: Final = PROTOCOL_VERSION_KEY.encode()
_COMPLETE: Final = b'"complete"'
ERA_MEMBERS: Final = ("resultType", "ttlMs", "cacheScope")
_LABEL_CHARS: Final = 128
_ECHOED_CHARS: Final = 256


class Route(Struct, frozen=True):
    """What an admitted request says of itself. `client` is a name to show, nothing to rely on."""

    version: str
    client: str
    capabilities: dict[str, Any]
    log_level: str | None


_object: Final = msgspec.json.Decoder(dict[str, Any])


def classify(request: Request, headers: Mapping[str, list[str]] | None, *, is_open: bool = False) -> Route | Rejection:
    """The ladder up to an unknown method and the optional members of `_meta`. `headers` is None where there are none; `is_open`
    admits methods no revision has, for whoever knows extensions."""
    params = values_of(request)
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return _bad_params(request, "The params need an object _meta.")
    version, capabilities, info = meta.get(PROTOCOL_VERSION_KEY), meta.get(CAPABILITIES_KEY), meta.get(CLIENT_INFO_KEY)
    if version is None or capabilities is None:
        return _bad_params(request, f"The _meta needs {PROTOCOL_VERSION_KEY} and {CAPABILITIES_KEY}.")
    if (
        type(version) is not str
        or type(capabilities) is not dict
        or (CLIENT_INFO_KEY in meta and type(info) is not dict)
    ):
        return _bad_params(
            request,
            f"In _meta, {PROTOCOL_VERSION_KEY} must be a string, {CAPABILITIES_KEY} and {CLIENT_INFO_KEY} must be objects.",
        )
    if headers is not None:
        member = NAMED_BY.get(request.method)
        name = None if member is None else params.get(member)
        differs = _check_headers(request.method, version, name if isinstance(name, str) else None, headers)
        if differs is not None:
            return Rejection(messages.HEADER_MISMATCH, differs, request.id)
    if version not in MODERN_VERSIONS:
        return _unsupported(request, version)
    if not (exists(request.method, version) or request.method in GROUPS or (is_open and is_foreign(request.method))):
        message = (
            f"There is no such method in revision {version}."  # not repeated: it may be a credential, and of any length
        )
        return Rejection(messages.METHOD_NOT_FOUND, message, request.id)
    level = meta.get(LOG_LEVEL_KEY)
    if len(meta) > 2:
        problem = _check_optional(meta, level)
        if problem is not None:
            return _bad_params(request, problem)
    return Route(
        version=version, client="" if info is None else client_label(info), capabilities=capabilities, log_level=level
    )


def _check_optional(meta: Mapping[str, Any], level: Any) -> str | None:
    token = meta.get(PROGRESS_TOKEN)
    if PROGRESS_TOKEN in meta and (isinstance(token, bool) or not isinstance(token, str | int)):
        return "The progressToken must be a string or an integer."
    if LOG_LEVEL_KEY in meta and level not in LOG_LEVELS:
        return f"The {LOG_LEVEL_KEY} must be one of {', '.join(LOG_LEVELS)}."
    return None


def values_of(request: Request) -> dict[str, Any]:
    """The params, decoded."""
    if request.values is None:
        params = messages.value(request.params or b"{}")
        return params if isinstance(params, dict) else {}
    return request.values


def has_envelope(request: Request) -> bool:
    """Whether a request calls itself modern: its `_meta` names a protocol version."""
    values = request.values
    if values is None:
        params = request.params
        if params is None or (_VERSION_KEY_BYTES not in params and b"\\" not in params):
            return False
        values = values_of(request)
    meta = values.get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_KEY in meta


def envelope(version: str, client_info: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Raw]:
    """The `_meta` members every request to a modern server carries."""
    return {
        PROTOCOL_VERSION_KEY: Raw(encode_json(version)),
        CAPABILITIES_KEY: Raw(encode_json(capabilities)),
        CLIENT_INFO_KEY: Raw(encode_json(client_info)),
    }


def is_only_envelope(meta: Any) -> bool:
    """Whether a caller's `_meta` says nothing but what describes its own connection."""
    return type(meta) is dict and meta.keys() <= _ENVELOPE


def without_envelope(meta: Mapping[str, Raw]) -> dict[str, Raw]:
    """What of a caller's `_meta` may travel on: all but what describes the caller's own connection."""
    return {key: held for key, held in meta.items() if not key.startswith(PREFIX) and key != PROGRESS_TOKEN}


def complete(result: dict[str, Raw], server_info: bytes, *, cacheable: bool) -> dict[str, Raw]:
    """The result as a modern caller must get it: with a type, an identity (the upstream's own, if it gave one) and cache hints."""
    shaped = dict(result)
    meta = _meta_of(result)
    meta.setdefault(SERVER_INFO_KEY, Raw(server_info))
    shaped["_meta"] = Raw(encode_json(meta))
    kind = shaped.setdefault("resultType", Raw(_COMPLETE))
    if cacheable and bytes(kind) == _COMPLETE:
        shaped.setdefault("ttlMs", Raw(b"0"))
        shaped.setdefault("cacheScope", Raw(b'"private"'))
    return shaped


def strip_result(result: dict[str, Raw]) -> dict[str, Raw]:
    """The result as a legacy caller knows it: without the members only modern results have."""
    shaped = {name: held for name, held in result.items() if name not in ERA_MEMBERS}
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
    return client_label(_object.decode(raw))


def client_label(info: Mapping[str, Any]) -> str:
    name, version = info.get("name"), info.get("version")
    parts = [part[:_LABEL_CHARS] for part in (name, version) if isinstance(part, str) and part]
    label = "/".join(parts)[:_LABEL_CHARS]
    return label if label.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in label)


def _check_headers(method: str, version: str, name: str | None, headers: Mapping[str, list[str]]) -> str | None:
    """Why a header is missing, doubled or differs from the body, or None."""
    if headers.get(VERSION_HEADER) != [version]:
        return f"The header MCP-Protocol-Version must be sent once and equal {PROTOCOL_VERSION_KEY} in _meta."
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


def _meta_of(result: Mapping[str, Raw]) -> dict[str, Raw]:
    """The members of a result's `_meta`; none where a server sent something else in its place."""
    raw = result.get("_meta")
    if raw is None or not bytes(raw).startswith(b"{"):
        return {}
    return messages.members(bytes(raw))
