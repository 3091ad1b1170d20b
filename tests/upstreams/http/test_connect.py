"""Connections through a proxy and with certificates, over real sockets: what the proxy sees, what the server sees, and each way to fail."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pactgate.config.sections.network import TlsSettings
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.egress import EgressPolicy, named_origins
from pactgate.upstreams.http.pool import PoolLimits
from pactgate.upstreams.http.proxy import NetworkSettings
from pactgate.upstreams.http.request_message import HttpTarget
from tests.support.certificates import Authority
from tests.support.loops import on_both_loops
from tests.support.proxy_server import ProxyServer
from tests.support.scripted_http import LIMIT_S, Peer, ScriptedHttp, answer

NAME = "mcp.example"
"""A host that no resolver knows, so that only the proxy can lead there."""


async def echo(peer: Peer) -> None:
    while True:
        request = await peer.request()
        await peer.send(answer(request.body or b"{}"))


@asynccontextmanager
async def client_of(tls: ssl.SSLContext | None = None, limits: PoolLimits | None = None) -> AsyncIterator[HttpClient]:
    client = HttpClient(limits, tls=tls)
    try:
        yield client
    finally:
        async with asyncio.timeout(LIMIT_S):
            await client.close()


def through(proxy: str, url: str, tls: TlsSettings | None = None) -> HttpTarget:
    return HttpTarget("files", url, network=NetworkSettings(proxy=proxy, tls=tls))


async def failure_of(client: HttpClient, target: HttpTarget) -> GatewayFailure:
    with pytest.raises(GatewayFailure) as caught:
        async with asyncio.timeout(LIMIT_S):
            await client.request(b"POST", target, b"", b"{}")
    assert caught.value.verdict is Verdict.DID_NOT_RUN
    assert caught.value.server == "files"
    assert "pass-word" not in caught.value.message
    return caught.value


# Tunnels


@on_both_loops
async def test_a_request_over_https_travels_in_a_tunnel_that_the_proxy_can_not_look_into(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with (
        ScriptedHttp(echo, tls=authority.server_context(NAME)) as server,
        ProxyServer(server.port, credentials="user:pass-word") as proxy,
        client_of(authority.client_context()) as client,
    ):
        target = through(proxy.url("user:pass-word"), f"https://{NAME}/mcp")
        for body in (b'"one"', b'"two"', b'"' + b"x" * 300_000 + b'"'):
            assert (await client.request(b"POST", target, b"X-Secret: s\r\n", body)).body == body
        assert server.connections == 1
    assert len(proxy.asked) == 1
    assert proxy.asked[0].startswith(f"CONNECT {NAME}:443 HTTP/1.1\r\nHost: {NAME}:443\r\n")
    assert "X-Secret" not in proxy.asked[0]


@on_both_loops
async def test_a_proxy_may_be_reached_over_https_itself(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with (
        ScriptedHttp(echo, tls=authority.server_context(NAME)) as server,
        ScriptedHttp(echo) as plain,
        ProxyServer(server.port, tls=authority.server_context("localhost")) as proxy,
        ProxyServer(plain.port, tls=authority.server_context("localhost")) as plain_proxy,
        client_of(authority.client_context()) as client,
    ):
        inside = through(proxy.url(), f"https://{NAME}/mcp")
        assert (await client.request(b"POST", inside, b"", b'"in"')).body == b'"in"'
        beside = through(plain_proxy.url(), f"http://{NAME}/mcp")
        assert (await client.request(b"POST", beside, b"", b'"by"')).body == b'"by"'


@on_both_loops
async def test_giving_up_while_the_proxy_is_silent_leaves_nothing() -> None:
    async with ScriptedHttp(echo) as server, ProxyServer(server.port, reply=b"") as proxy, client_of() as client:
        asking = asyncio.ensure_future(client.request(b"POST", through(proxy.url(), f"https://{NAME}/"), b"", b"{}"))
        await proxy.until(lambda proxy: proxy.asked)
        asking.cancel()
        await asyncio.wait({asking}, timeout=LIMIT_S)
        await proxy.until(lambda proxy: not proxy.open_connections)


# Requests for whole URLs


@on_both_loops
async def test_a_plain_http_request_names_the_whole_url_and_carries_the_credentials_of_the_proxy() -> None:
    async with (
        ScriptedHttp(echo) as server,
        ProxyServer(server.port, credentials="u:pass-word") as proxy,
        client_of() as client,
    ):
        target = through(proxy.url("u:pass-word"), f"http://{NAME}:8080/mcp?x=1")
        assert (await client.request(b"POST", target, b"", b'"a"')).body == b'"a"'
        other = target.tail_of("/other")
        assert (await client.request(b"POST", target, b"", b'"b"', tail=other)).body == b'"b"'
    assert proxy.asked[0].startswith(f"POST http://{NAME}:8080/mcp?x=1 HTTP/1.1\r\nHost: {NAME}:8080\r\n")


# Failures


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("given", "said"), [("", "asks for credentials"), ("u:pass-word", "refused the credentials")])
@on_both_loops
async def test_a_proxy_that_wants_other_credentials_is_named_and_not_asked_again(
    scheme: str, given: str, said: str
) -> None:
    async with ScriptedHttp(echo) as server, ProxyServer(server.port, credentials="right:one") as proxy:
        async with client_of() as client:
            failure = await failure_of(client, through(proxy.url(given), f"{scheme}://{NAME}/mcp"))
        assert server.connections == 0
    assert failure.kind is Kind.CONNECTION_FAILED
    assert failure.details == {"permanent": True}
    assert f"http://localhost:{proxy.port} {said}" in failure.message
    assert "`proxy` of files" in failure.message


@pytest.mark.parametrize(
    ("reply", "said", "is_permanent"),
    [
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\npass-word", "could not reach the server (HTTP 502)", False),
        (b"HTTP/1.1 504\r\n\r\n", "could not reach the server (HTTP 504)", False),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n<html>", "does not allow this server (HTTP 403)", True),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP/1.1", False),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 4000, "too long", False),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n", "too long", False),
    ],
)
@on_both_loops
async def test_a_proxy_that_gives_no_tunnel_is_a_failed_connection(reply: bytes, said: str, is_permanent: bool) -> None:
    async with ProxyServer(1, reply=reply) as proxy, client_of() as client:
        failure = await failure_of(client, through(proxy.url(), f"https://{NAME}/mcp"))
    assert failure.kind is Kind.CONNECTION_FAILED
    assert failure.details == ({"permanent": True} if is_permanent else {})
    assert said in failure.message
    assert f"http://localhost:{proxy.port}" in failure.message
    assert "NO_PROXY" in failure.message


@pytest.mark.parametrize("scheme", ["http", "https"])
@on_both_loops
async def test_a_proxy_that_is_not_there_is_named(scheme: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    async with client_of() as client:
        refused = await failure_of(client, through(url, f"{scheme}://{NAME}/mcp"))
        unknown = await failure_of(client, through("http://no-such-proxy.invalid:1", f"{scheme}://{NAME}/mcp"))
    assert refused.kind is unknown.kind is Kind.CONNECTION_FAILED
    assert f"through the proxy {url}: nothing listens there" in refused.message
    assert "http://no-such-proxy.invalid:1: the name of its host can't be resolved" in unknown.message


async def test_a_proxy_that_does_not_answer_is_a_timeout_that_names_it() -> None:
    async with ProxyServer(1, reply=b"") as proxy, client_of(limits=PoolLimits(connect_timeout_s=0.1)) as client:
        failure = await failure_of(client, through(proxy.url(), f"https://{NAME}/mcp"))
    assert failure.kind is Kind.CONNECT_TIMEOUT
    assert f"http://localhost:{proxy.port}" in failure.message


@on_both_loops
async def test_a_certificate_for_another_name_is_refused_inside_the_tunnel_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with (
        ScriptedHttp(echo, tls=authority.server_context("other.example")) as server,
        ProxyServer(server.port) as proxy,
        client_of(authority.client_context()) as client,
    ):
        failure = await failure_of(client, through(proxy.url(), f"https://{NAME}/mcp"))
    assert "its certificate is not valid" in failure.message
    assert failure.details == {"permanent": True}


# The SSRF rule


async def test_a_host_the_operator_did_not_name_is_checked_before_the_proxy_hears_of_it() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return {"inner.example": ["10.0.0.1"], "outer.example": ["8.8.8.8", "2606:4700::1111"]}[host]

    async with ProxyServer(1, reply=b"HTTP/1.1 502 No\r\n\r\n") as proxy:
        client = HttpClient(resolve=resolve)
        egress = EgressPolicy("files", named_origins([], ["api.example"]), network=NetworkSettings(proxy=proxy.url()))
        with pytest.raises(GatewayFailure) as inner:
            await client.request(b"GET", egress.target("https://inner.example/x"), b"")
        assert inner.value.kind is Kind.DESTINATION_REFUSED
        assert proxy.asked == []
        with pytest.raises(GatewayFailure):
            await client.request(b"GET", egress.target("https://outer.example/x"), b"")
        await client.close()
    first_lines = [asked.split("\r\n", 1)[0] for asked in proxy.asked]
    assert first_lines == ["CONNECT 8.8.8.8:443 HTTP/1.1", "CONNECT [2606:4700::1111]:443 HTTP/1.1"]


# Certificates of one server


def handshakes(listening: socket.socket, context: ssl.SSLContext) -> None:
    """A server in a thread, until its socket is closed: unlike asyncio's, it tells a client why the handshake failed."""
    while True:
        try:
            accepted, _ = listening.accept()
        except OSError:
            return
        with accepted:
            accepted.settimeout(LIMIT_S)
            try:
                secure = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
                secure.do_handshake()
                secure.recv(65536)
                secure.sendall(answer(b"{}"))
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    secure.shutdown(socket.SHUT_WR)
                    while secure.recv(65536):
                        pass
            secure.close()


@on_both_loops
async def test_a_client_certificate_opens_a_server_that_asks_for_one(tmp_path: Path) -> None:
    authority, clients = Authority(tmp_path), Authority(tmp_path, "clients")
    own, strange = clients.issue("gateway"), authority.issue("stranger")
    context = authority.server_context("localhost", clients_of=clients)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.ensure_future(asyncio.to_thread(handshakes, listening, context))
        url = f"https://localhost:{listening.getsockname()[1]}/mcp"

        def target(certificate: Path | None = None, key: Path | None = None) -> HttpTarget:
            tls = TlsSettings(
                ca_file=str(authority.file),
                cert_file=str(certificate) if certificate else None,
                key_file=str(key) if key else None,
            )
            return HttpTarget("files", url, network=NetworkSettings(tls=tls))

        async with client_of() as client:
            assert (await client.request(b"POST", target(*own), b"", b"{}")).status == 200
            asked = await failure_of(client, target())
            refused = await failure_of(client, target(*strange))
        listening.shutdown(socket.SHUT_RDWR)
    await asyncio.wait_for(serving, LIMIT_S)
    assert asked.kind is refused.kind is Kind.CONNECTION_FAILED
    assert asked.details == refused.details == {"permanent": True}
    assert "asks for a client certificate; name one in `tls.certFile` of files" in asked.message
    assert "refused the client certificate" in refused.message


async def test_connections_are_shared_only_by_targets_with_the_same_proxy_and_certificates(tmp_path: Path) -> None:
    def key(proxy: str | None = None, tls: TlsSettings | None = None, **more: bool) -> str:
        return HttpTarget("files", "https://api.example/x", network=NetworkSettings(proxy=proxy, tls=tls), **more).key

    keys = [
        key(),
        key(is_guarded=True),
        key("http://p:1"),
        key("http://u:a@p:1"),
        key("http://u:b@p:1"),
        key(tls=TlsSettings(cert_file="a")),
        key(tls=TlsSettings(cert_file="b")),
        key(tls=TlsSettings(cert_file="a", key_password="x")),
    ]
    assert len(set(keys)) == len(keys)
    assert key(tls=TlsSettings(cert_file="a")) == key(tls=TlsSettings(cert_file="a"))
    assert key(tls=TlsSettings(cert_file="a"), is_guarded=True) == key(is_guarded=True)


async def test_an_untrusted_certificate_leads_to_the_setting_that_would_trust_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    async with ScriptedHttp(echo, tls=authority.server_context("localhost"), host="localhost") as server:
        async with client_of() as client:
            plain = await failure_of(client, HttpTarget("files", server.url))
            settings = NetworkSettings(tls=TlsSettings(ca_file=str(other.file)))
            wrong = await failure_of(client, HttpTarget("files", server.url, network=settings))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
        async with client_of() as client:
            gone = await failure_of(client, HttpTarget("files", server.url))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        async with client_of() as client:
            assert (await client.request(b"POST", HttpTarget("files", server.url), b"", b"{}")).status == 200
    assert "`tls.caFile` of files or in SSL_CERT_FILE" in plain.message
    assert "was it signed by an authority in `tls.caFile` of files?" in wrong.message
    assert "SSL_CERT_FILE names a file that can't be read" in gone.message
