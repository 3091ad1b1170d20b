"""Normalizes one entry of `mcpServers`: keys of other clients become ours, and contradictions are problems.

Takes values that have passed `validate`, and the tree, because an invalid command is still a command. Must not: check whether a
server exists or answers. Enforces S4/UNDECIDED-2.
"""

from __future__ import annotations

import os.path
from typing import Any, Final

from pactgate.config.endpoint_checks import check_endpoints
from pactgate.config.problems import ConfigFindings, Path
from pactgate.config.sections.effects import settle_effects
from pactgate.config.sections.network import settle_tls
from pactgate.config.sections.openapi import OPENAPI_ONLY, settle_openapi
from pactgate.config.server_settings import ServerConfig
from pactgate.config.tree import ConfigNode
from pactgate.config.validate import PLAIN_HEADERS

_TRANSPORTS: Final = {
    "stdio": "auto",
    "http": "auto",
    "auto": "auto",
    "sse": "sse",
    "streamable-http": "streamable-http",
    "streamableHttp": "streamable-http",
}
_KINDS: Final = {
    "command": "a command to start",
    "url": "the url of a server that runs already",
    "tools": "a file of Python tools",
    "endpoints": "endpoints of a REST API",
    "openapi": "the OpenAPI document of a REST API",
}
"""The kinds of servers by their key: each server has exactly one."""
_REST_ONLY: Final = ("baseUrl", "allowedHosts", "followRedirects", "emptyResponse", "nonJson", "outputValidation")
_OWN_KEYS: Final = {
    "args": ("command",),
    "env": ("command", "tools"),
    "cwd": ("command", "tools"),
    "effects": ("command", "tools"),
    "undeclaredEffects": ("tools",),
    "isolation": ("command", "url"),
    **dict.fromkeys(("headers", "proxy", "tls"), ("url", "endpoints", "openapi")),
    **dict.fromkeys(_REST_ONLY, ("endpoints", "openapi")),
    **dict.fromkeys(OPENAPI_ONLY, ("openapi",)),
}
"""Keys that are allowed only with these kinds."""
_WORDS: Final = {"stdio": ("command",), "auto": tuple(_KINDS)}
_BODY_HEADERS: Final = frozenset({"content-type"})
_KNOWN: Final = frozenset(ServerConfig.__struct_encode_fields__)


def settle(
    server_id: str, entry: dict[str, Any], node: ConfigNode, path: Path, found: ConfigFindings, folder: str
) -> dict[str, Any]:
    """The entry, ready to become a `ServerConfig`."""
    _check_kind(entry, node, path, found)
    settled = {key: value for key, value in entry.items() if key in _KNOWN}
    settled |= {
        "id": server_id,
        "transport": _transport(entry, node, path, found),
        "enabled": _enabled(entry, node, path, found),
    }
    if headers := entry.get("headers"):
        own = PLAIN_HEADERS - {"user-agent"} if entry.get("endpoints") is None else _BODY_HEADERS
        settled["headers"] = _sendable(headers, node.value["headers"], (*path, "headers"), found, own)
    if entry.get("endpoints") is not None:
        own = settled.get("headers", {})
        check_endpoints(entry, own, node.value["endpoints"], (*path, "endpoints"), found)
    if entry.get("openapi") is not None:
        settled |= settle_openapi(entry, node, path, found, folder)
    if cwd := entry.get("cwd"):
        settled["cwd"] = os.path.normpath(os.path.join(folder, cwd))
    if tools := entry.get("tools"):
        settled["tools"] = os.path.abspath(os.path.join(folder, tools))
    if tls := entry.get("tls"):
        settled["tls"] = settle_tls(tls, node.value["tls"], (*path, "tls"), found, folder)
    if (effects := entry.get("effects")) is not None:
        settled["effects"] = settle_effects(effects, node.value["effects"], (*path, "effects"), found, folder)
    if "timeout" in node.value:
        found.warn(
            (*path, "timeout"),
            node.value["timeout"].anchor,
            "This is ignored, because clients disagree about its unit.",
            "Use requestTimeoutMs.",
        )
    return settled


def _check_kind(entry: dict[str, Any], node: ConfigNode, path: Path, found: ConfigFindings) -> None:
    kinds = [key for key in _KINDS if _is_given(node, key)]
    if len(kinds) != 1:
        has = f"has {' and '.join(kinds)}" if kinds else f"has none of {', '.join(_KINDS)}"
        found.add(path, node.anchor, f"This server {has}.", f"Give it {', or '.join(_KINDS.values())}.")
        return
    for key, owners in _OWN_KEYS.items():
        is_given = entry.get(key) or (
            key == "effects" and key in entry
        )  # an empty declaration is one: nothing is allowed
        if is_given and kinds[0] not in owners:
            reason = f"{' or '.join(owners)}, and this server has {kinds[0]}"
            found.add((*path, key), node.value[key].anchor, f"{key} belongs to {reason}.", "Remove it.")
    for key in ("type", "transport"):
        word = entry.get(key, "auto")
        if kinds[0] not in _WORDS.get(word, ("url",)):
            found.add((*path, key), node.value[key].place, f'"{word}" can\'t be used with {kinds[0]}.', "Remove it.")


def _transport(entry: dict[str, Any], node: ConfigNode, path: Path, found: ConfigFindings) -> str:
    by_type, by_transport = (_TRANSPORTS[entry.get(key, "auto")] for key in ("type", "transport"))
    if "auto" not in (by_type, by_transport) and by_type != by_transport:
        found.add(
            (*path, "type"), node.value["type"].place, "type and transport contradict each other.", "Keep transport."
        )
    return by_transport if by_type == "auto" else by_type


def _enabled(entry: dict[str, Any], node: ConfigNode, path: Path, found: ConfigFindings) -> bool:
    enabled: bool | None = entry.get("enabled")
    disabled: bool | None = entry.get("disabled")
    if disabled is None:
        return True if enabled is None else enabled
    if enabled is disabled:
        found.add(
            (*path, "disabled"),
            node.value["disabled"].place,
            "enabled and disabled contradict each other.",
            "Keep enabled.",
        )
    return not disabled


def _sendable(
    headers: dict[str, str], node: ConfigNode, path: Path, found: ConfigFindings, own: frozenset[str]
) -> dict[str, str]:
    """The headers to send: each once, and none the transport writes."""
    sent: dict[str, str] = {}
    seen: dict[str, str] = {}
    for name, value in headers.items():
        place, folded = node.value[name].anchor, name.casefold()
        if folded in seen:
            found.add((*path, name), place, f"This is the same header as {seen[folded]}.", "Keep one of them.")
            continue
        seen[folded] = name
        if folded in own:
            found.warn(
                (*path, name),
                place,
                "This is ignored: the gateway writes this header itself.",
                "Remove it.",
            )
        else:
            sent[name] = value
    return sent


def _is_given(node: ConfigNode, key: str) -> bool:
    return key in node.value and node.value[key].value is not None
