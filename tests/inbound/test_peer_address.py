from __future__ import annotations

import pytest

from pactgate.inbound.peer_address import counted_address, host_of


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
