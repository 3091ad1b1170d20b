"""A caller that sends JSON text as it is given and hands back JSON text as it came: nothing in between can hide a change."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
_ENVELOPE = (
    f'"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}},'
    '"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}'
)


class RawCaller:
    """One client of either era. `members` are the members of `params` as text, `meta` those of its `_meta`."""

    def __init__(self, url: str, era: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._path = parts.path
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
        self._is_modern = era == "modern"
        self._session: str | None = None
        self._next_id = 0
        if not self._is_modern:
            opening = f'"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"raw","version":"1"}}'
            self.request("initialize", opening)
            self._post('{"jsonrpc":"2.0","method":"notifications/initialized"}', {"MCP-Protocol-Version": LEGACY})

    def request(self, method: str, members: str = "", *, meta: str = "", name: str | None = None) -> str:
        """The result's text: what stands after `"result":` in the answer."""
        self._next_id += 1
        headers = {} if method == "initialize" else {"MCP-Protocol-Version": LEGACY}
        if self._is_modern:
            meta = f"{_ENVELOPE},{meta}" if meta else _ENVELOPE
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} | ({"Mcp-Name": name} if name else {})
        inside = ",".join(part for part in (members, f'"_meta":{{{meta}}}' if meta else "") if part)
        text = f'{{"jsonrpc":"2.0","id":{self._next_id},"method":"{method}","params":{{{inside}}}}}'
        return _result(self._post(text, headers))

    def call(self, tool: str, arguments: str = "{}", *, members: str = "", meta: str = "") -> str:
        params = f'"name":{json.dumps(tool)},"arguments":{arguments}' + (f",{members}" if members else "")
        return self.request("tools/call", params, meta=meta, name=tool)

    def close(self) -> None:
        if self._session is not None:
            self._connection.request("DELETE", self._path, headers={"Mcp-Session-Id": self._session})
            self._connection.getresponse().read()
        self._connection.close()

    def _post(self, text: str, headers: dict[str, str]) -> str:
        both = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        session = {"Mcp-Session-Id": self._session} if self._session else {}
        self._connection.request("POST", self._path, body=text.encode(), headers={**both, **session, **headers})
        answer = self._connection.getresponse()
        self._session = answer.getheader("Mcp-Session-Id") or self._session
        body = answer.read().decode()
        if answer.getheader("Content-Type", "").startswith("text/event-stream"):
            return _last_event(body)
        return body


def exact(text: str) -> Any:
    """The JSON value with every number kept as it was written, and distinguishable from a string."""
    kept: Any = lambda number: ("number", number)  # noqa: E731
    return json.loads(text, parse_int=kept, parse_float=kept, parse_constant=kept)


def _last_event(body: str) -> str:
    lines = [line.removeprefix("data:").strip() for line in body.splitlines() if line.startswith("data:")]
    return [line for line in lines if line][-1]


def _result(answer: str) -> str:
    """Cut the member out of the text without going through a parser that would change it."""
    decoder = json.JSONDecoder()
    members = decoder.decode(answer)
    assert "result" in members, f"answered with {answer[:500]}"
    start = answer.index('"result":') + len('"result":')
    _, end = decoder.raw_decode(answer, start + (len(answer[start:]) - len(answer[start:].lstrip())))
    return answer[start:end]
