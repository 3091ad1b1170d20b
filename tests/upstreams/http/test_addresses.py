"""Addresses in all their spellings."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pactgate.upstreams.http.addresses import address_of, is_public


@given(st.integers(0, 2**32 - 1))
def test_every_number_is_read_as_the_address_it_is(number: int) -> None:
    for spelling in (str(number), hex(number), oct(number).replace("0o", "0")):
        assert address_of(spelling) == ip_address(number)


@given(st.ip_addresses(v=4))
def test_an_address_within_an_address_is_never_public(inner: Any) -> None:
    number = int(inner)
    for prefix in ("::ffff:0:0", "64:ff9b::", "::"):
        assert not is_public(IPv6Address(int(IPv6Address(prefix)) | number))
    assert not is_public(IPv6Address((0x2002 << 112) | (number << 80)))
