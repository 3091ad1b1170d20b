"""What an older caller gets instead of what its revision does not know, and the URIs of results under the names callers use.

Only what would make such a caller fail is changed: content of unknown kinds, structured content that is no object, output schemas that
promise it. A result that has none of it is returned as it is, and finding that out costs a look at its bytes. Pure. Must not: drop
anything a caller of this revision could read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json

NameUri = Callable[[str], str]
"""The URI a caller uses for one of a server's."""

MODERN_SHAPE: Final = "2026-07-28"
_AUDIO_SINCE: Final = "2025-03-26"
STRUCTURED_SINCE: Final = "2025-06-18"

_blocks: Final = msgspec.json.Decoder(list[dict[str, Raw]])
_block: Final = msgspec.json.Decoder(dict[str, Raw])
_text: Final = msgspec.json.Decoder(str)


def list_shape(version: str) -> str:
    """Callers of the same shape get the same lists: the first revision that reads them as they are."""
    for since in (MODERN_SHAPE, STRUCTURED_SINCE):
        if version >= since:
            return since
    return ""


def fit_tool(definition: bytes, shape: str) -> bytes:
    """A definition without what a caller of this shape can't use: an output schema it must not see, how to run it as a task."""
    if b'"outputSchema"' not in definition and b'"execution"' not in definition:
        return definition
    members = messages.members(definition)
    unfit = "execution" if shape >= MODERN_SHAPE else "outputSchema"
    held = members.pop(unfit, None)
    if held is None or (unfit == "outputSchema" and shape >= STRUCTURED_SINCE and _is_of_objects(held)):
        return definition
    return encode_json(members)


def may_not_fit(result: bytes, version: str) -> bool:
    """Whether a tool's result has to be looked at for a caller of this version."""
    if version >= MODERN_SHAPE:
        return False
    return version < STRUCTURED_SINCE or b'"structuredContent"' in result


def fit_tool_result(result: dict[str, Raw], version: str) -> None:
    """Change the members of a tool's result to what a legacy caller of this version reads."""
    structured = result.get("structuredContent")
    if structured is not None and (version < STRUCTURED_SINCE or not bytes(structured).startswith(b"{")):
        del result["structuredContent"]
        result["content"] = _with_text(result.get("content"), bytes(structured).decode())
    if version < STRUCTURED_SINCE and "content" in result:
        result["content"] = fit_content(result["content"], version)


def fit_content(content: Raw, version: str) -> Raw:
    """Content blocks a caller of this version knows: links and sounds as what it has for them."""
    text = bytes(content)
    if version >= STRUCTURED_SINCE or (b'"resource_link"' not in text and b'"audio"' not in text):
        return content
    return _each(content, lambda block: _older(block, version))


def name_uris(content: Raw, name: NameUri) -> Raw:
    """Content blocks whose links and embedded resources lead back to their server."""
    if b'"resource' not in bytes(content):
        return content
    return _each(content, lambda block: _named(block, name))


def name_ui(definition: bytes, name: NameUri) -> bytes:
    """A tool's definition whose view (MCP Apps) is named as callers name it."""
    if b'"resourceUri"' not in definition and b'"ui/resourceUri"' not in definition:
        return definition
    members = messages.members(definition)
    try:
        meta = _block.decode(members["_meta"])
        if "ui/resourceUri" in meta:
            meta["ui/resourceUri"] = Raw(encode_json(name(_text.decode(meta["ui/resourceUri"]))))
        if "ui" in meta:
            view = _block.decode(meta["ui"])
            view["resourceUri"] = Raw(encode_json(name(_text.decode(view["resourceUri"]))))
            meta["ui"] = Raw(encode_json(view))
    except (KeyError, msgspec.DecodeError):
        return definition
    members["_meta"] = Raw(encode_json(meta))
    return encode_json(members)


def fit_messages(found: Raw, fit: Callable[[Raw], Raw]) -> Raw:
    """The messages of a prompt, each with its content fitted; content is a block, or several."""
    try:
        said = _blocks.decode(found)
        for message in said:
            content = message["content"]
            if bytes(content).startswith(b"["):
                message["content"] = fit(content)
            else:
                fitted = bytes(fit(Raw(b"[" + bytes(content) + b"]")))
                message["content"] = Raw(fitted[1:-1])
    except (KeyError, msgspec.DecodeError):
        return found  # not what the protocol says: the caller sees what was said
    return Raw(encode_json(said))


def _each(content: Raw, change: Callable[[dict[str, Raw]], Mapping[str, Any]]) -> Raw:
    try:
        return Raw(encode_json([change(block) for block in _blocks.decode(content)]))
    except msgspec.DecodeError:
        return content


def _older(block: dict[str, Raw], version: str) -> Mapping[str, Any]:
    kind = bytes(block.get("type", Raw(b"")))
    if kind == b'"resource_link"':
        words = [_read(block, name) for name in ("title", "name", "description")]
        label = next((word for word in words[:2] if word), "resource")
        more = f" ({words[2]})" if words[2] else ""
        return {**_kept(block), "type": "text", "text": f"{label}: {_read(block, 'uri')}{more}"}
    if kind == b'"audio"' and version < _AUDIO_SINCE:
        mime = _read(block, "mimeType") or "application/octet-stream"
        held = {"uri": f"data:{mime}", "mimeType": mime, "blob": block.get("data", Raw(b'""'))}
        return {**_kept(block), "type": "resource", "resource": held}
    return block


def _named(block: dict[str, Raw], name: NameUri) -> Mapping[str, Any]:
    kind = bytes(block.get("type", Raw(b"")))
    try:
        if kind == b'"resource_link"':
            return {**block, "uri": name(_text.decode(block["uri"]))}
        if kind == b'"resource"':
            held = _block.decode(block["resource"])
            return {**block, "resource": {**held, "uri": name(_text.decode(held["uri"]))}}
    except (KeyError, msgspec.DecodeError):
        return block
    return block


def _kept(block: Mapping[str, Raw]) -> dict[str, Raw]:
    return {name: block[name] for name in ("annotations", "_meta") if name in block}


def _read(block: Mapping[str, Raw], name: str) -> str:
    try:
        return _text.decode(block[name])
    except (KeyError, msgspec.DecodeError):
        return ""


def _with_text(content: Raw | None, text: str) -> Raw:
    """The content, and the text behind it where it has none of its own."""
    if content is not None and b'"text"' in bytes(content):
        return content
    said = encode_json({"type": "text", "text": text})
    before = b"" if content is None else bytes(content).strip()[1:-1].strip()
    return Raw(b"[" + before + (b"," if before else b"") + said + b"]")


def _is_of_objects(schema: Raw) -> bool:
    try:
        return bytes(_block.decode(schema).get("type", Raw(b""))) == b'"object"'
    except msgspec.DecodeError:
        return False
