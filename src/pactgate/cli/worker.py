"""One worker of `pactgate serve --workers`: started by the owner with the number of a descriptor, told everything else over it.

Ends when the owner says so, or is no more. Must not: be started by hand, or announce anything; the owner does.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
from typing import Final

import msgspec

from pactgate.app import build
from pactgate.cli.allocator import keep_large_buffers, search_garbage_rarely
from pactgate.cli.announce import SHOWN
from pactgate.cli.log import loop_factory, make_telemetry
from pactgate.cli.terminal import prepare_output
from pactgate.core.events import ConfigurationReloaded, Event, ServerConnecting
from pactgate.core.failures import GatewayFailure
from pactgate.workers import packets
from pactgate.workers.crew import Hello, Member
from pactgate.workers.packets import EndedError, Packet
from pactgate.workers.parcels import unpack

_HELLO_S: Final = 10.0
_ANNOUNCED: Final = SHOWN | {ServerConnecting}


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1].isdecimal():
        print("This is a part of `pactgate serve --workers N`; start that.", file=sys.stderr)
        return 2
    prepare_output()
    keep_large_buffers()
    search_garbage_rarely()
    end = socket.socket(fileno=int(sys.argv[1]))
    end.set_inheritable(False)
    packet = _hello(end)
    if packet is None:
        return 1
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_Working(packet, end).run())


def _hello(end: socket.socket) -> Packet | None:
    if not select.select([end], [], [], _HELLO_S)[0]:
        return None
    try:
        return packets.receive(end)
    except EndedError:
        return None


class _Working:
    """One worker's life."""

    def __init__(self, packet: Packet, end: socket.socket) -> None:
        _, _, _, text = msgspec.msgpack.decode(packet.text)
        self._hello = unpack(text, Hello)
        self._descriptors = packet.descriptors
        self._end = end
        self._stop = asyncio.Event()
        self._was_signalled = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        hello, config = self._hello, self._hello.standing.config
        self._telemetry = make_telemetry(config, is_announced=True, worker=hello.place.index + 1)
        self._member = Member(hello, self._descriptors, self._end, self._stop.set)
        self._gateway = build(config, self._emit, self._member)
        try:
            await self._gateway.open_audit()
            await self._gateway.serve_http()
            await self._gateway.start()
            self._member.ready()
            await self._stop.wait()
        except GatewayFailure as failure:
            self._member.tell_owner("failed", failure.message)
            return 1
        finally:
            await self._gateway.stop()
        return 0

    def _emit(self, event: Event) -> None:
        if isinstance(event, ConfigurationReloaded):
            self._telemetry.hide((*self._hello.standing.config.secrets, *self._gateway.config.secrets))
        self._telemetry.emit(event)
        if self._hello.place.index == 0 and type(event) in _ANNOUNCED:
            server = getattr(event, "server", None)
            supervisor = self._gateway.connections.servers.get(server) if server is not None else None
            error = supervisor.last_error if supervisor is not None else None
            self._member.tell_owner("event", (type(event).__name__, msgspec.structs.asdict(event), error))

    def _on_signal(self, number: signal.Signals) -> None:
        if self._was_signalled:
            os._exit(128 + number)
        self._was_signalled = True  # that the owner asked as well does not make it the second time
        self._stop.set()


if __name__ == "__main__":
    sys.exit(main())
