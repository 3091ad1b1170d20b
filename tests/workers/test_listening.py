"""Sockets that are bound before anybody serves them."""

from __future__ import annotations

import socket

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.workers import listening


def test_a_free_port_is_taken_and_can_be_reached() -> None:
    [bound] = listening.bind("127.0.0.1", 0)
    with bound:
        assert listening.url_of(bound) == f"http://127.0.0.1:{bound.getsockname()[1]}"
        with socket.create_connection(bound.getsockname(), 5):
            pass


def test_a_port_in_use_is_said_with_what_to_do() -> None:
    [bound] = listening.bind("127.0.0.1", 0)
    with bound, pytest.raises(GatewayFailure) as refused:
        listening.bind("127.0.0.1", bound.getsockname()[1])
    assert refused.value.kind is Kind.INVALID_CONFIG
    assert "choose another with --port" in refused.value.message


def test_a_host_nobody_knows_is_said() -> None:
    with pytest.raises(GatewayFailure, match="can't be resolved"):
        listening.bind("no-such-host.invalid", 0)


def test_an_address_of_six_is_written_in_brackets() -> None:
    try:
        [bound] = listening.bind("::1", 0)
    except GatewayFailure:
        pytest.skip("this machine has no IPv6")
    with bound:
        assert listening.url_of(bound).startswith("http://[::1]:")


def test_this_system_can_share() -> None:
    assert listening.can_share()
