from __future__ import annotations

import pytest

from pactgate.inbound.peer_address import TrustedProxies, counted_address, host_of

PROXIES = TrustedProxies(["10.0.0.0/8", "192.0.2.1", "fd00::/8"])


@pytest.mark.parametrize(
    ("peername", "host"), [(("192.0.2.1", 80), "192.0.2.1"), (("::1", 80, 0, 0), "::1"), (None, ""), ("", ""), ((), "")]
)
def test_the_host_of_a_peer_is_taken_from_what_its_socket_says(peername: object, host: str) -> None:
    assert host_of(peername) == host


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::9", "2001:db8:1:2::"),
        ("2001:db8:1:3::9", "2001:db8:1:3::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
    ],
)
def test_connections_are_counted_by_what_a_client_can_not_choose(host: str, counted: str) -> None:
    assert counted_address(host) == counted


@pytest.mark.parametrize(
    ("peer", "said", "client"),
    [
        ("10.0.0.1", ["198.51.100.9"], "198.51.100.9"),
        ("::ffff:10.0.0.1", ["198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", ["2001:db8::7"], "2001:db8::7"),
        ("10.0.0.1", ["198.51.100.9, 192.0.2.1,10.1.2.3"], "198.51.100.9"),
        ("10.0.0.1", ["198.51.100.9", "192.0.2.1"], "198.51.100.9"),
        ("10.0.0.1", ["203.0.113.7, 198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", ["198.51.100.9:4711"], "198.51.100.9"),
        ("10.0.0.1", ["[2001:db8::7]:4711"], "2001:db8::7"),
        ("10.0.0.1", ["10.2.0.1, 10.3.0.1"], "10.2.0.1"),
        ("10.0.0.1", ["198.51.100.9, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.9, \x1b[2J"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("fd00::1", ["198.51.100.9"], "198.51.100.9"),
        ("198.51.100.9", ["203.0.113.7"], "198.51.100.9"),
        ("192.0.2.2", ["203.0.113.7"], "192.0.2.2"),
        ("", ["203.0.113.7"], ""),
    ],
)
def test_a_client_is_the_last_address_that_no_trusted_proxy_has(peer: str, said: list[str], client: str) -> None:
    assert PROXIES.client_of(peer, {"x-forwarded-for": said}) == client
    assert PROXIES.client_of(peer, {}) == peer


def test_only_the_last_proxies_are_looked_at() -> None:
    said = {"x-forwarded-for": [", ".join(["198.51.100.9", *["10.0.0.1"] * 10_000])]}
    assert PROXIES.client_of("10.0.0.2", said) == "10.0.0.1"
