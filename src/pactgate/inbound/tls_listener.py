"""Listens for clients over TLS: accepts connections, bounds their handshakes, and follows the files of the certificate.

It accepts by itself, because a handshake that never ends must not hold a connection that nobody counts, and because each handshake gets the
certificate of now. A pair of files that can't be used is reported once, and the one before stays. Must not: read a request.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from pactgate.config.server_certificate import CertificateError, ServerCertificate, load_certificate
from pactgate.core.events import CertificateReplaced, ConfigurationRefused, Emit, HandshakeFailed
from pactgate.inbound.peer_address import counted_address, host_of

HANDSHAKE_S: Final = 5.0
MAX_HANDSHAKES: Final = 256
_HANDSHAKE_PART: Final = 16
_FEWEST_HANDSHAKES: Final = 8
_CLOSING_S: Final = 2.0
_BACKLOG: Final = 1024
_ACCEPTED_AT_ONCE: Final = 64
_PAUSE_S: Final = 1.0
_REASONS: Final = {
    "HTTP_REQUEST": "it speaks plain HTTP; the address begins with https://",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no client certificate, which listen.tls.clientCa demands",
    "CERTIFICATE_VERIFY_FAILED": "its client certificate is not signed by an authority of listen.tls.clientCa, or is not valid",
}


class CertificateFiles:
    """The certificate of now. Raises CertificateError where there is none at the start."""

    def __init__(self, files: ServerCertificate, emit: Emit) -> None:
        self._files = files
        self._emit = emit
        self._loaded = self._seen = files.states()
        self.context = load_certificate(files)

    def look(self) -> None:
        """Read files that have changed, once they stay as they are from one look to the next: a pair is not replaced at one moment."""
        states = self._files.states()
        if states == self._loaded or states != self._seen:
            self._seen = states
            return
        self._loaded = states
        try:
            self.context = load_certificate(self._files)
        except CertificateError as problem:
            self._emit(ConfigurationRefused((str(problem),)))
        else:
            self._emit(CertificateReplaced(self._files.certificate))


class TlsListener:
    """Hands connections to `make` when their handshake is done. `max_connections` is what the descriptor limit allows."""

    def __init__(
        self, certificate: CertificateFiles, make: Callable[[], asyncio.Protocol], emit: Emit, max_connections: int
    ) -> None:
        self.certificate = certificate
        self._make = make
        self._emit = emit
        self._max = min(MAX_HANDSHAKES, max(_FEWEST_HANDSHAKES, max_connections // _HANDSHAKE_PART))
        self._sockets: list[socket.socket] = []
        self._handshakes: dict[asyncio.Task[None], str] = {}
        self._paused: set[asyncio.TimerHandle] = set()

    @property
    def handshakes(self) -> int:
        return len(self._handshakes)

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """The address that was bound. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
                listener.setblocking(False)
                self._sockets.append(listener)
        except OSError:
            self.close()
            raise
        for listener in self._sockets:
            loop.add_reader(listener, self._accept, listener)
        bound = self._sockets[0].getsockname()
        return bound[0], bound[1]

    def close(self) -> None:
        """Accept nothing more, and end the handshakes under way."""
        for pause in self._paused:
            pause.cancel()
        for listener in self._sockets:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        self._sockets.clear()
        for handshake in self._handshakes:
            handshake.cancel()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor left: accepting again at once would spin
                self._pause(listener)
                return
            connection.setblocking(False)
            self._begin(connection, host_of(address))

    def _pause(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        self._paused = {timer for timer in self._paused if timer.when() > loop.time()}
        self._paused.add(loop.call_later(_PAUSE_S, loop.add_reader, listener, self._accept, listener))

    def _begin(self, connection: socket.socket, peer: str) -> None:
        if len(self._handshakes) >= self._max:
            self._make_room()
        loop = asyncio.get_running_loop()
        handshake = loop.create_task(self._shake_hands(connection))
        self._handshakes[handshake] = counted_address(peer)
        handshake.add_done_callback(partial(self._done, connection, peer))

    async def _shake_hands(self, connection: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            self._make,
            connection,
            ssl=self.certificate.context,
            ssl_handshake_timeout=HANDSHAKE_S,
            ssl_shutdown_timeout=_CLOSING_S,
        )

    def _done(self, connection: socket.socket, peer: str, handshake: asyncio.Task[None]) -> None:
        self._handshakes.pop(handshake, None)
        if handshake.cancelled():
            connection.close()  # a task that had not begun has closed nothing
        elif (problem := handshake.exception()) is not None:
            connection.close()
            self._emit(HandshakeFailed(peer, _reason(problem)))

    def _make_room(self) -> None:
        """End the oldest handshake of the address that has the most: it is the one that takes long."""
        most = Counter(self._handshakes.values()).most_common(1)[0][0]
        oldest = next(handshake for handshake, address in self._handshakes.items() if address == most)
        del self._handshakes[oldest]
        oldest.cancel()


def _reason(problem: BaseException) -> str:
    if isinstance(problem, ssl.SSLError):
        known = problem.reason or "unknown"
        return _REASONS.get(known, known.replace("_", " ").lower())
    if isinstance(problem, ConnectionAbortedError | TimeoutError):
        return f"it was not done within {HANDSHAKE_S:.0f} s"
    return "the client went away"
