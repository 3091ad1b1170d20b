"""Requests between replicas: who may send them, once, to whom."""

from __future__ import annotations

import hmac
import math
import struct
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.hop_message import WINDOW_S, HopClaims, HopError, HopVerifier
from pactgate.inbound.hop_message import encode_hop as encode
from pactgate.protocol.messages import encode_json

KEY, OTHER = b"k" * 32, b"o" * 32
NOW = 1_800_000_000.0
CLAIMS = HopClaims(
    sender="aa",
    receiver="bb",
    method="POST",
    path="/mcp",
    headers={"accept": ["application/json"]},
    principal=Principal(
        "issuer\0ada", frozenset({"admin"}), PrincipalKind.OAUTH, groups=frozenset({"dev"}), scopes=frozenset({"x"})
    ),
    peer="192.0.2.1",
)


@dataclass
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


def encode_hop(key: bytes, claims: HopClaims, body: bytes, serial: int = 0) -> bytes:
    return encode(key, encode_json(claims), body, sent_at=NOW, serial=serial)


def verifier(*keys: bytes, at: float = NOW) -> HopVerifier:
    return HopVerifier(keys or (KEY,), "bb", Clock(at))


def test_a_signed_request_arrives_as_it_was_sent_with_its_principal() -> None:
    gate = verifier()
    for serial in range(2):
        found, body = gate.open(encode_hop(KEY, CLAIMS, b'{"a":1}', serial))
        assert (found.claims, body) == (CLAIMS, b'{"a":1}')
        assert (found.head.method, found.head.path, found.head.headers) == ("POST", "/mcp", CLAIMS.headers)


def test_claims_are_read_once_while_a_client_repeats_its_head_and_others_never_stand_for_them() -> None:
    gate = verifier()
    heads = []
    for serial, peer in enumerate(("192.0.2.1", "192.0.2.2", "192.0.2.1", "x" * 5000, "x" * 5000)):
        found, _ = gate.open(encode_hop(KEY, replace(CLAIMS, peer=peer), b"x", serial))
        assert found.claims.peer == peer
        heads.append(found.head)
    assert heads[0] is heads[2] is not heads[1]
    assert heads[3] is not heads[4], "long ones are not kept"


@pytest.mark.parametrize(
    "signed", [b"", b"x" * 19, struct.pack(">dQI", math.nan, 0, 0), struct.pack(">dQI", NOW, 1, 9)]
)
def test_what_a_replica_of_another_version_signed_is_refused(signed: bytes) -> None:
    with pytest.raises(HopError, match="version"):
        verifier().open(hmac.digest(KEY, signed, "sha256") + signed)


def test_a_request_that_was_sent_at_no_time_is_refused() -> None:
    with pytest.raises(HopError, match="old"):
        verifier().open(encode(KEY, encode_json(CLAIMS), b"x", sent_at=math.nan, serial=0))


@given(st.binary(max_size=400))
def test_bytes_that_no_replica_signed_are_refused(data: bytes) -> None:
    with pytest.raises(HopError):
        verifier().open(data)


@given(st.integers(0, 2000), st.integers(0, 7))
def test_one_bit_changed_anywhere_is_refused(place: int, bit: int) -> None:
    message = bytearray(encode_hop(KEY, CLAIMS, b'{"a":1}'))
    message[place % len(message)] ^= 1 << bit
    with pytest.raises(HopError):
        verifier().open(bytes(message))


def test_a_request_comes_once() -> None:
    gate, message = verifier(), encode_hop(KEY, CLAIMS, b"x")
    gate.open(message)
    with pytest.raises(HopError, match="before"):
        gate.open(message)


@given(st.lists(st.integers(0, 9000), max_size=200))
def test_requests_may_overtake_each_other_and_none_is_taken_twice(serials: list[int]) -> None:
    gate = verifier()
    taken: list[int] = []
    for serial in serials:
        try:
            gate.open(encode_hop(KEY, CLAIMS, b"", serial))
        except HopError:
            assert serial in taken or serial <= max(taken) - 1024
        else:
            assert serial not in taken
            taken.append(serial)


def test_a_request_for_another_replica_is_refused() -> None:
    with pytest.raises(HopError, match="another"):
        verifier().open(encode_hop(KEY, replace(CLAIMS, receiver="cc"), b""))


@pytest.mark.parametrize("skew_s", [-30.0, 30.0])
def test_clocks_may_differ_by_half_a_minute(skew_s: float) -> None:
    assert verifier(at=NOW + skew_s).open(encode_hop(KEY, CLAIMS, b"x"))[1] == b"x"


@pytest.mark.parametrize("skew_s", [-WINDOW_S - 1, WINDOW_S + 1])
def test_an_old_request_is_refused(skew_s: float) -> None:
    with pytest.raises(HopError, match="old"):
        verifier(at=NOW + skew_s).open(encode_hop(KEY, CLAIMS, b"x"))


def test_while_keys_are_changed_both_are_accepted() -> None:
    assert verifier(OTHER, KEY).open(encode_hop(KEY, CLAIMS, b"x"))[1] == b"x"
    with pytest.raises(HopError):
        verifier(OTHER).open(encode_hop(KEY, CLAIMS, b"x"))
