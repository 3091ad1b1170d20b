"""What leads out of a gateway, wired: the HTTP clients, the child processes, and a dialer for each server.

Owns the connections and processes, and ends them. Must not: dial by itself, or choose a server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pactgate.catalog.caller_sessions import CALLER_SESSION_POOL
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.observers import Observers
from pactgate.sign_ins import SignIns
from pactgate.upstreams.dialer import Dialer
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.pool import PoolLimits
from pactgate.upstreams.in_process import InProcessServer

if TYPE_CHECKING:
    from pactgate.upstreams.process.child_reaper import ChildReaper


def shared_client(config: Config) -> HttpClient:
    """The client of all sessions that are shared.

    Slots of calls are shared fairly between clients, connections come first come, first served: so slots have to run out first, also
    where several servers are at one origin.
    """
    return HttpClient(PoolLimits(max_open=max(PoolLimits().max_open, config.limits.max_in_flight)))


class Outgoing:
    """`client_info` is what servers are told of the gateway."""

    def __init__(
        self,
        config: Callable[[], Config],
        client: HttpClient,
        sign_ins: SignIns,
        observers: Observers,
        *,
        client_info: Mapping[str, Any],
        owns_process: bool,
    ) -> None:
        self._config = config
        self._client = client
        self._sign_ins = sign_ins
        self._observers = observers
        self._client_info = client_info
        self._private_client = HttpClient(CALLER_SESSION_POOL)
        self._owns_process = owns_process
        self._child_reaper: ChildReaper | None = None
        self.capabilities: Mapping[str, Any] = {}
        """Of the only client there is, where there is only one: they are those of every session with a server."""

    @property
    def child_count(self) -> int:
        return 0 if self._child_reaper is None else len(self._child_reaper)

    def dialer(self, server: ServerConfig, inside: InProcessServer | None) -> Dialer:
        """`inside` is a server that runs in the gateway itself."""
        grant, caller_grants = self._sign_ins.grants_of(server)
        config = self._config()
        return Dialer(
            server,
            client=self._client,
            child_reaper=self._reaper() if server.command is not None or server.tools is not None else None,
            emit=self._observers.emit,
            client_info=self._client_info,
            max_frame_bytes=config.limits.max_upstream_frame_bytes,
            make_tap=self._observers.recorders.server,
            private_client=self._private_client,
            private_paths=config.private_paths,
            output=self._observers.server_logs,
            inside=inside,
            capabilities=lambda: self.capabilities,
            grant=grant,
            caller_grants=caller_grants,
        )

    async def close(self) -> None:
        await self._client.close()
        await self._private_client.close()
        if self._child_reaper is not None:
            await self._child_reaper.close()

    def _reaper(self) -> ChildReaper:
        """The one child reaper, made with the first server that is a process."""
        if self._child_reaper is None:
            from pactgate.upstreams.process.child_reaper import ChildReaper  # without such a server nobody needs it

            self._child_reaper = ChildReaper(adopts=self._owns_process)
        return self._child_reaper
