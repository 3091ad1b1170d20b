"""The scratchpad: notes in memory, and a countdown with progress. An MCP server of the modern era, on stdio.

Every request carries its protocol version; there is no handshake. All clients share the notes, which end with the process.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from pactgate.demo.stdio_server import INVALID_PARAMS, Json, McpTool, OpenCall, RpcError, StdioServer
from pactgate.protocol.versions import MODERN_VERSIONS

MAX_NOTES: Final = 500
MAX_NOTE_CHARS: Final = 20_000
_UNSUPPORTED_VERSION: Final = -32022
_PREFIX: Final = "io.modelcontextprotocol/"
_META: Final = {_PREFIX + "serverInfo": {"name": "scratchpad", "title": "Scratchpad", "version": "1.0.0"}}
_CACHE_HINT: Final = {"ttlMs": 300_000, "cacheScope": "public"}
_notes: list[str] = []


class NewNote(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=MAX_NOTE_CHARS, description="What to remember.")]


class NoteQuery(Struct, forbid_unknown_fields=True):
    query: Annotated[str, Meta(max_length=200, description="Text the notes contain, in any case.")] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="How many notes to show at most.")] = 20


class Notes(Struct):
    notes: list[str]
    count: Annotated[int, Meta(description="How many there are, shown or not.")]


def note_add(given: NewNote) -> Notes:
    """Keeps a note until the server ends."""
    if len(_notes) >= MAX_NOTES:
        raise ValueError(f"The scratchpad is full: it holds {MAX_NOTES} notes")
    _notes.append(given.text)
    return Notes([given.text], len(_notes))


def note_list(given: NoteQuery) -> Notes:
    """Lists the notes that contain a text, newest first; all of them without one."""
    found = [note for note in reversed(_notes) if given.query.casefold() in note.casefold()]
    return Notes(found[: given.limit], len(found))


class Countdown(Struct, forbid_unknown_fields=True, rename="camel"):
    steps: Annotated[int, Meta(ge=1, le=100, description="How many steps.")] = 5
    interval_ms: Annotated[int, Meta(ge=1, le=10_000, description="Milliseconds of each step.")] = 500


def countdown(given: Countdown, call: OpenCall) -> Countdown:
    """Counts down and reports each step as progress. Cancel it to see that it ends."""
    for done in range(1, given.steps + 1):
        if call.cancelled.wait(given.interval_ms / 1000):
            break
        call.report(done, given.steps)
    return given


class Scratchpad(StdioServer):
    """The modern protocol: each request is admitted by its own `_meta`."""

    def __init__(self) -> None:
        super().__init__(
            McpTool("Add a note", note_add, writes=True),
            McpTool("List the notes", note_list),
            McpTool("Count down", countdown, is_slow=True),
        )

    def answer(self, method: str, params: Json, call: OpenCall) -> Json:
        given = params.get("_meta")
        meta: Json = given if isinstance(given, dict) else {}
        version = params.get("protocolVersion") if method == "initialize" else meta.get(_PREFIX + "protocolVersion")
        if not isinstance(version, str):
            raise RpcError(INVALID_PARAMS, "Every request needs a protocolVersion in its _meta.")
        if version not in MODERN_VERSIONS:
            data = {"supported": list(MODERN_VERSIONS), "requested": version}
            raise RpcError(_UNSUPPORTED_VERSION, "This server speaks the modern protocol only.", data)
        if not isinstance(meta.get(_PREFIX + "clientCapabilities"), dict):
            raise RpcError(INVALID_PARAMS, "Every request needs clientCapabilities in its _meta.")
        if method == "server/discover":
            result: Json = {"supportedVersions": list(MODERN_VERSIONS), "capabilities": {"tools": {}}}
        else:
            result = super().answer(method, params, call)
        return {"resultType": "complete", **result, **({} if method == "tools/call" else _CACHE_HINT), "_meta": _META}


if __name__ == "__main__":
    Scratchpad().serve()
