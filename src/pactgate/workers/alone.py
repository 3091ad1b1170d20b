"""What a gateway does differently as one of several workers, as a list of places; here it does nothing differently.

`ALONE` is a gateway by itself, and costs nothing. `crew.Member` fills the same places for a worker.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final, Protocol

from pactgate.config.model import Config
from pactgate.core.events import Event, GatewayStarted
from pactgate.inbound.auth import Guard
from pactgate.inbound.connection import Handle
from pactgate.inbound.http_server import HttpServer
from pactgate.pipeline.live_configuration import NOBODY, Colleagues, LiveConfiguration
from pactgate.policy.result_cache import Recall
from pactgate.state.guarded import GuardedStore
from pactgate.upstreams.lent import Lend

Facts = Callable[[], dict[str, Any]]
Text = Callable[[], bytes]


class OwnStories(Protocol):
    """The stories of the calls of one process."""

    def tell(self, request_id: str, subject: str | None = None) -> dict[str, Any] | None: ...

    def latest(self, count: int, subject: str | None = None) -> list[dict[str, Any]]: ...


class Gateway(Protocol):
    """What the others may ask of a gateway that is one of several."""

    @property
    def configuration(self) -> LiveConfiguration: ...

    @property
    def stories(self) -> OwnStories: ...

    def snapshot(self) -> dict[str, Any]: ...

    def render_metrics(self) -> bytes: ...

    async def reload(self, config: Config, *, only_if_news: bool = False) -> None: ...


class Crew:
    """A gateway by itself: everything is its own."""

    lend: Lend | None = None
    colleagues: Colleagues = NOBODY

    def join(self, gateway: Gateway) -> None:
        """The gateway is wired."""

    def bounds(self, config: Config) -> Config:
        """With this process's part of what bounds all callers together."""
        return config

    def recall(self, store: GuardedStore) -> Recall:
        return Recall(store)

    def own_file(self, file: str) -> str:
        """Where only one process may write."""
        return file

    def token(self) -> str:
        return secrets.token_urlsafe(32)

    def started(self, address: str, servers: int) -> Event:
        return GatewayStarted(address, servers)

    def handle(self, inner: Handle) -> Handle:
        return inner

    def stories(self, own: OwnStories) -> OwnStories:
        return own

    def snapshot(self, own: Facts) -> Facts:
        return own

    def metrics(self, own: Text) -> Text:
        return own

    async def tell_elsewhere(self, request_id: str) -> dict[str, Any] | None:
        """The story of a call another process has served."""
        return None

    async def open(self, server: HttpServer, guard: Guard, host: str, port: int) -> tuple[str, int]:
        return await server.listen(host, port)

    def close(self) -> None:
        return


ALONE: Final = Crew()
