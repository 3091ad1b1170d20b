"""The scratchpad: notes in memory, numbers about a text, a countdown with progress. A modern MCP server only, on stdio.

Every request carries its own envelope and is judged alone; there is no handshake, and `initialize` is answered with the
versions served. The notes are shared by all callers of the process, bounded in number and size, and gone when it ends.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from pactgate.demo import loop, rpc
from pactgate.demo.tools import BadInputError, Exchange, Json, Outcome, Tool, Toolbox, object_schema
from pactgate.protocol.versions import MODERN_VERSIONS

SERVER_INFO: Final = {"name": "scratchpad", "title": "Scratchpad", "version": "1.0.0"}
INSTRUCTIONS: Final = (
    "Notes that last as long as this process, text statistics, and a countdown to try progress and cancellation with."
)
MAX_NOTES: Final = 500
MAX_NOTE_CHARS: Final = 20_000

_PREFIX: Final = "io.modelcontextprotocol/"
_VERSION_KEY: Final = _PREFIX + "protocolVersion"
_CAPABILITIES_KEY: Final = _PREFIX + "clientCapabilities"
_META: Final = {_PREFIX + "serverInfo": SERVER_INFO}
_LIST_TTL_MS: Final = 300_000
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # noqa: RUF001 - the typographic apostrophe is part of words


class Notes:
    """The notes, oldest first. Safe to use from several threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._notes: list[Json] = []
        self._next_id = 1

    def add(self, arguments: Json, _: Exchange) -> Outcome:
        tags = sorted({tag.strip().lower() for tag in arguments.get("tags", []) if tag.strip()})
        with self._guard:
            if len(self._notes) >= MAX_NOTES:
                raise BadInputError(f"The scratchpad is full: it holds {MAX_NOTES} notes.")
            added = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            note = {"id": self._next_id, "text": arguments["text"], "tags": tags, "added": added}
            self._notes.append(note)
            self._next_id += 1
            count = len(self._notes)
        return Outcome(f"Added note {note['id']}; {_notes(count)} now.", {"note": note, "count": count})

    def search(self, arguments: Json, _: Exchange) -> Outcome:
        words = arguments["query"].lower().split()
        if not words:
            raise BadInputError("The argument 'query' must have at least one word.")
        with self._guard:
            found = [note for note in self._notes if all(word in _haystack(note) for word in words)]
        return _listing(found, f"{_notes(len(found))} with {arguments['query']!r}.", arguments)

    def list(self, arguments: Json, _: Exchange) -> Outcome:
        tag = arguments.get("tag")
        with self._guard:
            found = [note for note in self._notes if tag is None or tag.strip().lower() in note["tags"]]
        return _listing(found, _notes(len(found)) + (f" tagged {tag!r}." if tag is not None else "."), arguments)


def _notes(count: int) -> str:
    return "1 note" if count == 1 else f"{count} notes"


def _haystack(note: Json) -> str:
    return " ".join([note["text"], *note["tags"]]).lower()


def _listing(found: list[Json], summary: str, arguments: Json) -> Outcome:
    shown = found[-arguments.get("limit", 20) :][::-1]
    lines = [
        summary,
        *(f"{note['id']}. {note['text']}" + "".join(f" #{tag}" for tag in note["tags"]) for note in shown),
    ]
    return Outcome("\n".join(lines), {"notes": shown, "count": len(found)})


def text_stats(arguments: Json, _: Exchange) -> Outcome:
    text = arguments["text"]
    words = _WORD.findall(text)
    common = Counter(word.lower() for word in words).most_common(arguments.get("top", 5))
    sentences = len(re.findall(r"[.!?…]+(?=\s|$)", text)) or bool(words)
    facts: Json = {
        "characters": len(text),
        "words": len(words),
        "sentences": int(sentences),
        "lines": len(text.splitlines()),
        "readingSeconds": round(len(words) / 230 * 60),
        "mostCommon": [{"word": word, "count": count} for word, count in common],
    }
    counts = f"{facts['words']} words, {facts['sentences']} sentences, {facts['characters']} characters"
    return Outcome(f"{counts}; about {facts['readingSeconds']} s to read.", facts)


def countdown(arguments: Json, exchange: Exchange) -> Outcome:
    steps, interval_ms = arguments.get("steps", 5), arguments.get("intervalMs", 500)
    for done in range(1, steps + 1):
        if exchange.wait(interval_ms / 1000):
            break
        left = steps - done
        exchange.progress(done, steps, f"{left} to go" if left else "lift-off")
    return Outcome(f"Counted {steps} steps down, {interval_ms} ms each.", {"steps": steps, "intervalMs": interval_ms})


_LIMIT: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": 100,
    "description": "How many to show at most, newest first. Default 20.",
}
_COUNT: Final = {"type": "integer"}
_NOTE: Final = object_schema(
    ["id", "text", "tags", "added"],
    id={"type": "integer"},
    text={"type": "string"},
    tags={"type": "array", "items": {"type": "string"}},
    added={"type": "string", "format": "date-time"},
)
_NOTES: Final = object_schema(
    ["notes", "count"],
    notes={"type": "array", "items": _NOTE},
    count={"type": "integer", "description": "How many there are, shown or not."},
)


def tools(notes: Notes) -> tuple[Tool, ...]:
    return (
        Tool(
            "note_add",
            "Add a note",
            "Keeps a note until the server ends. Give tags to find it again.",
            object_schema(
                ["text"],
                text={
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_NOTE_CHARS,
                    "description": "What to remember.",
                },
                tags={
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": 20,
                    "description": "Words to file it under.",
                },
            ),
            object_schema(["note", "count"], note=_NOTE, count=_COUNT),
            notes.add,
            writes=True,
        ),
        Tool(
            "note_search",
            "Search the notes",
            "Finds the notes that have every word of the query in their text or tags, whatever the case.",
            object_schema(
                ["query"],
                query={"type": "string", "minLength": 1, "maxLength": 200, "description": "Words to look for."},
                limit=_LIMIT,
            ),
            _NOTES,
            notes.search,
        ),
        Tool(
            "note_list",
            "List the notes",
            "Lists the notes, newest first, all of them or those with one tag.",
            object_schema(
                [], tag={"type": "string", "maxLength": 100, "description": "Only notes with this tag."}, limit=_LIMIT
            ),
            _NOTES,
            notes.list,
        ),
        Tool(
            "text_stats",
            "Numbers about a text",
            "Counts characters, words, sentences and lines of a text, estimates the time to read it "
            "and names its most common words.",
            object_schema(
                ["text"],
                text={"type": "string", "maxLength": 1_000_000, "description": "The text to measure."},
                top={
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 50,
                    "description": "How many common words to name. Default 5.",
                },
            ),
            object_schema(
                ["characters", "words", "sentences", "lines", "readingSeconds", "mostCommon"],
                characters=_COUNT,
                words=_COUNT,
                sentences=_COUNT,
                lines=_COUNT,
                readingSeconds={"type": "integer", "description": "At 230 words a minute."},
                mostCommon={
                    "type": "array",
                    "items": object_schema(["word", "count"], word={"type": "string"}, count=_COUNT),
                },
            ),
            text_stats,
        ),
        Tool(
            "countdown",
            "Count down",
            "Counts down in steps and reports each as progress. Cancel it to see that it ends.",
            object_schema(
                [],
                steps={"type": "integer", "minimum": 1, "maximum": 100, "description": "How many steps. Default 5."},
                intervalMs={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 10_000,
                    "description": "Milliseconds a step. Default 500.",
                },
            ),
            object_schema(["steps", "intervalMs"], steps=_COUNT, intervalMs=_COUNT),
            countdown,
            takes_time=True,
        ),
    )


class Scratchpad:
    """The modern protocol over these tools. Each request is admitted by its own envelope."""

    def __init__(self) -> None:
        self._tools = Toolbox(tools(Notes()))

    def takes_time(self, method: str, params: Json) -> bool:
        return method == "tools/call" and self._tools.takes_time(params)

    def reads_batches(self) -> bool:
        return False

    def handle(self, method: str, params: Json, exchange: loop.OpenRequest) -> Json:
        if method == "initialize":
            raise _unsupported(params.get("protocolVersion"))
        _admit(params)
        if method == "server/discover":
            return _complete(
                {
                    "supportedVersions": list(MODERN_VERSIONS),
                    "capabilities": {"tools": {}},
                    "instructions": INSTRUCTIONS,
                    **_cache_hints(),
                }
            )
        if method == "tools/list":
            return _complete({"tools": self._tools.definitions(), **_cache_hints()})
        if method == "tools/call":
            return _complete(self._tools.call(params, exchange))
        raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"There is no method {method[:64]!r} here.")


def _admit(params: Json) -> None:
    meta = params.get("_meta")
    version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(version, str) or not isinstance(meta.get(_CAPABILITIES_KEY), dict):
        raise rpc.RpcError(
            rpc.INVALID_PARAMS, f"Every request needs {_VERSION_KEY} and {_CAPABILITIES_KEY} in its _meta."
        )
    if version not in MODERN_VERSIONS:
        raise _unsupported(version)


def _unsupported(asked: Any) -> rpc.RpcError:
    supported = list(MODERN_VERSIONS)
    data = {"supported": supported, "requested": asked if isinstance(asked, str) else ""}
    return rpc.RpcError(
        rpc.UNSUPPORTED_VERSION, f"This server speaks {', '.join(supported)} only, without a handshake.", data
    )


def _cache_hints() -> Json:
    return {"ttlMs": _LIST_TTL_MS, "cacheScope": "public"}


def _complete(result: Json) -> Json:
    return {"resultType": "complete", **result, "_meta": dict(_META)}


if __name__ == "__main__":
    loop.serve(Scratchpad(), "scratchpad")
