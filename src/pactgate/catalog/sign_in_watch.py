"""Notices that somebody signed in or out while the gateway runs: looks at the store of credentials once a second.

Servers that wait for a sign-in are tried again. Must not: read a row; the grants of the servers do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from pactgate.catalog.connections import Connections
from pactgate.core.failures import GatewayFailure
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.oauth.server_grant import ServerGrant

LOOK_S: Final = 1.0


class SignInWatch:
    """One task, begun and ended by the composition root."""

    def __init__(
        self,
        store: CredentialStore,
        grants: Mapping[str, ServerGrant],
        connections: Connections,
        of_callers: Callable[[], Iterable[ServerGrant]] = tuple,
    ) -> None:
        self._of_callers = of_callers
        self._store = store
        self._grants = grants
        self._connections = connections
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="sign-ins")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        state = await self._state()
        while True:
            await asyncio.sleep(LOOK_S)
            before, state = state, await self._state()
            if state != before:
                await self._reread()

    async def _state(self) -> Hashable:
        try:
            return await asyncio.to_thread(self._store.state)
        except GatewayFailure:
            return None  # a store that is away has changed when it is back

    async def _reread(self) -> None:
        waiting = [server for server, grant in self._grants.items() if grant.is_wanted]
        for grant in [*self._grants.values(), *self._of_callers()]:
            with suppress(
                GatewayFailure
            ):  # a file that can't be read changes nothing here; a refused request will say so
                await grant.reread()
        for server in waiting:
            supervisor = self._connections.servers.get(server)
            if supervisor is not None:
                supervisor.reconfigure(supervisor.config)
        if waiting:
            await self._connections.discover(only=waiting, force=True)
