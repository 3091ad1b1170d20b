"""Sends notifications about changed lists and updated resources to the clients that asked for them.

A legacy client gets them on its open stream. A modern client gets them on its `subscriptions/listen`, tagged with the id of that request,
and only those it asked for. On `/mcp` a list has changed when its contents differ; on `/mcp/{serverId}` also when the server announces it.
Changes within `GATHER_S` are sent once. Bounded: listens and URIs; the endpoint drops and counts what a client does not read.
Must not: ask servers anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.catalog.change_watcher import UPDATED
from pactgate.catalog.connections import Connections
from pactgate.catalog.surfaces import Surfaces
from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit, ListenOpened
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Caller, ClientGroup, ListReader, SessionNotifier
from pactgate.pipeline.subscriptions import MAX_URIS, Subscriptions
from pactgate.protocol import modern
from pactgate.protocol.messages import Request, encode_json

MAX_LISTENS: Final = 1000
MAX_LISTENS_OF_ONE: Final = 250
"""Open listens of one subject; callers without a token are one subject together."""
WATCH_S: Final = 60.0
"""How long subscribing to all resources of one listen may take; those after it are not acknowledged."""
GATHER_S: Final = 0.05
"""How long changes are gathered before they are told."""

_KINDS: Final = ("tools", "prompts", "resources")


class _Filter(Struct, rename="camel"):
    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


class _ListenParams(Struct):
    notifications: _Filter


class _UriParams(Struct):
    uri: str


_listen_params: Final = msgspec.json.Decoder(_ListenParams)
_uri_params: Final = msgspec.json.Decoder(_UriParams)


class _SessionHolder:
    """A legacy session that watches resources."""

    __slots__ = ("_channel", "caller")

    def __init__(self, channel: SessionNotifier, caller: Caller) -> None:
        self._channel = channel
        self.caller = caller

    def updated(self, uri: str) -> None:
        self._channel.notify(UPDATED, encode_json({"uri": uri}))


class _Listen:
    """A modern caller's open `subscriptions/listen`."""

    __slots__ = ("_tag", "caller", "ended", "is_acknowledged", "kinds")

    def __init__(self, caller: Caller, request_id: bytes, kinds: frozenset[str]) -> None:
        self.caller = caller
        self._tag = {modern.SUBSCRIPTION_ID_KEY: Raw(request_id)}
        self.kinds = kinds
        self.is_acknowledged = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def subject(self) -> str:
        return self.caller.principal.key

    def acknowledge(self, honoured: dict[str, Any]) -> None:
        self._notify(modern.ACKNOWLEDGED, {"notifications": honoured})
        self.is_acknowledged = True

    def list_changed(self, kind: str) -> None:
        if self.is_acknowledged and kind in self.kinds:
            self._notify(f"notifications/{kind}/list_changed", {})

    def updated(self, uri: str) -> None:
        if self.is_acknowledged:
            self._notify(UPDATED, {"uri": uri})

    def result(self, server_info: bytes) -> bytes:
        meta = {**self._tag, modern.SERVER_INFO_KEY: Raw(server_info)}
        return encode_json({"resultType": "complete", "_meta": meta})

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def _notify(self, method: str, members: dict[str, Any]) -> None:
        self.caller.channel.notify(method, encode_json({**members, "_meta": self._tag}))


class ChangeNotifications:
    """All clients that get notifications. The catalog reports changes, the endpoints report clients."""

    def __init__(
        self,
        connections: Connections,
        subscriptions: Subscriptions,
        server_info: bytes,
        *,
        emit: Emit,
        on_left: Callable[[str], None],
    ) -> None:
        self._connections = connections
        self._subscriptions = subscriptions
        self._server_info = server_info
        self._emit = emit
        self._on_left = on_left
        self._audiences: dict[ClientGroup, None] = {}
        self._sessions: dict[str, _SessionHolder] = {}
        self._listens: set[_Listen] = set()
        self._pending: dict[str | None, set[str]] = {}
        self._before: Surfaces | None = None
        """What callers saw when they were last told of changes."""
        self._flushing: asyncio.TimerHandle | None = None
        self._is_closed = False

    # Reported by the endpoints.

    def join(self, audience: ClientGroup) -> None:
        self._audiences[audience] = None

    def leave(self, audience: ClientGroup) -> None:
        self._audiences.pop(audience, None)

    def left(self, session: str) -> None:
        """A legacy session has ended."""
        self._on_left(session)
        holder = self._sessions.pop(session, None)
        if holder is not None:
            self._subscriptions.release(holder)

    # Reported by the catalog.

    def on_lists_changed(self, server: str, differing: set[str], said: set[str]) -> None:
        for scope, kinds in ((server, differing | said), (None, differing)):
            if kinds:
                self._pending.setdefault(scope, set()).update(kinds)
        self._flush_soon()

    def on_surfaces_changed(self, before: Surfaces) -> None:
        """Callers may see other lists than before, or may no longer have what they subscribed to."""
        if self._before is None:
            self._before = before
        self._subscriptions.recheck()
        self._flush_soon()

    def _flush_soon(self) -> None:
        if self._flushing is None and not self._is_closed:
            self._flushing = asyncio.get_running_loop().call_later(GATHER_S, self.flush)

    def on_updated(self, server: str, uri: str) -> None:
        self._subscriptions.on_updated(server, uri)

    def close(self) -> None:
        """End every listen with its result, and send no more notifications."""
        self._is_closed = True
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        for listen in self._listens:
            listen.end()

    # Requests of clients.

    async def listen(self, ctx: ExecutionContext, request: Request) -> bytes:
        """Run one listen until its client ends it or the gateway stops."""
        try:
            wanted = _listen_params.decode(request.params or b"{}").notifications
        except msgspec.DecodeError as problem:
            raise GatewayFailure(
                Kind.INVALID_PARAMS, f"The params of subscriptions/listen can't be used: {problem}."
            ) from None
        if len(wanted.resource_subscriptions) > MAX_URIS:
            raise GatewayFailure(Kind.LIMIT_EXCEEDED, f"One listen watches at most {MAX_URIS} resources.")
        kinds = frozenset(kind for kind in _KINDS if getattr(wanted, f"{kind}_list_changed"))
        listen = self._admit(_Listen(ctx.caller, request.id, kinds))
        try:
            if wanted.resource_subscriptions:
                await self._connections.settle()
            held = await self._watch(listen, wanted.resource_subscriptions)
            honoured: dict[str, Any] = {f"{kind}ListChanged": True for kind in _KINDS if kind in kinds}
            if held:
                honoured["resourceSubscriptions"] = held
            caller = ctx.caller
            self._emit(
                ListenOpened(
                    request_id=ctx.request_id,
                    subject=caller.principal.shown,
                    client=caller.client,
                    server=caller.scope,
                    watched=(*sorted(kinds), *held),
                )
            )
            listen.acknowledge(honoured)
            await listen.ended
            return listen.result(self._server_info)
        finally:
            self._listens.discard(listen)
            self._subscriptions.release(listen)

    async def subscribe(self, ctx: ExecutionContext, request: Request) -> bytes:
        uri = ctx.requested = _uri_of(request)
        caller, holder = ctx.caller, self._holder(ctx.caller)
        await self._connections.settle()
        await self._subscriptions.add(holder, uri)
        if caller.session is None or self._sessions.get(caller.session) is not holder:
            self._subscriptions.release(holder)  # the session ended while its server was asked
        return b"{}"

    async def unsubscribe(self, ctx: ExecutionContext, request: Request) -> bytes:
        uri = ctx.requested = _uri_of(request)
        self._subscriptions.remove(self._holder(ctx.caller), uri)
        return b"{}"

    def facts(self) -> dict[str, int]:
        """The number of listens and of subscriptions."""
        return {"listens": len(self._listens), "subscriptions": len(self._subscriptions)}

    # Inside.

    def _admit(self, listen: _Listen) -> _Listen:
        own = sum(other.subject == listen.subject for other in self._listens)
        if len(self._listens) >= MAX_LISTENS or own >= MAX_LISTENS_OF_ONE or self._is_closed:
            raise GatewayFailure(
                Kind.OVERLOADED,
                f"There are as many open listens as there may be ({MAX_LISTENS}, and {MAX_LISTENS_OF_ONE} of one client).",
            )
        self._listens.add(listen)
        return listen

    async def _watch(self, listen: _Listen, uris: list[str]) -> list[str]:
        """Subscribe to resources within `WATCH_S`, and return those that can be watched."""
        held: list[str] = []
        try:
            async with asyncio.timeout(WATCH_S):
                for uri in uris:
                    with suppress(GatewayFailure):
                        await self._subscriptions.add(listen, uri)
                        held.append(uri)
        except TimeoutError:
            return held
        return held

    def _holder(self, caller: Caller) -> _SessionHolder:
        if caller.session is None or caller.standing is None:
            raise GatewayFailure(Kind.METHOD_NOT_FOUND, "Only a client with a session can be told of changes.")
        holder = self._sessions.get(caller.session)
        if holder is None:
            holder = self._sessions[caller.session] = _SessionHolder(caller.standing, caller)
        return holder

    def flush(self) -> None:
        """Send the gathered notifications now."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        pending, self._pending = self._pending, {}
        before, self._before = self._before, None
        for kind in _KINDS:

            def concerns(reader: ListReader, kind: str = kind) -> bool:
                return self._concerns(reader, kind, pending, before)

            for audience in self._audiences:
                audience.tell(f"notifications/{kind}/list_changed", concerns)
            for listen in self._listens:
                if concerns(listen.caller):
                    listen.list_changed(kind)

    def _concerns(
        self, reader: ListReader, kind: str, pending: Mapping[str | None, set[str]], before: Surfaces | None
    ) -> bool:
        """Whether a list has changed for a client. Where lists depend on the caller, what happened to the lists of others says nothing."""
        after = self._connections.surfaces
        old, new = (before or after).of(reader), after.of(reader)
        if old.access is None and new.access is None:
            return kind in pending.get(reader.scope, ())
        return old.entries(kind, reader.scope) != new.entries(kind, reader.scope)


def _uri_of(request: Request) -> str:
    try:
        return _uri_params.decode(request.params or b"{}").uri
    except msgspec.DecodeError:
        raise GatewayFailure(
            Kind.INVALID_PARAMS, f"The params of {request.method} can't be used: uri must be a text."
        ) from None
