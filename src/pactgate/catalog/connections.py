"""All servers together: a supervisor each, one catalog of what they offer, swapped whole when any of them changes.

Servers never wait for each other. Enforces S0/ECO-002: what one server does costs the others nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from pactgate.catalog.catalog import Catalog, Offer, name_offer
from pactgate.catalog.discovery import Discovered
from pactgate.catalog.index import server_of
from pactgate.catalog.supervisor import Pauses, Supervisor
from pactgate.config.model import ServerConfig
from pactgate.core.events import Emit
from pactgate.core.model import ServerStatus, Tool
from pactgate.upstreams.connect import Dialer, Session

SETTLING_S: Final = 1.5
"""How long after the start a list waits for servers that are still connecting."""


class Connections:
    """Every configured server by id, and the catalog of what the connected ones offer."""

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        make_dialer: Callable[[ServerConfig], Dialer],
        *,
        naming: str,
        server_info: bytes,
        own_resources: tuple[bytes, ...] = (),
        emit: Emit,
        pauses: Pauses | None = None,
        mask: Callable[[str], str] = str,
    ) -> None:
        self._naming = naming
        self._server_info = server_info
        self._own_resources = own_resources
        self._named: dict[str, tuple[Discovered, Offer]] = {}
        self._supervisors = {
            config.id: Supervisor(config, make_dialer(config), self._changed, emit, pauses, mask) for config in servers
        }
        self._settling_until = 0.0
        self._offers: dict[str, Offer] = {}
        self.catalog = self._make_catalog({})

    def start(self) -> None:
        self._settling_until = asyncio.get_running_loop().time() + SETTLING_S
        for supervisor in self._supervisors.values():
            supervisor.start()

    async def stop(self) -> None:
        await asyncio.gather(*(supervisor.stop() for supervisor in self._supervisors.values()))

    @property
    def servers(self) -> dict[str, Supervisor]:
        return self._supervisors

    def connected(self, server: str) -> Session | None:
        """The session of a server that is connected right now."""
        session = self._supervisors[server].session
        return session if session is not None and session.peer.is_open else None

    async def session(self, server: str) -> Session:
        return await self._supervisors[server].ready()

    async def settle(self) -> None:
        """Right after the start, wait a little for servers that have neither connected nor failed yet."""
        left_s = self._settling_until - asyncio.get_running_loop().time()
        waiting = [item.settled for item in self._supervisors.values() if not item.settled.is_set()]
        if left_s <= 0 or not waiting:
            return
        try:
            async with asyncio.timeout(left_s):
                for event in waiting:
                    await event.wait()
        except TimeoutError:
            return

    async def resolve(self, name: str, scope: str | None) -> Tool:
        """The tool meant by a name the index does not know: wait for whoever may still bring it, then look again."""
        server = scope or server_of(name, self._supervisors)
        if server is None:
            await self.settle()
        else:
            await self._first_list(self._supervisors[server])
        return self.catalog.tools.resolve(name, scope)

    async def _first_list(self, supervisor: Supervisor) -> None:
        """Raises why the server can't be reached, if it can't: better than to call its tools unknown."""
        if supervisor.status is not ServerStatus.DISABLED:
            await supervisor.ready()
            await supervisor.settled.wait()

    def rows(self) -> list[dict[str, Any]]:
        return [supervisor.row() for supervisor in self._supervisors.values()]

    def missing(self) -> dict[str, str]:
        """Which enabled servers can't be used right now, and why."""
        return {id_: item.trouble for id_, item in self._supervisors.items() if item.trouble is not None}

    def _changed(self) -> None:
        """Name what is new and swap the catalog in one assignment."""
        for id_, supervisor in self._supervisors.items():
            found = supervisor.discovered
            if id_ not in self._named or self._named[id_][0] is not found:
                self._named[id_] = (found, name_offer(id_, found, self._naming))
        offers = {id_: self._named[id_][1] for id_ in self._supervisors}
        if offers != self._offers or self.missing() != self.catalog.missing:
            self._offers = offers
            self.catalog = self._make_catalog(offers)

    def _make_catalog(self, offers: dict[str, Offer]) -> Catalog:
        return Catalog(offers, server_info=self._server_info, missing=self.missing(), own_resources=self._own_resources)
