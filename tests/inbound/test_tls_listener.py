"""Clients over TLS: who may connect, what a handshake may take, and certificates that are replaced while the gateway runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pactgate.config.server_certificate import ServerCertificate
from pactgate.core.events import CertificateReplaced, ConfigurationRefused, Event, HandshakeFailed
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.inbound import tls_listener
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.http_server import HttpServer
from pactgate.inbound.server_limits import ServerLimits
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.raw_http import WAIT_S, get

NAME = "localhost"


def hello(exchange: HttpExchange) -> None:
    exchange.respond(200, b"Content-Type: text/plain\r\n", exchange.peer.encode())


class Tls:
    """A server over TLS, and the authority of its certificate."""

    def __init__(self, folder: Path, *, clients_of: Authority | None = None) -> None:
        self.authority = Authority(folder)
        certificate, key = map(str, self.authority.issue(NAME))
        self.files = ServerCertificate(certificate, key, None if clients_of is None else str(clients_of.file))
        self.events: list[Event] = []
        limits = ServerLimits(sweep_s=0.05, max_connections=64)
        self.server = HttpServer(hello, limits, self.events.append)
        self.port = 0

    async def ask(self, context: ssl.SSLContext | None = None) -> bytes:
        """What the server answers; empty where it ends the connection instead. Raises what the handshake raises."""
        reader, writer = await self.connect(context)
        try:
            writer.write(get("/", connection="close"))
            return (await asyncio.wait_for(reader.read(), WAIT_S)).rpartition(b"\r\n\r\n")[2]
        finally:
            writer.transport.abort()

    async def answer_or_none(self, context: ssl.SSLContext) -> bytes | None:
        """With TLS 1.3 a client learns only with the answer that it is refused."""
        try:
            return await self.ask(context) or None
        except (ssl.SSLError, ConnectionError):
            return None

    async def connect(self, context: ssl.SSLContext | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opened = asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context or self.authority.client_context(), server_hostname=NAME
        )
        return await asyncio.wait_for(opened, WAIT_S)

    async def serial(self) -> str:
        _, writer = await self.connect()
        found = writer.get_extra_info("peercert")["serialNumber"]
        writer.transport.abort()
        return str(found)

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, HandshakeFailed)]


@asynccontextmanager
async def serving(folder: Path, *, clients_of: Authority | None = None) -> AsyncIterator[Tls]:
    tls = Tls(folder, clients_of=clients_of)
    _, tls.port = await tls.server.listen_tls("127.0.0.1", 0, tls.files)
    try:
        yield tls
    finally:
        await tls.server.close(0.0)


async def test_a_client_over_tls_is_served_and_its_address_is_known(tmp_path: Path) -> None:
    async with serving(tmp_path) as tls:
        reader, writer = await tls.connect()
        for _ in range(2):
            writer.write(get("/"))
            assert (await asyncio.wait_for(reader.readuntil(b"127.0.0.1"), WAIT_S)).startswith(b"HTTP/1.1 200")
        assert writer.get_extra_info("cipher")[1] == "TLSv1.3"
        writer.transport.abort()
        assert tls.events == []


@pytest.mark.parametrize(("version", "is_served"), [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True)])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_versions_before_1_2_are_refused(version: ssl.TLSVersion, is_served: bool, tmp_path: Path) -> None:
    async with serving(tmp_path) as tls:
        context = tls.authority.client_context()
        context.minimum_version = context.maximum_version = version
        context.set_ciphers("ALL:@SECLEVEL=0")
        assert (await tls.answer_or_none(context) == b"127.0.0.1") == is_served


async def test_plain_http_is_told_in_the_log(tmp_path: Path) -> None:
    async with serving(tmp_path) as tls:
        reader, writer = await asyncio.open_connection("127.0.0.1", tls.port)
        writer.write(get("/"))
        await asyncio.wait_for(reader.read(), WAIT_S)
        writer.close()
        await eventually(tls.reasons)
        assert "plain HTTP" in tls.reasons()[0]


async def test_with_a_client_authority_only_its_clients_connect(tmp_path: Path) -> None:
    theirs, others = Authority(tmp_path, "clients"), Authority(tmp_path, "others")
    async with serving(tmp_path, clients_of=theirs) as tls:
        for authority, is_served in ((theirs, True), (others, False), (None, False)):
            context = tls.authority.client_context()
            if authority is not None:
                context.load_cert_chain(*authority.issue("ann"))
            if is_served:
                assert await tls.ask(context) == b"127.0.0.1"
            else:
                assert await tls.answer_or_none(context) is None
        await eventually(lambda: len(tls.reasons()) == 2)
        assert all("clientCa" in reason for reason in tls.reasons())


async def test_a_new_certificate_is_used_without_a_restart_and_open_connections_stay(tmp_path: Path) -> None:
    async with serving(tmp_path) as tls:
        reader, writer = await tls.connect()
        before = await tls.serial()
        certificate, key = tls.authority.issue("127.0.0.1")
        os.replace(certificate, tls.files.certificate)  # for a moment, certificate and key do not belong together
        os.replace(key, tls.files.key)
        await eventually(lambda: CertificateReplaced(tls.files.certificate) in tls.events)
        context = tls.authority.client_context()
        context.check_hostname = False
        _, fresh = await tls.connect(context)
        assert fresh.get_extra_info("peercert")["serialNumber"] != before
        fresh.transport.abort()
        writer.write(get("/"))
        assert await asyncio.wait_for(reader.readuntil(b"127.0.0.1"), WAIT_S)
        writer.transport.abort()


async def test_a_pair_that_cant_be_used_is_reported_once_and_the_old_one_stays(tmp_path: Path) -> None:
    async with serving(tmp_path) as tls:
        before = await tls.serial()
        shutil.copy(Authority(tmp_path, "other").issue(NAME)[1], tls.files.key)
        (refused,) = await eventually(lambda: [one for one in tls.events if isinstance(one, ConfigurationRefused)])
        assert "listen.tls.key" in refused.problems[0]
        assert "not the private key" in refused.problems[0]
        assert await tls.serial() == before
        assert sum(isinstance(one, ConfigurationRefused) for one in tls.events) == 1


async def test_handshakes_are_bounded_in_number_and_time_and_others_get_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_listener, "HANDSHAKE_S", 1.0)
    async with serving(tmp_path) as tls:
        silent = [socket.create_connection(("127.0.0.1", tls.port), timeout=WAIT_S) for _ in range(40)]
        try:
            listener = tls.server._tls
            assert listener is not None
            await eventually(lambda: listener.handshakes == 8)
            assert await tls.ask() == b"127.0.0.1"
            await eventually(lambda: listener.handshakes == 0)
            for connection in silent:
                connection.setblocking(False)
                await asyncio.wait_for(_ended(connection), WAIT_S)
        finally:
            for connection in silent:
                connection.close()
        assert any("not done within" in reason for reason in tls.reasons())


async def _ended(connection: socket.socket) -> None:
    try:
        while await asyncio.get_running_loop().sock_recv(connection, 100):
            pass
    except ConnectionError:
        return


async def test_an_address_that_is_taken_is_told_like_without_tls(tmp_path: Path) -> None:
    async with serving(tmp_path) as tls:
        other = HttpServer(hello, ServerLimits(), lambda event: None)
        with pytest.raises(GatewayFailure, match="in use") as refused:
            await other.listen_tls("127.0.0.1", tls.port, tls.files)
        assert refused.value.kind is Kind.INVALID_CONFIG
        await other.close(0.0)
