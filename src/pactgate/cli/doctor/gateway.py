"""Doctor, gateway: whether the port is free, or a gateway runs there already."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Final

from pactgate.cli.doctor.finding import Finding, fail, ok
from pactgate.cli.gateway_client import GatewayClient, GatewayClientError, address_of
from pactgate.config.sections.listen import ListenSection

_TOPIC: Final = "gateway"
_ELSEWHERE: Final = "Choose another port with --port or listen.port, or stop that program."
_HINTS: Final = {
    errno.EACCES: "Choose a port above 1023 with --port or listen.port.",
    errno.EADDRNOTAVAIL: "Choose an address of this machine with --host or listen.host; 127.0.0.1 always is one.",
}


async def examine_port(listen: ListenSection) -> list[Finding]:
    """The loader has checked the certificate, and warned of tokens without TLS."""
    host, port = listen.host, listen.tcp_port
    where = f"{host}:{port}"
    if port is None:
        return [ok(_TOPIC, f"no port, only the socket {listen.socket}")]
    if not port:
        return [ok(_TOPIC, f"port 0: any free port of {host}")]
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port, reuse_address=True)
    except socket.gaierror:
        return [fail(_TOPIC, f"{host} can't be resolved", "Write listen.host as an address, for example 127.0.0.1.")]
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            certificate = None if listen.tls is None else listen.tls.certificate
            url = address_of(host, port, has_tls=listen.tls is not None)
            return [await asyncio.to_thread(_identify, url, certificate, where)]
        reason = problem.strerror or type(problem).__name__
        hint = _HINTS.get(problem.errno or 0, "Choose another with --host and --port.")
        return [fail(_TOPIC, f"can't listen on {where}: {reason}", hint)]
    server.close()
    await server.wait_closed()
    return [ok(_TOPIC, f"{where} is free")]


def _identify(url: str, certificate: str | None, where: str) -> Finding:
    try:
        state = GatewayClient(url, certificate=certificate).get("/health/live")
    except GatewayClientError as problem:
        return fail(_TOPIC, f"another program uses {where}: {problem.message}", _ELSEWHERE)
    if isinstance(state, dict) and state.get("status") == "ok":
        return ok(_TOPIC, f"a gateway runs at {url} already; `pactgate status` shows its status")
    return fail(_TOPIC, f"another program uses {where}", _ELSEWHERE)
