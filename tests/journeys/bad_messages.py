"""Messages that are well-formed JSON-RPC and bad MCP, by name: what one caller of either era sends, and how it must end.

`expected` is the error code in a session of the legacy era, `modern` the one of the modern era where it differs: a code,
`TAKEN` (a notification: 202 and nothing happens), or `HEAD_TOO_LONG` (the mirrored header alone is more than a head may hold).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

PARAMS, NOT_FOUND, HEADER = -32602, -32002, -32020
TAKEN: Literal["taken"] = "taken"
HEAD_TOO_LONG: Literal["head too long"] = "head too long"

Expected = int | Literal["taken", "head too long"]

MEGABYTE = "m" * 1_000_000
ODD_NAMES = {
    "unknown": "no_such_tool",
    "traversal": "../../echo",
    "ansi": "\x1b[2J\x1b]0;owned\x07",
    "newline": "echo\r\nX: y",
    "bidi": "\u202eohce\u2066",
    "format": "%s%n{0.__class__}$HOME",
    "jndi": "${jndi:ldap://127.0.0.1:1/a}",
}
ODD_URIS = {
    "file": "file:///etc/passwd",
    "metadata-address": "http://169.254.169.254/latest/meta-data/",
    "traversal": "file:///srv/../../etc/passwd",
    "empty": "",
    "javascript": "javascript:alert(1)",
    "server-that-is-none": "nobody+file:///a",
}


class BadMessage(NamedTuple):
    name: str
    method: str
    params: dict[str, Any]
    expected: Expected
    modern: Expected | None = None
    meta: Any = None
    """What stands in `_meta` instead of, or beside, what the era wants there."""

    @property
    def is_notification(self) -> bool:
        return self.expected == TAKEN

    def over(self, era: str) -> Expected:
        return self.modern if era == "modern" and self.modern is not None else self.expected


def _notifications() -> Iterator[BadMessage]:
    yield BadMessage("notification-unknown", "notifications/no_such", {"x": 1}, TAKEN)
    yield BadMessage("notification-of-a-request", "tools/call", {"name": "echo", "arguments": {}}, TAKEN)
    odd_ids: dict[str, Any] = {"foreign": 999_999, "null": None, "object": {}, "fraction": 1.5, "megabyte": MEGABYTE}
    for name, id_ in odd_ids.items():
        yield BadMessage(f"cancel-{name}", "notifications/cancelled", {"requestId": id_}, TAKEN)
    yield BadMessage("cancel-nothing", "notifications/cancelled", {}, TAKEN)
    yield BadMessage("progress-forged", "notifications/progress", {"progressToken": 1, "progress": 1e300}, TAKEN)


def _calls() -> Iterator[BadMessage]:
    yield BadMessage("call-without-name", "tools/call", {"arguments": {}}, PARAMS)
    yield BadMessage("call-name-number", "tools/call", {"name": 7}, PARAMS)
    yield BadMessage("call-name-empty", "tools/call", {"name": ""}, PARAMS)
    yield BadMessage("call-name-64-kb", "tools/call", {"name": "n" * 65536}, PARAMS, HEAD_TOO_LONG)
    for name, text in ODD_NAMES.items():
        yield BadMessage(f"call-name-{name}", "tools/call", {"name": text}, PARAMS)
    odd_arguments = {"string": "{}", "array": [], "number": 1, "true": True}
    for name, arguments in odd_arguments.items():
        yield BadMessage(f"arguments-{name}", "tools/call", {"name": "echo", "arguments": arguments}, PARAMS)
    good = {"name": "echo", "arguments": {}}
    yield BadMessage("meta-string", "tools/call", good, PARAMS, meta="x")
    yield BadMessage("token-object", "tools/call", good, PARAMS, meta={"progressToken": {}})
    yield BadMessage("token-fraction", "tools/call", good, PARAMS, meta={"progressToken": 1.5})


def _others() -> Iterator[BadMessage]:
    for name, cursor in {"sql": "' OR 1=1 --", "number": 7, "megabyte": MEGABYTE}.items():
        yield BadMessage(f"cursor-{name}", "tools/list", {"cursor": cursor}, PARAMS)
    for name, uri in ODD_URIS.items():
        yield BadMessage(f"uri-{name}", "resources/read", {"uri": uri}, NOT_FOUND, PARAMS)
    yield BadMessage(
        "uri-20000-segments", "resources/read", {"uri": "file:/" + "/a" * 20_000}, NOT_FOUND, HEAD_TOO_LONG
    )
    yield BadMessage("uri-number", "resources/read", {"uri": 1}, PARAMS)
    yield BadMessage("prompt-unknown", "prompts/get", {"name": "no_such_prompt"}, PARAMS)
    odd = {"type": "ref/odd", "name": "greet"}
    yield BadMessage("completion-odd", "completion/complete", {"ref": odd, "argument": {}}, PARAMS)
    yield BadMessage("completion-without-ref", "completion/complete", {"argument": {"name": "a", "value": "b"}}, PARAMS)


ALL = [*_notifications(), *_calls(), *_others()]

VERSION_HEADERS = {
    "junk": "latest",
    "future": "2031-01-01",
    "ancient": "2023-01-01",
    "huge": "2" * 8000,
    "sql": "' OR 1=1 --",
    "empty": "",
}


def encoded(bad: BadMessage, meta: dict[str, Any]) -> bytes:
    """The message with what its era wants in `_meta`, unless the case spoils just that."""
    inside = bad.meta if isinstance(bad.meta, str) else {**meta, **(bad.meta or {})}
    params = {**bad.params, **({"_meta": inside} if inside else {})}
    message = {"jsonrpc": "2.0", "method": bad.method, "params": params, **({} if bad.is_notification else {"id": 7})}
    return json.dumps(message).encode()
