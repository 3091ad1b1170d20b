"""The messages of a probe that every transport carries: what a good client sends, and what a wrong one does.

Nothing is called that could change something: the only tools that are called are those that the operator names, and one that does not
exist. A named tool is called with its arguments, and one that says readOnlyHint once more with an argument of a wrong type: a server that
does not look at the schema would run it, and only a read is sure to change nothing then.
An error response is part of the record, not a failure of the probe. Everything is bounded in number and time: a server that leaves
MAX_UNANSWERED good requests without a response is asked nothing more.
Must not: check anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Raw

from pactgate.conformance.methods import LISTS, MADE_UP
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Session

MAX_PAGES: Final = 50
MAX_EACH: Final = 3
MAX_UNANSWERED: Final = 3
UNKNOWN_METHOD: Final = "pactgate/unknown"
UNKNOWN_NAME: Final = f"{MADE_UP}-unknown"
UNKNOWN_VERSION: Final = "1999-01-01"
UNKNOWN_URI: Final = f"{MADE_UP}://unknown/resource"
_LOST: Final = frozenset({Kind.CONNECTION_LOST, Kind.CONNECTION_FAILED})
_WRONG_S: Final = 5.0
"""A wrong request needs no work, so its response is not waited for as long."""

_LISTEN_S: Final = 0.5

Json = dict[str, Any]
Call = tuple[str, Json]
SendRaw = Callable[[str, str, str | None], Awaitable[None]]
"""Send a request with a method, an id that is a string, and a protocol version (None: the agreed one), and wait for its response."""


class SilentServerError(Exception):
    """The server answers no longer. The rules see the requests without a response."""


class ProbeScript:
    """Plays one session."""

    def __init__(self, session: Session, timeout_s: float, calls: Sequence[Call], send: SendRaw) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._calls = calls
        self._send = send
        self._capabilities = session.identity.capabilities
        self._is_legacy = session.identity.era is Era.LEGACY
        self._unanswered = 0

    async def play(self) -> None:
        try:
            await self._play()
        except SilentServerError:
            return

    async def _play(self) -> None:
        listed = await self._lists()
        await self._reads(listed)
        await self._named_calls(listed.get("tools", []))
        await self._unknown()
        await self._wrong_params()
        if self._is_legacy:
            await self._session_features(listed)
        else:
            await self._send("server/discover", f"{MADE_UP}-version", UNKNOWN_VERSION)
            await self._subscription()
        await self._in_parallel()
        await self._cancelled()
        await self._lists()

    # What a good client sends.

    async def _lists(self) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for method, (member, _) in LISTS.items():
            if self._offers(method):
                found[member] = await self._pages(method, member)
        return found

    async def _pages(self, method: str, member: str) -> list[Json]:
        items: list[Json] = []
        cursor: Json = {}
        for _ in range(MAX_PAGES):
            result = await self._ask(method, cursor)
            page = result.get(member)
            items += [item for item in page if isinstance(item, dict)] if isinstance(page, list) else []
            following = result.get("nextCursor")
            if not isinstance(following, str) or following == cursor.get("cursor"):
                break
            cursor = {"cursor": following}
        return items

    async def _reads(self, listed: Mapping[str, list[Json]]) -> None:
        for uri in _texts(listed.get("resources", []), "uri")[:MAX_EACH]:
            await self._ask("resources/read", {"uri": uri}, uri)
        plain = [prompt for prompt in listed.get("prompts", []) if not _needs(prompt.get("arguments"))]
        for name in _texts(plain, "name")[:MAX_EACH]:
            await self._ask("prompts/get", {"name": name}, name)

    async def _named_calls(self, tools: list[Json]) -> None:
        schemas = {tool.get("name"): tool.get("inputSchema") for tool in tools if _only_reads(tool)}
        for name, arguments in self._calls:
            await self._ask("tools/call", {"name": name, "arguments": arguments}, name, progress=True)
            wrong = _with_a_wrong_type(arguments, schemas.get(name))
            if wrong is not None:
                await self._wrong("tools/call", {"name": name, "arguments": wrong}, name)

    async def _session_features(self, listed: Mapping[str, list[Json]]) -> None:
        """What only a session has: pings, log levels, subscriptions; and completions."""
        await self._ask("ping", {})
        if "logging" in self._capabilities:
            await self._ask("logging/setLevel", {"level": "info"})
            await self._wrong("logging/setLevel", {"level": "loud"})
        resources = self._capabilities.get("resources")
        uris = _texts(listed.get("resources", []), "uri")[:1]
        if isinstance(resources, dict) and resources.get("subscribe"):
            for uri in uris:
                await self._ask("resources/subscribe", {"uri": uri})
                await self._ask("resources/unsubscribe", {"uri": uri})
        if "completions" in self._capabilities:
            for name, argument in _prompt_arguments(listed.get("prompts", []))[:1]:
                params = {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": argument, "value": ""}}
                await self._ask("completion/complete", params)

    async def _subscription(self) -> None:
        """Listen for changes for a moment. To give up the request is the way to end it."""
        if "tools" in self._capabilities:
            params = {"notifications": {"toolsListChanged": True}}
            request = asyncio.create_task(self._peer_request("subscriptions/listen", params, None, is_cancellable=True))
            await asyncio.wait({request}, timeout=_LISTEN_S)
            await _give_up(request)

    # What a wrong client sends.

    async def _unknown(self) -> None:
        await self._wrong(UNKNOWN_METHOD, {})
        if "tools" in self._capabilities:
            await self._wrong("tools/call", {"name": UNKNOWN_NAME, "arguments": {}}, UNKNOWN_NAME)
        if "prompts" in self._capabilities:
            await self._wrong("prompts/get", {"name": UNKNOWN_NAME}, UNKNOWN_NAME)
        if "resources" in self._capabilities:
            await self._wrong("resources/read", {"uri": UNKNOWN_URI}, UNKNOWN_URI)
        for method in ("tools/list", "prompts/list", "resources/list"):
            if self._offers(method):
                await self._wrong(method, {"cursor": f"{MADE_UP}-cursor"})

    async def _wrong_params(self) -> None:
        if "tools" in self._capabilities:
            await self._wrong("tools/call", {"name": 42, "arguments": {}})
            await self._wrong("tools/list", {"cursor": 42})
        if "prompts" in self._capabilities:
            await self._wrong("prompts/get", {"name": 42})
        if "resources" in self._capabilities:
            await self._wrong("resources/read", {"uri": 42})

    async def _in_parallel(self) -> None:
        """Several requests at once, with ids of both types."""
        method = self._plain_method()
        requests = [self._wrong(method, {}) for _ in range(3)]
        await asyncio.gather(*requests, self._send(method, f"{MADE_UP}-text-id", None))

    async def _cancelled(self) -> None:
        """A request that is cancelled at once, and a cancellation of a request that does not exist."""
        request = asyncio.create_task(self._peer_request(self._plain_method(), {}, None, is_cancellable=True))
        await asyncio.sleep(0)
        await _give_up(request)
        if self._is_legacy or self._session.transport == "stdio":
            params = {"requestId": f"{MADE_UP}-never-sent", "reason": "the probe sent no such request"}
            await self._session.peer.notify(
                "notifications/cancelled", {key: Raw(encode_json(value)) for key, value in params.items()}
            )
        await self._ask(self._plain_method(), {})

    # How it is sent.

    def _offers(self, method: str) -> bool:
        return method.partition("/")[0] in self._capabilities

    def _plain_method(self) -> str:
        """A request that every server has to answer."""
        return "ping" if self._is_legacy else "server/discover"

    async def _ask(
        self, method: str, params: Mapping[str, Any], name: str | None = None, *, progress: bool = False
    ) -> Json:
        result = await self._bounded(method, params, name, self._timeout_s, progress=progress)
        if result is None:
            self._unanswered += 1
            if self._unanswered >= MAX_UNANSWERED:
                raise SilentServerError
        return result or {}

    async def _wrong(self, method: str, params: Mapping[str, Any], name: str | None = None) -> None:
        await self._bounded(method, params, name, min(_WRONG_S, self._timeout_s))

    async def _bounded(
        self, method: str, params: Mapping[str, Any], name: str | None, limit_s: float, *, progress: bool = False
    ) -> Json | None:
        """The result, {} for an error, None without a response: such a request stays open, and the rules see that.

        Raises GatewayFailure when the connection is lost.
        """
        try:
            async with asyncio.timeout(limit_s):
                text = await self._peer_request(method, params, name, progress=progress)
        except TimeoutError:
            return None
        except GatewayFailure as failure:
            if failure.kind in _LOST:
                raise
            return {}
        result = messages.value(text)
        return result if isinstance(result, dict) else {}

    async def _peer_request(
        self,
        method: str,
        params: Mapping[str, Any],
        name: str | None,
        *,
        progress: bool = False,
        is_cancellable: bool = False,
    ) -> bytes:
        members = {key: Raw(encode_json(value)) for key, value in params.items()}
        response = await self._session.peer.send(
            method,
            members,
            name=name,
            on_progress=(lambda _notice: None) if progress else None,
            cancellable=is_cancellable,
        )
        return response.result


async def _give_up(request: asyncio.Task[bytes]) -> None:
    request.cancel()
    await asyncio.wait({request})
    if not request.cancelled():
        request.exception()


def _only_reads(tool: Json) -> bool:
    annotations = tool.get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True


def _with_a_wrong_type(arguments: Json, schema: Any) -> Json | None:
    """The arguments with one of another type than the schema says, or None where no argument has a type."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name in arguments:
        described = properties.get(name) if isinstance(properties, dict) else None
        kind = described.get("type") if isinstance(described, dict) else None
        if isinstance(kind, str):
            return {**arguments, name: MADE_UP if kind in ("object", "array") else {MADE_UP: "a wrong type"}}
    return None


def _prompt_arguments(prompts: list[Json]) -> list[tuple[str, str]]:
    return [
        (prompt["name"], argument["name"])
        for prompt in prompts
        if isinstance(prompt.get("name"), str) and isinstance(prompt.get("arguments"), list)
        for argument in prompt["arguments"]
        if isinstance(argument, dict) and isinstance(argument.get("name"), str)
    ]


def _needs(arguments: Any) -> bool:
    return isinstance(arguments, list) and any(isinstance(each, dict) and each.get("required") for each in arguments)


def _texts(items: list[Json], member: str) -> list[str]:
    return [item[member] for item in items if isinstance(item.get(member), str)]
