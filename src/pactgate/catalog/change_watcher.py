"""Watches one server for changed lists and updated resources, in either protocol era.

A legacy server sends its notifications unasked, and those about a resource after `resources/subscribe`. A modern server sends them on a
`subscriptions/listen` stream with a fixed filter: for a new filter the watcher opens a new stream, and ends the old one when the new one
is acknowledged. Subscriptions survive the connection: the watcher subscribes again after a reconnect. Bounded: resources per server;
retries wait with backoff. Must not: know callers; it counts the subscribers of a resource.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from pactgate.catalog.backoff import Backoff
from pactgate.catalog.waiting import mark_seen
from pactgate.core.events import Emit, UpstreamNoise
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages
from pactgate.protocol.messages import Notification, encode_json
from pactgate.protocol.modern import ACKNOWLEDGED, LISTEN
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Session

UPDATED: Final = "notifications/resources/updated"
LIST_CHANGED: Final = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
MAX_URIS: Final = 1000
"""Resources of one server that can have subscribers at the same time."""
_ACK_S: Final = 10.0

_uri: Final = msgspec.json.Decoder(str)


class _ListenStream(NamedTuple):
    """An acknowledged `subscriptions/listen` stream. `honoured` is the part of the filter that the server accepted."""

    task: asyncio.Task[bytes]
    honoured: dict[str, Any]


class ChangeWatcher:
    """Calls `on_lists` with a `list_changed` notification, and `on_updated` with the server and the URI of an updated resource."""

    def __init__(
        self,
        server: str,
        on_lists: Callable[[Notification], None],
        on_updated: Callable[[str, str], None],
        emit: Emit,
        backoff: Backoff,
    ) -> None:
        self._server = server
        self._on_lists = on_lists
        self._on_updated = on_updated
        self._emit = emit
        self._backoff = backoff
        self._subscribers: dict[str, int] = {}
        self._unused: set[str] = set()
        self._session: Session | None = None
        self._listen: _ListenStream | None = None
        self._is_opened = asyncio.Event()
        self._turn = asyncio.Lock()
        self._unsubscribing: asyncio.Task[None] | None = None

    async def run(self, session: Session) -> None:
        """Watch one connection. The supervisor cancels this when the connection ends."""
        self._session = session
        try:
            if session.identity.era is Era.MODERN:
                await self._keep_listening(session)
            else:
                await self._resubscribe(session)
                await asyncio.get_running_loop().create_future()
        finally:
            self._session = None
            await self._end_listen()

    def notice(self, notification: Notification) -> None:
        """Take a notification that belongs to no call."""
        if notification.method in LIST_CHANGED:
            self._on_lists(notification)
        elif notification.method == UPDATED:
            try:
                uri = _uri.decode(messages.members(notification.params or b"{}")["uri"])
            except (KeyError, msgspec.DecodeError):
                return
            self._on_updated(self._server, uri)

    def sends_list_changed(self, session: Session) -> bool:
        """Whether the server announces changes of its tools, so that polling is not needed."""
        if session.identity.era is Era.MODERN:
            return self._listen is not None and self._listen.honoured.get("toolsListChanged") is True
        return _can(session, "tools", "listChanged") and session.hears_unasked

    @property
    def open_requests(self) -> int:
        """Its own requests that stay open: a modern server is listened to with one."""
        return int(self._listen is not None)

    @property
    def has_subscribers(self) -> bool:
        return bool(self._subscribers)

    @property
    def free_count(self) -> int:
        """How many more resources can be watched at the server."""
        return MAX_URIS - len(self._subscribers)

    async def subscribe(self, session: Session, uri: str) -> None:
        """Add a subscriber of a resource; the first one subscribes at the server. Raises GatewayFailure if the server refuses."""
        async with self._turn:
            if uri not in self._subscribers:
                if len(self._subscribers) >= MAX_URIS:
                    message = f"{self._server} has subscriptions to {MAX_URIS} resources already, the maximum"
                    raise GatewayFailure(Kind.OVERLOADED, message, server=self._server)
                await self._subscribe(session, uri)
            self._subscribers[uri] = self._subscribers.get(uri, 0) + 1

    def unsubscribe(self, uri: str) -> None:
        """Remove a subscriber. After the last one the watcher unsubscribes at the server, in the background."""
        left = self._subscribers.get(uri, 0) - 1
        if left > 0:
            self._subscribers[uri] = left
        elif left == 0:
            del self._subscribers[uri]
            self._unused.add(uri)
            if self._unsubscribing is None and self._session is not None:
                self._unsubscribing = asyncio.get_running_loop().create_task(self._unsubscribe_unused())

    async def close(self) -> None:
        task, self._unsubscribing = self._unsubscribing, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    # Either era.

    async def _subscribe(self, session: Session, uri: str) -> None:
        if not _can(session, "resources", "subscribe"):
            message = f"{self._server} does not offer subscriptions to its resources"
            raise GatewayFailure(Kind.METHOD_NOT_FOUND, message, server=self._server, details={"uri": uri})
        if session.identity.era is Era.LEGACY:
            await session.peer.request("resources/subscribe", {"uri": Raw(encode_json(uri))})
            return
        honoured = await self._open(session, [*self._subscribers, uri])
        if uri not in (honoured.get("resourceSubscriptions") or ()):
            message = f"{self._server} sends no updates of {uri!r}"
            raise GatewayFailure(Kind.UNKNOWN_RESOURCE, message, server=self._server, details={"uri": uri})

    async def _unsubscribe_unused(self) -> None:
        """Unsubscribe from resources without subscribers. After a failure the server may send notifications that nobody receives."""
        try:
            async with self._turn, asyncio.timeout(_ACK_S):
                session = self._session
                unused, self._unused = self._unused - self._subscribers.keys(), set()
                if session is None or not unused:
                    return
                if session.identity.era is Era.MODERN:
                    await self._open(session, list(self._subscribers))
                else:
                    for uri in unused:
                        await session.peer.request("resources/unsubscribe", {"uri": Raw(encode_json(uri))})
        except (GatewayFailure, TimeoutError) as problem:
            self._emit(UpstreamNoise(self._server, "could not be unsubscribed from", str(problem)[:200]))
        finally:
            self._unsubscribing = None

    async def _resubscribe(self, session: Session) -> None:
        async with self._turn:
            for uri in tuple(self._subscribers):
                try:
                    await self._subscribe(session, uri)
                except GatewayFailure as failure:
                    self._emit(UpstreamNoise(self._server, "refused to renew a subscription", failure.message[:200]))

    # Modern: one listen at a time.

    async def _keep_listening(self, session: Session) -> None:
        failures = 0
        while True:
            self._is_opened.clear()
            failure = await self._try_to_listen(session)
            failures = 0 if failure is None else failures + 1
            listen = self._listen
            if listen is not None:
                await asyncio.wait({listen.task})
                if listen is self._listen:
                    self._listen = None
                    await asyncio.sleep(self._backoff.before(1))
            elif failure is None or failure.kind is Kind.UPSTREAM_ERROR:  # nothing to listen to, or the server refuses
                await self._is_opened.wait()
            else:
                await asyncio.sleep(self._backoff.before(failures))

    async def _try_to_listen(self, session: Session) -> GatewayFailure | None:
        try:
            async with self._turn:
                if self._listen is None and (self._subscribers or _lists_that_change(session)):
                    await self._open(session, list(self._subscribers))
        except GatewayFailure as failure:
            self._emit(UpstreamNoise(self._server, "refuses to send change notifications", failure.message[:200]))
            return failure
        return None

    async def _open(self, session: Session, uris: list[str]) -> dict[str, Any]:
        """Open a stream with this filter in place of the present one and return what the server honours. The caller holds `_turn`."""
        wanted: dict[str, Any] = {f"{kind}ListChanged": True for kind in _lists_that_change(session)}
        if uris:
            wanted["resourceSubscriptions"] = uris
        acknowledged: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def take(notification: Notification) -> None:
            if notification.method != ACKNOWLEDGED:
                self.notice(notification)
            elif not acknowledged.done():
                acknowledged.set_result(_honoured(notification))

        asking = session.peer.request(LISTEN, {"notifications": Raw(encode_json(wanted))}, on_change=take)
        task = asyncio.get_running_loop().create_task(asking)
        task.add_done_callback(mark_seen)  # `_keep_listening` notices the end of the stream by itself
        waiting: set[asyncio.Future[Any]] = {task, acknowledged}
        try:
            async with asyncio.timeout(_ACK_S):
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not acknowledged.done():
                task.result()
                raise self._listen_failed("ended the stream at once")
        except TimeoutError:
            raise self._listen_failed(f"did not acknowledge within {_ACK_S:g} s") from None
        finally:
            if not acknowledged.done():
                task.cancel()
        before, self._listen = self._listen, _ListenStream(task, acknowledged.result())
        self._is_opened.set()
        if before is not None:
            before.task.cancel()
        return self._listen.honoured

    async def _end_listen(self) -> None:
        listen, self._listen = self._listen, None
        if listen is not None:
            listen.task.cancel()
            await asyncio.wait({listen.task})

    def _listen_failed(self, why: str) -> GatewayFailure:
        return GatewayFailure(Kind.MALFORMED_RESULT, f"{self._server} {why} ({LISTEN})", server=self._server)


def _can(session: Session, feature: str, ability: str) -> bool:
    offered = session.identity.capabilities.get(feature)
    return isinstance(offered, dict) and offered.get(ability) is True


def _lists_that_change(session: Session) -> list[str]:
    return [kind for kind in ("tools", "prompts", "resources") if _can(session, kind, "listChanged")]


def _honoured(notification: Notification) -> dict[str, Any]:
    said = messages.value(notification.params or b"{}").get("notifications")
    return said if isinstance(said, dict) else {}
