"""What one server says of its changes, in either era: lists that changed, resources that were updated.

A legacy server says it unasked, and of a resource once it was subscribed to. A modern one says it on a `subscriptions/listen`, whose
filter is fixed: a new filter is a new listen, opened and acknowledged before the old one ends. What is held outlives the connection: a
new one subscribes again. Bounded: URIs of one server, pauses between tries. Must not: know callers; holds are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from pactgate.catalog.backoff import Backoff
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
"""Resources of one server that are watched at once."""
_ACK_S: Final = 10.0

_uri: Final = msgspec.json.Decoder(str)


class _ListenStream:
    """One `subscriptions/listen` that was acknowledged."""

    __slots__ = ("honoured", "task")

    def __init__(self, task: asyncio.Task[bytes], honoured: dict[str, Any]) -> None:
        self.task = task
        self.honoured = honoured


class ChangeWatcher:
    """The changes of one server. `on_lists` is told the notice of a changed list, `on_updated` the URI of a changed resource."""

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
        self._holds: dict[str, int] = {}
        self._stale: set[str] = set()
        self._session: Session | None = None
        self._listen: _ListenStream | None = None
        self._is_opened = asyncio.Event()
        self._turn = asyncio.Lock()
        self._tidying: asyncio.Task[None] | None = None

    async def run(self, session: Session) -> None:
        """From connected to lost. Cancelled by the end of the connection."""
        self._session = session
        try:
            if session.identity.era is Era.MODERN:
                await self._keep_listening(session)
            else:
                await self._subscribe_again(session)
                await asyncio.get_running_loop().create_future()
        finally:
            self._session = None
            await self._end_listen()

    def notice(self, notification: Notification) -> None:
        """Something the server said that belongs to no call."""
        if notification.method in LIST_CHANGED:
            self._on_lists(notification)
        elif notification.method == UPDATED:
            try:
                uri = _uri.decode(messages.members(notification.params or b"{}")["uri"])
            except (KeyError, msgspec.DecodeError):
                return
            self._on_updated(self._server, uri)

    def sends_list_changed(self, session: Session) -> bool:
        """Whether a change of its tools would be heard of, so that nobody has to ask."""
        if session.identity.era is Era.MODERN:
            return self._listen is not None and self._listen.honoured.get("toolsListChanged") is True
        return _can(session, "tools", "listChanged") and session.hears_unasked

    async def subscribe(self, session: Session, uri: str) -> None:
        """Hear of this resource from now on; one more holder where there is one already. Raises why the server won't say."""
        async with self._turn:
            if uri not in self._holds:
                if len(self._holds) >= MAX_URIS:
                    message = f"{self._server} is watched for {MAX_URIS} resources, and no more can be"
                    raise GatewayFailure(Kind.OVERLOADED, message, server=self._server)
                await self._begin(session, uri)
            self._holds[uri] = self._holds.get(uri, 0) + 1

    def unsubscribe(self, uri: str) -> None:
        """One holder less. The server is told later that nobody listens any more."""
        left = self._holds.get(uri, 0) - 1
        if left > 0:
            self._holds[uri] = left
        elif left == 0:
            del self._holds[uri]
            self._stale.add(uri)
            if self._tidying is None and self._session is not None:
                self._tidying = asyncio.get_running_loop().create_task(self._tidy())

    async def close(self) -> None:
        task, self._tidying = self._tidying, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    # Either era.

    async def _begin(self, session: Session, uri: str) -> None:
        if not _can(session, "resources", "subscribe"):
            message = f"{self._server} does not offer subscriptions to its resources"
            raise GatewayFailure(Kind.METHOD_NOT_FOUND, message, server=self._server, details={"uri": uri})
        if session.identity.era is Era.LEGACY:
            await session.peer.request("resources/subscribe", {"uri": Raw(encode_json(uri))})
            return
        honoured = await self._open(session, [*self._holds, uri])
        if uri not in (honoured.get("resourceSubscriptions") or ()):
            message = f"{self._server} does not tell of changes of {uri!r}"
            raise GatewayFailure(Kind.UNKNOWN_RESOURCE, message, server=self._server, details={"uri": uri})

    async def _tidy(self) -> None:
        """Tell the server what is of no interest any more; a failure leaves us with notices nobody hears."""
        try:
            async with self._turn, asyncio.timeout(_ACK_S):
                session = self._session
                stale, self._stale = self._stale - self._holds.keys(), set()
                if session is None or not stale:
                    return
                if session.identity.era is Era.MODERN:
                    await self._open(session, list(self._holds))
                else:
                    for uri in stale:
                        await session.peer.request("resources/unsubscribe", {"uri": Raw(encode_json(uri))})
        except (GatewayFailure, TimeoutError) as problem:
            self._emit(UpstreamNoise(self._server, "could not be told the end of a subscription", str(problem)[:200]))
        finally:
            self._tidying = None

    async def _subscribe_again(self, session: Session) -> None:
        async with self._turn:
            for uri in tuple(self._holds):
                try:
                    await self._begin(session, uri)
                except GatewayFailure as failure:
                    self._emit(UpstreamNoise(self._server, "did not take a subscription again", failure.message[:200]))

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
            elif failure is None or failure.kind is Kind.UPSTREAM_ERROR:  # nothing to listen to, or it will not have it
                await self._is_opened.wait()
            else:
                await asyncio.sleep(self._backoff.before(failures))

    async def _try_to_listen(self, session: Session) -> GatewayFailure | None:
        try:
            async with self._turn:
                if self._listen is None and (self._holds or _lists_that_change(session)):
                    await self._open(session, list(self._holds))
        except GatewayFailure as failure:
            self._emit(UpstreamNoise(self._server, "does not let us listen to its changes", failure.message[:200]))
            return failure
        return None

    async def _open(self, session: Session, uris: list[str]) -> dict[str, Any]:
        """Listen with this filter instead of the one so far; what the server honours of it. The turn is ours."""
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
        task.add_done_callback(_retrieve)
        waiting: set[asyncio.Future[Any]] = {task, acknowledged}
        try:
            async with asyncio.timeout(_ACK_S):
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not acknowledged.done():
                task.result()
                raise self._unheard("ended the stream at once")
        except TimeoutError:
            raise self._unheard(f"did not acknowledge within {_ACK_S:g} s") from None
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

    def _unheard(self, why: str) -> GatewayFailure:
        return GatewayFailure(Kind.MALFORMED_RESULT, f"{self._server} {why} ({LISTEN})", server=self._server)


def _can(session: Session, feature: str, ability: str) -> bool:
    offered = session.identity.capabilities.get(feature)
    return isinstance(offered, dict) and offered.get(ability) is True


def _lists_that_change(session: Session) -> list[str]:
    return [kind for kind in ("tools", "prompts", "resources") if _can(session, kind, "listChanged")]


def _honoured(notification: Notification) -> dict[str, Any]:
    said = messages.value(notification.params or b"{}").get("notifications")
    return said if isinstance(said, dict) else {}


def _retrieve(task: asyncio.Task[bytes]) -> None:
    """How a listen ended shows in what is done next; nobody else asks."""
    if not task.cancelled():
        task.exception()
