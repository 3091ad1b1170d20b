"""One shared key, and what is derived from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pactgate.state.sealing_keys import SealingKeys

OLD, NEW = bytes(range(32)), bytes(range(32, 64))


@given(st.binary(max_size=300))
def test_what_one_replica_seals_another_opens(data: bytes) -> None:
    assert SealingKeys(OLD).open("p", SealingKeys(OLD).seal("p", data)) == data


@given(st.binary(max_size=64), st.integers(0, 200), st.integers(0, 7))
def test_what_was_altered_opens_nowhere(data: bytes, place: int, bit: int) -> None:
    keys = SealingKeys(OLD)
    sealed = bytearray(keys.seal("p", data))
    sealed[place % len(sealed)] ^= 1 << bit
    assert keys.open("p", bytes(sealed)) is None
    assert keys.open("p", bytes(sealed[:20])) is None


def test_a_seal_for_one_purpose_opens_for_no_other() -> None:
    keys = SealingKeys(OLD)
    assert keys.open("q", keys.seal("p", b"x")) is None
    assert len({*keys.keys("p"), *keys.keys("q"), OLD}) == 3


def test_while_keys_are_changed_replicas_with_either_first_open_each_others_seals() -> None:
    before, first, second, after = SealingKeys(OLD), SealingKeys(OLD, NEW), SealingKeys(NEW, OLD), SealingKeys(NEW)
    for sealer, opener in ((before, first), (first, before), (first, second), (second, first), (second, after)):
        assert opener.open("p", sealer.seal("p", b"x")) == b"x"
    assert after.open("p", before.seal("p", b"x")) is None


def test_a_digest_says_the_same_for_the_same_parts_only() -> None:
    keys = SealingKeys(OLD)
    assert keys.digest("p", "ab", "c") == SealingKeys(OLD).digest("p", "ab", "c")
    assert len({keys.digest("p", "ab", "c"), keys.digest("p", "a", "bc"), keys.digest("q", "ab", "c")}) == 3
