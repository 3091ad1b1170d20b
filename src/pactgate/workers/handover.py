"""Connections find the worker that serves their caller: the socket itself changes hands, with the bytes that were read from it.

Looked at when the head of a request is known, between two exchanges, so nothing is half done. What was handed over is served as if it had
been accepted there. Must not: relay anything, or keep a connection it handed over. What can't be handed over is refused with 503, and
whoever asks again is served: nothing of the request has been looked at.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Final

from pactgate.inbound.auth import Admitted, Guard
from pactgate.inbound.connection import Connection
from pactgate.inbound.http_grammar import BadRequest, Head
from pactgate.inbound.http_server import HttpServer
from pactgate.workers import packets
from pactgate.workers.homes import Place, home_of
from pactgate.workers.packets import EndedError, Packet

MAX_ADOPTING: Final = 1000
_PACKETS_A_TURN: Final = 64
_BY_CALLER: Final = "/mcp"
"""Whatever else there is can be answered by every worker."""


class Handover:
    """One worker's way to the others. `inboxes` has one socket to write to for each worker; `inbox` is what comes to this one."""

    def __init__(
        self, place: Place, inbox: socket.socket, inboxes: Sequence[socket.socket], guard: Guard, server: HttpServer
    ) -> None:
        self.handed_count = 0
        self.adopted_count = 0
        self.away: set[int] = set()
        """Workers that do not run at the moment."""
        self._place = place
        self._inbox = inbox
        self._inboxes = inboxes
        self._guard = guard
        self._server = server
        self._adopting: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(inbox.fileno(), self._read)
        server.pass_on = self.pass_on

    def pass_on(self, connection: Connection, head: Head, sent: bytes) -> bool:
        """Whether the connection has gone to its caller's worker. Raises BadRequest where it should and can't."""
        if head.judged is not None or not head.path.startswith(_BY_CALLER):
            return False
        admitted = self._guard.identify_by(head.headers)
        if not isinstance(admitted, Admitted):
            return False
        home = home_of(admitted.subject, self._place.count)
        if home == self._place.index:
            return False
        self._send(home, connection.transport, sent)
        return True

    def _send(self, home: int, transport: asyncio.Transport, sent: bytes) -> None:
        if home in self.away:
            raise BadRequest(503, "The process that serves this caller is being started again; try again.")
        if transport.get_write_buffer_size():
            raise BadRequest(503, "Take the answer before the request of another caller on the same connection.")
        try:
            is_sent = packets.send(self._inboxes[home], sent, (transport.get_extra_info("socket").fileno(),))
        except EndedError:
            is_sent = False
        if not is_sent:
            raise BadRequest(
                503, "The process that serves this caller has more connections to take than it can; try again."
            )
        self.handed_count += 1
        transport.abort()  # our hold on it; the connection itself lives on

    def close(self) -> None:
        if self._inbox.fileno() < 0:
            return
        self._server.pass_on = None
        self._loop.remove_reader(self._inbox.fileno())
        self._inbox.close()
        for one in self._inboxes:
            one.close()
        for task in self._adopting:
            task.cancel()

    def _read(self) -> None:
        if self._server.is_closing:
            self._loop.remove_reader(self._inbox.fileno())  # what comes now is for whoever takes this worker's place
            return
        try:
            for _ in range(_PACKETS_A_TURN):
                if len(self._adopting) >= MAX_ADOPTING:
                    return
                packet = packets.receive(self._inbox)
                if packet is None:
                    return
                self._adopt(packet)
        except EndedError:
            self._loop.remove_reader(self._inbox.fileno())  # the owner is gone, which is noticed elsewhere

    def _adopt(self, packet: Packet) -> None:
        if len(packet.descriptors) != 1:
            packet.close()
            return
        self.adopted_count += 1
        accepted = socket.socket(fileno=packet.descriptors[0])
        task = self._loop.create_task(self._serve(accepted, packet.text), name="adopt a connection")
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _serve(self, accepted: socket.socket, sent: bytes) -> None:
        accepted.setblocking(False)
        try:
            await self._server.adopt(accepted, sent)
        except OSError:
            accepted.close()  # the client has gone meanwhile
