"""Runs one scripted session with a live server, which a recorder captures for the checker.

A first connection, which is not recorded, finds era and transport. The second plays the script: what a good client sends and what a wrong
one does (`probe_script`), and over HTTP single requests with wrong headers (`probe_http`). A third one, to a legacy server, asks for
a protocol version that does not exist. Everything is bounded in number and time.
Must not: check anything, or call a tool that the operator did not name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from msgspec import Raw, Struct

from pactgate.config.server_settings import ServerConfig
from pactgate.conformance.probe_http import HttpProbe
from pactgate.conformance.probe_recorder import ProbeRecorder
from pactgate.conformance.probe_script import UNKNOWN_VERSION, ProbeScript
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.recording import ConnectionRecorder
from pactgate.protocol import modern
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.channel import Outgoing
from pactgate.upstreams.dialer import Dialer, MakeTap, Session
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.proxy import network_of
from pactgate.upstreams.peer import Peer
from pactgate.upstreams.process.child_reaper import ChildReaper
from pactgate.upstreams.process.stdio import StdioChannel

_CLIENT: Final = {"name": "pactgate-probe", "version": "1"}
_MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
_SINGLE_S: Final = 5.0


class ProbeTarget(Struct, frozen=True):
    """A server to connect to: a command with its arguments, or a URL. `calls` are tools to call, with their arguments."""

    command: tuple[str, ...] = ()
    url: str | None = None
    headers: dict[str, str] = {}
    env: dict[str, str] = {}
    cwd: str | None = None
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()

    def config(self, era: Era | None, transport: str) -> ServerConfig:
        return ServerConfig(
            id="the server",
            command=self.command[0] if self.command else None,
            args=self.command[1:],
            env=self.env,
            cwd=self.cwd,
            url=self.url,
            headers=self.headers,
            era="auto" if era is None else era.value,
            transport="sse" if transport == "sse" else "auto",
        )


@asynccontextmanager
async def connected(
    target: ProbeTarget, era: Era | None, timeout_s: float, make_tap: MakeTap | None = None, transport: str = "auto"
) -> AsyncIterator[Session]:
    """A session with a live server. Afterwards everything that was started for it has ended. Raises GatewayFailure."""
    async with AsyncExitStack() as ending:
        client, child_reaper = HttpClient(), ChildReaper()
        ending.push_async_callback(child_reaper.close)
        ending.push_async_callback(client.close)
        dialer = Dialer(
            target.config(era, transport),
            client=client,
            child_reaper=child_reaper,
            emit=lambda _event: None,
            client_info=_CLIENT,
            max_frame_bytes=_MAX_FRAME_BYTES,
            make_tap=make_tap or (lambda _server, _transport: None),
        )
        try:
            async with asyncio.timeout(timeout_s):
                session = await dialer.dial()
        except TimeoutError:
            why = f"The server did not answer within {timeout_s:g} s; is it an MCP server?"
            raise GatewayFailure(Kind.CONNECT_TIMEOUT, why) from None
        ending.push_async_callback(session.peer.close)
        yield session


async def probe(target: ProbeTarget, make_tap: MakeTap, *, era: Era | None = None, timeout_s: float = 30.0) -> None:
    """Run the scripted session while a recorder captures it. Raises GatewayFailure when the server can't be used."""
    async with connected(target, era, timeout_s) as session:
        era, transport = session.identity.era, session.transport
    recorders: list[ProbeRecorder] = []

    def watched(server: str, transport: str) -> ConnectionRecorder | None:
        inner = make_tap(server, transport)
        if inner is not None:
            recorders.append(ProbeRecorder(inner))
        return None if inner is None else recorders[-1]

    single_s = min(_SINGLE_S, timeout_s)
    async with AsyncExitStack() as ending:
        session = await ending.enter_async_context(connected(target, era, timeout_s, watched, transport))
        http = None
        if transport == "http" and target.url is not None:
            client = HttpClient()
            ending.push_async_callback(client.close)
            http = _http_probe(target, client, recorders[-1], single_s)
            send = partial(_send_over_http, http, session)
        else:
            send = partial(_send_over_stream, session, recorders[-1], single_s)
        await ProbeScript(session, timeout_s, target.calls, send).play()
        if http is not None:
            await http.play(session.identity)
    if era is Era.LEGACY:
        await _ask_for_an_unknown_version(target, make_tap, transport, single_s)


def _http_probe(target: ProbeTarget, client: HttpClient, recorder: ProbeRecorder, timeout_s: float) -> HttpProbe:
    return HttpProbe(
        target.url or "",
        target.headers,
        client,
        recorder,
        network_of(target.config(None, "http")),
        _CLIENT,
        timeout_s,
    )


async def _send_over_http(http: HttpProbe, session: Session, method: str, id_: str, version: str | None) -> None:
    await http.ask(session.identity, method, id_=id_, version=version)


async def _send_over_stream(
    session: Session, recorder: ProbeRecorder, timeout_s: float, method: str, id_: str, version: str | None
) -> None:
    """Send a request with an id of the probe's own. The session ignores the response, the recorder sees it."""
    identity = session.identity
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": method}
    if identity.era is Era.MODERN:
        message["params"] = {"_meta": modern.envelope(version or identity.version, _CLIENT, {})}
    answered = asyncio.create_task(recorder.answered(id_))
    try:
        await asyncio.sleep(0)
        await session.peer.channel.send(Outgoing(encode_json(message), method))
        await asyncio.wait({answered}, timeout=timeout_s)
    finally:
        answered.cancel()
        await asyncio.wait({answered})


async def _ask_for_an_unknown_version(target: ProbeTarget, make_tap: MakeTap, transport: str, timeout_s: float) -> None:
    """One more connection, which is recorded as a session of its own. A server may close it without an answer."""
    tap = make_tap("the server", transport) if transport in ("http", "stdio") else None
    if tap is None:
        return
    recorder = ProbeRecorder(tap)
    async with AsyncExitStack() as ending:
        client, child_reaper = HttpClient(), ChildReaper()
        ending.push_async_callback(child_reaper.close)
        ending.push_async_callback(client.close)
        if transport == "http":
            await _http_probe(target, client, recorder, timeout_s).initialize(UNKNOWN_VERSION)
            recorder.closed()
            return
        config = target.config(Era.LEGACY, transport)
        channel = StdioChannel(
            config.id,
            target.command[0],
            config.args,
            config.env,
            config.cwd,
            lambda _event: None,
            child_reaper=child_reaper,
            max_frame_bytes=_MAX_FRAME_BYTES,
            tap=recorder,
        )
        peer = Peer(config.id, channel, lambda _event: None, _CLIENT)
        ending.push_async_callback(peer.close)
        params = {"protocolVersion": UNKNOWN_VERSION, "capabilities": {}, "clientInfo": _CLIENT}
        with suppress(GatewayFailure, TimeoutError):
            async with asyncio.timeout(timeout_s):
                await peer.open()
                members = {key: Raw(encode_json(value)) for key, value in params.items()}
                await peer.request("initialize", members, cancellable=False)
