"""A scripted MCP client over Streamable HTTP, in either era: it sends texts as they are, and hands on what comes as it came.

Headers and bytes are under the control of the check. Every wait is bounded, and everything is recorded. Must not: judge, or repair.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

from pactgate.conformance.gateway.recording import Frame, ScriptedSide
from pactgate.core.failures import GatewayFailure
from pactgate.protocol.framing import EventDecoder, OversizedError
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.request_message import HttpTarget, header_block
from pactgate.upstreams.http.response import HttpResponse

MAX_BYTES: Final = 32 * 1024 * 1024
REQUEST_S: Final = 20.0
NO_ANSWER: Final = "no answer within"
_OPEN_S: Final = 5.0
_MAX_ROUNDS: Final = 6
_PREFIX: Final = "io.modelcontextprotocol/"
_names = itertools.count(1)

Headers = Mapping[str, str | None]
"""Headers to set, and headers (None) to leave out."""
Record = Callable[[Frame], None]


class ClientError(Exception):
    """The gateway did not open a session, or did not answer at all. The message says what came instead."""


class ScriptedClient:
    """One client. `identity` are headers of every request, for example its credentials."""

    def __init__(
        self,
        http: HttpClient,
        url: str,
        era: str,
        *,
        identity: Mapping[str, str] | None = None,
        capabilities: str = "{}",
        version: str = LATEST_LEGACY,
    ) -> None:
        self.era = era
        self.name = f"{era}-{next(_names)}"
        self.version = LATEST_MODERN if era == "modern" else version
        self.answers: Mapping[str, str] = {}
        """What to answer the gateway, by method: the member `result` or `error` as text."""
        self.was_asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()
        self.ids: dict[str, int] = {}
        """The id of the last request about a label."""
        self.opening: str = ""
        """The result of `initialize` or `server/discover`, as text of the whole message."""
        self._http = http
        self._target = HttpTarget("the gateway", url)
        self._identity = identity or {}
        self._capabilities = capabilities
        self._session: str | None = None
        self._ids = itertools.count(1)

    @property
    def has_session(self) -> bool:
        return self._session is not None

    async def open(self, record: Record) -> None:
        """Initialize (legacy) or discover (modern). Raises ClientError where the gateway does not speak this era."""
        info = f'"clientInfo":{{"name":"{self.name}","version":"1"}}'
        if self.era == "modern":
            frame = await self.request(record, "server/discover")
        else:
            members = f'"protocolVersion":"{self.version}","capabilities":{self._capabilities},{info}'
            frame = await self.request(record, "initialize", members)
        if '"result"' not in frame.data:
            raise ClientError(f"the gateway answers {frame.status}: {frame.data[:200]}")
        self.opening = frame.data
        if self.era == "legacy":
            result = json.loads(frame.data).get("result")
            self.version = str(result.get("protocolVersion")) if isinstance(result, dict) else self.version
            await self.notify(record, "notifications/initialized")

    async def close(self) -> None:
        """End the session where there is one; what comes is of no interest."""
        if self._session is not None:
            try:
                async with asyncio.timeout(2):
                    await self._http.request(b"DELETE", self._target, self._headers({}), b"")
            except (GatewayFailure, TimeoutError):
                return

    async def call(
        self,
        record: Record,
        tool: str,
        arguments: str = "{}",
        *,
        members: str = "",
        meta: str = "",
        label: str = "",
        headers: Headers | None = None,
        timeout_s: float = REQUEST_S,
    ) -> Frame:
        params = f'"name":{json.dumps(tool)},"arguments":{arguments}' + (f",{members}" if members else "")
        return await self.request(
            record, "tools/call", params, meta=meta, name=tool, label=label, headers=headers, timeout_s=timeout_s
        )

    async def call_and_answer(
        self, record: Record, tool: str, *, label: str = "", timeout_s: float = REQUEST_S
    ) -> Frame:
        """Call, and answer what the server asks: a legacy client on the stream, a modern one by calling again."""
        frame = await self.call(record, tool, label=label, timeout_s=timeout_s)
        for _ in range(_MAX_ROUNDS):
            result = _members(frame.data).get("result")
            if not isinstance(result, dict) or result.get("resultType") != "input_required":
                break
            asked = {key: question["method"] for key, question in result.get("inputRequests", {}).items()}
            texts = [f"{json.dumps(key)}:{await self._answer(method)}" for key, method in asked.items()]
            members = f'"inputResponses":{{{",".join(texts)}}}'
            if "requestState" in result:
                members += f',"requestState":{json.dumps(result["requestState"])}'
            frame = await self.call(record, tool, members=members, label=label, timeout_s=timeout_s)
        return frame

    async def request(
        self,
        record: Record,
        method: str,
        members: str = "",
        *,
        meta: str = "",
        name: str | None = None,
        label: str = "",
        headers: Headers | None = None,
        timeout_s: float = REQUEST_S,
    ) -> Frame:
        """Send one request; the response. `members` and `meta` are JSON texts inside `params` and its `_meta`."""
        id_ = self.ids[label or name or method] = next(self._ids)
        if self.era == "modern":
            own = f'"{_PREFIX}protocolVersion":"{self.version}","{_PREFIX}clientCapabilities":{self._capabilities},'
            own += f'"{_PREFIX}clientInfo":{{"name":"{self.name}","version":"1"}}'
            meta = f"{own},{meta}" if meta else own
        inside = ",".join(part for part in (members, f'"_meta":{{{meta}}}' if meta else "") if part)
        params = f',"params":{{{inside}}}' if inside else ""
        data = f'{{"jsonrpc":"2.0","id":{id_},"method":"{method}"{params}}}'
        coming = self.send(record, data, method, name=name, label=label, headers=headers, timeout_s=timeout_s)
        async with aclosing(coming):
            async for frame in coming:
                message = _members(frame.data)
                if "method" not in message:
                    return frame
                if "id" in message:
                    await self._reply(record, message, label or name or method)
        raise ClientError(f"{method} was not answered")

    async def _reply(self, record: Record, message: Mapping[str, Any], label: str) -> None:
        """Answer what the gateway asks, with the text prepared for its method."""
        self.was_asked.set()
        await self.may_answer.wait()
        answer = self.answers.get(message["method"], '"error":{"code":-32601,"message":"not offered"}')
        data = f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{answer}}}'
        async for _ in self.send(record, data, "reply", label=label):
            pass

    async def _answer(self, method: str) -> str:
        """The result that a modern client gives; it has no words for an error."""
        self.was_asked.set()
        await self.may_answer.wait()
        return self.answers.get(method, '"result":{}').removeprefix('"result":')

    async def notify(self, record: Record, method: str, members: str = "") -> None:
        params = f',"params":{{{members}}}' if members else ""
        async for _ in self.send(record, f'{{"jsonrpc":"2.0","method":"{method}"{params}}}', method):
            pass

    async def send(
        self,
        record: Record,
        data: str,
        method: str,
        *,
        name: str | None = None,
        label: str = "",
        headers: Headers | None = None,
        timeout_s: float = REQUEST_S,
        verb: str = "POST",
        opened: asyncio.Event | None = None,
    ) -> AsyncGenerator[Frame]:
        """Send these bytes; every message that comes in answer, as it comes. A failure of the connection is a message without data."""
        own: dict[str, str | None] = {}
        if self.era == "modern":
            own = {"Mcp-Method": method, "Mcp-Name": name}
        if method != "initialize":
            own["MCP-Protocol-Version"] = self.version
        exchange = f"{self.name}-{next(_names)}"
        label = label or name or method
        record(self._frame(data, label, exchange, is_sent=True))
        try:
            async with asyncio.timeout(timeout_s):
                block = self._headers({**own, **(headers or {})})
                response = await self._http.request(
                    verb.encode(),
                    self._target,
                    block,
                    data.encode("utf-8", "surrogateescape"),
                    max_body_bytes=MAX_BYTES,
                )
                if opened is not None:
                    opened.set()
                if method == "initialize":
                    self._session = response.header(b"mcp-session-id") or None
                async for text in _messages(response):
                    frame = self._frame(text, label, exchange, is_sent=False, response=response)
                    record(frame)
                    yield frame
        except (GatewayFailure, TimeoutError, OversizedError) as problem:
            why = f"{NO_ANSWER} {timeout_s:g} s" if isinstance(problem, TimeoutError) else str(problem)
            frame = self._frame("", f"{label}: {why}", exchange, is_sent=False)
            record(frame)
            yield frame

    @asynccontextmanager
    async def listening(self, record: Record) -> AsyncIterator[asyncio.Queue[Frame]]:
        """The stream of notifications about lists: the GET stream of a session, or `subscriptions/listen`."""
        queue: asyncio.Queue[Frame] = asyncio.Queue(1000)
        opened = asyncio.Event()
        task = asyncio.create_task(self._listen(record, queue, opened))
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(opened.wait(), _OPEN_S)
            yield queue
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _listen(self, record: Record, queue: asyncio.Queue[Frame], opened: asyncio.Event) -> None:
        data, verb = "", "GET"
        if self.era == "modern":
            meta = f'"{_PREFIX}protocolVersion":"{self.version}","{_PREFIX}clientCapabilities":{self._capabilities}'
            wanted = '"notifications":{"toolsListChanged":true}'
            data = f'{{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{{{wanted},"_meta":{{{meta}}}}}}}'
            verb = "POST"
        headers: Headers = {} if verb == "POST" else {"Accept": "text/event-stream", "Content-Type": None}
        async for frame in self.send(
            record,
            data,
            "subscriptions/listen",
            label="listen",
            headers=headers,
            timeout_s=60,
            verb=verb,
            opened=opened,
        ):
            message = _members(frame.data)
            if "method" in message and "id" in message:
                await self._reply(record, message, "listen")
            await queue.put(frame)

    def _headers(self, changes: Headers) -> bytes:
        plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        session = {} if self._session is None else {"Mcp-Session-Id": self._session}
        merged: dict[str, str | None] = {**plain, **self._identity, **session, **changes}
        return header_block([(name, value) for name, value in merged.items() if value is not None])

    def _frame(
        self, data: str, label: str, exchange: str, *, is_sent: bool, response: HttpResponse | None = None
    ) -> Frame:
        headers = {} if response is None else response.headers
        return Frame(
            at=time.time(),
            side=ScriptedSide.CLIENT,
            who=self.name,
            is_sent=is_sent,
            data=data,
            label=label,
            exchange=exchange,
            status=0 if response is None else response.status,
            headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.items()),
        )


async def _messages(response: HttpResponse) -> AsyncIterator[str]:
    if response.stream is None:
        yield response.body.decode("utf-8", "surrogateescape")
        return
    decoder, stream = EventDecoder(MAX_BYTES), response.stream
    try:
        while data := await stream.read():
            for event in decoder.feed(data):
                if event.data:
                    yield event.data.decode("utf-8", "surrogateescape")
    finally:
        stream.close()


def _members(text: str) -> Mapping[str, Any]:
    try:
        message = json.loads(text)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
