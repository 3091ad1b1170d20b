"""A legacy Streamable HTTP server in the test's own loop whose tool `ask` puts a question to its caller.

By default on the stream of the call, as the specification wants it; with `on_listener` on the session's GET stream, where nothing says
whose it is.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.support.scripted_http import LAST_CHUNK, Peer, ReceivedRequest, answer, event, result, stream_head

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


class AskingHttp:
    """Give it to `ScriptedHttp`. A call of `ask` answers with its argument `nonce` and what its caller said."""

    def __init__(self, *, on_listener: bool = False) -> None:
        self.on_listener = on_listener
        self.capabilities: list[dict[str, Any]] = []
        self.refusals: list[dict[str, Any]] = []
        self.open_at_once = 0
        self.ended_sessions: list[str] = []
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Peer] = {}
        self._asked = 0

    async def __call__(self, peer: Peer) -> None:
        while True:
            await self._serve(peer, await peer.request())

    async def _serve(self, peer: Peer, received: ReceivedRequest) -> None:
        session = received.headers.get("mcp-session-id", "")
        if received.method == "GET":
            if not self.on_listener:
                await peer.send(answer(b"", "405 Method Not Allowed", None))
                return
            self._listeners[session] = peer
            await peer.send(stream_head())
            await peer.gone()
        elif received.method == "DELETE":
            self.ended_sessions.append(session)
            await peer.send(answer(b"", "200 OK", None))
        else:
            await self._post(peer, received.message, session)

    async def _post(self, peer: Peer, message: dict[str, Any], session: str) -> None:
        method, id_ = message.get("method"), message.get("id")
        if method is None:
            self._take_answer(message)
            await peer.send(answer(b"", "202 Accepted", None))
        elif id_ is None:
            await peer.send(answer(b"", "202 Accepted", None))
        elif method == "initialize":
            self.capabilities.append(message["params"]["capabilities"])
            about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            about["serverInfo"] = {"name": "asking", "version": "1"}
            await peer.send(answer(result(id_, **about), Mcp_Session_Id=f"s{len(self.capabilities)}"))
        elif method == "tools/list":
            await peer.send(answer(result(id_, tools=[{"name": "ask", "inputSchema": {"type": "object"}}])))
        elif method == "tools/call":
            await self._call(peer, id_, message["params"]["arguments"], session)
        else:
            error = {"jsonrpc": "2.0", "id": id_, "error": {"code": -32601, "message": "Method not found"}}
            await peer.send(answer(error))

    async def _call(self, peer: Peer, id_: Any, arguments: dict[str, Any], session: str) -> None:
        self._asked += 1
        key = f"q{self._asked}"
        waiting = self._answers[key] = asyncio.get_running_loop().create_future()
        self.open_at_once = max(self.open_at_once, len(self._answers))
        asked = {"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": FORM}
        await peer.send(stream_head())
        await (self._listeners[session] if self.on_listener else peer).send(event(asked))
        said = json.dumps({"nonce": arguments.get("nonce"), "said": await waiting})
        await peer.send(event(result(id_, content=[{"type": "text", "text": said}])), LAST_CHUNK)

    def _take_answer(self, message: dict[str, Any]) -> None:
        if "error" in message:
            self.refusals.append(message["error"])
        waiting = self._answers.pop(message["id"], None)
        if waiting is not None:
            waiting.set_result(message.get("result") or {"error": message["error"]["code"]})
