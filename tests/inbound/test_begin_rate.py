"""An address begins so many sign-ins in a minute, and every address has its own count."""

from __future__ import annotations

from pactgate.inbound.begin_rate import BEGINS, BeginRate


def test_an_address_that_has_begun_too_many_is_told_how_long_to_wait() -> None:
    now = [0]
    rate = BeginRate(lambda: now[0])
    assert [rate.note("192.0.2.1") for _ in range(BEGINS.rpm)] == [None] * BEGINS.rpm
    refused = rate.note("192.0.2.1")
    assert refused is not None
    wait_s = int(refused.head.split()[1])
    assert f"in {wait_s} s" in refused.why
    assert rate.note("192.0.2.2") is None
    now[0] += wait_s * 1_000_000_000
    assert rate.note("192.0.2.1") is None


def test_a_network_of_ipv6_is_one_address() -> None:
    rate = BeginRate(lambda: 0)
    found = [rate.note(f"2001:db8::{number:x}") for number in range(BEGINS.rpm + 1)]
    assert [one is None for one in found] == [True] * BEGINS.rpm + [False]
