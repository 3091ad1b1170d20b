"""Which hosts may be called: thirty spellings of addresses that are nobody's business, and names that lie."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pactgate.core.failures import Category, GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.egress import EgressPolicy, checked_addresses, host_of, named_origins, resolve_host
from pactgate.upstreams.http.request_message import HttpTarget
from tests.support.each import each

FORBIDDEN = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "017700000001",
    "127.0.0.1.",
    "localhost",
    "LOCALHOST.",
    "api.localhost",
    "0.0.0.0",
    "0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "2852039166",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::169.254.169.254]",
    "[64:ff9b:1::10.0.0.1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:db8::1]",
    "[2a00:1450:4001:81b:0:5efe:7f00:1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "user@127.0.0.1",
    "api.example@10.0.0.1",
    "api.example\\@10.0.0.1",
    "127.0.0.1\\.api.example",
    "127.0.0.1%00.api.example",
    "",
]


@each("host", FORBIDDEN)
@each("form", ["https://{}/x", "https://{}:8443/x"])
def test_no_spelling_of_an_address_that_is_not_public_gets_through(host: str, form: str) -> None:
    with pytest.raises(GatewayFailure) as raised:
        EgressPolicy("shop", named_origins([], ["api.example"])).target(form.format(host))
    failure = raised.value
    assert (failure.kind, failure.category) == (Kind.DESTINATION_REFUSED, Category.TRANSPORT_FAILURE)
    assert failure.verdict is Verdict.DID_NOT_RUN
    assert "allowedHosts" in failure.message


@pytest.mark.parametrize("host", ["8.8.8.8", "93.184.215.14", "[2606:4700::1111]", "api.example", "other.example."])
def test_public_hosts_are_called_and_looked_up_first(host: str) -> None:
    assert EgressPolicy("shop", []).target(f"https://{host}/x").is_guarded


def test_a_host_the_operator_did_not_name_is_called_over_https_only() -> None:
    with pytest.raises(GatewayFailure):
        EgressPolicy("shop", []).target("http://other.example/x")


@pytest.mark.parametrize(
    ("named", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("LocalHost", "http://localhost./x"),
        ("[::1]:9", "http://[::1]:9/x"),
        ("::1", "https://[::1]/x"),
        ("intern.example", "http://INTERN.example/x"),
    ],
)
def test_a_host_the_operator_named_is_called_as_it_is(named: str, url: str) -> None:
    assert not EgressPolicy("shop", named_origins([], [named])).target(url).is_guarded


@pytest.mark.parametrize("url", ["http://10.0.0.5:9000/x", "http://10.0.0.5/x", "https://10.0.0.5:8080/x"])
def test_a_url_names_its_origin_and_no_other_port_or_scheme(url: str) -> None:
    egress = EgressPolicy("shop", named_origins(["http://10.0.0.5:8080/v1"], []))
    assert not egress.target("http://10.0.0.5:8080/v2").is_guarded
    with pytest.raises(GatewayFailure):
        egress.target(url)


def test_naming_one_spelling_does_not_name_another() -> None:
    with pytest.raises(GatewayFailure):
        EgressPolicy("shop", named_origins([], ["127.0.0.1"])).target("https://2130706433/x")


async def resolving(*addresses: str) -> Any:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


@pytest.mark.parametrize(
    "addresses", [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("2606:4700::1111", "::ffff:10.0.0.1"), ("fe80::1%eth0",)]
)
async def test_a_name_that_leads_inward_is_refused_even_if_it_leads_outward_too(addresses: tuple[str, ...]) -> None:
    target = HttpTarget("shop", "https://rebind.example/x", is_guarded=True)
    with pytest.raises(GatewayFailure) as raised:
        await checked_addresses(target, await resolving(*addresses))
    assert raised.value.kind is Kind.DESTINATION_REFUSED
    assert not any(address in raised.value.message for address in addresses)


async def test_a_name_that_changes_its_mind_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the address that was checked; a second look-up would give another."""
    answers = [["8.8.8.8"], ["127.0.0.1"]]
    dialled: list[Any] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    async def connect(make: Any, host: str, port: int, **options: Any) -> Any:
        dialled.append((host, port, options["server_hostname"]))
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", connect)
    client = HttpClient(resolve=resolve)
    with pytest.raises(GatewayFailure) as raised:
        await client.request(b"GET", HttpTarget("shop", "https://rebind.example/x", is_guarded=True), b"")
    await client.close()
    assert raised.value.kind is Kind.CONNECTION_FAILED
    assert dialled == [("8.8.8.8", 443, "rebind.example")]


async def test_the_real_resolver_gives_addresses_and_a_guarded_localhost_is_refused() -> None:
    assert "127.0.0.1" in await resolve_host("localhost", 80) or "::1" in await resolve_host("localhost", 80)
    client = HttpClient()
    with pytest.raises(GatewayFailure) as raised:
        await client.request(b"GET", HttpTarget("shop", "https://localhost/x", is_guarded=True), b"")
    await client.close()
    assert raised.value.kind is Kind.DESTINATION_REFUSED


@pytest.mark.requirement("S4/F3")
async def test_a_name_server_that_never_answers_is_a_timeout_of_connecting() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    client = HttpClient(resolve=resolve)
    slow = HttpTarget("shop", "https://slow.example/x", is_guarded=True, connect_timeout_s=0.05)
    with pytest.raises(GatewayFailure) as raised:
        await client.request(b"GET", slow, b"")
    await client.close()
    assert (raised.value.kind, raised.value.mode) == (Kind.CONNECT_TIMEOUT, "timeout")
    assert raised.value.verdict is Verdict.DID_NOT_RUN


def test_guarded_connections_share_no_pool_with_others() -> None:
    assert HttpTarget("a", "https://x.example", is_guarded=True).key != HttpTarget("b", "https://x.example").key


@pytest.mark.parametrize(
    "url", ["https://a@b/", "https://a\\b/", "https://a b/", "https://[::1/", "/x", "https:///x", "https://\u0131/"]
)
def test_a_url_that_can_be_read_in_two_ways_has_no_host(url: str) -> None:
    assert host_of(url) is None


@pytest.mark.parametrize("url", ["ftp://api.example/x", "file:///x", "HTTPS://api.example/x", "//api.example/x", ""])
def test_only_http_and_https_are_called(url: str) -> None:
    with pytest.raises(GatewayFailure):
        EgressPolicy("shop", named_origins([], ["api.example"])).target(url)
